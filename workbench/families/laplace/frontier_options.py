"""Declare the command `workbench frontier laplace`: its options, examples and points.

The points are the requests at which baselines of other packages are compared. The rows of the table
are planned in `workbench.families.laplace.frontier`.
"""

from __future__ import annotations

from dataclasses import replace

from workbench.data.parameter_grid import read_grid
from workbench.families.laplace.family import FAMILY, list_laplace_points
from workbench.pipeline.frontier_plan import EPSILON, Frontier, load_when_called
from workbench.pipeline.option import Option

FRONTIER = Frontier(
    "Privacy, error and bits of the dyadic quantized Laplace mechanism (ε per unit of |x - x'|).",
    (
        EPSILON,
        replace(
            FAMILY.get_option("bits"),
            read=read_grid,
            default="3,4,5,6,8",
            help="Grid of mean numbers of bits per number.",
            required=False,
            hot=False,
        ),
        FAMILY.get_option("code"),
        Option(
            "ell",
            read_grid,
            "1.05,1.2,1.5,2,4",
            "Grid of ℓ, the ratio of the decoder's ε to the database's ε, for the level curves.",
        ),
    ),
    load_when_called("workbench.families.laplace.frontier", "plan_laplace_frontier"),
    (
        "frontier laplace --epsilon 0.1:4:20 --bits 3,4,5,6,8",
        "frontier laplace --epsilon 0.1:4:12:log --bits 4:10:4 --code delta --ell 1.1,2,10",
    ),
    points=list_laplace_points,
)
