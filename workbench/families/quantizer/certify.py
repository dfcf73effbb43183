"""From a solver's quantizer to a certified one: exactly unbiased, exactly private, with the certificate that says so.

A solver's laws miss their means and their budget by 1e-15 or so. Every end law is first given its mean exactly; then
all are mixed with an unbiased, strictly private centre, for the least share at which the exact audit accepts
(workbench.privacy.repair_channel). Equal laws are repaired equally, so a continuous law stays continuous.

Whether it does is decided by comparisons that are linear in the end laws:

pure ε           the end laws that give each output most and least          (Cai et al. 2024, eq. (6))
metric, |x-x'|   the steepest slope of ln p (`workbench.notions.metric`); none at a jump
metric, |x-x'|²  for inputs dithered to the knots only, between neighbouring ones (`PiecewiseAffine.from_knots` says
                 why), which decides it for all, as |x-x'|² is at least the sum of the squares between

The certificate at the end is of the channel from the knots with every two of them, where it is by |x-x'|².
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

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

SMALL_REPAIR_SHARE = Fraction(
    1, 10**6
)  # a repair beyond this is worth another try, and a word to the reader
_LEAST = (ZERO, Fraction(1, 10**11), Fraction(1, 10**9), Fraction(1, 10**7), Fraction(1, 10**5))


def _asked(
    quantizer: Quantizer, epsilon: Fraction, metric: str | None = None
) -> tuple[Mechanism, Claim]:
    """What is audited, and for what. metric: None, "absolute" or "squared". Raises InvalidRequest by |x - x'|² for a
    law that jumps."""
    if metric != "squared":
        return quantizer, Claim("pure" if metric is None else "metric", epsilon)
    if any(a.right != b.left for a, b in pairwise(quantizer.segments)):
        raise InvalidRequest("The law must not jump between inputs that are dithered to its knots.")
    links = Channel.from_pairs(quantizer.knot_channel(), pairwise(range(len(quantizer.knots))))
    steps = {(i, j): (quantizer.knots[i] - quantizer.knots[j]) ** 2 for i, j in links.budgets(0)}
    return links, Claim("metric", {label: epsilon * step for label, step in steps.items()})


def is_private(quantizer: Quantizer, epsilon: Fraction, metric: str | None = None) -> bool:
    """Whether a quantizer is ε-private, decided exactly; its bias is left aside. Raises InvalidRequest."""
    return satisfies_claim(*_asked(quantizer, epsilon, metric))


def audit_quantizer(
    quantizer: Quantizer, epsilon: Fraction, metric: str | None = None
) -> tuple[Privacy, Claim]:
    """The exact audit that decides whether a quantizer is ε-private, and the claim. Raises InvalidRequest."""
    subject, claim = _asked(quantizer, epsilon, metric)
    return audit_for_claim(subject, claim), claim


def find_least_epsilon(privacy: Privacy, metric: str | None, epsilon: Fraction) -> float:
    """The least ε of a quantizer by its audit at a budget ε > 0, rounded up; inf where there is none."""
    if metric is None:
        return privacy.pure_epsilon
    if metric == "absolute":
        return privacy.metric_epsilon
    if any(pair.ratio is None for pair in privacy.pairs):
        return math.inf
    return max(
        math.nextafter(log_upper_bound(pair.ratio) / (pair.epsilon / epsilon), math.inf)
        for pair in privacy.pairs
        if pair.ratio is not None
    )


def repair_quantizer(
    quantizer: Quantizer, epsilon: Fraction, metric: str | None = None
) -> tuple[Quantizer, Fraction]:
    """The quantizer itself when it is exactly unbiased and ε-private, else the nearest mixture that is, and its share.

    A solver's zeros are masses of 1e-17 here and 1e-9 there, whose ratios no small share repairs: when it takes a
    large one, outputs that are nowhere drawn more often than a threshold are taken out first.
    Raises NotCertified when these outputs leave no room for one.
    """
    most = [max(law[i] for law in quantizer.ends) for i in range(quantizer.m)]
    thresholds: dict[Ints, Fraction] = {}
    for least in _LEAST:
        thresholds.setdefault(tuple(i for i, mass in enumerate(most) if mass > least), least)
    tried = []
    error = NotCertified("No output is drawn.")
    for used, least in thresholds.items():
        try:
            mixed, share = _mixed_back(quantizer, used, epsilon, metric)
        except NotCertified as raised:
            error = raised
            continue
        tried.append((max(share, least), mixed, share))
        if tried[-1][0] <= SMALL_REPAIR_SHARE:
            break
    if not tried:
        raise error
    _, mixed, share = min(tried, key=lambda repair: repair[0])
    return mixed, share


def _mixed_back(
    quantizer: Quantizer, used: Sequence[int], epsilon: Fraction, metric: str | None
) -> tuple[Quantizer, Fraction]:
    """The repair with these outputs alone."""
    laws = tuple(
        Distribution([law.integers[i] for i in used], "an end law") for law in quantizer.ends
    )
    part = Quantizer(quantizer.knots, tuple(quantizer.bins[i] for i in used), laws, quantizer.name)
    mixed, share = repair_rows(
        part, lambda tried: is_private(tried, epsilon, metric), (part.bins, part.end_inputs)
    )
    masses = [dict(zip(used, law.integers, strict=True)) for law in mixed.ends]
    whole = [
        Distribution([law.get(i, 0) for i in range(quantizer.m)], "an end law") for law in masses
    ]
    return quantizer.with_rows(whole), share


def certify_quantizer(
    quantizer: Quantizer, epsilon: Fraction, metric: str | None = None
) -> tuple[Quantizer, Certificate, Fraction]:
    """The repaired quantizer, its certificate, and the share of the centre that was mixed in.

    metric "squared" is certified for the channel from the knots, which is what inputs are dithered to.
    Raises NotCertified.
    """
    mechanism, share = repair_quantizer(quantizer, epsilon, metric)
    noted = {"repair_share": float(share)} if share else {}
    if metric != "squared":
        notion = "pure" if metric is None else "metric"
        return mechanism, certify(mechanism, notion, epsilon, unbiased=True, record=noted), share
    subject, knots = mechanism.knot_channel(), mechanism.knots
    certificate = certify(
        subject,
        "metric",
        {(i, j): epsilon * (knots[i] - knots[j]) ** 2 for i, j in subject.pairs},
        outputs=mechanism.bins,
        unbiased_for=knots,
        record=noted,
    )
    if certificate.mechanism != subject:
        raise NotCertified(
            "The repaired law misses the metric between points that are not neighbours."
        )
    return mechanism, certificate, share
