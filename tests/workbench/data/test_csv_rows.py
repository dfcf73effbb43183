"""Test that every character of a CSV file belongs to a cell, or an error names its line.

`split_rows` splits a text into cells. `CsvTable.read` also decides whether the first row is a
header. If this is not clear, the user must say so, because a header is published and a person is
not.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workbench.data.csv_column import CsvTable
from workbench.data.csv_rows import split_rows
from workbench.errors import CorruptFile, InvalidRequest

# By description: the text of a file, and the line that the error names.
REFUSED_TEXTS = {
    "a stray quote": ('pay,note\n31,ok\n42,"said hi\n57,fine\n', 3),
    "a pair of stray quotes": ('pay,note\n31,ok\n42,"said hi\n57,fine"\n', 3),
    "a quote in the header": ('pay,"note\n31,a\n42,b"\n57,c\n', 1),
    "a quote in the last line": ('pay,note\n31,ok\n42,"b', 3),
    "a quote inside a cell": ('pay,note\n31,5" pipe and 6" pipe\n', 2),
    "a blank before a quote": ('pay,note\n31, "a, b"\n', 2),
    "text after a quoted cell": ('pay,note\n31,"a"b\n', 2),
    "a backslash for a quote": ('pay,note\n31,"a \\" b"c"\n', 2),
    "a zero byte": ("pay,note\n31,a\0\n", 2),
    "a zero byte in a number": ("pay\n3\x001\n", 2),
    "the end of a DOS file": ("pay\n31\n\x1a42\n", 3),
    "a vertical tab": ("pay\n31\x0b42\n", 2),
    "a form feed": ("pay\n31\x0c42\n", 2),
    "a next-line character": ("pay\n31\x8542\n", 2),
    "a line separator": ("pay\n31\u202842\n", 2),
    "a paragraph separator": ("pay\n31\u202942\n", 2),
    "a second byte order mark": ("\ufeffpay\n31\n", 1),
    "a carriage return among line feeds": ("pay\n31\r42\n57\n", 2),
    "a doubled carriage return": ("pay\r\r\n31\r\r\n", 1),
}


@pytest.mark.parametrize("description", REFUSED_TEXTS)
def test_an_error_names_the_line_of_a_character_outside_cells(description: str) -> None:
    text, line = REFUSED_TEXTS[description]
    with pytest.raises(CorruptFile, match=f"line {line} "):
        split_rows(text, "p.csv")


def test_line_breaks_inside_cells_are_accepted_on_request() -> None:
    text = 'pay,note\r\n31,"a\r\nb"\r\n42,"c\nd, ""e"""\r\n\r\n \r\n'
    rows = split_rows(text, "p.csv", multiline=True)
    assert rows.cells == [["pay", "note"], ["31", "a\r\nb"], ["42", 'c\nd, "e"']]
    assert rows.lines == [1, 2, 4]
    with pytest.raises(CorruptFile, match=r"line 2 .*--multiline"):
        split_rows(text, "p.csv")


def test_a_quote_without_an_end_is_refused_even_with_line_breaks_inside_cells() -> None:
    with pytest.raises(CorruptFile, match="line 2 "):
        split_rows('pay\n"31\n42\n', "p.csv", multiline=True)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
def test_written_cells_are_read_back(newline: str, quoting: int) -> None:
    rng = np.random.default_rng(5)
    letters = ["a", "7", '"', ",", " ", ";", "é", "'", "\\"]
    cells = [
        ["".join(rng.choice(letters, size=rng.integers(0, 6))) for _ in range(4)]
        for _ in range(200)
    ]
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator=newline, quoting=quoting).writerows(cells)
    rows = split_rows(file.getvalue(), "p.csv")
    assert rows.cells == cells
    assert rows.lines == [*range(1, 201)]


def test_blank_lines_at_the_end_are_dropped_and_others_are_empty_rows() -> None:
    assert split_rows("a\n\n1\n\n \n", "p.csv").cells == [["a"], [], ["1"]]
    assert split_rows("\n \n", "p.csv").cells == []
    assert split_rows("", "p.csv").cells == []


def test_a_line_of_two_quotes_is_a_row_with_an_empty_cell() -> None:
    assert split_rows('a\n1\n""\n', "p.csv").cells == [["a"], ["1"], [""]]


@pytest.mark.parametrize(
    ("text", "columns", "header", "is_header"),
    [
        ("who,2020\na,1\n", ["2020"], None, True),
        ("who,1e3\na,1\n", ["1e3"], None, True),
        ("2nd visit\n1\n", ["2nd visit"], None, True),
        ("(count),x\n1,2\n", ["(count)"], None, True),
        ("#visits\n1\n", ["#visits"], None, True),
        ("NaN,x\n1,2\n", ["NaN"], None, True),
        ("x\n1\n", ["1"], None, True),
        ("2nd visit\n1\n", ["1"], None, True),
        ("3\n4\n", ["1"], None, False),
        ("3\n4\n", [None], None, False),
        ("pay\n4\n", [None], None, True),
        ("2020,2021\n1,2\n", ["2020"], True, True),
        ("2,1\n5,6\n", ["1"], False, False),
        ("ann,31\nbob,42\n", ["2"], False, False),
        (",pay\n0,31\n", ["pay"], None, True),
    ],
)
def test_the_first_row_is_a_header_or_a_person(
    tmp_path, text: str, columns: list[str | None], header: bool | None, is_header: bool
) -> None:
    (tmp_path / "p.csv").write_text(text)
    table, _ = CsvTable.read(tmp_path / "p.csv", columns, header=header)
    assert table.header is is_header
    assert len(table.body) == len(text.splitlines()) - is_header


@pytest.mark.parametrize(
    ("text", "column"),
    [
        # The column is selected by its name, and every cell of the first row could be a value.
        ("2020\n1\n", "2020"),
        ("2020,2021\n1,2\n", "2021"),
        ("NaN\n1\n", "NaN"),
        ("$42,57\n1,2\n", "57"),
        # A name of the first row is also the number of a column.
        ("who,2\na,1\n", "2"),
        ("2,1\n5,6\n", "1"),
        # The column is selected by number. Its first cell could be a value, but another cell of
        # the first row could not.
        ("who,2020\na,1\n", "2"),
        ("ann,31\nbob,42\n", "2"),
        ("ann,\nbob,42\n", "2"),
        ("ann,n/a\nbob,42\n", "2"),
    ],
)
def test_an_unclear_first_row_needs_an_option(tmp_path, text: str, column: str) -> None:
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(InvalidRequest, match="--header or --no-header"):
        CsvTable.read(tmp_path / "p.csv", [column])


def read_pay(path: Path) -> Any:
    """Return the numbers of the column pay of a file."""
    _, (column,) = CsvTable.read(path, ["pay"])
    return column.numbers()


@pytest.mark.parametrize(
    ("text", "message_pattern"),
    [
        ("pay;note\n31;a\n", "semicolons"),
        ("pay\tnote\n31\ta\n", "tabs"),
        ("pay,note\n31;a\n", "line 2 of p.csv must be 2 cells wide. Got 1"),
        ("pay,note\n31,5,a\n", "line 2 of p.csv must be 2 cells wide. Got 3"),
        ("pay,note\n31,a\n\n42,b\n", "line 3 of p.csv must be 2 cells wide. Got 0 cells"),
        ("\npay\n31\n", "line 1 of p.csv"),
        ('pay,note\n"31,5",a\n', "decimal commas"),
        ('pay,note\n"1,031",a\n', "separators of thousands"),
    ],
)
def test_an_error_names_the_separator_the_width_or_the_comma_that_is_wrong(
    tmp_path, text: str, message_pattern: str
) -> None:
    path = tmp_path / "p.csv"
    path.write_text(text)
    with pytest.raises(InvalidRequest, match=message_pattern):
        read_pay(path)


def test_a_file_in_utf_16_is_refused(tmp_path) -> None:
    path = tmp_path / "p.csv"
    path.write_bytes("pay\n31\n".encode("utf-16"))
    with pytest.raises(CorruptFile, match="UTF-16"):
        CsvTable.read(path, ["pay"])


@pytest.mark.parametrize(
    "first_cell",
    [
        "31 EUR",
        "31kg",
        "0x1F",
        "3.D4",
        "1e5.5",
        "1e",
        "31L",
        "-31 mm",
        "(31 m)",
        "#N/A",
        "<NA>",
        "n/d",
        "#DIV/0!",
    ],
)
def test_a_first_cell_that_looks_like_a_damaged_value_needs_an_option(
    tmp_path, first_cell: str
) -> None:
    path = tmp_path / "p.csv"
    path.write_text(f"{first_cell}\n42\n57\n")
    for column in ("1", None):
        with pytest.raises(InvalidRequest, match="--header or --no-header"):
            CsvTable.read(path, [column])
    table, _ = CsvTable.read(path, ["1"], header=True)
    assert len(table.body) == 2
    table, _ = CsvTable.read(path, ["1"], header=False)
    assert len(table.body) == 3
    # A column that is selected by this name has a header.
    table, _ = CsvTable.read(path, [first_cell])
    assert table.header


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_another_separator_is_refused_even_if_every_row_has_one_comma(
    tmp_path, separator: str
) -> None:
    path = tmp_path / "p.csv"
    path.write_text(f"age{separator}pay, gross\n31{separator}70,5\n42{separator}71,5\n")
    with pytest.raises(InvalidRequest, match="separated by"):
        CsvTable.read(path, ["2"])


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_another_separator_inside_quotes_is_accepted(tmp_path, separator: str) -> None:
    path = tmp_path / "p.csv"
    path.write_text(f'age,"a{separator}b"\n31,"c{separator}d"\n')
    table, _ = CsvTable.read(path, ["age"])
    assert table.width == 2


def test_rows_inside_a_quoted_cell_are_refused(tmp_path) -> None:
    path = tmp_path / "p.csv"
    path.write_text('pay,note\n31,ok\n42,"said hi\n57,fine\n68,fine"\n')
    with pytest.raises(
        InvalidRequest, match=r"line 3 of p\.csv must be without rows .* a cell with such a row"
    ):
        CsvTable.read(path, ["pay"], multiline=True)


def test_lines_of_text_inside_a_quoted_cell_are_accepted(tmp_path) -> None:
    path = tmp_path / "p.csv"
    path.write_text('pay,note\n31,ok\n42,"said hi\n\nand, at last,\nbye"\n')
    table, _ = CsvTable.read(path, ["pay"], multiline=True)
    assert len(table.body) == 2


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("secret name,31 kg\nbob,7\n", "2"),
        ("secret name,north\nbob,south\n", "region"),
        ("age,place\nsecret name,7\n", "age"),
        ('age,place\n"secret name"x,7\n', "age"),
        ('age,place\nsecret "name",7\n', "age"),
        ('age,place\n7,"a\n5,secret name"\n', "age"),
    ],
)
def test_errors_show_no_cell_of_a_row_that_may_be_private(
    text: str, column: str, tmp_path: Path
) -> None:
    path = tmp_path / "p.csv"
    path.write_text(text)
    with pytest.raises((InvalidRequest, CorruptFile)) as caught:
        CsvTable.read(path, [column], multiline=True)[1][0].numbers()
    assert "secret" not in str(caught.value)


def test_names_are_shown_if_the_user_says_that_there_are_names(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("Age,place\n7,north\n")
    with pytest.raises(InvalidRequest, match="one of Age, place, or 1 to 2"):
        CsvTable.read(path, ["region"], header=True)
    with pytest.raises(InvalidRequest, match="such as Age, or 1 to 2"):
        CsvTable.read(path, ["age"])
