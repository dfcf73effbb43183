"""Linear rows of one's own, A M <= b or A M = b, of a channel that is solved output by output."""

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
    """The extra constraints alone, over masses by outputs; None where they are not linear in these alone."""

    def stated(cp: Any) -> Any:
        M = cp.Variable(model.loss.shape, name="M", bounds=[0, 1])
        return cp.Problem(cp.Minimize(cp.sum(M)), model.extra_rows(M))

    with translate_errors():
        program = build_program(stated, "extra constraints", without_cvxpy=model.user_rows is None)
    return program if program.shape[1] == model.loss.size else None


@dataclass(frozen=True, eq=False)
class ExtraRows:
    """Rows but those that hold without a mass. A: (R, k m), input by input; limit: (R,) b; equal: (R,) which are
    equations. Floats are taken as they are."""

    A: csr_array
    limits: Vector
    is_equation: Flags

    @classmethod
    def from_program(cls, program: Program, k: int) -> ExtraRows:
        """Those of `extra_program`, for k inputs."""
        data, rows = program.template, csr_array(program.template.A)
        rows.eliminate_zeros()
        kept = np.flatnonzero(
            (np.diff(rows.indptr) > 0) | (data.row_upper < 0) | (data.row_lower > 0)
        )
        by_inputs = csr_array(rows[kept][:, np.arange(rows.shape[1]).reshape(-1, k).T.ravel()])
        return cls(by_inputs, data.row_upper[kept], (data.row_lower == data.row_upper)[kept])

    def has_mixed_rows(self, m: int) -> bool:
        """Whether a row has masses of several inputs and of several of the m outputs, or none."""
        own = np.split(self.A.indices, self.A.indptr[1:-1])
        return any(not each.size or (np.ptp(each // m) and np.ptp(each % m)) for each in own)

    def apply_multipliers(
        self, rows: Integers, multipliers: Vector, bits: int
    ) -> tuple[Integers, int]:
        """(rows - A'q, q b) over 2^bits, rounded down, for multipliers q that are <= 0 where a row is no equation.
        rows: (k, m)."""
        entries, rows = coo_array(self.A), rows.copy()
        signed = zip(floor_to_bits(multipliers, bits).tolist(), self.is_equation, strict=True)
        q = [Fraction(value if free else min(value, 0)) for value, free in signed]
        for row, cell, value in zip(entries.row, entries.col, entries.data.tolist(), strict=True):
            rows[*divmod(cell, rows.shape[1])] += floor(-q[row] * Fraction(value))
        return rows, sum(
            floor(each * Fraction(b)) for each, b in zip(q, self.limits.tolist(), strict=True)
        )
