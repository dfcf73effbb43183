"""Plan the trade-off of the dyadic quantized Laplace mechanism: privacy, error and bits.

The mechanism gives the database the privacy ε, and the decoder of its messages ℓε with ℓ > 1. ε is
per unit of |x - x'| (metric privacy); the datum x is uniform on [-1, 1]. The column `curve` says
what a row is; names in backticks are other columns.

    curve    what a row is
    point    the smallest ℓ whose exact mean length is at most `bits` at the database privacy ε.
             `decoder_epsilon` is ℓε, and `objective` is 2/ε², the mean squared error
    level    the exact mean length `mean_bits` at ε and a fixed ℓ: the bits that a message needs for
             the guarantee ℓε towards the decoder
    baseline a published mechanism at ε and `bits` (added by `workbench.pipeline.frontier_plan`)

The status "optimal" holds at the resolution of the search over ℓ
(workbench.families.laplace.least_ell). "unreachable" means that no ℓ is within the bits.
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
from workbench.pipeline.frontier_plots import (
    Quantity,
    Series,
    add_baseline_series,
    draw_panels,
    make_value_series,
)
from workbench.solvers.search import Deadline

if TYPE_CHECKING:
    import pandas as pd

_MAX_ELL = 1e6  # An ℓ of a level curve is below this.
_MAX_PLOTTED_EPSILON = 1e4  # Points with a larger decoder ε are not plotted.

# The legend, colour and line style of every mechanism in the plot "baselines". Dithering without
# local noise is not drawn, because the decoder has no guarantee.
_SERIES = {
    "DQL": Series("DQL", 0),
    "quantized Laplace": Series("quantized Laplace", colour=1, dash="--"),
    "Laplace": Series("Laplace, any real output", colour=7, dash=":"),
}


def plan_laplace_frontier(question: Any, values: Values) -> Plan:
    """Plan a frontier of the mechanism.

    Args:
        question: the law of the data, uniform on [-1, 1]. None means the same.
        values: option -> exact value.

    Returns:
        The plan: title, tasks that each compute rows of the table, and plots.

    Raises:
        InvalidRequest: an option is out of range.
    """
    for ell in values["ell"]:
        if not 1 < ell < _MAX_ELL:
            must("ell", "above 1 and below 1e6", f"{round_up(ell):g}")
    code = values["code"]
    tasks: list[Any] = []
    for columns, request in list_laplace_points(question, values):
        tasks.append(partial(_solve_point, columns, request, code))
    for ell in values["ell"]:
        tasks += [
            partial(_compute_level, epsilon, float(ell), code) for epsilon in values["epsilon"]
        ]
    title = f"Dyadic quantized Laplace, x uniform on [-1, 1], Elias {code}"
    return Plan(title, tasks, draw=lambda table: _draw_laplace_frontier(table, title))


def _make_row(curve: str, epsilon: Fraction, **columns: object) -> Row:
    """Make a row of a curve at an ε, with further columns."""
    return {
        "curve": curve,
        "mechanism": "DQL",
        "notion": "metric",
        "loss": "squared",
        "epsilon": float(epsilon),
        "delta": 0.0,
        "objective": 2 / float(epsilon) ** 2,
        "pure_epsilon": math.inf,  # Metric privacy on all reals implies no pure ε.
        **columns,
    }


def _solve_point(columns: Row, request: LaplaceRequest, code: Code) -> list[Row]:
    """Find the smallest ℓ of a request. Returns its row in a list."""
    clock = Deadline()
    smallest = find_least_ell(float(request.claim.epsilon), float(request.aim.bits), code)
    row = _make_row("point", request.claim.epsilon) | columns
    row |= {
        "ell": smallest.ell,
        "decoder_epsilon": smallest.decoder_epsilon,
        "mean_bits": smallest.mean_bits,
        "status": "optimal",
        "seconds": clock.elapsed_seconds,
    }
    if smallest.ell is None:
        failure = f"no ell fits; the least mean length met is {smallest.least_bits:.6g} bits"
        row |= {"status": "unreachable", "objective": None, "failure": failure}
    return [row]


def _compute_level(epsilon: Fraction, ell: float, code: Code) -> list[Row]:
    """Compute the mean length at an ε and an ℓ. Returns its row in a list."""
    length = mean_bits(float(epsilon), compute_levels(ell), code, UNIFORM_DATA)
    row = _make_row(
        "level",
        epsilon,
        ell=ell,
        decoder_epsilon=ell * float(epsilon),
        mean_bits=length,
        status="closed form",
    )
    return [row]


def _draw_laplace_frontier(table: pd.DataFrame, title: str) -> Plots:
    """Return the functions that draw the plots of a frontier, by name."""
    points = table[table["curve"] == "point"]
    levels = table[table["curve"] == "level"]
    compared = table[table["curve"].isin(("point", "baseline"))]
    # Rows without a decoder ε are kept. `draw_panels` leaves them out, or draws a horizontal line
    # if no row of a mechanism has one.
    if "decoder_epsilon" in compared:
        compared = compared[compared["decoder_epsilon"].fillna(0) < _MAX_PLOTTED_EPSILON]
    bit_series = make_value_series(points.get("bits", ()), "{:g} bits", max_count=7)
    ell_series = make_value_series(levels.get("ell", ()), "ℓ = {:g}", max_count=7)
    ends = ""
    if len(points):
        ends = _describe_ends(points)
        points = points[points["decoder_epsilon"].fillna(0) < _MAX_PLOTTED_EPSILON]
    return {
        "decoder_epsilon": partial(
            draw_panels,
            points,
            Quantity("epsilon", "ε of the database, per unit of |x - x'|"),
            Quantity("decoder_epsilon", "ℓε of the decoder", log=True),
            bit_series,
            f"{title}:\nsmallest ε of the decoder for a mean length{ends}",
            by="bits",
        ),
        "error_epsilon": partial(
            draw_panels,
            points,
            Quantity("decoder_epsilon", "ℓε of the decoder, per unit of |x - x'|", log=True),
            Quantity("objective", "mean squared error 2/ε²", log=True),
            bit_series,
            f"{title}:\nerror against the decoder's ε",
            by="bits",
        ),
        "baselines": partial(
            draw_panels,
            compared,
            Quantity("decoder_epsilon", "ε of the decoder", log=True),
            Quantity("objective", "mean squared error", log=True),
            add_baseline_series(_SERIES, compared),
            f"{title}:\nerror against the decoder's ε, with published mechanisms of the same bits",
            panel=Quantity("bits", "mean length of {:g} bits"),
        ),
        "level_curves": partial(
            draw_panels,
            levels,
            Quantity("epsilon", "ε of the database"),
            Quantity("mean_bits", "mean bits per scalar, exact"),
            ell_series,
            f"{title}:\nmean length at fixed ℓ",
            by="ell",
        ),
    }


def _describe_ends(points: pd.DataFrame) -> str:
    """Return a line about the curves that end early, because no ℓ is within the bits."""
    unreachable = points[points["decoder_epsilon"].isna()]
    parts = []
    for bits, rows in unreachable.groupby("bits"):
        first_epsilon = f"ε = {rows['epsilon'].min():.3g}"
        if len(rows) == 1:
            parts.append(f"{bits:g} bits at {first_epsilon}")
        else:
            parts.append(f"{bits:g} bits from {first_epsilon} on")
    if not parts:
        return ""
    return f"\nNo ℓ reaches {', '.join(parts)}"
