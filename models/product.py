"""The best two-bin mechanism under its exact ε and exact MAE: a bilinear program, and the LP of one box of it.

For x in piece j the bins drawn have the joint law π_j(l, r) = q^l_j(l) q^r_{m-j}(m+1-r). Everything exact is linear in
π: the end laws of eq. (4), hence low(i) <= p(x, i) <= e^ε low(i) at both ends of every piece, and the expected error

    E e(M(X) - X) = Σ_j Σ_{l,r} π_j(l, r) E[ (B_r - X) e(X - B_l) + (X - B_l) e(B_r - X) ; X in piece j ] / (B_r - B_l)

Only "π is a product" is not linear. In a box lo <= q <= hi of the bounded vectors (models.optm: the shorter one of each
piece) every product obeys

    lo(k) q(k') <= π(k, k') <= hi(k) q(k'),      Σ_k' π(k, k') = q(k),   Σ_k π(k, k') = q(k')

which is an LP whose value bounds all products in the box below, and is exact when lo = hi. Branching on boxes gives
the optimum with a proof; for m <= 5 only one number is branched on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from solvers.arrays import Vector

from .entrywise_program import EntrywiseProgram
from .optm import Bounds, Key, TwoBinShape

__all__ = ["ProductModel"]


@dataclass(frozen=True, eq=False)
class ProductModel:
    """The boxes of one two-bin family.

    Attributes:
        shape: bins, pieces and vectors.
        gains: gains[piece][l - 1, r - 1] = E[...] above, the loss of π_j(l, r), from the caller's density and error.
    """

    shape: TwoBinShape
    gains: tuple[Vector, ...]

    @cached_property
    def lifted(self) -> dict[tuple[int, int, int], int]:
        """(j, l, r) -> column of π_j(l, r)."""
        names = [
            (j, l, r) for j, _, _ in self.shape.pieces for l in range(1, j + 1) for r in range(j + 1, self.shape.m + 1)
        ]
        return {name: len(self.shape.column) + k for k, name in enumerate(names)}

    def root(self) -> dict[Key, tuple[Vector, Vector]]:
        """The widest box."""
        return {key: (np.zeros(key[1]), np.ones(key[1])) for key in self.shape.bounded}

    def lp(self, epsilon: float, box: Bounds) -> EntrywiseProgram:
        """The LP of a box."""
        shape, m, lifted = self.shape, self.shape.m, self.lifted
        base = len(shape.column) + len(lifted)
        lp = shape.program(len(lifted) + m, box)
        side = "l" if shape.symmetric else "r"
        odds = float(np.exp(epsilon))
        for (j, a, b), gain in zip(shape.pieces, self.gains, strict=True):
            lefts, rights = range(1, j + 1), range(j + 1, m + 1)
            for l in lefts:
                columns = [lifted[j, l, r] for r in rights] + [shape.column["l", j, l]]
                lp.row(columns, [1.0] * len(rights) + [-1.0], 0.0, 0.0)
            for r in rights:
                columns = [lifted[j, l, r] for l in lefts] + [shape.column[side, m - j, m + 1 - r]]
                lp.row(columns, [1.0] * len(lefts) + [-1.0], 0.0, 0.0)
            key = shape.chosen(j) or ("l", j)
            short_left = key == ("l", j)
            for l in lefts:
                for r in rights:
                    lp.c[lifted[j, l, r]] = gain[l - 1, r - 1]
                    if key in box:
                        lo, hi = box[key]
                        k = l if short_left else m + 1 - r
                        other = shape.column[(side, m - j, m + 1 - r) if short_left else ("l", j, l)]
                        lp.row([lifted[j, l, r], other], [-1.0, lo[k - 1]], -np.inf, 0.0)
                        lp.row([lifted[j, l, r], other], [1.0, -hi[k - 1]], -np.inf, 0.0)
            for x in (a, b):
                for i in shape.rows_of:
                    columns, values = self._law(j, i, x)
                    lp.row([*columns, base + i - 1], [*values, -odds], -np.inf, 0.0)
                    lp.row([*columns, base + i - 1], [-v for v in values] + [1.0], -np.inf, 0.0)
        return lp

    def _law(self, j: int, i: int, x: float) -> tuple[list[int], list[float]]:
        """p(x, i) on piece j in the columns of π_j."""
        B, m = self.shape.bins, self.shape.m
        if i <= j:
            parts = [(self.lifted[j, i, r], (B[r - 1] - x) / (B[r - 1] - B[i - 1])) for r in range(j + 1, m + 1)]
        else:
            parts = [(self.lifted[j, l, i], (x - B[l - 1]) / (B[i - 1] - B[l - 1])) for l in range(1, j + 1)]
        return [k for k, _ in parts], [v for _, v in parts]

    def point_box(self, q: dict[Key, Vector]) -> dict[Key, tuple[Vector, Vector]]:
        """The box of one point: its LP is exact."""
        return {key: (value, value) for key, value in q.items()}

    def read(self, x: Vector, key: Key) -> Vector:
        """One vector of a point, normalised. Shape (length,)."""
        first = self.shape.column[(*key, 1)]
        q = np.maximum(x[first : first + key[1]], 0.0)
        return np.asarray(q / q.sum())

    def violation(self, x: Vector) -> dict[tuple[Key, int], float]:
        """How far π is from a product, summed on every entry (key, k) of the bounded vectors."""
        violations: dict[tuple[Key, int], float] = {}
        shape, m = self.shape, self.shape.m
        side = "l" if shape.symmetric else "r"
        for j, _, _ in shape.pieces:
            key = shape.chosen(j) or ("l", j)
            if key[1] == 1:
                continue
            for l in range(1, j + 1):
                for r in range(j + 1, m + 1):
                    product = x[shape.column["l", j, l]] * x[shape.column[side, m - j, m + 1 - r]]
                    k = l if key == ("l", j) else m + 1 - r
                    violations[key, k] = violations.get((key, k), 0.0) + abs(float(x[self.lifted[j, l, r]] - product))
        return violations
