"""Explain to the user why no channel satisfies a request: which constraints conflict, and which
budget would be enough.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

from workbench.errors import WorkbenchError
from workbench.families.channel.request import ChannelRequest
from workbench.models.channel.program import ChannelModel
from workbench.pipeline.infeasible import (
    EXPLANATION_SECONDS,
    SolveWith,
    explain_conflict,
    explain_sufficient_budgets,
    find_wish_rows,
    raise_no_point,
)
from workbench.solvers.errors import SolverError
from workbench.solvers.solution import Solution


def raise_no_channel(
    request: ChannelRequest, solution: Solution, model: ChannelModel, solve_with: SolveWith
) -> NoReturn:
    """Raise the error for a solver's answer that contains no channel.

    Args:
        request: request that was solved.
        solution: answer of the solver, without a point.
        model: model of the program.
        solve_with: function (option -> value) that solves the request at other values, such as
            another ε, and returns the solution.

    Raises:
        Infeasible: no channel satisfies the request. The message explains the conflict.
        NotProven: the solver was stopped.
    """
    # The error begins with "No" and this text.
    statement = None
    if request.has_extra_constraints:
        statement = "channel meets the constraints on these outputs"
    if request.aim.max_loss is not None:
        statement = f"channel meets max_loss {float(request.aim.max_loss):g}"
    raise_no_point(
        solution,
        statement,
        "a channel that ignores its input is private",
        explain=lambda: _explain_channel_conflict(request, model, solve_with),
    )


def _explain_channel_conflict(
    request: ChannelRequest, model: ChannelModel, solve_with: SolveWith
) -> str:
    """Return sentences that follow "No channel meets ...".

    Empty if no explanation was found in time, if a solver failed, or if the program has binaries.
    """
    if request.bounds.bounds_mass:
        return ""
    time_limit = request.how.options.time_limit or EXPLANATION_SECONDS
    options = replace(request.how.options, time_limit=time_limit)
    delta = float(request.bounds.delta)
    minimises_delta = request.aim.minimise == "delta"
    privacy = f"{request.claim.notion.name} at epsilon = {float(request.claim.epsilon):g}"
    if delta and not minimises_delta:
        privacy += f" and delta = {delta:g}"
    program = model.program
    # Label of a block of rows -> the wish of the user that it states. The first block states that
    # the rows of a channel are distributions, which is no wish.
    wishes = {}
    for block in program.rows[1:]:
        wishes[block.name] = block.name if block.is_user_constraint else privacy
    if minimises_delta:
        wishes["losses"] = f"a loss of at most {float(request.aim.max_loss or 0):g}"
    try:
        # The program ignores this value if it has no limit on the loss.
        max_loss = 0.0
        if request.aim.max_loss is not None:
            max_loss = float(request.scaled_losses.scale_loss(request.aim.max_loss))
        _, exact_epsilons = request.group_epsilons()
        epsilons = [*map(float, exact_epsilons)]
        data = program.data(model.values(epsilons, delta, max_loss))
        wish_rows = find_wish_rows(program, wishes)
        _, conflict = explain_conflict(
            data, wish_rows, request.how.solver, options, program.scale, limits=" on these outputs"
        )
        largest_loss = float(request.losses.floats.max())
        return conflict + explain_sufficient_budgets(
            request, solve_with, largest_loss, request.MAX_EPSILON
        )
    except (SolverError, WorkbenchError):
        # A solver that fails gives no explanation.
        return ""
