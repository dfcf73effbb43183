"""A column of data through a saved mechanism: which mechanism may be used, which rows fit it, what it all costs.

What a row costs has two numbers (`workbench.privacy.row_cost`): between neighbours, and between any two values. A
release is entered in a ledger (`workbench.privacy.release_ledger`) at the second: no neighbour relation of
numbers is one of people.
"""

from __future__ import annotations

import math
import sys
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.data.csv_column import CsvColumn
from workbench.data.intervals import read_range
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
from workbench.privacy.loading import read_mechanism_file
from workbench.privacy.privacy_budget import PrivacyBudget, add_budgets, budget_of_claim
from workbench.privacy.release_ledger import LedgerTerms, Release, ReleaseLedger
from workbench.privacy.row_cost import RowCost, budget_record, compose_steps, find_exact_budget

_IGNORED_CATEGORIES = frozenset(
    ("Cc", "Cf", "Zs", "Zl", "Zp")
)  # Categories of characters that do not tell names apart.
_MAX_NUMBER_CHARACTERS = 40  # Names of more characters are not read as numbers.

_ACCEPTED_MECHANISMS = {
    "noise": "additive noise on the answers 0..n, on the integers or on the reals",
    "quantizer": "a mechanism on real inputs",
    "channel": "a channel of a range",
}


@dataclass(frozen=True)
class ColumnMechanism:
    """A mechanism for the numbers of a column. inputs: those it takes; claim: what its certificate proves, None
    without one."""

    mechanism: ColumnPublisher
    inputs: ColumnInputs
    claim: Claim | None
    notes: tuple[str, ...]

    @property
    def pure_epsilon(self) -> float | str | None:
        """Without a certificate, the exact pure ε of the audit, rounded up ("inf": unbounded)."""
        if self.claim is not None:
            return None
        reached: float | str = to_jsonable(audit_extremes(self.mechanism, 0).pure_epsilon)
        return reached

    @cached_property
    def budget(self) -> PrivacyBudget | None:
        """ε and δ of one row; None for a notion without them."""
        if self.claim is not None:
            return budget_of_claim(self.claim)
        reached = self.pure_epsilon
        return PrivacyBudget(
            None if isinstance(reached, str) or reached is None else Fraction(reached)
        )

    def row_cost(self, domain: Interval | None) -> RowCost:
        """What a row costs whose value may be any in a domain; None: any number."""
        budget, claim = self.budget, self.claim
        notion = claim.notion.name if claim else "none"
        rho = claim.values.get("rho") if claim else None
        distance = _get_sensitivity(self.mechanism)
        within = "" if distance is None else f"at most {float(distance):g} apart"
        if domain is None:
            return RowCost(
                budget, PrivacyBudget(None), True, None, notion, neighbour_condition=within
            )
        words = _format_domain(domain)
        joined = _widen_to_domain(self.mechanism, domain)
        if joined is self.mechanism and not (budget and budget.per_distance):
            pure = self._between_all(joined, None).round_up_epsilon() if budget is None else budget
            return RowCost(
                budget, None if pure.epsilon is None else pure, False, words, notion, rho
            )
        steps = None if distance is None else math.ceil((domain[1] - domain[0]) / distance)
        any_two = self._between_all(joined, steps)
        if budget is None or budget.per_distance:
            is_local, any_two = joined is not self.mechanism, any_two.round_up_epsilon()
        else:
            is_local = not any_two.is_within(budget)
            any_two = any_two.round_up_epsilon() if is_local else budget
        far = None if rho is None or steps is None else rho * steps**2
        return RowCost(budget, any_two, is_local, words, notion, far, within)

    def _between_all(self, joined: Any, steps: int | None) -> PrivacyBudget:
        """The least budget that is known where all values are neighbours. joined: the mechanism with that relation, if
        there is one; steps: from any value to any other between neighbours."""
        budget = self.budget
        delta = Fraction(0) if budget is None else budget.delta
        known = [find_exact_budget(joined, delta)] if joined is not None else []
        if budget is not None and steps is not None and not budget.per_distance:
            known.append(compose_steps(budget, steps))
        finite = [each for each in known if each is not None and each.epsilon is not None]
        return (
            min(finite, key=lambda each: (each.delta > delta, each.epsilon))
            if finite
            else PrivacyBudget(None)
        )

    @property
    def expected_error(self) -> dict[str, float]:
        """What a published number is off by, on average; of the mechanism alone, never of the data."""
        stated = self.mechanism.published_error()
        if stated is not None:
            return stated
        error, real = compute_expected_error(self.mechanism), can_publish_reals(self.mechanism)
        name = f"largest mean absolute error of any {'input' if real else 'answer'}"
        stated = {} if error.worst_error is None else {name: round_up(error.worst_error)}
        if real:
            stated["mean absolute error of inputs spread evenly"] = round_up(
                Fraction(error.mean_error)
            )
        return stated


def _widen_to_domain(mechanism: Any, domain: Interval) -> Any:
    """The mechanism where every two values of a domain are neighbours; None where there is none."""
    if hasattr(mechanism, "with_neighbours_over"):
        try:
            return mechanism.with_neighbours_over(*domain)
        except InvalidRequest:  # It has more neighbours than a mechanism may have.
            return None
    inputs = mechanism.inputs
    return None if inputs is None else Channel(tuple(map(mechanism.law, inputs)))


def _format_domain(domain: Interval) -> str:
    low, high = map(format_fraction, domain)
    return f"{low}..{high}"


def _get_sensitivity(mechanism: Any) -> Fraction | None:
    """The distance up to which all numbers are neighbours, of a mechanism that has one."""
    distance = getattr(getattr(mechanism, "question", mechanism), "sensitivity", None)
    return None if distance is None else Fraction(distance)


def load_column_mechanism(path: Path, kind: str, *, raw: bool = False) -> ColumnMechanism:
    """The mechanism in a file. kind: the command's, as "noise"; raw: take one without a certificate.

    Raises CorruptFile, also where a certificate does not prove its claim, and InvalidRequest.
    """
    stored = read_mechanism_file(path)
    mechanism = stored.mechanism
    inputs = getattr(mechanism, "column_inputs", None)
    if inputs is None or inputs.command != kind:
        got = (
            mechanism.describe()
            if stored.has_neighbours and hasattr(mechanism, "describe")
            else "no such mechanism"
        )
        must("mechanism", _ACCEPTED_MECHANISMS[kind], f"{path.name}: {got}")
    words = []
    if stored.certificate is None:
        if not raw:
            must(
                "mechanism", "a certificate (or use --raw)", f"{path.name}, which proves no privacy"
            )
        words.append(
            "The mechanism has no certificate and claims no privacy: the budget is its exact pure epsilon."
        )
    return _build_column_mechanism(mechanism, stored.certificate, words)


def column_mechanism_of_design(design: Any) -> ColumnMechanism:
    """The mechanism of a design, or of a certificate."""
    return _build_column_mechanism(design.mechanism, getattr(design, "certificate", design), [])


def _build_column_mechanism(
    mechanism: Any, certificate: Certificate | None, words: list[str]
) -> ColumnMechanism:
    if mechanism.is_one_sided:
        words.append(
            "Only one side of each pair of neighbours is protected (directed differences)."
        )
    words += mechanism.column_cautions
    inputs = mechanism.column_inputs
    return ColumnMechanism(
        mechanism, inputs, None if certificate is None else certificate.claim, tuple(words)
    )


@dataclass(frozen=True)
class ColumnRows:
    """The numbers of a column as a mechanism takes them.

    given: as they are in the file, as doubles; values: as they are written, clipped where asked, integers (n,) for a
    mechanism of whole numbers; clipped: how many were; domain: the values that are possible, None where any number is.
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
        """The rows of a column.

        Args:
            column: of the file.
            subject: the mechanism.
            clip: "LOW..HIGH", to the nearest end of which other numbers are moved; "inputs" for the inputs of the
                mechanism; None: what is no input is refused.

        Raises:
            InvalidRequest: with the row and the file for what does not fit.
        """
        inputs = subject.inputs
        ends = _input_ends(inputs)
        domain = read_clip_range(clip, inputs)
        values = column.exact_numbers()
        low, high = domain or ends
        if inputs.is_whole:
            column.refuse_rows(
                np.array([value.denominator != 1 for value in values]), inputs.constraint
            )
        outside = np.array([not low <= value <= high for value in values])
        if clip is None:
            wanted = "--clip moves them to the nearest input"
            more = wanted if inputs.is_bounded else "--clip LOW..HIGH moves them to its nearest end"
            column.refuse_rows(outside, inputs.constraint, more)
        words = []
        if clip is not None:
            values[:] = [min(max(value, low), high) for value in values]
            words.append(
                f"Numbers outside [{float(low):g}, {float(high):g}] were moved to the nearest of them first."
            )
        taken: NDArray[Any] = values
        if inputs.is_whole:
            taken = np.array([int(value) for value in values], dtype=np.int64)
        elif not inputs.is_exact:
            taken = np.array([float(value) for value in values])
        return cls(column.numbers(), taken, int(outside.sum()), domain, tuple(words))


def _input_ends(inputs: ColumnInputs) -> Interval:
    """The least and the largest number of a mechanism, exactly."""
    largest = sys.float_info.max
    return Fraction(max(inputs.low, -largest)), Fraction(min(inputs.high, largest))


def read_clip_range(clip: str | None, inputs: ColumnInputs) -> Interval | None:
    """The values that are possible: those of the option, or the inputs of a mechanism that has ends; None for any.

    Raises InvalidRequest for an option that the mechanism cannot take.
    """
    ends = _input_ends(inputs)
    if clip is None or clip == "inputs":
        if clip is not None and not inputs.is_bounded:
            must(
                "clip",
                "LOW..HIGH for noise that takes every number, such as --clip 0..100",
                "no range",
            )
        return ends if inputs.is_bounded else None
    low, high = read_range(clip, "clip")
    if not ends[0] <= low < high <= ends[1]:
        must(
            "clip",
            f"within {_format_domain(ends)}" if inputs.is_bounded else inputs.constraint,
            clip,
        )
    if inputs.is_whole and (low.denominator, high.denominator) != (1, 1):
        must("clip", "two integers LOW..HIGH", clip)
    return low, high


@dataclass(frozen=True)
class Account:
    """What a release costs, in words and for its report; `book` enters it into a ledger.

    own_words, own: for the owner of the data alone. The largest number of rows of one person, the budget it makes and
    the sums of a ledger are not private, and stand in nothing that is published.
    """

    cost: RowCost
    max_rows: int | None
    notes: list[str]
    report: Record
    owner_notes: list[str]
    owner_report: Record

    @classmethod
    def from_row_cost(cls, cost: RowCost, max_rows: int | None, *, has_ledger: bool) -> Account:
        """What publishing a column costs. most: the largest number of rows of one person, None where persons are not
        known; has_ledger: whether it will be booked."""
        whole = cost.for_rows(max_rows or 1)
        counts = " (--person counts them)" if max_rows is None else ""
        words = [
            f"The budget is that of one row; of somebody with k rows it is k times as large{counts}.",
            *cost.sentences,
        ]
        if not has_ledger:
            words.append(
                "Another release of the same people's data adds its budget to this one (--ledger adds up)."
            )
        report = cost.to_dict() | (
            {"budget": budget_record(cost.neighbours)} if max_rows is None else {}
        )
        own = {"budget": budget_record(whole.neighbours), "rows_of_one_person": max_rows}
        if max_rows is not None:
            own["budget_of_one_person_between_any_two_values"] = budget_record(whole.any_two)
        own_words = (
            []
            if max_rows is None
            else _describe_person(cost.neighbours, whole.neighbours, max_rows)
        )
        return cls(whole, max_rows, words, report, own_words, own)

    @property
    def headline(self) -> str:
        """The budget of one person."""
        return self.cost.headline

    def book(
        self, path: Path, terms: LedgerTerms, column: str, file_values: Vector, output: str
    ) -> BookedRelease:
        """Enter the release into a ledger, which is on the disk when this returns.

        path: of the ledger, made with these terms where there is none; given: the true numbers. Raises CorruptFile and
        InvalidRequest, also where the ledger has other terms, or not so much left.
        """
        ledger = ReleaseLedger.open(path, terms)
        fixed, person = ledger.terms, terms.person
        if terms.epsilon is not None and (terms.epsilon, terms.delta) != (
            fixed.epsilon,
            fixed.delta,
        ):
            limit = (
                "no limit"
                if fixed.epsilon is None
                else str(PrivacyBudget(fixed.epsilon, fixed.delta))
            )
            must(
                "ledger_limit",
                f"left out, as {path.name} has {limit}",
                PrivacyBudget(terms.epsilon, terms.delta),
            )
        if fixed.relation != "replace":
            must(
                "ledger",
                "one for data sets of as many rows (replace)",
                f"{path.name}, for {fixed.relation}",
            )
        if fixed.person != person:
            wanted = "left out" if fixed.person is None else repr(fixed.person)
            must("person", f"{wanted}, as {path.name} says of all its releases", repr(person))
        cost = self.cost
        # A notion without an epsilon that holds between any two values is not booked in another one's terms.
        charge = cost.any_two if cost.neighbours or cost.is_local else None
        release = Release(
            column[:100],
            ledger.digest(file_values),
            cost.notion,
            cost.neighbours,
            charge,
            output[:100],
            cost.rho,
        )
        booked = ledger.book(release)
        last = booked[-1]
        same = [each for each in booked if each.column == last.column or each.digest == last.digest]
        total = add_budgets([each.charge for each in same]) if len(same) > 1 else None
        own = {
            "releases_of_this_column": len(same),
            "budget_of_all_releases_of_this_column": budget_record(total),
        }
        words = _describe_sum(same, "this column")
        words += _describe_sum(booked, "these data") if len(booked) > len(same) else []
        if fixed.epsilon is not None:
            words.append(
                f"The ledger {path.name} has {ledger.describe_remaining_budget(booked)} left."
            )
        return BookedRelease(ledger, last.number, words, own)


@dataclass(frozen=True)
class BookedRelease:
    """A release in a ledger. words, own: for the owner of the data alone."""

    ledger: ReleaseLedger
    number: int
    notes: list[str]
    owner_report: Record

    def withdraw(self) -> None:
        """Take it out again: it was certainly not published."""
        self.ledger.withdraw(self.number)


def count_max_rows_per_person(person: CsvColumn) -> int:
    """The largest number of rows with one entry in a column. Raises InvalidRequest.

    Spellings of one name are one person, such as 7, 07 and 7.0, or Ann and ANN: two persons who are taken for one make
    the budget too large, one who is taken for two makes it too small.
    """
    names = [_normalise_name(cell) for cell in person.cells]
    if "" in names:
        raise InvalidRequest(
            f"{person.table.describe_row(names.index(''))} must say whose row it is. Got an empty cell."
        )
    return max(Counter(names).values())


def _normalise_name(cell: str) -> str:
    """A name in one spelling: without case, spaces and characters that are not seen, a number in its least digits."""
    characters = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", cell).casefold())
    name = "".join(
        each for each in characters if unicodedata.category(each) not in _IGNORED_CATEGORIES
    )
    number = parse_rational(name) if name.isascii() and len(name) < _MAX_NUMBER_CHARACTERS else None
    return name if number is None else str(number)


def _describe_sum(releases: Sequence[Release], what: str) -> list[str]:
    """What the last of some releases makes of their sum; nothing of one alone."""
    if len(releases) == 1:
        return []
    total = add_budgets([release.charge for release in releases])
    number = f"This is release {len(releases)} of {what} in the ledger"
    if total is None:
        return [
            f"{number}; their budgets are of kinds that are not added up here, but they do add up."
        ]
    return [f"{number}: budgets add up to {total} (basic composition)."]


def _describe_person(
    row: PrivacyBudget | None, whole: PrivacyBudget | None, most: int
) -> list[str]:
    if most == 1:
        return ["No person has more than one row."]
    if whole is None:
        return [
            f"One person has up to {most} rows, whose budgets add up; this notion's are not added up here."
        ]
    return [
        f"One person has up to {most} rows, each with {row}: together {whole} (basic composition)."
    ]
