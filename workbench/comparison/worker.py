"""Solve one program in a process of its own: `python -P -m workbench.comparison.worker PARENT`.

PARENT is the process id of the parent. The task, the arguments of `solve_task`, is read from stdin.
The answer is written to stdout. Both are pickled. A process that dies writes no answer. Only the
package `solvers` and external backends are imported.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import resource
import sys
from dataclasses import replace
from functools import partial
from typing import Any

from workbench.exact.objects import Record, Values
from workbench.io.plugins import list_extensions
from workbench.io.processes import end_with_parent

_BYTES_PER_KIBIBYTE = 1024
_BYTES_PER_MEGABYTE = 1e6


def solve_task(program: Any, solver: str, supported_options: Values, hot: bool) -> Record:
    """Solve a program once, cold, and return the answer, or the error as text.

    Args:
        program: program without parameters.
        solver: name of a solver.
        supported_options: option -> value for options that the solver supports.
        hot: whether a linear program is also solved again from the first solution, after its
            objective is changed a little.

    Returns:
        status (the termination; "licence" or "error" if there is no answer) and failure (None, or
        the error). An answer also has x, objective, bound, residual (largest violation of a row or
        bound), seconds, peak_mb (memory of the process), iterations, nodes, version and said (the
        solver's own status). With `hot` also hot_seconds, None if there was no second solve.
    """
    from workbench.solvers.backend import Options, get_backend, set_external_backends
    from workbench.solvers.errors import LicenceExceeded, SolverError
    from workbench.solvers.solution import Start

    set_external_backends(partial(list_extensions, "backends"))
    backend = get_backend(solver)
    options = Options(**supported_options)
    hot_seconds = None
    try:
        # The library is loaded first, because loading it is not part of the solve.
        importlib.import_module(backend.module)
        with backend.open(program, options) as session:
            solution = session.solve(start=Start.COLD)
        if hot and _has_time_left(solution.seconds, options.time_limit):
            hot_seconds = _time_hot_solve(program, backend, options)
    except LicenceExceeded as error:
        return {"status": "licence", "failure": str(error)}
    except SolverError as error:
        return {"status": "error", "failure": str(error)}
    residuals = solution.residuals
    answer: dict[str, Any] = {
        "status": str(solution.termination),
        "x": solution.x,
        "objective": solution.objective,
        "bound": solution.bound,
        "residual": residuals.max_violation if residuals else None,
        "seconds": solution.seconds,
        "peak_mb": _measure_peak_memory(),
        "iterations": solution.iterations,
        "nodes": solution.nodes,
        "version": solution.version,
        "said": solution.raw_status,
        "failure": None,
    }
    if hot:
        answer["hot_seconds"] = hot_seconds
    return answer


def _has_time_left(seconds: float, limit: float | None) -> bool:
    """Return whether two more solves surely end before the parent kills this process."""
    return limit is None or seconds < limit / 4


def _measure_peak_memory() -> float:
    """Return the peak memory of this process in megabytes."""
    # The maximum of getrusage also counts the parent on Linux if that is larger.
    with contextlib.suppress(OSError), open("/proc/self/status", encoding="ascii") as lines:
        kibibytes = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
        return float(kibibytes[0]) * _BYTES_PER_KIBIBYTE / _BYTES_PER_MEGABYTE
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # `getrusage` counts in bytes on macOS and in kibibytes elsewhere.
    bytes_per_unit = 1 if sys.platform == "darwin" else _BYTES_PER_KIBIBYTE
    return peak * bytes_per_unit / _BYTES_PER_MEGABYTE


def _time_hot_solve(program: Any, backend: Any, options: Any) -> float | None:
    """Return the seconds of a second, hot solve, after every coefficient of the objective changes
    by up to 1 %.

    Return None for a mixed-integer program, if the backend has no hot start, or if the second solve
    is not optimal.
    """
    import numpy as np

    from workbench.solvers.solution import Start, Termination

    if program.is_mip or not backend.capabilities().hot_start:
        return None
    losses = program.template.c
    # The sines change every loss differently, and by the same numbers in every run.
    changed_losses = losses * (1 + 0.01 * np.sin(np.arange(losses.size)))
    changed_program = replace(program, template=replace(program.template, c=changed_losses))
    with backend.open(program, options) as session:
        session.solve(start=Start.COLD)
        session.follow(changed_program)
        hot_solution = session.solve(start=Start.HOT)
    if hot_solution.termination is not Termination.OPTIMAL:
        return None
    seconds: float = hot_solution.seconds
    return seconds


def run_worker(parent: str) -> None:
    """Read a task, solve it and write the answer. End when the parent process ends.

    Args:
        parent: process id of the parent.
    """
    end_with_parent(int(parent))
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as stdout:
        # A solver may print to stdout, which must have the answer only.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        task = pickle.load(sys.stdin.buffer)
        stdout.write(pickle.dumps(solve_task(*task)))


if __name__ == "__main__":
    run_worker(*sys.argv[1:])
