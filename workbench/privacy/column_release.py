"""Check which saved mechanisms and rows fit the release of a column, and account for its privacy.

`workbench privatise` uses this module in three steps:

    load_column_mechanism    the mechanism of a file -> ColumnMechanism
    ColumnRows.read          the numbers of a CSV column -> the inputs of the mechanism
    Account.from_row_cost    the privacy cost of the release; `Account.book` enters it in a ledger

A row has two budgets (`workbench.privacy.row_cost`): between neighbours, and between any two
values. For example, noise for neighbours at most 1 apart protects the difference of 30 and 31 well,
but not the difference of 30 and 90. A ledger (`workbench.privacy.release_ledger`) records the
second budget, because two people may have any two values.
"""

from __future__ import annotations

import math
import sys
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.data.csv_column import CsvColumn
from workbench.data.intervals import read_range
from workbench.data.private_table import is_missing_cell
from workbench.errors import InvalidRequest, must
from workbench.exact.arrays import Vector
from workbench.exact.numbers import Interval, parse_rational, round_up, to_jsonable
from workbench.exact.objects import Record
from workbench.io.files import format_fraction
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.mechanism import ColumnInputs, ColumnPublisher, can_publish_reals
from workbench.privacy.audit import audit_extremes
from workbench.privacy.certificate import Certificate
from workbench.privacy.claim import Claim
from workbench.privacy.expected_error import compute_expected_error
from workbench.privacy.ledger_request import LedgerRequest
from workbench.privacy.loading import read_mechanism_file
from workbench.privacy.privacy_budget import PrivacyBudget, add_budgets, budget_of_claim
from workbench.privacy.release_ledger import LedgerEntry, ReleaseLedger
from workbench.privacy.row_cost import RowCost, budget_record, compose_steps, find_exact_budget

# Names are compared without characters of these Unicode categories.
_IGNORED_CATEGORIES = frozenset(("Cc", "Cf", "Zs", "Zl", "Zp"))
_MAX_NUMBER_CHARACTERS = 40  # A longer name is not read as a number.
_MAX_LEDGER_CHARACTERS = 100  # Longer names of columns and outputs are cut in a ledger.

# The mechanisms that each `privatise` command accepts, for messages.
_ACCEPTED_MECHANISMS = {
    "noise": "additive noise on the answers 0..n, on the integers or on the reals",
    "quantizer": "a mechanism on real inputs",
    "channel": "a channel of a range or of listed answers",
}


@dataclass(frozen=True)
class ColumnMechanism:
    """A mechanism for the numbers of a column.

    Attributes:
        mechanism: Mechanism with exact masses and a neighbour relation.
        inputs: The numbers that it accepts.
        claim: The claim that its certificate proves. None without a certificate.
        notes: Sentences about its guarantee for the report.
    """

    mechanism: ColumnPublisher
    inputs: ColumnInputs
    claim: Claim | None
    notes: tuple[str, ...]

    @property
    def pure_epsilon(self) -> float | str | None:
        """Return the exact pure ε of the audit, rounded up ("inf": unbounded).

        It is None for a mechanism with a certificate.
        """
        if self.claim is not None:
            return None
        epsilon: float | str = to_jsonable(audit_extremes(self.mechanism, 0).pure_epsilon)
        return epsilon

    @cached_property
    def budget(self) -> PrivacyBudget | None:
        """Return ε and δ of one row, or None for a notion without ε and δ."""
        if self.claim is not None:
            return budget_of_claim(self.claim)
        epsilon = self.pure_epsilon
        if isinstance(epsilon, str) or epsilon is None:
            return PrivacyBudget(epsilon=None)
        return PrivacyBudget(Fraction(epsilon))

    def row_cost(self, domain: Interval | None) -> RowCost:
        """Return the privacy cost of publishing one row.

        Args:
            domain: Smallest and largest possible value. None if any number is possible.
        """
        budget = self.budget
        notion_name = "none"
        rho = None
        if self.claim:
            notion_name = self.claim.notion.name
            rho = self.claim.values.get("rho")
        sensitivity = _get_sensitivity(self.mechanism)
        condition = ""
        if sensitivity is not None:
            condition = f"at most {float(sensitivity):g} apart"
        if domain is None:
            return RowCost(
                neighbours=budget,
                any_two=PrivacyBudget(epsilon=None),
                is_local=True,
                domain=None,
                notion=notion_name,
                neighbour_condition=condition,
            )

        # If any two values are neighbours already, both budgets are the budget of the claim.
        wide_mechanism = _widen_to_domain(self.mechanism, domain)
        has_all_neighbours = wide_mechanism is self.mechanism
        if has_all_neighbours and not (budget and budget.per_distance):
            any_two = budget
            if any_two is None:
                any_two = self._budget_between_all(wide_mechanism, steps=None).round_up_epsilon()
            return RowCost(
                neighbours=budget,
                any_two=None if any_two.epsilon is None else any_two,
                is_local=False,
                domain=_format_domain(domain),
                notion=notion_name,
                rho=rho,
            )

        # Otherwise distant values may be protected less.
        steps = None
        if sensitivity is not None:
            low, high = domain
            steps = math.ceil((high - low) / sensitivity)
        any_two = self._budget_between_all(wide_mechanism, steps)
        if budget is None or budget.per_distance:
            is_local = not has_all_neighbours
            any_two = any_two.round_up_epsilon()
        elif any_two.is_within(budget):
            is_local = False
            any_two = budget
        else:
            is_local = True
            any_two = any_two.round_up_epsilon()
        wide_rho = None
        if rho is not None and steps is not None:
            wide_rho = rho * steps**2  # Group privacy of zCDP.
        return RowCost(
            neighbours=budget,
            any_two=any_two,
            is_local=is_local,
            domain=_format_domain(domain),
            notion=notion_name,
            rho=wide_rho,
            neighbour_condition=condition,
        )

    def _budget_between_all(self, wide_mechanism: Any, steps: int | None) -> PrivacyBudget:
        """Return the smallest known budget between any two values. Its ε is None if unbounded.

        Args:
            wide_mechanism: The mechanism with all values as neighbours. None if there is none.
            steps: Number of steps between neighbours from any value to any other. None if unknown.
        """
        budget = self.budget
        delta = Fraction(0) if budget is None else budget.delta
        candidates = []
        if wide_mechanism is not None:
            candidates.append(find_exact_budget(wide_mechanism, delta))
        if budget is not None and steps is not None and not budget.per_distance:
            candidates.append(compose_steps(budget, steps))
        budgets = [candidate for candidate in candidates if candidate is not None]
        bounded = [candidate for candidate in budgets if candidate.epsilon is not None]
        if not bounded:
            return PrivacyBudget(epsilon=None)
        # A budget with the δ of the claim comes first. Group privacy may have a larger δ.
        return min(bounded, key=lambda candidate: (candidate.delta > delta, candidate.epsilon))

    @property
    def expected_error(self) -> dict[str, float]:
        """Return the expected error of a published number, by name.

        It depends on the mechanism alone and never on the data.
        """
        stated_error = self.mechanism.published_error()
        if stated_error is not None:
            return stated_error
        error = compute_expected_error(self.mechanism)
        has_real_inputs = can_publish_reals(self.mechanism)
        errors = {}
        if error.worst_error is not None:
            subject = "answer"
            if has_real_inputs:
                subject = "input"
            errors[f"largest mean absolute error of any {subject}"] = round_up(error.worst_error)
        if has_real_inputs:
            mean_error = round_up(Fraction(error.mean_error))
            errors["mean absolute error of inputs spread evenly"] = mean_error
        return errors


def _widen_to_domain(mechanism: Any, domain: Interval) -> Any:
    """Return the mechanism with all values of a domain as neighbours, or None if there is none."""
    if hasattr(mechanism, "with_neighbours_over"):
        try:
            return mechanism.with_neighbours_over(*domain)
        except InvalidRequest:
            return None  # It has more neighbours than a mechanism may have.
    inputs = mechanism.inputs
    if inputs is None:
        return None
    return Channel(tuple(map(mechanism.law, inputs)))


def _format_domain(domain: Interval) -> str:
    """Format the smallest and the largest possible value as "LOW..HIGH"."""
    low, high = map(format_fraction, domain)
    return f"{low}..{high}"


def _get_sensitivity(mechanism: Any) -> Fraction | None:
    """Return the distance up to which all numbers are neighbours, or None if there is none."""
    distance = getattr(getattr(mechanism, "question", mechanism), "sensitivity", None)
    if distance is None:
        return None
    return Fraction(distance)


def load_column_mechanism(path: Path, kind: str, *, raw: bool = False) -> ColumnMechanism:
    """Load the mechanism of a file.

    Args:
        path: Path of a mechanism file or a certificate.
        kind: The `privatise` command: "noise", "quantizer" or "channel".
        raw: Whether a mechanism without a certificate is accepted.

    Raises:
        CorruptFile: The file is malformed, or its certificate does not prove the claim.
        InvalidRequest: The file has no mechanism of this kind, or no certificate.
    """
    contents = read_mechanism_file(path)
    mechanism = contents.mechanism
    inputs = getattr(mechanism, "column_inputs", None)
    if inputs is None or inputs.command != kind:
        description = "no such mechanism"
        if contents.has_neighbours and hasattr(mechanism, "describe"):
            description = mechanism.describe()
        must("mechanism", _ACCEPTED_MECHANISMS[kind], f"{path.name}: {description}")
    notes = []
    if contents.certificate is None:
        if not raw:
            got = f"{path.name}, which proves no privacy"
            must("mechanism", "a certificate (or use --raw)", got)
        notes.append(
            "The mechanism has no certificate and claims no privacy. "
            "The budget is its exact pure epsilon."
        )
    return _build_column_mechanism(mechanism, contents.certificate, notes)


def column_mechanism_of_design(design: Any) -> ColumnMechanism:
    """Return the mechanism of a design or a certificate.

    Args:
        design: A Design or a Certificate.
    """
    certificate = getattr(design, "certificate", design)
    return _build_column_mechanism(design.mechanism, certificate, notes=[])


def _build_column_mechanism(
    mechanism: Any, certificate: Certificate | None, notes: list[str]
) -> ColumnMechanism:
    """Build the column mechanism, with notes on its guarantee. It may have no certificate."""
    if mechanism.is_one_sided:
        notes.append(
            "Only one side of each pair of neighbours is protected (directed differences)."
        )
    notes += mechanism.column_cautions
    claim = None
    if certificate is not None:
        claim = certificate.claim
    return ColumnMechanism(mechanism, mechanism.column_inputs, claim, tuple(notes))


@dataclass(frozen=True)
class ColumnRows:
    """The numbers of a column, as the mechanism receives them.

    Attributes:
        file_values: Numbers of the file as doubles. Shape (n,).
        values: Numbers for the mechanism, exact and clipped if requested. Shape (n,). Integers for
            a mechanism of integers.
        clipped_count: Number of values that were clipped.
        domain: Smallest and largest possible value. None if any number is possible.
        notes: Sentences about clipping for the report.
    """

    file_values: Vector
    values: NDArray[Any]
    clipped_count: int
    domain: Interval | None
    notes: tuple[str, ...]

    @classmethod
    def read(
        cls, column: CsvColumn, subject: ColumnMechanism, *, clip: str | None = None
    ) -> ColumnRows:
        """Read the rows of a column.

        Args:
            column: Column of the file.
            subject: Mechanism that will publish the rows, with the inputs that it accepts.
            clip: "LOW..HIGH", to whose nearest end other numbers are moved, or "inputs" for the
                inputs of the mechanism. None to refuse numbers that are no inputs.

        Raises:
            InvalidRequest: A number does not fit. The error names its row and file.
        """
        inputs = subject.inputs
        input_ends = _input_ends(inputs)
        domain = read_clip_range(clip, inputs)
        values = column.exact_numbers()
        low, high = domain or input_ends
        if inputs.is_whole:
            is_fractional = np.array([value.denominator != 1 for value in values])
            column.refuse_rows(is_fractional, inputs.constraint)
        is_outside = np.array([not low <= value <= high for value in values])
        notes = []
        if clip is None:
            hint = "--clip LOW..HIGH moves them to its nearest end"
            if inputs.is_bounded:
                hint = "--clip moves them to the nearest input"
            column.refuse_rows(is_outside, inputs.constraint, hint)
        else:
            values[:] = [min(max(value, low), high) for value in values]
            notes.append(
                f"Numbers outside [{float(low):g}, {float(high):g}] were first moved to the "
                "nearest end of this range."
            )
        accepted_values: NDArray[Any] = values
        if inputs.is_whole:
            accepted_values = np.array([int(value) for value in values], dtype=np.int64)
        elif not inputs.is_exact:
            accepted_values = np.array([float(value) for value in values])
        clipped_count = int(is_outside.sum())
        return cls(
            file_values=column.numbers(),
            values=accepted_values,
            clipped_count=clipped_count,
            domain=domain,
            notes=tuple(notes),
        )


def _input_ends(inputs: ColumnInputs) -> Interval:
    """Return the smallest and the largest input of a mechanism, exactly."""
    largest = sys.float_info.max
    return Fraction(max(inputs.low, -largest)), Fraction(min(inputs.high, largest))


def read_clip_range(clip: str | None, inputs: ColumnInputs) -> Interval | None:
    """Return the range of possible values, or None if any number is possible.

    Args:
        clip: "LOW..HIGH", "inputs" for the inputs of the mechanism, or None.
        inputs: Inputs of the mechanism.

    Raises:
        InvalidRequest: The mechanism does not accept the range.
    """
    input_ends = _input_ends(inputs)
    if clip is None or clip == "inputs":
        if clip is not None and not inputs.is_bounded:
            must(
                "clip",
                "LOW..HIGH for noise that takes every number, such as --clip 0..100",
                "no range",
            )
        if inputs.is_bounded:
            return input_ends
        return None
    low, high = read_range(clip, "clip")
    lowest_input, highest_input = input_ends
    if not lowest_input <= low < high <= highest_input:
        constraint = inputs.constraint
        if inputs.is_bounded:
            constraint = f"within {_format_domain(input_ends)}"
        must("clip", constraint, clip)
    if inputs.is_whole and (low.denominator, high.denominator) != (1, 1):
        must("clip", "two integers LOW..HIGH", clip)
    return low, high


@dataclass(frozen=True)
class Account:
    """The privacy cost of a release for its report. `book` enters the release into a ledger.

    The notes and the report for the owner must not be published: the largest number of rows of one
    person, the resulting budget and the sums of a ledger are not private.

    Attributes:
        cost: Cost for one person.
        max_rows: Largest number of rows of one person. None if persons are unknown.
        notes: Sentences that may be published.
        report: Entries of the report that may be published.
        owner_notes: Sentences for the owner of the data alone.
        owner_report: Entries for the owner of the data alone.
    """

    cost: RowCost
    max_rows: int | None
    notes: list[str]
    report: Record
    owner_notes: list[str]
    owner_report: Record

    @classmethod
    def from_row_cost(cls, cost: RowCost, max_rows: int | None, *, has_ledger: bool) -> Account:
        """Build the account of a release from the cost of one row.

        Args:
            cost: Cost of one row.
            max_rows: Largest number of rows of one person. None if persons are unknown.
            has_ledger: Whether the release will be entered into a ledger.
        """
        person_cost = cost.for_rows(max_rows or 1)
        hint = ""
        if max_rows is None:
            hint = " (--person counts the rows)"
        notes = [
            "This is the budget of one row. The budget of a person with k rows is k times as "
            f"large{hint}.",
            *cost.sentences,
        ]
        if not has_ledger:
            notes.append(
                "Another release about the same people adds its budget to this one "
                "(--ledger keeps the sum)."
            )
        report = cost.to_dict()
        owner_report: Record = {
            "budget": budget_record(person_cost.neighbours),
            "rows_of_one_person": max_rows,
        }
        owner_notes = []
        if max_rows is None:
            report = report | {"budget": budget_record(cost.neighbours)}
        else:
            key = "budget_of_one_person_between_any_two_values"
            owner_report[key] = budget_record(person_cost.any_two)
            owner_notes = _describe_person(cost.neighbours, person_cost.neighbours, max_rows)
        return cls(
            cost=person_cost,
            max_rows=max_rows,
            notes=notes,
            report=report,
            owner_notes=owner_notes,
            owner_report=owner_report,
        )

    @property
    def headline(self) -> str:
        """Return the budget of one person in words."""
        return self.cost.headline

    def make_entry(self, column: str, output: str, value: bytes | None = None) -> LedgerEntry:
        """Make the entry of the release in a ledger, without the digest of the true numbers.

        Args:
            column: Name of the published column.
            output: Name of the output file.
            value: The published columns as a CSV file. None if the ledger does not keep them.
        """
        cost = self.cost
        # If the notion has no ε and its claim holds between any two values, there is no charge in ε
        # and δ.
        charge = None
        if cost.neighbours or cost.is_local:
            charge = cost.any_two
        return LedgerEntry(
            column=column[:_MAX_LEDGER_CHARACTERS],
            digest="",
            notion=cost.notion,
            neighbours=cost.neighbours,
            charge=charge,
            output=output[:_MAX_LEDGER_CHARACTERS],
            rho=cost.rho,
            value=value,
        )

    def book(
        self,
        request: LedgerRequest,
        column: str,
        file_values: Vector,
        output: str,
        value: bytes | None,
    ) -> BookedRelease:
        """Enter the release into a ledger. It is on the disk when this method returns.

        Args:
            request: The ledger and the terms that it must have.
            column: Name of the published column.
            file_values: True numbers, shape (n,). The ledger keeps only their HMAC.
            output: Name of the output file.
            value: The published columns as a CSV file. None if they are too large for the ledger.

        Raises:
            CorruptFile: The ledger is damaged.
            InvalidRequest: The ledger has other terms, or its limit would be exceeded.
        """
        release = self.make_entry(column, output, value)
        ledger = request.open(release)
        booked = ledger.book(replace(release, digest=ledger.digest(file_values)))
        last = booked[-1]
        # A column that was renamed still has the same values, and therefore the same digest.
        same_column = [
            entry for entry in booked if entry.column == last.column or entry.digest == last.digest
        ]
        total = None
        if len(same_column) > 1:
            total = add_budgets([entry.charge for entry in same_column])
        owner_report = {
            "releases_of_this_column": len(same_column),
            "budget_of_all_releases_of_this_column": budget_record(total),
        }
        notes = _describe_sum(same_column, "this column")
        if len(booked) > len(same_column):
            notes += _describe_sum(booked, "these data")
        if ledger.terms.epsilon is not None:
            remaining = ledger.describe_remaining_budget(booked)
            notes.append(f"The ledger {request.path.name} has {remaining} left.")
        return BookedRelease(ledger, last.number, notes, owner_report)


@dataclass(frozen=True)
class BookedRelease:
    """A release in a ledger.

    Attributes:
        ledger: Ledger that has the release.
        number: Number of the release in the ledger.
        notes: Sentences for the owner of the data alone.
        owner_report: Entries for the owner of the data alone.
    """

    ledger: ReleaseLedger
    number: int
    notes: list[str]
    owner_report: Record

    def withdraw(self) -> None:
        """Remove the release from the ledger, if it was certainly not published."""
        self.ledger.withdraw(self.number)


def count_max_rows_per_person(person: CsvColumn) -> int:
    """Count the rows of the person with most rows.

    Different spellings of one name are one person, such as 7, 07 and 7.0, or Ann and ANN. If two
    persons are taken for one, the budget is too large, which is safe. If one person were taken for
    two, it would be too small.

    Args:
        person: Column with the name of the person of each row.

    Raises:
        InvalidRequest: A cell is empty, or a text such as NA that means a missing value.
    """
    names = [normalise_person_name(cell) for cell in person.cells]
    for row, name in enumerate(names):
        # The row may be one of a person who is named in other rows.
        if is_missing_cell(name):
            place = person.table.describe_row(row)
            raise InvalidRequest(
                f"{place} must say whose row it is. Got an empty cell, or a text such as NA."
            )
    return max(Counter(names).values())


def normalise_person_name(cell: str) -> str:
    """Return a name in one spelling.

    Letters become lower case. Spaces and invisible characters are removed. A number gets its
    shortest spelling.
    """
    folded_name = unicodedata.normalize("NFKC", cell).casefold()
    # Folding the case may produce characters that are not in normal form.
    characters = unicodedata.normalize("NFKC", folded_name)
    visible = [c for c in characters if unicodedata.category(c) not in _IGNORED_CATEGORIES]
    name = "".join(visible)
    number = None
    if name.isascii() and len(name) < _MAX_NUMBER_CHARACTERS:
        number = parse_rational(name)
    if number is None:
        return name
    return str(number)


def _describe_sum(releases: Sequence[LedgerEntry], subject: str) -> list[str]:
    """Describe the sum of several releases. A single release needs no sentence."""
    if len(releases) == 1:
        return []
    total = add_budgets([release.charge for release in releases])
    number = f"This is release {len(releases)} of {subject} in the ledger"
    if total is None:
        return [
            f"{number}. Their budgets are of different kinds, which are not added here, "
            "but the privacy losses do add up."
        ]
    return [f"{number}: budgets add up to {total} (basic composition)."]


def _describe_person(
    row_budget: PrivacyBudget | None, person_budget: PrivacyBudget | None, max_rows: int
) -> list[str]:
    """Describe the budget of the person with most rows."""
    if max_rows == 1:
        return ["No person has more than one row."]
    if person_budget is None:
        return [
            f"One person has up to {max_rows} rows, whose privacy losses add up. The budgets of "
            "this notion are not added here."
        ]
    return [
        f"One person has up to {max_rows} rows, each with {row_budget}: "
        f"together {person_budget} (basic composition)."
    ]
