"""Split the text of a CSV file into cells strictly, by the grammar of RFC 4180.

    row     cell , cell , ... , cell          one line; all lines end with LF, CRLF or CR
    cell    "any text, "" for a quote"        or a text without quotes, commas and line breaks

A text of any other form is an error that names the line. The reason is privacy: a lenient reader
takes a stray quote for the beginning of a long cell, which swallows the rows below it. The persons
of these rows are then not protected: their rows are copied unchanged as a part of this cell. A line
break inside a cell is an error unless the caller accepts it (`multiline`).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from workbench.errors import CorruptFile, must

# Control characters such as a zero byte, characters that some programs take for the end of a line,
# and the byte order mark are in no text. A file that contains one of them is refused.
_FORBIDDEN = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f\x85\u2028\u2029\ufeff]")
_QUOTED = re.compile('"[^"]*"')
# The groups are the text of a quoted cell, the text of another cell, and a comma or the end.
_CELL = re.compile(r'(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\Z)')
SEPARATOR_NAMES = {";": "semicolons", "\t": "tabs", "|": "bars"}


class CsvRows(NamedTuple):
    """The rows of a file.

    Attributes:
        cells: Cells of each row.
        lines: Number of the line in which each row begins, counted from 1.
    """

    cells: list[list[str]]
    lines: list[int]


def split_rows(text: str, file: str, *, multiline: bool = False) -> CsvRows:
    """Split the text of a CSV file into cells. Blank lines at its end are dropped.

    Args:
        text: The whole file, without a byte order mark.
        file: Name of the file in errors.
        multiline: Whether line breaks inside quoted cells are accepted.

    Raises:
        CorruptFile: A line does not have the form of the module header. The error names it.
        InvalidRequest: The cells are separated by semicolons, tabs or bars.
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
    rows = CsvRows(cells=[], lines=[])
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

    A separator is a semicolon, tab or bar that occurs equally often in every line, at least once.
    In such a file, decimal commas would be read as separators. Raises InvalidRequest.
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
    """Split one row into cells. An empty line has no cells. Raises CorruptFile.

    `place` names the row in errors, such as "line 3 of people.csv".
    """
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
        quoted_text, plain_text, separator = cell.groups()
        cells.append(plain_text if quoted_text is None else quoted_text.replace('""', '"'))
        end = cell.end()
        if not separator:
            return cells


def _explain_bad_cell(row: str, start: int) -> str:
    """Explain in a clause why the text from the index `start` of a row is no cell.

    The text itself may be private.
    """
    if "\r" in row:
        return "it holds a carriage return that ends no line"
    if row[start] == '"':
        return "text follows a quoted cell"
    return "a quote stands inside a cell without quotes"
