"""Results in a notebook: tables and pictures as plain HTML, without script; whatever is shown is escaped."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["document", "facts", "picture", "table"]


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
