"""What can be asked of the trade-offs of quantizers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from workbench.errors import must
from workbench.exact.objects import Values
from workbench.families.frontier_plan import EPSILON, Frontier, Point, compared, later, several
from workbench.families.option import SOLVER, Option, count, one_of
from workbench.families.quantizer.family import FAMILY, METHODS
from workbench.io.parameter_grid import whole_grid


def points(question: Any, values: Values) -> Iterable[Point]:
    """(columns that name a point, its request): every method with every number of outputs at every ε."""
    if question is not None and (question.bins is not None or question.c != 1):
        must("question", "a Quantization of inputs in [-1, 1] with levels", repr(question))
    common = {name: values[name] for name in ("loss", "starts", "solver")}
    for method in values["method"]:
        for m in values["levels"] if question is None else [question.levels]:
            quantization = question or FAMILY.question(levels=m, density=values["density"])
            for epsilon in values["epsilon"]:
                row = {"notion": "pure", "loss": str(values["loss"]), "epsilon": float(epsilon), "delta": 0.0}
                request = FAMILY.request(quantization, epsilon=epsilon, method=method, **common)
                yield row | {"levels": m}, request


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
