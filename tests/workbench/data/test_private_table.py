"""Test the reading of private tables: spellings, missing cells, and errors that show no cell."""

from __future__ import annotations

import gzip
import re
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from workbench.data.private_table import (
    PrivateCellError,
    PrivateTable,
    is_missing_cell,
    make_category_key,
    read_private_table,
)
from workbench.data.table_cells import UNLISTED, read_bin_list, read_conditions, read_values
from workbench.errors import InvalidRequest

SECRET = "secretvalue"


def read_csv(folder: Path, text: str, **options: Any) -> PrivateTable:
    """Read a table from the text of a file."""
    path = folder / "people.csv"
    path.write_bytes(text.encode())
    return read_private_table(path, **options)


def count_matches(table: Any, condition: str) -> int:
    """Count the rows that satisfy a condition."""
    (parsed_condition,) = read_conditions(condition)
    return sum(parsed_condition.list_matches(read_private_table(table)))


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffage,smoker\n1,yes\n",
        "age,smoker\r\n1,yes\r\n",
        'age,smoker\n"1","yes"\n',
        "age , smoker\n 1 ,yes \n",
        "age,smoker\n1,yes\n\n\n",
    ],
    ids=["bom", "crlf", "quotes", "blanks", "blank lines at the end"],
)
def test_spellings_of_a_file_give_the_same_cells(text: str, tmp_path: Path) -> None:
    table = read_csv(tmp_path, text)
    assert table.select_column("age", "column").list_numbers() == [1]
    assert table.select_column("smoker", "column").list_categories() == ["yes"]


@pytest.mark.parametrize(
    "text",
    [
        f"age,smoker\n1,{SECRET}\n2\n",
        f'age,smoker\n1,{SECRET}"x\n',
        f"age,smoker\n1,{SECRET}\n\n2,no\n",
        f"age,smoker\n1,{SECRET}\0\n",
        f'age,smoker\n1,"{SECRET}\n2,no"\n',
        f"age\n{SECRET}\n\n{SECRET}\n",
        f"age\n{SECRET}\n\n",
        f"age\r\n{SECRET}\r\n ",
    ],
    ids=[
        "ragged",
        "quote",
        "blank line",
        "zero byte",
        "line break",
        "blank line of one column",
        "missing value at the end of one column",
        "blanks at the end of one column",
    ],
)
def test_a_damaged_file_is_refused_without_its_cells(text: str, tmp_path: Path) -> None:
    with pytest.raises(PrivateCellError) as caught:
        read_csv(tmp_path, text)
    assert SECRET not in str(caught.value)
    assert "line 2" not in str(caught.value)
    assert caught.value.detail


class LazyTable:
    """A table whose rows are loaded by a method, as a LazyFrame of polars."""

    columns = ("age",)

    def collect(self) -> pd.DataFrame:
        """Load the rows."""
        return pd.DataFrame({"age": [1]})


class BrokenTable:
    """A table whose error shows a cell."""

    columns = ("age",)

    def __getitem__(self, name: str) -> list[int]:
        raise TypeError(SECRET)


STRUCTURED = np.array([(20, "yes"), (30, "no")], dtype=[("age", int), ("smoker", "U3")])
OTHER_TABLES = {
    "lazy": (LazyTable(), "Load it first, such as with its method collect"),
    "dataset": (pa.table({"age": [1]}).to_reader(), "Load it first"),
    "generator": ((age for age in [SECRET]), "can be read twice"),
    "map": (map(str, [SECRET]), "can be read twice"),
    "set": ({SECRET}, "a list of cells"),
    "list of mappings": ([{"age": SECRET}], "pandas.DataFrame"),
    "list of rows": ([[SECRET, 1]], "pandas.DataFrame"),
    "column of a set": ({"age": {SECRET}}, "a list, an array or a Series"),
    "column of a generator": ({"age": (age for age in [SECRET])}, "a list, an array or a Series"),
    "unequal columns": ({"age": [SECRET], "smoker": []}, "columns of equal length"),
    "no columns": (pd.DataFrame(), "at least one column"),
    "table with an error": (BrokenTable(), "a DataFrame, a Series"),
    "number": (5, "a DataFrame, a Series"),
    "none": (None, "a DataFrame, a Series"),
    "bytes": (SECRET.encode(), "a DataFrame, a Series"),
    "two dimensions": (np.zeros((2, 2)), "one-dimensional"),
}


@pytest.mark.parametrize("name", OTHER_TABLES)
def test_an_object_that_is_no_table_gets_a_way_out(name: str) -> None:
    data, way_out = OTHER_TABLES[name]
    with pytest.raises(InvalidRequest, match=re.escape(way_out)) as caught:
        read_private_table(data)
    assert SECRET not in str(caught.value)
    assert "unknown error" not in str(caught.value)


def test_an_open_file_is_refused(tmp_path: Path) -> None:
    """The first line of its iterator is the header, which would count as a person."""
    path = tmp_path / "people.csv"
    path.write_text("age\n1\n")
    with path.open() as file, pytest.raises(InvalidRequest, match="the path of a file"):
        read_private_table(file)


@pytest.mark.parametrize("name", ["people.csv.gz", "people.parquet"])
def test_a_compressed_file_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    with gzip.open(path, "wt") as file:
        file.write("age\n1\n")
    with pytest.raises(InvalidRequest, match="an uncompressed CSV file"):
        read_private_table(path)


def test_a_structured_array_is_a_table() -> None:
    table = read_private_table(STRUCTURED)
    assert table.select_column("age", "column").list_numbers() == [20, 30]
    assert count_matches(STRUCTURED, "smoker=yes") == 1


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"x": [0.1, 0.2]}, dtype="float32"),
        pd.DataFrame({"x": [0.1, 0.2]}, dtype="Float32"),
        pd.DataFrame({"x": [0.1, 0.2]}, dtype="float[pyarrow]"),
        pa.table({"x": pa.array([0.1, 0.2], pa.float32())}),
        {"x": np.array([0.1, 0.2], dtype="float32")},
        {"x": pd.Series([0.1, 0.2], dtype="float32")},
        {"x": pd.Series([0.1, 0.2], dtype="float64")},
    ],
)
def test_a_float_is_the_decimal_that_it_shows(table: Any) -> None:
    assert count_matches(table, "x=0.1") == 1
    assert count_matches(table, "x<=0.1") == 1
    column = read_private_table(table).select_column("x", "column")
    assert column.list_numbers() == [Fraction(1, 10), Fraction(1, 5)]


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (pd.array([20, None], dtype="Int64"), [20, None]),
        (pd.array([20, None], dtype="int64[pyarrow]"), [20, None]),
        (pd.Series(["20", "30"], dtype="category"), [20, 30]),
        (pd.arrays.SparseArray([20, 0]), [20, 0]),
        (np.ma.array([20, 30], mask=[0, 1]), [20, None]),
    ],
)
def test_columns_of_pandas_are_numbers(cells: Any, numbers: list[int | None]) -> None:
    table: Any = {"age": cells}
    # A DataFrame drops the mask of an array, so a masked array stays in a dict.
    if not isinstance(cells, np.ma.MaskedArray):
        table = pd.DataFrame(table)
    column = read_private_table(table).select_column("age", "column")
    assert column.list_numbers() == numbers


@pytest.mark.parametrize("cells", [[True], pd.to_datetime(["2020-01-01"]), [[1]], [{"a": 1}]])
def test_other_cells_are_no_numbers(cells: Any) -> None:
    column = read_private_table({"age": cells}).select_column("age", "column")
    with pytest.raises(PrivateCellError, match="a finite number"):
        column.list_numbers()


def test_semicolons_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="separated by semicolons"):
        read_csv(tmp_path, "age;smoker\n1,5;yes\n")


def test_a_first_row_of_numbers_is_refused_unless_it_is_said_to_be_data(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="--no-header") as caught:
        read_csv(tmp_path, "4711,2\n3,4\n")
    assert "4711" not in str(caught.value)
    assert read_csv(tmp_path, "1,2\n3,4\n", header=False).row_count == 2


def test_a_table_may_have_no_rows(tmp_path: Path) -> None:
    assert read_csv(tmp_path, "age,smoker\n").row_count == 0


def test_a_name_that_two_columns_have_is_refused(tmp_path: Path) -> None:
    table = read_csv(tmp_path, "age,age\n1,2\n")
    with pytest.raises(InvalidRequest, match="column must be 1 or 2"):
        table.select_column("age", "column")
    assert table.select_column("2", "column").list_numbers() == [2]


def test_an_unknown_column_gets_a_proposal_and_no_list(tmp_path: Path) -> None:
    table = read_csv(tmp_path, f"Age,{SECRET}\n1,2\n")
    with pytest.raises(InvalidRequest, match="such as Age") as caught:
        table.select_column("age", "column")
    assert SECRET not in str(caught.value)


def test_an_unknown_column_gets_no_proposal_from_a_row_that_may_be_data(tmp_path: Path) -> None:
    """The file has no header. Its first row is a person, who must not be named."""
    table = read_csv(tmp_path, f"{SECRET},yes\nother,no\n")
    with pytest.raises(InvalidRequest, match="column must be a column of people") as caught:
        table.select_column(f"{SECRET}s", "column")
    assert "such as" not in str(caught.value)


@pytest.mark.parametrize("kind", ["file with a header", "mapping"])
def test_an_unknown_column_gets_a_similar_name_if_the_names_are_known(
    kind: str, tmp_path: Path
) -> None:
    if kind == "mapping":
        table = read_private_table({"age": [1]})
    else:
        table = read_csv(tmp_path, "age,sex\n1,f\n", header=True)
    with pytest.raises(InvalidRequest, match="such as age,"):
        table.select_column("ages", "column")


@pytest.mark.parametrize("cell", ["inf", "1,234", "12 kg", "1/2", "1e9999999", "1_000", SECRET])
def test_a_cell_that_is_no_number_is_refused_without_showing_it(cell: str) -> None:
    column = read_private_table({"age": ["1", cell]}).select_column("age", "column")
    with pytest.raises(PrivateCellError, match="column age") as caught:
        column.list_numbers()
    assert cell not in str(caught.value)
    assert "row 2" not in str(caught.value)
    assert "row 2" in caught.value.detail


@pytest.mark.parametrize("cell", ["", " ", "NA", "nan", None, float("nan"), pd.NA, pd.NaT])
def test_missing_cells(cell: object) -> None:
    column = read_private_table({"age": [cell]}).select_column("age", "column")
    assert column.list_numbers() == [None]
    assert column.list_categories() == [None]
    assert is_missing_cell(cell)


@pytest.mark.parametrize(
    "cell", [0, False, "0", "nobody", float("inf"), pytest.param(10**5000, id="large")]
)
def test_cells_that_are_not_missing(cell: object) -> None:
    assert not is_missing_cell(cell)


def test_a_listed_text_is_a_category_and_a_missing_object_is_none() -> None:
    column = read_private_table({"x": ["None", None]}).select_column("x", "column")
    assert column.list_categories({"none"}) == ["none", None]


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (pd.Series([1, 2], index=[0, 0]), [1, 2]),
        (pd.array([1, None], dtype="Int64"), [1, None]),
        (pd.Categorical([1, 2]), [1, 2]),
        (np.array([0.5, np.nan]), [Fraction(1, 2), None]),
        (np.array([0.1], dtype="f4"), [Fraction(1, 10)]),
        (np.ma.array([1, 2], mask=[False, True]), [1, None]),
        ([Decimal("1.5"), Decimal("sNaN")], [Fraction(3, 2), None]),
        (["1e400"], [10**400]),
    ],
    ids=["index", "Int64", "categorical", "float", "float32", "masked", "decimal", "large"],
)
def test_containers_of_numbers(cells: Any, numbers: list[Fraction | None]) -> None:
    column = read_private_table({"age": cells}).select_column("age", "column")
    assert column.list_numbers() == numbers


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        ("yes", " YES ", True),
        ("2020", 2020.0, True),
        ("2020.0", "2020", True),
        ("01", "1", False),
        ("true", True, True),
        ("ﬁn", "fin", True),
        ("yes", "yess", False),
    ],
)
def test_spellings_of_a_category(first: object, second: object, is_same: bool) -> None:
    assert (make_category_key(first) == make_category_key(second)) is is_same


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("smoker=yes", 2),
        ("smoker==YES", 2),
        ("smoker!=yes", 1),
        ("age>=30", 2),
        ("age < 30", 1),
        ("age=30", 1),
    ],
)
def test_a_missing_cell_satisfies_no_condition(condition: str, count: int) -> None:
    table = {"smoker": ["yes", " Yes", "no", None], "age": [20, None, "30", 40.0]}
    assert count_matches(table, condition) == count


@pytest.mark.parametrize("condition", ["smoker", "=yes", "smoker=", "age>old", 3])
def test_a_text_that_is_no_condition_is_refused(condition: object) -> None:
    with pytest.raises(InvalidRequest, match="where"):
        read_conditions([condition])


@pytest.mark.parametrize(
    ("bins", "labels"),
    [
        ("0..1:0.5", ("0 to under 0.5", "0.5 to 1")),
        ("0,1/3,1", ("0 to under 1/3", "1/3 to 1")),
        ("123456,123456.25,123456.5", ("123456 to under 123456.25", "123456.25 to 123456.5")),
        ("0,1e-7,1", ("0 to under 0.0000001", "0.0000001 to 1")),
    ],
)
def test_a_bin_has_the_exact_edges_in_its_name(bins: str, labels: tuple[str, ...]) -> None:
    assert read_bin_list(bins).labels == labels


def test_values_with_equal_texts_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="values must be all different as texts"):
        read_values([Fraction(1, 2), "1/2"])


@pytest.mark.parametrize("values", ["a,A ", "a,,b", "", [], "2020,2020.0"])
def test_values_that_are_blank_or_equal_are_refused(values: object) -> None:
    with pytest.raises(InvalidRequest, match="values must be"):
        read_values(values)


@pytest.mark.parametrize("bins", ["0..10:3", "10..0:1", "0..10", "5", "3,2", "0..1e9:1", "a,b"])
def test_bins_that_do_not_fit_are_refused(bins: str) -> None:
    with pytest.raises(InvalidRequest, match="bins"):
        read_bin_list(bins)


def test_a_bin_has_its_lower_edge_and_the_last_one_both() -> None:
    cells = read_bin_list("0..10:5")
    column = read_private_table([0, 4.999, 5, 10, 10.001, -1]).select_column(None, "column")
    assert cells.locate_rows(column) == [0, 0, 1, 1, UNLISTED, UNLISTED]


def test_unlisted_values_are_counted_as_other_if_it_is_listed() -> None:
    column = read_private_table(["a", "x", "Other", None]).select_column(None, "column")
    assert read_values("a,other").locate_rows(column) == [0, 1, 1, None]
    assert read_bin_list("0..10:5,other").other == 2


def test_a_data_frame_is_read_by_position_and_not_by_its_index() -> None:
    frame = pd.DataFrame([[1, 2], [3, 4]], columns=["age", "age"], index=[0, 0])
    table = read_private_table(frame)
    assert table.select_column("2", "column").list_numbers() == [2, 4]
    with pytest.raises(InvalidRequest, match="column must be 1 or 2"):
        table.select_column("age", "column")


def test_a_table_of_pyarrow_is_read_like_a_mapping() -> None:
    arrow = pa.table({"age": [1, None], "region": ["north", "south"]})
    for data in (arrow, arrow.to_batches()[0]):
        table = read_private_table(data)
        assert table.select_column("age", "column").list_numbers() == [Fraction(1), None]
        assert table.select_column("region", "column").list_categories() == ["north", "south"]


@pytest.mark.parametrize(
    "day", [pd.Timestamp("2020-01-31"), np.datetime64("2020-01-31T00:00"), date(2020, 1, 31)]
)
def test_a_day_of_python_is_the_same_category_as_its_text(day: object) -> None:
    assert make_category_key(day) == make_category_key("2020-01-31")
    assert make_category_key(pd.Timestamp("2020-01-31 12:00")) != make_category_key("2020-01-31")
