"""Convert extra constraints on a channel M to rows A M <= b or A M = b.

The block method and exact checks use the rows. Extra constraints are the named ones, such as
unbiased, and those of the user. M[y, o] is the probability (mass) of output o for input y. In A M
the masses of k inputs and m outputs are one column vector. For example, the constraint
M[0, 0] >= 0.75 is the row -M[0, 0] <= -0.75.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array

from workbench.models.channel.program import ChannelModel
from workbench.models.statement import build_program
from workbench.pipeline.loss_tables import Integers
from workbench.pipeline.outcome import translate_errors
from workbench.solvers.arrays import Flags, Vector
from workbench.solvers.data import floor_to_bits
from workbench.solvers.program import Program


def build_extra_program(model: ChannelModel) -> Program | None:
    """Build a program that states the extra constraints only.

    Args:
        model: the model whose named and user-defined constraints are stated.

    Returns:
        The program, whose variables are the masses. None if the constraints need other variables
        too.
    """

    def state_constraints(cp: Any) -> Any:
        """Return a problem with the constraints. Its objective is not used."""
        M = cp.Variable(model.loss.shape, name="M", bounds=[0, 1])
        return cp.Problem(cp.Minimize(cp.sum(M)), model.extra_rows(M))

    with translate_errors():
        program = build_program(
            state_constraints, "extra constraints", without_cvxpy=model.user_rows is None
        )
    _, variable_count = program.shape
    return program if variable_count == model.loss.size else None


@dataclass(frozen=True, eq=False)
class ExtraRows:
    """The rows of extra constraints, without rows that hold for every channel.

    Floats are taken as exact numbers.

    Attributes:
        A: coefficients, shape (R, k m), where R is the number of rows. M[y, o] has the column
            y m + o.
        limits: right-hand sides b, shape (R,).
        is_equation: whether a row is an equation, shape (R,). Otherwise it is an upper bound.
    """

    A: csr_array
    limits: Vector
    is_equation: Flags

    @classmethod
    def from_program(cls, program: Program, k: int) -> ExtraRows:
        """Read the rows of a program of `build_extra_program`.

        Args:
            program: program whose variables are the masses, output by output: M[y, o] has the
                column o k + y.
            k: number of inputs.
        """
        data = program.template
        rows = csr_array(data.A)
        rows.eliminate_zeros()
        # A row without coefficients states that b >= 0 or b = 0. It is kept only if this is false.
        has_entries = np.diff(rows.indptr) > 0
        kept_rows = np.flatnonzero(has_entries | (data.row_upper < 0) | (data.row_lower > 0))
        order_by_inputs = np.arange(rows.shape[1]).reshape(-1, k).T.ravel()
        coefficients = csr_array(rows[kept_rows][:, order_by_inputs])
        is_equation = (data.row_lower == data.row_upper)[kept_rows]
        return cls(coefficients, data.row_upper[kept_rows], is_equation)

    def has_mixed_rows(self, m: int) -> bool:
        """Return whether a row combines several inputs with several outputs, or has no mass.

        Args:
            m: number of outputs.
        """
        for columns in np.split(self.A.indices, self.A.indptr[1:-1]):
            if not columns.size or (np.ptp(columns // m) and np.ptp(columns % m)):
                return True
        return False

    def apply_multipliers(
        self, rows: Integers, multipliers: Vector, bits: int
    ) -> tuple[Integers, int]:
        """Subtract A'q from the rows of a dual bound, for multipliers q.

        Args:
            rows: integers over 2^bits, shape (k, m).
            multipliers: q, shape (R,). A multiplier of an upper bound must be <= 0; a positive one
                counts as 0.
            bits: binary digits to which q is rounded down.

        Returns:
            (rows - A'q, q b) over 2^bits, rounded down.
        """
        q = []
        rounded_multipliers = floor_to_bits(multipliers, bits).tolist()
        for multiplier, is_free in zip(rounded_multipliers, self.is_equation, strict=True):
            q.append(Fraction(multiplier if is_free else min(multiplier, 0)))
        _, m = rows.shape
        reduced_rows = rows.copy()
        entries = coo_array(self.A)
        coefficients = entries.data.tolist()
        for row, column, coefficient in zip(entries.row, entries.col, coefficients, strict=True):
            y, o = divmod(column, m)
            reduced_rows[y, o] += floor(-q[row] * Fraction(coefficient))
        bound_terms = 0
        for multiplier, limit in zip(q, self.limits.tolist(), strict=True):
            bound_terms += floor(multiplier * Fraction(limit))
        return reduced_rows, bound_terms
