"""What can be asked of the trade-offs of additive noise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from workbench.errors import InvalidRequest
from workbench.families.frontier_plan import EPSILON, BudgetTask, Frontier, Row, compared, later, several
from workbench.families.modulo.family import FAMILY
from workbench.families.notion_points import BUDGET, least_points
from workbench.families.option import CERTIFY, SOLVER, TIME_LIMIT, Option, count, flag, text
from workbench.families.requirements import ratio_notion
from workbench.io.parameter_grid import grid

COMMON = ("loss", "solver", "certify", "time_limit")  # options that all requests share


def _levels(value: Any, name: str) -> list[Fraction] | None:
    """Errors of the level curves: a grid, auto (None) or none."""
    return {"auto": None, "none": []}[value] if value in ("auto", "none") else grid(value, name)


def points(question: Any, values: Mapping[str, Any]) -> Iterable[tuple[Row, Any]]:
    """(columns that name a point, its request): every ε and δ under every notion, then the least ε of losses."""
    if not values["epsilon"] and not values["max_loss"]:
        raise InvalidRequest("epsilon must be given, or budget. Got neither.")
    if values["loss"] == "prior-squared":
        InvalidRequest.must("loss", "one that needs no prior", repr(values["loss"]))
    query, common = question or FAMILY.spelled_question(values), {name: values[name] for name in COMMON}
    for notion in values["notion"] if values["epsilon"] else ():
        for epsilon in values["epsilon"]:
            for delta in values["delta"]:
                row = {"notion": notion, "loss": values["loss"], "epsilon": float(epsilon), "delta": float(delta)}
                yield row, FAMILY.request(query, notion=notion, epsilon=epsilon, delta=delta, **common)
    for row, given in least_points(values):
        yield row | {"loss": values["loss"]}, FAMILY.request(query, **common, **given)


_COUNT = BudgetTask(
    "count",
    later("workbench.families.modulo.frontier", "count_rows"),
    (
        Option("n", count(1, 60), 8, "Of the count: answers 0..n.", kind=int),
        Option("max_shift", count(1, 60), 1, "Of the count: how far neighbours differ.", kind=int),
    ),
    check=later("workbench.families.modulo.frontier", "check_counts"),
)


FRONTIER = Frontier(
    "Error of optimal noise against ε and δ: certified points, exact breakpoints, level curves, baselines; least ε.",
    (
        *(option for option in FAMILY.options if option.question),
        replace(EPSILON, required=False),
        BUDGET,
        Option("delta", grid, "0", "Grid of δ in [0, 1], as --epsilon."),
        Option("notion", several(ratio_notion), "dp", "dp, pdp, pure; several separated by commas."),
        Option("loss", text, "error-rate", "error-rate, squared, eta-squared, circular-squared or worst-squared."),
        Option(
            "level", _levels, "auto", "Errors for the level curves δ(ε), a grid; auto chooses four, none draws none."
        ),
        Option("baselines", flag, True, "Published mechanisms at the same budgets.", kind=bool),
        SOLVER,
        replace(TIME_LIMIT, help="Seconds of one solve; then its interval counts."),
        Option("whole", flag, False, "Trace every exact piece to its end, however long it takes.", kind=bool),
        CERTIFY,
    ),
    later("workbench.families.modulo.frontier", "plan"),
    (
        "frontier modulo --n 8 --max-shift 3 --epsilon 0.1:4:40 --delta 0,1e-6,0.01,0.1 --notion pdp,dp",
        "frontier modulo --n 8 --shifts 1,2 --epsilon 0.1:4:20:log --delta 0:0.3:16 --loss squared --out trade",
        'frontier modulo --sizes 4x4 --shifts "0,1;1,0" --epsilon 0.5,1,2 --delta 0,0.05 --level 0.3,0.5 --json',
        "frontier modulo --n 8 --max-shift 1 --loss squared --notion dp --max-loss 1:6:11 --delta 0,0.01",
    ),
    (_COUNT,),
    points=compared(points),
)
