"""Test shadow prices: derivatives compared with differences of designs, and binding neighbours."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

import workbench as wb
from workbench.cli import main

STEP = 1e-5


def _loss(question: Any, epsilon: float, delta: float, **more: Any) -> float:
    return float(wb.design(question, epsilon=epsilon, delta=delta, **more).objective)


@pytest.mark.parametrize(
    ("question", "epsilon", "delta", "loss"),
    [
        (wb.FiniteQuery("0..6", max_shift=1), 1.0, 0.05, "squared"),
        (wb.FiniteQuery("0..3", max_shift=3), 0.7, 0.1, "absolute"),
        (wb.ModuloNoise(8, max_shift=3), 1.5, 0.1, "error-rate"),
        (wb.ModuloNoise(6, max_shift=2), 0.5, 0.0, "circular-squared"),
    ],
)
def test_prices_are_what_nearby_designs_cost(
    question: Any, epsilon: float, delta: float, loss: str
) -> None:
    prices = wb.design(question, epsilon=epsilon, delta=delta, loss=loss).shadow_prices
    here = _loss(question, epsilon, delta, loss=loss)
    for sides, at in ((prices.epsilon, (STEP, 0.0)), (prices.delta, (0.0, STEP))):
        below, above = sides
        after = _loss(question, epsilon + at[0], delta + at[1], loss=loss)
        assert above == pytest.approx((after - here) / STEP, rel=1e-3, abs=1e-6)
        if at[1] and not delta:
            assert below is None
        else:
            before = _loss(question, epsilon - at[0], delta - at[1], loss=loss)
            assert below == pytest.approx((here - before) / STEP, rel=1e-3, abs=1e-6)


def test_the_sides_differ_where_two_formulas_meet() -> None:
    """At δ = 1/(x + 2), x = e^ε: (4x + 2 - (6x + 4) δ)/(3x(x + 1)) below, 4(1 - δ)/(3x + 3) above."""
    x = math.e
    design = wb.design(
        wb.FiniteQuery("0..2", max_shift=1), epsilon=1, delta=repr(1 / (x + 2)), loss="absolute"
    )
    below, above = design.shadow_prices.delta
    assert below == pytest.approx(-(6 * x + 4) / (3 * x * (x + 1)), rel=1e-9)
    assert above == pytest.approx(-4 / (3 * x + 3), rel=1e-9)
    assert "from below" in str(design.shadow_prices)


def test_the_neighbours_that_decide_are_named() -> None:
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


def _capped(limit: float) -> Any:
    """Labels of constraints may start like names of the model's rows."""
    return lambda M: [
        (M[1, 1] <= limit).set_label("most of 1"),
        (M[0, 0] <= 0.99).set_label("ratio_0"),
    ]


def test_constraints_decide_by_name_with_their_price() -> None:
    """The price of a cap is the difference of losses of designs with other caps."""
    query = wb.FiniteQuery("0..3", max_shift=1)
    cap, step = 0.4, 1e-4
    costs = []
    for limit in (cap, cap + step):
        constraints = ["row-monotone", _capped(limit)]
        design = wb.design(query, epsilon=1, delta="0.05", loss="squared", constraints=constraints)
        costs.append(design.objective)
        prices = design.shadow_prices
    binding, rows, price = prices.constraints["most of 1"]
    assert (binding, rows) == (1, 1)
    assert price == pytest.approx((costs[0] - costs[1]) / step, rel=1e-3)
    assert prices.constraints["ratio_0"][:2] == (0, 1)
    assert prices.constraints["row-monotone"][:2] == (0, 12)
    assert "the constraint most of 1 restricts the design, one unit changes the optimum by" in str(
        prices
    )
    assert "the constraint ratio_0 does not restrict the design" in str(prices)
    assert prices.to_dict()["constraints"]["most of 1"]["rows"] == 1
    noise = wb.design(
        wb.ModuloNoise(6, max_shift=1), loss="eta-squared", epsilon=1, zero_mean=True
    ).shadow_prices
    assert noise.constraints["mean zero"][:2] == (1, 1)
    assert not wb.design(wb.ModuloNoise(6, max_shift=1), epsilon=1).shadow_prices.constraints


def test_what_has_no_formula_says_why() -> None:
    prices = wb.design(wb.IntegerNoise(1), epsilon=1, delta="0.01", loss="absolute").shadow_prices
    assert (prices.epsilon, prices.delta) == (None, None)
    assert "has no formula" in str(prices)
    assert set(prices.binding) == {(1,), (-1,)}
    curved = wb.design(
        wb.FiniteQuery("0..2", max_shift=1), notion="zcdp", rho="0.1", loss="absolute"
    )
    assert "zcdp is no linear constraint" in str(curved.shadow_prices)
    assert curved.unique is None


def test_an_optimum_is_known_to_be_the_only_one_or_not() -> None:
    """Modulo 2 the optimal law is unique; if two outputs have the same loss, it is not."""
    assert wb.design(wb.ModuloNoise(2, max_shift=1), epsilon=1, loss="error-rate").unique is True
    loss = [
        [0, 1, 1],
        [1, 0, 0],
    ]  # Outputs 1 and 2 have the same loss, so their mass may be divided in any way.
    query = wb.FiniteQuery("0..1", max_shift=1, outputs="0..2")
    shared = wb.design(query, epsilon=1, loss=loss)
    assert shared.unique is False
    assert shared.objective == pytest.approx(1 / (1 + math.e), abs=1e-9)


def test_the_command_says_them(capsys: pytest.CaptureFixture[str]) -> None:
    line = [
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
        main([*line, "--json"])
    made = json.loads(capsys.readouterr().out)
    assert not stop.value.code
    assert made["unique"] is True
    assert made["shadow_prices"]["binding"] == [[1], [2], [5], [6]]
    with pytest.raises(SystemExit):
        main(line)
    printed = " ".join(capsys.readouterr().out.split())
    assert (
        f"one unit of delta changes the optimum by {made['shadow_prices']['delta'][0]:.9g}"
        in printed
    )
    assert "No other mechanism of the class is optimal" in printed
