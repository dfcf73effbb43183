"""Test what printed cells of Selvi, Liu and Wiesemann imply.

Their program is stated here again from the code that they publish.
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
    count_missing_terms,
    imply_bound,
    imply_optimum,
    judge_cell,
)

CLAIMS = read_printed_numbers("dro")
PLACES = [(i, j) for i in range(10) for j in range(10)]


def _cells(i: int, j: int) -> tuple[tuple[float, float], dict[str, float]]:
    cells = {name: CLAIMS[name]["cells"][i][j] for name in ("table1", "table4", "table5")}
    return (float(CLAIMS["epsilon"][i]), float(CLAIMS["delta"][j])), cells


def _published(
    epsilon: float, delta: float, k: int, reach: int, power: int = 1
) -> tuple[float, float]:
    """Return their two values for cells [i/k, (i+1)/k), |i| up to reach k, and all shifts by cells.

    They are min Σ p_i (mean loss of cell i), and the loss of these p_i at the ends nearest to 0.
    """
    half, e = reach * k, math.exp(epsilon)
    entries, row = [], 0
    for shift in range(1, k + 1):
        for i in range(-half, half):
            entries += [(row, max(i, -1 - i), 1.0), (row, half + row, -1.0)]
            if i + shift < half:
                entries.append((row, max(i + shift, -1 - i - shift), -e))
            row += 1
    entries += [(row + y // (2 * half), half + y, 1.0) for y in range(row)]
    rows, columns, values = zip(*entries, strict=True)
    matrix = coo_matrix((values, (rows, columns)), shape=(row + k, half + row)).tocsr()
    i, size, total = np.arange(half), half + row, np.zeros((1, half + row))
    loss, least = np.zeros(size), np.zeros(size)
    total[0, :half], loss[:half] = (
        2,
        (2 * i + 1) / k if power == 1 else 2 * (i * i + i + 1 / 3) / k**2,
    )
    least[:half] = 2 * (i / k) ** power
    limits = np.r_[np.zeros(row), np.full(k, delta)]
    result = linprog(loss, matrix, limits, total, [1.0], method="highs")
    return float(result.fun), float(least @ result.x)


@pytest.mark.parametrize(("i", "j"), PLACES)
def test_three_tables_are_consistent(i: int, j: int):
    """T1 = T4 + T5 up to rounding, and BLB is the closed form up to one term."""
    place, cells = _cells(i, j)
    assert cells["table1"] == pytest.approx(cells["table4"] + cells["table5"], abs=0.0151)
    fewer = count_missing_terms(place, cells["table4"], cells["table5"])
    assert fewer is not None
    low, high = imply_bound(
        imply_optimum(truncated_laplace(*place, 1, "absolute"), cells["table4"]), cells["table5"]
    )
    assert low <= geng_formula(*place, 1, fewer) <= high


def test_other_numbers_of_terms_are_thirteen():
    fewer = {}
    for i, j in PLACES:
        place, cells = _cells(i, j)
        if terms := count_missing_terms(place, cells["table4"], cells["table5"]):
            fewer[place] = terms
    assert len(fewer) == 13
    assert [place for place, terms in fewer.items() if terms < 0] == [(5.0, 0.5)]


@pytest.mark.parametrize(
    ("epsilon", "delta", "k", "reach", "t4", "power"),
    [(0.2, 0.02, 10, 10, 1.02, 1), (0.5, 0.05, 20, 5, 2.58, 1), (1.0, 0.1, 10, 4, 9.45, 2)],
)
def test_their_program_on_a_coarse_grid_gives_the_printed_cell(epsilon, delta, k, reach, t4, power):
    """O is the middle of two losses, which differ by β/2 for |η|: more than the 1 % they state."""
    i, j = (
        [*map(float, CLAIMS[name])].index(value)
        for name, value in (("epsilon", epsilon), ("delta", delta))
    )
    assert CLAIMS["table4" if power == 1 else "table4_squared"]["cells"][i][j] == t4
    upper, lower = _published(epsilon, delta, k, reach, power)
    if power == 1:
        assert upper - lower == pytest.approx(1 / (2 * k), rel=1e-6)
    low, high = imply_optimum(
        truncated_laplace(epsilon, delta, 1, ("absolute", "squared")[power - 1]), t4
    )
    assert low <= (upper + lower) / 2 <= high
    assert (upper - lower) / max(1.0, lower) > 0.01


def test_verdict_says_on_which_side_of_the_proven_interval():
    place, cells = (0.5, 0.05), {"table1": 16.36, "table4": 2.58, "table5": 13.78}
    verdict = judge_cell("table4", cells, 1.632, place, (1.3571, 1.3573), 1)
    assert "[1.3446, 1.3447], 0.91 % of max(O, 1) below 1.3571" in verdict.remark
    # 100 (1.34458 - 1.33)/1.3299 = 1.104
    assert (
        "1.10 % of max(O, 1) above 1.33, the loss"
        in judge_cell("table4", cells, 3.7, place, (1.3299, 1.33), 1).remark
    )
    assert not judge_cell(
        "table4", cells, 2.2, place, (1.3571, 1.3573), 1
    ).reasons  # The difference is within half of their gap.
    assert not judge_cell(
        "table4", cells, 9.0, place, (1.34, 1.35), 1
    ).reasons  # The proven interval does not explain the difference.


def test_verdict_counts_terms():
    verdict = judge_cell(
        "table5",
        {"table1": 18.36, "table4": 0.45, "table5": 17.92},
        -1.8,
        (0.05, 0.05),
        (3.8519, 3.8522),
        1,
    )
    assert verdict.reasons[0].startswith("their lower bound is the closed form with one term fewer")
