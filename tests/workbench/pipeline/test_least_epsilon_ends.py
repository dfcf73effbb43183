"""Design clamped noise whose sensitivity is the whole range 0..4, at large ε and at the minimal ε."""

from __future__ import annotations

import pytest

import workbench as wb

WIDE = wb.IntegerNoise(4, (0, 4))


def test_a_large_epsilon_has_a_certified_mechanism_and_no_negative_bound():
    design = wb.design(WIDE, epsilon=20, delta="0.1", loss="squared")
    assert design.private
    assert design.certificate is not None
    assert 0 <= design.bound <= design.objective < 1e-6


def test_the_minimal_epsilon_reaches_the_loss_limit_and_a_smaller_one_does_not():
    options = {"delta": "0.1", "loss": "squared"}
    optimum = wb.design(WIDE, minimise="epsilon", max_loss="3.36", **options)
    least_epsilon = optimum.objective
    assert least_epsilon * (1 - 1e-6) < optimum.bound <= least_epsilon
    at_least_epsilon = wb.design(WIDE, epsilon=least_epsilon, **options)
    assert at_least_epsilon.objective == pytest.approx(3.36)
    below_least_epsilon = wb.design(WIDE, epsilon=least_epsilon - 1e-6, **options)
    assert below_least_epsilon.bound > 3.36
