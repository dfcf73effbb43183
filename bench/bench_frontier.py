"""Measure how many certified rows of a frontier are computed in a CPU second.

The frontier is of noise modulo 21 (n = 20) under DP, after a first run that loads everything.

Rows are designs with their proof, and baselines with the exact audit of their distributions. The
reference ("bare") loads the compiled program of one design into a live HiGHS object and solves it,
once for each row. `ratio` is the median over turns of (time of a row) / (time of its reference).
"""

from __future__ import annotations

from functools import partial

import pandas as pd

import workbench as wb
from bench import median_ratios, time_turns
from workbench.models.modulo.program import ModuloModel, loss_vector
from workbench.pipeline.requirements import HOCKEY_STICK
from workbench.solvers.backend import get_backend

TITLE = "Certified rows a second of a frontier (n = 20, dp, CPU seconds)"
TURNS = 5
EPSILONS = "0.5:2:4"
DELTAS = "0.02:0.3:15"


def run_frontier_benchmark() -> pd.DataFrame:
    """Return one row for each largest distance of neighbours."""
    rows = []
    for max_shift in (1, 3):
        question = wb.ModuloNoise(n=20, max_shift=max_shift)
        trace_frontier = partial(
            wb.frontier, question, epsilon=EPSILONS, delta=DELTAS, notion="dp", level="none"
        )
        model = ModuloModel(
            question.sizes,
            question.differences,
            HOCKEY_STICK,
            loss_vector("error-rate", question.sizes),
            has_delta=True,
        )
        solve_bare = partial(_solve_often, model, len(list(trace_frontier())))
        times, results = time_turns({"rows": trace_frontier, "bare": solve_bare}, TURNS)
        count = len(list(results["rows"]))
        seconds = min(times["rows"])
        rows.append(
            {
                "max_shift": max_shift,
                "rows": count,
                "seconds": seconds,
                "rows_a_second": count / seconds,
                "bare_ms": 1e3 * min(times["bare"]) / count,
                "ratio": median_ratios(times, "bare")["rows"],
            }
        )
    return pd.DataFrame(rows)


def _solve_often(model: ModuloModel, count: int) -> None:
    """Solve the program of a model in new sessions."""
    solver = get_backend("highs")
    values = model.values([1.0], 0.1, None)
    for _ in range(count):
        with solver.open(model.program) as session:
            session.solve(values)
