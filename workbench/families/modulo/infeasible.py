"""Explain why no modulo noise satisfies a request: which constraints conflict, and what would help.

The result is text for the error message of an infeasible request.
"""

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
    """Explain an infeasible request by its conflicts and by feasible changes of it.

    Args:
        problem: the class `ModuloProblem` (an argument, because importing it here is circular).
        request: the checked request, which no mechanism satisfies.
        programs: the compiled programs that the requests of one session share.

    Returns:
        Sentences that follow "No noise meets the request ...". Empty if nothing was found in time.
    """

    def solve_changed_request(values: Values) -> Solution:
        """Solve the request with some options changed, such as a larger epsilon."""
        changed_request = request.with_values(check="none", **values)
        solution: Solution = problem(changed_request).solve_program(programs)
        return solution

    try:
        conflict = _describe_conflict(request)
        largest_loss = float(request.losses.max())
        return conflict + explain_sufficient_budgets(
            request, solve_changed_request, largest_loss, MAX_EPSILON
        )
    except WorkbenchError:  # A solver that gives up explains nothing.
        return ""


def _describe_conflict(request: ModuloRequest) -> str:
    """Return a sentence that names a smallest set of conflicting constraints."""
    model = request.model()
    program = model.program
    data = program.data(request.parameters())
    limit_text = ""
    if request.aim.minimise == "delta" and request.claim.delta is not None:
        # The limit on δ is the upper bound of a column, not a row of the program.
        limit = float(request.claim.delta or 0)
        limit_text = f" with delta <= {limit:g}"
        is_delta = np.arange(data.upper.size) == program.block("delta").start
        data = replace(data, upper=np.where(is_delta, limit, data.upper))
    rows = find_wish_rows(program, _name_rows(request, model))
    options = replace(
        request.how.options, time_limit=request.how.options.time_limit or EXPLANATION_SECONDS
    )
    solver = request.how.solver
    _, conflict = explain_conflict(data, rows, solver, options, program.scale, limit_text)
    return conflict


def _name_rows(request: ModuloRequest, model: ModuloModel) -> dict[str, str]:
    """Map the name of every block of rows to the text of its constraint, for error messages.

    Example: "constraint[1]" -> "pdp at epsilon = 1 for answers that differ by ±1".

    Block 0 says that f is a distribution, which is no constraint of the user. The blocks of each
    shift follow in the order of `model.shifts`, then user-defined constraints, then max_loss.
    """
    question = request.question
    notion = request.claim.notion.name
    blocks = model.program.rows[1:]
    names = {block.name: block.name for block in blocks}
    rows_per_shift = _count_rows_per_shift(model)
    for k, shift in enumerate(model.shifts):
        sign = ""
        difference = shift
        if not question.directed:
            sign = "±"
            difference = min(shift, question.negate_shift(shift))
        epsilon = float(request.budgets[shift])
        text = (
            f"{notion} at epsilon = {epsilon:g} for answers that differ by "
            f"{sign}{question.format_shift(difference)}"
        )
        for row in range(1 + k * rows_per_shift, 1 + (k + 1) * rows_per_shift):
            names[f"constraint[{row}]"] = text
    if request.aim.minimise == "delta":
        limit = float(request.aim.max_loss or 0)
        names[blocks[-1].name] = f"{request.aim.loss} <= {limit:g}"
    return names


def _count_rows_per_shift(model: ModuloModel) -> int:
    """Count the blocks of rows that state the bound of one difference.

    LP (14) has one, the linear program of dp has two, and the program (13) of pdp has six
    (`workbench.models.modulo.program`).
    """
    if not model.has_delta:
        return 1
    return 2 if model.requires == HOCKEY_STICK else 6
