"""Compute the privacy profile of a mechanism: its smallest δ as an exact function of ε.

Let P, Q be the laws of two neighbours, r_1 > r_2 > ... the different ratios P(i)/Q(i), and r_0 = ∞
(outcomes with Q(i) = 0). Let A_j and B_j be the masses under P and under Q of all outcomes whose
ratio is at least r_j. Both are rational. For ln r_{j+1} <= ε < ln r_j,

    δ_PDP(ε) = A_j                          a staircase, right-continuous in ε
    δ_DP(ε)  = A_j - B_j e^ε                convex and piecewise affine in e^ε

The profile of a mechanism is the upper envelope over all its neighbouring pairs. The pieces of each
pair are stored as exact rationals. The envelope is decided exactly at every ε that is evaluated.
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
from workbench.notions import get_delta_notion, get_notion, notion_names
from workbench.notions.dp import DeltaNotion
from workbench.notions.laws import Laws

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawn


_MAX_PLOTTED_BREAKPOINTS = 300  # More breakpoints are replaced by evenly spaced values.
_MIN_VISIBLE_SHARE = 1e-3  # A plot ends where every δ is below this share of its maximum.
_PLOTTED_POINTS = 150  # Evenly spaced points of a plot, besides the breakpoints.


@dataclass(frozen=True)
class Piece:
    """A piece of a profile: δ = p - q e^ε from ε = ln low up to the next piece.

    Attributes:
        low: Ratio e^ε at which the piece begins.
        p: Mass A_j under P of the outcomes whose ratio exceeds e^ε on this piece, exact.
        q: Mass B_j of the same outcomes under Q, exact. 0 for "pdp".
    """

    low: Fraction
    p: Fraction
    q: Fraction


@dataclass(frozen=True, repr=False)
class Profile(Shown):
    """The exact function δ(ε) of a mechanism for all ε >= 0.

    Attributes:
        notion: Name of a notion with a δ at every ε, such as "dp" or "pdp".
        curves: Pieces of every different pair of neighbours, from ε = 0 upwards.
        is_one_sided: Whether neighbours were compared in one order only.
    """

    notion: str
    curves: tuple[tuple[Piece, ...], ...]
    is_one_sided: bool = False

    def __repr__(self) -> str:
        return f"Profile({self.notion}, {len(self.curves)} different pairs of neighbours)"

    def exact_delta(self, epsilon: Real) -> ExpNumber:
        """Return the exact δ, as the number a - b e^ε (b = 0 for "pdp").

        Args:
            epsilon: ε >= 0.

        Raises:
            InvalidRequest: ε is no such number.
        """
        value = read_positive(epsilon, "epsilon", or_zero=True)

        def begins_beyond(piece: Piece) -> bool:
            """Return whether a piece begins beyond ε."""
            return sign_exp(piece.low, ONE, value) > 0

        # The pieces are sorted, so the last one that does not begin beyond ε contains it.
        pieces = (curve[bisect_left(curve, True, key=begins_beyond) - 1] for curve in self.curves)
        return max_exp_number(ExpNumber.from_terms(piece.p, piece.q, value) for piece in pieces)

    def delta(self, epsilon: Real) -> float:
        """Return δ, rounded up.

        Args:
            epsilon: ε >= 0.

        Raises:
            InvalidRequest: ε is no such number.
        """
        value = self.exact_delta(epsilon)
        if value.b == 0:
            return round_up(value.a)
        return value.upper

    def deltas(self, epsilons: Iterable[Real]) -> Vector:
        """Return δ at several ε, rounded up. Shape (len(epsilons),).

        Args:
            epsilons: Numbers >= 0.

        Raises:
            InvalidRequest: An ε is no such number.
        """
        return np.array([self.delta(epsilon) for epsilon in epsilons])

    @cached_property
    def _breakpoint_epsilons(self) -> dict[Fraction, float]:
        """Return ε, rounded up, for the ratio at which any piece begins."""
        ratios: set[Fraction] = set()
        for curve in self.curves:
            ratios.update(piece.low for piece in curve)
        return {ratio: log_upper_bound(ratio) for ratio in ratios}

    @property
    def breakpoints(self) -> Vector:
        """Return every ε >= 0 at which any piece begins, rounded up, sorted and different."""
        return np.array(sorted({0.0, *self._breakpoint_epsilons.values()}))

    def float_deltas(self, epsilons: Vector) -> Vector:
        """Return δ in floating point for plots, with an error of at most 1e-12.

        Args:
            epsilons: Numbers >= 0. Shape (n,).

        Returns:
            δ for each ε. Shape (n,).
        """
        deltas = np.zeros(epsilons.shape)
        # For a larger ε, e^ε would be infinite in floats, and 0 e^ε no number.
        growth = np.exp(np.minimum(epsilons, 700.0))
        for curve in self.curves:
            starts = [self._breakpoint_epsilons[piece.low] for piece in curve]
            indices = np.searchsorted(starts, epsilons, side="right") - 1
            masses = np.array([(float(piece.p), float(piece.q)) for piece in curve])
            p, q = masses[indices].T
            deltas = np.maximum(deltas, p - q * growth)
        return deltas

    def save(self, path: str | Path) -> list[Path]:
        """Write the profile to a file or a folder, as `Result.save` does.

        A table (.csv, .tex, .json) has δ, rounded up, at every breakpoint. A picture (.png, .svg,
        .pdf) shows the curve. A folder gets both.

        Args:
            path: Path of the file or folder.
        """
        epsilons = self.breakpoints.tolist()
        rows = [{"epsilon": epsilon, "delta": self.delta(epsilon)} for epsilon in epsilons]
        suffix = ""
        if self.is_one_sided:
            suffix = ", one-sided neighbours"
        title = f"{get_delta_notion(self.notion).title} profile{suffix}"
        result = Result(title, rows, "profile", draw=lambda table: {"profile": self.figure})
        return result.save(path)

    def facts(self) -> Facts:
        """Return some values, rounded up, as rows (label, text) of a report."""
        title = get_delta_notion(self.notion).title
        return [
            (f"{title} δ at ε = 0", repr(self.delta(0))),
            (f"{title} δ at ε = 1", repr(self.delta(1))),
            ("exact pure epsilon", repr(self.pure_epsilon)),
            *([ONE_SIDED_NOTE] if self.is_one_sided else []),
        ]

    def figure(self) -> Drawn:
        """Draw δ as a function of ε."""
        return draw_chart(make_profile_figure([self]))

    @property
    def pure_epsilon(self) -> float:
        """Return the smallest ε from which δ is 0, rounded up, or infinity if there is none."""
        last_pieces = [curve[-1] for curve in self.curves]
        if any(piece.p for piece in last_pieces):
            return math.inf
        return max(log_upper_bound(piece.low) for piece in last_pieces)


def profile(mechanism: Any, notion: str = "dp") -> Profile:
    """Compute the exact profile of a mechanism with its neighbour relation.

    Args:
        mechanism: A mechanism, or a Design or Certificate of one.
        notion: Name of a notion with a δ at every ε, such as "dp" or "pdp".

    Raises:
        InvalidRequest: The notion has no profile for the mechanism.
    """
    measure = get_delta_notion(notion)
    subject = as_mechanism(mechanism)
    # Only a convex notion is largest at the ends of a segment of inputs.
    if has_real_inputs(subject) and not measure.is_convex:
        raise InvalidRequest(
            "notion must be one whose profile follows from the knots (such as dp) if the inputs "
            f"are real numbers. Got {notion}."
        )
    comparisons = subject.comparisons()
    curves = dict.fromkeys(
        _list_profile_pieces(Laws(pair.p, pair.q), measure) for pair in comparisons
    )
    return Profile(measure.name, tuple(curves), subject.is_one_sided)


def _list_profile_pieces(laws: Laws, notion: DeltaNotion) -> tuple[Piece, ...]:
    """Return the pieces of one pair from ε = 0 upwards.

    For the ratios 3 and 1/3 of the laws (3/4, 1/4) and (1/4, 3/4), the DP pieces are
    3/4 - e^ε / 4 for 0 <= ε < ln 3, and 0 from ln 3 on.
    """
    pieces = []
    p = ZERO
    q = ZERO
    # The steps are (r_j, A_j, B_j) of the module header, the largest ratio first. ∞ is None.
    for ratio, next_p, next_q in laws.steps:
        if ratio is not None and ratio <= 1:
            break
        if ratio is not None:
            pieces.append(Piece(ratio, *notion.coefficients(p, q)))
        p = next_p
        q = next_q
    return (Piece(ONE, *notion.coefficients(p, q)), *reversed(pieces))


def list_profiles(mechanism: Any) -> list[Profile]:
    """Compute the profiles of all notions that have one for the mechanism.

    Args:
        mechanism: A mechanism, or a Design or Certificate of one.
    """
    subject = as_mechanism(mechanism)
    profiles = []
    for name in notion_names():
        measure = get_notion(name)
        if not isinstance(measure, DeltaNotion):
            continue
        if measure.is_convex or not has_real_inputs(subject):
            profiles.append(profile(subject, measure.name))
    return profiles


def draw_profiles(mechanism: Any, epsilons: Iterable[Real] = ()) -> Drawn:
    """Draw the exact profiles of a mechanism.

    Args:
        mechanism: A mechanism, or a Design or Certificate of one.
        epsilons: Budgets ε to mark.

    Raises:
        InvalidRequest: An ε is no number >= 0.
    """
    profiles = list_profiles(mechanism)
    budgets = []
    for epsilon in epsilons:
        value = float(read_positive(epsilon, "epsilon", or_zero=True))
        budgets.append((value, profiles[0].delta(epsilon)))
    return draw_chart(make_profile_figure(profiles, budgets))


def make_profile_figure(
    curves: Sequence[Profile], budgets: Sequence[tuple[float, float]] = ()
) -> FigureData:
    """Make the figure of profiles as plain data (`workbench.io.plain_figures`).

    It ends a little beyond the largest ε at which a δ is still visible.

    Args:
        curves: Profiles of one mechanism.
        budgets: Points (ε, δ) to mark.
    """
    # A plot extends a little beyond every mark and every visible breakpoint, and to 0.001 at least.
    ends = [1e-3]
    ends += [1.5 * epsilon for epsilon, _ in budgets]
    for curve in curves:
        breakpoints = curve.breakpoints
        min_delta = _MIN_VISIBLE_SHARE * curve.float_deltas(np.zeros(1))
        visible = breakpoints[curve.float_deltas(breakpoints) > min_delta]
        if visible.size:
            ends.append(1.15 * float(visible[-1]))
    last = max(ends)
    breakpoints = curves[0].breakpoints
    shown_breakpoints = thin_breakpoints(breakpoints[breakpoints <= last], _MAX_PLOTTED_BREAKPOINTS)
    even_points = np.linspace(0, last, _PLOTTED_POINTS)
    epsilons = np.unique(np.concatenate([even_points, shown_breakpoints]))
    series = []
    for colour, curve in enumerate(curves):
        is_staircase = all(all(not piece.q for piece in pieces) for pieces in curve.curves)
        name = f"{get_delta_notion(curve.notion).title} δ"
        deltas = curve.float_deltas(epsilons)
        series.append(make_series(name, "line", colour, x=epsilons, y=deltas, steps=is_staircase))
    if budgets:
        series.append(make_series("requested", "filled", 6, *zip(*budgets, strict=True)))
    title = "Privacy profile: δ as a function of ε"
    return make_line_figure(title, "ε", "δ(ε)", series)


def thin_breakpoints(breakpoints: Vector, max_count: int) -> Vector:
    """Return the breakpoints, or evenly spaced values if there are too many.

    Args:
        breakpoints: Increasing numbers. Shape (n,).
        max_count: Largest number of values to return.
    """
    if breakpoints.size <= max_count:
        return breakpoints
    return np.linspace(0, float(breakpoints[-1]), max_count)
