"""What can be asked of the trade-offs of noise on the integers and the reals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from workbench.families.additive.family import FAMILY
from workbench.families.frontier_plan import Frontier, Plan, Row, several
from workbench.families.notion_points import OPTIONS, budget_points, least_points
from workbench.families.option import SOLVER, Option, certify_option, flag

__all__ = ["FRONTIER"]


def _points(question: Any, values: Mapping[str, Any]) -> Iterable[tuple[Row, Any]]:
    asked = question or FAMILY.spelled_question(values)
    for row, given in [*budget_points(values), *least_points(values)]:
        request: Any = FAMILY.request(
            asked, cost=values["cost"], solver=values["solver"], certify=values["certify"], **given
        )
        yield {**row, "cost": request.cost_name}, request


def _plan(question: Any, values: Mapping[str, Any]) -> Plan:
    from workbench.families.additive.frontier import plan

    return plan(list(_points(question, values)), baselines=values["baselines"])


FRONTIER = Frontier(
    "Least cost of noise on all integers or reals against ε and δ, ρ, μ or Rényi's ε, with bounds; least ε of costs.",
    (
        *(option for option in FAMILY.options if option.question),
        *OPTIONS,
        Option("notion", several(FAMILY.option("notion").read), "dp", "dp, pure, renyi, zcdp, gdp; several by commas."),
        FAMILY.option("cost"),
        Option("baselines", flag, True, "Geometric, Gaussian and Laplace noise at the same budgets.", kind=bool),
        SOLVER,
        certify_option(),
    ),
    _plan,
    (
        "frontier additive --epsilon 0.25:2:8 --delta 1e-5,1e-3",
        "frontier additive --sensitivity 2 --notion zcdp --rho 0.02:1:6:log",
        "frontier additive --on reals --cost absolute --epsilon 0.5,1,2 --delta 0.01",
        "frontier additive --budget 1:10:10 --delta 1e-5",
    ),
)
