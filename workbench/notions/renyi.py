"""Rényi DP of order α > 1: D_α(P‖Q) = 1/(α-1) ln Σ P^α Q^(1-α) <= ε (Mironov 2017).

Decided as Σ P^α Q^(1-α) <= e^((α-1)ε), with balls of growing precision: for rational α and masses the sum is algebraic,
and e^x is not for rational x != 0 (Lindemann), so the two differ and the balls separate. ε = 0 means P = Q.
P^α Q^(1-α) is jointly convex, so the laws at knots decide mechanisms on real inputs.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

from workbench.exact.numbers import ball_ends, make_ball, read_number_where, round_up
from workbench.exact.time_limit import check_time_limit
from workbench.notions.laws import Laws, Names
from workbench.notions.notion import (
    ComparisonResult,
    PowerCone,
    Requirement,
    SmallestParameterNotion,
    Values,
    decide_at_most,
)


class PrivacyLoss:
    """ln P/Q under P, outcomes of equal masses counted together: what every divergence is a moment of.

    outside: an outcome that P has and Q has not, None where there is none.
    """

    def __init__(self, laws: Laws) -> None:
        k, l = laws.p.integers, laws.q.integers
        self.totals = laws.p.total, laws.q.total
        masses = [*zip(k, l, strict=True)]
        self.unmatched_outcome = next((i for i, (a, b) in enumerate(masses) if a and not b), None)
        self.is_same = laws.p == laws.q
        self.masses = Counter((a, b) for a, b in masses if a and b)
        self._known: dict[int, list[tuple[Any, Any]]] = {}

    @property
    def is_unbounded(self) -> bool:
        """Whether Q misses mass of P: every divergence is infinite."""
        return self.unmatched_outcome is not None

    def log_moment(self, order: Fraction, bits: int) -> Any:
        """A ball around ln Σ P^α Q^(1-α), which is (α-1) D_α. order: α > 1; all mass of P within Q's."""
        from flint import arb, ctx

        check_time_limit()
        with ctx.workprec(bits):
            power = make_ball(order) - 1
            return sum(
                (weight * (power * loss).exp() for weight, loss in self._balls(bits)), arb(0)
            ).log()

    def mean(self, bits: int) -> Any:
        """A ball around Σ P ln P/Q, the Kullback-Leibler divergence."""
        from flint import arb, ctx

        with ctx.workprec(bits):
            return sum((weight * loss for weight, loss in self._balls(bits)), arb(0))

    def _balls(self, bits: int) -> list[tuple[Any, Any]]:
        """The mass of P and the loss of every different pair of masses."""
        from flint import arb, ctx, fmpq

        first, second = self.totals
        if bits not in self._known:
            with ctx.workprec(bits):
                balls = [
                    (count * arb(fmpq(k, first)), arb(fmpq(k * second, l * first)).log())
                    for (k, l), count in self.masses.items()
                ]
            self._known = {bits: balls}
        return self._known[bits]

    def divergence_upper_bound(self, order: Fraction) -> float:
        """A float >= D_α, the next or next but one above it; inf where Q misses mass of P."""
        if self.is_unbounded or self.is_same:
            return 0.0 if self.is_same else math.inf
        return round_up(ball_ends(self.log_moment(order, 192))[1] / (order - 1))


class Renyi(SmallestParameterNotion):
    """Rényi differential privacy of one order."""

    name = "renyi"
    title = "Rényi DP"
    parameters = ("epsilon", "alpha")
    quantity = "renyi"
    series_work = 5000

    def parse(self, parameter: str, value: Any) -> Fraction:
        """ε >= 0, α > 1."""
        if parameter == "epsilon":
            return super().parse(parameter, value)
        return read_number_where(value, parameter, "a finite number > 1", lambda order: order > 1)

    def measure(self, laws: Laws, budget: Values) -> Any:
        """The loss; its moment is taken when it is compared."""
        return PrivacyLoss(laws)

    def is_within_budget(self, measurement: Any, budget: Values) -> bool:
        """Whether the moment is at most e^((α-1)ε). Raises NotProven where the work that is allowed does not tell."""
        order, epsilon = budget["alpha"], budget["epsilon"]
        if measurement.is_same or measurement.is_unbounded or not epsilon:
            return bool(measurement.is_same)
        return decide_at_most(
            "epsilon", epsilon, lambda bits: ball_ends(measurement.log_moment(order, bits)), (order - 1) * epsilon,
            lambda bits: len(measurement.masses) * (40 + bits * bits // 20_000),
        )  # fmt: skip

    def severity(self, measurement: Any, budget: Values) -> float:
        """The divergence, rounded up."""
        return float(measurement.divergence_upper_bound(budget["alpha"]))

    def quantity_title(self, values: Values) -> str:
        """The divergence of that order."""
        return f"the Rényi divergence of order {values['alpha']}"

    def describe_witness(self, laws: Laws, result: ComparisonResult, names: Names) -> str | None:
        """Where Q misses mass of P; for other misses no single outcome is to blame, only the pair."""
        outcome = result.measurement.unmatched_outcome
        if outcome is None:
            return super().describe_witness(laws, result, names)
        high, low = names(outcome)
        return f"{high} is {float(laws.p[outcome]):.2g} where {low} is 0"

    def gaussian_variance(self, budget: Values) -> Fraction:
        """α/2ε (Canonne, Kamath and Steinke 2020)."""
        return Fraction(budget["alpha"] / (2 * budget["epsilon"]))

    def requirements(self, budget: Values) -> tuple[Requirement, ...]:
        """A power cone for each outcome."""
        return (PowerCone(budget["alpha"], (budget["alpha"] - 1) * budget["epsilon"]),)
