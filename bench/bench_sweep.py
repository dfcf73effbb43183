"""Compare a sweep of 20,000 small linear programs with a loop on the bare solver.

Both sides solve the programs of DP noise for the same budgets in the same order: 200 values of δ by
100 values of ε. Both run on two worker processes. A worker builds one model for each task (a part
of the grid) and changes its numbers from point to point.

    bare    uses highspy alone: it changes the entries that move, runs the solver, reads x and the
            objective, and sends the objectives back
    sweep   also checks the numbers, recomputes the objective, solves 1 % of the programs again from
            a cold start, and commits every row to a new ledger. If many coefficients move, it
            passes the whole LP with its last basis, which is faster than one call for each
            coefficient

With check "bound", the sweep also recomputes bound and residual of every row.

CPU seconds count this process and its workers together. Both sides take turns, and the fastest turn
of each counts. `ratio` is the median over turns. `cold_cpu_s` is the time of a sweep that first
starts its workers, with their imports.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil

from bench import median_ratios, time_turns
from workbench.solvers.data import Data
from workbench.sweeps.ledger import Ledger
from workbench.sweeps.run import sweep
from workbench.sweeps.specification import Spec, read_spec
from workbench.sweeps.workers import get_executor

TITLE = "A sweep of 20,000 small LPs, ledger included, against the bare solver loop (two cores)"
JOBS = 2  # Worker processes, and cores.
# n, max_shift and check.
INSTANCES = ((8, 3, "none"), (19, 5, "none"), (40, 5, "none"), (40, 5, "bound"))
_models: dict[str, Any] = {}  # Compiled models of this process, by question.


def run_sweep_benchmark() -> pd.DataFrame:
    """Return one row for each instance.

    It has the CPU seconds of the sweep and of the bare loop, their ratio, and the milliseconds for
    one program.
    """
    rows = []
    with use_two_cores(), tempfile.TemporaryDirectory() as folder_name:
        folder = Path(folder_name)
        for n, max_shift, check in INSTANCES:
            spec = read_spec({"grid": make_grid_table(n, max_shift, check)})
            assert len(spec) == 20_000
            get_executor(JOBS).shutdown(kill_workers=True)
            begin = measure_processor_seconds()
            run_sweep(spec, folder)
            cold_seconds = measure_processor_seconds() - begin
            calls = {
                "sweep": partial(run_sweep, spec, folder),
                "bare": partial(run_bare_loops, spec),
            }
            times, results = time_turns(calls, clock=measure_processor_seconds)
            assert np.allclose(results["sweep"], results["bare"], rtol=1e-6, atol=1e-9)
            seconds = {side: min(turn_times) for side, turn_times in times.items()}
            size = "x".join(map(str, _get_model(spec.chunks[0].fixed).program.shape))
            row: dict[str, Any] = {
                "instance": f"n={n} mu={max_shift}, {size}, check {check}",
                "programs": len(spec),
            }
            for side in times:
                row[f"{side}_cpu_s"] = seconds[side]
            row["ratio"] = median_ratios(times, "bare")["sweep"]
            for side in times:
                row[f"{side}_ms"] = 1e3 * seconds[side] / len(spec)
            row["cold_cpu_s"] = cold_seconds
            rows.append(row)
    return pd.DataFrame(rows)


def measure_processor_seconds() -> float:
    """Return the CPU seconds of this process and its workers, including those that have ended."""
    process = psutil.Process()
    processes = (process, *process.children(recursive=True))
    return sum(sum(process.cpu_times()[:4]) for process in processes)


def make_grid_table(n: int, max_shift: int, check: str) -> dict[str, Any]:
    """Return the specification of the grid of budgets.

    Args:
        n: largest answer.
        max_shift: largest difference of neighbours.
        check: "none" or "bound".
    """
    return {
        "model": "modulo",
        "n": n,
        "max_shift": max_shift,
        "notion": "dp",
        "check": check,
        "delta": "0.001:0.2:200",
        "epsilon": "0.52:2.5:100",
    }


@contextlib.contextmanager
def use_two_cores() -> Iterator[None]:
    """Run this process, and the workers it starts, on two cores."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(cores)[:JOBS])
    try:
        yield
    finally:
        get_executor(JOBS).shutdown(kill_workers=True)
        os.sched_setaffinity(0, cores)


def run_sweep(spec: Spec, folder: Path) -> list[float]:
    """Run the whole sweep into a new ledger.

    Args:
        spec: specification of the sweep.
        folder: folder in which the ledger is made.

    Returns:
        The objectives in the order of the grid.
    """
    with tempfile.TemporaryDirectory(dir=folder) as ledger_folder:
        path = Path(ledger_folder) / "sweep.sqlite"
        outcome = sweep(spec, path, jobs=JOBS)
        assert outcome.solved == len(spec)
        with Ledger(path, create=False) as ledger:
            objectives = {row.key: row.answer_values["objective"] for row in ledger.rows()}
    return [objectives[key] for key in spec.keys]


def run_bare_loops(spec: Spec) -> list[float]:
    """Run the bare loop over the same tasks on the same workers.

    Args:
        spec: specification of the sweep.

    Returns:
        The objectives in the order of the grid.
    """
    executor = get_executor(JOBS)
    futures = [executor.submit(run_bare_loop, chunk.fixed, chunk.points) for chunk in spec.chunks]
    objectives = []
    for future in futures:
        objectives += future.result()
    return objectives


def _get_model(fixed_values: Mapping[str, Any]) -> Any:
    """Return the compiled model of a question. It is compiled once for each process.

    Args:
        fixed_values: options of the sweep, of which n and max_shift are used.
    """
    from workbench.models.modulo.program import ModuloModel, loss_vector
    from workbench.questions.modulo_noise import ModuloNoise

    question = ModuloNoise(n=fixed_values["n"], max_shift=fixed_values["max_shift"])
    key = repr(question)
    if key not in _models:
        _models[key] = ModuloModel(
            question.sizes,
            question.differences,
            "hockey-stick",
            loss_vector("error-rate", question.sizes),
            groups=(0,) * len(question.differences),
        )
    return _models[key]


def _load_program(h: Any, data: Data) -> None:
    """Load the numbers of a linear program into a Highs object."""
    import highspy

    lp = highspy.HighsLp()
    lp.num_col_ = data.c.size
    lp.num_row_ = data.row_lower.size
    lp.col_cost_ = data.c
    lp.col_lower_ = data.lower
    lp.col_upper_ = data.upper
    lp.row_lower_ = data.row_lower
    lp.row_upper_ = data.row_upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = data.A.indptr
    lp.a_matrix_.index_ = data.A.indices
    lp.a_matrix_.value_ = data.A.data
    h.passModel(lp)


def run_bare_loop(
    fixed_values: Mapping[str, Any], points: tuple[Mapping[str, Any], ...]
) -> list[float]:
    """Solve the programs of a task with highspy, as one would write it by hand.

    Args:
        fixed_values: options that are the same at all points.
        points: epsilon and delta of each program.

    Returns:
        The objectives.
    """
    import highspy

    model = _get_model(fixed_values)
    program = model.program
    h = highspy.Highs()
    h.setOptionValue("output_flag", False)
    h.setOptionValue("threads", 1)
    values = model.values([float(points[0]["epsilon"])], float(points[0]["delta"]))
    data = program.data(values).with_scale(program.scale)
    _load_program(h, data)
    # ε moves coefficients, and δ moves right-hand sides.
    coefficient_move = program.moves["A"]
    side_move = program.moves["row_upper"]
    A = program.template.A
    column_index = np.repeat(np.arange(A.shape[1]), np.diff(A.indptr))
    rows = A.indices[coefficient_move.positions].tolist()
    columns = column_index[coefficient_move.positions].tolist()
    moving_rows = side_move.positions.astype(np.int32)
    low = data.row_lower[moving_rows]
    objectives = []
    last_epsilon = None
    for point in points:
        epsilon = float(point["epsilon"])
        delta = float(point["delta"])
        exp_epsilon = np.array([np.exp(epsilon)])
        p = program.stack_parameters({"exp_epsilon": exp_epsilon, "delta": delta})
        if epsilon != last_epsilon:
            entries = (coefficient_move.base + coefficient_move.matrix @ p).tolist()
            for i, j, value in zip(rows, columns, entries, strict=True):
                h.changeCoeff(i, j, value)
            last_epsilon = epsilon
        high = (side_move.base + side_move.matrix @ p) * program.scale
        h.changeRowsBounds(moving_rows.size, moving_rows, low, high)
        h.run()
        _x = np.array(h.getSolution().col_value)
        objectives.append(h.getObjectiveValue() / program.scale)
    return objectives


if __name__ == "__main__":
    print(run_sweep_benchmark().to_string(index=False, float_format="%.3g"))
