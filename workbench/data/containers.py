"""One reader for the containers of numbers that people bring: NumPy, masked arrays, pandas, pyarrow, polars.

A missing value is refused with its position, never read as NaN or as what lies under a mask. Types keep their digits:
a float32 column stays one. What carries a unit is refused, as its numbers alone would mean something else.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.errors import must

_TABLES = ("pandas", "polars", "pyarrow")


def is_frame(values: Any) -> bool:
    """Whether this is a table with named columns: of pandas, polars or pyarrow."""
    return hasattr(values, "column_names") or (hasattr(values, "columns") and hasattr(values, "to_numpy"))


def plain_container(values: Any, name: str, constraint: str) -> Any:
    """Turn a container of another library into an array or a list; anything else is returned as it is.

    A table becomes a list of rows, or of the entries of its only column.

    Raises:
        InvalidRequest: a value is missing or masked, or there is a unit.
    """
    mark = mark_of(values)
    if mark is not None:
        must(name, f"{constraint}, none of them {mark}", type(values).__name__)
    if is_frame(values):
        columns = [list(plain_container(column, name, constraint)) for column in _columns(values)]
        return columns[0] if len(columns) == 1 else [list(row) for row in zip(*columns, strict=True)]
    if "numpy.ma" in sys.modules and isinstance(values, np.ma.MaskedArray):
        return np.asarray(values.data)
    if hasattr(values, "dims") and hasattr(values, "coords"):
        return np.asarray(values)
    if isinstance(values, (list, tuple)) and values and hasattr(values[0], "as_py"):
        return [plain_scalar(value) for value in values]
    if isinstance(values, np.ndarray) or not _is_column(values):
        return values
    if hasattr(values, "combine_chunks"):
        values = values.combine_chunks()
    gaps = np.flatnonzero(_array(values.isna() if hasattr(values, "isna") else values.is_null()))
    if gaps.size:
        must(name, f"{constraint}, none of them missing", f"no value at position {gaps[0]}")
    return _array(values.dictionary_decode() if hasattr(values, "dictionary_decode") else values)


def plain_scalar(value: Any) -> Any:
    """A scalar of pyarrow as Python has it; anything else as it is."""
    return value.as_py() if hasattr(value, "as_py") else value


def _is_column(values: Any) -> bool:
    """Whether this is a column, an index or an array of a library of tables."""
    library = type(values).__module__.partition(".")[0]
    return library in _TABLES and hasattr(values, "__len__") and hasattr(values, "to_numpy")


def _columns(frame: Any) -> list[Any]:
    """The columns of a table, in order; two may have one name."""
    if hasattr(frame, "column_names"):
        return [frame.column(position) for position in range(frame.num_columns)]
    if hasattr(frame, "iloc"):
        return [frame.iloc[:, position] for position in range(frame.shape[1])]
    if hasattr(frame, "get_columns"):
        return list(frame.get_columns())
    return list(np.asarray(frame.to_numpy()).T)


def _array(values: Any) -> NDArray[Any]:
    """The entries as an array of NumPy's own types, or of objects."""
    if type(values).__module__.startswith("pyarrow"):
        return np.asarray(values.to_numpy(zero_copy_only=False))
    return np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)


def mark_of(values: Any, depth: int = 3) -> str | None:
    """What NumPy would drop from an array, or from one in lists of lists of this depth: a mask, or a unit."""
    if type(values) in (int, Fraction, float, str, bytes, range):
        return None
    if depth and isinstance(values, Sequence) and not isinstance(values, (str, bytes, range)):
        return next((mark for part in values if (mark := mark_of(part, depth - 1))), None)
    if "numpy.ma.core" in sys.modules and isinstance(values, np.ma.MaskedArray):  # which is slow to import
        return "masked" if np.ma.getmaskarray(values).any() else None
    kinds = (type(values), type(getattr(values, "dtype", None)))
    return "with a unit" if any(hasattr(kind, mark) for kind in kinds for mark in ("unit", "units")) else None
