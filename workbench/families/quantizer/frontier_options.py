"""What can be asked of the trade-offs of quantizers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from workbench.errors import InvalidRequest
from workbench.families.base import Request
from workbench.families.frontier_plan import EPSILON, BudgetTask, Frontier, Plan, Row, several
from workbench.families.option import SOLVER, Option, count, flag, one_of
from workbench.families.quantizer.family import FAMILY, METHODS
from workbench.io.parameter_grid import whole_grid

__all__ = ["FRONTIER"]


def _plan(question: Any, values: Mapping[str, Any]) -> Plan:
    from workbench.families.quantizer.frontier import plan

    if question is None:
        levels, density = values["levels"], values["density"]
    else:
        if question.bins is not None or question.c != 1:
            InvalidRequest.must("question", "a Quantization of inputs in [-1, 1] with levels", repr(question))
        levels, density = [question.levels], question.density.name
    return plan(
        levels, values["epsilon"], methods=values["method"], cost=values["cost"], density=density,
        starts=values["starts"], baselines=values["baselines"], solver=values["solver"],
    )  # fmt: skip


def _points(question: Any, values: Mapping[str, Any]) -> Iterable[tuple[Row, Request]]:
    cost, levels = values["cost"], values["levels"] if question is None else [question.levels]
    for m in levels:
        quantization = question or FAMILY.question(levels=m, density=values["density"])
        for epsilon in values["epsilon"]:
            row = {"notion": "pure", "cost": str(cost), "epsilon": float(epsilon), "delta": 0.0, "levels": m}
            yield row, FAMILY.request(quantization, epsilon=epsilon, cost=cost)


def _value_rows(*budget: Any) -> Iterable[Row]:
    from workbench.families.quantizer.budgets import value_rows

    return value_rows(*budget)


FRONTIER = Frontier(
    "Error of unbiased private quantizers against ε and the number of outputs, beside RQM, PBM and Laplace.",
    (
        EPSILON,
        Option("levels", whole_grid, "2,4,8", "Numbers of outputs, a grid of integers.", question=True),
        Option("method", several(one_of(*METHODS)), "exact", "exact, optm, product, mvu; several separated by commas."),
        Option("cost", FAMILY.option("cost").read, "mae", "mae, mse, or a share of mae in [0, 1]."),
        replace(FAMILY.option("density"), help="Of the inputs: uniform, or normal:MU,SIGMA clipped to [-1, 1]."),
        Option("starts", count(1, 7), 2, "Starts of the search over outputs.", kind=int, least=1, most=7),
        Option("baselines", flag, True, "RQM, PBM and Laplace at the same budgets.", kind=bool),
        SOLVER,
    ),
    _plan,
    (
        "frontier quantizer --levels 2,3,4,8 --epsilon 0.5:3:6",
        "frontier quantizer --levels 4 --epsilon 0.5:3:11 --method exact,mvu,optm --out quantizers --json",
    ),
    (BudgetTask("value", _value_rows, delta=False),),
    points=_points,
)
