"""Grids of numbers as a command line spells them, read exactly.

    "0,1e-6,0.01"     a list                        "0.1:4:40"        40 numbers from 0.1 to 4, equally spaced
    "0.1:4:40:log"    the same, equally spaced in the logarithm, to six digits (the ends exactly)

Parts separated by commas add up; what comes back is increasing, each number once.
"""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction

from workbench.errors import InvalidRequest
from workbench.numbers import exact, round_up

__all__ = ["MOST", "grid", "whole_grid"]

MOST = 10_000  # numbers in one grid


def grid(text: str, name: str) -> list[Fraction]:
    """The numbers of a grid, increasing. Raises InvalidRequest, naming the grid and its part."""
    found: set[Fraction] = set()
    for part in text.split(","):
        if not part.strip():
            InvalidRequest.must(name, "numbers and grids such as 0.1:4:40, separated by commas", repr(text))
        found.update(_range(part.strip(), name) if ":" in part else [exact(part, name)])
        if len(found) > MOST:
            InvalidRequest.must(name, f"a grid of at most {MOST} numbers", repr(text))
    return sorted(found)


def whole_grid(text: str, name: str) -> list[int]:
    """As `grid`, for integers. Raises InvalidRequest."""
    found = grid(text, name)
    for value in found:
        if value.denominator != 1:
            InvalidRequest.must(name, "integers", f"{round_up(value):g}")
    return [int(value) for value in found]


def _range(text: str, name: str) -> list[Fraction]:
    first, last, size, *spacing = [part.strip() for part in text.split(":")] + ([] if text.count(":") > 1 else [""])
    if spacing not in ([], ["log"]) or not size.isascii() or not size.isdecimal():
        InvalidRequest.must(name, "FIRST:LAST:COUNT, or FIRST:LAST:COUNT:log, such as 0.1:4:40", repr(text))
    low, high = exact(first, name), exact(last, name)
    count = int(size) if len(size) < 9 else MOST + 1
    if not 2 <= count <= MOST:
        InvalidRequest.must(name, f"FIRST:LAST:COUNT with COUNT in 2..{MOST}", repr(text))
    if low >= high:
        InvalidRequest.must(name, "FIRST:LAST:COUNT with FIRST < LAST", repr(text))
    if not spacing:
        return [low + (high - low) * k / (count - 1) for k in range(count)]
    if low <= 0:
        InvalidRequest.must(name, "FIRST:LAST:COUNT:log with FIRST > 0", repr(text))
    digits = Context(prec=6)
    ends = [Decimal(end.numerator) / Decimal(end.denominator) for end in (low, high)]
    step = (ends[1].ln() - ends[0].ln()) / (count - 1)
    inside = [Fraction(digits.plus((ends[0].ln() + step * k).exp())) for k in range(1, count - 1)]
    return [low, *inside, high]
