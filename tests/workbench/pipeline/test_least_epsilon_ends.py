"""Test clamped noise whose sensitivity is the whole range 0..4, at large ε and at the minimal ε."""

from __future__ import annotations

import pytest

import workbench as wb

WIDE = wb.IntegerNoise(sensitivity=4, clamp=(0, 4))


def test_a_large_epsilon_has_a_certified_mechanism_and_no_negative_bound():
    design = wb.design(WIDE, epsilon=20, delta="0.1", loss="squared")
    assert design.private
    assert design.certificate is not None
    assert 0 <= design.bound <= design.objective < 1e-6


def test_the_minimal_epsilon_reaches_the_loss_limit_and_a_smaller_one_does_not():
    options = {"delta": "0.1", "loss": "squared"}
    optimum = wb.design(WIDE, minimise="epsilon", max_loss="3.36", **options)
    min_epsilon = optimum.objective
    assert min_epsilon * (1 - 1e-6) < optimum.bound <= min_epsilon
    design_at_minimum = wb.design(WIDE, epsilon=min_epsilon, **options)
    assert design_at_minimum.objective == pytest.approx(3.36)
    design_below_minimum = wb.design(WIDE, epsilon=min_epsilon - 1e-6, **options)
    assert design_below_minimum.bound > 3.36
