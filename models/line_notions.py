"""Additive noise on the integers under several convex bounds at once (`models.convex_bounds`), from both sides.

    min Σ c(η) f(η)   s.t.  Σ f = 1,  every bound of a shift s holds of (P, Q) = (f, f(· + s)),   s = ±1..±D

`models.additive_lp` has hockey sticks with δ > 0 alone, whose noise may end; under other bounds it has to go on.

Upper side (`ratio` r): f is stated for |η| <= L and goes on by f(η ± D) = r f(η). Far out P/Q depends on η modulo D, so
outcomes of one ratio are merged, which changes no divergence: P and Q are finitely many affine functions of f. What is
feasible is a mechanism (`workbench.exact.integer_law`).

Lower side (no ratio): f is stated for |η| <= L + D, with T = Pr[η > L + D], T' = Pr[η < -L - D] beside it. Merging all
outcomes η > L, and all η < -L, is post-processing, so every bound holds of the merged pair (data processing); the mass
beyond costs at least c(L + D + 1), as c does not fall. So the optimum is a lower bound for noise on all integers.

Folded: c is even, so is f without loss (the mean of f and its mirror image: bounds are jointly convex), and s > 0
suffice, as the mirror image of (f, f(· + s)) is (f, f(· - s)).

    letter   here                 letter   here
    D, L     sensitivity, reach   r        ratio; T, T' are the last columns of the lower side
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from models.convex_bounds import bound_rows, check_kinds, is_conic
from models.requirements import Bound
from solvers.arrays import Vector
from solvers.canonical import compile
from solvers.program import Program, stating
from solvers.solution import Solution

__all__ = ["LineNotionModel"]

Shift = tuple[int, ...]
_SCALE = 2.0**20  # of all masses, in a linear program
_LEAST = 2e-9  # unit of an outcome in a sum: solvers take no smaller coefficients
_SPECK = 1e-7  # entry of a law, in units, that is left out
_REST = 1e-18  # of a tail's mass, where its loss is cut off: what is claimed is computed elsewhere, exactly


@dataclass(frozen=True, eq=False)
class LineNotionModel:
    """One side of the module's docstring.

    sensitivity: D; reach: L >= D; loss: c(η) >= 0, which does not fall as |η| grows; bounds: of every shift that is
    stated; folded: whether c is even; ratio: in (0, 1), None for the lower side; units: about the size of f(|η|), in
    which a solver sees it, for |η| = 0..last or more.
    """

    sensitivity: int
    reach: int
    loss: Callable[[int], Fraction]
    bounds: Mapping[Shift, Sequence[Bound]]
    folded: bool = True
    ratio: float | None = None
    units: Vector | None = None

    def __post_init__(self) -> None:
        check_kinds(chain(*self.bounds.values()))

    @property
    def last(self) -> int:
        """The largest η that has a column."""
        return self.reach if self.ratio is not None else self.reach + self.sensitivity

    @property
    def _stated(self) -> int:
        """How many columns are masses; T, and T' where nothing is folded, follow on the lower side."""
        return self.last + 1 if self.folded else 2 * self.last + 1

    @property
    def columns(self) -> int:
        """How many there are."""
        return self._stated + (0 if self.ratio is not None else 1 if self.folded else 2)

    def _window(self, low: int, high: int) -> sp.csr_array:
        """f(low..high) as functions of the columns. (high - low + 1, columns)"""
        eta = np.arange(low, high + 1)
        blocks = np.maximum(0, -(-(np.abs(eta) - self.last) // self.sensitivity))
        if self.ratio is None:
            assert not blocks.any(), "what lies past the columns is not stated"
        inside = eta - np.sign(eta) * blocks * self.sensitivity
        place = np.abs(inside) if self.folded else inside + self.last
        entries = np.ones(eta.size) if self.ratio is None else self.ratio ** blocks.astype(float)
        return sp.csr_array((entries, (np.arange(eta.size), place)), shape=(eta.size, self.columns))

    def _beyond(self, side: int) -> sp.csr_array:
        """The mass past the columns, to the right (1) or left (-1). (1, columns)"""
        if self.ratio is not None:
            d, last = self.sensitivity, self.last
            ends = self._window(last + 1 - d, last) if side > 0 else self._window(-last, d - 1 - last)
            return _sum(ends) * (self.ratio / (1 - self.ratio))
        place = self._stated + (0 if side > 0 or self.folded else 1)
        return sp.csr_array(([1.0], ([0], [place])), shape=(1, self.columns))

    @cached_property
    def column_units(self) -> Vector:
        """The unit of every column. (columns,)"""
        if self.units is None:
            return np.ones(self.columns)
        side = self.units[: self.last + 1]
        stated = side if self.folded else np.concatenate([side[:0:-1], side])
        return np.concatenate([stated, np.full(self.columns - stated.size, side[-1])])

    @cached_property
    def weights(self) -> Vector:
        """How often a column counts in the total. (columns,)"""
        parts = [_sum(self._window(-self.last, self.last)), self._beyond(1), self._beyond(-1)]
        return np.asarray(sum(part.toarray() for part in parts)).ravel()

    @cached_property
    def losses(self) -> Vector:
        """What a unit of every column costs, with all that follows from it. (columns,)"""
        last, d = self.last, self.sensitivity
        each = np.array([float(self.loss(eta)) for eta in range(-last, last + 1)])
        total = each @ self._window(-last, last).toarray()
        if self.ratio is None:
            for side in (1, -1):
                total += float(self.loss(side * (last + 1))) * self._beyond(side).toarray().ravel()
            return np.asarray(total)
        blocks = int(np.ceil(np.log(_REST) / np.log(self.ratio)))
        for side in (1, -1):
            ends = np.array([side * (last - j) for j in range(d)])
            tails = [
                sum(self.ratio**b * float(self.loss(eta + side * b * d)) for b in range(1, blocks + 1))
                for eta in ends.tolist()
            ]
            place = np.abs(ends) if self.folded else ends + last
            np.add.at(total, place, tails)
        return np.asarray(total)

    def laws(self, shift: int) -> tuple[sp.csr_array, sp.csr_array]:
        """(P, Q) as functions of the columns, outcomes merged as the docstring says. Both (outcomes, columns)."""
        size, d = self.reach, self.sensitivity
        if self.ratio is not None:
            low, high = -size - abs(shift), size + abs(shift)
            spans = [(low, high, 1.0), *((at, at + d - 1, 1 / (1 - self.ratio)) for at in (high + 1, low - d))]
            p, q = ([self._window(a + s, b + s) * times for a, b, times in spans] for s in (0, shift))
        else:
            p, q = (
                [
                    self._window(-size + s, size + s),
                    _sum(self._window(-size - d, -size - 1 + s)) + self._beyond(-1),
                    _sum(self._window(size + 1 + s, size + d)) + self._beyond(1),
                ]
                for s in (0, shift)
            )
        return sp.csr_array(sp.vstack(p)), sp.csr_array(sp.vstack(q))

    @stating
    def problem(self) -> cp.Problem:
        """The model in CVXPY, in the units of the columns."""
        units = self.column_units
        f = cp.Variable(self.columns, name="f", bounds=[0, None])
        rows: list[Any] = [(self.weights * units) @ f == 1]
        for (shift,), several in self.bounds.items():
            p, q = self.laws(shift)
            each = np.sqrt((p @ units) * (q @ units))
            p, q = (_without_specks(sp.diags_array(1 / each) @ part @ sp.diags_array(units)) for part in (p, q))
            for k, bound in enumerate(several):
                rows += bound_rows(p @ f, q @ f, bound, f"{shift}_{k}", np.maximum(each, _LEAST))
        return cp.Problem(cp.Minimize((self.losses * units) @ f), rows)

    def read(self, solution: Solution) -> Vector:
        """The columns of an answer, none below 0."""
        return np.asarray(np.maximum(solution["f"], 0.0) * self.column_units)

    @cached_property
    def program(self) -> Program:
        """The compiled model."""
        conic, count = is_conic(chain(*self.bounds.values())), sum(map(len, self.bounds.values()))
        side = "relaxed" if self.ratio is None else "with tails"
        name = f"noise on the integers up to {self.reach}, {side}, under {count} bounds"
        return compile(self.problem(), name, scale=1.0 if conic else _SCALE, conic=conic)

    def masses(self, x: Vector) -> Vector:
        """f(-last..last) of the columns. (2 last + 1,)"""
        return np.asarray(self._window(-self.last, self.last) @ x)


def _without_specks(rows: sp.csr_array) -> sp.csr_array:
    """Entries too small for solvers left out: what is claimed is audited, and what is proven states them."""
    rows.data[rows.data < _SPECK] = 0.0
    rows.eliminate_zeros()
    return rows


def _sum(rows: sp.csr_array) -> sp.csr_array:
    """The sum of rows as one. (1, columns)"""
    return sp.csr_array(np.asarray(rows.sum(axis=0)).reshape(1, -1))
