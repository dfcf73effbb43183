"""Read intervals ("0..200"), the bins of a quantizer, and real inputs within an interval."""

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

MAX_INPUT_SIZE = 1e100  # Larger inputs and outputs are refused: their squares must be finite.


def read_half_width(c: Any) -> Fraction:
    """Read c, half the width of the inputs [-c, c].

    Args:
        c: A number from 1e-100 to 1e100.

    Raises:
        InvalidRequest: c is no number in this range.
    """
    half_width = read_positive(c, "c")
    if not 1 / Fraction(MAX_INPUT_SIZE) <= half_width <= MAX_INPUT_SIZE:
        must("c", f"a number from {1 / MAX_INPUT_SIZE:g} to {MAX_INPUT_SIZE:g}", c)
    return half_width


def read_rationals(values: Any, name: str) -> Rationals:
    """Read numbers as exact rationals. A float means its binary fraction, not its decimal.

    Args:
        values: Finite numbers in any container.
        name: Name of the option in errors.

    Raises:
        InvalidRequest: A value is no finite number.
    """
    numbers = []
    for value in read_list(values, name, "a list of finite numbers"):
        plain_value = value
        if isinstance(value, np.generic):
            plain_value = value.item()
        is_number = isinstance(plain_value, (int, float, Fraction))
        if isinstance(plain_value, bool) or not is_number:
            must(name, "a list of finite numbers", value)
        try:
            numbers.append(Fraction(plain_value))
        except (OverflowError, ValueError):
            # The first error is raised for infinity, the second one for NaN.
            must(name, "a list of finite numbers", value)
    return tuple(numbers)


def read_real_input(
    x: Any, low: Fraction, high: Fraction, knots: Iterable[Fraction] = (), name: str = "x"
) -> Fraction:
    """Read an input of a mechanism on [low, high].

    A text means the decimal that it spells. A float means a knot if it is the nearest float of the
    knot. Otherwise it means its binary fraction.

    Args:
        x: A number, or a text that spells one.
        low: Smallest input.
        high: Largest input.
        knots: Inputs at which the laws of the mechanism are tabulated exactly.
        name: Name of the input in errors.

    Raises:
        InvalidRequest: The input is no number in the interval.
    """
    if isinstance(x, str):
        exact_input = read_number(x, name)
    else:
        exact_input = read_rationals([x], name)[0]
    if isinstance(x, float):
        exact_input = next((knot for knot in knots if float(knot) == x), exact_input)
    if not low <= exact_input <= high:
        must(name, f"in [{round_down(low):g}, {round_up(high):g}]", x)
    return exact_input


def split_ends(text: str, name: str) -> list[str]:
    """Split a text such as "LOW..HIGH" at its dots.

    Three dots are refused: 0...5 may mean 0 to 5, or 0 to .5.

    Args:
        text: The text. Without dots it is one part.
        name: Name of the option in errors.

    Raises:
        InvalidRequest: The text has three dots or more in a row.
    """
    if "..." in text:
        rule = "written with two dots between the ends, such as 0..5 or 0..0.5"
        must(name, rule, repr(text))
    return text.split("..")


def read_range(value: Any, name: str = "range") -> RationalPair:
    """Read "LOW..HIGH", or two numbers, with LOW < HIGH.

    Args:
        value: The text, or a list or tuple.
        name: Name of the option in errors.

    Raises:
        InvalidRequest: The value is not of this form, or LOW >= HIGH.
    """
    ends = value
    if isinstance(value, str):
        ends = split_ends(value, name)
    if not isinstance(ends, (list, tuple)) or len(ends) != 2:
        must(name, "two numbers LOW..HIGH, such as 0..200000", repr(value))
    low, high = (read_number(end, name) for end in ends)
    if low >= high:
        must(name, "LOW..HIGH with LOW < HIGH", repr(value))
    return low, high


def read_integer_range(value: Any, name: str, constraint: str) -> list[Any]:
    """List the ends of "LOW..HIGH", or the entries of a container, as ints.

    Entries that are no integers are returned unchanged. The caller refuses them.

    Args:
        value: The text or the container.
        name: Name of the option in errors.
        constraint: What the range must be, in errors.

    Raises:
        InvalidRequest: The value is neither a text nor a list.
    """
    ends = value
    if isinstance(value, str):
        ends = split_ends(value, name)
    return [*map(read_integer_text, read_list(ends, name, constraint))]


def read_ends(value: Any, name: str, constraint: str) -> RationalPair:
    """Read "LOW..HIGH", two numbers, or one number that is both ends.

    Args:
        value: A text, a number, or a list or tuple of one or two numbers.
        name: Name of the range in errors.
        constraint: What it must be, in errors.

    Raises:
        InvalidRequest: There are more than two ends, or an end is no number.
    """
    parts = value
    if isinstance(value, str):
        parts = split_ends(value, name)
    if not isinstance(parts, (tuple, list)):
        parts = [parts]
    if len(parts) not in (1, 2):
        must(name, constraint, repr(value))
    # A single number is the first and the last part.
    return read_number(parts[0], name, constraint), read_number(parts[-1], name, constraint)


def format_range(ends: RationalPair) -> str:
    """Format a range as "LOW..HIGH".

    Args:
        ends: Low end and high end.
    """
    return "..".join(map(files.format_fraction, ends))


def read_bins(
    bins: Any, c: Fraction | int = 1, *, cover: bool = True, middle: Any = 0
) -> Rationals:
    """Read the bins B_1 < ... < B_m, which are the outputs of a quantizer.

    Args:
        bins: Numbers, or a string such as "-3,-0.5,0.5,3".
        c: Half the width of the inputs [middle - c, middle + c].
        cover: Whether B_1 <= middle - c and B_m >= middle + c are required.
        middle: Middle of the inputs.

    Raises:
        InvalidRequest: There are fewer than two bins, they are not increasing, or they do not cover
            the inputs.
    """
    if isinstance(bins, str):
        parts: Any = bins.split(",")
    else:
        parts = read_list(bins, "bins", "a list of numbers", column=True)
    outputs = tuple(read_number(part, "a bin") for part in parts)
    if any(abs(output) > MAX_INPUT_SIZE for output in outputs):
        must("bins", f"at most {MAX_INPUT_SIZE:g} in size", max(map(abs, outputs)))
    output_list = ", ".join(f"{float(output):g}" for output in outputs)
    if len(outputs) < 2:
        must("bins", "at least 2 numbers", output_list or "none")
    if any(low >= high for low, high in pairwise(outputs)):
        must("bins", "strictly increasing", output_list)
    if cover and (outputs[0] > middle - c or outputs[-1] < middle + c):
        domain = f"[{float(middle - c):g}, {float(middle + c):g}]"
        if not middle:
            domain = f"[-c, c] = {domain}"
        must("bins", f"numbers that cover the inputs, {domain}", output_list)
    return outputs


def read_inputs(x: ArrayLike, low: float, high: float, *, clip: bool) -> Vector:
    """Read inputs as floats in [low, high]. Shape as x.

    Args:
        x: Numbers. Text, dates, times, masked entries and complex numbers are refused.
        low: Smallest input.
        high: Largest input.
        clip: Whether inputs outside are moved to the nearest end. Otherwise they are errors.

    Raises:
        InvalidRequest: A value is no finite number, or is outside without `clip`.
    """
    values = read_floats(x, "x", column=True)
    is_infinite = ~np.isfinite(values)
    if is_infinite.any():
        must("x", "finite numbers", values[is_infinite].flat[0])
    is_outside = (values < low) | (values > high)
    if not is_outside.any():
        return values
    if not clip:
        got = values[is_outside].flat[0] if values.ndim else values
        raise InvalidRequest(f"x must be in [{low:g}, {high:g}] (or ask for clipping). Got {got}.")
    return np.asarray(np.clip(values, low, high))
