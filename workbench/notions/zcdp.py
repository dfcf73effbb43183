"""Decide ρ-zCDP: D_α(P‖Q) <= ρ α for every order α > 1 (Bun and Steinke 2016).

P and Q are the laws of the output for two neighbours. Let g(α) = (α-1) D_α = ln Σ P^α Q^(1-α). It
is convex, and 0 at α = 1. The claim is g(α) <= ρ α (α-1), and it is proven piece by piece. On a
piece [a, b], g lies below its chord, and the largest excess of a chord over the convex right side
is known in closed form. A piece whose chord exceeds the right side is cut in two. Let E be the pure
ε of the pair, E = max ln P/Q. For α >= E/ρ nothing is left to prove, because D_α <= E <= ρ α.

On the first piece (1, b] the chord stays below if D_b <= ρ. As b falls to 1, D_b approaches
Σ P ln P/Q. So some b is small enough if this sum is less than ρ. If the sum exceeds ρ, the claim is
false. (They cannot be equal: the masses are rational, so e to the power of the sum is algebraic,
but e^ρ is transcendental for rational ρ != 0.) A claim that is tight at some order may stay
undecided. Then NotProven is raised.
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

_MOMENT_BITS = 256  # Precision of the balls around moments.
_MAX_PIECES = 4000  # A claim that needs more pieces of orders α is left undecided.
_MIN_PIECES = 200  # At least this many pieces are tried, even for laws of very many masses.
_MAX_PIECE_MASSES = 1_000_000  # For laws of many masses, pieces times masses are at most this.
_MAX_ORDER = 10**15  # A claim that needs a larger order is left undecided.
_WORK_PER_MASS = 40  # Work for one mass of a moment, in units of `workbench.privacy.audit_work`.

_RHO_TOLERANCE = Fraction(1, 10**6)  # The relative width of the interval of the smallest ρ.
_MAX_RHO_BISECTIONS = 30  # The interval of the smallest ρ is halved at most this many times.

_MIN_CUT_EXCESS = 1e-7  # The bound of an order is added if D_α/α exceeds ρ by this share of it.
_MIN_SOLVER_MASS = 1e-9  # Smaller masses of a solver count as 0.
_MAX_PROGRAM_EXPONENT = 690.0  # Programs accept bounds on Σ P^α Q^(1-α) up to e^690.
_ORDERS_PER_OCTAVE = 64  # The grid of orders has this many orders α from α - 1 to 2 (α - 1).


class ConcentratedLoss(PrivacyLoss):
    """The privacy loss of a comparison and the pure ε that bounds it.

    Args:
        laws: Laws P and Q of the output for two neighbouring inputs.
    """

    def __init__(self, laws: Laws) -> None:
        super().__init__(laws)
        self._max_ratio = laws.max_ratio[0]
        self._moments: dict[Fraction, Interval] = {}
        self._decisions: dict[Fraction, bool | None] = {}

    @cached_property
    def pure_epsilon(self) -> Fraction:
        """Return a rational >= max ln P/Q."""
        assert self._max_ratio is not None
        return Fraction(log_upper_bound(self._max_ratio))

    @cached_property
    def kl_divergence(self) -> Interval:
        """Return an interval of rationals around Σ P ln P/Q."""
        return ball_ends(self.mean(_MOMENT_BITS))

    def moment(self, order: Fraction) -> Interval:
        """Return an interval of rationals around g(α) of the module header.

        Args:
            order: Order α > 1 of the divergence.
        """
        if order not in self._moments:
            self._moments[order] = ball_ends(self.log_moment(order, _MOMENT_BITS))
        return self._moments[order]

    def is_enough(self, rho: Fraction) -> bool | None:
        """Decide whether the comparison satisfies ρ-zCDP. None if it stays undecided.

        Args:
            rho: The parameter ρ >= 0 of zCDP.
        """
        if rho not in self._decisions:
            self._decisions[rho] = self._decide(rho)
        return self._decisions[rho]

    def _decide(self, rho: Fraction) -> bool | None:
        """Decide as the module header describes. None if the claim stays undecided."""
        if self.is_same or self.is_unbounded:
            return self.is_same
        if not rho or self.kl_divergence[0] > rho:
            return False
        last_order = Fraction(max(2, math.ceil(self.pure_epsilon / rho)))
        if last_order > _MAX_ORDER:
            return None
        if self._is_refuted_by(last_order, rho):
            return False
        affordable_pieces = _MAX_PIECE_MASSES // max(1, len(self.masses))
        unproven_pieces = [(ONE, last_order)]
        for _ in range(max(_MIN_PIECES, min(_MAX_PIECES, affordable_pieces))):
            if not unproven_pieces:
                return True
            a, b = unproven_pieces.pop()
            if self._is_proven_on(a, b, rho):
                continue
            middle = (a + b) / 2
            is_new = middle not in self._moments
            if is_new and not reserve_work(_WORK_PER_MASS * len(self.masses)):
                return None
            if self._is_refuted_by(middle, rho):
                return False
            unproven_pieces.append((a, middle))
            unproven_pieces.append((middle, b))
        return None

    def _is_proven_on(self, a: Fraction, b: Fraction, rho: Fraction) -> bool:
        """Return whether the chord of g on [a, b] lies below ρ α (α-1)."""
        _, end = self.moment(b)
        if a == 1:
            return end <= rho * (b - 1)
        _, start = self.moment(a)
        slope = (end - start) / (b - a)
        # At this order the chord is furthest above ρ α (α-1).
        order = min(max((slope / rho + 1) / 2, a), b)
        return start + slope * (order - a) <= rho * order * (order - 1)

    def _is_refuted_by(self, order: Fraction, rho: Fraction) -> bool:
        """Return whether an order shows that ρ is not enough."""
        low, _ = self.moment(order)
        return low > rho * order * (order - 1)

    @cached_property
    def smallest_rho(self) -> Interval:
        """Return an interval around the smallest ρ for which the claim holds.

        Its lower end is the largest D_α/α of the tried orders. Its upper end is a proven ρ, in the
        worst case half the square of the pure ε.
        """
        # The tried orders range from α = 1 + 2^-8 to 1 + 2^12.
        orders = [1 + Fraction(2) ** k for k in range(-8, 13)]
        lower_bounds = []
        for order in orders:
            moment_low, _ = self.moment(order)
            lower_bounds.append(moment_low / (order * (order - 1)))
        low = max(ZERO, self.kl_divergence[0], *lower_bounds)
        high = self.pure_epsilon**2 / 2  # ε-DP is ε²/2-zCDP.
        # `low` is usually close to the smallest ρ. Steps from there, each four times as long as the
        # last, find a proven ρ. The interval is then bisected.
        step = _RHO_TOLERANCE
        while low and (rho := low * (1 + step)) < high:
            decision = self.is_enough(rho)
            if decision:
                high = rho
            elif decision is False:
                low = rho
            step *= 4
        for _ in range(_MAX_RHO_BISECTIONS):
            if high - low <= low * _RHO_TOLERANCE:
                break
            middle = (low + high) / 2
            decision = self.is_enough(middle)
            if decision is None:
                break
            if decision:
                high = middle
            else:
                low = middle
        return low, high


class ZCDP(SmallestParameterNotion):
    """Zero-concentrated differential privacy."""

    name = "zcdp"
    title = "zCDP"
    parameters = ("rho",)
    quantity = "zcdp"
    series_work = 10_000  # In units of `workbench.privacy.audit_work`, for one outcome.

    def measure(self, laws: Laws, budget: Values) -> Any:
        """Collect the privacy loss; its moments are computed when it is compared.

        Args:
            laws: Laws P and Q of the output for two neighbouring inputs.
            budget: Not used.
        """
        return ConcentratedLoss(laws)

    def is_within_budget(self, measurement: Any, budget: Values) -> bool:
        """Decide whether ρ is proven, or refuted by an order.

        Args:
            measurement: Privacy loss of the comparison, a ConcentratedLoss.
            budget: Exact values of the parameters by name, such as epsilon and delta.

        Raises:
            NotProven: If it is neither.
        """
        decision: bool | None = measurement.is_enough(budget["rho"])
        if decision is None:
            rho = nearest_float(budget["rho"])
            raise NotProven(
                f"Whether rho = {rho:g} is enough is not decided by the orders that were tried."
            )
        return decision

    def severity(self, measurement: Any, budget: Values) -> float:
        """Return a proven ρ that is close to the smallest one.

        Args:
            measurement: Privacy loss of the comparison, a ConcentratedLoss.
            budget: Not used.
        """
        if measurement.is_same:
            return 0.0
        if measurement.is_unbounded:
            return math.inf
        return round_up(measurement.smallest_rho[1])

    def describe_smallest(self, measurement: Any, budget: Values) -> str:
        """Describe the smallest ρ that is proven.

        It is the requested ρ if that is proven, and smaller than the smallest one of the search.

        Args:
            measurement: Privacy loss of the comparison, a ConcentratedLoss.
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """
        proven_rho = self.severity(measurement, budget)
        requested_rho = budget["rho"]
        if requested_rho < proven_rho and measurement.is_enough(requested_rho):
            proven_rho = round_up(requested_rho)
        return f"at most {proven_rho!r} (proven)"

    def initial_requirements(self, budget: Values) -> tuple[Requirement, ...]:
        """Return the bounds of two orders: relative entropy (the limit α -> 1), and order 2.

        Args:
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """
        return RelativeEntropy(budget["rho"]), self._require_order(Fraction(2), budget["rho"])

    def gaussian_variance(self, budget: Values) -> Fraction:
        """Return 1/2ρ (Canonne, Kamath and Steinke 2020).

        Args:
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """
        return Fraction(1 / (2 * budget["rho"]))

    def find_cuts(self, p: Vector, q: Vector, budget: Values) -> Sequence[Requirement]:
        """Find the order α whose D_α/α is largest, if that exceeds ρ.

        Args:
            p: The masses of P, shape (m,).
            q: The masses of Q, shape (m,).
            budget: Exact values of the parameters by name, such as epsilon and delta.

        Returns:
            One requirement, or none.
        """
        rho = float(budget["rho"])
        # The orders range from 1 + 2^-4 to 1 + 2^10.
        grid = 1 + 2.0 ** np.arange(-4, 10, 1 / _ORDERS_PER_OCTAVE)
        usable = int(np.searchsorted(rho * grid * (grid - 1), _MAX_PROGRAM_EXPONENT))
        grid = grid[: max(3, usable)]  # The parabola below needs three orders.
        is_positive = (p > _MIN_SOLVER_MASS) & (q > 0)
        if not is_positive.any():
            return ()
        privacy_loss = np.log(p[is_positive]) - np.log(q[is_positive])
        # The limits 700 and 1e-300 keep the numbers within doubles. They only affect which cut is
        # found.
        powers = np.exp(np.minimum((grid[:, None] - 1) * privacy_loss, 700.0)) @ p[is_positive]
        moments = np.log(np.maximum(powers, 1e-300))
        excess = moments / (grid * (grid - 1)) - rho
        peak = min(max(int(excess.argmax()), 1), grid.size - 2)
        left, centre, right = excess[peak - 1 : peak + 2].tolist()
        # The peak of a parabola through the three points lies between orders of the grid.
        bend = min(left - 2 * centre + right, -1e-300)  # The bend is never 0, as it is a divisor.
        peak_excess = centre - (right - left) ** 2 / (8 * bend)
        if max(peak_excess, excess.max()) <= _MIN_CUT_EXCESS * rho:
            return ()
        step = min(max((left - right) / (2 * bend), -1.0), 1.0)
        order = 1 + (float(grid[peak]) - 1) * 2 ** (step / _ORDERS_PER_OCTAVE)
        # A short fraction keeps the requirement and its proof short.
        rounded_order = Fraction(round(order * 2**20), 2**20)
        return (self._require_order(rounded_order, budget["rho"]),)

    def requirement_range(
        self, budget: Values
    ) -> tuple[float, float, Callable[[float], Requirement]]:
        """Return (low, high, requirement): the range of ln(α - 1) over the orders α.

        `requirement` takes a number in [low, high] and returns the bound of its order.

        Args:
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """
        rho = budget["rho"]
        # α - 1 ranges from 2^-6 to 2^10, or to the order at which e^(ρ α (α-1)) is too large. For
        # ρ α (α-1) = E, it is √(1/4 + E/ρ) - 1/2.
        max_order_minus_one = min(
            2.0**10, math.sqrt(0.25 + _MAX_PROGRAM_EXPONENT / float(rho)) - 0.5
        )

        def requirement(log_order_minus_one: float) -> Requirement:
            """Return the requirement of one order α, given ln(α - 1)."""
            return self._require_order(1 + Fraction(math.exp(log_order_minus_one)), rho)

        return math.log(2.0**-6), math.log(max_order_minus_one), requirement

    @staticmethod
    def _require_order(alpha: Fraction, rho: Fraction) -> Requirement:
        """Return the requirement Σ P^α Q^(1-α) <= e^(ρ α (α-1)) of one order α."""
        return PowerCone(alpha, rho * alpha * (alpha - 1))
