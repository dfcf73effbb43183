"""The two-bin family of Cai et al. 2024 and its special cases: draw a bin left and one right of x, keep one unbiasedly.

For x in [B_j, B_{j+1}) a left bin l <= j is drawn with probability left[j](l) and a right bin r > j with right[m-j]
(m+1-r); B_l is published with probability (B_r - x)/(B_r - B_l), else B_r. The output law, eq. (4), is

    p(x, i) = left_j(i) Σ_{r>j} right_{m-j}(m+1-r) (B_r - x)/(B_r - B_i)           for B_i <= x
    p(x, i) = right_{m-j}(m+1-i) Σ_{l<=j} left_j(l) (x - B_l)/(B_i - B_l)          for B_i > x

affine in x between bins and discontinuous at them. Everything is computed in rationals; selection probabilities given
as floats are the rationals proportional to them, so the result is unbiased without any rounding error.

| paper                      | here                                                             |
|----------------------------|------------------------------------------------------------------|
| q_j(i) (symmetric)         | selection[j - 1][i - 1]                                          |
| q^(l)_j(i), q^(r)_j(i)     | selection, right                                                 |
| RQM, q                     | rqm(bins, q): q_j(1) = (1-q)^(j-1), q_j(i) = q (1-q)^(j-i)       |
| ERM, γ, eq. (2)            | erm(bins, gamma)                                                 |
| Theorem 1, (3)             | erm_epsilon_bound: ε < γ + ln(2m(c+Δ)/c)                          |
| Theorem 2                  | erm_error_bound: 4/γ ln(m)(c+Δ) + (2c+2Δ)/(m-1)                  |
| bound of Youn et al. 2023  | rqm_epsilon_bound: ln(2(1-q)²(c+Δ)/Δ) + m ln 1/(1-q)             |
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from workbench.errors import Infeasible, InvalidRequest
from workbench.exact.distribution import Distribution
from workbench.exact.numbers import Real, exact, positive
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.mechanisms.quantization import half_width, read_bins

__all__ = [
    "Selection",
    "equal_bins",
    "erm",
    "erm_epsilon_bound",
    "erm_error_bound",
    "erm_selection",
    "randomized_response",
    "rqm",
    "rqm_epsilon_bound",
    "rqm_selection",
    "two_bin",
]

Selection = list[Distribution]


def equal_bins(m: int, reach: Real) -> tuple[Fraction, ...]:
    """m bins equally spaced from -reach to reach. Raises InvalidRequest."""
    if not isinstance(m, int) or isinstance(m, bool) or m < 2:
        InvalidRequest.must("m", "an integer >= 2", m)
    top = positive(reach, "reach")
    return tuple(-top + 2 * top * i / (m - 1) for i in range(m))


def two_bin(
    bins: Any,
    selection: Sequence[Any],
    right: Sequence[Any] | None = None,
    *,
    c: Real = 1,
    name: str = "two-bin",
) -> Quantizer:
    """The two-bin mechanism with given selection distributions, as an exact quantizer.

    Args:
        bins: B_1 <= -c < c <= B_m.
        selection: m - 1 distributions, the j-th (from 1) over bins 1..j: probabilities or weights, floats or exact.
            Those that no input in [-c, c] uses may be None.
        right: the same for right bins, counted from the right; `selection` when left out (symmetric use).
        c: half the width of the input domain.
        name: for tables.

    Raises:
        InvalidRequest: for bins or distributions that are none.
    """
    half = half_width(c)
    outputs = read_bins(bins, half)
    m = len(outputs)
    knots = [-half, *(b for b in outputs if -half < b < half), half]
    q, r = _selection(selection, m), _selection(selection if right is None else right, m)
    pieces = []
    for a, b in itertools.pairwise(knots):
        j = max(i for i in range(m) if outputs[i] <= a) + 1
        left_law, right_law = q[j - 1], r[m - j - 1]
        if left_law is None or right_law is None:
            InvalidRequest.must("selection", f"given for {j} and {m - j} bins, which inputs use", "None")
        pieces.append((_law(outputs, j, left_law, right_law, a), _law(outputs, j, left_law, right_law, b)))
    return Quantizer(tuple(knots), outputs, tuple(end for piece in pieces for end in piece), name)


def _selection(given: Sequence[Any], m: int) -> list[Distribution | None]:
    if len(given) != m - 1:
        InvalidRequest.must("selection", f"{m - 1} distributions", len(given))
    laws: list[Distribution | None] = []
    for j, row in enumerate(given, 1):
        if row is None or isinstance(row, Distribution):
            laws.append(row)
        elif any(isinstance(value, float) for value in row):
            laws.append(Distribution.from_floats([max(0.0, value) for value in row], f"selection of {j}"))
        else:
            laws.append(Distribution(row, f"selection of {j}"))
        last = laws[-1]
        if last is not None and len(last) != j:
            InvalidRequest.must(f"selection of {j}", f"{j} probabilities", len(last))
    return laws


def _law(bins: Sequence[Fraction], j: int, left: Distribution, right: Distribution, x: Fraction) -> Distribution:
    """p(x, .) of eq. (4) when j bins count as lying left of x."""
    m = len(bins)
    p = [Fraction(0)] * m
    for l in range(j):
        for r in range(j, m):
            both = left[l] * right[m - 1 - r]
            if both:
                share = (bins[r] - x) / (bins[r] - bins[l])
                p[l] += both * share
                p[r] += both * (1 - share)
    return Distribution(p, "an end law")


def rqm_selection(m: int, q: Real) -> Selection:
    """The geometric selection of RQM, exact. q in [0, 1). Raises InvalidRequest."""
    value = exact(q, "q", "a number in [0, 1)")
    if not 0 <= value < 1:
        InvalidRequest.must("q", "a number in [0, 1)", q)
    keep = 1 - value
    return [Distribution([keep ** (j - 1), *(value * keep ** (j - i) for i in range(2, j + 1))]) for j in range(1, m)]


def rqm(bins: Any, q: Real, *, c: Real = 1) -> Quantizer:
    """The randomized quantization mechanism of Youn et al. 2023. bins: as `two_bin` (equally spaced in the papers)."""
    outputs = read_bins(bins, half_width(c))
    return two_bin(outputs, rqm_selection(len(outputs), q), c=c, name="RQM")


def erm_selection(bins: Sequence[Fraction], gamma: Real) -> Selection:
    """The selection (2) of ERM, in floats read exactly. gamma >= 0. Raises InvalidRequest."""
    value = positive(gamma, "gamma", or_zero=True)
    laws = []
    for j in range(1, len(bins)):
        width = bins[j - 1] - bins[0]
        scores = [0.0 if not width else float(value * (b - bins[j - 1]) / (2 * width)) for b in bins[:j]]
        laws.append(Distribution.from_floats([math.exp(score) for score in scores], "selection"))
    return laws


def erm(bins: Any, gamma: Real, *, c: Real = 1) -> Quantizer:
    """The exponential randomized mechanism, eq. (2). bins must be symmetric. Raises InvalidRequest."""
    outputs = read_bins(bins, half_width(c))
    if any(a != -b for a, b in zip(outputs, reversed(outputs), strict=True)):
        InvalidRequest.must("bins", "symmetric around 0 for ERM", ", ".join(f"{float(b):g}" for b in outputs))
    return two_bin(outputs, erm_selection(outputs, gamma), c=c, name="ERM")


def randomized_response(epsilon: Real, *, c: Real = 1) -> Quantizer:
    """Two-point randomized response: outputs ±c (e^ε + 1)/(e^ε - 1), rounded up so that ε holds exactly."""
    budget, half = positive(epsilon, "epsilon"), half_width(c)
    if budget > 700:
        raise Infeasible(f"epsilon must be at most 700 here. Got {float(budget):g}.")
    reach = half * Fraction(math.nextafter(1 / math.tanh(float(budget) / 2) * (1 + 2**-50), math.inf))
    return two_bin([-reach, reach], [[1]], c=half, name="randomized response")


def _span(c: Real, delta: Real) -> tuple[float, float]:
    return float(half_width(c)), float(positive(delta, "delta", or_zero=True))


def erm_epsilon_bound(m: int, gamma: Real, delta: Real, c: Real = 1) -> float:
    """Theorem 1: ERM with m equal bins on [-c-Δ, c+Δ] has ε < γ + ln(2m(c+Δ)/c) (its proof takes m >= 4)."""
    half, extra = _span(c, delta)
    return float(exact(gamma, "gamma")) + math.log(2 * m * (half + extra) / half)


def erm_error_bound(m: int, gamma: Real, delta: Real, c: Real = 1) -> float:
    """Theorem 2: E|M(x) - x| <= 4/γ ln(m) (c+Δ) + (2c+2Δ)/(m-1) for ERM with m equal bins."""
    half, extra = _span(c, delta)
    rate = float(positive(gamma, "gamma"))
    return 4 / rate * math.log(m) * (half + extra) + 2 * (half + extra) / (m - 1)


def rqm_epsilon_bound(m: int, q: Real, delta: Real, c: Real = 1) -> float:
    """Youn et al. 2023, as quoted: ε <= ln(2(1-q)²(c+Δ)/Δ) + m ln 1/(1-q)."""
    half, extra = _span(c, delta)
    keep = 1 - float(exact(q, "q"))
    return math.log(2 * keep**2 * (half + extra) / extra) + m * math.log(1 / keep)
