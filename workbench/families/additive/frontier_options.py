"""What can be asked of the trade-offs of noise on the integers and the reals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from workbench.errors import InvalidRequest
from workbench.families.additive.family import FAMILY
from workbench.families.frontier_plan import Frontier, Plan, Row, several
from workbench.families.notion_points import OPTIONS, budget_points, least_points
from workbench.families.option import SOLVER, TIME_LIMIT, Option, certify_option, count, flag
from workbench.io.parameter_grid import grid

__all__ = ["FRONTIER"]


def _runs(value: Any, name: str) -> tuple[int, ...]:
    """A grid of whole numbers."""
    read_count = count(1, 1024)
    for number in (numbers := grid(value, name)):
        if number.denominator != 1:
            InvalidRequest.must(name, "whole numbers", float(number))
    return tuple(read_count(int(number), name) for number in numbers)


def _points(question: Any, values: Mapping[str, Any]) -> Iterable[tuple[Row, Any]]:
    query = question or FAMILY.spelled_question(values)
    for row, given in [*budget_points(values), *least_points(values)]:
        common = {name: values[name] for name in ("cost", "solver", "certify", "time_limit")}
        for runs in values["runs"]:
            request: Any = FAMILY.request(query, runs=runs, **common, **given)
            yield {**row, "cost": request.cost_name, "runs": runs}, request


def _outside(question: Any, values: Mapping[str, Any]) -> Iterable[tuple[Row, Any]]:
    return [pair for pair in _points(question, values) if pair[1].minimise == "error" and pair[1].runs == 1]


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
        Option("runs", _runs, "1", "Grid of how many runs share the budget, of integer noise."),
        Option("baselines", flag, True, "Geometric, Gaussian and Laplace noise at the same budgets.", kind=bool),
        SOLVER,
        replace(TIME_LIMIT, help="Seconds of one design; then the best so far counts."),
        certify_option(),
    ),
    _plan,
    (
        "frontier additive --epsilon 0.25:2:8 --delta 1e-5,1e-3",
        "frontier additive --sensitivity 2 --notion zcdp --rho 0.02:1:6:log",
        "frontier additive --on reals --cost absolute --epsilon 0.5,1,2 --delta 0.01",
        "frontier additive --budget 1:10:10 --delta 1e-5",
        "frontier additive --epsilon 4 --delta 1e-5 --runs 1,2,4,8,16 --out runs",
    ),
    points=_outside,
)
