"""Test the pair of sums of a mean: its law, certificate, published mean, error and interval.

The mean of values in [low, high] is published by two noisy sums: the sum of x - low, and the sum of
high - x. Their total is the number of rows times high - low, so the mean is low plus a share of the
width. A `ValueGrid` rounds the values to a grid. In these tests the values are ages in [18, 95].
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.exact.integer_law import IntegerLaw
from workbench.exact.random_source import Source
from workbench.privacy.certificate_file import check
from workbench.publishing.pair_of_sums import (
    ValueGrid,
    certify_pair,
    compute_mean_error,
    compute_mean_interval,
    compute_published_mean,
    fit_geometric_noise,
    make_pair_query,
)
from workbench.publishing.sensitivity import PersonRows

AGES = ValueGrid(Fraction(18), Fraction(95))
HALF = Fraction(1, 2)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize(("rows", "step"), [(1, "1"), (3, "1"), (1, "0.05")])
def test_the_budget_is_used_up_within_a_thousandth(neighbours: str, rows: int, step: str) -> None:
    grid = ValueGrid(Fraction(18), Fraction(95), Fraction(step))
    certificate = certify_pair(grid, PersonRows(neighbours, rows), 1)
    assert 0.999 < certificate.deciding_audit.pure_epsilon <= 1


def test_the_certificate_is_saved_and_proven_again(tmp_path: Any) -> None:
    certificate = certify_pair(AGES, PersonRows(), "0.5")
    certificate.save(tmp_path / "pair.json")
    assert check(tmp_path / "pair.json") == certificate
    mechanism: Any = certificate.mechanism
    assert mechanism.question.release == "pair-of-sums"


def test_all_people_of_a_pair_have_the_budget() -> None:
    """The exact audit of all 20 shift vectors on a small grid, each by its own convolution."""
    grid = ValueGrid(Fraction(0), Fraction(9))
    certificate = certify_pair(grid, PersonRows(), 1)
    audited = wb.audit(certificate.mechanism, 1)
    epsilons = [math.log(pair.ratio) for pair in audited.pairs if pair.ratio]
    assert len(epsilons) == 20
    assert epsilons == pytest.approx([1] * 20, abs=1e-6)


def test_the_error_of_two_thousand_ages() -> None:
    """The error is 77 / 2000 = .0385 at the relative mean 1/2, and 77 √2 / 2000 = .0544 at 0."""
    noise = fit_geometric_noise(make_pair_query(AGES, PersonRows()), 1)
    assert compute_mean_error(AGES, noise, 2000, HALF) == pytest.approx(0.0385, rel=1e-4)
    assert compute_mean_error(AGES, noise, 2000) == pytest.approx(0.0544, abs=5e-5)


def test_the_error_is_the_spread_of_published_means() -> None:
    certificate = certify_pair(AGES, PersonRows(), 1)
    mechanism: Any = certificate.mechanism
    # The sums of 2000 ages with the relative mean 0.3.
    first = 2000 * 77 * 3 // 10
    second = 2000 * 77 - first
    draws = wb.sample(certificate, 4000, answer=[first, second], insecure_seed=3)
    means = [float(compute_published_mean(AGES, a, b)) for a, b in draws.tolist()]
    expected = compute_mean_error(AGES, mechanism.noise, 2000, Fraction(3, 10))
    assert np.mean(means) == pytest.approx(18 + 77 * 0.3, abs=4 * expected / 4000**0.5)
    assert np.std(means) == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(
    ("first", "second", "mean"),
    [
        # If the noisy sums have no positive total, the middle of the range is published.
        (0, 0, "56.5"),
        (-5, 2, "56.5"),
        (5, -5, "56.5"),
        (9, -2, "95"),
        (-2, 9, "18"),
        (1, 6, "29"),
    ],
)
def test_the_published_mean_is_clamped(first: int, second: int, mean: str) -> None:
    assert compute_published_mean(AGES, first, second) == Fraction(mean)


def test_the_mean_without_noise_is_the_mean_of_the_clipped_values() -> None:
    values: list[Any] = [18, 20, "30.4", 95, 1000, -7]
    first, second = AGES.sum_pair(values)
    assert compute_published_mean(AGES, first, second) == Fraction(18 + 20 + 30 + 95 + 95 + 18, 6)


@pytest.mark.parametrize(
    ("x", "offset"), [("18.5", 1), ("18.4999", 0), (0.1 + 0.2, 0), (95, 77), ("1e9", 77)]
)
def test_values_are_rounded_to_the_grid_exactly(x: Any, offset: int) -> None:
    assert AGES.offset_of(x) == offset


@pytest.mark.parametrize(
    ("low_high_step", "message"),
    [
        ((5, 5, 1), "high must be above low"),
        ((0, 10, 3), "step must be a divisor"),
        ((0, 10, 0), "step must be a finite number > 0"),
        ((0, 1, -1), "step must be a finite number > 0"),
        (("nan", 1, 1), "low must be a finite number"),
    ],
)
def test_a_grid_without_both_ends_is_refused(low_high_step: Any, message: str) -> None:
    with pytest.raises(wb.InvalidRequest, match=message):
        ValueGrid(*low_high_step)


def test_a_grid_of_too_many_steps_is_refused() -> None:
    with pytest.raises(wb.InvalidRequest, match="span"):
        make_pair_query(ValueGrid(Fraction(0), Fraction(10**6)), PersonRows())


@pytest.mark.parametrize(("rows", "share"), [(30, 0.5), (30, 0.0), (300, 0.3), (3, 0.9)])
def test_the_interval_holds_the_mean_in_nineteen_of_twenty_releases(
    rows: int, share: float
) -> None:
    noise = fit_geometric_noise(make_pair_query(AGES, PersonRows()), 1)
    first = round(rows * 77 * share)
    second = rows * 77 - first
    mean = 18 + 77 * first / (first + second)
    hit_count = 0
    for first_noise, second_noise in noise.draw(800, Source(4)).reshape(400, 2).tolist():
        low, high = compute_mean_interval(AGES, noise, first + first_noise, second + second_noise)
        hit_count += low - 1e-9 <= mean <= high + 1e-9
    # A binomial number of 400 with probability .95 is below 363 with probability below 1e-4.
    assert hit_count >= 363


def test_a_pair_without_a_person_allows_every_mean() -> None:
    noise = fit_geometric_noise(make_pair_query(AGES, PersonRows()), 1)
    assert compute_mean_interval(AGES, noise, 0, 0) == (18, 95)


def test_the_interval_needs_geometric_noise() -> None:
    with pytest.raises(wb.InvalidRequest, match="geometric"):
        compute_mean_interval(AGES, IntegerLaw(-1, [1, 2, 1]), 5, 5)
