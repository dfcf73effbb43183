"""Test the differences of a query that are read from a table of the values that a person may have.

They are compared with all datasets of three people of which one differs.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from workbench.data.input_weights import count_column
from workbench.data.query_differences import list_query_differences
from workbench.io.files import forbid_file_access

STEPS_OF_HALF = "sum(over=load, step=0.5)"


def _write_table(folder: Path, loads: list[str]) -> Path:
    """Write a table with the columns house and load."""
    path = folder / "meters.csv"
    rows = [f"h{number},{load}" for number, load in enumerate(loads)]
    path.write_text("\n".join(["house,load", *rows]) + "\n")
    return path


def _observe_differences(loads: list[str], step: Fraction) -> set[int]:
    """Return |Q(X) - Q(X')| > 0 over all datasets of three people of which one differs."""
    values = [Fraction(load) for load in loads]
    differences = set()
    for old_value, new_value, others in product(values, values, product(values, repeat=2)):
        old_answer = (old_value + sum(others)) // step
        new_answer = (new_value + sum(others)) // step
        differences.add(abs(old_answer - new_answer))
    return differences - {0}


@pytest.mark.parametrize(
    "loads", [["0", "0.5", "1.2", "2.6"], ["0.1", "0.2", "0.7"], ["-1.3", "0", "4"]]
)
def test_no_dataset_shows_another_difference(tmp_path: Path, loads: list[str]) -> None:
    listed = list_query_differences(_write_table(tmp_path, loads), STEPS_OF_HALF)
    assert _observe_differences(loads, Fraction(1, 2)) <= {*listed}


def test_rounding_adds_the_next_number_of_steps(tmp_path: Path) -> None:
    """A change of 2.6 is 5.2 steps of 0.5, so five or six whole steps."""
    path = _write_table(tmp_path, ["0", "2.6"])
    assert list_query_differences(path, STEPS_OF_HALF) == [5, 6]


def test_integers_need_no_step(tmp_path: Path) -> None:
    path = _write_table(tmp_path, ["0", "3", "4", "4"])
    assert list_query_differences(path, "sum(over=load)") == [1, 3, 4]


def test_a_design_has_the_differences_of_the_table(tmp_path: Path) -> None:
    path = _write_table(tmp_path, ["0", "3", "4"])
    design = wb.design("modulo", n=10, data=path, query="sum(over=load)", epsilon=1)
    assert design.question == wb.ModuloNoise(n=10, shifts=[1, 3, 4])
    by_hand = wb.design("modulo", n=10, shifts=[1, 3, 4], epsilon=1)
    assert design.objective == by_hand.objective


def test_a_report_says_where_the_differences_come_from(tmp_path: Path) -> None:
    path = _write_table(tmp_path, ["0", "1"])
    design = wb.design("modulo", n=3, data=path, query="sum(over=load)", epsilon=1)
    assert any("Values that it does not list are not protected" in note for note in design.words)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"query": "mean(load)"}, 'query must be a text such as "sum(over=load)"'),
        ({"query": "sum(over=load, step=0)"}, "query's step must be"),
        ({"query": "sum(over=power)"}, "one of house, load, or 1 to 2"),
        ({"query": None}, "data and query must be given together"),
        ({"data": "none.csv"}, "data must be a CSV file"),
        ({"n": 2}, "n must be at least 3, the largest difference of two answers. Got 2."),
        ({"n": None}, "n must be given with data"),
        ({"max_shift": 1}, "max_shift must be left out where data and query give"),
        ({"directed": True}, "directed must be left out where data and query give"),
    ],
)
def test_unsuitable_tables_and_queries_are_refused(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    path = _write_table(tmp_path, ["0", "3"])
    request = {"n": 5, "data": path, "query": "sum(over=load)", "epsilon": 1, **options}
    with pytest.raises(wb.InvalidRequest) as error:
        wb.design("modulo", **request)
    assert message in str(error.value)


def test_fractions_without_a_step_are_refused(tmp_path: Path) -> None:
    path = _write_table(tmp_path, ["0", "0.5"])
    with pytest.raises(
        wb.InvalidRequest, match="data must be integers where the query has no step"
    ):
        list_query_differences(path, "sum(over=load)")


def test_a_table_of_one_value_is_refused(tmp_path: Path) -> None:
    path = _write_table(tmp_path, ["1", "1"])
    with pytest.raises(wb.InvalidRequest, match="2 to 3000 different values"):
        list_query_differences(path, "sum(over=load)")


def test_a_remote_user_learns_nothing_about_the_files_of_a_server(tmp_path: Path) -> None:
    existing = _write_table(tmp_path, ["0", "3"])
    for path in (existing, tmp_path / "none.csv", tmp_path):
        with forbid_file_access():
            with pytest.raises(wb.InvalidRequest, match="data must be spelled out"):
                list_query_differences(path, "sum(over=load)")
            with pytest.raises(wb.InvalidRequest, match="prior must be spelled out"):
                count_column(path, "load")
