"""Test noise for 4 runs and sensitivity 3, at ε = 3 and δ = 0.001 for all runs together."""

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
    """Return the design that most tests of this file examine."""
    return wb.design(wb.IntegerNoise(3), epsilon=3, delta="1e-3", runs=4, time_limit="300")


def test_composition_is_proven_and_loss_beats_the_split_budget(wide: wb.Design):
    assert bound_composed_delta(wide.mechanism, times=4, epsilon=Fraction(3)) <= Fraction(1, 1000)
    assert wide.details["composed"]["delta"] <= 1e-3
    assert wide.certificate is not None
    assert wide.certificate.composed.delta == wide.request.claim.delta
    assert wide.objective <= compute_staircase_loss()


def compute_staircase_loss() -> float:
    """Compute the loss of the staircase at ε = 3/4, whose ε adds up to 3 in 4 runs."""
    return float(
        staircase_integers(
            bound_inverse_exponential(Fraction(3, 4)), sensitivity=3, loss="squared"
        )[0]
    )


def test_no_lower_bound_is_claimed(wide: wb.Design):
    assert wide.bound is None
    assert "none: not proven optimal among all designs for 4 runs" in str(wide)


def test_dp_accounting_confirms_the_delta_of_4_runs_at_every_shift(wide: wb.Design):
    """The package dp_accounting composes the privacy losses of 4 runs on a grid of 1e-4."""
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    law = wide.mechanism.noise
    reach = 400  # The noise values from -400 to 400 have almost all of the mass.
    window = np.array(
        [float(Fraction(weight) / law.total) for weight in law.weights_between(-reach, reach)]
    )
    assert abs(window.sum() - 1) < 1e-12
    for shift in (1, 2, 3, -3):
        # Position k + reach of the window has the mass of the noise value k.
        log_p = {k: math.log(window[k + reach]) for k in range(-300, 301)}
        log_q = {k: math.log(window[k + shift + reach]) for k in range(-300, 301)}
        composed = pld.from_two_probability_mass_functions(
            log_p, log_q, pessimistic_estimate=False, value_discretization_interval=1e-4
        ).self_compose(4)
        assert composed.get_delta_for_epsilon(3.0) <= 1e-3


def read_published_losses(design: wb.Design) -> dict[str, float]:
    """Return the expected loss of each published mechanism, which the JSON of a design contains."""
    losses: dict[str, float] = design.family.extra_json(design)["beside"]
    return losses


@pytest.mark.parametrize("name", ["geometric", "discrete Gaussian"])
def test_published_noise_has_the_least_private_width(wide: wb.Design, name: str):
    """Find the largest private steepness by bisection of `compute_delta_of_4_runs`.

    Noise with this steepness has the loss that the design shows for the published mechanism.
    """
    eta = np.arange(-150, 151)
    # Masses are proportional to e^(-steepness * exponent). The 5 puts both kinds of noise into the
    # interval of the bisection.
    exponents = np.abs(eta) if name == "geometric" else eta**2 / 5
    private_steepness = 0.01
    too_large_steepness = 1.0
    for _ in range(30):
        steepness = math.sqrt(private_steepness * too_large_steepness)
        deltas = [compute_delta_of_4_runs(steepness * exponents, shift) for shift in (1, 2, 3)]
        if max(deltas) <= 1e-3:
            private_steepness = steepness
        else:
            too_large_steepness = steepness
    masses = np.exp(-private_steepness * exponents)
    expected_loss = masses @ eta**2 / masses.sum()
    published_losses = read_published_losses(wide)
    assert published_losses[name] == pytest.approx(expected_loss, rel=2e-3)


def test_the_design_is_at_least_as_good_as_published_noise(wide: wb.Design):
    published_losses = read_published_losses(wide)
    assert {*published_losses} == {"geometric", "discrete Gaussian"}
    assert wide.objective <= min(published_losses.values()) * (1 + 1e-4)


def compute_delta_of_4_runs(exponents: np.ndarray, shift: int) -> float:
    """Compute the δ at ε = 3 of four runs by FFT, with privacy losses rounded to 1e-3.

    Args:
        exponents: the negative log masses of the noise values, up to a constant. Shape (n,).
        shift: the difference of the two neighbours, > 0.
    """
    masses = np.exp(-exponents)
    masses /= masses.sum()
    is_used = masses[shift:] > 1e-14
    privacy_losses = (exponents[:-shift] - exponents[shift:])[is_used]
    steps = np.rint(privacy_losses / 1e-3).astype(int)
    law_of_one_run = np.bincount(steps - steps.min(), masses[shift:][is_used])
    size = 1 << 17
    law_of_4_runs = np.fft.irfft(np.fft.rfft(law_of_one_run, size) ** 4, size)
    total_losses = (np.arange(size) + 4 * steps.min()) * 1e-3
    excesses = np.maximum(0.0, -np.expm1(np.minimum(0.0, 3 - total_losses)))
    return float(law_of_4_runs @ excesses)


def test_time_limit_returns_proven_noise():
    stopped = wb.design(wb.IntegerNoise(3), epsilon=3, delta="1e-3", runs=4, time_limit="0.001")
    assert "stopped at its time limit" in str(stopped)
    assert (stopped.status, stopped.private) == ("found", True)
    assert stopped.objective <= compute_staircase_loss()


def test_large_sensitivity_and_clamping_raise():
    with pytest.raises(
        wb.InvalidRequest, match=r"sensitivity must be at most 32 for more than 1 run\. Got 33\."
    ):
        wb.design(wb.IntegerNoise(33), epsilon=3, delta="1e-3", runs=4)
    with pytest.raises(wb.InvalidRequest, match="runs must be 1, except for noise on all integers"):
        wb.design(wb.IntegerNoise(1, (0, 9)), epsilon=3, delta="1e-3", runs=4)
