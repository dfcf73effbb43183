"""Losses of noise η on a group of sizes (s_1, ..., s_k) that have names: the sum over the parts of η of

squared            η (s - η)
eta-squared        η²
circular-squared   min(η, s - η)²
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product

__all__ = ["PART_LOSSES", "known_losses"]

PART_LOSSES: dict[str, Callable[[int, int], int]] = {
    "squared": lambda part, size: part * (size - part),
    "eta-squared": lambda part, size: part**2,
    "circular-squared": lambda part, size: min(part, size - part) ** 2,
}


def known_losses(name: str, sizes: Sequence[int]) -> tuple[Fraction, ...] | None:
    """The losses (N,) of every η in row-major order, for a name of the table; None for other names."""
    if name not in PART_LOSSES:
        return None
    parts = [[PART_LOSSES[name](part, size) for part in range(size)] for size in sizes]
    return tuple(Fraction(sum(point)) for point in product(*parts))
