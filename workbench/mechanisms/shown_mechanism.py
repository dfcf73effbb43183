"""Base class of the mechanisms of the package, and the figure of a piecewise affine law.

The base class shows a mechanism in a notebook, draws its law, samples from it, and writes it to a
file. Such a file claims no privacy.
"""

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
_MAX_DRAWN_OUTPUTS = 400  # Mechanisms with more outputs have no picture.
_LISTED_OUTPUTS = 8  # The facts list this many outputs.
_JUMP_TOLERANCE = 1e-9  # Smaller jumps of a law are not drawn.


class ShownMechanism(Shown):
    """Base class of the mechanisms of the package: reports, figures, sampling and files.

    A subclass adds the law of the output.

    Attributes:
        inputs: The inputs, length k. None for a mechanism on all integers or on real numbers.
        outputs: The published values by position, length m.
        matrix: The probabilities as floats, one row for each input, shape (k, m).
    """

    inputs: Any
    outputs: Any
    matrix: Any

    @abstractmethod
    def law(self, x: Any) -> Distribution:
        """Return the exact law of the position of the output in `outputs`, for one input.

        Args:
            x: One of `inputs`.

        Returns:
            The law on the positions 0..m-1 of `outputs`.

        Raises:
            InvalidRequest: If x is no input of the mechanism.
        """

    def draw(self, x: Any, count: int, source: Source) -> NDArray[Any]:
        """Draw independent outputs for an input from its exact law.

        Args:
            x: One of `inputs`.
            count: The number of draws, >= 0.
            source: The source of randomness.

        Returns:
            The published values, shape (count,).

        Raises:
            InvalidRequest: If x is no input of the mechanism, or count is negative.
        """
        values: NDArray[Any] = self.outputs[Sampler(self.law(x), source).draw(count)]
        return values

    @abstractmethod
    def comparisons(self) -> Iterable[Comparison]:
        """Yield every ordered neighbouring pair of laws."""

    def extremes(self) -> Iterable[Comparison]:
        """Return comparisons that suffice to decide pure ε. Default: all comparisons."""
        return self.comparisons()

    @abstractmethod
    def describe(self) -> str:
        """Describe the mechanism in one line."""

    @abstractmethod
    def to_dict(self) -> Record:
        """Return a JSON-ready record, which `from_dict` of the class reads."""

    def facts(self) -> Facts:
        """Return (name, text) pairs: the mechanism in one line, and its first outputs."""
        first_outputs = np.asarray(self.outputs)[:_LISTED_OUTPUTS].tolist()
        text = ", ".join(str(value) for value in first_outputs)
        if len(self.outputs) > _LISTED_OUTPUTS:
            text += f", ... ({len(self.outputs)})"
        return [("mechanism", self.describe()), ("publishes", text)]

    def drawing(self) -> FigureData:
        """Return the figure of the law as plain data: a heat map of inputs and used outputs."""
        cells = np.asarray(self.matrix, dtype=float)
        outputs = np.asarray(self.outputs)
        used_outputs = np.flatnonzero(cells.max(axis=0) > 0)
        title = "Probability of every output, input by input"
        points = [tuple(point) if np.ndim(point) else point for point in outputs[used_outputs]]
        return make_heat_figure(
            title,
            "input",
            rows=self.inputs,
            column_label="published value",
            columns=points,
            cells=cells[:, used_outputs],
        )

    def figure(self) -> Drawn:
        """Draw the law with matplotlib."""
        return draw_chart(self.drawing(), self.describe())

    @property
    def drawable(self) -> bool:
        """Return whether the outputs are few enough for a picture."""
        return len(self.outputs) <= _MAX_DRAWN_OUTPUTS

    def save(self, path: str | Path) -> None:
        """Write the mechanism to a file, completely or not at all.

        The file claims no privacy. `workbench.load` reads it.

        Args:
            path: The path of the file.
        """
        write_json(path, MECHANISM_FILE_FORM.write(self, mechanism=self.to_dict()))


def affine_series(outputs: Vector, knots: Vector, ends: Vector) -> list[FigureData]:
    """Return one line for each output: its probability against the input, with gaps at jumps.

    Args:
        outputs: The published values, shape (m,).
        knots: The inputs between which the law is affine, increasing, shape (K + 1,).
        ends: The laws at the left and the right end of each of the K pieces between knots, in turn,
            shape (2K, m).

    Returns:
        The m series of a line chart, as plain data.
    """
    x = np.stack([knots[:-1], knots[1:], np.full(knots.size - 1, np.nan)], axis=1).ravel()
    lines = []
    for k, (output, law) in enumerate(zip(outputs, ends.T, strict=True)):
        pieces = law.reshape(-1, 2)
        y = np.concatenate([pieces, np.full((len(pieces), 1), np.nan)], axis=1).ravel()
        continuous = np.flatnonzero(np.isclose(pieces[:-1, 1], pieces[1:, 0], atol=_JUMP_TOLERANCE))
        keep = np.ones(x.size, dtype=bool)
        # A piece has two ends and then a NaN, which draws a gap. Where the law does not jump, the
        # NaN is left out.
        keep[3 * continuous + 2] = False
        lines.append(make_series(f"output {output:.4g}", "line", colour=k, x=x[keep], y=y[keep]))
    return lines


def affine_figure(outputs: Vector, knots: Vector, ends: Vector) -> FigureData:
    """Return the complete output law of a mechanism on real inputs as a figure.

    Args:
        outputs: The published values, shape (m,).
        knots: The inputs between which the law is affine, increasing, shape (K + 1,).
        ends: The laws at the left and the right end of each of the K pieces between knots, in turn,
            shape (2K, m).

    Returns:
        The figure as plain data.
    """
    title = "Probability of every output, against the input"
    return make_line_figure(
        title, "input x", "probability of the output", affine_series(outputs, knots, ends)
    )
