"""Recompute Figs. 2 and 3 of Cai et al. 2024, and the smallest error for each number of outputs.

Fig. 2 shows the output law p(x, i) of the mechanism ERM, Fig. 3 the error against the input x.
"""

from __future__ import annotations

import math

import pandas as pd

from workbench.exact.objects import Record
from workbench.families.quantizer.optm import solve_optm_with_thinner_slices
from workbench.families.quantizer.search import find_best_rqm, search_bins
from workbench.io.result import Row
from workbench.mechanisms.baselines.two_bin import equal_bins, erm, randomized_response
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.papers.artifact import Artifact, make_artifact
from workbench.papers.optm.common import (
    EPSILONS,
    compute_limit,
    design_mvu,
    design_quantizer,
    make_law_question,
    repair,
)
from workbench.privacy.audit import audit_extremes

# The numbers of outputs at which all mechanisms are computed without --full.
_COMPARED_OUTPUTS = (2, 3, 4, 5, 6, 8, 12, 16)
_MAX_OUTPUTS = 16  # The largest number of outputs of the table.
_FINE_SEARCH_OUTPUTS = 6  # Up to this many outputs, OPTM's bins are searched on a finer grid.


def make_erm_law_figure(full: bool, *, outer_bin: float, gamma: float) -> Artifact:
    """Make Fig. 2: p(x, 3) and p(x, 6) of ERM with 8 bins.

    Args:
        full: Not used: the figure takes no time.
        outer_bin: The largest bin, > 1.
        gamma: The parameter γ >= 0 of ERM.
    """
    # The text of a float is the decimal that was meant, which is used exactly.
    quantizer = erm(equal_bins(8, repr(outer_bin)), repr(gamma))
    law = quantizer.matrix
    columns = {
        "x": [float(x) for x in quantizer.end_inputs],
        "side": ["+", "-"] * len(quantizer.pieces),
        "p(x, 3)": law[:, 2],
        "p(x, 6)": law[:, 5],
    }
    table = pd.DataFrame(columns)
    bins = pd.DataFrame({"bin": quantizer.outputs, "number": range(1, 9)}).query("-1 < bin < 1")
    further = {"pieces": table.assign(piece=table.index // 2), "bins": bins}
    return make_artifact("optm", "fig2", table, further=further, outer_bin=outer_bin, gamma=gamma)


def add_limits(table: pd.DataFrame) -> Record:
    """Return the limits that Fig. 3 draws, at every ε of Table 1.

    Args:
        table: Not used. Every function named by `details` receives the table.

    Returns:
        further: the table "limits" with the columns epsilon and upper.
    """
    uppers = [compute_limit(epsilon).upper for epsilon in EPSILONS]
    return {"further": {"limits": pd.DataFrame({"epsilon": EPSILONS, "upper": uppers})}}


def _design_optm(output_count: int, epsilon: str) -> Quantizer | None:
    """Return OPTM with bins from a coarse search, or None if its program has no solution."""
    if output_count == 2:
        return randomized_response(epsilon)
    question = make_law_question(epsilon)
    stride = 2 if output_count <= _FINE_SEARCH_OUTPUTS else 4
    bins = search_bins(output_count, question, stride=stride)
    optimum = solve_optm_with_thinner_slices(bins, question)
    return repair(optimum.quantizer, epsilon) if optimum else None


def compute_price_of_bits(epsilon: float, *, full: bool = False) -> list[Row]:
    """Return the smallest MAE of every mechanism for numbers of outputs, and the limits.

    Args:
        epsilon: The ε of pure DP.
        full: Whether all mechanisms are computed at every number of outputs.

    Returns:
        One row for each mechanism and number of outputs, with epsilon, outputs, mechanism, mae,
        "mae, at most so many outputs" (the smallest mae up to this number), mse, "largest output"
        and "exact epsilon" (by the audit). Then one row for each limit, with epsilon, outputs
        (inf), mechanism (the name of the limit) and mae.
    """
    rows: list[Row] = []
    # The text of a float is the decimal that was meant, which is used exactly.
    budget = f"{epsilon:.15g}"
    # The smallest MAE of each mechanism up to the current number of outputs.
    least_errors: dict[str, float] = {}
    for count in range(2, _MAX_OUTPUTS + 1):
        mechanisms: dict[str, Quantizer | None] = {
            "exact quantizer": design_quantizer(count, budget)
        }
        if full or count in _COMPARED_OUTPUTS:
            mechanisms["MVU"] = design_mvu(count, budget)
            mechanisms["RQM"] = find_best_rqm(count, budget)
            mechanisms["OPTM"] = _design_optm(count, budget)
        for name, quantizer in mechanisms.items():
            if quantizer is None:
                continue
            mae = quantizer.mae()
            least_errors[name] = min(mae, least_errors.get(name, math.inf))
            row: Row = {
                "epsilon": epsilon,
                "outputs": count,
                "mechanism": name,
                "mae": mae,
                "mae, at most so many outputs": least_errors[name],
                "mse": quantizer.mse(),
                "largest output": quantizer.outputs[-1],
                "exact epsilon": audit_extremes(quantizer, 0).pure_epsilon,
            }
            rows.append(row)

    bounds = compute_limit(budget)
    limits = {
        "limit, proven": bounds.lower,
        "limit, reached": bounds.upper,
        "limit within the reach, reached": compute_limit(budget, has_capped_outputs=True).upper,
    }
    for name, value in limits.items():
        rows.append({"epsilon": epsilon, "outputs": math.inf, "mechanism": name, "mae": value})
    return rows
