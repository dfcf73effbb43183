"""A claim: a notion with a budget in exact numbers, the first parameter perhaps one number for each neighbour.

{"notion": "dp", "epsilon": "0.5", "delta": "0.01"}            its JSON; epsilon may be [[[1], "0.5"], [[2], "1"]]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from workbench.errors import CorruptFile, InvalidRequest
from workbench.exact.objects import Record
from workbench.io.files import format_fraction, parse_ratio
from workbench.io.records import read_short_text, take_entries
from workbench.mechanisms.mechanism import can_publish_reals
from workbench.notions import HockeyStick, MassAboveRatio, Notion, get_notion
from workbench.notions.notion import ComparisonResult, Label, Values, format_rational

_MAX_FILE_PARAMETER = 10**6  # of a budget in a file


@dataclass(frozen=True, init=False)
class Claim:
    """A notion and its budget. values: parameter -> exact number; the first may be a mapping label -> number.

    Made of numbers that are exact already, which are not read again; `of` reads what a user gives.
    """

    notion: Notion
    values: Values

    def __init__(
        self, named: str | Notion, epsilon: Any = None, delta: Any = None, **others: Any
    ) -> None:
        measuring, given = get_notion(named), {"epsilon": epsilon, "delta": delta, **others}
        values = {
            name: measuring.defaults[name] if given.get(name) is None else given[name]
            for name in measuring.parameters
        }
        self.__dict__.update(notion=measuring, values=values)

    @classmethod
    def for_mechanism(cls, named: str | Notion, mechanism: Any, given: Values) -> Claim:
        """The claim of a request about a mechanism: a budget given for shifts or pairs covers every comparison.

        given: parameter -> number, None where it is not given. Raises InvalidRequest.
        """
        measuring = get_notion(named)
        first = measuring.parameters[0]
        each = given.get(first)
        if not isinstance(each, Mapping):
            return cls(measuring, **read_budget(measuring, given))
        if can_publish_reals(mechanism):
            raise InvalidRequest(f"{first} must be one number for a mechanism on real inputs.")
        others = read_budget(measuring, {**given, first: 0})
        return cls(measuring, **others | {first: mechanism.budgets(each)})

    @property
    def epsilon(self) -> Any:
        """ε, or ε of each label; None of a notion without one, or where it is minimised without an upper limit."""
        return self.values.get("epsilon")

    @property
    def delta(self) -> Any:
        """δ; 0 of a notion without one; None where it is minimised without an upper limit."""
        return self.values.get("delta", Fraction(0))

    def with_values(self, **values: Any) -> Claim:
        """Return the same notion at other values of some parameters, which are exact already.

        A value may be None: it is minimised, without an upper limit.
        """
        changed = Claim.__new__(Claim)
        changed.__dict__.update(notion=self.notion, values={**self.values, **values})
        return changed

    @property
    def is_epsilon_delta(self) -> bool:
        """Whether the budget is ε, perhaps with δ, and nothing else."""
        return {"epsilon"} <= self.values.keys() <= {"epsilon", "delta"}

    def adapt_to(self, mechanism: Any) -> Claim:
        """The same claim with a budget for every comparison of a mechanism, where budgets differ. Raises
        InvalidRequest."""
        first = self.notion.parameters[0]
        if not isinstance(self.values[first], Mapping):
            return self
        return Claim.for_mechanism(self.notion, mechanism, self.values)

    def values_at(self, label: Label) -> Values:
        """The budget of one comparison."""
        first = self.notion.parameters[0]
        each = self.values[first]
        return {**self.values, first: each[label]} if isinstance(each, Mapping) else self.values

    @property
    def common_values(self) -> Values | None:
        """The budget of every comparison; None where budgets differ."""
        return None if isinstance(self.values[self.notion.parameters[0]], Mapping) else self.values

    def is_met_by(self, result: ComparisonResult) -> bool:
        """Whether one comparison is within its budget."""
        return self.notion.is_within_budget(result.measurement, result.budget)

    @property
    def is_decided_by_ratio(self) -> bool:
        """Whether the comparison of largest ratio decides the claim: one budget for all, and a notion that says so."""
        one_for_all = not isinstance(self.values[self.notion.parameters[0]], Mapping)
        return one_for_all and self.notion.is_decided_by_ratio(self.values)

    def list_ratio_bounds(self, label: Label) -> tuple[HockeyStick | MassAboveRatio, ...]:
        """The bounds on ratios that the notion puts on one comparison; none where it bounds something else."""
        try:
            every = self.notion.requirements(self.values_at(label))
        except InvalidRequest:
            return ()
        kept = tuple(bound for bound in every if isinstance(bound, (HockeyStick, MassAboveRatio)))
        return kept if len(kept) == len(every) else ()

    def describe_budget(self, *, one_sided: bool = False) -> str:
        """The first parameter in words: "epsilon = 1", or "each shift's own epsilon"."""
        first = self.notion.parameters[0]
        value = self.values[first]
        if isinstance(value, Mapping) and len(different := set(value.values())) == 1:
            (value,) = different
        text = (
            f"each shift's own {first}"
            if isinstance(value, Mapping)
            else f"{first} = {format_parameter(value)}"
        )
        return f"{text} for one-sided neighbours" if one_sided else text

    def to_dict(self) -> Record:
        """JSON-ready."""
        return {"notion": self.notion.name} | {
            name: _write_parameter(value) for name, value in self.values.items()
        }

    @classmethod
    def read(cls, data: Any) -> Claim:
        """What `to_dict` wrote; what its numbers mean is not yet read. Raises CorruptFile and InvalidRequest."""
        if not isinstance(data, dict) or not isinstance(data.get("notion"), str):
            raise CorruptFile("The claim must be an object with a notion and its parameters.")
        named = get_notion(read_short_text(data["notion"], "The notion"))
        take_entries(data, "The claim", {"notion", *named.parameters})
        values = {name: _read_parameter(data[name], name) for name in named.parameters}
        for name in named.parameters[1:]:
            if isinstance(values[name], Mapping):
                raise CorruptFile(f"{name} must be one number.")
        return cls(named, **values)


def read_budget(measuring: Notion, given: Values) -> Record:
    """Read all parameters of a notion into exact numbers, in their order.

    Args:
        measuring: The notion.
        given: Parameter -> number or text, None where it is not given.

    Raises:
        InvalidRequest: A parameter is missing, has a wrong value, or is none of the notion.
    """
    named = {name: value for name, value in given.items() if value is not None}
    for name in named:
        if name not in measuring.parameters:
            names = ", ".join(measuring.parameters)
            raise InvalidRequest(
                f"The parameters of the notion {measuring.name} must be {names}. Got {name}."
            )
    values = {}
    for name in measuring.parameters:
        if name in named:
            values[name] = measuring.parse(name, named[name])
        elif name in measuring.defaults:
            values[name] = measuring.defaults[name]
        else:
            raise InvalidRequest(f"{name} must be given for the notion {measuring.name}. Got none.")
    return values


def _write_parameter(value: Any) -> Any:
    if isinstance(value, Mapping):
        return [[list(label), format_fraction(each)] for label, each in sorted(value.items())]
    return (
        [_write_parameter(part) for part in value]
        if isinstance(value, tuple)
        else format_fraction(value)
    )


def format_parameter(value: Any) -> str:
    """A number; points as they are given, "0.5:0.1,1:0.01"."""
    if isinstance(value, tuple):
        return ",".join(":".join(map(format_rational, point)) for point in value)
    return format_rational(value) if isinstance(value, Fraction) else str(value)


def _read_parameter(data: Any, name: str) -> Any:
    """A number, or [[label, number], ...] as a mapping, or [[number, number], ...] as a tuple."""

    def number(text: Any) -> Fraction:
        value = parse_ratio(text, name)
        if not 0 <= value <= _MAX_FILE_PARAMETER:
            raise CorruptFile(f"{name} must be a number in [0, {_MAX_FILE_PARAMETER}].")
        return value

    if not isinstance(data, list):
        return number(data)
    if not all(isinstance(item, list) and len(item) == 2 for item in data):
        raise CorruptFile(f"{name} must be a number, or a list of pairs.")
    if data and not any(isinstance(item[0], list) for item in data):
        return tuple((number(first), number(second)) for first, second in data)
    budgets = {}
    for label, text in data:
        if (
            not isinstance(label, list)
            or not all(type(part) is int for part in label)
            or tuple(label) in budgets
        ):
            raise CorruptFile(f"{name} must be one number for each shift, given once.")
        budgets[tuple(label)] = number(text)
    return budgets
