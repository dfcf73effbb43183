"""From a solver's quantizer to a certified one: exactly unbiased, exactly private, with the certificate that says so.

A solver's laws miss their means and their budget by 1e-15 or so. Every end law is first given its mean exactly; then
all are mixed with an unbiased, strictly private centre, for the least share at which the exact audit accepts
(workbench.privacy.repair_channel). Equal laws are repaired equally, so a continuous law stays continuous.

The audit inside the repair is `is_private`, linear in the end laws; the certificate at the end is decided by the
audit of every two of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from workbench.errors import NotCertified
from workbench.exact.distribution import Distribution
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.privacy.certificate import Certificate
from workbench.privacy.certify import certify
from workbench.privacy.quantizer import is_private
from workbench.privacy.repair_channel import repair_rows

__all__ = ["SMALL", "certified_quantizer", "repaired"]

SMALL = Fraction(1, 10**6)  # a repair beyond this is worth another try, and a word to the reader
_LEAST = (Fraction(0), Fraction(1, 10**11), Fraction(1, 10**9), Fraction(1, 10**7), Fraction(1, 10**5))


def repaired(quantizer: Quantizer, epsilon: Fraction, metric: str | None = None) -> tuple[Quantizer, Fraction]:
    """The quantizer itself when it is exactly unbiased and ε-private, else the nearest mixture that is, and its share.

    A solver's zeros are masses of 1e-17 here and 1e-9 there, whose ratios no small share repairs: when it takes a
    large one, outputs that are nowhere drawn more often than a threshold are taken out first.
    Raises NotCertified when these outputs leave no room for one.
    """
    most = [max(law[i] for law in quantizer.ends) for i in range(quantizer.m)]
    thresholds: dict[tuple[int, ...], Fraction] = {}
    for least in _LEAST:
        thresholds.setdefault(tuple(i for i, mass in enumerate(most) if mass > least), least)
    best: tuple[Fraction, Fraction, Quantizer] | None = None
    error = NotCertified("No output is drawn.")
    for used, least in thresholds.items():
        try:
            mixed, share = _mixed_back(quantizer, used, epsilon, metric)
        except NotCertified as raised:
            error = raised
            continue
        if best is None or max(share, least) < best[0]:
            best = max(share, least), share, mixed
        if best[0] <= SMALL:
            break
    if best is None:
        raise error
    return best[2], best[1]


def _mixed_back(
    quantizer: Quantizer, used: Sequence[int], epsilon: Fraction, metric: str | None
) -> tuple[Quantizer, Fraction]:
    """The repair with these outputs alone."""
    laws = tuple(Distribution([law.integers[i] for i in used], "an end law") for law in quantizer.ends)
    part = Quantizer(quantizer.knots, tuple(quantizer.bins[i] for i in used), laws, quantizer.name)
    mixed, share = repair_rows(
        part, lambda tried: is_private(tried, epsilon, metric), outputs=part.bins, means=part.places
    )
    masses = [dict(zip(used, law.integers, strict=True)) for law in mixed.ends]
    whole = [Distribution([law.get(i, 0) for i in range(quantizer.m)], "an end law") for law in masses]
    return quantizer.with_rows(whole), share


def certified_quantizer(
    quantizer: Quantizer, epsilon: Fraction, metric: str | None = None
) -> tuple[Quantizer, Certificate, Fraction]:
    """The repaired quantizer, its certificate, and the share of the centre that was mixed in.

    metric "squared" is certified for the channel from the knots, which is what inputs are dithered to.
    Raises NotCertified.
    """
    mechanism, share = repaired(quantizer, epsilon, metric)
    noted = {"repair_share": float(share)} if share else {}
    if metric != "squared":
        notion = "pure" if metric is None else "metric"
        return mechanism, certify(mechanism, notion, epsilon, unbiased=True, record=noted), share
    subject, knots = mechanism.from_knots(), mechanism.knots
    certificate = certify(
        subject,
        "metric",
        epsilon,
        metric=lambda i, j: (knots[i] - knots[j]) ** 2,
        outputs=mechanism.bins,
        unbiased_for=knots,
        record=noted,
    )
    if certificate.mechanism != subject:
        raise NotCertified("The repaired law misses the metric between points that are not neighbours.")
    return mechanism, certificate, share
