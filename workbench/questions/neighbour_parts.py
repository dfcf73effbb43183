"""Find the connected parts of a neighbour relation. No budget applies between two parts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.exact.arrays import Positions
from workbench.exact.objects import Pair


def label_connected_parts(count: int, pairs: Sequence[Pair]) -> Positions:
    """Label every position by the smallest position in its connected part.

    Every position starts with its own number as its label. In each round, both ends of a pair take
    the smaller of their labels, and then every label L is replaced by the label of the position L.
    When nothing changes any more, the ends of all pairs have equal labels.

    Args:
        count: The number of positions.
        pairs: Pairs of neighbouring positions in 0..count-1.

    Returns:
        Label of each position. Shape (count,).
    """
    labels = np.arange(count, dtype=np.intp)
    first, second = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
    while True:
        pair_minimum = np.minimum(labels[first], labels[second])
        new_labels = labels.copy()
        np.minimum.at(new_labels, first, pair_minimum)
        np.minimum.at(new_labels, second, pair_minimum)
        new_labels = new_labels[new_labels]
        if (new_labels == labels).all():
            return labels
        labels = new_labels


def describe_separation(parts: int) -> str:
    """Describe a neighbour relation of several connected parts in a sentence.

    Args:
        parts: The number of connected parts, >= 2.
    """
    return f"The neighbour relation has {parts} separate parts; between them nothing is hidden."
