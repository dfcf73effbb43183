"""Arrays of numbers as they are handed in: the one place where what is not a plain number is refused.

A masked entry would be published as whatever lies under its mask, a time span as a count of some unit, the text "1_0"
as 10: none of them is a number somebody meant.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.errors import InvalidRequest

__all__ = ["is_whole", "plain_list", "plain_numbers", "refuse_masked"]


def plain_numbers(values: Any, name: str, constraint: str = "finite numbers") -> NDArray[np.float64]:
    """Numbers as floats, in the shape given; NaN and infinities are left to the caller.

    values: an int, float, Fraction or Decimal, an array or (nested) list of them.
    Raises InvalidRequest for masked arrays, dates, time spans, text, complex numbers and anything else.
    """
    refuse_masked(values, name, constraint)
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):
        InvalidRequest.must(name, constraint, type(values).__name__)
    if array.dtype.kind == "O":
        for entry in array.flat:
            if not isinstance(entry, (int, float, Fraction, Decimal, np.integer, np.floating)):
                InvalidRequest.must(name, constraint, repr(entry)[:60])
    elif array.dtype.kind not in "biuf":
        InvalidRequest.must(name, constraint, f"an array of {array.dtype}")
    try:
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return InvalidRequest.must(name, constraint, type(values).__name__)


def is_whole(value: Any) -> bool:
    """Whether a value is an integer, NumPy's included; no truth value, and no time span, which NumPy takes for one."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64))


def plain_list(values: Any, name: str, constraint: str = "a list") -> list[Any]:
    """The entries of a list, tuple, array or other iterable that is no text. Raises InvalidRequest."""
    try:
        if isinstance(values, (str, bytes)):
            raise TypeError
        return list(values)
    except TypeError:
        return InvalidRequest.must(name, constraint, repr(values))


def refuse_masked(values: Any, name: str, constraint: str = "finite numbers") -> None:
    """Raise InvalidRequest for a masked array, or a (nested) list with one in it."""
    if _masked(values):
        InvalidRequest.must(name, f"{constraint}, none of them masked", "a masked array")


def _masked(values: Any, depth: int = 3) -> bool:
    """Whether there is a masked array in lists of lists of this depth."""
    if depth and isinstance(values, Sequence) and not isinstance(values, (str, bytes, range)):
        return any(_masked(part, depth - 1) for part in values)
    return isinstance(values, np.ma.MaskedArray)
