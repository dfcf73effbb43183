"""What a sweep asks of a model: its parameters, which of them move along a hot-start path, and the path itself.

To sweep over another model, write one file with a `SweepModel` and add its line to `MODELS`. Parameter values are kept
in one canonical JSON form (an exact number as a string that spells it), since they are hashed into the ledger's keys.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import workbench
from workbench.designing import Design, jsonable
from workbench.errors import (
    Infeasible,
    InvalidRequest,
    LicenceLimit,
    NotCertified,
    NotProven,
    SolverUnavailable,
    WorkbenchError,
)
from workbench.files import spelled
from workbench.numbers import positive, probability

__all__ = [
    "MODELS",
    "Parameter",
    "Path",
    "SweepModel",
    "chosen",
    "count",
    "designed",
    "failure",
    "flag",
    "honour",
    "listed",
    "model",
    "one",
    "optional",
    "share",
    "solver",
    "text",
    "versions",
]

# name in a specification -> module with `MODEL`; one line per model
MODELS = {
    "labels": "workbench.sweep_labels",
    "laplace": "workbench.sweep_laplace",
    "noise": "workbench.sweep_noise",
    "quantizer": "workbench.sweep_quantizer",
}

Answer = dict[str, Any]
Reader = Callable[[Any, str], Any]


@dataclass(frozen=True)
class Parameter:
    """One key of a grid. read: (TOML value, name) -> its canonical form, or InvalidRequest; default: canonical, None
    for a parameter that may be left out; required: it may not; hot: it moves along a path; option: of the solver."""

    read: Reader
    default: Any = None
    required: bool = False
    hot: bool = False
    option: bool = False


class Path(ABC):
    """One model with everything fixed but its hot parameters; it may keep a live solver from point to point."""

    @abstractmethod
    def admit(self, point: Mapping[str, Any]) -> None:
        """Refuse an impossible value without solving anything. Raises InvalidRequest.

        Whether a hot value is refused must not depend on the other hot values: each is tried once, not each point.
        """

    @abstractmethod
    def solve(self, point: Mapping[str, Any], *, cold: bool) -> Answer:
        """Answer one point (JSON-ready: status, objective, bound, start, ...), from a cold start when asked."""

    def close(self) -> None:  # noqa: B027  (most paths hold nothing)
        """Give native resources back."""

    def __enter__(self) -> Path:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class SweepModel(ABC):
    """A model as a sweep sees it."""

    parameters: ClassVar[Mapping[str, Parameter]]
    chunk: ClassVar[int] = 1  # how many points of one path are one task

    @property
    def hot(self) -> tuple[str, ...]:
        """The parameters that move along a path; the last one varies fastest."""
        return tuple(name for name, parameter in self.parameters.items() if parameter.hot)

    @abstractmethod
    def content(self, fixed: Mapping[str, Any]) -> dict[str, Any]:
        """The fixed parameters as they enter the key, so that two spellings of one question share it."""

    def complete(self, fixed: Mapping[str, Any], point: Mapping[str, Any]) -> Mapping[str, Any]:
        """A point with its defaults."""
        return point

    def backend(self, fixed: Mapping[str, Any]) -> str | None:
        """The label of the solver that is asked, None when there is none."""
        return str(fixed["solver"])

    def size(self, fixed: Mapping[str, Any]) -> int:
        """How many points of this path make one task."""
        return self.chunk

    @abstractmethod
    def open(self, fixed: Mapping[str, Any]) -> Path:
        """The path. Raises InvalidRequest for impossible values; solves nothing."""


def model(name: str) -> SweepModel:
    """The model of a name in MODELS."""
    found: SweepModel = importlib.import_module(MODELS[name]).MODEL
    return found


# Readers of TOML values. A real number arrives as the Decimal or int it spells.


def one(read: Callable[[Any, str], Fraction], most: int | None = None) -> Reader:
    """An exact number, spelled canonically; `read` is one of `workbench.numbers`."""

    def reader(value: Any, name: str) -> str:
        found = read(value, name)
        if most is not None and found > most:
            InvalidRequest.must(name, f"at most {most} (e^{name} is a coefficient of the program)", value)
        return spelled(found)

    return reader


def share(value: Any, name: str) -> str:
    """A probability."""
    return spelled(probability(value, name))


def chosen(*choices: str) -> Reader:
    """One of some words."""

    def reader(value: Any, name: str) -> str:
        if not isinstance(value, str) or value not in choices:
            InvalidRequest.must(name, f"one of {', '.join(choices)}", repr(value))
        return value

    return reader


def flag(value: Any, name: str) -> bool:
    """true or false."""
    if not isinstance(value, bool):
        InvalidRequest.must(name, "true or false", repr(value))
    return value


def count(low: int, high: int) -> Reader:
    """An integer in low..high."""

    def reader(value: Any, name: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            InvalidRequest.must(name, f"an integer in {low}..{high}", repr(value) if isinstance(value, str) else value)
        return value

    return reader


def text(value: Any, name: str) -> str:
    """A string."""
    if not isinstance(value, str) or not value.strip():
        InvalidRequest.must(name, "a string", repr(value))
    return value.strip()


def solver(value: Any, name: str) -> str:
    """The label of a solver this workbench knows; it need not be installed (its rows then say so)."""
    from workbench import rooms

    with rooms.speaking_our_errors():
        from solvers.backend import backend

        return backend(text(value, name)).label


def versions(label: str | None) -> dict[str, str | None]:
    """What answers: this workbench and the solver's library, with their versions."""
    found: dict[str, str | None] = {"workbench": workbench.__version__}
    if label is not None:
        from solvers.backend import backend

        asked = backend(label)
        found[asked.distribution] = asked.version()
    return found


def honour(label: str | None, options: Iterable[str]) -> None:
    """Refuse options that a solver has no word for."""
    if label is None:
        return
    from solvers.backend import backend

    for option in options:
        if option not in backend(label).supported_options:
            raise InvalidRequest(f"{label} cannot honour the option {option}; leave it out.")


def listed(read: Reader, separator: str = ",") -> Reader:
    """A list, or one string "1,2,3"."""

    def reader(value: Any, name: str) -> list[Any]:
        if isinstance(value, str):
            value = [part for part in value.split(separator) if part.strip()]
        if not isinstance(value, list) or not value:
            InvalidRequest.must(name, f'a list such as "1{separator}2{separator}3"', repr(value))
        return [read(part, name) for part in value]

    return reader


def optional(value: Any, kind: Callable[[str], Any] = float) -> Any:
    """A canonical number as a float (or another kind), None as None."""
    return None if value is None else kind(value)


SECONDS = Parameter(one(positive), option=True)


# Answers.


def designed(made: Design, *, audited: bool = True) -> Answer:
    """The answer of a design: what every model reports alike."""
    law, solution = made.oracle, made.solution
    privacy = made.to_dict()["exact"]
    return {
        "status": made.status, "reason": None, "objective": made.objective, "bound": made.bound, "gap": made.gap,
        "residual": None if solution is None or solution.residuals is None else solution.residuals.worst,
        "start": "cold" if solution is None else str(solution.start), "audited": audited, "private": made.private,
        "certified": made.certificate is not None,
        **{f"exact_{name}": jsonable(value) for name, value in privacy.items()},
        "oracle": law.name, "oracle_kind": law.kind, "oracle_value": law.value, "agrees": law.agrees,
    }  # fmt: skip


_STATUS = {
    LicenceLimit: "licence", SolverUnavailable: "unavailable", Infeasible: "infeasible", NotProven: "not_proven",
    NotCertified: "not_certified", InvalidRequest: "refused",
}  # fmt: skip


def failure(error: Exception) -> Answer:
    """The answer of a failed solve: its status and its reason. Ctrl-C is none: it is raised again."""
    if isinstance(error.__context__, KeyboardInterrupt) or getattr(error, "interrupted", False):
        raise KeyboardInterrupt from None
    status = next((word for kind, word in _STATUS.items() if isinstance(error, kind)), "failed")
    reason = str(error) if isinstance(error, WorkbenchError) else f"{type(error).__name__}: {error}"
    answer: Answer = {"status": status, "reason": reason, "objective": None, "bound": None, "audited": False}
    if isinstance(error, NotProven):
        answer |= {"objective": error.incumbent, "bound": error.bound}
    return answer
