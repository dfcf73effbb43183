"""Options of the trade-offs of noise modulo n."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from workbench.data.parameter_grid import grid
from workbench.families.modulo.family import FAMILY, points
from workbench.pipeline.frontier_plan import Frontier, compared, later, several
from workbench.pipeline.notion_points import OPTIONS as GRIDS
from workbench.pipeline.notion_points import RUNS as SHARED
from workbench.pipeline.option import CERTIFY, SOLVER, TIME_LIMIT, Option, flag, text
from workbench.pipeline.requirements import convex_or_ratio_notion


def _levels(value: Any, name: str) -> list[Fraction] | None:
    """Errors of the level curves: a grid, auto (None) or none."""
    return {"auto": None, "none": []}[value] if value in ("auto", "none") else grid(value, name)


FRONTIER = Frontier(
    "Error of optimal noise against ε and δ: certified points, exact breakpoints, level curves, baselines; least ε.",
    (
        *(option for option in FAMILY.options if option.question),
        *GRIDS,
        replace(FAMILY.option("notion"), read=several(convex_or_ratio_notion)),
        replace(
            FAMILY.option("loss"),
            read=text,
            help="error-rate, squared, eta-squared, circular-squared or worst-squared.",
        ),
        SHARED,
        Option(
            "level",
            _levels,
            "auto",
            "Errors for the level curves δ(ε), a grid; auto chooses four, none draws none.",
        ),
        SOLVER,
        replace(TIME_LIMIT, help="Seconds of one solve; then its interval counts."),
        Option(
            "whole",
            flag,
            False,
            "Trace every exact piece to its end, however long it takes.",
            kind=bool,
        ),
        CERTIFY,
    ),
    later("workbench.families.modulo.frontier", "plan"),
    (
        "frontier modulo --n 8 --max-shift 3 --epsilon 0.1:4:40 --delta 0,1e-6,0.01,0.1 --notion pdp,dp",
        "frontier modulo --n 8 --shifts 1,2 --epsilon 0.1:4:20:log --delta 0:0.3:16 --loss squared --out trade",
        "frontier modulo --n 20 --max-shift 1 --loss squared --notion zcdp,gdp --rho 0.02:1:6:log --mu 0.2:2:6:log",
        'frontier modulo --sizes 4x4 --shifts "0,1;1,0" --epsilon 0.5,1,2 --delta 0,0.05 --level 0.3,0.5 --json',
        "frontier modulo --n 8 --max-shift 1 --loss squared --notion dp --max-loss 1:6:11 --delta 0,0.01",
    ),
    points=compared(points),
)
