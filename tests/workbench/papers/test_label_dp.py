"""Test the reproduction of Ghazi et al. 2022 on label DP: values, errata, loaders of the real files.

The labels of the paper (amounts of Criteo, weeks of the census) are not part of this repository. A
stand-in is a column that is fitted to the numbers that the paper prints. An artifact is a figure or a
table of the paper.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from workbench.errors import InvalidRequest
from workbench.papers import reproduce
from workbench.papers.label_dp import PAPER, curves, data, errata_checks, figures, learning
from workbench.papers.steps import report_elapsed_time


@pytest.fixture
def no_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the test errors of models, which take long, by one row without privacy."""
    columns = ["epsilon", "mechanism", "mse", "std"]
    errors = pd.DataFrame([(np.inf, "none", 1.0, 0.0)], columns=columns)
    monkeypatch.setattr(curves, "measure_test_errors", lambda *arguments: errors)


@pytest.mark.usefixtures("no_training")
@pytest.mark.parametrize(("name", "count"), [("table1", 26), ("table2", 12), ("fig2", 6)])
def test_printed_errors_of_labels_agree_with_the_stand_ins(name: str, count: int):
    artifact = PAPER.artifacts[name](full=False)
    assert len(artifact.comparisons) == count
    assert not [c.what for c in artifact.comparisons if c.surprising]
    assert "STAND-IN" in artifact.caption


@pytest.mark.usefixtures("no_training")
@pytest.mark.parametrize("name", ["table1", "table2"])
def test_labels_without_privacy_have_no_error(name: str):
    artifact = PAPER.artifacts[name](full=False)
    assert artifact.table["epsilon"].iloc[-1] == np.inf
    last_comparisons = [c for c in artifact.comparisons if "∞" in c.what]
    assert [(c.printed, c.ours) for c in last_comparisons] == [(0, 0), (0, 0)]


def test_a_bin_agrees_if_it_is_within_5_euros_of_the_printed_one():
    for comparison in PAPER.artifacts["fig2"](full=False).comparisons:
        if comparison.what.startswith("bin"):
            assert comparison.agrees == (abs(comparison.difference) <= 5)


def test_the_probabilities_of_fig2_add_up_to_1():
    table = PAPER.artifacts["fig2"](full=False).table
    assert table.groupby("mechanism")["probability"].sum().to_numpy() == pytest.approx(1.0)


def test_every_erratum_is_shown():
    assert PAPER.errata is not None
    errata = PAPER.errata()
    assert len(errata) == 10
    assert all(erratum["holds"] for erratum in errata)


def test_both_rules_of_the_pointer_stop_for_other_weights():
    """The erratum is about the weights 2, 3, 2. Here the medians are the second and first value."""
    assert errata_checks.count_pointer_moves((1, 1, 1), corrected=True) == 1
    assert errata_checks.count_pointer_moves((5, 1, 1), corrected=False) == 0


def test_the_signature_of_fig5_agrees_with_the_printed_one():
    artifact = figures.make_signature_table(full=False)
    assert [c.surprising for c in artifact.comparisons] == [False, False]


def test_a_matrix_that_is_not_private_has_no_signature():
    assert figures.compute_signature([[1, 0], [0, 1]], 2) is None


def test_with_many_records_a_small_budget_for_the_prior_is_best():
    table = PAPER.artifacts["splits"](full=False).table
    large = table[table["records"] == 10_000_000].set_index(["split", "projection"])["excess"]
    assert large["1/4", "clip"] < large["1/2", "clip"] < large["1", "clip"]
    assert (table["excess"] > -1e-9).all()


def test_the_growth_exponent_of_a_power_law_is_its_power():
    # The work grows by a factor of 8 if the size grows by a factor of 10.
    exponent = curves.fit_growth_exponent([10, 100, 1000], [1.0, 8.0, 64.0])
    assert exponent == pytest.approx(np.log10(8))


def test_the_printed_algorithm_compares_a_cubic_number_of_candidates():
    """For k labels the number is Σ i², the sum of squares up to k: 5 and 385."""
    for k, count in ((2, 5), (10, 385)):
        _, bins = curves.time_algorithm("printed", k, "squared")
        assert bins.steps == count


def test_the_fast_algorithm_takes_the_same_nearly_linear_number_of_steps_every_time():
    k = 3000
    _, first = curves.time_algorithm("fast", k, "absolute")
    _, second = curves.time_algorithm("fast", k, "absolute")
    assert first.steps == second.steps
    assert 2 * k * first.rounds <= first.steps <= 6 * k * np.log2(k) * first.rounds


def test_the_elapsed_time_is_reported_until_the_artifact_is_done():
    seconds: list[float] = []
    end = time.monotonic() + 300
    with report_elapsed_time(seconds.append, interval_seconds=0.01):
        while len(seconds) < 2 and time.monotonic() < end:
            time.sleep(0.01)
    assert seconds == sorted(seconds)
    assert seconds
    count = len(seconds)
    time.sleep(0.05)
    assert len(seconds) == count


def test_an_artifact_that_needs_full_is_refused_without_it(tmp_path: Path):
    assert "channel_lp_large" in PAPER.artifacts
    with pytest.raises(InvalidRequest, match="only must be given with --full for channel_lp_large"):
        reproduce.reproduce(["label-dp"], ["channel_lp_large"], tmp_path)
    assert not list(tmp_path.iterdir())


def test_models_trained_on_private_labels_are_better_with_a_larger_budget():
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
    table = learning._measure_test_errors(task, epsilons=(0.1, 8.0), run_count=2)
    errors = table.set_index(["epsilon", "mechanism"])["mse"]
    # Algorithm 3 needs n > k/ε² records. Here n = 480 and k/ε² = 1100.
    assert (0.1, "RR-on-Bins") not in errors.index
    assert errors[8.0, "RR-on-Bins"] < 1.5 * errors[np.inf, "none"]
    assert errors[0.1, "Laplace, unclipped"] > errors[8.0, "Laplace, unclipped"]


def test_the_training_data_have_the_published_number_of_stand_in_labels():
    """Sec. 4.1 of the paper: 1,732,721 examples."""
    task = learning.TASKS["criteo"](1_732_721)
    assert task.truth.size == len(task.features) == 1_732_721
    counts = np.bincount(task.truth.astype(int))
    prior = data.get_criteo_data().labels.prior
    assert np.abs(counts - 1_732_721 * prior).max() <= 1


def test_with_many_records_bins_train_better_models_than_clipped_noise():
    """With 353 records the order is the other one, because the private prior needs many records."""
    pytest.importorskip("sklearn")
    table = learning.measure_test_errors("criteo", (0.5,), runs=1, records=100_000)
    errors = table.set_index("mechanism")["mse"]
    assert errors["RR-on-Bins"] < 0.8 * errors["staircase"]
    assert errors["staircase, unclipped"] < errors["RR-on-Bins"]


def test_every_figure_and_table_of_the_paper_is_an_artifact():
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


def write_criteo_file(folder: Path) -> Path:
    """Write a log of Criteo with six lines of 23 fields, one of them without a sale (-1)."""
    other_fields = "\t".join(["-1"] * 21)
    lines = []
    for amount in ("-1", "12.9", "12", "400.5", "0.0", "62458.773"):
        has_sale = int(amount != "-1")
        lines.append(f"{has_sale}\t{amount}\t{other_fields}\n")
    path = folder / data.CRITEO_FILE
    path.write_text("".join(lines))
    return path


def write_census_file(folder: Path) -> Path:
    """Write an extract of the census with four persons, one of them without weeks of work."""
    path = folder / data.CENSUS_FILE
    path.write_text("YEAR,AGE,WKSWORK1\n1940,30,52\n1940,31,0\n1940,32,52\n1940,9,1\n")
    return path


def test_amounts_of_the_criteo_log_are_rounded_down_and_clipped_at_400(tmp_path: Path):
    loaded = data.load_criteo(write_criteo_file(tmp_path))
    assert loaded.is_real
    assert loaded.records == 5
    assert loaded.labels.prior[[0, 12, 400]] == pytest.approx([0.2, 0.4, 0.4])


def test_the_labels_of_the_census_are_the_weeks_1_to_52(tmp_path: Path):
    loaded = data.load_census(write_census_file(tmp_path))
    assert loaded.records == 3
    assert loaded.labels.values[[0, -1]].tolist() == [1, 52]
    assert loaded.labels.prior[-1] == pytest.approx(2 / 3)


def test_real_files_are_used_if_a_variable_names_their_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    write_criteo_file(tmp_path)
    write_census_file(tmp_path)
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
def test_a_wrong_file_is_refused_with_its_line(tmp_path: Path, loader, text, message):
    path = tmp_path / "file"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InvalidRequest, match=message):
        getattr(data, loader)(path)
