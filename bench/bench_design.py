"""What a design costs beside the bare solver call that answers it: additive noise, warm, in CPU time of one process.

    python -m bench.bench_design

kind        what is timed
solver      the compiled program loaded into a live HiGHS object and solved, nothing else
raw         `wb.design(..., certify=False)`: request, program, solve, oracle, exact audit
certified   `wb.design(...)`: the same with the exact program of its pattern, repair, proof
"""

from __future__ import annotations

from typing import Any

import pandas as pd

import workbench as wb
from bench import beside, turns_of
from workbench.models.modulo.program import ModuloModel, loss_vector
from workbench.pipeline.requirements import get_ratio_kind
from workbench.solvers.backend import get_backend

__all__ = ["TITLE", "measure", "run"]

TITLE = "A design beside its bare solver call, CPU milliseconds"

SIZES = (8, 20, 40)
REPEATS, SLOW = 60, 7  # turns; of a mixed-integer program


def measure(n: int, notion: str, delta: float, loss: str = "error-rate") -> dict[str, Any]:
    """Milliseconds of CPU for one question, the least of several runs of each kind, and the medians of the ratios to
    the solver, which for PDP with a δ is given the printed integer program."""
    question = wb.ModuloNoise(n=n, max_shift=3)
    differences = question.differences
    losses = loss_vector(loss, question.sizes)
    model = ModuloModel(
        question.sizes, differences, get_ratio_kind(notion), losses, has_delta=delta > 0
    )
    values, solver = model.values([1.0], delta, None), get_backend("highs")

    def bare() -> None:
        with solver.open(model.program) as session:
            session.solve(values)

    def raw() -> None:
        wb.design(question, epsilon=1, delta=delta, notion=notion, loss=loss, certify=False)

    def certified() -> None:
        wb.design(question, epsilon=1, delta=delta, notion=notion, loss=loss)

    row: dict[str, Any] = {"n": n, "notion": notion, "delta": delta, "loss": loss}
    turns = SLOW if notion == "pdp" and delta else REPEATS
    times, _ = turns_of({"solver": bare, "raw": raw, "certified": certified}, turns)
    row |= {f"{name}_ms": 1e3 * min(several) for name, several in times.items()}
    return row | {f"{name}_ratio": value for name, value in beside(times, "solver").items()}


def run() -> pd.DataFrame:
    """Every size, as the pure linear program and as DP with a delta; one size as PDP with a delta; one large one."""
    rows = [
        measure(n, notion, delta) for n in SIZES for notion, delta in (("pdp", 0.0), ("dp", 0.1))
    ]
    return pd.DataFrame([*rows, measure(20, "pdp", 0.1), measure(400, "pdp", 0.0, "squared")])


if __name__ == "__main__":
    print(run().to_string(index=False, float_format=lambda value: f"{value:.3g}"))
