"""Certify a designed channel: audit it exactly, and make the certificate that states its privacy
and its loss.

A certificate contains the claim. It also contains the loss if inputs and outputs are numbers, the
loss is rational and there is a prior (`workbench.privacy.objective`). It contains the bias if
inputs and outputs are numbers. If inputs are places in the plane, their loss is computed exactly
here, rounded up and written to the record.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

from workbench import __version__
from workbench.data.points import format_point
from workbench.errors import NotCertified, NotProven
from workbench.exact.numbers import ZERO, round_up
from workbench.exact.objects import Record
from workbench.families.channel.repair import compute_channel_loss
from workbench.families.channel.request import ChannelRequest
from workbench.mechanisms.channel import Channel
from workbench.pipeline.problem import make_certificate
from workbench.pipeline.user_constraints import CONSTRAINTS_NOTE, find_max_violation
from workbench.privacy.audit import audit, provably_satisfies_claim
from workbench.privacy.certificate import Certificate
from workbench.privacy.claim import Claim
from workbench.privacy.repair_channel import repair_rows
from workbench.solvers.solution import Solution, Termination

# A minimised δ is rounded up to this many decimals.
_DELTA_DECIMALS = 30
# The exact δ of a channel is enclosed at this precision before it is rounded up.
_DELTA_BITS = 160
# If a stopped search violates a constraint by more than this times the largest coefficient, its
# channel is not used.
_MAX_STOPPED_VIOLATION = Fraction(1, 10**6)


def make_channel_certificate(
    request: ChannelRequest, channel: Channel, solution: Solution | None, origin: str
) -> tuple[Certificate, list[str]]:
    """Make the certificate of a channel.

    The channel is first mixed with a strictly private channel, as far as the audit needs, in two
    cases: the notion has several bounds for each pair of neighbours (zCDP, GDP, Rényi, curve), or
    the constraint "unbiased" must survive. Where δ is minimised, the claim is the δ of the channel,
    rounded up.

    Args:
        request: request that the channel answers.
        channel: the channel. If the notion has one bound for each pair, it is repaired already.
        solution: answer of the solver, which is named in the record. None: no solver answered.
        origin: where the masses come from, for the record, such as "exact repair".

    Returns:
        (certificate, notes): the certificate, whose mechanism is the certified channel, and
        sentences about extra constraints that it violates or that could not be checked.

    Raises:
        NotCertified: the exact audit rejects the channel.
        NotProven: the solver was stopped before its channel satisfied the constraints.
    """
    claim = request.audited_claim
    question = request.question
    if request.aim.minimise == "delta":
        claim = _claim_reached_delta(claim, channel)
    is_private = partial(provably_satisfies_claim, claim=claim.adapt_to(channel))
    preserved_means = None
    if "unbiased" in request.aim.constraints and question.numbers is not None:
        inputs, outputs = question.numbers
        preserved_means = (outputs, inputs)
    if request.has_several_bounds or preserved_means is not None:
        channel, _ = repair_rows(channel, is_private, preserved_means, allow_bias=True)
    elif not is_private(channel):
        raise NotCertified("The exact audit rejects the repaired channel.")
    record = _make_record(request, channel, solution, origin)
    loss_name = None if request.losses.named_loss is None else request.losses.name
    certificate = make_certificate(
        channel, claim, loss_name, question.numbers, question.prior, record
    )
    violation = _compute_extra_violation(request, channel)
    if violation and solution is not None:
        _check_stopped_violation(request, solution, violation)
    notes = []
    if violation is None:
        notes.append(CONSTRAINTS_NOTE)
    elif violation:
        notes.append(
            f"The certified channel violates the extra constraints by {round_up(violation):.3g}, "
            "exactly."
        )
    return certificate, notes


def _claim_reached_delta(claim: Claim, channel: Channel) -> Claim:
    """Return the claim with the exact δ of a channel, rounded up."""
    delta = audit(channel, claim.epsilon).dp_delta
    # δ is a - b e^ε with rationals a and b.
    upper = delta.a
    if delta.b:
        _, upper = delta.enclosure(_DELTA_BITS)
    scale = 10**_DELTA_DECIMALS
    delta_bound = Fraction(math.ceil(upper * scale), scale)
    return Claim(claim.notion, claim.epsilon, max(ZERO, delta_bound))


def _make_record(
    request: ChannelRequest, channel: Channel, solution: Solution | None, origin: str
) -> Record:
    """Return the fields of a certificate file that describe the design.

    `solution` is None if no solver was called. `origin` is the route of the answer.
    """
    question = request.question
    record: Record = {
        **request.CERTIFICATE_RECORD,
        "workbench": __version__,
        "loss": request.losses.name,
        "minimise": request.aim.minimise,
        "route": origin,
        "inputs": [*map(format_point, question.inputs)],
        "outputs": [*map(format_point, question.outputs)],
    }
    if question.is_planar:
        record["norm"] = question.norm
        if question.projection is not None:
            record["projection"] = question.projection.to_dict()
        loss_key = "largest_loss"
        if question.prior is not None:
            loss_key = "expected_loss"
        record[loss_key] = round_up(compute_channel_loss(channel, request.losses, question.prior))
    if solution is not None:
        record |= {"solver": solution.solver, "solver_version": solution.version}
        objective = solution.objective
        # The objective is infinite as long as the row sums are not 1.
        if objective is not None and math.isfinite(objective):
            record["claimed"] = objective
    return record


def _check_stopped_violation(
    request: ChannelRequest, solution: Solution, violation: Fraction
) -> None:
    """Reject a channel that violates the extra constraints because the solver was stopped too
    early.

    Args:
        request: request whose constraints are violated.
        solution: answer of the solver.
        violation: largest violation of a constraint.

    Raises:
        NotProven: the violation, relative to the largest coefficient, exceeds the tolerance of a
            solver.
    """
    assert request.extra_program is not None
    largest_coefficient = Fraction(float(abs(request.extra_program.template.A).max()))
    is_stopped = solution.termination not in (Termination.OPTIMAL, Termination.GAP_LIMIT)
    if is_stopped and violation > _MAX_STOPPED_VIOLATION * largest_coefficient:
        raise NotProven(
            f"{solution.solver} stopped with {solution.raw_status!r} before it had a channel that "
            f"satisfies the constraints. The violation is {round_up(violation):.3g}. "
            "Increase --time-limit.",
            interrupted=solution.termination is Termination.INTERRUPTED,
        )


def _compute_extra_violation(request: ChannelRequest, channel: Channel) -> Fraction | None:
    """Return the largest violation of the extra constraints, exact. 0 if there are none.

    None if it cannot be computed, because the constraints are not linear in the masses.
    """
    if not request.has_extra_constraints:
        return ZERO
    if request.extra_program is None:
        return None
    k = request.question.k
    # CVXPY orders the masses column by column.
    masses = [channel.rows[j % k][j // k] for j in range(k * request.question.m)]
    return find_max_violation(request.extra_program, masses)
