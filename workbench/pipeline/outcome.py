"""Make the table rows of designs and of errors, and translate errors of solvers.

    column                              content
    status, failure                     a value of STATUS_BY_ERROR, or how the solver stopped; the
                                        reason if there is no answer
    objective, bound, gap               the optimum lies in [bound, objective]
    residual, start                     largest violation of the solver's point; "hot" or "cold"
    audited, private, certified         by the exact audit of the mechanism itself
    pure_epsilon, pdp_delta, dp_delta   of the mechanism itself, rounded up; None: not known
    oracle, oracle_kind, oracle_value, oracle_agrees     the comparison with a closed form

Ledgers, frontiers and comparisons have these columns for every family. A family may add columns.
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

# The status of the row of an error. Subclasses come before their bases.
STATUS_BY_ERROR: dict[type[WorkbenchError], str] = {
    LicenceLimit: "licence",
    SolverUnavailable: "unavailable",
    Infeasible: "infeasible",
    NotProven: "not_proven",
    NotCertified: "not_certified",
    InvalidRequest: "refused",
}

# The workbench's error for an error of `solvers` or `models`. Subclasses come before their bases.
_WORKBENCH_ERRORS: dict[type[Exception], type[WorkbenchError]] = {
    errors.LicenceExceeded: LicenceLimit,
    errors.BackendUnavailable: SolverUnavailable,
    errors.NoRationalSolution: NotCertified,
    ValueError: InvalidRequest,  # The program or an option is invalid.
    errors.SolverError: NotProven,
}


def attempt_design(solve: Callable[[], Design]) -> tuple[Row, Design | None]:
    """Return a design as a row, with its solver, version and seconds.

    Args:
        solve: Function that returns the design.

    Returns:
        The row and the design. If it is not proven optimal, the row has its incumbent and bound. If
        there is no design, the row is `failure_row` and the design is None.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed inside a solver.
    """
    message = None
    try:
        design = solve()
    except WorkbenchError as error:
        if not isinstance(error, NotProven) or error.design is None:
            return failure_row(error), None
        if error.interrupted:
            raise KeyboardInterrupt from None
        design = error.design
        message = str(error)
    return design.row() | design.solver_effort | {"failure": message}, design


def failure_row(error: Exception) -> Row:
    """Return the row of a failed design, with its status and its reason.

    Args:
        error: The error that ended the design.

    Raises:
        KeyboardInterrupt: The error is Ctrl-C inside a solver.
    """
    if getattr(error, "interrupted", False):
        raise KeyboardInterrupt from None
    status = "failed"
    for kind, kind_status in STATUS_BY_ERROR.items():
        if isinstance(error, kind):
            status = kind_status
            break
    reason = str(error)
    if not isinstance(error, WorkbenchError):
        reason = f"{type(error).__name__}: {error}"
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
    """Raise the errors of `solvers` and `models` as errors of the workbench."""
    try:
        yield
    except WorkbenchError:
        raise
    except (ValueError, errors.SolverError) as error:
        raise translate_error(error) from None


def translate_error(error: ValueError | errors.SolverError) -> WorkbenchError:
    """Return the workbench's error for an error of `solvers` or `models`.

    Args:
        error: The error. An error of the workbench is returned as it is.
    """
    if isinstance(error, WorkbenchError):
        return error
    kind = next(ours for theirs, ours in _WORKBENCH_ERRORS.items() if isinstance(error, theirs))
    return kind(str(error))
