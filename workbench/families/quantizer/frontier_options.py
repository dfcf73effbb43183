"""What can be asked of the trade-offs of quantizers."""

from __future__ import annotations

from dataclasses import replace

from workbench.families.frontier_plan import EPSILON, Frontier, compared, later, several
from workbench.families.option import SOLVER, Option, count, one_of
from workbench.families.quantizer.family import FAMILY, METHODS, points
from workbench.io.parameter_grid import whole_grid

FRONTIER = Frontier(
    "Error of unbiased private quantizers against ε and the number of outputs, beside RQM, PBM and Laplace.",
    (
        EPSILON,
        Option("levels", whole_grid, "2,4,8", "Numbers of outputs, a grid of integers.", question=True),
        Option("method", several(one_of(*METHODS)), "exact", "exact, optm, product, mvu; several separated by commas."),
        Option("loss", FAMILY.option("loss").read, "absolute", "absolute, squared, or a share of absolute in [0, 1]."),
        replace(FAMILY.option("density"), help="Of the inputs: uniform, normal:MU,SIGMA or parts:W,W,..., on [-1, 1]."),
        Option("starts", count(1, 7), 2, "Starts of the search over outputs, 1 to 7.", kind=int),
        SOLVER,
    ),
    later("workbench.families.quantizer.frontier", "plan"),
    (
        "frontier quantizer --levels 2,3,4,8 --epsilon 0.5:3:6",
        "frontier quantizer --levels 4 --epsilon 0.5:3:11 --method exact,mvu,optm --out quantizers --json",
    ),
    points=compared(points, method=("exact",)),
)
