"""Compare the loss of a designed channel with a formula from the literature, if one applies.

In the table, V is the smallest loss of any private channel. A formula of the kind "optimum" has the
value V, an "upper bound" is at least V, and a "lower bound" is at most V. The geometric forms are
an optimum if δ = 0 and the losses never fall as the output moves away from the answer.

formula                     applies to                                        kind
geometric, post-processed   consecutive answers are neighbours, with a prior  optimum, upper bound
geometric, minimax          the same for the worst-case loss                  optimum, upper bound
randomized response         all answers are neighbours, error rate, δ = 0     optimum
extremal channels           all answers are neighbours, at most ten, δ = 0    optimum
RR-on-Bins                  all answers are neighbours, δ = 0                 optimum, lower bound

Where to change: a new formula is a further `_ClosedForm` that `_find_line_form` or
`_find_all_pairs_form` returns.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from workbench.families.channel.request import ChannelRequest
from workbench.families.channel.scaled_losses import ScaledLosses
from workbench.models.oracles.bins import BIN_LOSSES, optimal_bins
from workbench.models.oracles.finite_channel import (
    MAX_EXTREMAL_INPUTS,
    extremal_value,
    has_growing_losses,
    minimax_value,
    post_process_geometric,
    randomized_response_error,
)
from workbench.pipeline.design import OracleVerdict
from workbench.solvers.arrays import Vector

# The program of the extremal columns exceeds the precision of floats above this ε.
_MAX_EXTREMAL_EPSILON = 20
# The minimax program is solved for at most this many masses (inputs times outputs).
_MAX_MINIMAX_MASSES = 2_500


class _ClosedForm(NamedTuple):
    """The value of a known formula.

    Attributes:
        name: name of the formula in reports.
        value: loss of the formula, in the units of the request.
        kind: "optimum", "upper bound" or "lower bound", as in the module header.
        proof: a sentence for reports that names the source.
    """

    name: str
    value: float
    kind: str
    proof: str


def judge_by_closed_form(request: ChannelRequest, objective: float) -> OracleVerdict:
    """Compare a loss with the known formula for a request.

    Args:
        request: request under a notion that bounds one ratio.
        objective: loss of the designed channel, or the minimised δ or ε.

    Returns:
        The verdict. If no formula applies, it states why.
    """
    form = _find_closed_form(request)
    if form is None:
        return OracleVerdict.without_formula(_explain_missing_form(request))
    kind = form.kind
    proof = form.proof
    if request.has_extra_constraints:
        if kind == "upper bound":
            return OracleVerdict.without_formula("no closed form is known for extra constraints.")
        kind = "lower bound"
        proof = f"{proof} Extra constraints can only increase the loss."
    scale = request.scaled_losses.scale
    return OracleVerdict.judge(objective, form.name, form.value, kind, proof, scale=scale)


def _find_closed_form(request: ChannelRequest) -> _ClosedForm | None:
    """Return the formula for a request. None if none is known."""
    if request.aim.minimise != "loss" or request.is_per_distance:
        return None
    line_form = _find_line_form(request)
    if line_form is not None:
        return line_form
    weights = request.prior_weights
    if request.question.pairs is not None or weights is None or request.claim.delta:
        return None
    return _find_all_pairs_form(request, weights)


def _explain_missing_form(request: ChannelRequest) -> str:
    """Return a sentence that says why no formula is known for a request."""
    if request.aim.minimise != "loss":
        return f"no closed form is known for the minimal {request.aim.minimise}."
    if request.is_per_distance:
        return f"no closed form is known for {request.claim.notion.name} privacy."
    if request.question.pairs is not None:
        return "no closed form is known for these neighbours."
    if request.prior_weights is None:
        return "no closed form is known for the worst-case loss if every two inputs are neighbours."
    if request.claim.delta:
        return "no closed form is known for delta > 0 if every two inputs are neighbours."
    return "no closed form is known for this number of inputs and this loss."


def _find_line_form(request: ChannelRequest) -> _ClosedForm | None:
    """Return the formula of post-processed geometric noise.

    None if the neighbours are not consecutive answers, if an output is forbidden, or if the minimax
    program is too large.
    """
    scaled_losses = request.scaled_losses
    weights = request.prior_weights
    epsilon, delta = _get_float_budget(request)
    losses = scaled_losses.table.floats
    if not request.question.is_line or request.losses.forbidden is not None:
        return None
    is_growing = has_growing_losses(losses, losses.argmin(axis=1))
    kind = "optimum" if is_growing and not delta else "upper bound"
    if weights is not None:
        name = "geometric, post-processed"
        source = (
            "Geometric noise with the best post-processing "
            "(Ghosh, Roughgarden, Sundararajan 2009, Theorem 3.2)"
        )
        scaled_value = post_process_geometric(losses, weights, epsilon).value
    elif losses.size <= _MAX_MINIMAX_MASSES:
        name = "geometric, minimax"
        source = (
            "Geometric noise with the best post-processing for the worst input "
            "(Gupte, Sundararajan 2010)"
        )
        scaled_value = minimax_value(losses, epsilon)
    else:
        return None
    value = _unscale_loss(scaled_losses, scaled_value)
    return _ClosedForm(name, value, kind, f"{source}{_explain_kind(kind, delta)}.")


def _find_all_pairs_form(request: ChannelRequest, weights: Vector) -> _ClosedForm | None:
    """Return the formula for δ = 0 if every two answers are neighbours. None if none is known."""
    question = request.question
    named_loss = request.losses.named_loss
    epsilon, _ = _get_float_budget(request)
    is_error_rate = named_loss is not None and named_loss.kind == "error-rate"
    if is_error_rate and {*question.inputs} <= {*question.outputs}:
        proof = (
            "Randomized response among the likeliest inputs has the smallest error rate "
            "(Ghazi et al. 2021a, Theorem 3)."
        )
        value = randomized_response_error(weights, epsilon)
        return _ClosedForm("randomized response", value, "optimum", proof)
    if (
        question.k <= MAX_EXTREMAL_INPUTS
        and epsilon <= _MAX_EXTREMAL_EPSILON
        and request.losses.forbidden is None
    ):
        proof = (
            "The linear program over the 2^k staircase columns, of which every column is a mixture "
            "(Kairouz et al.)."
        )
        scaled_losses = request.scaled_losses
        scaled_value = extremal_value(scaled_losses.table.floats, weights, epsilon)
        value = _unscale_loss(scaled_losses, scaled_value)
        return _ClosedForm("extremal channels", value, "optimum", proof)
    labels, _ = question.coordinates
    if named_loss is None or named_loss.kind not in BIN_LOSSES:
        return None
    if question.numbers is None or not (np.diff(labels) > 0).all():
        return None
    value = optimal_bins(labels, weights, epsilon, named_loss).objective
    theorem = "Theorem 5 of Ghazi et al. 2022: RR-on-Bins is optimal over all real outputs; "
    if named_loss.kind in ("absolute", "pinball") and question.inputs == question.outputs:
        proof = f"{theorem}its values are inputs, so the listed outputs are enough."
        return _ClosedForm("RR-on-Bins", value, "optimum", proof)
    proof = f"{theorem}real outputs can only have a smaller loss."
    return _ClosedForm("RR-on-Bins", value, "lower bound", proof)


def _unscale_loss(scaled_losses: ScaledLosses, scaled_value: float) -> float:
    """Convert a loss in the scale of the request to the losses of the request."""
    return float(scaled_losses.unscale_loss(Fraction(scaled_value)))


def _get_float_budget(request: ChannelRequest) -> tuple[float, float]:
    """Return (ε, δ) in floats. A parameter that the claim does not have is 0."""
    return float(request.claim.epsilon or 0), float(request.claim.delta or 0)


def _explain_kind(kind: str, delta: float) -> str:
    """Return the end of a sentence on geometric noise: it is optimal, or only a private channel.

    kind: "optimum" or "upper bound".
    """
    if kind == "optimum":
        return " is optimal, because no loss decreases with the distance"
    if delta:
        return ", a private channel: it is pure, so a channel with delta > 0 can only be better"
    return ", a private channel"
