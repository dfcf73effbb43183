"""The least ε of noise within a budget of its cost (`workbench.families.least_epsilon`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from workbench.errors import InvalidRequest, NotProven
from workbench.families.design import Design
from workbench.families.least_epsilon import Tried
from workbench.families.least_epsilon import least_epsilon as search
from workbench.families.noise.request import LEAST_EPSILON, NoiseRequest
from workbench.mechanisms.additive import AdditiveNoise
from workbench.privacy.repair import exact_cost

__all__ = ["least_epsilon"]


def least_epsilon(solve: Callable[[NoiseRequest], Design], request: NoiseRequest) -> Design:
    """The design at the least ε found, with ε as its objective and the largest ε excluded as its bound.

    solve: the design of a request that minimises its cost, on a session that keeps its solver. Raises Infeasible,
    NotProven.
    """
    budget = request.cost_limit
    assert budget is not None
    order = request.question.order
    uniform = exact_cost(AdditiveNoise(request.question, [1] * order), request.costs)
    if uniform <= budget and request.constraints is None:
        need = f"less than {float(uniform):.9g}, what uniform noise costs (any epsilon is enough)"
        InvalidRequest.must("budget", need, f"{float(budget):g}")

    def at(epsilon: Fraction) -> Tried:
        least_error = request.at({"minimise": "error", "budget": None, "epsilon": epsilon})
        assert isinstance(least_error, NoiseRequest)
        try:
            design = solve(least_error)
        except NotProven as error:
            if error.design is None or error.interrupted:
                raise
            design = error.design
        assert isinstance(design.mechanism, AdditiveNoise)
        bound = None if design.bound is None else Fraction(design.bound)
        return design, exact_cost(design.mechanism, np.asarray(request.costs)), bound

    limit = request.epsilon
    assert isinstance(limit, Fraction)
    optimum = search(at, budget, f"Cost {request.cost}", limit, LEAST_EPSILON)
    return replace(optimum, request=request.at({"epsilon": optimum.claim.epsilon}))
