"""Read numbers from the containers that people bring: lists, NumPy, masked arrays, pandas, pyarrow, polars.

What is not a plain number is refused here: a masked entry would be published as whatever lies under its mask, a time
span or a length as a count of some unit, the text "1_0" as 10. None of them is a number somebody meant. A missing value
is refused with its position. Types keep their digits: a float32 column stays one.
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

from workbench.data.labels import is_frame, refuse_labels, to_python_scalar
from workbench.errors import must
from workbench.exact.arrays import Integers, Vector
from workbench.exact.numbers import parse_rational

MAX_FILE_INTEGER = (1 << 40) - 1
"""The size of an integer that is written into a file, and of a noise value: sums of them fit into 64 bits."""

UNPRINTABLE_SIZE = 10**4000
"""The size from which an integer is not printed: Python refuses beyond 4300 digits."""

_MOST = 10_000_000  # entries of a list: a range may have any number of them

_TABLES = ("pandas", "polars", "pyarrow")


def read_floats(
    values: Any, name: str, constraint: str = "finite numbers", *, column: bool = False
) -> Vector:
    """Numbers as floats, in the shape given; NaN and infinities are left to the caller.

    values: an int, float, Fraction or Decimal, an array or (nested) list of them. column: as for `plain_list`.
    Raises InvalidRequest for masked arrays, units, dates, time spans, text, complex numbers and anything else.
    """
    array = read_plain_array(values, name, constraint, column=column)
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


def read_floats_and_entries(
    values: Any, name: str, constraint: str = "finite numbers"
) -> tuple[Vector, NDArray[Any]]:
    """Finite numbers as floats, and entry by entry as they were handed in, for `exact_number`.

    NumPy makes doubles of a list in which one number is a float, and two integers beyond 2^53 may then be one double:
    noise would be added to another number than was meant. Raises InvalidRequest.
    """
    floats = read_floats(values, name, constraint, column=True)
    if not np.isfinite(floats).all():
        must(name, constraint, values)
    listed = isinstance(values, (list, tuple))
    kept = (
        np.array(values, dtype=object)
        if listed
        else read_plain_array(values, name, constraint, column=True)
    )
    if kept.shape != floats.shape:
        must(name, constraint, type(values).__name__)
    return floats, kept.astype(np.int64) if kept.dtype.kind == "b" else kept


def read_exact_number(value: Any) -> Fraction:
    """A number as it is; a float means the decimal it shows. Raises InvalidRequest beyond 5000 digits."""
    number = parse_rational(int(value) if isinstance(value, (bool, np.bool_)) else value)
    return must("every number", "a decimal within 5000 digits", value) if number is None else number


def read_finite_floats(values: Any, name: str, constraint: str = "finite numbers") -> Vector:
    """`plain_numbers`, all finite. Raises InvalidRequest."""
    array = read_floats(values, name, constraint)
    return array if np.isfinite(array).all() else must(name, constraint, values)


def read_finite_table(values: Any, name: str, *shapes: tuple[int, ...]) -> Vector:
    """Finite numbers as floats, in one of these shapes. Raises InvalidRequest."""
    array = read_floats(values, name)
    if array.shape not in shapes:
        must(name, f"an array of shape {shapes[0]}", f"shape {array.shape}")
    return read_finite_floats(array, name, "an array of finite numbers")


def read_integer_column(values: Any, name: str, low: int, high: int, constraint: str) -> Integers:
    """A column (n,) of integers in low..high, NumPy's or Python's. Raises InvalidRequest."""
    array = read_plain_array(values, name, constraint, column=True)
    whole = array.dtype.kind in "iu" and array.ndim == 1
    if not whole or (array.size and not low <= array.min() <= array.max() <= high):
        must(name, constraint, values)
    return array.astype(np.int64)


def read_plain_array(
    values: Any, name: str, constraint: str, *, column: bool = False
) -> NDArray[Any]:
    """What is handed in as an array, of whatever entries; no masks, no units. column: as for `plain_list`. Raises
    InvalidRequest."""
    if type(values) is np.ndarray:
        return values
    if not column:
        refuse_labels(values, name)
    try:
        return np.asarray(_open_container(values, name, constraint))
    except (TypeError, ValueError):
        return must(name, constraint, type(values).__name__)


def read_boolean(value: Any, name: str) -> bool:
    """True or False, Python's or NumPy's. Raises InvalidRequest."""
    if not isinstance(value, (bool, np.bool_)):
        must(name, "True or False", repr(value))
    return bool(value)


def is_integer(value: object) -> TypeGuard[int]:
    """Whether a value is an integer, NumPy's included; no truth value, and no time span, which NumPy takes for one."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64))


def read_integer_text(value: Any) -> Any:
    """The integer that a text spells, as a command line has it; anything else as it is.

    Texts of integers that Python refuses to print stay texts, so that messages can show them.
    """
    number = parse_rational(value) if isinstance(value, str) else None
    if number is None or number.denominator != 1 or abs(number) >= UNPRINTABLE_SIZE:
        return value
    return int(number)


def read_integer(
    value: Any, name: str, minimum: int, maximum: int | None = None, constraint: str = ""
) -> int:
    """An integer in least..most, NumPy's, Python's or a text of one. constraint: the same in other words. Raises
    InvalidRequest."""
    value = read_integer_text(value)
    if not is_integer(value) or value < minimum or (maximum is not None and value > maximum):
        words = (
            f"an integer >= {minimum}" if maximum is None else f"an integer in {minimum}..{maximum}"
        )
        must(name, constraint or words, value)
    return int(value)


def read_list(
    values: Any, name: str, constraint: str = "a list", *, column: bool = False
) -> list[Any]:
    """The entries of a list, tuple, array or other iterable in an order, no text and no mapping; of a data frame its
    rows, or the entries of its only column.

    column: whether an index has no meaning, as that of a column of data; otherwise labels other than 0, 1, 2, ... are
    refused, since an entry would be read by its position. Raises InvalidRequest.
    """
    if type(values) in (np.ndarray, range):
        contents = values
    elif type(values) in (list, tuple):
        contents = values
        if (mark := _find_mark(values)) is not None:
            must(name, f"{constraint}, none of them {mark}", type(values).__name__)
    else:
        if not column:
            refuse_labels(values, name)
        contents = _open_container(values, name, constraint)
    try:
        if isinstance(contents, (str, bytes, Mapping, Set)):
            raise TypeError
        was_column = contents is not values and isinstance(contents, np.ndarray)
        if was_column and contents.dtype not in (np.float16, np.float32):
            contents = contents.tolist()
        entries = list(islice(contents, _MOST + 1))
        if len(entries) > _MOST:
            must(name, f"at most {_MOST} entries long", type(values).__name__)
        return [to_python_scalar(entry) if hasattr(entry, "as_py") else entry for entry in entries]
    except TypeError:
        return must(name, constraint, repr(values))


def _open_container(values: Any, name: str, constraint: str) -> Any:
    """Turn a container of another library into an array or a list; anything else is returned as it is.

    A table becomes a list of rows, or of the entries of its only column.

    Raises:
        InvalidRequest: a value is missing or masked, or there is a unit.
    """
    mark = _find_mark(values)
    if mark is not None:
        must(name, f"{constraint}, none of them {mark}", type(values).__name__)
    if is_frame(values):
        columns = [
            list(_open_container(column, name, constraint))
            for column in _list_frame_columns(values)
        ]
        return (
            columns[0] if len(columns) == 1 else [list(row) for row in zip(*columns, strict=True)]
        )
    if "numpy.ma" in sys.modules and isinstance(values, np.ma.MaskedArray):
        return np.asarray(values.data)
    if hasattr(values, "dims") and hasattr(values, "coords"):
        return np.asarray(values)
    if isinstance(values, (list, tuple)) and values and hasattr(values[0], "as_py"):
        return [to_python_scalar(value) for value in values]
    if isinstance(values, np.ndarray) or not _is_column(values):
        return values
    if hasattr(values, "combine_chunks"):
        values = values.combine_chunks()
    gaps = np.flatnonzero(
        _convert_to_array(values.isna() if hasattr(values, "isna") else values.is_null())
    )
    if gaps.size:
        must(name, f"{constraint}, none of them missing", f"no value at position {gaps[0]}")
    return _convert_to_array(
        values.dictionary_decode() if hasattr(values, "dictionary_decode") else values
    )


def _is_column(values: Any) -> bool:
    """Whether this is a column, an index or an array of a library of tables."""
    library = type(values).__module__.partition(".")[0]
    return library in _TABLES and hasattr(values, "__len__") and hasattr(values, "to_numpy")


def _list_frame_columns(frame: Any) -> list[Any]:
    """The columns of a table, in order; two may have one name."""
    if hasattr(frame, "column_names"):
        return [frame.column(position) for position in range(frame.num_columns)]
    if hasattr(frame, "iloc"):
        return [frame.iloc[:, position] for position in range(frame.shape[1])]
    if hasattr(frame, "get_columns"):
        return list(frame.get_columns())
    return list(np.asarray(frame.to_numpy()).T)


def _convert_to_array(values: Any) -> NDArray[Any]:
    """The entries as an array of NumPy's own types, or of objects."""
    if type(values).__module__.startswith("pyarrow"):
        return np.asarray(values.to_numpy(zero_copy_only=False))
    return np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)


def _find_mark(values: Any, depth: int = 3) -> str | None:
    """What NumPy would drop from an array, or from one in lists of lists of this depth: a mask, or a unit."""
    if type(values) in (int, Fraction, float, str, bytes, range):
        return None
    if depth and isinstance(values, Sequence) and not isinstance(values, (str, bytes, range)):
        return next((mark for part in values if (mark := _find_mark(part, depth - 1))), None)
    if "numpy.ma.core" in sys.modules and isinstance(
        values, np.ma.MaskedArray
    ):  # which is slow to import
        return "masked" if np.ma.getmaskarray(values).any() else None
    kinds = (type(values), type(getattr(values, "dtype", None)))
    return (
        "with a unit"
        if any(hasattr(kind, mark) for kind in kinds for mark in ("unit", "units"))
        else None
    )
