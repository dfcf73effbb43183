"""The closed form's verdict on a designed channel: which law answers the request, and whether the solver agrees."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from workbench.families.channel.request import ChannelRequest
from workbench.families.channel.scaled import ScaledLosses
from workbench.models.oracles.bins import BIN_LOSSES, optimal_bins
from workbench.models.oracles.finite_channel import (
    MOST_INPUTS,
    extremal_value,
    grows,
    minimax_value,
    post_processed,
    right_most_often,
)
from workbench.pipeline.oracle import OracleVerdict
from workbench.solvers.arrays import Vector

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
