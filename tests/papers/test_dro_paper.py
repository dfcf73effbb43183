"""Selvi, Liu and Wiesemann: what is kept of a full run, and that cells end certified within what they promise."""

from __future__ import annotations

from pathlib import Path

import pytest

import workbench as wb
from workbench.papers import dro


def test_certified_cells_with_an_atom_are_as_tight_as_promised():
    """δ = .75 needs an atom at 0; what certification repairs must be small beside the gap."""
    row = dro.cell((".005", ".75", "absolute"))
    assert row["atom"] == pytest.approx(0.505, abs=2e-3)
    assert 0 <= row["gap_percent"] <= 0.02


def test_a_normal_run_keeps_the_table_of_a_full_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    calls = []

    def cell(request, gap=None):
        calls.append((request, gap))
        return {"epsilon": float(request[0]), "delta": float(request[1]), "lower": 1.0, "cost": 1.0,
                "gap_percent": 0.0, "steps": 1, "atom": 0.0}  # fmt: skip

    monkeypatch.setattr(dro, "cell", cell)
    kept = tmp_path / "dro" / "table1_full.csv"
    kept.parent.mkdir()
    kept.write_text("kept")
    wb.reproduce("dro", results=tmp_path, jobs=1)
    assert len(calls) == 2 * len(dro._SUBSET)
    assert {gap for (_, _, cost), gap in calls if cost == "squared"} == {dro._SQUARED_GAP}  # minutes otherwise
    assert kept.read_text() == "kept"
    with pytest.raises(wb.InvalidRequest, match="--full"):
        wb.reproduce("dro", "table1_full", tmp_path)
