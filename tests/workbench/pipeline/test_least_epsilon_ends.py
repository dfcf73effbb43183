"""The least ε of clamped noise of wide reach: the search begins where budgets are too steep, and ends in digits."""

from __future__ import annotations

import pytest

import workbench as wb

WIDE = wb.IntegerNoise(4, (0, 4))


def test_steep_budgets_have_a_certified_mechanism_and_no_negative_bound():
    made = wb.design(WIDE, epsilon=20, delta="0.1", loss="squared")
    assert made.private
    assert made.certificate is not None
    assert 0 <= made.bound <= made.objective < 1e-6


def test_the_least_epsilon_is_bracketed():
    made = wb.design(WIDE, minimise="epsilon", max_loss="3.36", delta="0.1", loss="squared")
    assert made.objective * (1 - 1e-6) < made.bound <= made.objective
    assert wb.design(
        WIDE, epsilon=made.objective, delta="0.1", loss="squared"
    ).objective == pytest.approx(3.36)
    assert wb.design(WIDE, epsilon=made.objective - 1e-6, delta="0.1", loss="squared").bound > 3.36
