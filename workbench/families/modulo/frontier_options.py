"""Declare the command `workbench frontier modulo`: its options, examples and points.

The points are the requests of least loss; baselines of other packages are compared there. The rows
of the table are planned in `workbench.families.modulo.frontier`.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from workbench.data.parameter_grid import read_grid
from workbench.families.modulo.family import FAMILY, list_modulo_points
from workbench.pipeline.frontier_plan import (
    Frontier,
    distinct_list_reader,
    load_when_called,
    select_loss_points,
)
from workbench.pipeline.notion_points import NOTION_OPTIONS as GRIDS
from workbench.pipeline.notion_points import RUNS_GRID as RUN_GRID
from workbench.pipeline.option import (
    CERTIFY,
    SOLVER,
    TIME_LIMIT,
    Option,
    read_flag,
    read_plain_text,
)
from workbench.pipeline.requirements import read_convex_or_ratio_notion


def _read_levels(value: Any, name: str) -> list[Fraction] | None:
    """Read the errors of the level curves: a grid, "auto" (None) or "none" (an empty list)."""
    if value == "auto":
        return None
    if value == "none":
        return []
    return read_grid(value, name)


FRONTIER = Frontier(
    "Compute the smallest expected loss of noise modulo n + 1 on a grid of ε and δ, the exact loss "
    "between the grid points, and the δ needed for given losses. Published mechanisms are "
    "compared. With --max-loss: the smallest ε.",
    (
        *(option for option in FAMILY.options if option.question),
        *GRIDS,
        replace(
            FAMILY.get_option("notion"), read=distinct_list_reader(read_convex_or_ratio_notion)
        ),
        replace(
            FAMILY.get_option("loss"),
            read=read_plain_text,
            help="Loss: error-rate, squared, eta-squared, circular-squared or worst-squared.",
        ),
        RUN_GRID,
        Option(
            "level",
            _read_levels,
            "auto",
            "Grid of losses for level curves: for each loss, the smallest δ against ε. auto: "
            "four losses. none: no curves.",
        ),
        SOLVER,
        replace(
            TIME_LIMIT,
            help="Time limit of each solve, in seconds. A point that reaches it has an interval "
            "instead of an optimum.",
        ),
        Option(
            "whole",
            read_flag,
            default=False,
            help="Compute all breakpoints of the exact loss against δ, without a time limit.",
            kind=bool,
        ),
        CERTIFY,
    ),
    load_when_called("workbench.families.modulo.frontier", "plan_modulo_frontier"),
    (
        "frontier modulo --n 8 --max-shift 3 --epsilon 0.1:4:40 --delta 0,1e-6,0.01,0.1 "
        "--notion pdp,dp",
        "frontier modulo --n 8 --shifts 1,2 --epsilon 0.1:4:20:log --delta 0:0.3:16 "
        "--loss squared --out trade",
        "frontier modulo --n 20 --max-shift 1 --loss squared --notion zcdp,gdp "
        "--rho 0.02:1:6:log --mu 0.2:2:6:log",
        'frontier modulo --sizes 4x4 --shifts "0,1;1,0" --epsilon 0.5,1,2 --delta 0,0.05 '
        "--level 0.3,0.5 --json",
        "frontier modulo --n 8 --max-shift 1 --loss squared --notion dp --max-loss 1:6:11 "
        "--delta 0,0.01",
    ),
    points=select_loss_points(list_modulo_points),
)
