"""Build the baselines of Figs 5-8 of Kadam et al. 2024 as exact finite mechanisms.

Notation: answers q and outputs k are in 0..n; η is the noise, f its law and F its distribution
function; neighbouring answers differ by at most μ̄; N is the number of elements of a group. Numbers
in brackets are references of the paper, numbers in parentheses its equations.

    paper                               code
    two-sided geometric, α [8]          clamped_geometric(n, alpha):  f(η) = (1-α)/(1+α) α^|η|
    discrete Gaussian, σ² [11]          clamped_gaussian(n, variance):  f(η) ∝ exp(-η²/2σ²)
    exponential, Gumbel(ε, β') [26,28]  exponential_mechanism(n, scale):  Pr[k|q] ∝ exp(-|k-q|/β')
    data-independent, ρ [13]            data_independent(question, error_rate):  f(0) = 1-ρ, the
                                        rest ρ/(N-1) each
    clamping, (57)-(58)                 clamped_channel(n, law)
    discrete count mechanism [10]       not defined in the paper, and of [10] only the abstract was
                                        accessible: any law can replace it (`clamped_channel`,
                                        Channel.from_rows, AdditiveNoise.from_pmf)

Erratum. (58) gives the last output k = n the mass 1 - F(n - q), so the rows sum to 1 - f(n - q).
By (57) this mass is Pr[η >= n - q] = 1 - F(n - q - 1), which `clamped_channel` uses.

The paper leaves two points open, and this module reads them as follows.
* Gumbel mechanism. The paper adds "Gumbel(ε, β')" and cites the Gumbel-max trick [28]: the argmax
  over outputs of score + Gumbel(0, β') noise has the softmax of score/β' as its law. With the score
  -|k - q| this is the exponential mechanism [26], which is (2μ̄/β')-DP.
* Errors. Clamping makes the errors depend on q. MSE and ER are averages over uniform answers.

Figs 5-8 compare mechanisms of equal error. `fit_baseline` finds the parameter at which the error
rate or the MSE of a family is a target (by Brent's method). Each error grows with the parameter,
from 0 towards a limit. A target at or above the limit is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from workbench.data.plain import read_integer
from workbench.errors import InvalidRequest, must
from workbench.exact.arrays import Vector
from workbench.exact.distribution import Distribution, to_common_denominator
from workbench.exact.integer_law import IntegerLaw
from workbench.exact.numbers import (
    Real,
    exp_bounds,
    read_number_where,
    read_positive,
    read_probability,
)
from workbench.mechanisms.additive import AdditiveNoise
from workbench.mechanisms.channel import Channel
from workbench.questions.modulo_noise import ModuloNoise

_MAX_ANSWERS = 10_000  # A larger n is refused, because a channel has (n + 1)² masses.
# The masses of a discrete Gaussian are multiples of 2^-160: the tail below is smaller than any δ
# that a float can show.
_MASS_BITS = 160


def clamped_channel(n: int, law: IntegerLaw) -> Channel:
    """Build the channel that adds integer noise and clamps the sum to 0..n, by (57) and (58).

    The output is min(max(0, q + η), n). (58) is corrected as the module header says:
    Pr[0|q] = F(-q), Pr[k|q] = f(k - q) for 0 < k < n, Pr[n|q] = 1 - F(n - q - 1).

    Args:
        n: The largest answer of 0..n.
        law: The law f of the noise η.

    Returns:
        The channel of n + 1 answers and outputs.

    Raises:
        InvalidRequest: If n is no integer from 1 to 10,000.
    """
    read_integer(n, "n", 1, _MAX_ANSWERS)
    return Channel(tuple(law.clamp(-q, n - q) for q in range(n + 1)))


def geometric_alpha(variance: Real) -> float:
    """Compute the α whose two-sided geometric law has a variance: α = (1 + v - sqrt(1 + 2v))/v.

    Figs 6 and 8 print α = 0.7 with variance 3.38. The variance of α = 0.7 is 15.56; the variance
    3.38 needs α = 0.4717.

    Args:
        variance: The variance v of the noise, > 0.

    Raises:
        InvalidRequest: If variance is not a finite number > 0.
    """
    v = float(read_positive(variance, "variance"))
    # This is the same root, without cancellation.
    return v / (1 + v + math.sqrt(1 + 2 * v))


def clamped_geometric(n: int, alpha: Real) -> Channel:
    """Build the exact clamped two-sided geometric mechanism of [8].

    Args:
        n: The largest answer of 0..n.
        alpha: The ratio α of neighbouring masses, in [0, 1).

    Raises:
        InvalidRequest: If n is no integer from 1 to 10,000, or alpha is outside [0, 1).
    """
    ratio = read_number_where(alpha, "alpha", "a number in [0, 1)", lambda number: 0 <= number < 1)
    return clamped_channel(n, IntegerLaw(first=0, weights=[1], ratio=ratio))


def clamped_gaussian(n: int, variance: Real) -> Channel:
    """Build the clamped discrete Gaussian mechanism of [11].

    Its masses are rounded to multiples of about 2^-160.

    Args:
        n: The largest answer of 0..n.
        variance: The parameter σ² of exp(-η²/2σ²), finite and > 0 (the variance itself is a little
            below it when σ² < 1).

    Raises:
        InvalidRequest: If n is no integer from 1 to 10,000, or variance is not a finite number > 0.
    """
    radius, law = discrete_gaussian(read_positive(variance, "variance"))
    return clamped_channel(n, IntegerLaw(-radius, law))


@lru_cache(maxsize=64)
def discrete_gaussian(variance: Fraction) -> tuple[int, Distribution]:
    """Compute the discrete Gaussian law with masses rounded down to multiples of about 2^-160.

    Args:
        variance: The parameter σ² > 0.

    Returns:
        R and the law on -R..R. Its masses are proportional to ⌊2^160 exp(-η²/2σ²)⌋, and R is the
        largest η at which this integer is not 0.
    """
    right_weights = [1 << _MASS_BITS]  # The weights of η = 0, 1, ..., R.
    while right_weights[-1]:
        exponent = -Fraction(len(right_weights) ** 2) / (2 * variance)
        weight, _ = exp_bounds(exponent, _MASS_BITS)
        right_weights.append(weight)
    right_weights.pop()
    radius = len(right_weights) - 1
    # The left weights are the right ones in reverse order, without η = 0.
    return radius, Distribution.from_integers([*right_weights[:0:-1], *right_weights])


def exponential_mechanism(n: int, scale: Real) -> Channel:
    """Build the exponential mechanism on 0..n with the score -|k - q|: Pr[k|q] ∝ e^{-|k-q|/β'}.

    Args:
        n: The largest answer of 0..n.
        scale: The scale β' > 0. The float nearest to e^{-1/β'} is used as an exact rational.

    Raises:
        InvalidRequest: If n is no integer from 1 to 10,000, or scale is not a finite number > 0.
    """
    read_integer(n, "n", 1, _MAX_ANSWERS)
    step = Fraction(math.exp(-1 / float(read_positive(scale, "scale"))))
    powers, _ = to_common_denominator([step**d for d in range(n + 1)])
    rows = ([powers[abs(k - q)] for k in range(n + 1)] for q in range(n + 1))
    return Channel(tuple(map(Distribution.from_integers, rows)))


def data_independent(question: ModuloNoise, error_rate: Real) -> AdditiveNoise:
    """Build the exact data-independent mechanism of [13]: f(0) = 1 - ρ, every other mass ρ/(N-1).

    Args:
        question: The query, on a group of N answers.
        error_rate: The probability ρ of a wrong answer, in [0, 1].

    Raises:
        InvalidRequest: If question is no ModuloNoise, or error_rate is outside [0, 1].
    """
    rho = read_probability(error_rate, "error_rate")
    other_count = question.order - 1
    return AdditiveNoise(question, [1 - rho, *[rho / other_count] * other_count])


def _output_errors(n: int) -> Any:
    """Return the errors k - q for all answers q and outputs k, shape (n+1, n+1)."""
    return np.arange(n + 1)[None, :] - np.arange(n + 1)[:, None]


def _clamp_table(n: int, tails: Vector) -> Vector:
    """Compute Pr[k|q] of clamped symmetric noise as floats.

    Small probabilities are not computed as differences from 1, so they keep their digits.

    Args:
        n: The largest answer.
        tails: Pr[η >= m] for m = 1..n+1, shape (n+1,).

    Returns:
        Pr[k|q], shape (n+1, n+1).
    """
    # law[d] is the mass f(d) = f(-d).
    law = np.concatenate([[1 - 2 * tails[0]], tails[:-1] - tails[1:]])
    table = law[np.abs(_output_errors(n))]
    # Output 0 on answer q has Pr[η <= -q], and output n has Pr[η >= n - q]. Entry m - 1 of `tails`
    # is Pr[η >= m].
    table[0, 0] = table[n, n] = 1 - tails[0]
    table[1:, 0] = tails[:-1]
    table[:-1, n] = tails[n - 1 :: -1]
    return np.asarray(table)


def _geometric_table(n: int, alpha: float) -> Vector:
    """Compute Pr[k|q] of clamped geometric noise as floats, shape (n+1, n+1)."""
    return _clamp_table(n, np.power(alpha, np.arange(1.0, n + 2)) / (1 + alpha))


def _gaussian_table(n: int, log_variance: float) -> Vector:
    """Compute Pr[k|q] of clamped discrete Gaussian noise as floats, shape (n+1, n+1)."""
    variance = math.exp(log_variance)
    # Terms beyond 40 standard deviations underflow to 0.
    terms = np.exp(-(np.arange(n + 2 + int(40 * math.sqrt(variance))) ** 2.0) / (2 * variance))
    # Entry m is proportional to Pr[η >= m]. The term of η = 0 is 1, and both sides are equal.
    tails = np.cumsum(terms[::-1])[::-1]
    return _clamp_table(n, tails[1 : n + 2] / (2 * tails[1] + 1))


def _exponential_table(n: int, scale: float) -> Vector:
    """Compute Pr[k|q] of the exponential mechanism as floats, shape (n+1, n+1)."""
    weights = np.exp(-np.abs(_output_errors(n)) / scale)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


class BaselineFamily(NamedTuple):
    """A family of baselines with one parameter, which is searched along a coordinate x.

    Attributes:
        table: Function (n, x) -> Pr[k|q] as floats, shape (n+1, n+1).
        span: The interval in which x is searched.
        parameter: Function x -> parameter: the identity (`float`) if x is the parameter itself, or
            the exponential function if x is its logarithm.
        build: Function (n, parameter) -> exact channel.
    """

    table: Callable[[int, float], Vector]
    span: tuple[float, float]
    parameter: Callable[[float], float]
    build: Callable[[int, float], Channel]


BASELINE_FAMILIES = {
    "geometric": BaselineFamily(
        _geometric_table, span=(0.0, 1 - 1e-6), parameter=float, build=clamped_geometric
    ),
    "gaussian": BaselineFamily(
        _gaussian_table,
        span=(math.log(1e-3), math.log(1e8)),
        parameter=math.exp,
        build=clamped_gaussian,
    ),
    "exponential": BaselineFamily(
        _exponential_table, span=(1e-3, 1e6), parameter=float, build=exponential_mechanism
    ),
}


def fit_baseline(
    family: str, n: int, *, mse: Real | None = None, error_rate: Real | None = None
) -> float:
    """Find the parameter at which a baseline on answers 0..n has a requested MSE or error rate.

    The relative error of the parameter is about 1e-14.

    Args:
        family: "geometric" (the parameter is α), "gaussian" (σ²) or "exponential" (β').
        n: The largest answer, in 1..10,000.
        mse: The mean squared error, > 0; give this or error_rate.
        error_rate: The error rate, > 0.

    Returns:
        The parameter α, σ² or β'.

    Raises:
        InvalidRequest: If the family is unknown, if both or neither of mse and error_rate are
            given, if n is no integer from 1 to 10,000, or if no parameter of the family has this
            error.
    """
    if family not in BASELINE_FAMILIES:
        must("family", f"one of {', '.join(BASELINE_FAMILIES)}", family)
    if (mse is None) == (error_rate is None):
        raise InvalidRequest("A target must be given by exactly one of mse and error_rate.")
    read_integer(n, "n", 1, _MAX_ANSWERS)
    from scipy.optimize import brentq

    table, (low, high), parameter, _ = BASELINE_FAMILIES[family]
    if mse is None:
        name = "error_rate"
        requested_error = error_rate
        loss = _output_errors(n) != 0
    else:
        name = "mse"
        requested_error = mse
        loss = _output_errors(n) ** 2
    target = float(read_positive(requested_error, name))

    def error_excess(x: float) -> float:
        """Return the error at the coordinate x, less the requested error."""
        return float((table(n, x) * loss).sum() / (n + 1)) - target

    if error_excess(low) > 0 or error_excess(high) < 0:
        min_error = error_excess(low) + target
        max_error = error_excess(high) + target
        must(
            name,
            f"in {min_error:.3g}..{max_error:.6g} for the {family} baseline with n={n}",
            requested_error,
        )
    return parameter(float(brentq(error_excess, low, high, xtol=1e-15, rtol=1e-14, maxiter=500)))
