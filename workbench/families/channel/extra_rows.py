"""Linear rows of one's own, A M <= b or A M = b, of a channel that is solved output by output."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from models.channel import ChannelModel
from solvers.arrays import Flags, Vector
from solvers.canonical import compile
from solvers.program import Program
from solvers.rational_refinement import scaled
from workbench.families.channel.losses import Integers
from workbench.families.outcome import translated_errors


def extra_program(model: ChannelModel) -> Program | None:
    """The extra constraints alone, over masses by outputs; None where they are not linear in these alone."""
    import cvxpy as cp

    with translated_errors():
        M = cp.Variable(model.loss.shape, name="M", bounds=[0, 1])
        program = compile(cp.Problem(cp.Minimize(cp.sum(M)), model.extra(M)), "extra constraints")
    return program if program.shape[1] == model.loss.size else None


@dataclass(frozen=True, eq=False)
class ExtraRows:
    """Rows but 0 <= b. A: (R, k m), input by input; limit: (R,) b; equal: (R,) which are equations. Floats are taken as
    they are."""

    shape: tuple[int, int]
    A: csr_array
    limit: Vector
    equal: Flags

    @classmethod
    def of(cls, program: Program, shape: tuple[int, int]) -> ExtraRows:
        """Those of `extra_program`. shape: (k, m)."""
        data, (k, m) = program.template, shape
        rows = csr_array(data.A)
        rows.eliminate_zeros()
        kept = np.flatnonzero((np.diff(rows.indptr) > 0) | (data.row_upper < 0))
        by_inputs = csr_array(rows[kept][:, np.arange(k * m).reshape(m, k).T.ravel()])
        return cls(shape, by_inputs, data.row_upper[kept], (data.row_lower == data.row_upper)[kept])

    def _cells(self, cells: NDArray[np.signedinteger]) -> tuple[NDArray[np.signedinteger], NDArray[np.signedinteger]]:
        return cells // self.shape[1], cells % self.shape[1]

    @property
    def tied(self) -> bool:
        """Whether a row has masses of several inputs and of several outputs, or none."""
        own = [self._cells(self.A.indices[start:end]) for start, end in pairwise(self.A.indptr.tolist())]
        return any(not y.size or (np.ptp(y) and np.ptp(o)) for y, o in own)

    def bound(self, rows: Integers, multipliers: Vector, bits: int) -> tuple[Integers, int]:
        """(rows - A'q, q b) over 2^bits, rounded down, for multipliers q that are <= 0 where a row is no equation.
        rows: (k, m)."""
        entries, rows, total = coo_array(self.A), rows.copy(), 0
        q = [int(v) if free else min(int(v), 0) for v, free in zip(scaled(multipliers, bits), self.equal, strict=True)]
        for row, y, o, value in zip(entries.row, *self._cells(entries.col), entries.data.tolist(), strict=True):
            num, den = value.as_integer_ratio()
            rows[y, o] -= -(-q[row] * num // den)
        for each, limit in zip(q, self.limit.tolist(), strict=True):
            num, den = limit.as_integer_ratio()
            total += each * num // den
        return rows, total
