"""Compute the error of Laplace and Gaussian noise that is calibrated the usual way.

The usual calibration knows only how far one person moves the published vector: by at most Δ1 in the
L1 norm and Δ2 in the L2 norm. Every coordinate gets independent noise on the reals. Geometric noise
is on the integers, for a count.

    noise                standard deviation             private for
    Laplace              √2 Δ1 / ε                      ε > 0, with δ = 0; Dwork et al. 2006
    geometric            √(2a) / (1 - a), a = e^(-ε/Δ)  ε > 0, with δ = 0; Ghosh et al. 2009
    classic Gaussian     Δ2 √(2 ln(1.25/δ)) / ε         0 < ε < 1, δ > 0; Dwork and Roth 2014, A.1
    analytic Gaussian    Δ2 σ(ε, δ)                     ε > 0, δ > 0; Balle and Wang 2018

σ(ε, δ) is the least standard deviation for Δ2 = 1. Let K be the rows of a person that count, and Δ
the sensitivity of one number (`workbench.publishing.sensitivity`). The norms are:

    statistic                       add or remove a person     replace a person's rows
    count, sum, mean with public n  Δ1 = Δ2 = Δ                Δ1 = Δ2 = Δ
    mean with private n             Δ1 = 2K, Δ2 = √2 K         Δ1 = 2K, Δ2 = 2K
    histogram, K rows anywhere      Δ1 = K, Δ2 = K             Δ1 = 2K, Δ2 = √2 K
    histogram, one row in a bin     Δ1 = K, Δ2 = √K            Δ1 = 2K, Δ2 = √(2K)

Mean with private n. The usual release is a noisy sum and a noisy number of rows. Values are centred
and scaled first, so u = (2x - lo - hi)/(hi - lo) is in [-1, 1]. The vector is (Σ u, n), and the
mean is (lo + hi)/2 + (hi - lo)/2 Σ u/n. A row moves the vector by (u, 1). Under replace, j rows
become k others. This moves it by (s, j - k) with |s| <= j + k, so the L1 norm is at most
2 max(j, k), and the squared L2 norm at most 2j² + 2k². With the standard deviation τ of both
coordinates, and the relative mean μ = (mean - lo)/(hi - lo), the error is to first order

    (hi - lo)/2 τ √(1 + (2μ - 1)²) / n
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from workbench.data.plain import read_integer
from workbench.errors import InvalidRequest, must
from workbench.exact.numbers import Real, read_number, read_positive, read_probability
from workbench.families.noise.published import compute_gaussian_sigma
from workbench.publishing.sensitivity import MAX_PUBLIC_ROWS, PersonRows, compute_sensitivity
from workbench.questions.joint_query import REPLACE

LAPLACE = "Laplace"
GEOMETRIC = "geometric"
CLASSIC_GAUSSIAN = "classic Gaussian"
ANALYTIC_GAUSSIAN = "analytic Gaussian"
_MAX_GEOMETRIC_EXPONENT = 1000  # From this ε/Δ, the error of geometric noise is 0 as a float.


@dataclass(frozen=True)
class UsualNoise:
    """The error of noise that is calibrated the usual way.

    Attributes:
        name: "Laplace", "geometric", "classic Gaussian", "analytic Gaussian" or, for a histogram,
            "ripple" (`workbench.publishing.ripple`).
        rmse: Root mean squared error of a count, a sum, a mean or one bin, in its unit.
        is_pure: Whether the noise is private with δ = 0.
    """

    name: str
    rmse: float
    is_pure: bool


@dataclass(frozen=True)
class PublishedVector:
    """How far one person moves a published vector, and the error of noise on its coordinates.

    Attributes:
        l1_norm: Δ1, the largest L1 norm of a move.
        squared_l2_norm: Δ2², the largest squared L2 norm of a move.
        error_factor: Root mean squared error of the statistic for noise with standard deviation 1
            on every coordinate.
    """

    l1_norm: Fraction
    squared_l2_norm: Fraction
    error_factor: float = 1.0


def list_usual_noise(vector: PublishedVector, epsilon: Real, delta: Real = 0) -> list[UsualNoise]:
    """List the error of Laplace and Gaussian noise that is calibrated the usual way.

    Args:
        vector: What is published, from `measure_number`, `measure_histogram` or
            `measure_sum_and_count`.
        epsilon: ε > 0.
        delta: δ in [0, 1). At 0 only Laplace noise is listed. The classic Gaussian is listed for
            ε < 1, where it is proven private.

    Returns:
        The kinds of noise, smallest error first.

    Raises:
        InvalidRequest: If ε or δ is outside its range.
    """
    exact_epsilon = read_positive(epsilon, "epsilon")
    exact_delta = read_probability(delta, "delta")
    if exact_delta and not 0 < float(exact_delta) < 1:
        must("delta", "0, or between 0 and 1 as a floating-point number", delta)
    factor = vector.error_factor
    laplace = math.sqrt(2) * float(vector.l1_norm / exact_epsilon)
    noise = [UsualNoise(LAPLACE, factor * laplace, is_pure=True)]
    if exact_delta:
        l2_norm = math.sqrt(vector.squared_l2_norm)
        sigma = l2_norm * compute_gaussian_sigma(exact_epsilon, exact_delta)
        noise.append(UsualNoise(ANALYTIC_GAUSSIAN, factor * sigma, is_pure=False))
        if exact_epsilon < 1:
            sigma = l2_norm * compute_classic_sigma(float(exact_epsilon), float(exact_delta))
            noise.append(UsualNoise(CLASSIC_GAUSSIAN, factor * sigma, is_pure=False))
    return sorted(noise, key=lambda kind: kind.rmse)


def measure_geometric_noise(sensitivity: Real, epsilon: Real) -> UsualNoise:
    """Measure geometric noise for a count, P(η) ∝ a^|η| with a = e^(-ε/Δ).

    Args:
        sensitivity: Δ > 0.
        epsilon: ε > 0.

    Raises:
        InvalidRequest: If an argument is outside its range.
    """
    exponent = read_positive(epsilon, "epsilon") / read_positive(sensitivity, "sensitivity")
    # √(2a) / (1 - a) = 1 / (√2 sinh(ε / 2Δ)), which keeps its digits at a small ε.
    error = 0.0
    if exponent < _MAX_GEOMETRIC_EXPONENT:
        error = 1 / (math.sqrt(2) * math.sinh(float(exponent) / 2))
    return UsualNoise(GEOMETRIC, error, is_pure=True)


def compute_classic_sigma(epsilon: float, delta: float) -> float:
    """Compute σ/Δ2 of the classic Gaussian mechanism, √(2 ln(1.25/δ)) / ε.

    Args:
        epsilon: ε in (0, 1).
        delta: δ in (0, 1).

    Raises:
        InvalidRequest: If ε is not in (0, 1), where the formula is not proven private.
    """
    if not 0 < epsilon < 1:
        must("epsilon", "between 0 and 1 for the classic Gaussian", epsilon)
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def measure_number(
    statistic: str,
    person: PersonRows,
    low: Real | None = None,
    high: Real | None = None,
    public_rows: int | None = None,
) -> PublishedVector:
    """Measure how far one person moves a count, a sum, or a mean with a public n.

    Args:
        statistic: "count", "sum" or "mean".
        person: The rows of one person, and the relation of neighbours.
        low: lo, the lower end of the values of a sum or mean. None for a count.
        high: hi > lo, the upper end of the values. None for a count.
        public_rows: n >= 1, the public number of rows of a mean. None for a count and a sum.

    Raises:
        InvalidRequest: If an argument is outside its range, or the mean is not private.
    """
    if statistic not in ("count", "sum", "mean"):
        must("statistic", "count, sum or mean", statistic)
    if statistic == "mean" and public_rows is None:
        raise InvalidRequest(
            "public_rows must be given for a mean. With a private number of rows, measure the sum "
            "and the count."
        )
    move = compute_sensitivity(statistic, person, low, high, public_rows)
    return PublishedVector(l1_norm=move, squared_l2_norm=move**2)


def measure_histogram(person: PersonRows, *, one_row_per_bin: bool) -> PublishedVector:
    """Measure how far one person moves the bins of a histogram.

    Args:
        person: The rows of one person, and the relation of neighbours.
        one_row_per_bin: Whether the person has at most one row in each bin.
    """
    # Under replace, the old and the new rows of the person may move different bins.
    sides = 2 if person.neighbours == REPLACE else 1
    squared_side = person.rows
    if not one_row_per_bin:
        squared_side = person.rows**2
    return PublishedVector(
        l1_norm=Fraction(sides * person.rows), squared_l2_norm=Fraction(sides * squared_side)
    )


def measure_sum_and_count(
    person: PersonRows,
    low: Real,
    high: Real,
    expected_rows: int,
    relative_mean: Real = Fraction(1, 2),
) -> PublishedVector:
    """Measure how far one person moves the centred sum and the number of rows of a mean.

    Args:
        person: The rows of one person, and the relation of neighbours.
        low: lo, the lower end of the values.
        high: hi > lo, the upper end of the values.
        expected_rows: n >= 1, a public guess of the number of rows.
        relative_mean: μ in [0, 1], a public guess of (mean - lo)/(hi - lo). Default: 1/2, where
            the error is smallest.

    Raises:
        InvalidRequest: If an argument is outside its range.
    """
    exact_low = read_number(low, "low")
    exact_high = read_number(high, "high")
    if exact_low >= exact_high:
        must("high", f"above low = {exact_low}", exact_high)
    rows = read_integer(expected_rows, "expected_rows", 1, MAX_PUBLIC_ROWS)
    mu = read_probability(relative_mean, "relative_mean")
    squared_l2_norm = Fraction(2 * person.rows**2)
    if person.neighbours == REPLACE:
        squared_l2_norm *= 2
    factor = float((exact_high - exact_low) / 2) / rows * math.sqrt(1 + (2 * mu - 1) ** 2)
    return PublishedVector(
        l1_norm=Fraction(2 * person.rows), squared_l2_norm=squared_l2_norm, error_factor=factor
    )
