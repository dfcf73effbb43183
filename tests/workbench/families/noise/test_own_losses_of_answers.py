"""Test user-defined losses, as functions and lists, against named losses under every notion."""

from __future__ import annotations

from typing import Any

import pytest

import workbench as wb

CLAMPED = wb.IntegerNoise(1, clamp=(0, 6))
BUDGETS: list[dict[str, Any]] = [
    {"epsilon": 1},
    {"epsilon": 1, "delta": "0.01"},
    {"notion": "zcdp", "rho": "0.1"},
    {"notion": "gdp", "mu": 1},
    {"notion": "renyi", "alpha": 2, "epsilon": "0.5"},
    {"notion": "tradeoff", "tradeoff": "0:1,0.2:0.5,1:0"},
]


@pytest.mark.parametrize("budget", BUDGETS)
def test_function_and_list_equal_the_named_loss(budget: dict[str, Any]) -> None:
    """The absolute loss as a function of published minus true answer, and as a list by distance."""
    named = wb.design(CLAMPED, loss="absolute", **budget)
    for loss in (abs, list(range(7))):
        design = wb.design(CLAMPED, loss=loss, **budget)
        assert design.objective == pytest.approx(named.objective, rel=1e-6)
        assert design.bound <= named.objective * (1 + 1e-12)
        assert design.certificate is not None


@pytest.mark.parametrize("budget", [{"notion": "zcdp", "rho": "0.5"}, {"notion": "gdp", "mu": 1}])
def test_list_of_losses_of_noise_with_infinite_support(budget: dict[str, Any]) -> None:
    """The list has the loss min(|η|, 40). Masses beyond 40 do not change the first twelve digits."""
    named = wb.design(wb.IntegerNoise(1), loss="absolute", **budget)
    design = wb.design(wb.IntegerNoise(1), loss=[min(k, 40) for k in range(42)], **budget)
    assert design.objective == pytest.approx(named.objective, rel=1e-7)
    assert design.bound <= named.objective * (1 + 1e-12)


def test_asymmetric_function_equals_the_pinball_loss() -> None:
    """pinball:0.25 is 3/4 of errors above 0 and 1/4 of errors below 0."""
    by_function = wb.design(CLAMPED, loss=lambda e: 3 * e if e > 0 else -e, epsilon=1)
    pinball = wb.design(CLAMPED, loss="pinball:0.25", epsilon=1)
    assert by_function.objective == pytest.approx(4 * pinball.objective, rel=1e-7)


def test_loss_function_may_decrease() -> None:
    design = wb.design(CLAMPED, loss=lambda e: 7 - abs(e) if e else 0, epsilon=1)
    assert design.bound <= design.objective <= design.bound + 1e-7


@pytest.mark.parametrize(
    ("question", "loss", "message"),
    [
        (wb.IntegerNoise(1), abs, "a function is allowed for clamped integers"),
        (wb.RealNoise(1, clamp=(0, 6)), abs, "a function is allowed for clamped integers"),
        (CLAMPED, lambda e: -1, r"loss\(6, 0\) must be a finite number >= 0. Got -1"),
        (CLAMPED, lambda e: "x" if e == -6 else abs(e), "must be a finite number"),
        (
            CLAMPED,
            lambda e: 1 // 0,
            "a function of published minus true answer. Got ZeroDivisionError",
        ),
    ],
)
def test_invalid_loss_functions_raise(question: Any, loss: Any, message: str) -> None:
    with pytest.raises(wb.InvalidRequest, match=message):
        wb.design(question, loss=loss, epsilon=1)
