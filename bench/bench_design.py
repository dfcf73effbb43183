"""Measure the CPU time of a noise design, and of the bare solver call for the same program.

    python -m bench.bench_design

The table has milliseconds and ratios for three calls:

    solver      load the compiled program into a live HiGHS object and solve it
    raw         `wb.design(..., certify=False)`: request, program, solve, known formula, exact audit
    certified   `wb.design(...)`: in addition the exact program of its pattern, repair and proof

All calls run in one process, after a first turn that is not measured.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

import workbench as wb
from bench import median_ratios, time_turns
from workbench.models.modulo.program import ModuloModel, loss_vector
from workbench.pipeline.requirements import get_ratio_kind
from workbench.solvers.backend import get_backend

__all__ = ["TITLE", "run_design_benchmark", "time_design"]

TITLE = "A design and its bare solver call, CPU milliseconds"

SIZES = (8, 20, 40)  # Largest answers n.
LP_TURNS = 60  # Turns of a linear program.
MILP_TURNS = 7  # Turns of a mixed-integer program.


def time_design(n: int, notion: str, delta: float, loss: str = "error-rate") -> dict[str, Any]:
    """Time the designs of one question and the bare solver call.

    For PDP with δ > 0 the solver gets the integer program of the paper.

    Args:
        n: largest answer.
        notion: "pdp" or "dp".
        delta: budget.
        loss: name of the loss.

    Returns:
        A row with the milliseconds of the fastest turn, and the median ratios to the solver.
    """
    question = wb.ModuloNoise(n=n, max_shift=3)
    model = ModuloModel(
        question.sizes,
        question.differences,
        get_ratio_kind(notion),
        loss_vector(loss, question.sizes),
        has_delta=delta > 0,
    )
    values = model.values([1.0], delta, None)
    solver = get_backend("highs")

    def solve_program() -> None:
        with solver.open(model.program) as session:
            session.solve(values)

    def design_raw() -> None:
        wb.design(question, epsilon=1, delta=delta, notion=notion, loss=loss, certify=False)

    def design_certified() -> None:
        wb.design(question, epsilon=1, delta=delta, notion=notion, loss=loss)

    is_milp = notion == "pdp" and delta > 0
    calls = {"solver": solve_program, "raw": design_raw, "certified": design_certified}
    times, _ = time_turns(calls, MILP_TURNS if is_milp else LP_TURNS)
    row: dict[str, Any] = {"n": n, "notion": notion, "delta": delta, "loss": loss}
    row |= {f"{name}_ms": 1e3 * min(seconds) for name, seconds in times.items()}
    ratios = median_ratios(times, "solver")
    return row | {f"{name}_ratio": ratio for name, ratio in ratios.items()}


def run_design_benchmark() -> pd.DataFrame:
    """Return one row for each question.

    Every size is designed under pure privacy (PDP with δ = 0) and under DP with δ = 0.1. These are
    linear programs. One size is designed under PDP with δ = 0.1, and n = 400 is a large program.
    """
    rows = []
    for n in SIZES:
        rows.append(time_design(n, "pdp", delta=0.0))
        rows.append(time_design(n, "dp", delta=0.1))
    rows.append(time_design(n=20, notion="pdp", delta=0.1))
    rows.append(time_design(n=400, notion="pdp", delta=0.0, loss="squared"))
    return pd.DataFrame(rows)


if __name__ == "__main__":
    table = run_design_benchmark()
    print(table.to_string(index=False, float_format=lambda value: f"{value:.3g}"))
