"""Recompute the tables of Differential Privacy via Distributionally Robust Optimization.

The paper compares truncated Laplace noise, and a lower bound, with the smallest expected loss O of
real noise at 10 x 10 budgets (ε, δ). This module computes a proven interval of O for each budget,
and judges each printed cell by it.

    notation                        here
    ε, δ                            the row and the column of a table
    Δf = 1                          the sensitivity of the answers
    [L, U]                          our proven interval [lower, loss]: no noise has a loss below L,
                                    and a certified mechanism has the loss U
    O                               theirs: the midpoint of their two bounds, which differ by less
                                    than 1 % of max(O, 1); ours: the midpoint of [L, U]
    BUB (benchmark upper bound)     the loss of truncated Laplace noise (`truncated_laplace`)
    BLB (benchmark lower bound)     the bound of Geng et al. 2020 (`geng_formula`), which is not a
                                    lower bound everywhere
    T4, T5, T1 in percent           Tables 4, 5, 1: 100 (BUB - O)/max(O, 1),
                                    100 (O - BLB)/max(O, 1), 100 (BUB - BLB)/max(O, 1)
    Table 6                         Table 1 for η²

The tables have 100 cells each and are recomputed with --full only. Each cell is stored when it is
done, so an interrupted computation continues.

BUB has a closed form. A cell of Table 4 is known to half a unit of its second decimal, so it
implies an interval of O, and with Table 5 one of BLB:

    O = BUB/(1 + T4/100) if that is >= 1, else BUB - T4/100        BLB = O - T5/100 max(O, 1)

The interval of BLB shows how many terms their BLB has. The closed form is a geometric sum
(`geng_formula`). Its last term is the one with which the sum reaches 1/2. Their published code
(data_independent.cpp) leaves this term out, because it adds a term only if the sum stays at most
1/2. If the sum is exactly 1/2, at δ = 1/2, rounding decides, and there is one term more.

Their O may be below every loss. In their code both bounds are losses of the same masses on cells of
width β with an end at 0. One bound uses the middles of the cells, the other the ends nearest to 0.
They differ by β/2, so the midpoint O is the loss of their mechanism (the middles) minus β/4.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from workbench.exact.objects import Record
from workbench.io.result import Row
from workbench.models.oracles.line_noise import geng_formula, truncated_laplace
from workbench.papers.artifact import Comparison, build_declared_paper, read_printed_numbers
from workbench.pipeline.api import design
from workbench.questions.unbounded_noise import RealNoise

Interval = tuple[float, float]

_SENSITIVITY = 1  # Δf in all tables.
# The largest relative gap of cells for the squared loss, whose bound needs fine grids. Above the
# given ε it is doubled, because the largest grids leave a larger gap there.
_SQUARED_GAP = 1e-3
_MAX_SMALL_EPSILON = 2

_HALF_UNIT = 0.005  # Half a unit of the last printed digit, in percent.

# The tolerance of a cell is half the gap of the paper's bounds times this factor, plus the margin.
# The factor is needed because the gap is relative to max(O, 1), and their O and ours differ by up
# to 1 %. The margin, in percent, covers rounding.
_UNIT_FACTOR = 1.02
_ROUNDING_MARGIN = 0.01

_MIDPOINT_REMARK = "their O is the midpoint of bounds up to 1 % of max(O, 1) apart; ours is proven"
# The number of terms that the printed lower bound lacks (-1: it has one more) -> a sentence.
_TERM_SENTENCES = {
    1: "their lower bound is the closed form with one term fewer: its sum stays up to 1/2, as in "
    "the code they publish",
    -1: "their lower bound is the closed form with one term more, where its sum is exactly 1/2 and "
    "rounding decides",
}


def compute_cell(budget: tuple[str, str, str], gap: float | None = None) -> Record:
    """Design optimal real noise for a cell and return the proven interval of its loss.

    Args:
        budget: (ε, δ, name of the loss), each as text, such as ("0.5", "0.1", "absolute").
        gap: The largest relative gap of the interval. Default: that of the family noise.

    Returns:
        epsilon, delta, lower (L), loss (U), gap_percent, steps (the number of density steps for
        each unit of sensitivity) and atom (the probability of noise 0).
    """
    epsilon, delta, loss = budget
    options = {}
    if gap is not None:
        options["gap"] = gap
    noise_design = design(
        RealNoise(_SENSITIVITY), epsilon=epsilon, delta=delta, loss=loss, **options
    )
    upper = noise_design.objective
    lower = noise_design.bound
    assert lower is not None
    mechanism = noise_design.mechanism
    return {
        "epsilon": float(epsilon),
        "delta": float(delta),
        "lower": lower,
        "loss": upper,
        "gap_percent": 100 * (upper - lower) / upper,
        "steps": mechanism.steps,
        "atom": float(mechanism.atom / mechanism.total),
    }


def _choose_gap(epsilon: float, loss: str) -> float | None:
    """Return the gap of a cell, or None for the default."""
    if loss != "squared":
        return None
    return _SQUARED_GAP if epsilon <= _MAX_SMALL_EPSILON else 2 * _SQUARED_GAP


# Intervals that a printed cell implies, and the verdict on the cell.


class Verdict(NamedTuple):
    """The verdict on a printed cell.

    Attributes:
        tolerance: The largest difference of the printed and our percentage that counts as
            agreement.
        reasons: Proven reasons for a larger difference. Empty if the cells agree, or if no reason
            is known.
    """

    tolerance: float
    reasons: tuple[str, ...]

    @property
    def remark(self) -> str:
        """Return the verdict in words."""
        return "; ".join(self.reasons) if self.reasons else _MIDPOINT_REMARK


def imply_optimum(bub: float, t4: float) -> Interval:
    """Return the interval of O that a cell of Table 4 implies, by the formula of the header.

    Args:
        bub: BUB, the loss of truncated Laplace noise at the budget.
        t4: The printed cell, in percent.
    """

    def compute_optimum(share: float) -> float:
        """Return O for an exact entry `share` of Table 4, not in percent."""
        large_optimum = bub / (1 + share)
        return large_optimum if large_optimum >= 1 else bub - share

    lower = compute_optimum((t4 + _HALF_UNIT) / 100)
    upper = compute_optimum((t4 - _HALF_UNIT) / 100)
    return lower, upper


def imply_bound(optimum: Interval, t5: float) -> Interval:
    """Return the interval of BLB that O and a cell of Table 5 imply.

    Args:
        optimum: The interval of O, as `imply_optimum` returns it.
        t5: The printed cell, in percent.
    """
    low, high = optimum
    return (
        low - (t5 + _HALF_UNIT) / 100 * max(low, 1.0),
        high - (t5 - _HALF_UNIT) / 100 * max(high, 1.0),
    )


def count_missing_terms(budget: tuple[float, float], t4: float, t5: float) -> int | None:
    """Return how many terms of the closed form the paper's BLB lacks, by its printed cells.

    Args:
        budget: (ε, δ).
        t4: The cell of Table 4, in percent.
        t5: The cell of Table 5, in percent.

    Returns:
        0, 1, or -1 if it has one term more. None if none of these fits the printed cells.
    """
    epsilon, delta = budget
    bub = truncated_laplace(epsilon, delta, _SENSITIVITY, "absolute")
    low, high = imply_bound(imply_optimum(bub, t4), t5)
    for missing in (0, 1, -1):
        if low <= geng_formula(epsilon, delta, _SENSITIVITY, omitted_terms=missing) <= high:
            return missing
    return None


def judge_cell(
    table: str,
    cells: Mapping[str, float],
    ours: float,
    budget: tuple[float, float],
    proven_interval: Interval,
    gap: float,
    *,
    is_squared: bool = False,
) -> Verdict:
    """Return the verdict on a printed cell: its tolerance, and reasons for a difference.

    Args:
        table: The name of the table that is judged: "table1", "table4" or "table5".
        cells: The printed percentages at this budget by table: "table4", and for |η| also
            "table1" and "table5".
        ours: The same percentage, computed from [L, U].
        budget: (ε, δ).
        proven_interval: [L, U].
        gap: The largest gap of the two bounds of the paper, in percent of max(O, 1).
        is_squared: Whether the table is for η².
    """
    printed_percent = cells[table]
    half_gap = gap / 2
    if table == "table1":
        # O is only in the denominator of T1, so its error is a share of the cell.
        half_gap *= printed_percent / 100
    tolerance = half_gap * _UNIT_FACTOR + _ROUNDING_MARGIN
    if abs(printed_percent - ours) <= tolerance:
        return Verdict(tolerance, ())

    bub = truncated_laplace(*budget, _SENSITIVITY, "squared" if is_squared else "absolute")
    reasons = []
    if table == "table4":
        prefix = ""
    else:
        prefix = "with Table 4 "
        missing = count_missing_terms(budget, cells["table4"], cells["table5"])
        if missing:
            reasons.append(_TERM_SENTENCES[missing])
    reasons += _explain_implied_optimum(
        imply_optimum(bub, cells["table4"]), proven_interval, prefix
    )
    return Verdict(tolerance, tuple(reasons))


def _explain_implied_optimum(
    implied_interval: Interval, proven_interval: Interval, prefix: str
) -> list[str]:
    """Return a list with one sentence if no implied O lies in the proven interval, else []."""
    low, high = implied_interval
    lower, loss = proven_interval
    sentence = f"{prefix}it implies O in [{low:.5g}, {high:.5g}]"
    unit = 100 / max(lower, 1.0)
    if high < lower:
        percent = unit * (lower - high)
        return [
            f"{sentence}, {percent:.2f} % of max(O, 1) below {lower:.5g}, the proven lower bound "
            "on the loss of every private noise"
        ]
    if low > loss:
        percent = unit * (low - loss)
        return [
            f"{sentence}, {percent:.2f} % of max(O, 1) above {loss:.5g}, the loss of a certified "
            "mechanism"
        ]
    return []


# The tables.


def _read_cells(table: str) -> dict[tuple[float, float], float]:
    """Return the printed cells of a table by (ε, δ)."""
    printed_numbers = read_printed_numbers("dro")
    budgets = itertools.product(
        map(float, printed_numbers["epsilon"]), map(float, printed_numbers["delta"])
    )
    return dict(zip(budgets, np.ravel(printed_numbers[table]["cells"]).tolist(), strict=True))


# Loss -> for each printed table: its key, our column, and the quantity that both contain.
_PRINTED_TABLES = {
    "absolute": (
        ("table1", "both_percent", "suboptimality of the benchmarks"),
        ("table4", "upper_percent", "of truncated Laplace noise"),
        ("table5", "lower_percent", "of the lower bound"),
    ),
    "squared": (("table4_squared", "upper_percent", "of truncated Laplace noise, squared"),),
}


def _compare_cells(rows: pd.DataFrame, table: str, column: str, quantity: str) -> list[Comparison]:
    """Compare the cells of a printed table with a column of our rows, and judge each cell.

    table: a key of printed/dro.toml. "table4_squared" is Table 4 for η².
    """
    printed_numbers = read_printed_numbers("dro")
    is_squared = table == "table4_squared"
    if is_squared:
        judged_table = "table4"
        printed_tables = {"table4": _read_cells(table)}
    else:
        judged_table = table
        printed_tables = {name: _read_cells(name) for name in ("table1", "table4", "table5")}

    comparisons = []
    for row in rows.to_dict("records"):
        epsilon = row["epsilon"]
        delta = row["delta"]
        budget = (epsilon, delta)
        proven_interval = (row["lower"], row["loss"])
        cells = {name: printed_cells[budget] for name, printed_cells in printed_tables.items()}
        verdict = judge_cell(
            judged_table,
            cells,
            row[column],
            budget,
            proven_interval,
            printed_numbers["gap"],
            is_squared=is_squared,
        )
        comparison = Comparison(
            what=f"{quantity}, ε = {epsilon:g}, δ = {delta:g} (percent)",
            place=printed_numbers[table]["place"],
            printed=cells[judged_table],
            ours=row[column],
            tolerance=verdict.tolerance,
            expected=not verdict.reasons,
            remark=verdict.remark,
        )
        comparisons.append(comparison)
    return comparisons


def compute_cell_row(loss: str, epsilon: float, delta: float) -> list[Row]:
    """Return the row of a cell: the benchmarks compared with the optimum.

    The row has both bounds for |η|, and the upper bound for η².

    Args:
        loss: The loss: "absolute" or "squared".
        epsilon: The ε of the budget, > 0.
        delta: The δ of the budget, in [0, 1].

    Returns:
        One row: the keys of `compute_cell`, truncated_laplace (BUB), upper_percent (T4), and for
        "absolute" geng_formula (BLB), lower_percent (T5) and both_percent (T1).
    """
    row = compute_cell((f"{epsilon:g}", f"{delta:g}", loss), _choose_gap(epsilon, loss))
    midpoint = (row["lower"] + row["loss"]) / 2
    unit = 100 / max(midpoint, 1)
    upper = truncated_laplace(epsilon, delta, _SENSITIVITY, loss)
    row |= {"truncated_laplace": upper, "upper_percent": (upper - midpoint) * unit}
    if loss == "absolute":
        lower = geng_formula(epsilon, delta, _SENSITIVITY)
        row |= {"geng_formula": lower, "lower_percent": (midpoint - lower) * unit}
        row["both_percent"] = row["upper_percent"] + row["lower_percent"]
    return [row]


def compare_benchmarks(table: pd.DataFrame) -> Record:
    """Return the comparisons of a table, and the width of its intervals at large ε.

    Args:
        table: The table of an artifact: rows of `compute_cell_row`.

    Returns:
        comparisons. more: the end of the caption's sentence about the gap, such as ", and by 0.2 %
        at ε = 5". It is empty if the table has no large ε.
    """
    loss = "absolute" if "geng_formula" in table else "squared"
    comparisons = []
    for printed_table, column, quantity in _PRINTED_TABLES[loss]:
        comparisons += _compare_cells(table, printed_table, column, quantity)
    large_gap = table[table.epsilon > _MAX_SMALL_EPSILON].gap_percent.max()
    gap_sentence = ""
    if not math.isnan(large_gap):
        gap_sentence = f", and by {large_gap:.2g} % at ε = 5"
    return {"comparisons": comparisons, "more": gap_sentence}


# The numbers that prove the errata. declared/dro.toml has the conditions that they must satisfy.


def check_lower_bound(epsilon: float, delta: float) -> Record:
    """Return where the closed form of the lower bound exceeds the loss of truncated Laplace noise.

    Args:
        epsilon: The ε of an example.
        delta: The δ of the example.

    Returns:
        exceeding_count: the number of budgets at which it does. cell_count: the number of budgets.
        closed_form, loss: both numbers of the example.
    """
    losses = {
        budget: truncated_laplace(*budget, _SENSITIVITY, "absolute")
        for budget in _read_cells("table4")
    }
    return {
        "exceeding_count": sum(
            geng_formula(*budget, _SENSITIVITY) > loss for budget, loss in losses.items()
        ),
        "cell_count": len(losses),
        "closed_form": geng_formula(epsilon, delta, _SENSITIVITY),
        "loss": losses[epsilon, delta],
    }


def count_bound_terms() -> Record:
    """Count the printed lower bounds by the number of terms that they lack.

    Returns:
        cell_count: all of them. same_count, fewer_count, more_count: those with as many terms as
        the closed form, one fewer, and one more.
    """
    table5 = _read_cells("table5")
    missing = [
        count_missing_terms(budget, t4, table5[budget])
        for budget, t4 in _read_cells("table4").items()
    ]
    return {
        "cell_count": len(missing),
        "same_count": missing.count(0),
        "fewer_count": missing.count(1),
        "more_count": missing.count(-1),
    }


def check_printed_optimum(table: str, loss: str, epsilon: float, delta: float) -> Record:
    """Return the optimum that a printed cell implies, and a proven lower bound.

    Args:
        table: The name of the table.
        loss: The loss: "absolute" or "squared".
        epsilon: The ε of the cell.
        delta: The δ of the cell.

    Returns:
        percent: the printed cell. implied_low, implied_high: the interval of O that it implies.
        proven_lower: L.
    """
    percent = _read_cells(table)[epsilon, delta]
    low, high = imply_optimum(truncated_laplace(epsilon, delta, _SENSITIVITY, loss), percent)
    proven_interval = compute_cell((str(epsilon), str(delta), loss), _choose_gap(epsilon, loss))
    return {
        "percent": percent,
        "implied_low": low,
        "implied_high": high,
        "proven_lower": proven_interval["lower"],
    }


PAPER = build_declared_paper("dro", globals())
