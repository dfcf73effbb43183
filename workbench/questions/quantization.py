"""Define the question of a quantizer: its outputs, its inputs and their distribution.

A quantizer publishes a real input x as one of m outputs (bins). For example, Quantization("-2,0,2")
publishes an x in [-1, 1] as -2, 0 or 2.
"""

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

MAX_LEVELS = 64  # More outputs that are to be optimised are refused.
_MAX_LISTED_CHARACTERS = 40  # A list of outputs with more characters is shortened in reports.


@dataclass(frozen=True, init=False)
class Quantization(OneLine):
    """Publish x in [-c, c], or in a range [low, high], as one of m outputs, without bias.

    Args:
        bins: The outputs B_1 < ... < B_m that cover the inputs: numbers, or a string
            "-3,-0.5,0.5,3".
        levels: Number m >= 2 of outputs, instead of bins, if the outputs are to be optimised.
        c: Half the width of the input domain. Default: 1, or half the width of the range.
        density: The law of the inputs: "uniform", "normal:MU,SIGMA" (clipped to the inputs),
            "parts:W,W,..." (weights of equal parts) or a `Density` of x - middle.
        range: "LOW..HIGH" or two numbers, instead of c: the inputs in units of the data.

    Attributes:
        middle: The middle of the inputs, 0 without a range.

    Raises:
        InvalidRequest: If both or neither of bins and levels, or both c and range, are given; if
            the bins are not increasing or do not cover the inputs; or if the density is unknown.
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
        if range is None:
            half_width = read_half_width(1 if c is None else c)
            middle = ZERO
        else:
            low, high = read_range(range)
            half_width = read_half_width((high - low) / 2)
            middle = (low + high) / 2
        outputs = None
        if bins is None:
            count = read_integer(levels, "levels", 2, MAX_LEVELS)
        else:
            outputs = read_bins(bins, half_width, middle=middle)
            count = len(outputs)
        law = parse_density(density, float(half_width), float(middle))
        # The class is frozen, so its attributes are set in `__dict__`.
        self.__dict__.update(bins=outputs, levels=count, c=half_width, density=law, middle=middle)

    @property
    def ends(self) -> RationalPair:
        """Return the smallest and the largest input."""
        return self.middle - self.c, self.middle + self.c

    @property
    def centred_bins(self) -> Rationals | None:
        """Return (B_i - middle) / c for every bin B_i, or None if the bins are to be optimised."""
        if self.bins is None:
            return None
        return tuple((value - self.middle) / self.c for value in self.bins)

    def __repr__(self) -> str:
        outputs = f"levels={self.levels}"
        if self.bins is not None:
            outputs = f"bins=[{_format_bins(self.bins)}]"
        inputs = f"range={format_range(self.ends)}" if self.middle else f"c={float(self.c):g}"
        return f"Quantization({outputs}, {inputs}, density={self.density.name})"

    def __str__(self) -> str:
        low, high = map(float, self.ends)
        inputs = f"{self.density.name} inputs in [{low:g}, {high:g}]"
        text = f"Unbiased quantizer of {inputs} to {self.levels} outputs"
        if self.bins is None:
            return text
        return f"{text}: {shorten(_format_bins(self.bins), _MAX_LISTED_CHARACTERS)}"


def _format_bins(bins: Sequence[Fraction]) -> str:
    """Format bins as short decimals, separated by commas."""
    return ", ".join(f"{float(value):g}" for value in bins)


def are_symmetric(bins: Sequence[Fraction]) -> bool:
    """Return whether the mirror image of every bin is a bin.

    Args:
        bins: The outputs, increasing.
    """
    return [*bins] == [-value for value in reversed(bins)]
