"""Publish statistics of a private table: `wb.publish.count`, `.sum`, `.mean`, `.histogram`.

`workbench.publishing.run` has the order of the steps, from which their privacy follows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

from workbench.errors import must
from workbench.publishing.booking import BOOKING_OPTIONS, Booking
from workbench.publishing.plan import publish_plan
from workbench.publishing.release import Release
from workbench.publishing.request import BudgetOptions, StatisticOptions
from workbench.publishing.run import publish_requests
from workbench.publishing.statistic import COUNT, HISTOGRAM, MEAN, SUM


def _list_names(options: type) -> list[str]:
    """List the names of the options of a class."""
    return [field.name for field in fields(options)]


def _take_options(names: Iterable[str], options: dict[str, Any]) -> dict[str, Any]:
    """Remove the options with these names from `options`, and return them."""
    return {name: options.pop(name) for name in names if name in options}


def publish_kind(kind: str, data: Any, options: Mapping[str, Any]) -> Release:
    """Publish a statistic of a kind.

    Args:
        kind: "count", "sum", "mean" or "histogram".
        data: The private table.
        options: Options of the statistic, its budget and its booking, and `header`.

    Raises:
        InvalidRequest: An option or the data are wrong, or the ledger has too little budget left.
    """
    remaining_options = dict(options)
    header = remaining_options.pop("header", None)
    statistic_options = _take_options(_list_names(StatisticOptions), remaining_options)
    budget_options = _take_options(_list_names(BudgetOptions), remaining_options)
    booking_options = _take_options(BOOKING_OPTIONS, remaining_options)
    if remaining_options:
        must("option", "one that the documentation lists", next(iter(remaining_options)))
    statistic = StatisticOptions(**statistic_options).read(kind)
    request = BudgetOptions(**budget_options).read(statistic)
    booking = Booking.read(**booking_options)
    (release,), ledger = publish_requests(
        data, [request], booking, header, lambda releases: releases[0].to_json()
    )
    return replace(release, ledger=ledger)


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
        all_options = {"column": column, "range": range, "epsilon": epsilon, **options}
        return publish_kind(SUM, data, all_options)

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
        all_options = {"column": column, "range": range, "epsilon": epsilon, **options}
        return publish_kind(MEAN, data, all_options)

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

    plan = staticmethod(publish_plan)


publish = Publish()
