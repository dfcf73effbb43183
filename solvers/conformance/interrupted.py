"""Run two long solves in a child process of `interrupts`, and print how each of them ended.

Usage: python -m workbench.solvers.conformance.interrupted TASK

TASK is a JSON object with the keys

    module, file, class, variant   the backend
    has_interruption               whether the backend uses `interruption.Interruption`
    kind, size                     "lp" or "milp", and the number of rows of the program
    native                         options in the solver's own names

The process prints "ready" when Ctrl-C may be pressed, and one JSON object for each solve.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import signal
import sys
import time
from collections.abc import Mapping
from typing import Any
from unittest import mock

from workbench.solvers.backend import Options
from workbench.solvers.conformance import instances
from workbench.solvers.contract import Backend
from workbench.solvers.interruption import Interruption
from workbench.solvers.session import Session

_TOO_FAST_SECONDS = 60.0  # A solve that ends before Ctrl-C waits for it at most this long.


def load_backend(task: Mapping[str, Any]) -> Backend:
    """Import the module of a backend by its name, else by its file, and make the backend.

    Args:
        task: the object of the command line.
    """
    try:
        module = importlib.import_module(task["module"])
    except ImportError:
        spec = importlib.util.spec_from_file_location(task["module"], task["file"])
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    backend_class: Any = module
    for name in task["class"].split("."):
        backend_class = getattr(backend_class, name)
    solver: Backend = backend_class(task["variant"])
    return solver


def announce_solves(
    session: Session, *, has_interruption: bool
) -> contextlib.AbstractContextManager[object]:
    """Print "ready" whenever the solver can be interrupted.

    Args:
        session: a session of the backend.
        has_interruption: whether the backend has an Interruption. "ready" is printed when it is
            entered, otherwise when the solver begins to run.
    """
    if not has_interruption:
        run = session._run

        def announced_run(*arguments: Any) -> Any:
            """Announce the run and begin it."""
            print("ready", flush=True)
            return run(*arguments)

        return mock.patch.object(session, "_run", announced_run)
    enter = Interruption.__enter__

    def announced_enter(interruption: Interruption) -> Interruption:
        """Enter the interruption and announce it."""
        enter(interruption)
        print("ready", flush=True)  # Ctrl-C before this point would be Python's own.
        return interruption

    return mock.patch.object(Interruption, "__enter__", announced_enter)


def describe_solve(session: Session) -> dict[str, Any]:
    """Solve, and return how the solve ended.

    Args:
        session: a session of the backend.

    Returns:
        The keys termination, objective, bound and residual. If Ctrl-C ended the solve by an
        exception, only the termination "KeyboardInterrupt".
    """
    try:
        solution = session.solve()
    except KeyboardInterrupt:
        return {"termination": "KeyboardInterrupt"}
    return {
        "termination": solution.termination,
        "objective": solution.objective,
        "bound": solution.bound,
        "residual": None if solution.residuals is None else solution.residuals.max_violation,
    }


def main(task: Mapping[str, Any]) -> None:
    """Solve twice in one session, which must survive its own interruption.

    Args:
        task: the object of the command line.
    """
    # A shell's background job ignores Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    size = task["size"]
    program = (
        instances.make_slow_lp(size)
        if task["kind"] == "lp"
        else instances.make_packing(size, 4 * size)
    )
    with (
        load_backend(task).open(program, Options(native=task["native"])) as session,
        announce_solves(session, has_interruption=task["has_interruption"]),
    ):
        for _ in range(2):
            ending = describe_solve(session)
            if ending["termination"] not in ("interrupted", "KeyboardInterrupt"):
                with contextlib.suppress(KeyboardInterrupt):
                    time.sleep(_TOO_FAST_SECONDS)
            print(json.dumps(ending), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
