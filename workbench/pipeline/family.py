"""What a kind of question is to everything generic: a `Family` with its options, its requests and its sessions.

    options ──read──▶ Request (frozen, exact numbers) ──open──▶ Session ──design(point)──▶ Design

The command line, sweeps, frontiers and the comparison of solvers are written against this file and know no family by
name. To add a family: one folder with a `Family`, and one line in `workbench.pipeline.registry`.
"""

from __future__ import annotations

import re
import sys
import textwrap
from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from workbench.errors import InvalidRequest, must
from workbench.exact.objects import Progress, Record, Strings
from workbench.exact.objects import Values as Values
from workbench.io.providers import get_places, load_provided
from workbench.io.result import Row
from workbench.pipeline.design import Design, Reports
from workbench.pipeline.option import (
    SOLVER_OPTIONS,
    Option,
    Place,
    read_options,
    read_solver_options,
    to_json_value,
)
from workbench.pipeline.request import Request

if TYPE_CHECKING:
    from workbench.models.modulo.level_frontier import FrontierPiece
    from workbench.pipeline.published import Published
    from workbench.pipeline.stated import Interval
    from workbench.solvers.backend import Options


_MAX_TIME_LIMIT_SECONDS = 1e9  # seconds; solvers refuse more


class Session:
    """One request, answered at many values of its hot options; it may keep a live solver from point to point. That of
    a family without a hot start solves every point on its own (`Family.solve`)."""

    def __init__(self, request: Request) -> None:
        self.request = request

    def design(self, point: Values | None = None, *, start: str = "hot") -> Design:
        """The design at a point (hot option -> exact value; the request's own where left out).

        start: "hot" from where the last solve ended, or "cold".
        Raises InvalidRequest, Infeasible, SolverUnavailable, LicenceLimit, NotProven, NotCertified.
        """
        design: Design = self.request.family.solve(self.request.at_point(point or {}))
        return design

    def row(self, point: Values, *, start: str = "hot") -> Row:
        """The answer at a point as a row of a table (`workbench.pipeline.outcome`). Errors as `design`."""
        return self.design(point, start=start).row()

    def close(self) -> None:
        """Give native resources back."""

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Family(Reports):
    """One kind of question.

    name: in commands, sweeps and keys. title: what is designed, in a few words. summary: one sentence.
    examples: command lines; formulas: those of `workbench formula`. options: in the order of tables. checks: what a
    sweep may ask to be done with an answer.
    """

    title: str
    summary: str
    examples: Sequence[str] = ()
    formulas: Sequence[str] = ()
    options: Sequence[Option]
    no_formula_reason: str = "it states no linear program with powers of e^epsilon in it"
    solving_option_names: Strings = (
        "solver",
        "options",
        "certify",
    )  # options that say how a program is solved alone

    @property
    def frontier(self) -> str | None:
        """Name the module with `FRONTIER`, None where there is none. A family of another package sets it."""
        return get_places("frontiers").get(self.name)

    @property
    def programs(self) -> str | None:
        """Name the module with `instances()`, as `frontier` does."""
        return get_places("programs").get(self.name)

    @property
    def recommendation(self) -> str | None:
        """Name the module with `candidates(query)`, as `frontier` does."""
        return get_places("recommendations").get(self.name)

    @property
    @abstractmethod
    def question_class(self) -> type:
        """The class of its questions."""

    @abstractmethod
    def parse_question(self, values: Values) -> Any:
        """The question that options spell. Raises InvalidRequest."""

    @abstractmethod
    def build_request(self, question: Any, values: Record) -> Request:
        """The request made of exact values: check, options (workbench.solvers.backend.Options), and every option that
        does not spell the question. Raises InvalidRequest."""

    def open_session(self, request: Any) -> Session:
        """A session for a request; solves nothing."""
        return Session(request)

    def design_request(self, request: Any) -> Design:
        """The design of one request. Raises WorkbenchError."""
        with self.open_session(request) as session:
            return session.design()

    def trace_patterns(
        self, request: Any, deltas: Interval, time_limit: float | None, progress: Progress | None
    ) -> Sequence[FrontierPiece]:
        """Trace the frontier over δ of a notion whose programs have binaries, at the request's ε.

        Args:
            request: The request; its δ is the upper end of `deltas`.
            deltas: The interval of δ, in order.
            time_limit: Seconds, or None for no limit.
            progress: Is told a line now and then.

        Returns:
            The pieces from δ = 0 on, each of one pattern of pairs that exceed the ratio; `workbench.formula` makes
            formulas of them.

        Raises:
            InvalidRequest: The family traces no patterns, or not those of this request.
        """
        named = request.claim.notion.name
        raise InvalidRequest(
            f"A formula of the family {self.name} under {named} would ask for binaries."
        )

    def question_to_options(self, question: Any) -> Record:
        """The values of the options that spell a question. Raises InvalidRequest where there are none."""
        raise InvalidRequest(f"A question of the family {self.name} cannot be written as options.")

    def solve(self, request: Any) -> Design:
        """The design of one request, for a family without a hot start."""
        raise NotImplementedError(f"The family {self.name} has neither `open` nor `solve`.")

    def __reduce__(self) -> str | tuple[Any, ...]:
        """A copy for another process names the family, of which there is one in each."""
        names = (
            name
            for name, value in vars(sys.modules[type(self).__module__]).items()
            if value is self
        )
        return next(names, (type(self), ()))

    # Options.

    def options_for(self, place: Place) -> list[Option]:
        """The options of a command line, of Python or of a sweep."""
        return [option for option in self.options if place in option.places]

    @property
    def design_examples(self) -> list[str]:
        """The examples that design, without what is done with the answer."""
        start = f"design {self.name} "
        return [
            re.split(r" --(?:json|plot|save)\b", line)[0]
            for line in self.examples
            if line.startswith(start)
        ]

    @property
    def hot_option_names(self) -> Strings:
        """The options that move along a path; the last one varies fastest."""
        return tuple(option.name for option in self.options if option.hot)

    @cached_property
    def _options_by_name(self) -> dict[str, Option]:
        return {option.name: option for option in self.options}

    def get_option(self, name: str) -> Option:
        """The option of a name, or of one it had before. Raises KeyError."""
        return self._options_by_name[name]

    def read_values(
        self, values: Values, place: Place = "python", *, with_question: bool = False
    ) -> Record:
        """The exact value of every option of a place, with the defaults. spelled: those of the question too, which
        Python otherwise gives as an object. Raises InvalidRequest."""
        known = (
            self.design_arguments
            if place == "python" and not with_question
            else self.options_for(place)
        )
        return read_options(known, values, exact_defaults=True)

    def make_request(self, question: Any, **given: Any) -> Request:
        """The request for a question, as Python gives it. Raises InvalidRequest."""
        return self._make_checked_request(
            question, self.read_values(self._collect_solver_options(given))
        )

    def make_request_from_options(self, **given: Any) -> Request:
        """The request that options spell in Python, those of the question among them. Raises InvalidRequest."""
        return self.make_request_from_values(
            self.read_values(self._collect_solver_options(given), "python", with_question=True)
        )

    def make_request_from_values(self, values: Values) -> Request:
        """The request that exact values of all options, those of the question too, amount to. Raises InvalidRequest."""
        spelling = {option.name for option in self.options if option.question}
        rest = {name: value for name, value in values.items() if name not in spelling}
        return self._make_checked_request(self.parse_question(values), rest)

    def _collect_solver_options(self, given: Values) -> Values:
        """What Python is given, with the solver's options that are given by name among `options`."""
        named = {
            name: given[name]
            for name in given
            if name in SOLVER_OPTIONS and name not in self._options_by_name
        }
        if not named or "options" not in self._options_by_name:
            return given
        rest = {name: value for name, value in given.items() if name not in named}
        options = rest.pop("options", None)
        known = {} if options is None else read_solver_options(options, "options")
        _refuse_duplicates(known, named)
        return {**rest, "options": {**known, **named}}

    def _make_checked_request(self, question: Any, values: Record) -> Request:
        if not isinstance(question, self.question_class):
            must("question", f"a {self.question_class.__name__}", repr(question))
        values.setdefault("check", "audit" if values.pop("certify", None) is False else "certify")
        if ours := [option.name for option in self.options if option.solver]:
            given = {name: values.pop(name) for name in ours if name in values}
            values["options"] = _merge_solver_options(values.get("options"), given)
        return self.build_request(question, {**values, "family": self})

    # Keys of sweeps.

    def sweep_key(self, values: Values) -> Record:
        """The fixed options of a sweep as they enter its keys, so that two spellings of one question share one."""
        return {
            option.name: to_json_value(values[option.name])
            for option in self.options_for("sweep")
            if not option.hot
        }

    def complete_point(self, values: Values, point: Values) -> Values:
        """A point with its defaults; values: the fixed options. Where a family minimises one of several things, δ is 0
        unless it is minimised, when leaving it out means no limit."""
        missing = (
            "delta" in point
            and point["delta"] is None
            and values.get("minimise", "delta") != "delta"
        )
        return {**point, "delta": Fraction(0)} if missing else point

    def solver_label(self, values: Values) -> str | None:
        """The label of the solver that is asked, None when there is none."""
        return str(values["solver"])

    def points_per_task(self, values: Values) -> int:
        """How many points of one path make a task of a sweep."""
        return 1

    # What designs are compared with (`workbench.pipeline.published`).

    def published_mechanisms(self) -> Sequence[Published]:
        """Return the published mechanisms of the family; one of another package returns its own."""
        listed: Sequence[Published] = ()
        if self.name in get_places("published mechanisms"):
            listed = load_provided("published mechanisms", self.name)
        return listed

    def compute_loss(self, request: Any, mechanism: Any) -> float:
        """What a mechanism costs that was made for a request. Raises InvalidRequest for one that does not fit it."""
        raise InvalidRequest(f"The family {self.name} takes no baselines from outside.")

    def relate_mechanism(self, request: Any, mechanism: Any) -> Any:
        """The mechanism under the neighbour relation of the request's question, for the audit."""
        return mechanism

    @property
    def design_arguments(self) -> list[Option]:
        """The keywords of `workbench.design` for a question of this family, those first that must be given."""
        options = [option for option in self.options_for("python") if not option.question]
        return sorted(options, key=lambda option: not option.required)

    def __repr__(self) -> str:
        return f"{self.name}: {self.title} (question: {self.question_class.__name__})"

    def __str__(self) -> str:
        lines = [repr(self)]
        for option in self.design_arguments:
            given = "required" if option.required else f"default {to_json_value(option.default)!r}"
            lines.append(
                textwrap.fill(
                    f"    {option.name} ({given}): {option.python_help}",
                    116,
                    subsequent_indent=" " * 8,
                )
            )
        return "\n".join(lines)


def _merge_solver_options(options: Record | None, given: Values) -> Options:
    """The solver's options. options: a mapping of them; given: those that the family has options for, exact values or
    None. Raises InvalidRequest for one that is given twice."""
    from workbench.solvers.backend import Options

    floats: Record = {name: float(value) if name in ("time_limit", "gap") and value is not None else value
              for name, value in given.items()}  # fmt: skip
    if floats.get("time_limit") is not None:
        floats["time_limit"] = min(floats["time_limit"], _MAX_TIME_LIMIT_SECONDS)
    if options is None:
        return Options(**floats)
    named = {name: value for name, value in floats.items() if value is not None}
    _refuse_duplicates(options, named)
    return Options(**{**options, **named})


def _refuse_duplicates(options: Values, named: Values) -> None:
    """Raise InvalidRequest where a solver's option is given in `options` and by its name."""
    for name in named:
        if options.get(name) is not None and not (name == "threads" and options[name] == 1):
            raise InvalidRequest(f"{name} must be given once. Got it in options as well.")
