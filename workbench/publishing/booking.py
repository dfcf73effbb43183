"""Book releases in a ledger, and write the private report for the owner of the data."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from workbench.data.plain import read_boolean
from workbench.errors import InvalidRequest, must
from workbench.exact.numbers import ONE, ZERO, nearest_float
from workbench.io.files import others_can_read, read_file_path, require_distinct_files, write_json
from workbench.privacy.ledger_request import LedgerRequest
from workbench.privacy.privacy_budget import PrivacyBudget, add_budgets
from workbench.privacy.release_ledger import LedgerEntry, LedgerTerms, ReleaseLedger
from workbench.publishing.guarantee import bound_advantage, count_right_guesses
from workbench.publishing.release import LedgerStatus, Release
from workbench.publishing.request import ReleaseRequest

BOOKING_OPTIONS = (
    "ledger",
    "total",
    "total_delta",
    "accounting",
    "owner_report",
    "dry_run",
)


@dataclass(frozen=True)
class Booking:
    """Where a release is booked, and what is written beside it.

    Attributes:
        ledger: File of the ledger, as for `LedgerRequest.read`. None: the release is not booked.
        total: Total ε of a new ledger, or "inf". None: the ledger exists.
        total_delta: Total δ of a new ledger. None: 0, or the ledger exists.
        accounting: Rule of a new ledger, "basic" or "zcdp". None: basic, or the ledger exists.
        owner_report: File for the owner of the data, with private numbers. None: no file.
        dry_run: Whether no data are read.
    """

    ledger: Path | None = None
    total: Any = None
    total_delta: Any = None
    accounting: str | None = None
    owner_report: Path | None = None
    dry_run: bool = False

    @classmethod
    def read(
        cls,
        *,
        ledger: Any = None,
        total: Any = None,
        total_delta: Any = None,
        accounting: str | None = None,
        owner_report: Any = None,
        dry_run: bool = False,
    ) -> Booking:
        """Read the options of a booking.

        Args:
            ledger: Path of the ledger, or None.
            total: Total ε > 0 of a new ledger, "inf" for no limit, or None.
            total_delta: Total δ in [0, 1) of a new ledger, or None.
            accounting: Rule of a new ledger, "basic" or "zcdp", or None for basic.
            owner_report: Path of the report for the owner of the data, or None.
            dry_run: Whether no data are read.

        Raises:
            InvalidRequest: An option is wrong.
        """
        report_path = None
        if owner_report is not None:
            report_path = read_file_path(owner_report, "owner_report")
            if report_path.is_file() and others_can_read(report_path):
                rule = "a new file, or one that only its owner can read"
                must("owner_report", rule, report_path.name)
            if not report_path.absolute().parent.is_dir():
                must("owner_report", "in an existing folder", report_path.name)
        return cls(
            ledger=None if ledger is None else read_file_path(ledger, "ledger"),
            total=total,
            total_delta=total_delta,
            accounting=accounting,
            owner_report=report_path,
            dry_run=read_boolean(dry_run, "dry_run"),
        )

    def refuse_same_files(self, data: Any) -> None:
        """Raise InvalidRequest if the data are also the ledger or the report for the owner.

        Args:
            data: The private table. Only the path of a file can be the same.
        """
        if isinstance(data, (str, Path)):
            outputs = {"ledger": self.ledger, "owner_report": self.owner_report}
            require_distinct_files({"data": data}, outputs)

    def request_ledger(self, releases: Sequence[ReleaseRequest]) -> LedgerRequest | None:
        """Read the ledger options, and check them against the releases before any work.

        Args:
            releases: The requested releases, all with the same relation and person.

        Returns:
            None without a ledger.

        Raises:
            InvalidRequest: The ledger has other terms, its rule cannot add the releases, or too
                little is left for them. A dry run only states the latter.
            CorruptFile: The ledger is damaged.
        """
        statistic = releases[0].statistic
        request = LedgerRequest.read(
            self.ledger,
            statistic.person.neighbours,
            person=statistic.person_column,
            accounting=self.accounting,
            total=self.total,
            total_delta=self.total_delta,
        )
        delta = sum((release.delta for release in releases), ZERO)
        if request is not None and delta and request.read_terms().accounting == "zcdp":
            rule = f"left out, as {request.path.name} adds up rho, which needs delta = 0 here"
            must("delta", rule, f"{nearest_float(delta):g}")
        if request is not None and not self.dry_run:
            request.check_limit(make_entry(releases))
        return request

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


def make_entry(
    releases: Sequence[ReleaseRequest | Release], digest: str = "", value: bytes | None = None
) -> LedgerEntry:
    """Make the ledger entry of releases that are booked together.

    Args:
        releases: The releases, or their requests before any data are read.
        digest: Digest of the published numbers.
        value: What the ledger keeps of them. None before the data are read.
    """
    epsilon = sum((release.epsilon for release in releases), ZERO)
    delta = sum((release.delta for release in releases), ZERO)
    budget = PrivacyBudget(epsilon, delta)
    rho = None
    if not delta:
        # Pure releases are ε²/2-zCDP each, and ρ adds up (Bun and Steinke 2016).
        rho = sum((release.epsilon**2 / 2 for release in releases), ZERO)
    return LedgerEntry(
        column=" and ".join(release.statistic.describe() for release in releases),
        digest=digest,
        notion="dp" if delta else "pure",
        neighbours=budget,
        charge=budget,
        output="",
        rho=rho,
        value=value,
    )


def book_release(
    request: LedgerRequest | None,
    releases: Sequence[Release],
    write_content: Callable[[list[Release]], str],
) -> LedgerStatus | None:
    """Book releases as one entry, before anything of them is shown.

    Args:
        request: The ledger. None: the releases are not booked.
        releases: Releases with the same relation and person.
        write_content: Function that writes the releases as JSON text, which the ledger keeps.

    Returns:
        What the ledger says. None without a ledger.

    Raises:
        InvalidRequest: The ledger has too little budget left.
    """
    if request is None:
        return None
    ledger = request.open(make_entry(releases))
    numbers = [number for release in releases for number in release.list_numbers()]
    # The digest of true values would tell whoever has the key whether a guess is right.
    digest = ledger.digest(np.array(numbers, dtype=float))
    entry = make_entry(releases, digest, write_content([*releases]).encode())
    entries = ledger.book(entry)
    cost = None
    if ledger.terms.accounting == "zcdp":
        cost = entry.describe_cost("zcdp")
    remaining = ledger.describe_public_remainder(entries)
    return LedgerStatus(
        file=ledger.path.name,
        number=entries[-1].number,
        remaining=remaining,
        cost=cost,
        total=_describe_total(ledger.terms),
        all_releases=describe_all_releases(ledger, entries),
    )


def describe_all_releases(ledger: ReleaseLedger, entries: Sequence[LedgerEntry]) -> str | None:
    """Describe what an attacker learns from all releases of a ledger together, in a sentence.

    From ρ of zCDP, Pinsker's inequality gives δ(0) <= √(ρ/2), as ρ bounds the KL divergence.

    Args:
        ledger: The ledger.
        entries: All its releases.

    Returns:
        None without releases, if a cost is private, or if no ε, δ or ρ is known for all of them.
    """
    if not entries or ledger.has_private_costs(entries):
        return None
    if ledger.terms.accounting == "zcdp":
        rhos = [entry.zcdp_rho for entry in entries]
        rho = sum((rho for rho in rhos if rho is not None), ZERO)
        if None in rhos:
            return None
        # The factor is larger than the rounding errors of the root.
        advantage = min(ONE, Fraction(math.sqrt(rho / 2) * (1 + 1e-12)))
    else:
        budget = add_budgets([entry.charge for entry in entries])
        if budget is None or budget.epsilon is None or budget.per_distance:
            return None
        advantage = bound_advantage(budget.epsilon, min(ONE, budget.delta))
    used = ledger.describe_used_budget(entries)
    return (
        f"All releases of {ledger.path.name} together: {used}, at most "
        f"{count_right_guesses(advantage)} of 100 guesses are right."
    )


def _describe_total(terms: LedgerTerms) -> str | None:
    """Describe the total of a ledger. None without one."""
    if terms.epsilon is None:
        return None
    return str(PrivacyBudget(terms.epsilon, terms.delta))


def describe_unused_ledger(
    request: LedgerRequest | None, releases: Sequence[Release]
) -> LedgerStatus | None:
    """Return what a ledger says at a dry run, and whether the releases would fit.

    Args:
        request: The ledger. None: the releases are not booked.
        releases: Releases with the same relation and person.

    Returns:
        What the ledger says. None without a ledger.
    """
    if request is None:
        return None
    ledger, earlier = request.preview()
    entry = make_entry(releases)
    fits: bool | None = None
    left_after = None
    # Whether a release fits depends on earlier costs, which may count private rows.
    if not ledger.has_private_costs(earlier):
        try:
            ledger.check_limit(earlier, entry)
            fits = True
            left_after = ledger.describe_remaining_budget([*earlier, entry])
        except InvalidRequest:
            fits = False
    return LedgerStatus(
        file=request.path.name,
        number=None,
        remaining=ledger.describe_public_remainder(earlier),
        total=_describe_total(ledger.terms),
        fits=fits,
        left_after=left_after,
    )
