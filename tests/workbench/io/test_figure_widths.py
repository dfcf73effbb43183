"""Test that figures for one or two columns of a paper have the exact width and letters of 8 pt."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from matplotlib.text import Text

import workbench as wb
from workbench.cli import main

POINTS_PER_INCH = 72


def _make_result(kind: str) -> Any:
    """Return a design, a frontier or a formula, which all have plots."""
    if kind == "design":
        return wb.design(wb.ModuloNoise(6, max_shift=2), epsilon=1, delta="0.1")
    if kind == "frontier":
        budget = {"epsilon": "0.5:2:3", "delta": "0.01", "notion": "dp"}
        return wb.frontier("modulo", n=6, max_shift=2, **budget)
    return wb.formula(wb.FiniteQuery("0..3", max_shift=1), loss="absolute")


def _read_pdf_width(path: Path) -> float:
    """Return the width of the page of a PDF, in inches."""
    page = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ", path.read_bytes())
    assert page is not None
    return float(page[1]) / POINTS_PER_INCH


@pytest.mark.parametrize(("width", "inches"), [("column", 3.3), (7.0, 7.0)])
@pytest.mark.parametrize("kind", ["design", "frontier", "formula"])
def test_figures_are_as_wide_as_a_column(
    kind: str, width: Any, inches: float, tmp_path: Path
) -> None:
    figure = _make_result(kind).plot(tmp_path / "x.pdf", width=width)
    assert _read_pdf_width(tmp_path / "x.pdf") == pytest.approx(inches, abs=2e-3)
    assert {text.get_fontsize() for text in figure.findobj(Text) if text.get_text()} == {8}
    assert figure.get_tightbbox().width <= inches * 1.02


def _run_command(line: str) -> Any:
    """Run a command line and return its exit code."""
    with pytest.raises(SystemExit) as stop:
        main(line.split())
    return stop.value.code or 0


def test_a_folder_of_plots_accepts_a_width(tmp_path: Path) -> None:
    files = _make_result("frontier").save(tmp_path, width="page")
    assert {round(_read_pdf_width(file), 2) for file in files if file.suffix == ".pdf"} == {7.0}


NOISE = "modulo --n 6 --max-shift 2 --epsilon"


@pytest.fixture
def design_path(tmp_path: Path) -> Path:
    """Save a design, and return the path of its certificate."""
    path = tmp_path / "design.json"
    assert _run_command(f"design {NOISE} 1 --save {path}") == 0
    return path


@pytest.mark.parametrize(
    "command",
    [
        f"design {NOISE} 1",
        "audit DESIGN",
        "audit DESIGN --risk",
        f"formula {NOISE} 0.5..1",
        f"frontier {NOISE} 1,2 --delta 0.01 --notion dp --out FOLDER",
        "recommend --answers 0..3 --max-shift 1 --epsilon 1",
    ],
)
def test_every_command_with_plots_accepts_a_width(
    command: str, design_path: Path, tmp_path: Path
) -> None:
    plot = tmp_path / "p.pdf"
    line = command.replace("DESIGN", str(design_path)).replace("FOLDER", str(tmp_path / "out"))
    assert _run_command(f"{line} --plot {plot} --width page") == 0
    assert _read_pdf_width(plot) == pytest.approx(7, abs=2e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--width page", "width must be given with a plot"),
        (
            "--plot p.pdf --width wide",
            "width must be column, page, or between 2 and 40 inches. Got wide.",
        ),
    ],
)
def test_a_command_refuses_a_wrong_width(
    options: str, message: str, design_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run_command(f"audit {design_path} {options}") == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("width", [1, "wide"])
def test_a_width_outside_2_to_40_inches_is_refused(width: Any, tmp_path: Path) -> None:
    with pytest.raises(wb.InvalidRequest, match="between 2 and 40"):
        _make_result("design").plot(tmp_path / "x.png", width=width)


def _list_panel_heights(figure: Any) -> list[float]:
    """Return the heights of the panels of a figure, in inches."""
    return [
        axis.get_window_extent().height / figure.dpi
        for axis in figure.axes
        if axis.get_subplotspec() is not None
    ]


@pytest.mark.parametrize(
    ("family", "options"),
    [
        ("noise", {"sensitivity": 1}),
        ("modulo", {"n": 3, "max_shift": 1, "notion": "dp", "baselines": False}),
    ],
)
@pytest.mark.parametrize("width", ["column", 2])
def test_a_frontier_of_many_panels_fits_a_column(
    tmp_path: Path, width: Any, family: str, options: dict[str, Any]
) -> None:
    """Four adjacent panels of 0.8 inches are placed below each other, and are high enough."""
    deltas = ["0", "1e-6", "1e-3", "0.01"]
    result = wb.frontier(family, epsilon=[0.5, 2], delta=deltas, **options)
    inches = 3.3 if width == "column" else width
    for name in result.plots[:1]:
        figure = result.plot(tmp_path / f"{name}.pdf", which=name, width=width)
        assert _read_pdf_width(tmp_path / f"{name}.pdf") == pytest.approx(inches, abs=2e-3)
        assert figure.get_tightbbox().width <= inches * 1.02
        assert min(_list_panel_heights(figure)) >= 1.2
        assert all(
            axis.get_ylabel() for axis in figure.axes if axis.get_subplotspec().is_first_col()
        )


def test_long_formulas_are_drawn_in_smaller_letters(tmp_path: Path) -> None:
    formula = wb.formula(wb.FiniteQuery("0..3", max_shift=1), loss="squared", delta="0..0.1")
    figure = formula.plot(tmp_path / "x.pdf", width=2.5)
    assert _read_pdf_width(tmp_path / "x.pdf") == pytest.approx(2.5, abs=2e-3)
    assert figure.get_tightbbox().width <= 2.5 * 1.02
    assert min(text.get_fontsize() for legend in figure.legends for text in legend.get_texts()) < 8
    assert min(_list_panel_heights(figure)) >= 1.2


def test_small_deltas_and_large_epsilons_are_visible() -> None:
    result = wb.frontier("noise", sensitivity=1, epsilon=[0.5, 2, 6], delta=["0", "1e-6", "1e-3"])
    axis = result.plot(which="error_delta").axes[0]
    window = axis.get_window_extent()
    zero, small = (axis.transData.transform((delta, 0.1))[0] for delta in (0, 1e-6))
    assert small - zero > 0.05 * window.width
    lines = {
        line.get_label(): line for line in axis.get_lines() if line.get_label().startswith("ε = ")
    }
    assert {*lines} == {"ε = 0.5", "ε = 2", "ε = 6"}
    for name, line in lines.items():
        # The curve must not be hidden by the horizontal axis.
        height = axis.transData.transform((0, line.get_ydata()[0]))[1]
        assert window.y0 + 0.02 * window.height < height < window.y1, name
