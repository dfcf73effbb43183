"""Read the groups of answers and the shifts (differences of neighbours) of modular noise.

The group is Z_s1 x ... x Z_sk, and s1, ..., sk are its sizes.

    accepted                                 read as
    n                                        sizes (n + 1,): the answers 0..n of a scalar query
    sizes: "5x5", list, array                orders of the cyclic factors
    shifts: "1,2,3", list, array, column     integers, for a scalar query
    shifts: "0,1;1,0", list of tuples        tuples of integers, for a vector query

Parts of a text that spell no integer stay texts, so that an error can show them.
"""

from __future__ import annotations

import math
from typing import Any

from workbench.data.plain import is_integer, read_integer, read_integer_text, read_list
from workbench.errors import must

MAX_ORDER = 50_000_000  # A larger group is refused: an array of its floats has 400 MB.
MAX_FACTORS = 32  # More cyclic factors are refused: NumPy's arrays have no more axes.
_SIZES_CONSTRAINT = "a list of integers >= 1"
_SHIFTS_CONSTRAINT = "a list of shifts"


def read_sizes(n: Any = None, sizes: Any = None) -> tuple[int, ...]:
    """Read the orders of the cyclic factors of a group.

    Args:
        n: The largest answer of a scalar query. None if sizes are given.
        sizes: Orders as a text or in a container. None if n is given.

    Returns:
        Sizes of the cyclic factors.

    Raises:
        InvalidRequest: They are no integers, or the group is too small or too large.
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
