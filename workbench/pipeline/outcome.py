"""What became of a request: a design as a row, an error as a row with its status, a solver's error in our words.

    column                            what it holds
    status, error                     a word of STATUS, or how the solver stopped; the reason when there is no answer
    objective, bound, gap             the optimum lies in [bound, objective]
    residual, start                   of the solver's point, recomputed; where the solve began: "hot" or "cold"
    audited, private, certified       by the exact audit of the mechanism itself
    pure_epsilon, pdp_delta, dp_delta of the mechanism itself, rounded so as never to understate; None: not known
    oracle, oracle_kind, oracle_value, oracle_agrees     the closed form's verdict

These are the columns of ledgers, frontiers and comparisons, the same for every family, which may add some of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from workbench.errors import (
    Infeasible,
    InvalidRequest,
    LicenceLimit,
    NotCertified,
    NotProven,
    SolverUnavailable,
    WorkbenchError,
)
from workbench.io.result import Row
from workbench.solvers import errors

if TYPE_CHECKING:
    from workbench.pipeline.design import Design


OUTCOME_COLUMNS = (
    "status",
    "failure",
    "objective",
    "bound",
    "gap",
    "residual",
    "start",
    "audited",
    "private",
    "certified",
    "pure_epsilon",
    "pdp_delta",
    "dp_delta",
    "oracle",
    "oracle_kind",
    "oracle_value",
    "oracle_agrees",
)

# kind of error -> status of its row, the narrower kinds first
STATUS_BY_ERROR: dict[type[WorkbenchError], str] = {
    LicenceLimit: "licence",
    SolverUnavailable: "unavailable",
    Infeasible: "infeasible",
    NotProven: "not_proven",
    NotCertified: "not_certified",
    InvalidRequest: "refused",
}

# Kind of error of `solvers` or `models` -> ours, the narrower kinds first.
_OUR_ERRORS: dict[type[Exception], type[WorkbenchError]] = {
    errors.LicenceExceeded: LicenceLimit,
    errors.BackendUnavailable: SolverUnavailable,
    errors.NoRationalSolution: NotCertified,
    ValueError: InvalidRequest,  # A program or an option that makes no sense.
    errors.SolverError: NotProven,
}


def attempt_design(solve: Callable[[], Design]) -> tuple[Row, Design | None]:
    """A design as a row with its solver, version and seconds; of an unproven one the incumbent; else the failure.

    Where no design came out, the row is that of `failure`. Ctrl-C inside a solver is KeyboardInterrupt.
    """
    try:
        design, error = solve(), None
    except WorkbenchError as problem:
        if not isinstance(problem, NotProven) or problem.design is None:
            return failure_row(problem), None
        if problem.interrupted:
            raise KeyboardInterrupt from None
        design, error = problem.design, str(problem)
    return design.row() | design.solver_effort | {"failure": error}, design


def failure_row(error: Exception) -> Row:
    """The row of a failed design: its status and its reason. Ctrl-C inside a solver is none: it is raised again."""
    if getattr(error, "interrupted", False):
        raise KeyboardInterrupt from None
    status = next(
        (word for kind, word in STATUS_BY_ERROR.items() if isinstance(error, kind)), "failed"
    )
    reason = str(error) if isinstance(error, WorkbenchError) else f"{type(error).__name__}: {error}"
    row: Row = {
        "status": status,
        "failure": reason,
        "objective": None,
        "bound": None,
        "audited": False,
    }
    if isinstance(error, NotProven):
        row |= {"objective": error.incumbent, "bound": error.bound}
    return row


@contextmanager
def translate_errors() -> Iterator[None]:
    """Turn the errors of `solvers` and `models` into the workbench's."""
    try:
        yield
    except WorkbenchError:
        raise
    except (ValueError, errors.SolverError) as error:
        raise translate_error(error) from None


def translate_error(error: ValueError | errors.SolverError) -> WorkbenchError:
    """Return the workbench's error for one of `solvers` or `models`.

    One that is the workbench's already is returned as it is.
    """
    if isinstance(error, WorkbenchError):
        return error
    kind = next(ours for theirs, ours in _OUR_ERRORS.items() if isinstance(error, theirs))
    return kind(str(error))
