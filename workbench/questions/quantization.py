"""The question of a quantizer: which outputs, for which inputs, distributed how; and how such numbers are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from textwrap import shorten
from typing import Any

from workbench.data.intervals import (
    format_range,
    read_bins,
    read_half_width,
    read_range,
)
from workbench.data.plain import read_integer
from workbench.errors import InvalidRequest, must
from workbench.exact.numbers import ZERO, RationalPair, Rationals, Real
from workbench.io.shown import OneLine
from workbench.questions.density import Density, parse_density


@dataclass(frozen=True, init=False)
class Quantization(OneLine):
    """Publish x in [-c, c], or in a range [low, high], as one of m outputs, without bias.

    Args:
        bins: the outputs B_1 < ... < B_m that cover the inputs: numbers, or a string "-3,-0.5,0.5,3".
        levels: m >= 2 instead, when the outputs are to be optimised.
        c: half the width of the input domain, 1 unless there is a range.
        density: of the inputs: "uniform", "normal:MU,SIGMA" (clipped to the inputs), "parts:W,W,..." or a
            `Density` of x - middle.
        range: "LOW..HIGH" or two numbers, instead of c: the inputs in units of the data.

    Attributes:
        middle: of the inputs, 0 without a range.

    Raises:
        InvalidRequest.
    """

    bins: Rationals | None
    levels: int
    c: Fraction
    density: Density
    middle: Fraction

    def __init__(
        self,
        bins: Any = None,
        *,
        levels: int | None = None,
        c: Real | None = None,
        density: Any = "uniform",
        range: Any = None,
    ) -> None:
        if (bins is None) == (levels is None):
            raise InvalidRequest("bins or levels must be given, and not both.")
        if range is not None and c is not None:
            must("c", "left out with a range", c)
        half, middle = read_half_width(1 if c is None else c), ZERO
        if range is not None:
            low, high = read_range(range)
            half, middle = read_half_width((high - low) / 2), (low + high) / 2
        outputs = None if bins is None else read_bins(bins, half, middle=middle)
        count = read_integer(levels, "levels", 2, 64) if outputs is None else len(outputs)
        law = parse_density(density, float(half), float(middle))
        self.__dict__.update(bins=outputs, levels=count, c=half, density=law, middle=middle)

    @property
    def ends(self) -> RationalPair:
        """The least and the largest input."""
        return self.middle - self.c, self.middle + self.c

    @property
    def centred_bins(self) -> Rationals | None:
        """The bins in units of c around the middle, None where they are optimised."""
        return None if self.bins is None else tuple((b - self.middle) / self.c for b in self.bins)

    def __repr__(self) -> str:
        what = (
            f"levels={self.levels}"
            if self.bins is None
            else "bins=[" + ", ".join(f"{b:g}" for b in map(float, self.bins)) + "]"
        )
        where = f"range={format_range(self.ends)}" if self.middle else f"c={float(self.c):g}"
        return f"Quantization({what}, {where}, density={self.density.name})"

    def __str__(self) -> str:
        low, high = map(float, self.ends)
        which = (
            ""
            if self.bins is None
            else f": {shorten(', '.join(f'{float(b):g}' for b in self.bins), 40)}"
        )
        inputs = f"{self.density.name} inputs in [{low:g}, {high:g}]"
        return f"Unbiased quantizer of {inputs} to {self.levels} outputs{which}"


def are_symmetric(bins: Sequence[Fraction]) -> bool:
    """Whether the mirror image of every bin is one."""
    return [*bins] == [-b for b in reversed(bins)]
