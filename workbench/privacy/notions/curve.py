"""A privacy curve: hockey sticks at several ε at once, Σ max(0, P - e^ε_i Q) <= δ_i for every i.

The convex piecewise linear trade-off functions are the same thing: a line β >= c - m α between type I error α and type
II error β says that the hockey stick at ε = ln m is at most 1 - c (Dong, Roth and Su 2022, Sec. 2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.errors import InvalidRequest
from workbench.exact.numbers import positive, probability
from workbench.privacy.notions.dp import DP
from workbench.privacy.notions.laws import Laws
from workbench.privacy.notions.notion import HockeyStick, Names, Notion, Requirement, Result, Values

__all__ = ["Curve"]


class Curve(Notion):
    """DP at several budgets (ε, δ) at once; curve: a list of pairs, or a mapping ε -> δ."""

    name = "curve"
    title = "DP curve"
    parameters = ("curve",)
    quantity = "curve"
    convex = True
    _point = DP()

    def parse(self, parameter: str, value: Any) -> Any:
        """Pairs (ε, δ), exact, ε growing."""
        given = value.items() if isinstance(value, Mapping) else value
        if isinstance(given, str):
            given = [part.split(":") for part in given.split(",")]
        try:
            pairs = [(epsilon, delta) for epsilon, delta in given]
        except (TypeError, ValueError):
            InvalidRequest.must(parameter, "a list of pairs (epsilon, delta)", repr(value))
        points = {positive(epsilon, "epsilon", or_zero=True): probability(delta, "delta") for epsilon, delta in pairs}
        if not points or len(points) < len(pairs):
            InvalidRequest.must(parameter, "a list of pairs (epsilon, delta), each epsilon once", repr(value))
        return tuple(sorted(points.items()))

    def measure(self, laws: Laws, values: Values) -> Any:
        """The exact δ at every ε of the curve."""
        return tuple(self._point.measure(laws, {"epsilon": epsilon}) for epsilon, _ in values["curve"])

    def work_per_outcome(self, values: Values) -> int:
        """One for every point."""
        points = values.get("curve", ())
        return max(1, len(points)) if isinstance(points, tuple) else 1

    def meets(self, measured: Any, values: Values) -> bool:
        """Whether every δ is at most the one asked."""
        return all(reached.compare(delta) <= 0 for reached, (_, delta) in zip(measured, values["curve"], strict=True))

    def _tightest(self, measured: Any, values: Values) -> tuple[float, int]:
        """The largest excess of a δ over the one asked (to choose what to show), and where it is."""
        gaps = [reached.upper - float(delta) for reached, (_, delta) in zip(measured, values["curve"], strict=True)]
        broken = [i for i, (_, delta) in enumerate(values["curve"]) if measured[i].compare(delta) > 0] or range(
            len(gaps)
        )
        return max((gaps[i], i) for i in broken)

    def worst(self, results: Sequence[Result]) -> Result:
        """The one with the largest excess."""
        broken = [result for result in results if not self.meets(result.measured, result.values)]
        return max(broken or results, key=lambda result: self._tightest(result.measured, result.values))

    def finding(self, worst: Any, values: Values, budget: str) -> str:
        """The δ beside the one asked, at the ε that is tightest."""
        _, at = self._tightest(worst, values)
        epsilon, delta = values["curve"][at]
        point = {"epsilon": epsilon, "delta": delta}
        where = f"epsilon = {float(epsilon):.9g}, of {len(values['curve'])} on the curve"
        return self._point.finding(worst[at], point, where)

    def witness(self, laws: Laws, result: Result, names: Names) -> str | None:
        """One of the outcomes above that e^ε."""
        _, at = self._tightest(result.measured, result.values)
        epsilon, delta = result.values["curve"][at]
        values = {"epsilon": epsilon, "delta": delta}
        return self._point.witness(laws, Result(result.label, result.measured[at], values), names)

    def requires(self, values: Values) -> tuple[Requirement, ...]:
        """A hockey stick for every point."""
        return tuple(HockeyStick(epsilon, delta) for epsilon, delta in values["curve"])
