"""Test that `SavedFigure` writes the bytes of a matplotlib figure, but draws each artist once.

A matplotlib figure with a constrained layout draws each artist twice.
"""

from io import BytesIO
from typing import Any

import pytest
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.text import Text

from workbench.io.files import PICTURE_FORMATS
from workbench.io.saved_figure import SavedFigure

# Metadata that differ between two files, and are left out.
REMOVED_METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None},
    "svg": {"Date": None},
}


def save(figure: Figure, form: str) -> bytes:
    """Plot points with a title and a legend below, and return the file without its date.

    form: "png", "pdf" or "svg".
    """
    axes = figure.subplots()
    axes.plot([1, 2, 4], label="points")
    axes.set_title("A title\nof two lines")
    figure.legend(loc="outside lower center")
    buffer = BytesIO()
    figure.savefig(buffer, format=form, metadata=REMOVED_METADATA[form])
    return buffer.getvalue()


@pytest.mark.parametrize("form", PICTURE_FORMATS)
def test_a_file_has_the_bytes_of_a_plain_figure(form: str) -> None:
    with rc_context({"svg.hashsalt": "fixed"}):
        expected = save(Figure(layout="constrained"), form)
        assert save(SavedFigure(layout="constrained"), form) == expected


def test_an_artist_is_drawn_once_for_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn_texts = []
    draw = Text.draw

    def record_and_draw(self: Text, *args: Any, **options: Any) -> None:
        """Record the text, and draw it as usual."""
        drawn_texts.append(self.get_text())
        draw(self, *args, **options)

    monkeypatch.setattr(Text, "draw", record_and_draw)
    save(SavedFigure(layout="constrained"), "svg")
    assert drawn_texts.count("A title\nof two lines") == 1
