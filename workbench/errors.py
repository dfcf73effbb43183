"""Every error a user of the workbench can meet.

    WorkbenchError              base of them all; the CLI prints its one line and exits 2 (`exit_code`)
    ├── InvalidRequest          a value in the request is wrong; the message names it and what it got
    │   └── NotApplicable       a published mechanism cannot serve a request; the message says why
    ├── Infeasible              no mechanism meets the request; says the smallest conflicting part when it is known
    ├── SolverUnavailable       the solver is unknown, not installed or cannot solve this kind of program
    │   └── LicenceLimit        the solver's licence does not cover this request
    ├── NotInstalled            an optional package is needed; says which extra brings it
    ├── NotProven               a limit was reached first; carries the incumbent and the bound
    ├── NotCertified            no certificate could be produced; nothing private is claimed
    └── CorruptFile             a file is malformed, truncated or does not prove what it says

Messages have one form: "epsilon must be a finite number > 0. Got -1."
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn

__all__ = [
    "CorruptFile",
    "Infeasible",
    "InvalidRequest",
    "LicenceLimit",
    "NotApplicable",
    "NotCertified",
    "NotInstalled",
    "NotProven",
    "SolverUnavailable",
    "WorkbenchError",
]


_LONG = 10**30  # a number beyond which is shown rounded
_LONGEST = 160  # characters of a wrong value that a message shows


class WorkbenchError(Exception):
    """Base of every error raised on purpose by the workbench. exit_code: of a command that ends with it."""

    exit_code = 2


class InvalidRequest(WorkbenchError, ValueError):
    """A value in the request is wrong."""

    @classmethod
    def must(cls, name: str, constraint: str, got: object) -> NoReturn:
        """Raise the one form of a validation message: "{name} must be {constraint}. Got {got}.".

        A cell of a file is called by its place there.
        """
        name = getattr(got, "place", name)
        if isinstance(got, (int, Fraction)) and max(abs(got.numerator), got.denominator) > _LONG:
            got = f"{Decimal(got.numerator) / got.denominator:.6g}"
        try:
            text = " ".join(str(got).split())  # an array is shown on several lines
        except ValueError:  # Python does not print integers of more than 4300 digits.
            text = "numbers of more than 4300 digits"
        short = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
        raise cls(f"{name} must be {constraint}. Got {short}.")

    @classmethod
    def check_choice(cls, choices: Collection[str], name: str, value: object) -> None:
        """Raise for a value that is none of the words that are known."""
        if not isinstance(value, str) or value not in choices:
            cls.must(name, f"one of {', '.join(choices)}", repr(value))


must = InvalidRequest.must  # what callers say: must("epsilon", "a finite number > 0", -1)


class NotApplicable(InvalidRequest):
    """A published mechanism cannot serve a request; `columns` are those of its row in a frontier."""

    def __init__(
        self, message: str, status: str = "not applicable", more: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.columns: dict[str, Any] = {**(more or {}), "status": status, "failure": message}


class Infeasible(WorkbenchError):
    """No mechanism meets the request."""


class SolverUnavailable(WorkbenchError):
    """The solver is unknown, not installed, or cannot solve this kind of program."""


class LicenceLimit(SolverUnavailable):
    """The solver's licence does not cover this request."""


class NotInstalled(WorkbenchError):
    """A package is needed that is not installed."""


class NotProven(WorkbenchError):
    """A limit was reached before optimality was proven; `incumbent` and `bound` say how far the solver got.

    incumbent: the best objective found, or None; bound: the proven bound, or None; design: the unproven Design, whose
    they are; interrupted: whether the limit was Ctrl-C.
    """

    def __init__(
        self,
        message: str,
        *,
        incumbent: float | None = None,
        bound: float | None = None,
        design: Any = None,
        interrupted: bool = False,
    ) -> None:
        super().__init__(message)
        self.incumbent = incumbent if design is None else design.objective
        self.bound = bound if design is None else design.bound
        self.design = design
        self.interrupted = interrupted


class NotCertified(WorkbenchError):
    """The mechanism could not be certified in exact arithmetic."""


class CorruptFile(WorkbenchError):
    """A file is malformed, truncated, hostile, or does not prove what it claims."""
