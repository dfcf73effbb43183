"""Test the command `privatise labels --outputs labels`, whose published values are labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from workbench.cli import main

STARS = [1, 2, 3, 4, 4, 5, 5] * 60
COMMAND = "labels s.csv --column stars --labels 1..5 --outputs labels --out o.csv"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a folder with the file s.csv of STARS in two shops."""
    monkeypatch.chdir(tmp_path)
    lines = [f"{star},{'ab'[number % 2]}" for number, star in enumerate(STARS)]
    Path("s.csv").write_text("\n".join(["stars,shop", *lines, ""]))
    return tmp_path


def privatise(capsys: pytest.CaptureFixture[str], options: str) -> tuple[int, str]:
    """Run the command with options. Return the exit code and the text on stderr."""
    with pytest.raises(SystemExit) as stop:
        main(["privatise", *COMMAND.split(), *options.split()])
    return int(stop.value.code or 0), capsys.readouterr().err


def read_report() -> dict[str, Any]:
    """Return the report beside the output."""
    report: dict[str, Any] = json.loads(Path("o.csv.json").read_text())
    return report


@pytest.mark.parametrize("loss", ["squared", "absolute", "error-rate"])
def test_every_published_score_is_a_label(folder: Path, capsys: Any, loss: str) -> None:
    assert privatise(capsys, f"--epsilon 3 --loss {loss}") == (0, "")
    published = {float(line) for line in Path("o.csv").read_text().split()[1:]}
    assert published <= {*read_report()["outputs"]} <= {1, 2, 3, 4, 5}


def test_the_loss_is_proven_and_beside_that_of_real_outputs(folder: Path, capsys: Any) -> None:
    """At ε = 1 the best real outputs of the squared loss are no integers."""
    code, _ = privatise(capsys, "--epsilon 1")
    assert code == 0
    report = read_report()
    loss = report["expected_loss"]
    assert loss == pytest.approx(report["lower_bound_with_these_outputs"], rel=1e-9)
    assert report["expected_loss_with_real_outputs"] < loss * (1 - 1e-6)
    rmse = report["expected_error"]["root mean squared error under the private prior"]
    assert rmse**2 == pytest.approx(loss, rel=1e-9)


def test_every_bucket_has_its_own_loss(folder: Path, capsys: Any) -> None:
    code, _ = privatise(capsys, "--epsilon 2 --bucket shop")
    assert code == 0
    buckets = read_report()["buckets"]
    losses = {name: entries["expected_loss"] for name, entries in buckets.items()}
    assert losses.keys() == {"a", "b"}
    assert losses["a"] != losses["b"]


def test_the_error_rate_has_no_loss_of_real_outputs(folder: Path, capsys: Any) -> None:
    code, _ = privatise(capsys, "--epsilon 1 --loss error-rate")
    assert code == 0
    assert read_report()["expected_loss_with_real_outputs"] is None


def test_rr_with_prior_publishes_labels_already(folder: Path, capsys: Any) -> None:
    code, _ = privatise(capsys, "--epsilon 1 --method rr-with-prior")
    assert code == 0
    assert {*read_report()["outputs"]} <= {1, 2, 3, 4, 5}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--method unbiased", "outputs must be real with method unbiased"),
        ("--training-loss squared", "training_loss must be left out with --outputs labels"),
    ],
)
def test_estimates_are_no_labels(folder: Path, capsys: Any, options: str, message: str) -> None:
    code, err = privatise(capsys, f"--epsilon 1 {options}")
    assert code == 2
    assert message in " ".join(err.split())
