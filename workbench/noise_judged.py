"""The closed form's verdict on a designed noise: which law answers the request, and whether the solver agrees."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, cast

from workbench import rooms

# isort: split
from models import oracles
from solvers.solution import Solution
from workbench.designing import OracleVerdict
from workbench.mechanisms.modulo import ModuloNoise

__all__ = ["Judge"]

Budgets = Mapping[tuple[int, ...], Fraction]


class Judge:
    """The closed forms for one question, notion and cost.

    constrained: whether the user has constraints of their own, which no closed form knows.
    """

    def __init__(self, question: ModuloNoise, notion: str, cost: str, *, constrained: bool) -> None:
        self.question, self.notion, self.cost, self.constrained = question, notion, cost, constrained
        self._last: tuple[Any, oracles.ClosedForm | None] | None = None

    def law(self, budgets: Budgets, delta: float) -> oracles.ClosedForm | None:
        """The strongest closed form at a delta."""
        key = (tuple(budgets.items()), delta)
        if self._last is not None and self._last[0] == key:
            return self._last[1]
        levels = {shift: float(value) for shift, value in budgets.items()}
        one = next(iter(levels.values()))
        epsilon = one if len(set(levels.values())) == 1 else levels
        q = self.question
        notion = cast(oracles.Notion, self.notion)
        with rooms.speaking_our_errors():
            law = oracles.judge(q.sizes, q.differences, q.directed, epsilon, delta, notion, self.cost)
        self._last = key, law
        return law

    def least_error(self, solution: Solution, proven: bool, budgets: Budgets, delta: float) -> OracleVerdict:
        """Of the least error at a delta."""
        law = self.law(budgets, delta)
        if law is None:
            return OracleVerdict.none(f"no closed form is known for {self.notion} with cost {self.cost} here.")
        kind, proof = str(law.kind), law.proof
        if self.constrained:
            if kind == "upper bound":
                return OracleVerdict.none("the extra constraints leave no closed form.")
            kind, proof = "lower bound", f"{proof} The extra constraints can only raise the error above it."
        objective, bound = solution.objective, solution.bound
        return OracleVerdict.judge(objective, law.name, law.value, kind, proof, proven=proven, bound=bound)

    def least_delta(self, solution: Solution, budgets: Budgets, budget: float) -> OracleVerdict:
        """Of the least delta whose least error is within the budget: the law, which falls with delta, inverted."""
        low, high = 0.0, 1.0
        ends = [self.law(budgets, low), self.law(budgets, high)]
        if self.constrained or ends[0] is None or ends[1] is None:
            return OracleVerdict.none(f"no closed form is known for the least delta in {self.notion} here.")
        while high - low > 1e-15 and ends[0].value > budget:
            middle = (low + high) / 2
            law = self.law(budgets, middle)
            if law is None or middle in (low, high):
                break
            if law.value <= budget:
                high, ends[1] = middle, law
            else:
                low, ends[0] = middle, law
        if ends[0].value <= budget:
            high, ends[1] = low, ends[0]
        proven = all(law is not None and law.kind == "optimum" for law in ends)
        law = ends[1]
        proof = f"{law.proof} Inverted in delta."
        kind = "optimum" if proven else "upper bound"
        return OracleVerdict.judge(solution.objective, f"{law.name}, inverted", high, kind, proof)
