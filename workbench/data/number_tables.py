"""Read tables of numbers from other programs: masses, a channel, or noise values and masses.

Cells are separated by semicolons, commas, tabs or blanks. A first line of names is a header. If the
first column names the inputs, the header names the outputs:

    input,0,1
    a,0.75,0.25        rows [[3/4, 1/4], [1/4, 3/4]], inputs ("a", "b"), outputs (0, 1)
    b,0.25,0.75

A number is exactly the decimal or ratio that its text shows: 0.1 is 1/10. No row and no cell is
skipped, because it could contain the worst outcome of a mechanism.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from workbench.data.points import Point, read_point
from workbench.data.tables import is_name
from workbench.errors import CorruptFile
from workbench.exact.numbers import ZERO, parse_rational

TableLabels = tuple[tuple[Point, ...], tuple[Point, ...]]  # Inputs and outputs.
NumberedLine = tuple[int, str]  # Number of a line in its file, and its text.
NumberedRow = tuple[int, list[str]]  # Number of a line in its file, and its cells.

MAX_SUM_ERROR = Fraction(1, 10**6)  # Probabilities whose sum differs from 1 by more are refused.
# A larger decimal, such as 1e999, is refused. Integers that are written in digits have no limit.
_MAX_DECIMAL = Fraction(sys.float_info.max)
_MAX_CELL_CHARACTERS = 400  # A cell with more characters is no number.


@dataclass(frozen=True)
class NumberTable:
    """The numbers of a table.

    Attributes:
        rows: Exact numbers of each row, without the names of inputs.
        heads: Names of the columns. Empty without a header.
        labels: Inputs of the rows and outputs of the columns. None if the first column contains
            numbers.
    """

    rows: list[list[Fraction]]
    heads: list[str]
    labels: TableLabels | None


def list_lines(text: str) -> list[NumberedLine]:
    """List the lines of a text that are neither blank nor a comment (#).

    Args:
        text: Contents of a file.
    """
    lines = enumerate(text.splitlines(), 1)
    return [(k, line) for k, line in lines if line.strip() and not line.lstrip().startswith("#")]


def read_number_table(lines: Sequence[NumberedLine]) -> NumberTable:
    """Read the numbers of a table.

    Args:
        lines: Lines that `list_lines` returned.

    Raises:
        CorruptFile: A cell is no number, or the table has none. The error names the line.
    """
    table: list[NumberedRow] = []
    for number, line in lines:
        separator = next((mark for mark in ";,\t" if mark in line), None)
        table.append((number, split_cells(number, line, separator)))
    heads: list[str] = []
    if table and all(map(is_name, table[0][1])):
        heads = table.pop(0)[1]
    table, labels = _take_labels(heads, table)
    rows = []
    for number, cells in table:
        try:
            rows.append([read_number(cell) for cell in cells])
        except CorruptFile as error:
            raise CorruptFile(f"Line {number}: {error}") from None
    if not rows:
        raise CorruptFile("The file holds no numbers.")
    return NumberTable(rows, heads, labels)


def split_cells(number: int, line: str, separator: str | None) -> list[str]:
    """Split a line into its cells, which may be quoted.

    Args:
        number: Number of the line, in errors.
        line: Text of the line.
        separator: One character. None for blanks.

    Raises:
        CorruptFile: A quote is not closed.
    """
    if separator is None:
        return line.split()
    try:
        cells = next(csv.reader([line], delimiter=separator, strict=True))
    except csv.Error as error:
        raise CorruptFile(f"Line {number}: {error}.") from None
    return [cell.strip() for cell in cells]


def read_number(cell: Any) -> Fraction:
    """Read the number of a cell, or a number of JSON, exactly.

    Args:
        cell: A text, an integer or a Decimal.

    Raises:
        CorruptFile: The cell is no finite number.
    """
    is_short_text = isinstance(cell, str) and len(cell) <= _MAX_CELL_CHARACTERS
    value = None
    if is_short_text or isinstance(cell, (int, Decimal)):
        value = parse_rational(cell)
    if value is None or (abs(value) > _MAX_DECIMAL and not str(cell).lstrip("+-").isdigit()):
        raise CorruptFile(f"{str(cell)[:40]!r} is not a finite number.")
    return value


def are_noise_pairs(rows: Sequence[Sequence[Fraction]], heads: Sequence[str] = ()) -> bool:
    """Return whether rows are noise values with their probabilities, not laws on two outputs.

    Rows of two numbers are read as noise if the heads say so ("noise", "probability"), if a first
    number is negative, or if the second numbers add up to 1 and some row does not.

    Args:
        rows: Numbers of each row.
        heads: Names of the columns. Empty without a header.
    """
    if not rows or any(len(row) != 2 for row in rows):
        return False
    if len(heads) == 2:
        first, second = (head.lower() for head in heads)
        if first.startswith(("noise", "value")) and "prob" in second:
            return True
    values, masses = zip(*rows, strict=True)
    are_masses = all(0 <= mass <= 1 for mass in masses)
    if len(rows) > 1 and are_masses and any(value < 0 for value in values):
        return True  # No law has a negative probability.
    return len(rows) > 1 and _is_total(masses) and not all(map(_is_total, rows))


def _take_labels(
    heads: list[str],
    table: list[NumberedRow],
) -> tuple[list[NumberedRow], TableLabels | None]:
    """Remove the names of the inputs, and the line that names the outputs, from a table.

    The first column contains names if the first line begins with a name, all rows add up to 1
    without their first cells, and some row does not add up to 1 with its first cell. If the line
    of the outputs could itself be a law, it is an error, because the audit would skip this law.

    Returns:
        The rows without names, and the inputs and outputs. Without names, the whole table and None.
    """
    number, first_row = 0, heads
    if not heads and table:
        number, first_row = table[0]
    width = len(first_row)
    body = table
    if not heads:
        body = table[1:]
    is_even = all(len(cells) == width for _, cells in body)
    if width < 3 or not body or not is_name(first_row[0]) or not is_even:
        return table, None
    laws = [[parse_rational(cell) for cell in cells] for _, cells in body]
    if not all(_is_total(law[1:]) for law in laws) or all(map(_is_total, laws)):
        return table, None
    if any(law[0] is None for law in laws) and _is_total(
        [parse_rational(cell) for cell in first_row[1:]]
    ):
        raise CorruptFile(
            f"Line {number} could be the law of the input {first_row[0][:40]!r} or the heads of "
            "the columns. Add a line of names above the laws."
        )
    inputs = tuple(read_point(cells[0], "an input") for _, cells in body)
    outputs = tuple(read_point(cell, "an output") for cell in first_row[1:])
    for name, labels in (("input", inputs), ("output", outputs)):
        if len({*labels}) < len(labels):
            raise CorruptFile(f"Every {name} must have a different label. Got one twice.")
    return [(line_number, cells[1:]) for line_number, cells in body], (inputs, outputs)


def _is_total(values: Sequence[Fraction | None]) -> bool:
    """Return whether all values are numbers, and add up to 1."""
    numbers = [value for value in values if value is not None]
    return len(numbers) == len(values) and abs(sum(numbers, ZERO) - 1) <= MAX_SUM_ERROR
