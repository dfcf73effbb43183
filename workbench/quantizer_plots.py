"""Pictures of quantizers: the output law with its jumps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from workbench.mechanisms.quantizer import Quantizer
from workbench.plots import COLOURS, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_law", "law_plot"]


def draw_law(axis: Axes, quantizer: Quantizer, outputs: list[int] | None = None) -> None:
    """p(x, i) against x for some outputs (all by default): affine pieces, gaps at jumps."""
    knots = np.array([float(k) for k in quantizer.knots])
    x = np.stack([knots[:-1], knots[1:], np.full(knots.size - 1, np.nan)], axis=1).ravel()
    chosen = range(quantizer.m) if outputs is None else outputs
    for k, i in enumerate(chosen):
        ends = quantizer.ends[:, :, i]
        y = np.concatenate([ends, np.full((ends.shape[0], 1), np.nan)], axis=1).ravel()
        joined = np.flatnonzero(np.isclose(ends[:-1, 1], ends[1:, 0], atol=1e-9))
        keep = np.ones(x.size, dtype=bool)
        keep[3 * joined + 2] = False  # no gap where the law does not jump
        label = f"output {quantizer.outputs[i]:.3g}"
        style = "-" if k < len(COLOURS) else "--"
        axis.plot(x[keep], y[keep], style, color=COLOURS[k % len(COLOURS)], label=label, linewidth=1.6)
    axis.set_xlabel("input x")
    axis.set_ylabel("probability of the output")
    axis.set_ylim(bottom=0)


def law_plot(quantizer: Quantizer, title: str) -> Figure:
    """The whole output law of a quantizer."""
    figure, (axis,) = panels(width=7.0)
    draw_law(axis, quantizer)
    axis.set_title(title, fontsize=10)
    axis.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
