"""Why no noise meets a request: the user's constraints, budgets and neighbours that conflict, and what would do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from models.modulo import ModuloModel
from models.requirements import HOCKEY_STICK
from solvers.solution import Solution, Termination
from workbench.errors import WorkbenchError
from workbench.families.infeasible import SECONDS, conflict_words, least, least_words, rows_named
from workbench.families.modulo.request import MOST_EPSILON, ModuloRequest
from workbench.privacy.notions import notion

if TYPE_CHECKING:
    from workbench.families.modulo.session import ModuloSession

__all__ = ["explanation"]


def explanation(session: ModuloSession, request: ModuloRequest) -> str:
    """Sentences that follow "No noise meets the request ..."; empty where nothing could be found in time."""
    try:
        return _conflict(session, request) + _enough(session, request)
    except WorkbenchError:  # a solver that gives up explains nothing
        return ""


def _conflict(session: ModuloSession, request: ModuloRequest) -> str:
    model, values = session.stated(request)
    program = model.program
    data = program.data(values)
    limited = request.minimise == "delta" and request.delta is not None
    if limited:  # the limit is no row of the program
        at = program.block("delta").start
        data = replace(data, upper=np.where(np.arange(data.upper.size) == at, float(request.delta or 0), data.upper))
    wishes = rows_named(program, _wishes(request, model))
    options = replace(request.options, time_limit=request.options.time_limit or SECONDS)
    limits = f" with delta <= {float(request.delta or 0):g}" if limited else ""
    return conflict_words(data, wishes, request.solver, options, program.scale, limits)[1]


def _wishes(request: ModuloRequest, model: ModuloModel) -> dict[str, str]:
    """Name of a block of rows -> whose wish it states, in words. Row 0 says that f is a distribution."""
    rows = model.problem().constraints
    each = 1 if not model.positive_delta else 2 if model.requires == HOCKEY_STICK else 6
    question, words = request.question, {}
    for k, row in enumerate(rows[1:], 1):
        name = row.label or f"constraint[{k}]"
        at = (k - 1) // each
        if at < len(model.shifts):
            shift = model.shifts[at]
            pair = min(shift, question.negative(shift)) if not question.directed else shift
            epsilon = float(request.budgets[shift])
            sign = "" if question.directed else "±"
            words[name] = f"{request.notion} at epsilon = {epsilon:g} for answers that differ by {sign}{_shown(pair)}"
        elif request.minimise == "delta" and k == len(rows) - 1:
            words[name] = f"{request.loss} <= {float(request.max_loss or 0):g}"
        else:
            words[name] = name
    return words


def _shown(shift: tuple[int, ...]) -> str:
    return str(shift[0]) if len(shift) == 1 else str(shift)


def _feasible(session: ModuloSession, request: ModuloRequest, point: Mapping[str, Any]) -> bool | None:
    """Whether a solver has an answer to the request at a point; None where it stopped before."""
    solution = _answer(session, request, point)
    if solution.x is None:
        return False if solution.termination is Termination.INFEASIBLE else None
    if request.minimise == "delta" and request.delta is not None:
        return (solution.objective or 0.0) <= float(request.delta) * (1 + 1e-9)
    return True


def _answer(session: ModuloSession, request: ModuloRequest, point: Mapping[str, Any]) -> Solution:
    moved = request.at({"check": "none", **point})
    if moved.minimise == request.minimise:
        return session.answer(moved)
    with closing(type(session)(moved)) as other:
        return other.answer(moved)


def _least(solution: Solution) -> float | None:
    return math.inf if solution.termination is Termination.INFEASIBLE else solution.objective


def _enough(session: ModuloSession, request: ModuloRequest) -> str:
    """The least ε, δ and budget that would do, each with everything else as it was asked."""
    sentences, epsilon = [], request.epsilon
    if isinstance(epsilon, Mapping):
        largest = float(max(epsilon.values()))
        factor = least(
            lambda c: _feasible(session, request, {"epsilon": _times(epsilon, c)}), 1.0, MOST_EPSILON / largest
        )
        sentences.append(least_words("factor for every epsilon", factor, f"No epsilons up to {MOST_EPSILON} would do"))
    else:
        value = least(lambda e: _feasible(session, request, {"epsilon": Fraction(e)}), float(epsilon), MOST_EPSILON)
        sentences.append(least_words("epsilon", value, f"No epsilon up to {MOST_EPSILON} would do"))
    most = Fraction(float(request.losses.max()))
    if notion(request.notion).has_delta:
        other: dict[str, Any] = {"minimise": "delta", "delta": None}
        other["max_loss"] = most if request.max_loss is None else request.max_loss
        sentences.append(least_words("delta", _least(_answer(session, request, other)), "No delta would do"))
    if request.max_loss is not None:
        other = {
            "minimise": "loss",
            "max_loss": None,
            "delta": Fraction(1) if request.delta is None else request.delta,
        }
        sentences.append(least_words("max_loss", _least(_answer(session, request, other)), "No budget would do"))
    return "".join(sentences)


def _times(epsilons: Mapping[Any, Fraction], factor: float) -> dict[Any, Fraction]:
    return {shift: value * Fraction(factor) for shift, value in epsilons.items()}
