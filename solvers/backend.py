"""Registry of the solver backends by name, and a function that solves one program once.

    session = get_backend("highs").open(program, Options(gap=1e-9))
    first = session.solve({"delta": 0.1})
    # Only the entries that depend on delta change, and the solver starts from the last basis.
    second = session.solve({"delta": 0.2})
    again = session.solve({"delta": 0.2}, start="cold")

To add a backend, write one file with a `workbench.solvers.contract.Backend`, its line in CLASSES
and its table in `backends.toml`. Backends of other packages come from the function that is passed
to `set_external_backends`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any

from numpy.typing import ArrayLike

from workbench.solvers.contract import TABLES, Backend
from workbench.solvers.errors import BackendUnavailable
from workbench.solvers.program import Program
from workbench.solvers.session import Options as Options
from workbench.solvers.session import Session as Session
from workbench.solvers.solution import Solution, Start, Termination

# Name -> module and class. A module is imported when its backend is first used.
CLASSES = {
    "highs": "workbench.solvers.backends.highs:Highs",
    "gurobi": "workbench.solvers.backends.gurobi:Gurobi",
    "ortools": "workbench.solvers.backends.ortools:OrTools",
    "cvxpy": "workbench.solvers.backends.cvxpy:Cvxpy",
    "scip": "workbench.solvers.backends.scip:Scip",
}


def list_backend_names() -> list[str]:
    """List the labels of all backends and variants, such as "highs" and "ortools:glop"."""
    labels = []
    for name in [*CLASSES, *_find_external_classes()]:
        if name in CLASSES:
            variants = TABLES[name].get("variants")
        else:
            variants = _load_backend_class(name).variants
        labels += [f"{name}:{variant}" for variant in variants] if variants else [name]
    return labels


@cache
def get_backend(label: str) -> Backend:
    """Return the backend of a label. The same label always returns the same object.

    Args:
        label: such as "highs" or "ortools:glop".

    Raises:
        BackendUnavailable: the backend or variant is unknown.
    """
    name, _, variant = label.partition(":")
    if name not in CLASSES and name not in _find_external_classes():
        names = list_backend_names()
        near_names = [
            known_name for known_name in names if known_name.endswith(f":{label.lower()}")
        ]
        near_names = near_names or get_close_matches(label.lower(), names, n=1)
        hint = f" Did you mean {near_names[0]}?" if near_names else ""
        raise BackendUnavailable(f"solver must be one of {', '.join(names)}. Got {label!r}.{hint}")
    return _load_backend_class(name)(variant or None)


def describe_backends(*, probe: bool = False) -> list[dict[str, Any]]:
    """Return one row for each backend and variant.

    Args:
        probe: whether to ask the native libraries for their licence states. This imports them, and
            may take a licence for a moment. Otherwise `licence` is None.

    Returns:
        Rows with name, installed, version, capabilities, licence and default.
    """
    rows = []
    for label in list_backend_names():
        solver = get_backend(label)
        is_installed = solver.is_installed()
        rows.append(
            {
                "name": label,
                "installed": is_installed,
                "version": solver.version() if is_installed else None,
                "capabilities": solver.capabilities().describe(),
                "licence": str(solver.licence()) if probe and is_installed else None,
                "default": label == "highs",
            }
        )
    return rows


# Returns the classes of other packages by name. At first there are none.
_find_external_classes: Callable[[], Mapping[str, type[Backend]]] = dict


def set_external_backends(find_classes: Callable[[], Mapping[str, type[Backend]]]) -> None:
    """Set the function that finds the backends of other packages.

    Args:
        find_classes: returns their classes by name. It is called for a name that is not in CLASSES,
            and whenever backends are listed.
    """
    global _find_external_classes
    _find_external_classes = find_classes
    get_backend.cache_clear()


def _load_backend_class(name: str) -> type[Backend]:
    """Import the class of a backend of this package, or find the class of another package."""
    if name not in CLASSES:
        return _find_external_classes()[name]
    module, _, attribute = CLASSES[name].partition(":")
    backend_class: type[Backend] = getattr(importlib.import_module(module), attribute)
    return backend_class


def solve(
    program: Program,
    values: Mapping[str, ArrayLike] | None = None,
    solver: str = "highs",
    options: Options | None = None,
) -> Solution:
    """Solve a program once, with a cold start.

    Args:
        program: the `Program` to solve.
        values: parameter name -> value. None if the program has no parameters.
        solver: label of the backend.
        options: options of the solve, such as gap and time limit. Default: `Options()`.

    Raises:
        KeyboardInterrupt: Ctrl-C ended the solve. A session would return the best point found.
        BackendUnavailable, LicenceExceeded, UnsupportedOption, InvalidProgram: as `Backend.open`
            and `Session.solve`.
    """
    with get_backend(solver).open(program, options) as session:
        solution = session.solve(values, start=Start.COLD)
    if solution.termination is Termination.INTERRUPTED:
        raise KeyboardInterrupt
    return solution
