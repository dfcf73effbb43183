"""What a notebook shows of an object: its facts as a table, its picture beside them; no script."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.io.html import document, picture, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Shown"]


class Shown(ABC):
    """Subclasses give `facts` and `figure`."""

    @abstractmethod
    def facts(self) -> list[tuple[str, str]]:
        """(what, value) in words."""

    @property
    def drawable(self) -> bool:
        """Whether a notebook draws it by itself: pictures of very large objects take long."""
        return True

    @abstractmethod
    def figure(self) -> Figure:
        """The picture."""

    def plot(self, path: str | Path | None = None) -> Figure:
        """The picture, saved where a path is given (.png, .svg or .pdf). Raises InvalidRequest."""
        from workbench.io.figures import save_figure

        figure = self.figure()
        if path is not None:
            save_figure(figure, Path(path))
        return figure

    def _repr_html_(self) -> str:
        drawing = picture(self.figure) if self.drawable else ""
        return document(type(self).__name__, table(["", ""], self.facts()), (), drawing)
