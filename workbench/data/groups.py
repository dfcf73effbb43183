"""Read the groups and shifts of modular noise, which is added modulo the sizes of the group.

The answers are the elements of a group Z_s1 x ... x Z_sk with the sizes s1, ..., sk. A shift is a
difference of two neighbouring answers.

    accepted                                 read as
    n                                        sizes (n + 1,): the answers 0..n of a scalar query
    sizes: "5x5", list, array                the sizes: (5, 5)
    shifts: "1,2,3", list, array, column     integers, for a scalar query
    shifts: "0,1;1,0", list of tuples        tuples of integers, for a vector query

A part of a text that is no integer stays a text. The question refuses it later, and shows it.
"""

from __future__ import annotations

import math
from typing import Any

from workbench.data.plain import is_integer, read_integer, read_integer_text, read_list
from workbench.errors import must

MAX_ORDER = 50_000_000  # A larger group is refused: an array of its floats has 400 MB.
MAX_FACTORS = 32  # More sizes are refused: older NumPy versions allow at most 32 axes.
_SIZES_CONSTRAINT = "a list of integers >= 1"
_SHIFTS_CONSTRAINT = "a list of shifts"


def read_sizes(n: Any = None, sizes: Any = None) -> tuple[int, ...]:
    """Read the sizes of a group.

    Args:
        n: The largest answer of a scalar query. None if sizes are given.
        sizes: Sizes as a text or in a container. None if n is given.

    Returns:
        Sizes of the cyclic factors, integers >= 1.

    Raises:
        InvalidRequest: A size is no integer >= 1, there are more than MAX_FACTORS sizes, or their
            product is not in 2..MAX_ORDER.
    """
    if n is not None:
        return (read_integer(n, "n", 1, MAX_ORDER - 1) + 1,)
    if isinstance(sizes, str):
        parts: list[Any] = [*sizes.lower().split("x")]
    else:
        parts = read_list(sizes, "sizes", _SIZES_CONSTRAINT)
    orders = tuple(map(read_integer_text, parts))
    if not all(is_integer(size) and size >= 1 for size in orders):
        must("sizes", _SIZES_CONSTRAINT, orders)
    factors = tuple(map(int, orders))
    if len(factors) > MAX_FACTORS:
        must("sizes", f"at most {MAX_FACTORS} integers", len(factors))
    if not 2 <= math.prod(factors) <= MAX_ORDER:
        must("sizes", f"orders with a product in 2..{MAX_ORDER}", factors)
    return factors


def list_shifts(value: Any) -> list[Any]:
    """List shifts: integers, or tuples of integers. Other entries are not changed.

    Args:
        value: A text or a container.

    Raises:
        InvalidRequest: The value is neither.
    """
    if not isinstance(value, str):
        return read_list(value, "shifts", _SHIFTS_CONSTRAINT, column=True)
    if ";" not in value:
        return _list_integers(value)
    return [tuple(_list_integers(part)) for part in value.split(";") if part.strip()]


def _list_integers(text: str) -> list[Any]:
    """List the integers between the commas of a text. Other parts stay texts."""
    return [read_integer_text(part) for part in text.split(",")]
