"""What multipliers prove of `workbench.models.labels.unbiased`, in rationals: nothing is rounded that e^ε would
multiply.

With multipliers v, u of the two rows of y, and f_y(o) = p_y (o-y)² - v_y - u_y (o-y), a ray (o, S) has the reduced
loss Σ_y w_y f_y(o), least for S = {y : f_y(o) < 0}:  φ(o) = Σ_y f_y(o) + q Σ_y min(0, f_y(o)). Where φ >= -m
everywhere, lowering every v_y by m/k makes the multipliers feasible: Σ v - m is a lower bound.

Floats are rationals, and so are the coefficients of the f_y. Their roots are taken outwards to a fine grid, and f_y
counted in full between: what that takes from φ is subtracted (`slack`, far below any digit of interest). From one of
these points to the next φ is one convex quadratic, whose least value is a rational; its coefficients change by one
label at a time, so that all pieces take O(k log k).

A ray of reduced cost r < 0 asks for no more than -r/Σw of every v_y, or -r/((1+q) |S|) of those in S alone: they are
lowered by the largest of those first, and priced again.

| here            | meaning                                                                        |
|-----------------|--------------------------------------------------------------------------------|
| Quadratics      | f_y(o) = a o² + b o + c for every y; value: Σ v                                |
| Prices          | the least φ on every piece; the pieces that lie in {f_y < 0}, for every y      |
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from flint import fmpq
from numpy.typing import NDArray

from workbench.solvers.arrays import Flags, Integers, Positions, Vector
from workbench.solvers.exact.polynomials import to_flint, to_fraction

Number = Fraction | float
Exact = NDArray[np.object_]  # rationals of FLINT
Ends = tuple[int | None, int | None]  # of an interval, over _GRID

_TURNS = 8  # times the multipliers are lowered
_GRID = 1 << 160  # denominator of the points to which roots are rounded
_MARGIN = 1 + 2.0**-40  # relative, beyond what a ray asks for
_FLOAT = Fraction(1, 2**52)
_ODDS = Fraction(1, 2**63)


def round_odds_up(q: float) -> Fraction:
    """At least e^ε - 1, for q the float next to what is below it by 2^-64 or less."""
    return Fraction(q) * (1 + _FLOAT) + _ODDS


@dataclass(frozen=True, eq=False)
class Quadratics:
    """The f_y of multipliers (see the module's table). coefficients: (k, 3), a, b, c of each."""

    coefficients: Exact
    value: fmpq

    @classmethod
    def from_multipliers(
        cls, labels: Vector, prior: Vector, v: Iterable[Number], u: Iterable[Number]
    ) -> Quadratics:
        """labels, prior: (k,) floats; v, u: (k,) floats or Fractions."""
        y, p, values, moments = map(_exact, (labels.tolist(), prior.tolist(), v, u))
        return cls(
            np.stack([p, -2 * p * y - moments, (p * y + moments) * y - values], axis=1),
            values.sum(),
        )

    def lower_by(self, by: Vector) -> Quadratics:
        """With every v_y less by so much. by: (k,)."""
        steps = _exact(by.tolist())
        return Quadratics(self.coefficients + np.outer(steps, [0, 0, 1]), self.value - steps.sum())

    def price_pieces(self, q: Fraction) -> PiecePrices:
        """φ, piece by piece."""
        ends = [_around(*each) for each in self.coefficients]
        slack = fmpq(0)
        changes: defaultdict[int | None, Any] = defaultdict(int)  # of q f, where labels come or go
        for each, end in zip(to_flint(q) * self.coefficients, ends, strict=True):
            if end is not None:
                slack += max((_at(each, fmpq(x, _GRID)) for x in end if x is not None), default=0)
                changes[end[0]] += each
                changes[end[1]] -= each if end[1] is not None else 0
        points = sorted(at for at in changes if at is not None)
        sums = accumulate(
            [self.coefficients.sum(axis=0) + changes[None], *(changes[at] for at in points)]
        )
        least = [
            _least(each, at) for each, at in zip(sums, pairwise([None, *points, None]), strict=True)
        ]
        place: dict[int | None, int] = {at: i for i, at in enumerate(points, 1)}
        last = len(least)
        pieces = [
            (last, 0) if end is None else (place.get(end[0], 0), place.get(end[1], last))
            for end in ends
        ]
        return PiecePrices(least, slack, np.array(pieces))


@dataclass(frozen=True)
class PiecePrices:
    """φ >= least[i] - slack on piece i; pieces: (k, 2) those from .. to .. - 1 where f_y < 0."""

    minima: list[fmpq]
    slack: fmpq
    pieces: Integers

    def lower_bound(self, value: fmpq) -> Fraction:
        """What Σ v proves."""
        return to_fraction(value - max(0, self.slack - min(self.minima)))

    @property
    def depths(self) -> Vector:
        """The least φ of every piece, rounded. (n,)"""
        return np.array([float(to_fraction(x)) for x in self.minima])

    def label_sets(self, which: Positions) -> Flags:
        """The sets S of some pieces. (n, k)"""
        return (self.pieces[:, 0] <= which[:, None]) & (which[:, None] < self.pieces[:, 1])

    @property
    def negative_sets(self) -> Flags:
        """The sets of the rays of negative reduced cost. (n, k)"""
        return self.label_sets(np.flatnonzero([x < 0 for x in self.minima]))


def lower_until_feasible(f: Quadratics, q: Fraction) -> tuple[float, Flags]:
    """(the best bound of the multipliers and of what they become when lowered, rounded down; sets of the rays of
    negative reduced cost)."""
    prices = f.price_pieces(q)
    rays, bounds = prices.negative_sets, [prices.lower_bound(f.value)]
    while len(bounds) < _TURNS and min(prices.minima) < 0:
        depths = prices.depths
        below = np.flatnonzero(depths < 0)
        f = f.lower_by(_shortfall(float(q), prices.label_sets(below), -depths[below]) * _MARGIN)
        prices = f.price_pieces(q)
        bounds.append(prices.lower_bound(f.value))
    best = max(bounds)
    value = float(best)
    return math.nextafter(value, -math.inf) if Fraction(value) > best else value, rays


def _shortfall(q: float, raised: Flags, below: Vector) -> Vector:
    """By how much to lower every v_y: all alike, or those in a ray's set alone, whichever costs less. (k,)"""
    k, size = raised.shape[1], raised.sum(axis=1)
    alike = np.full(k, float((below / (k + q * size)).max()))
    if not size.all():
        return alike
    each = np.where(raised, (below / ((1 + q) * size))[:, None], 0.0).max(axis=0)
    return each if each.sum() < alike.sum() else alike


def _exact(values: Iterable[Number]) -> Exact:
    return np.array([fmpq(*value.as_integer_ratio()) for value in values], dtype=object)


def _around(a: fmpq, b: fmpq, c: fmpq) -> Ends | None:
    """Grid points around {o : a o² + b o + c < 0}, None for an infinite end; None where it is empty. a >= 0."""
    if a == 0:
        if b == 0:
            return (None, None) if c < 0 else None
        end = -c / b * _GRID
        return (None, int(end.ceil())) if b > 0 else (int(end.floor()), None)
    middle = -b / (2 * a)
    square = middle * middle - c / a
    if square <= 0:
        return None
    middle, root = middle * _GRID, (square * _GRID**2).floor().isqrt() + 1
    return int((middle - root).floor()), int((middle + root).ceil())


def _at(f: Exact, o: fmpq) -> fmpq:
    """a o² + b o + c."""
    return (f[0] * o + f[1]) * o + f[2]


def _least(f: Exact, ends: Ends) -> fmpq:
    """The least a o² + b o + c between grid points. a > 0."""
    o = -f[1] / (2 * f[0])
    low, high = (None if end is None else fmpq(end, _GRID) for end in ends)
    if low is not None and o < low:
        o = low
    elif high is not None and o > high:
        o = high
    return _at(f, o)
