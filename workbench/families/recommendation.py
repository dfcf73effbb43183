"""Which classes of mechanisms can serve one finite query, and what each of them costs at its best.

A family joins when its `Family.recommendation` names a module with `candidates(query) -> Iterable[Candidate]`; one that
does not apply says why (`Candidate.reason`), so that a row is never missing in silence. All costs are the expected loss
of published and true answer under the query's own prior.
"""

from __future__ import annotations

import importlib
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from solvers.search import Deadline
from workbench.errors import NotProven
from workbench.families.base import Family
from workbench.families.channel.losses import LossTable, OwnLoss, loss_table
from workbench.families.design import Design
from workbench.families.registry import families
from workbench.io.files import spelled
from workbench.mechanisms.answer_grid import AnswerGrid, answer_grid
from workbench.mechanisms.finite_query import FiniteQuery
from workbench.privacy.notions import notion


class Value(NamedTuple):
    """objective: what the mechanism costs, exactly, as a float; bound: below which no mechanism of its class can cost
    (None: its parameters are given, or nothing is proven); certified: whether exact arithmetic proves it private;
    parameter: of a published mechanism, in words; stopped: whether the time was up before the two met; mechanism: of a
    design."""

    objective: float
    bound: float | None
    certified: bool
    parameter: str = ""
    stopped: bool = False
    mechanism: Any = None


class TimeShares:
    """So many seconds for all classes of a query. waiting: how many of them are still to come after one."""

    def __init__(self, seconds: float) -> None:
        self._deadline, self.waiting = Deadline(seconds), 0

    @property
    def share(self) -> float:
        """Seconds for the next class: an equal share of what is left, at least a little."""
        return max(0.2, (self._deadline.left or 0.0) / (1 + self.waiting))


def best_design(kind: Family, question: Any, time: TimeShares | None = None, **options: Any) -> tuple[Design, bool]:
    """The certified design of a family, and whether the time was up before it was proven. Raises WorkbenchError."""
    if time is not None and any(option.name == "time_limit" for option in kind.options):
        options["time_limit"] = Fraction(time.share).limit_denominator(1000)
    try:
        return kind.designed(kind.request(question, **options)), False
    except NotProven as error:
        if error.interrupted:
            raise KeyboardInterrupt from None
        if error.design is None:
            raise
        return error.design, True


def designed(kind: Family, question: Any, time: TimeShares | None = None, **options: Any) -> Value:
    """What that costs, with its bound."""
    design, stopped = best_design(kind, question, time, **options)
    return Value(design.objective, design.bound, design.certificate is not None, "", stopped, design.mechanism)


@dataclass(frozen=True)
class Candidate:
    """One class of mechanisms for a query.

    name: of the class; needs: what it does with answers, in a few words; command: the one that makes it, or None.
    solve: its value, computed when asked for; reason: why the class does not apply, instead. extra_loss: what makes the
    class cost more than another, such as "Wrapping around", where that is worth a sentence; contains: the names of
    classes all of whose mechanisms are in this one; programs: whether it goes to a solver, after those that do not;
    simplicity: of what costs the same the least is recommended; publishes: of its mechanism and the position of an
    answer the probabilities of the query's outputs.
    """

    name: str
    needs: str = ""
    command: str | None = None
    solve: Callable[[], Value] | None = None
    reason: str | None = None
    extra_loss: str | None = None
    contains: tuple[str, ...] = ()
    programs: bool = False
    simplicity: int = 2
    publishes: Callable[[Any, int], Sequence[float]] | None = None


@dataclass(frozen=True, kw_only=True)
class _Budget:
    epsilon: Fraction
    delta: Fraction = Fraction(0)
    notion: str = "dp"
    time: TimeShares | None = None

    @property
    def budget(self) -> dict[str, Any]:
        """notion, epsilon and delta."""
        return {"notion": self.notion, "epsilon": self.epsilon, "delta": self.delta}


@dataclass(frozen=True, kw_only=True)
class Query(_Budget):
    """A finite query with its budget. words: option, where given -> its text on a command line (None: it has none);
    own: baselines of the user, as `workbench.families.baseline` reads them."""

    question: FiniteQuery
    loss: OwnLoss = "squared"
    words: Mapping[str, str | None] | None = None
    own: tuple[tuple[str, Any], ...] = ()

    @cached_property
    def losses(self) -> LossTable:
        """What every output costs every input. Raises InvalidRequest."""
        return loss_table(self.question, self.loss)

    @cached_property
    def grid(self) -> AnswerGrid | None:
        """The answers by value, in steps; None where they are no numbers."""
        return answer_grid(self.question)

    @property
    def per_distance(self) -> bool:
        """Whether ε is per unit of distance."""
        return notion(self.notion).per_distance

    def command(self, words: str, *names: str, **more: object) -> str | None:
        """A command line: words, then the options of the query by name, as they were given, then others; None where one
        of them is no text."""
        given = self.words or {}
        amounts = {"epsilon": self.epsilon} | ({"delta": self.delta} if self.delta else {})
        shown: dict[str, str | None] = {name: given[name] for name in names if name in given}
        shown |= {name: None if value is None else str(value) for name, value in more.items()}
        shown |= {name: given.get(name) or spelled(value) for name, value in amounts.items()}
        if any(value is None for value in shown.values()):
            return None
        return f"{_command(words, shown)} --notion {self.notion}"


@dataclass(frozen=True, kw_only=True)
class RealQuery(_Budget):
    """A query with real answers in [low, high], of which neighbours differ by at most `sensitivity`, with its budget.

    local: whether every two answers are neighbours; loss: absolute or squared, of published minus true answer, the
    answers uniform on the range.
    """

    low: Fraction
    high: Fraction
    sensitivity: Fraction
    loss: str = "absolute"

    @property
    def width(self) -> Fraction:
        """Of the range."""
        return self.high - self.low

    @property
    def local(self) -> bool:
        """Whether every two answers are neighbours."""
        return self.sensitivity == self.width

    def command(self, words: str, **more: object) -> str:
        """A command line: words, then options."""
        return _command(words, more)


def _command(words: str, options: Mapping[str, Any]) -> str:
    texts = [f"--{name.replace('_', '-')} {shlex.quote(str(value))}" for name, value in options.items()]
    return " ".join(["workbench", words, *texts])


def all_candidates(query: Query | RealQuery) -> Iterator[Candidate]:
    """Those of every family, those of other packages last; a family serves real queries where its module has
    `real_candidates(query)`."""
    real = isinstance(query, RealQuery)
    for kind in families():
        if kind.recommendation is not None:
            module = importlib.import_module(kind.recommendation)
            offer = getattr(module, "real_candidates" if real else "candidates", None)
            if offer is not None:
                candidates: Iterable[Candidate] = offer(query)
                yield from candidates
            elif real:
                yield Candidate(kind.title, reason="it is for finitely many answers: --answers instead of --range")


def texts(given: Mapping[str, Any]) -> dict[str, str | None]:
    """Options as the texts of a command line; None for what is none."""
    plain = (str, int, float, Fraction, Path)
    return {
        name: str(value) if isinstance(value, plain) else None for name, value in given.items() if value is not None
    }
