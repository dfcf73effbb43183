"""The registry of the backends that this workbench knows, by name, and one cold solve.

    session = backend("highs").open(program, Options(gap=1e-9))
    first = session.solve({"delta": 0.1})
    second = session.solve({"delta": 0.2})         # moves the entries that changed and runs hot
    again = session.solve({"delta": 0.2}, start="cold")

To add a backend, write one file with a `workbench.solvers.contract.Backend`, its line in CLASSES and its table in
`backends.toml`. Those of other packages come from the function given to `extend`, which is asked at the first unknown
name and for every listing.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from numpy.typing import ArrayLike

from workbench.solvers.contract import TABLES, Backend
from workbench.solvers.errors import BackendUnavailable
from workbench.solvers.program import Program
from workbench.solvers.session import Options as Options
from workbench.solvers.session import Session as Session
from workbench.solvers.solution import Solution, Start, Termination

# Name -> where its class is; a module is imported when its backend is first asked for.
CLASSES = {
    "highs": "workbench.solvers.backends.highs:Highs",
    "gurobi": "workbench.solvers.backends.gurobi:Gurobi",
    "ortools": "workbench.solvers.backends.ortools:OrTools",
    "cvxpy": "workbench.solvers.backends.cvxpy:Cvxpy",
    "scip": "workbench.solvers.backends.scip:Scip",
}


def list_backend_names() -> list[str]:
    """Every backend and variant this workbench knows, as a user writes them."""
    listed = []
    for name in [*CLASSES, *_find_external_classes()]:
        variants = (
            TABLES[name].get("variants") if name in CLASSES else _load_backend_class(name).variants
        )
        listed += [f"{name}:{variant}" for variant in variants] if variants else [name]
    return listed


@cache
def get_backend(label: str) -> Backend:
    """Return the backend of a label such as "highs" or "ortools:glop": one object for each label.

    Raises:
        BackendUnavailable: for an unknown backend or variant.
    """
    name, _, variant = label.partition(":")
    if name not in CLASSES and name not in _find_external_classes():
        raise BackendUnavailable(
            f"solver must be one of {', '.join(list_backend_names())}. Got {label!r}."
        )
    return _load_backend_class(name)(variant or None)


def describe_backends(*, probe: bool = False) -> list[dict[str, Any]]:
    """One row per backend and variant, for a table: name, installed, version, capabilities, licence, default.

    Args:
        probe: ask the native libraries for their licence states (imports them, and may take a licence for a moment);
            otherwise `licence` is None.
    """
    rows = []
    for label in list_backend_names():
        solver = get_backend(label)
        installed = solver.is_installed()
        rows.append(
            {
                "name": label,
                "installed": installed,
                "version": solver.version() if installed else None,
                "capabilities": solver.capabilities().describe(),
                "licence": str(solver.licence()) if probe and installed else None,
                "default": label == "highs",
            }
        )
    return rows


_find_external_classes: Callable[[], Mapping[str, type[Backend]]] = dict


def set_external_backends(find_classes: Callable[[], Mapping[str, type[Backend]]]) -> None:
    """Where backends of other packages come from: a function that gives their classes by name."""
    global _find_external_classes
    _find_external_classes = find_classes
    get_backend.cache_clear()


def _load_backend_class(name: str) -> type[Backend]:
    if name not in CLASSES:
        return _find_external_classes()[name]
    module, _, attribute = CLASSES[name].partition(":")
    loaded: type[Backend] = getattr(importlib.import_module(module), attribute)
    return loaded


def solve(
    program: Program,
    values: Mapping[str, ArrayLike] | None = None,
    solver: str = "highs",
    options: Options | None = None,
) -> Solution:
    """Solve once, cold.

    Raises:
        KeyboardInterrupt: when Ctrl-C ended the solve; a session keeps what was found until then.
    """
    with get_backend(solver).open(program, options) as session:
        solution = session.solve(values, start=Start.COLD)
    if solution.termination is Termination.INTERRUPTED:
        raise KeyboardInterrupt
    return solution
