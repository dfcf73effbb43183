"""Turn a solver's quantizer into a certified one: exactly unbiased and exactly private.

Terms. A knot is an input at which the law of the output is given; between two knots the law is
affine. An end law is the law at the left or right end of such a piece. The centre is an unbiased
mechanism that is strictly private. Dithering rounds an input at random, without bias, to one of the
two knots next to it; the knot channel is the channel from the knots to the outputs.

The laws of a solver miss their means and their budget by about 1e-15. Every end law first gets its
exact mean. Then all laws are mixed with an unbiased, strictly private centre, with the least share
at which the exact audit accepts (workbench.privacy.repair_channel). Equal laws are repaired
equally, so a continuous law stays continuous.

The audit compares laws by conditions that are linear in the end laws:

pure ε           the end laws with the most and the least mass at each output (Cai et al. 2024, (6))
metric, |x-x'|   the steepest slope of ln p (`workbench.notions.metric`). A law with a jump is
                 never private.
metric, |x-x'|²  inputs are first dithered to knots (see `PiecewiseAffine.knot_channel`). Only
                 neighbouring knots are compared. That is enough, because |x-x'|² is at least the
                 sum of the squared steps between x and x'.

For |x-x'|² the certificate is that of the channel from the knots, with all pairs of knots.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from workbench.errors import InvalidRequest, NotCertified
from workbench.exact.distribution import Distribution
from workbench.exact.numbers import ZERO, log_upper_bound
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.mechanism import Mechanism
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.privacy.audit import Privacy, audit_for_claim, satisfies_claim
from workbench.privacy.certificate import Certificate
from workbench.privacy.certify import certify
from workbench.privacy.claim import Claim
from workbench.privacy.repair_channel import repair_rows
from workbench.solvers.arrays import Ints

# If a repair mixes in more than this share of another law, fewer outputs are tried as well, and the
# report of the design contains a note.
SMALL_REPAIR_SHARE = Fraction(1, 10**6)

# Outputs that no law draws with a larger probability are taken out. The thresholds are tried in
# turn, until the repair is small.
_MASS_THRESHOLDS = (
    ZERO,
    Fraction(1, 10**11),
    Fraction(1, 10**9),
    Fraction(1, 10**7),
    Fraction(1, 10**5),
)


def _make_audit_subject(
    quantizer: Quantizer, epsilon: Fraction, metric: str | None
) -> tuple[Mechanism, Claim]:
    """Return the mechanism to audit and the claim for which it is audited.

    Raises InvalidRequest if the law jumps and the metric is "squared".
    """
    if metric != "squared":
        return quantizer, Claim("pure" if metric is None else "metric", epsilon)
    if any(a.right != b.left for a, b in pairwise(quantizer.segments)):
        raise InvalidRequest("The law must not jump between inputs that are dithered to its knots.")
    knots = quantizer.knots
    links = Channel.from_pairs(quantizer.knot_channel(), pairwise(range(len(knots))))
    budgets = {(i, j): epsilon * (knots[i] - knots[j]) ** 2 for i, j in links.budgets(0)}
    return links, Claim("metric", budgets)


def is_private(quantizer: Quantizer, epsilon: Fraction, metric: str | None = None) -> bool:
    """Check whether a quantizer is ε-private, exactly. Its bias is not checked.

    Args:
        quantizer: the quantizer to check, with exact laws.
        epsilon: the budget ε > 0, for a metric per unit of the distance of the inputs.
        metric: None for ε-DP, or "absolute" or "squared" for privacy by distance.

    Raises:
        InvalidRequest: the law jumps, by |x - x'|².
    """
    return satisfies_claim(*_make_audit_subject(quantizer, epsilon, metric))


def audit_quantizer(
    quantizer: Quantizer, epsilon: Fraction, metric: str | None = None
) -> tuple[Privacy, Claim]:
    """Audit exactly whether a quantizer is ε-private.

    Args:
        quantizer: the quantizer to audit, with exact laws.
        epsilon: the budget ε > 0, for a metric per unit of the distance of the inputs.
        metric: None for ε-DP, or "absolute" or "squared" for privacy by distance.

    Returns:
        The audit and the claim.

    Raises:
        InvalidRequest: the law jumps, by |x - x'|².
    """
    subject, claim = _make_audit_subject(quantizer, epsilon, metric)
    return audit_for_claim(subject, claim), claim


def find_least_epsilon(privacy: Privacy, metric: str | None, epsilon: Fraction) -> float:
    """Find the least ε of a quantizer from its audit, rounded up.

    Args:
        privacy: the audit at the budget ε.
        metric: None for ε-DP, or "absolute" or "squared" for privacy by distance.
        epsilon: the budget > 0.

    Returns:
        The least ε; inf if there is none.
    """
    if metric is None:
        return privacy.pure_epsilon
    if metric == "absolute":
        return privacy.metric_epsilon
    epsilons = []
    for pair in privacy.pairs:
        if pair.ratio is None:
            return math.inf
        distance = pair.epsilon / epsilon
        epsilons.append(math.nextafter(log_upper_bound(pair.ratio) / distance, math.inf))
    return max(epsilons)


class _QuantizerRepair(NamedTuple):
    """A repaired quantizer.

    Attributes:
        quantizer: the mixture, which is unbiased and private.
        share: the share of the centre in it.
        change: the larger of the share and of the masses of the outputs that were taken out.
    """

    quantizer: Quantizer
    share: Fraction
    change: Fraction


def repair_quantizer(
    quantizer: Quantizer, epsilon: Fraction, metric: str | None = None
) -> tuple[Quantizer, Fraction]:
    """Repair a quantizer that is unbiased and ε-private up to rounding.

    A solver returns 1e-17 or 1e-9 where the mass should be 0, and mixing in a small share of the
    centre cannot bound the ratio of such masses. If the share is large, outputs are taken out first
    that no law draws more often than a threshold.

    Args:
        quantizer: the solver's quantizer.
        epsilon: the budget > 0.
        metric: None for ε-DP, or "absolute" or "squared" for privacy by distance.

    Returns:
        The quantizer itself if it is exactly unbiased and ε-private, otherwise the closest mixture
        that is; and the share of the centre in it.

    Raises:
        NotCertified: no mixture on these outputs is unbiased and ε-private.
    """
    max_masses = [max(law[i] for law in quantizer.ends) for i in range(quantizer.m)]
    # Maps the outputs above a threshold to the first threshold that leaves these.
    thresholds: dict[Ints, Fraction] = {}
    for threshold in _MASS_THRESHOLDS:
        used_outputs = tuple(i for i, mass in enumerate(max_masses) if mass > threshold)
        thresholds.setdefault(used_outputs, threshold)
    repairs: list[_QuantizerRepair] = []
    last_error = NotCertified("No output is drawn.")
    for used_outputs, threshold in thresholds.items():
        try:
            mixed, share = _repair_on_outputs(quantizer, used_outputs, epsilon, metric)
        except NotCertified as error:
            last_error = error
            continue
        repair = _QuantizerRepair(mixed, share, change=max(share, threshold))
        repairs.append(repair)
        if repair.change <= SMALL_REPAIR_SHARE:
            break
    if not repairs:
        raise last_error
    best = min(repairs, key=lambda repair: repair.change)
    return best.quantizer, best.share


def _repair_on_outputs(
    quantizer: Quantizer, used_outputs: Sequence[int], epsilon: Fraction, metric: str | None
) -> tuple[Quantizer, Fraction]:
    """Repair a quantizer that draws some of its outputs only. Raises NotCertified.

    Args:
        quantizer: the solver's quantizer.
        used_outputs: the positions of the outputs that are drawn, in increasing order.
        epsilon: the budget > 0.
        metric: None for ε-DP, or "absolute" or "squared" for privacy by distance.

    Returns:
        The quantizer on all outputs, with mass 0 at the others, and the share of the centre.
    """
    laws = tuple(
        Distribution([law.integers[i] for i in used_outputs], "an end law")
        for law in quantizer.ends
    )
    bins = tuple(quantizer.bins[i] for i in used_outputs)
    part = Quantizer(quantizer.knots, bins, laws, quantizer.name)
    mixed, share = repair_rows(
        part,
        is_private=lambda candidate: is_private(candidate, epsilon, metric),
        means=(part.bins, part.end_inputs),
    )
    rows = []
    for law in mixed.ends:
        masses = dict(zip(used_outputs, law.integers, strict=True))
        all_masses = [masses.get(i, 0) for i in range(quantizer.m)]
        rows.append(Distribution(all_masses, "an end law"))
    return quantizer.with_rows(rows), share


def certify_quantizer(
    quantizer: Quantizer, epsilon: Fraction, metric: str | None = None
) -> tuple[Quantizer, Certificate, Fraction]:
    """Repair and certify a quantizer.

    Args:
        quantizer: the solver's quantizer.
        epsilon: the budget > 0.
        metric: None for ε-DP, or "absolute" or "squared" for privacy by distance. For "squared" the
            certificate is that of the channel from the knots, to which inputs are dithered.

    Returns:
        The repaired quantizer, its certificate, and the share of the centre that was mixed in.

    Raises:
        NotCertified: the quantizer cannot be repaired.
    """
    mechanism, share = repair_quantizer(quantizer, epsilon, metric)
    record = {"repair_share": float(share)} if share else {}
    if metric != "squared":
        notion = "pure" if metric is None else "metric"
        certificate = certify(mechanism, notion, epsilon, unbiased=True, record=record)
        return mechanism, certificate, share
    knots = mechanism.knots
    subject = mechanism.knot_channel()
    # Only neighbouring knots were audited; the certificate compares all pairs.
    certificate = certify(
        subject,
        "metric",
        {(i, j): epsilon * (knots[i] - knots[j]) ** 2 for i, j in subject.pairs},
        outputs=mechanism.bins,
        unbiased_for=knots,
        record=record,
    )
    if certificate.mechanism != subject:
        raise NotCertified(
            "The repaired law misses the metric between points that are not neighbours."
        )
    return mechanism, certificate, share
