"""Publish statistics of a private table: `wb.publish.count`, `.sum`, `.mean`, `.histogram`.

Order of a release: the options are read, noise is chosen and certified, the ledger is checked, the
data are read, the true value is computed, noise is drawn, the release is booked, and only then is
it returned. A process that is killed before it is booked has shown nothing. A process that is
killed afterwards has shown nothing that is not in the ledger.

The draws are exact and use the randomness of the operating system.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

from workbench.data.private_table import PrivateCellError, read_private_table
from workbench.errors import must
from workbench.exact.random_source import Source
from workbench.privacy.privacy_budget import PrivacyBudget
from workbench.publishing.booking import Booking, book_release, describe_unused_ledger
from workbench.publishing.release import Release, UsualError
from workbench.publishing.release_noise import PairNoise, ReleaseNoise
from workbench.publishing.request import BudgetOptions, ReleaseRequest, StatisticOptions
from workbench.publishing.statistic import (
    COUNT,
    HISTOGRAM,
    MEAN,
    SUM,
    Answer,
    Statistic,
    compute_answer,
)


def plan_release(request: ReleaseRequest, noise: ReleaseNoise) -> Release:
    """Return a release without a value, for a dry run.

    Args:
        request: The statistic and its budget.
        noise: Its noise.
    """
    return Release(
        request.statistic,
        request.epsilon,
        request.delta,
        noise.text,
        noise.rmse,
        noise.width,
        noise.advantage,
        noise.certificate,
        usual=list_usual_errors(request),
    )


def list_usual_errors(request: ReleaseRequest) -> tuple[UsualError, ...]:
    """List the errors of Laplace and Gaussian noise that is calibrated the usual way.

    Args:
        request: The statistic and its budget.
    """
    return ()


def publish_release(data: Any, request: ReleaseRequest, booking: Booking, header: Any) -> Release:
    """Publish a statistic, book it, and return it.

    Args:
        data: The private table, as for `read_private_table`.
        request: The statistic and its budget.
        booking: The ledger and the report for the owner.
        header: Whether a file has a header. None: decided from its first row.

    Raises:
        InvalidRequest: An option or the data are wrong, or the ledger has too little budget left.
    """
    statistic = request.statistic
    noise = request.choose_noise()
    release = plan_release(request, noise)
    ledger = booking.open_ledger(statistic, create=False)
    if booking.dry_run:
        return replace(release, ledger=describe_unused_ledger(ledger, booking))
    grid = noise.grid if isinstance(noise, PairNoise) else None
    answer = read_answer(data, statistic, booking, header, grid)
    published = noise.publish(answer, Source())
    release = replace(release, published=published, rmse=published.rmse)
    budget = PrivacyBudget(request.epsilon, request.delta)
    status = book_release(
        booking,
        statistic,
        column=statistic.describe(),
        numbers=published.values,
        budget=budget,
        content=release.to_json(),
    )
    booking.write_owner_report({statistic.describe(): list_private_facts(answer)})
    return replace(release, ledger=status)


def read_answer(
    data: Any, statistic: Statistic, booking: Booking, header: Any, grid: Any
) -> Answer:
    """Read the data and compute the true value.

    If a private cell is wrong, its place is written to the report for the owner.

    Args:
        data: The private table.
        statistic: The statistic.
        booking: The report for the owner.
        header: Whether a file has a header.
        grid: The grid of a mean with private n, or None.

    Raises:
        PrivateCellError: A private cell is wrong.
        InvalidRequest: The data are no table, or a column is missing.
    """
    try:
        return compute_answer(statistic, read_private_table(data, header=header), grid)
    except PrivateCellError as error:
        booking.write_owner_report({"error": str(error), "place": error.detail})
        hint = "--owner-report FILE writes its place to a private file."
        if booking.owner_report is not None:
            hint = f"Its place is in {booking.owner_report.name}."
        raise PrivateCellError(f"{error} {hint}", error.detail) from None


def list_private_facts(answer: Answer) -> dict[str, Any]:
    """Return the true value and the numbers of rows, for the owner of the data.

    Args:
        answer: The true value.
    """
    values: list[Any] = [float(value) for value in answer.values]
    if answer.pairs:
        values = [[*pair] for pair in answer.pairs]
    return {"true values": values, **answer.facts}


BOOKING_OPTIONS = ("ledger", "total", "total_delta", "owner_report", "dry_run")


def _list_names(options: type) -> list[str]:
    """List the names of the options of a class."""
    return [field.name for field in fields(options)]


def _select_options(names: Iterable[str], given: dict[str, Any]) -> dict[str, Any]:
    """Remove the options with these names from the given ones, and return them."""
    return {name: given.pop(name) for name in names if name in given}


def publish_kind(kind: str, data: Any, options: Mapping[str, Any]) -> Release:
    """Publish a statistic of a kind.

    Args:
        kind: "count", "sum", "mean" or "histogram".
        data: The private table.
        options: Options of the statistic, its budget and its booking, and `header`.

    Raises:
        InvalidRequest: An option or the data are wrong, or the ledger has too little budget left.
    """
    given = dict(options)
    header = given.pop("header", None)
    statistic_options = _select_options(_list_names(StatisticOptions), given)
    budget_options = _select_options(_list_names(BudgetOptions), given)
    booking_options = _select_options(BOOKING_OPTIONS, given)
    if given:
        must("option", "one that the documentation lists", next(iter(given)))
    statistic = StatisticOptions(**statistic_options).read(kind)
    request = BudgetOptions(**budget_options).read(statistic)
    booking = Booking.read(**booking_options)
    return publish_release(data, request, booking, header)


class Publish:
    """Publish statistics of a private table.

    Every function takes the table first: the path of a CSV file, a DataFrame, a Series, or a
    mapping from names to lists. It returns a `Release`.
    """

    @staticmethod
    def count(data: Any, *, epsilon: Any = None, where: Any = None, **options: Any) -> Release:
        """Publish how many rows satisfy a condition.

        Args:
            data: The private table.
            epsilon: ε > 0. None with `max_rmse`.
            where: A condition such as "smoker=yes", or several. None: all rows count.
            **options: Options of `StatisticOptions`, `BudgetOptions` and `Booking.read`.

        Raises:
            InvalidRequest: An option or the data are wrong, or the ledger has too little budget.
        """
        return publish_kind(COUNT, data, {"epsilon": epsilon, "where": where, **options})

    @staticmethod
    def sum(
        data: Any, column: Any = None, *, range: Any, epsilon: Any = None, **options: Any
    ) -> Release:
        """Publish the sum of a column.

        Args:
            data: The private table.
            column: Name or number of the column. None: the only column.
            range: Range "LOW..HIGH", to which values are clipped.
            epsilon: ε > 0. None with `max_rmse`.
            **options: Options of `StatisticOptions`, `BudgetOptions` and `Booking.read`.

        Raises:
            InvalidRequest: An option or the data are wrong, or the ledger has too little budget.
        """
        given = {"column": column, "range": range, "epsilon": epsilon, **options}
        return publish_kind(SUM, data, given)

    @staticmethod
    def mean(
        data: Any, column: Any = None, *, range: Any, epsilon: Any = None, **options: Any
    ) -> Release:
        """Publish the mean of a column.

        Args:
            data: The private table.
            column: Name or number of the column. None: the only column.
            range: Range "LOW..HIGH", to which values are clipped.
            epsilon: ε > 0. None with `max_rmse`.
            **options: Options of `StatisticOptions`, `BudgetOptions` and `Booking.read`.

        Raises:
            InvalidRequest: An option or the data are wrong, or the ledger has too little budget.
        """
        given = {"column": column, "range": range, "epsilon": epsilon, **options}
        return publish_kind(MEAN, data, given)

    @staticmethod
    def histogram(data: Any, column: Any, *, epsilon: Any = None, **options: Any) -> Release:
        """Publish how many rows have each listed value, or are in each bin.

        Args:
            data: The private table.
            column: Name of the column, or names of several columns.
            epsilon: ε > 0. None with `max_rmse`.
            **options: `values` or `bins`, and options of `StatisticOptions`, `BudgetOptions` and
                `Booking.read`.

        Raises:
            InvalidRequest: An option or the data are wrong, or the ledger has too little budget.
        """
        return publish_kind(HISTOGRAM, data, {"column": column, "epsilon": epsilon, **options})


publish = Publish()
