"""Declare the command `workbench frontier quantizer`: its options, examples and points.

The points are the requests at which baselines of other packages are compared. The rows of the table
are planned in `workbench.families.quantizer.frontier`.
"""

from __future__ import annotations

from dataclasses import replace

from workbench.data.parameter_grid import read_integer_grid
from workbench.families.quantizer.family import FAMILY, list_quantizer_points
from workbench.pipeline.frontier_plan import (
    EPSILON,
    Frontier,
    distinct_list_reader,
    load_when_called,
    select_loss_points,
)
from workbench.pipeline.option import SOLVER, choice_reader, integer_reader

_METHODS = ("exact", "optm", "product", "mvu", "erm", "biased")

FRONTIER = Frontier(
    "Compute the loss of unbiased private quantizers against ε and the number of outputs, beside "
    "RQM, PBM and Laplace noise.",
    (
        EPSILON,
        replace(
            FAMILY.get_option("levels"),
            read=read_integer_grid,
            default="2,4,8",
            help="Grid of numbers of outputs.",
            kind=str,  # The command line passes the grid as text.
        ),
        replace(
            FAMILY.get_option("method"),
            read=distinct_list_reader(choice_reader(*_METHODS)),
            help="Methods, separated by commas: exact, optm, product, mvu, erm, and biased "
            "(biased quantizers, with their bias).",
        ),
        replace(
            FAMILY.get_option("loss"),
            default="absolute",
            help="Loss: absolute, squared, or a number in [0, 1] (the share of absolute in a "
            "mixture of both).",
        ),
        replace(
            FAMILY.get_option("density"),
            help="Density of the inputs on [-1, 1]: uniform, normal:MU,SIGMA or parts:W,W,...",
        ),
        replace(
            FAMILY.get_option("starts"),
            read=integer_reader(minimum=1, maximum=7),
            default=2,
            help="Number of starts of the search for outputs, 1 to 7.",
        ),
        SOLVER,
    ),
    load_when_called("workbench.families.quantizer.frontier", "plan_quantizer_frontier"),
    (
        "frontier quantizer --levels 2,3,4,8 --epsilon 0.5:3:6",
        "frontier quantizer --levels 4 --epsilon 0.5:3:11 --method exact,mvu,optm --out quantizers "
        "--json",
    ),
    # Baselines of other packages are compared at the points of the method exact.
    points=select_loss_points(list_quantizer_points, method=("exact",)),
)
