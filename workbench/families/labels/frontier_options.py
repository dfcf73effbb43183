"""What can be asked of the trade-offs of label randomizers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from workbench.families.frontier_plan import EPSILON, BudgetTask, Frontier, Row, compared, later, several
from workbench.families.labels.family import FAMILY, METHODS
from workbench.families.option import SOLVER, Option, flag, one_of, text
from workbench.io.parameter_grid import grid

__all__ = ["FRONTIER", "points"]


def points(question: Any, values: Mapping[str, Any]) -> Iterable[tuple[Row, Any]]:
    """(columns that name a point, its request): every method at every ε, the channel LP at every δ too."""
    for method in values["method"]:
        for delta in values["delta"] if method == "lp" else [Fraction(0)]:
            for epsilon in values["epsilon"]:
                given = {"notion": "dp" if delta else "pure", "epsilon": epsilon, "delta": delta}
                row = given | {"loss": values["loss"], "epsilon": float(epsilon), "delta": float(delta)}
                common = {name: values[name] for name in ("loss", "solver")}
                yield row, FAMILY.request(question or values["labels"], method=method, **common, **given)


FRONTIER = Frontier(
    "Expected loss of private label randomizers against ε (and δ for the channel LP), beside what is usual.",
    (
        FAMILY.option("labels"),
        EPSILON,
        Option("delta", grid, "0", "Grid of δ in [0, 1]; δ > 0 concerns the channel LP."),
        Option("loss", text, "squared", "squared, absolute, poisson, error-rate, ...: see design labels."),
        Option(
            "method", several(one_of(*METHODS)), "bins,lp", "bins, printed, lp, unbiased; several separated by commas."
        ),
        Option("baselines", flag, True, "Laplace, staircase and randomized responses.", kind=bool),
        SOLVER,
    ),
    later("workbench.families.labels.frontier", "plan"),
    (
        "frontier labels --labels 0..20 --epsilon 0.1:8:20:log",
        "frontier labels --labels prior.csv --loss absolute --epsilon 0.5,1,2 --delta 0,0.01,0.1 --method bins,lp",
    ),
    (BudgetTask("labels", later("workbench.families.labels.budgets", "label_rows")),),
    points=compared(points, method=("lp",)),
)
