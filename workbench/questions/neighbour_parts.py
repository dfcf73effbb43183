"""The connected parts of a neighbour relation: between two of them nothing is hidden."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.exact.arrays import Positions
from workbench.exact.objects import Pair


def label_connected_parts(count: int, pairs: Sequence[Pair]) -> Positions:
    """Number the connected part of every position: by the least position in it. Shape (count,).

    In every round both ends of a pair take the lower label of the two, and every label that of its own position; at a
    fixed point the ends of all pairs agree.
    """
    labels = np.arange(count, dtype=np.intp)
    first, second = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
    while True:
        lower = np.minimum(labels[first], labels[second])
        merged = labels.copy()
        np.minimum.at(merged, labels[first], lower)
        np.minimum.at(merged, labels[second], lower)
        merged = merged[merged]
        if (merged == labels).all():
            return labels
        labels = merged


def describe_separation(parts: int) -> str:
    """Say that a relation falls into parts."""
    return f"The neighbour relation has {parts} separate parts; between them nothing is hidden."
