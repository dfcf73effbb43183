"""Test the label-DP paper: values, errata, and loaders with small files of the real formats."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from workbench.errors import InvalidRequest
from workbench.papers import reproduce
from workbench.papers.label_dp import PAPER, curves, data, errata_checks, figures, learning
from workbench.papers.steps import report_elapsed_time


def test_the_mechanism_blocks_agree_with_the_stand_ins(monkeypatch: pytest.MonkeyPatch):
    empty = learning.pd.DataFrame(
        [(np.inf, "none", 1.0, 0.0)], columns=["epsilon", "mechanism", "mse", "std"]
    )
    for name in ("diabetes", "census"):
        monkeypatch.setitem(learning.ERRORS, name, lambda full: empty)
    for name, count in (("table1", 26), ("table2", 12), ("fig2", 6)):
        artifact = PAPER.artifacts[name](False)
        assert len(artifact.comparisons) == count
        assert not [c.what for c in artifact.comparisons if c.surprising]
        assert "STAND-IN" in artifact.caption
        if count != 6:
            assert artifact.table["epsilon"].iloc[-1] == np.inf
            assert [(c.printed, c.ours) for c in artifact.comparisons if "∞" in c.what] == [
                (0, 0),
                (0, 0),
            ]


def test_a_bin_that_lies_elsewhere_is_not_said_to_agree():
    for c in figures.make_label_map(False).comparisons:
        if c.what.startswith("bin"):
            assert c.agrees == (abs(c.ours - c.printed) <= 5)


def test_fig2_holds_probabilities():
    table = figures.make_label_map(False).table
    assert table.groupby("mechanism")["probability"].sum().to_numpy() == pytest.approx(1.0)


def test_every_erratum_is_shown():
    assert PAPER.errata is not None
    found = PAPER.errata()
    assert len(found) == 8
    assert all(erratum["holds"] for erratum in found)


def test_the_pointer_check_can_fail():
    assert errata_checks.count_pointer_moves((1, 1, 1), corrected=True) == 1
    assert errata_checks.count_pointer_moves((5, 1, 1), corrected=False) == 0


def test_the_signature_of_fig5():
    artifact = figures.make_signature_table(False)
    assert [c.surprising for c in artifact.comparisons] == [False, False]
    assert figures.compute_signature([[1, 0], [0, 1]], 2) is None  # This matrix is not private.


def test_prior_splits_improve_with_records(monkeypatch: pytest.MonkeyPatch):
    table = PAPER.artifacts["splits"](False).table
    large = table[table["records"] == 10_000_000].set_index(["split", "projection"])["excess"]
    assert large["1/4", "clip"] < large["1/2", "clip"] < large["1", "clip"]
    assert (table["excess"] > -1e-9).all()


def test_growth_of_a_power():
    assert curves.fit_growth_exponent([10, 100, 1000], [1.0, 8.0, 64.0]) == pytest.approx(
        np.log10(8)
    )


def test_the_work_is_counted_and_repeats():
    assert [curves.time_algorithm("printed", k, "squared")[1].steps for k in (2, 10)] == [5, 385]
    one, two = (curves.time_algorithm("fast", 3000, "absolute")[1] for _ in range(2))
    assert one.steps == two.steps
    assert 2 * 3000 * one.rounds <= one.steps <= 6 * 3000 * np.log2(3000) * one.rounds


def test_a_long_artifact_says_that_it_runs():
    said = []
    end = time.monotonic() + 300
    with report_elapsed_time(said.append, interval_seconds=0.01):
        while len(said) < 2 and time.monotonic() < end:
            time.sleep(0.01)
    assert said == sorted(said)
    assert said
    count = len(said)
    time.sleep(0.05)
    assert len(said) == count


def test_what_needs_full_is_left_alone_without_it(tmp_path: Path):
    assert "channel_lp_large" in PAPER.artifacts
    with pytest.raises(InvalidRequest, match="only must be given with --full for channel_lp_large"):
        reproduce.reproduce(["label-dp"], ["channel_lp_large"], tmp_path)
    assert not list(tmp_path.iterdir())


def test_models_trained_on_private_labels():
    pytest.importorskip("sklearn")
    features = np.random.default_rng(0).normal(size=(600, 2))
    truth = np.clip(np.round(5 + 2 * features[:, 0]), 0, 10)
    task = learning._Task(
        features,
        truth,
        np.arange(11.0),
        learning._fit_ridge,
        learning._mean_squared_error,
        is_integer=False,
    )
    table = learning._measure_test_errors(task, (0.1, 8.0), 2)
    error = table.set_index(["epsilon", "mechanism"])["mse"]
    assert (0.1, "RR-on-Bins") not in error.index  # Algorithm 3 refuses n <= k/ε².
    assert error[8.0, "RR-on-Bins"] < 1.5 * error[np.inf, "none"]
    assert error[0.1, "Laplace, unclipped"] > error[8.0, "Laplace, unclipped"]


def test_the_paper_lists_its_artifacts():
    assert {
        "fig2",
        "table1",
        "fig3",
        "fig4",
        "fig5",
        "fig6",
        "table2",
        "runtime",
        "work",
        "unbiasedness",
        "splits",
    } <= set(PAPER.artifacts)


def test_loaders_of_the_real_formats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    criteo = tmp_path / data.CRITEO_FILE
    rest = "\t".join(["-1"] * 21)
    criteo.write_text(
        "".join(
            f"{int(v != '-1')}\t{v}\t{rest}\n"
            for v in ("-1", "12.9", "12", "400.5", "0.0", "62458.773")
        )
    )
    found = data.load_criteo(criteo)
    assert found.is_real
    assert found.records == 5
    assert found.labels.prior[[0, 12, 400]] == pytest.approx([0.2, 0.4, 0.4])
    census = tmp_path / data.CENSUS_FILE
    census.write_text("YEAR,AGE,WKSWORK1\n1940,30,52\n1940,31,0\n1940,32,52\n1940,9,1\n")
    weeks = data.load_census(census)
    assert weeks.records == 3
    assert weeks.labels.values[[0, -1]].tolist() == [1, 52]
    assert weeks.labels.prior[-1] == pytest.approx(2 / 3)
    monkeypatch.setenv("WORKBENCH_DATA", str(tmp_path))
    assert data.get_criteo_data().is_real
    assert data.get_census_data().is_real


@pytest.mark.parametrize(
    ("loader", "text", "message"),
    [
        ("load_criteo", None, "Download the Criteo log from https://ailab.criteo.com"),
        ("load_criteo", "1\t12.0\n0\tabc\n", "line 2 of file must be a number"),
        ("load_criteo", "0\t-1\n", "at least one conversion"),
        ("load_criteo", "1\t-7\n", "line 1 of file must be an amount"),
        ("load_census", None, "Download the census extract from https://www.archives.gov"),
        ("load_census", "AGE\n3\n", "header names WKSWORK1"),
        ("load_census", "WKSWORK1\n60\n", "line 2 of file must be 0..52 weeks"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, loader, text, message):
    path = tmp_path / "file"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InvalidRequest, match=message):
        getattr(data, loader)(path)
