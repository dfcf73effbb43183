"""Compute bits, error and privacy of the mechanisms that Fig. 1 of the DQL paper compares with.

DQL is the dyadic quantized Laplace mechanism (`dyadic_laplace` names the paper). Its Fig. 1 names
three properties: (A) a message has finitely many bits, (B) the noise is Laplace noise, and (C) the
decoder has a guarantee of privacy. Each of the three mechanisms lacks one of them.

mechanism                        message                      lacks
Laplace                          a real number                A
quantized Laplace                M = round((x + Z)/w)         B
dithering without local noise    M = round(x/(2R) - U)        C

x is uniform on [-1, 1], Z is Laplace noise of scale 1/ε, w is the step. U ~ Unif(-1/2, 1/2) and R
are shared with the decoder, which returns 2R (M + U). Given R, the error is uniform on [-R, R]. If
R has the density ε² r e^(-ε r), the error has the density

    ∫_|z|^∞ 1/(2r) ε² r e^(-ε r) dr = ε/2 e^(-ε |z|),

which is Laplace noise of scale 1/ε. The encoder has no randomness of its own. So (R, U, M) reveals
an interval of width 2R that contains x, and the decoder has no guarantee.

The mean length of a code is a sum over its classes (`mean_length`), with these tails:

    quantized   P(x + Z >= a) = (H(1 - a) - H(-1 - a))/2, with
                H(t) = e^(εt)/(2ε) for t <= 0, t + e^(-εt)/(2ε) for t > 0,
                the integral of P(Z >= -s) over s <= t
    dithered    P(|M| >= h) = E ∫_(h-1)^h P(R <= |x|/(2v)) dv = K(h) - K(h-1), with
                P(R <= r) = 1 - (1 + ε r) e^(-ε r),
                K(h) = E h (1 - e^(-ε |x|/(2h))) = h (1 - (1 - e^-t)/t), t = ε/(2h), K(0) = 0

The mean squared error of the quantized noise. Let Y = x + Z, and let e = w round(Y/w) - Y be its
rounding error. Then w M - x = e + Z, and the error is E Z² + E e² + 2 E eZ. With u = 2πk/w, the
Fourier series of the sawtooth e and of e², and the characteristic functions of x and Z give

    2/ε² + w²/12 + Σ_(k>=1) (-1)^k 4 sin(u)/u (1/u² - 1/(ε² + u²) + 2 ε²/(ε² + u²)²).

The sums of the three terms are known. Let n = round(1/w) and s = 1 - n w, so |s| <= w/2. The error
is then

    n w (2/ε² + w²/12) + s³/3
        + w/ε² sinh(εs)/sinh(εw/2) (1 - εs coth(εs) + (εw/2) coth(εw/2)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from workbench.exact.arrays import Vector
from workbench.mechanisms.dyadic_laplace.elias import Code, class_length

_CLASS_COUNT = 64  # Messages are below 2^63 in size.
_LEAST_THRESHOLD = 1e-300  # K(0) = 0 is computed at this h.
_MAX_SERIES_ARGUMENT = 1e-2  # K is computed by its series below this t.
# The step w is searched between 1e-9/ε and 1e9 (1 + 1/ε).
_MIN_SEARCHED_STEP = 1e-9
_MAX_SEARCHED_STEP = 1e9
_STEP_ITERATIONS = 80  # Halvings of the interval of ln w.


@dataclass(frozen=True)
class PlainMechanism:
    """The numbers of one mechanism for x uniform on [-1, 1]. ε is per unit of |x - x'|.

    Attributes:
        mean_bits: The mean length of a message. inf for a real number.
        mse: The mean squared error of the decoded number.
        database_epsilon: The guarantee of the decoded number.
        decoder_epsilon: The guarantee of all that the decoder knows. inf for none.
        step: The step w of a quantizer, None without one.
    """

    mean_bits: float
    mse: float
    database_epsilon: float
    decoder_epsilon: float
    step: float | None = None


def describe_laplace(epsilon: float) -> PlainMechanism:
    """Describe Laplace noise that is sent as a real number.

    Args:
        epsilon: The ε of the noise, > 0.
    """
    return PlainMechanism(
        mean_bits=math.inf,
        mse=2 / epsilon**2,
        database_epsilon=epsilon,
        decoder_epsilon=epsilon,
    )


def describe_quantized_laplace(epsilon: float, bits: float, code: Code) -> PlainMechanism:
    """Describe Laplace noise that is quantized with the smallest step within a mean length.

    Args:
        epsilon: The ε of the noise, > 0.
        bits: The largest mean length, > 1. A message has at least one bit.
        code: The Elias code.
    """
    # The logarithm of the step lies between these ends.
    low = math.log(_MIN_SEARCHED_STEP / epsilon)
    high = math.log(_MAX_SEARCHED_STEP * (1 + 1 / epsilon))
    for _ in range(_STEP_ITERATIONS):
        middle = (low + high) / 2
        if compute_quantized_bits(epsilon, math.exp(middle), code) > bits:
            low = middle
        else:
            high = middle
    step = math.exp(high)
    return PlainMechanism(
        mean_bits=compute_quantized_bits(epsilon, step, code),
        mse=compute_quantized_mse(epsilon, step),
        database_epsilon=epsilon,
        decoder_epsilon=epsilon,
        step=step,
    )


def describe_dithering(epsilon: float, code: Code) -> PlainMechanism:
    """Describe dithering without local noise.

    Args:
        epsilon: The ε of the decoded number, > 0.
        code: The Elias code.
    """
    thresholds = np.exp2(np.arange(_CLASS_COUNT - 1, dtype=float))
    tails = _integrate_widths(thresholds, epsilon) - _integrate_widths(thresholds - 1, epsilon)
    return PlainMechanism(
        mean_bits=_mean_length(tails, code),
        mse=2 / epsilon**2,
        database_epsilon=epsilon,
        decoder_epsilon=math.inf,
    )


def compute_quantized_bits(epsilon: float, step: float, code: Code) -> float:
    """Compute the mean length of round((x + Z)/w).

    Args:
        epsilon: The ε of the noise, > 0.
        step: The step w > 0.
        code: The Elias code.
    """
    # |M| >= 2^(j-1) means |x + Z| >= w (2^(j-1) - 1/2).
    thresholds = step * (np.exp2(np.arange(_CLASS_COUNT - 1, dtype=float)) - 0.5)
    # The law of x + Z is symmetric, so both tails are equal.
    upper = _integrate_tail(1 - thresholds, epsilon) - _integrate_tail(-1 - thresholds, epsilon)
    return _mean_length(upper, code)


def compute_quantized_mse(epsilon: float, step: float) -> float:
    """Compute E (w M - x)² for M = round((x + Z)/w), by the closed form of the module header.

    Args:
        epsilon: The ε of the noise, > 0.
        step: The step w > 0.
    """
    whole_steps = round(1 / step)
    s = 1 - step * whole_steps
    a = epsilon * abs(s)
    b = epsilon * step / 2
    # sinh(a)/sinh(b), without overflow.
    ratio = math.exp(a - b) * math.expm1(-2 * a) / math.expm1(-2 * b)
    bracket = 1 - _multiply_by_coth(a) + _multiply_by_coth(b)
    noise_part = step * math.copysign(ratio, s) * bracket / epsilon**2
    return step * whole_steps * (2 / epsilon**2 + step**2 / 12) + s**3 / 3 + noise_part


def _multiply_by_coth(t: float) -> float:
    """Compute t coth(t) for t >= 0, which is 1 at 0."""
    return t / math.tanh(t) if t > 0 else 1.0


def _integrate_tail(t: Vector, epsilon: float) -> Vector:
    """Compute H(t) of the module header, without overflow."""
    decay = np.exp(-epsilon * np.abs(t)) / (2 * epsilon)
    return np.where(t <= 0, decay, t + decay)


def _mean_length(tails: Vector, code: Code) -> float:
    """Compute the mean length from P(|M| >= 2^(j-1)), j = 1, 2, ..."""
    lengths = class_length(np.arange(tails.size + 1), code)
    return float(lengths[0] + np.diff(lengths) @ tails)


def _integrate_widths(h: Vector, epsilon: float) -> Vector:
    """Compute K(h) of the module header, whose series avoids the cancellation for small t."""
    t = epsilon / (2 * np.maximum(h, _LEAST_THRESHOLD))
    small_t = np.minimum(t, _MAX_SERIES_ARGUMENT)
    series = 1 / 2 - small_t / 6 + small_t**2 / 24 - small_t**3 / 120 + small_t**4 / 720
    closed_form = h * (1 + np.expm1(-t) / t)
    return np.where(t < _MAX_SERIES_ARGUMENT, epsilon / 2 * series, closed_form)
