"""Write objects as JSON records of a declared form, and read such records strictly.

    form = RecordForm("The quantizer", {"kind": "quantizer"}, knots=RATIOS, outputs=RATIOS)
    form.write(mechanism)              {"kind": "quantizer", "knots": ["0", "1/2"], "outputs": ..}
    form.read(data)                    {"knots": (Fraction(0), Fraction(1, 2)), "outputs": ..}

`write` takes the entries from the attributes of an object. `read` raises CorruptFile for a record
of another form.

A law is written with integer weights, which are its probabilities times their common denominator.
Example: {"total": "0x10", "weights": ["0x3", "0xd"]} is the law (3/16, 13/16).

Several laws are written by columns, one column for each outcome. A column is a run-length code
[count, weight, count, weight, ...]: `count` consecutive laws have this weight at the outcome.
Example: [[2, "0x3", 1, "0x8"], [2, "0xd", 1, "0x8"]] are the laws (3/16, 13/16), (3/16, 13/16) and
(1/2, 1/2).
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

FORMULA_FORMAT = "dp-workbench formula"  # Format of the files of `workbench.formulas.certificate`.
_MAX_CELLS = 4_000_000  # Columns are refused if their laws have more weights in all.
_LAW_ENTRIES = ("total", "weights")
_MAX_TEXT_CHARACTERS = 100  # A longer string in a record is refused.
_MAX_DOUBLE_CHARACTERS = 30  # A longer text of a double is refused. `repr` is at most 24 long.


def take_entries(data: Any, record_name: str, names: set[str]) -> Record:
    """Check that data are a record with exactly the given entries, and return it.

    Args:
        data: Data of a JSON file.
        record_name: Name of the record in errors.
        names: Names of the entries.

    Raises:
        CorruptFile: The data are no object, or have other entries.
    """
    if not isinstance(data, dict) or set(data) != names:
        raise CorruptFile(
            f"{record_name} must have exactly the entries {', '.join(sorted(names))}."
        )
    return data


def require_list(data: Any, entry_name: str) -> list[Any]:
    """Check that data are a list, and return it.

    Args:
        data: Data of a JSON file.
        entry_name: Name of the entry in errors.

    Raises:
        CorruptFile: The data are no list.
    """
    if not isinstance(data, list):
        raise_corrupt_entry(entry_name, "a list")
    return data


def read_ratios(data: Any, entry_name: str) -> Rationals:
    """Read a list of exact numbers in strings.

    Args:
        data: Data of a JSON file.
        entry_name: Name of the list in errors.

    Raises:
        CorruptFile: The data are no list of exact numbers.
    """
    items = require_list(data, entry_name)
    return tuple(parse_ratio(item, f"An entry of {entry_name}") for item in items)


def write_float_array(values: Any) -> list[str]:
    """Write doubles as strings, which `read_float_array` reads back exactly.

    Args:
        values: Array of doubles. Shape (n,).
    """
    return [repr(value) for value in values.tolist()]


def read_float_array(data: Any, entry_name: str) -> Vector:
    """Read finite doubles that `write_float_array` wrote. Shape (n,).

    Args:
        data: Data of a JSON file.
        entry_name: Name of the list in errors.

    Raises:
        CorruptFile: The data are no such list.
    """
    name = f"An entry of {entry_name}"
    items = require_list(data, entry_name)
    numbers = [float(parse_ratio(item, name, _MAX_DOUBLE_CHARACTERS)) for item in items]
    return np.array(numbers, dtype=np.float64)


def read_short_text(data: Any, entry_name: str) -> str:
    """Read a string of at most 100 characters.

    Args:
        data: Data of a JSON file.
        entry_name: Name of the entry in errors.

    Raises:
        CorruptFile: The data are no such string.
    """
    if not isinstance(data, str) or len(data) > _MAX_TEXT_CHARACTERS:
        raise_corrupt_entry(entry_name, "a short string")
    return data


def write_law_record(law: Distribution) -> Record:
    """Write a law as a record, which `read_law_record` reads."""
    return {"total": hex(law.total), "weights": [hex(weight) for weight in law.integers]}


def read_law_record(data: Any, entry_name: str) -> Distribution:
    """Read a law from its weights and their total.

    Args:
        data: Data of a JSON file.
        entry_name: Name of the entry in errors.

    Raises:
        CorruptFile: The data are no law, or the weights do not add up to the total.
    """
    entries = take_entries(data, entry_name, {*_LAW_ENTRIES})
    items = require_list(entries["weights"], "weights")
    weights = [parse_hex_integer(item, "A weight") for item in items]
    total = parse_hex_integer(entries["total"], "The total")
    if sum(weights) != total or not total:
        raise CorruptFile(f"{entry_name}: the weights do not add up to the total.")
    law = Distribution(weights)
    if law.total != total:
        raise CorruptFile(f"{entry_name}: the weights have a common factor.")
    return law


def write_law_columns(laws: Sequence[Distribution]) -> list[list[Any]]:
    """Write laws by columns, as the module header explains. `read_law_columns` reads them.

    The weights of all laws refer to one total, the least common multiple of the totals.

    Args:
        laws: Laws on the same outcomes.
    """
    common_total = math.lcm(*{law.total for law in laws})
    rows = []
    for law in laws:
        factor = common_total // law.total
        rows.append(law.integers if factor == 1 else [factor * weight for weight in law.integers])
    columns = []
    for column in zip(*rows, strict=True):
        entries: list[Any] = []
        for weight, run in groupby(column):
            entries += [len([*run]), hex(weight)]
        columns.append(entries)
    return columns


def read_law_columns(data: Any, count: Any) -> tuple[Distribution, ...]:
    """Read laws by columns. The probabilities of a law are its weights divided by their sum.

    Args:
        data: Data of a JSON file.
        count: Number of laws, as the file states it.

    Raises:
        CorruptFile: The data have another form than the module header says, or too many weights.
    """
    columns = [require_list(column, "A column") for column in require_list(data, "columns")]
    if type(count) is not int or not 0 < count * len(columns) <= _MAX_CELLS:
        raise_corrupt_entry("rows", f"a number of rows with at most {_MAX_CELLS} weights in all")
    weight_columns = []
    for column in columns:
        weights: list[int] = []
        for run, weight in zip(column[::2], column[1::2], strict=False):
            if type(run) is not int or not 0 < run <= count - len(weights):
                raise_corrupt_entry(
                    "A run", "a positive count, at most the number of remaining rows"
                )
            weights += [parse_hex_integer(weight, "A weight")] * run
        if len(weights) != count or len(column) % 2:
            raise_corrupt_entry("A column", f"runs and weights for {count} rows")
        weight_columns.append(weights)
    rows = [*zip(*weight_columns, strict=True)]
    if not all(map(any, rows)):
        raise_corrupt_entry("Every row", "a law: not all zero")
    return tuple(map(Distribution.from_integers, map(list, rows)))


def raise_corrupt_entry(entry_name: str, constraint: str) -> NoReturn:
    """Raise CorruptFile for an entry that violates a constraint.

    Args:
        entry_name: Name of the entry, the subject of the sentence.
        constraint: What the entry must be.
    """
    raise CorruptFile(f"{entry_name} must be {constraint}.")


@dataclass(frozen=True)
class Entry:
    """How an entry of a record is written and read.

    Attributes:
        write: Maps the value to data for JSON.
        read: Maps (data of the file, name of the entry) to the value. Raises CorruptFile.
    """

    write: Callable[[Any], Any]
    read: Callable[[Any, str], Any]


def make_typed_entry(kind: Any, constraint: str) -> Entry:
    """Make an entry of one of JSON's types. Integers must be smaller than 2^40.

    Args:
        kind: A Python type: int, bool, dict or another one of JSON.
        constraint: What the entry must be, in errors, such as "an integer".
    """

    def read(data: Any, entry_name: str) -> Any:
        """Return the JSON value, or raise CorruptFile for another type or an integer too large."""
        is_too_large = type(data) is int and kind is int and abs(data) > MAX_FILE_INTEGER
        if type(data) is not kind or is_too_large:
            raise_corrupt_entry(entry_name, constraint)
        return data

    return Entry(write=kind, read=read)  # The type converts a value to data for JSON.


def make_list_entry(entry: Entry) -> Entry:
    """Make an entry that is a list of other entries, read as a tuple.

    Args:
        entry: Form of the items.
    """

    def read(data: Any, entry_name: str) -> Any:
        """Read a JSON list, whose items `entry` reads."""
        items = require_list(data, entry_name)
        return tuple(entry.read(item, f"An entry of {entry_name}") for item in items)

    return Entry(lambda values: [*map(entry.write, values)], read)


def make_optional_entry(entry: Entry) -> Entry:
    """Make an entry that may also be null.

    Args:
        entry: Form of the entry if it is not null.
    """
    return Entry(
        write=lambda value: None if value is None else entry.write(value),
        read=lambda data, entry_name: None if data is None else entry.read(data, entry_name),
    )


def make_object_entry(read: Callable[[Any], Any]) -> Entry:
    """Make an entry for an object with a method `to_dict`.

    Args:
        read: Builds the object from the data that `to_dict` returned.
    """
    return Entry(write=lambda value: value.to_dict(), read=lambda data, entry_name: read(data))


UNCHANGED = Entry(write=lambda value: value, read=lambda data, entry_name: data)
INTEGER = make_typed_entry(int, "an integer")
FLAG = make_typed_entry(bool, "true or false")
OBJECT = make_typed_entry(dict, "an object")
TEXT = Entry(str, read_short_text)
RATIO = Entry(format_fraction, parse_ratio)
LAW = Entry(write_law_record, read_law_record)
DOUBLES = Entry(write_float_array, read_float_array)
INTEGERS = make_list_entry(INTEGER)
RATIOS = make_list_entry(RATIO)
LAWS = make_list_entry(LAW)


class RecordForm:
    """The form of a record: the names and kinds of its entries.

    Args:
        record_name: Name of the record in errors.
        constants: Entries that always have the same value.
        **entries: Form of each other entry.
    """

    def __init__(
        self, record_name: str, constants: Values = MappingProxyType({}), /, **entries: Entry
    ) -> None:
        self.record_name = record_name
        self.constants = constants
        self.entries = entries

    def write(self, source: Any, **given_entries: Any) -> Record:
        """Write a record as data for JSON.

        Args:
            source: Object whose attributes are the entries.
            **given_entries: Entries that are not taken from the object.
        """
        record = {**self.constants}
        for name, entry in self.entries.items():
            value = given_entries[name] if name in given_entries else getattr(source, name)
            record[name] = entry.write(value)
        return record

    def read(self, data: Any) -> Record:
        """Read the entries that `write` wrote, without the constants.

        Args:
            data: Data of a JSON file.

        Raises:
            CorruptFile: The data have another form.
        """
        fields = take_entries(data, self.record_name, {*self.constants, *self.entries})
        for name, value in self.constants.items():
            if type(fields[name]) is not type(value) or fields[name] != value:
                raise_corrupt_entry(f"The {name}", repr(value))
        return {name: entry.read(fields[name], name) for name, entry in self.entries.items()}

    def as_entry_of(self, build: Callable[..., Any]) -> Entry:
        """Return the form as an entry of another record.

        Args:
            build: Builds the value from the entries by name.
        """
        return Entry(self.write, read=lambda data, entry_name: build(**self.read(data)))

    def read_beside_law(self, data: Any) -> tuple[Record, Distribution]:
        """Read a record that also contains the entries of a law, `total` and `weights`.

        Args:
            data: Data of a JSON file.

        Returns:
            The other entries, and the law.

        Raises:
            CorruptFile: The data have another form.
        """
        names = {*self.constants, *self.entries, *_LAW_ENTRIES}
        fields = take_entries(data, self.record_name, names)
        other_fields = {name: value for name, value in fields.items() if name not in _LAW_ENTRIES}
        law_fields = {name: fields[name] for name in _LAW_ENTRIES}
        return self.read(other_fields), read_law_record(law_fields, self.record_name)
