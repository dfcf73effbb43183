"""Iterative refinement: a double-precision solver taken far beyond double precision.

    minimise    c'x    subject to    lo <= A x <= hi,    l <= x <= u

A, c are rationals with a power of two as denominator, the bounds and x are integers over 2^P: residuals are exact. One
round solves the same program for a correction z of the point and its multipliers, blown up until the solver sees what
was below its tolerance (iterative refinement: Gleixner, Steffy and Wolter, INFORMS J. Computing 28, 2016),

    minimise   D (c - A'y)'z + D y't
    s.t.       A z = t,   S (lo - A x) <= t <= S (hi - A x),   S (l - x) <= z <= S (u - x)
    x <- x + z/S,   y <- y + w/D     (w the multipliers of A z = t)

Every round gains about 30 bits, so masses of 1e-40 come out right although a solver alone calls them zero. What is
returned is proven here and not by the solver: the violations that are left, exactly, and the Lagrangian bound of y.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .backend import Options, backend
from .errors import NoRationalSolution
from .program import Data, Program
from .rational_lp import RationalLP, RationalPoint
from .solution import Termination

__all__ = ["solve_rational"]

Integers = NDArray[np.object_]
_AT_LOWER, _BASIC, _AT_UPPER = 0, 1, 2  # of HiGHS's HighsBasisStatus, whose names take long to read
_STEP = 30  # bits a round may gain
_DUAL = 3  # rounds at the scale of the program, which settle the basis
_HUGE = 1e14  # a scaled bound beyond this is no bound for a correction
_LEAST = 1e-8  # solvers drop smaller coefficients; the residuals still see them


def solve_rational(
    lp: RationalLP, *, accuracy: int = 230, rounds: int = 24, time_limit: float | None = None
) -> RationalPoint:
    """Refine until every violation is below 2^-accuracy. time_limit: seconds of each round.

    Raises:
        NoRationalSolution: the program is infeasible, or refinement stopped gaining digits (both in words).
    """
    return _Refinement(lp, time_limit).run(accuracy, rounds)


class _Refinement:
    """The state of one solve: exact integers, and the float matrix the solver sees."""

    def __init__(self, lp: RationalLP, time_limit: float | None) -> None:
        self.lp, self.P = lp, lp.bits
        entries = [(i, j, v) for i, row in enumerate(lp.rows) for j, v in row.items()]
        numbers = [v for *_, v in entries] + lp.cost
        common = math.lcm(*{v.denominator for v in numbers}) if numbers else 1
        if common & (common - 1):
            raise NoRationalSolution("The exact program has a coefficient that is no dyadic rational; round it first.")
        self.S = common.bit_length() - 1
        self.i = np.array([i for i, *_ in entries], dtype=np.intp)
        self.j = np.array([j for _, j, _ in entries], dtype=np.intp)
        self.a = _objects([v.numerator * (common // v.denominator) for *_, v in entries])
        self.c = _objects([v.numerator * (common // v.denominator) for v in lp.cost])
        floats = np.array([float(v) for *_, v in entries])
        keep = np.abs(floats) >= _LEAST
        shape = (len(lp.rows), lp.columns)
        self.A = sp.csc_array((floats[keep], (self.i[keep], self.j[keep])), shape=shape)
        self.A.sum_duplicates()
        self.wide = sp.csc_array(sp.hstack([self.A, -sp.eye_array(shape[0])]))
        self.lo, self.hi = self._sides(lp.sides)
        self.l, self.u = self._sides(lp.bounds)
        self.solver = backend("highs")
        tight = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}
        self.options = Options(time_limit=time_limit, native=tight)
        self.basis: Any = None
        self.held = (np.zeros(0, dtype=bool), np.zeros(0, dtype=bool))  # columns and rows at their lower, upper bound

    def _sides(self, sides: list[tuple[Fraction | None, Fraction | None]]) -> tuple[Integers, Integers]:
        """Bounds as integers over 2^P, rounded inwards; None for none."""
        one = 1 << self.P
        low = [None if a is None else math.ceil(a * one) for a, _ in sides]
        high = [None if b is None else math.floor(b * one) for _, b in sides]
        for k, ((a, b), x, y) in enumerate(zip(sides, low, high, strict=True)):
            if x is not None and y is not None and x > y and a is not None and b is not None and a <= b:
                low[k] = high[k] = round(a * one)  # an equation whose side is not over 2^P
        return _objects(low), _objects(high)

    def run(self, accuracy: int, rounds: int) -> RationalPoint:
        """Round after round until every violation is below 2^-accuracy. Raises NoRationalSolution."""
        m, n = len(self.lp.rows), self.lp.columns
        x, y = _objects([0] * n), _objects([0] * m)  # y over 2^P as well
        grow, dual_grow, stalls, best = 20, 0, 0, 1 << (self.P + 8)
        tight, fixed = np.zeros(m, dtype=bool), np.zeros(n, dtype=bool)
        for turn in range(rounds):
            activity = self._times(x)
            reduced = (self.c << self.P) - self._transposed(y)
            violation = self._violation(x, activity)
            if turn >= _DUAL:
                if violation <= 1 << (self.P - accuracy):
                    break
                stalls = stalls + 1 if violation > best >> 4 else 0
                if stalls > 2:
                    raise NoRationalSolution("Refining the solver's answer stopped gaining digits.")
                grow = min(grow + 2 * _STEP, max(20, self.P - violation.bit_length()))
                best = min(best, violation)
            z, w, tight, fixed, at = self._correct(x, y, activity, reduced, grow, dual_grow, turn >= _DUAL)
            x = x + _scaled(z, self.P - grow)
            y = y + _scaled(w, self.P - dual_grow)
            x = np.where(at == 1, self.l, np.where(at == 2, self.u, x))
            dual_grow = min(dual_grow + _STEP, _STEP * (_DUAL - 1))
        y = self._signed(y)
        activity = self._times(x)
        violation = self._violation(x, activity)
        if violation > 1 << (self.P - 100):
            raise NoRationalSolution("Refining the solver's answer did not reach an exactly feasible point.")
        point = [Fraction(int(v), 1 << self.P) for v in x]
        value = sum((c * v for c, v in zip(self.lp.cost, point, strict=True)), Fraction(0))
        return RationalPoint(self.lp, point, value, self._bound(y), Fraction(violation, 1 << self.P), tight, fixed)

    def _times(self, x: Integers) -> Integers:
        out = _objects([0] * len(self.lp.rows))
        np.add.at(out, self.i, self.a * x[self.j])
        return out

    def _transposed(self, y: Integers) -> Integers:
        out = _objects([0] * self.lp.columns)
        np.add.at(out, self.j, self.a * y[self.i])
        return out

    def _violation(self, x: Integers, activity: Integers) -> int:
        """The largest violation, over 2^P, rounded up."""
        worst = 0
        for value, low, high in zip(activity, self.lo, self.hi, strict=True):
            if low is not None:
                worst = max(worst, -((value - (low << self.S)) >> self.S))
            if high is not None:
                worst = max(worst, -(((high << self.S) - value) >> self.S))
        for value, low, high in zip(x, self.l, self.u, strict=True):
            worst = max(worst, 0 if low is None else low - value, 0 if high is None else value - high)
        return int(worst)

    def _correct(
        self, x: Integers, y: Integers, activity: Integers, reduced: Integers, grow: int, dual_grow: int, settled: bool
    ) -> tuple[Any, Any, Any, Any, Any]:
        """One solve, with a column t = A z for every row so that multipliers of either sign can be corrected.

        settled: the basis is optimal, so basic columns cost nothing and others what keeps them at their bound; then
        no digit beyond the solver's can make the program unbounded.
        """
        m, n = self.A.shape

        def scale(side: Integers, value: Integers, shift: int, otherwise: float) -> NDArray[np.float64]:
            out = np.full(len(side), otherwise)
            for k, (bound, here) in enumerate(zip(side, value, strict=True)):
                if bound is not None:
                    gap = _ratio((bound << shift) - here, self.P + shift - grow)
                    if abs(gap) < _HUGE:
                        out[k] = gap
            return out

        lower = np.r_[scale(self.l, x, 0, -np.inf), scale(self.lo, activity, self.S, -np.inf)]
        upper = np.r_[scale(self.u, x, 0, np.inf), scale(self.hi, activity, self.S, np.inf)]
        cost = np.array(
            [_ratio(v, self.P + self.S - dual_grow) for v in reduced] + [_ratio(v, self.P - dual_grow) for v in y]
        )
        cost = np.clip(cost, -_HUGE, _HUGE)
        if settled:
            low, high = self.held
            cost = np.where(
                low & high, cost, np.where(low, np.maximum(cost, 0), np.where(high, np.minimum(cost, 0), 0))
            )
        data = Data(cost, 0.0, self.wide, np.zeros(m), np.zeros(m), lower, upper, np.zeros(n + m, dtype=bool))
        program = Program("refinement of an exact program", data)
        with self.solver.open(program, self.options) as session:
            solution = session.solve() if self.basis is None else session.solve(start="basis", basis=self.basis)
            if solution.termination is not Termination.OPTIMAL and self.basis is not None:
                solution = session.solve(start="cold")  # what a stored basis cannot do, none may
        if solution.x is None or solution.row_dual is None or solution.termination is not Termination.OPTIMAL:
            raise NoRationalSolution(f"The exact program of the solver's pattern has no answer: {solution.raw_status}.")
        self.basis = solution.basis
        columns = np.array([int(status) for status in solution.basis.col_status])
        fixed = (lower == upper) & (columns != _BASIC)
        self.held = (columns == _AT_LOWER) | fixed, (columns == _AT_UPPER) | fixed
        low, high = self.held
        at = np.where(low[:n] & np.isfinite(lower[:n]), 1, np.where(high[:n] & np.isfinite(upper[:n]), 2, 0))
        held = low | high
        used = np.array([int(status) for status in solution.basis.row_status]) != _BASIC  # the row's equation counts
        return solution.x[:n], solution.row_dual, held[n:] & used, held[:n], at

    def _signed(self, y: Integers) -> Integers:
        """Multipliers without those that point at a side a row does not have."""
        missing = np.where(y > 0, self.lo == None, self.hi == None)  # noqa: E711
        return np.asarray(np.where(missing, 0, y))

    def _bound(self, y: Integers) -> Fraction | None:
        """The Lagrangian bound of multipliers y over 2^P, exact; None when it is -∞."""
        reduced = (self.c << self.P) - self._transposed(y)  # over 2^(S+P)
        total = 0  # over 2^(S+2P)
        for value, low, high in zip(y, self.lo, self.hi, strict=True):
            side = low if value > 0 else high
            if value and side is None:
                return None
            total += (value * side) << self.S if value else 0
        for value, low, high in zip(reduced, self.l, self.u, strict=True):
            side = low if value > 0 else high
            if value and side is None:
                return None
            total += value * side if value else 0
        return Fraction(int(total), 1 << (self.S + 2 * self.P))


def _objects(values: list[Any]) -> Integers:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def _ratio(value: int, shift: int) -> float:
    """value / 2^shift as a float, without overflow on the way."""
    if not value:
        return 0.0
    excess = max(0, abs(value).bit_length() - 64)
    try:
        return math.ldexp(float(value >> excess), excess - shift)
    except OverflowError:
        return math.copysign(math.inf, value)


def _scaled(values: NDArray[np.float64], shift: int) -> Integers:
    """The integers nearest below values * 2^shift."""
    out = []
    for value in values.tolist():
        mantissa, exponent = math.frexp(value)
        digits, up = int(mantissa * 2.0**53), exponent - 53 + shift
        out.append(digits << up if up >= 0 else digits >> -up)
    return _objects(out)
