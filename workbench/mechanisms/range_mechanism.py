"""Publish every real answer in a range through a finite channel, whose rows decide privacy.

The range is divided into n cells, whose ends are k_0 < ... < k_n. Neighbouring answers differ by at
most S. An answer x is clamped into [k_0, k_n], which moves no two answers further apart. Then a
number u is drawn, uniform in [0, 1), and the output is drawn from the row r(x, u) of the channel:

    in cells    i for x in [k_i, k_i+1), n - 1 for k_n                                    n rows
    at ends     i + 1 if u < t, else i, for x = k_i + t (k_i+1 - k_i), 0 <= t < 1         n + 1 rows

Example: the ends are 0, 10, 20 and x = 13. In cells, x uses row 1. At ends, it uses row 2 with
probability 0.3, else row 1.

Lemma. |x - x'| <= S implies that r(x, u), r(x', u) are one row, or rows a < b (or b, a) with

    in cells    k_b - k_a+1 < S                 at ends    k_b - k_a+1 < S  or  k_b-1 - k_a < S

Proof. Let x < x'. Since r is monotone in x, different rows are a = r(x, u) < b = r(x', u). In cells
x < k_a+1 and x' >= k_b. At ends there are three cases. If x' >= k_b, then x < k_a+1 holds as well.
If x <= k_a, then x' > k_b-1. Otherwise x = k_a + t (k_a+1 - k_a) was rounded down and x' = k_b-1 +
t' (k_b - k_b-1) was rounded up. Then t <= u < t', so x' - x > (1 - t) (k_b-1 - k_a) + t (k_b -
k_a+1). This is a mean of the two differences, so one of them is below S. ∎

The constructor requires that the rows of the lemma are neighbours of the channel, in both orders.
In cells the laws of x and x' are one row or two such rows, so the audit of the channel holds for
them. At ends the laws are the mixtures ∫ row(r(x, u)) du and ∫ row(r(x', u)) du of such pairs, with
the same shares. So they are private under every notion that mixing preserves, if every pair is.
These are the notions with `is_convex` (a hockey stick is convex in both laws together) and pure ε.
PDP with δ > 0 is none of them, so `Certificate` refuses it if `is_rounded`.

x is exact: a decimal is the number that it shows, a double the rational that it is. No rounding
moves an answer to another cell, and the probability of u < t is exactly t
(`workbench.mechanisms.affine_sampler`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.data.points import rationals_or_none
from workbench.errors import must
from workbench.exact.arrays import Vector
from workbench.exact.distribution import Distribution
from workbench.exact.objects import Record
from workbench.exact.random_source import Source
from workbench.io.records import FLAG, RATIO, RATIOS, UNCHANGED, RecordForm
from workbench.mechanisms.affine_sampler import AffineSampler
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.piecewise_affine import PiecewiseAffine
from workbench.mechanisms.range_publisher import RangePublisher

_FORM = RecordForm(
    "The range",
    {"kind": "range"},
    ends=RATIOS,
    sensitivity=RATIO,
    at_ends=FLAG,
    outputs=RATIOS,
    channel=UNCHANGED,
)


@dataclass(frozen=True, repr=False)
class RangeMechanism(RangePublisher, Channel):
    """A finite channel that publishes every real answer in a range through one of its rows.

    Attributes:
        ends: The ends k_0 < ... < k_n of the cells, shape (n + 1,).
        sensitivity: The largest difference S of neighbouring answers, > 0.
        at_ends: Whether answers are rounded at random to the ends of their cell (module header).
        axis_labels: (the inputs of the rows: middles of cells, or ends; the published values), all
            exact numbers.

    Raises:
        InvalidRequest: If the ends are not increasing, if the sensitivity is not > 0, if the number
            of rows does not match the ends, or if rows that the lemma names are no neighbours.
    """

    ends: tuple[Fraction, ...] = ()
    sensitivity: Fraction = Fraction(0)
    at_ends: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.ends) < 2 or any(a >= b for a, b in pairwise(self.ends)):
            must("ends", "at least two increasing numbers", len(self.ends))
        if not self.sensitivity > 0:
            must("sensitivity", "> 0", self.sensitivity)
        _, output_labels = self.axis_labels or (None, ())
        if self.axis_labels is None or rationals_or_none(output_labels) is None:
            must("outputs", "numbers", self.axis_labels)
        row_count = len(self.ends) if self.at_ends else len(self.ends) - 1
        if len(self.rows) != row_count:
            must(
                "rows", "one for each cell, or each end", f"{len(self.rows)}, {len(self.ends)} ends"
            )
        if self.neighbours is None:
            return
        compared_pairs = {*self.neighbours}
        for a, b in self._related_rows():
            for pair in ((a, b), (b, a)):
                if pair not in compared_pairs:
                    must("pairs", "all rows of answers within the sensitivity", f"no pair {pair}")

    def _related_rows(self) -> Iterator[tuple[int, int]]:
        """Yield the pairs of rows (a, b), a < b, that the lemma names."""
        ends = self.ends
        last_row = len(self.rows) - 1
        for a in range(last_row):
            # The largest b with k_b < k_a+1 + S, and at ends also with k_b-1 < k_a + S.
            last_neighbour = bisect_left(ends, ends[a + 1] + self.sensitivity) - 1
            if self.at_ends:
                last_neighbour = max(last_neighbour, bisect_left(ends, ends[a] + self.sensitivity))
            yield from ((a, b) for b in range(a + 1, min(last_neighbour, last_row) + 1))

    @property
    def is_rounded(self) -> bool:
        """Return whether the law of an answer may be a mixture of two rows."""
        return self.at_ends

    @cached_property
    def real_law(self) -> PiecewiseAffine:
        """Return the law of every real answer: affine on each cell, constant if not `at_ends`."""
        rows = self.rows
        cell_laws = [*pairwise(rows)] if self.at_ends else [(row, row) for row in rows]
        end_laws = tuple(law for left_and_right in cell_laws for law in left_and_right)
        return PiecewiseAffine(self.ends, self._published_numbers, end_laws, "channel")

    @property
    def _published_numbers(self) -> tuple[Fraction, ...]:
        """Return the published values as exact numbers, length m."""
        assert self.axis_labels is not None
        _, output_labels = self.axis_labels
        return rationals_or_none(output_labels) or ()

    def law(self, x: Any) -> Distribution:
        """Return the exact law of a number in the range.

        Args:
            x: A number; a double is the rational that it is.

        Raises:
            InvalidRequest: If x is no number, or outside the range.
        """
        return self.real_law.law(Fraction(x) if isinstance(x, float) else x)

    def _draw(self, x: Vector, exact_answers: NDArray[Any], source: Source) -> NDArray[np.float64]:
        """Draw an output for every answer, shape (k,), by mixing the two end laws exactly."""
        sampler = AffineSampler(self.ends, self.real_law.ends, source)
        return np.asarray(self.outputs[sampler.positions(x, exact_answers)])

    def with_neighbours_over(self, low: Fraction, high: Fraction) -> Any:
        """Return a channel with the same rows, every two of which are neighbours.

        If they are neighbours already, this mechanism itself is returned.

        Args:
            low: Not used: the result holds for every interval.
            high: Not used.
        """
        if self.neighbours is None:
            return self
        return Channel(self.rows)

    @property
    def column_cautions(self) -> tuple[str, ...]:
        """Return a caution on the numbers between which the budget does not hold."""
        if self.neighbours is None:
            return ()
        return (
            f"The budget holds between numbers at most {float(self.sensitivity):g} apart, "
            "not between all others.",
        )

    def describe(self) -> str:
        """Describe the mechanism in one line."""
        rounding = "rounded at random to ends of cells" if self.at_ends else "in cells"
        answers = self.column_inputs.constraint
        sensitivity = float(self.sensitivity)
        return (
            f"{super().describe()}, for all real answers {answers}, {rounding}, "
            f"neighbours at most {sensitivity:g} apart"
        )

    def to_dict(self) -> Record:
        """Return a JSON-ready record, which `from_dict` reads."""
        return self._record(super().to_dict())

    def short_record(self) -> Record | None:
        """Return a short record, as `Channel.short_record` does; None if there is none."""
        record = super().short_record()
        if record is None:
            return None
        return self._record(record)

    def _record(self, channel: Record) -> Record:
        """Return the record of this mechanism, which contains the record of its channel."""
        return _FORM.write(self, outputs=self._published_numbers, channel=channel)

    @classmethod
    def from_dict(cls, data: Any) -> RangeMechanism:
        """Return the mechanism written by `to_dict`, which claims no privacy: audit it.

        Args:
            data: The record, as parsed from JSON.

        Raises:
            CorruptFile: If the record has another form.
            InvalidRequest: If the numbers make no mechanism (see the class).
        """
        ends, sensitivity, at_ends, outputs, record = _FORM.read(data).values()
        channel = Channel.from_dict(record)
        points = ends if at_ends else tuple((a + b) / 2 for a, b in pairwise(ends))
        return cls(
            rows=channel.rows,
            neighbours=channel.neighbours,
            axis_labels=(points, outputs),
            ends=ends,
            sensitivity=sensitivity,
            at_ends=at_ends,
        )
