"""Declare the command `workbench frontier noise`: its options, examples and points.

The points are the requests at which baselines of other packages are compared. The rows of the table
are planned in `workbench.families.noise.frontier`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from workbench.families.noise.family import FAMILY
from workbench.pipeline.frontier_plan import (
    Frontier,
    distinct_list_reader,
    load_when_called,
    select_loss_points,
)
from workbench.pipeline.notion_points import NOTION_OPTIONS, RUNS_GRID, list_notion_requests
from workbench.pipeline.option import CERTIFY, SOLVER, TIME_LIMIT

FRONTIER = Frontier(
    "Compute the smallest loss of noise on all integers or reals against the budget, with lower "
    "bounds. With --max-loss: the smallest ε.",
    (
        *(option for option in FAMILY.options if option.question),
        *NOTION_OPTIONS,
        replace(
            FAMILY.get_option("notion"), read=distinct_list_reader(FAMILY.get_option("notion").read)
        ),
        FAMILY.get_option("loss"),
        replace(
            RUNS_GRID,
            default="1",
            help="Grid of the number of runs that share the budget, for noise on the integers.",
        ),
        SOLVER,
        replace(
            TIME_LIMIT,
            help="Time limit of each design, in seconds. The best noise found by then is used.",
        ),
        CERTIFY,
    ),
    load_when_called("workbench.families.noise.frontier", "plan_noise_frontier"),
    (
        "frontier noise --epsilon 0.25:2:8 --delta 1e-5,1e-3",
        "frontier noise --sensitivity 2 --notion zcdp --rho 0.02:1:6:log",
        "frontier noise --on reals --loss absolute --epsilon 0.5,1,2 --delta 0.01",
        "frontier noise --max-loss 1:10:10 --delta 1e-5",
        "frontier noise --epsilon 4 --delta 1e-5 --runs 1,2,4,8,16 --out runs",
    ),
    points=select_loss_points(partial(list_notion_requests, FAMILY)),
)
