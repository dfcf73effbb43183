"""Test the closed forms of published randomizers against their densities.

A randomizer publishes a value in [-1, 1] with local DP. The references are Duchi et al., piecewise,
optimal piecewise and hybrid mechanisms. `workbench.families.quantizer.published` cites them.
"""

from __future__ import annotations

import itertools
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
    odds = math.exp(epsilon)
    root = math.exp(epsilon / 2)
    if name == "piecewise":
        largest_output = (root + 1) / (root - 1)
        width = largest_output - 1
        left = (largest_output + 1) / 2 * x - width / 2
        high_density = (odds - root) / (2 * root + 2)
    else:
        largest_output = 1.0
        width = 2 * (root - 1) / (odds - 1)
        left = min(max(x - width / 2, -1.0), 1 - width)
        high_density = root / 2
    ends = np.array([-largest_output, left, left + width, largest_output])
    low_density = high_density / odds
    return ends, np.array([low_density, high_density, low_density])


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
@pytest.mark.parametrize(
    ("name", "loss"),
    list(itertools.product(("piecewise", "optimal piecewise"), ("absolute", "squared"))),
)
def test_closed_forms_equal_integrals_of_densities(name: str, loss: str, epsilon: float):
    power = 1 if loss == "absolute" else 2
    expected_loss = 0.0
    for x in X:
        ends, densities = list_density_steps(name, epsilon, float(x))
        assert (np.diff(ends) * densities).sum() == pytest.approx(1)
        antiderivative = np.sign(ends - x) * np.abs(ends - x) ** (power + 1) / (power + 1)
        expected_loss += (np.diff(antiderivative) * densities).sum() / X.size
        if ENTRIES[name].is_unbiased:
            assert (np.diff(ends**2) / 2 * densities).sum() == pytest.approx(x, abs=1e-9)
    reference = ENTRIES[name].make_reference(make_query(epsilon, loss))
    assert reference.objective == pytest.approx(expected_loss, rel=1e-5)


def list_losses(epsilon: float) -> dict[str, float]:
    """Return the mean squared error of each published randomizer at ε."""
    references = compute_references(PUBLISHED, make_query(epsilon, "squared"))
    return {name: reference.objective for name, reference in references.items()}


def test_hybrid_is_duchi_at_small_epsilon():
    losses = list_losses(0.6)
    assert losses["hybrid"] == losses["Duchi et al."]


def test_hybrid_is_a_mixture_at_large_epsilon():
    losses = list_losses(2.0)
    assert losses["piecewise"] < losses["hybrid"] < losses["Duchi et al."]


def test_duchi_equals_its_two_point_law():
    """The outputs are ±B with B = (e + 1)/(e - 1) at ε = 1, and the law is unbiased."""
    largest_output = (math.e + 1) / (math.e - 1)
    upper_mass = (1 + X / largest_output) / 2
    losses = upper_mass * (largest_output - X) + (1 - upper_mass) * (largest_output + X)
    reference = ENTRIES["Duchi et al."].make_reference(make_query(1.0, "absolute"))
    assert reference.objective == pytest.approx(losses.mean(), rel=1e-6)


def test_randomizers_are_only_listed_for_local_ranges():
    assert not compute_references(PUBLISHED, make_query(1.0, "absolute", 1))
    names = ["Duchi et al.", "piecewise", "hybrid", "optimal piecewise"]
    assert [*compute_references(PUBLISHED, make_query(1.0, "absolute"))] == names


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-5), (1.0, 0.01), (4.0, 0.3)])
def test_gaussian_parameter_is_the_least_private_one(epsilon: float, delta: float):
    from scipy.stats import norm

    sigma = compute_gaussian_sigma(epsilon, delta)

    def compute_delta(sigma: float) -> float:
        """Return δ of N(0, σ²) noise for the sensitivity 1, by Balle and Wang 2018, Theorem 8."""
        first_mass = norm.cdf(0.5 / sigma - epsilon * sigma)
        second_mass = norm.cdf(-0.5 / sigma - epsilon * sigma)
        return first_mass - math.exp(epsilon) * second_mass

    assert compute_delta(sigma) <= delta * (1 + 1e-7)
    assert compute_delta(sigma * (1 - 1e-6)) > delta


@pytest.mark.parametrize("loss", ["absolute", "squared"])
@pytest.mark.parametrize("delta", ["0.1", "0.5"])
def test_noise_on_the_reals_is_private_on_a_fine_grid(loss: str, delta: str):
    """The hockey stick of Laplace and of uniform noise at a shift of 1 is a sum over cells."""
    request = NOISE.make_request(wb.RealNoise(1), epsilon=1, delta=delta, loss=loss)
    entries = index_by_name(NOISE.published_mechanisms())
    cells_per_unit = 400
    noise = np.arange(-16_000, 16_001) / cells_per_unit
    scale = entries["Laplace"].make_reference(request).value
    uniform = entries["uniform"].make_reference(request)
    reach = uniform.value
    for weights in (np.exp(-np.abs(noise) / scale), (np.abs(noise) <= reach) * 1.0):
        masses = weights / weights.sum()
        # The first cells have no mass under the shifted law.
        shifted_excess = masses[cells_per_unit:] - math.e * masses[:-cells_per_unit]
        delta_on_grid = np.maximum(shifted_excess, 0).sum() + masses[:cells_per_unit].sum()
        assert delta_on_grid <= float(delta) * 1.01
    assert uniform.objective == pytest.approx(reach / 2 if loss == "absolute" else reach**2 / 3)
