"""What an attacker learns from one output of a mechanism, exact or rounded against the mechanism.

With P, Q the laws of two neighbours, and a test that takes the outcomes A for "P":

    type I error α = 1 - P(A), type II error β = Q(A); trade-off function T(P, Q)(α) = least β (Dong, Roth and Su 2022)
    trade-off    the largest convex f with T(P, Q) >= f for all neighbours: that of the dominating
                 pair, with the same information as the DP profile (their Prop. 2.12)
    advantage    max (1 - α - β) = max P(A) - Q(A), which is the DP δ at ε = 0
    posterior    r π / (r π + 1 - π) at most, where r = max P/Q (the Bayes factor) and π is the prior of "P"
    guess        max π (1 - α) + (1 - π) (1 - β): how often the best attacker is right
    Rényi        D_α(P‖Q), the largest over neighbours (Mironov 2017)
    ρ, μ         least of zCDP (Bun and Steinke 2016), least of GDP: f_μ is convex, so the hull's vertices decide it

On real inputs all of these are largest at laws at knots: hockey sticks and divergences are jointly convex.
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
    from matplotlib.figure import Figure


RENYI_ORDERS = tuple(
    map(Fraction, ("5/4", "3/2", "2", "3", "4", "6", "8", "12", "16", "24", "32", "48", "64"))
)
_LIMIT = 2_000_000  # masses in all comparisons; some 30 µs each

Points = tuple[RationalPair, ...]


@dataclass(frozen=True, repr=False)
class Risk(Shown):
    """The answers of the module's table for all neighbours of a mechanism.

    trade_off: vertices (α, β) of the convex trade-off curve from (0, ·) to (1, 0), exact rationals, α growing;
    bayes_factor: the largest ratio P/Q, exact; None: unbounded; prior: π, exact.
    """

    mechanism: Mechanism = field(repr=False)
    trade_off: Points
    bayes_factor: Fraction | None
    prior: Fraction
    _laws: tuple[Laws, ...] = field(repr=False, compare=False)

    def __repr__(self) -> str:
        return f"Risk(advantage={round_up(self.advantage)!r}, prior={float(self.prior):g}, posterior={self.posterior!r})"

    @property
    def advantage(self) -> Fraction:
        """max (1 - α - β), exact."""
        return max(1 - a - b for a, b in self.trade_off)

    @property
    def posterior(self) -> float:
        """The largest posterior probability of a neighbour with prior π, rounded up."""
        if self.bayes_factor is None:
            return 1.0 if self.prior else 0.0
        odds = self.bayes_factor * self.prior
        return round_up(odds / (odds + 1 - self.prior))

    @property
    def guess(self) -> Fraction:
        """How often the best attacker says rightly which of two neighbours it was, exact; blind: max(π, 1 - π).

        Of ordered pairs: π stands on either side unless neighbours are one-sided.
        """
        priors = (self.prior,) if self.mechanism.is_one_sided else (self.prior, 1 - self.prior)
        tests = (*self.trade_off, (ZERO, ONE), (ONE, ZERO))
        return max(prior * (1 - a) + (1 - prior) * (1 - b) for a, b in tests for prior in priors)

    def beta(self, alpha: Real) -> Fraction:
        """The trade-off function: no test of type I error α has a smaller type II error. Raises InvalidRequest."""
        value = read_probability(alpha, "alpha")
        for (a, b), (c, d) in pairwise(self.trade_off):
            if value <= c:
                return b + (d - b) * (value - a) / (c - a)
        return ZERO

    @cached_property
    def renyi(self) -> dict[Fraction, float]:
        """The largest D_α at the orders `ORDERS`, rounded up; inf where a law misses mass of its neighbour."""
        losses = [PrivacyLoss(laws) for laws in self._laws]
        return {
            order: max(loss.divergence_upper_bound(order) for loss in losses)
            for order in RENYI_ORDERS
        }

    @cached_property
    def rho(self) -> tuple[float, float]:
        """An interval of the least ρ of zCDP, rounded outwards; the upper end is proven. (inf, inf): unbounded."""
        low = high = ZERO
        every = map(ConcentratedLoss, self._laws)
        for measured in sorted(
            every, key=lambda measured: measured.divergence_upper_bound(Fraction(2)), reverse=True
        ):
            if measured.is_unbounded:
                return math.inf, math.inf
            if measured.is_same or (high and measured.is_enough(high)):
                continue  # its least ρ is no larger
            least = measured.smallest_rho
            low, high = max(low, least[0]), max(high, least[1])
        return round_down(low), round_up(high)

    @cached_property
    def mu(self) -> float:
        """The least μ of GDP, rounded up; inf where there is none."""
        return TradeOffCurve(
            (*(1 - a).as_integer_ratio(), *b.as_integer_ratio()) for a, b in self.trade_off
        ).smallest_mu

    def facts(self) -> Facts:
        """What was found, in words."""
        factor = math.inf if self.bayes_factor is None else round_up(self.bayes_factor)
        low, high = self.rho
        prior, known = (
            f"{float(self.prior):g}",
            f" (proven; no rho below {_format_bound(low)} is)" if low < high else "",
        )
        return [
            ("mechanism", self.mechanism.describe()),
            (
                "attack advantage",
                f"{round_up(self.advantage)!r} at most (1 - type I - type II error)",
            ),
            (
                "Bayes factor",
                f"{_format_bound(factor)} at most: prior {prior} becomes {self.posterior!r} at most",
            ),
            ("right guesses", f"{round_up(self.guess)!r} at most, with prior {prior}"),
            ("least zCDP rho", f"{_format_bound(high)}{known}"),
            ("least GDP mu", _format_bound(self.mu)),
            (
                "Rényi divergence",
                ", ".join(f"{_format_bound(self.renyi[Fraction(a)])} at {a}" for a in (2, 4, 16)),
            ),
            *([ONE_SIDED_NOTE] if self.mechanism.is_one_sided else []),
        ]

    def to_dict(self) -> Record:
        """JSON-ready; every number rounded against the mechanism, "inf" for unbounded ones.

        tradeoff: points [α, β] on or below the exact curve.
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
        """Write `to_dict` as JSON."""
        write_json(path, self.to_dict())

    @property
    def drawable(self) -> bool:
        """Whether it is drawn in a moment."""
        return sum(len(laws.p) for laws in self._laws) <= 20_000

    @apply_style_sheet
    def figure(self, claim: Claim | None = None) -> Figure:
        """The trade-off curve and the Rényi curve. claim: one whose own trade-off function is drawn beside it."""
        figure, (left, right) = make_panels(2, height=3.2)
        ends = [(ZERO, ONE), *self.trade_off] if self.trade_off[0][1] < 1 else self.trade_off
        drawn = [make_series("this mechanism", "line", 0, *zip(*ends, strict=True))]
        drawn.append(make_series("no information", "dashed", 7, [0, 1], [1, 0]))
        one_sided = self.mechanism.is_one_sided  # which a claim grants less of
        granted = _draw_claimed_curve(None if one_sided else claim)
        drawn += [make_series(name, "dashed", 1, *curve) for name, curve in granted.items()]
        draw_lines(left, make_line_figure("", "type I error α", "least type II error β", drawn))
        title = f"Trade-off curve (exact, {'one-sided' if one_sided else 'all'} neighbours)"
        left.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", title=title)
        left.legend()
        right.set_title("Rényi curve (rounded up)")
        finite = [(order, value) for order, value in self.renyi.items() if value < math.inf]
        if finite:
            high, most = self.rho[1], 2 * finite[-1][1]
            line = [
                (order, high * float(order)) for order, _ in finite if high * float(order) <= most
            ]
            drawn = [make_series("D_α", "hollow", 0, *zip(*finite, strict=True))]
            drawn += (
                [make_series(f"ρα, ρ = {high:.4g}", "dashed", 2, *zip(*line, strict=True))]
                if line
                else []
            )
            draw_lines(right, make_line_figure("", "order α", "Rényi divergence", drawn))
            right.set_xscale("log", base=2)
            right.legend()
        else:
            words = "Unbounded at every order α:\nsome outcome of one neighbour\nnever occurs on the other."
            right.text(0.5, 0.5, words, ha="center", va="center", transform=right.transAxes)
            right.set_axis_off()
        return figure


def risk(mechanism: Any, prior: Real = Fraction(1, 2)) -> Risk:
    """What an attacker learns from one output.

    mechanism: any, or a Design or Certificate; prior: the attacker's probability of one of two neighbours, in [0, 1].
    Raises InvalidRequest, also where the comparisons have more than two million masses in all.
    """
    subject, value = as_mechanism(mechanism), read_probability(prior, "prior")
    laws, masses = [], 0
    for comparison in subject.comparisons():
        masses += len(comparison.p)
        if masses > _LIMIT:
            raise InvalidRequest(
                f"The comparisons of the mechanism must have at most {_LIMIT} masses in all for its risk. Got more."
            )
        laws.append(Laws(comparison.p, comparison.q))
    worst = compute_dominating_pair(subject)
    # (1 - P*(A), Q*(A)) for its sets A of largest ratios; what Q* alone can produce leaves α at 0
    sets = [(1 - p, q) for ratio, p, q in worst.steps if ratio != 0]
    return Risk(subject, (*reversed(sets), (ONE, ZERO)), worst.max_ratio[0], value, tuple(laws))


def _draw_claimed_curve(claim: Claim | None) -> dict[str, tuple[Vector, Vector]]:
    """The trade-off function that a claim of hockey sticks grants, by its name: points (α, β)."""
    if claim is None or isinstance(claim.values[claim.notion.parameters[0]], Mapping):
        return {}
    sticks = claim.list_ratio_bounds(())
    if not sticks:
        return {}
    alphas, deltas = np.linspace(0, 1, 401), [float(stick.delta) for stick in sticks]
    granted = compute_granted_errors(alphas, [float(stick.epsilon) for stick in sticks], deltas)
    return {
        f"claimed: {claim.describe_budget()}" + (f", δ = {deltas[0]:.3g}" if deltas[0] else ""): (
            alphas,
            granted,
        )
    }


def compute_granted_errors(alphas: Vector, epsilons: ArrayLike, deltas: ArrayLike) -> Vector:
    """The least type II error of any test of type I error α that (ε, δ)-DP at several budgets grants. Shape of alphas.

    f(α) = max over (ε, δ) of max(0, 1 - δ - e^ε α, e^-ε (1 - δ - α))     Dong, Roth and Su 2022, Sec. 2
    """
    e, d = (np.asarray(numbers, dtype=float)[:, None] for numbers in (epsilons, deltas))
    straight, flat = 1 - d - np.exp(np.minimum(e, 700.0)) * alphas, np.exp(-e) * (1 - d - alphas)
    return np.asarray(np.maximum(0.0, np.maximum(straight, flat)).max(axis=0))


def _format_bound(value: float) -> str:
    return "unbounded" if value == math.inf else repr(value)
