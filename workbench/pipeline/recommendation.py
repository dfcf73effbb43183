"""Compute, for one query, the expected loss of the best mechanism of each class.

A family takes part if its `Family.recommendation` names a module with a function
`candidates(query) -> Iterable[Candidate]`. A class that does not apply gives a reason
(`Candidate.reason`), so that no row of the table is missing without an explanation. All losses are
expected losses of the published against the true answer, under the prior of the query.
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
    """The row of one class of mechanisms: the loss of its best mechanism, and what is proven.

    Attributes:
        objective: Expected loss of the mechanism, computed exactly and rounded to a float.
        bound: Proven lower bound on the expected loss of every mechanism of the class. None if the
            parameters of the mechanism are given, or if nothing is proven.
        is_certified: Whether exact arithmetic proves that the mechanism is private.
        parameter: Parameter of a published mechanism as text.
        is_stopped: Whether the time limit was reached before loss and bound met.
        mechanism: The audited mechanism.
        design: Function that returns the certified design. None if there is none.
        squared_error: Mean squared error. None if the objective or the mechanism gives it.
    """

    objective: float
    bound: float | None
    is_certified: bool
    parameter: str = ""
    is_stopped: bool = False
    mechanism: Any = None
    design: Callable[[], Design] | None = None
    squared_error: float | None = None

    @classmethod
    def from_design(cls, design: Design, is_stopped: bool = False, parameter: str = "") -> Value:
        """Make the value of a design.

        Args:
            design: The `Design` of the class.
            is_stopped: Whether the time limit was reached before it was proven optimal.
            parameter: Text of its parameter.
        """
        return cls(
            objective=design.objective,
            bound=design.bound,
            is_certified=design.certificate is not None,
            parameter=parameter,
            is_stopped=is_stopped,
            mechanism=design.mechanism,
            design=partial(_return_design, design),
        )


def _return_design(design: Design) -> Design:
    """Return a design. This is a function of the module so that a Value can be pickled."""
    return design


# A solver gets at least this many seconds, however little time is left.
_MIN_SOLVER_SECONDS = 0.2
# A solver gets this share of the time of a class. The rest is for exact arithmetic.
_SOLVER_TIME_SHARE = 0.8
# Every class gets at least this share of the time of all classes.
_MIN_CLASS_TIME_SHARE = 0.05


class TimeShares:
    """Divide a time limit among the classes of a query.

    Every class gets an equal part of the time that is left when it begins. The caller sets
    `waiting_classes` before each class.

    Attributes:
        seconds: The time limit of all classes together.
        waiting_classes: Number of classes that come after the current one.
    """

    def __init__(self, seconds: float) -> None:
        self._deadline = Deadline(seconds)
        self.seconds = seconds
        self.waiting_classes = 0

    @property
    def _equal_share(self) -> float:
        """Return the seconds of the current class if all remaining classes get the same time."""
        return (self._deadline.remaining_seconds or 0.0) / (1 + self.waiting_classes)

    @property
    def solver_seconds(self) -> float:
        """Return the time limit of a solver in the current class."""
        return max(_MIN_SOLVER_SECONDS, _SOLVER_TIME_SHARE * self._equal_share)

    @property
    def class_seconds(self) -> float:
        """Return the time limit of a class that begins now, including its exact arithmetic."""
        return max(self._equal_share, _MIN_CLASS_TIME_SHARE * self.seconds)


def design_within_time(request: Request, time: TimeShares | None = None) -> tuple[Design, bool]:
    """Design a certified mechanism for a request.

    Args:
        request: The request, which its family designs.
        time: Time of all classes, of which the solver gets its share. None: no limit.

    Returns:
        The design, and whether the time limit was reached before it was proven optimal.

    Raises:
        WorkbenchError: There is no design.
    """
    family: Family = request.family
    if time is not None and any(option.name == "time_limit" for option in family.options):
        # The fraction has a small denominator, so that the limit is about a whole millisecond.
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
    """Evaluate a published mechanism at the budget of a request.

    Args:
        entry: The published mechanism.
        request: A request of its family.
        design: Function of the name and the law of the mechanism that returns its design.

    Raises:
        NotApplicable: The mechanism does not apply or is not private at this budget.
    """
    reference = entry.make_reference(request)
    if reference.mechanism is not None and not reference.is_certified:
        loss = f"its expected loss is {reference.objective:.9g}"
        reason = reference.explain_shortfall(request)
        raise NotApplicable(f"{loss}, but it is not private at this budget. {reason}")
    make_design = None
    if design is not None and reference.mechanism is not None:
        make_design = partial(design, entry.name, reference.mechanism)
    return Value(
        objective=reference.objective,
        bound=None,
        is_certified=reference.is_certified,
        parameter=reference.parameter_text,
        mechanism=reference.mechanism,
        design=make_design,
    )


@dataclass(frozen=True)
class Candidate:
    """One class of mechanisms for a query, before it is solved.

    Attributes:
        name: Name of the class in the table, such as "geometric".
        needs: How the class turns answers into outputs, in a few words for the table.
        solve: Function that computes the value of the class. None if the class does not apply.
        reason: Why the class does not apply. None if it applies.
        contains: Names of the classes whose mechanisms all belong to this class.
        uses_solver: Whether it calls a solver. Such classes come after all others.
        complexity: Rank of the class among classes of equal loss. The smallest is recommended.
            Default: 2, after published channels (0 or 1) and before the best channel (3).
        finds_least_epsilon: Whether `solve` itself finds the minimal ε for the largest loss of a
            query.
        supports_runs: Whether it accepts budgets for several runs.
        command: Command line that designs the same mechanism, if there is one.
        request: Function that returns the request of the class. None for a closed form.
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
        **attributes: Any,
    ) -> Candidate:
        """Make the class that the family of a request designs.

        Args:
            name: Name of the class.
            needs: What it does with answers, in a few words.
            request: Function that returns the request. It is called when the class is solved.
            time: Time of all classes. None: no limit.
            read: Function of the design, and of whether it was stopped, that returns the value.
            attributes: Other attributes of the class.
        """

        def solve() -> Value:
            """Design the request within its time, and read the value of the design."""
            return read(*design_within_time(request(), time))

        return cls(
            name=name, needs=needs, solve=solve, request=request, uses_solver=True, **attributes
        )


def _identity_key(value: Any) -> Any:
    """Return a key that is equal for equal values. The key of a value without a hash is its id."""
    try:
        hash(value)
    except TypeError:
        return id(value)
    return type(value), value


class Requests:
    """A cache of the requests of one recommendation. Pickling it drops its contents."""

    def __init__(self) -> None:
        self._requests: dict[Any, tuple[Request, Any]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what makes an empty copy in another process."""
        return (Requests, ())

    def get_request(self, family: Family, question: Any, options: Record) -> Request:
        """Return the request of a family for a question. Equal arguments give the same object.

        Args:
            family: The `Family`.
            question: Its question.
            options: Values of options by name.

        Raises:
            InvalidRequest: The options are invalid.
        """
        parts = tuple((name, _identity_key(value)) for name, value in sorted(options.items()))
        key = family.name, _identity_key(question), parts
        if key not in self._requests:
            request = family.make_request(question, **options)
            # The values are stored too, so that no new object can get the identity of one of them.
            self._requests[key] = request, (question, options)
        return self._requests[key][0]


@dataclass(frozen=True, kw_only=True)
class Query:
    """A question with its budget and its loss, for which classes of mechanisms are compared.

    Attributes:
        question: A question of finitely many answers, or a RangeQuery of real answers.
        claim: The notion with its budget. If ε is minimised, its ε is the upper limit or None.
        aim: The loss, what is minimised, and the number of runs.
        time: Time of all classes. None: no limit.
        option_texts: Text of every given option on a command line, None for a value without a text.
        user_baselines: Baselines of the user, as `workbench.pipeline.user_baselines` reads them.
        compared_names: Names of published mechanisms that are compared with the optimum.
        requests: Cache of the requests of this query.
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
        """Return the request of a family. Equal arguments give the same object.

        Args:
            family: The `Family`.
            question: Its question.
            options: Values of options.

        Raises:
            InvalidRequest: The options are invalid.
        """
        return self.requests.get_request(family, question, options)

    def __getstate__(self) -> Record:
        """Return the fields to pickle, where the matrix of losses replaces a loss function."""
        if self.has_real_answers:
            # The loss of real answers is a name.
            return self.__dict__
        loss = make_picklable(self.aim.loss, self.losses)
        return {**self.__dict__, "aim": replace(self.aim, loss=loss)}

    @property
    def has_real_answers(self) -> bool:
        """Return whether the answers are the real numbers of a range."""
        return isinstance(self.question, RangeQuery)

    @property
    def range_query(self) -> RangeQuery:
        """Return the question, which has real answers."""
        assert isinstance(self.question, RangeQuery)
        return self.question

    @property
    def single_run_budget(self) -> Record:
        """Return the options that state the notion and its budget, without the number of runs."""
        budget = {name: value for name, value in self.claim.values.items() if value is not None}
        return {"notion": self.claim.notion.name, **budget}

    @property
    def budget_options(self) -> Record:
        """Return the options that state the notion, the budget, what is minimised, and the runs."""
        options = self.single_run_budget
        if self.aim.max_loss is not None:
            options |= {"minimise": self.aim.minimise, "max_loss": self.aim.max_loss}
        if self.aim.runs > 1:
            options["runs"] = self.aim.runs
        return options

    def class_command(self, name: str, **options: object) -> str | None:
        """Return the command line that computes one class.

        Args:
            name: Name of the class.
            options: Options that replace those of the query or are added to them.

        Returns:
            The command line. None if an option of the query has no text.
        """
        texts = dict(self.option_texts or {})
        for option in options:
            texts.pop(option, None)
        if not texts or None in texts.values():
            return None
        return _format_command("recommend", {**texts, "only": name, **options})

    def design_command(self, family: str, *names: str, **options: object) -> str | None:
        """Return the command line that designs a mechanism of a family.

        Args:
            family: Name of the family.
            names: Names of the options of the query that are repeated.
            options: Values of further options.

        Returns:
            The command line, with the budget of the query. None if an option has no text.
        """
        query_texts = self.option_texts or {}
        texts = {name: query_texts[name] for name in names if name in query_texts}
        for name, option in options.items():
            texts[name] = _format_option_text(option)
        for name, value in self.budget_options.items():
            # The notion comes last, and δ = 0 is the default of the command.
            if name == "notion" or (name == "delta" and not value):
                continue
            if isinstance(value, Fraction):
                texts[name] = format_fraction(value)
            else:
                texts[name] = format_parameter(value)
        if None in texts.values():
            return None
        return _format_command(f"design {family}", {**texts, "notion": self.claim.notion.name})

    @cached_property
    def losses(self) -> LossTable:
        """Return the loss of every output at every input. Raises InvalidRequest."""
        return make_loss_table(self.question, self.aim.loss)

    @cached_property
    def grid(self) -> AnswerGrid | None:
        """Return the answers as multiples of a step, None if they are not numbers."""
        return find_answer_grid(self.question)

    @property
    def is_per_distance(self) -> bool:
        """Return whether ε is a budget per unit of distance."""
        return self.claim.notion.is_per_distance

    @property
    def audited_claim(self) -> Claim:
        """Return the claim that a mechanism is audited for.

        If ε is a budget per unit of distance, the claim has one ε for every pair of neighbours.
        """
        if not self.is_per_distance:
            return self.claim
        pairs, distances = self.question.metric_pairs()
        epsilon_by_pair = {}
        for pair, distance in zip(pairs, distances, strict=True):
            epsilon_by_pair[pair] = self.claim.epsilon * distance
        return self.claim.with_values(epsilon=epsilon_by_pair)


def format_bits(outputs: int) -> str:
    """Return the number of bits that encode one of `outputs` outputs, as text."""
    bits = max(1, (outputs - 1).bit_length())
    if bits == 1:
        return "1 bit"
    return f"{bits} bits"


RANGE_CHANNEL = "channel on a grid"  # Name of the class of all channels on a grid of a range.


def list_candidates(query: Query) -> Iterator[Candidate]:
    """List the classes of every family for a query. Families of other packages come last.

    A family supports queries with real answers if its module has a function
    `real_candidates(query)`. For T runs, a class designs one run with the budget (ε/T, δ/T): T such
    runs together have the budget of the query. For δ = 0 no other division of the budget is better.
    For δ > 0, classes that design several runs themselves get the whole budget.

    Args:
        query: The query: its answers, neighbours, budget and loss.
    """
    if query.aim.runs == 1:
        yield from _list_family_candidates(query)
        return
    shares = {name: query.claim.values[name] / query.aim.runs for name in ("epsilon", "delta")}
    classes_for_runs: dict[str, Candidate] = {}
    if query.claim.delta:
        for candidate in _list_family_candidates(query):
            if candidate.supports_runs:
                classes_for_runs[candidate.name] = candidate
    claim = query.claim.with_values(**shares)
    single_run_query = replace(query, claim=claim, aim=replace(query.aim, runs=1))
    for candidate in _list_family_candidates(single_run_query):
        yield classes_for_runs.get(candidate.name) or _make_equal_runs(query, candidate)


def _make_equal_runs(query: Query, candidate: Candidate) -> Candidate:
    """Return the class of several runs, each of which is a mechanism of a class for one run.

    Args:
        query: The query of several runs.
        candidate: The class of one run, with an equal share of the budget.
    """
    solve = candidate.solve
    if solve is None:
        return candidate

    def solve_one_run() -> Value:
        """Return the value of one run, without a bound that holds for equal shares only."""
        value = solve()
        if query.claim.delta:
            # For δ > 0 another division of the budget may have a smaller loss than this bound.
            return value._replace(bound=None)
        return value

    needs = f"{candidate.needs}; each of {query.aim.runs} runs gets an equal share of the budget"
    return replace(candidate, solve=solve_one_run, needs=needs)


_MIN_SEARCH_EPSILON = 1e-4  # The search tries no smaller ε.
_MAX_SEARCH_EPSILON = 20.0  # The search tries no larger ε, unless the query has an upper limit.
# ε is multiplied or divided by this factor until a sufficient and an insufficient ε are found.
_BRACKET_FACTOR = 4.0
# The search between two values of ε ends after this many steps.
_MAX_SEARCH_STEPS = 40
# The search ends if its two values of log ε differ by less than this.
_LOG_EPSILON_TOLERANCE = 1e-6
# A chord step moves by at least this share of the interval.
_MIN_CHORD_SHARE = 1e-3
# After the search, log ε minus these steps is tried. At a smaller ε even a loose lower bound may
# exceed the limit of the loss, which proves that no smaller ε is sufficient.
_EXCLUSION_STEPS = (0.02, 0.06)
_MIN_POSITIVE_LOSS = 1e-300  # A smaller loss is replaced by this one, so that it has a logarithm.


class _LeastEpsilonSearch:
    """Search for the minimal ε at which the loss of one class is within the limit of a query.

    An ε is sufficient if a private mechanism of the class has a loss within the limit.

    Attributes:
        chords: log(loss / limit) by log ε, from which the next ε is interpolated.
        values: The value of the class at every sufficient ε.
        lower_bounds: Every ε at which a proven bound on the loss exceeds the limit, and 0.
    """

    def __init__(self, query: Query, name: str) -> None:
        """Prepare the search.

        Args:
            query: A query that minimises ε, with a largest loss.
            name: Name of the class.
        """
        assert query.aim.max_loss is not None
        self._query = query
        self._name = name
        self._max_loss = float(query.aim.max_loss)
        self._deadline = Deadline(None if query.time is None else query.time.solver_seconds)
        self.chords = Chords(_MIN_CHORD_SHARE)
        self.values: dict[Fraction, Value] = {}
        self.lower_bounds = [0.0]

    def is_sufficient(self, log_epsilon: float) -> bool:
        """Solve the class at one ε and return whether its loss is within the limit.

        Args:
            log_epsilon: The logarithm of ε.
        """
        if self._deadline.has_passed:
            message = "The search stopped at its time limit."
            raise NotProven(message, bound=max(self.lower_bounds))
        epsilon = Fraction(f"{math.exp(log_epsilon):.9g}")
        value = self._solve_class(epsilon)
        if value.bound is not None and value.bound > self._max_loss:
            self.lower_bounds.append(float(epsilon))
        ratio = max(value.objective, _MIN_POSITIVE_LOSS) / self._max_loss
        self.chords.values[log_epsilon] = math.log(ratio)
        is_private = value.is_certified or value.mechanism is None
        if value.objective <= self._max_loss and is_private:
            self.values[epsilon] = value
            return True
        return False

    def _solve_class(self, epsilon: Fraction) -> Value:
        """Return the value of the class at one ε, with the loss as its objective."""
        seconds = self._deadline.remaining_seconds
        query = replace(
            self._query,
            claim=self._query.claim.with_values(epsilon=epsilon),
            aim=replace(self._query.aim, minimise="loss", max_loss=None),
            time=None if seconds is None else TimeShares(seconds),
        )
        candidate = next(item for item in list_candidates(query) if item.name == self._name)
        if candidate.solve is None:
            raise NotApplicable(candidate.reason or "it does not apply")
        return candidate.solve()

    def run(self) -> None:
        """Bracket the minimal ε, narrow the bracket, and try to exclude values just below it."""
        step = math.log(_BRACKET_FACTOR)
        top = math.log(self._query.claim.epsilon or _MAX_SEARCH_EPSILON)
        low = math.log(_MIN_SEARCH_EPSILON)
        high = min(0.0, top)  # The search begins at ε = 1, whose logarithm is 0.
        while high < top and not self.is_sufficient(high):
            low = high
            high = min(top, high + step)
        if high == top and not self.is_sufficient(high):
            limit = f"{math.exp(top):g}"
            raise NotApplicable(f"no epsilon up to {limit} is sufficient for this loss")
        # From here on `high` is sufficient. It falls until one step below it is not.
        while low < high - step and self.is_sufficient(high - step):
            high -= step
        low = max(low, high - step)
        low, high = bisect(
            self.is_sufficient,
            low,
            high,
            tolerance=_LOG_EPSILON_TOLERANCE,
            max_steps=_MAX_SEARCH_STEPS,
            choose_point=self.chords.choose_point,
        )
        if self.values[min(self.values)].bound is None:
            return
        for offset in _EXCLUSION_STEPS:
            # The solve is skipped if an ε is excluded already that is larger than the tried one, or
            # at most half a step smaller.
            if max(self.lower_bounds) < math.exp(high - 1.5 * offset):
                self.is_sufficient(high - offset)


def find_least_epsilon(query: Query, name: str) -> Value:
    """Find the minimal ε at which the expected loss of a class is at most the query's max_loss.

    Args:
        query: A query that minimises ε.
        name: Name of the class.

    Returns:
        The value of the class. Its objective is the smallest sufficient ε that was found. Its bound
        is the largest ε at which a proven bound on the loss exceeds max_loss. No smaller ε is
        sufficient, because the minimal loss of a class falls with ε.

    Raises:
        NotApplicable: The class does not apply, or no ε up to 20 is sufficient.
        NotProven: The time limit was reached before any ε was sufficient.
    """
    search = _LeastEpsilonSearch(query, name)
    is_stopped = False
    try:
        search.run()
    except (NotProven, OutOfTime) as error:
        if not search.values or getattr(error, "interrupted", False):
            # The error has the loss and bound at one ε. The caller expects bounds on ε.
            error.incumbent = None
            error.bound = max(search.lower_bounds) or None
            raise
        is_stopped = True
    epsilon = min(search.values)
    value = search.values[epsilon]
    loss_text = f"loss {value.objective:.9g}"
    return value._replace(
        objective=float(epsilon),
        bound=max(search.lower_bounds) or None,
        parameter=f"{value.parameter}; {loss_text}" if value.parameter else loss_text,
        is_stopped=is_stopped,
    )


def _list_family_candidates(query: Query) -> Iterator[Candidate]:
    """List the classes that the modules of families offer for a query of one run."""
    function_name = "candidates"
    if query.has_real_answers:
        function_name = "real_candidates"
    for family in list_families():
        if family.recommendation is None:
            continue
        module = importlib.import_module(family.recommendation)
        list_classes = getattr(module, function_name, None)
        if list_classes is not None:
            yield from list_classes(query)
        elif query.has_real_answers:
            reason = "it is for finitely many answers: give --answers instead of --range"
            yield Candidate(family.title, reason=reason)


def _format_command(command: str, options: Mapping[str, object]) -> str:
    """Format a command line. The value "" stands for a flag, which has no value."""
    parts = ["workbench", command]
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        parts.append(flag)
        if value != "":
            parts.append(shlex.quote(str(value)))
    return " ".join(parts)


_TEXT_TYPES = (str, int, float, Fraction, Path)  # Values of these types have a text.


def format_option_texts(options: Values) -> dict[str, str | None]:
    """Format the values of options as the texts of a command line.

    Args:
        options: Values by name. Options that are None or False are left out.

    Returns:
        The texts by name: "" for a flag, None for a value without a text.
    """
    texts = {}
    for name, value in options.items():
        if value is not None and value is not False:
            texts[name] = _format_option_text(value)
    return texts


def _format_option_text(value: Any) -> str | None:
    """Format one value of an option. Commas separate the items of a list."""
    if value is True:
        return ""
    is_sequence = isinstance(value, (list, tuple, range))
    if is_sequence and all(isinstance(item, _TEXT_TYPES) for item in value):
        items = [str(item) for item in value]
        if any("," in item for item in items):
            return None
        return ",".join(items)
    if isinstance(value, _TEXT_TYPES):
        return str(value)
    return None
