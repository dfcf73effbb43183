"""Grids of numbers, read exactly: the one syntax of command lines, of sweeps and of Python.

    "0,1e-6,0.01"     a list                        "0.1:4:40"        40 numbers from 0.1 to 4, equally spaced
    "0.1:4:40:log"    the same, equally spaced in the logarithm, to six digits (the ends exactly)

Parts separated by commas add up. In Python a grid may also be one number, or a sequence of numbers and of such texts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from workbench.errors import must
from workbench.exact.numbers import Real, read_number, round_up

MAX_GRID_NUMBERS = 10_000  # numbers in one grid
_RANGE = re.compile(r"\s*([^:\s]+)\s*:\s*([^:\s]+)\s*:\s*([0-9]+)\s*(:\s*log\s*)?")

Grid: TypeAlias = "str | Real | Sequence[Any]"


def read_grid(value: Grid, name: str) -> list[Fraction]:
    """The numbers of a grid, increasing, each once. Raises InvalidRequest, naming the grid and its part."""
    return sorted(set(read_grid_in_order(value, name)))


def read_integer_grid(value: Grid, name: str) -> list[int]:
    """As `grid`, for integers. Raises InvalidRequest."""
    numbers = read_grid(value, name)
    for number in numbers:
        if number.denominator != 1:
            must(name, "integers", f"{round_up(number):g}")
    return [int(number) for number in numbers]


def read_integers(text: str, name: str) -> list[int]:
    """Integers separated by commas, in their order; none for an empty text. Raises InvalidRequest."""
    try:
        return [int(part) for part in text.split(",")] if text.strip() else []
    except ValueError:
        must(name, "integers", repr(text))


def read_grid_in_order(value: Grid, name: str, max_count: int = MAX_GRID_NUMBERS) -> list[Fraction]:
    """The numbers of a grid as they are written, at most so many. Raises InvalidRequest."""
    numbers = []
    for part in _split_grid(value, name):
        numbers += (
            _read_equal_steps(part.strip(), name, max_count)
            if isinstance(part, str) and re.search(r":|\.\.", part)
            else [read_number(part, name)]
        )
        if len(numbers) > max_count:
            must(name, f"a grid of at most {max_count} numbers", repr(value))
    if not numbers:
        must(name, "at least one number", repr(value))
    return numbers


def has_range(value: object) -> bool:
    """Whether a value is a text with a part such as 0.1:4:40: then it is a grid, whatever else texts may spell."""
    return isinstance(value, str) and any(_RANGE.fullmatch(part) for part in value.split(","))


def _split_grid(value: Grid, name: str) -> Iterable[Any]:
    """The parts of a grid: numbers, and texts without commas."""
    if isinstance(value, str):
        parts = value.split(",")
        if not all(part.strip() for part in parts):
            must(name, "numbers and grids such as 0.1:4:40, separated by commas", repr(value))
        return parts
    if isinstance(value, Iterable) and getattr(value, "ndim", None) != 0:
        return [
            part
            for item in value
            for part in (_split_grid(item, name) if isinstance(item, str) else [item])
        ]
    return [value]


def _read_equal_steps(text: str, name: str, most: int) -> list[Fraction]:
    match = _RANGE.fullmatch(text)
    if match is None:
        must(name, "FIRST:LAST:COUNT, or FIRST:LAST:COUNT:log, such as 0.1:4:40", repr(text))
    low, high = read_number(match[1], name), read_number(match[2], name)
    count = int(match[3]) if len(match[3]) < 9 else most + 1
    if count == 1 and low == high:
        return [low]
    if not 2 <= count <= most:
        must(name, f"FIRST:LAST:COUNT with COUNT in 2..{most}", repr(text))
    if match[4] is None:
        step = (high - low) / (count - 1)
        return [low + step * k for k in range(count)]
    if low <= 0 or high <= 0:
        must(name, "FIRST:LAST:COUNT:log with FIRST and LAST > 0", repr(text))
    first, log_step = math.log(low), (math.log(high) - math.log(low)) / (count - 1)
    return [
        low,
        *(Fraction(f"{math.exp(first + log_step * k):.6g}") for k in range(1, count - 1)),
        high,
    ]
