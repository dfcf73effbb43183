"""Book releases in a ledger, and write the private report for the owner of the data."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from workbench.data.plain import read_boolean
from workbench.errors import must
from workbench.exact.numbers import ZERO, read_positive, read_probability
from workbench.io.files import others_can_read, read_file_path, require_distinct_files, write_json
from workbench.privacy.privacy_budget import PrivacyBudget
from workbench.privacy.release_ledger import LedgerEntry, LedgerTerms, ReleaseLedger
from workbench.publishing.release import LedgerStatus, Release
from workbench.publishing.statistic import Statistic

BOOKING_OPTIONS = ("ledger", "total", "total_delta", "owner_report", "dry_run")


@dataclass(frozen=True)
class Booking:
    """Where a release is booked, and what is written beside it.

    Attributes:
        ledger: File of the ledger. None: the release is not booked.
        total: Total ε of a new ledger. None: the ledger exists.
        total_delta: Total δ of a new ledger. None: 0, or the ledger exists.
        owner_report: File for the owner of the data, with private numbers. None: no file.
        dry_run: Whether no data are read.
    """

    ledger: Path | None = None
    total: Fraction | None = None
    total_delta: Fraction | None = None
    owner_report: Path | None = None
    dry_run: bool = False

    @classmethod
    def read(
        cls,
        *,
        ledger: Any = None,
        total: Any = None,
        total_delta: Any = None,
        owner_report: Any = None,
        dry_run: bool = False,
    ) -> Booking:
        """Read the options of a booking.

        Args:
            ledger: Path of the ledger, or None.
            total: Total ε > 0 of a new ledger, or None.
            total_delta: Total δ in [0, 1) of a new ledger, or None.
            owner_report: Path of the report for the owner of the data, or None.
            dry_run: Whether no data are read.

        Raises:
            InvalidRequest: An option is wrong.
        """
        ledger_path = None
        if ledger is not None:
            ledger_path = read_file_path(ledger, "ledger")
        elif total is not None or total_delta is not None:
            must("total", "given with a ledger", total if total is not None else total_delta)
        if total is None and total_delta is not None:
            must("total_delta", "given with a total", total_delta)
        report_path = None
        if owner_report is not None:
            report_path = read_file_path(owner_report, "owner_report")
            if report_path.is_file() and others_can_read(report_path):
                rule = "a new file, or one that only its owner can read"
                must("owner_report", rule, report_path.name)
            if not report_path.absolute().parent.is_dir():
                must("owner_report", "in an existing folder", report_path.name)
        return cls(
            ledger_path,
            None if total is None else read_positive(total, "total"),
            None if total_delta is None else read_probability(total_delta, "total_delta"),
            report_path,
            read_boolean(dry_run, "dry_run"),
        )

    def refuse_same_files(self, data: Any) -> None:
        """Raise InvalidRequest if the data are also the ledger or the report for the owner.

        Args:
            data: The private table. Only the path of a file can be the same.
        """
        if isinstance(data, (str, Path)):
            outputs = {"ledger": self.ledger, "owner_report": self.owner_report}
            require_distinct_files({"data": data}, outputs)

    def open_ledger(self, statistic: Statistic, *, create: bool) -> ReleaseLedger | None:
        """Open the ledger, and check its terms.

        Args:
            statistic: The statistic that is published.
            create: Whether a new ledger is created.

        Returns:
            None without a ledger, or if it does not exist and is not to be created.

        Raises:
            InvalidRequest: The ledger has another relation, person or total.
            CorruptFile: The ledger is damaged.
        """
        if self.ledger is None:
            return None
        terms = None
        if self.total is not None:
            terms = LedgerTerms(
                relation=statistic.person.neighbours,
                person=statistic.person_column,
                epsilon=self.total,
                delta=self.total_delta or ZERO,
            )
        exists = Path(os.path.realpath(self.ledger)).exists()
        if not exists and terms is None:
            must("total", "given for a new ledger, such as --total 1", self.ledger.name)
        if not exists and not create:
            return None
        ledger = ReleaseLedger.open(self.ledger, terms)
        _check_terms(ledger, statistic, terms)
        return ledger

    def write_owner_report(self, entries: Mapping[str, Any]) -> None:
        """Write the private report for the owner of the data, if it is asked for.

        Args:
            entries: Private entries.

        Raises:
            InvalidRequest: The file cannot be written.
        """
        if self.owner_report is None:
            return
        content = {"private": "This file must not be published.", **entries}
        try:
            write_json(self.owner_report, content, private=True)
        except OSError as error:
            must("owner_report", "a writable file", f"{self.owner_report.name}: {error.strerror}")


def _check_terms(ledger: ReleaseLedger, statistic: Statistic, terms: LedgerTerms | None) -> None:
    """Raise InvalidRequest unless the ledger has the relation and the person of a release."""
    relation = statistic.person.neighbours
    name = ledger.path.name
    if ledger.terms.relation != relation:
        rule = f"{ledger.terms.relation}, as {name} was made for this relation"
        must("neighbours", rule, relation)
    if ledger.terms.person != statistic.person_column:
        rule = "left out"
        if ledger.terms.person is not None:
            rule = ledger.terms.person
        must("person", f"{rule}, as {name} was made for it", statistic.person_column)
    if terms is not None and (terms.epsilon, terms.delta) != (
        ledger.terms.epsilon,
        ledger.terms.delta,
    ):
        total = "no limit"
        if ledger.terms.epsilon is not None:
            total = str(PrivacyBudget(ledger.terms.epsilon, ledger.terms.delta))
        must("total", f"left out, or that of {name}: {total}", terms.epsilon)


def book_release(
    booking: Booking,
    releases: Sequence[Release],
    budget: PrivacyBudget,
    write_content: Callable[[list[Release]], str],
) -> LedgerStatus | None:
    """Book releases as one entry, before anything of them is shown.

    Args:
        booking: The ledger.
        releases: Releases with the same relation and person.
        budget: ε and δ of all of them together.
        write_content: Function that writes the releases as JSON text, which the ledger keeps.

    Returns:
        What the ledger says. None without a ledger.

    Raises:
        InvalidRequest: The ledger has too little budget left.
    """
    ledger = booking.open_ledger(releases[0].statistic, create=True)
    if ledger is None:
        return None
    numbers = [number for release in releases for number in release.list_numbers()]
    entry = LedgerEntry(
        column=" and ".join(release.statistic.describe() for release in releases),
        # The digest of true values would tell whoever has the key whether a guess is right.
        digest=ledger.digest(np.array(numbers, dtype=float)),
        notion="dp" if budget.delta else "pure",
        neighbours=budget,
        charge=budget,
        output="",
        value=write_content([*releases]).encode(),
    )
    entries = ledger.book(entry)
    remaining = ledger.describe_remaining_budget(entries)
    return LedgerStatus(ledger.path.name, entries[-1].number, remaining)


def describe_unused_ledger(ledger: ReleaseLedger | None, booking: Booking) -> LedgerStatus | None:
    """Return what a ledger says at a dry run. None without a ledger.

    Args:
        ledger: The ledger. None if it does not exist yet.
        booking: The options of the booking.
    """
    if booking.ledger is None:
        return None
    if ledger is None:
        total = PrivacyBudget(booking.total, booking.total_delta or ZERO)
        return LedgerStatus(booking.ledger.name, None, f"{total}, as the ledger is new")
    remaining = ledger.describe_remaining_budget(ledger.releases)
    return LedgerStatus(ledger.path.name, None, f"{remaining} before this release")
