"""Test shadow prices of designs, and the neighbours and constraints that restrict a design.

The prices are the derivatives of the optimal loss in ε and δ, from below and from above. They are
compared with differences of the losses of two designs. A constraint restricts a design if a larger
limit has a smaller loss. x is e^ε.
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


def test_neighbours_are_named_by_their_answers() -> None:
    query = wb.FiniteQuery(["a", "b"], neighbours="all")
    prices = wb.design(query, epsilon=1, loss="error-rate").shadow_prices
    assert prices.to_dict()["names"] == ["a to b", "b to a"]


def _limit_masses(limit: float) -> Any:
    """Return constraints M[1,1] <= limit and M[0,0] <= 0.99, with labels.

    The labels start like the names of rows of the model ("most", "ratio_0"), which is allowed.
    """
    return lambda M: [
        (M[1, 1] <= limit).set_label("most of 1"),
        (M[0, 0] <= 0.99).set_label("ratio_0"),
    ]


def _design_with_limit(limit: float) -> Any:
    """Design a channel with the constraints of `_limit_masses`, and with monotone rows."""
    return wb.design(
        wb.FiniteQuery("0..3", max_shift=1),
        epsilon=1,
        delta="0.05",
        loss="squared",
        constraints=["row-monotone", _limit_masses(limit)],
    )


def test_a_constraint_has_the_price_of_a_larger_limit() -> None:
    """The price of M[1,1] <= limit is the difference of the losses of designs with two limits."""
    step = 1e-4
    design = _design_with_limit(0.4)
    relaxed_design = _design_with_limit(0.4 + step)
    _, _, price = design.shadow_prices.constraints["most of 1"]
    expected_price = (design.objective - relaxed_design.objective) / step
    assert price == pytest.approx(expected_price, rel=1e-3)


def test_the_rows_of_a_constraint_that_restrict_a_design_are_counted() -> None:
    """The first two entries are the number of rows that restrict the design, and of all rows."""
    constraints = _design_with_limit(0.4).shadow_prices.constraints
    assert constraints["most of 1"][:2] == (1, 1)
    assert constraints["ratio_0"][:2] == (0, 1)
    assert constraints["row-monotone"][:2] == (0, 12)


def test_the_text_and_the_record_of_prices_name_the_constraints() -> None:
    prices = _design_with_limit(0.4).shadow_prices
    assert "most of 1 restricts the design" in str(prices)
    assert "ratio_0 does not restrict the design" in str(prices)
    assert prices.to_dict()["constraints"]["most of 1"]["rows"] == 1


def test_the_constraint_of_mean_zero_restricts_noise() -> None:
    question = wb.ModuloNoise(n=6, max_shift=1)
    design = wb.design(question, loss="eta-squared", epsilon=1, zero_mean=True)
    assert design.shadow_prices.constraints["mean zero"][:2] == (1, 1)


def test_a_design_without_constraints_has_no_prices_of_constraints() -> None:
    design = wb.design(wb.ModuloNoise(n=6, max_shift=1), epsilon=1)
    assert not design.shadow_prices.constraints


def test_designs_without_a_formula_have_a_note_and_no_prices() -> None:
    prices = wb.design(wb.IntegerNoise(1), epsilon=1, delta="0.01", loss="absolute").shadow_prices
    assert (prices.epsilon, prices.delta) == (None, None)
    assert "has no formula" in str(prices)
    assert set(prices.binding) == {(1,), (-1,)}


def test_a_design_under_zcdp_has_a_note_in_place_of_prices() -> None:
    query = wb.FiniteQuery("0..2", max_shift=1)
    design = wb.design(query, notion="zcdp", rho="0.1", loss="absolute")
    assert "zcdp is no linear constraint" in str(design.shadow_prices)
    assert design.unique is None


def test_a_design_states_that_it_is_the_only_optimum() -> None:
    design = wb.design(wb.ModuloNoise(n=2, max_shift=1), epsilon=1, loss="error-rate")
    assert design.unique is True


def test_a_design_states_that_it_is_not_the_only_optimum() -> None:
    """Outputs 1 and 2 have the same loss, so their mass may be divided in any way.

    The loss is the one of randomized response.
    """
    query = wb.FiniteQuery("0..1", max_shift=1, outputs="0..2")
    design = wb.design(query, epsilon=1, loss=[[0, 1, 1], [1, 0, 0]])
    assert design.unique is False
    assert design.objective == pytest.approx(1 / (1 + math.e), abs=1e-9)


def test_the_command_prints_prices(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "design",
        "modulo",
        "--n",
        "6",
        "--max-shift",
        "2",
        "--epsilon",
        "1",
        "--delta",
        "0.05",
        "--prices",
    ]
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
