"""Find the connected parts of a neighbour relation. No budget applies between two parts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.exact.arrays import Positions
from workbench.exact.objects import Pair


def label_connected_parts(count: int, pairs: Sequence[Pair]) -> Positions:
    """Label the connected part of every position by the smallest position in it.

    Shape (count,).

    In every round both ends of a pair take the lower label of the two, and every label that of its
    own position; at a fixed point the ends of all pairs agree.

    Args:
        count: The number of positions.
        pairs: The neighbouring positions.
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
    """Describe a neighbour relation that falls into parts.

    Args:
        parts: The number of parts.
    """
    return f"The neighbour relation has {parts} separate parts; between them nothing is hidden."
