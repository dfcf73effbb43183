"""A request: what is asked, in exact numbers, as four parts that are read once and checked once.

    part       what it says                                                    example
    question   who may answer what, and which answers are neighbours           FiniteQuery("0..10", max_shift=1)
    claim      a notion of privacy with its budget                             dp at epsilon = 1, delta = 0
    aim        what is minimised, of which loss, within which limit            the absolute loss of one run
    how        which solver and method answer, and what is checked             HiGHS, certified

Option values become a request in two steps. `read_claim` takes the notion and its budget out of the values and refuses
budgets that the notion does not have; nothing else in the workbench looks at an empty budget. `Request.of` sorts the
other values into aim and how by the fields of these classes. A family with options of its own extends `Aim` and `How`
by fields, and `Request` by properties that are derived from the four parts.

Where ε or δ is minimised, the aim says so and the claim holds its upper limit. A δ of None has no limit.

`Request.with_values` changes values by the names of their options, wherever they are, and checks the result again.
`Request.at` does the same for a point of a path of hot options. `Request.with_options` changes options of the solver
alone, which says nothing about what is asked: it builds and checks nothing.
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
from workbench.pipeline.option import NOTION_PARAMETERS, to_json_value
from workbench.pipeline.requirements import bounds_one_ratio
from workbench.pipeline.stated import FormulaProgram
from workbench.privacy.claim import Claim, read_budget
from workbench.solvers.backend import Options

# The options that give a budget, whatever the notion.
BUDGET_OPTIONS = ("epsilon", "delta", *(option.name for option in NOTION_PARAMETERS))


@dataclass(frozen=True, kw_only=True, eq=False)
class Aim:
    """What a request asks for.

    Attributes:
        loss: the loss that is minimised or limited.
        minimise: "loss", or "epsilon" or "delta" within a largest loss.
        max_loss: the largest loss allowed, where the loss is not minimised.
        runs: how many runs the budget is for.
    """

    loss: Any = None
    minimise: str = "loss"
    max_loss: Fraction | None = None
    runs: int = 1


@dataclass(frozen=True, kw_only=True, eq=False)
class How:
    """How a request is answered.

    Attributes:
        solver: the label of the solver that answers.
        options: the options of the solver.
        check: "none", "bound", "audit" or "certify": what is done with the solver's answer.
        method: the family's way to answer.
        progress: a function that is told a line now and then.
    """

    solver: str = "highs"
    options: Options = field(default_factory=Options)
    check: str = "certify"
    method: str = "auto"
    progress: Progress | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Request:
    """A question with a claim, an aim and a way to answer. Making one raises InvalidRequest for what cannot be asked.

    Attributes:
        question: who may answer what, and which answers are neighbours.
        claim: the notion with its budget; the upper limit of what is minimised.
        aim: what is minimised.
        how: the solver, the method and the check.
        family: the family of the question.
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
        """Make the request of exact values of options, which are sorted into aim and how.

        Args:
            question: the question.
            claim: the notion with its budget, as `read_claim` returns it.
            values: option -> exact value, of the aim and of how; and "family".

        Raises:
            InvalidRequest: the values cannot be asked together.
        """
        aim_names, how_names = _field_names(cls.AIM), _field_names(cls.HOW)
        if foreign := [name for name in values if name not in {*aim_names, *how_names, "family"}]:
            raise TypeError(f"{cls.__name__} has no place for {', '.join(foreign)}.")
        aim = cls.AIM(**{name: values[name] for name in values if name in aim_names})
        how = cls.HOW(**{name: values[name] for name in values if name in how_names})
        return cls(question=question, claim=claim, aim=aim, how=how, family=values.get("family"))

    def __post_init__(self) -> None:
        """Check the request; families extend it."""

    def with_values(self, **values: Any) -> Self:
        """Return the same request at other values, by the names of their options or parts.

        A parameter that the notion does not have must be 0 or None.

        Raises:
            InvalidRequest: the values cannot be asked together.
        """
        claim = values.pop("claim", self.claim)
        budget = {name: values.pop(name) for name in BUDGET_OPTIONS if name in values}
        for name in [name for name in budget if name not in claim.notion.parameters]:
            if got := budget.pop(name):
                refuse_option(name, claim.notion.name, _format_budget(got))
        aim = {name: values.pop(name) for name in _field_names(self.AIM) if name in values}
        how = {name: values.pop(name) for name in _field_names(self.HOW) if name in values}
        return replace(
            self,
            **values,
            claim=claim.with_values(**budget) if budget else claim,
            aim=replace(self.aim, **aim) if aim else self.aim,
            how=replace(self.how, **how) if how else self.how,
        )

    def at_point(self, point: Values) -> Self:
        """Return the same request at a point of a path: hot option -> exact value, None where it stays.

        Raises:
            InvalidRequest: the values cannot be asked together.
        """
        values = {name: value for name, value in point.items() if value is not None}
        return self.with_values(**values) if values else self

    def with_options(self, options: Options) -> Self:
        """Return the same request under other options of the solver, which are not checked.

        What was derived from the question, the claim and the aim is kept where the time limit alone differs; an
        algorithm may decide how a request is answered.
        """
        changed = object.__new__(type(self))
        is_same_way = replace(options, time_limit=None) == replace(
            self.how.options, time_limit=None
        )
        kept = (
            vars(self)
            if is_same_way
            else {each.name: getattr(self, each.name) for each in fields(self)}
        )
        changed.__dict__.update(kept, how=replace(self.how, options=options))
        return changed

    def formula_program(self) -> FormulaProgram:
        """The request as a program in polynomials of e^ε, for `workbench.formula`. Raises InvalidRequest."""
        raise InvalidRequest(
            f"The family {self.family.name} has no formula in e^epsilon: {self.family.no_formula_reason}."
        )

    # Derived from the claim.

    @property
    def audited_claim(self) -> Claim:
        """The claim that a mechanism is audited for: without a δ of None, and with a budget for every comparison."""
        return self.claim if self.claim.delta is not None else self.claim.with_values(delta=ZERO)

    @property
    def is_per_distance(self) -> bool:
        """Whether ε is per unit of distance."""
        return False

    @cached_property
    def has_several_bounds(self) -> bool:
        """Whether the notion states several convex bounds, or more than can be listed, and not one on a ratio."""
        return not bounds_one_ratio(self.claim.notion)

    # Checks that families share.

    def check_aim(self) -> None:
        """Check that the notion can be asked for this aim. Raises InvalidRequest."""
        if self.has_several_bounds:
            self._check_aim_of_several_bounds()
        else:
            self._check_aim_of_one_bound()

    def _check_aim_of_several_bounds(self) -> None:
        measure, aim = self.claim.notion, self.aim
        if aim.minimise != "loss":
            refuse_option("minimise", measure.name, repr(aim.minimise))
        if aim.max_loss is not None:
            refuse_option("max_loss", measure.name, to_json_value(aim.max_loss))
        if aim.runs != 1:
            refuse_option("runs", measure.name, aim.runs)
        first, value = next(iter(self.claim.values.items()))
        if not value:
            must(first, f"> 0 for the notion {measure.name}", "0")

    def _check_aim_of_one_bound(self) -> None:
        measure, minimise, most = self.claim.notion, self.aim.minimise, self.aim.max_loss
        if minimise == "delta" and not measure.has_delta:
            must(
                "minimise",
                f"loss or epsilon when notion is {measure.name}, which has no delta",
                "'delta'",
            )
        if (most is None) == (minimise != "loss"):
            got = "none" if most is None else format_fraction(most)
            must("max_loss", "given where delta or epsilon is minimised, and only there", got)
        if self.claim.delta and not measure.has_delta:
            must("delta", f"0 when notion is {measure.name}", format_fraction(self.claim.delta))

    def check_runs(self) -> None:
        """Refuse what cannot be asked for more than one run. Raises InvalidRequest."""
        if self.aim.runs == 1:
            return
        several = isinstance(self.claim.epsilon, Mapping)
        if not self.claim.notion.can_compose or self.aim.minimise != "loss" or several:
            must("runs", "1 but for notion dp, one epsilon, and minimise loss", self.aim.runs)
        if self.how.check not in ("audit", "certify"):
            must("runs", f"1 where check is {self.how.check}", self.aim.runs)

    # In words.

    @property
    def wants_certificate(self) -> bool:
        """Whether a certificate is wanted."""
        return self.how.check == "certify"

    @property
    def heading(self) -> str:
        """What is asked about, in words: the first line of reports, above pictures and pages."""
        return str(self.question)

    @property
    def loss_name(self) -> str:
        """The name of the loss."""
        return str(self.aim.loss)

    @property
    def objective_name(self) -> str:
        """What the objective is, in words."""
        return f"{self.loss_name} loss" if self.aim.minimise == "loss" else self.aim.minimise

    @property
    def budget_text(self) -> str:
        """The notion, its budget, and what is minimised within which loss."""
        name, least = self.claim.notion.name, self.aim.minimise
        if not set(self.claim.notion.parameters) <= {"epsilon", "delta"}:
            return f"{name}, {format_parameters(self.claim)}"
        epsilon = self.claim.epsilon
        per = " per unit of distance" if self.is_per_distance else ""
        shown = {
            "epsilon": to_jsonable(epsilon)
            if isinstance(epsilon, Mapping)
            else f"{float(epsilon):g}{per}",
            "delta": f"{float(self.claim.delta or 0):g}",
        }
        words = [
            f"{parameter} = {value}" for parameter, value in shown.items() if parameter != least
        ]
        if self.aim.max_loss is not None:
            words.append(f"{self.loss_name} loss <= {float(self.aim.max_loss):.9g}")
        what = name if least == "loss" else f"the least {least} for {name}"
        runs = f" for {self.aim.runs} runs in all" if self.aim.runs > 1 else ""
        return f"{what}, {', '.join(words)}{runs}"


def _field_names(part: type[Aim] | type[How]) -> tuple[str, ...]:
    """The names of the options that a part of a request holds."""
    return tuple(each.name for each in fields(part))


def read_claim(
    values: Record, *, max_epsilon: Fraction | None = None, max_delta: Fraction | None = None
) -> Claim:
    """Take the notion and its budget out of the exact values of options.

    Args:
        values: option -> exact value; the notion and every budget are removed.
        max_epsilon: the upper limit of ε where it is minimised and left out. Default: none.
        max_delta: the upper limit of δ where it is minimised and left out. Default: none.

    Returns:
        The claim; what is minimised is None in it where it has no limit.

    Raises:
        InvalidRequest: a budget is missing, or the notion does not have it.
    """
    measure = get_notion(values.pop("notion"))
    given = {name: values.pop(name) for name in BUDGET_OPTIONS if name in values}
    minimised = values.get("minimise")
    limit = {"epsilon": max_epsilon, "delta": max_delta}.get(minimised or "")
    if minimised in measure.parameters and given.get(minimised) is None:
        given[minimised] = limit
    for name in BUDGET_OPTIONS:
        value = given.get(name)
        is_given = value is not None and (name != "delta" or value != 0)
        if is_given and name not in measure.parameters:
            refuse_option(name, measure.name, _format_budget(value))
    budget = {name: given.get(name) for name in measure.parameters}
    if not set(measure.parameters) <= {"epsilon", "delta"}:
        return Claim(measure, **read_budget(measure, budget))
    if minimised != "epsilon" and budget["epsilon"] is None:
        raise InvalidRequest("epsilon must be given. Got none.")
    claim = Claim(measure, ZERO).with_values(epsilon=budget["epsilon"])
    if minimised == "delta" or budget.get("delta") is not None:
        claim = claim.with_values(delta=budget["delta"])
    return claim


def refuse_option(name: str, measured: str, got: Any) -> NoReturn:
    """Raise InvalidRequest for an option that a notion does not have, with the notions that have it."""
    of = " or ".join(other for other in BUILT_IN_NOTIONS if name in get_notion(other).parameters)
    remark = f" (notion {of} takes it)" if of else ""
    must(name, f"left out when notion is {measured}{remark}", got)


def _format_budget(value: Any) -> Any:
    """A budget as an error shows it."""
    return to_json_value(value) if isinstance(value, (int, float, Fraction)) else repr(value)


def format_parameters(claim: Claim) -> str:
    """The budget in words."""
    values = claim.values
    for name, pair in (("curve", "(epsilon, delta)"), ("tradeoff", "(alpha, beta)")):
        if name in values:
            return f"{pair} = " + ", ".join(
                f"({float(a):g}, {float(b):g})" for a, b in values[name]
            )
    return ", ".join(f"{name} = {float(value):g}" for name, value in values.items())
