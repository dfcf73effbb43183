"""What can be asked of the trade-offs of label randomizers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from workbench.families.base import Request
from workbench.families.frontier_plan import EPSILON, BudgetTask, Frontier, Plan, Row, several
from workbench.families.labels.family import FAMILY, METHODS
from workbench.families.option import SOLVER, Option, flag, one_of, text
from workbench.io.parameter_grid import grid

__all__ = ["FRONTIER"]


def _plan(question: Any, values: Mapping[str, Any]) -> Plan:
    from workbench.families.labels.frontier import plan

    return plan(
        question or values["labels"], values["epsilon"], values["delta"], loss=values["loss"],
        methods=values["method"], baselines=values["baselines"], solver=values["solver"],
    )  # fmt: skip


def _points(question: Any, values: Mapping[str, Any]) -> Iterable[tuple[Row, Request]]:
    labels, loss = question or values["labels"], values["loss"]
    for epsilon in values["epsilon"]:
        for delta in values["delta"]:
            given = {"notion": "dp" if delta else "pure", "epsilon": epsilon, "delta": delta}
            row = given | {"cost": loss, "epsilon": float(epsilon), "delta": float(delta)}
            yield row, FAMILY.request(labels, loss=loss, method="lp", **given)


def _label_rows(*budget: Any) -> Iterable[Row]:
    from workbench.families.labels.budgets import label_rows

    return label_rows(*budget)


FRONTIER = Frontier(
    "Expected loss of private label randomizers against ε (and δ for the channel LP), beside what is usual.",
    (
        FAMILY.option("labels"),
        EPSILON,
        Option("delta", grid, "0", "Grid of δ in [0, 1]; δ > 0 concerns the channel LP."),
        Option("loss", text, "squared", "squared, absolute, poisson, zero-one, ...: see design labels."),
        Option("method", several(one_of(*METHODS)), "bins,lp",
               "bins, printed, lp, unbiased; several separated by commas."),
        Option("baselines", flag, True, "Laplace, staircase and randomized responses.", kind=bool),
        SOLVER,
    ),
    _plan,
    (
        "frontier labels --prior 0..20 --epsilon 0.1:8:20:log",
        "frontier labels --prior prior.csv --loss absolute --epsilon 0.5,1,2 --delta 0,0.01,0.1 --method bins,lp",
    ),
    (BudgetTask("labels", _label_rows),),
    points=_points,
)  # fmt: skip
