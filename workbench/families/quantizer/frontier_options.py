"""What can be asked of the trade-offs of quantizers."""

from __future__ import annotations

from dataclasses import replace

from workbench.data.parameter_grid import whole_grid
from workbench.families.quantizer.family import FAMILY, points
from workbench.pipeline.frontier_plan import EPSILON, Frontier, compared, later, several
from workbench.pipeline.option import SOLVER, count

FRONTIER = Frontier(
    "Error of unbiased private quantizers against ε and the number of outputs, beside RQM, PBM and Laplace.",
    (
        EPSILON,
        replace(
            FAMILY.option("levels"),
            read=whole_grid,
            default="2,4,8",
            help="Numbers of outputs, a grid of integers.",
            kind=str,
        ),
        replace(
            FAMILY.option("method"),
            read=several(FAMILY.option("method").read),
            help="exact, optm, product, mvu; several separated by commas.",
        ),
        replace(
            FAMILY.option("loss"),
            default="absolute",
            help="absolute, squared, or a share of absolute in [0, 1].",
        ),
        replace(
            FAMILY.option("density"),
            help="Of the inputs: uniform, normal:MU,SIGMA or parts:W,W,..., on [-1, 1].",
        ),
        replace(
            FAMILY.option("starts"),
            read=count(1, 7),
            default=2,
            help="Starts of the search over outputs, 1 to 7.",
        ),
        SOLVER,
    ),
    later("workbench.families.quantizer.frontier", "plan"),
    (
        "frontier quantizer --levels 2,3,4,8 --epsilon 0.5:3:6",
        "frontier quantizer --levels 4 --epsilon 0.5:3:11 --method exact,mvu,optm --out quantizers --json",
    ),
    points=compared(points, method=("exact",)),
)
