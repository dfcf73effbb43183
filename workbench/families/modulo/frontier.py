"""The ε-δ-error trade-off of additive noise: solver points, exact pieces, level curves, baselines.

curve       what a row is
point       the certified optimum at (ε, δ), with its bound and its closed form
piece       ρ* between two deltas at fixed ε: exact (PDP: workbench.models.modulo.frontier; DP and error rate: (1-δ)ρ₀)
level       the least δ at (ε, error), certified, minimum-δ form (15); `max_loss` is the error
baseline    a published mechanism with the smallest parameter that meets (ε, δ), audited exactly
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np

from workbench.errors import must
from workbench.exact.objects import Values
from workbench.families.modulo.family import FAMILY, list_modulo_points
from workbench.models import oracles
from workbench.models.modulo.frontier import compute_delta_frontier
from workbench.models.modulo.level_frontier import (
    MAX_PATTERN_ELEMENTS,
    MIN_LEVEL_EPSILON,
    FrontierPiece,
)
from workbench.notions import get_notion as named
from workbench.pipeline.frontier_plan import Plan, Row, Task, make_design_row, make_design_task
from workbench.pipeline.frontier_plots import Series
from workbench.pipeline.notion_points import draw_notion_frontier
from workbench.pipeline.outcome import translate_errors
from workbench.pipeline.requirements import (
    HOCKEY_STICK,
    bounds_one_ratio,
    get_ratio_kind,
    list_ratio_notions,
)
from workbench.questions.modulo_noise import ModuloNoise

SERIES = {
    "optimal": Series("optimal modulo noise", 0), "geometric": Series("clamped geometric", 1, "--"),
    "gaussian": Series("clamped discrete Gaussian", 2, "-."), "exponential": Series("exponential mechanism", 3, ":"),
    "data-independent": Series("data-independent", 4, (0, (5, 1, 1, 1))),
}  # fmt: skip
LEVEL_CURVE_COUNT = 4  # errors whose level curves are drawn when none are given
_PIECES = 64  # noise values up to which the exact frontier is traced at every ε, beyond at a few
_FEW = 5
_PATIENCE = 5.0  # seconds for the exact frontier at one ε; pieces not proven by then say so


def choose_round_levels(errors: Sequence[float]) -> list[Fraction]:
    """LEVELS round errors strictly between the least and the largest of some; fewer when they are too close."""
    if not errors or max(errors) - min(errors) < 1e-9:
        return []
    low, high = min(errors), max(errors)
    digits = 2 - math.ceil(math.log10(high - low))
    inside = {
        round(x, digits) for x in np.linspace(low, high, LEVEL_CURVE_COUNT + 2)[1:-1].tolist()
    }
    return [Fraction(str(x)) for x in sorted(inside) if low < x < high]


@lru_cache(maxsize=1)
def _chosen_levels(corners: tuple[Any, ...]) -> list[Fraction]:
    """Between the errors of requests at the least and at the largest budgets; once for all tasks of a process."""
    rows = [row for request in corners for row in make_design_task({}, request, "optimal")()]
    return choose_round_levels(
        [row["objective"] for row in rows if row.get("objective") is not None]
    )


def plan_modulo_frontier(question: Any, values: Values) -> Plan:
    """The plan of a frontier of modulo noise, whose requests are validated before anything is solved.

    What is not proven within the time limit is a row with its interval [bound, objective]. whole: trace every exact
    piece to its end, however long it takes, so that no clock decides what the table holds. level: errors of the level
    curves; None chooses LEVELS of them from the points, an empty list draws none. Raises InvalidRequest.
    """
    every = [*list_modulo_points(question, values)]
    optima = [(row, request) for row, request in every if request.aim.minimise == "loss"]
    plain = [
        (row, request)
        for row, request in optima
        if bounds_one_ratio(request.claim.notion) and request.aim.runs == 1
    ]
    query, epsilons, loss = (
        question or FAMILY.parse_question(values),
        values["epsilon"] or [],
        values["loss"],
    )
    tasks = [make_design_task(row, request, "optimal") for row, request in optima]
    for notion in dict.fromkeys(request.claim.notion.name for _, request in plain):
        traced = _traced(query, notion, epsilons, loss)
        tasks += [partial(_pieces, query, notion, epsilon, values) for epsilon in traced]
    tasks += [
        make_design_task(row, request, "optimal")
        for row, request in every
        if request.aim.minimise == "epsilon"
    ]
    tasks += _level_tasks(query, [request for _, request in plain], values)
    title = f"{query}, {loss}"
    remark = "\n(published mechanisms protect both sides of a pair)" if query.directed else ""
    words = "squared error" if loss == "squared" else loss.replace("-", " ")
    draw = partial(
        draw_notion_frontier,
        name="optimal",
        series=SERIES,
        notions=[*list_ratio_notions()],
        title=title + remark,
        words=words,
    )
    return Plan(title, tasks, draw, () if query.separation is None else (query.separation,))


def _level_tasks(query: ModuloNoise, plain: Sequence[Any], values: Values) -> list[Task]:
    """Of the level curves, at every ε under those notions of the plain requests that have δ. Raises InvalidRequest."""
    for level in values["level"] or ():
        if level < 0:
            must("level", "errors >= 0", f"{float(level):g}")
    if values["level"] == []:
        return []
    budgets = [(request.claim.epsilon, request.claim.delta or 0) for request in plain]
    ends = min(budgets, default=None), max(budgets, default=None)
    corners = tuple(
        request for request, budget in zip(plain, budgets, strict=True) if budget in ends
    )
    return [
        partial(_levels, query, notion, epsilon, values, corners)
        for notion in dict.fromkeys(request.claim.notion.name for request in plain)
        if named(notion).has_delta
        for epsilon in values["epsilon"] or ()
    ]


def _known(curve: str, notion: str, loss: str, epsilon: Fraction) -> Row:
    return {
        "curve": curve,
        "mechanism": "optimal",
        "notion": notion,
        "loss": loss,
        "epsilon": float(epsilon),
    }


def _traced(
    question: ModuloNoise, notion: str, epsilons: Sequence[Fraction], loss: str
) -> Sequence[Fraction]:
    """The ε at which exact pieces are traced."""
    no_law = get_ratio_kind(notion) == HOCKEY_STICK and loss != "error-rate"
    if not named(notion).has_delta or no_law or loss == "worst-squared":
        return []
    if question.order <= _PIECES or len(epsilons) <= _FEW:
        return epsilons
    places = np.unique(np.linspace(0, len(epsilons) - 1, _FEW).round().astype(int))
    return [epsilons[k] for k in places]


def _pieces(q: ModuloNoise, notion: str, epsilon: Fraction, values: Values) -> list[Row]:
    """ρ* as a function of δ at one ε."""
    loss, by_law = (
        values["loss"],
        get_ratio_kind(notion) == HOCKEY_STICK,
    )  # which falls with δ as (1 - δ)
    seconds = None if values["whole"] else _PATIENCE
    begin, solver = time.perf_counter(), None
    with translate_errors():
        if by_law:
            law = oracles.error_rate_bounds(
                q.sizes, q.differences, q.directed, float(epsilon), 0.0, HOCKEY_STICK, loss
            ).strongest
            name, pieces = "DP law", []
            if law is not None:  # (1 - δ) ρ₀; below an upper bound nothing is proven
                proven = law.kind == "optimum"
                pieces = [FrontierPiece(0.0, 1.0, law.value, 0.0, proven, law.value * proven, 0.0)]
        else:
            tracer = values["solver"] if values["solver"] in ("highs", "gurobi") else "highs"
            pieces = compute_delta_frontier(
                q.sizes, q.differences, float(epsilon), loss, seconds=seconds, solver=tracer
            )
            by_levels = loss == "error-rate" and (
                q.order > MAX_PATTERN_ELEMENTS or epsilon >= MIN_LEVEL_EPSILON
            )
            name, solver = ("level frontier", None) if by_levels else ("pattern frontier", tracer)
    more = {
        "oracle": name,
        "solver": solver,
        "seconds": (time.perf_counter() - begin) / max(1, len(pieces)),
    }
    return [
        _known("piece", notion, loss, epsilon)
        | more
        | {
            "delta": piece.delta_low,
            "delta_high": piece.delta_high,
            "objective": piece.value_low,
            "objective_high": piece.value_high,
            "bound": piece.bound_low,
            "bound_high": piece.bound_high,
            "status": "optimal" if piece.is_proven else "not_proven",
        }
        for piece in pieces
    ]


def _levels(
    question: ModuloNoise, notion: str, epsilon: Fraction, values: Values, corners: tuple[Any, ...]
) -> list[Row]:
    """The least δ at one ε for every error level, of those that are chosen where none are given."""
    rows, common = [], {name: values[name] for name in ("loss", "solver", "certify", "time_limit")}
    for most in values["level"] if values["level"] is not None else _chosen_levels(corners):
        least = FAMILY.make_request(
            question, notion=notion, epsilon=epsilon, minimise="delta", max_loss=most, **common
        )
        with FAMILY.open_session(least) as session:
            row = make_design_row(
                session.design,
                **_known("level", notion, values["loss"], epsilon),
                max_loss=float(most),
            )
        if row.get("objective") is not None:
            row["delta"] = row[
                named(notion).quantity
            ]  # what it really needs; the objective is the same rounded
        rows.append(row)
    return rows
