"""Options of the trade-offs of label randomizers."""

from __future__ import annotations

from dataclasses import replace

from workbench.data.parameter_grid import grid
from workbench.families.labels.family import FAMILY, METHODS, points
from workbench.pipeline.frontier_plan import EPSILON, Frontier, compared, later, several
from workbench.pipeline.option import SOLVER, one_of, text

FRONTIER = Frontier(
    "Expected loss of private label randomizers against ε (and δ for the channel LP), beside what is usual.",
    (
        FAMILY.option("labels"),
        EPSILON,
        replace(
            FAMILY.option("delta"),
            read=grid,
            default="0",
            help="Grid of δ in [0, 1]; δ > 0 concerns the channel LP.",
            hot=False,
        ),
        replace(
            FAMILY.option("loss"),
            read=text,
            help="squared, absolute, poisson, error-rate, ...: see design labels.",
        ),
        replace(
            FAMILY.option("method"),
            read=several(one_of(*METHODS)),
            default="bins,lp",
            help="bins, lp, unbiased; several separated by commas.",
        ),
        SOLVER,
    ),
    later("workbench.families.labels.frontier", "plan"),
    (
        "frontier labels --labels 0..20 --epsilon 0.1:8:20:log",
        "frontier labels --labels prior.csv --loss absolute --epsilon 0.5,1,2 --delta 0,0.01,0.1 --method bins,lp",
    ),
    points=compared(points, method=("lp",)),
)
