"""Any finite channel from labels to published values, with the laws of all labels held exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from workbench.errors import InvalidRequest
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.draws import Source
from workbench.mechanisms.labels import Labels
from workbench.mechanisms.randomized_response import LossFunction

__all__ = ["LabelChannel", "extreme_pairs"]


@dataclass(frozen=True, eq=False)
class LabelChannel:
    """labels: with their prior; outputs: (m,) published values; channel: (k, m), one exact law per label.

    Raises InvalidRequest when the shapes differ.
    """

    labels: Labels
    outputs: NDArray[np.float64]
    channel: Channel

    def __post_init__(self) -> None:
        shape = (len(self.channel.rows), len(self.channel.rows[0]))
        if shape != (self.labels.k, self.outputs.size):
            InvalidRequest.must("channel", f"of shape {(self.labels.k, self.outputs.size)}", shape)

    @property
    def matrix(self) -> NDArray[np.float64]:
        """Pr[o|y] in floats. Shape (k, m)."""
        return self.channel.matrix

    @property
    def audit_rows(self) -> Channel:
        """The rows whose comparison shows the privacy of the mechanism: all."""
        return self.channel

    def loss(self, loss: LossFunction, prior: ArrayLike | None = None) -> float:
        """E ℓ(o, y) under a prior (k,), by default the labels' own; outputs of mass 0 cost nothing."""
        p = self.labels.prior if prior is None else np.asarray(prior, dtype=float)
        cost = loss(self.outputs[None, :], self.labels.values[:, None])
        mass = p[:, None] * self.matrix
        return float((mass * np.where(mass > 0, cost, 0.0)).sum())

    def means(self) -> NDArray[np.float64]:
        """E[o | y]. Shape (k,)."""
        return np.asarray(self.matrix @ self.outputs)

    def sample(self, values: ArrayLike, source: Source | None = None) -> NDArray[np.float64]:
        """A randomized copy of labels, from the exact laws. Raises InvalidRequest for a value that is no label."""
        at, source = self.labels.positions(values), source or Source()
        drawn = np.empty(at.size, dtype=np.int64)
        for position in np.unique(at):
            which = np.flatnonzero(at == position)
            drawn[which] = source.choose(self.channel.rows[int(position)], which.size)
        return self.outputs[drawn]

    def __repr__(self) -> str:
        return f"LabelChannel({self.labels!r}, {self.outputs.size} outputs)"


def extreme_pairs(channel: Channel) -> list[tuple[int, int]]:
    """For each output the rows that give it most and least, decided exactly: max_{y,y',o} M[y,o]/M[y',o] is among them.

    So auditing these m pairs for pure ε audits all k (k-1). A pair of equal rows is left out, unless all are equal.
    """
    pairs = set()
    for j in range(len(channel.rows[0])):
        column = [row[j] for row in channel.rows]
        pairs.add((column.index(max(column)), column.index(min(column))))
    different = {pair for pair in pairs if pair[0] != pair[1]}
    return sorted(different) or [(0, 1)]
