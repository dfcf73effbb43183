"""Define the interface of a family: one kind of question with its options, requests and sessions.

    options ──read──▶ Request (frozen, exact numbers) ──open──▶ Session ──design(point)──▶ Design

The command line, sweeps, frontiers and the comparison of solvers use only this interface. They know
no family by name. To add a family, write a folder with a `Family` and add one line to
`workbench.pipeline.registry`.
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
    from workbench.pipeline.formula_program import Interval
    from workbench.pipeline.published import Published
    from workbench.solvers.backend import Options


# Solvers refuse larger time limits.
_MAX_TIME_LIMIT_SECONDS = 1e9
# The printed list of options is wrapped at this many characters.
_OPTION_LIST_WIDTH = 116


class Session:
    """One request that is solved at many values of its hot options.

    A session may keep a live solver from point to point. The session of a family without a hot
    start solves every point separately with `Family.solve`.

    Args:
        request: The request: its question, claim, aim and how.
    """

    def __init__(self, request: Request) -> None:
        self.request = request

    def design(self, point: Values | None = None, *, start: str = "hot") -> Design:
        """Design a mechanism at a point.

        Args:
            point: Exact values of hot options. Missing ones have the value of the request.
            start: "hot" continues from the previous solve, "cold" does not.

        Raises:
            InvalidRequest, Infeasible, SolverUnavailable, LicenceLimit, NotProven, NotCertified:
                There is no design, or it is not proven optimal.
        """
        design: Design = self.request.family.solve(self.request.at_point(point or {}))
        return design

    def row(self, point: Values, *, start: str = "hot") -> Row:
        """Return the design at a point as a row of a table (`workbench.pipeline.outcome`).

        Args:
            point: As in `design`.
            start: As in `design`.

        Raises:
            WorkbenchError: As in `design`.
        """
        return self.design(point, start=start).row()

    def close(self) -> None:
        """Release native resources. Does nothing unless a session overrides it."""

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Family(Reports):
    """One kind of question.

    Attributes:
        name: Name in commands, sweeps and keys.
        title: What is designed, in a few words.
        summary: One sentence for help pages.
        examples: Command lines.
        formulas: Command lines of `workbench formula`.
        options: Options in the order of tables.
        no_formula_reason: Why the family has no formula in e^ε.
        solving_option_names: Options that say how a program is solved and not what is designed.
    """

    title: str
    summary: str
    examples: Sequence[str] = ()
    formulas: Sequence[str] = ()
    options: Sequence[Option]
    no_formula_reason: str = "it states no linear program with powers of e^epsilon in it"
    solving_option_names: Strings = ("solver", "options", "certify")

    @property
    def frontier(self) -> str | None:
        """Return the module with `FRONTIER`, None if there is none. Plug-ins set the attribute."""
        return get_places("frontiers").get(self.name)

    @property
    def programs(self) -> str | None:
        """Return the module with `instances()`, None if there is none.

        Plug-ins set the attribute.
        """
        return get_places("programs").get(self.name)

    @property
    def recommendation(self) -> str | None:
        """Return the module with `candidates(query)`, None if there is none.

        Plug-ins set the attribute.
        """
        return get_places("recommendations").get(self.name)

    @property
    @abstractmethod
    def question_class(self) -> type:
        """Return the class of the questions of this family."""

    @abstractmethod
    def parse_question(self, values: Values) -> Any:
        """Make a question from the values of options.

        Args:
            values: Exact values by name.

        Raises:
            InvalidRequest: The values describe no question.
        """

    @abstractmethod
    def build_request(self, question: Any, values: Record) -> Request:
        """Make a request from exact values.

        Args:
            question: The question, such as a `ModuloNoise` or a `FiniteQuery`.
            values: check, options (a `workbench.solvers.backend.Options`), family, and every option
                that does not describe the question.

        Raises:
            InvalidRequest: The values contradict each other.
        """

    def open_session(self, request: Any) -> Session:
        """Open a session for a request, without solving anything.

        Args:
            request: A request of this family.
        """
        return Session(request)

    def design_request(self, request: Any) -> Design:
        """Design a mechanism for one request. Raises WorkbenchError.

        Args:
            request: A request of this family.
        """
        with self.open_session(request) as session:
            return session.design()

    def trace_patterns(
        self, request: Any, deltas: Interval, time_limit: float | None, progress: Progress | None
    ) -> Sequence[FrontierPiece]:
        """Trace the frontier over δ of a notion whose programs have binaries, at the request's ε.

        Args:
            request: The request. Its δ is the upper end of `deltas`.
            deltas: The interval of δ, in order.
            time_limit: Seconds, or None for no limit.
            progress: Function that is called with a line of text from time to time.

        Returns:
            The pieces from δ = 0 on, each of one pattern of pairs that exceed the ratio.
            `workbench.formula` makes formulas of them.

        Raises:
            InvalidRequest: The family traces no patterns, or not those of this request.
        """
        notion = request.claim.notion.name
        raise InvalidRequest(
            f"A formula of the family {self.name} under {notion} would need binary variables."
        )

    def question_to_options(self, question: Any) -> Record:
        """Return the values of the options that describe a question.

        Args:
            question: A question of this family.

        Raises:
            InvalidRequest: Options cannot describe the question.
        """
        raise InvalidRequest(f"A question of the family {self.name} cannot be written as options.")

    def solve(self, request: Any) -> Design:
        """Design a mechanism for one request, in a family without a hot start.

        Args:
            request: A request of this family.
        """
        raise NotImplementedError(f"The family {self.name} has neither `open_session` nor `solve`.")

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Return the name of the variable that holds the family in its module.

        Pickling by this name makes another process use its own object. A family that no variable
        holds is made anew.
        """
        for name, value in vars(sys.modules[type(self).__module__]).items():
            if value is self:
                return name
        return (type(self), ())

    # Options.

    def options_for(self, place: Place) -> list[Option]:
        """Return the options of a command line, of Python or of a sweep.

        Args:
            place: "command", "python" or "sweep".
        """
        return [option for option in self.options if place in option.places]

    @property
    def design_examples(self) -> list[str]:
        """Return the examples that design a mechanism, without options for output."""
        start = f"design {self.name} "
        lines = [line for line in self.examples if line.startswith(start)]
        return [re.split(r" --(?:json|plot|save)\b", line)[0] for line in lines]

    @property
    def hot_option_names(self) -> Strings:
        """Return the options that move along a path. The last one varies fastest."""
        return tuple(option.name for option in self.options if option.hot)

    @cached_property
    def _options_by_name(self) -> dict[str, Option]:
        """Return all options by name."""
        return {option.name: option for option in self.options}

    def get_option(self, name: str) -> Option:
        """Return an option. Raises KeyError.

        Args:
            name: Name of the option.
        """
        return self._options_by_name[name]

    def read_values(
        self, values: Values, place: Place = "python", *, with_question: bool = False
    ) -> Record:
        """Return the exact value of every option of a place, including defaults.

        Args:
            values: Values as they were given.
            place: "command", "python" or "sweep".
            with_question: Whether Python gives the question by options, and not as an object.

        Raises:
            InvalidRequest: A value is invalid.
        """
        options = self.options_for(place)
        if place == "python" and not with_question:
            options = self.design_arguments
        return read_options(options, values, exact_defaults=True)

    def make_request(self, question: Any, **options: Any) -> Request:
        """Make a request from a question and options of Python.

        Args:
            question: The question, such as a `ModuloNoise` or a `FiniteQuery`.
            options: Values as they were given.

        Raises:
            InvalidRequest: A value is invalid.
        """
        values = self.read_values(self._collect_solver_options(options))
        return self._make_checked_request(question, values)

    def make_request_from_options(self, **options: Any) -> Request:
        """Make a request from options of Python that also describe the question.

        Args:
            options: Values as they were given.

        Raises:
            InvalidRequest: A value is invalid.
        """
        values = self._collect_solver_options(options)
        return self.make_request_from_values(self.read_values(values, "python", with_question=True))

    def make_request_from_values(self, values: Values) -> Request:
        """Make a request from the exact values of all options, including those of the question.

        Args:
            values: Exact values by name.

        Raises:
            InvalidRequest: The values contradict each other.
        """
        question_names = {option.name for option in self.options if option.question}
        others = {name: value for name, value in values.items() if name not in question_names}
        return self._make_checked_request(self.parse_question(values), others)

    def _collect_solver_options(self, values: Values) -> Values:
        """Move solver options that are given by name into the value of `options`."""
        names = SOLVER_OPTIONS.keys() - self._options_by_name.keys()
        solver_values = {name: value for name, value in values.items() if name in names}
        if not solver_values or "options" not in self._options_by_name:
            return values
        others = {name: value for name, value in values.items() if name not in solver_values}
        options = others.pop("options", None)
        options = {} if options is None else read_solver_options(options, "options")
        _refuse_duplicates(options, solver_values)
        return {**others, "options": {**options, **solver_values}}

    def _make_checked_request(self, question: Any, values: Record) -> Request:
        """Make a request from a question and exact values, with check and options of the solver."""
        if not isinstance(question, self.question_class):
            must("question", f"a {self.question_class.__name__}", repr(question))
        check = "certify"
        if values.pop("certify", None) is False:
            check = "audit"
        values.setdefault("check", check)
        solver_names = [option.name for option in self.options if option.solver]
        if solver_names:
            solver_values = {name: values.pop(name) for name in solver_names if name in values}
            values["options"] = _merge_solver_options(values.get("options"), solver_values)
        return self.build_request(question, {**values, "family": self})

    # Keys of sweeps.

    def sweep_key(self, values: Values) -> Record:
        """Return the fixed options of a sweep in the form that its keys contain.

        Args:
            values: Exact values. Equal questions have equal keys.
        """
        options = [option for option in self.options_for("sweep") if not option.hot]
        return {option.name: to_json_value(values[option.name]) for option in options}

    def complete_point(self, values: Values, point: Values) -> Values:
        """Return a point of a sweep with its defaults.

        A family that minimises one of several quantities has δ = 0 by default. If δ is minimised,
        a missing δ means that it has no limit.

        Args:
            values: Exact values by name of the options that a session keeps fixed.
            point: Exact values by name of the hot options, which change between designs.
        """
        has_no_delta = "delta" in point and point["delta"] is None
        if has_no_delta and values.get("minimise", "delta") != "delta":
            return {**point, "delta": Fraction(0)}
        return point

    def solver_label(self, values: Values) -> str | None:
        """Return the label of the solver that is called, None if there is none.

        Args:
            values: The fixed options of a sweep.
        """
        return str(values["solver"])

    def points_per_task(self, values: Values) -> int:
        """Return how many points of one path a task of a sweep has.

        Args:
            values: The fixed options of the sweep.
        """
        return 1

    # Mechanisms that designs are compared with (`workbench.pipeline.published`).

    def published_mechanisms(self) -> Sequence[Published]:
        """Return the published mechanisms of the family. A plug-in returns its own."""
        mechanisms: Sequence[Published] = ()
        if self.name in get_places("published mechanisms"):
            mechanisms = load_provided("published mechanisms", self.name)
        return mechanisms

    def compute_loss(self, request: Any, mechanism: Any) -> float:
        """Return the expected loss of a baseline.

        Args:
            request: A request of this family.
            mechanism: A mechanism for the request.

        Raises:
            InvalidRequest: The mechanism does not fit the request.
        """
        raise InvalidRequest(f"The family {self.name} does not accept baselines.")

    def relate_mechanism(self, request: Any, mechanism: Any) -> Any:
        """Return a mechanism with the neighbour relation of the request, for the audit.

        Args:
            request: A request of this family.
            mechanism: A mechanism for the request.
        """
        return mechanism

    @property
    def design_arguments(self) -> list[Option]:
        """Return the keywords of `workbench.design` for this family, required ones first."""
        options = [option for option in self.options_for("python") if not option.question]
        return sorted(options, key=lambda option: not option.required)

    def __repr__(self) -> str:
        return f"{self.name}: {self.title} (question: {self.question_class.__name__})"

    def __str__(self) -> str:
        lines = [repr(self)]
        for option in self.design_arguments:
            default = f"default {to_json_value(option.default)!r}"
            if option.required:
                default = "required"
            text = f"    {option.name} ({default}): {option.python_help}"
            lines.append(textwrap.fill(text, _OPTION_LIST_WIDTH, subsequent_indent=" " * 8))
        return "\n".join(lines)


def _merge_solver_options(options: Record | None, values: Values) -> Options:
    """Return the options of the solver.

    Args:
        options: Value of the option `options`.
        values: Exact values of the options that the family has for its solver.

    Raises:
        InvalidRequest: An option is given twice.
    """
    from workbench.solvers.backend import Options

    solver_values: Record = {}
    for name, value in values.items():
        is_number = name in ("time_limit", "gap") and value is not None
        solver_values[name] = float(value) if is_number else value
    if solver_values.get("time_limit") is not None:
        solver_values["time_limit"] = min(solver_values["time_limit"], _MAX_TIME_LIMIT_SECONDS)
    if options is None:
        return Options(**solver_values)
    given_values = {name: value for name, value in solver_values.items() if value is not None}
    _refuse_duplicates(options, given_values)
    return Options(**{**options, **given_values})


def _refuse_duplicates(options: Values, values: Values) -> None:
    """Raise InvalidRequest if a solver option is given both in `options` and by its name."""
    for name in values:
        # The number of threads is always set. Its default 1 does not count as given.
        is_default = name == "threads" and options.get(name) == 1
        if options.get(name) is not None and not is_default:
            raise InvalidRequest(f"{name} must be given once. Got it in options as well.")
