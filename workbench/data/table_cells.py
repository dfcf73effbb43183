"""Read which rows of a table a statistic counts: conditions, listed values and bins.

    condition   "smoker=yes", "age>=65": COLUMN, a relation (= != < <= > >=) and a value. A text
                that could be read in two ways is quoted: group="<5"
    values      "north,south,coast,other": the categories of a histogram
    bins        "0..100:10": bins of width 10; or the edges "0,18,65,120". A bin contains its lower
                edge, and the last bin also its upper edge

If "other" is listed, values that are not listed are counted there. All of this is given by the user
and never read from the data.
"""

from __future__ import annotations

import csv
import re
from bisect import bisect_right
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from shlex import quote
from typing import Any

from workbench.data.intervals import read_range
from workbench.data.plain import read_list
from workbench.data.private_table import (
    PrivateColumn,
    PrivateTable,
    is_missing_object,
    make_category_key,
)
from workbench.errors import must
from workbench.exact.numbers import read_number, read_positive
from workbench.io.files import format_fraction

OTHER = "other"  # Values that are not listed are counted in this cell, if it is listed.
UNLISTED = -1  # Position of a value that belongs to no cell.
MAX_CELLS = 100_000  # More values or bins are refused.
_CONDITION = re.compile(
    r"\s*(?P<column>[^=<>!]+?)\s*(?P<relation>!=|<=|>=|==|=|<|>)\s*(?P<value>.*?)\s*", re.DOTALL
)
_CONDITION_RULE = (
    "COLUMN=VALUE, or with !=, <, <=, > or >=, such as smoker=yes or 'age>=18' (a shell needs the "
    "quotes around < and >)"
)
_QUOTED_TEXT = re.compile(r'"((?:[^"]|"")*)"')
# A value that looks like a second condition, a list, another quote, or a range of numbers.
_UNCLEAR_TEXT = re.compile(r"""^!|^"|^'.*'$|[=<>,]|^[-+.\d]+\s*\.\.\s*[-+.\d]+$""", re.DOTALL)
_REVERSED_RELATION = re.compile(r"(?P<sign>[<>!])\s*(?P<value>[^=<>!,'\"]+)")
_TWO_ENDS = re.compile(r"(?P<low>[-+.\d]*\d)\s*\.\.\s*(?P<high>[-+.\d]*\d)")
_NUMBER_RANGE = re.compile(r"\s*[-+.\d]+\s*\.\.\s*[-+.\d]+.*")
_COMPARISONS: dict[str, Callable[[Fraction, Fraction], bool]] = {
    "<": lambda number, bound: number < bound,
    "<=": lambda number, bound: number <= bound,
    ">": lambda number, bound: number > bound,
    ">=": lambda number, bound: number >= bound,
}


@dataclass(frozen=True)
class Condition:
    """A condition that rows satisfy or not. A missing value satisfies no condition.

    Attributes:
        column: Name or number of the column.
        relation: One of = != < <= > >=.
        value: The value as text.
    """

    column: str
    relation: str
    value: str

    def list_matches(self, table: PrivateTable) -> list[bool]:
        """List whether each row satisfies the condition.

        Args:
            table: The table.

        Raises:
            InvalidRequest: The table does not have the column.
            PrivateCellError: An order is asked for, and a cell is no number.
        """
        column = table.select_column(self.column, "column of where")
        if self.relation in _COMPARISONS:
            holds = _COMPARISONS[self.relation]
            bound = read_number(self.value, "where")
            return [number is not None and holds(number, bound) for number in column.list_numbers()]
        wanted_key = make_category_key(self.value)
        is_equal = self.relation == "="
        keys = column.list_categories({wanted_key})
        return [key is not None and (key == wanted_key) is is_equal for key in keys]

    def __str__(self) -> str:
        value = self.value
        if _UNCLEAR_TEXT.search(value):
            quoted = value.replace('"', '""')
            value = f'"{quoted}"'
        return f"{self.column}{self.relation}{value}"


def read_conditions(value: Any) -> tuple[Condition, ...]:
    """Read conditions, all of which a row must satisfy.

    Args:
        value: A text, a list of texts, or None for no condition.

    Raises:
        InvalidRequest: A text is no condition.
    """
    if value is None:
        return ()
    texts = [value]
    if not isinstance(value, str):
        texts = read_list(value, "where", "a list of conditions")
    conditions = []
    for text in texts:
        match = _CONDITION.fullmatch(text) if isinstance(text, str) else None
        if match is None or not match["value"]:
            must("where", _CONDITION_RULE, repr(text))
        relation = match["relation"].replace("==", "=")
        value = match["value"]
        if relation in _COMPARISONS:
            rule = f"a number, as {relation} compares numbers alone"
            read_number(value, "value of where", rule)
        else:
            value = _read_condition_text(match["column"], relation, value)
        conditions.append(Condition(match["column"], relation, value))
    return tuple(conditions)


def _read_condition_text(column: str, relation: str, value: str) -> str:
    """Return the text that a cell is compared with, without quotes.

    Cells rarely equal a text such as "yes and age>18". The count would be a number near 0, and it
    would answer another question. Raises InvalidRequest, with the texts that the user may mean.

    Args:
        column: Name of the column.
        relation: One of = and !=.
        value: The text behind the relation.
    """
    quoted = _QUOTED_TEXT.fullmatch(value)
    if quoted is not None and quoted[1].strip():
        return quoted[1].replace('""', '"')
    if quoted is None and not _UNCLEAR_TEXT.search(value):
        return value
    got = repr(f"{column}{relation}{value}")
    if quoted is not None:
        must("where", _CONDITION_RULE, got)
    escaped = value.replace('"', '""')
    # The shell removes one pair of quotes.
    literal = quote(f'{column}{relation}"{escaped}"')
    reversed_relation = _REVERSED_RELATION.fullmatch(value)
    ends = _TWO_ENDS.fullmatch(value)
    if reversed_relation is not None and relation == "=":
        right_order = f"{column}{reversed_relation['sign']}={reversed_relation['value']}"
        rule = f"written as {quote(right_order)}"
    elif ends is not None and relation == "=":
        low = quote(f"{column}>={ends['low']}")
        high = quote(f"{column}<={ends['high']}")
        rule = f"two conditions, {low} and {high}, each with its own where"
    elif value.startswith("'") and not re.search("[<>=,]", value):
        rule = f"written without quotes inside, as {quote(column + relation + value[1:-1])}"
    else:
        rule = "one condition, such as smoker=yes. Give where once for each condition"
    return must("where", f"{rule}. For rows that have the text {value}, write {literal}", got)


def split_list(text: str, name: str, rule: str) -> list[str]:
    """Split a text at its commas. An entry with a comma stands in double quotes.

    Args:
        text: The text.
        name: Name of the option in errors.
        rule: What the text must be, in errors.

    Raises:
        InvalidRequest: A quote is not closed, or text follows it.
    """
    rows: list[list[str]] = []
    try:
        rows = [*csv.reader([text], skipinitialspace=True, strict=True)]
    except csv.Error:
        must(name, rule, repr(text))
    if len(rows) != 1:
        must(name, rule, repr(text))
    return rows[0]


@dataclass(frozen=True)
class CellList:
    """The cells of one column of a histogram: categories or bins.

    Attributes:
        labels: Name of each cell.
        keys: Key of each category. Empty for bins.
        edges: Edges of the bins. Empty for categories.
        other: Position of the cell for values that are not listed. None if there is none.
    """

    labels: tuple[str, ...]
    keys: tuple[Hashable, ...] = ()
    edges: tuple[Fraction, ...] = ()
    other: int | None = None

    def locate_rows(self, column: PrivateColumn) -> list[int | None]:
        """Locate the cell of each row.

        Args:
            column: The column.

        Returns:
            The position of the cell, UNLISTED, or None for a missing value.

        Raises:
            PrivateCellError: A cell of the column is no number, and the histogram has bins.
        """
        unlisted = UNLISTED if self.other is None else self.other
        if self.edges:
            return [self._locate_number(number, unlisted) for number in column.list_numbers()]
        positions = {key: position for position, key in enumerate(self.keys)}
        keys = column.list_categories(positions)
        return [None if key is None else positions.get(key, unlisted) for key in keys]

    def _locate_number(self, number: Fraction | None, unlisted: int) -> int | None:
        """Return the position of the bin of a number."""
        if number is None:
            return None
        if not self.edges[0] <= number <= self.edges[-1]:
            return unlisted
        # The last edge itself belongs to the last bin.
        return min(bisect_right(self.edges, number), len(self.edges) - 1) - 1


def read_values(value: Any) -> CellList:
    """Read the categories of a histogram.

    Args:
        value: A text with commas, in which a value with a comma is quoted; or a list.

    Raises:
        InvalidRequest: There is no value, a value is blank, or two values are equal.
    """
    entries = value
    rule = "a list of values that are not blank, such as north,south,other"
    if isinstance(value, str):
        entries = split_list(value, "values", rule)
        if '"' not in value and any(map(_NUMBER_RANGE.fullmatch, entries)):
            literal = quote(",".join(f'"{entry}"' for entry in entries))
            rule = f"a list of values. Bins are ranges. For a text with two dots, write {literal}"
            must("values", rule, repr(value))
    else:
        entries = read_list(value, "values", "a list of values")
        for entry in entries:
            # A missing cell is in no cell of a histogram, and a list is never equal to a cell.
            if is_missing_object(entry) or isinstance(entry, (list, tuple, Mapping, Set)):
                must("values", "texts, numbers or dates (missing cells are not counted)", entry)
    labels = tuple(str(entry).strip() for entry in entries)
    if not labels or not all(labels):
        must("values", rule, value)
    keys = tuple(make_category_key(entry) for entry in entries)
    seen_keys: set[Hashable] = set()
    for key, label in zip(keys, labels, strict=True):
        if key in seen_keys:
            must("values", "all different (case and blanks do not count)", f"{label} twice")
        seen_keys.add(key)
    if len({*labels}) < len(labels):  # The fraction 1/2 and the text 1/2 look alike.
        must("values", "all different as texts", labels)
    _check_cell_count(len(labels), "values")
    other_position = None
    if OTHER in keys:
        other_position = keys.index(OTHER)
    return CellList(labels, keys=keys, other=other_position)


def read_bin_list(value: Any) -> CellList:
    """Read the bins of a histogram.

    Args:
        value: "LOW..HIGH:WIDTH", or a list of increasing edges as text or in a list. At the end of
            a text, ",other" adds a cell for numbers outside the bins.

    Raises:
        InvalidRequest: The width does not divide the range, or the edges do not increase.
    """
    rule = "LOW..HIGH:WIDTH such as 0..100:10, or increasing edges such as 0,18,65,120"
    text = value
    has_other = False
    if isinstance(value, str):
        parts = [part.strip() for part in value.split(",")]
        if len(parts) > 1 and parts[-1].casefold() == OTHER:
            has_other = True
            parts.pop()
        text = ",".join(parts)
    if isinstance(text, str) and ".." in text:
        range_text, _, width_text = text.partition(":")
        if not width_text:
            must("bins", rule, repr(value))
        low, high = read_range(range_text, "bins")
        width = read_positive(width_text, "width of bins")
        _check_cell_count((high - low) / width, "bins")
        if (high - low) % width:
            must("bins", f"of a width that divides {format_fraction(high - low)}", repr(value))
        count = int((high - low) / width)
        edges = tuple(low + k * width for k in range(count + 1))
    else:
        entries = text.split(",") if isinstance(text, str) else read_list(text, "bins", rule)
        edges = tuple(read_number(entry, "bins", rule) for entry in entries)
        if len(edges) < 2 or any(first >= second for first, second in pairwise(edges)):
            must("bins", rule, repr(value))
        _check_cell_count(len(edges) - 1, "bins")
    # Exact texts of different edges differ, so every bin has its own name.
    texts = [format_fraction(edge) for edge in edges]
    labels = [f"{low} to under {high}" for low, high in pairwise(texts)]
    labels[-1] = f"{texts[-2]} to {texts[-1]}"
    other_position = None
    if has_other:
        other_position = len(labels)
        labels.append(OTHER)
    return CellList(tuple(labels), edges=edges, other=other_position)


def _check_cell_count(count: int | Fraction, name: str) -> None:
    """Raise InvalidRequest if there are too many cells."""
    if count > MAX_CELLS:
        must(name, f"at most {MAX_CELLS} cells", int(count))


def read_names(value: Any, name: str = "column") -> tuple[str, ...]:
    """Read names of columns.

    Args:
        value: A text with commas, in which a name with a comma is quoted; or a list of texts.
        name: Name of the option in errors.

    Raises:
        InvalidRequest: There is no name, a name is blank, or a name is given twice.
    """
    rule = "names of different columns, such as region or region,year"
    entries: Sequence[Any]
    if isinstance(value, str):
        entries = split_list(value, name, rule)
    else:
        entries = read_list(value, name, "a list of names")
    names = tuple(str(entry).strip() for entry in entries)
    if not names or not all(names) or len({*names}) < len(names):
        must(name, rule, repr(value))
    return names
