"""The exact audit: what a mechanism with exact masses is private for, as rationals and decided comparisons.

    notion   meets (ε, δ) when, for every difference μ with its own ε_μ (or ordered pair of neighbouring rows),
    "pdp"    Σ f(η) over {η : f(η) > e^ε f(η+μ)}  <= δ              (3), (5), (8) of Kadam et al. 2024
    "dp"     Σ max(0, f(η) - e^ε f(η+μ))  <= δ                      the hockey stick
    "pure"   f(η) <= e^ε f(η+μ) for every η                         δ = 0
    "metric" the same as "pure": each difference under its own budget

Nothing is compared in floating point alone: δ's are rationals or a - b e^ε, the largest is decided, and the floats
given for reports are rounded so that they never understate a δ or an ε.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from workbench.errors import InvalidRequest
from workbench.mechanisms.additive import AdditiveNoise
from workbench.numbers import ExpNumber, Real, exact, largest, ln_up, probability, sign_exp
from workbench.privacy.relation import Auditable, Budget, ChannelPairs, Noise, Rows
from workbench.privacy.tally import max_ratio, tally, violations

__all__ = ["PairAudit", "Privacy", "audit", "audit_channel", "audit_subject"]

NOTIONS = ("dp", "pdp", "pure", "metric")


@dataclass(frozen=True)
class PairAudit:
    """One difference or ordered pair of rows: its budget, its exact δ's and ratio, and the outcome of largest ratio."""

    label: tuple[int, ...]
    epsilon: Fraction
    pdp_delta: Fraction
    dp_delta: ExpNumber
    violations: int
    ratio: Fraction | None
    outcome: int

    @property
    def loss(self) -> float:
        """The largest privacy loss ln P/Q, rounded up; inf where Q is 0."""
        return math.inf if self.ratio is None else ln_up(self.ratio)

    def pure_at(self, epsilon: Fraction) -> bool:
        """Whether P <= e^ε Q everywhere, decided exactly."""
        return self.ratio is not None and sign_exp(self.ratio, Fraction(1), epsilon) <= 0


@dataclass(frozen=True)
class Privacy:
    """What an audit found. Every comparison it answers is decided exactly.

    epsilon: the common budget, None when the pairs have different ones (see `pairs`);
    pdp_delta: the largest PDP δ, exact; dp_delta: the largest DP δ, the exact number a - b e^ε with float bounds
    `.lower` and `.upper`; pure_ratio: the largest ratio e^ε must reach, None when a zero mass is reachable;
    pure_epsilon: its logarithm rounded up, inf for None; pairs: the details for each difference or pair of rows.
    """

    epsilon: Fraction | None
    pairs: tuple[PairAudit, ...]
    subject: Auditable = field(repr=False, compare=False)

    @property
    def budgets(self) -> dict[tuple[int, ...], Fraction]:
        """The budget of every difference or ordered pair of rows."""
        return {pair.label: pair.epsilon for pair in self.pairs}

    @cached_property
    def worst_pdp(self) -> PairAudit:
        """The pair with the largest PDP δ. Raises InvalidRequest where pairs do not decide it."""
        if not self.subject.pairs_decide_pdp:
            raise InvalidRequest("The PDP delta on real inputs is given by workbench.privacy.pdp_quantizer.pdp_delta.")
        return max(self.pairs, key=lambda pair: pair.pdp_delta)

    @cached_property
    def worst_dp(self) -> PairAudit:
        """The pair with the largest DP δ."""
        top = self.dp_delta
        return next(pair for pair in self.pairs if pair.dp_delta == top)

    @cached_property
    def worst_pure(self) -> PairAudit:
        """The pair with the largest ratio."""
        open_ = [pair for pair in self.pairs if pair.ratio is None]
        if open_:
            return max(open_, key=lambda pair: pair.pdp_delta)
        return max(self.pairs, key=lambda pair: pair.ratio or Fraction(0))

    @property
    def pdp_delta(self) -> Fraction:
        """The exact PDP δ."""
        return self.worst_pdp.pdp_delta

    @cached_property
    def dp_delta(self) -> ExpNumber:
        """The exact DP δ."""
        return largest(pair.dp_delta for pair in self.pairs)

    @property
    def pure_ratio(self) -> Fraction | None:
        """The largest ratio of masses; None: unbounded."""
        return self.worst_pure.ratio

    @property
    def pure_epsilon(self) -> float:
        """The ε of pure DP, rounded up; inf when a zero mass is reachable."""
        return self.worst_pure.loss

    def at(self, epsilon: Budget) -> Privacy:
        """The audit of the same mechanism at another budget; this one when the budgets are the same."""
        return self if self.subject.budgets(epsilon) == self.budgets else audit_subject(self.subject, epsilon)

    def meets(self, notion: str, epsilon: Budget, delta: Real = 0) -> bool:
        """Whether the mechanism is private for (ε, δ) in the notion "dp", "pdp", "pure" or "metric", decided exactly.

        epsilon: a number, or a mapping for each shift or pair, as `audit` takes. Raises InvalidRequest; δ must be 0
        for "pure" and "metric".
        """
        allowed = _notion_delta(notion, delta)
        here = self.at(epsilon)
        if notion == "pdp":
            return here.pdp_delta <= allowed
        if notion == "dp":
            return all(pair.dp_delta.compare(allowed) <= 0 for pair in here.pairs)
        return all(pair.pure_at(pair.epsilon) for pair in here.pairs)

    def verdict(self, notion: str, epsilon: Budget, delta: Real = 0, *, subject: str = "The mechanism") -> str:
        """`meets` in words: the exact δ beside the one asked, and one outcome that breaks the budget."""
        allowed = _notion_delta(notion, delta)
        good = self.meets(notion, epsilon, delta)
        here = self.at(epsilon)
        opening = f"{subject} {'meets' if good else 'misses'} the request:"
        at = "each shift's own epsilon" if here.epsilon is None else f"epsilon = {_decimal(here.epsilon)}"
        at += " for one-sided neighbours" if self.subject.one_sided else ""
        if notion in {"pure", "metric"}:
            ratio = "unbounded" if here.pure_ratio is None else f"{here.pure_epsilon!r}"
            found = f"{opening} exact pure epsilon is {ratio}, asked {at}"
            if good:
                return found
            bad = [pair for pair in here.pairs if not pair.pure_at(pair.epsilon)]
            pair = max(bad, key=lambda pair: (pair.loss - float(pair.epsilon), pair.pdp_delta))
            return f"{found} ({here._witness(pair, pair.outcome)})"
        worst = here.worst_pdp if notion == "pdp" else here.worst_dp
        value = here.pdp_delta if notion == "pdp" else here.dp_delta.sharp()[1]
        found = f"{opening} exact {notion.upper()} delta is {_apart(value, allowed)} at {at}, asked {_decimal(allowed)}"
        return found if good else f"{found} ({here._witness(worst)})"

    def _witness(self, pair: PairAudit, outcome: int | None = None) -> str:
        """One broken outcome in words; unless named, a rounding accident if there is one, else the heaviest."""
        one = next(c for c in self.subject.comparisons(self.budgets) if c.label == pair.label)
        if outcome is None:
            broken = np.flatnonzero(violations(one.p, one.q, one.epsilon))
            with np.errstate(all="ignore"):  # only a choice of example: floats will do, and may underflow
                spare = 1 - math.exp(min(float(one.epsilon), 700.0)) * one.q.floats[broken] / one.p.floats[broken]
            spare = np.abs(np.where(np.isfinite(spare), spare, 1.0))
            outcome = int(broken[np.argmin(spare) if spare.min() < 1e-6 else np.argmax(one.p.floats[broken])])
        high, low = one.describe(outcome)
        gap = ExpNumber.of(one.p[outcome], one.q[outcome], one.epsilon).upper
        if one.q[outcome] == 0:
            return f"{high} is {gap:.2g} where {low} is 0"
        return f"{high} exceeds e^epsilon {low} by {gap:.2g}"


def audit(mechanism: AdditiveNoise | ChannelPairs, epsilon: Budget) -> Privacy:
    """The exact audit of a mechanism: additive noise (f against f(· + μ) for every difference μ of its question) or a
    finite channel (every row against its neighbours).

    epsilon: a finite number >= 0, or a mapping shift (or pair of rows) -> number. Raises InvalidRequest.
    """
    if isinstance(mechanism, AdditiveNoise):
        return audit_subject(Noise(mechanism), epsilon)
    if not isinstance(mechanism, ChannelPairs):
        InvalidRequest.must("mechanism", "an AdditiveNoise or a ChannelPairs", type(mechanism).__name__)
    return audit_subject(mechanism, epsilon)


def audit_channel(rows: Rows, pairs: Iterable[Any], epsilon: Budget, *, directed: bool = False) -> Privacy:
    """The exact audit of a finite channel whose neighbouring rows are pairs, in both orders unless directed.

    rows: a Channel, a float matrix of shape (answers, outputs) or rows of ints and Fractions, each row normalised by
    its exact sum; epsilon: a finite number >= 0, or a mapping (i, j) -> number. Raises InvalidRequest.
    """
    return audit_subject(ChannelPairs.of(rows, pairs, directed=directed), epsilon)


def audit_subject(subject: Auditable, epsilon: Budget) -> Privacy:
    """The exact audit of anything that says which of its distributions neighbour each other. Raises InvalidRequest."""
    found = []
    for one in subject.comparisons(epsilon):
        count = tally(one.p, one.q, one.epsilon)
        ratio, outcome = max_ratio(one.p, one.q)
        found.append(
            PairAudit(one.label, one.epsilon, count.pdp_delta, count.dp_delta, count.violations, ratio, outcome)
        )
    budgets = {pair.epsilon for pair in found}
    return Privacy(budgets.pop() if len(budgets) == 1 else None, tuple(found), subject)


def _notion_delta(notion: str, delta: Real) -> Fraction:
    if notion not in NOTIONS:
        InvalidRequest.must("notion", f"one of {', '.join(NOTIONS)}", notion)
    allowed = probability(delta, "delta")
    if notion in {"pure", "metric"} and allowed:
        InvalidRequest.must("delta", f"0 for the notion {notion}", delta)
    return allowed


def _decimal(value: Fraction) -> str:
    """A rational in at most 17 digits."""
    return f"{float(value):.17g}" if exact(f"{float(value):.6g}", "value") != value else f"{float(value):.6g}"


def _apart(value: Fraction, asked: Fraction) -> str:
    """A δ rounded up to 6 digits, or to as many as show how far on which side of the asked one it lies."""
    text = ""
    for digits in (6, 9, 12, 17):
        up = Context(prec=digits, rounding=ROUND_CEILING)
        text = f"{up.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize(up):g}"
        if value == asked or 10 * (Fraction(text) - value) <= abs(value - asked):
            return text
    side = "above" if value > asked else "below"
    return f"{text} ({float(abs(value - asked)):.2g} {side} the one asked)"
