"""Decide Rényi DP of order α > 1: D_α(P‖Q) = 1/(α-1) ln Σ P^α Q^(1-α) <= ε (Mironov 2017).

P and Q are the laws of the output for two neighbours, with rational masses. The claim is decided as
Σ P^α Q^(1-α) <= e^((α-1)ε), with balls (intervals) of growing precision. For rational α the sum is
an algebraic number, and e^x is transcendental for rational x != 0 (Lindemann). So the two sides
differ, and the balls separate. ε = 0 means P = Q. P^α Q^(1-α) is jointly convex, so the laws at
knots decide mechanisms on real inputs.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

from workbench.exact.numbers import Interval, ball_ends, make_ball, read_number_where, round_up
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

_REPORT_BITS = 192  # Precision of divergences in reports. It does not decide claims.


class PrivacyLoss:
    """The law of ln P/Q under P, of which every divergence is a moment.

    Outcomes of equal masses are counted together.

    Args:
        laws: Laws P and Q of the output for two neighbouring inputs.

    Attributes:
        unmatched_outcome: An outcome that only P can produce. None if there is none.
        is_same: Whether P = Q.
        masses: Number of outcomes by their pair (k, l) of masses. k and l are the positive integers
            of P and Q.
    """

    def __init__(self, laws: Laws) -> None:
        self.totals = laws.p.total, laws.q.total
        masses = [*zip(laws.p.integers, laws.q.integers, strict=True)]
        unmatched_outcomes = (i for i, (k, l) in enumerate(masses) if k and not l)
        self.unmatched_outcome = next(unmatched_outcomes, None)
        self.is_same = laws.p == laws.q
        self.masses = Counter((k, l) for k, l in masses if k and l)
        self._balls_by_bits: dict[int, list[tuple[Any, Any]]] = {}

    @property
    def is_unbounded(self) -> bool:
        """Return whether Q lacks mass of P, so that every divergence is infinite."""
        return self.unmatched_outcome is not None

    def log_moment(self, order: Fraction, bits: int) -> Any:
        """Return a ball around ln Σ P^α Q^(1-α), which is (α-1) D_α.

        The privacy loss must not be unbounded.

        Args:
            order: Order α > 1 of the divergence.
            bits: Working precision of the balls in bits.
        """
        from flint import arb, ctx

        check_time_limit()
        with ctx.workprec(bits):
            power = make_ball(order) - 1
            terms = []
            for mass, privacy_loss in self._list_balls(bits):
                terms.append(mass * (power * privacy_loss).exp())
            return sum(terms, arb(0)).log()

    def mean(self, bits: int) -> Any:
        """Return a ball around Σ P ln P/Q, the Kullback-Leibler divergence.

        Args:
            bits: Working precision of the balls in bits.
        """
        from flint import arb, ctx

        with ctx.workprec(bits):
            terms = [mass * privacy_loss for mass, privacy_loss in self._list_balls(bits)]
            return sum(terms, arb(0))

    def _list_balls(self, bits: int) -> list[tuple[Any, Any]]:
        """Return balls around P and ln P/Q, for every different pair of masses."""
        from flint import arb, ctx, fmpq

        p_total, q_total = self.totals
        if bits not in self._balls_by_bits:
            with ctx.workprec(bits):
                balls = []
                for (k, l), count in self.masses.items():
                    privacy_loss = arb(fmpq(k * q_total, l * p_total)).log()
                    balls.append((count * arb(fmpq(k, p_total)), privacy_loss))
            # Only the balls of the latest precision are kept.
            self._balls_by_bits = {bits: balls}
        return self._balls_by_bits[bits]

    def divergence_upper_bound(self, order: Fraction) -> float:
        """Return D_α, rounded up to one of the next two floats, or inf if it is unbounded.

        Args:
            order: Order α > 1 of the divergence.
        """
        if self.is_same:
            return 0.0
        if self.is_unbounded:
            return math.inf
        _, upper_bound = ball_ends(self.log_moment(order, _REPORT_BITS))
        return round_up(upper_bound / (order - 1))


class Renyi(SmallestParameterNotion):
    """Rényi differential privacy of one order."""

    name = "renyi"
    title = "Rényi DP"
    parameters = ("epsilon", "alpha")
    quantity = "renyi"
    series_work = 5000

    def parse(self, parameter: str, value: Any) -> Fraction:
        """Read ε >= 0 or α > 1.

        Args:
            parameter: One of `parameters`, the names of the parameters of the notion.
            value: Number, or text of a number, as the user gave it.

        Raises:
            InvalidRequest: If ε is negative, α is at most 1, or the value is no finite number.
        """
        if parameter == "epsilon":
            return super().parse(parameter, value)
        return read_number_where(value, parameter, "a finite number > 1", lambda order: order > 1)

    def measure(self, laws: Laws, budget: Values) -> Any:
        """Collect the privacy loss; its moment is computed when it is compared.

        Args:
            laws: Laws P and Q of the output for two neighbouring inputs.
            budget: Not used.
        """
        return PrivacyLoss(laws)

    def is_within_budget(self, measurement: Any, budget: Values) -> bool:
        """Decide whether the moment is at most e^((α-1)ε).

        Args:
            measurement: Privacy loss of the comparison, a PrivacyLoss.
            budget: Exact values of the parameters by name, such as epsilon and delta.

        Raises:
            NotProven: If the allowed work does not decide it.
        """
        order = budget["alpha"]
        epsilon = budget["epsilon"]
        if measurement.is_same or measurement.is_unbounded or not epsilon:
            return bool(measurement.is_same)

        def enclosure(bits: int) -> Interval:
            """Return an interval around the logarithm of the moment."""
            return ball_ends(measurement.log_moment(order, bits))

        def work(bits: int) -> int:
            """Return the work of an enclosure, in units of `reserve_work`."""
            # The work grows as the square of the precision, for each pair of masses.
            return len(measurement.masses) * (40 + bits * bits // 20_000)

        return decide_at_most(
            name="epsilon",
            budget=epsilon,
            enclosure=enclosure,
            limit=(order - 1) * epsilon,
            work=work,
        )

    def severity(self, measurement: Any, budget: Values) -> float:
        """Return the divergence, rounded up.

        Args:
            measurement: Privacy loss of the comparison, a PrivacyLoss.
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """
        return float(measurement.divergence_upper_bound(budget["alpha"]))

    def quantity_title(self, budget: Values) -> str:
        """Return the name of the divergence with its order.

        Args:
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """
        return f"the Rényi divergence of order {budget['alpha']}"

    def describe_witness(self, laws: Laws, result: ComparisonResult, names: Names) -> str | None:
        """Describe an outcome that Q lacks, else the pair of laws.

        Args:
            laws: Laws P and Q of the output for two neighbouring inputs.
            result: Measurement of this pair, with its budget.
            names: Maps an outcome to the texts that stand for its mass in P and in Q.
        """
        outcome = result.measurement.unmatched_outcome
        if outcome is None:
            return super().describe_witness(laws, result, names)
        high, low = names(outcome)
        return f"{high} is {float(laws.p[outcome]):.2g} where {low} is 0"

    def gaussian_variance(self, budget: Values) -> Fraction:
        """Return α/2ε (Canonne, Kamath and Steinke 2020).

        Args:
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """
        return Fraction(budget["alpha"] / (2 * budget["epsilon"]))

    def requirements(self, budget: Values) -> tuple[Requirement, ...]:
        """Return the power cone of the order.

        Args:
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """
        return (PowerCone(budget["alpha"], (budget["alpha"] - 1) * budget["epsilon"]),)
