"""What can be asked of the trade-offs of the dyadic quantized Laplace mechanism."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from workbench.errors import InvalidRequest
from workbench.families.frontier_plan import EPSILON, Frontier, Row, later
from workbench.families.laplace.family import FAMILY
from workbench.families.option import Option, one_of
from workbench.io.parameter_grid import grid
from workbench.mechanisms.dyadic_laplace.elias import CODES
from workbench.mechanisms.dyadic_laplace.mean_length import UNIFORM

__all__ = ["FRONTIER", "points"]


def points(question: Any, values: Mapping[str, Any]) -> Iterable[tuple[Row, Any]]:
    """(columns that name a point, its request): every ε within every number of bits."""
    if question is not None and question != UNIFORM:
        InvalidRequest.must("question", f"{UNIFORM!r}, which the bits are counted for", repr(question))
    for size in values["bits"]:
        for epsilon in values["epsilon"]:
            row = {"notion": "metric", "loss": "squared", "epsilon": float(epsilon), "delta": 0.0, "bits": float(size)}
            yield row, FAMILY.request(UNIFORM, epsilon=epsilon, bits=size, code=values["code"])


FRONTIER = Frontier(
    "Privacy, error and bits of the dyadic quantized Laplace mechanism (ε per unit of |x - x'|).",
    (
        EPSILON,
        Option("bits", grid, "3,4,5,6,8", "Mean bits a scalar, a grid."),
        Option("code", one_of(*CODES), "gamma", "Signed Elias code of the integers: gamma or delta."),
        Option("ell", grid, "1.05,1.2,1.5,2,4", "Decoder relaxations of the level curves, a grid."),
    ),
    later("workbench.families.laplace.frontier", "plan"),
    (
        "frontier laplace --epsilon 0.1:4:20 --bits 3,4,5,6,8",
        "frontier laplace --epsilon 0.1:4:12:log --bits 4:10:4 --code delta --ell 1.1,2,10",
    ),
    points=points,
)
