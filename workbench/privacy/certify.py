"""Certify a mechanism: audit it, repair it if it is not private, and return a certificate.

    certify(mechanism, notion, epsilon, delta)     additive noise, channels, label randomizers, laws
                                                   affine in a real input: every mechanism that a
                                                   certificate can hold

Additive noise is repaired on its group (`workbench.privacy.repair`). Other mechanisms are repaired
by their rows, the laws from which `with_rows` rebuilds them. On request they stay exactly unbiased
(`workbench.privacy.repair_channel`). No solver is needed. Repair changes a mechanism as little as
an exact mixture can. For designs, `workbench.solvers.exact.rational_refinement` first tries to make
the answer of a solver exact without any increase of the loss.
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
    """Certify a mechanism, and repair it first if it exceeds its budget in exact arithmetic.

    Args:
        mechanism: A mechanism that a certificate can hold, or a Design or Certificate of one. For
            a label randomizer the certificate holds the channel of all labels.
        notion: "pdp", "dp", "pure", "metric" (δ = 0), or another notion.
        epsilon: ε, exact. It may be a mapping shift (or pair) -> number.
        delta: δ, exact. None for the default of the notion.
        unbiased: Whether the mean of the output must be exactly the input.
        outputs: Values of the outputs of a channel. Must be given with `unbiased_for`.
        unbiased_for: Mean that each row of the channel must have exactly.
        allow_bias: Whether to give up unbiasedness if it cannot be preserved. The certificate then
            states the exact bias. Default: raise NotCertified.
        objective: For a channel, a loss with its labels, prior and outputs. Its `value` is
            ignored. The certificate states the value of the certified channel.
        record: Facts for JSON that are written down and not proven.
        **parameters: Further parameters of the notion by name.

    Returns:
        The certificate of the mechanism, or of the repaired mechanism.

    Raises:
        InvalidRequest: An argument is wrong or does not fit the mechanism.
        NotCertified: The mechanism is not private, and no repair is found.
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
    values = {"epsilon": epsilon, "delta": delta, **parameters}
    claim = Claim.for_mechanism(notion, subject, values)
    facts = dict(record or {})
    repair_kind = getattr(subject, "repaired_by", None)
    if repair_kind == "masses":
        return _certify_noise(subject, claim, facts)
    if repair_kind == "line" and not satisfies_claim(subject, claim):
        repaired, share = repair_line_noise(subject, claim)
        facts["repair_moved_mass"] = float(share)
        return Certificate(repaired, claim, record=facts)
    if repair_kind != "rows":
        return Certificate(subject, claim, record=facts)
    must_keep_means = unbiased or unbiased_for is not None
    repaired, share = repair_rows(
        subject,
        is_private=lambda candidate: satisfies_claim(candidate, claim),
        means=means if must_keep_means else None,
        allow_bias=allow_bias,
    )
    bias = None
    if means is not None:
        bias = Bias.measure(repaired, *means)
    proven_objective = None
    if objective is not None:
        proven_objective = objective.with_value_of(repaired)
    if share:
        facts["repair_mixed_in"] = float(share)
    return Certificate(repaired, claim, objective=proven_objective, bias=bias, record=facts)


def _certify_noise(noise: Any, claim: Claim, facts: dict[str, Any]) -> Certificate:
    """Certify noise on a group, and repair its masses first if they exceed the budget."""
    audited = audit_for_claim(noise, claim)
    if audited.holds(claim):
        return Certificate(noise, claim, record=facts, audited=audited)
    audited = repair_noise(noise.question, noise.exact_pmf, claim)
    repaired: Any = audited.mechanism
    mass_pairs = zip(repaired.exact_pmf, noise.exact_pmf, strict=True)
    moved_mass = sum(abs(repaired_mass - mass) for repaired_mass, mass in mass_pairs) / 2
    facts["repair_moved_mass"] = float(moved_mass)
    return Certificate(repaired, claim, record=facts, audited=audited)


def _find_means(
    subject: Any, outputs: Sequence[Any] | None, unbiased_for: Sequence[Any] | None
) -> tuple[Rationals, Rationals] | None:
    """Return the published values, and the means that the rows should have.

    They come from the request or from the mechanism. None if neither defines them.
    """
    if (outputs is None) != (unbiased_for is None):
        raise InvalidRequest("outputs and unbiased_for must be given together.")
    if outputs is not None and unbiased_for is not None:
        values = read_rationals(outputs, "outputs")
        means = read_rationals(unbiased_for, "unbiased_for")
        shape = (len(subject.outputs), len(getattr(subject, "rows", means)))
        if (len(values), len(means)) != shape:
            must(
                "outputs and unbiased_for",
                f"{shape[0]} and {shape[1]} numbers",
                f"{len(values)} and {len(means)}",
            )
        return values, means
    return getattr(subject, "unbiased_means", None)
