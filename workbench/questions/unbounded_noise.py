"""Define questions whose answers are all integers or all reals, or an interval of them.

Neighbours are answers that differ by at most the sensitivity. With a clamping range, the answers
lie in this range, and outputs outside it are moved to its nearest end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from workbench.data.intervals import read_integer_range, read_range
from workbench.data.plain import MAX_FILE_INTEGER, is_integer, read_integer
from workbench.errors import must
from workbench.exact.numbers import read_positive
from workbench.exact.objects import Pair, Record
from workbench.io.files import format_fraction
from workbench.io.shown import OneLine

MAX_SENSITIVITY = 10_000  # Larger sensitivities of integer noise are refused.
MAX_ANSWERS = 10_001  # A clamping range of more integers is refused.
_DEFAULT_GRID_BITS = 21  # The default grid of real noise is 2^-21 to 2^-20 of the sensitivity.


class UnboundedNoise(OneLine):
    """A query whose answers are unbounded: IntegerNoise or RealNoise."""

    domain: ClassVar[str]  # The set of all answers in words.
    sensitivity: Any
    clamp: Any

    def __str__(self) -> str:
        text = f"Noise on the {self.domain}, sensitivity {float(self.sensitivity):g}"
        if self.clamp is None:
            return text
        ends = "..".join(f"{float(end):g}" for end in self.clamp)
        return f"{text}, clamped into {ends}"


@dataclass(frozen=True)
class IntegerNoise(UnboundedNoise):
    """A query with integer answers. Answers that differ by at most `sensitivity` are neighbours.

    Attributes:
        sensitivity: The largest difference of neighbours, an integer from 1 to 10,000.
        clamp: Range (low, high) of the answers, also as "low..high". Outputs are clamped into it.
            None: all integers are answers.

    Raises:
        InvalidRequest: If the sensitivity is outside its range, or clamp is no range of integers.
    """

    domain: ClassVar[str] = "integers"
    sensitivity: int = 1
    clamp: Pair | None = None

    def __post_init__(self) -> None:
        # The class is frozen, so its attributes are set in `__dict__`.
        self.__dict__["sensitivity"] = read_integer(
            self.sensitivity, "sensitivity", 1, MAX_SENSITIVITY
        )
        if self.clamp is None:
            return
        ends: Any = read_integer_range(self.clamp, "clamp", "two integers low < high")
        if (
            len(ends) != 2
            or not all(is_integer(end) for end in ends)
            or not 0 < ends[1] - ends[0] < MAX_ANSWERS
        ):
            must("clamp", f"two integers low < high, at most {MAX_ANSWERS} answers", self.clamp)
        self.__dict__["clamp"] = ends = (int(ends[0]), int(ends[1]))
        # A sum that overflows would be clamped to the other end.
        if max(map(abs, ends)) > MAX_FILE_INTEGER:
            must("clamp", f"within {-MAX_FILE_INTEGER}..{MAX_FILE_INTEGER}", self.clamp)
        if self.sensitivity > ends[1] - ends[0]:
            must(
                "sensitivity",
                f"at most {ends[1] - ends[0]}, as answers are clamped",
                self.sensitivity,
            )

    def to_dict(self) -> Record:
        """Return the question as data for JSON."""
        return {
            "sensitivity": self.sensitivity,
            "clamp": None if self.clamp is None else [*self.clamp],
        }


@dataclass(frozen=True)
class RealNoise(UnboundedNoise):
    """A query with real answers. Answers that differ by at most `sensitivity` are neighbours.

    Attributes:
        sensitivity: The largest difference Δ > 0 of neighbours, exact.
        grid: Outputs are rounded to multiples of this number > 0. Default: a power of two near
            Δ/2^20.
        clamp: The range (low, high) into which outputs are clamped. None: no clamping.

    Raises:
        InvalidRequest: If the sensitivity or the grid is outside its range, or clamp is no range.
    """

    domain: ClassVar[str] = "reals"
    sensitivity: Any = 1
    grid: Any = None
    clamp: Any = None

    def __post_init__(self) -> None:
        sensitivity = read_positive(self.sensitivity, "sensitivity")
        if not Fraction(1, 10**100) < sensitivity < 10**100:
            must("sensitivity", "a number between 1e-100 and 1e100", self.sensitivity)
        if self.grid is None:
            _, exponent = math.frexp(float(sensitivity))
            grid = Fraction(2) ** (exponent - _DEFAULT_GRID_BITS)
        else:
            grid = read_positive(self.grid, "grid")
        clamp = None if self.clamp is None else read_range(self.clamp, "clamp")
        # The class is frozen, so its attributes are set in `__dict__`.
        self.__dict__.update(sensitivity=sensitivity, grid=grid, clamp=clamp)

    def to_dict(self) -> Record:
        """Return the question as data for JSON."""
        record: Record = {
            "sensitivity": format_fraction(self.sensitivity),
            "grid": format_fraction(self.grid),
        }
        if self.clamp is not None:
            record["clamp"] = [*map(format_fraction, self.clamp)]
        return record
