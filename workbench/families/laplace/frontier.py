"""The trade-off of the dyadic quantized Laplace mechanism: privacy, error and bits.

    curve     what a row is
    point     the smallest ℓ whose exact mean length fits `bits` at database privacy ε: `decoder_epsilon` = ℓε, and
              `objective` = 2/ε², the mean squared error
    level     the exact mean length (`mean_bits`) at ε and a fixed ℓ: what a decoder relaxation costs in bits

ε is per unit of |x - x'| (metric privacy); x is uniform on [-1, 1]. status "optimal" is claimed at the resolution of
the search over ℓ (workbench.families.laplace.design); "unreachable" means that no ℓ fits the bits.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

from workbench.errors import InvalidRequest
from workbench.exact.numbers import round_up
from workbench.families.frontier_plan import Plan, Plots, Row, Task
from workbench.families.frontier_plots import Quantity, Series, few, heat, lines
from workbench.families.laplace.design import design_laplace
from workbench.mechanisms.dyadic_laplace.dyadic_law import levels
from workbench.mechanisms.dyadic_laplace.elias import check_code
from workbench.mechanisms.dyadic_laplace.mean_length import UNIFORM, mean_bits

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["plan"]

ELLS = (1.05, 1.2, 1.5, 2.0, 4.0)


def plan(
    epsilons: Sequence[Fraction],
    bits: Sequence[Fraction],
    *,
    code: str = "gamma",
    ells: Sequence[float | Fraction] = ELLS,
) -> Plan:
    """The plan of a DQL frontier. bits: mean bits a scalar; ells: of the level curves. Raises InvalidRequest."""
    chosen = check_code(code)
    for name, values, low in (("epsilon", epsilons, 0), ("bits", bits, 0), ("ell", ells, 1)):
        for value in values:
            if not low < value < 1e6:
                InvalidRequest.must(name, f"above {low} and below 1e6", f"{round_up(Fraction(value)):g}")
    tasks: list[Task] = [_point(epsilon, size, chosen) for size in bits for epsilon in epsilons]
    tasks += [_level(epsilon, float(ell), chosen) for ell in ells for epsilon in epsilons]
    title = f"Dyadic quantized Laplace, x uniform on [-1, 1], Elias {chosen}"
    return Plan(title, tasks, lambda table: _draw(table, title))


def _known(curve: str, epsilon: Fraction, **more: object) -> Row:
    mse = 2 / float(epsilon) ** 2
    return {"curve": curve, "mechanism": "DQL", "notion": "metric", "cost": "squared", "epsilon": float(epsilon),
            "delta": 0.0, "objective": mse, "pure_epsilon": math.inf, **more}  # fmt: skip


def _point(epsilon: Fraction, size: Fraction, code: str) -> Task:
    def compute() -> list[Row]:
        begin = time.perf_counter()
        least = design_laplace(float(epsilon), float(size), check_code(code))
        row = _known("point", epsilon, bits=float(size)) | {
            "ell": least.ell, "decoder_epsilon": least.decoder_epsilon, "mean_bits": least.mean_bits,
            "status": "optimal" if least.reachable else "unreachable", "seconds": time.perf_counter() - begin,
        }  # fmt: skip
        if not least.reachable:
            row |= {
                "objective": None,
                "error": f"no ell fits; the least mean length met is {least.least_bits:.6g} bits",
            }
        return [row]

    return compute


def _level(epsilon: Fraction, ell: float, code: str) -> Task:
    def compute() -> list[Row]:
        length = mean_bits(float(epsilon), levels(ell), check_code(code), UNIFORM)
        decoder = ell * float(epsilon)
        return [_known("level", epsilon, ell=ell, decoder_epsilon=decoder, mean_bits=length, status="closed form")]

    return compute


def _draw(table: pd.DataFrame, title: str) -> Plots:
    points, fixed = table[table["curve"] == "point"], table[table["curve"] == "level"]
    sizes = few(points["bits"].tolist(), 7) if "bits" in points else []
    budget = {size: Series(f"{size:g} bits", k) for k, size in enumerate(sizes)}
    slack = (
        {ell: Series(f"ℓ = {ell:g}", k) for k, ell in enumerate(few(fixed["ell"].tolist(), 7))} if len(fixed) else {}
    )
    points = points[points["decoder_epsilon"].fillna(math.inf) < 1e4] if len(points) else points
    return {
        "decoder_epsilon": partial(
            lines, points, Quantity("epsilon", "ε of the database, per unit of |x - x'|"),
            Quantity("decoder_epsilon", "ℓε of the decoder", True), "bits", budget,
            f"{title}:\nleast decoder ε within a bit budget",
        ),
        "error_epsilon": partial(
            lines, points, Quantity("decoder_epsilon", "ℓε of the decoder, per unit of |x - x'|", True),
            Quantity("objective", "mean squared error 2/ε²", True), "bits", budget,
            f"{title}:\nerror against the decoder's ε",
        ),
        "level_curves": partial(
            lines, fixed, Quantity("epsilon", "ε of the database"), Quantity("mean_bits", "mean bits a scalar, exact"),
            "ell", slack, f"{title}:\nmean length at fixed ℓ",
        ),
        "heat_map": partial(
            heat, points, Quantity("epsilon", "ε of the database"), Quantity("bits", "bits (one row each)"),
            Quantity("ell", "ℓ"), f"{title}: least ℓ",
        ),
    }  # fmt: skip
