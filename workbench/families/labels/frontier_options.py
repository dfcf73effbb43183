"""Options of the trade-offs of label randomizers."""

from __future__ import annotations

from workbench.families.frontier_plan import EPSILON, Frontier, compared, later, several
from workbench.families.labels.family import FAMILY, METHODS, points
from workbench.families.option import SOLVER, Option, one_of, text
from workbench.io.parameter_grid import grid

FRONTIER = Frontier(
    "Expected loss of private label randomizers against ε (and δ for the channel LP), beside what is usual.",
    (
        FAMILY.option("labels"),
        EPSILON,
        Option("delta", grid, "0", "Grid of δ in [0, 1]; δ > 0 concerns the channel LP."),
        Option("loss", text, "squared", "squared, absolute, poisson, error-rate, ...: see design labels."),
        Option("method", several(one_of(*METHODS)), "bins,lp", "bins, lp, unbiased; several separated by commas."),
        SOLVER,
    ),
    later("workbench.families.labels.frontier", "plan"),
    (
        "frontier labels --labels 0..20 --epsilon 0.1:8:20:log",
        "frontier labels --labels prior.csv --loss absolute --epsilon 0.5,1,2 --delta 0,0.01,0.1 --method bins,lp",
    ),
    points=compared(points, method=("lp",)),
)
