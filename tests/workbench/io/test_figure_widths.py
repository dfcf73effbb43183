"""Figures of one and of two columns of a paper: so wide to the point, letters of 8 pt, nothing cut off."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from matplotlib.text import Text

import workbench as wb

POINTS = 72  # of an inch


def _drawn() -> list[Any]:
    noise = wb.ModuloNoise(6, max_shift=2)
    return [
        wb.design(noise, epsilon=1, delta="0.1"),
        wb.frontier("modulo", n=6, max_shift=2, epsilon="0.5:2:3", delta="0.01", notion="dp"),
        wb.formula(wb.FiniteQuery("0..3", max_shift=1), loss="absolute"),
    ]


@pytest.mark.parametrize("width", [3.3, 7.0])
def test_figures_are_as_wide_as_a_column(width: float, tmp_path: Path) -> None:
    for k, thing in enumerate(_drawn()):
        figure = thing.plot(tmp_path / f"{k}.pdf", width=width)
        page = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ", (tmp_path / f"{k}.pdf").read_bytes())
        assert page is not None
        assert float(page[1]) == pytest.approx(width * POINTS, abs=0.1)
        assert {text.get_fontsize() for text in figure.findobj(Text) if text.get_text()} == {8}
        assert figure.get_tightbbox().width <= width * 1.02


@pytest.mark.parametrize(("width", "words"), [(1, "between 2 and 40"), ("wide", "between 2 and 40")])
def test_a_width_is_inches(width: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(wb.InvalidRequest, match=words):
        _drawn()[0].plot(tmp_path / "x.png", width=width)


def test_what_has_no_room_is_refused_and_not_cut(tmp_path: Path) -> None:
    formula = wb.formula(wb.FiniteQuery("0..4", max_shift=1), loss="absolute", delta="0..1")
    with pytest.raises(wb.InvalidRequest, match="width must be enough for the figure's legend"):
        formula.plot(tmp_path / "x.png", width=3.3)
    assert not (tmp_path / "x.png").exists()
