"""What every designed label randomizer goes through: the exact audit, repair and certificate, or a refusal in words.

A certificate holds one row for every label and states max |E[o|y] - y|, so its file knows labels and outputs. Where so
many rows cannot be compared two by two, RR-on-Bins has one for every bin (all labels of a bin share their law).

For pure ε over all pairs, the repair is steered by the rows that give each output most and least mass
(`extreme_pairs`, exact and linear in the channel); the certificate itself compares every pair.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import combinations
from typing import Any, NoReturn

from solvers.solution import Solution, Termination
from workbench.errors import Infeasible, InvalidRequest, NotCertified, NotProven
from workbench.labels_designed import LabelDesign
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.label_channel import LabelChannel, extreme_pairs
from workbench.mechanisms.randomized_response import RandomizedResponse
from workbench.privacy.audit import Privacy, audit_channel, audit_subject
from workbench.privacy.certificate import Bias, Certificate
from workbench.privacy.relation import ChannelPairs
from workbench.privacy.repair_channel import repair_rows

__all__ = ["audited", "bare", "certified", "check_size", "missed", "proven", "refuse", "rows_of"]

Pairs = tuple[tuple[int, int], ...]
Budgets = Mapping[tuple[int, int], Fraction]

_QUICK = 100_000  # masses compared up to which a certificate is made without being asked for (about a second)
_MOST = 20_000_000  # and at all (minutes)


def certified(
    mechanism: LabelChannel | RandomizedResponse,
    request: Mapping[str, Any],
    pairs: Pairs | None = None,
    budgets: Budgets | None = None,
    *,
    unbiased: bool = False,
) -> Certificate | None:
    """The channel, repaired if it misses the request, with its proof; None where request["certify"] lets it go.

    request["certify"]: True to insist, False to leave it, None where it is quick. pairs: None for all. unbiased:
    whether E[o|y] = y is to hold exactly; where no repair reaches that, the certificate states the bias that is left.
    Raises NotCertified, InvalidRequest.
    """
    wish = request["certify"]
    if wish is False:
        return None
    try:
        found = _rows(mechanism, pairs, _MOST if wish else _QUICK, by_bin=bool(wish))
    except InvalidRequest:
        if wish:
            raise
        return None
    try:
        return _proof(mechanism, found, request, pairs is None, budgets, unbiased=unbiased)
    except NotCertified:
        if wish:
            raise
        return None


def bare(mechanism: LabelChannel | RandomizedResponse, pairs: Pairs | None = None) -> ChannelPairs:
    """The channel as it is with its neighbours (None: all), claiming nothing. Raises InvalidRequest when too large."""
    return _rows(mechanism, pairs, _MOST, by_bin=True)


def check_size(k: int, m: int, pairs: Pairs | None, most: int = _MOST) -> None:
    """Raise InvalidRequest when a channel of k labels and m outputs is too large, or too small, to be certified."""
    if k == 1:
        InvalidRequest.must("labels", "at least two for a neighbour relation", 1)
    count = (k * (k - 1) // 2 if pairs is None else len(pairs)) * m
    if count > most:
        InvalidRequest.must("pairs times outputs", f"at most {most} for a certificate", count)


def _rows(
    mechanism: LabelChannel | RandomizedResponse, pairs: Pairs | None, most: int, *, by_bin: bool
) -> ChannelPairs:
    """The channel with a row for every label; of RR-on-Bins also for every bin, where that is allowed and needed."""
    k, m = mechanism.labels.k, mechanism.outputs.size
    if isinstance(mechanism, LabelChannel):
        check_size(k, m, pairs, most)
        return ChannelPairs.of(mechanism.channel, pairs or combinations(range(k), 2))
    check_size(k, 1, pairs=(), most=most)
    at = list(range(k))
    if k * (k - 1) // 2 * m > min(most, _QUICK):
        at = mechanism.distinct().tolist()
        if not by_bin or len(at) < 2 or len(at) ** 2 * m > most:
            InvalidRequest.must("bins", f"2 to {round(most ** (1 / 3))} for a certificate of so many labels", m)
    return ChannelPairs.of(Channel(tuple(map(mechanism.row, at))), combinations(range(len(at)), 2))


def rows_of(certificate: Certificate) -> Channel:
    """The certified channel."""
    assert isinstance(certificate.mechanism, ChannelPairs)
    return certificate.mechanism.channel


def _proof(
    mechanism: LabelChannel | RandomizedResponse,
    found: ChannelPairs,
    request: Mapping[str, Any],
    every: bool,
    budgets: Budgets | None,
    *,
    unbiased: bool,
) -> Certificate:
    """found: the rows and pairs to certify; every: whether the pairs are all."""
    notion, delta = request["notion"], request["delta"]
    claim: Any = budgets or request["asked"]

    def private(candidate: Channel) -> bool:
        if every and notion == "pure":
            return audit_channel(candidate, extreme_pairs(candidate), claim).meets(notion, claim, delta)
        subject = ChannelPairs(candidate, found.pairs)
        return audit_subject(subject, claim).meets(notion, claim, delta)

    outputs = [Fraction(value) for value in mechanism.outputs.tolist()]
    labels = [Fraction(value) for value in mechanism.labels.values.tolist()]
    made, share = repair_rows(
        found.channel, private, outputs=outputs if unbiased else None, means=labels if unbiased else None,
        allow_bias=True,
    )  # fmt: skip
    subject = ChannelPairs(made, found.pairs)
    record: dict[str, Any] = {"method": request["method"], "loss": request["loss"]}
    if share:
        record["repair_mixed_in"] = float(share)
    whole = len(made.rows) == mechanism.labels.k
    if not whole and isinstance(mechanism, RandomizedResponse):
        record |= {"rows": "one for every bin", "bins": mechanism.bins()}
    bias = Bias.of(subject, outputs, labels) if whole else None
    return Certificate(subject, notion, claim, delta, bias=bias, record=record)


def audited(
    channel: Channel, request: Mapping[str, Any], pairs: Pairs | None = None, budgets: Budgets | None = None
) -> Privacy:
    """The exact audit of the mechanism as returned; for all pairs and pure ε the extreme pairs of rows suffice."""
    if len(channel.rows) == 1:
        channel = Channel((channel.rows[0], channel.rows[0]))
        pairs = ((0, 1),)
    return audit_channel(channel, pairs or extreme_pairs(channel), budgets or request["asked"])


def missed(privacy: Privacy, request: Mapping[str, Any]) -> tuple[str, ...]:
    """A sentence when the mechanism misses the request, none otherwise."""
    budgets = privacy.budgets if request["notion"] == "metric" else request["asked"]
    if privacy.meets(request["notion"], budgets, request["delta"]):
        return ()
    return (privacy.verdict(request["notion"], budgets, request["delta"], subject="The solver's channel"),)


def refuse(solution: Solution, constraints: tuple[str, ...]) -> NoReturn:
    """Raise what a solve without a point means."""
    if solution.termination is Termination.INTERRUPTED:
        raise KeyboardInterrupt  # Ctrl-C while the solver ran: there is no incumbent to keep
    said = f"{solution.solver} says {solution.raw_status!r}"
    if solution.termination is Termination.INFEASIBLE:
        what = f"the constraints {', '.join(constraints)} on these outputs" if constraints else "this request"
        raise Infeasible(f"No channel meets {what} ({said}).")
    raise NotProven(f"{said} and returned no channel.", bound=solution.bound)


def proven(made: LabelDesign) -> LabelDesign:
    """The design of a solve that ended; raises NotProven, with the design, when it stopped before an optimum."""
    solution = made.solution
    if solution.termination in (Termination.OPTIMAL, Termination.GAP_LIMIT):
        return made
    bound = "unknown" if made.bound is None else f"{made.bound:.9g}"
    raise NotProven(
        f"{solution.solver} stopped with {solution.raw_status!r} before proving an optimum: incumbent "
        f"{made.objective:.9g}, bound {bound}.",
        incumbent=made.objective, bound=made.bound, design=made,
        interrupted=solution.termination is Termination.INTERRUPTED,
    )  # fmt: skip
