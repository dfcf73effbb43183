"""Numbers of a mechanism on real inputs: data to be published, outputs, knots."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from workbench.errors import InvalidRequest
from workbench.exact.numbers import exact, positive
from workbench.exact.plain import plain_list, plain_numbers

__all__ = ["half_width", "rationals", "read_bins", "read_inputs"]

LARGEST = 1e100  # of an input or output, in size: its square must stay finite


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
        if isinstance(plain, bool) or not isinstance(plain, (int, float, Fraction)) or plain != plain:
            InvalidRequest.must(name, "a list of finite numbers", value)
        try:
            numbers.append(Fraction(plain))
        except (OverflowError, ValueError):
            InvalidRequest.must(name, "a list of finite numbers", value)
    return tuple(numbers)


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


def read_inputs(x: ArrayLike, low: float, high: float, *, clip: bool) -> NDArray[np.float64]:
    """Inputs as floats in [low, high]; those outside are an error, or clipped when asked. Raises InvalidRequest.

    Numbers only: text, dates and times, masked entries and complex numbers are refused.
    """
    values = plain_numbers(x, "x")
    if not np.isfinite(values).all():
        InvalidRequest.must("x", "finite numbers", values[~np.isfinite(values)].flat[0])
    outside = (values < low) | (values > high)
    if not outside.any():
        return values
    if not clip:
        got = values[outside].flat[0] if values.ndim else values
        raise InvalidRequest(f"x must be in [{low:g}, {high:g}] (or ask for clipping). Got {got}.")
    return np.asarray(np.clip(values, low, high))
