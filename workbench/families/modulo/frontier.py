"""Plan the trade-off between budget and expected loss of modulo noise, for a table and plots.

`plan_modulo_frontier` returns the tasks that compute the rows. The expected loss is called error
here; ρ*(δ) is the optimal error at a fixed ε. The column `curve` says what a row is:

curve       what a row is
point       the certified optimum at (ε, δ), with its lower bound and its closed form
piece       an interval of δ at a fixed ε on which ρ* is linear, with ρ* at both ends. For pdp it is
            computed by workbench.models.modulo.frontier. For dp and the error rate the only piece
            is ρ*(δ) = (1 - δ) ρ*(0)
level       the least δ at which the error is at most `max_loss`, certified, by the minimum-δ
            program (15) of Kadam et al. 2024
baseline    a published mechanism with the smallest parameter that is private at (ε, δ), audited
            exactly

A new curve is a list of tasks in `plan_modulo_frontier`; its plot is in
`workbench.pipeline.notion_points.draw_notion_frontier`.
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
from workbench.notions import get_notion
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

# The legend, colour and line style of every mechanism in plots.
SERIES = {
    "optimal": Series("optimal modulo noise", colour=0),
    "geometric": Series("clamped geometric", colour=1, dash="--"),
    "gaussian": Series("clamped discrete Gaussian", colour=2, dash="-."),
    "exponential": Series("exponential mechanism", colour=3, dash=":"),
    "data-independent": Series("data-independent", colour=4, dash=(0, (5, 1, 1, 1))),
}

LEVEL_CURVE_COUNT = 4  # This many level curves are drawn if no errors are given.
_MAX_TRACED_ORDER = 64  # For more noise values, exact pieces are traced only at some ε.
_TRACED_EPSILON_COUNT = 5  # The number of these ε, spread over the grid.
_MAX_PIECE_SECONDS = 5.0  # Limit for the exact pieces at one ε; the status shows unproven ones.
_MIN_ERROR_SPAN = 1e-9  # Errors that differ by less have no level curves between them.


def choose_round_levels(errors: Sequence[float]) -> list[Fraction]:
    """Choose LEVEL_CURVE_COUNT round errors strictly between the least and the largest error.

    Args:
        errors: the errors of the optima.

    Returns:
        The round errors in order; fewer if the errors are too close to each other.
    """
    if not errors or max(errors) - min(errors) < _MIN_ERROR_SPAN:
        return []
    low = min(errors)
    high = max(errors)
    digits = 2 - math.ceil(math.log10(high - low))  # Two or three digits of the difference.
    # The levels are equally spaced, without the least and the largest error.
    inner_errors = np.linspace(low, high, LEVEL_CURVE_COUNT + 2)[1:-1].tolist()
    rounded_errors = {round(error, digits) for error in inner_errors}
    return [Fraction(str(error)) for error in sorted(rounded_errors) if low < error < high]


@lru_cache(maxsize=1)
def _choose_levels(corners: tuple[Any, ...]) -> list[Fraction]:
    """Choose round errors between the optimal errors at the smallest and the largest budget.

    Args:
        corners: the requests at these budgets. They are solved once for all tasks of a process.
    """
    errors = []
    for request in corners:
        rows = make_design_task({}, request, "optimal")()
        errors += [row["objective"] for row in rows if row.get("objective") is not None]
    return choose_round_levels(errors)


def plan_modulo_frontier(question: Any, values: Values) -> Plan:
    """Plan a frontier of modulo noise. All requests are checked before anything is solved.

    Args:
        question: the group and its differences, or None if options describe them.
        values: option -> exact value. The option whole traces every exact piece to its end without
            a time limit, so that the table does not depend on the runtime. The option level has
            the errors of the level curves; None chooses them from the points, an empty list draws
            none.

    Returns:
        The plan. Rows that are not proven within the time limit contain an interval from `bound`
        to `objective`.

    Raises:
        InvalidRequest: a request is invalid.
    """
    points = [*list_modulo_points(question, values)]
    optima = [(row, request) for row, request in points if request.aim.minimise == "loss"]
    least_epsilons = [
        (row, request) for row, request in points if request.aim.minimise == "epsilon"
    ]
    ratio_requests = [request for _, request in optima if _is_ratio_request(request)]
    query = question or FAMILY.parse_question(values)
    epsilons = values["epsilon"] or []
    loss = values["loss"]
    tasks = [make_design_task(row, request, "optimal") for row, request in optima]
    for notion in dict.fromkeys(request.claim.notion.name for request in ratio_requests):
        traced_epsilons = _list_traced_epsilons(query, notion, epsilons, loss)
        tasks += [
            partial(_trace_pieces, query, notion, epsilon, values) for epsilon in traced_epsilons
        ]
    tasks += [make_design_task(row, request, "optimal") for row, request in least_epsilons]
    tasks += _list_level_tasks(query, ratio_requests, values)
    title = f"{query}, {loss}"
    remark = ""
    if query.directed:
        remark = "\n(published mechanisms protect both sides of a pair)"
    draw = partial(
        draw_notion_frontier,
        name="optimal",
        series=SERIES,
        notions=[*list_ratio_notions()],
        title=title + remark,
        loss_label="squared error" if loss == "squared" else loss.replace("-", " "),
    )
    notes: tuple[str, ...] = ()
    if query.separation is not None:
        notes = (query.separation,)
    return Plan(title, tasks, draw, notes)


def _is_ratio_request(request: Any) -> bool:
    """Check whether a request is for one run under a notion of one bound on ratios."""
    return bool(bounds_one_ratio(request.claim.notion) and request.aim.runs == 1)


def _list_level_tasks(
    query: ModuloNoise, ratio_requests: Sequence[Any], values: Values
) -> list[Task]:
    """List the tasks of the level curves, at every ε under every notion that has δ.

    Raises InvalidRequest if an error is negative.
    """
    for level in values["level"] or ():
        if level < 0:
            must("level", "errors >= 0", f"{float(level):g}")
    if values["level"] == []:
        return []
    budgets = [(request.claim.epsilon, request.claim.delta or 0) for request in ratio_requests]
    extreme_budgets = min(budgets, default=None), max(budgets, default=None)
    pairs = zip(ratio_requests, budgets, strict=True)
    corners = tuple(request for request, budget in pairs if budget in extreme_budgets)
    tasks: list[Task] = []
    for notion in dict.fromkeys(request.claim.notion.name for request in ratio_requests):
        if get_notion(notion).has_delta:
            level_epsilons = values["epsilon"] or ()
            tasks += [
                partial(_solve_levels, query, notion, epsilon, values, corners)
                for epsilon in level_epsilons
            ]
    return tasks


def _make_row(curve: str, notion: str, loss: str, epsilon: Fraction) -> Row:
    """Make the columns that all rows of a curve share."""
    return {
        "curve": curve,
        "mechanism": "optimal",
        "notion": notion,
        "loss": loss,
        "epsilon": float(epsilon),
    }


def _list_traced_epsilons(
    question: ModuloNoise, notion: str, epsilons: Sequence[Fraction], loss: str
) -> Sequence[Fraction]:
    """List the ε at which exact pieces are traced; none if the notion and loss have no pieces."""
    if not get_notion(notion).has_delta or loss == "worst-squared":
        return []
    if get_ratio_kind(notion) == HOCKEY_STICK and loss != "error-rate":
        return []  # The law (1 - δ) ρ*(0) of dp is known for the error rate only.
    if question.order <= _MAX_TRACED_ORDER or len(epsilons) <= _TRACED_EPSILON_COUNT:
        return epsilons
    indices = np.linspace(0, len(epsilons) - 1, _TRACED_EPSILON_COUNT).round().astype(int)
    return [epsilons[k] for k in np.unique(indices)]


def _trace_pieces(
    question: ModuloNoise, notion: str, epsilon: Fraction, values: Values
) -> list[Row]:
    """Trace ρ* as a function of δ at one ε. Returns one row for each piece.

    `values` are the values of the frontier's options.
    """
    loss = values["loss"]
    clock = time.perf_counter()
    with translate_errors():
        if get_ratio_kind(notion) == HOCKEY_STICK:
            oracle = "DP law"
            solver = None
            pieces: Sequence[FrontierPiece] = _list_law_pieces(question, epsilon, loss)
        else:
            tracer = values["solver"] if values["solver"] in ("highs", "gurobi") else "highs"
            seconds: float | None = _MAX_PIECE_SECONDS
            if values["whole"]:
                seconds = None
            pieces = compute_delta_frontier(
                question.sizes,
                question.differences,
                float(epsilon),
                loss,
                seconds=seconds,
                solver=tracer,
            )
            is_large = question.order > MAX_PATTERN_ELEMENTS or epsilon >= MIN_LEVEL_EPSILON
            uses_levels = loss == "error-rate" and is_large
            oracle = "level frontier" if uses_levels else "pattern frontier"
            solver = tracer
            if uses_levels:
                solver = None
    seconds_per_piece = (time.perf_counter() - clock) / max(1, len(pieces))
    rows = []
    for piece in pieces:
        row = _make_row("piece", notion, loss, epsilon)
        row |= {"oracle": oracle, "solver": solver, "seconds": seconds_per_piece}
        row |= {
            "delta": piece.delta_low,
            "delta_high": piece.delta_high,
            "objective": piece.value_low,
            "objective_high": piece.value_high,
            "bound": piece.bound_low,
            "bound_high": piece.bound_high,
            "status": "optimal" if piece.is_proven else "not_proven",
        }
        rows.append(row)
    return rows


def _list_law_pieces(question: ModuloNoise, epsilon: Fraction, loss: str) -> list[FrontierPiece]:
    """List the piece (1 - δ) ρ₀ of DP, where ρ₀ is the law at δ = 0; none without a law."""
    laws = oracles.error_rate_bounds(
        question.sizes,
        question.differences,
        question.directed,
        float(epsilon),
        0.0,
        HOCKEY_STICK,
        loss,
    )
    law = laws.strongest
    if law is None:
        return []
    # If the law is only an upper bound on the optimum, the piece has the lower bound 0.
    is_proven = law.kind == "optimum"
    return [
        FrontierPiece(
            delta_low=0.0,
            delta_high=1.0,
            value_low=law.value,
            value_high=0.0,
            is_proven=is_proven,
            bound_low=law.value if is_proven else 0.0,
            bound_high=0.0,
        )
    ]


def _solve_levels(
    question: ModuloNoise, notion: str, epsilon: Fraction, values: Values, corners: tuple[Any, ...]
) -> list[Row]:
    """Find the least δ at one ε for every error of the level curves. Returns one row for each.

    `values` are the values of the frontier's options. `corners` are requests at the extreme
    budgets, from which errors are chosen if the option `level` is None.
    """
    rows = []
    options = {name: values[name] for name in ("loss", "solver", "certify", "time_limit")}
    levels = values["level"]
    if levels is None:
        levels = _choose_levels(corners)
    for max_loss in levels:
        request = FAMILY.make_request(
            question, notion=notion, epsilon=epsilon, minimise="delta", max_loss=max_loss, **options
        )
        columns = _make_row("level", notion, values["loss"], epsilon)
        with FAMILY.open_session(request) as session:
            row = make_design_row(session.design, **columns, max_loss=float(max_loss))
        if row.get("objective") is not None:
            # The exact δ of the noise. The objective is the same, rounded.
            row["delta"] = row[get_notion(notion).quantity]
        rows.append(row)
    return rows
