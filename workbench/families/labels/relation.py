"""Which labels neighbour each other, and with what budget."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np

from models.channel import consecutive
from workbench.errors import InvalidRequest
from workbench.mechanisms.label_randomizers.labels import Labels
from workbench.privacy.notions import notion as named

__all__ = ["Neighbours", "Pairs", "budgets_of", "groups_of", "pairs_of"]

Pairs = tuple[tuple[int, int], ...]
Neighbours = str | Pairs


def pairs_of(neighbours: Neighbours, notion: str, k: int) -> Pairs | None:
    """Unordered neighbouring positions, or None for the compact all-pairs rows. Raises InvalidRequest."""
    measure = named(notion)
    if measure.per_distance:
        if not isinstance(neighbours, str):
            InvalidRequest.must("neighbours", "left out when notion is metric (every pair has its budget)", "pairs")
        return consecutive(k)  # their budgets add up along the line
    if isinstance(neighbours, str):
        if neighbours == "consecutive":
            return consecutive(k)
        return None if measure.ratio_decides else tuple(combinations(range(k), 2))
    wrong = [pair for pair in neighbours if pair[0] == pair[1] or not all(0 <= at < k for at in pair)]
    if wrong or not neighbours:
        InvalidRequest.must("neighbours", f"pairs of different positions in 0..{k - 1}", wrong[0] if wrong else "none")
    return tuple(sorted({(min(pair), max(pair)) for pair in neighbours}))


def groups_of(
    question: Labels, pairs: Pairs | None, notion: str, epsilon: Fraction
) -> tuple[tuple[int, ...], list[float]]:
    """(the group of every pair, the ε of every group): one for all, or one for each distance of neighbouring labels."""
    if not named(notion).per_distance or pairs is None:
        return (0,) * len(pairs or ()), [float(epsilon)]
    gaps = np.diff(question.values)
    levels = sorted(set(gaps.tolist()))
    return tuple(levels.index(gap) for gap in gaps.tolist()), [float(epsilon) * level for level in levels]


def budgets_of(question: Labels, epsilon: Fraction) -> dict[tuple[int, int], Fraction]:
    """ε |y - y'| of consecutive labels, exactly."""
    y = [Fraction(value) for value in question.values.tolist()]
    return {(i, i + 1): epsilon * (high - low) for i, (low, high) in enumerate(pairwise(y))}
