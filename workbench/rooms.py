"""The door to the lower floors: makes sure that `models` and `solvers` are this project's own, and speaks its errors.

A saved mechanism may be audited inside somebody else's training code, whose own folder may well be called `models`;
that never comes here. Designing does, and says in one sentence when those names are taken.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager

from workbench.errors import InvalidRequest, LicenceLimit, SolverUnavailable, WorkbenchError

__all__ = ["check", "speaking_our_errors"]


def check() -> None:
    """Raise WorkbenchError unless `models` and `solvers` are the packages installed with this workbench."""
    for room in ("models", "solvers"):
        try:
            package = importlib.import_module(room)
        except ImportError as error:
            message = f"Designing needs the workbench's package {room!r}, which cannot be imported: {error}."
            raise WorkbenchError(message) from error
        if not getattr(package, "__workbench_room__", False):
            where = getattr(package, "__file__", None) or next(iter(getattr(package, "__path__", [])), "elsewhere")
            raise WorkbenchError(
                f"Designing needs the workbench's own package {room!r}, but that name is taken by {where}; "
                f"run from another folder or rename it. (Loading, auditing and sampling work here.)"
            )


check()


@contextmanager
def speaking_our_errors() -> Iterator[None]:
    """Turn the errors of the lower floors into the workbench's."""
    from solvers import errors

    try:
        yield
    except WorkbenchError:
        raise
    except errors.LicenceExceeded as error:
        raise LicenceLimit(str(error)) from None
    except errors.BackendUnavailable as error:
        raise SolverUnavailable(str(error)) from None
    except (errors.SolverError, ValueError) as error:
        raise InvalidRequest(str(error)) from None
