"""Which classes of mechanisms can serve one finite query, and what each of them costs at its best.

A family joins when its `Family.recommendation` names a module with `candidates(query) -> Iterable[Candidate]`; one that
does not apply says why (`Candidate.reason`), so that a row is never missing in silence. All costs are the expected loss
of published and true answer under the query's own prior.
"""

from __future__ import annotations

import importlib
import math
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

from workbench.errors import NotApplicable, NotProven
from workbench.exact.objects import Record, Strings, Values
from workbench.exact.time_limit import OutOfTime
from workbench.io.files import format_fraction
from workbench.pipeline.design import Design
from workbench.pipeline.family import Family
from workbench.pipeline.loss_tables import LossTable, make_loss_table, make_picklable
from workbench.pipeline.published import Published
from workbench.pipeline.registry import list_families
from workbench.pipeline.request import Aim, Request
from workbench.privacy.claim import Claim, format_parameter
from workbench.questions.answer_grid import AnswerGrid, find_answer_grid
from workbench.questions.finite_query import FiniteQuery
from workbench.questions.range_query import RangeQuery
from workbench.solvers.search import Chords, Deadline, bisect


class Value(NamedTuple):
    """objective: what the mechanism costs, exactly, as a float; bound: below which no mechanism of its class can cost
    (None: its parameters are given, or nothing is proven); certified: whether exact arithmetic proves it private;
    parameter: of a published mechanism, in words; stopped: whether the time was up before the two met; mechanism: what
    was audited; design: the certified design, made when it is asked for; square: the mean squared error, where it is
    neither the objective nor known from the mechanism."""

    objective: float
    bound: float | None
    is_certified: bool
    parameter: str = ""
    is_stopped: bool = False
    mechanism: Any = None
    design: Callable[[], Design] | None = None
    squared_error: float | None = None

    @classmethod
    def from_design(cls, design: Design, stopped: bool = False, words: str = "") -> Value:
        """That of a design."""
        certified = design.certificate is not None
        return cls(
            design.objective,
            design.bound,
            certified,
            words,
            stopped,
            design.mechanism,
            partial(_return_design, design),
        )


def _return_design(design: Design) -> Design:
    """A design that is made already: a function of a module, so that a Value can be pickled."""
    return design


_LITTLE, _SOLVERS = 0.2, 0.8  # seconds, and of the time of a class
_GRACE = 0.05  # of the time of all classes


class TimeShares:
    """So many seconds for all classes of a query. waiting: how many of them are still to come after one."""

    def __init__(self, seconds: float) -> None:
        self._deadline, self.seconds, self.waiting_classes = Deadline(seconds), seconds, 0

    @property
    def _equal(self) -> float:
        """Seconds for the next class: an equal share of what is left."""
        return (self._deadline.remaining_seconds or 0.0) / (1 + self.waiting_classes)

    @property
    def solver_seconds(self) -> float:
        """Of these the seconds of its solvers, at least a little; the rest is for exact work."""
        return max(_LITTLE, _SOLVERS * self._equal)

    @property
    def class_seconds(self) -> float:
        """Seconds for a class that begins now, its exact work included: at least a part of all, however little others
        left."""
        return max(self._equal, _GRACE * self.seconds)


def design_within_time(request: Request, time: TimeShares | None = None) -> tuple[Design, bool]:
    """Design a certified mechanism for a request.

    Args:
        request: The request; its family designs it.
        time: Seconds, of which the solver gets its share. Default: no limit.

    Returns:
        The design, and whether the time was up before it was proven.

    Raises:
        WorkbenchError: There is no design.
    """
    family: Family = request.family
    if time is not None and any(option.name == "time_limit" for option in family.options):
        seconds = float(Fraction(time.solver_seconds).limit_denominator(1000))
        request = request.with_options(replace(request.how.options, time_limit=seconds))
    try:
        return family.design_request(request), False
    except NotProven as error:
        if error.interrupted:
            raise KeyboardInterrupt from None
        if error.design is None:
            raise
        return error.design, True


def evaluate_published(
    entry: Published, request: Any, design: Callable[[str, Any], Design] | None = None
) -> Value:
    """What a published mechanism costs a request of its family. design: of its name and law. Raises NotApplicable."""
    cost = entry.make_reference(request)
    if cost.mechanism is not None and not cost.is_certified:
        words = f"it costs {cost.objective:.9g}, and is not private at this budget. {cost.explain_shortfall(request)}"
        raise NotApplicable(words)
    certified = (
        None
        if design is None or cost.mechanism is None
        else partial(design, entry.name, cost.mechanism)
    )
    return Value(
        cost.objective,
        None,
        cost.is_certified,
        cost.parameter_text,
        False,
        cost.mechanism,
        certified,
    )


@dataclass(frozen=True)
class Candidate:
    """One class of mechanisms for a query.

    name: of the class; needs: what it does with answers, in a few words. solve: its value, computed when asked for;
    reason: why the class does not apply, instead; contains: the names of classes all of whose mechanisms are in this
    one; programs: whether it goes to a solver, after those that do not; simplicity: of what costs the same the least is
    recommended; minimises: whether `solve` itself finds the least ε for the largest loss of a query; several: whether
    it takes budgets of several runs; command: that designs the same, where there is one. request: what the family of a
    designed class is asked; None for a closed form.
    """

    name: str
    needs: str = ""
    solve: Callable[[], Value] | None = None
    reason: str | None = None
    contains: Strings = ()
    uses_solver: bool = False
    complexity: int = 2
    finds_least_epsilon: bool = False
    supports_runs: bool = False
    command: str | None = None
    request: Callable[[], Request] | None = None

    @classmethod
    def from_request(
        cls,
        name: str,
        needs: str,
        request: Callable[[], Request],
        time: TimeShares | None,
        read: Callable[[Design, bool], Value] = Value.from_design,
        **more: Any,
    ) -> Candidate:
        """Make the class that the family of a request designs.

        Args:
            name: The name of the class.
            needs: What it does with answers, in a few words.
            request: Returns the request. It is called when the class is solved.
            time: The time of all classes.
            read: Makes the value of a design, and of whether it was stopped.
            more: Other attributes of the class.
        """

        def solve() -> Value:
            return read(*design_within_time(request(), time))

        return cls(name, needs, solve, request=request, uses_solver=True, **more)


def _identity_key(value: Any) -> Any:
    """Return what tells a value from others: itself, or which object it is."""
    try:
        hash(value)
    except TypeError:
        return id(value)
    return type(value), value


class Requests:
    """The requests of one recommendation, each of which is built once."""

    def __init__(self) -> None:
        self._known: dict[Any, tuple[Request, Any]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy for another process starts empty."""
        return (Requests, ())

    def get_request(self, family: Family, question: Any, options: Record) -> Request:
        """Return the request of a family for a question, by the names of its options. Raises InvalidRequest."""
        parts = tuple((name, _identity_key(value)) for name, value in sorted(options.items()))
        key = family.name, _identity_key(question), parts
        if key not in self._known:
            # The values are kept, so that no other object gets the identity of one.
            self._known[key] = family.make_request(question, **options), (question, options)
        return self._known[key][0]


@dataclass(frozen=True, kw_only=True)
class Query:
    """A query with its budget.

    question: of finitely many answers, or a RangeQuery (`range`) of real ones. claim: the notion with its budget; where
    the least ε for a largest loss is sought, its upper limit or None. words: option, where given -> its text on a
    command line (None: it has none). own: baselines of the user, as `workbench.pipeline.user_baselines` reads them;
    named:
    published ones whose distance from the optimum is asked for.
    """

    question: FiniteQuery
    claim: Claim
    aim: Aim = field(default_factory=lambda: Aim(loss="squared"))
    time: TimeShares | None = None
    option_texts: Mapping[str, str | None] | None = None
    user_baselines: tuple[tuple[str, Any], ...] = ()
    compared_names: Strings = ()
    requests: Requests = field(default_factory=Requests, repr=False, compare=False)

    def make_request(self, family: Family, question: Any, **options: Any) -> Request:
        """Return the request of a family, which is built once in a recommendation. Raises InvalidRequest."""
        return self.requests.get_request(family, question, options)

    def __getstate__(self) -> Record:
        """What is pickled: the matrix of a loss that is a function."""
        if self.has_real_answers:
            return self.__dict__
        return {
            **self.__dict__,
            "aim": replace(self.aim, loss=make_picklable(self.aim.loss, self.losses)),
        }

    @property
    def has_real_answers(self) -> bool:
        """Whether its answers are real ones in a range."""
        return isinstance(self.question, RangeQuery)

    @property
    def range_query(self) -> RangeQuery:
        """The question with real answers."""
        assert isinstance(self.question, RangeQuery)
        return self.question

    @property
    def single_run_budget(self) -> Record:
        """The budget of one run, as designs take it."""
        given = {name: value for name, value in self.claim.values.items() if value is not None}
        return {"notion": self.claim.notion.name, **given}

    @property
    def budget_options(self) -> Record:
        """What designs take of it: the budget, what is minimised where that is not the loss, the runs."""
        aim = self.aim
        least = {} if aim.max_loss is None else {"minimise": aim.minimise, "max_loss": aim.max_loss}
        return self.single_run_budget | least | ({"runs": aim.runs} if aim.runs > 1 else {})

    def class_command(self, name: str, **more: object) -> str | None:
        """The command line that makes one class alone, with more options; None where the query is no text."""
        given = {
            known: value for known, value in (self.option_texts or {}).items() if known not in more
        }
        if not given or None in given.values():
            return None
        return _format_command("recommend", {**given, "only": name, **more})

    def design_command(self, family: str, *names: str, **more: object) -> str | None:
        """The command line of a family's design: options of the query as they were given, others, the budget; None
        where one of them is no text."""
        given = self.option_texts or {}
        shown = {name: given[name] for name in names if name in given} | {
            name: _format_option_text(value) for name, value in more.items()
        }
        for name, value in self.budget_options.items():
            if name != "notion" and (value or name != "delta"):
                shown[name] = (
                    format_fraction(value)
                    if isinstance(value, Fraction)
                    else format_parameter(value)
                )
        if None in shown.values():
            return None
        return _format_command(f"design {family}", {**shown, "notion": self.claim.notion.name})

    @cached_property
    def losses(self) -> LossTable:
        """What every output costs every input. Raises InvalidRequest."""
        return make_loss_table(self.question, self.aim.loss)

    @cached_property
    def grid(self) -> AnswerGrid | None:
        """The answers by value, in steps; None where they are no numbers."""
        return find_answer_grid(self.question)

    @property
    def is_per_distance(self) -> bool:
        """Whether ε is per unit of distance."""
        return self.claim.notion.is_per_distance

    @property
    def audited_claim(self) -> Claim:
        """The claim that a mechanism is audited for, with a budget for every pair where ε is per unit of distance."""
        if not self.is_per_distance:
            return self.claim
        pairs = zip(*self.question.metric_pairs(), strict=True)
        return self.claim.with_values(epsilon={pair: self.claim.epsilon * d for pair, d in pairs})


def format_bits(outputs: int) -> str:
    """How many bits tell so many outputs apart, in words."""
    bits = max(1, (outputs - 1).bit_length())
    return f"{bits} bit{'s' * (bits > 1)}"


RANGE_CHANNEL = "channel on a grid"  # the class of all channels of a range


def list_candidates(query: Query) -> Iterator[Candidate]:
    """Those of every family, those of other packages last; a family serves real queries where its module has
    `real_candidates(query)`. Of T runs each has (ε/T, δ/T), which adds up to the budget, and is the best of it where
    δ = 0; with δ classes that take budgets of several runs do better."""
    if query.aim.runs == 1:
        yield from _list_family_candidates(query)
        return
    shares = {name: query.claim.values[name] / query.aim.runs for name in ("epsilon", "delta")}
    several = (
        {each.name: each for each in _list_family_candidates(query) if each.supports_runs}
        if query.claim.delta
        else {}
    )
    for candidate in _list_family_candidates(
        replace(query, claim=query.claim.with_values(**shares), aim=replace(query.aim, runs=1))
    ):
        yield several.get(candidate.name) or _with_equal_share(query, candidate)


def _with_equal_share(query: Query, candidate: Candidate) -> Candidate:
    """A class at an equal share of the budget."""
    solve = candidate.solve
    if solve is None:
        return candidate

    def value() -> Value:
        once = solve()
        return once._replace(bound=None) if query.claim.delta else once

    each = f"each of {query.aim.runs} runs has an equal share of the budget"
    return replace(candidate, solve=value, needs=f"{candidate.needs}; {each}")


_LEAST, _MOST = 1e-4, 20.0  # ε that are tried
_FACTOR, _TURNS = 4.0, 40  # of ε, until a loss is on either side; of the search between them
_NEAR = 1e-6  # relative, of the ends
_SHARE = 1e-3  # of the way between the ends, at least
_BELOW = (
    0.02,
    0.06,
)  # relative, below the least that was found: where a bound that is less near may exclude ε


def find_least_epsilon(query: Query, name: str) -> Value:
    """A class at the least ε found at which it costs no more than the query's max_loss: by chords of its loss, in
    logarithms. bound: the largest ε tried at which a proven bound is above max_loss, since the least loss of a class
    falls with ε.

    Raises NotApplicable, also where no ε up to 20 is enough, and NotProven where the time is up before any is.
    """
    assert query.aim.max_loss is not None
    most, deadline = (
        float(query.aim.max_loss),
        Deadline(None if query.time is None else query.time.solver_seconds),
    )
    chords, values, excluded = (
        Chords(_SHARE),
        dict[Fraction, Value](),
        [0.0],
    )  # values: of each ε that is enough

    def enough(log: float) -> bool:
        if deadline.has_passed:
            raise NotProven("The search stopped at its time limit.", bound=max(excluded))
        epsilon, left = Fraction(f"{math.exp(log):.9g}"), deadline.remaining_seconds
        time = None if left is None else TimeShares(left)
        aim = replace(query.aim, minimise="loss", max_loss=None)
        plain = replace(query, claim=query.claim.with_values(epsilon=epsilon), aim=aim, time=time)
        candidate = next(each for each in list_candidates(plain) if each.name == name)
        if candidate.solve is None:
            raise NotApplicable(candidate.reason or "it does not apply")
        value = candidate.solve()
        if value.bound is not None and value.bound > most:
            excluded.append(float(epsilon))
        chords.values[log] = math.log(max(value.objective, 1e-300) / most)
        within = value.objective <= most and (value.is_certified or value.mechanism is None)
        if within:
            values[epsilon] = value
        return within

    stopped, factor = False, math.log(_FACTOR)
    top, low = math.log(query.claim.epsilon or _MOST), math.log(_LEAST)
    try:
        high = min(0.0, top)
        while high < top and not enough(high):
            high, low = min(top, high + factor), high
        if high == top and not enough(high):
            raise NotApplicable(f"no epsilon up to {math.exp(top):g} is enough for this loss")
        while low < high - factor and enough(high - factor):
            high -= factor
        low = max(low, high - factor)
        low, high = bisect(
            enough, low, high, tolerance=_NEAR, max_steps=_TURNS, choose_point=chords.choose_point
        )
        for step in _BELOW if values[min(values)].bound is not None else ():
            if max(excluded) < math.exp(high - 1.5 * step):
                enough(high - step)
    except (NotProven, OutOfTime) as error:
        if not values or getattr(error, "interrupted", False):
            error.incumbent, error.bound = (
                None,
                max(excluded) or None,
            )  # of epsilon, not of a loss at one
            raise
        stopped = True
    epsilon, value = min(values.items())
    words = "; ".join(filter(None, (value.parameter, f"loss {value.objective:.9g}")))
    return value._replace(
        objective=float(epsilon), bound=max(excluded) or None, parameter=words, is_stopped=stopped
    )


def _list_family_candidates(query: Query) -> Iterator[Candidate]:
    for kind in list_families():
        if kind.recommendation is not None:
            module = importlib.import_module(kind.recommendation)
            offer = getattr(
                module, "real_candidates" if query.has_real_answers else "candidates", None
            )
            if offer is not None:
                yield from offer(query)
            elif query.has_real_answers:
                yield Candidate(
                    kind.title,
                    reason="it is for finitely many answers: --answers instead of --range",
                )


def _format_command(words: str, options: Mapping[str, object]) -> str:
    """A command: words, then options, flags without a value."""
    texts = [
        f"--{name.replace('_', '-')}" + (f" {shlex.quote(str(value))}" if value != "" else "")
        for name, value in options.items()
    ]
    return " ".join(["workbench", words, *texts])


_PLAIN = (str, int, float, Fraction, Path)


def format_option_texts(given: Values) -> dict[str, str | None]:
    """Options as the texts of a command line; None for what is none, "" for a flag that is set."""
    return {
        name: _format_option_text(value)
        for name, value in given.items()
        if value is not None and value is not False
    }


def _format_option_text(value: Any) -> str | None:
    """A list of numbers or words is separated by commas."""
    if value is True:
        return ""
    if isinstance(value, (list, tuple, range)) and all(isinstance(part, _PLAIN) for part in value):
        parts = [str(part) for part in value]
        return None if any("," in part for part in parts) else ",".join(parts)
    return str(value) if isinstance(value, _PLAIN) else None
