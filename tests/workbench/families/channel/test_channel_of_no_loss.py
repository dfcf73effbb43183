"""Test channels whose optimal loss is 0 or nearly 0, where no relative gap proves the optimum."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

import workbench as wb
from workbench.errors import NotProven
from workbench.pipeline.routes import answer_by_routes

# A budget for each notion of several bounds.
BUDGETS = {
    "curve": {"curve": "0.5:0.1,1:0.01"},
    "renyi": {"alpha": 2, "epsilon": "0.5"},
    "zcdp": {"rho": "0.1"},
    "gdp": {"mu": 1},
}


def make_certain_query(n: int) -> wb.FiniteQuery:
    """Make a query with answers 0..n whose prior is 1 at 0. Publishing 0 has no loss."""
    return wb.FiniteQuery(range(n + 1), max_shift=1, prior=[1] + [0] * n)


@pytest.mark.parametrize("notion", BUDGETS)
@pytest.mark.parametrize("scale", [1e-6, 1, 1e6])
def test_a_certain_answer_is_optimal_with_loss_0_in_any_unit(notion, scale):
    losses = [[0, scale], [scale, 0]]
    design = wb.design(make_certain_query(1), notion=notion, loss=losses, **BUDGETS[notion])
    assert (design.status, design.private) == ("optimal", True)
    assert 0 <= design.objective <= 2e-9 * scale


@pytest.mark.parametrize("notion", ["curve", "renyi"])
def test_a_certain_answer_among_many_is_optimal_with_loss_0(notion):
    largest_loss = 10**2
    design = wb.design(make_certain_query(10), notion=notion, loss="squared", **BUDGETS[notion])
    assert design.status == "optimal"
    assert 0 <= design.objective <= 2e-9 * largest_loss


def test_an_optimum_whose_bound_is_too_low_is_not_called_proven(monkeypatch: pytest.MonkeyPatch):
    def answer_with_low_bound(*arguments: Any):
        """Answer a request, and lower its bound."""
        answer = answer_by_routes(*arguments)
        return replace(answer, bound=answer.bound - 0.01)

    monkeypatch.setattr("workbench.pipeline.solve.answer_by_routes", answer_with_low_bound)
    query = wb.FiniteQuery(range(2), max_shift=1)
    message = r"proves only that the optimum lies between .* and "
    with pytest.raises(NotProven, match=message) as caught:
        wb.design(query, notion="renyi", loss="squared", **BUDGETS["renyi"])
    assert caught.value.incumbent - caught.value.bound == pytest.approx(0.01)


@pytest.mark.parametrize("delta", ["0.00001", "0.5", "0.99"])
@pytest.mark.parametrize("outputs", [None, "free"])
def test_an_optimum_below_the_tolerance_of_a_solver_is_found(delta: str, outputs: str | None):
    """At ε = 20 the optimum is about 3e-9: (1 - δ) times the loss of geometric noise."""
    count = wb.FiniteQuery(range(7), max_shift=1, outputs=outputs)
    design = wb.design(count, loss="squared", epsilon=20, delta=delta)
    # Each of the six pairs of neighbours is confused in both orders with probability 1/(e^20 + 1),
    # and the prior of an answer is 1/7.
    geometric_loss = 6 * 2 / 7 / (math.exp(20) + 1)
    assert design.objective == pytest.approx((1 - float(delta)) * geometric_loss, rel=1e-3)
    bound_tolerance = 1e-6 if outputs is None else 5e-3
    assert design.bound == pytest.approx(design.objective, rel=bound_tolerance)
    if design.objective - design.bound > 1e-6 * design.objective:
        assert "lies between" in design.words[-1]
