"""The certificate of a designed channel: its claim, its loss where a file can state it, and what the repair left over.

The file holds the loss where it is a rational one of numbers under a prior (`workbench.privacy.objective`), and the
means of numbers. A loss of one's own and a worst case are recomputed exactly here and written down in the record.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

from workbench import __version__
from workbench.data.points import shown
from workbench.errors import NotCertified
from workbench.exact.numbers import ZERO, round_up
from workbench.exact.objects import Record
from workbench.families.channel.repair import channel_loss
from workbench.families.channel.request import ChannelRequest
from workbench.mechanisms.channel import Channel
from workbench.pipeline.problem import stated_certificate
from workbench.pipeline.user_constraints import TOLERATED, residual
from workbench.privacy.audit import audit, proves
from workbench.privacy.certificate import Certificate
from workbench.privacy.claim import Claim
from workbench.privacy.repair_channel import repair_rows
from workbench.solvers.solution import Solution

_DIGITS = 30  # of a least δ


def exact_certificate(
    request: ChannelRequest, channel: Channel, solution: Solution | None, origin: str
) -> tuple[Certificate, list[str]]:
    """The certificate of a channel, mixed with another where the audit refuses it and its repair is no other, or where
    its means are to be kept; and words. Where δ is minimised it is what the channel has, rounded up.

    Raises NotCertified.
    """
    claim, q = request.audited_claim, request.question
    if request.aim.minimise == "delta":
        reached = audit(channel, claim.epsilon).dp_delta
        high = reached.ends(160)[1] if reached.b else reached.a
        delta = max(ZERO, Fraction(math.ceil(high * 10**_DIGITS), 10**_DIGITS))
        claim = Claim(claim.notion, claim.epsilon, delta)
    private = partial(proves, claim=claim.on(channel))
    kept = q.numbers if "unbiased" in request.aim.constraints else None
    if request.cut or kept is not None:
        channel, _ = repair_rows(channel, private, kept and (kept[1], kept[0]), allow_bias=True)
    elif not private(channel):
        raise NotCertified("The exact audit refuses the repaired channel.")
    record: Record = {
        **request.RECORD,
        "workbench": __version__,
        "loss": request.losses.name,
        "minimise": request.aim.minimise,
        "route": origin,
        "inputs": [*map(shown, q.inputs)],
        "outputs": [*map(shown, q.outputs)],
    }
    if q.planar:
        record["norm"] = q.norm
        record["expected_loss" if q.prior is not None else "largest_loss"] = round_up(
            channel_loss(channel, request.losses, q.prior)
        )
    if solution is not None:
        record |= {"solver": solution.solver, "solver_version": solution.version, "claimed": solution.objective}
    loss = None if request.losses.named is None else request.losses.name
    certificate = stated_certificate(channel, claim, loss, q.numbers, q.prior, record)
    excess = _residual(request, channel)
    words = []
    if excess is None:
        words.append(TOLERATED)
    elif excess:
        words.append(f"The certified channel misses the extra constraints by {round_up(excess):.3g}, exactly.")
    return certificate, words


def _residual(request: ChannelRequest, channel: Channel) -> Fraction | None:
    """The largest violation of the extra constraints, exact; None where they are not linear in the channel alone."""
    if not request.extended:
        return ZERO
    q = request.question  # columns first, as CVXPY has them
    masses = [channel.rows[j % q.k][j // q.k] for j in range(q.k * q.m)]
    return None if request.extra_program is None else residual(request.extra_program, masses)
