"""A request: what is to be designed, in exact numbers, as four parts that are checked once.

    part       content                                                  example
    question   the possible answers, and which of them are neighbours   FiniteQuery("0..10", ...)
    claim      a notion of privacy with its budget                      dp at epsilon = 1, delta = 0
    aim        what is minimised, for which loss, within which limit    absolute loss of one run
    how        the solver, the method, and what is checked              HiGHS, certified

Option values become a request in two steps. `read_claim` takes the notion and its budget out of the
values and refuses budgets that the notion does not have. `Request.from_values` then sorts the other
values into aim and how by the fields of these classes. A family with further options extends `Aim`
and `How` by fields, and `Request` by properties that are derived from the four parts.

If ε or δ is minimised, the claim contains its upper limit instead of its value. None: no limit.

`Request.with_values` changes values by the names of their options and checks the result again.
`Request.at_point` does the same for one point of a sweep or frontier: a point is a set of values of
the options that a session follows without a new start (`Option.hot`). `Request.with_options`
changes only options of the solver, which do not change the design. It checks nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NoReturn, Self

from workbench.errors import InvalidRequest, must
from workbench.exact.numbers import ZERO, to_jsonable
from workbench.exact.objects import Progress, Record, Values
from workbench.io.files import format_fraction
from workbench.notions import BUILT_IN_NOTIONS, get_notion
from workbench.pipeline.formula_program import FormulaProgram
from workbench.pipeline.option import NOTION_PARAMETERS, to_json_value
from workbench.pipeline.requirements import bounds_one_ratio
from workbench.privacy.claim import Claim, read_budget
from workbench.solvers.backend import Options

# The options that state a budget under some notion.
BUDGET_OPTIONS = ("epsilon", "delta", *(option.name for option in NOTION_PARAMETERS))


@dataclass(frozen=True, kw_only=True, eq=False)
class Aim:
    """What is minimised.

    Attributes:
        loss: The loss that is minimised or limited.
        minimise: "loss", or "epsilon" or "delta" within a largest loss.
        max_loss: Largest expected loss allowed. None if the loss is minimised.
        runs: Number of runs that share the budget.
    """

    loss: Any = None
    minimise: str = "loss"
    max_loss: Fraction | None = None
    runs: int = 1


@dataclass(frozen=True, kw_only=True, eq=False)
class How:
    """How a request is solved.

    Attributes:
        solver: Label of the solver.
        options: Options of the solver.
        check: What is done with the solver's answer: "none", "bound", "audit" or "certify".
        method: Algorithm of the family.
        progress: Function that is called with a line of text from time to time.
    """

    solver: str = "highs"
    options: Options = field(default_factory=Options)
    check: str = "certify"
    method: str = "auto"
    progress: Progress | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Request:
    """A question with a claim, an aim, and how it is solved.

    Raises InvalidRequest if the parts contradict each other.

    Attributes:
        question: The possible answers, and which of them are neighbours.
        claim: The notion with its budget, or with the upper limit of what is minimised.
        aim: What is minimised.
        how: The solver, the method and the check.
        family: The family of the question.
    """

    AIM: ClassVar[type[Aim]] = Aim
    HOW: ClassVar[type[How]] = How

    question: Any
    claim: Claim
    aim: Aim
    how: How
    family: Any = field(default=None, repr=False)

    @classmethod
    def from_values(cls, question: Any, claim: Claim, values: Values) -> Self:
        """Make a request from exact values of options, which are sorted into aim and how.

        Args:
            question: The question, such as a `ModuloNoise` or a `FiniteQuery`.
            claim: The notion with its budget, as `read_claim` returns it.
            values: Exact values by name, of the aim and of how; and "family".

        Raises:
            InvalidRequest: The values contradict each other.
        """
        aim_names = _field_names(cls.AIM)
        how_names = _field_names(cls.HOW)
        known_names = {*aim_names, *how_names, "family"}
        unknown_names = [name for name in values if name not in known_names]
        if unknown_names:
            raise TypeError(f"{cls.__name__} has no place for {', '.join(unknown_names)}.")
        aim = cls.AIM(**{name: values[name] for name in values if name in aim_names})
        how = cls.HOW(**{name: values[name] for name in values if name in how_names})
        return cls(question=question, claim=claim, aim=aim, how=how, family=values.get("family"))

    def __post_init__(self) -> None:
        """Check the request. Families extend this method."""

    def with_values(self, **values: Any) -> Self:
        """Return the request with other values.

        Args:
            values: Values by the names of their options or parts. A budget that the notion does not
                have must be 0 or None.

        Raises:
            InvalidRequest: The values contradict each other.
        """
        claim = values.pop("claim", self.claim)
        budget = {name: values.pop(name) for name in BUDGET_OPTIONS if name in values}
        for name in [name for name in budget if name not in claim.notion.parameters]:
            value = budget.pop(name)
            if value:
                refuse_option(name, claim.notion.name, _format_budget(value))
        aim_values = {name: values.pop(name) for name in _field_names(self.AIM) if name in values}
        how_values = {name: values.pop(name) for name in _field_names(self.HOW) if name in values}
        return replace(
            self,
            **values,
            claim=claim.with_values(**budget) if budget else claim,
            aim=replace(self.aim, **aim_values) if aim_values else self.aim,
            how=replace(self.how, **how_values) if how_values else self.how,
        )

    def at_point(self, point: Values) -> Self:
        """Return the request at a point of a path.

        Args:
            point: Exact values of hot options. None leaves the value of the request.

        Raises:
            InvalidRequest: The values contradict each other.
        """
        values = {name: value for name, value in point.items() if value is not None}
        if not values:
            return self
        return self.with_values(**values)

    def with_options(self, options: Options) -> Self:
        """Return the request with other options of the solver, which are not checked.

        If only the time limit differs, values derived from the question, the claim and the aim are
        kept. Otherwise they are not, because an algorithm may change how a request is solved.

        Args:
            options: The options.
        """
        current = self.how.options
        changes_only_time = replace(options, time_limit=None) == replace(current, time_limit=None)
        if changes_only_time:
            attributes = vars(self)  # These include cached properties.
        else:
            attributes = {part.name: getattr(self, part.name) for part in fields(self)}
        # `object.__new__` skips the checks of `__post_init__`. Fields of a frozen dataclass are set
        # through __dict__.
        request = object.__new__(type(self))
        request.__dict__.update(attributes, how=replace(self.how, options=options))
        return request

    def formula_program(self) -> FormulaProgram:
        """Return the program in powers of e^ε, for `workbench.formula`. Raises InvalidRequest."""
        reason = self.family.no_formula_reason
        raise InvalidRequest(
            f"The family {self.family.name} has no formula in e^epsilon: {reason}."
        )

    # Properties of the claim.

    @property
    def audited_claim(self) -> Claim:
        """Return the claim that a mechanism is audited for.

        Its δ is not None, and it has a budget for every comparison.
        """
        if self.claim.delta is None:
            return self.claim.with_values(delta=ZERO)
        return self.claim

    @property
    def is_per_distance(self) -> bool:
        """Return whether ε is a budget per unit of distance."""
        return False

    @cached_property
    def has_several_bounds(self) -> bool:
        """Return whether the notion implies several convex bounds, such as zCDP.

        The other notions imply one bound on the ratio P/Q of two neighbouring laws, such as DP.
        """
        return not bounds_one_ratio(self.claim.notion)

    # Checks that families share.

    def check_aim(self) -> None:
        """Check that the notion supports the aim. Raises InvalidRequest."""
        if self.has_several_bounds:
            self._check_aim_of_several_bounds()
        else:
            self._check_aim_of_one_bound()

    def _check_aim_of_several_bounds(self) -> None:
        """Check that the loss of one run is minimised, and that the budget is not 0."""
        notion = self.claim.notion
        if self.aim.minimise != "loss":
            refuse_option("minimise", notion.name, repr(self.aim.minimise))
        if self.aim.max_loss is not None:
            refuse_option("max_loss", notion.name, to_json_value(self.aim.max_loss))
        if self.aim.runs != 1:
            refuse_option("runs", notion.name, self.aim.runs)
        first_parameter, value = next(iter(self.claim.values.items()))
        if not value:
            must(first_parameter, f"> 0 for the notion {notion.name}", "0")

    def _check_aim_of_one_bound(self) -> None:
        """Check δ and max_loss against the notion and against what is minimised."""
        notion = self.claim.notion
        minimise = self.aim.minimise
        max_loss = self.aim.max_loss
        if minimise == "delta" and not notion.has_delta:
            rule = f"loss or epsilon when notion is {notion.name}, which has no delta"
            must("minimise", rule, "'delta'")
        if max_loss is None and minimise != "loss":
            must("max_loss", f"given to minimise {minimise}", "none")
        if max_loss is not None and minimise == "loss":
            rule = "left out unless minimise is delta or epsilon"
            must("max_loss", rule, format_fraction(max_loss))
        if self.claim.delta and not notion.has_delta:
            must("delta", f"0 when notion is {notion.name}", format_fraction(self.claim.delta))

    def check_runs(self) -> None:
        """Check that the request supports several runs, if it has them. Raises InvalidRequest."""
        if self.aim.runs == 1:
            return
        has_one_epsilon = not isinstance(self.claim.epsilon, Mapping)
        is_loss_minimised = self.aim.minimise == "loss"
        if not (self.claim.notion.can_compose and is_loss_minimised and has_one_epsilon):
            must("runs", "1 unless notion dp has one epsilon, and loss is minimised", self.aim.runs)
        if self.how.check not in ("audit", "certify"):
            must("runs", f"1 where check is {self.how.check}", self.aim.runs)

    # Texts.

    @property
    def wants_certificate(self) -> bool:
        """Return whether the design must have a certificate."""
        return self.how.check == "certify"

    @property
    def heading(self) -> str:
        """Return the first line of reports, pictures and pages: the question as text."""
        return str(self.question)

    @property
    def loss_name(self) -> str:
        """Return the name of the loss."""
        return str(self.aim.loss)

    @property
    def objective_name(self) -> str:
        """Return the name of the objective."""
        if self.aim.minimise == "loss":
            return f"{self.loss_name} loss"
        return self.aim.minimise

    @property
    def budget_text(self) -> str:
        """Return the notion, its budget, and what is minimised, as text."""
        notion = self.claim.notion
        if not set(notion.parameters) <= {"epsilon", "delta"}:
            return f"{notion.name}, {format_parameters(self.claim)}"
        minimise = self.aim.minimise
        parts = []
        if minimise != "epsilon":
            parts.append(f"epsilon = {self._epsilon_text}")
        if minimise != "delta":
            parts.append(f"delta = {float(self.claim.delta or 0):g}")
        if self.aim.max_loss is not None:
            parts.append(f"{self.loss_name} loss <= {float(self.aim.max_loss):.9g}")
        text = ", ".join([notion.name, *parts])
        if minimise != "loss":
            text = f"minimal {minimise} for {text}"
        if self.aim.runs > 1:
            text = f"{text} for {self.aim.runs} runs together"
        return text

    @property
    def _epsilon_text(self) -> Any:
        """Return ε as text, or several ε by their labels."""
        epsilon = self.claim.epsilon
        if isinstance(epsilon, Mapping):
            return to_jsonable(epsilon)
        if self.is_per_distance:
            return f"{float(epsilon):g} per unit of distance"
        return f"{float(epsilon):g}"


def _field_names(part: type[Aim] | type[How]) -> tuple[str, ...]:
    """Return the names of the options that a part of a request contains."""
    return tuple(item.name for item in fields(part))


def read_claim(
    values: Record, *, max_epsilon: Fraction | None = None, max_delta: Fraction | None = None
) -> Claim:
    """Take the notion and its budget out of the exact values of options, and return them.

    Args:
        values: Exact values by name. The notion and every budget are removed from this dictionary.
        max_epsilon: Upper limit of an ε that is minimised and left out. None: no limit.
        max_delta: Upper limit of a δ that is minimised and left out. None: no limit.

    Returns:
        The claim. A minimised parameter without a limit is None in it.

    Raises:
        InvalidRequest: A budget is missing, or the notion does not have it.
    """
    notion = get_notion(values.pop("notion"))
    given_values = {name: values.pop(name) for name in BUDGET_OPTIONS if name in values}
    minimise = values.get("minimise")
    limit = {"epsilon": max_epsilon, "delta": max_delta}.get(minimise or "")
    if minimise in notion.parameters and given_values.get(minimise) is None:
        given_values[minimise] = limit
    for name in BUDGET_OPTIONS:
        value = given_values.get(name)
        # δ = 0 is allowed under every notion, because it is the default of the option.
        is_given = value is not None and (name != "delta" or value != 0)
        if is_given and name not in notion.parameters:
            refuse_option(name, notion.name, _format_budget(value))
    budget = {name: given_values.get(name) for name in notion.parameters}
    if not set(notion.parameters) <= {"epsilon", "delta"}:
        return Claim(notion, **read_budget(notion, budget))
    if minimise != "epsilon" and budget["epsilon"] is None:
        raise InvalidRequest("epsilon must be given. Got none.")
    claim = Claim(notion, ZERO).with_values(epsilon=budget["epsilon"])
    if minimise == "delta" or budget.get("delta") is not None:
        claim = claim.with_values(delta=budget["delta"])
    return claim


def refuse_option(name: str, notion: str, got: Any) -> NoReturn:
    """Raise InvalidRequest for an option that a notion does not have.

    Args:
        name: Name of the option.
        notion: Name of the notion.
        got: Value of the option, as the message shows it.
    """
    supporting_notions = [
        notion_name
        for notion_name in BUILT_IN_NOTIONS
        if name in get_notion(notion_name).parameters
    ]
    hint = ""
    if supporting_notions:
        hint = f" (notion {' or '.join(supporting_notions)} takes it)"
    must(name, f"left out when notion is {notion}{hint}", got)


def _format_budget(value: Any) -> Any:
    """Format a budget for an error message."""
    if isinstance(value, (int, float, Fraction)):
        return to_json_value(value)
    return repr(value)


def format_parameters(claim: Claim) -> str:
    """Format the budget of a claim.

    Args:
        claim: The claim: a notion with its budget.
    """
    values = claim.values
    for name, pair in (("curve", "(epsilon, delta)"), ("tradeoff", "(alpha, beta)")):
        if name in values:
            points = [f"({float(a):g}, {float(b):g})" for a, b in values[name]]
            return f"{pair} = {', '.join(points)}"
    return ", ".join(f"{name} = {float(value):g}" for name, value in values.items())
