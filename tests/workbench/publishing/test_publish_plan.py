"""Test plans: several statistics under one budget, with one booking.

A plan splits its ε by weights, or so that all statistics have the same relative error.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import workbench as wb
from workbench.errors import InvalidRequest
from workbench.privacy.release_ledger import ReleaseLedger
from workbench.publishing.plan import read_plan, read_planned_statistics, split_budget

PEOPLE = {"age": [20, 30, 40, 99], "smoker": ["yes", "no", "yes", "no"]}
PLAN = {
    "expected-rows": 2000,
    "statistic": [
        {"kind": "count", "where": "smoker=yes"},
        {"kind": "mean", "column": "age", "range": "18..95"},
        {"kind": "sum", "column": "age", "range": "18..95"},
        {"kind": "histogram", "column": "smoker", "values": ["yes", "no"]},
    ],
}


def test_relative_errors_are_equal() -> None:
    planned = read_planned_statistics(read_plan(PLAN))
    requests = split_budget(planned, Fraction(1), Fraction(0))
    errors = [
        statistic.measure_relative_error(request.epsilon)
        for statistic, request in zip(planned, requests, strict=True)
    ]
    assert max(errors) < min(errors) * 1.001


def test_the_budgets_add_up_exactly() -> None:
    planned = read_planned_statistics(read_plan(PLAN))
    requests = split_budget(planned, Fraction(1, 3), Fraction(0))
    assert sum(request.epsilon for request in requests) == Fraction(1, 3)


def test_weights_split_the_budget() -> None:
    plan = {"statistic": [{"kind": "count", "weight": 1}, {"kind": "count", "weight": 3}]}
    release = wb.publish.plan(plan, epsilon=1, dry_run=True)
    assert [member.epsilon for member in release.releases] == [Fraction(1, 4), Fraction(3, 4)]


def test_a_plan_is_one_booking_of_the_whole_budget(tmp_path: Path) -> None:
    ledger = tmp_path / "people.ledger"
    wb.publish.plan(PLAN, PEOPLE, epsilon=1, ledger=ledger, total=2)
    (entry,) = ReleaseLedger.open(ledger).releases
    assert entry.charge.epsilon == 1


def test_the_guarantee_is_that_of_the_composition() -> None:
    release = wb.publish.plan(PLAN, epsilon=1, dry_run=True)
    assert "at most 74 of 100 cases" in release.guarantee[1]


def test_the_data_are_found_beside_the_plan(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("age\n20\n30\n")
    plan = tmp_path / "plan.toml"
    plan.write_text(
        'data = "people.csv"\nepsilon = 200\n[[statistic]]\nkind = "count"\nweight = 1\n'
    )
    assert wb.publish.plan(plan).value == [2]


def test_expected_rows_of_the_call_replace_those_of_the_plan() -> None:
    plan = {"statistic": [{"kind": "count"}, {"kind": "sum", "column": "age", "range": "0..1"}]}
    release = wb.publish.plan(plan, epsilon=1, expected_rows=50, dry_run=True)
    assert sum(member.epsilon for member in release.releases) == 1


def test_shared_rows_do_not_apply_to_a_mean_of_groups() -> None:
    groups = {"kind": "mean", "column": "age", "range": "0..99", "by": "sex", "values": "f,m"}
    total = {"kind": "sum", "column": "age", "range": "0..99"}
    statistics = [{**groups, "weight": 1}, {**total, "weight": 1}]
    release = wb.publish.plan({"rows": 4, "statistic": statistics}, epsilon=1, dry_run=True)
    assert [member.statistic.public_rows for member in release.releases] == [None, None]


@pytest.mark.parametrize("header", [0, 1, "yes"])
def test_a_header_of_a_plan_that_is_no_truth_value_is_refused(header: object) -> None:
    plan = {"header": header, "statistic": [{"kind": "count", "weight": 1}]}
    with pytest.raises(InvalidRequest, match="header must be True or False"):
        wb.publish.plan(plan, {"age": [1]}, epsilon=1)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({"statistic": []}, "1 to 100 tables"),
        ({"statistic": [{"kind": "median"}]}, "kind must be one of count"),
        ({"statistic": [{"kind": "count", "epsilon": 1}]}, "entry of a statistic"),
        ({"budget": 1, "statistic": [{"kind": "count"}]}, "entry of a plan"),
        ({"statistic": [{"kind": "count"}]}, "expected_rows must be given"),
        (
            {"statistic": [{"kind": "count", "weight": 1}, {"kind": "count"}]},
            "weight must be given for all",
        ),
    ],
)
def test_a_wrong_plan_names_its_entry(plan: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        wb.publish.plan(plan, epsilon=1, dry_run=True)
