"""Why no channel meets a request: the constraints and neighbours that conflict, and the least ε and δ that would do."""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

from workbench.errors import WorkbenchError
from workbench.families.channel.request import ChannelRequest
from workbench.models.channel.program import ChannelModel
from workbench.pipeline.infeasible import SECONDS, Ask, conflict_words, no_point, rows_named, what_would_do
from workbench.solvers.errors import SolverError
from workbench.solvers.solution import Solution


def refuse(request: ChannelRequest, solution: Solution, model: ChannelModel, ask: Ask) -> NoReturn:
    """Raise what an answer without a point means: Infeasible or NotProven. ask: what a solver says to other ones."""
    what = "channel meets the constraints on these outputs" if request.extended else None
    if request.aim.max_loss is not None:
        what = f"channel meets max_loss {float(request.aim.max_loss):g}"
    no_point(solution, what, "a channel that ignores its input is private", lambda: _explanation(request, model, ask))


def _explanation(request: ChannelRequest, model: ChannelModel, ask: Ask) -> str:
    """Sentences that follow "No channel meets ..."; empty where nothing could be found in time."""
    if request.bounds.mass:
        return ""
    solver, options = (
        request.how.solver,
        replace(request.how.options, time_limit=request.how.options.time_limit or SECONDS),
    )
    epsilon, delta, program = float(request.claim.epsilon), float(request.bounds.delta), model.program
    limit, free = float(request.aim.max_loss or 0), request.aim.minimise == "delta"
    levels = [float(level) for level in request.levels()[1]]
    privacy = f"{request.claim.notion.name} at epsilon = {epsilon:g}" + (
        f" and delta = {delta:g}" if delta and not free else ""
    )
    # the first block says that rows are distributions; constraints by name and the user's own are called by their label
    wishes = {block.name: block.name if block.wished else privacy for block in program.rows[1:]}
    if free:
        wishes["losses"] = f"a loss of at most {limit:g}"
    try:
        most = 0.0 if request.aim.max_loss is None else float(request.scaled.at_unit(request.aim.max_loss))
        data = program.data(model.values(levels, delta, most))
        named = rows_named(program, wishes)
        _, words = conflict_words(data, named, solver, options, program.scale, " on these outputs")
        return words + what_would_do(request, ask, float(request.losses.floats.max()), request.LARGEST)
    except (SolverError, WorkbenchError):  # a solver that gives up explains nothing
        return ""
