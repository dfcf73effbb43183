"""A text that could be read in two ways is refused, by every reader of numbers and ranges."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from workbench.cli import main
from workbench.data.intervals import read_bins, read_ends, read_integer_range, read_range
from workbench.data.label_lists import read_label_text
from workbench.data.parameter_grid import read_grid, read_integers
from workbench.data.plain import read_integer
from workbench.data.points import list_point_values
from workbench.data.private_table import read_private_table
from workbench.data.table_cells import read_bin_list, read_conditions, read_names, read_values
from workbench.errors import CorruptFile, InvalidRequest
from workbench.exact.numbers import read_number
from workbench.privacy.law_table import _read_clamp
from workbench.questions.range_query import RangeQuery

Reader = Callable[[str], Any]
RANGES: dict[str, Reader] = {
    "range": read_range,
    "ends": lambda text: read_ends(text, "epsilon", "a number or a range"),
    "integer range": lambda text: read_integer_range(text, "clamp", "two integers"),
    "points": lambda text: list_point_values(text, "answers"),
    "labels": read_label_text,
    "clamp of a file": _read_clamp,
    "bins": lambda text: read_bin_list(f"{text}:1"),
    "answers of a query": lambda text: wb.FiniteQuery(text, max_shift=3),
    "clamp of integer noise": lambda text: wb.IntegerNoise(1, clamp=text),
    "clamp of real noise": lambda text: wb.RealNoise(1, clamp=text),
    "range of a quantizer": lambda text: wb.Quantization(levels=4, range=text),
    "range query": RangeQuery,
    "labels of a question": wb.Labels,
    "epsilon of a formula": lambda text: wb.formula("channel", answers="0..2", epsilon=text),
    "clip of a column": lambda text: wb.publish.sum({"x": [1]}, "x", range=text, epsilon=1),
}
NUMBERS: dict[str, Reader] = {
    "number": lambda text: read_number(text, "epsilon"),
    "integer": lambda text: read_integer(text, "rows", 1),
    "integers": lambda text: read_integers(text, "runs"),
    "grid": lambda text: read_grid(text, "epsilon"),
    "bins of a histogram": lambda text: read_bin_list(f"{text},100000"),
    "bins of a quantizer": lambda text: read_bins(f"-1,{text}"),
    "range": lambda text: read_range(f"{text}..100000"),
    "condition": lambda text: read_conditions(f"age>={text}"),
}
ODD_NUMBERS = [
    "0x10",
    "1_000",
    "\u00bd",
    "1\uff12",
    "\u0663",
    "\u22125",
    "inf",
    "nan",
    "1 000",
    "5%",
]
ODD_NUMBERS += ["2020-01-31", "1.5.2", "--5", "1e", "'5'", "1;2", "TRUE"]


@pytest.mark.parametrize("text", ["0...5", "0....5", "0...", "-1...1", "0..10..20", "5..", "..5"])
@pytest.mark.parametrize("reader", RANGES)
def test_a_range_has_two_dots_between_two_numbers(reader: str, text: str) -> None:
    if reader == "integer range" and "..." not in text:
        pytest.skip("the caller counts the ends")
    with pytest.raises((InvalidRequest, CorruptFile)):
        RANGES[reader](text)


@pytest.mark.parametrize("reader", sorted({*RANGES} - {"clamp of a file"}))
def test_the_error_about_three_dots_says_what_to_write(reader: str) -> None:
    with pytest.raises(InvalidRequest, match=r"two dots .*0\.\.5 or 0\.\.0\.5\. Got '0\.\.\.5'"):
        RANGES[reader]("0...5")


def test_a_range_may_begin_or_end_with_a_point_beside_a_blank() -> None:
    assert read_range("0.. .5") == read_range("0..0.5")
    assert read_range("0. ..5") == read_range("0..5")


@pytest.mark.parametrize("text", ODD_NUMBERS)
@pytest.mark.parametrize("reader", NUMBERS)
def test_a_number_is_an_ascii_decimal(reader: str, text: str) -> None:
    with pytest.raises(InvalidRequest):
        NUMBERS[reader](text)


@pytest.mark.parametrize("text", ["a,,b", "a,b,", ",a", '"a"b,c', '"a,b', "a\nb", "", " "])
@pytest.mark.parametrize("reader", [read_values, read_names])
def test_a_list_of_texts_has_no_blank_entry_and_closes_its_quotes(
    reader: Reader, text: str
) -> None:
    with pytest.raises(InvalidRequest):
        reader(text)


@pytest.mark.parametrize("text", ["1..3,other", "0..10:5", "0 .. 10"])
def test_listed_values_are_no_range(text: str) -> None:
    with pytest.raises(InvalidRequest, match="Bins are ranges"):
        read_values(text)
    assert read_values(f'"{text}",other').labels == (text, "other")


@pytest.mark.parametrize(
    "text",
    [
        "smoker=yes and age>18",
        "smoker=yes or smoker=no",
        "smoker=yes,no",
        "age=<18",
        "age=>18",
        "age=!18",
        "age=18..65",
        "smoker='yes'",
        'smoker="yes',
        'smoker="yes" and',
        'smoker=""',
        'smoker=" "',
        "age!>18",
        "age<>18",
        "age>=18,",
        "age>=18 and smoker=yes",
    ],
)
def test_a_condition_that_no_cell_would_satisfy_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        read_conditions(text)


@pytest.mark.parametrize(
    "text",
    [
        "name=O'Brien & Sons",
        "name='t Hooft",
        "city=St. John's",
        "note=a-b",
        "time=12:30",
        "date=2020-01-31",
        "amount>=1.5",
        "grade=B+",
        "x=5..",
        "share=5 %",
        "city!=Val-d'Or (QC)",
    ],
)
def test_an_everyday_condition_is_read_as_it_is_written(text: str) -> None:
    (condition,) = read_conditions(text)
    assert str(condition) == text


@pytest.mark.parametrize(
    ("text", "proposals"),
    [
        ("x=5..6", [["x>=5"], ["x<=6"], ['x="5..6"']]),
        ("x=>5", [["x>=5"], ['x=">5"']]),
        ("x=< 5", [["x<=5"], ['x="< 5"']]),
        ("x=!5", [["x!=5"], ['x="!5"']]),
        ("x='it'", [["x=it"], ["x=\"'it'\""]]),
        ("x=a,b", [['x="a,b"']]),
        ('x="5" pipe', [['x="""5"" pipe"']]),
        ("my column=a,b", [['my column="a,b"']]),
    ],
)
def test_the_error_of_a_condition_says_what_to_write_in_the_shell(
    text: str, proposals: list[list[str]]
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read_conditions(text)
    message = str(refused.value)
    for proposal in proposals:
        assert shlex.join(proposal) in message
        (condition,) = read_conditions(proposal)
        assert read_conditions(str(condition)) == (condition,)


def test_an_order_that_is_asked_of_a_date_is_explained() -> None:
    with pytest.raises(InvalidRequest, match="a number, as >= compares numbers alone"):
        read_conditions("date>=2020-01-31")


@pytest.mark.parametrize(
    ("text", "proposal"),
    [
        ("0..10:3", "0..9:3 or 0..12:3"),
        ("0..1:0.3", "0..0.9:0.3 or 0..1.2:0.3"),
        ("-1/2..1", "-0.5..0.5 or -0.5..1.5"),
        ("0..1:3", "0..3:3"),
    ],
)
@pytest.mark.parametrize(
    "reader", ["points", "labels", "answers of a query", "labels of a question"]
)
def test_a_range_ends_on_a_step(reader: str, text: str, proposal: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        RANGES[reader](text)
    assert f"must be {proposal}, as steps of" in str(refused.value)
    for accepted in proposal.split(" or "):
        RANGES[reader](accepted)


def test_outputs_end_on_a_step() -> None:
    with pytest.raises(InvalidRequest, match=r"outputs must be 0\.\.4:2 or 0\.\.6:2"):
        wb.FiniteQuery("0..5", "0..5:2", max_shift=1)


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ('group="<5"', "<5"),
        ('group="a, b"', "a, b"),
        ('group="say ""no"""', 'say "no"'),
        ("group=5-10", "5-10"),
        ("group=O'Brien", "O'Brien"),
        ("group==5", "5"),
        ('group="18..65"', "18..65"),
    ],
)
def test_a_quoted_text_is_compared_and_described(text: str, cell: str) -> None:
    (condition,) = read_conditions(text)
    assert condition.value == cell
    assert condition.list_matches(read_private_table({"group": [cell, "x"]})) == [True, False]
    assert read_conditions(str(condition)) == (condition,)


@pytest.mark.parametrize("value", [None, float("nan"), ["north"], ("a", 1), {"a": 1}])
def test_a_listed_value_is_no_missing_value_and_no_list(value: Any) -> None:
    with pytest.raises(InvalidRequest, match="texts, numbers or dates"):
        read_values(["south", value])


def test_values_with_the_name_of_another_column_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="those of column region, such as region="):
        wb.publish.histogram(
            {"region": ["north"]}, "region", values="Region=north,other", epsilon=1
        )


def test_a_name_that_is_also_the_number_of_another_column_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("id,1,2\n7,8,9\n")
    with pytest.raises(InvalidRequest, match="--header"):
        read_private_table(path).select_column("1", "column")
    assert read_private_table(path, header=True).select_column("1", "column").cells == ["8"]
    assert read_private_table(path).select_column("3", "column").cells == ["9"]


def test_an_entry_of_a_plan_is_given_once() -> None:
    plan = {"drop-missing": True, "drop_missing": False, "statistic": [{"kind": "count"}]}
    with pytest.raises(InvalidRequest, match="drop_missing of a plan must be given once"):
        wb.publish.plan(plan, {"x": [1]}, epsilon=1, expected_rows=1)


@pytest.mark.parametrize(
    "command",
    [
        "publish count no.csv --epsilon 1 --epsilon 2",
        "publish count no.csv --epsilon 1 --header --no-header",
        "publish histogram no.csv --epsilon 1 --column a --column b --values x",
        "design channel --answers 0..2 --answers 0..3 --max-shift 1 --epsilon 1",
        "privatise labels no.csv --epsilon 1 --epsilon 2",
        "sample no.json --count 1 --count 2",
        "audit rqm --with bins=-1,1 --with q=0.2 --with q=0.4",
    ],
)
def test_an_option_is_given_once(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(command.split())
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert "must be given once" in error or "one value for each parameter" in error


@pytest.mark.parametrize(
    "command",
    [
        "sample no.json --count 1_0",
        "sample no.json --count \uff11",
        "publish count no.csv --epsilon 1 --time-limit nan",
        "publish count no.csv --epsilon 1 --time-limit 1_0",
    ],
)
def test_numbers_of_options_are_ascii_decimals(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(command.split())
    assert stop.value.code == 2
    assert "must be a" in capsys.readouterr().err
