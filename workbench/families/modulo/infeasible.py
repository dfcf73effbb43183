"""Why no noise meets a request: the user's constraints, budgets and neighbours that conflict, and what would do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from workbench.errors import WorkbenchError
from workbench.exact.objects import Values
from workbench.families.modulo.request import MAX_EPSILON, ModuloRequest
from workbench.models.convex.requirements import HOCKEY_STICK
from workbench.models.modulo.program import ModuloModel
from workbench.pipeline.infeasible import (
    EXPLANATION_SECONDS,
    explain_conflict,
    explain_sufficient_budgets,
    find_wish_rows,
)
from workbench.pipeline.routes import Programs
from workbench.solvers.solution import Solution


def explain_infeasibility(
    problem: Callable[[ModuloRequest], Any], request: ModuloRequest, programs: Programs
) -> str:
    """Sentences that follow "No noise meets the request ..."; empty where nothing could be found in time."""

    def ask(point: Values) -> Solution:
        solution: Solution = problem(request.with_values(check="none", **point)).solved(programs)
        return solution

    try:
        return _conflict(request) + explain_sufficient_budgets(
            request, ask, float(request.losses.max()), MAX_EPSILON
        )
    except WorkbenchError:  # a solver that gives up explains nothing
        return ""


def _conflict(request: ModuloRequest) -> str:
    model = request.model()
    program, data = model.program, model.program.data(request.parameters())
    limited = request.aim.minimise == "delta" and request.claim.delta is not None
    if limited:  # the limit is no row of the program
        at = program.block("delta").start
        data = replace(
            data,
            upper=np.where(
                np.arange(data.upper.size) == at, float(request.claim.delta or 0), data.upper
            ),
        )
    wishes = find_wish_rows(program, _wishes(request, model))
    options = replace(
        request.how.options, time_limit=request.how.options.time_limit or EXPLANATION_SECONDS
    )
    limits = f" with delta <= {float(request.claim.delta or 0):g}" if limited else ""
    return explain_conflict(data, wishes, request.how.solver, options, program.scale, limits)[1]


def _wishes(request: ModuloRequest, model: ModuloModel) -> dict[str, str]:
    """Name of a block of rows -> whose wish it states, in words. Row 0 says that f is a distribution."""
    each = 1 if not model.has_delta else 2 if model.requires == HOCKEY_STICK else 6
    question, blocks = request.question, model.program.rows[1:]
    words = {block.name: block.name for block in blocks}
    for k, shift in enumerate(model.shifts):
        pair = shift if question.directed else min(shift, question.negate_shift(shift))
        sign, epsilon = "" if question.directed else "±", float(request.budgets[shift])
        notion = request.claim.notion.name
        wish = f"{notion} at epsilon = {epsilon:g} for answers that differ by {sign}{question.format_shift(pair)}"
        words |= dict.fromkeys(
            (f"constraint[{row}]" for row in range(1 + k * each, 1 + (k + 1) * each)), wish
        )
    if request.aim.minimise == "delta":
        words[blocks[-1].name] = f"{request.aim.loss} <= {float(request.aim.max_loss or 0):g}"
    return words
