"""Channels under convex notions whose optimum is 0, which no relative gap proves."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

import workbench as wb
from workbench.errors import NotProven
from workbench.pipeline.routes import answer_by_routes

BUDGETS = {
    "curve": {"curve": "0.5:0.1,1:0.01"},
    "renyi": {"alpha": 2, "epsilon": "0.5"},
    "zcdp": {"rho": "0.1"},
    "gdp": {"mu": 1},
}


def question(n: int) -> wb.FiniteQuery:
    return wb.FiniteQuery(range(n + 1), max_shift=1, prior=[1] + [0] * n)


@pytest.mark.parametrize("notion", BUDGETS)
@pytest.mark.parametrize("scale", [1e-6, 1, 1e6])
def test_one_certain_answer_costs_nothing_in_any_unit(notion, scale):
    losses = [[0, scale], [scale, 0]]
    made = wb.design(question(1), notion=notion, loss=losses, **BUDGETS[notion])
    assert (made.status, made.private) == ("optimal", True)
    assert 0 <= made.objective <= 2e-9 * scale


@pytest.mark.parametrize("notion", ["curve", "renyi"])
def test_a_bound_next_to_nothing_proves_it(notion):
    made = wb.design(question(10), notion=notion, loss="squared", **BUDGETS[notion])
    assert made.status == "optimal"
    assert 0 <= made.objective <= 2e-9 * 100


def test_a_small_optimum_is_not_taken_for_nothing(monkeypatch: pytest.MonkeyPatch):
    """Of a bound that is too low by more than rounding, the sentence says between what the optimum lies."""

    def answer_with_low_bound(*given: Any):
        answer = answer_by_routes(*given)
        return replace(answer, bound=answer.bound - 0.01)

    monkeypatch.setattr("workbench.pipeline.solve.answer_by_routes", answer_with_low_bound)
    with pytest.raises(
        NotProven, match=r"proves only that the optimum lies between .* and "
    ) as caught:
        wb.design(
            wb.FiniteQuery(range(2), max_shift=1),
            notion="renyi",
            loss="squared",
            **BUDGETS["renyi"],
        )
    assert caught.value.incumbent - caught.value.bound == pytest.approx(0.01)


@pytest.mark.parametrize("delta", ["0.00001", "0.5", "0.99"])
@pytest.mark.parametrize("outputs", [None, "free"])
def test_an_optimum_below_a_solvers_tolerance_is_found(delta: str, outputs: str | None):
    """δ = 1/2 halves what geometric noise costs, and .99 leaves a hundredth of it: multipliers of 1e-9 decide that."""
    count = wb.FiniteQuery(range(7), max_shift=1, outputs=outputs)
    made = wb.design(count, loss="squared", epsilon=20, delta=delta)
    geometric = (
        12 / 7 / (math.exp(20) + 1)
    )  # six neighbours on either side, uniform over seven answers
    assert made.objective == pytest.approx((1 - float(delta)) * geometric, rel=1e-3)
    assert made.bound == pytest.approx(made.objective, rel=1e-6 if outputs is None else 5e-3)
    if made.objective - made.bound > 1e-6 * made.objective:
        assert "lies between" in made.words[-1]
