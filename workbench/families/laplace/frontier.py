"""The trade-off of the dyadic quantized Laplace mechanism: privacy, error and bits.

    curve     what a row is
    point     the smallest ℓ whose exact mean length fits `bits` at database privacy ε: `decoder_epsilon` = ℓε, and
              `objective` = 2/ε², the mean squared error
    level     the exact mean length (`mean_bits`) at ε and a fixed ℓ: what a decoder relaxation costs in bits

ε is per unit of |x - x'| (metric privacy); x is uniform on [-1, 1]. status "optimal" is claimed at the resolution of
the search over ℓ (workbench.families.laplace.least_ell); "unreachable" means that no ℓ fits the bits.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from workbench.errors import must
from workbench.exact.numbers import round_up
from workbench.exact.objects import Values
from workbench.families.laplace.family import LaplaceRequest, list_laplace_points
from workbench.families.laplace.least_ell import find_least_ell
from workbench.mechanisms.dyadic_laplace.dyadic_law import compute_levels
from workbench.mechanisms.dyadic_laplace.elias import Code
from workbench.mechanisms.dyadic_laplace.mean_length import UNIFORM_DATA, mean_bits
from workbench.pipeline.frontier_plan import Plan, Plots, Row
from workbench.pipeline.frontier_plots import Quantity, draw_panels, make_value_series
from workbench.solvers.search import Deadline

if TYPE_CHECKING:
    import pandas as pd


def plan_laplace_frontier(question: Any, values: Values) -> Plan:
    """The plan of a frontier of the mechanism. Raises InvalidRequest."""
    for ell in values["ell"]:
        if not 1 < ell < 1e6:
            must("ell", "above 1 and below 1e6", f"{round_up(ell):g}")
    code, known = values["code"], list(list_laplace_points(question, values))
    tasks = [partial(_point, row, request, code) for row, request in known]
    tasks += [
        partial(_level, epsilon, float(ell), code)
        for ell in values["ell"]
        for epsilon in values["epsilon"]
    ]
    title = f"Dyadic quantized Laplace, x uniform on [-1, 1], Elias {code}"
    return Plan(title, tasks, lambda table: _draw(table, title))


def _known(curve: str, epsilon: Fraction, **more: object) -> Row:
    return {
        "curve": curve,
        "mechanism": "DQL",
        "notion": "metric",
        "loss": "squared",
        "epsilon": float(epsilon),
        "delta": 0.0,
        "objective": 2 / float(epsilon) ** 2,
        "pure_epsilon": math.inf,
        **more,
    }


def _point(point: Row, request: LaplaceRequest, code: Code) -> list[Row]:
    clock = Deadline()
    least = find_least_ell(float(request.claim.epsilon), float(request.aim.bits), code)
    row = _known("point", request.claim.epsilon) | point
    row |= {name: getattr(least, name) for name in ("ell", "decoder_epsilon", "mean_bits")}
    row |= {"status": "optimal", "seconds": clock.elapsed_seconds}
    if least.ell is None:
        missing = f"no ell fits; the least mean length met is {least.least_bits:.6g} bits"
        row |= {"status": "unreachable", "objective": None, "failure": missing}
    return [row]


def _level(epsilon: Fraction, ell: float, code: Code) -> list[Row]:
    length, decoder = (
        mean_bits(float(epsilon), compute_levels(ell), code, UNIFORM_DATA),
        ell * float(epsilon),
    )
    return [
        _known(
            "level",
            epsilon,
            ell=ell,
            decoder_epsilon=decoder,
            mean_bits=length,
            status="closed form",
        )
    ]


def _draw(table: pd.DataFrame, title: str) -> Plots:
    points, fixed = table[table["curve"] == "point"], table[table["curve"] == "level"]
    budget, slack = (
        make_value_series(points.get("bits", ()), "{:g} bits", 7),
        make_value_series(fixed.get("ell", ()), "ℓ = {:g}", 7),
    )
    points = points[points["decoder_epsilon"].fillna(0) < 1e4] if len(points) else points
    return {
        "decoder_epsilon": partial(
            draw_panels,
            points,
            Quantity("epsilon", "ε of the database, per unit of |x - x'|"),
            Quantity("decoder_epsilon", "ℓε of the decoder", True),
            budget,
            f"{title}:\nleast decoder ε within a bit budget",
            by="bits",
        ),
        "error_epsilon": partial(
            draw_panels,
            points,
            Quantity("decoder_epsilon", "ℓε of the decoder, per unit of |x - x'|", True),
            Quantity("objective", "mean squared error 2/ε²", True),
            budget,
            f"{title}:\nerror against the decoder's ε",
            by="bits",
        ),
        "level_curves": partial(
            draw_panels,
            fixed,
            Quantity("epsilon", "ε of the database"),
            Quantity("mean_bits", "mean bits a scalar, exact"),
            slack,
            f"{title}:\nmean length at fixed ℓ",
            by="ell",
        ),
    }
