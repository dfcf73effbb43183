"""What a notebook shows of an object: its facts as a table, its picture beside them, as plain HTML without script;
whatever is shown is escaped."""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Shown(ABC):
    """Subclasses give `facts` and `figure`."""

    @abstractmethod
    def facts(self) -> list[tuple[str, str]]:
        """(what, value) in words."""

    @abstractmethod
    def figure(self) -> Figure:
        """The picture."""

    @property
    def heading(self) -> str:
        """What stands above the facts."""
        return type(self).__name__

    @property
    def drawable(self) -> bool:
        """Whether a notebook draws it by itself: pictures of very large objects take long."""
        return True

    def plot(self, path: str | Path | None = None, **options: Any) -> Figure:
        """The picture, saved where a path is given (.png, .svg or .pdf). options: of `figure`.

        Raises InvalidRequest.
        """
        figure = self.figure(**options)
        if path is not None:
            from workbench.io.figures import save_figure

            save_figure(figure, Path(path))
        return figure

    def _repr_html_(self) -> str:
        drawing = picture(self.figure) if self.drawable else ""
        return document(self.heading, facts(self.facts()), drawing=drawing)


def document(title: str, body: str, notes: Sequence[str] = (), drawing: str = "") -> str:
    """A title, HTML, sentences and a picture below each other."""
    lines = "".join(f"<p>{html.escape(note)}</p>" for note in notes)
    return f"<div><strong>{html.escape(title)}</strong>{body}{lines}{drawing}</div>"


def table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Rows under their heads; numbers in nine digits, None as a dash."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in heads)
    lines = "".join(f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"


def facts(rows: Sequence[tuple[str, str]]) -> str:
    """Labels and sentences in two columns."""
    left = "style='text-align:left'"
    lines = "".join(
        f"<tr><th {left}>{html.escape(label)}</th><td {left}>{html.escape(sentence)}</td></tr>"
        for label, sentence in rows
    )
    return f"<table>{lines}</table>"


def picture(draw: Callable[[], Figure]) -> str:
    """A figure as inline SVG; nothing without matplotlib."""
    try:
        figure = draw()
    except ImportError:
        return ""
    buffer = StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return html.escape(f"{value:.9g}" if isinstance(value, float) else str(value))
