"""Read the options of a release, and find the least ε for an error."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from workbench.data.intervals import read_range
from workbench.data.plain import read_boolean, read_integer
from workbench.data.table_cells import (
    MAX_CELLS,
    CellList,
    read_bin_list,
    read_conditions,
    read_names,
    read_values,
)
from workbench.errors import InvalidRequest, must
from workbench.exact.numbers import ZERO, read_positive, read_probability
from workbench.publishing.losses import LOSSES
from workbench.publishing.release_noise import ReleaseNoise, choose_noise
from workbench.publishing.sensitivity import MAX_PUBLIC_ROWS, PersonRows
from workbench.publishing.statistic import COUNT, HISTOGRAM, MEAN, SUM, CellColumn, Statistic
from workbench.questions.joint_query import ADD_REMOVE, MAX_ROWS, NEIGHBOURS, REPLACE

_MIN_EPSILON = 0.01  # The least ε of --max-rmse. Smaller ones hardly differ for a user.
_MAX_EPSILON = 100.0  # The largest ε of --max-rmse. Larger ones protect nobody.
_MAX_INTEGER_DIGITS = 19  # A text of more digits is not converted, and is refused as too large.
_EPSILON_DIGITS = 4  # The ε of --max-rmse is rounded up to this many significant digits.


@dataclass(frozen=True)
class ReleaseRequest:
    """A statistic with its budget.

    Attributes:
        statistic: The statistic.
        epsilon: ε > 0.
        delta: δ in [0, 1).
        loss: "squared" or "absolute", the loss that noise on one number minimises.
        expected_rows: A public guess of the number of rows. None: it is not given.
        time_limit: Time limit of the search for noise at δ > 0, in seconds. None: 10.
    """

    statistic: Statistic
    epsilon: Fraction
    delta: Fraction = ZERO
    loss: str = "squared"
    expected_rows: int | None = None
    time_limit: float | None = None

    def choose_noise(self) -> ReleaseNoise:
        """Choose certified noise. Raises InvalidRequest."""
        return choose_noise(
            self.statistic,
            self.epsilon,
            self.delta,
            loss=self.loss,
            expected_rows=self.expected_rows,
            time_limit=self.time_limit,
        )


@dataclass(frozen=True)
class StatisticOptions:
    """The options of a statistic, as a user gives them.

    Attributes:
        where: A condition such as "smoker=yes", or several, or None.
        column: Column of a sum or mean; columns of a histogram.
        range: Range "LOW..HIGH" of the values of a sum or mean.
        values: Listed values of the columns of a histogram or of groups: a text or list for one
            column, a mapping from columns to them for several.
        bins: The same for bins such as "0..100:10".
        by: Columns of the groups of a sum or mean, or None.
        neighbours: "add-remove", "replace", or None for replace if `rows` is given for a mean, and
            add-remove otherwise.
        rows: The public number of rows of the table, or None.
        person: Column that says whose row it is. None: every row is a person.
        rows_per_person: K, how many rows of a person count. None without a person.
        bins_per_person: K, in how many bins a person has at most one row each.
        drop_missing: Whether rows with a missing value do not count.
        drop_unlisted: Whether rows with a value that is not listed do not count.
    """

    where: Any = None
    column: Any = None
    range: Any = None
    values: Any = None
    bins: Any = None
    by: Any = None
    neighbours: str | None = None
    rows: Any = None
    person: str | None = None
    rows_per_person: Any = None
    bins_per_person: Any = None
    drop_missing: bool = False
    drop_unlisted: bool = False

    def read(self, kind: str) -> Statistic:
        """Read the options.

        Args:
            kind: "count", "sum", "mean" or "histogram".

        Raises:
            InvalidRequest: An option is wrong.
        """
        self._refuse_unused_options(kind)
        conditions = read_conditions(self.where)
        public_rows = None
        if self.rows is not None:
            public_rows = read_integer(_read_integer_text(self.rows), "rows", 1, MAX_PUBLIC_ROWS)
        is_public_mean = kind == MEAN and public_rows is not None
        relation = self.neighbours
        if relation is None:
            relation = REPLACE if is_public_mean else ADD_REMOVE
        if relation not in NEIGHBOURS:
            must("neighbours", f"one of {', '.join(NEIGHBOURS)}", repr(self.neighbours))
        low, high = ZERO, ZERO
        value_column = None
        if kind in (SUM, MEAN):
            low, high = read_range(self.range, "range")
            if self.column is not None:
                value_column = str(self.column).strip()
        cell_columns = self._read_cell_columns(kind)
        person_rows = PersonRows(
            neighbours=relation,
            rows=self._read_person_rows(kind),
            has_filter=bool(conditions or cell_columns),
            drops_missing=read_boolean(self.drop_missing, "drop_missing"),
            # All rows of a mean with public n count: more rows of a person are refused.
            can_exceed_rows=self.person is not None and not is_public_mean,
        )
        return Statistic(
            kind,
            person_rows,
            person_column=self.person,
            conditions=conditions,
            column=value_column,
            low=low,
            high=high,
            cell_columns=cell_columns,
            public_rows=public_rows,
            one_row_per_bin=self.bins_per_person is not None,
            drop_unlisted=read_boolean(self.drop_unlisted, "drop_unlisted"),
        )

    def _refuse_unused_options(self, kind: str) -> None:
        """Raise InvalidRequest for an option that the kind of statistic does not have."""
        has_values = kind in (SUM, MEAN)
        if has_values and self.range is None:
            must("range", f"given for a {kind}, such as 18..95", "none")
        if kind == HISTOGRAM and self.column is None:
            must("column", "given for a histogram", "none")
        unused_options = ["bins_per_person"]
        if kind == HISTOGRAM:
            unused_options = ["range", "by"]
        elif kind == COUNT:
            unused_options += ["column", "range", "by", "values", "bins", "drop_unlisted"]
        elif self.by is None:
            unused_options += ["values", "bins", "drop_unlisted"]
        for option in unused_options:
            value = getattr(self, option)
            if value is not None and value is not False:
                rule = f"left out for a {kind}"
                if has_values and option != "bins_per_person":
                    rule = "given with by for a sum or mean"
                must(option, rule, repr(value))

    def _read_cell_columns(self, kind: str) -> tuple[CellColumn, ...]:
        """Read the columns of a histogram or of groups. Raises InvalidRequest."""
        if kind == HISTOGRAM:
            return _combine_cell_columns(read_names(self.column), self.values, self.bins)
        if self.by is not None:
            return _combine_cell_columns(read_names(self.by, "by"), self.values, self.bins)
        return ()

    def _read_person_rows(self, kind: str) -> int:
        """Return K. Raises InvalidRequest."""
        limits = {
            "rows_per_person": self.rows_per_person,
            "bins_per_person": self.bins_per_person,
        }
        given_limits = {name: value for name, value in limits.items() if value is not None}
        if self.person is None:
            if given_limits:
                must("person", "given with the rows of a person", "none")
            return 1
        if len(given_limits) != 1:
            rule = "given with --person"
            if kind == HISTOGRAM:
                rule = "given with --person, or else bins_per_person"
            must("rows_per_person", rule, "both" if given_limits else "none")
        ((name, value),) = given_limits.items()
        return read_integer(_read_integer_text(value), name, 1, MAX_ROWS)


@dataclass(frozen=True)
class BudgetOptions:
    """The options of a budget, as a user gives them.

    Attributes:
        epsilon: ε > 0. None with `max_rmse`.
        delta: δ in [0, 1). None: 0.
        max_rmse: Largest root mean squared error, for which the least ε is searched.
        expected_rows: A public guess of the number of rows, for a mean with private n.
        loss: "squared" or "absolute", the loss that noise on one number minimises. None: squared.
        time_limit: Time limit of the search for noise at δ > 0, in seconds. None: 10.
    """

    epsilon: Any = None
    delta: Any = None
    max_rmse: Any = None
    expected_rows: Any = None
    loss: str | None = None
    time_limit: Any = None

    def read(self, statistic: Statistic) -> ReleaseRequest:
        """Read the options.

        Args:
            statistic: The statistic.

        Raises:
            InvalidRequest: An option is wrong, or no ε allows the error.
        """
        if (self.epsilon is None) == (self.max_rmse is None):
            got = "none" if self.epsilon is None else "both"
            must("epsilon", "given, or else max_rmse", got)
        delta = ZERO
        if self.delta is not None:
            delta = read_probability(self.delta, "delta")
        if delta >= 1:
            must("delta", "in [0, 1)", delta)
        if delta and statistic.is_pair:
            rule = (
                "left out for a mean with a private number of rows, whose noise is proven for "
                "epsilon alone (give rows if their number is public)"
            )
            must("delta", rule, self.delta)
        has_free_loss = statistic.kind != HISTOGRAM and not statistic.is_pair
        if self.loss is not None and not has_free_loss:
            rule = "left out for a histogram and a mean with a private number of rows"
            must("loss", rule, repr(self.loss))
        loss = self.loss or LOSSES[0]
        InvalidRequest.check_choice(LOSSES, "loss", loss)
        guess = None
        if self.expected_rows is not None:
            rows = _read_integer_text(self.expected_rows)
            guess = read_integer(rows, "expected_rows", 1, MAX_PUBLIC_ROWS)
        limit = None
        if self.time_limit is not None:
            limit = float(read_positive(self.time_limit, "time_limit"))
        request = ReleaseRequest(
            statistic,
            epsilon=Fraction(1),
            delta=delta,
            loss=loss,
            expected_rows=guess,
            time_limit=limit,
        )
        if self.max_rmse is None:
            return replace(request, epsilon=read_positive(self.epsilon, "epsilon"))
        max_rmse = float(read_positive(self.max_rmse, "max_rmse"))
        if statistic.is_pair and guess is None:
            rule = "given with max_rmse, as the number of rows is private"
            must("expected_rows", rule, "none")
        return replace(request, epsilon=find_least_epsilon(request, max_rmse))


def _read_integer_text(value: Any) -> Any:
    """Return the integer of a text such as "2000", other values unchanged."""
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdecimal():
        return int(value) if len(value) <= _MAX_INTEGER_DIGITS else value
    return value


def _combine_cell_columns(names: Sequence[str], values: Any, bins: Any) -> tuple[CellColumn, ...]:
    """Read the cells of every column, from its listed values or its bins.

    Args:
        names: Names of the columns.
        values: Listed values, as `_split_by_name` reads them, or None.
        bins: Bins in the same form, or None.

    Raises:
        InvalidRequest: A column has both or neither, or there are too many cells.
    """
    values_by_name = _split_by_name(names, values, "values")
    bins_by_name = _split_by_name(names, bins, "bins")
    columns = []
    cell_count = 1
    for name in names:
        has_values = name in values_by_name
        if has_values == (name in bins_by_name):
            got = "both" if has_values else "none"
            must("values or bins", f"given for column {name}, one of the two", got)
        cells: CellList
        if has_values:
            cells = read_values(values_by_name[name])
        else:
            cells = read_bin_list(bins_by_name[name])
        columns.append(CellColumn(name, cells))
        cell_count *= len(cells.labels)
    if cell_count > MAX_CELLS:
        must("values and bins", f"at most {MAX_CELLS} cells together", cell_count)
    return tuple(columns)


def _split_by_name(names: Sequence[str], entries: Any, option: str) -> dict[str, Any]:
    """Return the listed values or bins by column. Raises InvalidRequest.

    `entries` is a mapping, or texts "COLUMN=...", or for a single column the values themselves.
    """
    if entries is None:
        return {}
    if isinstance(entries, Mapping):
        for name in entries:
            if name not in names:
                must(option, f"given for the columns {', '.join(names)}", repr(name))
        return dict(entries)
    if len(names) == 1:
        prefix = f"{names[0]}="
        if isinstance(entries, str) and entries.startswith(prefix):
            return {names[0]: entries.removeprefix(prefix)}
        # A value in quotes may contain "=".
        if isinstance(entries, str) and "=" in entries.partition(",")[0] and '"' not in entries:
            # The name of another column would become a part of the first value.
            must(option, f"those of column {names[0]}, such as {prefix}...", repr(entries))
        return {names[0]: entries}
    by_name: dict[str, Any] = {}
    texts = [entries] if isinstance(entries, str) else entries
    for text in texts:
        name, separator, listed = str(text).partition("=")
        if not separator or name.strip() not in names or name.strip() in by_name:
            rule = f"COLUMN=... once for each of the columns {', '.join(names)}"
            must(option, rule, repr(text))
        by_name[name.strip()] = listed
    return by_name


def find_least_epsilon(request: ReleaseRequest, max_rmse: float) -> Fraction:
    """Find the least ε, rounded up to four digits, for which the error is small enough at δ = 0.

    A release at the same ε and δ > 0 has at most this error.

    Args:
        request: The statistic. Its ε is ignored.
        max_rmse: The largest root mean squared error.

    Raises:
        InvalidRequest: No ε in the range of the search is enough.
    """

    def measure_error(epsilon: float) -> float:
        """Return the root mean squared error of the noise at ε and δ = 0."""
        candidate = replace(request, epsilon=Fraction(f"{epsilon:.12g}"), delta=ZERO)
        error = candidate.choose_noise().rmse
        assert error is not None
        return error

    if measure_error(_MIN_EPSILON) <= max_rmse:
        return Fraction(f"{_MIN_EPSILON:g}")
    # Noise at a large ε takes long to certify, so the upper end is found by doubling.
    end = 1.0
    while measure_error(end) > max_rmse:
        if end == _MAX_EPSILON:
            must("max_rmse", f"an error that epsilon <= {_MAX_EPSILON:g} allows", max_rmse)
        end = min(2 * end, _MAX_EPSILON)
    low = math.log(_MIN_EPSILON)
    high = math.log(end)
    # Then ε is known to about a tenth of the last digit that is returned.
    while high - low > 10 ** (-_EPSILON_DIGITS - 1):
        middle = (low + high) / 2
        if measure_error(math.exp(middle)) <= max_rmse:
            high = middle
        else:
            low = middle
    # ε is rounded up to multiples of the unit of its last digit.
    exponent = math.floor(high / math.log(10)) - _EPSILON_DIGITS + 1
    unit = Fraction(10) ** exponent
    return min(math.ceil(Fraction(math.exp(high)) / unit) * unit, Fraction(_MAX_EPSILON))
