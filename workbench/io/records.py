"""Parts of a JSON record, read strictly: exact entries, lists, exact numbers, laws of integer weights.

{"total": "0x10", "weights": ["0x3", "0xd"]}        a law: weights without a common factor, and their sum
[[2, "0x3", 1, "0xd"], ..]                          columns of laws: in every column runs of equal weights, downwards
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import groupby
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from workbench.errors import CorruptFile
from workbench.exact.distribution import Distribution
from workbench.exact.objects import Record
from workbench.io.files import ratio, whole

FORMULA = "dp-workbench formula"  # the format of a file of `workbench.families.formula_certificate`
_CELLS = 4_000_000  # of a table that a short file may stand for


def take(data: Any, what: str, names: set[str]) -> Record:
    """A record with exactly these entries. Raises CorruptFile."""
    if not isinstance(data, dict) or set(data) != names:
        raise CorruptFile(f"{what} must have exactly the entries {', '.join(sorted(names))}.")
    return data


def listed(data: Any, what: str) -> list[Any]:
    """A list. Raises CorruptFile."""
    if not isinstance(data, list):
        refuse(what, "a list")
    return data


def numbers(data: Any, what: str) -> tuple[Fraction, ...]:
    """A list of exact numbers in strings. Raises CorruptFile."""
    return tuple(ratio(item, f"An entry of {what}") for item in listed(data, what))


def floats(values: Any) -> list[str]:
    """Doubles as strings that read back the same (`float_array`)."""
    return [repr(value) for value in values.tolist()]


def float_array(data: Any, what: str) -> NDArray[np.float64]:
    """Finite doubles written by `floats`. Raises CorruptFile."""
    return np.array([float(ratio(item, f"An entry of {what}", 30)) for item in listed(data, what)], dtype=np.float64)


def short_text(data: Any, what: str) -> str:
    """A string of at most 100 characters. Raises CorruptFile."""
    if not isinstance(data, str) or len(data) > 100:
        refuse(what, "a short string")
    return data


def law_record(law: Distribution) -> Record:
    """A law as `law` reads it."""
    return {"total": hex(law.total), "weights": [hex(k) for k in law.integers]}


def read_law(data: Any, what: str) -> Distribution:
    """Weights that add up to the total beside them. Raises CorruptFile."""
    entries = take(data, what, {"total", "weights"})
    weights = [whole(k, "A weight") for k in listed(entries["weights"], "weights")]
    total = whole(entries["total"], "The total")
    if sum(weights) != total or not total:
        raise CorruptFile(f"{what}: the weights do not add up to the total.")
    read = Distribution(weights)
    if read.total != total:
        raise CorruptFile(f"{what}: the weights have a common factor.")
    return read


def column_records(laws: Sequence[Distribution]) -> list[list[Any]]:
    """Laws on the same outcomes as `read_columns` reads them, over one total."""
    common = math.lcm(*{law.total for law in laws})
    rows = [law.integers if law.total == common else [k * (common // law.total) for k in law.integers] for law in laws]
    records = []
    for column in zip(*rows, strict=True):
        record: list[Any] = []
        for weight, run in groupby(column):
            record += [sum(1 for _ in run), hex(weight)]
        records.append(record)
    return records


def read_columns(data: Any, count: Any) -> tuple[Distribution, ...]:
    """`count` laws from the runs of their columns; each law is its weights over their sum. Raises CorruptFile."""
    columns = [listed(column, "A column") for column in listed(data, "columns")]
    if type(count) is not int or not 0 < count * len(columns) <= _CELLS:
        refuse("rows", f"a number of rows with at most {_CELLS} weights in all")
    table: list[list[int]] = []
    for column in columns:
        weights: list[int] = []
        for run, weight in zip(column[::2], column[1::2], strict=False):
            if type(run) is not int or not 0 < run <= count - len(weights):
                refuse("A run", "a number of rows that are left")
            weights += [whole(weight, "A weight")] * run
        if len(weights) != count or len(column) % 2:
            refuse("A column", f"runs and weights for {count} rows")
        table.append(weights)
    rows = [[*row] for row in zip(*table, strict=True)]
    if not all(map(any, rows)):
        refuse("Every row", "a law: not all zero")
    return tuple(map(Distribution.from_integers, rows))


def refuse(what: str, constraint: str) -> NoReturn:
    """Raise CorruptFile: what must be constraint."""
    raise CorruptFile(f"{what} must be {constraint}.")
