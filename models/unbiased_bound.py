"""What multipliers prove of `models.unbiased`, in integers: nothing is rounded that e^ε would multiply.

With multipliers v, u of the two rows of y, and f_y(o) = p_y (o-y)² - v_y - u_y (o-y), a ray (o, S) has the reduced
loss Σ_y w_y f_y(o), least for S = {y : f_y(o) < 0}:  φ(o) = Σ_y f_y(o) + q Σ_y min(0, f_y(o)). Where φ >= -m
everywhere, lowering every v_y by m/k makes the multipliers feasible: Σ v - m is a lower bound.

Vector are integers over powers of two, and so are the coefficients of the f_y. Their roots are taken outwards to a fine
grid, and f_y counted in full between: what that takes from φ is subtracted (`slack`, far below any digit of interest).
From one of these points to the next φ is one convex quadratic, whose least value is a quotient of integers; its
coefficients change by one label at a time, so that all pieces take O(k log k).

A ray of reduced cost r < 0 asks for no more than -r/Σw of every v_y, or -r/((1+q) |S|) of those in S alone: they are
lowered by the largest of those first, and priced again.

| here            | meaning                                                                        |
|-----------------|--------------------------------------------------------------------------------|
| Quadratics      | f_y(o) = (a o² + b o + c)/2^scale, integers, for every y; value: 2^scale Σ v   |
| Prices          | the least φ on every piece; the pieces that lie in {f_y < 0}, for every y      |
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.arrays import Flags, Integers, Positions, Vector

Number = Fraction | float
Whole = NDArray[np.object_]  # integers of Python; (3,): the coefficients of a quadratic
Ends = tuple[int | None, int | None]

_TURNS = 8  # times the multipliers are lowered
_GRID = 160  # bits of the grid below the labels' size
_SPARE = 64  # bits of what is lowered below those of the multipliers
_MARGIN = 1 + 2.0**-40  # relative, beyond what a ray asks for
_FLOAT = Fraction(1, 2**52)
_ODDS = Fraction(1, 2**63)


def rounded_up(q: float) -> Fraction:
    """At least e^ε - 1, for q the float next to what is below it by 2^-64 or less."""
    return Fraction(q) * (1 + _FLOAT) + _ODDS


@dataclass(frozen=True, eq=False)
class Quadratics:
    """The f_y of multipliers (see the module's table). a, b, c: (k,) integers of Python."""

    a: Whole
    b: Whole
    c: Whole
    scale: int
    grid: int
    value: int

    @classmethod
    def of(cls, labels: Vector, prior: Vector, v: Iterable[Number], u: Iterable[Number]) -> Quadratics:
        """labels, prior: (k,) floats; v, u: (k,) floats or Fractions, over powers of two."""
        (y, y_bits), (p, p_bits) = _integers(labels.tolist()), _integers(prior.tolist())
        (v_whole, v_bits), (u_whole, u_bits) = _integers(v), _integers(u)
        scale = max(p_bits + 2 * y_bits, v_bits, u_bits + y_bits) + _SPARE
        values, moments = v_whole << (scale - v_bits), u_whole << (scale - u_bits - y_bits)
        squares = p << (scale - p_bits - 2 * y_bits)
        return cls(
            a=squares << (2 * y_bits),
            b=-(2 * squares * y + moments) << y_bits,
            c=(squares * y + moments) * y - values,
            scale=scale,
            grid=_GRID + y_bits - max(at.bit_length() for at in y),
            value=sum(values),
        )

    def lowered(self, by: Vector) -> Quadratics:
        """With every v_y less by at least so much >= 0. by: (k,)."""
        ratios = (x.as_integer_ratio() for x in by.tolist())
        steps = np.array([(n << self.scale) // d + (n > 0) for n, d in ratios], dtype=object)
        return replace(self, c=self.c + steps, value=self.value - sum(steps))

    def prices(self, q: Fraction) -> Prices:
        """φ, piece by piece."""
        n, d, grid = q.numerator, q.denominator, self.grid
        coefficients = np.stack([self.a, self.b, self.c], axis=1)
        ends = [_around(each, grid) for each in coefficients]
        slack = 0
        changes: defaultdict[int | None, Any] = defaultdict(int)  # of n f, where labels come or go
        for each, end in zip(n * coefficients, ends, strict=True):
            if end is not None:
                slack += max((_at(each, x, grid) for x in end if x is not None), default=0)
                changes[end[0]] += each
                changes[end[1]] -= each if end[1] is not None else 0
        points = sorted(at for at in changes if at is not None)
        first = d * coefficients.sum(axis=0) + changes[None]
        sums = accumulate([first, *(changes[at] for at in points)])
        least = [_least(each, at, grid) for each, at in zip(sums, pairwise([None, *points, None]), strict=True)]
        place: dict[int | None, int] = {at: i for i, at in enumerate(points, 1)}
        last = len(least)
        pieces = [(last, 0) if end is None else (place.get(end[0], 0), place.get(end[1], last)) for end in ends]
        return Prices(least, slack, self.scale, d, np.array(pieces))


@dataclass(frozen=True)
class Prices:
    """φ >= (least[i] - slack)/(parts 2^scale) on piece i; pieces: (k, 2) those from .. to .. - 1 where f_y < 0."""

    least: list[int]
    slack: int
    scale: int
    parts: int
    pieces: Integers

    def bound(self, value: int) -> Fraction:
        """What 2^scale Σ v proves."""
        short = max(0, self.slack - min(self.least))
        return Fraction(value * self.parts - short, self.parts << self.scale)

    @property
    def depths(self) -> Vector:
        """The least φ of every piece, rounded. (n,)"""
        unit = self.parts << self.scale
        return np.array([x / unit for x in self.least])

    def raised(self, which: Positions) -> Flags:
        """The sets S of some pieces. (n, k)"""
        return (self.pieces[:, 0] <= which[:, None]) & (which[:, None] < self.pieces[:, 1])

    @property
    def negative(self) -> Flags:
        """The sets of the rays of negative reduced cost. (n, k)"""
        return self.raised(np.flatnonzero([x < 0 for x in self.least]))


def lowered(f: Quadratics, q: Fraction) -> tuple[float, Flags]:
    """(the best bound of the multipliers and of what they become when lowered, rounded down; sets of the rays of
    negative reduced cost)."""
    prices = f.prices(q)
    rays, bounds = prices.negative, [prices.bound(f.value)]
    while len(bounds) < _TURNS and min(prices.least) < 0:
        depths = prices.depths
        below = np.flatnonzero(depths < 0)
        f = f.lowered(_shortfall(float(q), prices.raised(below), -depths[below]) * _MARGIN)
        prices = f.prices(q)
        bounds.append(prices.bound(f.value))
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


def _integers(values: Iterable[Number]) -> tuple[Whole, int]:
    """(integers, bits): the values times 2^bits."""
    ratios = [value.as_integer_ratio() for value in values]
    bits = max(d.bit_length() for _, d in ratios) - 1
    return np.array([n << (bits + 1 - d.bit_length()) for n, d in ratios], dtype=object), bits


def _around(f: Whole, grid: int) -> Ends | None:
    """Grid points around {o : a o² + b o + c < 0}, None for an infinite end; None where it is empty. a >= 0."""
    a, b, c = f
    if a == 0:
        if b == 0:
            return (None, None) if c < 0 else None
        return (None, -((c << grid) // b)) if b > 0 else (-(c << grid) // b, None)
    square = b * b - 4 * a * c
    if square <= 0:
        return None
    root = math.isqrt(square << (2 * grid)) + 1
    return (-(b << grid) - root) // (2 * a), -(((b << grid) - root) // (2 * a))


def _at(f: Whole, at: int, grid: int) -> int:
    """a o² + b o + c at a grid point, rounded up."""
    a, b, c = map(int, f)
    return -(-(a * at * at + ((b * at) << grid)) >> (2 * grid)) + c


def _least(f: Whole, ends: Ends, grid: int) -> int:
    """The least a o² + b o + c between grid points, rounded down. a > 0."""
    a, b, c = map(int, f)
    low, high = ends
    for at in (
        low if low is not None and -(b << grid) <= 2 * a * low else None,
        high if high is not None and -(b << grid) >= 2 * a * high else None,
    ):
        if at is not None:
            return ((a * at * at + ((b * at) << grid)) >> (2 * grid)) + c
    return c - -(-b * b // (4 * a))
