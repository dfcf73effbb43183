"""Privacy of integer noise without clamping (n = ∞ in Fig. 6): infinite support, no truncation error left out.

With neighbours |q - q'| <= μ̄ and a law whose ratio f(η)/f(η+μ) never falls as η grows, the outcomes that break the
budget are a half-line {η >= η0}, so

    δ_PDP(ε) = max_μ Pr[η >= η0],     δ_DP(ε) = max_μ (Pr[η >= η0] - e^ε Pr[η >= η0 + μ]),     1 <= μ <= μ̄

and -μ gives the same by symmetry of f. Two-sided geometric: tails are rational, η0 is decided exactly. Discrete
Gaussian: f(η) > e^ε f(η+μ) iff 2ημ + μ² > 2σ²ε, also exact; tails are sums of enclosures of exp(-η²/2σ²) plus the
geometric bound  Σ_{k>=K} e^{-k²/2σ²} <= e^{-K²/2σ²} / (1 - e^{-K/σ²})  on what is cut off.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from workbench.errors import InvalidRequest
from workbench.exact.numbers import Real, exact, exp_bounds, positive, round_up, sign_exp
from workbench.mechanisms.baselines.count_queries import geometric_cdf
from workbench.privacy.notions import delta_notion
from workbench.privacy.notions.delta_notion import DeltaNotion

__all__ = ["gaussian_profile", "geometric_profile"]

_BITS = 512


def geometric_profile(alpha: Real, max_shift: int, epsilons: Iterable[Real], notion: str = "dp") -> NDArray[np.float64]:
    """δ(ε) of unclamped two-sided geometric noise, rounded up, in the notion "dp" or "pdp".

    alpha: in (0, 1); epsilons: >= 0. Shape (len(epsilons),). Raises InvalidRequest.
    """
    value = exact(alpha, "alpha", "a number in (0, 1)")
    if not 0 < value < 1:
        InvalidRequest.must("alpha", "a number in (0, 1)", alpha)
    measure = _checked(notion, max_shift)

    def at(epsilon: Fraction) -> float:
        best = 0.0
        for shift in range(1, max_shift + 1):
            # ln f(η)/f(η+μ) = (2η+μ) ln 1/α for -μ <= η <= 0, constant outside
            steps = range(1 - shift, 1)
            start = next((e for e in steps if sign_exp(value ** -(2 * e + shift), Fraction(1), epsilon) > 0), None)
            if start is None:
                continue
            a, b = 1 - geometric_cdf(value, start - 1), 1 - geometric_cdf(value, start + shift - 1)
            best = max(best, measure.of_masses(a, b, epsilon).upper)
        return best

    return np.array([at(positive(epsilon, "epsilon", or_zero=True)) for epsilon in epsilons])


def gaussian_profile(
    variance: Real, max_shift: int, epsilons: Iterable[Real], notion: str = "dp"
) -> NDArray[np.float64]:
    """δ(ε) of unclamped discrete Gaussian noise with parameter σ², rounded up, in the notion "dp" or "pdp".

    variance: σ² of exp(-η²/2σ²), finite and > 0; epsilons: >= 0. Shape (len(epsilons),). Raises InvalidRequest.
    """
    value = positive(variance, "variance")
    measure = _checked(notion, max_shift)
    tails = _Tails(value)

    def at(epsilon: Fraction) -> float:
        best = Fraction(0)
        low = Fraction(exp_bounds(epsilon, _BITS)[0], 1 << _BITS)
        for shift in range(1, max_shift + 1):
            start = math.floor((2 * value * epsilon - shift * shift) / (2 * shift)) + 1
            a, b = measure.coefficients(tails.probability(start)[1], tails.probability(start + shift)[0])
            best = max(best, a - low * b)
        return min(1.0, round_up(best))

    return np.array([at(positive(epsilon, "epsilon", or_zero=True)) for epsilon in epsilons])


class _Tails:
    """Enclosures of Pr[η >= s] for the discrete Gaussian with parameter σ², from sums in units of 2^-512."""

    def __init__(self, variance: Fraction) -> None:
        terms = [(1 << _BITS, 1 << _BITS)]
        while terms[-1][0] >> 32:  # stop where a term is below 2^-480
            terms.append(exp_bounds(-Fraction(len(terms) ** 2) / (2 * variance), _BITS))
        self.cut = len(terms) - 1
        _, high = terms.pop()
        step = (1 << _BITS) - exp_bounds(-Fraction(self.cut) / variance, _BITS)[1]
        low, high = 0, -(-(high << _BITS) // step)
        self.sums = [(low, high)]
        for term in reversed(terms):
            low, high = low + term[0], high + term[1]
            self.sums.append((low, high))
        self.sums.reverse()  # sums[s] encloses Σ_{k>=s} exp(-k²/2σ²) for 0 <= s <= cut
        (a, b), (c, d) = self.sums[0], self.sums[1]
        self.whole = a + c, b + d

    def probability(self, s: int) -> tuple[Fraction, Fraction]:
        """Rationals (lo, hi) with lo <= Pr[η >= s] <= hi."""
        if s < 1:
            low, high = self.probability(1 - s)
            return 1 - high, 1 - low
        low_sum, high_sum = self.sums[s] if s <= self.cut else (0, self.sums[self.cut][1])
        return Fraction(low_sum, self.whole[1]), Fraction(high_sum, self.whole[0])


def _checked(notion: str, max_shift: int) -> DeltaNotion:
    if not isinstance(max_shift, int) or isinstance(max_shift, bool) or max_shift < 1:
        InvalidRequest.must("max_shift", "an integer >= 1", max_shift)
    return delta_notion(notion)
