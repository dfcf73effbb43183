"""Test the tables of Selvi, Liu and Wiesemann: stored results, gaps of cells, errata.

A cell of a table is the optimal noise for one ε, one δ and one loss. Designing the 100 cells of a
table takes long, so `compute_cell` is replaced in most tests. Its argument `budget` is a tuple of
texts: ε, δ and the name of the loss. Its argument `gap` is the relative gap at which it stops, or
None for the default.
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pandas as pd
import pytest

import workbench as wb
from workbench.io.drawing import Drawing, draw_declared_figure
from workbench.papers.artifact import read_declaration
from workbench.papers.dro import artifacts as dro
from workbench.papers.reproduce import _select_papers


def test_a_certified_cell_with_an_atom_has_a_small_gap():
    """At δ = .75 the optimal noise has an atom at 0. The gap includes the loss of the repair."""
    row = dro.compute_cell((".005", ".75", "absolute"))
    # Value of the current program, pinned.
    assert row["atom"] == pytest.approx(0.505, abs=2e-3)
    assert 0 <= row["gap_percent"] <= 0.02


def test_the_tables_are_recomputed_with_full_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    def refuse_cell(budget, gap=None):
        """Fail the test if a cell is computed."""
        raise AssertionError("No cell may be computed without full.")

    monkeypatch.setattr(dro, "compute_cell", refuse_cell)
    assert dro.PAPER.requires_full
    for papers, only in (("dro", None), ("dro", "table6"), (["modulo-noise", "dro"], "fig10")):
        with pytest.raises(wb.InvalidRequest, match="given with --full for dro"):
            wb.reproduce(papers, only, tmp_path)
    assert "dro" not in [paper.name for paper in _select_papers(None, full=False)]
    assert "dro" in [paper.name for paper in _select_papers(None, full=True)]
    assert [paper.name for paper in _select_papers("dro", full=True)] == ["dro"]
    assert not [*tmp_path.iterdir()]


def test_cells_of_the_squared_loss_have_a_larger_gap(monkeypatch: pytest.MonkeyPatch):
    gaps = []

    def record_gap(budget, gap=None):
        """Note the gap, and return a cell without designing its noise."""
        gaps.append(gap)
        return {"lower": 1.0, "loss": 1.0}

    monkeypatch.setattr(dro, "compute_cell", record_gap)
    for loss, epsilon in (("squared", 2.0), ("squared", 5.0), ("absolute", 5.0)):
        dro.compute_cell_row(loss, epsilon, 0.1)
    # The default gap of the squared loss would take minutes. Above ε = 2 twice the gap is allowed.
    assert gaps == [dro._SQUARED_GAP, 2 * dro._SQUARED_GAP, None]


def test_every_erratum_is_shown_by_its_check():
    assert dro.PAPER.errata is not None
    errata = dro.PAPER.errata()
    assert [erratum["place"] for erratum in errata if not erratum["holds"]] == []
    assert "in 9 of the 100 cells" in errata[0]["evidence"]
    term_counts = "87 match the closed form as stated, 12 match it with one term fewer, 1 with one"
    assert term_counts in errata[1]["evidence"]


def test_an_interrupted_table_continues_where_it_stopped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    computed_budgets: list[tuple[str, str, str]] = []
    max_cells = 30  # In the first run, Ctrl-C is pressed after this many cells.

    def compute_until_interrupted(budget, gap=None):
        """Note the budget, and return a cell without designing its noise."""
        if len(computed_budgets) == max_cells:
            raise KeyboardInterrupt
        computed_budgets.append(budget)
        return {
            "epsilon": float(budget[0]),
            "delta": float(budget[1]),
            "lower": 0.1,
            "loss": 0.1,
            "gap_percent": 0.0,
            "steps": 1,
            "atom": 0.0,
        }

    monkeypatch.setattr(dro, "compute_cell", compute_until_interrupted)
    wb.reproduce("dro", "table6", tmp_path, full=True, jobs=1)
    partial = tmp_path / "dro" / "table6.partial.jsonl"
    assert not (tmp_path / "dro" / "table6.csv").exists()
    assert len(partial.read_text().splitlines()) == max_cells
    # A row of another version, and an incomplete line, are skipped.
    with partial.open("a") as file:
        file.write('["0.0.0", "compute_cell_row", []]\n["vers')
    max_cells = 1000
    wb.reproduce("dro", "table6", tmp_path, full=True, jobs=1)
    # Every cell is computed once.
    assert len(computed_budgets) == 100
    assert len(set(computed_budgets)) == 100
    assert len((tmp_path / "dro" / "table6.csv").read_text().splitlines()) == 101
    assert not partial.exists()


def test_the_lines_show_the_percentage_of_every_cell():
    rows = []
    for k, delta in itertools.product(range(1, 11), (0.1, 0.5)):
        # Truncated Laplace noise is 100 k δ percent above the optimum.
        losses = {"loss": 1.0, "truncated_laplace": 1 + k * delta}
        rows.append({"epsilon": k / 10, "delta": delta, **losses})
    drawing = Drawing(read_declaration("dro")["table1"]["figure"])
    (axis,) = draw_declared_figure(drawing, pd.DataFrame(rows)).axes
    heights = [line.get_ydata() for line in axis.lines]
    assert heights == [pytest.approx([10 * k, 50 * k]) for k in range(1, 11)]
    assert "%" in axis.get_ylabel()


def test_the_gaps_of_the_stored_tables_are_within_their_limits():
    folder = Path(__file__).parents[3] / "results" / "dro"
    table = pd.read_csv(folder / "table1.csv")
    assert len(table) == 100
    assert table[table.epsilon <= 2].gap_percent.max() <= 0.02
    assert table[table.epsilon > 2].gap_percent.max() <= 0.2
    squared = pd.read_csv(folder / "table6.csv")
    assert len(squared) == 100
    assert squared[squared.epsilon <= 2].gap_percent.max() <= 0.1
    assert squared.gap_percent.max() <= 0.2


def test_the_stored_results_explain_every_difference():
    gallery = Path(__file__).parents[3] / "results" / "README.md"
    text = re.sub(r"\s+", " ", gallery.read_text("utf-8"))
    _, section = text.split("Differential Privacy via Distributionally Robust Optimization", 1)
    assert "are not explained" not in section.split("## ", 1)[0]
