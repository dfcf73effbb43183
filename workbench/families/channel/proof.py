"""The certificate of a designed channel, and the closed form's verdict on it.

A certificate has the claim, the loss where a file can state it, and what the repair left over.

The file holds the loss where it is a rational one of numbers under a prior (`workbench.privacy.objective`), and the
means of numbers. A loss of one's own and a worst case are recomputed exactly here and written down in the record.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import numpy as np

from workbench import __version__
from workbench.data.points import shown
from workbench.errors import NotCertified, NotProven
from workbench.exact.numbers import ZERO, round_up
from workbench.exact.objects import Record
from workbench.families.channel.repair import channel_loss
from workbench.families.channel.request import ChannelRequest, ScaledLosses
from workbench.mechanisms.channel import Channel
from workbench.models.oracles.bins import BIN_LOSSES, optimal_bins
from workbench.models.oracles.finite_channel import (
    MOST_INPUTS,
    extremal_value,
    grows,
    minimax_value,
    post_processed,
    right_most_often,
)
from workbench.pipeline.design import OracleVerdict
from workbench.pipeline.problem import stated_certificate
from workbench.pipeline.user_constraints import TOLERATED, residual
from workbench.privacy.audit import audit, proves
from workbench.privacy.certificate import Certificate
from workbench.privacy.claim import Claim
from workbench.privacy.repair_channel import repair_rows
from workbench.solvers.arrays import Vector
from workbench.solvers.solution import Solution, Termination

_DIGITS = 30  # of a least δ
_MAX_STOPPED_EXCESS = Fraction(1, 10**6)  # A stopped search that misses a constraint by more has no channel yet.


def exact_certificate(
    request: ChannelRequest, channel: Channel, solution: Solution | None, origin: str
) -> tuple[Certificate, list[str]]:
    """The certificate of a channel, mixed with another where the audit refuses it and its repair is no other, or where
    its means are to be kept; and words. Where δ is minimised it is what the channel has, rounded up.

    Raises NotCertified; NotProven for a solver that was stopped before its channel met the constraints.
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
        record |= {"solver": solution.solver, "solver_version": solution.version}
        claimed = solution.objective
        if claimed is not None and math.isfinite(claimed):  # It is infinite while the sums of rows are not 1.
            record["claimed"] = claimed
    loss = None if request.losses.named is None else request.losses.name
    certificate = stated_certificate(channel, claim, loss, q.numbers, q.prior, record)
    excess = _residual(request, channel)
    if excess and solution is not None:
        _check_stopped(request, solution, excess)
    words = []
    if excess is None:
        words.append(TOLERATED)
    elif excess:
        words.append(f"The certified channel misses the extra constraints by {round_up(excess):.3g}, exactly.")
    return certificate, words


def _check_stopped(request: ChannelRequest, solution: Solution, excess: Fraction) -> None:
    """Refuse a channel that misses the extra constraints because the solver was stopped before it met them.

    Args:
        request: whose constraints are missed.
        solution: the solver's answer.
        excess: the largest violation of a constraint.

    Raises:
        NotProven: the violation, relative to the largest coefficient, is more than the tolerance of a solver.
    """
    assert request.extra_program is not None
    largest_coefficient = Fraction(float(abs(request.extra_program.template.A).max()))
    is_stopped = solution.termination not in (Termination.OPTIMAL, Termination.GAP_LIMIT)
    if is_stopped and excess > _MAX_STOPPED_EXCESS * largest_coefficient:
        raise NotProven(
            f"{solution.solver} stopped with {solution.raw_status!r} before it had a channel that meets the "
            f"constraints, which it misses by {round_up(excess):.3g}. Give it more time (--time-limit).",
            interrupted=solution.termination is Termination.INTERRUPTED,
        )


def _residual(request: ChannelRequest, channel: Channel) -> Fraction | None:
    """The largest violation of the extra constraints, exact; None where they are not linear in the channel alone."""
    if not request.extended:
        return ZERO
    q = request.question  # columns first, as CVXPY has them
    masses = [channel.rows[j % q.k][j // q.k] for j in range(q.k * q.m)]
    return None if request.extra_program is None else residual(request.extra_program, masses)


_Law = tuple[str, float, str, str]  # name, value, kind, proof

_STEEP = 20  # ε up to which the program of the extremal columns is in reach of floats
_MINIMAX = 2_500  # inputs times outputs of the minimax program


def verdict(request: ChannelRequest, objective: float) -> OracleVerdict:
    """What is known in closed form about the least error."""
    law = _law(request)
    if isinstance(law, str):
        return OracleVerdict.none(law)
    name, value, kind, proof = law
    if request.extended and kind == "upper bound":
        return OracleVerdict.none("the extra constraints leave no closed form.")
    if request.extended:
        kind, proof = "lower bound", f"{proof} The extra constraints can only raise the loss above it."
    return OracleVerdict.judge(objective, name, value, kind, proof, scale=request.scaled.scale)


def _law(request: ChannelRequest) -> _Law | str:
    q, prior = request.question, request.weights
    if request.aim.minimise != "loss":
        return f"no closed form is known for the least {request.aim.minimise}."
    if request.per_distance:
        return f"no closed form is known for {request.claim.notion.name} privacy."
    along = _line_law(request)
    if along is not None:
        return along
    if q.pairs is not None:
        return "no closed form is known for this relation."
    if prior is None:
        return "no closed form is known for the worst input when all are neighbours."
    if request.claim.delta:
        return "no closed form is known for delta > 0 when all are neighbours."
    return _law_of_all(request, prior) or "no closed form is known for so many inputs with this loss."


def _line_law(request: ChannelRequest) -> _Law | None:
    """Geometric noise and the best post-processing, where consecutive answers are neighbours."""
    scaled, prior, (epsilon, delta) = request.scaled, request.weights, _budget(request)
    losses = scaled.table.floats
    if not request.question.line or request.losses.forbidden is not None:
        return None
    rising = grows(losses, losses.argmin(axis=1))
    kind = "optimum" if rising and not delta else "upper bound"
    if prior is not None:
        proof = "Geometric noise with the best post-processing (Ghosh, Roughgarden, Sundararajan 2009, Theorem 3.2)"
        least = _loss(scaled, post_processed(losses, prior, epsilon).value)
        return "geometric, post-processed", least, kind, f"{proof}{_why(kind, delta)}."
    if losses.size > _MINIMAX:
        return None
    proof = "Geometric noise with the best post-processing for the worst input (Gupte, Sundararajan 2010)"
    least = _loss(scaled, minimax_value(losses, epsilon))
    return "geometric, minimax", least, kind, f"{proof}{_why(kind, delta)}."


def _law_of_all(request: ChannelRequest, prior: Vector) -> _Law | None:
    """What is known where every two answers are neighbours, without a δ."""
    q, named, (epsilon, _) = request.question, request.losses.named, _budget(request)
    if named is not None and named.kind == "error-rate" and {*q.inputs} <= {*q.outputs}:
        proof = "Randomized response among the likeliest inputs is right most often (Ghazi et al. 2021a, Theorem 3)."
        return "randomized response", right_most_often(prior, epsilon), "optimum", proof
    if q.k <= MOST_INPUTS and epsilon <= _STEEP and request.losses.forbidden is None:
        proof = (
            "The linear program over the 2^k staircase columns, of which every column is a mixture (Kairouz et al.)."
        )
        least = _loss(request.scaled, extremal_value(request.scaled.table.floats, prior, epsilon))
        return "extremal channels", least, "optimum", proof
    x, _ = q.places
    if named is not None and named.kind in BIN_LOSSES and q.numbers is not None and (np.diff(x) > 0).all():
        exact = named.kind in ("absolute", "pinball") and q.inputs == q.outputs
        reason = "its values are inputs, so the outputs lose nothing" if exact else "real outputs can only do better"
        proof = f"Theorem 5 of Ghazi et al. 2022: RR-on-Bins is optimal over all real outputs; {reason}."
        value = optimal_bins(x, prior, epsilon, named).objective
        return "RR-on-Bins", value, "optimum" if exact else "lower bound", proof
    return None


def _loss(scaled: ScaledLosses, at_unit: float) -> float:
    """A value at the scaled losses as one of the losses that were given."""
    return float(scaled.loss(Fraction(at_unit)))


def _budget(request: ChannelRequest) -> tuple[float, float]:
    return float(request.claim.epsilon or 0), float(request.claim.delta or 0)


def _why(kind: str, delta: float) -> str:
    if kind == "optimum":
        return " is optimal, as no loss falls with the distance"
    return ", a private channel" + (": pure, so one with delta > 0 can only be better" if delta else "")
