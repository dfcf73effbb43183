"""Test the paper on dyadic quantized Laplace noise (DQL): printed numbers, errata and figures.

The facts are those of the paper: Fig. 2 shows how parts add up to the Laplace density, Fig. 3 is at
5 bits, and Theorem 8 bounds the mean length.
"""

from __future__ import annotations

import copy
import json

import numpy as np
import pandas as pd
import pytest

from workbench.papers import PAPERS
from workbench.papers.artifact import Artifact, read_declaration
from workbench.papers.dql.artifacts import (
    PAPER,
    audit_mvu_curve,
    describe_crossing,
    find_smallest_ell,
)


@pytest.fixture(scope="module")
def artifacts() -> dict[str, Artifact]:
    """Return all artifacts but fig3 by name."""
    computations = {name: make for name, make in PAPER.artifacts.items() if name != "fig3"}
    return {name: compute(full=False) for name, compute in computations.items()}


@pytest.fixture(scope="module")
def fig3() -> Artifact:
    """Return fig3 with few points: 3 for DQL and 4 for MVU. This takes ten seconds."""
    with pytest.MonkeyPatch.context() as patch:
        declaration = copy.deepcopy(read_declaration("dql"))
        for part, points in zip(declaration["fig3"]["rows"], (3, 4), strict=True):
            part["arguments"]["points"] = points
        patch.setattr("workbench.papers.artifact.read_declaration", lambda paper: declaration)
        return PAPER.artifacts["fig3"](full=False)


def test_paper_is_registered() -> None:
    assert PAPERS["dql"] == "workbench.papers.dql.artifacts"
    assert list(PAPER.artifacts) == ["fig2", "fig3", "theorem8", "bits"]


def test_every_printed_number_agrees(artifacts: dict[str, Artifact]) -> None:
    assert {c.what for a in artifacts.values() for c in a.comparisons if not c.agrees} == set()
    assert sum(len(a.comparisons) for a in artifacts.values()) == 4


def test_both_lengths_of_fig3_agree(fig3: Artifact) -> None:
    assert [c.agrees for c in fig3.comparisons] == [True, True]


def test_figures_are_drawn_from_their_tables(artifacts: dict[str, Artifact]) -> None:
    panel_counts = {"fig2": 3, "theorem8": 2, "bits": 4}
    for name, artifact in artifacts.items():
        figure = artifact.draw(artifact.table)
        figure.draw_without_rendering()
        assert len(figure.axes) == panel_counts[name]


def test_fig3_is_drawn_from_its_table(fig3: Artifact) -> None:
    figure = fig3.draw(fig3.table)
    figure.draw_without_rendering()
    assert len(figure.axes) == 1


def test_tables_have_no_missing_numbers(artifacts: dict[str, Artifact]) -> None:
    for artifact in artifacts.values():
        assert not artifact.table.isna().any().any()


def test_the_rows_of_dql_in_fig3_have_no_missing_numbers(fig3: Artifact) -> None:
    # Only the rows of MVU have outputs, and only those of DQL have ℓ.
    rows = fig3.table[fig3.table["mechanism"] == "DQL"].drop(columns="outputs")
    assert not rows.isna().any().any()


def test_the_smallest_ell_of_a_point_has_a_mean_length_of_five_bits() -> None:
    (row,) = find_smallest_ell(1, [], bits=5).to_dict("records")
    assert row["epsilon"] == 0.1
    assert row["mean_bits"] == pytest.approx(5, abs=1e-6)
    assert row["mse"] == pytest.approx(200, rel=1e-12)  # 2/ε²
    assert row["decoder_epsilon"] == pytest.approx(0.1 * row["ell"], rel=1e-12)


def test_a_point_of_the_curve_of_mvu_has_outputs_of_the_bits_and_the_audited_epsilon() -> None:
    (row,) = audit_mvu_curve(1, bits=2).to_dict("records")
    assert row["outputs"] <= 4
    assert row["database_epsilon"] == pytest.approx(0.1, rel=1e-5)
    assert row["decoder_epsilon"] == row["database_epsilon"]


def test_the_parts_of_fig2_add_up_to_the_laplace_density(artifacts: dict[str, Artifact]) -> None:
    """Level t has the density f_t and the probability p_T(t). F_T(t) g_t is the sum of the parts
    p_T(s) f_s of the levels s <= t.
    """
    table = artifacts["fig2"].table
    for t in range(1, 5):
        difference = table[f"F_T({t}) g_{t}"] - table[f"F_T({t - 1}) g_{t - 1}"]
        assert np.allclose(difference, table[f"p_T({t}) f_{t}"], atol=1e-15)
    # Five of infinitely many parts stay below the density.
    assert (table["F_T(4) g_4"] < table["laplace"]).all()


def test_fig3_is_at_five_bits(fig3: Artifact) -> None:
    table = fig3.table
    table = table[table["mechanism"] == "DQL"]
    assert np.allclose(table["mean_bits"], 5, atol=1e-6)
    assert np.allclose(table["mse"] * table["epsilon"] ** 2, 2)
    assert (np.diff(table["ell"]) > 0).all()
    assert np.allclose(table["decoder_epsilon"], table["ell"] * table["epsilon"])


def test_fig3_has_the_curve_of_mvu(fig3: Artifact) -> None:
    table = fig3.table
    mvu = table[table["mechanism"] == "MVU"].sort_values("epsilon")
    assert len(mvu) == 4
    assert (mvu["outputs"] <= 32).all()  # 5 bits
    # The table has six digits of ε.
    assert (mvu["database_epsilon"] <= mvu["epsilon"] * (1 + 1e-5)).all()
    assert (mvu["decoder_epsilon"] == mvu["database_epsilon"]).all()
    assert (np.diff(mvu["mse"]) < 0).all()


def test_fig3_shows_where_the_guarantee_of_dql_is_better(fig3: Artifact) -> None:
    """The paper finds that DQL's database ε is smaller at small errors, and MVU's at large ones."""
    table = fig3.table
    mvu = table[table["mechanism"] == "MVU"].sort_values("epsilon")
    # DQL has the mean squared error of Laplace noise, 2/ε².
    dql_epsilon = np.sqrt(2 / mvu["mse"])
    assert dql_epsilon.iloc[-1] < mvu["database_epsilon"].iloc[-1]
    assert dql_epsilon.iloc[0] > mvu["database_epsilon"].iloc[0]
    assert "DQL's database guarantee is better than MVU's up to" in fig3.caption


@pytest.mark.parametrize(
    ("mvu_epsilons", "words"),
    [
        # At the mean squared errors 1, 2 and 8, the ε of DQL is sqrt(2), 1 and 1/2.
        ((2, 2, 2), "better than MVU's wherever both are drawn"),
        ((0.4, 0.4, 0.4), "worse than MVU's wherever both are drawn"),
        ((2, 2, 0.4), "better than MVU's up to a mean squared error of 2. MVU's is better from 8"),
        ((1.2, 0.9, 2), "from a mean squared error of 8 on. MVU's is better at 2."),
    ],
)
def test_a_sentence_says_where_the_guarantee_of_dql_is_better(
    mvu_epsilons: tuple[float, ...], words: str
) -> None:
    columns = {"mechanism": "MVU", "mse": (1.0, 2.0, 8.0), "database_epsilon": mvu_epsilons}
    assert words in describe_crossing(pd.DataFrame(columns))["crossing"]


def test_the_bounds_of_theorem_8_hold(artifacts: dict[str, Artifact]) -> None:
    """`delta_bits` is the exact mean length in the Elias delta code.

    `theorem8` is the bound that the proof of Theorem 8 gives, `theorem8_printed` the printed bound.
    """
    assert (artifacts["theorem8"].table["slack"] > 0).all()
    assert "The bound holds" in artifacts["theorem8"].caption
    table = artifacts["bits"].table
    assert (table["delta_bits"] < table["theorem8"]).all()
    assert (table["theorem8"] < table["theorem8_printed"]).all()


def test_every_erratum_is_shown() -> None:
    assert PAPER.errata is not None
    errata = PAPER.errata()
    assert len(errata) == 5
    assert all(erratum["holds"] for erratum in errata)
    json.dumps(errata)
