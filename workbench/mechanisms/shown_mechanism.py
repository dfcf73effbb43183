"""Every mechanism in a notebook, as a picture of its law, and as a file that claims nothing."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.exact.arrays import Vector
from workbench.exact.objects import Record
from workbench.io.figures import COLOURS, PAGE, panels, styled, titled
from workbench.io.files import write_json
from workbench.io.shown import Facts, Shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


MECHANISM, VERSION = "dp-workbench mechanism", 1
_DRAWN = 400  # outputs


class ShownMechanism(Shown):
    """What the mechanisms of the package share beside their laws."""

    outputs: Any

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

    @property
    def drawable(self) -> bool:
        """Whether the outputs are few enough."""
        return len(self.outputs) <= _DRAWN

    def save(self, path: str | Path) -> None:
        """Write the mechanism, which claims nothing, whole or not at all; `workbench.load` reads it back."""
        write_json(path, {"format": MECHANISM, "version": VERSION, "mechanism": self.to_dict()})


def draw_law(axis: Axes, outputs: Vector, knots: Vector, ends: Vector) -> None:
    """p(x, i) against x for outputs (m,): affine between knots (K + 1,), with end laws (2K, m); gaps at jumps."""
    x = np.stack([knots[:-1], knots[1:], np.full(knots.size - 1, np.nan)], axis=1).ravel()
    for k, (output, law) in enumerate(zip(outputs, ends.T, strict=True)):
        pieces = law.reshape(-1, 2)
        y = np.concatenate([pieces, np.full((len(pieces), 1), np.nan)], axis=1).ravel()
        joined = np.flatnonzero(np.isclose(pieces[:-1, 1], pieces[1:, 0], atol=1e-9))
        keep = np.ones(x.size, dtype=bool)
        keep[3 * joined + 2] = False  # no gap where the law does not jump
        style, colour = "-" if k < len(COLOURS) else "--", COLOURS[k % len(COLOURS)]
        axis.plot(x[keep], y[keep], style, color=colour, label=f"output {output:.3g}", linewidth=1.6)
    axis.set(xlabel="input x", ylabel="probability of the output")
    axis.set_ylim(bottom=0)


@styled
def law_plot(outputs: Vector, knots: Vector, ends: Vector, title: str) -> Figure:
    """The whole output law of a mechanism on real inputs; arguments as `draw_law`."""
    figure, (axis,) = panels(width=PAGE, height=3.0)
    draw_law(axis, outputs, knots, ends)
    titled(axis, title)
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
