"""Compute closed forms of the loss of additive noise on the integers Z and on the reals R.

The functions answer: what is the smallest mean of |η| or η² at sensitivity D, or a bound on it? η
is the noise. Pure noise satisfies ε-DP with δ = 0. Δ is the sensitivity on R, D that on Z.

    function             value and the statement it proves                    source
    staircase_reals      least loss of pure noise on R: optimum, δ = 0        Geng, Viswanath 2014
    staircase_integers   the same on Z; for D = 1 the geometric mechanism     and Ghosh et al. 2009
    truncated_laplace    its loss on R: upper bound (for δ > 1/2 private,     Geng et al. 2020
                         but not tight)
    geng_formula         printed as a lower bound on E|η|; it is not one      Geng et al. 2020
                         everywhere

Staircase on Z of parameter r, with the PMF f, the ratio b = e^-ε and the mass a at 0:

    f(η) = a b^⌈(|η| - r + 1)/D⌉ for |η| >= r, a below;
    a = (1 - b)/(2r + 2b(D - r) - (1 - b)),   1 <= r <= D

The ratio b may be any rational in (0, 1). For b <= e^-ε the value is a lower bound on the loss at
ε, as b belongs to a budget of at least ε.
"""

from __future__ import annotations

import math
from fractions import Fraction

POWERS = {"absolute": 1, "squared": 2}
# From this ε on ln(1 + (e^ε - 1)/2δ) is computed in a form that cannot overflow.
_MAX_DIRECT_EPSILON = 30
_MIN_DIRECT_LOG = 1  # For a smaller L (see `truncated_laplace`) R_p(L) is summed as a series.
_SERIES_TERMS = 30  # The series of R_p(L) ends before this power.


def staircase_integers(b: Fraction, sensitivity: int, loss: str) -> tuple[Fraction, int]:
    """Compute the least loss of staircase noise on the integers, exactly.

    Args:
        b: ratio e^-ε in (0, 1).
        sensitivity: D, the largest difference of neighbouring answers, an integer >= 1.
        loss: "absolute" (mean of |η|) or "squared" (mean of η²).

    Returns:
        The least loss over the parameters r = 1..D, and that r.
    """
    power = POWERS[loss]
    d = sensitivity  # D of the module header.
    # sk is the sum Σ_j b^(j+1) j^k for k = 0, 1, 2.
    s0 = b / (1 - b)
    s1 = b * b / (1 - b) ** 2
    s2 = b * b * (1 + b) / (1 - b) ** 3
    candidates = []
    for r in range(1, d + 1):
        # Sums of x and x² over 0..r-1, and over r..r+d-1, where |η| = x + j d has mass a b^(j+1).
        linear_sum = d * r + d * (d - 1) // 2
        square_sum = _sum_squares(r + d) - _sum_squares(r)
        if power == 1:
            moment = r * (r - 1) // 2 + linear_sum * s0 + d * d * s1
        else:
            tail = square_sum * s0 + 2 * d * linear_sum * s1 + d**3 * s2
            moment = _sum_squares(r) + tail
        value = 2 * moment * (1 - b) / (2 * r + 2 * b * (d - r) - (1 - b))
        candidates.append((value, r))
    return min(candidates)


def _sum_squares(n: int) -> int:
    """Compute Σ_{x < n} x²."""
    return (n - 1) * n * (2 * n - 1) // 6


def staircase_reals(epsilon: float, sensitivity: float, loss: str) -> float:
    """Compute the least loss of pure noise on the reals.

    Args:
        epsilon: ε > 0.
        sensitivity: Δ > 0, the largest distance of neighbouring answers.
        loss: "absolute" (mean of |η|) or "squared" (mean of η²).
    """
    if POWERS[loss] == 1:
        return sensitivity * math.exp(epsilon / 2) / math.expm1(epsilon)
    b = math.exp(-epsilon)
    moment = 2 ** (-2 / 3) * (b * (1 + b)) ** (2 / 3) + b
    return float(sensitivity**2 * moment / (1 - b) ** 2)


def _log_ratio(epsilon: float, delta: float) -> float:
    """Compute ln(1 + t) of t = (e^ε - 1)/2δ, also where t is too large for a float."""
    if epsilon < _MAX_DIRECT_EPSILON:
        return math.log1p(math.expm1(epsilon) / (2 * delta))
    return epsilon - math.log(2 * delta) + math.log1p((2 * delta - 1) * math.exp(-epsilon))


def truncated_laplace_support(epsilon: float, delta: float) -> float:
    """Compute A/Δ: truncated Laplace noise lies in [-A, A], A = (Δ/ε) ln(1 + (e^ε - 1)/(2δ)).

    Args:
        epsilon: budget ε > 0.
        delta: budget δ in [0, 1].
    """
    return _log_ratio(epsilon, delta) / epsilon


def truncated_laplace(
    epsilon: float,
    delta: float,
    sensitivity: float,
    loss: str,
) -> float:
    """Compute the mean loss of truncated Laplace noise that is (ε, δ)-DP.

    It is (Δ/ε)^p p! R_p(L)/(e^L - 1) for the power p of |η|, with L = ln(1 + (e^ε - 1)/(2δ)) and
    R_p(L) = e^L - Σ_{k <= p} L^k/k!. For a small L this difference is summed as a series.

    Args:
        epsilon: budget ε > 0.
        delta: budget δ in [0, 1].
        sensitivity: Δ.
        loss: "absolute" or "squared".
    """
    log = _log_ratio(epsilon, delta)
    power = POWERS[loss]
    scale = math.factorial(power) * (sensitivity / epsilon) ** power
    if log < _MIN_DIRECT_LOG:
        exponents = range(power + 1, _SERIES_TERMS)
        series = math.fsum(log**k / math.factorial(k) for k in exponents)
        return scale * series / math.expm1(log)
    first_terms = math.fsum(log**k / math.factorial(k) for k in range(1, power + 1))
    return scale * (1 - first_terms * math.exp(-log) / -math.expm1(-log))


def geng_formula(
    epsilon: float,
    delta: float,
    sensitivity: float,
    omitted_terms: int = 0,
) -> float:
    """Compute 2aΔ Σ_{i < n} i b^i, which is printed as a lower bound on E|η|.

    Here a = (δ + (e^ε - 1)/2) e^-ε, b = e^-ε, and n is the smallest integer with
    Σ_{i < n} a b^i >= 1/2, minus the number of omitted terms. If that sum exceeds 1/2, the value is
    no lower bound: at ε = δ = .05 it is 3.92, and a certified mechanism has the loss 3.8523. With
    one term omitted it has the values in the tables of Selvi, Liu and Wiesemann.

    Args:
        epsilon: budget ε > 0.
        delta: budget δ in [0, 1].
        sensitivity: Δ.
        omitted_terms: number of terms to omit.
    """
    a = (delta + math.expm1(epsilon) / 2) / math.exp(epsilon)
    b = math.exp(-epsilon)
    total = 0.0
    n = 0
    while total < 0.5:
        total += a * b**n
        n += 1
    return 2 * a * sensitivity * sum(i * b**i for i in range(n - omitted_terms))
