"""The ledger options of a command that publishes: which ledger, and the terms that it must have.

    option           a new ledger                           an existing ledger
    --total          required: ε of all releases, or inf    left out, or equal to its total
    --total-delta    δ of all releases, default 0           as --total
    --accounting     basic (the default) or zcdp            left out, or equal to its rule

The relation of neighbours and the column of persons belong to the release. They must be those of
the ledger. A total of inf stands for no limit: the ledger only adds up the costs.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from workbench.errors import InvalidRequest, must
from workbench.exact.numbers import ZERO, Real, read_positive, read_probability
from workbench.io.files import read_file_path
from workbench.privacy.privacy_budget import PrivacyBudget
from workbench.privacy.release_ledger import (
    RELATIONS,
    RULES,
    LedgerEntry,
    LedgerTerms,
    ReleaseLedger,
    is_json_ledger,
    read_json_ledger,
)

_UNLIMITED = ("inf", "infinity")  # These totals stand for no limit.
_EQUAL_SIZES = "data sets of equal size (replace)"
_DIFFERENT_SIZES = "data sets with and without a person (add-remove)"
_PHRASES_BY_RELATION = {"replace": _EQUAL_SIZES, "add-remove": _DIFFERENT_SIZES}


@dataclass(frozen=True)
class LedgerRequest:
    """The ledger of a release. `LedgerRequest.read` reads the options of a command.

    Attributes:
        path: File of the ledger.
        relation: Which data sets are neighbours for this release, "replace" or "add-remove".
        person: Column that says whose row it is. None if every row is a person.
        accounting: Requested rule, "basic" or "zcdp". None if the option is not given.
        total: Requested limit. Its ε is None for no limit. None if the option is not given.
    """

    path: Path
    relation: str
    person: str | None = None
    accounting: str | None = None
    total: PrivacyBudget | None = None

    @classmethod
    def read(
        cls,
        path: Path | str | None,
        relation: str,
        *,
        person: str | None = None,
        accounting: str | None = None,
        total: Real | None = None,
        total_delta: Real | None = None,
    ) -> LedgerRequest | None:
        """Read the ledger options of a command, and check them as far as possible before any work.

        Args:
            path: File of the ledger. None if the release is not booked.
            relation: Which data sets are neighbours for this release, "replace" or "add-remove".
            person: Column that says whose row it is. None if every row is a person.
            accounting: Rule of a new ledger, "basic" or "zcdp". None for the default, "basic".
            total: Limit on ε of a new ledger, a number > 0, or "inf" for no limit. None if the
                ledger exists.
            total_delta: Limit on δ of a new ledger, in [0, 1). None for 0.

        Returns:
            None without a ledger.

        Raises:
            InvalidRequest: An option is wrong, or the ledger has other terms.
            CorruptFile: The ledger is damaged.
        """
        options = {"total": total, "total_delta": total_delta, "accounting": accounting}
        if path is None:
            for name, value in options.items():
                if value is not None:
                    must(name, "given with a ledger", value)
            return None
        InvalidRequest.check_choice(RELATIONS, "neighbours", relation)
        if accounting is not None:
            InvalidRequest.check_choice(RULES, "accounting", accounting)
        limit = _read_total(total, total_delta)
        if accounting == "zcdp" and limit is not None and not limit.delta:
            rule = "a number > 0 for accounting zcdp, such as 1e-6"
            must("total_delta", rule, "none" if total_delta is None else total_delta)
        file = read_file_path(path, "ledger")
        request = cls(file, relation, person, accounting=accounting, total=limit)
        request._check()
        return request

    def open(self, release: LedgerEntry | None = None) -> ReleaseLedger:
        """Open the ledger, which is created if the file does not exist.

        Args:
            release: The release that will be booked. If it does not fit, no ledger is created or
                converted. None: this is not checked.

        Raises:
            InvalidRequest: The ledger has other terms, the file is no ledger, or the release does
                not fit.
            CorruptFile: The ledger is damaged.
        """
        if release is not None:
            self.check_limit(release)
        if not self.path.exists() and self.total is None:
            must("total", f"given, as {self.path.name} is a new ledger", "none")
        ledger = ReleaseLedger.open(self.path, self._make_terms())
        self._check_terms(ledger)
        return ledger

    def read_terms(self) -> LedgerTerms:
        """Return the terms of the ledger, or those that it gets when it is created or converted.

        Raises:
            InvalidRequest: The file is no ledger.
            CorruptFile: The ledger is damaged.
        """
        if self._has_new_format():
            return ReleaseLedger.open(self.path).terms
        return self._make_terms()

    def preview(self) -> tuple[ReleaseLedger, Sequence[LedgerEntry]]:
        """Return the ledger and its releases. A ledger is neither created nor converted.

        Raises:
            InvalidRequest: The file is no ledger.
            CorruptFile: The ledger is damaged.
        """
        if self._has_new_format():
            ledger = ReleaseLedger.open(self.path)
            return ledger, ledger.releases
        # A ledger in JSON is converted at its next release.
        releases: Sequence[LedgerEntry] = ()
        path = Path(os.path.realpath(self.path))
        if path.exists():
            _, releases = read_json_ledger(path)
        return ReleaseLedger(self.path, self._make_terms(), key=b""), releases

    def check_limit(self, release: LedgerEntry) -> None:
        """Check that a release fits into the ledger, which is neither created nor converted.

        `ReleaseLedger.book` checks this again, as other releases may come first.

        Args:
            release: The release. Its values are not needed.

        Raises:
            InvalidRequest: The rule of the ledger cannot add the release, or too little is left.
            CorruptFile: The ledger is damaged.
        """
        ledger, earlier = self.preview()
        ledger.check_limit(earlier, release)

    def _has_new_format(self) -> bool:
        """Return whether the ledger exists, and is not in JSON."""
        path = Path(os.path.realpath(self.path))
        return path.exists() and not is_json_ledger(path)

    def _make_terms(self) -> LedgerTerms:
        """Return the terms of a new ledger. A ledger in JSON may have no total."""
        total = self.total or PrivacyBudget(epsilon=None)
        return LedgerTerms(
            self.relation,
            self.person,
            accounting=self.accounting or "basic",
            epsilon=total.epsilon,
            delta=total.delta,
        )

    def _check(self) -> None:
        """Check the terms before any work. A ledger in JSON is not converted yet."""
        if self._has_new_format():
            self._check_terms(ReleaseLedger.open(self.path))
        elif self.total is None and not Path(os.path.realpath(self.path)).exists():
            must("total", f"given, as {self.path.name} is a new ledger", "none")

    def _check_terms(self, ledger: ReleaseLedger) -> None:
        """Raise InvalidRequest if a ledger has other terms than this request."""
        try:
            self._compare_terms(ledger.terms)
        except InvalidRequest as error:
            if ledger.releases:
                raise
            # A command that was stopped before its booking leaves a ledger without releases.
            hint = f"{self.path.name} has no releases. To start with other terms, delete it."
            raise InvalidRequest(f"{error} {hint}") from None

    def _compare_terms(self, terms: LedgerTerms) -> None:
        """Raise InvalidRequest if terms of a ledger differ from those of this request."""
        name = self.path.name
        limit = PrivacyBudget(terms.epsilon, terms.delta)
        if self.total is not None and self.total != limit:
            must(
                "total",
                f"left out, as {name} has {_describe_limit(limit)}",
                _describe_limit(self.total),
            )
        if self.accounting not in (None, terms.accounting):
            must("accounting", f"left out, as {name} has {terms.accounting}", self.accounting)
        if terms.relation != self.relation:
            must(
                "ledger",
                f"one for {_PHRASES_BY_RELATION[self.relation]}, as this release is",
                f"{name}, for {_PHRASES_BY_RELATION[terms.relation]}",
            )
        if terms.person != self.person:
            expected = "left out"
            if terms.person is not None:
                expected = repr(terms.person)
            must("person", f"{expected}, as {name} says of all its releases", repr(self.person))


def _read_total(total: Real | None, total_delta: Real | None) -> PrivacyBudget | None:
    """Read the limit of a new ledger. None if it is not given."""
    if total is None:
        if total_delta is not None:
            must("total_delta", "given with a total", total_delta)
        return None
    delta = ZERO
    if total_delta is not None:
        delta = read_probability(total_delta, "total_delta")
        if delta == 1:
            must("total_delta", "a number in [0, 1)", total_delta)
    epsilon: Fraction | None = None
    if str(total).strip().lower() not in _UNLIMITED:
        epsilon = read_positive(total, "total")
    return PrivacyBudget(epsilon, delta)


def _describe_limit(limit: PrivacyBudget) -> str:
    """Describe the limit of a ledger."""
    if limit.epsilon is None:
        return "no limit"
    return str(limit)
