"""Certified rows a second of a frontier, warm, in CPU time of one process: modulo noise at n = 20 under DP.

Rows are designs with their proof and baselines with the exact audit of their laws. bare: the compiled program of one
design loaded into a live HiGHS object and solved; `ratio` is what a row takes beside it, the median over turns.
"""

from __future__ import annotations

from functools import partial

import pandas as pd

import workbench as wb
from bench import beside, turns_of
from workbench.models.modulo.program import ModuloModel, loss_vector
from workbench.pipeline.requirements import HOCKEY_STICK
from workbench.solvers.backend import get_backend

TITLE = "Certified rows a second of a frontier (n = 20, dp, CPU seconds)"
TURNS = 5
EPSILONS, DELTAS = "0.5:2:4", "0.02:0.3:15"


def run() -> pd.DataFrame:
    """One row for each largest distance of neighbours."""
    rows = []
    for max_shift in (1, 3):
        question = wb.ModuloNoise(n=20, max_shift=max_shift)
        traced = partial(
            wb.frontier, question, epsilon=EPSILONS, delta=DELTAS, notion="dp", level="none"
        )
        model = ModuloModel(
            question.sizes, question.differences, HOCKEY_STICK, loss_vector("error-rate", question.sizes),
            has_delta=True,
        )  # fmt: skip
        bare = partial(_solved, model, len(list(traced())))
        times, answers = turns_of({"rows": traced, "bare": bare}, TURNS)
        count, least = len(list(answers["rows"])), min(times["rows"])
        known = {
            "max_shift": max_shift,
            "rows": count,
            "seconds": least,
            "rows_a_second": count / least,
        }
        rows.append(
            known
            | {"bare_ms": 1e3 * min(times["bare"]) / count, "ratio": beside(times, "bare")["rows"]}
        )
    return pd.DataFrame(rows)


def _solved(model: ModuloModel, count: int) -> None:
    """So many bare solves."""
    solver, values = get_backend("highs"), model.values([1.0], 0.1, None)
    for _ in range(count):
        with solver.open(model.program) as session:
            session.solve(values)
