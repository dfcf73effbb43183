"""Define a figure of Matplotlib that is saved in less time. This module imports Matplotlib."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine


class SavedFigure(Figure):
    """A figure that is not drawn to find its layout.

    To save a figure, Matplotlib draws it twice: first without output, only to execute the layout
    engine, and then without the engine. The saved bytes do not depend on the first drawing.
    """

    def draw(self, renderer: Any) -> None:
        """Draw the figure. The first time that a file is saved, only find the layout.

        Args:
            renderer: The renderer of the format.
        """
        engine = self.get_layout_engine()
        if self.canvas.is_saving() and isinstance(engine, ConstrainedLayoutEngine):
            engine.execute(self)
        else:
            super().draw(renderer)
