"""One solver on one program in a process of its own: `python -P -m workbench.comparison.worker TASK ANSWER PARENT`.

TASK and ANSWER are files of `workbench.comparison.task`. An answer is written whole or not at all; a process that dies
leaves none, and its parent (a process id) says so. Of our packages only `solvers` is imported besides, and the backends
of others.
"""

from __future__ import annotations

import importlib
import sys
from functools import partial
from pathlib import Path
from typing import Any

from workbench.comparison.task import read_task, write_answer
from workbench.io.plugins import added
from workbench.io.processes import end_with_parent

__all__ = ["answer", "main"]


def answer(program: Any, solver: str, options: dict[str, Any]) -> dict[str, Any]:
    """Solve once, cold; what came back, or the error in words."""
    from solvers.backend import Options, backend, extend
    from solvers.errors import LicenceExceeded, SolverError
    from solvers.solution import Start

    extend(partial(added, "backends"))
    chosen = backend(solver)
    try:
        importlib.import_module(chosen.module)  # loading a library is no part of solving
        with chosen.open(program, Options(**options)) as session:
            solution = session.solve(start=Start.COLD)
    except LicenceExceeded as error:
        return {"status": "licence", "error": str(error)}
    except SolverError as error:
        return {"status": "error", "error": str(error)}
    return {
        "status": str(solution.termination), "x": solution.x, "objective": solution.objective, "bound": solution.bound,
        "residual": None if solution.residuals is None else solution.residuals.worst, "seconds": solution.seconds.total,
        "iterations": solution.iterations, "nodes": solution.nodes, "version": solution.version,
        "said": solution.raw_status, "error": None,
    }  # fmt: skip


def main(task: str, target: str, parent: str) -> None:
    """Read a task, solve it, write the answer; end with the process `parent` that started it."""
    end_with_parent(int(parent))
    write_answer(Path(target), answer(*read_task(Path(task))))


if __name__ == "__main__":
    main(*sys.argv[1:])
