"""Options of the trade-offs of the dyadic Laplace mechanism."""

from __future__ import annotations

from dataclasses import replace

from workbench.data.parameter_grid import grid
from workbench.families.laplace.family import FAMILY, points
from workbench.pipeline.frontier_plan import EPSILON, Frontier, later
from workbench.pipeline.option import Option

FRONTIER = Frontier(
    "Privacy, error and bits of the dyadic quantized Laplace mechanism (ε per unit of |x - x'|).",
    (
        EPSILON,
        replace(
            FAMILY.option("bits"),
            read=grid,
            default="3,4,5,6,8",
            help="Mean bits a scalar, a grid.",
            required=False,
            hot=False,
        ),
        FAMILY.option("code"),
        Option("ell", grid, "1.05,1.2,1.5,2,4", "Decoder relaxations of the level curves, a grid."),
    ),
    later("workbench.families.laplace.frontier", "plan"),
    (
        "frontier laplace --epsilon 0.1:4:20 --bits 3,4,5,6,8",
        "frontier laplace --epsilon 0.1:4:12:log --bits 4:10:4 --code delta --ell 1.1,2,10",
    ),
    points=points,
)
