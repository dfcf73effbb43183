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

from solvers.solution import Termination
from workbench.errors import InvalidRequest, NotProven
from workbench.families.design import Design
from workbench.families.labels.relation import Pairs
from workbench.families.labels.request import LabelRequest
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.label_randomizers.label_channel import LabelChannel
from workbench.mechanisms.label_randomizers.randomized_response import RandomizedResponse
from workbench.privacy.audit import Privacy, audit, audit_extremes
from workbench.privacy.certificate import Bias, Certificate, ExpectedLoss
from workbench.privacy.claim import Claim
from workbench.privacy.measure import holds
from workbench.privacy.objective import is_exact_loss
from workbench.privacy.repair_channel import repair_rows

__all__ = [
    "UNBIASED", "audited", "bare", "certified", "check_size", "proven", "rows_of", "shortfall", "stated",
]  # fmt: skip

# What a certificate may take, its repair included: each is a minute or two.
_MASSES = 2_000_000  # of a channel whose rows are all compared for pure ε, which is decided output by output
_ROWS = 1_500  # whose pairs are listed one by one
_FULL = 100_000  # masses up to which RR-on-Bins has a row for every label, not only for every bin
_WORK = 10_000_000  # ordered pairs times (outputs + _PAIR), where every pair is compared on its own
_PAIR = 200  # outputs that one more pair counts as
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
    return UNBIASED if request.method == "unbiased" else _MASSES


def bare(mechanism: LabelChannel | RandomizedResponse, pairs: Pairs | None = None, masses: int = _MASSES) -> Channel:
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
    if k > _ROWS or k * m > _FULL:
        at = mechanism.distinct().tolist()
        at = at if len(at) > 1 else [0, k - 1]  # two labels of the only bin
        if len(at) > _ROWS or len(at) * m > _MASSES:
            InvalidRequest.must("bins", f"at most {math.isqrt(_MASSES)} for a certificate of so many labels", m)
    return Channel(tuple(map(mechanism.row, at)))


def check_size(k: int, m: int, pairs: Pairs | None, masses: int = _MASSES) -> None:
    """Raise InvalidRequest when a channel of k labels and m outputs is too large, or too small, to be certified.

    pairs: those that are compared one by one; None for pure ε over all, which is decided output by output.
    """
    if k == 1:
        InvalidRequest.must("labels", "at least two for a neighbour relation", 1)
    if pairs is None:
        most = min(_ROWS, masses // m)
        if k > most:
            InvalidRequest.must("labels", f"at most {most} for a certificate of {m} outputs", k)
        return
    most = _WORK // (2 * (m + _PAIR))
    if len(pairs) > most:
        got = f"{len(pairs)} ({k} labels)"
        InvalidRequest.must("pairs of neighbours", f"at most {most} for a certificate of {m} outputs", got)


def rows_of(certificate: Certificate) -> Channel:
    """The certified channel."""
    assert isinstance(certificate.mechanism, Channel)
    return certificate.mechanism


def _proof(
    mechanism: LabelChannel | RandomizedResponse,
    channel: Channel,
    request: LabelRequest,
    *,
    unbiased: bool,
) -> Certificate:
    """found: the rows and pairs to certify."""
    claim = request.claim.on(channel)
    outputs = [Fraction(value) for value in mechanism.outputs.tolist()]
    labels = [Fraction(value) for value in mechanism.labels.values.tolist()]
    repaired, share = repair_rows(
        channel, lambda rows: holds(rows, claim), outputs=outputs if unbiased else None,
        means=labels if unbiased else None, allow_bias=True,
    )  # fmt: skip
    most = UNBIASED if request.method == "unbiased" else _STATED
    return stated(mechanism, repaired, claim, request.method, request.named_loss.name, share, most)


def stated(
    mechanism: LabelChannel | RandomizedResponse, repaired: Channel, claim: Claim, method: str, loss: str,
    share: Fraction, most: int = _STATED,
) -> Certificate:  # fmt: skip
    """The certificate of a repaired channel, with loss and bias where it has a row for every label.

    share: that was mixed in; most: labels times outputs up to which the loss is stated. Raises NotCertified.
    """
    outputs = [Fraction(value) for value in mechanism.outputs.tolist()]
    labels = [Fraction(value) for value in mechanism.labels.values.tolist()]
    record: dict[str, Any] = {"method": method, "loss": loss}
    if share:
        record["repair_mixed_in"] = float(share)
    whole = len(repaired.rows) == mechanism.labels.k
    objective = _expected_loss(mechanism, repaired, loss, whole, most)
    if not whole and isinstance(mechanism, RandomizedResponse):
        record |= {"rows": "one for every bin", "bins": mechanism.bins()}
    bias = Bias.of(repaired, outputs, labels) if whole else None
    values = dict(claim.values)
    epsilon, delta = values.pop("epsilon", None), values.pop("delta", None)
    return Certificate(repaired, claim.notion.name, epsilon, delta, objective, bias, record, values)


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
    """The exact audit of the mechanism as returned; for all pairs and pure ε the extreme pairs of rows suffice."""
    if request.pairs is None:
        return audit_extremes(Channel(channel.rows), request.epsilon)
    return audit(Channel.of(channel, request.pairs), request.claim.epsilon)


def shortfall(privacy: Privacy, request: LabelRequest) -> tuple[str, ...]:
    """A sentence when the mechanism misses the request, none otherwise."""
    return () if privacy.holds(request.claim) else (privacy.words(request.claim, "The solver's channel"),)


def proven(design: Design) -> Design:
    """The design of a solve that ended; raises NotProven, with the design, when it stopped before an optimum."""
    solution = design.solution
    assert solution is not None
    if solution.termination in (Termination.OPTIMAL, Termination.GAP_LIMIT):
        return design
    bound = "unknown" if design.bound is None else f"{design.bound:.9g}"
    raise NotProven(
        f"{solution.solver} stopped with {solution.raw_status!r} before proving an optimum: incumbent "
        f"{design.objective:.9g}, bound {bound}.",
        incumbent=design.objective, bound=design.bound, design=design,
        interrupted=solution.termination is Termination.INTERRUPTED,
    )  # fmt: skip
