"""What can go wrong below the models, before a solver has anything to say.

    SolverError                 base
    ├── InvalidProgram          the problem is not a program that can be stated here, or its numbers are not usable
    ├── BackendUnavailable      unknown or not installed backend, or one that cannot solve this kind of program
    │   └── LicenceExceeded     the backend's licence is too small for the program
    ├── NoRationalSolution      a program in rationals has no exact answer that could be found and proven
    └── UnsupportedOption       a backend was given an option it cannot honour; the option is named

What a solver answers (infeasible, time limit, numerical trouble) is not an error: it is in `Solution.termination`.
"""

from __future__ import annotations


def format_native_error(error: BaseException) -> str:
    """What a native library raised, in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(": .")


class SolverError(Exception):
    """Base of the errors of this package."""


class InvalidProgram(SolverError, ValueError):
    """The problem cannot be stated as a (mixed-integer) linear program, or its numbers cannot be used."""


class BackendUnavailable(SolverError):
    """The backend is unknown, not installed, or cannot solve this kind of program."""


class LicenceExceeded(BackendUnavailable):
    """The backend's licence is too small for the program."""


class NoRationalSolution(SolverError):
    """A program in rationals is infeasible, or no exact answer to it could be found and proven."""


class UnsupportedOption(SolverError, ValueError):
    """The backend cannot honour an option; it is refused by name instead of being dropped."""
