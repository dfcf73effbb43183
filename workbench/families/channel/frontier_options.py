"""What can be asked of the trade-offs of finite channels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from workbench.families.channel.family import FAMILY
from workbench.families.frontier_plan import EPSILON, Frontier, Plan, Row, several
from workbench.families.option import SOLVER, Option, certify_option, flag
from workbench.families.requirements import ratio_notion
from workbench.io.parameter_grid import grid

__all__ = ["FRONTIER"]


def _points(question: Any, values: Mapping[str, Any]) -> Iterable[tuple[Row, Any]]:
    asked = question or FAMILY.spelled_question(values)
    for notion in values["notion"]:
        for delta in values["delta"]:
            for epsilon in values["epsilon"]:
                request: Any = FAMILY.request(
                    asked, notion=notion, loss=values["loss"], epsilon=epsilon, delta=delta, solver=values["solver"],
                    certify=values["certify"],
                )  # fmt: skip
                yield (
                    {"notion": notion, "cost": request.losses.name, "epsilon": float(epsilon), "delta": float(delta)},
                    request,
                )


def _plan(question: Any, values: Mapping[str, Any]) -> Plan:
    from workbench.families.channel.frontier import plan

    return plan(list(_points(question, values)), baselines=values["baselines"])


FRONTIER = Frontier(
    "Least loss of any finite channel against ε and δ: certified points beside what is usual.",
    (
        *(option for option in FAMILY.options if option.question),
        EPSILON,
        Option("delta", grid, "0", "Grid of δ in [0, 1], as --epsilon."),
        Option("notion", several(ratio_notion), "dp", "dp, pure, pdp, metric; several separated by commas."),
        FAMILY.option("loss"),
        Option("baselines", flag, True, "Geometric noise and randomized response at the same budgets.", kind=bool),
        SOLVER,
        certify_option(),
    ),
    _plan,
    (
        "frontier channel --answers 0..20 --max-shift 1 --epsilon 0.1:4:20:log --delta 0,1e-5,0.01",
        "frontier channel --answers a,b,c,d --neighbours all --loss error-rate --epsilon 0.5,1,2 --notion pure",
    ),
    points=_points,
)
