"""Records in JSON, stated once and read strictly: exact entries, lists, exact numbers, laws of integer weights.

    form = RecordForm("The quantizer", {"kind": "quantizer"}, knots=RATIOS, outputs=RATIOS, ends=LAWS)
    form.write(mechanism)                     {"kind": "quantizer", "knots": [..], ..}, of its attributes
    form.read(data)                           {"knots": (..), ..}; CorruptFile for anything else

{"total": "0x10", "weights": ["0x3", "0xd"]}        a law: weights without a common factor, and their sum
[[2, "0x3", 1, "0xd"], ..]                          columns of laws: in every column runs of equal weights, downwards
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np

from workbench.data.plain import FARTHEST
from workbench.errors import CorruptFile
from workbench.exact.arrays import Vector
from workbench.exact.distribution import Distribution
from workbench.exact.numbers import Rationals
from workbench.exact.objects import Record, Values
from workbench.io.files import ratio, spelled, whole

FORMULA = "dp-workbench formula"  # the format of a file of `workbench.formulas.certificate`
_CELLS = 4_000_000  # of a table that a short file may stand for
_LAW = ("total", "weights")


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


def numbers(data: Any, what: str) -> Rationals:
    """A list of exact numbers in strings. Raises CorruptFile."""
    return tuple(ratio(item, f"An entry of {what}") for item in listed(data, what))


def floats(values: Any) -> list[str]:
    """Doubles as strings that read back the same (`float_array`)."""
    return [repr(value) for value in values.tolist()]


def float_array(data: Any, what: str) -> Vector:
    """Finite doubles written by `floats`. Raises CorruptFile."""
    return np.array(
        [float(ratio(item, f"An entry of {what}", 30)) for item in listed(data, what)],
        dtype=np.float64,
    )


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
    entries = take(data, what, {*_LAW})
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
    rows = [
        law.integers if law.total == common else [k * (common // law.total) for k in law.integers]
        for law in laws
    ]
    return [
        [entry for weight, run in groupby(column) for entry in (len([*run]), hex(weight))]
        for column in zip(*rows, strict=True)
    ]


def read_columns(data: Any, count: Any) -> tuple[Distribution, ...]:
    """`count` laws from the runs of their columns; each law is its weights over their sum. Raises CorruptFile."""
    columns = [listed(column, "A column") for column in listed(data, "columns")]
    if type(count) is not int or not 0 < count * len(columns) <= _CELLS:
        refuse("rows", f"a number of rows with at most {_CELLS} weights in all")
    table = []
    for column in columns:
        weights: list[int] = []
        for run, weight in zip(column[::2], column[1::2], strict=False):
            if type(run) is not int or not 0 < run <= count - len(weights):
                refuse("A run", "a number of rows that are left")
            weights += [whole(weight, "A weight")] * run
        if len(weights) != count or len(column) % 2:
            refuse("A column", f"runs and weights for {count} rows")
        table.append(weights)
    rows = [*zip(*table, strict=True)]
    if not all(map(any, rows)):
        refuse("Every row", "a law: not all zero")
    return tuple(map(Distribution.from_integers, map(list, rows)))


def refuse(what: str, constraint: str) -> NoReturn:
    """Raise CorruptFile: what must be constraint."""
    raise CorruptFile(f"{what} must be {constraint}.")


@dataclass(frozen=True)
class Entry:
    """How an entry of a record is written; read: (what stands there, its name) -> the value. Raises CorruptFile."""

    write: Callable[[Any], Any]
    read: Callable[[Any, str], Any]


def typed(kind: Any, constraint: str) -> Entry:
    """An entry of one of JSON's own types; integers of less than 2^40."""

    def read(data: Any, what: str) -> Any:
        if type(data) is not kind or (kind is int and abs(data) > FARTHEST):
            refuse(what, constraint)
        return data

    return Entry(kind, read)


def many(entry: Entry) -> Entry:
    """A list of them, as a tuple."""
    return Entry(
        lambda values: [*map(entry.write, values)],
        lambda data, what: tuple(
            entry.read(item, f"An entry of {what}") for item in listed(data, what)
        ),
    )


def optional(entry: Entry) -> Entry:
    """The same or null."""
    return Entry(
        lambda value: None if value is None else entry.write(value),
        lambda data, what: None if data is None else entry.read(data, what),
    )


def held(read: Callable[[Any], Any]) -> Entry:
    """An object that has `to_dict`. read: of what that wrote."""
    return Entry(lambda value: value.to_dict(), lambda data, what: read(data))


AS_IS = Entry(lambda value: value, lambda data, what: data)
WHOLE, FLAG, OBJECT = (
    typed(int, "an integer"),
    typed(bool, "true or false"),
    typed(dict, "an object"),
)
TEXT, RATIO, LAW = Entry(str, short_text), Entry(spelled, ratio), Entry(law_record, read_law)
DOUBLES = Entry(floats, float_array)
WHOLES, RATIOS, LAWS = many(WHOLE), many(RATIO), many(LAW)


class RecordForm:
    """The entries of a record. what: it is called in messages; fixed: the entries that are always the same."""

    def __init__(
        self, what: str, fixed: Values = MappingProxyType({}), /, **entries: Entry
    ) -> None:
        self.what, self.fixed, self.entries = what, fixed, entries

    def write(self, given: Any, **others: Any) -> Record:
        """JSON-ready, of the attributes of an object, but for others."""
        values = {
            name: others[name] if name in others else getattr(given, name) for name in self.entries
        }
        return {**self.fixed} | {
            name: entry.write(values[name]) for name, entry in self.entries.items()
        }

    def read(self, data: Any) -> Record:
        """What `write` wrote, in the order of the entries. Raises CorruptFile."""
        fields = take(data, self.what, {*self.fixed, *self.entries})
        for name, value in self.fixed.items():
            if type(fields[name]) is not type(value) or fields[name] != value:
                refuse(f"The {name}", repr(value))
        return {name: entry.read(fields[name], name) for name, entry in self.entries.items()}

    def of(self, build: Callable[..., Any]) -> Entry:
        """An entry that is such a record. build: entries, by name -> what it stands for."""
        return Entry(self.write, lambda data, what: build(**self.read(data)))

    def read_beside_law(self, data: Any) -> tuple[Record, Distribution]:
        """The same and the law whose entries stand among them. Raises CorruptFile."""
        fields = take(data, self.what, {*self.fixed, *self.entries, *_LAW})
        rest = {name: value for name, value in fields.items() if name not in _LAW}
        return self.read(rest), read_law({name: fields[name] for name in _LAW}, self.what)
