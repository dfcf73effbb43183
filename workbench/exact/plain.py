"""Arrays of numbers as they are handed in: the one place where what is not a plain number is refused.

A masked entry would be published as whatever lies under its mask, a time span or a length as a count of some unit, the
text "1_0" as 10: none of them is a number somebody meant.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence, Set
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from workbench.errors import must
from workbench.exact.arrays import Integers, Vector

FARTHEST = (1 << 40) - 1
"""The size of an integer that is written into a file, and of a noise value: sums of them fit into 64 bits."""

_MOST = 10_000_000  # entries of a list: a range may have any number of them


def plain_numbers(values: Any, name: str, constraint: str = "finite numbers") -> Vector:
    """Numbers as floats, in the shape given; NaN and infinities are left to the caller.

    values: an int, float, Fraction or Decimal, an array or (nested) list of them.
    Raises InvalidRequest for masked arrays, units, dates, time spans, text, complex numbers and anything else.
    """
    array = plain_array(values, name, constraint)
    if array.dtype.kind == "O":
        for entry in array.flat:
            number = isinstance(entry, (int, float, Fraction, Decimal, np.integer, np.floating))
            if not number or isinstance(entry, np.timedelta64):
                must(name, constraint, repr(entry)[:60])
    elif array.dtype.kind not in "biuf":
        must(name, constraint, f"an array of {array.dtype}")
    try:
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return must(name, constraint, type(values).__name__)


def finite_numbers(values: Any, name: str, constraint: str = "finite numbers") -> Vector:
    """`plain_numbers`, all finite. Raises InvalidRequest."""
    array = plain_numbers(values, name, constraint)
    return array if np.isfinite(array).all() else must(name, constraint, values)


def finite_table(values: Any, name: str, *shapes: tuple[int, ...]) -> Vector:
    """Finite numbers as floats, in one of these shapes. Raises InvalidRequest."""
    array = plain_numbers(values, name)
    if array.shape not in shapes:
        must(name, f"an array of shape {shapes[0]}", f"shape {array.shape}")
    return finite_numbers(array, name, "an array of finite numbers")


def whole_column(values: Any, name: str, low: int, high: int, constraint: str) -> Integers:
    """A column (n,) of integers in low..high, NumPy's or Python's. Raises InvalidRequest."""
    array = plain_array(values, name, constraint)
    column = array.dtype.kind in "iu" and array.ndim == 1
    if not column or (array.size and not low <= array.min() <= array.max() <= high):
        must(name, constraint, values)
    return array.astype(np.int64)


def plain_array(values: Any, name: str, constraint: str) -> NDArray[Any]:
    """What is handed in as an array, of whatever entries; no masks, no units. Raises InvalidRequest."""
    refuse_marked(values, name, constraint)
    try:
        return np.asarray(_frame(values))
    except (TypeError, ValueError):
        return must(name, constraint, type(values).__name__)


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value is an integer, NumPy's included; no truth value, and no time span, which NumPy takes for one."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64))


def whole_number(value: Any, name: str, least: int, most: int | None = None, constraint: str = "") -> int:
    """An integer in least..most, NumPy's or Python's. constraint: the same in other words. Raises InvalidRequest."""
    if not is_whole(value) or value < least or (most is not None and value > most):
        words = f"an integer >= {least}" if most is None else f"an integer in {least}..{most}"
        must(name, constraint or words, value)
    return int(value)


def plain_list(values: Any, name: str, constraint: str = "a list") -> list[Any]:
    """The entries of a list, tuple, array or other iterable in an order, no text and no mapping; of a data frame its
    rows, or the entries of its only column. Raises InvalidRequest."""
    refuse_marked(values, name, constraint)
    try:
        if isinstance(values, (str, bytes, Mapping, Set)):
            raise TypeError
        entries = list(islice(_frame(values), _MOST + 1))
        if len(entries) > _MOST:
            must(name, f"at most {_MOST} entries long", type(values).__name__)
        return entries
    except TypeError:
        return must(name, constraint, repr(values))


def _frame(values: Any) -> Any:
    """A data frame as lists: of rows, or of its only column. Anything else as it is."""
    if not (hasattr(values, "columns") and hasattr(values, "to_numpy")):
        return values
    rows = values.to_numpy().tolist()
    return rows if len(values.columns) > 1 else [row[0] for row in rows]


def refuse_marked(values: Any, name: str, constraint: str = "finite numbers") -> None:
    """Raise InvalidRequest for a masked array or one with units, or a (nested) list with such an entry."""
    mark = _mark(values)
    if mark is not None:
        must(name, f"{constraint}, none of them {mark}", type(values).__name__)


def _mark(values: Any, depth: int = 3) -> str | None:
    """What NumPy would drop from an array, or from one in lists of lists of this depth: a mask, or a unit."""
    if type(values) in (int, Fraction, float, str, bytes, range):
        return None
    if depth and isinstance(values, Sequence) and not isinstance(values, (str, bytes, range)):
        return next((mark for part in values if (mark := _mark(part, depth - 1))), None)
    if "numpy.ma.core" in sys.modules and isinstance(values, np.ma.MaskedArray):  # which is slow to import
        return "masked"
    kind = type(values)
    return "with a unit" if hasattr(kind, "unit") or hasattr(kind, "units") else None
