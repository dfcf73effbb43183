"""Certify a mechanism: audit it, repair it where it misses, and hand back the proof.

    certify(noise, notion, epsilon, delta)                       additive noise
    certify_channel(rows, pairs | metric, notion, epsilon, ...)  any finite channel, unbiased exactly where asked
    certify_quantizer(knots, outputs, ends, notion, epsilon, ..) laws affine in a real input between knots

No solver is needed. Repair changes a mechanism as little as an exact mixture can; what a solver's answer can be
brought to without loss is found by `workbench.exact_lp` at the level of designs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from workbench.errors import InvalidRequest
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.piecewise import PiecewiseAffine, rationals
from workbench.numbers import Real, exact, positive, probability
from workbench.privacy.audit import audit_subject
from workbench.privacy.certificate import NOTIONS, Bias, Certificate, Mechanism, Objective, subject_of
from workbench.privacy.pdp_quantizer import pdp_delta
from workbench.privacy.relation import Budget, ChannelPairs, Rows
from workbench.privacy.repair import repair_noise
from workbench.privacy.repair_channel import repair_rows

__all__ = ["certify", "certify_channel", "certify_quantizer", "rounded_objective"]

Metric = Callable[[int, int], Real] | Sequence[Any] | np.ndarray[Any, Any]


def certify(
    mechanism: Mechanism, notion: str, epsilon: Budget, delta: Real = 0, *, record: Mapping[str, Any] | None = None
) -> Certificate:
    """A certificate of a mechanism, repaired if it misses (epsilon, delta) in exact arithmetic.

    mechanism: AdditiveNoise, ChannelPairs or PiecewiseAffine. notion: "pdp", "dp", "pure" or "metric" (δ = 0).
    epsilon: a number, or a mapping shift (pair) -> number. record: JSON-ready facts to write down beside the proof.
    Raises InvalidRequest, NotCertified.
    """
    budgets, allowed = _claim(mechanism, notion, epsilon, delta)
    noted = dict(record or {})
    if isinstance(mechanism, ChannelPairs):
        pairs = mechanism.pairs

        def private(channel: Channel) -> bool:
            return audit_subject(ChannelPairs(channel, pairs), budgets).meets(notion, budgets, allowed)

        channel, share = repair_rows(mechanism.channel, private)
        return Certificate(ChannelPairs(channel, pairs), notion, budgets, allowed, record=noted | _share(share))
    if isinstance(mechanism, PiecewiseAffine):
        return certify_quantizer(
            mechanism.knots, mechanism.outputs, mechanism.ends, notion=notion, epsilon=budgets, delta=delta,
            unbiased=False, record=noted,
        )  # fmt: skip
    if audit_subject(subject_of(mechanism), budgets).meets(notion, budgets, allowed):
        return Certificate(mechanism, notion, budgets, allowed, record=noted)
    question = mechanism.question
    full = question.budgets(budgets, or_zero=True)
    made = repair_noise(question, mechanism.exact_pmf, full, notion, allowed)
    moved = sum(abs(a - b) for a, b in zip(made.exact_pmf, mechanism.exact_pmf, strict=True)) / 2
    return Certificate(made, notion, budgets, allowed, record=noted | {"repair_moved_mass": float(moved)})


def certify_channel(
    rows: Rows,
    pairs: Iterable[Any] | str = "all",
    *,
    notion: str = "pure",
    epsilon: Budget,
    delta: Real = 0,
    metric: Metric | None = None,
    directed: bool = False,
    outputs: Sequence[Any] | None = None,
    unbiased_for: Sequence[Any] | None = None,
    allow_bias: bool = False,
    record: Mapping[str, Any] | None = None,
) -> Certificate:
    """A certificate of a finite channel, repaired if need be.

    Args:
        rows: a Channel, a matrix (answers, outputs) or rows of exact numbers.
        pairs: neighbouring rows (i, j), both orders unless directed; "all" for every two (label privacy).
        notion: "pure", "dp", "pdp" or "metric".
        epsilon, delta: exact; with a metric, pair (i, j) has the budget epsilon * metric[i, j].
        metric: distances of rows, a matrix or a function of (i, j), > 0 for every pair.
        outputs, unbiased_for: the value of every output and the mean every row must have: kept exactly, in rationals.
        allow_bias: rather than refuse, give unbiasedness up; the certificate then states the exact bias that is left.

    Raises:
        InvalidRequest, NotCertified.
    """
    channel = rows if isinstance(rows, Channel) else Channel.from_rows(rows)
    count = len(channel.rows)
    if isinstance(pairs, str):
        if pairs != "all":
            InvalidRequest.must("pairs", "'all' or a list of pairs of rows", repr(pairs))
        pairs = [(i, j) for i in range(count) for j in range(i)]
    subject = ChannelPairs.of(channel, pairs, directed=directed)
    if metric is not None:
        if isinstance(epsilon, Mapping):
            raise InvalidRequest("epsilon must be one number when a metric is given.")
        scale = positive(epsilon, "epsilon")
        epsilon = {(i, j): scale * _distance(metric, i, j) for i, j in subject.pairs}
    budgets, allowed = _claim(subject, notion, epsilon, delta)
    if (outputs is None) != (unbiased_for is None):
        raise InvalidRequest("outputs and unbiased_for must be given together.")
    values = None if outputs is None else rationals(outputs, "outputs")
    means = None if unbiased_for is None else rationals(unbiased_for, "unbiased_for")
    if values is not None and means is not None and (len(values), len(means)) != (len(channel.rows[0]), count):
        InvalidRequest.must("outputs and unbiased_for", f"{len(channel.rows[0])} and {count} numbers",
                            f"{len(values)} and {len(means)}")  # fmt: skip

    def private(candidate: Channel) -> bool:
        return audit_subject(ChannelPairs(candidate, subject.pairs), budgets).meets(notion, budgets, allowed)

    made, share = repair_rows(channel, private, outputs=values, means=means, allow_bias=allow_bias)
    mechanism = ChannelPairs(made, subject.pairs)
    bias = None if values is None or means is None else Bias.of(mechanism, values, means)
    return Certificate(mechanism, notion, budgets, allowed, bias=bias, record=dict(record or {}) | _share(share))


def certify_quantizer(
    knots: Sequence[Any],
    outputs: Sequence[Any],
    ends: Any,
    *,
    notion: str = "pure",
    epsilon: Real,
    delta: Real = 0,
    unbiased: bool = True,
    allow_bias: bool = False,
    record: Mapping[str, Any] | None = None,
) -> Certificate:
    """A certificate of a mechanism on real inputs, private for every two of them, repaired if need be.

    Args:
        knots: (K+1,) increasing; outputs: (m,) values published; ends: laws at both ends of every piece, (2K, m) or
            (K, 2, m), see `PiecewiseAffine`. Floats are read as the rationals they are.
        notion: "pure", "dp", "pdp", or "metric" for the distance |x - x'|.
        unbiased: E M(x) = x for every real x, exactly; allow_bias: state what is left rather than refuse.

    Raises:
        InvalidRequest, NotCertified.
    """
    given = PiecewiseAffine.of(knots, outputs, ends)
    budgets, allowed = _claim(given, notion, epsilon, delta)

    def build(channel: Channel) -> PiecewiseAffine:
        return PiecewiseAffine(given.knots, given.outputs, channel.rows)

    def private(channel: Channel) -> bool:
        made = build(channel)
        if notion == "metric":
            reached = made.metric_epsilon
            return reached is not None and not isinstance(budgets, Mapping) and reached <= budgets
        if notion == "pdp":
            return pdp_delta(made, budgets).compare(allowed) <= 0
        return audit_subject(subject_of(made), budgets).meets(notion, budgets, allowed)

    made, share = repair_rows(
        Channel(given.ends), private, outputs=given.outputs, means=given.places if unbiased else None,
        allow_bias=allow_bias,
    )  # fmt: skip
    mechanism = build(made)
    bias = Bias(mechanism.outputs, mechanism.places, mechanism.bias)
    return Certificate(mechanism, notion, budgets, allowed, bias=bias, record=dict(record or {}) | _share(share))


def rounded_objective(name: str, value: Fraction, costs: tuple[Fraction, ...] | None) -> Objective:
    """An exact cost, rounded up to a decimal of 17 significant digits or more."""
    if not value:
        return Objective(name, value, costs)
    places = max(0, 17 - math.floor(math.log10(value.numerator) - math.log10(value.denominator)))
    return Objective(name, Fraction(math.ceil(value * 10**places), 10**places), costs)


def _claim(mechanism: Mechanism, notion: str, epsilon: Budget, delta: Real) -> tuple[Any, Fraction]:
    """The budgets as a certificate states them, and δ, validated."""
    if notion not in NOTIONS:
        InvalidRequest.must("notion", f"one of {', '.join(NOTIONS)}", notion)
    allowed = probability(delta, "delta")
    if allowed and notion in {"pure", "metric"}:
        InvalidRequest.must("delta", f"0 for the notion {notion}", delta)
    if not isinstance(epsilon, Mapping):
        return positive(epsilon, "epsilon", or_zero=True), allowed
    return subject_of(mechanism).budgets(epsilon), allowed


def _distance(metric: Metric, i: int, j: int) -> Fraction:
    value = metric(i, j) if callable(metric) else metric[i][j]
    found = exact(value, f"the distance of rows {i} and {j}", "a finite number > 0")
    if found <= 0:
        InvalidRequest.must(f"the distance of rows {i} and {j}", "a finite number > 0", value)
    return found


def _share(share: Fraction) -> dict[str, Any]:
    return {"repair_mixed_in": float(share)} if share else {}
