"""What can be asked of the trade-offs of additive noise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from workbench.errors import InvalidRequest
from workbench.families.base import Request
from workbench.families.frontier_plan import EPSILON, BudgetTask, Frontier, Plan, Row, several
from workbench.families.noise.family import FAMILY
from workbench.families.notion_points import BUDGET
from workbench.families.option import SOLVER, TIME_LIMIT, Option, certify_option, count, flag, text
from workbench.families.requirements import ratio_notion
from workbench.io.parameter_grid import grid

__all__ = ["FRONTIER"]


def _levels(value: Any, name: str) -> list[Fraction] | None:
    """Errors of the level curves: a grid, auto (None) or none."""
    return {"auto": None, "none": []}[value] if value in ("auto", "none") else grid(value, name)


def _plan(question: Any, values: Mapping[str, Any]) -> Plan:
    from workbench.families.noise.frontier import NoiseFrontier, plan

    if not values["epsilon"] and not values["budget"]:
        raise InvalidRequest("epsilon must be given, or budget. Got neither.")
    return plan(NoiseFrontier(
        question or FAMILY.spelled_question(values), values["epsilon"] or [], values["delta"], notions=values["notion"],
        cost=values["cost"], levels=values["level"], baselines=values["baselines"], solver=values["solver"],
        certify=values["certify"], time_limit=values["time_limit"], whole=values["whole"],
        budgets=values["budget"] or [],
    ))  # fmt: skip


def _points(question: Any, values: Mapping[str, Any]) -> Iterable[tuple[Row, Request]]:
    cost, query = values["cost"], question or FAMILY.spelled_question(values)
    for notion in values["notion"]:
        for epsilon in values["epsilon"] or ():
            for delta in values["delta"]:
                row = {"notion": notion, "cost": cost, "epsilon": float(epsilon), "delta": float(delta)}
                yield row, FAMILY.request(query, notion=notion, cost=cost, epsilon=epsilon, delta=delta)


def _count_rows(*budget: Any) -> Iterable[Row]:
    from workbench.families.noise.budgets import count_rows

    return count_rows(*budget)


def _check_count(*budget_grids: Any) -> None:
    from workbench.families.noise.budgets import check

    check(*budget_grids)


_COUNT = BudgetTask(
    "count",
    _count_rows,
    (
        Option("n", count(1, 60), 8, "Of the count: answers 0..n.", kind=int),
        Option("max_shift", count(1, 60), 1, "Of the count: how far neighbours differ.", kind=int),
    ),
    check=_check_count,
)


FRONTIER = Frontier(
    "Error of optimal noise against ε and δ: certified points, exact breakpoints, level curves, baselines; least ε.",
    (
        *(option for option in FAMILY.options if option.question),
        replace(EPSILON, required=False),
        BUDGET,
        Option("delta", grid, "0", "Grid of δ in [0, 1], as --epsilon."),
        Option("notion", several(ratio_notion), "pdp", "pdp, dp, pure; several separated by commas."),
        Option("cost", text, "error-rate", "error-rate, squared, eta-squared, circular-squared or worst-squared."),
        Option(
            "level", _levels, "auto", "Errors for the level curves δ(ε), a grid; auto chooses four, none draws none."
        ),
        Option("baselines", flag, True, "Published mechanisms at the same budgets.", kind=bool),
        SOLVER,
        replace(TIME_LIMIT, help="Seconds of one solve; then its interval counts."),
        Option("whole", flag, False, "Trace every exact piece to its end, however long it takes.", kind=bool),
        certify_option(),
    ),
    _plan,
    (
        "frontier noise --n 8 --max-shift 3 --epsilon 0.1:4:40 --delta 0,1e-6,0.01,0.1 --notion pdp,dp",
        "frontier noise --n 8 --shifts 1,2 --epsilon 0.1:4:20:log --delta 0:0.3:16 --cost squared --out trade",
        'frontier noise --sizes 4x4 --shifts "0,1;1,0" --epsilon 0.5,1,2 --delta 0,0.05 --level 0.3,0.5 --json',
        "frontier noise --n 8 --max-shift 1 --cost squared --notion dp --budget 1:6:11 --delta 0,0.01",
    ),
    (_COUNT,),
    points=_points,
)
