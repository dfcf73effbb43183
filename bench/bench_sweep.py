"""A sweep of 20,000 small linear programs, ledger included, against the bare solver's loop, on the same two cores.

Both sides walk the same grid of DP noise, 200 budgets δ by 100 budgets ε, in the same order, on two worker processes
that are warm: a worker builds one model per task and changes it in place. The bare loop is highspy alone: change the
entries that move, run, read x and the objective, and send the objectives back. The sweep also checks the numbers that
go to the solver, recomputes the objective, re-checks 1 % of the hot starts cold, and commits every row to a new ledger;
where many coefficients move, it passes the LP whole with its last basis, cheaper than the bare loop's call for each.
Rows with check = "none" say "claimed" and "audited false"; "bound" recomputes bound and residual too. CPU seconds are
those of this process and of its workers together; both sides take turns, the least of each counts, and `ratio` is the
median over turns. `cold_cpu_s` is a sweep whose workers are not started yet, imports included.
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

from bench import beside, turns_of
from workbench.sweeps.ledger import Ledger
from workbench.sweeps.run import sweep
from workbench.sweeps.specification import Chunk, Spec, read_spec
from workbench.sweeps.workers import get_executor

TITLE = "A sweep of 20,000 small LPs, ledger included, against the bare solver loop (two cores)"
JOBS = 2
INSTANCES = (
    (8, 3, "none"),
    (19, 5, "none"),
    (40, 5, "none"),
    (40, 5, "bound"),
)  # n, max_shift, check


def run() -> pd.DataFrame:
    """One row per instance: CPU seconds of the sweep and of the bare loop, their ratio, milliseconds a program."""
    rows = []
    with two_cores(), tempfile.TemporaryDirectory() as folder:
        for n, max_shift, check in INSTANCES:
            spec = read_spec({"grid": grid(n, max_shift, check)})
            assert len(spec) == 20_000
            get_executor(JOBS).shutdown(kill_workers=True)
            begin = processor_seconds()
            ours(spec, Path(folder))
            cold = processor_seconds() - begin
            calls = {"sweep": partial(ours, spec, Path(folder)), "bare": partial(bare, spec)}
            times, answers = turns_of(calls, clock=processor_seconds)
            assert np.allclose(answers["sweep"], answers["bare"], rtol=1e-6, atol=1e-9)
            least = {side: min(several) for side, several in times.items()}
            size = "x".join(map(str, _program(spec.chunks[0]).shape))
            rows.append(
                {"instance": f"n={n} mu={max_shift}, {size}, check {check}", "programs": len(spec)}
                | {f"{side}_cpu_s": seconds for side, seconds in least.items()}
                | {"ratio": beside(times, "bare")["sweep"]}
                | {f"{side}_ms": 1e3 * seconds / len(spec) for side, seconds in least.items()}
                | {"cold_cpu_s": cold}
            )
    return pd.DataFrame(rows)


def processor_seconds() -> float:
    """What this process and its workers took of the processors so far, those that have ended included."""
    own = psutil.Process()
    return sum(sum(process.cpu_times()[:4]) for process in (own, *own.children(recursive=True)))


def grid(n: int, max_shift: int, check: str) -> dict[str, Any]:
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
def two_cores() -> Iterator[None]:
    """Keep this process, and the workers it starts, on two cores."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:JOBS])
    try:
        yield
    finally:
        get_executor(JOBS).shutdown(kill_workers=True)
        os.sched_setaffinity(0, before)


def ours(spec: Spec, folder: Path) -> list[float]:
    """The objectives of a whole sweep into a new ledger, in the order of the grid."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        path = Path(place) / "sweep.sqlite"
        outcome = sweep(spec, path, jobs=JOBS)
        assert outcome.solved == len(spec)
        with Ledger(path, create=False) as book:
            objectives = {row.key: row.answer_values["objective"] for row in book.rows()}
    return [objectives[key] for key in spec.keys]


def bare(spec: Spec) -> list[float]:
    """The objectives of the bare loop over the same tasks on the same workers."""
    futures = [get_executor(JOBS).submit(loop, chunk.fixed, chunk.points) for chunk in spec.chunks]
    return [value for future in futures for value in future.result()]


_models: dict[str, Any] = {}


def _program(chunk: Chunk) -> Any:
    return _model(chunk.fixed).program


def _model(fixed: Mapping[str, Any]) -> Any:
    """The compiled model, once for each process: both sides share CVXPY's work."""
    from workbench.models.modulo.program import ModuloModel, loss_vector
    from workbench.questions.modulo_noise import ModuloNoise

    question = ModuloNoise(n=fixed["n"], max_shift=fixed["max_shift"])
    if repr(question) not in _models:
        _models[repr(question)] = ModuloModel(
            question.sizes,
            question.differences,
            "hockey-stick",
            loss_vector("error-rate", question.sizes),
            groups=(0,) * len(question.differences),
        )
    return _models[repr(question)]


def loop(fixed: Mapping[str, Any], points: tuple[Mapping[str, Any], ...]) -> list[float]:
    """highspy as one would write it by hand: the entries that move, run, x and the objective."""
    import highspy

    model = _model(fixed)
    program = model.program
    h = highspy.Highs()
    h.setOptionValue("output_flag", False)
    h.setOptionValue("threads", 1)
    first = program.data(model.values([float(points[0]["epsilon"])], float(points[0]["delta"])))
    data = first.scaled(program.scale)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = data.c.size, data.row_lower.size
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = data.c, data.lower, data.upper
    lp.row_lower_, lp.row_upper_ = data.row_lower, data.row_upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = (
        data.A.indptr,
        data.A.indices,
        data.A.data,
    )
    h.passModel(lp)
    entry, right = program.moves["A"], program.moves["row_upper"]
    A = program.template.A
    rows, columns = (
        A.indices[entry.place].tolist(),
        np.repeat(np.arange(A.shape[1]), np.diff(A.indptr))[entry.place].tolist(),
    )
    moved = right.place.astype(np.int32)
    low = data.row_lower[moved]
    objectives, last = [], None
    for point in points:
        epsilon, delta = float(point["epsilon"]), float(point["delta"])
        p = program.vector({"exp_epsilon": np.array([np.exp(epsilon)]), "delta": delta})
        if epsilon != last:
            for i, j, value in zip(
                rows, columns, (entry.base + entry.matrix @ p).tolist(), strict=True
            ):
                h.changeCoeff(i, j, value)
            last = epsilon
        h.changeRowsBounds(moved.size, moved, low, (right.base + right.matrix @ p) * program.scale)
        h.run()
        _x = np.array(h.getSolution().col_value)
        objectives.append(h.getObjectiveValue() / program.scale)
    return objectives


if __name__ == "__main__":
    print(run().to_string(index=False, float_format="%.3g"))
