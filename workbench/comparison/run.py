"""Run a suite: the same program for every solver, one process per run, cold, a time limit, one thread by default.

What happens to a process is a row: a crash ("crashed", with the signal), one that does not come back within GRACE
seconds of its limit ("killed"), a size the licence does not cover ("licence"), an error. A solver that cannot state a
kind of program (an LP solver and a MILP) is not run on it: status "not applicable". Every answer is judged by the
parent: residuals recomputed, the mechanism audited and certified in exact arithmetic.
"""

from __future__ import annotations

import math
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from itertools import count
from typing import Any

import numpy as np

from workbench.comparison.report import (
    COLUMNS,
    EXACT_GAP,
    make_suite_plots,
    recommend_by_kind,
    summarise_runs,
)
from workbench.errors import WorkbenchError
from workbench.exact.objects import Values
from workbench.io.processes import ONE_THREAD_ENVIRONMENT
from workbench.io.result import Progress, Result, Row, gather_rows, ignore_progress
from workbench.pipeline.programs import Instance
from workbench.solvers.backend import get_backend, list_backend_names
from workbench.solvers.contract import Backend
from workbench.solvers.program import Program
from workbench.solvers.search import Deadline
from workbench.solvers.solution import relative_gap

GRACE_SECONDS = 20.0  # seconds beyond the time limit, for starting, reading in and giving up
GOOD_GAP = 1e-6  # an answer solves an instance with a gap and residuals up to here, relative to max(1, |objective|)


def list_installed_solvers() -> list[str]:
    """Every installed solver."""
    return [label for label in list_backend_names() if get_backend(label).is_installed()]


def run_suite(
    instances: Sequence[Instance],
    solvers: Sequence[str],
    *,
    title: str = "Solver comparison",
    time_limit: float = 20.0,
    progress: Progress = ignore_progress,
    hot: bool = False,
    repeats: int = 1,
    settings: Values | None = None,
) -> Result:
    """Every solver on every instance, judged; Ctrl-C stops it and the rows so far are kept.

    time_limit: seconds of one solve. hot: whether linear programs are re-solved hot, too, with every loss moved by up
    to 1 % (row "hot_seconds"). repeats: runs of each, whose median and quartiles are its seconds. settings: more
    options of the solvers, `threads` (1 by default) and tolerances.
    """
    total, done = len(instances) * len(solvers), count()
    options = {"time_limit": time_limit, "threads": 1, **(settings or {})}

    def rows() -> Iterator[Row]:
        for instance in instances:
            program = instance.program_at_values()
            bound, value = instance.known_optimum
            shared = {"instance": instance.name, "model": instance.model, **describe_size(program)}
            shared |= {"known_bound": bound, "known_value": value}
            for solver in solvers:
                progress(next(done), total, f"{instance.name} by {solver}")
                row = _make_unfit_row(get_backend(solver), program)
                if row is None:
                    row = _merge_repeats(
                        [run_one(program, solver, options, hot=hot) for _ in range(repeats)]
                    )
                    row |= _judge_answer(instance, row.pop("x", None), row.get("objective"))
                yield shared | {"solver": solver} | row

    result = gather_rows(title, rows(), total, name="runs", columns=COLUMNS, draw=make_suite_plots)
    result = replace(result, rows=add_verdicts(result.rows))
    missing = dict.fromkeys(
        f"{row['failure']}." for row in result if "is not installed" in str(row.get("failure"))
    )
    if all(row["status"] == "not applicable" for row in result):
        return replace(result, sentences=tuple(missing))
    return replace(
        result,
        sentences=(*recommend_by_kind(summarise_runs(result.to_frame(), time_limit)), *missing),
    )


def describe_size(program: Program) -> Row:
    """The kind of a program, its rows and columns."""
    rows, columns = program.shape
    return {"kind": "MILP" if program.is_mip else "LP", "rows": rows, "columns": columns}


def _make_unfit_row(solver: Backend, program: Any) -> Row | None:
    """The row of a solver that is not installed, or cannot state such programs."""
    if not solver.is_installed():
        missing = f"{solver.label} is not installed (pip install {solver.distribution})"
        return {"status": "not applicable", "failure": missing}
    able = solver.capabilities()
    whole = bool(program.template.integrality.all())
    if (able.milp if program.is_mip else able.lp) and (whole or not able.integer_only):
        return None
    return {"status": "not applicable", "failure": f"{solver.label} solves {able.describe()}"}


def _merge_repeats(rows: Sequence[Row]) -> Row:
    """One row of several runs: the first, or the first that is not optimal; the median of their seconds with its
    quartiles, and the largest memory."""
    row = max(rows, key=lambda row: bool(row["status"] != "optimal"))
    seconds = [row["seconds"] for row in rows if row.get("seconds") is not None]
    if len(seconds) < len(rows):
        return row
    low, middle, high = np.quantile(seconds, (0.25, 0.5, 0.75)).tolist()
    peak = max(row["peak_mb"] for row in rows)
    return row | {
        "seconds": middle,
        "repeats": len(rows),
        "seconds_low": low,
        "seconds_high": high,
        "peak_mb": peak,
    }


def select_supported_options(solver: str, options: Values) -> Values:
    """The options that a solver has words for."""
    known = get_backend(solver).supported_options
    return {name: value for name, value in options.items() if name in known}


def run_one(program: Program, solver: str, options: Values, *, hot: bool = False) -> Row:
    """One run of a program without parameters in a process of its own, killed when it does not come back.

    options: of every solver (time_limit among them); those that this one has no word for are "left_out".
    """
    given, time_limit = select_supported_options(solver, options), options["time_limit"]
    left_out = [name for name in options if name not in given]
    clock = Deadline()
    try:
        ended = subprocess.run(  # which kills it when this process is interrupted, too
            [sys.executable, "-P", "-m", "workbench.comparison.worker", str(os.getpid())],
            input=pickle.dumps((program, solver, given, hot)),
            capture_output=True,
            timeout=time_limit + GRACE_SECONDS,
            env={**os.environ, **ONE_THREAD_ENVIRONMENT},
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        late = f"no answer {GRACE_SECONDS:g} s after the time limit"
        return {"status": "killed", "wall": clock.elapsed_seconds, "failure": late}
    row = {"wall": clock.elapsed_seconds, "threads": given.get("threads")}
    row["tolerance"] = given.get("feasibility_tolerance")
    if ended.returncode == 0 and ended.stdout:
        row |= pickle.loads(ended.stdout)
    else:
        row |= {
            "status": "crashed",
            "failure": _explain_crash(ended.returncode, ended.stderr.decode("utf-8", "replace")),
        }
    if left_out:
        row["left_out"] = ", ".join(left_out)
    return row


def _explain_crash(code: int, stderr: str) -> str:
    last = stderr.strip().splitlines()[-1] if stderr.strip() else "no word"
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    return f"the process ended with {how}: {last}"


def _judge_answer(instance: Instance, x: Any, objective: float | None) -> Row:
    """The exact judgement of a point, or what kept it from being judged."""
    if x is None or objective is None or instance.judge is None:
        return {}
    try:
        verdict = instance.judge(x, objective)
    except (
        WorkbenchError,
        ValueError,
        ArithmeticError,
    ) as error:  # a point too wild to be a mechanism
        return {"private": False, "certified": False, "judgement": f"no mechanism: {error}"}
    return asdict(verdict)


def add_verdicts(rows: Sequence[Row]) -> list[Row]:
    """Rows with what only all of them together can say.

    best_objective: the least that is reached beyond doubt, by a certified mechanism or (without one) a point whose
        residual is up to EXACT, however large its objective; a point with residuals of 1e-6 may lie below the optimum
        by much more than that;
    best_bound: the largest bound that this does not contradict;
    gap_to_best, certified_gap: |objective - best_bound| / max(1, |objective|), as returned and as certified;
    contradicted: a bound above what is reached;
    solved: optimal, with residuals and a gap to the best bound up to GOOD.
    """
    return [
        _add_verdict(row, [other for other in rows if other["instance"] == row["instance"]])
        for row in rows
    ]


def _add_verdict(row: Row, same: Sequence[Row]) -> Row:
    """A row and its verdict. same: all rows of its instance."""
    reached = [row.get("known_value"), *(other.get("certified_objective") for other in same)]
    reached += [
        other["objective"]
        for other in same
        if other.get("certified_objective") is None
        and other.get("residual") is not None
        and other["residual"] <= EXACT_GAP
    ]
    best = min((value for value in reached if value is not None), default=None)
    most = math.inf if best is None else best + GOOD_GAP * max(1.0, abs(best))
    bounds = [row.get("known_bound"), *(other.get("bound") for other in same)]
    bound = max((value for value in bounds if value is not None and value <= most), default=None)
    gap, own = relative_gap(row.get("objective"), bound), row.get("bound")
    return row | {
        "best_objective": best,
        "best_bound": bound,
        "gap_to_best": gap,
        "gap": relative_gap(row.get("objective"), own),
        "certified_gap": relative_gap(row.get("certified_objective"), bound),
        "contradicted": own is not None and own > most,
        "solved": row["status"] == "optimal"
        and _has_feasible_point(row)
        and gap is not None
        and gap <= GOOD_GAP,
    }


def _has_feasible_point(row: Row) -> bool:
    """Whether a row has a point whose recomputed residuals are up to GOOD, relative to max(1, |objective|)."""
    residual, objective = row.get("residual"), row.get("objective")
    return (
        residual is not None
        and objective is not None
        and residual <= GOOD_GAP * max(1.0, abs(objective))
    )
