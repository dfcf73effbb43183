"""Compute the laws of the random step of dyadic quantized Laplace noise (DQL) and of its parts.

"The paper" is Communication-Efficient Laplace Mechanism for Differential Privacy via Random
Quantization; numbers in parentheses, sections and theorems are its own. DQL draws a level T, and
then noise N with the density f_T, which is piecewise linear on a grid with the step δ_T = δ₀/2^T.
The mixture of the f_t is the Laplace density. ℓ > 1 is the ratio of the decoder's ε to the
database's, F_T is the distribution function of T, and tri(u) = max(0, 1 - |u|). The formulas below
lose no digits as δ -> 0 or ℓ -> 1. They are for the scale ε = 1. With τ = tanh(δ/2), q = e^(-2δ),
s = 1 + δℓ

    1 - ρ(δ) = τ² (2 + δℓ + tanh δ) / (δℓ - tanh δ)               ρ(δ_i) = F_T(i - 1)/F_T(i), (4)
    ρ(δ)     = 4 e^-δ (δ(ℓ-1) - (e^δ - 1 - δ)) / ((1 + e^-δ)² (δℓ - tanh δ))
    ln F_T(t) = Σ_(i>t) ln ρ(δ_i),   P(T = t) = F_T(t) (1 - ρ(δ_t)),   ρ(δ₀) = 0
    f_t(x) = (1/δ_t) Σ_k a_k tri(x/δ_t - k),   a_k = A q^(|k|/2) for even k,
                                               a_k = B q^((|k|-1)/2) for odd k
    A = s B,   B = (1 - q) / (s (1 + q) + 2)

The last line is step 9 of Algorithm 1 (`step_weights`). The code computes δℓ - tanh δ as
δ(ℓ-1) + (δ - tanh δ), where δ - tanh δ and e^δ - 1 - δ are special functions of SciPy.

    paper           code                        paper           code
    ℓ               ell                         T, t            level, row of Levels
    δ_t             Levels.deltas               F_T, p_T        Levels.cdf, Levels.pmf
    f_t             component                   Pr[N > y δ_t]   tail (tail_mean over an interval)

Encoder and decoder must compute the same δ₀ and the same thresholds of T. These are therefore
enclosed in balls of 400 bits. Otherwise a difference of one bit between the mathematical libraries
of two machines would let them disagree on T, about once in 2^50 scalars.

    e^(δ₀) = δ₀ℓ + 1        delta_zero          Sec. 5
    F_T(t) / F_T(t_max)     level_thresholds    (4), evaluated as printed; 400 bits outlast its
                                                cancellation
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.data.plain import read_integer
from workbench.errors import must
from workbench.exact.arrays import Vector
from workbench.mechanisms.dyadic_laplace.piecewise_linear import QuantizedPiecewiseLinear

# Levels that are further below δ = 1 and below δ₀ are left out; their mass is under 2^-70.
_LEVELS_BELOW_ONE = 72
_NODE = 1 / math.sqrt(3)  # The Gauss-Legendre nodes of order 2 on [-1, 1] are ±_NODE.
# Intervals in units of δ_t that are narrower are integrated by quadrature.
_MAX_NARROW_WIDTH = 0.5
_MAX_EXPONENT = 746.0  # e to minus this is 0 in doubles.
_BALL_BITS = 400  # Precision of the balls around δ₀ and the thresholds.
_MAX_ELL = 2.0**500  # A larger ℓ is refused, because 1 + δ₀ℓ would overflow.


def _delta_zero(ell: float) -> Any:
    """Compute a ball around the root δ₀ > 0 of e^δ = δℓ + 1: -1/ℓ - W₋₁(-e^(-1/ℓ)/ℓ)."""
    from flint import arb

    return -1 / arb(ell) - (-(-1 / arb(ell)).exp() / ell).lambertw(-1)


def delta_zero(ell: float) -> float:
    """Compute the largest step δ₀ of DQL as the nearest double.

    Args:
        ell: The ratio ℓ of the decoder's ε to the database's, in (1, 2^500].

    Raises:
        InvalidRequest: If ell is not a number in (1, 2^500].
    """
    from flint import ctx

    if not (isinstance(ell, int | float) and 1 < ell <= _MAX_ELL):
        must("ell", "a finite number > 1, at most 2^500", ell)
    with ctx.workprec(_BALL_BITS):
        return float(_delta_zero(ell).mid())


@lru_cache(maxsize=256)
def level_thresholds(ell: float, max_level: int) -> tuple[int, ...]:
    """Compute the thresholds at which a uniform 64-bit word gives the next level.

    For a uniform 64-bit word, the number of thresholds c_t <= word has the law of T given
    T <= max_level, to 2^-64. A ratio F_T(t)/F_T(max_level) is the finite product of (4) over
    i = t+1, ..., max_level.

    Args:
        ell: The ratio ℓ > 1 of the decoder's ε to the database's.
        max_level: The largest level T, an integer >= 0.

    Returns:
        c_0 <= ... <= c_(max_level - 1), with c_t = ⌊2^64 F_T(t) / F_T(max_level)⌋.
    """
    from flint import arb, ctx

    with ctx.workprec(_BALL_BITS):
        delta = _delta_zero(ell) / 2**max_level
        # From the largest level down, `ratio` becomes 2^64 F_T(t) / F_T(max_level).
        ratio = arb(2) ** 64
        thresholds = []
        for _ in range(max_level):
            power = (-delta).exp()
            line = delta * ell + 1
            ratio *= (4 - 4 * line * power) / ((1 + power) ** 2 * (2 / (1 + power * power) - line))
            thresholds.append(int(ratio.floor().unique_fmpz()))
            delta *= 2
        return tuple(reversed(thresholds))


@dataclass(frozen=True)
class Levels:
    """The law of the level T for one ℓ: unconditional, or conditional on T <= max_level.

    Row t of an array belongs to T = t. The rows of the unconditional law end where the remaining
    mass is below 2^-70.

    Attributes:
        ell: The ratio ℓ of the decoder's ε to the database's.
        deltas: The steps δ_t of the levels, shape (rows,).
        cdf: The probabilities F_T(t) = P(T <= t), shape (rows,).
        pmf: The probabilities P(T = t), shape (rows,).
    """

    ell: float
    deltas: Vector
    cdf: Vector
    pmf: Vector

    @property
    def mean_neg_log_delta(self) -> float:
        """Return E[-ln δ_T] = E[T] ln 2 - ln δ₀, the term of Theorem 8 (`mean_length`)."""
        return math.fsum(self.pmf * -np.log(self.deltas))


def _excess_exp(delta: Vector) -> Vector:
    """Compute e^δ - 1 - δ = δ²/2 ₁F₁(1; 3; δ). Shape of delta."""
    # SciPy is slow to import.
    from scipy.special import hyp1f1

    return np.asarray(delta**2 / 2 * hyp1f1(1, 3, delta))


def _law(deltas: Vector, ell: Vector, excess: Vector) -> tuple[Vector, Vector]:
    """Compute the unconditional law of T.

    Args:
        deltas: The steps δ_t, t = 0, 1, ..., shape (..., rows).
        ell: The ratio ℓ, shape (..., 1).
        excess: ℓ - 1 without cancellation, shape (..., 1).

    Returns:
        (P(T <= t), P(T = t)), each of shape (..., rows).
    """
    from scipy.special import spherical_in

    tanh = np.tanh(deltas)
    half = np.tanh(deltas / 2)
    # δ - tanh δ = (δ cosh δ - sinh δ)/cosh δ. The denominator of both formulas is δℓ - tanh δ.
    delta_less_tanh = deltas**2 * spherical_in(1, deltas) / np.cosh(deltas)
    denominator = deltas * excess + delta_less_tanh
    one_less_rho = half * half * (2 + deltas * ell + tanh) / denominator
    one_less_rho[..., 0] = 1.0  # ρ(δ₀) = 0.
    later_one_less_rho = one_less_rho[..., 1:]
    later_deltas = deltas[..., 1:]
    exponential = np.exp(-later_deltas)
    rho = (
        4
        * exponential
        * (later_deltas * excess - _excess_exp(later_deltas))
        / ((1 + exponential) ** 2 * denominator[..., 1:])
    )
    # If ρ is near 1, ln(1 - (1 - ρ)) keeps its digits. Otherwise ln ρ is accurate.
    logs = np.where(
        later_one_less_rho < 0.5, np.log1p(-np.minimum(later_one_less_rho, 0.5)), np.log(rho)
    )
    # Beyond the last row ln ρ(δ) is -δ / (2 (ℓ-1)) up to rounding. Each step there is half of the
    # one before, so their sum is the step of the last row, and Σ ln ρ(δ_i) over these rows is:
    later_rows = -deltas[..., -1:] / (2 * excess)
    # ln F_T(t) is a sum over the rows after t, so the sums run from the last row to the first.
    cdf = np.exp(
        np.cumsum(np.concatenate([logs, later_rows], axis=-1)[..., ::-1], axis=-1)[..., ::-1]
    )
    return cdf, cdf * one_less_rho


def ell_from_delta(delta0: npt.ArrayLike) -> tuple[Vector, Vector]:
    """Compute the ℓ whose largest step is δ₀: ℓ = (e^(δ₀) - 1)/δ₀, which increases from 1.

    Args:
        delta0: Largest steps δ₀ > 0, any shape.

    Returns:
        (ℓ, ℓ - 1), each of the shape of delta0. The second has no cancellation.
    """
    step = np.asarray(delta0, dtype=np.float64)
    return np.expm1(step) / step, _excess_exp(step) / step


def compute_levels_at(delta0: npt.ArrayLike) -> tuple[Vector, Vector, Vector]:
    """Compute the unconditional law of T for many δ₀ at once.

    Args:
        delta0: Largest steps δ₀ > 0, shape (n,).

    Returns:
        ℓ, shape (n,); the steps δ_t, shape (n, rows); and P(T = t), shape (n, rows).
    """
    step = np.asarray(delta0, dtype=np.float64)
    ell, excess = ell_from_delta(step)
    deltas = np.ldexp(
        step[:, None], -np.arange(_LEVELS_BELOW_ONE + max(0, math.ceil(math.log2(step.max()))))
    )
    _, pmf = _law(deltas, ell[:, None], excess[:, None])
    return ell, deltas, pmf


@lru_cache(maxsize=512)
def compute_levels(ell: float, max_level: int | None = None) -> Levels:
    """Compute the law of T for one ℓ: unconditional, or conditional on T <= max_level.

    Args:
        ell: The ratio ℓ of the decoder's ε to the database's, in (1, 2^500].
        max_level: The largest level T, an integer >= 0. None: the unconditional law.

    Raises:
        InvalidRequest: If ell is not a number in (1, 2^500], or max_level is negative.
    """
    largest_step = delta_zero(ell)
    if max_level is not None:
        read_integer(max_level, "max_level", 0, constraint="an integer >= 0, or None")
    deltas = np.ldexp(
        largest_step,
        -np.arange(
            max(
                _LEVELS_BELOW_ONE + max(0, math.ceil(math.log2(largest_step))), (max_level or 0) + 1
            )
        ),
    )
    cdf, pmf = _law(deltas, np.array([float(ell)]), np.array([ell - 1.0]))
    if max_level is not None:
        rows = slice(0, max_level + 1)
        deltas, cdf, pmf = deltas[rows], cdf[rows] / cdf[max_level], pmf[rows] / cdf[max_level]
    for array in (deltas, cdf, pmf):
        array.flags.writeable = False
    return Levels(float(ell), deltas, cdf, pmf)


def step_weights(delta: Vector, ell: Vector | float) -> tuple[Vector, Vector, Vector]:
    """Compute the weights of f_t that determine all others.

    Args:
        delta: The step δ_t of a level, any shape.
        ell: The ratio ℓ of the decoder's ε to the database's; its shape broadcasts with delta.

    Returns:
        (A, B, q): the weights a_0 and a_1 = a_-1, and the ratio a_(k+2)/a_k for k >= 0.
    """
    # With c₀, c₁ and r of Algorithm 1,
    # A/B = (1/c₀ - r/c₁) / (e^-δ/c₀ - r(1 + e^-2δ)/(2c₁)) = 1 + δℓ, so r is not needed.
    q = np.exp(-2 * delta)
    s = 1 + delta * ell
    b = -np.expm1(-2 * delta) / (s * (1 + q) + 2)
    return s * b, b, q


def component(ell: float, t: int) -> QuantizedPiecewiseLinear:
    """Return the mechanism that DQL runs if T = t, whose noise has the density f_t of (5).

    It has the scale 1, and by Lemma 5 its ε is ℓ for every t.

    Args:
        ell: The ratio ℓ of the decoder's ε to the database's.
        t: The level, an integer >= 0.

    Raises:
        InvalidRequest: If ell <= 1, t < 0, or δ_t < 2^-51.
    """
    first = delta_zero(ell)
    # The ratio e^(-2δ) leaves too few digits of 1 - q below about δ_t = 2^-50.
    _, exponent = math.frexp(first)
    max_level = 50 + exponent
    read_integer(t, "t", 0, max_level, f"an integer from 0 to {max_level} for ell = {ell:g}")
    delta = math.ldexp(first, -t)
    a, b, q = (float(v) for v in step_weights(np.asarray(delta), ell))
    return QuantizedPiecewiseLinear(
        delta, (q * a, b, a, b, q * a), first=-2, left=q, right=q, period=2
    )


def tail(y: Vector, delta: Vector, ell: Vector | float) -> Vector:
    """Compute Pr[N / δ_t > y] for N ~ f_t and every real y, without cancellation.

    f_t(x + 2δ) = q f_t(x) for x >= 0, so only the quadratics on [0, 2) are needed. The shapes of
    the arguments broadcast.

    Args:
        y: Real numbers.
        delta: The step δ_t of a level.
        ell: The ratio ℓ of the decoder's ε to the database's.

    Returns:
        Probabilities.
    """
    distance = np.abs(y)
    periods = np.floor(distance / 2)
    mass = np.exp(-2 * delta * periods) * _first_period(
        distance - 2 * periods, *step_weights(delta, ell)
    )
    return np.where(y >= 0, mass, 1 - mass)


def _first_period(v: Vector, a: Vector, b: Vector, q: Vector) -> Vector:
    """Compute `tail` at 0 <= v <= 2 from the weights of f_t.

    In units of δ_t, the density of the noise is a at 0, b at 1 and q a at 2, and linear between
    these. So the tail is a quadratic on [0, 1], and another one on [1, 2]. Half of the noise is
    above 0, so the tail at 2 is q/2.
    """
    return np.where(v <= 1, _first_cell(v, a, b, q), _second_cell(v, a, b, q))


def _first_cell(v: Vector, a: Vector, b: Vector, q: Vector) -> Vector:
    """Compute `tail` at 0 <= v <= 1: the masses of [v, 1], of [1, 2], and above 2."""
    rest = np.maximum(1 - v, 0)
    tail: Vector = b * rest + (a - b) * rest**2 / 2 + (b + q * a) / 2 + q / 2
    return tail


def _second_cell(v: Vector, a: Vector, b: Vector, q: Vector) -> Vector:
    """Compute `tail` at 1 <= v <= 2: the masses of [v, 2] and above 2."""
    rest = 2 - v
    return q * a * (rest - rest**2 / 2) + b * rest**2 / 2 + q / 2


def tail_mean(low: Vector, high: Vector, delta: Vector, ell: Vector | float) -> Vector:
    """Compute the mean of `tail` over [low, high] without cancellation, however narrow it is.

    The shapes of the arguments broadcast.

    Args:
        low: The lower ends.
        high: The upper ends, >= low.
        delta: The step δ_t of a level.
        ell: The ratio ℓ of the decoder's ε to the database's.

    Returns:
        The means.
    """
    if np.array_equal(low, high):
        return tail(low, delta, ell)
    columns = np.broadcast_arrays(low, high, delta, *step_weights(delta, ell))
    begin, end, step, *_ = columns
    integral = np.zeros(begin.shape)
    # The tail at -y is 1 less the tail at y. Few intervals have points on both sides of 0.
    is_right = (end > 0) & (step * (begin - 2) < _MAX_EXPONENT)
    is_left = begin < 0
    right_low, right_high, *parameters = (column[is_right] for column in columns)
    integral[is_right] = _integrate_tail(np.maximum(right_low, 0), right_high, *parameters)
    left_low, left_high, *parameters = (column[is_left] for column in columns)
    left_high = np.minimum(left_high, 0)
    integral[is_left] += left_high - left_low - _integrate_tail(-left_high, -left_low, *parameters)
    width = end - begin
    mean: Vector = np.divide(integral, width, out=integral, where=width > 0)
    is_point = width == 0
    if is_point.any():
        ratios = np.broadcast_to(ell, begin.shape)
        mean[is_point] = tail(begin[is_point], step[is_point], ratios[is_point])
    return mean


def _integrate_tail(
    low: Vector, high: Vector, delta: Vector, a: Vector, b: Vector, q: Vector
) -> Vector:
    """Integrate `tail` over [low, high], 0 <= low <= high, all of shape (n,).

    The antiderivative would lose the digits of a narrow interval, so quadrature integrates these.

    Args:
        low: The lower ends.
        high: The upper ends.
        delta: The step δ_t of a level.
        a: The weight a_0 of f_t.
        b: The weight a_1 of f_t.
        q: The ratio a_(k+2)/a_k of f_t.
    """
    integral = np.empty(low.shape)
    is_narrow = high - low < _MAX_NARROW_WIDTH
    for integrate, selected in ((_integrate_narrow, is_narrow), (_integrate_wide, ~is_narrow)):
        if selected.any():
            columns = (column[selected] for column in (low, high, delta, a, b, q))
            integral[selected] = integrate(*columns)
    return integral


def _integrate_narrow(
    low: Vector, high: Vector, delta: Vector, a: Vector, b: Vector, q: Vector
) -> Vector:
    """Compute `_integrate_tail` over intervals that contain at most one integer.

    The tail is a quadratic on each side of the integer, so two Gauss-Legendre nodes are exact.
    """

    def integrate_cell(cell: Vector, begin: Vector, end: Vector, *parameters: Vector) -> Vector:
        """Integrate from begin to end, which lie in [cell, cell + 1]."""
        step, *weights = parameters
        periods = np.floor(cell / 2)
        middle = (begin + end) / 2 - 2 * periods
        half = (end - begin) / 2
        nodes = np.array([middle - half * _NODE, middle + half * _NODE])
        integral = half * _first_period(nodes, *weights).sum(axis=0)
        return np.asarray(np.exp(-2 * step * periods) * integral)

    cell = np.floor(low)
    boundary = np.minimum(cell + 1, high)
    integral = integrate_cell(cell, low, boundary, delta, a, b, q)
    has_two_cells = boundary < high
    columns = (cell + 1, boundary, high, delta, a, b, q)
    integral[has_two_cells] += integrate_cell(*(column[has_two_cells] for column in columns))
    return integral


def _integrate_wide(
    low: Vector, high: Vector, delta: Vector, a: Vector, b: Vector, q: Vector
) -> Vector:
    """Compute `_integrate_tail` over intervals at least 0.5 wide, from the rests of periods.

    An interval inside one period has the integral begin - end. Any other one is split into the rest
    of its first period, complete periods, and the start of its last period, period - end. As the
    tail falls, such a difference is at least an eighth of its first term, or smaller than the other
    parts of the result. So few digits are lost.
    """
    first = np.floor(low / 2)
    last = np.floor(high / 2)
    begin = _integrate_rest_of_period(low - 2 * first, a, b, q)
    end = _integrate_rest_of_period(high - 2 * last, a, b, q)
    period = q + b + (a + 5 * q * a) / 6  # The integral from 0 to 2.
    complete_periods = np.maximum(last - first - 1, 0)
    # Each period has q = e^(-2δ) times the integral of the one before. With m complete periods,
    # they add up to period (q + ... + q^m) = q period (q^m - 1)/(q - 1).
    power_less_one = np.expm1(-2 * delta * complete_periods)  # q^m - 1
    complete_part = q * period * power_less_one / np.expm1(-2 * delta)
    later_part = complete_part + q * (1 + power_less_one) * (period - end)
    return np.asarray(
        np.exp(-2 * delta * first) * (begin + np.where(first == last, -end, later_part))
    )


def _integrate_rest_of_period(v: Vector, a: Vector, b: Vector, q: Vector) -> Vector:
    """Integrate `tail` from v to 2, 0 <= v <= 2, by sums of positive terms.

    These are the antiderivatives of `_second_cell` and `_first_cell` in `rest`.
    """
    # Products are faster than powers.
    rest = np.minimum(2 - v, 1)  # The width of the part in [1, 2].
    integral = rest * (q / 2 + rest * (q * a / 2 + rest * ((b - q * a) / 6)))
    rest = np.maximum(1 - v, 0)  # The width of the part in [0, 1].
    integral += rest * ((b + q * a + q) / 2 + rest * (b / 2 + rest * ((a - b) / 6)))
    return np.asarray(integral)
