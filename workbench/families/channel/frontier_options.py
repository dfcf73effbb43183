"""Declare the command `workbench frontier channel`: its options, examples and points."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from workbench.families.channel.family import FAMILY, FINITE_OPTIONS
from workbench.pipeline.frontier_plan import (
    Frontier,
    distinct_list_reader,
    load_when_called,
    select_loss_points,
)
from workbench.pipeline.notion_points import NOTION_OPTIONS, RUNS_GRID, list_notion_requests
from workbench.pipeline.option import CERTIFY, SOLVER
from workbench.pipeline.requirements import read_convex_or_ratio_notion

FRONTIER = Frontier(
    "Compute the smallest loss of a finite channel against ε and δ, beside published mechanisms.",
    (
        *FINITE_OPTIONS,
        *NOTION_OPTIONS,
        replace(
            FAMILY.get_option("notion"), read=distinct_list_reader(read_convex_or_ratio_notion)
        ),
        FAMILY.get_option("loss"),
        RUNS_GRID,
        SOLVER,
        CERTIFY,
    ),
    load_when_called("workbench.families.channel.frontier", "plan_channel_frontier"),
    (
        "frontier channel --answers 0..20 --max-shift 1 --epsilon 0.1:4:20:log --delta 0,1e-5,0.01",
        "frontier channel --answers 0..10 --max-shift 1 --max-loss 0.5:3:6 --delta 0,1e-3",
        "frontier channel --answers 0..6 --max-shift 1 --epsilon 1 --delta 1e-5 --runs 1,2,4,8,16",
        "frontier channel --answers a,b,c,d --neighbours all --loss error-rate --epsilon 0.5,1,2 "
        "--notion pure",
    ),
    points=select_loss_points(partial(list_notion_requests, FAMILY)),
)
