"""Test the DQL paper: printed numbers, errata, and figures."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest

from workbench.papers import PAPERS
from workbench.papers.artifact import Artifact, read_declaration
from workbench.papers.dql.artifacts import PAPER


@pytest.fixture(scope="module")
def artifacts() -> dict[str, Artifact]:
    with pytest.MonkeyPatch.context() as patch:
        stated = copy.deepcopy(read_declaration("dql"))
        for part, points in zip(stated["fig3"]["rows"], (3, 4), strict=True):
            part["arguments"]["points"] = points
        patch.setattr("workbench.papers.artifact.read_declaration", lambda paper: stated)
        return {name: compute(False) for name, compute in PAPER.artifacts.items()}


def test_paper_is_registered() -> None:
    assert PAPERS["dql"] == "workbench.papers.dql.artifacts"
    assert list(PAPER.artifacts) == ["fig2", "fig3", "theorem8", "bits"]


def test_every_printed_number_agrees(artifacts: dict[str, Artifact]) -> None:
    assert {c.what for a in artifacts.values() for c in a.comparisons if not c.agrees} == set()
    assert sum(len(a.comparisons) for a in artifacts.values()) == 6


def test_figures_are_drawn_from_their_tables(artifacts: dict[str, Artifact]) -> None:
    for artifact in artifacts.values():
        figure = artifact.draw(artifact.table)
        figure.draw_without_rendering()
        assert len(figure.axes) == {"fig2": 3, "fig3": 1, "theorem8": 2, "bits": 4}[artifact.name]
        rows = artifact.table
        rows = (
            rows[rows["mechanism"] == "DQL"].drop(columns="outputs")
            if artifact.name == "fig3"
            else rows
        )
        assert not rows.isna().any().any()


def test_fig2_stacks_up_to_laplace(artifacts: dict[str, Artifact]) -> None:
    table = artifacts["fig2"].table
    for t in range(1, 5):
        step = table[f"F_T({t}) g_{t}"] - table[f"F_T({t - 1}) g_{t - 1}"]
        assert np.allclose(step, table[f"p_T({t}) f_{t}"], atol=1e-15)
    assert (table["F_T(4) g_4"] < table["laplace"]).all()


def test_fig3_is_at_five_bits(artifacts: dict[str, Artifact]) -> None:
    table = artifacts["fig3"].table
    table = table[table["mechanism"] == "DQL"]
    assert np.allclose(table["mean_bits"], 5, atol=1e-6)
    assert np.allclose(table["mse"] * table["epsilon"] ** 2, 2)
    assert (np.diff(table["ell"]) > 0).all()
    assert np.allclose(table["decoder_epsilon"], table["ell"] * table["epsilon"])


def test_fig3_has_the_curve_of_mvu(artifacts: dict[str, Artifact]) -> None:
    table = artifacts["fig3"].table
    mvu = table[table["mechanism"] == "MVU"].sort_values("epsilon")
    assert len(mvu) == 4
    assert (mvu["outputs"] <= 32).all()
    assert (
        mvu["database_epsilon"] <= mvu["epsilon"] * (1 + 1e-5)
    ).all()  # The table has six digits of ε.
    assert (mvu["decoder_epsilon"] == mvu["database_epsilon"]).all()
    assert (np.diff(mvu["mse"]) < 0).all()
    # The paper's finding: DQL's database guarantee is better at small errors, MVU's at large ones.
    laplace = np.sqrt(2 / mvu["mse"])
    assert laplace.iloc[-1] < mvu["database_epsilon"].iloc[-1]
    assert laplace.iloc[0] > mvu["database_epsilon"].iloc[0]
    assert "DQL's database guarantee is better than MVU's up to" in artifacts["fig3"].caption


def test_bounds_hold_in_the_tables(artifacts: dict[str, Artifact]) -> None:
    assert (artifacts["theorem8"].table["slack"] > 0).all()
    assert "The bound holds" in artifacts["theorem8"].caption
    table = artifacts["bits"].table
    assert (table["delta_bits"] < table["theorem8"]).all()
    assert (table["theorem8"] < table["theorem8_printed"]).all()


def test_every_erratum_is_shown() -> None:
    assert PAPER.errata is not None
    found = PAPER.errata()
    assert len(found) == 5
    assert all(e["holds"] for e in found)
    json.dumps(found)
