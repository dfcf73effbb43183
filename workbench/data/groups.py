"""Read the groups and shifts of modular noise, which is added modulo the sizes of the group.

The answers are the elements of a group Z_s1 x ... x Z_sk with the sizes s1, ..., sk. A shift is a
difference of two neighbouring answers.

    accepted                                 read as
    n                                        sizes (n + 1,): the answers 0..n of a scalar query
    sizes: "5x5", list, array                the sizes: (5, 5)
    shifts: "1,2,3", list, array, column     integers, for a scalar query
    shifts: "0,1;1,0", list of tuples        tuples of integers, for a vector query
    max_shift: "2 L1", "1 Linf"              all shifts of at most this norm, for a vector query

A part of a text that is no integer stays a text. The question refuses it later, and shows it.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from workbench.data.plain import is_integer, read_integer, read_integer_text, read_list
from workbench.errors import InvalidRequest, must

MAX_ORDER = 50_000_000  # A larger group is refused: an array of its floats has 400 MB.
MAX_FACTORS = 32  # More sizes are refused: older NumPy versions allow at most 32 axes.
MAX_SHIFTS = 1_000_000  # More shifts are refused.
_NORM_TEXT = re.compile(r"\s*(?P<radius>\d+)\s*(?P<norm>l1|linf)\s*", re.IGNORECASE)
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


def read_max_shift(value: Any) -> Any:
    """Read the largest difference of neighbours: a whole number, or a radius and a norm.

    Args:
        value: A number or a text such as "3" or "2 L1".

    Returns:
        An integer where the text is one, else the value itself. The question decides whether it
        fits, because only the question knows whether answers are numbers or vectors.
    """
    return read_integer_text(value.strip()) if isinstance(value, str) else value


def list_shifts_within_norm(text: Any, sizes: tuple[int, ...]) -> list[tuple[int, ...]]:
    """List all shifts of a vector query whose norm is at most a radius.

    Each part of a shift counts with its smallest absolute value modulo the size: 4 modulo 5 counts
    as 1. L1 adds these values, and Linf takes the largest.

    Args:
        text: Radius and norm, such as "2 L1" or "1 Linf".
        sizes: Sizes of the cyclic factors.

    Returns:
        One shift of each pair μ, -μ, modulo the sizes and sorted. 0 is left out.

    Raises:
        InvalidRequest: The text has another form, the radius is 0, or there are more than
            MAX_SHIFTS shifts.

    >>> list_shifts_within_norm("1 L1", (5, 5))
    [(0, 1), (1, 0)]
    """
    match = _NORM_TEXT.fullmatch(text) if isinstance(text, str) else None
    radius = 0 if match is None else int(match["radius"])
    if match is None or radius < 1:
        rule = 'a whole radius >= 1 and a norm for a vector query, "1 L1" or "1 Linf"'
        must("max_shift", rule, repr(text))
    distances = np.zeros(sizes, dtype=np.int32)
    combine = np.add if match["norm"].lower() == "l1" else np.maximum
    for axis, size in enumerate(sizes):
        parts = np.arange(size, dtype=np.int32)
        shape = [1] * len(sizes)
        shape[axis] = size
        distances = combine(distances, np.minimum(parts, size - parts).reshape(shape))
    is_near = (distances > 0) & (distances <= radius)
    # Of a pair μ, -μ one shift is listed, so at least half of these.
    if np.count_nonzero(is_near) > 2 * MAX_SHIFTS:
        raise InvalidRequest(
            f"max_shift must describe at most {MAX_SHIFTS} shifts. Got more for {text!r}. Choose a "
            "smaller radius."
        )
    shifts = np.argwhere(is_near)
    mirrors = -shifts % np.array(sizes)
    # A pair is ordered by the first part in which its shifts differ.
    differences = shifts - mirrors
    first_axis = np.argmax(differences != 0, axis=1)
    # A shift that is its own mirror has the difference 0, and is listed.
    is_first = differences[np.arange(len(shifts)), first_axis] <= 0
    return [tuple(shift) for shift in shifts[is_first].tolist()]


def _list_integers(text: str) -> list[Any]:
    """List the integers between the commas of a text. Other parts stay texts."""
    return [read_integer_text(part) for part in text.split(",")]
