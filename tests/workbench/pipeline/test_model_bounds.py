"""Test that the limits of model bounds are never below the exact limits of the requirements.

A requirement of a notion has exact numbers. A model bound has floats, for a program. They are
rounded so that every private mechanism stays feasible.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest

from workbench.models.convex.requirements import HOCKEY_STICK, POWER_CONE
from workbench.notions import HockeyStick, PowerCone, get_notion
from workbench.pipeline.requirements import to_model_bound


def is_at_least_exp(value: float, exponent: Fraction) -> bool:
    """Return whether a float is at least e^exponent, which is computed to 60 digits."""
    with localcontext(prec=60):
        power = (Decimal(exponent.numerator) / exponent.denominator).exp()
        return Decimal(value) >= power * (1 - Decimal("1e-50"))


@pytest.mark.parametrize("rho", ["0.01", "0.5", "5"])
@pytest.mark.parametrize("log_excess", [-3.9, -1.234, 0.77, 2.5])
def test_the_limit_of_a_renyi_order_is_rounded_up(rho: str, log_excess: float) -> None:
    """The parameter `log_excess` is ln(α - 1) of the order α."""
    budget = {"rho": Fraction(rho)}
    search_range = get_notion("zcdp").requirement_range(budget)
    assert search_range is not None
    low, high, make_requirement = search_range
    requirement = make_requirement(min(max(log_excess, low), high))
    assert isinstance(requirement, PowerCone)
    bound = to_model_bound(requirement)
    # The level of a power cone is the order; that of a hockey stick is e^ε.
    order = Fraction(bound.level)
    assert order <= requirement.alpha
    # D_α(P, Q) <= exponent / (α - 1) also holds for the rounded order, which is not larger.
    exponent = requirement.exponent * (order - 1) / (requirement.alpha - 1)
    assert is_at_least_exp(bound.limit, exponent)
    assert bound.limit <= math.exp(exponent) * (1 + 1e-12)


def test_an_order_that_is_no_float_is_rounded_down() -> None:
    bound = to_model_bound(PowerCone(Fraction("100.3"), Fraction(3)))
    assert bound.kind == POWER_CONE
    assert Fraction(bound.level) < Fraction("100.3") < Fraction(math.nextafter(bound.level, 200))


@pytest.mark.parametrize("epsilon", ["0.1", "1", "10.3", "33.3"])
def test_the_level_of_a_hockey_stick_is_rounded_up(epsilon: str) -> None:
    bound = to_model_bound(HockeyStick(Fraction(epsilon), Fraction(1, 100)))
    assert bound.kind == HOCKEY_STICK
    assert is_at_least_exp(bound.level, Fraction(epsilon))
