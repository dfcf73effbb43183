"""Test the error of Laplace and Gaussian noise that is calibrated the usual way.

A page that publishes a statistic compares its noise with this usual noise. One person moves the
vector of published numbers by at most Δ1 in the L1 norm and Δ2 in the L2 norm (`PublishedVector`).
Laplace noise needs Δ1, and Gaussian noise Δ2. The values of sums and means are ages in [18, 95].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from statistics import NormalDist

import pytest

import workbench as wb
from workbench.exact.numbers import Real
from workbench.publishing.sensitivity import PersonRows
from workbench.publishing.usual_noise import (
    ANALYTIC_GAUSSIAN,
    CLASSIC_GAUSSIAN,
    LAPLACE,
    PublishedVector,
    list_usual_noise,
    measure_histogram,
    measure_number,
    measure_sum_and_count,
)
from workbench.questions.joint_query import JointQuery

AGES = {"low": 18, "high": 95}


def find_error(name: str, vector: PublishedVector, epsilon: Real, delta: Real = 0) -> float:
    """Return the root mean squared error of one kind of usual noise."""
    errors = {noise.name: noise.rmse for noise in list_usual_noise(vector, epsilon, delta)}
    return errors[name]


@pytest.mark.parametrize(("neighbours", "sides"), [("add-remove", 1), ("replace", 2)])
@pytest.mark.parametrize(("release", "power"), [("rows-anywhere", 2), ("row-per-bin", 1)])
@pytest.mark.parametrize("rows", [1, 2, 3, 4])
def test_the_norms_of_a_histogram_are_those_of_its_shift_vectors(
    release: str, power: int, neighbours: str, sides: int, rows: int
) -> None:
    """The list of shift vectors of a certificate gives the same two norms as the formulas.

    The squared L2 norm is rows² if all rows of a person may lie in one bin (power 2), and rows if
    each lies in another bin (power 1). A replaced person adds the same once more (two sides).
    """
    shifts = JointQuery(release, neighbours, rows).shifts
    vector = measure_histogram(PersonRows(neighbours, rows), one_row_per_bin=power == 1)
    assert vector.l1_norm == max(sum(map(abs, shift)) for shift in shifts) == sides * rows
    squared_norms = [sum(part**2 for part in shift) for shift in shifts]
    assert vector.squared_l2_norm == max(squared_norms) == sides * rows**power


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("rows", [1, 2])
def test_the_norms_of_sum_and_count_are_those_of_all_moves(neighbours: str, rows: int) -> None:
    """Values are centred and scaled to [-1, 1]. People with the values -1, 0 and 1 are listed."""
    contributions = [(0, 0)]  # Pairs (sum, count) of one person. The first has no rows.
    for count in range(1, rows + 1):
        contributions += [(sum(values), count) for values in product((-1, 0, 1), repeat=count)]
    if neighbours == "add-remove":
        moves = contributions
    else:
        moves = [
            (new_sum - old_sum, new_count - old_count)
            for (new_sum, new_count), (old_sum, old_count) in product(contributions, repeat=2)
        ]
    vector = measure_sum_and_count(
        PersonRows(neighbours, rows), **AGES, expected_rows=2000, relative_mean="0.5"
    )
    assert vector.l1_norm == max(abs(s) + abs(n) for s, n in moves)
    assert vector.squared_l2_norm == max(s * s + n * n for s, n in moves)


@pytest.mark.parametrize(
    ("vector", "error"),
    [
        # Laplace noise of scale Δ1/ε has the standard deviation √2 Δ1/ε. Here ε = 1/2. The Δ1 are
        # 3 rows, the largest age 95, the difference 95 - 18, and 3 rows in two histograms.
        (measure_number("count", PersonRows(rows=3)), math.sqrt(2) * 6),
        (measure_number("sum", PersonRows(), **AGES), math.sqrt(2) * 190),
        (measure_number("sum", PersonRows("replace"), **AGES), math.sqrt(2) * 154),
        (measure_histogram(PersonRows("replace", 3), one_row_per_bin=False), math.sqrt(2) * 12),
    ],
)
def test_laplace_noise_has_the_scale_of_the_l1_norm(vector: PublishedVector, error: float) -> None:
    (noise,) = list_usual_noise(vector, "0.5")
    assert noise.name == LAPLACE
    assert noise.is_pure
    assert noise.rmse == pytest.approx(error, rel=1e-15)


# A mean of 2000 ages with ε = 1. Its Δ1/ε is (95 - 18) / 2000 = 0.0385.
MEAN_ERROR = 0.0385 * math.sqrt(2)


def test_the_mean_of_a_public_number_of_rows_has_the_known_error() -> None:
    vector = measure_number("mean", PersonRows("replace"), **AGES, public_rows=2000)
    assert find_error(LAPLACE, vector, epsilon=1) == pytest.approx(MEAN_ERROR, rel=1e-12)


def test_the_mean_of_a_private_number_of_rows_has_the_known_errors() -> None:
    """The mean squared errors of sum and count add up, with a share that depends on the mean.

    The relative mean is 0 at the low end of the values and 1 at the high end. At 1/2, which is the
    default, the noise of the centred sum alone matters.
    """
    middle = measure_sum_and_count(PersonRows(), **AGES, expected_rows=2000)
    assert find_error(LAPLACE, middle, epsilon=1) == pytest.approx(MEAN_ERROR, rel=1e-12)
    # At the relative mean 0 the noise of the count adds as much: 0.077 = √2 · MEAN_ERROR.
    end = measure_sum_and_count(PersonRows(), **AGES, expected_rows=2000, relative_mean=0)
    assert find_error(LAPLACE, end, epsilon=1) == pytest.approx(0.077, rel=1e-12)


def test_the_classic_gaussian_has_its_printed_scale() -> None:
    """The scale is Δ2 √(2 ln(1.25/δ)) / ε. Here the root is 4, and three bins have Δ2 = √3."""
    delta = Fraction(1.25 * math.exp(-8))
    vector = measure_histogram(PersonRows(rows=3), one_row_per_bin=True)
    error = find_error(CLASSIC_GAUSSIAN, vector, "0.5", delta)
    assert error == pytest.approx(8 * math.sqrt(3), rel=1e-12)


def test_the_analytic_gaussian_meets_its_condition_with_equality() -> None:
    """Φ(Δ/2σ - εσ/Δ) - e^ε Φ(-Δ/2σ - εσ/Δ) = δ (Balle and Wang 2018, Theorem 8), with Δ = 2."""
    vector = measure_number("count", PersonRows(rows=2))
    sigma = find_error(ANALYTIC_GAUSSIAN, vector, epsilon=1, delta="0.01")
    cdf = NormalDist().cdf
    gap = 2  # Δ
    epsilon = 1
    half_gap = gap / (2 * sigma)
    threshold = epsilon * sigma / gap
    delta = cdf(half_gap - threshold) - math.exp(epsilon) * cdf(-half_gap - threshold)
    assert delta == pytest.approx(0.01, rel=1e-9)


def test_the_classic_gaussian_is_listed_only_where_it_is_proven() -> None:
    """Its scale is proven for ε < 1."""
    vector = measure_number("count", PersonRows())
    names = [noise.name for noise in list_usual_noise(vector, 1, "1e-5")]
    assert names == [LAPLACE, ANALYTIC_GAUSSIAN]
    names = [noise.name for noise in list_usual_noise(vector, "0.9", "1e-5")]
    assert names == [LAPLACE, ANALYTIC_GAUSSIAN, CLASSIC_GAUSSIAN]


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        (
            lambda: measure_number("mean", PersonRows("replace"), low=0, high=1),
            "public_rows must be given",
        ),
        (
            lambda: measure_number("mean", PersonRows(), low=0, high=1, public_rows=9),
            "public_rows must be left out",
        ),
        (lambda: measure_number("histogram", PersonRows()), "statistic must be count, sum or mean"),
        (
            lambda: measure_sum_and_count(PersonRows(), low=1, high=1, expected_rows=9),
            "high must be above",
        ),
    ],
)
def test_wrong_arguments_are_refused(measure: Callable[[], object], message: str) -> None:
    with pytest.raises(wb.InvalidRequest, match=message):
        measure()
