"""From a solver's quantizer to a certified one: exactly unbiased, exactly private, with the certificate that says so.

A solver's laws miss their means and their budget by 1e-15 or so. Every end law is first given its mean exactly; then
all are mixed with an unbiased, strictly private centre, for the least share at which the exact audit accepts
(workbench.privacy.repair_channel). Equal laws are repaired equally, so a continuous law stays continuous.

The audit inside the repair is `is_private`, linear in the end laws; the certificate at the end is decided by the
audit of every two of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from workbench.errors import NotCertified
from workbench.exact.distribution import Distribution
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.privacy.audit import audit
from workbench.privacy.certificate import Bias, Certificate
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
    best: tuple[Fraction, Fraction, Quantizer] | None = None
    error, tried = NotCertified("No output is drawn."), []
    for least in _LEAST:
        used = [i for i in range(quantizer.m) if most[i] > least]
        if used in tried:
            continue
        tried.append(used)
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
    quantizer: Quantizer, used: list[int], epsilon: Fraction, metric: str | None
) -> tuple[Quantizer, Fraction]:
    """The repair with these outputs alone."""
    bins = tuple(quantizer.bins[i] for i in used)

    def build(channel: Channel) -> Quantizer:
        return Quantizer(quantizer.knots, bins, channel.rows, quantizer.name)

    def private(channel: Channel) -> bool:
        return is_private(build(channel), epsilon, metric)

    laws = [law if len(used) == quantizer.m else _only(law, used) for law in quantizer.ends]
    channel, share = repair_rows(Channel(tuple(laws)), private, outputs=bins, means=quantizer.places)
    mixed = build(channel)
    return mixed if len(used) == quantizer.m else _spread(quantizer, mixed, used), share


def _only(law: Distribution, used: list[int]) -> Distribution:
    """A law on the outputs that are used."""
    return Distribution([law.integers[i] for i in used], "an end law")


def _spread(quantizer: Quantizer, mixed: Quantizer, used: list[int]) -> Quantizer:
    """The laws on all outputs again."""

    def full(law: Distribution) -> Distribution:
        weights = [0] * quantizer.m
        for k, i in enumerate(used):
            weights[i] = law.integers[k]
        return Distribution(weights, "an end law")

    return quantizer.with_rows([*map(full, mixed.ends)])


def certified_quantizer(
    quantizer: Quantizer, epsilon: Fraction, metric: str | None = None, *, record: Mapping[str, Any] | None = None
) -> tuple[Quantizer, Certificate, Fraction]:
    """The repaired quantizer, its certificate, and the share of the centre that was mixed in.

    metric "squared" is certified for the channel from the knots, which is what inputs are dithered to.
    Raises NotCertified.
    """
    mechanism, share = repaired(quantizer, epsilon, metric)
    noted = dict(record or {}) | ({"repair_share": float(share)} if share else {})
    if metric == "squared":
        subject = mechanism.from_knots()
        gaps: dict[tuple[int, ...], Fraction] = {
            (i, j): epsilon * (mechanism.knots[i] - mechanism.knots[j]) ** 2 for i, j in subject.pairs
        }
        bias = Bias.of(subject, mechanism.bins, mechanism.knots)
        if not audit(subject, gaps).meets("metric", gaps):
            raise NotCertified("The repaired law misses the metric between points that are not neighbours.")
        return mechanism, Certificate(subject, "metric", gaps, bias=bias, record=noted), share
    bias = Bias(mechanism.bins, mechanism.places, mechanism.bias)
    notion = "pure" if metric is None else "metric"
    return mechanism, Certificate(mechanism, notion, epsilon, bias=bias, record=noted), share
