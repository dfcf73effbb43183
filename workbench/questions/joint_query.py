"""State which rows one person has in a joint release, and list the shift vectors that follow.

A joint release adds independent noise of one law to every coordinate of a vector of integers. If a
person's rows change, the vector moves by a shift vector v, and the release is as private as its
worst shift vector. The relation of a release has three parts:

    release       rows-anywhere   a histogram; the K rows of a person may lie in any bins
                  row-per-bin     a histogram; a person has at most one row in each of K bins
                  pair-of-sums    the sums of x - lo and hi - x over K rows; on the grid, x - lo is
                                  one of 0..D (D is the span)
    neighbours    add-remove      all rows of a person are added or removed
                  replace         they are replaced by other rows, which may be fewer or more, up to
                                  K. This is more than replacing rows by as many rows
    rows          K

A partition of n is a list of positive integers with the sum n. The shift vectors are:

    rows-anywhere, add-remove    p and -p for all partitions p of 1..K
    rows-anywhere, replace       p with -q in other bins, for all partitions p, q of 0..K
    row-per-bin                  the same, for partitions into parts of size 1
    pair-of-sums, add-remove     (a, jD - a) and its negative, for j in 1..K and a in 0..jD
    pair-of-sums, replace        (t, mD - t) for m in 0..K and t in -(K - m)D..KD, and its negative

In the last line, j rows with the sum a replace k rows with the sum b. Then m = j - k and t = a - b,
so t takes every value from -kD to jD, and k is at most K - m.

Coordinates with the shift 0 do not matter and are left out of a histogram's vectors. All bins have
the same noise, so a vector stands for all its orders. Its entries are therefore sorted, the largest
first. If a person's rows move between bins, the moves partly cancel, and the remaining vector is
one of the list. The list holds for every number of bins.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from workbench.data.plain import read_integer
from workbench.errors import InvalidRequest, must
from workbench.exact.objects import Record
from workbench.io.shown import OneLine

ROWS_ANYWHERE = "rows-anywhere"
ROW_PER_BIN = "row-per-bin"
PAIR_OF_SUMS = "pair-of-sums"
RELEASES = (ROWS_ANYWHERE, ROW_PER_BIN, PAIR_OF_SUMS)
ADD_REMOVE = "add-remove"
REPLACE = "replace"
NEIGHBOURS = (ADD_REMOVE, REPLACE)

MAX_ROWS = 64  # More rows of a person are refused.
MAX_SPAN = 10_000  # A longer range of x, in steps of the grid, is refused.
MAX_SHIFT_VECTORS = 100_000  # A relation with more shift vectors is refused.

ShiftVector = tuple[int, ...]

_RELEASE_TEXTS = {
    ROWS_ANYWHERE: ("each bin of a histogram", "in any bins"),
    ROW_PER_BIN: ("each bin of a histogram", "in different bins"),
    PAIR_OF_SUMS: ("the sums of x - lo and hi - x", "with hi - lo = {} steps"),
}


@dataclass(frozen=True)
class JointQuery(OneLine):
    """A vector of integers to which independent noise is added, and how far a person moves it.

    Attributes:
        release: "rows-anywhere", "row-per-bin" or "pair-of-sums", as the module header says.
        neighbours: "add-remove" or "replace".
        rows: K, the largest number of rows of a person, 1 to 64.
        span: D = hi - lo in steps of the grid, 1 to 10,000, for "pair-of-sums". None otherwise.

    Raises:
        InvalidRequest: If an attribute is outside its range, or the relation has more than 100,000
            shift vectors.
    """

    release: str
    neighbours: str = ADD_REMOVE
    rows: int = 1
    span: int | None = None

    def __post_init__(self) -> None:
        if self.release not in RELEASES:
            must("release", f"one of {', '.join(RELEASES)}", self.release)
        if self.neighbours not in NEIGHBOURS:
            must("neighbours", f"one of {', '.join(NEIGHBOURS)}", self.neighbours)
        # The class is frozen, so its attributes are set in `__dict__`.
        self.__dict__["rows"] = read_integer(self.rows, "rows", 1, MAX_ROWS)
        if self.release == PAIR_OF_SUMS:
            self.__dict__["span"] = read_integer(self.span, "span", 1, MAX_SPAN)
        elif self.span is not None:
            must("span", f"left out for {self.release}", self.span)
        count = self._bound_shift_count()
        if count > MAX_SHIFT_VECTORS:
            remedy = "fewer rows"
            if self.release == PAIR_OF_SUMS:
                remedy = "fewer rows or a coarser grid"
            raise InvalidRequest(
                f"The release must have at most {MAX_SHIFT_VECTORS} shift vectors. "
                f"Got {count} of {self.rows} rows under {self.neighbours}. Use {remedy}."
            )

    def _bound_shift_count(self) -> int:
        """Return the number of shift vectors, or a bound on it for a pair of sums."""
        if self.span is not None:
            if self.neighbours == ADD_REMOVE:
                # For every j in 1..K there are jD + 1 vectors and their negatives.
                return self.rows * (self.rows + 1) * self.span + 2 * self.rows
            # For every m in 0..K there are at most 2KD + 1 vectors and their negatives.
            return 2 * (self.rows + 1) * (2 * self.rows * self.span + 1)
        # A side is a partition of 0..K. The vector without any shift is not counted.
        side_count = self.rows + 1
        if self.release == ROWS_ANYWHERE:
            side_count = sum(_count_partitions(self.rows))
        if self.neighbours == ADD_REMOVE:
            return 2 * (side_count - 1)
        return side_count**2 - 1

    @cached_property
    def shifts(self) -> tuple[ShiftVector, ...]:
        """Return all shift vectors of the relation, sorted."""
        if self.span is not None:
            vectors = self._list_pair_shifts(self.span)
        else:
            vectors = self._list_histogram_shifts()
        return tuple(sorted(vectors))

    def _list_histogram_shifts(self) -> set[ShiftVector]:
        """List the shift vectors of a histogram."""
        sides: list[ShiftVector] = []
        for total in range(self.rows + 1):
            if self.release == ROW_PER_BIN:
                sides.append((1,) * total)
            else:
                sides += list_partitions(total)
        vectors: set[ShiftVector] = set()
        for added in sides:
            other_sides = sides
            if self.neighbours == ADD_REMOVE and added:
                other_sides = [()]
            for removed in other_sides:
                vectors.add((*added, *(-part for part in reversed(removed))))
        vectors.remove(())
        return vectors

    def _list_pair_shifts(self, span: int) -> set[ShiftVector]:
        """List the shift vectors of a pair of sums. `span` is D."""
        rows = self.rows
        vectors: set[ShiftVector] = set()
        for difference in range(rows + 1):
            first = 0
            last = difference * span
            if self.neighbours == REPLACE:
                first = -(rows - difference) * span
                last = rows * span
            for first_shift in range(first, last + 1):
                second_shift = difference * span - first_shift
                vectors.add((first_shift, second_shift))
                vectors.add((-first_shift, -second_shift))
        vectors.discard((0, 0))
        return vectors

    @cached_property
    def max_norm(self) -> int:
        """Return the largest L1 norm of a shift vector."""
        norm = self.rows
        if self.span is not None:
            norm *= self.span
        if self.neighbours == REPLACE:
            norm *= 2
        return norm

    @property
    def dimension(self) -> int | None:
        """Return the number of coordinates. None for a histogram, which may have any number."""
        if self.release == PAIR_OF_SUMS:
            return 2
        return None

    def __str__(self) -> str:
        rows = f"up to {self.rows} rows"
        if self.rows == 1:
            rows = "1 row"
        subject, place = _RELEASE_TEXTS[self.release]
        place = place.format(self.span)
        change = f"adding or removing a person with {rows} {place}"
        if self.neighbours == REPLACE:
            plural = "" if self.rows == 1 else "s"
            rows = f"up to {self.rows} row{plural}"
            change = f"replacing {rows} of a person {place} by up to {self.rows} other{plural}"
        return f"Noise on {subject}, for {change}"

    def to_dict(self) -> Record:
        """Return the relation with all its shift vectors as data for JSON."""
        return {
            "release": self.release,
            "neighbours": self.neighbours,
            "rows": self.rows,
            "span": self.span,
            "shifts": [[*vector] for vector in self.shifts],
        }


def list_partitions(total: int, max_part: int | None = None) -> list[ShiftVector]:
    """List the ways to write a number as a sum of positive integers, the largest part first.

    Args:
        total: The number, >= 0. The only partition of 0 is empty.
        max_part: No part is larger. None: no limit.
    """
    if total == 0:
        return [()]
    largest = total
    if max_part is not None:
        largest = min(total, max_part)
    partitions: list[ShiftVector] = []
    for part in range(largest, 0, -1):
        partitions += [(part, *rest) for rest in list_partitions(total - part, part)]
    return partitions


def _count_partitions(max_total: int) -> list[int]:
    """Return the number of partitions of 0, 1, ..., max_total."""
    counts = [1] + [0] * max_total
    for part in range(1, max_total + 1):
        for total in range(part, max_total + 1):
            counts[total] += counts[total - part]
    return counts
