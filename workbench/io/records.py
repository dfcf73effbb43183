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

from workbench.data.plain import MAX_FILE_INTEGER
from workbench.errors import CorruptFile
from workbench.exact.arrays import Vector
from workbench.exact.distribution import Distribution
from workbench.exact.numbers import Rationals
from workbench.exact.objects import Record, Values
from workbench.io.files import format_fraction, parse_hex_integer, parse_ratio

FORMULA_FORMAT = "dp-workbench formula"  # the format of a file of `workbench.formulas.certificate`
_CELLS = 4_000_000  # of a table that a short file may stand for
_LAW = ("total", "weights")


def take_entries(data: Any, record_name: str, names: set[str]) -> Record:
    """A record with exactly these entries. Raises CorruptFile."""
    if not isinstance(data, dict) or set(data) != names:
        raise CorruptFile(
            f"{record_name} must have exactly the entries {', '.join(sorted(names))}."
        )
    return data


def require_list(data: Any, entry_name: str) -> list[Any]:
    """A list. Raises CorruptFile."""
    if not isinstance(data, list):
        raise_corrupt_entry(entry_name, "a list")
    return data


def read_ratios(data: Any, what: str) -> Rationals:
    """A list of exact numbers in strings. Raises CorruptFile."""
    return tuple(parse_ratio(item, f"An entry of {what}") for item in require_list(data, what))


def write_float_array(values: Any) -> list[str]:
    """Doubles as strings that read back the same (`float_array`)."""
    return [repr(value) for value in values.tolist()]


def read_float_array(data: Any, what: str) -> Vector:
    """Finite doubles written by `floats`. Raises CorruptFile."""
    return np.array(
        [float(parse_ratio(item, f"An entry of {what}", 30)) for item in require_list(data, what)],
        dtype=np.float64,
    )


def read_short_text(data: Any, what: str) -> str:
    """A string of at most 100 characters. Raises CorruptFile."""
    if not isinstance(data, str) or len(data) > 100:
        raise_corrupt_entry(what, "a short string")
    return data


def write_law_record(law: Distribution) -> Record:
    """A law as `law` reads it."""
    return {"total": hex(law.total), "weights": [hex(k) for k in law.integers]}


def read_law_record(data: Any, what: str) -> Distribution:
    """Weights that add up to the total beside them. Raises CorruptFile."""
    entries = take_entries(data, what, {*_LAW})
    weights = [
        parse_hex_integer(k, "A weight") for k in require_list(entries["weights"], "weights")
    ]
    total = parse_hex_integer(entries["total"], "The total")
    if sum(weights) != total or not total:
        raise CorruptFile(f"{what}: the weights do not add up to the total.")
    read = Distribution(weights)
    if read.total != total:
        raise CorruptFile(f"{what}: the weights have a common factor.")
    return read


def write_law_columns(laws: Sequence[Distribution]) -> list[list[Any]]:
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


def read_law_columns(data: Any, count: Any) -> tuple[Distribution, ...]:
    """`count` laws from the runs of their columns; each law is its weights over their sum. Raises CorruptFile."""
    columns = [require_list(column, "A column") for column in require_list(data, "columns")]
    if type(count) is not int or not 0 < count * len(columns) <= _CELLS:
        raise_corrupt_entry("rows", f"a number of rows with at most {_CELLS} weights in all")
    table = []
    for column in columns:
        weights: list[int] = []
        for run, weight in zip(column[::2], column[1::2], strict=False):
            if type(run) is not int or not 0 < run <= count - len(weights):
                raise_corrupt_entry("A run", "a number of rows that are left")
            weights += [parse_hex_integer(weight, "A weight")] * run
        if len(weights) != count or len(column) % 2:
            raise_corrupt_entry("A column", f"runs and weights for {count} rows")
        table.append(weights)
    rows = [*zip(*table, strict=True)]
    if not all(map(any, rows)):
        raise_corrupt_entry("Every row", "a law: not all zero")
    return tuple(map(Distribution.from_integers, map(list, rows)))


def raise_corrupt_entry(what: str, constraint: str) -> NoReturn:
    """Raise CorruptFile: what must be constraint."""
    raise CorruptFile(f"{what} must be {constraint}.")


@dataclass(frozen=True)
class Entry:
    """How an entry of a record is written; read: (what stands there, its name) -> the value. Raises CorruptFile."""

    write: Callable[[Any], Any]
    read: Callable[[Any, str], Any]


def make_typed_entry(kind: Any, constraint: str) -> Entry:
    """An entry of one of JSON's own types; integers of less than 2^40."""

    def read(data: Any, what: str) -> Any:
        if type(data) is not kind or (kind is int and abs(data) > MAX_FILE_INTEGER):
            raise_corrupt_entry(what, constraint)
        return data

    return Entry(kind, read)


def make_list_entry(entry: Entry) -> Entry:
    """A list of them, as a tuple."""
    return Entry(
        lambda values: [*map(entry.write, values)],
        lambda data, what: tuple(
            entry.read(item, f"An entry of {what}") for item in require_list(data, what)
        ),
    )


def make_optional_entry(entry: Entry) -> Entry:
    """The same or null."""
    return Entry(
        lambda value: None if value is None else entry.write(value),
        lambda data, what: None if data is None else entry.read(data, what),
    )


def make_object_entry(read: Callable[[Any], Any]) -> Entry:
    """An object that has `to_dict`. read: of what that wrote."""
    return Entry(lambda value: value.to_dict(), lambda data, what: read(data))


UNCHANGED = Entry(lambda value: value, lambda data, what: data)
INTEGER, FLAG, OBJECT = (
    make_typed_entry(int, "an integer"),
    make_typed_entry(bool, "true or false"),
    make_typed_entry(dict, "an object"),
)
TEXT, RATIO, LAW = (
    Entry(str, read_short_text),
    Entry(format_fraction, parse_ratio),
    Entry(write_law_record, read_law_record),
)
DOUBLES = Entry(write_float_array, read_float_array)
INTEGERS, RATIOS, LAWS = make_list_entry(INTEGER), make_list_entry(RATIO), make_list_entry(LAW)


class RecordForm:
    """The entries of a record. what: it is called in messages; fixed: the entries that are always the same."""

    def __init__(
        self, what: str, fixed: Values = MappingProxyType({}), /, **entries: Entry
    ) -> None:
        self.record_name, self.constants, self.entries = what, fixed, entries

    def write(self, given: Any, **others: Any) -> Record:
        """JSON-ready, of the attributes of an object, but for others."""
        values = {
            name: others[name] if name in others else getattr(given, name) for name in self.entries
        }
        return {**self.constants} | {
            name: entry.write(values[name]) for name, entry in self.entries.items()
        }

    def read(self, data: Any) -> Record:
        """What `write` wrote, in the order of the entries. Raises CorruptFile."""
        fields = take_entries(data, self.record_name, {*self.constants, *self.entries})
        for name, value in self.constants.items():
            if type(fields[name]) is not type(value) or fields[name] != value:
                raise_corrupt_entry(f"The {name}", repr(value))
        return {name: entry.read(fields[name], name) for name, entry in self.entries.items()}

    def as_entry_of(self, build: Callable[..., Any]) -> Entry:
        """An entry that is such a record. build: entries, by name -> what it stands for."""
        return Entry(self.write, lambda data, what: build(**self.read(data)))

    def read_beside_law(self, data: Any) -> tuple[Record, Distribution]:
        """The same and the law whose entries stand among them. Raises CorruptFile."""
        fields = take_entries(data, self.record_name, {*self.constants, *self.entries, *_LAW})
        rest = {name: value for name, value in fields.items() if name not in _LAW}
        return self.read(rest), read_law_record(
            {name: fields[name] for name in _LAW}, self.record_name
        )
