"""Any finite channel from labels to published values, with the laws of all labels held exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.errors import InvalidRequest
from workbench.exact.distribution import Distribution
from workbench.io.records import float_array, floats, law_record, listed, read_law, take
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.label_randomizers.label_mechanism import LabelMechanism
from workbench.mechanisms.label_randomizers.labels import Labels

__all__ = ["LabelChannel"]


@dataclass(frozen=True, eq=False)
class LabelChannel(LabelMechanism):
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

    def row(self, position: int) -> Distribution:
        """The exact law of the output for the label at a position."""
        return self.channel.rows[position]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, read back by `from_dict`."""
        laws = [*map(law_record, self.channel.rows)]
        return {"kind": "label-channel", **self.labels.record(), "outputs": floats(self.outputs), "rows": laws}

    @classmethod
    def from_dict(cls, data: Any) -> LabelChannel:
        """The mechanism written by `to_dict`, which claims no privacy: audit it. Raises CorruptFile, InvalidRequest."""
        entries = take(data, "The label channel", {"kind", "labels", "prior", "outputs", "rows"})
        rows = tuple(read_law(row, "A row") for row in listed(entries["rows"], "rows"))
        return cls(Labels.from_record(entries), float_array(entries["outputs"], "outputs"), Channel(rows))

    @property
    def matrix(self) -> NDArray[np.float64]:
        """Pr[o|y] in floats. Shape (k, m)."""
        return self.channel.matrix

    @property
    def audit_rows(self) -> Channel:
        """The rows whose comparison shows the privacy of the mechanism: all."""
        return self.channel

    def means(self) -> NDArray[np.float64]:
        """E[o | y]. Shape (k,)."""
        return np.asarray(self.matrix @ self.outputs)

    def __repr__(self) -> str:
        return f"LabelChannel({self.labels!r}, {self.outputs.size} outputs)"
