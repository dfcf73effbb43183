"""Tests of the limit of the smallest error rate as n grows, and of (53)-(56) of Kadam et al. 2024."""

import itertools
import math

import numpy as np
import pytest
from oracle_truth import one_sided_shifts, pdp_delta

from workbench.models.oracles import error_rate_bounds
from workbench.models.oracles.bounded_difference import column_cut_law
from workbench.models.oracles.limit_law import limit_law
from workbench.models.oracles.printed_theorem3 import printed_limit, staircases
from workbench.models.oracles.question import OutsideDomain

DELTAS = (0.0, 1e-4, 0.01, 0.1, 0.1425, 0.2, 0.35, 0.5, 0.9, 1.0)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize(("mu_bar", "epsilon"), [(1, 0.3), (1, 1.0), (2, 0.7), (3, 1.0), (6, 1.2)])
def test_the_smallest_error_rate_converges_to_the_limit_law(
    mu_bar: int, epsilon: float, delta: float
):
    limit = limit_law(mu_bar, epsilon, delta)
    assert limit.kind == "optimum"
    # The n are so large that e^{-nε/μ̄} is a rounding error, and are no multiples of μ̄.
    n = math.ceil(40 / epsilon) * mu_bar + mu_bar // 2
    shifts = one_sided_shifts(mu_bar)
    bounds = error_rate_bounds(
        [n + 1],
        shifts,
        is_directed=True,
        epsilon=epsilon,
        delta=delta,
        requires="mass-above-ratio",
        nodes=0,
    )
    assert bounds.upper
    assert bounds.upper.kind == "optimum"
    assert bounds.upper.value == pytest.approx(limit.value, abs=1e-12)


@pytest.mark.parametrize("delta", DELTAS[1:-1])
def test_the_smallest_error_rate_approaches_the_limit_law_from_below(delta: float):
    limit = limit_law(mu_bar=3, epsilon=1.0, delta=delta).value
    for n in range(6, 25):
        assert column_cut_law(n=n, mu_bar=3, epsilon=1.0, delta=delta).value <= limit + 1e-12


@pytest.mark.parametrize("delta", DELTAS)
def test_the_limit_law_is_the_best_of_all_sums_of_powers(delta: float):
    # Every multiset of at most 3 of the powers a^1..a^12, one by one.
    a = math.exp(-1.0)
    powers = [0.0, *(a**k for k in range(1, 13))]
    best_mass = delta
    for chosen in itertools.combinations_with_replacement(powers, 3):
        sigma = sum(chosen)
        mass = 1 / (1 + a / (1 - a) * (3 - sigma))
        if sigma:
            mass = min(mass, delta / sigma)
        best_mass = max(best_mass, mass)
    assert limit_law(mu_bar=3, epsilon=1.0, delta=delta).value == pytest.approx(
        1 - best_mass, abs=1e-5
    )
    assert limit_law(mu_bar=3, epsilon=1.0, delta=delta).value <= 1 - best_mass + 1e-12


def test_below_ln_2_the_limit_law_is_a_lower_bound():
    # n = 8, μ̄ = 2, ε = .5, δ = .2: the optimum .329744 exceeds the law of cuts, .315263.
    limit = limit_law(mu_bar=2, epsilon=0.5, delta=0.2)
    assert limit.kind == "lower bound"
    assert limit.value < column_cut_law(n=161, mu_bar=2, epsilon=0.5, delta=0.2).value
    assert limit_law(mu_bar=2, epsilon=0.5, delta=0.9).kind == "optimum"


def test_the_limit_law_is_refused_if_its_sums_are_too_many():
    with pytest.raises(OutsideDomain, match="lists of at most"):
        limit_law(mu_bar=40, epsilon=0.7, delta=0.1)


@pytest.mark.parametrize("i", [1, 2, 5])
def test_53_is_the_height_of_the_flat_regions_of_a_single_distance(i: int):
    a = math.exp(-1.0)
    height = (1 - a) / (1 - a ** (i + 1))
    # The flat region i goes from δ = a^i f(0) to δ = a^{i-1} f(0).
    for delta in (a**i * height * 1.001, a ** (i - 1) * height * 0.999):
        assert limit_law(mu_bar=1, epsilon=1.0, delta=delta).value == pytest.approx(
            1 - height, abs=1e-14
        )


def test_54_and_55_are_not_the_limits_of_36_and_34():
    limit = printed_limit(mu_bar=3, epsilon=1.0, c=1, j=1)
    # The corrected values of the erratum to (54) and (55) in results/README.md.
    assert limit.beta == pytest.approx(0.835690, abs=1e-6)
    assert limit.mass == pytest.approx(0.387354, abs=1e-6)
    a = math.exp(-1)
    assert limit.printed_beta == pytest.approx(1 - a**3 / (1 - a), abs=1e-12)
    assert limit.printed_mass == pytest.approx((1 - a) / (3 * a + 1 - a * (1 + a**2)), abs=1e-12)


@pytest.mark.parametrize(("c", "j"), [(1, 1), (1, 2), (2, 1), (3, 2)])
def test_the_printed_staircases_converge_to_the_corrected_limit(c: int, j: int):
    # b + r < μ̄ does not matter here: the lengths are those of (31) for j < h.
    n, mu_bar = 81, 3
    b = n // mu_bar
    a = math.exp(-1.0)
    lengths = [mu_bar if i <= c or i == c + j + 1 else mu_bar - 1 for i in range(1, b + 1)]
    total = 1 + sum(length * a ** (i + 1) for i, length in enumerate(lengths))
    assert printed_limit(mu_bar, 1.0, c, j).mass == pytest.approx(1 / total, abs=1e-10)


@pytest.mark.parametrize(("h", "j"), [(2, 1), (4, 2), (5, 1)])
def test_flat_regions_of_a_wide_question_are_near_the_corrected_limit(h: int, j: int):
    # μ̄ = 30 and b = 8, so that b + r < μ̄ and a^b is small.
    steps = {(step.h, step.j): step for step in staircases(n=240, mu_bar=30, epsilon=2.0)}
    region = steps[h, j]
    limit = printed_limit(mu_bar=30, epsilon=2.0, c=8 - h, j=j)
    assert region.mass == pytest.approx(limit.mass, abs=1e-5)
    assert region.lower == pytest.approx(limit.lower, rel=1e-3)
    assert region.upper == pytest.approx(limit.upper, rel=1e-3)
    assert abs(region.mass - limit.printed_mass) > abs(region.mass - limit.mass)


def test_the_corrected_limit_of_a_printed_region_is_not_the_optimum_either():
    limit = printed_limit(mu_bar=3, epsilon=1.0, c=1, j=1)
    delta = (limit.lower + limit.upper) / 2
    optimal_mass = 1 - limit_law(mu_bar=3, epsilon=1.0, delta=delta).value
    assert optimal_mass > limit.mass + 0.01
    # The noise that attains the optimum at a finite n is private for its δ. `pdp_delta` is an
    # independent computation that only tests use.
    pmf = column_cut_law(n=60, mu_bar=3, epsilon=1.0, delta=delta).pmf
    assert pmf is not None
    assert pmf[0] == pytest.approx(optimal_mass, abs=1e-8)
    assert pdp_delta(np.array(pmf), (61,), one_sided_shifts(3), 1.0) <= delta + 1e-9
