"""Readers of intervals, bins and inputs on them."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from workbench.data.plain import read_floats, read_integer_text, read_list
from workbench.errors import InvalidRequest, must
from workbench.exact.arrays import Vector
from workbench.exact.numbers import (
    RationalPair,
    Rationals,
    read_number,
    read_positive,
    round_down,
    round_up,
)
from workbench.io import files

MAX_INPUT_SIZE = 1e100  # of an input or output, in size: its square must stay finite


def read_half_width(c: Any) -> Fraction:
    """c, half the width of the inputs [-c, c]. Raises InvalidRequest."""
    half = read_positive(c, "c")
    if not 1 / Fraction(MAX_INPUT_SIZE) <= half <= MAX_INPUT_SIZE:
        must("c", f"a number from {1 / MAX_INPUT_SIZE:g} to {MAX_INPUT_SIZE:g}", c)
    return half


def read_rationals(values: Any, name: str) -> Rationals:
    """Numbers as the exact rationals they are, floats included. Raises InvalidRequest."""
    numbers = []
    for value in read_list(values, name, "a list of finite numbers"):
        plain = value.item() if isinstance(value, np.generic) else value
        try:
            if isinstance(plain, bool) or not isinstance(plain, (int, float, Fraction)):
                raise ValueError
            numbers.append(Fraction(plain))
        except (OverflowError, ValueError):  # infinite, or NaN
            must(name, "a list of finite numbers", value)
    return tuple(numbers)


def read_real_input(
    x: Any, low: Fraction, high: Fraction, knots: Iterable[Fraction] = (), name: str = "x"
) -> Fraction:
    """An input of a mechanism on [low, high]: a string is the decimal it spells, a float the rational it is, or the
    knot it is nearest to. Raises InvalidRequest."""
    at = read_number(x, name) if isinstance(x, str) else read_rationals([x], name)[0]
    if isinstance(x, float):
        at = next((knot for knot in knots if float(knot) == x), at)
    if not low <= at <= high:
        must(name, f"in [{round_down(low):g}, {round_up(high):g}]", x)
    return at


def read_range(value: Any, name: str = "range") -> RationalPair:
    """ "LOW..HIGH", or two numbers. Raises InvalidRequest."""
    ends = value.split("..") if isinstance(value, str) else value
    if not isinstance(ends, (list, tuple)) or len(ends) != 2:
        must(name, "two numbers LOW..HIGH, such as 0..200000", repr(value))
    low, high = (read_number(end, name) for end in ends)
    return (low, high) if low < high else must(name, "LOW..HIGH with LOW < HIGH", repr(value))


def read_integer_range(value: Any, name: str, constraint: str) -> list[Any]:
    """List the ends of "LOW..HIGH", or of a container; what is no integer stays as it is.

    constraint: what the range must be, in the error for what has no entries. Raises InvalidRequest.
    """
    ends = value.split("..") if isinstance(value, str) else value
    return [*map(read_integer_text, read_list(ends, name, constraint))]


def read_ends(value: Any, name: str, constraint: str) -> RationalPair:
    """Read "LOW..HIGH", two numbers, or one number that is both ends.

    Args:
        value: A text, a number, or a list or tuple of one or two.
        name: Name of the range in errors.
        constraint: What it must be, in errors.

    Raises:
        InvalidRequest: There are more than two ends, or an end is no number.
    """
    parts = value.split("..") if isinstance(value, str) else value
    if not isinstance(parts, (tuple, list)):
        parts = [parts]
    if len(parts) not in (1, 2):
        must(name, constraint, repr(value))
    return read_number(parts[0], name, constraint), read_number(parts[-1], name, constraint)


def format_range(ends: RationalPair) -> str:
    """ "LOW..HIGH"."""
    return "..".join(map(files.format_fraction, ends))


def read_bins(
    bins: Any, c: Fraction | int = 1, *, cover: bool = True, middle: Any = 0
) -> Rationals:
    """The bins a request means: at least 2, finite, strictly increasing, with B_1 <= middle - c, B_m >= middle + c.

    bins: numbers, or one string such as "-3,-0.5,0.5,3". Raises InvalidRequest.
    """
    parts = (
        bins.split(",")
        if isinstance(bins, str)
        else read_list(bins, "bins", "a list of numbers", column=True)
    )
    outputs = tuple(read_number(part, "a bin") for part in parts)
    if any(abs(b) > MAX_INPUT_SIZE for b in outputs):
        must("bins", f"at most {MAX_INPUT_SIZE:g} in size", max(map(abs, outputs)))
    shown = ", ".join(f"{float(b):g}" for b in outputs)
    if len(outputs) < 2:
        must("bins", "at least 2 numbers", shown or "none")
    if any(a >= b for a, b in pairwise(outputs)):
        must("bins", "strictly increasing", shown)
    if cover and (outputs[0] > middle - c or outputs[-1] < middle + c):
        domain = f"[{float(middle - c):g}, {float(middle + c):g}]"
        must(
            "bins",
            f"numbers that cover the inputs, {'' if middle else '[-c, c] = '}{domain}",
            shown,
        )
    return outputs


def read_inputs(x: ArrayLike, low: float, high: float, *, clip: bool) -> Vector:
    """Inputs as floats in [low, high]; those outside are an error, or clipped when asked. Raises InvalidRequest.

    Numbers only: text, dates and times, masked entries and complex numbers are refused.
    """
    values = read_floats(x, "x", column=True)
    infinite = ~np.isfinite(values)
    if infinite.any():
        must("x", "finite numbers", values[infinite].flat[0])
    outside = (values < low) | (values > high)
    if not outside.any():
        return values
    if not clip:
        got = values[outside].flat[0] if values.ndim else values
        raise InvalidRequest(f"x must be in [{low:g}, {high:g}] (or ask for clipping). Got {got}.")
    return np.asarray(np.clip(values, low, high))
