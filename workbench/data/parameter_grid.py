"""Read grids of numbers exactly, in the same syntax on command lines, in sweeps and in Python.

    "0,1e-6,0.01"     a list
    "0.1:4:40"        40 numbers from 0.1 to 4, equally spaced
    "0.1:4:40:log"    40 numbers, equally spaced in the logarithm; all but the ends are rounded to
                      six digits
    "0,0.1:4:40"      parts that are separated by commas are combined

In Python a grid may also be one number, or a sequence of numbers and of such texts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from workbench.errors import must
from workbench.exact.numbers import Real, read_number, round_up

MAX_GRID_NUMBERS = 10_000  # A larger grid is refused.
_MAX_COUNT_DIGITS = 9  # A count of this many digits or more is too large, and is not parsed.
_EQUAL_STEPS = re.compile(
    r"\s*(?P<first>[^:\s]+)\s*:\s*(?P<last>[^:\s]+)\s*:\s*(?P<count>[0-9]+)\s*(?P<log>:\s*log\s*)?"
)

Grid: TypeAlias = "str | Real | Sequence[Any]"


def read_grid(value: Grid, name: str) -> list[Fraction]:
    """Read the numbers of a grid in increasing order, each once.

    Args:
        value: A grid of the module header: a text, a number, or a sequence of these.
        name: Name of the option in errors.

    Raises:
        InvalidRequest: A part is neither a number nor a grid.
    """
    return sorted(set(read_grid_in_order(value, name)))


def read_integer_grid(value: Grid, name: str) -> list[int]:
    """Read the integers of a grid in increasing order, each once.

    Args:
        value: A grid of the module header: a text, a number, or a sequence of these.
        name: Name of the option in errors.

    Raises:
        InvalidRequest: A part is no grid, or a number is no integer.
    """
    numbers = read_grid(value, name)
    for number in numbers:
        if number.denominator != 1:
            must(name, "integers", f"{round_up(number):g}")
    return [int(number) for number in numbers]


def read_integers(text: str, name: str) -> list[int]:
    """Read integers separated by commas in their order. An empty text has none.

    Args:
        text: Text such as "10,40".
        name: Name of the option in errors.

    Raises:
        InvalidRequest: A part is no integer.
    """
    try:
        if text.strip():
            return [_read_decimal_integer(part) for part in text.split(",")]
        return []
    except ValueError:
        must(name, "integers separated by commas, such as 10,40", repr(text))


def _read_decimal_integer(text: str) -> int:
    """Read an integer. Raises ValueError for a text such as "1_0", which Python reads as 10."""
    if "_" in text or not text.isascii():
        raise ValueError(text)
    return int(text)


def read_grid_in_order(value: Grid, name: str, max_count: int = MAX_GRID_NUMBERS) -> list[Fraction]:
    """Read the numbers of a grid in the order in which they are written.

    Args:
        value: A grid of the module header: a text, a number, or a sequence of these.
        name: Name of the option in errors.
        max_count: Largest accepted length of the grid.

    Raises:
        InvalidRequest: A part is neither a number nor a grid, or there are too many numbers or
            none.
    """
    numbers = []
    for part in _split_grid(value, name):
        if isinstance(part, str) and re.search(r":|\.\.", part):
            numbers += _read_equal_steps(part.strip(), name, max_count)
        else:
            numbers.append(read_number(part, name))
        if len(numbers) > max_count:
            must(name, f"a grid of at most {max_count} numbers", repr(value))
    if not numbers:
        must(name, "at least one number", repr(value))
    return numbers


def has_range(value: object) -> bool:
    """Return whether a value is a text with a part such as 0.1:4:40.

    Args:
        value: Any object.
    """
    if not isinstance(value, str):
        return False
    return any(_EQUAL_STEPS.fullmatch(part) for part in value.split(","))


def _split_grid(value: Grid, name: str) -> Iterable[Any]:
    """Return the parts of a grid: numbers, and texts without commas. Raises InvalidRequest."""
    if isinstance(value, str):
        parts = value.split(",")
        if not all(part.strip() for part in parts):
            must(name, "numbers and grids such as 0.1:4:40, separated by commas", repr(value))
        return parts
    if not isinstance(value, Iterable) or getattr(value, "ndim", None) == 0:
        return [value]
    all_parts: list[Any] = []
    for part in value:
        all_parts += _split_grid(part, name) if isinstance(part, str) else [part]
    return all_parts


def _read_equal_steps(text: str, name: str, max_count: int) -> list[Fraction]:
    """Read FIRST:LAST:COUNT or FIRST:LAST:COUNT:log. Raises InvalidRequest."""
    match = _EQUAL_STEPS.fullmatch(text)
    if match is None:
        must(name, "FIRST:LAST:COUNT, or FIRST:LAST:COUNT:log, such as 0.1:4:40", repr(text))
    low = read_number(match["first"], name)
    high = read_number(match["last"], name)
    # A count of too many digits is not converted. It is refused below.
    has_few_digits = len(match["count"]) < _MAX_COUNT_DIGITS
    count = int(match["count"]) if has_few_digits else max_count + 1
    if count == 1 and low == high:
        return [low]
    if not 2 <= count <= max_count:
        must(name, f"FIRST:LAST:COUNT with COUNT in 2..{max_count}", repr(text))
    if match["log"] is None:
        step = (high - low) / (count - 1)
        return [low + step * k for k in range(count)]
    if low <= 0 or high <= 0:
        must(name, "FIRST:LAST:COUNT:log with FIRST and LAST > 0", repr(text))
    log_low = math.log(low)
    log_step = (math.log(high) - log_low) / (count - 1)
    inner_numbers = [math.exp(log_low + log_step * k) for k in range(1, count - 1)]
    return [low, *(Fraction(f"{number:.6g}") for number in inner_numbers), high]
