"""Declare the command `workbench frontier labels`: its options, examples and points."""

from __future__ import annotations

from dataclasses import replace

from workbench.data.parameter_grid import read_grid
from workbench.families.labels.family import FAMILY, list_frontier_requests
from workbench.pipeline.frontier_plan import (
    EPSILON,
    Frontier,
    distinct_list_reader,
    load_when_called,
    select_loss_points,
)
from workbench.pipeline.option import SOLVER, choice_reader, read_plain_text

FRONTIER = Frontier(
    "Compute the expected loss of label randomizers against ε (with method lp also δ).",
    (
        FAMILY.get_option("labels"),
        EPSILON,
        replace(
            FAMILY.get_option("delta"),
            read=read_grid,
            default="0",
            help="Grid of δ in [0, 1]. Only the method lp uses δ > 0.",
            hot=False,
        ),
        replace(
            FAMILY.get_option("loss"),
            read=read_plain_text,
            help="Loss, as in `workbench design labels`: squared, absolute, poisson, "
            "error-rate, ...",
        ),
        replace(
            FAMILY.get_option("method"),
            read=distinct_list_reader(choice_reader("bins", "lp", "unbiased")),
            default="bins,lp",
            help="Methods, separated by commas: bins, lp, unbiased.",
        ),
        SOLVER,
    ),
    load_when_called("workbench.families.labels.frontier", "plan_label_frontier"),
    (
        "frontier labels --labels 0..20 --epsilon 0.1:8:20:log",
        "frontier labels --labels prior.csv --loss absolute --epsilon 0.5,1,2 --delta 0,0.01,0.1 "
        "--method bins,lp",
    ),
    points=select_loss_points(list_frontier_requests, method=("lp",)),
)
