"""Pictures of output laws: Pr[output | x] over x, with its jumps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from workbench.io.figures import COLOURS, panels
from workbench.mechanisms.baselines.poisson_binomial import Curved
from workbench.mechanisms.shown_mechanism import draw_law, law_plot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["curved_plot", "draw_law", "law_plot"]


def curved_plot(quantizer: Curved, title: str) -> Figure:
    """The output law of a quantizer whose law is not piecewise affine, at 201 inputs."""
    x = np.linspace(-float(quantizer.c), float(quantizer.c), 201)
    figure, (axis,) = panels(width=7.0)
    for k, (output, masses) in enumerate(zip(quantizer.outputs, quantizer.probabilities(x).T, strict=True)):
        style = "-" if k < len(COLOURS) else "--"
        axis.plot(x, masses, style, color=COLOURS[k % len(COLOURS)], label=f"output {output:.3g}", linewidth=1.6)
    axis.set_xlabel("input x")
    axis.set_ylabel("probability of the output")
    axis.set_ylim(bottom=0)
    axis.set_title(title, fontsize=10)
    axis.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
