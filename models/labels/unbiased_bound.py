"""Prove an exact lower bound on the squared loss of every unbiased ε-DP label randomizer.

`lower_until_feasible` computes the bound from any multipliers of the cone program of
`workbench.models.labels.unbiased`. Rationals avoid rounding errors, which e^ε would multiply.

Notation. y is one of k labels, p_y its weight, o an output, S a set of labels, q = e^ε - 1. A ray
(o, S) is a column of a channel that publishes o with a probability larger by the factor e^ε for the
labels in S. w_y = 1 + q for y in S, else 1. v_y is the multiplier of the row Σ_o M[y,o] = 1, and
u_y that of the row "the mean output at y is y".

Let f_y(o) = p_y (o-y)² - v_y - u_y (o-y). A ray (o, S) has the reduced cost Σ_y w_y f_y(o). For a
given o it is smallest for S = {y : f_y(o) < 0}, where it is

    φ(o) = Σ_y f_y(o) + q Σ_y min(0, f_y(o)).

If φ >= -m everywhere, lowering every v_y by m/k makes the multipliers feasible, so Σ v - m is a
lower bound.

Floats are rationals, and so are the coefficients of the f_y. The roots of f_y are rounded outwards
to a fine grid, and between the rounded roots the term q f_y is added even where f_y is slightly
positive. This raises φ by at most `slack`, which is far below any digit of interest. A piece is the
interval from one of these points to the next; on it φ is one convex quadratic, whose minimum is a
rational. Its coefficients change by one label at a time, so that all pieces take O(k log k) steps.

A ray of reduced cost r < 0 becomes feasible if every v_y falls by -r/Σw, or if those in S alone
fall by -r/((1+q) |S|). The multipliers are lowered by the amounts that all rays require, and the
rays are priced again.

| here            | meaning                                                                    |
|-----------------|----------------------------------------------------------------------------|
| Quadratics      | f_y(o) = a o² + b o + c for every y; value: Σ v                            |
| PiecePrices     | the minimum of φ on every piece; the pieces in {f_y < 0}, for every y      |
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
FlintArray = NDArray[np.object_]  # An array of FLINT's rationals.
Ends = tuple[int | None, int | None]  # Ends of an interval in grid units, None if infinite.

_MAX_BOUNDS = 8  # At most this many bounds are computed; multipliers are lowered between them.
_GRID = 1 << 160  # Roots are rounded to multiples of the inverse of this.
_SHORTFALL_MARGIN = 1 + 2.0**-40  # Multipliers are lowered by this factor more than rays require.
_FLOAT_ROUNDING = Fraction(1, 2**52)  # A float differs from its number by at most this, relatively.
_ODDS_ROUNDING = Fraction(1, 2**63)  # Twice the 2^-64 by which e^ε may have been rounded down.


def round_odds_up(q: float) -> Fraction:
    """Return an upper bound of e^ε - 1. A smaller q would make the lower bound too large.

    Args:
        q: the float nearest to e^ε - 1, where e^ε was rounded down to a multiple of 2^-64.
    """
    return Fraction(q) * (1 + _FLOAT_ROUNDING) + _ODDS_ROUNDING


@dataclass(frozen=True, eq=False)
class Quadratics:
    """The quadratics f_y(o) = a o² + b o + c that multipliers define (see the module header).

    Attributes:
        coefficients: a, b, c of each label, shape (k, 3).
        value: Σ v.
    """

    coefficients: FlintArray
    value: fmpq

    @classmethod
    def from_multipliers(
        cls,
        labels: Vector,
        prior: Vector,
        v: Iterable[Number],
        u: Iterable[Number],
    ) -> Quadratics:
        """Build the quadratics of multipliers.

        Args:
            labels: labels, shape (k,).
            prior: weights of the labels, shape (k,).
            v: multipliers of the rows of masses, k floats or Fractions.
            u: multipliers of the rows of moments, k floats or Fractions.
        """
        y = _to_rationals(labels.tolist())
        p = _to_rationals(prior.tolist())
        mass_multipliers = _to_rationals(v)
        moment_multipliers = _to_rationals(u)
        linear = -2 * p * y - moment_multipliers
        constant = (p * y + moment_multipliers) * y - mass_multipliers
        return cls(np.stack([p, linear, constant], axis=1), mass_multipliers.sum())

    def lower_by(self, amounts: Vector) -> Quadratics:
        """Return the quadratics with every v_y lowered.

        Args:
            amounts: decrease of each multiplier v_y, shape (k,).
        """
        steps = _to_rationals(amounts.tolist())
        constant_steps = np.outer(steps, [0, 0, 1])
        return Quadratics(self.coefficients + constant_steps, self.value - steps.sum())

    def price_pieces(self, q: Fraction) -> PiecePrices:
        """Compute the minimum of φ on every piece.

        Args:
            q: an upper bound of e^ε - 1 (`round_odds_up`).
        """
        intervals = [_negative_interval(*row) for row in self.coefficients]
        slack = fmpq(0)
        # At these points q f_y is added to the quadratic of φ (where f_y becomes negative) or
        # subtracted from it. The key None stands for -∞. Nothing is subtracted at ∞.
        changes: defaultdict[int | None, Any] = defaultdict(int)
        for row, interval in zip(to_flint(q) * self.coefficients, intervals, strict=True):
            if interval is not None:
                ends = [fmpq(end, _GRID) for end in interval if end is not None]
                slack += max((_evaluate_quadratic(row, end) for end in ends), default=0)
                low, high = interval
                changes[low] += row
                if high is not None:
                    changes[high] -= row
        points = sorted(point for point in changes if point is not None)
        first_sum = self.coefficients.sum(axis=0) + changes[None]
        sums = accumulate([first_sum, *(changes[point] for point in points)])
        pieces = pairwise([None, *points, None])
        minima = [_minimum_between(row, piece) for row, piece in zip(sums, pieces, strict=True)]
        place: dict[int | None, int] = {point: i for i, point in enumerate(points, 1)}
        end_place = len(minima)
        piece_ranges = []
        for interval in intervals:
            if interval is None:
                piece_ranges.append((end_place, 0))
            else:
                low, high = interval
                piece_ranges.append((place.get(low, 0), place.get(high, end_place)))
        return PiecePrices(minima, slack, np.array(piece_ranges))


@dataclass(frozen=True)
class PiecePrices:
    """Lower bounds minima[i] - slack of φ on every piece i.

    Attributes:
        minima: minimum of φ on each of the n pieces, up to the slack.
        slack: largest amount by which φ can be below these minima.
        pieces: for each label the number of the first piece with f_y < 0, and the number after the
            last such piece, or (n, 0) if f_y is never negative. Shape (k, 2).
    """

    minima: list[fmpq]
    slack: fmpq
    pieces: Integers

    def lower_bound(self, value: fmpq) -> Fraction:
        """Return the lower bound that the multipliers prove.

        Args:
            value: Σ v.
        """
        return to_fraction(value - max(0, self.slack - min(self.minima)))

    @property
    def depths(self) -> Vector:
        """Return the rounded minimum of φ on every piece, shape (n,)."""
        return np.array([float(to_fraction(x)) for x in self.minima])

    def label_sets(self, pieces: Positions) -> Flags:
        """Return the set S of each given piece as flags of labels, shape (pieces, k).

        Args:
            pieces: numbers of the pieces, shape (pieces,).
        """
        return (self.pieces[:, 0] <= pieces[:, None]) & (pieces[:, None] < self.pieces[:, 1])

    @property
    def negative_sets(self) -> Flags:
        """Return the rays of negative reduced cost as flags of labels, shape (rays, k).

        Each row is the set S of one ray.
        """
        return self.label_sets(np.flatnonzero([x < 0 for x in self.minima]))


def lower_until_feasible(f: Quadratics, q: Fraction) -> tuple[float, Flags]:
    """Lower multipliers until no ray has a negative reduced cost, and return the best bound.

    Args:
        f: the quadratics of the multipliers.
        q: an upper bound of e^ε - 1 (`round_odds_up`).

    Returns:
        The best bound on the way, rounded down, and the sets of the rays of negative reduced cost
        of the first multipliers, shape (rays, k).
    """
    prices = f.price_pieces(q)
    rays = prices.negative_sets
    bounds = [prices.lower_bound(f.value)]
    while len(bounds) < _MAX_BOUNDS and min(prices.minima) < 0:
        depths = prices.depths
        negative_pieces = np.flatnonzero(depths < 0)
        sets = prices.label_sets(negative_pieces)
        shortfall = _compute_shortfall(float(q), sets, -depths[negative_pieces])
        f = f.lower_by(shortfall * _SHORTFALL_MARGIN)
        prices = f.price_pieces(q)
        bounds.append(prices.lower_bound(f.value))
    best_bound = max(bounds)
    value = float(best_bound)
    if Fraction(value) > best_bound:
        value = math.nextafter(value, -math.inf)
    return value, rays


def _compute_shortfall(
    q: float,
    sets: Flags,
    depths: Vector,
) -> Vector:
    """Return by how much to lower every v_y so that no ray has a negative reduced cost, shape (k,).

    Either all v_y fall by the same amount, or only those in the sets of rays, whichever lowers the
    sum less. The sets have the shape (rays, k). The depths > 0 are the negative reduced costs
    without sign, shape (rays,).
    """
    k = sets.shape[1]
    size = sets.sum(axis=1)
    equal_amounts = np.full(k, float((depths / (k + q * size)).max()))
    if not size.all():
        return equal_amounts
    amounts_of_sets = (depths / ((1 + q) * size))[:, None]
    set_amounts = np.where(sets, amounts_of_sets, 0.0).max(axis=0)
    return set_amounts if set_amounts.sum() < equal_amounts.sum() else equal_amounts


def _to_rationals(values: Iterable[Number]) -> FlintArray:
    """Convert floats or Fractions to FLINT's rationals."""
    return np.array([fmpq(*value.as_integer_ratio()) for value in values], dtype=object)


def _negative_interval(
    a: fmpq,
    b: fmpq,
    c: fmpq,
) -> Ends | None:
    """Return grid points that enclose {o : a o² + b o + c < 0}, a >= 0; None if it is empty."""
    if a == 0:
        if b == 0:
            return (None, None) if c < 0 else None
        end = -c / b * _GRID
        return (None, int(end.ceil())) if b > 0 else (int(end.floor()), None)
    middle = -b / (2 * a)
    square = middle * middle - c / a
    if square <= 0:
        return None
    middle = middle * _GRID
    root = (square * _GRID**2).floor().isqrt() + 1
    return int((middle - root).floor()), int((middle + root).ceil())


def _evaluate_quadratic(f: FlintArray, o: fmpq) -> fmpq:
    """Compute a o² + b o + c."""
    a, b, c = f
    return (a * o + b) * o + c


def _minimum_between(f: FlintArray, ends: Ends) -> fmpq:
    """Compute the minimum of a o² + b o + c with f = (a, b, c) and a > 0, between grid points."""
    a, b, _ = f
    o = -b / (2 * a)
    low, high = (None if end is None else fmpq(end, _GRID) for end in ends)
    if low is not None and o < low:
        o = low
    elif high is not None and o > high:
        o = high
    return _evaluate_quadratic(f, o)
