"""What a notebook shows of an object: its facts as a table, its picture beside them, as plain HTML without script;
whatever is shown is escaped."""

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
Facts = list[tuple[str, str]]  # (what, value), in words


MAX_SVG_CHARACTERS = 30_000  # characters of an SVG in a notebook
_PAGE, _SCROLLS = "max-width:820px", "overflow-x:auto;max-width:100%"


class OneLine:
    """What its text says in a line: a notebook shows that."""

    def _repr_html_(self) -> str:
        return render_document(str(self), "")


class Shown(ABC):
    """Subclasses give `facts` and `figure`."""

    @abstractmethod
    def facts(self) -> Facts:
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

    def plot(
        self, path: str | Path | None = None, *, width: Width = None, **options: Any
    ) -> Figure:
        """The picture, saved where a path is given (.png, .svg or .pdf). width: "column" or "page" of a paper (3.3 and
        7 inches), or inches, with letters of 8 pt. options: of `figure`.

        Raises InvalidRequest.
        """
        figure = self.figure(**options)
        if path is not None:
            from workbench.io.figures import save_figure
            from workbench.io.files import read_file_path

            save_figure(figure, read_file_path(path), width)
        return figure

    def _repr_html_(self) -> str:
        return render_document(
            self.heading,
            render_facts(self.facts()),
            drawing=render_picture(self.figure, MAX_SVG_CHARACTERS) if self.drawable else "",
        )


def render_document(title: str, body: str, notes: Sequence[str] = (), drawing: str = "") -> str:
    """A title, HTML, sentences and a picture below each other."""
    lines = "".join(f"<p>{html.escape(note)}</p>" for note in notes)
    return f"<div style='{_PAGE}'><strong>{html.escape(title)}</strong>{body}{lines}{drawing}</div>"


def render_table(rows: pd.DataFrame) -> str:
    """Rows under their heads; numbers in nine digits, what is missing as a dash."""
    import pandas as pd

    shown = rows.astype(object).where(rows.notna(), "-")
    with pd.option_context("display.max_colwidth", None):
        text = shown.to_html(index=False, border=0, justify="left", float_format="{:.9g}".format)
    return f"<div style='{_SCROLLS}'>{''.join(map(str.strip, text.splitlines()))}</div>"


def render_facts(rows: Sequence[tuple[str, str]]) -> str:
    """Labels and sentences in two columns."""
    left = "style='text-align:left'"
    lines = "".join(
        f"<tr><th {left}>{html.escape(label)}</th><td {left}>{html.escape(sentence)}</td></tr>"
        for label, sentence in rows
    )
    return f"<div style='{_SCROLLS}'><table>{lines}</table></div>"


def render_picture(draw: Callable[[], Figure], max_characters: int | None = None) -> str:
    """A figure as inline SVG, as wide as the page at most; one of more than `most` characters as PNG; nothing without
    matplotlib."""
    try:
        figure = draw()
    except ImportError:
        return ""
    buffer = StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    if max_characters is None or len(text) <= max_characters:
        return text[text.index("<svg") :].replace(
            "<svg ", "<svg style='max-width:100%;height:auto' ", 1
        )
    pixels = BytesIO()
    figure.savefig(pixels, format="png", dpi=min(68.0, 800 / figure.get_figwidth()))
    code = base64.b64encode(pixels.getvalue()).decode()
    return f"<img style='max-width:100%' alt='' src='data:image/png;base64,{code}'>"
