"""Errors that are raised before a solver answers.

    SolverError                 base
    ├── InvalidProgram          the problem is no program of this package, or has unusable numbers
    ├── BackendUnavailable      unknown or not installed backend, or it cannot solve such programs
    │   └── LicenceExceeded     the backend's licence is too small for the program
    ├── NoRationalSolution      no exact solution of a program in rationals was found and proven
    └── UnsupportedOption       a backend does not have an option; the message names the option

The answer of a solver (infeasible, time limit, numerical trouble) is not an error: it is stored in
`Solution.termination`.
"""

from __future__ import annotations


def format_native_error(error: BaseException) -> str:
    """Return the type and the message of an error of a native library, in one line.

    Args:
        error: what the library raised.
    """
    return f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(": .")


class SolverError(Exception):
    """Base of the errors of this package."""


class InvalidProgram(SolverError, ValueError):
    """The problem cannot be stated as a mixed-integer linear program, or has unusable numbers."""


class BackendUnavailable(SolverError):
    """The backend is unknown, not installed, or cannot solve this kind of program."""


class LicenceExceeded(BackendUnavailable):
    """The backend's licence is too small for the program."""


class NoRationalSolution(SolverError):
    """A program in rationals is infeasible, or no exact solution was found and proven."""


class UnsupportedOption(SolverError, ValueError):
    """The backend does not have an option, and refuses it by name."""
