"""Render objects for notebooks as HTML without script: a table of facts, and a picture.

All texts are escaped, so that names from files cannot add HTML.
"""

from __future__ import annotations

import base64
import html
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from workbench.io.figures import Width

Facts = list[tuple[str, str]]  # Rows (label, text) of a report.

MAX_SVG_CHARACTERS = 30_000  # A longer SVG is shown as a PNG in a notebook.
_PAGE_STYLE = "max-width:820px"
_TABLE_STYLE = "overflow-x:auto;max-width:100%"
_CELL_STYLE = "style='text-align:left'"
_MAX_PNG_DPI = 68.0  # Largest resolution of a PNG, in pixels per inch.
_MAX_PNG_PIXELS = 800  # Largest width of a PNG in pixels.


class OneLine:
    """An object that a notebook shows by its text `str(self)`, which is one line."""

    def _repr_html_(self) -> str:
        """Return the text of the object as HTML for a notebook."""
        return render_document(str(self), "")


class Shown(ABC):
    """An object that a notebook shows by its facts and its figure."""

    @abstractmethod
    def facts(self) -> Facts:
        """Return rows (label, text) of a report."""

    @abstractmethod
    def figure(self) -> Figure:
        """Draw the object, as its reports and notebooks show it."""

    @property
    def heading(self) -> str:
        """Return the heading above the facts."""
        return type(self).__name__

    @property
    def drawable(self) -> bool:
        """Return whether a notebook draws the object on its own. Large objects take long."""
        return True

    def plot(
        self, path: str | Path | None = None, *, width: Width = None, **options: Any
    ) -> Figure:
        """Draw the object with Matplotlib.

        Args:
            path: File to write (.png, .svg or .pdf). None to write no file.
            width: "column" or "page" of a paper (3.3 and 7 inches), or inches, with 8 pt text.
            **options: Options of `figure`.

        Raises:
            InvalidRequest: The path or the width is wrong.
        """
        figure = self.figure(**options)
        if path is not None:
            from workbench.io.figures import save_figure
            from workbench.io.files import read_file_path

            save_figure(figure, read_file_path(path), width)
        return figure

    def _repr_html_(self) -> str:
        """Return the facts and the figure as HTML for a notebook."""
        drawing = ""
        if self.drawable:
            drawing = render_picture(self.figure, MAX_SVG_CHARACTERS)
        return render_document(self.heading, render_facts(self.facts()), drawing=drawing)


def render_document(title: str, body: str, notes: Sequence[str] = (), drawing: str = "") -> str:
    """Render a title, a body, sentences and a picture below each other.

    Args:
        title: Text of the title.
        body: HTML of the body.
        notes: Sentences below the body.
        drawing: HTML of the picture.
    """
    heading = f"<strong>{html.escape(title)}</strong>"
    paragraphs = "".join(f"<p>{html.escape(note)}</p>" for note in notes)
    return f"<div style='{_PAGE_STYLE}'>{heading}{body}{paragraphs}{drawing}</div>"


def render_table(rows: pd.DataFrame) -> str:
    """Render a table. Numbers have nine digits, and missing values are dashes.

    Args:
        rows: Table of rows with named columns.
    """
    import pandas as pd

    shown_rows = rows.astype(object).where(rows.notna(), "-")
    with pd.option_context("display.max_colwidth", None):
        text = shown_rows.to_html(
            index=False, border=0, justify="left", float_format="{:.9g}".format
        )
    return f"<div style='{_TABLE_STYLE}'>{''.join(map(str.strip, text.splitlines()))}</div>"


def render_facts(rows: Sequence[tuple[str, str]]) -> str:
    """Render labels and sentences in two columns.

    Args:
        rows: Rows (label, sentence).
    """
    lines = []
    for label, sentence in rows:
        head = f"<th {_CELL_STYLE}>{html.escape(label)}</th>"
        lines.append(f"<tr>{head}<td {_CELL_STYLE}>{html.escape(sentence)}</td></tr>")
    return f"<div style='{_TABLE_STYLE}'><table>{''.join(lines)}</table></div>"


def render_picture(draw: Callable[[], Figure], max_characters: int | None = None) -> str:
    """Render a figure as inline SVG, at most as wide as the page.

    Args:
        draw: Function without arguments that draws the figure.
        max_characters: A longer SVG becomes a PNG. None for no limit.

    Returns:
        An empty text if Matplotlib is not installed.
    """
    try:
        figure = draw()
    except ImportError:
        return ""
    buffer = StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    if max_characters is None or len(text) <= max_characters:
        style = "max-width:100%;height:auto"
        return text[text.index("<svg") :].replace("<svg ", f"<svg style='{style}' ", 1)
    pixels = BytesIO()
    dpi = min(_MAX_PNG_DPI, _MAX_PNG_PIXELS / figure.get_figwidth())
    figure.savefig(pixels, format="png", dpi=dpi)
    code = base64.b64encode(pixels.getvalue()).decode()
    return f"<img style='max-width:100%' alt='' src='data:image/png;base64,{code}'>"
