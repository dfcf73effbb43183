"""Figures of one and of two columns of a paper: so wide to the point, letters of 8 pt, nothing cut off."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from matplotlib.text import Text

import workbench as wb
from workbench.cli import main

POINTS = 72  # of an inch


def _drawn() -> list[Any]:
    noise = wb.ModuloNoise(6, max_shift=2)
    return [
        wb.design(noise, epsilon=1, delta="0.1"),
        wb.frontier("modulo", n=6, max_shift=2, epsilon="0.5:2:3", delta="0.01", notion="dp"),
        wb.formula(wb.FiniteQuery("0..3", max_shift=1), loss="absolute"),
    ]


def _inches(path: Path) -> float:
    """How wide the page of a PDF is."""
    page = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ", path.read_bytes())
    assert page is not None
    return float(page[1]) / POINTS


@pytest.mark.parametrize(("width", "inches"), [("column", 3.3), (7.0, 7.0)])
def test_figures_are_as_wide_as_a_column(width: Any, inches: float, tmp_path: Path) -> None:
    for k, thing in enumerate(_drawn()):
        figure = thing.plot(tmp_path / f"{k}.pdf", width=width)
        assert _inches(tmp_path / f"{k}.pdf") == pytest.approx(inches, abs=2e-3)
        assert {text.get_fontsize() for text in figure.findobj(Text) if text.get_text()} == {8}
        assert figure.get_tightbbox().width <= inches * 1.02


def _run(line: str) -> Any:
    with pytest.raises(SystemExit) as stop:
        main(line.split())
    return stop.value.code or 0


def test_a_folder_and_every_command_take_a_width(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = _drawn()[1].save(tmp_path / "all", width="page")
    assert {round(_inches(file), 2) for file in files if file.suffix == ".pdf"} == {7.0}
    saved, plot = str(tmp_path / "d.json"), tmp_path / "p.pdf"
    noise = "modulo --n 6 --max-shift 2 --epsilon"
    for line in (
        f"design {noise} 1 --save {saved}",
        f"audit {saved}",
        f"audit {saved} --risk",
        f"formula {noise} 0.5..1",
        f"frontier {noise} 1,2 --delta 0.01 --notion dp --out {tmp_path / 'out'}",
        "recommend --answers 0..3 --max-shift 1 --epsilon 1",
    ):
        assert _run(f"{line} --plot {plot} --width page") == 0, line
        assert _inches(plot) == pytest.approx(7, abs=2e-3)
        plot.unlink()
    capsys.readouterr()
    assert _run(f"audit {saved} --width page") == 2
    assert "width must be given with a plot" in capsys.readouterr().err
    assert _run(f"audit {saved} --plot {plot} --width wide") == 2
    assert "width must be column, page, or between 2 and 40 inches. Got wide." in capsys.readouterr().err


@pytest.mark.parametrize(("width", "words"), [(1, "between 2 and 40"), ("wide", "between 2 and 40")])
def test_a_width_is_inches(width: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(wb.InvalidRequest, match=words):
        _drawn()[0].plot(tmp_path / "x.png", width=width)


def test_what_has_no_room_is_refused_and_not_cut(tmp_path: Path) -> None:
    formula = wb.formula(wb.FiniteQuery("0..4", max_shift=1), loss="absolute", delta="0..1")
    with pytest.raises(wb.InvalidRequest, match="width must be enough for the figure's legend"):
        formula.plot(tmp_path / "x.png", width=3.3)
    assert not (tmp_path / "x.png").exists()
