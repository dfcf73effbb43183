"""Test `workbench audit` and `workbench check` on the files of joint releases."""

from __future__ import annotations

import json
import math
import shlex
import shutil
from fractions import Fraction
from pathlib import Path

import pytest

import workbench as wb
from workbench.cli import main
from workbench.exact.integer_law import IntegerLaw
from workbench.mechanisms import joint_noise
from workbench.mechanisms.baselines.count_queries import discrete_gaussian
from workbench.mechanisms.joint_noise import JointNoise
from workbench.questions.joint_query import JointQuery


def run(capsys: pytest.CaptureFixture[str], command: str) -> tuple[int, str]:
    """Run a command line. Return its exit code, and its texts on stdout and stderr together."""
    with pytest.raises(SystemExit) as stop:
        main(shlex.split(command))
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out + captured.err


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the certificates of two histograms. No test changes them.

    geometric.json has geometric noise, whose δ is computed exactly. The privacy losses of the
    Gaussian noise in gaussian.json have no common step, so that δ is only enclosed.
    """
    saved = tmp_path_factory.mktemp("certificates")
    query = JointQuery("row-per-bin", rows=4)
    geometric = JointNoise(query, IntegerLaw(first=0, weights=[1], period=1, ratio=Fraction(4, 5)))
    wb.save(wb.certify(geometric, "pure", "0.9"), saved / "geometric.json")
    radius, masses = discrete_gaussian(Fraction(30))  # σ² = 30.
    gaussian = JointNoise(query, IntegerLaw(-radius, masses))
    wb.save(wb.certify(gaussian, "dp", "1", delta="0.001"), saved / "gaussian.json")
    return saved


@pytest.fixture
def folder(certificates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a folder with copies of the certificates, and return its path."""
    shutil.copytree(certificates, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_audit_shows_the_exact_numbers_of_geometric_noise(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    code, text = run(capsys, "audit geometric.json --json")
    assert code == 0
    assert json.loads(text)["pure_epsilon"] == pytest.approx(4 * math.log(1.25), abs=1e-9)


def test_audit_shows_bounds_for_gaussian_noise(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    code, text = run(capsys, "audit gaussian.json --json")
    assert code == 0
    values = json.loads(text)
    # Continuous noise with σ² = 30 has δ = 5.54e-4 at ε = 1 and the shift 2, the norm of
    # (1, 1, 1, 1) (Balle and Wang 2018).
    assert 0.0005 < values["dp_delta_low"] < values["dp_delta"] < 0.0006
    code, text = run(capsys, "audit gaussian.json")
    assert code == 0
    assert "between 0.0005" in text


def test_audit_reports_the_exact_loss_of_gaussian_noise(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    code, text = run(capsys, "audit gaussian.json --loss squared --json")
    assert code == 0
    # The variance of the discrete Gaussian with σ² = 30 is 30 up to e^(-2π² 30).
    assert json.loads(text)["mean_error"] == pytest.approx(30, abs=1e-6)
    code, text = run(capsys, "audit gaussian.json --loss squared")
    assert code == 0
    assert "mean squared loss" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--loss nonsense", "loss must be absolute or squared"),
        ("--data 1,2", "data must be left out"),
    ],
)
def test_audit_refuses_options_that_do_not_fit_gaussian_noise(
    options: str, message: str, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    code, text = run(capsys, f"audit gaussian.json {options}")
    assert code == 2
    assert message in text


@pytest.mark.parametrize(
    "command",
    [
        "audit gaussian.json --delta 0.1",
        "audit gaussian.json --risk",
        "audit gaussian.json --plot profile.svg",
        "compose gaussian.json --times 2 --delta 0.01",
    ],
)
def test_a_refused_convolution_names_the_commands_that_work(
    command: str,
    capsys: pytest.CaptureFixture[str],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(joint_noise, "MAX_CONVOLUTION_UNITS", 1000)
    code, text = run(capsys, command)
    assert code == 2
    assert "`check`, and `audit` without --delta, --risk and --plot" in text


def test_check_proves_both_releases(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    for file in ("gaussian.json", "geometric.json"):
        code, _ = run(capsys, f"check {file}")
        assert code == 0


def test_check_refuses_a_release_without_a_shift_vector(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    data = json.loads((folder / "geometric.json").read_text())
    data["mechanism"]["shifts"].remove([1, 1])  # The shift of a person with two rows in two bins.
    (folder / "geometric.json").write_text(json.dumps(data))
    code, text = run(capsys, "check geometric.json")
    assert code == 1
    assert "shift vectors" in text
