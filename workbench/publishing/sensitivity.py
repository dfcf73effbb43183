"""Compute how far one person can move a statistic of a table.

K is the largest number of rows of a person that count. x is a value, clipped to [lo, hi].

    statistic           add or remove a person      replace a person's rows by others
    count               K                           K
    sum                 K max(|lo|, |hi|)           K (hi - lo), if the number of rows is fixed;
                                                    otherwise max(K (hi - lo), K |lo|, K |hi|)
    mean, n public      refused                     K (hi - lo) / n, if the number is fixed;
                                                    otherwise refused
    mean, n private     K (hi - lo)                 2 K (hi - lo): the pair of sums of x - lo and
                                                    hi - x, in the L1 norm
    histogram           K                           2 K, in the L1 norm

Replacing fixes the number of rows of a person that count, unless a filter, a missing value or the
cap K can change it. Then j rows with a sum in [j lo, j hi] become k rows with a sum in
[k lo, k hi], 0 <= j, k <= K. The sums differ most between 0 or K rows of lo and 0 or K rows of hi.

For example, let lo = 18, hi = 95 and K = 1, and let only smokers count. A smoker of 95 who is
replaced by a non-smoker moves the sum by 95, not by 77.

Sums must be computed in rationals. A sum of floats has no such sensitivity.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from workbench.data.plain import read_boolean, read_integer
from workbench.errors import InvalidRequest, must
from workbench.exact.numbers import Real, read_number
from workbench.questions.joint_query import (
    ADD_REMOVE,
    MAX_ROWS,
    NEIGHBOURS,
    REPLACE,
    ROW_PER_BIN,
    ROWS_ANYWHERE,
    JointQuery,
)

STATISTICS = ("count", "sum", "mean", "histogram")
MAX_PUBLIC_ROWS = 10**12  # A larger public number of rows is refused.


@dataclass(frozen=True)
class PersonRows:
    """The rows of one person that count, and what a neighbouring table may change.

    Attributes:
        neighbours: "add-remove": all rows of a person are added or removed. "replace": they are
            replaced by other rows. Equally many of them count, unless `fixes_count` is false. In a
            histogram and a pair of sums, 0 to K other rows count.
        rows: K, the largest number of rows of a person that count.
        has_filter: Whether only rows that satisfy a condition count.
        drops_missing: Whether rows with a missing value do not count.
        can_exceed_rows: Whether a person may have more than K rows, of which K count.

    Raises:
        InvalidRequest: If an attribute is outside its range.
    """

    neighbours: str = ADD_REMOVE
    rows: int = 1
    has_filter: bool = False
    drops_missing: bool = False
    can_exceed_rows: bool = False

    def __post_init__(self) -> None:
        if self.neighbours not in NEIGHBOURS:
            must("neighbours", f"one of {', '.join(NEIGHBOURS)}", self.neighbours)
        self.__dict__["rows"] = read_integer(self.rows, "rows", 1, MAX_ROWS)
        for name in ("has_filter", "drops_missing", "can_exceed_rows"):
            read_boolean(getattr(self, name), name)

    @property
    def fixes_count(self) -> bool:
        """Return whether neighbouring tables count equally many rows of the person."""
        can_change = self.has_filter or self.drops_missing or self.can_exceed_rows
        return self.neighbours == REPLACE and not can_change

    def describe_change(self) -> str:
        """Return why the number of rows that count can change, as a clause."""
        if self.neighbours == ADD_REMOVE:
            return "a person is added or removed"
        reasons = []
        if self.has_filter:
            reasons.append("a filter")
        if self.drops_missing:
            reasons.append("a missing value")
        if self.can_exceed_rows:
            reasons.append(f"the cap of {self.rows} rows")
        return f"{' or '.join(reasons)} can change how many rows of a person count"


def compute_sensitivity(
    statistic: str,
    person: PersonRows,
    low: Real | None = None,
    high: Real | None = None,
    public_rows: int | None = None,
) -> Fraction:
    """Compute how far one person can move a statistic, exactly.

    Args:
        statistic: "count", "sum", "mean" or "histogram".
        person: The rows of one person, and the relation of neighbours.
        low: lo, the lower end of the values of a sum or mean. None for other statistics.
        high: hi > lo, the upper end of the values. None for other statistics.
        public_rows: n >= 1, the public number of rows of a mean. None: the number is private, and
            the mean is published as a pair of sums.

    Returns:
        The largest absolute difference of a count, a sum or a mean. For a histogram or a pair of
        sums the largest L1 norm of a difference.

    Raises:
        InvalidRequest: If an argument is outside its range, or the mean would not be private
            because the number of rows can change.
    """
    if statistic not in STATISTICS:
        must("statistic", f"one of {', '.join(STATISTICS)}", statistic)
    is_mean = statistic == "mean"
    if not is_mean and public_rows is not None:
        must("public_rows", f"left out for a {statistic}", public_rows)
    if statistic in ("count", "histogram"):
        if low is not None or high is not None:
            must("low and high", f"left out for a {statistic}", (low, high))
        is_doubled = statistic == "histogram" and person.neighbours == REPLACE
        return Fraction(person.rows * (2 if is_doubled else 1))
    exact_low = read_number(low, "low")
    exact_high = read_number(high, "high")
    if exact_low >= exact_high:
        must("high", f"above low = {exact_low}", exact_high)
    width = person.rows * (exact_high - exact_low)
    if not is_mean:
        return _bound_sum(person, exact_low, exact_high)
    if public_rows is None:
        return width * (2 if person.neighbours == REPLACE else 1)
    if not person.fixes_count:
        raise InvalidRequest(
            f"public_rows must be left out, as {person.describe_change()}. Got {public_rows}. "
            "Publish the mean with a private number of rows."
        )
    return width / read_integer(public_rows, "public_rows", 1, MAX_PUBLIC_ROWS)


def _bound_sum(person: PersonRows, low: Fraction, high: Fraction) -> Fraction:
    """Return the sensitivity of a sum of values in [low, high]."""
    largest_sum = person.rows * max(abs(low), abs(high))
    if person.neighbours == ADD_REMOVE:
        return largest_sum
    width = person.rows * (high - low)
    if person.fixes_count:
        return width
    return max(width, largest_sum)


def make_histogram_query(person: PersonRows, *, one_row_per_bin: bool) -> JointQuery:
    """Make the relation of a histogram, whose shift vectors a certificate proves.

    Its relation "replace" lets the number of rows that count change, up to K.

    Args:
        person: The rows of one person, and the relation of neighbours.
        one_row_per_bin: Whether at most one row of a person counts in each bin, in at most K bins.
            Otherwise the K rows may lie in any bins.
    """
    release = ROW_PER_BIN if one_row_per_bin else ROWS_ANYWHERE
    return JointQuery(release=release, neighbours=person.neighbours, rows=person.rows)
