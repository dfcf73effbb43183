"""Test noise for many runs and a sensitivity above 1, proven at every shift."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import workbench as wb
from workbench.models.oracles.line_noise import staircase_integers
from workbench.privacy.composition import bound_composed_delta
from workbench.privacy.repair import bound_inverse_exponential


@pytest.fixture(scope="module")
def wide() -> wb.Design:
    return wb.design(wb.IntegerNoise(3), epsilon=3, delta="1e-3", runs=4, time_limit="300")


def test_composition_is_proven_and_loss_beats_the_split_budget(wide: wb.Design):
    assert bound_composed_delta(wide.mechanism, 4, Fraction(3)) <= Fraction(1, 1000)
    assert wide.details["composed"]["delta"] <= 1e-3
    assert wide.certificate is not None
    assert wide.certificate.composed.delta == wide.request.claim.delta
    pure = staircase_integers(bound_inverse_exponential(Fraction(3, 4)), 3, "squared")[0]
    assert wide.objective <= float(pure)
    assert wide.bound is None
    assert "none: not proven optimal among all designs for 4 runs" in str(wide)


def test_dp_accounting_agrees_at_every_shift(wide: wb.Design):
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    law = wide.mechanism.noise
    reach = 400
    window = np.array(
        [float(Fraction(weight) / law.total) for weight in law.weights_between(-reach, reach)]
    )
    assert abs(window.sum() - 1) < 1e-12
    for shift in (1, 2, 3, -3):
        p = {k: math.log(window[k + reach]) for k in range(-300, 301)}
        q = {k: math.log(window[k + shift + reach]) for k in range(-300, 301)}
        composed = pld.from_two_probability_mass_functions(
            p, q, pessimistic_estimate=False, value_discretization_interval=1e-4
        ).self_compose(4)
        assert composed.get_delta_for_epsilon(3.0) <= 1e-3


def test_published_noise_has_its_least_parameter(wide: wb.Design):
    """Each noise has its least parameter within the budget of all runs."""
    rows = wide.family.extra_json(wide)["beside"]
    assert {*rows} == {"geometric", "discrete Gaussian"}
    assert wide.objective <= min(rows.values()) * (1 + 1e-4)
    eta = np.arange(-150, 151)
    for name, exponents in (("geometric", abs(eta)), ("discrete Gaussian", eta**2 / 5)):
        low, high = 0.01, 1.0
        for _ in range(30):
            middle = math.sqrt(low * high)
            worst = max(four_runs(middle * exponents, shift) for shift in (1, 2, 3))
            low, high = (middle, high) if worst <= 1e-3 else (low, middle)
        law = np.exp(-low * exponents)
        assert rows[name] == pytest.approx(law @ eta**2 / law.sum(), rel=2e-3)


def four_runs(exponents: np.ndarray, shift: int) -> float:
    """Compute δ at ε = 3 of the noise exp(-exponents) and a shift, with losses in steps of 1e-3."""
    law = np.exp(-exponents) / np.exp(-exponents).sum()
    kept = law[shift:] > 1e-14
    places = np.rint((exponents[:-shift] - exponents[shift:])[kept] / 1e-3).astype(int)
    once = np.bincount(places - places.min(), law[shift:][kept])
    four = np.fft.irfft(np.fft.rfft(once, 1 << 17) ** 4, 1 << 17)
    total = (np.arange(1 << 17) + 4 * places.min()) * 1e-3
    return float(four @ np.maximum(0.0, -np.expm1(np.minimum(0.0, 3 - total))))


def test_time_limit_returns_proven_noise():
    short = wb.design(wb.IntegerNoise(3), epsilon=3, delta="1e-3", runs=4, time_limit="0.001")
    assert "stopped at its time limit" in str(short)
    assert (short.status, short.private) == ("found", True)
    split, _ = staircase_integers(bound_inverse_exponential(Fraction(3, 4)), 3, "squared")
    assert short.objective <= float(split)


def test_large_sensitivity_and_clamping_raise():
    with pytest.raises(
        wb.InvalidRequest, match=r"sensitivity must be at most 32 for more than 1 run\. Got 33\."
    ):
        wb.design(wb.IntegerNoise(33), epsilon=3, delta="1e-3", runs=4)
    with pytest.raises(wb.InvalidRequest, match="runs must be 1, except for noise on all integers"):
        wb.design(wb.IntegerNoise(1, (0, 9)), epsilon=3, delta="1e-3", runs=4)
