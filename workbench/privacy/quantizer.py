"""The least ε of a quantizer for every real input, linear in its end laws.

    pure ε           the largest ratio of an output's masses, over the mechanism's extremes  (Cai et al. 2024, eq. (6))
metric, |x-x'|   `PiecewiseAffine.metric_epsilon`: the steepest slope of ln p; ∞ at a jump
metric, |x-x'|²  for inputs dithered to the knots only: max over neighbouring knots of ln ratio / (b - a)²
                 (`PiecewiseAffine.from_knots` says why)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from workbench.errors import InvalidRequest
from workbench.exact.numbers import Real, ln_up, positive, round_up, sign_exp
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.mechanism import Comparison, as_mechanism
from workbench.mechanisms.piecewise_affine import PiecewiseAffine
from workbench.privacy.claim import Claim
from workbench.privacy.notions.laws import Laws
from workbench.privacy.notions.metric import Metric

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
        high, low: its mass where it is largest and smallest, such as "Pr[0|x=0.5+]" for the right limit at 0.5; "" for
            a metric.
    """

    ratio: Fraction | None
    bias: Fraction
    output: int = 0
    high: str = ""
    low: str = ""
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

    def holds(self, claim: Claim) -> bool:
        """`meets` of a claim."""
        return self.meets(claim.notion.name, claim.epsilon, claim.delta)

    def verdict(self, epsilon: Real, bins: Iterable[Fraction]) -> str:
        """`meets` in words, with the place where the law varies most."""
        good = self.meets("pure" if self.metric is None else "metric", epsilon)
        sentence = f"exact epsilon is {self.epsilon!r}, asked {float(positive(epsilon, 'epsilon', or_zero=True)):.17g}"
        if self.high:
            sentence += f" (output {float(list(bins)[self.output]):g}: {self.high} against {self.low})"
        return sentence if good else f"misses the request: {sentence}"


def audit_quantizer(mechanism: PiecewiseAffine, metric: str | None = None) -> QuantizerPrivacy:
    """The least ε of a quantizer, exact. metric: None, "absolute" or "squared". Raises InvalidRequest."""
    subject: Any = as_mechanism(mechanism)
    if not isinstance(subject, PiecewiseAffine):
        InvalidRequest.must("mechanism", "a PiecewiseAffine", type(subject).__name__)
    if metric is None:
        worst, names = _largest(subject.extremes())
        return QuantizerPrivacy(worst[0], subject.bias, worst[1], *names)
    if metric not in METRICS:
        InvalidRequest.must("metric", f"one of {', '.join(METRICS)}", repr(metric))
    steepest = Metric().measure_segments(subject.segments, {}).value
    if metric == "absolute":
        return QuantizerPrivacy(steepest, subject.bias, metric=metric)
    if steepest is None:  # a jump, or an output that one end of a piece never draws
        return QuantizerPrivacy(None, subject.bias, metric=metric)
    worst_link = Fraction(1), Fraction(1)
    for segment in subject.segments:
        laws = Channel((segment.left, segment.right))
        ratio, step = _largest(laws.comparisons())[0][0], (segment.high - segment.low) ** 2
        assert ratio is not None
        worst_link = max(worst_link, (ratio, step), key=lambda link: ln_up(link[0]) / float(link[1]))
    return QuantizerPrivacy(worst_link[0], subject.bias, metric=metric, step=worst_link[1])


def _largest(comparisons: Iterable[Comparison]) -> tuple[tuple[Fraction | None, int], tuple[str, str]]:
    """The largest ratio P/Q (None: unbounded) with its outcome, and the names of the two masses."""
    best: tuple[Fraction | None, int] | None = None
    names = ("", "")
    for one in comparisons:
        ratio, outcome = Laws(one.p, one.q).max_ratio
        if best is None or ratio is None or (best[0] is not None and ratio > best[0]):
            best, names = (ratio, outcome), one.describe(outcome)
        if ratio is None:
            break
    assert best is not None
    return best, names
