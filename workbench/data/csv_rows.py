"""Split the text of a CSV file into cells, with every character accounted for (RFC 4180).

    row     cell , cell , ... , cell          one line, ended by LF, CRLF, or CR throughout
    cell    "any text, "" for a quote"        or a text without quotes, commas and line breaks

A lenient reader takes a stray quote for the beginning of a cell that contains the rows below it.
These rows are then missing in a column that is read, and are copied unchanged with other columns.
This reader refuses any other form and names the line. A line break inside a cell is an error unless
it is explicitly accepted.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from workbench.errors import CorruptFile, must

# These are control characters such as a zero byte, characters that some readers take for the end of
# a line, and a second byte order mark.
_FORBIDDEN = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f\x85\u2028\u2029\ufeff]")
_QUOTED = re.compile('"[^"]*"')
_CELL = re.compile(r'(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\Z)')
SEPARATOR_NAMES = {";": "semicolons", "\t": "tabs", "|": "bars"}
_SHOWN_CHARACTERS = 40  # A message shows at most this many characters of a cell.


class CsvRows(NamedTuple):
    """The rows of a file.

    Attributes:
        cells: Cells of each row.
        lines: Number of the line in which each row begins.
    """

    cells: list[list[str]]
    lines: list[int]


def split_rows(text: str, file: str, *, multiline: bool = False) -> CsvRows:
    """Split the text of a CSV file into cells. Blank lines at its end are no rows.

    Args:
        text: The whole file, without a byte order mark.
        file: Name of the file in errors.
        multiline: Whether line breaks inside quoted cells are accepted.

    Raises:
        CorruptFile: A character belongs to no cell. The error names its line.
        InvalidRequest: Another character separates the cells.
    """
    newline = "\r"
    if "\n" in text:
        newline = "\n"
    forbidden = _FORBIDDEN.search(text)
    if forbidden:
        line = text.count(newline, 0, forbidden.start()) + 1
        raise CorruptFile(
            f"{file} is not a CSV file: line {line} holds the character {forbidden[0]!r}."
        )
    lines = text.split(newline)
    while lines and not lines[-1].strip():
        lines.pop()
    _refuse_separator(lines, file)
    rows = CsvRows([], [])
    next_line = 0
    while next_line < len(lines):
        first_line = next_line
        row = lines[next_line]
        next_line += 1
        # An odd number of quotes means that a quoted cell continues on the next line.
        while row.count('"') % 2 and multiline and next_line < len(lines):
            row += newline + lines[next_line]
            next_line += 1
        place = f"line {first_line + 1} of {file}"
        rows.cells.append(_split_row(row.removesuffix("\r"), place, multiline=multiline))
        rows.lines.append(first_line + 1)
    return rows


def _refuse_separator(lines: list[str], file: str) -> None:
    """Refuse a file whose cells are separated by another character than the comma.

    Such a character occurs equally often in every line. Otherwise a decimal comma in every row
    would be taken for the separator. Raises InvalidRequest.
    """
    if not lines:
        return
    for separator, separator_name in SEPARATOR_NAMES.items():
        counts = {_QUOTED.sub("", lines[0]).count(separator)}
        if counts == {0}:
            continue
        counts.update(_QUOTED.sub("", line).count(separator) for line in lines)
        if len(counts) == 1:
            got = f"{file}, whose cells are separated by {separator_name}"
            must("input", "a CSV file with commas between its cells", got)


def _split_row(row: str, place: str, *, multiline: bool) -> list[str]:
    """Split one row into cells. An empty line has none. Raises CorruptFile."""
    if not row:
        return []
    if '"' not in row and "\r" not in row:
        return row.split(",")
    if row.count('"') % 2:
        hint = " on its line; --multiline takes line breaks inside quoted cells"
        if multiline:
            hint = ""
        raise CorruptFile(f"{place} is not CSV: a quote is not closed{hint}.")
    cells = []
    end = 0
    while True:
        cell = _CELL.match(row, end)
        if cell is None or ("\r" in cell[0] and not multiline):
            raise CorruptFile(f"{place} is not CSV: {_explain_bad_cell(row, end)}.")
        cells.append(cell[2] if cell[1] is None else cell[1].replace('""', '"'))
        end = cell.end()
        if not cell[3]:
            return cells


def _explain_bad_cell(row: str, start: int) -> str:
    """Return a clause that says why no cell begins at a place of a row."""
    if "\r" in row:
        return "it holds a carriage return that ends no line"
    if row[start] == '"':
        return f"text follows a quoted cell, {row[start:][:_SHOWN_CHARACTERS]!r}"
    shown = row[start:].partition(",")[0][:_SHOWN_CHARACTERS]
    return f"a quote stands inside a cell without quotes, {shown!r}"
