"""Test what printed cells of Selvi, Liu and Wiesemann imply.

The notation is that of `workbench.papers.dro.artifacts`: T1, T4 and T5 are cells of their tables, O
is the optimum, BUB and BLB are their upper and lower benchmark. Their program is stated here again
from the code that they publish, on a coarse grid of cells.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import coo_matrix

from workbench.models.oracles.line_noise import geng_formula, truncated_laplace
from workbench.papers.artifact import read_printed_numbers
from workbench.papers.dro.artifacts import (
    Verdict,
    count_missing_terms,
    imply_bound,
    imply_optimum,
    judge_cell,
)

PRINTED = read_printed_numbers("dro")

# The row and the column of each cell. Rows are values of ε, columns are values of δ.
POSITIONS = [(i, j) for i in range(10) for j in range(10)]


def read_cells(i: int, j: int) -> tuple[tuple[float, float], dict[str, float]]:
    """Return the budget (ε, δ) of a cell, and the printed percentage by table."""
    budget = (float(PRINTED["epsilon"][i]), float(PRINTED["delta"][j]))
    cells = {name: PRINTED[name]["cells"][i][j] for name in ("table1", "table4", "table5")}
    return budget, cells


def solve_published_program(
    epsilon: float, delta: float, k: int, reach: int, power: int = 1
) -> tuple[float, float]:
    """Solve the published program for the loss |η|^power on cells of width 1/k up to ±reach.

    Cell i is [i/k, (i + 1)/k). The masses are symmetric, so cell i has the mass p of its mirror
    image -1 - i. For each shift of 1 to k cells, an excess variable for each cell bounds
    p_i - e^ε p_(i + shift), and the sum of the excesses is at most δ.

    Returns:
        The minimal Σ p_i (mean loss of cell i), and Σ p_i (loss at the end of cell i next to 0).
    """
    half = reach * k  # The variables p_0, ..., p_(half - 1) come first, then the excesses.
    ratio = math.exp(epsilon)
    entries = []
    row = 0
    for shift in range(1, k + 1):
        for i in range(-half, half):
            entries += [(row, max(i, -1 - i), 1.0), (row, half + row, -1.0)]
            if i + shift < half:
                entries.append((row, max(i + shift, -1 - i - shift), -ratio))
            row += 1
    excess_count = row
    # The last k rows are the sums of the excesses of each shift.
    for excess in range(excess_count):
        entries.append((excess_count + excess // (2 * half), half + excess, 1.0))
    rows, columns, values = zip(*entries, strict=True)
    size = half + excess_count
    matrix = coo_matrix((values, (rows, columns)), shape=(excess_count + k, size)).tocsr()

    # Every cell i >= 0 counts twice, for itself and its mirror image.
    i = np.arange(half)
    total = np.zeros((1, size))
    total[0, :half] = 2
    mean_losses = np.zeros(size)
    mean_losses[:half] = (2 * i + 1) / k if power == 1 else 2 * (i * i + i + 1 / 3) / k**2
    least_losses = np.zeros(size)
    least_losses[:half] = 2 * (i / k) ** power
    limits = np.r_[np.zeros(excess_count), np.full(k, delta)]
    solution = linprog(mean_losses, matrix, limits, total, [1.0], method="highs")
    return float(solution.fun), float(least_losses @ solution.x)


@pytest.mark.parametrize(("i", "j"), POSITIONS)
def test_table_1_is_the_sum_of_tables_4_and_5_up_to_rounding(i: int, j: int):
    _, cells = read_cells(i, j)
    # Three numbers are rounded to 0.01.
    assert cells["table1"] == pytest.approx(cells["table4"] + cells["table5"], abs=0.0151)


@pytest.mark.parametrize(("i", "j"), POSITIONS)
def test_the_implied_lower_bound_is_the_closed_form_up_to_one_term(i: int, j: int):
    budget, cells = read_cells(i, j)
    missing = count_missing_terms(budget, cells["table4"], cells["table5"])
    assert missing is not None
    optimum = imply_optimum(truncated_laplace(*budget, 1, "absolute"), cells["table4"])
    low, high = imply_bound(optimum, cells["table5"])
    assert low <= geng_formula(*budget, 1, missing) <= high


def test_thirteen_lower_bounds_have_another_number_of_terms():
    missing_by_budget = {}
    for i, j in POSITIONS:
        budget, cells = read_cells(i, j)
        missing = count_missing_terms(budget, cells["table4"], cells["table5"])
        if missing:
            missing_by_budget[budget] = missing
    assert len(missing_by_budget) == 13
    longer = [budget for budget, missing in missing_by_budget.items() if missing < 0]
    assert longer == [(5.0, 0.5)]


@pytest.mark.parametrize(
    ("epsilon", "delta", "k", "reach", "printed_t4", "power"),
    [(0.2, 0.02, 10, 10, 1.02, 1), (0.5, 0.05, 20, 5, 2.58, 1), (1.0, 0.1, 10, 4, 9.45, 2)],
)
def test_their_program_on_a_coarse_grid_gives_the_printed_cell(
    epsilon, delta, k, reach, printed_t4, power
):
    """O is the midpoint of two losses that differ by β/2 for |η|: by more than the stated 1 %."""
    i = [*map(float, PRINTED["epsilon"])].index(epsilon)
    j = [*map(float, PRINTED["delta"])].index(delta)
    table = "table4" if power == 1 else "table4_squared"
    assert PRINTED[table]["cells"][i][j] == printed_t4
    upper, lower = solve_published_program(epsilon, delta, k, reach, power)
    if power == 1:
        # The width β of a cell is 1/k.
        assert upper - lower == pytest.approx(1 / (2 * k), rel=1e-6)
    loss = "absolute" if power == 1 else "squared"
    low, high = imply_optimum(truncated_laplace(epsilon, delta, 1, loss), printed_t4)
    assert low <= (upper + lower) / 2 <= high
    assert (upper - lower) / max(1.0, lower) > 0.01


def judge_example(ours: float, proven_interval: tuple[float, float]) -> Verdict:
    """Judge the cell of Table 4 at ε = 0.5, δ = 0.05, which implies O in [1.3446, 1.3447]."""
    cells = {"table1": 16.36, "table4": 2.58, "table5": 13.78}
    return judge_cell(
        "table4", cells, ours, budget=(0.5, 0.05), proven_interval=proven_interval, gap=1
    )


def test_a_verdict_says_on_which_side_of_the_proven_interval_the_optimum_is():
    verdict = judge_example(1.632, (1.3571, 1.3573))
    assert "[1.3446, 1.3447], 0.91 % of max(O, 1) below 1.3571" in verdict.remark
    # 100 (1.34458 - 1.33)/1.3299 = 1.104
    verdict = judge_example(3.7, (1.3299, 1.33))
    assert "1.10 % of max(O, 1) above 1.33, the loss" in verdict.remark


def test_a_difference_within_half_the_gap_of_the_paper_needs_no_reason():
    assert not judge_example(2.2, (1.3571, 1.3573)).reasons


def test_a_proven_interval_that_contains_the_optimum_gives_no_reason():
    assert not judge_example(9.0, (1.34, 1.35)).reasons


def test_a_verdict_on_table_5_counts_the_terms_of_the_lower_bound():
    verdict = judge_cell(
        "table5",
        {"table1": 18.36, "table4": 0.45, "table5": 17.92},
        ours=-1.8,
        budget=(0.05, 0.05),
        proven_interval=(3.8519, 3.8522),
        gap=1,
    )
    assert verdict.reasons[0].startswith("their lower bound is the closed form with one term fewer")
