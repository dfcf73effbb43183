"""Test the closed forms of published randomizers against their densities."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import workbench as wb
from workbench.families.noise.family import FAMILY as NOISE
from workbench.families.noise.published import compute_gaussian_sigma
from workbench.families.quantizer.published import PUBLISHED
from workbench.pipeline.published import compute_references, index_by_name
from workbench.pipeline.recommendation import Query
from workbench.pipeline.request import Aim
from workbench.privacy.claim import Claim
from workbench.questions.range_query import RangeQuery

ENTRIES = index_by_name(PUBLISHED)
X = (np.arange(2000) + 0.5) / 1000 - 1  # The inputs are in [-1, 1].


def make_query(epsilon: float, loss: str, sensitivity: int = 2) -> Query:
    """Make the query of a value in [-1, 1]. With sensitivity 2 all values are neighbours."""
    question = RangeQuery("-1..1", sensitivity=sensitivity)
    return Query(
        question=question, claim=Claim("dp", Fraction(epsilon), delta=0), aim=Aim(loss=loss)
    )


def list_density_steps(name: str, epsilon: float, x: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the density of the output at an input x, which is constant on three intervals.

    Args:
        name: "piecewise" or "optimal piecewise".
        epsilon: the budget ε.
        x: the input in [-1, 1].

    Returns:
        The ends of the intervals (4,) and the densities on them (3,).
    """
    a = math.exp(epsilon / 2)
    if name == "piecewise":
        c = (a + 1) / (a - 1)
        left = (c + 1) / 2 * x - (c - 1) / 2
        ends, p = [-c, left, left + c - 1, c], (math.exp(epsilon) - a) / (2 * a + 2)
    else:
        width = 2 * (a - 1) / (math.exp(epsilon) - 1)  # The interval is [-1, 1].
        left = min(max(x - width / 2, -1.0), 1 - width)
        ends, p = [-1, left, left + width, 1], a / 2
    return np.array(ends), np.array([p / math.exp(epsilon), p, p / math.exp(epsilon)])


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
@pytest.mark.parametrize(
    ("name", "loss"),
    [(n, c) for n in ("piecewise", "optimal piecewise") for c in ("absolute", "squared")],
)
def test_closed_forms_equal_integrals_of_densities(name: str, loss: str, epsilon: float):
    power = 1 if loss == "absolute" else 2
    total = 0.0
    for x in X:
        ends, densities = list_density_steps(name, epsilon, float(x))
        assert (np.diff(ends) * densities).sum() == pytest.approx(1)
        antiderivative = np.sign(ends - x) * np.abs(ends - x) ** (power + 1) / (power + 1)
        total += (np.diff(antiderivative) * densities).sum() / X.size
        if ENTRIES[name].is_unbiased:
            assert (np.diff(ends**2) / 2 * densities).sum() == pytest.approx(x, abs=1e-9)
    assert ENTRIES[name].make_reference(make_query(epsilon, loss)).objective == pytest.approx(
        total, rel=1e-5
    )


def test_hybrid_is_duchi_at_small_epsilon_and_otherwise_a_mixture():
    known = compute_references(PUBLISHED, make_query(0.6, "squared"))
    assert known["hybrid"].objective == known["Duchi et al."].objective
    known = compute_references(PUBLISHED, make_query(2.0, "squared"))
    assert (
        known["piecewise"].objective < known["hybrid"].objective < known["Duchi et al."].objective
    )


def test_duchi_equals_its_two_point_law():
    b = (math.e + 1) / (math.e - 1)
    up = (1 + X / b) / 2
    expected = (up * (b - X) + (1 - up) * (b + X)).mean()
    assert ENTRIES["Duchi et al."].make_reference(
        make_query(1.0, "absolute")
    ).objective == pytest.approx(expected, rel=1e-6)


def test_randomizers_are_only_listed_for_local_ranges():
    assert not compute_references(PUBLISHED, make_query(1.0, "absolute", 1))
    names = ["Duchi et al.", "piecewise", "hybrid", "optimal piecewise"]
    assert [*compute_references(PUBLISHED, make_query(1.0, "absolute"))] == names


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-5), (1.0, 0.01), (4.0, 0.3)])
def test_gaussian_parameter_is_the_least_private_one(epsilon: float, delta: float):
    from scipy.stats import norm

    sigma = compute_gaussian_sigma(epsilon, delta)

    def spent(s: float) -> float:
        return norm.cdf(0.5 / s - epsilon * s) - math.exp(epsilon) * norm.cdf(
            -0.5 / s - epsilon * s
        )

    assert spent(sigma) <= delta * (1 + 1e-7)
    assert spent(sigma * (1 - 1e-6)) > delta


@pytest.mark.parametrize("loss", ["absolute", "squared"])
@pytest.mark.parametrize("delta", ["0.1", "0.5"])
def test_noise_on_the_reals_is_private_on_a_fine_grid(loss: str, delta: str):
    """Laplace and uniform noise: their hockey stick at a shift of 1, summed over cells."""
    request = NOISE.make_request(wb.RealNoise(1), epsilon=1, delta=delta, loss=loss)
    entries = index_by_name(NOISE.published_mechanisms())
    width, eta = 1 / 400, np.arange(-16_000, 16_001)
    scale, reach = (entries[name].make_reference(request).value for name in ("Laplace", "uniform"))
    for law in (np.exp(-np.abs(eta * width) / scale), (np.abs(eta * width) <= reach) * 1.0):
        f = law / law.sum()
        excess = np.maximum(f[400:] - math.e * f[:-400], 0).sum() + f[:400].sum()
        assert excess <= float(delta) * 1.01
    uniform = entries["uniform"].make_reference(request)
    assert uniform.objective == pytest.approx(reach / 2 if loss == "absolute" else reach**2 / 3)
