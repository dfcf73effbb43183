"""Compute the laws of the paper on the dyadic quantized Laplace mechanism (DQL) as printed.

Tests compare the faster and more stable formulas of the workbench with these. The numbers (3) to
(5) are equation numbers of the paper. Its notation: ℓ > 1 is the ratio of the two guarantees, T the
random level, δ = δ₀/2^T the step at level T, and ε = 1. Numbers that cancel are computed in 160
digits.
"""

from __future__ import annotations

import decimal
from decimal import Decimal
from functools import cache

import numpy as np

DIGITS = decimal.Context(prec=160)


@cache
def delta_zero(ell: float) -> Decimal:
    """Compute δ₀, the positive solution of e^δ = δℓ + 1, by bisection."""
    with decimal.localcontext(DIGITS):
        slope = Decimal(ell)
        high = Decimal(2) * (slope - 1) + 2
        while high.exp() < high * slope + 1:
            high *= 2
        # e^δ - δℓ - 1 is 0 at δ = 0 and falls up to δ = ln ℓ, so it is negative at half of that.
        low = slope.ln() / 2
        for _ in range(560):  # 560 halvings resolve more than 160 digits.
            middle = (low + high) / 2
            if middle.exp() < middle * slope + 1:
                low = middle
            else:
                high = middle
        return low


def rho(delta: Decimal, ell: float) -> Decimal:
    """Compute the factor of the product in (4) that belongs to the step δ."""
    power = (-delta).exp()
    line = delta * Decimal(ell) + 1
    return (4 - 4 * line * power) / ((1 + power) ** 2 * (2 / (1 + power * power) - line))


@cache
def cdf(ell: float, t: int) -> Decimal:
    """Compute F_T(t) = Pr[T <= t] of (4), for t >= -1.

    It is the product of ρ(δ_i) over all i > t. The factors from i = 90 on are replaced by
    e^(-δ_89/(2(ℓ - 1))), to which their product is equal in first order.
    """
    if t < 0:
        return Decimal(0)
    with decimal.localcontext(DIGITS):
        first = delta_zero(ell)
        product = Decimal(1)
        for i in range(t + 1, 90):
            product *= rho(first / 2**i, ell)
        return product * (-(first / Decimal(2) ** 89) / (2 * (Decimal(ell) - 1))).exp()


def g(delta: float, x: np.ndarray) -> np.ndarray:
    """Compute the density g_δ of (3) at x: it interpolates e^-|x| at the multiples of δ."""
    c = delta * (1 + np.exp(-delta)) / (1 - np.exp(-delta))
    k = np.floor(x / delta)
    share = x / delta - k
    left = np.exp(-np.abs(k * delta))
    right = np.exp(-np.abs((k + 1) * delta))
    return ((1 - share) * left + share * right) / c


def f(ell: float, t: int, x: np.ndarray) -> np.ndarray:
    """Compute the density f_t of (5) at x: the noise at level t."""
    delta = float(delta_zero(ell)) / 2**t
    upper = float(cdf(ell, t))
    lower = float(cdf(ell, t - 1))
    return (upper * g(delta, x) - lower * g(2 * delta, x)) / (upper - lower)


def pmf(ell: float, t: int) -> float:
    """Compute Pr[T = t]."""
    with decimal.localcontext(DIGITS):
        return float(cdf(ell, t) - cdf(ell, t - 1))


def cell(ell: float, t: int, m: np.ndarray, low: float, high: float, x: float) -> np.ndarray:
    """Compute Pr[M = m, low < U <= high | T = t] for the number x. Shape of m.

    It is ∫ δ f_t(δ(m + u) - x) du from low to high, by Simpson's rule.

    Args:
        ell: the ratio ℓ.
        t: the level.
        m: the values of the sent integer M. Shape (n,).
        low: the lower end of the interval of the dither U.
        high: its upper end.
        x: the number that is encoded.
    """
    interval_count = 400
    delta = float(delta_zero(ell)) / 2**t
    u = np.linspace(low, high, interval_count + 1)
    weights = np.ones(interval_count + 1)
    weights[1:-1:2] = 4
    weights[2:-1:2] = 2
    heights = delta * f(ell, t, delta * (m[:, None] + u) - x)
    return heights @ weights * (high - low) / (3 * interval_count)
