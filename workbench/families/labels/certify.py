"""What every designed label randomizer goes through: the exact audit, repair and certificate, or a refusal in words.

A certificate holds one row for every label, states max |E[o|y] - y| and the expected loss under the prior (where that
is rational: not for Poisson losses), so its file knows labels, prior and outputs. Where so many rows cannot be compared
two by two, RR-on-Bins has one for every bin (all labels of a bin share their law).

For pure ε over all pairs, the repair is steered by the rows that give each output most and least mass
(`extreme_pairs`, exact and linear in the channel); the certificate itself compares every pair.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from workbench.errors import InvalidRequest
from workbench.families.labels.relation import MASSES, ROWS, Pairs, check_size
from workbench.families.labels.request import LabelRequest
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.label_randomizers.label_channel import LabelChannel
from workbench.mechanisms.label_randomizers.randomized_response import RandomizedResponse
from workbench.privacy.audit import Privacy, audit_extremes, holds
from workbench.privacy.certificate import Bias, Certificate, ExpectedLoss
from workbench.privacy.objective import is_exact_loss
from workbench.privacy.repair_channel import repair_rows

__all__ = [
    "UNBIASED",
    "audited",
    "bare",
    "certified",
    "shortfall",
]

_FULL = 100_000  # masses up to which RR-on-Bins has a row for every label, not only for every bin
_STATED = 1_000_000  # labels times outputs up to which a certificate states the loss (a second)
UNBIASED = 4_000_000  # both, of the unbiased randomizer: it needs no repair, and its file is short


def certified(
    mechanism: LabelChannel | RandomizedResponse, request: LabelRequest, *, unbiased: bool = False
) -> Certificate | None:
    """The channel, repaired if it misses the request, with its proof; None only where no certificate is wanted.

    unbiased: whether E[o|y] = y is to hold exactly; where no repair reaches that, the certificate states the bias that
    is left. Raises NotCertified, InvalidRequest.
    """
    if not request.certified:
        return None
    return _proof(mechanism, bare(mechanism, request.pairs, _masses(request)), request, unbiased=unbiased)


def _masses(request: LabelRequest) -> int:
    return UNBIASED if request.method == "unbiased" else MASSES


def bare(mechanism: LabelChannel | RandomizedResponse, pairs: Pairs | None = None, masses: int = MASSES) -> Channel:
    """The channel as it is with its neighbours (None: all), claiming nothing. Raises InvalidRequest when too large.

    A row for every label; of RR-on-Bins one for every bin, where the rows of all labels would be too many.
    """
    k, m = mechanism.labels.k, mechanism.outputs.size
    if isinstance(mechanism, LabelChannel):
        check_size(k, m, pairs, masses)
        return Channel.of(mechanism.channel, pairs or None)
    if k == 1:
        check_size(k, m, pairs)
    at = list(range(k))
    if k > ROWS or k * m > _FULL:
        at = mechanism.distinct().tolist()
        at = at if len(at) > 1 else [0, k - 1]  # two labels of the only bin
        if len(at) > ROWS or len(at) * m > MASSES:
            InvalidRequest.must("bins", f"at most {math.isqrt(MASSES)} for a certificate of so many labels", m)
    return Channel(tuple(map(mechanism.row, at)))


def _proof(
    mechanism: LabelChannel | RandomizedResponse, channel: Channel, request: LabelRequest, *, unbiased: bool
) -> Certificate:
    """The certificate of a repaired channel, with loss and bias where it has a row for every label. Raises
    NotCertified."""
    claim = request.claim.on(channel)
    outputs = [Fraction(value) for value in mechanism.outputs.tolist()]
    labels = [Fraction(value) for value in mechanism.labels.values.tolist()]
    repaired, share = repair_rows(
        channel,
        lambda rows: holds(rows, claim),
        outputs=outputs if unbiased else None,
        means=labels if unbiased else None,
        allow_bias=True,
    )
    loss, most = request.named_loss.name, UNBIASED if request.method == "unbiased" else _STATED
    record: dict[str, Any] = {"method": request.method, "loss": loss}
    if share:
        record["repair_mixed_in"] = float(share)
    whole = len(repaired.rows) == mechanism.labels.k
    objective = _expected_loss(mechanism, repaired, loss, whole, most)
    if not whole and isinstance(mechanism, RandomizedResponse):
        record |= {"rows": "one for every bin", "bins": mechanism.bins()}
    bias = Bias.of(repaired, outputs, labels) if whole else None
    return Certificate(repaired, claim.notion.name, claim.epsilon, claim.delta, objective, bias, record)


def _expected_loss(
    mechanism: LabelChannel | RandomizedResponse, channel: Channel, loss: str, whole: bool, most: int
) -> ExpectedLoss | None:
    """The loss under the labels' prior, for the certificate to recompute; None where it is not rational or too long.

    whole: whether the channel has a row for every label; else RR-on-Bins has one for every bin; most: labels times
    outputs.
    """
    k, m = mechanism.labels.k, mechanism.outputs.size
    if k * m > most or not is_exact_loss(loss):
        return None
    rows: Sequence[int] = range(k)
    if not whole and isinstance(mechanism, RandomizedResponse):
        bins = mechanism.own[mechanism.distinct()].tolist()
        rows = [bins.index(own) for own in mechanism.own.tolist()]
    labels, prior, outputs = (
        tuple(map(Fraction, array.tolist()))
        for array in (mechanism.labels.values, mechanism.labels.prior, mechanism.outputs)
    )
    return ExpectedLoss(loss, Fraction(0), labels, prior, outputs, tuple(rows)).at(channel)


def audited(channel: Channel, request: LabelRequest) -> Privacy:
    """The exact audit of the mechanism as returned, all pairs and pure ε, where the extreme pairs of rows suffice."""
    return audit_extremes(Channel(channel.rows), request.claim.epsilon)


def shortfall(privacy: Privacy, request: LabelRequest) -> tuple[str, ...]:
    """A sentence when the mechanism misses the request, none otherwise."""
    return () if privacy.holds(request.claim) else (privacy.words(request.claim, "The solver's channel"),)
