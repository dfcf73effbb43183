"""Read numbers from common containers: lists, NumPy, masked arrays, pandas, pyarrow, polars.

Entries that are no plain numbers are errors, because NumPy would silently convert them. It would
read a masked entry as the number under its mask, a length as its number without the unit, and the
text "1_0" as 10. A missing value is an error that names its position. The type of an array is kept:
a column of float32 stays one, so that its numbers keep their digits.
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

# Larger integers in files, and larger noise values, are refused, so that sums fit into 64 bits.
MAX_FILE_INTEGER = (1 << 40) - 1
# Larger integers are not printed, because Python refuses to print more than 4300 digits.
UNPRINTABLE_SIZE = 10**4000
_MAX_ENTRIES = 10_000_000  # A longer list is refused: a range may have any number of entries.
_TABLE_LIBRARIES = ("pandas", "polars", "pyarrow")
_MARK_DEPTH = 3  # Masks and units are not searched in lists that are nested deeper.
_SHOWN_CHARACTERS = 60  # A message shows at most this many characters of an entry.


def read_floats(
    values: Any, name: str, constraint: str = "finite numbers", *, column: bool = False
) -> Vector:
    """Read numbers as floats. NaN and infinities are accepted. Shape as the values.

    Args:
        values: An int, float, Fraction or Decimal, an array, or a (nested) list of these.
        name: Name of the option in errors.
        constraint: What the values must be, in errors.
        column: Whether the index of a Series is ignored, as `read_list` explains.

    Raises:
        InvalidRequest: There are masks, units, dates, time spans, texts or complex numbers.
    """
    array = read_plain_array(values, name, constraint, column=column)
    if array.dtype.kind == "O":
        number_types = (int, float, Fraction, Decimal, np.integer, np.floating)
        for entry in array.flat:
            if not isinstance(entry, number_types) or isinstance(entry, np.timedelta64):
                must(name, constraint, repr(entry)[:_SHOWN_CHARACTERS])
    elif array.dtype.kind not in "biuf":
        must(name, constraint, f"an array of {array.dtype}")
    try:
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return must(name, constraint, type(values).__name__)


def read_floats_and_entries(
    values: Any, name: str, constraint: str = "finite numbers"
) -> tuple[Vector, NDArray[Any]]:
    """Read finite numbers twice: as floats, and unchanged for `read_exact_number`.

    The floats alone are not enough. If one number of a list is a float, NumPy converts all numbers
    to doubles. Different integers beyond 2^53 may then become one double, and noise would be added
    to a wrong number.

    Args:
        values: Numbers in any container.
        name: Name of the option in errors.
        constraint: What the values must be, in errors.

    Returns:
        The floats, and the entries without conversion. Both have the same shape.

    Raises:
        InvalidRequest: A value is no finite number.
    """
    floats = read_floats(values, name, constraint, column=True)
    if not np.isfinite(floats).all():
        must(name, constraint, values)
    if isinstance(values, (list, tuple)):
        entries = np.array(values, dtype=object)
    else:
        entries = read_plain_array(values, name, constraint, column=True)
    if entries.shape != floats.shape:
        must(name, constraint, type(values).__name__)
    if entries.dtype.kind == "b":
        entries = entries.astype(np.int64)  # Truth values count as 0 and 1.
    return floats, entries


def read_exact_number(value: Any) -> Fraction:
    """Read a number exactly. A float means the decimal that Python prints for it.

    Args:
        value: A number.

    Raises:
        InvalidRequest: The number has more than 5000 digits.
    """
    number = parse_rational(int(value) if isinstance(value, (bool, np.bool_)) else value)
    if number is None:
        return must("every number", "a decimal within 5000 digits", value)
    return number


def read_finite_floats(values: Any, name: str, constraint: str = "finite numbers") -> Vector:
    """Read finite numbers as floats. Shape as the values.

    Args:
        values: Numbers in any container.
        name: Name of the option in errors.
        constraint: What the values must be, in errors.

    Raises:
        InvalidRequest: A value is no finite number.
    """
    array = read_floats(values, name, constraint)
    if np.isfinite(array).all():
        return array
    return must(name, constraint, values)


def read_finite_table(values: Any, name: str, *shapes: tuple[int, ...]) -> Vector:
    """Read finite numbers as floats in one of several shapes.

    Args:
        values: Numbers in any container.
        name: Name of the option in errors.
        *shapes: Accepted shapes. Errors name the first one.

    Raises:
        InvalidRequest: The shape is wrong, or a value is no finite number.
    """
    array = read_floats(values, name)
    if array.shape not in shapes:
        must(name, f"an array of shape {shapes[0]}", f"shape {array.shape}")
    return read_finite_floats(array, name, "an array of finite numbers")


def read_integer_column(values: Any, name: str, low: int, high: int, constraint: str) -> Integers:
    """Read a column of integers in low..high. Shape (n,).

    Args:
        values: Integers of NumPy or Python in any container.
        name: Name of the option in errors.
        low: Smallest accepted integer.
        high: Largest accepted integer.
        constraint: What the values must be, in errors.

    Raises:
        InvalidRequest: A value is no such integer.
    """
    array = read_plain_array(values, name, constraint, column=True)
    are_integers = array.dtype.kind in "iu" and array.ndim == 1
    if not are_integers or (array.size and not low <= array.min() <= array.max() <= high):
        must(name, constraint, values)
    return array.astype(np.int64)


def read_plain_array(
    values: Any, name: str, constraint: str, *, column: bool = False
) -> NDArray[Any]:
    """Read a container as an array of any entries, without masks and units.

    Args:
        values: A list, an array, a Series, a data frame or another container.
        name: Name of the option in errors.
        constraint: What the values must be, in errors.
        column: Whether the index of a Series is ignored, as `read_list` explains.

    Raises:
        InvalidRequest: There are masks, units or missing values, or labels without `column`.
    """
    if type(values) is np.ndarray:
        return values
    if not column:
        refuse_labels(values, name)
    try:
        return np.asarray(_open_container(values, name, constraint))
    except (TypeError, ValueError):
        return must(name, constraint, type(values).__name__)


def read_boolean(value: Any, name: str) -> bool:
    """Read True or False of Python or NumPy.

    Args:
        value: The value of an option.
        name: Name of the option in errors.

    Raises:
        InvalidRequest: The value is neither.
    """
    if not isinstance(value, (bool, np.bool_)):
        must(name, "True or False", repr(value))
    return bool(value)


def is_integer(value: object) -> TypeGuard[int]:
    """Return whether a value is an integer of Python or NumPy.

    Truth values are no integers. NumPy's time spans are none either, although NumPy derives them
    from integers.

    Args:
        value: Any object.
    """
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64))


def read_integer_text(value: Any) -> Any:
    """Read the integer that a text of a command line spells. Other values are returned unchanged.

    Integers that Python refuses to print stay texts, so that messages can show them.

    Args:
        value: Any object.
    """
    number = None
    if isinstance(value, str):
        number = parse_rational(value)
    if number is None or number.denominator != 1 or abs(number) >= UNPRINTABLE_SIZE:
        return value
    return int(number)


def read_integer(
    value: Any, name: str, minimum: int, maximum: int | None = None, constraint: str = ""
) -> int:
    """Read an integer of Python or NumPy, or a text that spells one.

    Args:
        value: The value of an option.
        name: Name of the option in errors.
        minimum: Smallest accepted integer.
        maximum: Largest accepted integer. None for no limit.
        constraint: What the value must be, in errors. Empty for the range.

    Raises:
        InvalidRequest: The value is no such integer.
    """
    value = read_integer_text(value)
    if not is_integer(value) or value < minimum or (maximum is not None and value > maximum):
        range_text = f"an integer in {minimum}..{maximum}"
        if maximum is None:
            range_text = f"an integer >= {minimum}"
        must(name, constraint or range_text, value)
    return int(value)


def read_list(
    values: Any, name: str, constraint: str = "a list", *, column: bool = False
) -> list[Any]:
    """List the entries of a list, tuple, array or other ordered iterable.

    A data frame gives its rows, or the entries of its only column. Texts and mappings are refused.

    Args:
        values: A list, an array, a Series, a data frame or another container.
        name: Name of the option in errors.
        constraint: What the values must be, in errors.
        column: Whether the index of a Series is ignored, because it has no meaning in a column of
            data. Otherwise labels other than 0, 1, 2, ... are errors.

    Raises:
        InvalidRequest: The object is no such container, or has masks, units or missing values.
    """
    if type(values) in (np.ndarray, range):
        contents = values
    elif type(values) in (list, tuple):
        contents = values
        mark = _find_mark(values)
        if mark is not None:
            must(name, f"{constraint}, none of them {mark}", type(values).__name__)
    else:
        if not column:
            refuse_labels(values, name)
        contents = _open_container(values, name, constraint)
    try:
        if isinstance(contents, (str, bytes, Mapping, Set)):
            raise TypeError
        is_opened_column = contents is not values and isinstance(contents, np.ndarray)
        if is_opened_column and contents.dtype not in (np.float16, np.float32):
            contents = contents.tolist()
        entries = list(islice(contents, _MAX_ENTRIES + 1))
        if len(entries) > _MAX_ENTRIES:
            must(name, f"at most {_MAX_ENTRIES} entries long", type(values).__name__)
    except TypeError:
        return must(name, constraint, repr(values))
    if any(hasattr(entry, "as_py") for entry in entries):
        return [to_python_scalar(entry) for entry in entries]
    return entries


def _open_container(values: Any, name: str, constraint: str) -> Any:
    """Convert a container of another library to an array or a list.

    A table becomes a list of rows, or of the entries of its only column. Objects that are no
    containers are returned unchanged. Raises InvalidRequest for missing and masked values, and for
    units.
    """
    mark = _find_mark(values)
    if mark is not None:
        must(name, f"{constraint}, none of them {mark}", type(values).__name__)
    if is_frame(values):
        frame_columns = _list_frame_columns(values)
        columns = [list(_open_container(column, name, constraint)) for column in frame_columns]
        if len(columns) == 1:
            return columns[0]
        return [list(row) for row in zip(*columns, strict=True)]
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
    is_missing = values.isna() if hasattr(values, "isna") else values.is_null()
    gaps = np.flatnonzero(_convert_to_array(is_missing))
    if gaps.size:
        must(name, f"{constraint}, none of them missing", f"no value at position {gaps[0]}")
    if hasattr(values, "dictionary_decode"):
        values = values.dictionary_decode()
    return _convert_to_array(values)


def _is_column(values: Any) -> bool:
    """Return whether an object is a column, an index or an array of a library of tables."""
    library = type(values).__module__.partition(".")[0]
    return (
        library in _TABLE_LIBRARIES and hasattr(values, "__len__") and hasattr(values, "to_numpy")
    )


def _list_frame_columns(frame: Any) -> list[Any]:
    """List the columns of a table in order. Two columns may have one name."""
    if hasattr(frame, "column_names"):
        return [frame.column(position) for position in range(frame.num_columns)]
    if hasattr(frame, "iloc"):
        return [frame.iloc[:, position] for position in range(frame.shape[1])]
    if hasattr(frame, "get_columns"):
        return list(frame.get_columns())
    return list(np.asarray(frame.to_numpy()).T)


def _convert_to_array(values: Any) -> NDArray[Any]:
    """Convert a column to an array of NumPy's types, or of objects."""
    if type(values).__module__.startswith("pyarrow"):
        return np.asarray(values.to_numpy(zero_copy_only=False))
    return np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)


def _find_mark(values: Any, depth: int = _MARK_DEPTH) -> str | None:
    """Return why NumPy would misread values: "masked" or "with a unit". None if it would not.

    Args:
        values: Any object. The entries of lists are searched, too.
        depth: Largest depth of nested lists that are searched.
    """
    if type(values) in (int, Fraction, float, str, bytes, range):
        return None
    is_list = isinstance(values, Sequence) and not isinstance(values, (str, bytes, range))
    if depth and is_list:
        marks = (_find_mark(part, depth - 1) for part in values)
        return next((mark for mark in marks if mark), None)
    # numpy.ma is slow to import, so it is only used if it has been imported already.
    if "numpy.ma.core" in sys.modules and isinstance(values, np.ma.MaskedArray):
        if np.ma.getmaskarray(values).any():
            return "masked"
        return None
    for kind in (type(values), type(getattr(values, "dtype", None))):
        if hasattr(kind, "unit") or hasattr(kind, "units"):
            return "with a unit"
    return None
