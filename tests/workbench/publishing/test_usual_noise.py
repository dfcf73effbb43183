"""Test the error of Laplace and Gaussian noise that is calibrated the usual way."""

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


def find_error(name: str, vector: PublishedVector, epsilon: Real, delta: Real = 0) -> float:
    """Return the error of one kind of usual noise."""
    noise = list_usual_noise(vector, epsilon, delta)
    return next(kind.rmse for kind in noise if kind.name == name)


@pytest.mark.parametrize(("neighbours", "sides"), [("add-remove", 1), ("replace", 2)])
@pytest.mark.parametrize(("release", "power"), [("rows-anywhere", 2), ("row-per-bin", 1)])
@pytest.mark.parametrize("rows", [1, 2, 3, 4])
def test_the_norms_of_a_histogram_are_those_of_its_shift_vectors(
    release: str, power: int, neighbours: str, sides: int, rows: int
) -> None:
    """The list of shift vectors of a certificate gives the same two norms as the formulas."""
    shifts = JointQuery(release, neighbours, rows).shifts
    vector = measure_histogram(PersonRows(neighbours, rows), one_row_per_bin=power == 1)
    assert vector.l1_norm == max(sum(map(abs, shift)) for shift in shifts) == sides * rows
    squared_norms = [sum(part**2 for part in shift) for shift in shifts]
    assert vector.squared_l2_norm == max(squared_norms) == sides * rows**power


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("rows", [1, 2])
def test_the_norms_of_sum_and_count_are_those_of_all_moves(neighbours: str, rows: int) -> None:
    """Values of -1, 0 and 1 are listed row by row. The ends decide both norms."""
    people = [(0, 0)]
    for count in range(1, rows + 1):
        people += [(sum(values), count) for values in product((-1, 0, 1), repeat=count)]
    moves = [(a - c, b - d) for (a, b) in people for (c, d) in people]
    if neighbours == "add-remove":
        moves = people
    vector = measure_sum_and_count(PersonRows(neighbours, rows), 18, 95, 2000, "0.5")
    assert vector.l1_norm == max(abs(s) + abs(n) for s, n in moves)
    assert vector.squared_l2_norm == max(s * s + n * n for s, n in moves)


@pytest.mark.parametrize(
    ("vector", "error"),
    [
        # Laplace noise of scale Δ/ε has the standard deviation √2 Δ/ε. Here ε = 1/2.
        (measure_number("count", PersonRows(rows=3)), math.sqrt(2) * 6),
        (measure_number("sum", PersonRows(), 18, 95), math.sqrt(2) * 190),
        (measure_number("sum", PersonRows("replace"), 18, 95), math.sqrt(2) * 154),
        (measure_histogram(PersonRows("replace", 3), one_row_per_bin=False), math.sqrt(2) * 12),
    ],
)
def test_laplace_noise_has_the_scale_of_the_l1_norm(vector: PublishedVector, error: float) -> None:
    (noise,) = list_usual_noise(vector, "0.5")
    assert noise.name == LAPLACE
    assert noise.is_pure
    assert noise.rmse == pytest.approx(error, rel=1e-15)


def test_the_mean_of_2000_values_has_the_known_errors() -> None:
    """n = 2000, [18, 95], ε = 1: .0385 √2 = .0544, for public n and, at μ = 1/2, private n."""
    public = measure_number("mean", PersonRows("replace"), 18, 95, 2000)
    assert find_error(LAPLACE, public, 1) == pytest.approx(0.0385 * math.sqrt(2), rel=1e-12)
    private = measure_sum_and_count(PersonRows(), 18, 95, 2000)
    assert find_error(LAPLACE, private, 1) == pytest.approx(0.0385 * math.sqrt(2), rel=1e-12)
    # At μ = 0 the noise of the number of rows counts as much as that of the sum.
    worst = measure_sum_and_count(PersonRows(), 18, 95, 2000, relative_mean=0)
    assert find_error(LAPLACE, worst, 1) == pytest.approx(0.077, rel=1e-12)


def test_the_classic_gaussian_has_its_printed_scale() -> None:
    """ε = 1/2, δ = 1.25 e^-8: √(2 · 8)/ε = 8. Three bins of one row have Δ2 = √3."""
    delta = Fraction(1.25 * math.exp(-8))
    vector = measure_histogram(PersonRows(rows=3), one_row_per_bin=True)
    error = find_error(CLASSIC_GAUSSIAN, vector, "0.5", delta)
    assert error == pytest.approx(8 * math.sqrt(3), rel=1e-12)


def test_the_analytic_gaussian_meets_its_condition_with_equality() -> None:
    """Φ(Δ/2σ - εσ/Δ) - e^ε Φ(-Δ/2σ - εσ/Δ) = δ (Balle and Wang 2018, Theorem 8)."""
    vector = measure_number("count", PersonRows(rows=2))
    sigma = find_error(ANALYTIC_GAUSSIAN, vector, 1, "0.01")
    cdf = NormalDist().cdf
    delta = cdf(1 / sigma - sigma / 2) - math.e * cdf(-1 / sigma - sigma / 2)
    assert delta == pytest.approx(0.01, rel=1e-9)


def test_the_classic_gaussian_is_listed_only_where_it_is_proven() -> None:
    vector = measure_number("count", PersonRows())
    names = [noise.name for noise in list_usual_noise(vector, 1, "1e-5")]
    assert names == [LAPLACE, ANALYTIC_GAUSSIAN]
    names = [noise.name for noise in list_usual_noise(vector, "0.9", "1e-5")]
    assert names == [LAPLACE, ANALYTIC_GAUSSIAN, CLASSIC_GAUSSIAN]


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        (lambda: measure_number("mean", PersonRows("replace"), 0, 1), "public_rows must be given"),
        (lambda: measure_number("mean", PersonRows(), 0, 1, 9), "public_rows must be left out"),
        (lambda: measure_number("histogram", PersonRows()), "statistic must be count, sum or mean"),
        (lambda: measure_sum_and_count(PersonRows(), 1, 1, 9), "high must be above"),
    ],
)
def test_wrong_arguments_are_refused(measure: Callable[[], object], message: str) -> None:
    with pytest.raises(wb.InvalidRequest, match=message):
        measure()
