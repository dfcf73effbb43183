"""The best channel from labels to given outputs: the linear program of `models.channel`, judged by RR-on-Bins."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from models.channel import ChannelModel
from models.oracles.bins import BIN_LOSSES, optimal_bins
from solvers.backend import solve
from workbench.errors import InvalidRequest
from workbench.families.design import Design, OracleVerdict
from workbench.families.infeasible_channel import ChannelBudget, explanation, no_channel
from workbench.families.labels.certify import audited, certified, check_size, proven, rows_of, shortfall
from workbench.families.labels.relation import groups_of
from workbench.families.labels.request import LARGEST, LabelRequest
from workbench.families.outcome import translated_errors
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.label_randomizers.label_channel import LabelChannel
from workbench.mechanisms.label_randomizers.randomized_response import with_prior

__all__ = ["best_channel"]

_LARGE = 10_000  # cells from which HiGHS is faster by interior point with crossover than by simplex
_MOST = 2_000_000  # cells of a program that memory and patience hold


def best_channel(request: LabelRequest) -> Design:
    """The least-loss channel of a request. Raises InvalidRequest, Infeasible, NotProven, NotCertified."""
    question, epsilon, notion, loss = request.question, request.epsilon, request.notion, request.named_loss
    k, pairs, constraints = question.k, request.pairs, request.constraints
    grid = question.values if request.outputs is None else np.array(request.outputs)
    cells = grid.size * max(k, len(pairs or ()))
    if cells > _MOST:
        sizes = f"{k} labels, {grid.size} outputs and {len(pairs or ())} listed pairs"
        InvalidRequest.must("the channel", f"of at most {_MOST} masses or compared pairs of them", sizes)
    groups, epsilons = groups_of(question, pairs, notion, epsilon)
    if request.certified:
        check_size(k, grid.size, pairs)
    with translated_errors():
        cost = loss.matrix(grid, question.values)
        slack = request.measure.has_delta
        model = ChannelModel(question.values, grid, question.prior, cost, pairs, groups, slack, constraints)
        options = request.options
        if request.solver == "highs" and options.algorithm is None and cost.size >= _LARGE:
            options = replace(options, algorithm="interior-point")
        solution = solve(model.program, model.values(epsilons, float(request.delta)), request.solver, options)
    if solution.x is None:
        no_channel(
            solution, f"the constraints {', '.join(constraints)} on these outputs" if constraints else None,
            lambda: explanation(
                model, ChannelBudget(notion, float(epsilon), epsilons, float(request.delta), LARGEST), request.solver,
                options,
            ),
        )  # fmt: skip
    mechanism = LabelChannel(question, grid, Channel.from_rows(np.maximum(solution["M"], 0.0)))
    claimed = solution.objective
    assert claimed is not None
    raw, objective = mechanism, claimed
    certificate = certified(mechanism, request, unbiased="unbiased" in constraints)
    if certificate is not None:
        mechanism = LabelChannel(question, grid, rows_of(certificate))
        objective = mechanism.loss(loss)
    privacy = audited(mechanism.channel, request)
    words = shortfall(privacy, request)
    if certificate is not None and constraints and not set(constraints) <= {"unbiased"}:
        words += ("Repair keeps these constraints to rounding only: " + ", ".join(constraints) + ".",)
    return proven(
        Design(
            request, mechanism, objective, solution.bound, request.claim, _judge_lp(request, claimed), solution, words,
            privacy, certificate, raw if certificate is not None else None, "repair",
        )
    )  # fmt: skip


def _judge_lp(request: LabelRequest, objective: float) -> OracleVerdict:
    question, loss = request.question, request.named_loss
    if request.neighbours != "all" or not request.measure.ratio_decides:
        return OracleVerdict.none("no closed form is known for this relation.")
    plain = request.outputs is None and not request.constraints
    if loss.kind == "zero-one" and plain:
        value = with_prior(question, request.epsilon).loss(loss)
        proof = "RRTop-k with the best k is optimal for the zero-one loss (Ghazi et al. 2021a, Theorem 3)."
        return OracleVerdict.judge(objective, "RRWithPrior", value, "optimum", proof)
    if loss.kind not in BIN_LOSSES:
        return OracleVerdict.none(f"no closed form is known for the loss {loss.name}.")
    value = optimal_bins(question.values, question.prior, float(request.epsilon), loss).objective
    exact = loss.kind in ("absolute", "pinball") and plain
    reason = "its values are labels, so the grid loses nothing." if exact else "fewer outputs or more constraints."
    proof = f"Theorem 5: RR-on-Bins is optimal over all outputs; {reason}"
    return OracleVerdict.judge(objective, "RR-on-Bins", value, "optimum" if exact else "lower bound", proof)
