"""Every mechanism in a notebook, as a picture of its law, and as a file that claims nothing."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workbench.exact.arrays import Vector
from workbench.exact.distribution import Distribution
from workbench.exact.objects import Record
from workbench.exact.random_source import Source
from workbench.exact.sampler import Sampler
from workbench.io.files import write_json
from workbench.io.plain_figures import (
    FigureData,
    draw_chart,
    make_heat_figure,
    make_line_figure,
    make_series,
)
from workbench.io.records import UNCHANGED, RecordForm
from workbench.io.shown import Facts, Shown
from workbench.mechanisms.mechanism import Comparison

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawn


MECHANISM_FORMAT = "dp-workbench mechanism"
MECHANISM_FILE_FORM = RecordForm(
    "A mechanism", {"format": MECHANISM_FORMAT, "version": 1}, mechanism=UNCHANGED
)
_DRAWN = 400  # outputs


class ShownMechanism(Shown):
    """What the mechanisms of the package share beside their laws."""

    inputs: Any
    outputs: Any
    matrix: Any

    @abstractmethod
    def law(self, x: Any) -> Distribution:
        """The exact law of the output's position on input x. Raises InvalidRequest."""

    def draw(self, x: Any, count: int, source: Source) -> NDArray[Any]:
        """What is published on input x, independently, from its exact law. Shape (count,). Raises InvalidRequest."""
        drawn: NDArray[Any] = self.outputs[Sampler(self.law(x), source).draw(count)]
        return drawn

    @abstractmethod
    def comparisons(self) -> Iterable[Comparison]:
        """Every ordered neighbouring pair of laws."""

    def extremes(self) -> Iterable[Comparison]:
        """All of them, where no fewer are known to decide pure ε."""
        return self.comparisons()

    @abstractmethod
    def describe(self) -> str:
        """One line."""

    @abstractmethod
    def to_dict(self) -> Record:
        """JSON-ready."""

    def facts(self) -> Facts:
        """What it is, and what it publishes."""
        first = ", ".join(str(value) for value in np.asarray(self.outputs)[:8].tolist())
        more = f", ... ({len(self.outputs)})" if len(self.outputs) > 8 else ""
        return [("mechanism", self.describe()), ("publishes", first + more)]

    def drawing(self) -> FigureData:
        """The picture of its law as plain data: of a channel the outputs that it publishes, input by input."""
        cells = np.asarray(self.matrix, dtype=float)
        outputs = np.asarray(self.outputs)
        used = np.flatnonzero(cells.max(axis=0) > 0)
        title = "Probability of every output, input by input"
        points = [tuple(point) if np.ndim(point) else point for point in outputs[used]]
        return make_heat_figure(
            title, "input", self.inputs, "published value", points, cells[:, used]
        )

    def figure(self) -> Drawn:
        """The picture of its law."""
        return draw_chart(self.drawing(), self.describe())

    @property
    def drawable(self) -> bool:
        """Whether the outputs are few enough."""
        return len(self.outputs) <= _DRAWN

    def save(self, path: str | Path) -> None:
        """Write the mechanism, which claims nothing, whole or not at all; `workbench.load` reads it back."""
        write_json(path, MECHANISM_FILE_FORM.write(self, mechanism=self.to_dict()))


def affine_series(outputs: Vector, knots: Vector, ends: Vector) -> list[FigureData]:
    """p(x, i) against x as a line for each of the outputs (m,): affine between knots (K + 1,), with end laws (2K, m);
    gaps at jumps."""
    x = np.stack([knots[:-1], knots[1:], np.full(knots.size - 1, np.nan)], axis=1).ravel()
    drawn = []
    for k, (output, law) in enumerate(zip(outputs, ends.T, strict=True)):
        pieces = law.reshape(-1, 2)
        y = np.concatenate([pieces, np.full((len(pieces), 1), np.nan)], axis=1).ravel()
        joined = np.flatnonzero(np.isclose(pieces[:-1, 1], pieces[1:, 0], atol=1e-9))
        keep = np.ones(x.size, dtype=bool)
        keep[3 * joined + 2] = False  # no gap where the law does not jump
        drawn.append(make_series(f"output {output:.4g}", "line", k, x[keep], y[keep]))
    return drawn


def affine_figure(outputs: Vector, knots: Vector, ends: Vector) -> FigureData:
    """The whole output law of a mechanism on real inputs; arguments as `affine`."""
    title = "Probability of every output, against the input"
    return make_line_figure(
        title, "input x", "probability of the output", affine_series(outputs, knots, ends)
    )
