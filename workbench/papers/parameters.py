"""Read the parameters of an artifact: the numbers that a reader may change in a figure or table.

A declared file explains its parameters once, and every artifact lists those that it has with their
defaults, which are the paper's numbers or our choice where the paper is silent:

    [parameters]
    n = { type = "integer >= 1", meaning = "largest answer; noise is added modulo n + 1" }
    epsilon = { type = "number > 0", meaning = "ε of the budget" }

    [fig10]
    parameters = { n = 8, epsilon = 1.5 }
    rows = [{ function = "compute_pmf", arguments = { n = "$n", epsilon = "$epsilon" } }]

The text "$n" stands for the value of the parameter n (`fill_parameters`). An artifact whose
parameters differ from the defaults is no longer the paper's. Its printed numbers are therefore
neither compared nor drawn, and its caption names the changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from workbench.data.parameter_grid import read_grid_in_order
from workbench.errors import InvalidRequest, must
from workbench.exact.numbers import read_number
from workbench.exact.objects import Record, Values
from workbench.pipeline.option import suggest_names

_MAX_INTEGER = 100_000_000  # A larger integer is refused, because its table could not be computed.


def _check_number(number: Fraction, name: str, constraint: str, got: Any) -> Fraction:
    """Return a number that satisfies "> X", ">= X" or "in X..Y". Raises InvalidRequest."""
    comparison, _, limits = constraint.partition(" ")
    low, _, high = limits.partition("..")
    if comparison == "in":
        is_right = Fraction(low) <= number <= Fraction(high)
    elif comparison == ">":
        is_right = number > Fraction(low)
    else:
        is_right = number >= Fraction(low)
    if not is_right:
        must(name, constraint, repr(got))
    return number


def _read_one_integer(value: Any, name: str, constraint: str) -> int:
    """Read an integer that satisfies a constraint. Raises InvalidRequest."""
    number = read_number(value, name)
    if number.denominator != 1:
        must(name, "an integer", repr(value))
    if number > _MAX_INTEGER:
        must(name, f"at most {_MAX_INTEGER}", value)
    return int(_check_number(number, name, constraint, value))


def _read_one_number(value: Any, name: str, constraint: str) -> float:
    """Read a number that satisfies a constraint. Raises InvalidRequest."""
    return float(_check_number(read_number(value, name), name, constraint, value))


def _read_numbers(value: Any, name: str, constraint: str) -> list[float]:
    """Read a list or grid of numbers that satisfy a constraint. Raises InvalidRequest."""
    numbers = read_grid_in_order(value, name)
    return [float(_check_number(number, name, constraint, value)) for number in numbers]


def _read_integers(value: Any, name: str, constraint: str) -> list[int]:
    """Read a list or grid of integers that satisfy a constraint. Raises InvalidRequest."""
    numbers = read_grid_in_order(value, name)
    for number in numbers:
        if number.denominator != 1:
            must(name, f"integers {constraint}", repr(value))
        _check_number(number, name, constraint, value)
    return [int(number) for number in numbers]


def _read_choice(value: Any, name: str, constraint: str) -> str:
    """Read one of some words. The constraint is "of WORD, WORD". Raises InvalidRequest."""
    InvalidRequest.check_choice(constraint.removeprefix("of ").split(", "), name, value)
    return str(value)


# First word of a type -> the function that reads a value. The constraint follows that word.
_READERS: Mapping[str, Callable[[Any, str, str], Any]] = {
    "integer": _read_one_integer,
    "integers": _read_integers,
    "number": _read_one_number,
    "numbers": _read_numbers,
    "one": _read_choice,
}


@dataclass(frozen=True)
class Parameter:
    """A number, or a list of numbers, that a reader may change in a figure or table.

    Attributes:
        name: The name, as in `--set NAME=VALUE`.
        type: One of the words integer, integers, number and numbers, and a constraint: "numbers >
            0". Lists are written as "0.5,1,2" or as grids such as "0.1:4:40". Or words to choose
            from: "one of criteo, diabetes".
        default: The value in the paper, or our choice where the paper is silent.
        meaning: A noun phrase that explains the parameter.
    """

    name: str
    type: str
    default: Any
    meaning: str

    def read(self, value: Any) -> Any:
        """Read a value, as a number or a list of numbers.

        Args:
            value: A number, a list of numbers, or the text of either.

        Returns:
            The value. The default itself if both are equal, so that a grid keeps its text.

        Raises:
            InvalidRequest: The value is of another type, or violates the constraint.
        """
        word, _, constraint = self.type.partition(" ")
        number = _READERS[word](value, self.name, constraint)
        if number == _READERS[word](self.default, self.name, constraint):
            return self.default
        return number


def list_parameters(declaration: Values, artifact: str) -> dict[str, Parameter]:
    """Return the parameters of an artifact by name.

    Args:
        declaration: The content of a declared file.
        artifact: The name of an artifact of this file.
    """
    parameters = {}
    for name, default in declaration[artifact].get("parameters", {}).items():
        parameters[name] = Parameter(name=name, default=default, **declaration["parameters"][name])
    return parameters


def read_parameters(parameters: Mapping[str, Parameter], values: Values, owner: str) -> Record:
    """Read the values of a reader and return those that differ from the defaults.

    Args:
        parameters: The parameters of an artifact by name.
        values: The values of the reader by name.
        owner: The artifact, for the error message: "modulo-noise fig10".

    Raises:
        InvalidRequest: A name is unknown, or a value is wrong. The message lists the parameters.
    """
    if values and not parameters:
        must("set", f"left out for {owner}, which has no parameters", ", ".join(values))
    choices = "; ".join(f"{name} ({parameter.type})" for name, parameter in parameters.items())
    changes = {}
    for name, value in values.items():
        if name not in parameters:
            names = suggest_names(name, parameters)
            hint = f" Did you mean {names[0]}?" if names else ""  # The most similar name is first.
            raise InvalidRequest(
                f"set must name parameters of {owner}: {choices}. Got {name!r}.{hint}"
            )
        number = parameters[name].read(value)
        if number != parameters[name].default:
            changes[name] = number
    return changes


def fill_parameters(entry: Any, values: Values) -> Any:
    """Replace every text "$name" of a declaration by the value of the parameter.

    Args:
        entry: A part of a declaration: a table, a list, a text or a number.
        values: The values of the parameters by name.
    """
    if isinstance(entry, str) and entry.startswith("$"):
        return values[entry.removeprefix("$")]
    if isinstance(entry, Mapping):
        return {key: fill_parameters(value, values) for key, value in entry.items()}
    if isinstance(entry, list):
        return [fill_parameters(value, values) for value in entry]
    return entry


def format_parameter(value: Any) -> str:
    """Format a value of a parameter for a caption.

    Args:
        value: A number, a list of numbers, or a text.
    """
    if isinstance(value, str):
        return value
    numbers = value if isinstance(value, list) else [value]
    return ", ".join(f"{number:.9g}" for number in numbers)


def describe_changes(changes: Values, parameters: Mapping[str, Parameter]) -> str:
    """Describe changed parameters in one sentence, the last one of a caption.

    Args:
        changes: The changed values by name.
        parameters: All parameters of the artifact by name.
    """
    parts = []
    for name, value in changes.items():
        default = format_parameter(parameters[name].default)
        parts.append(f"{name} = {format_parameter(value)} (default: {default})")
    return f"With other parameters: {'; '.join(parts)}. Printed numbers are not compared."
