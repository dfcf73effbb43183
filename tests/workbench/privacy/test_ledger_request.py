"""Test the ledger options of commands, and the exact decision of the rule of zCDP.

A ledger of releases books the budget of every release and refuses one beyond its total. A
`LedgerRequest` has the options of a command that books a release. The rule of zCDP converts the sum
of all ρ into ε at the total δ.
"""

from __future__ import annotations

import json
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from workbench.privacy.ledger_request import LedgerRequest
from workbench.privacy.privacy_budget import PrivacyBudget
from workbench.privacy.release_ledger import LedgerEntry, LedgerTerms, ReleaseLedger

# Twenty totals (ε, δ) of zCDP.
TOTALS = [
    (epsilon, delta)
    for epsilon in ("0.01", "0.5", "1", "3", "20")
    for delta in ("0.1", "1e-3", "1e-6", "1e-12")
]


def make_release(rho: Fraction) -> LedgerEntry:
    """Make a release with a ρ of zCDP."""
    return LedgerEntry(
        column="count",
        digest="",
        notion="zcdp",
        neighbours=None,
        charge=None,
        output="",
        rho=rho,
    )


@pytest.mark.parametrize(("epsilon", "delta"), TOTALS)
def test_the_rule_of_zcdp_is_decided_exactly(tmp_path: Path, epsilon: str, delta: str) -> None:
    """The largest ρ solves ρ + 2 √(ρ ln(1/δ)) = ε. Here it is computed with 80 decimal digits."""
    with localcontext() as context:
        context.prec = 80
        log_term = -Decimal(delta).ln()
        root = (log_term + Decimal(epsilon)).sqrt() - log_term.sqrt()
        max_rho = Fraction(root * root)
    terms = LedgerTerms(accounting="zcdp", epsilon=Fraction(epsilon), delta=Fraction(delta))
    ledger = ReleaseLedger.create(tmp_path / "account", terms)
    margin = Fraction(1, 10**50)
    with pytest.raises(wb.InvalidRequest, match="left"):
        ledger.book(make_release(max_rho * (1 + margin)))
    ledger.book(make_release(max_rho * (1 - margin)))
    with pytest.raises(wb.InvalidRequest, match="left"):
        ledger.book(make_release(2 * max_rho * margin))


def test_a_pure_release_costs_half_of_its_squared_epsilon() -> None:
    budget = PrivacyBudget(Fraction(1, 3))
    entry = LedgerEntry(
        column="count", digest="", notion="pure", neighbours=budget, charge=budget, output=""
    )
    assert entry.zcdp_rho == Fraction(1, 18)
    assert entry.describe_cost("zcdp") == "rho = 0.055555555555555556"


@pytest.mark.parametrize(
    "budget",
    [
        PrivacyBudget(Fraction(1, 3), Fraction(1, 10**9)),
        PrivacyBudget(None),
        PrivacyBudget(Fraction(1), per_distance=True),
    ],
    ids=["with delta", "unbounded", "per distance"],
)
def test_a_budget_that_is_not_pure_has_no_rho(budget: PrivacyBudget) -> None:
    assert budget.zcdp_rho is None


def test_opening_a_request_makes_a_ledger_with_its_total(tmp_path: Path) -> None:
    path = tmp_path / "account"
    request = LedgerRequest.read(path, "replace", total="1/3", total_delta="1e-6")
    assert request is not None
    assert not path.exists()
    terms = request.open().terms
    assert (terms.epsilon, terms.delta) == (Fraction(1, 3), Fraction(1, 10**6))


@pytest.fixture
def ledger_path(tmp_path: Path) -> Path:
    """Return the path of a ledger between data sets of equal size, with ε = 1/3 and δ = 1e-6."""
    path = tmp_path / "account"
    request = LedgerRequest.read(path, "replace", total="1/3", total_delta="1e-6")
    assert request is not None
    request.open()
    return path


@pytest.mark.parametrize("options", [{}, {"total": "1/3", "total_delta": "1e-6"}])
def test_an_existing_ledger_needs_no_total_and_accepts_its_own(
    ledger_path: Path, options: dict[str, Any]
) -> None:
    assert LedgerRequest.read(ledger_path, "replace", **options) is not None


@pytest.mark.parametrize(
    "options", [{"total": 1}, {"total": "1/3"}, {"total": "inf"}, {"accounting": "zcdp"}]
)
def test_an_existing_ledger_refuses_another_total_or_rule(
    ledger_path: Path, options: dict[str, Any]
) -> None:
    with pytest.raises(wb.InvalidRequest, match="must be left out, as account has"):
        LedgerRequest.read(ledger_path, "replace", **options)


def test_an_existing_ledger_refuses_another_relation_of_data_sets(ledger_path: Path) -> None:
    with pytest.raises(
        wb.InvalidRequest, match="ledger must be one for data sets with and without"
    ):
        LedgerRequest.read(ledger_path, "add-remove")


def test_an_existing_ledger_refuses_another_column_of_persons(ledger_path: Path) -> None:
    with pytest.raises(wb.InvalidRequest, match="person must be left out"):
        LedgerRequest.read(ledger_path, "replace", person="who")


def test_a_total_of_inf_makes_a_ledger_that_only_adds_up(tmp_path: Path) -> None:
    path = tmp_path / "account"
    request = LedgerRequest.read(path, "replace", total="inf")
    assert request is not None
    assert request.open().terms.epsilon is None
    assert LedgerRequest.read(path, "replace", total="inf") is not None
    with pytest.raises(wb.InvalidRequest, match="as account has no limit"):
        LedgerRequest.read(path, "replace", total=4)


@pytest.mark.parametrize("options", [{"total": 1}, {"total_delta": 0}, {"accounting": "basic"}])
def test_terms_without_a_ledger_are_refused(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(wb.InvalidRequest, match=f"^{name} must be given with a ledger"):
        LedgerRequest.read(None, "replace", **options)
    assert LedgerRequest.read(None, "replace") is None


def write_json_ledger(path: Path) -> bytes:
    """Write a JSON ledger of an earlier version with one release of ε = 1.5. Return its bytes."""
    budget = {"epsilon": "1.5", "delta": "0.01", "per_distance": False}
    entry = {"column": "age", "digest": "cd", "notion": "dp", "budget": budget, "output": "o.csv"}
    head = {"format": "dp-workbench releases", "version": 1, "key": "ab" * 32}
    path.write_text(json.dumps(head | {"releases": [entry]}))
    return path.read_bytes()


@pytest.mark.parametrize(("relation", "accounting"), [("add-remove", "basic"), ("replace", "zcdp")])
def test_a_json_ledger_is_not_carried_over_to_another_relation_or_rule(
    tmp_path: Path, relation: str, accounting: str
) -> None:
    """Its releases were booked between data sets of equal size, with ε and δ."""
    path = tmp_path / "account"
    before = write_json_ledger(path)
    request = LedgerRequest.read(path, relation, accounting=accounting, total=9, total_delta="1e-6")
    assert request is not None
    with pytest.raises(wb.InvalidRequest, match="used with replace and basic accounting"):
        request.open()
    assert path.read_bytes() == before


def test_a_json_ledger_is_not_carried_over_by_showing_it(tmp_path: Path) -> None:
    """It would have no limit, before its owner could give a total."""
    path = tmp_path / "account"
    before = write_json_ledger(path)
    with pytest.raises(wb.InvalidRequest, match="the next release with --ledger converts it"):
        ReleaseLedger.open(path)
    assert path.read_bytes() == before


def test_a_json_ledger_is_carried_over_with_a_total(tmp_path: Path) -> None:
    path = tmp_path / "account"
    write_json_ledger(path)
    request = LedgerRequest.read(path, "replace", total=2, total_delta="0.01")
    assert request is not None
    ledger = request.open()
    assert ledger.describe_remaining_budget(ledger.releases) == "epsilon = 0.5"
    reopened = LedgerRequest.read(path, "replace")
    assert reopened is not None
    assert reopened.open().terms == ledger.terms
