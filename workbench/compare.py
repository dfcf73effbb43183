"""One request on several backends: the answers are judged, not only the times. A failure is a row, not a crash."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from workbench.design_noise import design, validate
from workbench.designing import Design, jsonable
from workbench.errors import InvalidRequest, NotProven, WorkbenchError
from workbench.mechanisms.modulo import ModuloNoise

__all__ = ["compare_noise"]


def compare_noise(
    question: ModuloNoise,
    solvers: Sequence[str],
    *,
    progress: Callable[[str], None] = lambda line: None,
    **request: Any,
) -> list[dict[str, Any]]:
    """Design the same noise on every solver, cold.

    Args:
        question, request: as `workbench.design_noise.design`, without solver.
        solvers: labels; unknown or unavailable ones give a row with the error.

    Returns:
        One row per solver (a request that is wrong for every solver is refused instead): status,
        objective, bound, gap, residual (recomputed), exact pdp_delta, dp_delta and
        pure_epsilon of the PMF as returned, private (does it meet the request exactly), agrees (with the oracle),
        seconds, error.
    """
    listed = isinstance(solvers, Sequence) and not isinstance(solvers, (str, bytes))
    if not listed or not all(isinstance(name, str) for name in solvers):
        InvalidRequest.must("solvers", "a list of names of solvers", repr(solvers))
    validate(question, **{key: value for key, value in request.items() if key not in ("time_limit", "gap", "seed")})
    rows = []
    for solver in solvers:
        progress(f"{solver} ...")
        try:
            rows.append(_row(solver, design(question, solver=solver, certify=False, **request), None))
        except NotProven as error:
            if error.interrupted:
                raise KeyboardInterrupt from None
            rows.append(_row(solver, error.design, error))
        except WorkbenchError as error:
            rows.append(_row(solver, None, error))
    return rows


def _row(solver: str, made: Design | None, error: WorkbenchError | None) -> dict[str, Any]:
    row: dict[str, Any] = {"solver": solver, "status": "failed", "error": None if error is None else str(error)}
    row["kind"] = None if error is None else type(error).__name__
    if made is None:
        names = ("version", "objective", "bound", "gap", "residual", "pdp_delta", "dp_delta", "pure_epsilon")
        return row | dict.fromkeys((*names, "private", "agrees", "seconds"))
    exact = made.to_dict()["exact"]
    assert made.solution.residuals is not None
    return row | {
        "status": made.status,
        "version": made.solution.version,
        "objective": made.objective,
        "bound": made.bound,
        "gap": made.gap,
        "residual": made.solution.residuals.worst,
        **{key: jsonable(value) for key, value in exact.items()},
        "private": made.private,
        "agrees": made.oracle.agrees,
        "seconds": made.solution.seconds.total,
    }
