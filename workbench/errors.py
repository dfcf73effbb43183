"""The errors of the workbench.

    WorkbenchError              base class; the command line prints one line and exits with 2
    ├── InvalidRequest          a value of the request is wrong; the message names it
    │   └── NotApplicable       a published mechanism cannot serve a request; the message says why
    ├── Infeasible              no mechanism satisfies the request; names the conflict if known
    ├── SolverUnavailable       the solver is unknown, not installed or cannot solve such programs
    │   └── LicenceLimit        the solver's licence does not cover this request
    ├── NotInstalled            an optional package is needed; names the extra that installs it
    ├── NotProven               a limit was reached first; has the incumbent and the bound
    ├── NotCertified            no certificate could be made; no privacy is claimed
    └── CorruptFile             a file is malformed, truncated or does not prove its claim

Most messages have the form "epsilon must be a finite number > 0. Got -1."
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


# A larger number is shown rounded.
_MAX_EXACT_NUMBER = 10**30
# At most this many characters of a wrong value are shown.
_MAX_SHOWN_CHARACTERS = 160


def _round_large_number(number: int | Fraction) -> int | Fraction | str:
    """Return a number, or its rounded text if it has many digits."""
    if max(abs(number.numerator), number.denominator) <= _MAX_EXACT_NUMBER:
        return number
    return f"{Decimal(number.numerator) / number.denominator:.6g}"


class WorkbenchError(Exception):
    """Base of every error that the workbench raises on purpose.

    Attributes:
        exit_code: Exit code of a command that ends with the error.
    """

    exit_code = 2


class InvalidRequest(WorkbenchError, ValueError):
    """A value of the request is wrong."""

    @classmethod
    def must(cls, name: str, constraint: str, got: object) -> NoReturn:
        """Raise the error "{name} must be {constraint}. Got {got}.".

        Args:
            name: Name of the option. For a cell of a file, its line and column are shown instead.
            constraint: What the value must be.
            got: The value that was given.
        """
        name = getattr(got, "place", name)
        if isinstance(got, (int, Fraction)):
            got = _round_large_number(got)
        try:
            # An array is shown on several lines.
            text = " ".join(str(got).split())
        except ValueError:
            # Python does not print integers of more than 4300 digits.
            text = "numbers of more than 4300 digits"
        if len(text) > _MAX_SHOWN_CHARACTERS:
            text = f"{text[: _MAX_SHOWN_CHARACTERS - 3]}..."
        raise cls(f"{name} must be {constraint}. Got {text}.")

    @classmethod
    def check_choice(cls, choices: Collection[str], name: str, value: object) -> None:
        """Raise InvalidRequest unless the value is one of the choices.

        Args:
            choices: Texts that are accepted.
            name: Name of the option.
            value: The value that was given.
        """
        if not isinstance(value, str) or value not in choices:
            cls.must(name, f"one of {', '.join(choices)}", repr(value))


# A short name for callers: must("epsilon", "a finite number > 0", -1).
must = InvalidRequest.must


class NotApplicable(InvalidRequest):
    """A published mechanism cannot serve a request.

    Args:
        message: The reason, a sentence.
        status: Status of its row in a frontier.
        more: Further columns of that row.

    Attributes:
        columns: Columns of that row.
    """

    def __init__(
        self, message: str, status: str = "not applicable", more: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.columns: dict[str, Any] = {**(more or {}), "status": status, "failure": message}


class Infeasible(WorkbenchError):
    """No mechanism satisfies the request."""


class SolverUnavailable(WorkbenchError):
    """The solver is unknown, not installed, or cannot solve this kind of program."""


class LicenceLimit(SolverUnavailable):
    """The solver's licence does not cover this request."""


class NotInstalled(WorkbenchError):
    """A package is needed that is not installed."""


class NotProven(WorkbenchError):
    """A limit was reached before optimality was proven.

    Args:
        message: The reason, a sentence.
        incumbent: The best objective found, or None.
        bound: The proven bound, or None.
        design: The unproven Design. Its objective and bound replace `incumbent` and `bound`.
        interrupted: Whether the limit was Ctrl-C.
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
        if design is not None:
            incumbent = design.objective
            bound = design.bound
        self.incumbent = incumbent
        self.bound = bound
        self.design = design
        self.interrupted = interrupted


class NotCertified(WorkbenchError):
    """The mechanism could not be certified in exact arithmetic."""


class CorruptFile(WorkbenchError):
    """A file is malformed, truncated, hostile, or does not prove its claim."""
