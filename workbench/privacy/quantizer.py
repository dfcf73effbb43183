"""The exact audit of a quantizer for every real input: extremes at end laws, ratios of rationals.

Between knots p(., i) is affine, so over x in [-c, c] its extremes are end laws (both one-sided limits at every knot):

    pure ε           max_i ln( max_x p(x, i) / min_x p(x, i) )                               eq. (6)
    metric, |x-x'|   the least ε with |∂p/∂x| <= ε p everywhere, which is equivalent to p(x) <= e^{ε|x-x'|} p(x'):
                     max over pieces [a, b] of |p(b) - p(a)| / ((b - a) min(p(a), p(b))); ∞ at a jump
    metric, |x-x'|²  for inputs dithered to the knots only: max over neighbouring knots of ln ratio / (b - a)².
                     (On the interval itself it would force a constant law: cut a path from x to x' into n steps, each
                     worth ε|x-x'|²/n², n in all; their sum tends to 0.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from workbench.errors import InvalidRequest
from workbench.mechanisms.quantizer import Quantizer
from workbench.numbers import Real, ln_up, positive, round_up, sign_exp

__all__ = ["METRICS", "QuantizerPrivacy", "audit_quantizer"]

METRICS = ("absolute", "squared")


@dataclass(frozen=True)
class QuantizerPrivacy:
    """What an audit of a quantizer found, decided exactly.

    Attributes:
        ratio: the largest p(x, i)/p(x', i), a rational; None when a zero is reachable. For metric "absolute" the
            least ε itself, a rational; for "squared" the ratio of the worst link.
        metric: None, "absolute" or "squared".
        step: for "squared", the (squared) length of the worst link.
        bias: max_x |E M(x) - x|, exact.
        output: position of the bin where it happens.
        high, low: where p is largest and smallest, such as "0.5+" for the right limit at 0.5.
    """

    ratio: Fraction | None
    bias: Fraction
    output: int
    high: str
    low: str
    metric: str | None = None
    step: Fraction = Fraction(1)

    @property
    def epsilon(self) -> float:
        """The least ε the mechanism has, rounded up; inf when a zero is reachable."""
        if self.ratio is None:
            return math.inf
        if self.metric == "absolute":
            return round_up(self.ratio)
        return ln_up(self.ratio) if self.metric is None else math.nextafter(ln_up(self.ratio) / self.step, math.inf)

    def meets(self, notion: str, epsilon: Real, delta: Real = 0) -> bool:
        """Whether the mechanism is ε-private, decided exactly. notion: "pure" or "metric"; delta must be 0."""
        budget = positive(epsilon, "epsilon", or_zero=True)
        if notion != ("pure" if self.metric is None else "metric"):
            InvalidRequest.must("notion", "pure" if self.metric is None else "metric", notion)
        if delta != 0:
            InvalidRequest.must("delta", f"0 for the notion {notion}", delta)
        if self.ratio is None:
            return False
        if self.metric == "absolute":
            return self.ratio <= budget
        return sign_exp(self.ratio, Fraction(1), budget * self.step) <= 0

    def verdict(self, epsilon: Real, bins: Iterable[Fraction]) -> str:
        """`meets` in words, with the place where the law varies most."""
        good = self.meets("pure" if self.metric is None else "metric", epsilon)
        at = float(list(bins)[self.output])
        found = f"exact epsilon is {self.epsilon!r}, asked {float(positive(epsilon, 'epsilon', or_zero=True)):.17g}"
        where = f"output {at:g}: most likely at x = {self.high}, least at x = {self.low}"
        return f"{found} ({where})" if good else f"misses the request: {found} ({where})"


def audit_quantizer(mechanism: Quantizer, metric: str | None = None) -> QuantizerPrivacy:
    """The exact audit of a piecewise-affine quantizer. metric: None, "absolute" or "squared". Raises InvalidRequest."""
    if not isinstance(mechanism, Quantizer):
        InvalidRequest.must("mechanism", "a Quantizer", type(mechanism).__name__)
    if metric is None:
        return _pure(mechanism)
    if metric not in METRICS:
        InvalidRequest.must("metric", f"one of {', '.join(METRICS)}", repr(metric))
    return _metric(mechanism, metric)


def _pure(mechanism: Quantizer) -> QuantizerPrivacy:
    laws, names = [], []
    for (left, right), (a, b) in zip(mechanism.pieces, pairwise(mechanism.knots), strict=True):
        laws += [left, right]
        names += [f"{float(a):g}+" if a > -mechanism.c else f"{float(a):g}",
                  f"{float(b):g}-" if b < mechanism.c else f"{float(b):g}"]  # fmt: skip
    worst: tuple[Fraction | None, int, str, str] | None = None
    for i in range(mechanism.m):
        column = [law[i] for law in laws]
        top, bottom = max(column), min(column)
        if top == 0:
            continue
        ratio = None if bottom == 0 else top / bottom
        if worst is None or ratio is None or (worst[0] is not None and ratio > worst[0]):
            worst = ratio, i, names[column.index(top)], names[column.index(bottom)]
        if ratio is None:
            break
    assert worst is not None
    return QuantizerPrivacy(worst[0], mechanism.bias, worst[1], worst[2], worst[3])


def _metric(mechanism: Quantizer, metric: str) -> QuantizerPrivacy:
    worst: tuple[float, Fraction | None, int, int, Fraction] = (-1.0, Fraction(0), 0, 0, Fraction(1))
    for k, (left, right) in enumerate(mechanism.pieces):
        if k and mechanism.pieces[k - 1][1] != left:
            at = f"{float(mechanism.knots[k]):g}"
            return QuantizerPrivacy(None, mechanism.bias, 0, f"{at}-", f"{at}+", metric)
        width = mechanism.knots[k + 1] - mechanism.knots[k]
        for i in range(mechanism.m):
            a, b = left[i], right[i]
            if a == b:
                continue
            low, high = min(a, b), max(a, b)
            if low == 0:
                size, ratio, step = math.inf, None, Fraction(1)
            elif metric == "absolute":
                ratio, step = (high - low) / (width * low), Fraction(1)
                size = float(ratio)
            else:
                ratio, step = high / low, width**2
                size = ln_up(ratio) / float(step)
            if size > worst[0] or (metric == "absolute" and ratio is not None and worst[1] is not None
                                   and ratio > worst[1]):  # fmt: skip
                worst = size, ratio, i, k, step
    _, ratio, i, k, step = worst
    if worst[0] < 0:
        ratio = Fraction(0) if metric == "absolute" else Fraction(1)
    ends = f"{float(mechanism.knots[k]):g}", f"{float(mechanism.knots[k + 1]):g}"
    return QuantizerPrivacy(ratio, mechanism.bias, i, ends[0], ends[1], metric, step)
