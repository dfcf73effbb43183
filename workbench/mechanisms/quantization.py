"""The question of a quantizer: which outputs, for which inputs, distributed how; and how such numbers are read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from workbench.errors import InvalidRequest
from workbench.exact.arrays import Vector
from workbench.exact.numbers import Real, exact, positive, round_down, round_up
from workbench.exact.plain import plain_list, plain_numbers, whole_number
from workbench.mechanisms.density import Density, spelled

LARGEST = 1e100  # of an input or output, in size: its square must stay finite


@dataclass(frozen=True, init=False)
class Quantization:
    """Publish x in [-c, c] as one of m outputs, without bias.

    Args:
        bins: the outputs B_1 < ... < B_m with B_1 <= -c and B_m >= c: numbers, or a string "-3,-0.5,0.5,3".
        levels: m >= 2 instead, when the outputs are to be optimised.
        c: half the width of the input domain.
        density: of the inputs: "uniform", "normal:MU,SIGMA" (clipped to [-c, c]) or a `Density`.

    Raises:
        InvalidRequest.
    """

    bins: tuple[Fraction, ...] | None
    levels: int
    c: Fraction
    density: Density

    def __init__(self, bins: Any = None, *, levels: int | None = None, c: Real = 1, density: Any = "uniform") -> None:
        if (bins is None) == (levels is None):
            raise InvalidRequest("bins or levels must be given, and not both.")
        half = half_width(c)
        outputs = None if bins is None else read_bins(bins, half)
        count = whole_number(levels, "levels", 2, 64) if outputs is None else len(outputs)
        self.__dict__.update(bins=outputs, levels=count, c=half, density=spelled(density, float(half)))

    @property
    def symmetric(self) -> bool:
        """Whether the bins (if any) and the density are symmetric around 0."""
        return self.density.symmetric and (self.bins is None or symmetric_bins(self.bins))

    def __repr__(self) -> str:
        what = (
            f"levels={self.levels}"
            if self.bins is None
            else "bins=[" + ", ".join(f"{b:g}" for b in map(float, self.bins)) + "]"
        )
        return f"Quantization({what}, c={float(self.c):g}, density={self.density.name})"


def symmetric_bins(bins: Sequence[Fraction]) -> bool:
    """Whether the mirror image of every bin is one."""
    return [*bins] == [-b for b in reversed(bins)]


def half_width(c: Any) -> Fraction:
    """c, half the width of the inputs [-c, c]. Raises InvalidRequest."""
    half = positive(c, "c")
    if not 1 / Fraction(LARGEST) <= half <= LARGEST:
        InvalidRequest.must("c", f"a number from {1 / LARGEST:g} to {LARGEST:g}", c)
    return half


def rationals(values: Any, name: str) -> tuple[Fraction, ...]:
    """Numbers as the exact rationals they are, floats included. Raises InvalidRequest."""
    numbers = []
    for value in plain_list(values, name, "a list of finite numbers"):
        plain = value.item() if isinstance(value, np.generic) else value
        try:
            if isinstance(plain, bool) or not isinstance(plain, (int, float, Fraction)):
                raise ValueError
            numbers.append(Fraction(plain))
        except (OverflowError, ValueError):  # infinite, or NaN
            InvalidRequest.must(name, "a list of finite numbers", value)
    return tuple(numbers)


def real_input(x: Any, low: Fraction, high: Fraction, knots: Iterable[Fraction] = ()) -> Fraction:
    """An input of a mechanism on [low, high]: a string is the decimal it spells, a float the rational it is, or the
    knot it is nearest to. Raises InvalidRequest."""
    at = exact(x, "x") if isinstance(x, str) else rationals([x], "x")[0]
    if isinstance(x, float):
        at = next((knot for knot in knots if float(knot) == x), at)
    if not low <= at <= high:
        InvalidRequest.must("x", f"in [{round_down(low):g}, {round_up(high):g}]", x)
    return at


def read_bins(bins: Any, c: Fraction | int = 1, *, cover: bool = True) -> tuple[Fraction, ...]:
    """The bins a request means: at least 2, finite, strictly increasing, with B_1 <= -c and B_m >= c.

    bins: numbers, or one string such as "-3,-0.5,0.5,3". Raises InvalidRequest.
    """
    if isinstance(bins, str):
        parts: list[Any] = bins.split(",") if bins.strip() else []
        if any(not part.strip() for part in parts):
            InvalidRequest.must("bins", 'numbers between commas such as "-3,-0.5,0.5,3"', repr(bins))
    else:
        parts = plain_list(bins, "bins", "a list of numbers")
    outputs = tuple(exact(part, "a bin") for part in parts)
    if any(abs(b) > LARGEST for b in outputs):
        InvalidRequest.must("bins", f"at most {LARGEST:g} in size", max(map(abs, outputs)))
    shown = ", ".join(f"{float(b):g}" for b in outputs)
    if len(outputs) < 2:
        InvalidRequest.must("bins", "at least 2 numbers", shown or "none")
    if any(a >= b for a, b in pairwise(outputs)):
        InvalidRequest.must("bins", "strictly increasing", shown)
    if cover and (outputs[0] > -c or outputs[-1] < c):
        half = float(c)
        InvalidRequest.must("bins", f"numbers that cover the inputs, [-c, c] = [{-half:g}, {half:g}]", shown)
    return outputs


def read_inputs(x: ArrayLike, low: float, high: float, *, clip: bool) -> Vector:
    """Inputs as floats in [low, high]; those outside are an error, or clipped when asked. Raises InvalidRequest.

    Numbers only: text, dates and times, masked entries and complex numbers are refused.
    """
    values = plain_numbers(x, "x")
    infinite = ~np.isfinite(values)
    if infinite.any():
        InvalidRequest.must("x", "finite numbers", values[infinite].flat[0])
    outside = (values < low) | (values > high)
    if not outside.any():
        return values
    if not clip:
        got = values[outside].flat[0] if values.ndim else values
        raise InvalidRequest(f"x must be in [{low:g}, {high:g}] (or ask for clipping). Got {got}.")
    return np.asarray(np.clip(values, low, high))
