"""Test noise on labels: losses against integrals, exact laws on integers, and samples.

`LabelNoise` is continuous noise (Laplace or staircase) that can be clipped to the range of labels.
`make_lattice_noise` is noise on integer labels, in exact numbers.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy import integrate, optimize

from workbench.mechanisms.channel import Channel
from workbench.mechanisms.label_randomizers import label_noise
from workbench.mechanisms.label_randomizers.label_noise import NOISE_KINDS, LabelNoise
from workbench.mechanisms.real_noise import best_gamma
from workbench.models.losses import parse_loss
from workbench.papers.label_dp.curves import compute_lattice_noise_mse
from workbench.papers.label_dp.lattice import make_lattice_noise
from workbench.privacy.audit import audit
from workbench.questions.labels import Labels

SQUARED = parse_loss("squared")


def are_counts_close(counts: np.ndarray, probabilities: np.ndarray, size: int) -> bool:
    """Check whether all counts of `size` draws are within 5 standard deviations of their mean."""
    deviations = np.sqrt(size * probabilities * (1 - probabilities))
    return bool((np.abs(counts - size * probabilities) <= 5 * deviations + 1e-9).all())


# Continuous noise.


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 5.0])
@pytest.mark.parametrize("kind", label_noise.NOISE_KINDS)
@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_continuous_losses_are_the_integrals_of_their_law(kind, epsilon, loss):
    noise = LabelNoise(kind, low=-2, high=6, epsilon=epsilon, loss=loss)
    power = 2 if loss == "squared" else 1
    for y in (-2.0, -0.5, 3.0, 6.0):

        def integrand(x: float, y: float = y) -> float:
            """Return the integrand of E|o-y|^p = ∫ p x^(p-1) Pr[|o-y| > x] dx."""
            below = float(noise.cdf(y, y - x - 1e-12)) if y - x >= noise.low else 0.0
            return power * x ** (power - 1) * (1 - float(noise.cdf(y, y + x)) + below)

        corners = [
            c for c in (y - noise.low, noise.high - y, (noise.gamma or 0.5) * 8) if 0 < c < 8
        ]
        value = integrate.quad(integrand, 0, 8, points=corners, limit=300)[0]
        assert noise.losses([y], loss)[0] == pytest.approx(value, rel=1e-6)


def test_clipped_laplace_noise_has_its_closed_form():
    """The mean squared error of the label 3 in the range 0..8, at ε = 2."""
    b = 8 / 2  # The scale is the range divided by ε.
    u = 3.0  # Distance to the lower end.
    v = 5.0  # Distance to the upper end.
    expected = 2 * b * b - math.exp(-u / b) * b * (b + u) - math.exp(-v / b) * b * (b + v)
    assert LabelNoise("laplace", low=0, high=8, epsilon=2).losses([3.0])[0] == pytest.approx(
        expected, rel=1e-14
    )


def test_stairs_of_large_epsilon_keep_their_digits():
    """At the middle label two stairs have all mass but e^(-2ε), so E|o - y| is a rational sum."""
    for epsilon in (30, 60):
        noise = LabelNoise("staircase", low=0.0, high=2.0, epsilon=epsilon, loss="absolute")
        c, gamma = Fraction(math.exp(-epsilon)), Fraction(noise.gamma)
        a = (1 - c) / (4 * (gamma + c * (1 - gamma)))
        step = 2 * gamma
        mass_above_step = Fraction(1, 2) - a * step  # Pr[noise > step]
        loss_of_first_stair = step / 2 - a * step**2 / 2
        loss_of_second_stair = mass_above_step * (1 - step) - a * c * (1 - step) ** 2 / 2
        loss = 2 * (loss_of_first_stair + loss_of_second_stair)
        assert noise.losses([1.0], "absolute")[0] == pytest.approx(float(loss), rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
def test_the_staircase_has_its_known_loss(epsilon: float):
    """Its least mean absolute error is e^(ε/2)/(e^ε - 1) (Geng and Viswanath 2014)."""
    noise = LabelNoise("staircase", low=0, high=1, epsilon=epsilon, clip=False, loss="absolute")
    least_error = math.exp(epsilon / 2) / math.expm1(epsilon)
    assert noise.losses([0.5], "absolute")[0] == pytest.approx(least_error, rel=1e-13)
    sizes = np.abs(noise.insecure_sample(np.zeros(200_000), np.random.default_rng(1)))
    assert abs(sizes.mean() - least_error) < 5 * sizes.std() / math.sqrt(200_000)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("loss", ["absolute", "squared"])
def test_best_gamma_minimises_the_loss_of_the_staircase(epsilon: float, loss: str):
    def compute_loss(gamma: float) -> float:
        """Compute the expected loss of the staircase with the inner width γ."""
        noise = LabelNoise("staircase", low=0, high=1, epsilon=epsilon, clip=False, gamma=gamma)
        return float(noise.losses([0.5], loss)[0])

    minimum = optimize.minimize_scalar(
        compute_loss, bounds=(1e-6, 1 - 1e-6), method="bounded", options={"xatol": 1e-10}
    )
    assert best_gamma(epsilon, loss) == pytest.approx(minimum.x, abs=1e-5)


@pytest.mark.parametrize("kind", label_noise.NOISE_KINDS)
@pytest.mark.parametrize("clip", [True, False])
def test_continuous_samples_follow_the_law(kind, clip):
    noise = LabelNoise(kind, low=0, high=10, epsilon=2, clip=clip)
    draws = noise.insecure_sample(np.full(60_000, 3.0), np.random.default_rng(3))
    edges = np.array([-5.0, 0, 1, 3, 7.5, 10, 15])
    counts = np.array([(draws <= edge).sum() for edge in edges])
    assert are_counts_close(counts, noise.cdf(3.0, edges), draws.size)
    if clip:
        assert draws.min() >= 0
        assert draws.max() <= 10
    assert np.mean((draws - 3) ** 2) == pytest.approx(noise.losses([3.0])[0], rel=0.05)


# Integer noise.


@pytest.mark.parametrize("kind", NOISE_KINDS)
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_integer_laws_spend_their_budget(kind: str, epsilon: float):
    noise = make_lattice_noise(kind, low=3, high=12, epsilon=epsilon)
    channel = Channel.from_pairs(noise.rows, list(combinations(range(10), 2)))
    privacy = audit(channel, epsilon)
    assert privacy.meets("pure", epsilon)
    # The paper's scale for the exponential mechanism only uses half of the budget.
    used_share = 0.5 if kind == "exponential" else 1.0
    assert privacy.pure_epsilon == pytest.approx(used_share * epsilon, rel=1e-9)


@pytest.mark.parametrize("kind", NOISE_KINDS)
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_error_of_integer_noise_is_the_mean_over_its_table(kind: str, epsilon: float):
    table = np.array(
        [row.floats for row in make_lattice_noise(kind, low=3, high=12, epsilon=epsilon).rows]
    )
    squares = SQUARED.matrix(np.arange(10.0), np.arange(10.0))
    expected = float((table * squares).sum()) / 10
    mse = compute_lattice_noise_mse(Labels.uniform(3, 12), kind, epsilon)
    assert mse == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("kind", ["laplace", "staircase"])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_integer_laws_equal_clamped_sums(kind: str, epsilon: float):
    """The ten labels 3..12 differ by at most 9, the width of a step."""
    eta = np.arange(-6000, 6001)
    width = 9
    if kind == "laplace":
        weights = math.exp(-epsilon / width) ** np.abs(eta)
    else:
        staircases = []
        for inner_width in range(1, width + 1):
            steps = np.abs(eta) // width + (np.abs(eta) % width >= inner_width)
            staircases.append(math.exp(-epsilon) ** steps)
        weights = min(staircases, key=lambda weights: weights @ eta**2.0 / weights.sum())
    clamped = np.zeros((10, 10))
    for label in range(10):
        np.add.at(clamped[label], np.clip(label + eta, 0, 9), weights / weights.sum())
    table = np.array(
        [row.floats for row in make_lattice_noise(kind, low=3, high=12, epsilon=epsilon).rows]
    )
    assert np.abs(table - clamped).max() < 1e-12
