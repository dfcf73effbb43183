"""Test private priors for the buckets of a public feature, and training losses of columns."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workbench.cli import main
from workbench.errors import InvalidRequest
from workbench.exact.random_source import Source
from workbench.families.labels.problem import find_best_bins
from workbench.mechanisms.label_randomizers.label_randomizer import LabelRandomizer

VALUES = [0.0, 1.0, 2.0, 3.0]  # The labels.
COUNTS = {"a": 40, "b": 60}  # The number of rows of each bucket.


def make_columns() -> tuple[list[float], list[str]]:
    """Make labels and buckets: bucket a has low labels, bucket b has high ones."""
    rows = [(float(i % 2), "a") for i in range(COUNTS["a"])]
    rows += [(float(2 + i % 2), "b") for i in range(COUNTS["b"])]
    labels, buckets = zip(*rows, strict=True)
    return [*labels], [*buckets]


def test_every_bucket_has_its_own_prior_and_the_complete_budget() -> None:
    labels, buckets = make_columns()
    randomizer = LabelRandomizer(VALUES, 2, find_best_bins)
    release = randomizer.run_in_buckets(labels, buckets, Source(1))
    assert release.counts == COUNTS
    for bucket, part in release.releases.items():
        assert part.epsilon == 2
        # ε₁ = sqrt(k/n), rounded down.
        assert float(part.epsilon_prior) == pytest.approx(np.sqrt(4 / COUNTS[bucket]), abs=1e-8)
        rows = np.flatnonzero(np.array(buckets) == bucket)
        assert release.labels[rows].tolist() == part.labels.tolist()
    priors = {bucket: part.label_set.prior for bucket, part in release.releases.items()}
    # The true shares are 1. Randomness makes the private priors differ from them.
    assert priors["a"][:2].sum() > 0.6
    assert priors["b"][2:].sum() > 0.6


def test_a_label_changes_the_releases_of_its_bucket_alone() -> None:
    """This is why the budgets of the buckets do not add up."""
    labels, _ = make_columns()
    randomizer = LabelRandomizer(VALUES, 2, find_best_bins)
    labels_a = labels[: COUNTS["a"]]
    labels_b = labels[COUNTS["a"] :]
    changed_labels_a = [3.0, *labels_a[1:]]
    buckets_a = ["a"] * COUNTS["a"]
    buckets_b = ["b"] * COUNTS["b"]
    # The rows of bucket b come first, so they are randomized with the same random numbers each time.
    only_b = randomizer.run_in_buckets(labels_b, buckets_b, Source(1))
    unchanged = randomizer.run_in_buckets(labels_b + labels_a, buckets_b + buckets_a, Source(1))
    changed = randomizer.run_in_buckets(
        labels_b + changed_labels_a, buckets_b + buckets_a, Source(1)
    )
    expected = only_b.labels.tolist()
    assert unchanged.labels[: COUNTS["b"]].tolist() == expected
    assert changed.labels[: COUNTS["b"]].tolist() == expected


def test_errors_of_all_records_are_means_over_buckets() -> None:
    labels, buckets = make_columns()
    release = LabelRandomizer(VALUES, 2, find_best_bins).run_in_buckets(labels, buckets, Source(1))
    name = "root mean squared error under the private prior"
    mean_square = sum(
        part.expected_error[name] ** 2 * COUNTS[bucket] / 100
        for bucket, part in release.releases.items()
    )
    assert release.expected_error[name] == pytest.approx(np.sqrt(mean_square))
    name = "largest mean absolute error of any label"
    largest = max(part.expected_error[name] for part in release.releases.values())
    assert release.expected_error[name] == largest


def test_a_small_bucket_is_an_error_before_any_draw() -> None:
    labels, buckets = make_columns()
    source = Source(3)
    randomizer = LabelRandomizer(VALUES, Fraction(1, 2), find_best_bins)
    with pytest.raises(
        InvalidRequest, match=r"Bucket 'c' has too few rows\. n must be at least 17"
    ):
        randomizer.run_in_buckets([*labels, 1.0], [*buckets, "c"], source)
    assert source.draw_integers(1000, 5).tolist() == Source(3).draw_integers(1000, 5).tolist()


@pytest.mark.parametrize("buckets", [[], ["a"]])
def test_buckets_of_another_length_are_an_error(buckets: list[str]) -> None:
    randomizer = LabelRandomizer(VALUES, 2, find_best_bins)
    with pytest.raises(InvalidRequest, match="buckets must be one for each of the 2 labels"):
        randomizer.run_in_buckets([0, 1], buckets)


def write_table(folder: Path) -> Path:
    """Write a table with the columns id, label and region."""
    labels, buckets = make_columns()
    lines = ["id,label,region"]
    lines += [f"{i},{y:g},{b}" for i, (y, b) in enumerate(zip(labels, buckets, strict=True))]
    path = folder / "people.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def run_command(folder: Path, *options: str) -> dict[str, Any]:
    """Run `privatise labels` on the table and return the report beside the output."""
    return run_command_on_table(write_table(folder), *options)


def run_command_on_table(table: Path, *options: str) -> dict[str, Any]:
    """Run `privatise labels` on a table and return the report beside the output."""
    folder = table.parent
    target = folder / "out.csv"
    base = f"privatise labels {table} --column label --labels 0..3 --epsilon 2"
    arguments = [*base.split(), "--out", str(target), "--insecure-seed", "1", "--overwrite"]
    with pytest.raises(SystemExit, match="0"):
        main([*arguments, *options])
    report: dict[str, Any] = json.loads((folder / "out.csv.json").read_text("utf-8"))
    return report


def test_the_command_reports_every_bucket(tmp_path: Path) -> None:
    report = run_command(tmp_path, "--bucket", "region")
    buckets = report["buckets"]
    assert isinstance(buckets, dict)
    assert {name: entries["rows"] for name, entries in buckets.items()} == COUNTS
    for entries in buckets.values():
        assert entries["epsilon1"] + entries["epsilon2"] == pytest.approx(2)
    assert report["epsilon"] == 2
    assert any("must be public" in note for note in report["words"])
    lines = (tmp_path / "out.csv").read_text("utf-8").splitlines()
    assert len(lines) == 101


def test_buckets_that_differ_in_spaces_around_the_name_are_one(tmp_path: Path) -> None:
    """Such spaces cannot be seen in a report."""
    table = write_table(tmp_path)
    header, *rows = table.read_text("utf-8").splitlines()
    # Every second row has a space behind the name of its bucket.
    rows[1::2] = [f"{row} " for row in rows[1::2]]
    table.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    buckets = run_command_on_table(table, "--bucket", "region")["buckets"]
    assert {name: entries["rows"] for name, entries in buckets.items()} == COUNTS


def test_the_command_without_buckets_reports_no_buckets(tmp_path: Path) -> None:
    report = run_command(tmp_path)
    assert {"epsilon1", "epsilon2", "d", "outputs", "bins"} <= report.keys()
    assert "buckets" not in report
    assert "training_loss" not in report


def test_rr_with_prior_publishes_labels_and_training_losses_publish_estimates(
    tmp_path: Path,
) -> None:
    plain = run_command(tmp_path, "--method", "rr-with-prior")
    denoised = run_command(tmp_path, "--method", "rr-with-prior", "--training-loss", "squared")
    assert set(plain["outputs"]) <= {0.0, 1.0, 2.0, 3.0}
    assert not set(denoised["outputs"]) & {0.0, 1.0, 2.0, 3.0}
    name = "root mean squared error under the private prior"
    errors = [report["expected_error"][name] for report in (plain, denoised)]
    assert errors[1] < errors[0]


@pytest.mark.parametrize(
    ("options", "text", "loss"),
    [
        ([], "of RR-on-Bins, optimal for the private prior, squared loss", "squared"),
        (
            ["--training-loss", "absolute"],
            "of RR-on-Bins for the private prior and squared loss, replaced by the best estimates "
            "for absolute loss",
            "squared",
        ),
        (["--method", "rr-with-prior"], "of RRWithPrior for the private prior", None),
        (
            ["--method", "rr-with-prior", "--training-loss", "absolute"],
            "of RRWithPrior for the private prior, replaced by the best estimates for absolute "
            "loss",
            None,
        ),
    ],
)
def test_the_command_names_the_losses_that_its_outputs_depend_on(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    text: str,
    loss: str | None,
) -> None:
    report = run_command(tmp_path, *options)
    lines = capsys.readouterr().out.splitlines()
    (outputs,) = [line.rstrip() for line in lines if line.startswith("outputs")]
    assert report["loss"] == loss
    assert outputs.endswith(f", {text}")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--bucket", "label"], "another column than the private one"),
        (["--bucket", "country"], "bucket must be a column of people.csv"),
        (["--id", "country"], "id must be a column of people.csv"),
        (["--person", "9"], "person must be a column of people.csv"),
        (["--epsilon1", "0.5", "--split", "2"], "split must be left out with epsilon1"),
        (
            ["--method", "unbiased", "--training-loss", "absolute"],
            "must be left out if method is unbiased",
        ),
        (["--training-loss", "cubic"], "training_loss must be one of"),
    ],
)
def test_wrong_options_are_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    base = f"privatise labels {write_table(tmp_path)} --column label --labels 0..3 --epsilon 2"
    with pytest.raises(SystemExit, match="2"):
        main([*base.split(), "--out", str(tmp_path / "o.csv"), *options])
    assert message in " ".join(capsys.readouterr().err.split())
