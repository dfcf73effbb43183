"""Run the programs of a suite with several solvers and judge the answers.

Each run is a process of its own, with a cold start, a time limit and by default one thread. Every
run gives a row, whose status says how it ended. Besides the terminations of solvers there are:

    crashed           the process ended with a signal or an error code
    killed            the process did not return within GRACE_SECONDS after its time limit
    licence           the program is larger than the licence of the solver allows
    error             the solver reported an error
    not applicable    the solver is not run: it is not installed, or solves no such programs

This process judges every answer: it audits and certifies the mechanism in exact arithmetic.
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

# A process is killed this many seconds after its time limit. They include starting and stopping it.
GRACE_SECONDS = 20.0
# An instance counts as solved if gap and residuals, relative to max(1, |objective|), are at most
# this.
GOOD_GAP = 1e-6


def list_installed_solvers() -> list[str]:
    """Return the names of the installed solvers."""
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
    """Run every solver on every instance and judge the answers. Ctrl-C keeps the finished rows.

    Args:
        instances: the programs, each with a function that judges a solution.
        solvers: names of solvers.
        title: title of the result.
        time_limit: time limit of one solve, in seconds.
        progress: called with (finished runs, runs, next run).
        hot: whether linear programs are also solved again from the first solution, after every loss
            is changed by up to 1 % (column "hot_seconds").
        repeats: number of runs of each solve. The seconds are their median and quartiles.
        settings: more options of the solvers: `threads` (default: 1) and tolerances.

    Returns:
        One row per instance and solver, with the columns of `workbench.comparison.report`, and
        sentences that recommend a solver for each kind of program.
    """
    options = {"time_limit": time_limit, "threads": 1, **(settings or {})}
    total = len(instances) * len(solvers)
    runs = count()

    def rows() -> Iterator[Row]:
        """Yield the rows of all instances and solvers as they are solved."""
        for instance in instances:
            program = instance.program_at_values()
            shared_columns = _describe_instance(instance, program)
            for solver in solvers:
                progress(next(runs), total, f"{instance.name} by {solver}")
                row = _make_unfit_row(get_backend(solver), program)
                if row is None:
                    repeated_rows = [
                        run_one(program, solver, options, hot=hot) for _ in range(repeats)
                    ]
                    row = _merge_repeats(repeated_rows)
                    row |= _judge_answer(instance, row.pop("x", None), row.get("objective"))
                yield shared_columns | {"solver": solver} | row

    result = gather_rows(title, rows(), total, name="runs", columns=COLUMNS, draw=make_suite_plots)
    result = replace(result, rows=add_verdicts(result.rows))
    sentences = _describe_missing_solvers(result.rows)
    if any(row["status"] != "not applicable" for row in result):
        summary = summarise_runs(result.to_frame(), time_limit)
        sentences = [*recommend_by_kind(summary), *sentences]
    return replace(result, sentences=tuple(sentences))


def _describe_missing_solvers(rows: Sequence[Row]) -> list[str]:
    """List the sentences about solvers that are not installed, each one once."""
    failures = [str(row.get("failure")) for row in rows]
    missing = [f"{failure}." for failure in failures if "is not installed" in failure]
    return list(dict.fromkeys(missing))


def describe_size(program: Program) -> Row:
    """Return the kind of a program and the number of its rows and columns.

    Args:
        program: the program.
    """
    rows, columns = program.shape
    return {"kind": "MILP" if program.is_mip else "LP", "rows": rows, "columns": columns}


def _describe_instance(instance: Instance, program: Program) -> Row:
    """Return the columns of an instance that are the same for every solver."""
    bound, value = instance.known_optimum
    return {
        "instance": instance.name,
        "model": instance.model,
        **describe_size(program),
        "known_bound": bound,
        "known_value": value,
    }


def _make_unfit_row(solver: Backend, program: Any) -> Row | None:
    """Return the row of a solver that is not installed or cannot solve a program, else None."""
    if not solver.is_installed():
        failure = f"{solver.label} is not installed (pip install {solver.distribution})"
        return {"status": "not applicable", "failure": failure}
    capabilities = solver.capabilities()
    all_integer = bool(program.template.integrality.all())
    solves_kind = capabilities.milp if program.is_mip else capabilities.lp
    if solves_kind and (all_integer or not capabilities.integer_only):
        return None
    failure = f"{solver.label} solves {capabilities.describe()}"
    return {"status": "not applicable", "failure": failure}


def _merge_repeats(rows: Sequence[Row]) -> Row:
    """Merge the rows of several runs of one solve.

    The row is the first one that is not optimal, else the first. It has the median of the seconds
    with quartiles, and the largest memory.
    """
    # Of equal rows, `max` returns the first one.
    merged_row = max(rows, key=lambda row: bool(row["status"] != "optimal"))
    seconds = [row["seconds"] for row in rows if row.get("seconds") is not None]
    if len(seconds) < len(rows):
        return merged_row
    low, middle, high = np.quantile(seconds, (0.25, 0.5, 0.75)).tolist()
    return merged_row | {
        "seconds": middle,
        "repeats": len(rows),
        "seconds_low": low,
        "seconds_high": high,
        "peak_mb": max(row["peak_mb"] for row in rows),
    }


def select_supported_options(solver: str, options: Values) -> Values:
    """Return the options that a solver supports.

    Args:
        solver: name of a solver.
        options: options of any solver.
    """
    supported_names = get_backend(solver).supported_options
    return {name: value for name, value in options.items() if name in supported_names}


def run_one(program: Program, solver: str, options: Values, *, hot: bool = False) -> Row:
    """Solve a program in a process of its own, which is killed if it does not return in time.

    Args:
        program: program without parameters.
        solver: name of a solver.
        options: options of any solver, with a time_limit. The unsupported ones are listed in the
            column "left_out".
        hot: whether a linear program is also solved again from the first solution.

    Returns:
        The fields of `worker.solve_task`, and wall (seconds of the process), threads, tolerance
        and left_out. The status is "killed" or "crashed" if the process gave no answer.
    """
    supported_options = select_supported_options(solver, options)
    left_out = [name for name in options if name not in supported_options]
    clock = Deadline()
    try:
        # subprocess.run also kills the process when this one is interrupted. With -P, no file of
        # the current folder can replace a module.
        process = subprocess.run(
            [sys.executable, "-P", "-m", "workbench.comparison.worker", str(os.getpid())],
            input=pickle.dumps((program, solver, supported_options, hot)),
            capture_output=True,
            timeout=options["time_limit"] + GRACE_SECONDS,
            env={**os.environ, **ONE_THREAD_ENVIRONMENT},
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        failure = f"no answer {GRACE_SECONDS:g} s after the time limit"
        return {"status": "killed", "wall": clock.elapsed_seconds, "failure": failure}
    row: Row = {
        "wall": clock.elapsed_seconds,
        "threads": supported_options.get("threads"),
        "tolerance": supported_options.get("feasibility_tolerance"),
    }
    if process.returncode == 0 and process.stdout:
        row |= pickle.loads(process.stdout)
    else:
        failure = _describe_crash(process.returncode, process.stderr.decode("utf-8", "replace"))
        row |= {"status": "crashed", "failure": failure}
    if left_out:
        row["left_out"] = ", ".join(left_out)
    return row


def _describe_crash(code: int, stderr: str) -> str:
    """Return how a process ended: its signal or exit code, and its last line of error output."""
    lines = stderr.strip().splitlines()
    reason = lines[-1] if lines else "no message"
    ending = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    return f"the process ended with {ending}: {reason}"


def _judge_answer(instance: Instance, x: Any, objective: float | None) -> Row:
    """Return the columns of the exact verdict on a point (the fields of `Judged`).

    Empty if there is no point or no judge. If the point is no mechanism, the column `judgement` has
    the reason.
    """
    if x is None or objective is None or instance.judge is None:
        return {}
    try:
        verdict = instance.judge(x, objective)
    except (WorkbenchError, ValueError, ArithmeticError) as error:
        # The point is so far from feasible that it is no mechanism.
        return {"private": False, "certified": False, "judgement": f"no mechanism: {error}"}
    return asdict(verdict)


def add_verdicts(rows: Sequence[Row]) -> list[Row]:
    """Add the columns that need the rows of all solvers.

    best_objective: smallest value that is certain, from a certified mechanism. Without one, a point
        with residuals of at most EXACT_GAP counts, whatever the size of its objective. A point with
        residuals of 1e-6 may lie below the optimum by much more than that.
    best_bound: largest bound that best_objective does not contradict.
    gap_to_best, certified_gap: |objective - best_bound| / max(1, |objective|), as returned and as
        certified.
    contradicted: whether the bound is above best_objective.
    solved: whether the status is optimal, and residuals and gap_to_best are at most GOOD_GAP.

    Args:
        rows: rows of all runs.
    """
    return [
        _add_verdict(
            row, [other_row for other_row in rows if other_row["instance"] == row["instance"]]
        )
        for row in rows
    ]


def _add_verdict(row: Row, same_instance: Sequence[Row]) -> Row:
    """Add the verdict to one row, given all rows of its instance."""
    best = _find_best_objective(row, same_instance)
    limit = math.inf
    if best is not None:
        limit = best + GOOD_GAP * max(1.0, abs(best))
    bounds = [row.get("known_bound"), *(other_row.get("bound") for other_row in same_instance)]
    possible_bounds = [value for value in bounds if value is not None and value <= limit]
    best_bound = max(possible_bounds, default=None)
    own_bound = row.get("bound")
    gap_to_best = relative_gap(row.get("objective"), best_bound)
    is_close = gap_to_best is not None and gap_to_best <= GOOD_GAP
    return row | {
        "best_objective": best,
        "best_bound": best_bound,
        "gap_to_best": gap_to_best,
        "gap": relative_gap(row.get("objective"), own_bound),
        "certified_gap": relative_gap(row.get("certified_objective"), best_bound),
        "contradicted": own_bound is not None and own_bound > limit,
        "solved": row["status"] == "optimal" and _has_feasible_point(row) and is_close,
    }


def _find_best_objective(row: Row, same_instance: Sequence[Row]) -> float | None:
    """Return the smallest objective that is certain for an instance, or None."""
    values = [row.get("known_value")]
    for other_row in same_instance:
        residual = other_row.get("residual")
        value = other_row.get("certified_objective")
        if value is None and residual is not None and residual <= EXACT_GAP:
            value = other_row["objective"]
        values.append(value)
    return min((value for value in values if value is not None), default=None)


def _has_feasible_point(row: Row) -> bool:
    """Return whether residuals are at most GOOD_GAP, relative to max(1, |objective|)."""
    residual = row.get("residual")
    objective = row.get("objective")
    if residual is None or objective is None:
        return False
    return bool(residual <= GOOD_GAP * max(1.0, abs(objective)))
