"""Noise added to labels: exact losses against integrals, exact laws, samplers that follow them."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
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


def close(count: np.ndarray, law: np.ndarray, size: int) -> bool:
    """Counts within 5 standard deviations of their law everywhere."""
    return bool((np.abs(count - size * law) <= 5 * np.sqrt(size * law * (1 - law)) + 1e-9).all())


# Continuous noise.


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 5.0])
@pytest.mark.parametrize("kind", label_noise.NOISE_KINDS)
@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_continuous_losses_are_the_integrals_of_their_law(kind, epsilon, loss):
    noise = LabelNoise(kind, -2, 6, epsilon, loss=loss)
    power = 2 if loss == "squared" else 1
    for y in (-2.0, -0.5, 3.0, 6.0):
        # E|o-y|^p = ∫ p x^(p-1) Pr[|o-y| > x] dx
        def tail(x: float, y: float = y) -> float:
            below = float(noise.cdf(y, y - x - 1e-12)) if y - x >= noise.low else 0.0
            return power * x ** (power - 1) * (1 - float(noise.cdf(y, y + x)) + below)

        corners = [
            c for c in (y - noise.low, noise.high - y, (noise.gamma or 0.5) * 8) if 0 < c < 8
        ]
        value = integrate.quad(tail, 0, 8, points=corners, limit=300)[0]
        assert noise.losses([y], loss)[0] == pytest.approx(value, rel=1e-6)


def test_clipped_laplace_noise_has_its_closed_form():
    # The range is 8, ε = 2, and y = low + 3.
    b = 4.0
    u = 3.0
    v = 5.0
    expected = 2 * b * b - math.exp(-u / b) * b * (b + u) - math.exp(-v / b) * b * (b + v)
    assert LabelNoise("laplace", 0, 8, 2).losses([3.0])[0] == pytest.approx(expected, rel=1e-14)


def test_stairs_of_large_epsilon_keep_their_digits():
    """At the middle label two stairs have all mass but e^(-2ε), so E|o - y| is a rational sum."""
    for epsilon in (30, 60):
        noise = LabelNoise("staircase", 0.0, 2.0, epsilon, loss="absolute")
        c, gamma = Fraction(math.exp(-epsilon)), Fraction(noise.gamma)
        a = (1 - c) / (4 * (gamma + c * (1 - gamma)))
        step = 2 * gamma
        past = Fraction(1, 2) - a * step  # Pr[noise > step]
        half = step / 2 - a * step**2 / 2 + past * (1 - step) - a * c * (1 - step) ** 2 / 2
        assert noise.losses([1.0], "absolute")[0] == pytest.approx(float(2 * half), rel=1e-12)


def test_the_staircase_has_its_known_loss_and_optimal_gamma():
    for epsilon in (0.2, 1.0, 4.0):
        noise = LabelNoise("staircase", 0, 1, epsilon, clip=False, loss="absolute")
        least = math.exp(epsilon / 2) / math.expm1(epsilon)
        assert noise.losses([0.5], "absolute")[0] == pytest.approx(least, rel=1e-13)
        drawn = np.abs(noise.insecure_sample(np.zeros(200_000), np.random.default_rng(1)))
        assert abs(drawn.mean() - least) < 5 * drawn.std() / math.sqrt(200_000)
        for loss in ("absolute", "squared"):
            staircase = partial(LabelNoise, "staircase", 0, 1, epsilon, clip=False)
            best = optimize.minimize_scalar(
                lambda g, loss=loss, staircase=staircase: staircase(gamma=g).losses([0.5], loss)[0],
                bounds=(1e-6, 1 - 1e-6),
                method="bounded",
                options={"xatol": 1e-10},
            ).x
            assert best_gamma(epsilon, loss) == pytest.approx(best, abs=1e-5)


@pytest.mark.parametrize("kind", label_noise.NOISE_KINDS)
@pytest.mark.parametrize("clip", [True, False])
def test_continuous_samples_follow_the_law(kind, clip):
    noise = LabelNoise(kind, 0, 10, 2, clip=clip)
    drawn = noise.insecure_sample(np.full(60_000, 3.0), np.random.default_rng(3))
    edges = np.array([-5.0, 0, 1, 3, 7.5, 10, 15])
    count = np.array([(drawn <= e).sum() for e in edges])
    assert close(count, noise.cdf(3.0, edges), 60_000)
    if clip:
        assert drawn.min() >= 0
        assert drawn.max() <= 10
    assert np.mean((drawn - 3) ** 2) == pytest.approx(noise.losses([3.0])[0], rel=0.05)


# Integer noise.


@pytest.mark.parametrize("kind", NOISE_KINDS)
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_integer_laws_are_exact_and_private(kind, epsilon):
    noise = make_lattice_noise(kind, 3, 12, epsilon)
    table = np.array([row.floats for row in noise.rows])
    report = audit(Channel.from_pairs(noise.rows, list(combinations(range(10), 2))), epsilon)
    assert report.meets("pure", epsilon)
    share = (
        0.5 if kind == "exponential" else 1.0
    )  # the paper's scale for the exponential mechanism spends half
    assert report.pure_epsilon == pytest.approx(share * epsilon, rel=1e-9)
    expected = float((table * SQUARED.matrix(np.arange(10.0), np.arange(10.0))).sum()) / 10
    assert compute_lattice_noise_mse(Labels.uniform(3, 12), kind, epsilon) == pytest.approx(
        expected, rel=1e-9
    )
    if kind == "exponential":
        return
    eta, width = np.arange(-6000, 6001), 9
    c = math.exp(-epsilon)
    if kind == "laplace":
        law = math.exp(-epsilon / width) ** np.abs(eta)
    else:
        laws = [
            c ** (np.abs(eta) // width + (np.abs(eta) % width >= r)) for r in range(1, width + 1)
        ]
        law = laws[int(np.argmin([law @ eta**2.0 / law.sum() for law in laws]))]
    clamped = np.zeros((10, 10))
    for y in range(10):
        np.add.at(clamped[y], np.clip(y + eta, 0, 9), law / law.sum())
    assert np.abs(table - clamped).max() < 1e-12
