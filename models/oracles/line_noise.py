"""Closed forms of additive noise on the integers and on the reals, loss absolute |η| or squared η².

    function               value, what it proves                                              source
    staircase_reals        least loss of pure noise on R: optimum, δ = 0                      Geng, Viswanath 2014
    staircase_integers     the same on Z; for D = 1 the geometric mechanism                   and Ghosh et al. 2009
    truncated_laplace      its loss on R: upper bound (for δ > 1/2 private, but not tight)    Geng et al. 2020
    geng_formula           printed as a lower bound on E|η|; not one everywhere               Geng et al. 2020

Staircase of parameter r: with b = e^-ε,

    f(η) = a b^⌈(|η| - r + 1)/D⌉ for |η| >= r, a below;   a = (1 - b)/(2r + 2b(D - r) - (1 - b)),   1 <= r <= D

The ratio b may be any rational: for b <= e^-ε the value is a lower bound, as a larger budget costs less.
"""

from __future__ import annotations

import math
from fractions import Fraction

POWERS = {"absolute": 1, "squared": 2}


def staircase_integers(b: Fraction, sensitivity: int, loss: str) -> tuple[Fraction, int]:
    """(the least loss over the parameters r = 1..sensitivity, that r), exact. b: in (0, 1)."""
    power, d = POWERS[loss], sensitivity
    s0, s1, s2 = (
        b / (1 - b),
        b * b / (1 - b) ** 2,
        b * b * (1 + b) / (1 - b) ** 3,
    )  # Σ_j b^(j+1) j^k, k = 0, 1, 2
    best = None
    for r in range(1, d + 1):
        # sums of x and x² over 0..r-1, and over r..r+d-1, where |η| = x + j d has mass a b^(j+1)
        linear, square = d * r + d * (d - 1) // 2, _squares(r + d) - _squares(r)
        if power == 1:
            spread = r * (r - 1) // 2 + linear * s0 + d * d * s1
        else:
            spread = _squares(r) + square * s0 + 2 * d * linear * s1 + d**3 * s2
        value = 2 * spread * (1 - b) / (2 * r + 2 * b * (d - r) - (1 - b))
        if best is None or value < best[0]:
            best = value, r
    assert best is not None
    return best


def _squares(n: int) -> int:
    """Σ_{x < n} x²."""
    return (n - 1) * n * (2 * n - 1) // 6


def staircase_reals(epsilon: float, sensitivity: float, loss: str) -> float:
    """The least loss of pure noise on the reals. epsilon > 0."""
    if POWERS[loss] == 1:
        return sensitivity * math.exp(epsilon / 2) / math.expm1(epsilon)
    b = math.exp(-epsilon)
    return float(sensitivity**2 * (2 ** (-2 / 3) * (b * (1 + b)) ** (2 / 3) + b) / (1 - b) ** 2)


def _log_ratio(epsilon: float, delta: float) -> float:
    """ln(1 + t) of t = (e^ε - 1)/2δ, also where t is too large for a float."""
    if epsilon < 30:
        return math.log1p(math.expm1(epsilon) / (2 * delta))
    return epsilon - math.log(2 * delta) + math.log1p((2 * delta - 1) * math.exp(-epsilon))


def truncated_laplace_support(epsilon: float, delta: float) -> float:
    """A/Δ: truncated Laplace noise lies in [-A, A], A = (Δ/ε) ln(1 + (e^ε - 1)/(2δ))."""
    return _log_ratio(epsilon, delta) / epsilon


def truncated_laplace(epsilon: float, delta: float, sensitivity: float, loss: str) -> float:
    """The loss of truncated Laplace noise with parameters ε, δ: (Δ/ε)^p p! R_p(L)/(e^L - 1), L = ln(1 + t), where
    R_p(L) = e^L - Σ_{k <= p} L^k/k! is summed as a series where it is a small difference."""
    log, power = _log_ratio(epsilon, delta), POWERS[loss]
    scale = math.factorial(power) * (sensitivity / epsilon) ** power
    if log < 1:
        return (
            scale
            * math.fsum(log**k / math.factorial(k) for k in range(power + 1, 30))
            / math.expm1(log)
        )
    below = math.fsum(log**k / math.factorial(k) for k in range(1, power + 1))
    return scale * (1 - below * math.exp(-log) / -math.expm1(-log))


def geng_formula(epsilon: float, delta: float, sensitivity: float, omitted_terms: int = 0) -> float:
    """2aΔ Σ_{i < n} i b^i, a = (δ + (e^ε - 1)/2) e^-ε, b = e^-ε, n the least integer with Σ_{i < n} a b^i >= 1/2, less
    `fewer`. Where that sum passes 1/2 it is no lower bound: at ε = δ = .05 it is 3.92, and a certified mechanism costs
    3.8523; one term fewer is what the tables of Selvi, Liu and Wiesemann have there."""
    a, b = (delta + math.expm1(epsilon) / 2) / math.exp(epsilon), math.exp(-epsilon)
    total, n = 0.0, 0
    while total < 0.5:
        total += a * b**n
        n += 1
    return 2 * a * sensitivity * sum(i * b**i for i in range(n - omitted_terms))
