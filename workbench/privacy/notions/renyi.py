"""Rényi DP of order α > 1: D_α(P‖Q) = 1/(α-1) ln Σ P^α Q^(1-α) <= ε (Mironov 2017).

Decided as Σ P^α Q^(1-α) <= e^((α-1)ε), with balls of growing precision: for rational α and masses the sum is algebraic,
and e^x is not for rational x != 0 (Lindemann), so the two differ and the balls separate. ε = 0 means P = Q.
P^α Q^(1-α) is jointly convex, so the laws at knots decide mechanisms on real inputs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

from workbench.errors import InvalidRequest, NotProven
from workbench.exact.numbers import ball_ends, exact, nearest_float, positive, round_up
from workbench.privacy.notions.laws import Laws
from workbench.privacy.notions.notion import Names, Notion, PowerCone, Requirement, Result, Values
from workbench.privacy.notions.work import count_work

__all__ = ["Loss", "Renyi"]


class Loss:
    """ln P/Q under P, outcomes of equal masses counted together: what every divergence is a moment of.

    outside: an outcome that P has and Q has not, None where there is none.
    """

    def __init__(self, laws: Laws) -> None:
        k, l = laws.p.integers, laws.q.integers
        self.totals = laws.p.total, laws.q.total
        self.outside = next((i for i, (a, b) in enumerate(zip(k, l, strict=True)) if a and not b), None)
        self.same = laws.p == laws.q
        self.masses = Counter((a, b) for a, b in zip(k, l, strict=True) if a and b)

    def log_moment(self, order: Fraction, bits: int) -> Any:
        """A ball around ln Σ P^α Q^(1-α), which is (α-1) D_α. order: α > 1; all mass of P within Q's."""
        from flint import arb, ctx, fmpq

        with ctx.workprec(bits):
            power = arb(fmpq(order.numerator, order.denominator)) - 1
            total = arb(0)
            for p, log_ratio, count in self._balls(bits):
                total += count * p * (power * log_ratio).exp()
            return total.log()

    def mean(self, bits: int) -> Any:
        """A ball around Σ P ln P/Q, the Kullback-Leibler divergence."""
        from flint import arb, ctx

        with ctx.workprec(bits):
            return sum((count * p * log_ratio for p, log_ratio, count in self._balls(bits)), arb(0))

    def _balls(self, bits: int) -> list[tuple[Any, Any, int]]:
        from flint import arb, ctx, fmpq

        if self._known[0] != bits:
            first, second = self.totals
            with ctx.workprec(bits):
                balls = [
                    (arb(fmpq(k, first)), arb(fmpq(k * second, l * first)).log(), count)
                    for (k, l), count in self.masses.items()
                ]
            self.__dict__["_known"] = bits, balls
        return self._known[1]

    @cached_property
    def _known(self) -> tuple[int, list[tuple[Any, Any, int]]]:
        return 0, []

    def upper(self, order: Fraction) -> float:
        """A float >= D_α, the next or next but one above it; inf where Q misses mass of P."""
        if self.outside is not None or self.same:
            return 0.0 if self.same else math.inf
        return round_up(ball_ends(self.log_moment(order, 192))[1] / (order - 1))


class Renyi(Notion):
    """Rényi differential privacy of one order."""

    name = "renyi"
    title = "Rényi DP"
    parameters = ("epsilon", "alpha")
    quantity = "renyi"
    series_work = 5000
    convex = True

    def parse(self, parameter: str, value: Any) -> Fraction:
        """ε >= 0, α > 1."""
        if parameter == "epsilon":
            return positive(value, parameter, or_zero=True)
        order = exact(value, parameter, "a finite number > 1")
        if order <= 1:
            InvalidRequest.must(parameter, "a finite number > 1", value)
        return order

    def measure(self, laws: Laws, values: Values) -> Any:
        """The loss; its moment is taken when it is compared."""
        return Loss(laws)

    def meets(self, measured: Any, values: Values) -> bool:
        """Whether the moment is at most e^((α-1)ε). Raises NotProven where the work that is allowed does not tell."""
        order, epsilon = values["alpha"], values["epsilon"]
        if measured.same or measured.outside is not None:
            return bool(measured.same)
        if not epsilon:
            return False
        bits = 128
        while count_work(len(measured.masses) * (40 + bits * bits // 20_000)):
            low, high = ball_ends(measured.log_moment(order, bits))
            if high <= (order - 1) * epsilon:
                return True
            if low > (order - 1) * epsilon:
                return False
            bits *= 2
        raise NotProven(f"Whether epsilon = {nearest_float(epsilon):g} is enough is not decided by {bits // 2} bits.")

    def worst(self, results: Sequence[Result]) -> Result:
        """The largest divergence."""
        return max(results, key=lambda result: result.measured.upper(result.values["alpha"]))

    def most_broken(self, results: Sequence[Result]) -> Result:
        """The divergence furthest above its own budget."""
        return max(
            results,
            key=lambda result: result.measured.upper(result.values["alpha"]) - float(result.values["epsilon"]),
        )

    def finding(self, worst: Any, values: Values, budget: str) -> str:
        """The divergence beside the one asked."""
        reached = worst.upper(values["alpha"])
        text = "unbounded" if reached == math.inf else f"{reached!r} (rounded up)"
        return f"the Rényi divergence of order {values['alpha']} is {text}, asked {budget}"

    def witness(self, laws: Laws, result: Result, names: Names) -> str | None:
        """Where Q misses mass of P; for other misses no single outcome is to blame, only the pair."""
        outcome = result.measured.outside
        high, low = names(0 if outcome is None else outcome)
        if outcome is None:
            return f"between the laws of {high} and {low}"
        return f"{high} is {float(laws.p[outcome]):.2g} where {low} is 0"

    def gaussian_variance(self, values: Values) -> Fraction:
        """α/2ε (Canonne, Kamath and Steinke 2020)."""
        return Fraction(values["alpha"] / (2 * values["epsilon"]))

    def requires(self, values: Values) -> tuple[Requirement, ...]:
        """A power cone for each outcome."""
        return (PowerCone(values["alpha"], (values["alpha"] - 1) * values["epsilon"]),)
