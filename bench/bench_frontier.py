"""Measure how many certified rows of a frontier are computed in a CPU second.

The frontier lists optimal designs of noise modulo 21 (n = 20) under DP for a grid of ε and δ. A row
is a design with its proof, or a published mechanism with its exact audit.

The reference ("bare") loads the compiled program of one design into a live HiGHS object and solves
it, as often as the frontier has rows. `ratio` is the median over turns of (time of the frontier) /
(time of the reference). The columns of seconds are of the fastest turn. A first turn, which loads
everything, is not measured.
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
EPSILONS = "0.5:2:4"  # 4 values from 0.5 to 2.
DELTAS = "0.02:0.3:15"  # 15 values from 0.02 to 0.3.


def run_frontier_benchmark() -> pd.DataFrame:
    """Return one row for each largest distance of neighbours."""
    results = []
    for max_shift in (1, 3):
        question = wb.ModuloNoise(n=20, max_shift=max_shift)
        # Without curves of the least δ at a given error.
        run_frontier = partial(
            wb.frontier, question, epsilon=EPSILONS, delta=DELTAS, notion="dp", level="none"
        )
        row_count = len(list(run_frontier()))
        model = ModuloModel(
            question.sizes,
            question.differences,
            HOCKEY_STICK,
            loss_vector("error-rate", question.sizes),
            has_delta=True,
        )
        solve_bare = partial(_solve_often, model, row_count)
        times, _ = time_turns({"frontier": run_frontier, "bare": solve_bare}, TURNS)
        seconds = min(times["frontier"])
        results.append(
            {
                "max_shift": max_shift,
                "rows": row_count,
                "seconds": seconds,
                "rows_a_second": row_count / seconds,
                "bare_ms": 1e3 * min(times["bare"]) / row_count,
                "ratio": median_ratios(times, "bare")["frontier"],
            }
        )
    return pd.DataFrame(results)


def _solve_often(model: ModuloModel, count: int) -> None:
    """Solve the program of a model at ε = 1, δ = 0.1, each time in a new session."""
    solver = get_backend("highs")
    values = model.values(epsilons=[1.0], delta=0.1)
    for _ in range(count):
        with solver.open(model.program) as session:
            session.solve(values)
