"""Test shadow prices of designs, and the neighbours and constraints that restrict a design.

The prices are the derivatives of the optimal loss in ε and δ. They are compared with differences of
the losses of two designs.
"""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

import workbench as wb
from workbench.cli import main

STEP = 1e-5  # The budgets of two designs that are compared differ by this.


def _design_loss(question: Any, epsilon: float, delta: float, **options: Any) -> float:
    """Return the expected loss of a design."""
    return float(wb.design(question, epsilon=epsilon, delta=delta, **options).objective)


@pytest.mark.parametrize(
    ("question", "epsilon", "delta", "loss"),
    [
        (wb.FiniteQuery("0..6", max_shift=1), 1.0, 0.05, "squared"),
        (wb.FiniteQuery("0..3", max_shift=3), 0.7, 0.1, "absolute"),
        (wb.ModuloNoise(8, max_shift=3), 1.5, 0.1, "error-rate"),
        (wb.ModuloNoise(6, max_shift=2), 0.5, 0.0, "circular-squared"),
    ],
)
def test_prices_equal_differences_of_the_losses_of_designs(
    question: Any, epsilon: float, delta: float, loss: str
) -> None:
    prices = wb.design(question, epsilon=epsilon, delta=delta, loss=loss).shadow_prices
    base_loss = _design_loss(question, epsilon, delta, loss=loss)
    for one_sided_prices, epsilon_step, delta_step in (
        (prices.epsilon, STEP, 0.0),
        (prices.delta, 0.0, STEP),
    ):
        below, above = one_sided_prices
        loss_above = _design_loss(question, epsilon + epsilon_step, delta + delta_step, loss=loss)
        assert above == pytest.approx((loss_above - base_loss) / STEP, rel=1e-3, abs=1e-6)
        if delta_step and not delta:
            assert below is None  # There is no δ below 0.
            continue
        loss_below = _design_loss(question, epsilon - epsilon_step, delta - delta_step, loss=loss)
        assert below == pytest.approx((base_loss - loss_below) / STEP, rel=1e-3, abs=1e-6)


def test_the_prices_from_below_and_above_differ_where_two_formulas_meet() -> None:
    """At δ = 1/(x + 2), x = e^ε: (4x + 2 - (6x + 4) δ)/(3x(x + 1)) below, 4(1 - δ)/(3x + 3) above."""
    x = math.e
    design = wb.design(
        wb.FiniteQuery("0..2", max_shift=1), epsilon=1, delta=repr(1 / (x + 2)), loss="absolute"
    )
    below, above = design.shadow_prices.delta
    assert below == pytest.approx(-(6 * x + 4) / (3 * x * (x + 1)), rel=1e-9)
    assert above == pytest.approx(-4 / (3 * x + 3), rel=1e-9)
    assert "from below" in str(design.shadow_prices)


def test_the_neighbours_that_use_up_the_budget_are_named() -> None:
    query = wb.FiniteQuery("0..3", neighbours=[(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)])
    design = wb.design(query, epsilon=1, delta="0.01", loss="absolute")
    prices = design.shadow_prices
    assert prices.comparison_count == 6
    assert set(prices.binding) == {(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)}
    assert "6 of 6 comparisons use up the budget to a billionth: 0 to 1, 1 to 0" in str(prices)
    named = wb.design(
        wb.FiniteQuery(["a", "b"], neighbours="all"), epsilon=1, loss="error-rate"
    ).shadow_prices
    assert named.to_dict()["names"] == ["a to b", "b to a"]


def _limit_masses(limit: float) -> Any:
    """Return constraints M[1,1] <= limit and M[0,0] <= 0.99, with labels.

    The labels start like the names of rows of the model ("most", "ratio_0"), which is allowed.
    """
    return lambda M: [
        (M[1, 1] <= limit).set_label("most of 1"),
        (M[0, 0] <= 0.99).set_label("ratio_0"),
    ]


def test_constraints_have_the_price_of_a_larger_limit() -> None:
    """The price of M[1,1] <= limit is the difference of the losses of designs with two limits."""
    query = wb.FiniteQuery("0..3", max_shift=1)
    first_limit = 0.4
    step = 1e-4
    losses = []
    for limit in (first_limit, first_limit + step):
        constraints = ["row-monotone", _limit_masses(limit)]
        design = wb.design(query, epsilon=1, delta="0.05", loss="squared", constraints=constraints)
        losses.append(design.objective)
        prices = design.shadow_prices
    binding, rows, price = prices.constraints["most of 1"]
    assert (binding, rows) == (1, 1)
    assert price == pytest.approx((losses[0] - losses[1]) / step, rel=1e-3)
    assert prices.constraints["ratio_0"][:2] == (0, 1)
    assert prices.constraints["row-monotone"][:2] == (0, 12)
    assert "most of 1 restricts the design" in str(prices)
    assert "ratio_0 does not restrict the design" in str(prices)
    assert prices.to_dict()["constraints"]["most of 1"]["rows"] == 1


def test_the_constraint_of_mean_zero_restricts_noise() -> None:
    noise = wb.design(
        wb.ModuloNoise(6, max_shift=1), loss="eta-squared", epsilon=1, zero_mean=True
    ).shadow_prices
    assert noise.constraints["mean zero"][:2] == (1, 1)
    assert not wb.design(wb.ModuloNoise(6, max_shift=1), epsilon=1).shadow_prices.constraints


def test_designs_without_a_formula_have_a_note_and_no_prices() -> None:
    prices = wb.design(wb.IntegerNoise(1), epsilon=1, delta="0.01", loss="absolute").shadow_prices
    assert (prices.epsilon, prices.delta) == (None, None)
    assert "has no formula" in str(prices)
    assert set(prices.binding) == {(1,), (-1,)}
    zcdp_design = wb.design(
        wb.FiniteQuery("0..2", max_shift=1), notion="zcdp", rho="0.1", loss="absolute"
    )
    assert "zcdp is no linear constraint" in str(zcdp_design.shadow_prices)
    assert zcdp_design.unique is None


def test_a_design_states_whether_it_is_the_only_optimum() -> None:
    """Modulo 2 the optimal law is unique; if two outputs have the same loss, it is not."""
    assert wb.design(wb.ModuloNoise(2, max_shift=1), epsilon=1, loss="error-rate").unique is True
    # Outputs 1 and 2 have the same loss, so their mass may be divided in any way.
    loss = [[0, 1, 1], [1, 0, 0]]
    query = wb.FiniteQuery("0..1", max_shift=1, outputs="0..2")
    design = wb.design(query, epsilon=1, loss=loss)
    assert design.unique is False
    assert design.objective == pytest.approx(1 / (1 + math.e), abs=1e-9)


def test_the_command_prints_prices(capsys: pytest.CaptureFixture[str]) -> None:
    line = "design modulo --n 6 --max-shift 2 --epsilon 1 --delta 0.05 --prices"
    arguments = line.split()
    with pytest.raises(SystemExit) as stop:
        main([*arguments, "--json"])
    record = json.loads(capsys.readouterr().out)
    assert not stop.value.code
    assert record["unique"] is True
    assert record["shadow_prices"]["binding"] == [[1], [2], [5], [6]]
    with pytest.raises(SystemExit):
        main(arguments)
    printed = " ".join(capsys.readouterr().out.split())
    price = record["shadow_prices"]["delta"][0]
    assert f"one unit of delta changes the optimum by {price:.9g}" in printed
    assert "No other mechanism of the class is optimal" in printed
