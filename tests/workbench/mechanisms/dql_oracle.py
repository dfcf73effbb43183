"""The laws of the DQL paper exactly as printed, in 160-digit arithmetic, as a reference."""

from __future__ import annotations

import decimal
from decimal import Decimal
from functools import cache

import numpy as np

DIGITS = decimal.Context(prec=160)


@cache
def delta_zero(ell: float) -> Decimal:
    """e^δ = δℓ + 1 by bisection."""
    with decimal.localcontext(DIGITS):
        slope = Decimal(ell)
        low, high = Decimal(0), Decimal(2) * (slope - 1) + 2
        while high.exp() < high * slope + 1:
            high *= 2
        low = (slope.ln()) / 2  # e^δ < δℓ + 1 here: δ < ln ℓ < δ₀ where h' < 0
        for _ in range(560):
            middle = (low + high) / 2
            if middle.exp() < middle * slope + 1:
                low = middle
            else:
                high = middle
        return low


def rho(delta: Decimal, ell: float) -> Decimal:
    """The factor of (4)."""
    power = (-delta).exp()
    line = delta * Decimal(ell) + 1
    return (4 - 4 * line * power) / ((1 + power) ** 2 * (2 / (1 + power * power) - line))


@cache
def cdf(ell: float, t: int) -> Decimal:
    """F_T(t) of (4), t >= -1, with the tail beyond 90 levels as -δ/(2(ℓ-1))."""
    with decimal.localcontext(DIGITS):
        first = delta_zero(ell)
        product = Decimal(1)
        for i in range(t + 1, 90):
            product *= rho(first / 2**i, ell) if i else Decimal(0)
        return product * (-(first / Decimal(2) ** 89) / (2 * (Decimal(ell) - 1))).exp()


def g(delta: float, x: np.ndarray) -> np.ndarray:
    """g_δ of (3): the interpolation of e^-|kδ| / c_δ."""
    c = delta * (1 + np.exp(-delta)) / (1 - np.exp(-delta))
    k = np.floor(x / delta)
    part = x / delta - k
    return ((1 - part) * np.exp(-np.abs(k * delta)) + part * np.exp(-np.abs((k + 1) * delta))) / c


def f(ell: float, t: int, x: np.ndarray) -> np.ndarray:
    """f_t of (5)."""
    delta = float(delta_zero(ell)) / 2**t
    now, before = float(cdf(ell, t)), float(cdf(ell, t - 1))
    return (now * g(delta, x) - before * g(2 * delta, x)) / (now - before)


def pmf(ell: float, t: int) -> float:
    """P(T = t)."""
    with decimal.localcontext(DIGITS):
        return float(cdf(ell, t) - cdf(ell, t - 1))


def cell(ell: float, t: int, m: np.ndarray, low: float, high: float, x: float) -> np.ndarray:
    """Compute P(M = m, low < U <= high | T = t) at ε = 1.

    It is ∫ δ f_t(δ(m + u) - x) du, by Simpson's rule on 400 pieces.
    """
    delta = float(delta_zero(ell)) / 2**t
    u = np.linspace(low, high, 401)
    weights = np.ones(401)
    weights[1:-1:2], weights[2:-1:2] = 4, 2
    heights = delta * f(ell, t, delta * (m[:, None] + u) - x)
    return heights @ weights * (high - low) / 1200
