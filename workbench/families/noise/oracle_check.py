"""The closed form's verdict on a designed noise: which law answers the request, and whether the solver agrees."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from models import oracles
from models.oracles.closed_form import ROUNDING
from solvers.solution import Solution
from workbench.families.design import OracleVerdict
from workbench.families.noise.request import NoiseRequest
from workbench.families.outcome import translated_errors
from workbench.families.requirements import ratio_bounds
from workbench.mechanisms.modulo import ModuloNoise

__all__ = ["OracleCheck"]

Budgets = Mapping[tuple[int, ...], Fraction]


class OracleCheck:
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
        bounds = ratio_bounds(self.notion, budgets, Fraction(delta))
        levels = {shift: float(value) for shift, value in bounds.epsilons.items()}
        first = next(iter(levels.values()))
        epsilon = first if len(set(levels.values())) == 1 else levels
        q = self.question
        with translated_errors():
            law = oracles.judge(
                q.sizes, q.differences, q.directed, epsilon, float(bounds.delta), bounds.kind, self.cost
            )
        self._last = key, law
        return law

    def bound(self, request: NoiseRequest) -> tuple[float, str] | None:
        """A lower bound on the error of every mechanism that meets a request, with a sentence that says whose it is.

        Only where a law is proven the optimum of this very request; it is lowered by what its evaluation may be off.
        """
        if self.constrained or request.minimise != "error":
            return None
        law = self.law(request.budgets, float(request.delta or 0))
        if law is None or law.kind != "optimum":
            return None
        return law.value * (1 - ROUNDING), f"The bound is the closed form's: {law.name}. {law.proof}"

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
        bound = None if proven else -math.inf if solution.bound is None else solution.bound
        return OracleVerdict.judge(solution.objective, law.name, law.value, kind, proof, incumbent_bound=bound)

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
