"""The cells of a CSV file, with every character of it accounted for (RFC 4180).

    row     cell , cell , ... , cell          one line, ended by LF, CRLF, or CR throughout
    cell    "any text, "" for a quote"        or a text without quotes, commas and line breaks

A lenient reader takes a stray quote for the beginning of a cell that swallows the rows below it: they are then missing
where a column is read, and stand in the clear where the other columns are copied. Here a text that is not of this form
is refused, by line, and so is a line break inside a cell unless it is asked for.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from workbench.errors import CorruptFile, must

# A zero byte, other control characters, what some readers take for the end of a line, and a second byte order mark.
_FORBIDDEN = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f\x85\u2028\u2029\ufeff]")
_QUOTED = re.compile('"[^"]*"')
SEPARATOR_NAMES = {";": "semicolons", "\t": "tabs", "|": "bars"}
_CELL = re.compile(r'(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\Z)')


class CsvRows(NamedTuple):
    """The rows of a file as lists of cells, and the number of the line in which each row begins."""

    cells: list[list[str]]
    lines: list[int]


def split_rows(text: str, file: str, *, multiline: bool = False) -> CsvRows:
    """Split the text of a CSV file into cells; blank lines at its end are no rows.

    Args:
        text: the whole file, without a byte order mark at its beginning.
        file: what a message calls it.
        multiline: accept line breaks inside quoted cells.

    Raises:
        CorruptFile: for any character that belongs to no cell, with its line.
        InvalidRequest: for a file whose cells another character separates.
    """
    newline = "\n" if "\n" in text else "\r"
    if mark := _FORBIDDEN.search(text):
        line = text.count(newline, 0, mark.start()) + 1
        raise CorruptFile(f"{file} is not a CSV file: line {line} holds the character {mark[0]!r}.")
    lines = text.split(newline)
    while lines and not lines[-1].strip():
        lines.pop()
    _refuse_separator(lines, file)
    rows = CsvRows([], [])
    at = 0
    while at < len(lines):
        first, row = at, lines[at]
        at += 1
        while row.count('"') % 2 and multiline and at < len(lines):
            row += newline + lines[at]
            at += 1
        rows.cells.append(
            _split_row(row.removesuffix("\r"), f"line {first + 1} of {file}", multiline=multiline)
        )
        rows.lines.append(first + 1)
    return rows


def _refuse_separator(lines: list[str], file: str) -> None:
    """Refuse a file whose cells another character than the comma separates: it is in every line, equally often.

    A decimal comma in every row would otherwise be taken for the separator. Raises InvalidRequest.
    """
    for mark, words in SEPARATOR_NAMES.items():
        first = _QUOTED.sub("", lines[0]).count(mark) if lines and mark in lines[0] else 0
        if first and all(_QUOTED.sub("", line).count(mark) == first for line in lines):
            got = f"{file}, whose cells are separated by {words}"
            must("input", "a CSV file with commas between its cells", got)


def _split_row(row: str, place: str, *, multiline: bool) -> list[str]:
    """The cells of one row, none of an empty line. Raises CorruptFile."""
    if not row:
        return []
    if '"' not in row and "\r" not in row:
        return row.split(",")
    if row.count('"') % 2:
        more = (
            "" if multiline else " on its line; --multiline takes line breaks inside quoted cells"
        )
        raise CorruptFile(f"{place} is not CSV: a quote is not closed{more}.")
    cells, end = [], 0
    while True:
        cell = _CELL.match(row, end)
        if cell is None or ("\r" in cell[0] and not multiline):
            raise CorruptFile(f"{place} is not CSV: {_explain_bad_cell(row, end)}.")
        cells.append(cell[2] if cell[1] is None else cell[1].replace('""', '"'))
        end = cell.end()
        if not cell[3]:
            return cells


def _explain_bad_cell(row: str, start: int) -> str:
    """Why no cell begins at a place of a row, in words."""
    if "\r" in row:
        return "it holds a carriage return that ends no line"
    if row[start] == '"':
        return f"text follows a quoted cell, {row[start:][:40]!r}"
    return f"a quote stands inside a cell without quotes, {row[start:].partition(',')[0][:40]!r}"
