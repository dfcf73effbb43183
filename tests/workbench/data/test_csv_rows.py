"""Every character of a CSV file belongs to a cell, or the file is refused by line."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from workbench.data.csv_column import CsvTable
from workbench.data.csv_rows import split_rows
from workbench.errors import CorruptFile, InvalidRequest

REFUSED = {
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


@pytest.mark.parametrize("name", REFUSED)
def test_characters_outside_cells_are_refused_by_line(name: str) -> None:
    text, line = REFUSED[name]
    with pytest.raises(CorruptFile, match=f"line {line} "):
        split_rows(text, "p.csv")


def test_line_breaks_inside_cells_are_accepted_on_request() -> None:
    text = 'pay,note\r\n31,"a\r\nb"\r\n42,"c\nd, ""e"""\r\n\r\n \r\n'
    rows = split_rows(text, "p.csv", multiline=True)
    assert rows.cells == [["pay", "note"], ["31", "a\r\nb"], ["42", 'c\nd, "e"']]
    assert rows.lines == [1, 2, 4]
    with pytest.raises(CorruptFile, match=r"line 2 .*--multiline"):
        split_rows(text, "p.csv")
    with pytest.raises(CorruptFile, match="line 2 "):
        split_rows('pay\n"31\n42\n', "p.csv", multiline=True)  # it is never closed


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
def test_written_cells_are_read_back(newline: str, quoting: int) -> None:
    rng = np.random.default_rng(5)
    letters = ["a", "7", '"', ",", " ", ";", "é", "'", "\\"]
    cells = [
        ["".join(rng.choice(letters, rng.integers(0, 6))) for _ in range(4)] for _ in range(200)
    ]
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator=newline, quoting=quoting).writerows(cells)
    rows = split_rows(file.getvalue(), "p.csv")
    assert rows.cells == cells
    assert rows.lines == [*range(1, 201)]


def test_empty_lines_at_the_end_are_no_rows_and_others_are_empty() -> None:
    assert split_rows("a\n\n1\n\n \n", "p.csv").cells == [["a"], [], ["1"]]
    assert split_rows('a\n1\n""\n', "p.csv").cells[-1] == [""]
    assert split_rows("", "p.csv").cells == split_rows("\n \n", "p.csv").cells == []


@pytest.mark.parametrize(
    ("text", "columns", "header", "row"),
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
def test_the_first_row_is_a_header_or_a_person(tmp_path, text, columns, header, row) -> None:
    (tmp_path / "p.csv").write_text(text)
    table, _ = CsvTable.read(tmp_path / "p.csv", columns, header=header)
    assert table.header is row
    assert len(table.body) == len(text.splitlines()) - row


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("2020\n1\n", "2020"),  # by its name, and every cell could be a value
        ("2020,2021\n1,2\n", "2021"),
        ("NaN\n1\n", "NaN"),
        ("$42,57\n1,2\n", "57"),
        ("who,2\na,1\n", "2"),  # a name, and the number of a column
        ("2,1\n5,6\n", "1"),
        (
            "who,2020\na,1\n",
            "2",
        ),  # by number, where one cell of the first row is a text and one is not
        ("ann,31\nbob,42\n", "2"),
        ("ann,\nbob,42\n", "2"),
        ("ann,n/a\nbob,42\n", "2"),
    ],
)
def test_an_unclear_first_row_needs_an_option(tmp_path, text, column) -> None:
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(InvalidRequest, match="--header or --no-header"):
        CsvTable.read(tmp_path / "p.csv", [column])


def test_files_with_other_separators_encodings_and_numbers_are_refused_by_name(tmp_path) -> None:
    path = tmp_path / "p.csv"
    for text, words in (
        ("pay;note\n31;a\n", "semicolons"),
        ("pay\tnote\n31\ta\n", "tabs"),
        ("pay,note\n31;a\n", "line 2 of p.csv must be 2 cells wide. Got 1"),
        ("pay,note\n31,5,a\n", "line 2 of p.csv must be 2 cells wide. Got 3"),
        ("pay,note\n31,a\n\n42,b\n", "line 3 of p.csv must be 2 cells wide. Got 0 cells"),
        ("\npay\n31\n", "line 1 of p.csv"),
        ('pay,note\n"31,5",a\n', "decimal commas"),
        ('pay,note\n"1,031",a\n', "separators of thousands"),
    ):
        path.write_text(text)
        with pytest.raises(InvalidRequest, match=words):
            CsvTable.read(path, ["pay"])[1][0].numbers()
    path.write_bytes("pay\n31\n".encode("utf-16"))
    with pytest.raises(CorruptFile, match="UTF-16"):
        CsvTable.read(path, ["pay"])


@pytest.mark.parametrize(
    "first",
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
def test_damaged_values_are_no_header(tmp_path, first) -> None:
    path = tmp_path / "p.csv"
    path.write_text(f"{first}\n42\n57\n")
    for column in ("1", None):
        with pytest.raises(InvalidRequest, match="--header or --no-header"):
            CsvTable.read(path, [column])
    for header in (True, False):
        assert len(CsvTable.read(path, ["1"], header=header)[0].body) == 3 - header
    assert CsvTable.read(path, [first])[0].header  # It is asked for by its name.


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_a_decimal_comma_in_every_row_is_no_separator(tmp_path, mark) -> None:
    path = tmp_path / "p.csv"
    path.write_text(f"age{mark}pay, gross\n31{mark}70,5\n42{mark}71,5\n")
    with pytest.raises(InvalidRequest, match="separated by"):
        CsvTable.read(path, ["2"])
    path.write_text(f'age,"a{mark}b"\n31,"c{mark}d"\n')
    assert CsvTable.read(path, ["age"])[0].width == 2


def test_rows_inside_a_quoted_cell_are_refused(tmp_path) -> None:
    path = tmp_path / "p.csv"
    path.write_text('pay,note\n31,ok\n42,"said hi\n57,fine\n68,fine"\n')
    with pytest.raises(InvalidRequest, match=r"line 3 of p\.csv must be without rows .* '57,fine'"):
        CsvTable.read(path, ["pay"], multiline=True)
    path.write_text('pay,note\n31,ok\n42,"said hi\n\nand, at last,\nbye"\n')
    assert len(CsvTable.read(path, ["pay"], multiline=True)[0].body) == 2
