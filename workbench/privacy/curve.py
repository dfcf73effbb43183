"""The whole privacy profile as an exact function of ε.

For neighbouring laws P, Q let r_1 > r_2 > ... be the different ratios P(i)/Q(i), r_0 = ∞ where Q(i) = 0. With
A_j, B_j the P- and Q-mass of the outcomes of ratio >= r_j (rationals), for ln r_{j+1} <= ε < ln r_j

    δ_PDP(ε) = A_j                          a staircase, right-continuous in ε
    δ_DP(ε)  = A_j - B_j e^ε                convex and piecewise affine in e^ε

The profile of a mechanism is the upper envelope over all its neighbouring pairs. Pieces are kept per pair (exact
rationals); the envelope is decided exactly wherever it is asked for, and its breakpoints are where a plot is drawn.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.errors import InvalidRequest
from workbench.exact.arrays import Vector
from workbench.exact.numbers import (
    ONE,
    ZERO,
    ExpNumber,
    Real,
    log_upper_bound,
    max_exp_number,
    read_positive,
    round_up,
    sign_exp,
)
from workbench.io.plain_figures import FigureData, draw_chart, make_line_figure, make_series
from workbench.io.result import Result
from workbench.io.shown import Facts, Shown
from workbench.mechanisms.mechanism import ONE_SIDED_NOTE, as_mechanism, has_real_inputs
from workbench.notions import get_delta_notion, notion_names
from workbench.notions import get_notion as named
from workbench.notions.dp import DeltaNotion
from workbench.notions.laws import Laws

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawn


_ENDS = 300  # breakpoints drawn one by one
_SEEN = 1e-3  # of the largest δ: less is nothing to see


@dataclass(frozen=True)
class Piece:
    """δ = p - q e^ε from ε = ln low on, low a ratio, up to the next piece."""

    low: Fraction
    p: Fraction
    q: Fraction


@dataclass(frozen=True, repr=False)
class Profile(Shown):
    """δ(ε) of a mechanism for every ε >= 0, exact. curves: the pieces of every different pair, from ε = 0 upwards.

    notion: one with a δ at every ε, such as "dp" or "pdp"; one_sided: whether neighbours were compared in one order
    only.
    """

    notion: str
    curves: tuple[tuple[Piece, ...], ...]
    is_one_sided: bool = False

    def __repr__(self) -> str:
        return f"Profile({self.notion}, {len(self.curves)} different pairs of neighbours)"

    def exact_delta(self, epsilon: Real) -> ExpNumber:
        """The exact δ at ε >= 0, as the number a - b e^ε (b = 0 for "pdp"). Raises InvalidRequest."""
        value = read_positive(epsilon, "epsilon", or_zero=True)

        def begins_beyond(piece: Piece) -> bool:
            return sign_exp(piece.low, ONE, value) > 0

        there = (
            curve[bisect_left(curve, True, key=begins_beyond) - 1] for curve in self.curves
        )  # pieces are sorted
        return max_exp_number(ExpNumber.from_terms(piece.p, piece.q, value) for piece in there)

    def delta(self, epsilon: Real) -> float:
        """δ at ε >= 0, rounded up. Raises InvalidRequest."""
        value = self.exact_delta(epsilon)
        return round_up(value.a) if value.b == 0 else value.upper

    def deltas(self, epsilons: Iterable[Real]) -> Vector:
        """`delta` at each ε. Shape (len(epsilons),). Raises InvalidRequest."""
        return np.array([self.delta(epsilon) for epsilon in epsilons])

    @cached_property
    def _breakpoint_epsilons(self) -> dict[Fraction, float]:
        """ε, rounded up, of every ratio where some pair's formula changes."""
        return {
            low: log_upper_bound(low)
            for low in {piece.low for curve in self.curves for piece in curve}
        }

    @property
    def breakpoints(self) -> Vector:
        """Every ε >= 0 where some pair's formula changes, rounded up. Sorted, without repetitions."""
        return np.array(sorted({0.0, *self._breakpoint_epsilons.values()}))

    def float_deltas(self, epsilons: Vector) -> Vector:
        """δ at many ε >= 0 in floating point, within 1e-12: for pictures. Same shape."""
        heights, growth = np.zeros(epsilons.shape), np.exp(np.minimum(epsilons, 700.0))
        for curve in self.curves:
            at = (
                np.searchsorted(
                    [self._breakpoint_epsilons[piece.low] for piece in curve],
                    epsilons,
                    side="right",
                )
                - 1
            )
            height, mass = np.array([(float(piece.p), float(piece.q)) for piece in curve])[at].T
            heights = np.maximum(heights, height - mass * growth)
        return heights

    def save(self, path: str | Path) -> list[Path]:
        """Write δ, rounded up, where a formula changes (.csv, .tex, .json), the curve (.png, .svg, .pdf), or a folder
        with both; see `Result.save`."""
        rows = [
            {"epsilon": epsilon, "delta": self.delta(epsilon)}
            for epsilon in self.breakpoints.tolist()
        ]
        title = f"{get_delta_notion(self.notion).title} profile{', one-sided neighbours' if self.is_one_sided else ''}"
        return Result(title, rows, "profile", draw=lambda table: {"profile": self.figure}).save(
            path
        )

    def facts(self) -> Facts:
        """Some of its values, rounded up."""
        title = get_delta_notion(self.notion).title
        shown = [(f"{title} δ at ε = {epsilon}", repr(self.delta(epsilon))) for epsilon in (0, 1)]
        return [
            *shown,
            ("exact pure epsilon", repr(self.pure_epsilon)),
            *([ONE_SIDED_NOTE] if self.is_one_sided else []),
        ]

    def figure(self) -> Drawn:
        """The curve."""
        return draw_chart(make_profile_figure([self]))

    @property
    def pure_epsilon(self) -> float:
        """Where the profile reaches 0 for good, rounded up; inf when it never does."""
        last = [curve[-1] for curve in self.curves]
        return (
            math.inf
            if any(piece.p for piece in last)
            else max(log_upper_bound(piece.low) for piece in last)
        )


def profile(mechanism: Any, notion: str = "dp") -> Profile:
    """The exact profile of a mechanism with its relation. Raises InvalidRequest."""
    measure = get_delta_notion(notion)
    subject = as_mechanism(mechanism)
    if has_real_inputs(subject) and not measure.is_convex:
        raise InvalidRequest(
            f"notion must be decided by laws at knots for a mechanism on real inputs. Got {notion}."
        )
    curves = dict.fromkeys(
        _list_profile_pieces(Laws(pair.p, pair.q), measure) for pair in subject.comparisons()
    )
    return Profile(measure.name, tuple(curves), subject.is_one_sided)


def _list_profile_pieces(laws: Laws, notion: DeltaNotion) -> tuple[Piece, ...]:
    """The pieces of one pair from ε = 0 upwards."""
    pieces, p, q = [], ZERO, ZERO
    for ratio, a, b in laws.steps:
        if ratio is not None and ratio <= 1:
            break
        pieces += [] if ratio is None else [Piece(ratio, *notion.coefficients(p, q))]
        p, q = a, b
    return (Piece(ONE, *notion.coefficients(p, q)), *reversed(pieces))


def list_profiles(mechanism: Any) -> list[Profile]:
    """The profiles of all notions that have one for the mechanism."""
    subject = as_mechanism(mechanism)
    measures = [each for name in notion_names() if isinstance(each := named(name), DeltaNotion)]
    return [
        profile(subject, each.name)
        for each in measures
        if each.is_convex or not has_real_inputs(subject)
    ]


def draw_profiles(mechanism: Any, epsilons: Iterable[Real] = ()) -> Drawn:
    """The exact profiles of a mechanism, budgets marked. Raises InvalidRequest."""
    curves = list_profiles(mechanism)
    return draw_chart(
        make_profile_figure(
            curves,
            [
                (float(read_positive(at, "epsilon", or_zero=True)), curves[0].delta(at))
                for at in epsilons
            ],
        )
    )


def make_profile_figure(
    curves: Sequence[Profile], budgets: Sequence[tuple[float, float]] = ()
) -> FigureData:
    """Profiles as plain data, as far as there is something to see. marked: budgets (ε, δ)."""
    ends, zero = curves[0].breakpoints, np.zeros(1)
    seen = [
        curve.breakpoints[curve.float_deltas(curve.breakpoints) > _SEEN * curve.float_deltas(zero)]
        for curve in curves
    ]
    last = max(
        1e-3,
        *(1.5 * epsilon for epsilon, _ in budgets),
        *(1.15 * float(each[-1]) for each in seen if each.size),
    )
    grid = np.unique(
        np.concatenate([np.linspace(0, last, 150), thin_breakpoints(ends[ends <= last], _ENDS)])
    )
    drawn = []
    for k, curve in enumerate(curves):
        staircase = all(not piece.q for pieces in curve.curves for piece in pieces)
        name = f"{get_delta_notion(curve.notion).title} δ"
        drawn.append(make_series(name, "line", k, grid, curve.float_deltas(grid), steps=staircase))
    marks = [make_series("asked", "filled", 6, *zip(*budgets, strict=True))] if budgets else []
    return make_line_figure(
        "Privacy profile: the δ that holds at every ε", "ε", "δ(ε)", [*drawn, *marks]
    )


def thin_breakpoints(ends: Vector, max_count: int) -> Vector:
    """Ends where a curve changes; of more than `most` so many places evenly."""
    return ends if ends.size <= max_count else np.linspace(0, float(ends[-1]), max_count)
