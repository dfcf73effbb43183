"""What can be asked of the trade-offs of noise on all integers or reals: against ε, δ and the number of runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from workbench.errors import InvalidRequest
from workbench.families.additive.family import FAMILY
from workbench.families.base import Request
from workbench.families.frontier_plan import EPSILON, Frontier, Plan, Row
from workbench.families.option import SOLVER, TIME_LIMIT, Option, certify_option, count, flag, one_of
from workbench.io.parameter_grid import grid

__all__ = ["FRONTIER"]


def _runs(value: Any, name: str) -> tuple[int, ...]:
    """A grid of whole numbers."""
    one = count(1, 1024)
    for number in (numbers := grid(value, name)):
        if number.denominator != 1:
            InvalidRequest.must(name, "whole numbers", float(number))
    return tuple(one(int(number), name) for number in numbers)


def _points(question: Any, values: Mapping[str, Any]) -> Iterable[tuple[Row, Request]]:
    asked = question or FAMILY.spelled_question(values)
    given = {name: values[name] for name in ("cost", "solver", "certify", "time_limit")}
    for epsilon in values["epsilon"]:
        for delta in values["delta"]:
            for runs in values["runs"]:
                row = {"notion": "dp", "cost": values["cost"], "epsilon": float(epsilon), "delta": float(delta),
                       "runs": runs}  # fmt: skip
                yield row, FAMILY.request(asked, epsilon=epsilon, delta=delta, runs=runs, **given)


def _plan(question: Any, values: Mapping[str, Any]) -> Plan:
    from workbench.families.additive.frontier import plan

    asked = question or FAMILY.spelled_question(values)
    return plan(asked, [*_points(asked, values)], baselines=values["baselines"])


FRONTIER = Frontier(
    "Cost of the best noise on all integers or reals against ε, δ and the number of runs, beside known noise.",
    (
        *(option for option in FAMILY.options if option.question),
        EPSILON,
        Option("delta", grid, "0", "Grid of δ in [0, 1], as --epsilon."),
        Option("runs", _runs, "1", "Grid of how many runs share the budget, of integer noise of sensitivity 1."),
        Option("cost", one_of("absolute", "squared"), "squared", "absolute or squared."),
        Option("baselines", flag, True, "Known noise at the same budgets.", kind=bool),
        SOLVER,
        replace(TIME_LIMIT, help="Seconds of one design; then the best so far counts."),
        certify_option(),
    ),
    _plan,
    (
        "frontier additive --epsilon 4 --delta 1e-5 --runs 1,2,4,8,16 --out runs",
        "frontier additive --on reals --epsilon 0.5,1,2 --delta 0.05 --cost absolute --json",
    ),
    points=_points,
)
