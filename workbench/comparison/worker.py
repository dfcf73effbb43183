"""One solver on one program in a process of its own: `python -P -m workbench.comparison.worker PARENT`.

The task (program without parameters, solver, options, whether hot as well) comes pickled from its parent (a process id)
on stdin, the answer goes back on stdout; a process that dies leaves none. Of our packages only `solvers` is imported
besides, and the backends of others.
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


def solve_task(program: Any, solver: str, given: Values, hot: bool) -> Record:
    """Solve once, cold; what came back, or the error in words. hot: whether a linear program is solved again so."""
    from workbench.solvers.backend import Options, get_backend, set_external_backends
    from workbench.solvers.errors import LicenceExceeded, SolverError
    from workbench.solvers.solution import Start

    set_external_backends(partial(list_extensions, "backends"))
    chosen, options = get_backend(solver), Options(**given)
    try:
        importlib.import_module(chosen.module)  # loading a library is no part of solving
        with chosen.open(program, options) as session:
            solution = session.solve(start=Start.COLD)
        limit = options.time_limit
        quick = (
            limit is None or solution.seconds < limit / 4
        )  # so much again is left before the process is ended
        resolved = _time_hot_solve(program, chosen, options) if hot and quick else None
    except LicenceExceeded as error:
        return {"status": "licence", "failure": str(error)}
    except SolverError as error:
        return {"status": "error", "failure": str(error)}
    return {
        "status": str(solution.termination),
        "x": solution.x,
        "objective": solution.objective,
        "bound": solution.bound,
        "residual": solution.residuals.max_violation if solution.residuals else None,
        "seconds": solution.seconds,
        "peak_mb": _measure_peak_memory(),
        "iterations": solution.iterations,
        "nodes": solution.nodes,
        "version": solution.version,
        "said": solution.raw_status,
        "failure": None,
        **({"hot_seconds": resolved} if hot else {}),
    }


def _measure_peak_memory() -> float:
    """The most memory that this process has held, in megabytes; Linux's maximum of getrusage is that of the parent,
    too, where this one is larger."""
    with contextlib.suppress(OSError), open("/proc/self/status", encoding="ascii") as lines:
        return (
            next(float(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024 / 1e6
        )
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 1e6 if sys.platform == "darwin" else most * 1024 / 1e6


def _time_hot_solve(program: Any, chosen: Any, options: Any) -> float | None:
    """Seconds of a second solve, hot, with every loss moved by up to 1 %; None where a backend has no hot start."""
    import numpy as np

    from workbench.solvers.solution import Start, Termination

    if program.is_mip or not chosen.capabilities().hot_start:
        return None
    loss = program.template.c
    moved = loss * (1 + 0.01 * np.sin(np.arange(loss.size)))
    with chosen.open(program, options) as session:
        session.solve(start=Start.COLD)
        session.follow(replace(program, template=replace(program.template, c=moved)))
        solution = session.solve(start=Start.HOT)
    return solution.seconds if solution.termination is Termination.OPTIMAL else None


def run_worker(parent: str) -> None:
    """Read a task, solve it, write the answer; end with the process `parent` that started it."""
    end_with_parent(int(parent))
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as stdout:
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # what a solver prints is no answer
        stdout.write(pickle.dumps(solve_task(*pickle.load(sys.stdin.buffer))))


if __name__ == "__main__":
    run_worker(*sys.argv[1:])
