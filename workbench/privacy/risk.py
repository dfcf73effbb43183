"""Compute what an attacker learns from one output of a mechanism, exactly or on the safe side.

P and Q are the laws of the output for two neighbours. A test decides for "P" if the outcome lies in
a set A:

    type I error α = 1 - P(A), type II error β = Q(A); trade-off function T(P, Q)(α) = smallest β
                 (Dong, Roth and Su 2022)
    trade-off    the largest convex f with T(P, Q) >= f for all neighbours. It is the trade-off
                 function of the dominating pair, and is equivalent to the DP profile (their
                 Prop. 2.12)
    advantage    max (1 - α - β) = max P(A) - Q(A), which is the DP δ at ε = 0
    posterior    at most r π / (r π + 1 - π), where r = max P/Q (the Bayes factor) and π is the
                 prior of "P"
    guess        max π (1 - α) + (1 - π) (1 - β): how often the best attacker is right
    Rényi        the largest divergence D_λ(P‖Q) over neighbours, of order λ > 1 (Mironov 2017)
    ρ, μ         smallest parameters of zCDP (Bun and Steinke 2016) and of Gaussian DP. The
                 trade-off function f_μ of Gaussian DP is convex, so the vertices of the trade-off
                 curve decide μ

On real inputs it is enough to compare the laws at the knots, because hockey sticks and divergences
are jointly convex in (P, Q).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from workbench.errors import InvalidRequest
from workbench.exact.arrays import Vector
from workbench.exact.numbers import (
    ONE,
    ZERO,
    RationalPair,
    Real,
    read_probability,
    round_down,
    round_up,
    to_jsonable,
)
from workbench.exact.objects import Record
from workbench.io.figures import apply_style_sheet, make_panels
from workbench.io.files import write_json
from workbench.io.plain_figures import draw_lines, make_line_figure, make_series
from workbench.io.shown import Facts, Shown
from workbench.mechanisms.mechanism import ONE_SIDED_NOTE, Mechanism, as_mechanism
from workbench.notions.gdp import TradeOffCurve
from workbench.notions.laws import Laws
from workbench.notions.renyi import PrivacyLoss
from workbench.notions.zcdp import ConcentratedLoss
from workbench.privacy.claim import Claim
from workbench.privacy.dominating_pair import compute_dominating_pair

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_ORDER_TEXTS = ("5/4", "3/2", "2", "3", "4", "6", "8", "12", "16", "24", "32", "48", "64")
RENYI_ORDERS = tuple(map(Fraction, _ORDER_TEXTS))
_REPORTED_ORDERS = (2, 4, 16)  # Orders of the Rényi divergences in the text report.
_MAX_MASSES = 2_000_000  # More masses in all comparisons are refused; each takes some 30 µs.
# A notebook draws the curves by itself if all comparisons have at most this many outcomes in total.
_MAX_DRAWN_MASSES = 20_000
_PLOTTED_ALPHAS = 401  # Points of the trade-off function of a claim.
_MAX_EXPONENT = 700.0  # A larger ε counts as this one, because e^ε is no double.

Points = tuple[RationalPair, ...]


@dataclass(frozen=True, repr=False)
class Risk(Shown):
    """The quantities of the module header, over all neighbours of a mechanism.

    Attributes:
        mechanism: Mechanism with exact masses and a neighbour relation.
        trade_off: Vertices (α, β) of the convex trade-off curve from (0, ·) to (1, 0), exact, with
            increasing α.
        bayes_factor: Largest ratio P/Q, exact. None if it is unbounded.
        prior: Prior probability π of "P", exact.
    """

    mechanism: Mechanism = field(repr=False)
    trade_off: Points
    bayes_factor: Fraction | None
    prior: Fraction
    _laws: tuple[Laws, ...] = field(repr=False, compare=False)

    def __repr__(self) -> str:
        advantage = round_up(self.advantage)
        prior = float(self.prior)
        return f"Risk(advantage={advantage!r}, prior={prior:g}, posterior={self.posterior!r})"

    @property
    def advantage(self) -> Fraction:
        """Return the attack advantage, max (1 - α - β), exactly."""
        return max(1 - alpha - beta for alpha, beta in self.trade_off)

    @property
    def posterior(self) -> float:
        """Return the largest probability, after one output, of the neighbour with prior π.

        It is rounded up, and 1 if the Bayes factor is unbounded and π > 0.
        """
        if self.bayes_factor is None:
            if self.prior:
                return 1.0
            return 0.0
        odds = self.bayes_factor * self.prior
        return round_up(odds / (odds + 1 - self.prior))

    @property
    def guess(self) -> Fraction:
        """Return the probability that the best attacker names the right neighbour, exactly.

        Without an output it is max(π, 1 - π). π may be the prior of either neighbour, and the
        larger result is returned, unless neighbours are one-sided.
        """
        priors = (self.prior,) if self.mechanism.is_one_sided else (self.prior, 1 - self.prior)
        # The last two tests ignore the output.
        tests = (*self.trade_off, (ZERO, ONE), (ONE, ZERO))
        guesses = []
        for alpha, beta in tests:
            guesses += [prior * (1 - alpha) + (1 - prior) * (1 - beta) for prior in priors]
        return max(guesses)

    def beta(self, alpha: Real) -> Fraction:
        """Return the smallest type II error of any test with a type I error α.

        Args:
            alpha: Type I error, in [0, 1].

        Raises:
            InvalidRequest: α is no probability.
        """
        value = read_probability(alpha, "alpha")
        for (left_alpha, left_beta), (right_alpha, right_beta) in pairwise(self.trade_off):
            if value <= right_alpha:
                slope = (right_beta - left_beta) / (right_alpha - left_alpha)
                return left_beta + slope * (value - left_alpha)
        return ZERO

    @cached_property
    def renyi(self) -> dict[Fraction, float]:
        """Return order -> largest D_λ over neighbours, rounded up, for λ in `RENYI_ORDERS`.

        It is infinity if a law misses mass of its neighbour.
        """
        privacy_losses = [PrivacyLoss(laws) for laws in self._laws]
        divergences = {}
        for order in RENYI_ORDERS:
            bounds = [loss.divergence_upper_bound(order) for loss in privacy_losses]
            divergences[order] = max(bounds)
        return divergences

    @cached_property
    def rho(self) -> tuple[float, float]:
        """Return (low, high), an interval around the smallest ρ of zCDP, rounded outwards.

        The upper end is proven. It is (infinity, infinity) if ρ is unbounded.
        """
        low = ZERO
        high = ZERO
        privacy_losses = [ConcentratedLoss(laws) for laws in self._laws]
        # The pair with the largest divergence comes first. Most others need no smallest ρ then.
        privacy_losses.sort(key=lambda loss: loss.divergence_upper_bound(Fraction(2)), reverse=True)
        for privacy_loss in privacy_losses:
            if privacy_loss.is_unbounded:
                return math.inf, math.inf
            if privacy_loss.is_same or (high and privacy_loss.is_enough(high)):
                continue  # The smallest ρ of this pair is not larger.
            pair_low, pair_high = privacy_loss.smallest_rho
            low = max(low, pair_low)
            high = max(high, pair_high)
        return round_down(low), round_up(high)

    @cached_property
    def mu(self) -> float:
        """Return the smallest μ of GDP, rounded up, or infinity if there is none."""
        vertices = []
        for alpha, beta in self.trade_off:
            vertices.append((*(1 - alpha).as_integer_ratio(), *beta.as_integer_ratio()))
        return TradeOffCurve(vertices).smallest_mu

    def facts(self) -> Facts:
        """Return the results as rows (label, text) of a report."""
        factor = math.inf if self.bayes_factor is None else round_up(self.bayes_factor)
        low, high = self.rho
        prior = f"{float(self.prior):g}"
        rho_note = ""
        if low < high:
            rho_note = f" (proven to suffice; no value below {_format_bound(low)} suffices)"
        divergences = {order: self.renyi[Fraction(order)] for order in _REPORTED_ORDERS}
        renyi_texts = [f"{_format_bound(value)} at {order}" for order, value in divergences.items()]
        return [
            ("mechanism", self.mechanism.describe()),
            (
                "attack advantage",
                f"{round_up(self.advantage)!r} at most (1 - type I - type II error)",
            ),
            (
                "Bayes factor",
                f"{_format_bound(factor)} at most: prior {prior} becomes "
                f"{self.posterior!r} at most",
            ),
            ("right guesses", f"{round_up(self.guess)!r} at most, with prior {prior}"),
            ("minimal zCDP rho", f"{_format_bound(high)}{rho_note}"),
            ("minimal GDP mu", _format_bound(self.mu)),
            ("Rényi divergence", ", ".join(renyi_texts)),
            *([ONE_SIDED_NOTE] if self.mechanism.is_one_sided else []),
        ]

    def to_dict(self) -> Record:
        """Return the results as data for JSON.

        Every number is rounded so that it never overstates privacy. Unbounded numbers are "inf".

        Returns:
            one_sided, tradeoff (points [α, β] on or below the exact curve), advantage,
            bayes_factor, prior, posterior, right_guesses, rho and rho_lower (upper and lower bound
            on the smallest ρ), mu, renyi (pairs [order, divergence]).
        """
        low, high = self.rho
        return {
            "one_sided": self.mechanism.is_one_sided,
            "tradeoff": [[*map(round_down, point)] for point in self.trade_off],
            "advantage": round_up(self.advantage),
            "bayes_factor": "inf" if self.bayes_factor is None else round_up(self.bayes_factor),
            "prior": float(self.prior),
            "posterior": self.posterior,
            "right_guesses": round_up(self.guess),
            "rho": to_jsonable(high),
            "rho_lower": to_jsonable(low),
            "mu": to_jsonable(self.mu),
            "renyi": [[float(order), to_jsonable(value)] for order, value in self.renyi.items()],
        }

    def save(self, path: str | Path) -> None:
        """Write `to_dict` as a JSON file.

        Args:
            path: Path of the file.
        """
        write_json(path, self.to_dict())

    @property
    def drawable(self) -> bool:
        """Return whether the curves can be drawn within a second or so."""
        return sum(len(laws.p) for laws in self._laws) <= _MAX_DRAWN_MASSES

    @apply_style_sheet
    def figure(self, claim: Claim | None = None) -> Figure:
        """Draw the trade-off curve and the Rényi curve.

        Args:
            claim: A claim whose trade-off function is drawn for comparison. None for no claim.
        """
        figure, (left, right) = make_panels(2, height=3.2)
        self._draw_trade_off(left, claim)
        self._draw_renyi(right)
        return figure

    def _draw_trade_off(self, axis: Axes, claim: Claim | None) -> None:
        """Draw the trade-off curve, and that of a claim."""
        vertices = self.trade_off
        # If outcomes that only Q can produce exist, the curve falls from β = 1 at α = 0.
        if vertices[0][1] < 1:
            vertices = ((ZERO, ONE), *vertices)
        series = [make_series("this mechanism", "line", 0, *zip(*vertices, strict=True))]
        series.append(make_series("no information", "dashed", colour=7, x=[0, 1], y=[1, 0]))
        # The trade-off function of a claim assumes neighbours in both orders.
        is_one_sided = self.mechanism.is_one_sided
        claimed_curves = _compute_claimed_curve(None if is_one_sided else claim)
        for name, curve in claimed_curves.items():
            series.append(make_series(name, "dashed", 1, *curve))
        draw_lines(axis, make_line_figure("", "type I error α", "smallest type II error β", series))
        title = f"Trade-off curve (exact, {'one-sided' if is_one_sided else 'all'} neighbours)"
        axis.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", title=title)
        axis.legend()

    def _draw_renyi(self, axis: Axes) -> None:
        """Draw the Rényi curve with the line ρα, or a note that it is unbounded."""
        axis.set_title("Rényi curve (rounded up)")
        finite = [(order, value) for order, value in self.renyi.items() if value < math.inf]
        if not finite:
            text = (
                "Unbounded at every order α:\nsome outcome of one neighbour\n"
                "never occurs on the other."
            )
            axis.text(0.5, 0.5, text, ha="center", va="center", transform=axis.transAxes)
            axis.set_axis_off()
            return
        rho = self.rho[1]
        # The line ρα is drawn up to twice the divergence of the largest order.
        _, last_value = finite[-1]
        max_value = 2 * last_value
        line = []
        for order, _ in finite:
            if rho * float(order) <= max_value:
                line.append((order, rho * float(order)))
        series = [make_series("D_α", "hollow", 0, *zip(*finite, strict=True))]
        if line:
            series.append(make_series(f"ρα, ρ = {rho:.4g}", "dashed", 2, *zip(*line, strict=True)))
        draw_lines(axis, make_line_figure("", "order α", "Rényi divergence", series))
        axis.set_xscale("log", base=2)
        axis.legend()


def risk(mechanism: Any, prior: Real = Fraction(1, 2)) -> Risk:
    """Compute what an attacker learns from one output.

    Args:
        mechanism: A mechanism, or a Design or Certificate of one.
        prior: Probability that the attacker gives to one of two neighbours, in [0, 1].

    Raises:
        InvalidRequest: An argument is wrong, or the comparisons have more than two million masses.
    """
    subject = as_mechanism(mechanism)
    exact_prior = read_probability(prior, "prior")
    laws = []
    mass_count = 0
    for comparison in subject.comparisons():
        mass_count += len(comparison.p)
        if mass_count > _MAX_MASSES:
            raise InvalidRequest(
                f"The comparisons of the mechanism must have at most {_MAX_MASSES} masses in all "
                "for its risk. Got more."
            )
        laws.append(Laws(comparison.p, comparison.q))
    pair = compute_dominating_pair(subject)
    # The vertices are (1 - P*(A), Q*(A)) for the sets A of the largest ratios. Outcomes that only
    # Q* can produce lower β but not α, so they add no vertex.
    vertices = [(1 - p, q) for ratio, p, q in pair.steps if ratio != 0]
    trade_off = (*reversed(vertices), (ONE, ZERO))
    bayes_factor, _ = pair.max_ratio
    return Risk(
        subject,
        trade_off=trade_off,
        bayes_factor=bayes_factor,
        prior=exact_prior,
        _laws=tuple(laws),
    )


def _compute_claimed_curve(claim: Claim | None) -> dict[str, tuple[Vector, Vector]]:
    """Return the trade-off function that a claim of hockey sticks guarantees, by its name.

    The curve is points (α, β). The result is empty for claims without such a function.
    """
    if claim is None or isinstance(claim.values[claim.notion.parameters[0]], Mapping):
        return {}
    hockey_sticks = claim.list_ratio_bounds(())
    if not hockey_sticks:
        return {}
    alphas = np.linspace(0, 1, _PLOTTED_ALPHAS)
    epsilons = [float(bound.epsilon) for bound in hockey_sticks]
    deltas = [float(bound.delta) for bound in hockey_sticks]
    name = f"claimed: {claim.describe_budget()}"
    if deltas[0]:
        name += f", δ = {deltas[0]:.3g}"
    return {name: (alphas, compute_granted_errors(alphas, epsilons, deltas))}


def compute_granted_errors(alphas: Vector, epsilons: ArrayLike, deltas: ArrayLike) -> Vector:
    """Compute the smallest type II errors that (ε, δ)-DP at several budgets guarantees.

    f(α) = max over (ε, δ) of max(0, 1 - δ - e^ε α, e^-ε (1 - δ - α))
                                                        Dong, Roth and Su 2022, Sec. 2

    Args:
        alphas: Type I errors. Shape (n,).
        epsilons: ε of each budget. Shape (k,).
        deltas: δ of each budget. Shape (k,).

    Returns:
        Type II errors. Shape (n,).
    """
    e = np.asarray(epsilons, dtype=float)[:, None]
    d = np.asarray(deltas, dtype=float)[:, None]
    steep = 1 - d - np.exp(np.minimum(e, _MAX_EXPONENT)) * alphas
    flat = np.exp(-e) * (1 - d - alphas)
    return np.asarray(np.maximum(0.0, np.maximum(steep, flat)).max(axis=0))


def _format_bound(value: float) -> str:
    """Format a number of a report, or "unbounded" for infinity."""
    if value == math.inf:
        return "unbounded"
    return repr(value)
