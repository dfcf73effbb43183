"""Compare the noise of histograms of two and three bins with the optimal joint noise on a group.

The optimum is that of the vector query on the group of m^d noise vectors, with the moves of one
person as differences and the circular squared loss. It is a lower bound on the error of all noise
vectors on the integers: reduced modulo m, they stay private, and no circular distance is larger.
It rises to the optimum on the integers as m grows. Published noise is independent in every bin, and
ripple noise is not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from itertools import permutations

import pandas as pd

import workbench as wb
from workbench.publishing.histogram import search_histogram_noise
from workbench.publishing.ripple import compute_ripple_rmse
from workbench.questions.joint_query import ADD_REMOVE, ROW_PER_BIN, ROWS_ANYWHERE, JointQuery

TITLE = "Noise on a histogram, and the optimal joint noise on a group"
# Number of bins, size of the group in each bin, release, neighbours, rows of a person, and δ.
CASES = (
    (2, 15, ROWS_ANYWHERE, ADD_REMOVE, 1, "0"),
    (2, 31, ROWS_ANYWHERE, ADD_REMOVE, 2, "0"),
    (2, 31, ROW_PER_BIN, ADD_REMOVE, 2, "0"),
    (2, 31, ROWS_ANYWHERE, "replace", 1, "0"),
    (2, 31, ROW_PER_BIN, ADD_REMOVE, 2, "1e-3"),
    (3, 11, ROWS_ANYWHERE, ADD_REMOVE, 1, "0"),
    (3, 13, ROWS_ANYWHERE, "replace", 1, "0"),
    (3, 13, ROW_PER_BIN, ADD_REMOVE, 3, "0"),
)
EPSILON = 1


def run_histogram_benchmark() -> Iterator[pd.DataFrame]:
    """Yield a table that grows by one row for each relation.

    Errors are root mean squared errors of one bin. The ratio is the error of the best certified
    candidate over the lower bound, so it bounds how far the candidate is from the best noise.
    """
    rows = []
    for bins, size, release, neighbours, person_rows, delta in CASES:
        query = JointQuery(release, neighbours, person_rows)
        best = search_histogram_noise(query, EPSILON, delta).candidates[0]
        rmse = math.sqrt(best.variance)
        start = time.process_time()
        lower_bound = bound_rmse(query, bins, size, delta)
        seconds = time.process_time() - start
        ripple = compute_ripple_rmse(query, bins, EPSILON)
        row = {
            "bins": bins,
            "release": release,
            "neighbours": neighbours,
            "K": person_rows,
            "delta": float(delta),
            "best candidate": best.name,
            "RMSE": rmse,
            "ripple RMSE (delta = 0)": ripple,
            "group": f"{size}^{bins}",
            "lower bound": lower_bound,
            "ratio": rmse / lower_bound,
            "CPU s of the bound": seconds,
        }
        rows.append(row)
        yield pd.DataFrame(rows)


def bound_rmse(query: JointQuery, bins: int, size: int, delta: str) -> float:
    """Bound the error of a bin from below, by the proven bound of the joint optimum on a group.

    Args:
        query: The relation of the histogram.
        bins: The number of bins, at least 2.
        size: The number m of noise values of a bin in the group.
        delta: δ.
    """
    moves = {move for move in list_moves(query, bins) if any(move)}
    question = wb.ModuloNoise(sizes=(size,) * bins, shifts=sorted(moves))
    design = wb.design(question, loss="circular-squared", epsilon=EPSILON, delta=delta)
    assert design.bound is not None
    return math.sqrt(design.bound / bins)


def list_moves(query: JointQuery, bins: int) -> Iterator[tuple[int, ...]]:
    """Yield the moves of a histogram of a few bins by one person, in all orders of the bins.

    Args:
        query: The relation of the histogram.
        bins: The number of bins.
    """
    for vector in query.shifts:
        if len(vector) <= bins:
            yield from permutations((*vector, *[0] * (bins - len(vector))))
