"""Define the statistics that are published, and compute their true values exactly.

The rows of a table are treated in this order:

    1. Rows that do not satisfy a condition do not count.
    2. A missing value is an error, or its row does not count (`drop_missing`).
    3. A value that is not listed counts as "other", is an error, or its row does not count
       (`drop_unlisted`).
    4. Values are clipped to [lo, hi].
    5. Of each person, the K = `person.rows` rows with the least clipped values count. With
       `one_row_per_bin`, one row in each of the first K bins counts.

The values of the rows that count are summed in rationals. Steps 1 to 4 look at one row alone, and
step 5 looks at the rows of one person alone. So one person moves the result by at most the
sensitivity (`workbench.publishing.sensitivity`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from workbench.data.private_table import PrivateColumn, PrivateTable, is_missing_cell
from workbench.data.table_cells import UNLISTED, CellList, Condition
from workbench.errors import InvalidRequest, must
from workbench.exact.numbers import ZERO
from workbench.io.files import format_fraction
from workbench.privacy.column_release import normalise_person_name
from workbench.publishing.pair_of_sums import ValueGrid
from workbench.publishing.sensitivity import PersonRows
from workbench.questions.joint_query import REPLACE

_FIRST_INEXACT_FLOAT = 2.0**53  # From this float on, several integers are one float.
_FIRST_INEXACT_FLOAT32 = 2.0**24  # The same for floats of 32 bits.
COUNT = "count"
SUM = "sum"
MEAN = "mean"
HISTOGRAM = "histogram"


@dataclass(frozen=True)
class CellColumn:
    """A column whose listed values are the cells or groups of a statistic.

    Attributes:
        column: Name or number of the column.
        cells: Its listed values or bins.
    """

    column: str
    cells: CellList


@dataclass(frozen=True)
class Statistic:
    """A statistic of a table.

    Attributes:
        kind: "count", "sum", "mean" or "histogram".
        person: The rows of one person that count, and the relation of neighbours.
        person_column: Name of the column that says whose row it is. None: every row is a person.
        conditions: Conditions that rows must satisfy.
        column: Column of a sum or mean. None: the only column of the table.
        low: lo, the lower end of the values of a sum or mean.
        high: hi > lo, the upper end of the values.
        cell_columns: Columns of a histogram, or of the groups of a sum or mean.
        public_rows: n, the public number of rows of the table. None: it is private.
        one_row_per_bin: Whether a person has at most one row in each of K bins.
        drop_unlisted: Whether rows with a value that is not listed do not count.
    """

    kind: str
    person: PersonRows
    person_column: str | None = None
    conditions: tuple[Condition, ...] = ()
    column: str | None = None
    low: Fraction = ZERO
    high: Fraction = ZERO
    cell_columns: tuple[CellColumn, ...] = ()
    public_rows: int | None = None
    one_row_per_bin: bool = False
    drop_unlisted: bool = False

    def __post_init__(self) -> None:
        is_fixed_mean = self.kind == MEAN and self.public_rows is not None
        if self.public_rows is not None and self.person.neighbours != REPLACE:
            rule = "left out if persons are added or removed, as it is then private"
            must("rows", rule, f"{self.public_rows} with neighbours {self.person.neighbours}")
        if self.public_rows is not None and self.kind in (SUM, HISTOGRAM):
            must("rows", f"left out for a {self.kind}", self.public_rows)
        if is_fixed_mean and not self.person.fixes_count and not self.cell_columns:
            raise InvalidRequest(
                f"rows must be left out, as {self.person.describe_change()}. The mean is then "
                f"published with a private number of rows. Got {self.public_rows}."
            )
        if is_fixed_mean and self.cell_columns:
            must("rows", "left out for a mean of groups", self.public_rows)
        is_grouped = self.kind in (SUM, MEAN) and bool(self.cell_columns)
        if is_grouped and (self.person.rows > 1 or self.person.neighbours == REPLACE):
            raise InvalidRequest(
                "by must be used with one row of a person and neighbours add-remove. Publish one "
                "statistic with --where for each group instead, in a plan."
            )

    @property
    def is_public_mean(self) -> bool:
        """Return whether the statistic is a mean whose number of rows is public."""
        return self.kind == MEAN and self.public_rows is not None

    @property
    def is_pair(self) -> bool:
        """Return whether the statistic is published as a pair of sums."""
        return self.kind == MEAN and self.public_rows is None

    @property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """Return the labels of every cell or group. Empty for one number."""
        if not self.cell_columns:
            return ()
        labels: list[tuple[str, ...]] = [()]
        for part in self.cell_columns:
            labels = [(*label, text) for label in labels for text in part.cells.labels]
        return tuple(labels)

    def describe(self) -> str:
        """Describe the statistic in a line, such as "mean of age in 18..95 where smoker=yes"."""
        text = self.kind
        if self.kind in (SUM, MEAN):
            ends = f"{format_fraction(self.low)}..{format_fraction(self.high)}"
            text += f" of {self.column or 'the only column'} in {ends}"
        columns = " and ".join(part.column for part in self.cell_columns)
        if columns:
            word = "of" if self.kind == HISTOGRAM else "by"
            text += f" {word} {columns}"
        if self.conditions:
            text += f" where {' and '.join(map(str, self.conditions))}"
        return text


@dataclass(frozen=True)
class Answer:
    """The true value of a statistic. It is private.

    Attributes:
        values: The number of a count, a sum or a mean with public n, or the number of each cell.
        pairs: For a mean with private n, the pair of sums of each group.
        facts: Numbers for the owner of the data, by their names.
    """

    values: list[Fraction]
    pairs: list[tuple[int, int]] = field(default_factory=list)
    facts: dict[str, int] = field(default_factory=dict)


def compute_answer(statistic: Statistic, table: PrivateTable, grid: ValueGrid | None) -> Answer:
    """Compute the true value of a statistic.

    Args:
        statistic: The statistic.
        table: The private table.
        grid: The grid of the values of a mean with private n. None otherwise.

    Raises:
        InvalidRequest: The table does not have a column, or does not have the public number of
            rows.
        PrivateCellError: A cell that is used is wrong or missing.
    """
    counting = _RowCounting(statistic, table)
    rows = counting.select_rows()
    values = counting.values
    counting.check_public_rows(len(rows))
    rows_by_cell: list[list[int]] = [[] for _ in range(max(1, len(statistic.labels)))]
    for row in rows:
        rows_by_cell[counting.cell_of_row[row]].append(row)
    if grid is not None:
        pairs = [grid.sum_pair([values[row] for row in members]) for members in rows_by_cell]
        return Answer([], pairs, counting.facts)
    if statistic.kind in (SUM, MEAN):
        totals = [sum((values[row] for row in members), ZERO) for members in rows_by_cell]
    else:
        totals = [Fraction(len(members)) for members in rows_by_cell]
    if statistic.public_rows is not None and statistic.kind == MEAN:
        totals = [total / statistic.public_rows for total in totals]
    return Answer(totals, [], counting.facts)


class _RowCounting:
    """The rows of a table that count, with their values and cells.

    Args:
        statistic: The statistic.
        table: The private table.

    Attributes:
        facts: Private numbers of rows by name.
        values: Clipped value by row, for a sum or mean.
        cell_of_row: Position of the cell or group by row. It is 0 for one number.
    """

    def __init__(self, statistic: Statistic, table: PrivateTable) -> None:
        self._statistic = statistic
        self._table = table
        self.facts: dict[str, int] = {"rows": table.row_count}
        self.values: dict[int, Fraction] = {}
        self.cell_of_row: dict[int, int] = {}

    def check_public_rows(self, counted_rows: int) -> None:
        """Raise InvalidRequest if the public number of rows is wrong.

        Args:
            counted_rows: Number of rows that count.
        """
        public_rows = self._statistic.public_rows
        if public_rows is None:
            return
        rule = "the number of rows of the data"
        is_wrong = self._table.row_count != public_rows
        if self._statistic.is_public_mean:
            rule += ", all of which count"
            is_wrong = is_wrong or counted_rows != public_rows
        if is_wrong:
            must("rows", rule, public_rows)

    def select_rows(self) -> list[int]:
        """Return the rows that count, by the steps of the module header."""
        statistic = self._statistic
        rows = [*range(self._table.row_count)]
        for condition in statistic.conditions:
            matches = condition.list_matches(self._table)
            rows = [row for row in rows if matches[row]]
        self.facts["rows that satisfy the conditions"] = len(rows)
        if statistic.kind in (SUM, MEAN):
            rows = self._read_values(rows)
        rows = self._locate_cells(rows)
        if statistic.person_column is not None:
            rows = self._cap_rows(rows)
        self.facts["rows that count"] = len(rows)
        return rows

    def _drop_missing(self, rows: list[int], cells: list[Any], column: PrivateColumn) -> list[int]:
        """Return the rows without a missing cell, or refuse them. Raises PrivateCellError."""
        missing_rows = [row for row in rows if cells[row] is None]
        if missing_rows and not self._statistic.person.drops_missing:
            column.refuse_cell(
                missing_rows[0], "given (--drop-missing leaves out rows with a missing value)"
            )
        self.facts[f"rows dropped as {column.name} is missing"] = len(missing_rows)
        return [row for row in rows if cells[row] is not None]

    def _read_values(self, rows: list[int]) -> list[int]:
        """Read the values of a sum or mean, clipped. Return the rows that still count."""
        statistic = self._statistic
        column = self._table.select_column(statistic.column, "column")
        numbers = _list_numbers_of_rows(column, rows)
        rows = self._drop_missing(rows, numbers, column)
        clipped_count = 0
        for row in rows:
            number = numbers[row]
            assert number is not None
            clipped = min(max(number, statistic.low), statistic.high)
            if clipped != number:
                clipped_count += 1
            self.values[row] = clipped
        self.facts[f"values clipped to {statistic.low}..{statistic.high}"] = clipped_count
        return rows

    def _locate_cells(self, rows: list[int]) -> list[int]:
        """Locate the cell of every row. Return the rows that still count."""
        statistic = self._statistic
        positions = dict.fromkeys(rows, 0)
        for part in statistic.cell_columns:
            option = "column" if statistic.kind == HISTOGRAM else "by"
            column = self._table.select_column(part.column, option)
            located = part.cells.locate_rows(_blank_other_rows(column, rows))
            rows = self._drop_missing(rows, located, column)
            unlisted_rows = [row for row in rows if located[row] == UNLISTED]
            if unlisted_rows and not statistic.drop_unlisted:
                noun = "inside the bins" if part.cells.edges else "one of the listed values"
                column.refuse_cell(
                    unlisted_rows[0],
                    f"{noun} (list the value other to count the others there, or leave them out "
                    "with --drop-unlisted)",
                )
            self.facts[f"rows dropped as {column.name} is not listed"] = len(unlisted_rows)
            rows = [row for row in rows if located[row] != UNLISTED]
            for row in rows:
                position = located[row]
                assert position is not None
                # The cells of several columns are numbered in the order of `Statistic.labels`: the
                # cell of the last column varies fastest.
                positions[row] = positions[row] * len(part.cells.labels) + position
        self.cell_of_row = positions
        return rows

    def _cap_rows(self, rows: list[int]) -> list[int]:
        """Return the rows of each person that count, at most K."""
        statistic = self._statistic
        column = self._table.select_column(statistic.person_column, "person")
        rows_by_person: dict[Hashable, list[int]] = defaultdict(list)
        names = [_name_person(cell) for cell in _blank_other_rows(column, rows).cells]
        for row in rows:
            if not names[row]:
                rule = "given (NA and null are missing), as it says whose row it is"
                column.refuse_cell(row, rule)
            if _has_lost_digits(column.cells[row]):
                rule = "an integer or a text, as a float of this size has lost digits of the ID"
                column.refuse_cell(row, rule)
            rows_by_person[names[row]].append(row)
        kept_rows: list[int] = []
        largest_count = 0
        for person_rows in rows_by_person.values():
            largest_count = max(largest_count, len(person_rows))
            person_rows.sort(key=self._rank_row)
            if statistic.one_row_per_bin:
                # Of several rows in a cell the first one remains, because it is written last.
                by_cell = {self.cell_of_row[row]: row for row in reversed(person_rows)}
                person_rows = [by_cell[cell] for cell in sorted(by_cell)]
            kept_rows += person_rows[: statistic.person.rows]
        self.facts["persons"] = len(rows_by_person)
        self.facts["largest number of rows of a person"] = largest_count
        self.facts["rows dropped beyond the rows of a person"] = len(rows) - len(kept_rows)
        return sorted(kept_rows)

    @property
    def _rank_row(self) -> Callable[[int], tuple[Fraction, int]]:
        """Return the order in which the rows of a person count: the least value or cell first."""
        return lambda row: (self.values.get(row, ZERO), self.cell_of_row[row])


def _name_person(cell: Any) -> str:
    """Return the name of a person in one spelling, "" for a missing one."""
    name = normalise_person_name(str(cell))
    # Invisible characters in NA make no person of it.
    if is_missing_cell(cell) or is_missing_cell(name):
        return ""
    return name


def _has_lost_digits(cell: Any) -> bool:
    """Return whether a cell is a float of a size at which different integers are one float.

    pandas turns all integers of a column into floats if one row has no value. One person would then
    change which other rows belong together.
    """
    if isinstance(cell, np.float32):
        return bool(abs(cell) >= _FIRST_INEXACT_FLOAT32)
    return isinstance(cell, float) and abs(cell) >= _FIRST_INEXACT_FLOAT


def _blank_other_rows(column: PrivateColumn, rows: list[int]) -> PrivateColumn:
    """Return a column in which all other rows are blank, so that they cause no error."""
    row_set = set(rows)
    cells = [cell if row in row_set else None for row, cell in enumerate(column.cells)]
    return PrivateColumn(column.name, cells, column.places)


def _list_numbers_of_rows(column: PrivateColumn, rows: list[int]) -> list[Fraction | None]:
    """List the numbers of some rows. Raises PrivateCellError."""
    return _blank_other_rows(column, rows).list_numbers()
