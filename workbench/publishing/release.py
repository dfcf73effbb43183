"""Define a release: a published statistic with its error, its guarantee and its certificate.

Everything in a release may be published. It depends on the data by the published numbers alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.exact.numbers import round_up
from workbench.exact.objects import Record
from workbench.io.files import format_fraction, write_atomically
from workbench.io.shown import Facts, render_document, render_facts
from workbench.notions.notion import format_rational
from workbench.privacy.certificate import Certificate
from workbench.publishing.guarantee import (
    COVERAGE,
    count_right_guesses,
    describe_guarantee,
    list_limits,
    list_warnings,
)
from workbench.publishing.release_noise import Interval, Published
from workbench.publishing.ripple import RIPPLE
from workbench.publishing.statistic import COUNT, HISTOGRAM, Statistic
from workbench.publishing.usual_noise import (
    ANALYTIC_GAUSSIAN,
    CLASSIC_GAUSSIAN,
    GEOMETRIC,
    LAPLACE,
    UsualNoise,
)
from workbench.questions.joint_query import ADD_REMOVE

if TYPE_CHECKING:
    import pandas as pd

Label = tuple[str, ...]
_ERROR_DIGITS = 4  # An error is shown with this many significant digits.
_EQUAL_ERROR_PERCENT = 0.05  # Errors that differ by less are called the same.
_USUAL_NAMES = {
    GEOMETRIC: "geometric noise",
    LAPLACE: "Laplace noise on the reals",
    RIPPLE: "ripple noise on all bins together (not published here)",
    ANALYTIC_GAUSSIAN: "analytic Gaussian noise",
    CLASSIC_GAUSSIAN: "classic Gaussian noise",
}
_MAX_VALUE_DECIMALS = 12  # A published number is shown with at most this many decimals.


@dataclass(frozen=True)
class LedgerStatus:
    """What a ledger says after a release.

    Attributes:
        file: Name of the file.
        number: Number of the release in the ledger. None for a dry run.
        remaining: The remaining budget in words. For a dry run, before the release.
        cost: Cost of the release in words, if the ledger does not add up ε. Otherwise None.
        total: Total budget of the ledger in words. None without a total.
        all_releases: A sentence on the guarantee of all releases of the ledger together. None for
            a dry run, and if it is private or not known.
        fits: For a dry run, whether enough budget is left for the release. None for a release, and
            if it is private.
        left_after: For a dry run of a release that fits, the budget that it would leave, in words.
            Otherwise None.
    """

    file: str
    number: int | None
    remaining: str
    cost: str | None = None
    total: str | None = None
    all_releases: str | None = None
    fits: bool | None = None
    left_after: str | None = None

    def describe(self) -> str:
        """Return the rest of the line of a budget."""
        text = f"The ledger is {self.file}."
        if self.number is not None:
            text = f"This is release {self.number} of {self.file}."
        if self.cost is not None:
            text += f" It counts {self.cost}."
        total = "Without a total" if self.total is None else f"Of the total {self.total}"
        if self.number is not None:
            return f". {text} {total}, this is left: {self.remaining}."
        text = f". {text} {total}, this is left before the release: {self.remaining}."
        if self.left_after is not None:
            text += f" The release fits, and would leave this: {self.left_after}."
        elif self.fits is False:
            text += " The release does not fit, and would be refused."
        else:
            text += " Whether the release fits is private, too."
        return text

    def facts(self) -> Facts:
        """Return rows (label, text) on all releases of the ledger."""
        if self.all_releases is None:
            return []
        return [("all releases", self.all_releases)]


@dataclass(frozen=True, repr=False)
class Release:
    """A published statistic.

    Attributes:
        statistic: The statistic.
        epsilon: ε of the release.
        delta: δ of the release.
        mechanism: Description of the noise in a line.
        rmse: Root mean squared error of each number. None for a dry run of a mean with private n
            without `expected_rows`.
        width: The noise is at most this large with a probability of 95 %. None for a mean with
            private n.
        advantage: δ(0) of the release, or an upper bound, from which the guarantee follows.
        certificate: The certificate of the whole release.
        rounding: Rounding of the values moves a mean by at most this much. For other numbers it is
            0.
        published: The published numbers. None for a dry run.
        usual: Errors of noise that is calibrated the usual way.
        notes: Sentences that a reader must know.
        has_ledger: Whether the release is booked in a ledger. It is true before the booking.
        ledger: What the ledger says. None without a ledger, and before the booking.
    """

    statistic: Statistic
    epsilon: Fraction
    delta: Fraction
    mechanism: str
    rmse: float | None
    width: float | None
    advantage: Fraction
    certificate: Certificate = field(repr=False)
    rounding: float = 0.0
    published: Published | None = None
    usual: tuple[UsualNoise, ...] = ()
    notes: tuple[str, ...] = ()
    has_ledger: bool = False
    ledger: LedgerStatus | None = None

    @property
    def labels(self) -> list[str]:
        """Return the name of each cell or group. Empty for one number."""
        labels = [", ".join(label) for label in self.statistic.labels]
        if len({*labels}) < len(labels):
            # The texts "a, b" and "c" look like "a" and "b, c".
            labels = [", ".join(map(repr, label)) for label in self.statistic.labels]
        return labels

    @property
    def value(self) -> Any:
        """Return the published number, or the numbers by cell or group. None for a dry run."""
        if self.published is None:
            return None
        if not self.statistic.labels:
            return self.published.values[0]
        return dict(zip(self.labels, self.published.values, strict=True))

    @property
    def interval(self) -> Any:
        """Return the 95 % interval (low, high), or the intervals by cell or group.

        It is None for a dry run.
        """
        if self.published is None:
            return None
        if not self.statistic.labels:
            return self.published.intervals[0]
        return dict(zip(self.labels, self.published.intervals, strict=True))

    def list_numbers(self) -> list[float]:
        """List the published numbers. Empty for a dry run."""
        if self.published is None:
            return []
        return self.published.values

    @property
    def guarantee(self) -> tuple[str, str]:
        """Return the guarantee in two sentences."""
        numbers = max(1, len(self.statistic.labels))
        return describe_guarantee(
            self.advantage,
            self.statistic.person.neighbours,
            numbers,
            has_one_row=self.statistic.person_column is None,
        )

    @property
    def not_promised(self) -> tuple[str, ...]:
        """Return sentences that say what the guarantee does not promise."""
        # Without a column of persons, one row of a person is protected. With it, all rows are,
        # because those beyond K do not count.
        max_rows = 1 if self.statistic.person_column is None else None
        return list_limits(max_rows, has_ledger=self.has_ledger)

    @property
    def persons(self) -> str:
        """Return a sentence that says whose privacy is protected."""
        return describe_persons(self.statistic)

    @property
    def budget(self) -> str:
        """Return the budget of the release in words."""
        return format_budget(self.epsilon, self.delta)

    def facts(self) -> Facts:
        """Return rows (label, text) of a report. The numbers of cells are in `rows`."""
        facts = [("statistic", self.statistic.describe())]
        if self.published is None:
            facts.append(("dry run", "no data were read and no budget was used"))
        elif not self.statistic.labels:
            facts.append(("value", self.format_value()))
            facts.append(("95 % interval", self.format_interval()))
        facts.append(("error", self._describe_error()))
        if self.usual:
            facts.append(("other noise", self._describe_usual()))
        facts += [
            ("mechanism", self.mechanism),
            ("privacy", self.persons),
            ("guarantee", " ".join(self.guarantee)),
            *(("warning", sentence) for sentence in list_warnings(self.advantage)),
            *(("limits", sentence) for sentence in self.not_promised),
            ("budget", self.budget + describe_ledger(self.ledger)),
        ]
        if self.ledger is not None:
            facts += self.ledger.facts()
        return facts

    @property
    def rows(self) -> list[tuple[str, str, str]]:
        """Return the label, the value and the interval of every cell or group, as texts."""
        if self.published is None or not self.statistic.labels:
            return []
        published = self.published
        numbers = zip(self.labels, published.values, published.intervals, strict=True)
        return [
            (label, self._format_value(value), self._format_interval(interval))
            for label, value, interval in numbers
        ]

    def format_value(self) -> str:
        """Return the published number as text, "" for a dry run or several numbers."""
        if self.published is None or self.statistic.labels:
            return ""
        return self._format_value(self.value)

    def format_interval(self) -> str:
        """Return the interval of the published number as text, "" without one."""
        if self.published is None or self.statistic.labels:
            return ""
        return self._format_interval(self.interval)

    def _describe_error(self) -> str:
        """Return the line of the error."""
        if self.rmse is None:
            return (
                "not known before the release. Give a public guess of the number of rows with "
                "--expected-rows."
            )
        is_drawn_pair = self.statistic.is_pair and self.published is not None
        text = f"root mean squared error {format_error(self.rmse)}"
        if self.statistic.labels and is_drawn_pair:
            # Groups have different numbers of rows. `rmse` is that of the worst group.
            text = f"largest {text} of a group"
        elif self.statistic.labels:
            text += " of each number"
        if is_drawn_pair:
            text += ", estimated from the noisy sums"
        elif self.statistic.is_pair:
            text += " for the expected number of rows, whatever the mean is"
        if self.width is not None:
            text += f". In 95 of 100 cases, the noise is at most {format_error(self.width)}"
        if self.rounding:
            text += (
                f". Rounding the values moves the mean by at most {format_error(self.rounding)}, "
                "and by 0 if all are multiples of the step above low"
            )
        return text

    def _describe_usual(self) -> str:
        """Return the line about the usual noise."""
        place = ""
        if self.statistic.is_pair:
            place = " on the sum and on the number of rows"
        texts = []
        for usual in self.usual:
            change = ""
            if self.rmse:
                percent = 100 * (usual.rmse / self.rmse - 1)
                change = f" ({percent:+.1f} % error)"
                if abs(percent) < _EQUAL_ERROR_PERCENT:
                    change = " (the same error)"
            texts.append(f"{_USUAL_NAMES[usual.name]}{place} {format_error(usual.rmse)}{change}")
        line = f"root mean squared error of {', of '.join(texts)}"
        if not self.delta:
            line += ". Gaussian noise is not possible at delta = 0"
        return line

    def _format_value(self, value: float) -> str:
        """Format a number with the decimals that its error leaves meaningful."""
        return format_number(value, self.rmse)

    def _format_interval(self, interval: Interval) -> str:
        """Format an interval with the digits that the error leaves meaningful."""
        return format_interval(interval, self.rmse)

    def to_dict(self) -> Record:
        """Return everything but the certificate and the ledger as data for JSON."""
        published = self.published
        values: Any = None
        intervals: Any = None
        if published is not None:
            values = published.values
            intervals = [[*interval] for interval in published.intervals]
            if not self.statistic.labels:
                values = values[0]
                intervals = intervals[0]
        return {
            "statistic": self.statistic.describe(),
            "kind": self.statistic.kind,
            "labels": self.labels or None,
            "value": values,
            "interval": intervals,
            "coverage": float(COVERAGE),
            "rmse": self.rmse,
            "width": self.width,
            "rounding": self.rounding,
            "mechanism": self.mechanism,
            "epsilon": round_up(self.epsilon),
            "delta": round_up(self.delta),
            "exact_budget": [format_fraction(self.epsilon), format_fraction(self.delta)],
            "neighbours": self.statistic.person.neighbours,
            "person": self.statistic.person_column,
            "rows_per_person": self.statistic.person.rows,
            "right_guesses": count_right_guesses(self.advantage),
            "guarantee": [*self.guarantee],
            "not_promised": [*self.not_promised],
            "notes": [self.persons, *list_warnings(self.advantage), *self.notes],
            "usual_noise": {usual.name: usual.rmse for usual in self.usual},
        }

    def to_json(self) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False)

    def to_frame(self) -> pd.DataFrame:
        """Return the published numbers as a DataFrame: cell, value, low, high."""
        import pandas as pd

        published = self.published
        labels = self.labels or [self.statistic.describe()]
        if published is None:
            return pd.DataFrame({"cell": labels})
        lows = [low for low, _ in published.intervals]
        highs = [high for _, high in published.intervals]
        columns = {"cell": labels, "value": published.values, "low": lows, "high": highs}
        return pd.DataFrame(columns)

    def save(self, path: str | Path) -> None:
        """Write the certificate of the release.

        Args:
            path: Path of the file.

        Raises:
            NotCertified: The file would be too large to be proven again.
        """
        write_atomically(path, self.certificate.content())

    def __str__(self) -> str:
        lines = [f"{label}: {text}" for label, text in self.facts()]
        lines += [
            " ".join(("cell", label, value, interval)) for label, value, interval in self.rows
        ]
        return "\n".join([*lines, *self.notes])

    def __repr__(self) -> str:
        return f"Release({self.statistic.describe()!r}, {self.budget})"

    def _repr_html_(self) -> str:
        """Return the facts and the values as HTML for a notebook."""
        cells = [(label, f"{value} ({interval})") for label, value, interval in self.rows]
        return render_document("Release", render_facts([*self.facts(), *cells]), self.notes)


def describe_persons(statistic: Statistic) -> str:
    """Describe whose privacy a release protects, in a sentence.

    Args:
        statistic: The statistic.
    """
    person = statistic.person
    is_added = person.neighbours == ADD_REMOVE
    if statistic.person_column is None:
        change = "this row replaced by another row"
        if is_added:
            change = "this row and without it"
        return (
            f"Each row counts as one person. The guarantee compares the table with {change}. The "
            "option --person protects people with several rows."
        )
    change = "these rows replaced by others"
    if is_added:
        change = "these rows and without them"
    rows = "1 row counts" if person.rows == 1 else f"only {person.rows} rows count"
    order = "bins" if statistic.kind == HISTOGRAM else "values"
    rule = f"{rows}, those first in the order of the {order}"
    if statistic.kind == COUNT:
        rule = rows
    if statistic.one_row_per_bin:
        rule = f"one row counts in each of at most {person.rows} bins, in the order of the bins"
    return (
        f"All rows with the same {statistic.person_column} are one person, also if upper and lower "
        "case, blanks or spellings of a number differ. The guarantee compares the table with "
        f"{change}. If a person has more rows, {rule}. The result may then be biased."
    )


def describe_ledger(ledger: LedgerStatus | None) -> str:
    """Describe the ledger of a release, after its budget in the same line.

    Args:
        ledger: What the ledger says. None without a ledger.
    """
    if ledger is None:
        return ". This release is in no ledger. Add up the budgets of all releases yourself."
    return ledger.describe()


def format_number(value: float, error: float | None) -> str:
    """Format a published number with the decimals that its error leaves meaningful.

    Args:
        value: The number. An integer is written with all digits.
        error: Root mean squared error. None or 0 gives all decimals.
    """
    if isinstance(value, int):
        return str(value)
    decimals = _MAX_VALUE_DECIMALS
    if error:
        # With these decimals the error has three significant digits.
        decimals = min(decimals, max(0, 2 - math.floor(math.log10(error))))
    return f"{value:.{decimals}f}"


def format_interval(interval: Sequence[float], error: float | None) -> str:
    """Format an interval as "low to high", with the decimals of `format_number`.

    Args:
        interval: Its two ends.
        error: Root mean squared error of the published number.
    """
    return " to ".join(format_number(end, error) for end in interval)


def format_budget(epsilon: Fraction, delta: Fraction) -> str:
    """Format a budget as "epsilon = 0.5, delta = 1e-6".

    Args:
        epsilon: ε.
        delta: δ.
    """
    text = f"epsilon = {format_rational(epsilon)}"
    if delta:
        text += f", delta = {format_rational(delta)}"
    return text


def format_error(error: float) -> str:
    """Format an error, with four significant digits.

    Args:
        error: The error.
    """
    return f"{error:.{_ERROR_DIGITS}g}" if error < 10**_ERROR_DIGITS else f"{error:.0f}"
