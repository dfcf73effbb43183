"""ρ-zCDP: D_α(P‖Q) <= ρ α for every α > 1 (Bun and Steinke 2016).

With g(α) = (α-1) D_α = ln Σ P^α Q^(1-α), convex and 0 at α = 1, the claim is g(α) <= ρ α (α-1). It is proven piece by
piece: on [a, b] g lies below its chord, whose largest distance from the convex right side is known in closed form; a
piece that fails is cut in two. Beyond α = pure ε / ρ nothing can break it, as D_α <= pure ε. On the first piece (1, b]
the chord decides when D_b <= ρ, which some b reaches if Σ P ln P/Q < ρ; above ρ the claim is false (they cannot be
equal: e^ρ is transcendental for rational ρ != 0). A claim that is tight at some order may stay undecided: NotProven.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from workbench.errors import NotProven
from workbench.exact.arrays import Vector
from workbench.exact.numbers import (
    ONE,
    ZERO,
    Interval,
    ball_ends,
    log_upper_bound,
    nearest_float,
    round_up,
)
from workbench.notions.laws import Laws
from workbench.notions.notion import (
    PowerCone,
    RelativeEntropy,
    Requirement,
    SmallestParameterNotion,
    Values,
    reserve_work,
)
from workbench.notions.renyi import PrivacyLoss

_BITS = 256
_PIECES, _LEAST, _WORK = (
    4000,
    200,
    1_000_000,
)  # pieces of α before a claim is left undecided; pieces times masses
_LAST = 10**15  # the largest order that is looked at
_NEAR = Fraction(1, 10**6)  # relative, of the interval of the least ρ
_CUT, _SPECK = (
    1e-7,
    1e-9,
)  # relative excess of ρ that is cut off; masses that a solver means to be 0
_STEEPEST = 690.0  # exponent of a bound on Σ P^α Q^(1-α) that programs take


class ConcentratedLoss(PrivacyLoss):
    """The loss of a comparison and the pure ε that bounds it."""

    def __init__(self, laws: Laws) -> None:
        super().__init__(laws)
        self._ratio = laws.max_ratio[0]
        self._moments: dict[Fraction, Interval] = {}
        self._decided: dict[Fraction, bool | None] = {}

    @cached_property
    def pure_epsilon(self) -> Fraction:
        """A rational >= max ln P/Q."""
        assert self._ratio is not None
        return Fraction(log_upper_bound(self._ratio))

    @cached_property
    def kl_divergence(self) -> Interval:
        """Rationals around Σ P ln P/Q."""
        return ball_ends(self.mean(_BITS))

    def moment(self, order: Fraction) -> Interval:
        """Rationals around g(α)."""
        if order not in self._moments:
            self._moments[order] = ball_ends(self.log_moment(order, _BITS))
        return self._moments[order]

    def is_enough(self, rho: Fraction) -> bool | None:
        """Whether ρ is enough; None: undecided."""
        if rho not in self._decided:
            self._decided[rho] = self._decide(rho)
        return self._decided[rho]

    def _decide(self, rho: Fraction) -> bool | None:
        if self.is_same or self.is_unbounded:
            return self.is_same
        if not rho or self.kl_divergence[0] > rho:
            return False
        last = Fraction(max(2, math.ceil(self.pure_epsilon / rho)))
        if last > _LAST:
            return None
        if self._breaks(last, rho):
            return False
        pieces = [(ONE, last)]
        for _ in range(max(_LEAST, min(_PIECES, _WORK // max(1, len(self.masses))))):
            if not pieces:
                return True
            a, b = pieces.pop()
            high = self.moment(b)[1]
            if a == 1:
                decided = high <= rho * (b - 1)
            else:
                start = self.moment(a)[1]
                slope = (high - start) / (b - a)
                at = min(
                    max((slope / rho + 1) / 2, a), b
                )  # where the chord is furthest above ρ α (α-1)
                decided = start + slope * (at - a) <= rho * at * (at - 1)
            if not decided:
                middle = (a + b) / 2
                if middle not in self._moments and not reserve_work(40 * len(self.masses)):
                    return None
                if self._breaks(middle, rho):
                    return False
                pieces += [(a, middle), (middle, b)]
        return None

    def _breaks(self, order: Fraction, rho: Fraction) -> bool:
        """Whether an order shows that ρ is not enough."""
        return self.moment(order)[0] > rho * order * (order - 1)

    @cached_property
    def smallest_rho(self) -> Interval:
        """An interval of the least ρ: the largest D_α/α seen, and a ρ that is proven (pure ε²/2 at worst)."""
        orders = [1 + Fraction(2) ** k for k in range(-8, 13)]
        reached = (self.moment(order)[0] / (order * (order - 1)) for order in orders)
        low = max(ZERO, self.kl_divergence[0], *reached)
        high, step = self.pure_epsilon**2 / 2, _NEAR  # ε-DP is ε²/2-zCDP
        while low and (rho := low * (1 + step)) < high:
            decided = self.is_enough(rho)
            low, high = (rho, high) if decided is False else (low, rho if decided else high)
            step *= 4
        for _ in range(30):
            middle = (low + high) / 2
            decided = self.is_enough(middle) if high - low > low * _NEAR else None
            if decided is None:
                break
            low, high = (low, middle) if decided else (middle, high)
        return low, high


class ZCDP(SmallestParameterNotion):
    """Zero-concentrated differential privacy."""

    name = "zcdp"
    title = "zCDP"
    parameters = ("rho",)
    quantity = "zcdp"
    series_work = 10_000

    def measure(self, laws: Laws, budget: Values) -> Any:
        """The loss; its moments are taken when it is compared."""
        return ConcentratedLoss(laws)

    def is_within_budget(self, measurement: Any, budget: Values) -> bool:
        """Whether ρ is proven, or refuted by an order. Raises NotProven where neither is."""
        decided: bool | None = measurement.is_enough(budget["rho"])
        if decided is None:
            rho = nearest_float(budget["rho"])
            raise NotProven(
                f"Whether rho = {rho:g} is enough is not decided by the orders that were tried."
            )
        return decided

    def severity(self, measurement: Any, budget: Values) -> float:
        """A ρ that is proven, close to the least."""
        if measurement.is_unbounded or measurement.is_same:
            return 0.0 if measurement.is_same else math.inf
        return round_up(measurement.smallest_rho[1])

    def describe_smallest(self, measured: Any, values: Values) -> str:
        """That ρ, or the one asked, which may be proven where no smaller one is."""
        rho, least = values["rho"], self.severity(measured, values)
        return f"at most {round_up(rho) if rho < least and measured.is_enough(rho) else least!r} (proven)"

    def initial_requirements(self, budget: Values) -> tuple[Requirement, ...]:
        """The relative entropy, the limit of orders towards 1, and the Rényi divergence of order 2."""
        return RelativeEntropy(budget["rho"]), self._order(Fraction(2), budget["rho"])

    def gaussian_variance(self, budget: Values) -> Fraction:
        """1/2ρ (Canonne, Kamath and Steinke 2020)."""
        return Fraction(1 / (2 * budget["rho"]))

    def find_cuts(self, p: Vector, q: Vector, budget: Values) -> Sequence[Requirement]:
        """The order α on a grid whose D_α/α is largest, where that exceeds ρ."""
        rho, grid = float(budget["rho"]), 1 + 2.0 ** np.arange(-4, 10, 1 / 64)
        grid = grid[: max(3, int(np.searchsorted(rho * grid * (grid - 1), _STEEPEST)))]
        shown = (p > _SPECK) & (q > 0)
        if not shown.any():
            return ()
        loss = np.log(p[shown]) - np.log(q[shown])
        powers = np.exp(np.minimum((grid[:, None] - 1) * loss, 700.0)) @ p[shown]
        moments = np.log(np.maximum(powers, 1e-300))
        excess = moments / (grid * (grid - 1)) - rho
        at = min(max(int(excess.argmax()), 1), grid.size - 2)
        before, top, behind = excess[at - 1 : at + 2].tolist()
        bend = min(
            before - 2 * top + behind, -1e-300
        )  # of a parabola through the three, whose top is between orders
        if max(top - (behind - before) ** 2 / (8 * bend), excess.max()) <= _CUT * rho:
            return ()
        step = min(max((before - behind) / (2 * bend), -1.0), 1.0)
        order = 1 + (float(grid[at]) - 1) * 2 ** (step / 64)
        return (self._order(Fraction(round(order * 2**20), 2**20), budget["rho"]),)

    def requirement_range(
        self, budget: Values
    ) -> tuple[float, float, Callable[[float], Requirement]]:
        """Orders α as ln(α - 1)."""
        rho = budget["rho"]
        most = min(2.0**10, math.sqrt(0.25 + _STEEPEST / float(rho)) - 0.5)
        return (
            math.log(2.0**-6),
            math.log(most),
            lambda level: self._order(1 + Fraction(math.exp(level)), rho),
        )

    @staticmethod
    def _order(alpha: Fraction, rho: Fraction) -> Requirement:
        return PowerCone(alpha, rho * alpha * (alpha - 1))
