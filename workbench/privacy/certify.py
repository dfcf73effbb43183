"""Certify a mechanism: audit it, repair it where it misses, and hand back the proof.

    certify(mechanism, notion, epsilon, delta)     additive noise, channels, label randomizers, laws affine in a real
                                                   input: every mechanism that a certificate can hold

Additive noise is repaired in its group (`workbench.privacy.repair`); anything else by its rows, the laws it is rebuilt
from (`with_rows`), exactly unbiased where that is asked for (`workbench.privacy.repair_channel`). No solver is needed.
Repair changes a mechanism as little as an exact mixture can; what a solver's answer can be brought to without loss is
found by `workbench.solvers.exact.rational_refinement` at the level of designs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any

from workbench.data.intervals import read_rationals
from workbench.data.plain import read_boolean
from workbench.errors import InvalidRequest, must
from workbench.exact.numbers import Rationals, Real
from workbench.exact.objects import Values
from workbench.mechanisms.mechanism import Bias, Budget, as_mechanism
from workbench.notions import Notion
from workbench.privacy.audit import audit_for_claim, satisfies_claim
from workbench.privacy.certificate import Certificate
from workbench.privacy.claim import Claim
from workbench.privacy.objective import ExpectedLoss
from workbench.privacy.repair import repair_line_noise, repair_noise
from workbench.privacy.repair_channel import repair_rows


def certify(
    mechanism: Any,
    notion: str | Notion = "pure",
    epsilon: Budget | None = None,
    delta: Real | None = None,
    *,
    unbiased: bool = False,
    outputs: Sequence[Any] | None = None,
    unbiased_for: Sequence[Any] | None = None,
    allow_bias: bool = False,
    objective: ExpectedLoss | None = None,
    record: Values | None = None,
    **parameters: Any,
) -> Certificate:
    """A certificate of a mechanism, repaired if it misses the budget of a notion in exact arithmetic.

    Args:
        mechanism: any that a certificate can hold, or a Design or Certificate of one. Of a label randomizer the
            certificate holds the channel of all labels.
        notion: "pdp", "dp", "pure", "metric" (δ = 0) or another, whose own parameters are given by name.
        epsilon, delta: exact; epsilon may be a mapping shift (pair) -> number, as for budgets per distance.
        unbiased: whether the mean of the output must be the input, exactly, as on real inputs and labels; or
        outputs, unbiased_for: the value of every output of a channel and the mean every row must have.
        allow_bias: rather than refuse, give unbiasedness up; the certificate then states the exact bias that is left.
        objective: of a channel: a loss with its labels, prior and outputs, whose value is computed and stated, whatever
            it holds.
        record: JSON-ready facts to write down beside the proof.

    Raises:
        InvalidRequest, NotCertified.
    """
    read_boolean(unbiased, "unbiased")
    read_boolean(allow_bias, "allow_bias")
    if not isinstance(objective, (ExpectedLoss, NoneType)):
        must("objective", "an ExpectedLoss", repr(objective)[:80])
    if not isinstance(record, (Mapping, NoneType)):
        must("record", "a mapping of names to facts", repr(record)[:80])
    subject: Any = as_mechanism(mechanism)
    reason = getattr(subject, "not_certifiable", None)
    if reason is not None:
        raise InvalidRequest(f"mechanism must be one that a certificate can hold. {reason}")
    means = _find_means(subject, outputs, unbiased_for)
    if hasattr(subject, "certified_form"):
        subject = subject.certified_form()
    claim = Claim.for_mechanism(notion, subject, {"epsilon": epsilon, "delta": delta, **parameters})
    noted = dict(record or {})
    repaired_by = getattr(subject, "repaired_by", None)
    if repaired_by == "masses":
        if (audited := audit_for_claim(subject, claim)).holds(claim):
            return Certificate(subject, claim, record=noted, audited=audited)
        audited = repair_noise(subject.question, subject.exact_pmf, claim)
        repaired: Any = audited.mechanism
        moved = (
            sum(abs(a - b) for a, b in zip(repaired.exact_pmf, subject.exact_pmf, strict=True)) / 2
        )
        noted |= {"repair_moved_mass": float(moved)}
        return Certificate(repaired, claim, record=noted, audited=audited)
    if repaired_by == "line" and not satisfies_claim(subject, claim):
        rebuilt, share = repair_line_noise(subject, claim)
        return Certificate(rebuilt, claim, record=noted | {"repair_moved_mass": float(share)})
    if repaired_by != "rows":
        return Certificate(subject, claim, record=noted)
    kept = means if unbiased or unbiased_for is not None else None
    rebuilt, share = repair_rows(
        subject, lambda candidate: satisfies_claim(candidate, claim), kept, allow_bias=allow_bias
    )
    bias = None if means is None else Bias.measure(rebuilt, *means)
    stated = None if objective is None else objective.with_value_of(rebuilt)
    noted |= {"repair_mixed_in": float(share)} if share else {}
    return Certificate(rebuilt, claim, objective=stated, bias=bias, record=noted)


def _find_means(
    subject: Any, outputs: Sequence[Any] | None, unbiased_for: Sequence[Any] | None
) -> tuple[Rationals, Rationals] | None:
    """(published values, inputs they should have as means), where the mechanism or the request knows them."""
    if (outputs is None) != (unbiased_for is None):
        raise InvalidRequest("outputs and unbiased_for must be given together.")
    if outputs is not None and unbiased_for is not None:
        values, means = (
            read_rationals(outputs, "outputs"),
            read_rationals(unbiased_for, "unbiased_for"),
        )
        shape = (len(subject.outputs), len(getattr(subject, "rows", means)))
        if (len(values), len(means)) != shape:
            must(
                "outputs and unbiased_for",
                f"{shape[0]} and {shape[1]} numbers",
                f"{len(values)} and {len(means)}",
            )
        return values, means
    return getattr(subject, "unbiased_means", None)
