"""The least ε of a quantizer for every real input, linear in its end laws: the measures of the notions, no budget.

pure ε           the largest ratio of an output's masses, over the mechanism's extremes  (Cai et al. 2024, eq. (6))
metric, |x-x'|   `Metric.measure_segments`: the steepest slope of ln p; ∞ at a jump
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
from workbench.io.shown import document, facts
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.mechanism import Comparison, as_mechanism
from workbench.mechanisms.piecewise_affine import PiecewiseAffine
from workbench.privacy.claim import Claim
from workbench.privacy.notions.laws import Laws
from workbench.privacy.notions.metric import Metric

__all__ = ["METRICS", "QuantizerPrivacy", "audit_quantizer", "is_private"]

METRICS = ("absolute", "squared")


@dataclass(frozen=True)
class QuantizerPrivacy:
    """What an audit of a quantizer measured, decided exactly.

    Attributes:
        ratio: the largest p(x, i)/p(x', i), a rational; None when a zero is reachable. For metric "absolute" the
            least ε itself, a rational; for "squared" the ratio of the worst link.
        bias: max_x |E M(x) - x|, exact.
        metric: None, "absolute" or "squared".
        step: for "squared", the (squared) length of the worst link.
        witness: where the ratio is attained, such as "output 0: Pr[0|x=0.5+] against Pr[0|x=-1+]"; "" for a metric.
    """

    ratio: Fraction | None
    bias: Fraction
    metric: str | None = None
    step: Fraction = Fraction(1)
    witness: str = ""

    @property
    def notion(self) -> str:
        """What it is measured by."""
        return "pure" if self.metric is None else "metric"

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
        if notion != self.notion:
            InvalidRequest.must("notion", self.notion, notion)
        if delta != 0:
            InvalidRequest.must("delta", f"0 for the notion {notion}", delta)
        if self.ratio is None or self.metric == "absolute":
            return self.ratio is not None and self.ratio <= budget
        return sign_exp(self.ratio, Fraction(1), budget * self.step) <= 0

    def _repr_html_(self) -> str:
        rows = [("exact epsilon", repr(self.epsilon)), ("bias", str(self.bias)), ("where", self.witness)]
        return document("Quantizer, every real input", facts([row for row in rows if row[1]]))

    def holds(self, claim: Claim) -> bool:
        """`meets` of a claim."""
        return self.meets(claim.notion.name, claim.epsilon, claim.delta)

    def verdict(self, epsilon: Real) -> str:
        """`meets` in words, with the place where the law varies most."""
        sentence = f"exact epsilon is {self.epsilon!r}, asked {float(positive(epsilon, 'epsilon', or_zero=True)):.17g}"
        sentence += f" ({self.witness})" if self.witness else ""
        return sentence if self.meets(self.notion, epsilon) else f"misses the request: {sentence}"


def audit_quantizer(mechanism: PiecewiseAffine, metric: str | None = None) -> QuantizerPrivacy:
    """The least ε of a quantizer, exact. metric: None, "absolute" or "squared". Raises InvalidRequest."""
    subject: Any = as_mechanism(mechanism)
    if not isinstance(subject, PiecewiseAffine):
        InvalidRequest.must("mechanism", "a PiecewiseAffine", type(subject).__name__)
    return _measured(subject, metric, subject.bias)


def is_private(mechanism: PiecewiseAffine, epsilon: Fraction, metric: str | None = None) -> bool:
    """Whether a quantizer is ε-private, decided exactly; its bias is left aside."""
    return _measured(mechanism, metric, Fraction(0)).meets("pure" if metric is None else "metric", epsilon)


def _measured(subject: PiecewiseAffine, metric: str | None, bias: Fraction) -> QuantizerPrivacy:
    if metric is None:
        ratio, output, comparison = _largest(subject.extremes())
        high, low = comparison.describe(output)
        witness = f"output {float(subject.bins[output]):g}: {high} against {low}"
        return QuantizerPrivacy(ratio, bias, witness=witness)
    if metric not in METRICS:
        InvalidRequest.must("metric", f"one of {', '.join(METRICS)}", repr(metric))
    steepest = Metric().measure_segments(subject.segments, {}).value
    if metric == "absolute" or steepest is None:  # a jump, or an output that one end of a piece never draws
        return QuantizerPrivacy(steepest, bias, metric)
    links = [
        (
            _largest(Channel((segment.left, segment.right)).comparisons())[0] or Fraction(1),
            (segment.high - segment.low) ** 2,
        )
        for segment in subject.segments
    ]
    ratio, step = max(links, key=lambda link: ln_up(link[0]) / float(link[1]))
    return QuantizerPrivacy(ratio, bias, metric, step)


def _largest(comparisons: Iterable[Comparison]) -> tuple[Fraction | None, int, Comparison]:
    """The largest ratio P/Q (None: unbounded, wherever one is), its outcome and its comparison."""
    ratios = [(*Laws(pair.p, pair.q).max_ratio, pair) for pair in comparisons]
    unbounded = next((entry for entry in ratios if entry[0] is None), None)
    return unbounded or max(ratios, key=lambda entry: entry[0] or Fraction(0))
