"""Define privacy claims: a notion of privacy together with exact numbers for its parameters.

The first parameter may be one number, or one number for each pair of neighbours. A pair is named by
its *label*: a shift such as (1,), or an ordered pair of rows such as (0, 1). The JSON form is

    {"notion": "dp", "epsilon": "0.5", "delta": "0.01"}
    {"notion": "dp", "epsilon": [[[1], "0.5"], [[2], "1"]], "delta": "0.01"}
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

_MAX_FILE_PARAMETER = 10**6  # A larger parameter in a file is refused.


@dataclass(frozen=True, init=False)
class Claim:
    """A notion and its parameters.

    The constructor expects exact numbers and does not parse them. `for_mechanism` parses numbers
    that a user gives.

    Args:
        notion_or_name: Name of the notion, or the notion itself.
        epsilon: ε, or a mapping label -> ε. None for the default of the notion.
        delta: δ in [0, 1]. None for the default of the notion.
        **others: Further parameters of the notion by name.

    Attributes:
        notion: Notion of privacy.
        values: Parameter -> exact number. The first parameter may be a mapping label -> number.
    """

    notion: Notion
    values: Values

    def __init__(
        self, notion_or_name: str | Notion, epsilon: Any = None, delta: Any = None, **others: Any
    ) -> None:
        resolved_notion = get_notion(notion_or_name)
        parameters = {"epsilon": epsilon, "delta": delta, **others}
        values = {}
        for name in resolved_notion.parameters:
            value = parameters.get(name)
            values[name] = resolved_notion.defaults[name] if value is None else value
        self.__dict__.update(notion=resolved_notion, values=values)

    @classmethod
    def for_mechanism(
        cls, notion_or_name: str | Notion, mechanism: Any, parameters: Values
    ) -> Claim:
        """Build the claim of a request about a mechanism.

        A budget that is given for shifts or pairs is extended to all comparisons.

        Args:
            notion_or_name: Name of the notion, or the notion itself.
            mechanism: The mechanism, which lists the comparisons.
            parameters: Parameter -> number or text. None for a parameter that is not given.

        Raises:
            InvalidRequest: A parameter is missing, unknown or has a wrong value.
        """
        resolved_notion = get_notion(notion_or_name)
        first = resolved_notion.parameters[0]
        first_value = parameters.get(first)
        if not isinstance(first_value, Mapping):
            return cls(resolved_notion, **read_budget(resolved_notion, parameters))
        if can_publish_reals(mechanism):
            raise InvalidRequest(f"{first} must be one number for a mechanism on real inputs.")
        # 0 stands for the mapping, which `read_budget` does not read. It is replaced below.
        other_values = read_budget(resolved_notion, {**parameters, first: 0})
        return cls(resolved_notion, **other_values | {first: mechanism.budgets(first_value)})

    @property
    def epsilon(self) -> Any:
        """Return ε, or the mapping label -> ε.

        It is None if the notion has no ε, or if ε is minimised without an upper limit.
        """
        return self.values.get("epsilon")

    @property
    def delta(self) -> Any:
        """Return δ, which is 0 for a notion without δ.

        It is None if δ is minimised without an upper limit.
        """
        return self.values.get("delta", Fraction(0))

    def with_values(self, **values: Any) -> Claim:
        """Return the claim with other values of some parameters.

        Args:
            **values: Exact numbers by name. None for a parameter that is minimised without an
                upper limit.
        """
        changed = Claim.__new__(Claim)
        changed.__dict__.update(notion=self.notion, values={**self.values, **values})
        return changed

    @property
    def is_epsilon_delta(self) -> bool:
        """Return whether the parameters are ε and perhaps δ, and no others."""
        return {"epsilon"} <= self.values.keys() <= {"epsilon", "delta"}

    def adapt_to(self, mechanism: Any) -> Claim:
        """Extend budgets for single labels to every comparison of a mechanism.

        Args:
            mechanism: The mechanism, which lists the comparisons.

        Returns:
            The claim itself if it has one budget for all comparisons.

        Raises:
            InvalidRequest: The budgets do not fit the mechanism.
        """
        first = self.notion.parameters[0]
        if not isinstance(self.values[first], Mapping):
            return self
        return Claim.for_mechanism(self.notion, mechanism, self.values)

    def values_at(self, label: Label) -> Values:
        """Return the parameters of one comparison.

        Args:
            label: Label of the comparison: a shift, or an ordered pair of rows.
        """
        first = self.notion.parameters[0]
        first_value = self.values[first]
        if isinstance(first_value, Mapping):
            return {**self.values, first: first_value[label]}
        return self.values

    @property
    def common_values(self) -> Values | None:
        """Return the parameters of all comparisons, or None if they differ between comparisons."""
        first_value = self.values[self.notion.parameters[0]]
        if isinstance(first_value, Mapping):
            return None
        return self.values

    def is_met_by(self, result: ComparisonResult) -> bool:
        """Return whether one comparison is within its budget.

        Args:
            result: Measurement of the comparison.
        """
        return self.notion.is_within_budget(result.measurement, result.budget)

    @property
    def is_decided_by_ratio(self) -> bool:
        """Return whether the comparison with the largest ratio decides the claim.

        This holds for a notion that says so, with one budget for all comparisons.
        """
        has_common_budget = not isinstance(self.values[self.notion.parameters[0]], Mapping)
        return has_common_budget and self.notion.is_decided_by_ratio(self.values)

    def list_ratio_bounds(self, label: Label) -> tuple[HockeyStick | MassAboveRatio, ...]:
        """List the bounds on ratios that the notion requires of one comparison.

        Args:
            label: Label of the comparison.

        Returns:
            An empty tuple if the notion also bounds anything else.
        """
        try:
            requirements = self.notion.requirements(self.values_at(label))
        except InvalidRequest:
            # No program can state the notion.
            return ()
        kinds = (HockeyStick, MassAboveRatio)
        ratio_bounds = tuple(bound for bound in requirements if isinstance(bound, kinds))
        if len(ratio_bounds) == len(requirements):
            return ratio_bounds
        return ()

    def describe_budget(self, *, one_sided: bool = False) -> str:
        """Describe the first parameter of the budget in words, such as "epsilon = 1".

        If it differs between pairs, the text is "a separate epsilon for each pair of neighbours".

        Args:
            one_sided: Whether the sentence is about one-sided neighbours.
        """
        first = self.notion.parameters[0]
        value = _merge_equal_budgets(self.values[first])
        if isinstance(value, Mapping):
            text = f"a separate {first} for each pair of neighbours"
        else:
            text = f"{first} = {format_parameter(value)}"
        if one_sided:
            return f"{text} for one-sided neighbours"
        return text

    def to_dict(self) -> Record:
        """Return the claim as data for JSON, in the form of the module header."""
        record: Record = {"notion": self.notion.name}
        for name, value in self.values.items():
            record[name] = _write_parameter(value)
        return record

    @classmethod
    def read(cls, data: Any) -> Claim:
        """Read the data that `to_dict` returned. The ranges of the numbers are not checked here.

        Args:
            data: Data of a JSON file.

        Raises:
            CorruptFile: The data are no claim.
            InvalidRequest: The notion is unknown.
        """
        if not isinstance(data, dict) or not isinstance(data.get("notion"), str):
            raise CorruptFile("The claim must be an object with a notion and its parameters.")
        named = get_notion(read_short_text(data["notion"], "The notion"))
        take_entries(data, "The claim", {"notion", *named.parameters})
        values = {name: _read_parameter(data[name], name) for name in named.parameters}
        for name in named.parameters[1:]:
            if isinstance(values[name], Mapping):
                raise CorruptFile(f"{name} must be one number.")
        return cls(named, **values)


def read_budget(resolved_notion: Notion, parameters: Values) -> Record:
    """Read all parameters of a notion as exact numbers, in their order.

    Args:
        resolved_notion: Notion of privacy, not its name.
        parameters: Parameter -> number or text. None for a parameter that is not given.

    Returns:
        Parameter -> exact number, with defaults for optional parameters that are not given.

    Raises:
        InvalidRequest: A parameter is missing, has a wrong value, or does not belong to the notion.
    """
    given_values = {name: value for name, value in parameters.items() if value is not None}
    for name in given_values:
        if name not in resolved_notion.parameters:
            names = ", ".join(resolved_notion.parameters)
            raise InvalidRequest(
                f"The parameters of the notion {resolved_notion.name} must be {names}. Got {name}."
            )
    values = {}
    for name in resolved_notion.parameters:
        if name in given_values:
            values[name] = resolved_notion.parse(name, given_values[name])
        elif name in resolved_notion.defaults:
            values[name] = resolved_notion.defaults[name]
        else:
            raise InvalidRequest(
                f"{name} must be given for the notion {resolved_notion.name}. Got none."
            )
    return values


def _merge_equal_budgets(value: Any) -> Any:
    """Return the common number if a mapping gives all labels the same, else the value itself."""
    if isinstance(value, Mapping):
        distinct_values = set(value.values())
        if len(distinct_values) == 1:
            (value,) = distinct_values
    return value


def _write_parameter(value: Any) -> Any:
    """Write a parameter for JSON: a number, a list of points, or pairs of label and number."""
    if isinstance(value, Mapping):
        items = sorted(value.items())
        return [[list(label), format_fraction(number)] for label, number in items]
    if isinstance(value, tuple):
        return [_write_parameter(part) for part in value]
    return format_fraction(value)


def format_parameter(value: Any) -> str:
    """Format a parameter for a message.

    Args:
        value: A number, which `format_rational` formats, or a tuple of points (x, y), which becomes
            "0.5:0.1,1:0.01".
    """
    if isinstance(value, tuple):
        return ",".join(":".join(map(format_rational, point)) for point in value)
    if isinstance(value, Fraction):
        return format_rational(value)
    return str(value)


def _read_parameter(data: Any, name: str) -> Any:
    """Read a number, pairs [label, number] as a mapping, or pairs of numbers as a tuple."""

    def read_number(text: Any) -> Fraction:
        """Read one number in [0, `_MAX_FILE_PARAMETER`]. Raises CorruptFile."""
        value = parse_ratio(text, name)
        if not 0 <= value <= _MAX_FILE_PARAMETER:
            raise CorruptFile(f"{name} must be a number in [0, {_MAX_FILE_PARAMETER}].")
        return value

    if not isinstance(data, list):
        return read_number(data)
    if not all(isinstance(item, list) and len(item) == 2 for item in data):
        raise CorruptFile(f"{name} must be a number, or a list of pairs.")
    if data and not any(isinstance(item[0], list) for item in data):
        return tuple((read_number(first), read_number(second)) for first, second in data)
    budgets = {}
    for label, text in data:
        if not isinstance(label, list):
            raise CorruptFile(f"{name} must be one number for each shift, given once.")
        has_integer_parts = all(type(part) is int for part in label)
        if not has_integer_parts or tuple(label) in budgets:
            raise CorruptFile(f"{name} must be one number for each shift, given once.")
        budgets[tuple(label)] = read_number(text)
    return budgets
