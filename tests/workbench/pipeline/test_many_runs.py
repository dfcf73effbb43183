"""Test designs for several runs: (ε, δ) holds for all runs of the mechanism together.

The δ of T runs is computed by composition (`details["composed"]`). The package dp_accounting, if it
is installed, confirms it. No bound is proven over all designs for T runs.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import shlex
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from workbench.cli import main
from workbench.privacy.composition import bound_composed_delta

# Geometric noise has the loss 2 r/(1 - r)². It is 7.8354 for r = e^(-1/2), which is private for two
# runs without δ, and more than this number for the smallest r that δ = 1e-5 allows.
GEOMETRIC_LOSS = 7.8349


@pytest.fixture(scope="module")
def design() -> wb.Design:
    """Return noise on the integers for two runs."""
    return wb.design(wb.IntegerNoise(), epsilon=1, delta="1e-5", runs=2)


def test_the_design_beats_geometric_noise(design: wb.Design):
    assert design.objective < GEOMETRIC_LOSS
    assert design.status == "found"
    assert "for 2 runs together" in str(design)


def test_no_bound_is_stated_for_a_design_for_several_runs(design: wb.Design):
    assert (design.bound, design.gap) == (None, None)
    assert "none: not proven optimal among all designs for 2 runs" in str(design)


def test_two_runs_of_the_design_are_within_the_budget(design: wb.Design):
    claim = design.request.claim
    assert bound_composed_delta(design.mechanism, times=2, epsilon=claim.epsilon) <= claim.delta
    assert design.details["composed"]["delta"] <= 1e-5
    assert design.private


def test_compose_confirms_the_budget_of_two_runs(design: wb.Design):
    composed = wb.compose(design, 2, epsilon=1)
    assert composed.delta_low <= composed.delta <= design.details["composed"]["delta"]
    assert wb.compose(design, 2, delta="1e-5").epsilon <= 1


def test_the_certificate_of_a_design_for_two_runs_states_their_budget(design: wb.Design):
    assert design.certificate is not None
    assert design.certificate.holds()
    claim = design.certificate.composed
    assert claim is not None
    assert (claim.runs, claim.epsilon, claim.delta) == (2, 1, design.request.claim.delta)


def test_a_design_without_a_certificate_is_not_called_certified():
    design = wb.design(wb.IntegerNoise(), epsilon=1, delta="1e-5", runs=2, certify=False)
    assert design.certificate is None
    assert "not certified" in str(design)
    assert "certified" not in str(design).replace("not certified", "").lower()


def test_a_composed_design_without_a_certificate_is_not_called_certified():
    """Channels for several runs are searched for by designs of one run."""
    query = wb.FiniteQuery("0..3", max_shift=1)
    design = wb.design(query, epsilon=1, delta="0.01", loss="absolute", runs=2, certify=False)
    assert design.certificate is None
    text = " ".join(str(design).split())
    assert "One run is designed for" in text
    assert "without a certificate" in text
    assert "is certified" not in text


def test_dp_accounting_confirms_the_composed_delta_of_noise(design: wb.Design):
    """Masses below 1e-30, and outputs that only one of two neighbours can have, are left out."""
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    outputs = design.mechanism.outputs.tolist()
    masses = design.mechanism.law().floats
    log_masses = {
        output: math.log(mass) for output, mass in zip(outputs, masses, strict=True) if mass > 1e-30
    }
    shifted = {output - 1: log_mass for output, log_mass in log_masses.items()}
    common_outputs = log_masses.keys() & shifted.keys()
    loss_distribution = pld.from_two_probability_mass_functions(
        {output: log_masses[output] for output in common_outputs},
        {output: shifted[output] for output in common_outputs},
        pessimistic_estimate=False,
        value_discretization_interval=1e-4,
    )
    assert loss_distribution.self_compose(2).get_delta_for_epsilon(1.0) <= 1e-5


@pytest.fixture(scope="module")
def command_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run `design noise` for 16 runs. Return the folder with c.json and the output design.json."""
    folder = tmp_path_factory.mktemp("runs")
    command = (
        "design noise --on integers --sensitivity 1 --loss squared --epsilon 8 --delta 1e-5 "
        f"--runs 16 --json --save {folder / 'c.json'}"
    )
    output = io.StringIO()
    with contextlib.redirect_stdout(output), pytest.raises(SystemExit) as stop:
        main(shlex.split(command))
    assert not stop.value.code
    (folder / "design.json").write_text(output.getvalue())
    return folder


def test_the_command_reports_the_composition(command_folder: Path):
    design = json.loads((command_folder / "design.json").read_text())
    assert design["exact"]["composed"]["runs"] == 16
    assert design["exact"]["composed"]["delta"] <= 1e-5
    assert (design["bound"], design["gap"]) == (None, None)
    assert "No bound is proven over all designs for 16 runs." in " ".join(design["words"])


def test_the_command_compares_the_design_with_discrete_gaussian_noise(command_folder: Path):
    design = json.loads((command_folder / "design.json").read_text())
    # Values of the current program, pinned.
    assert design["objective"] <= 5.31
    assert design["beside"]["discrete Gaussian"] == pytest.approx(5.757, abs=2e-3)


def test_the_certificate_of_the_command_states_the_composition(command_folder: Path):
    design = json.loads((command_folder / "design.json").read_text())
    certificate = wb.check(command_folder / "c.json")
    assert (certificate.claim.notion.name, certificate.composed.runs) == ("pure", 16)
    composed = wb.compose(certificate, 16, epsilon=8)
    assert composed.delta <= design["exact"]["composed"]["delta"]


@pytest.mark.parametrize(
    ("question", "options"),
    [
        (wb.IntegerNoise(clamp=(0, 5)), {}),  # It is clamped.
        (wb.RealNoise(1), {}),  # It is on the reals.
        (wb.IntegerNoise(), {"delta": 0}),  # Without δ the noise has no search.
        (wb.IntegerNoise(), {"notion": "pure", "delta": 0}),
        (wb.IntegerNoise(), {"loss": (0, 1, 2)}),  # The loss has no name.
        (wb.IntegerNoise(), {"runs": 0}),
        (wb.IntegerNoise(), {"runs": 1025}),  # The limit is 1024.
        (wb.IntegerNoise(), {"delta": "1e-30"}),  # The limit is 1e-12.
        (wb.IntegerNoise(), {"delta": "0.9"}),  # The limit is 1/2.
        (wb.IntegerNoise(), {"epsilon": 50}),  # The limit is 10 for each of the 4 runs.
        (wb.IntegerNoise(), {"runs": 10**9}),
    ],
)
def test_unsupported_requests_for_several_runs_are_errors(question, options):
    with pytest.raises(wb.InvalidRequest, match="runs must be"):
        wb.design(question, **{"epsilon": 2, "delta": "1e-5", "runs": 4} | options)


def test_a_gap_is_refused_for_several_runs():
    with pytest.raises(wb.InvalidRequest, match="gap must be left out"):
        wb.design(wb.IntegerNoise(), epsilon=1, delta="1e-5", runs=4, gap=0.01)


def test_a_search_that_is_stopped_returns_noise_no_worse_than_geometric_noise():
    stopped = wb.design(
        wb.IntegerNoise(), epsilon=1, delta="1e-5", runs=2, loss="absolute", time_limit="0.001"
    )
    assert "stopped at its time limit" in str(stopped)
    assert stopped.details["composed"]["delta"] <= 1e-5
    geometric_loss = stopped.family.extra_json(stopped)["beside"]["geometric"]
    assert stopped.objective <= geometric_loss * (1 + 1e-6)


def test_a_design_within_a_curve_states_the_requested_budget() -> None:
    """The mechanism is certified for a privacy curve of one run.

    The design still states the requested budget: (epsilon, delta) for 16 runs.
    """
    design = wb.design(
        "modulo", n=10, max_shift=1, loss="circular-squared", epsilon=4, delta="1e-5", runs=16
    )
    assert design.claim.notion.name == "curve"
    requested = design.request.claim
    assert (requested.notion.name, requested.epsilon, design.request.aim.runs) == ("dp", 4, 16)
    assert design.details["composed"]["delta"] <= 1e-5
    assert design.bound is None


@pytest.mark.parametrize(("delta", "min_loss", "max_loss"), [("0.99", 0.0, 0.2), ("1", 0.0, 0.0)])
def test_noise_for_many_runs_at_a_large_delta_has_a_small_loss(
    delta: str, min_loss: float, max_loss: float
) -> None:
    """With δ = 1 the answer itself is private. The search over noise must still end."""
    design = wb.design(
        wb.ModuloNoise(n=5, max_shift=1), epsilon=2, delta=delta, runs=4, certify=False
    )
    assert min_loss <= design.objective <= max_loss


@pytest.mark.parametrize(
    ("question", "options"),
    [
        (wb.IntegerNoise(3), {"runs": 3, "epsilon": "1", "delta": "1e-5"}),
        (wb.IntegerNoise(2), {"runs": 2, "epsilon": "1", "delta": "1e-3", "loss": "absolute"}),
        (wb.FiniteQuery("0..4", max_shift=2), {"runs": 2, "epsilon": "1", "delta": "1e-3"}),
        (
            wb.Labels([*range(5)]),
            {"runs": 2, "epsilon": "1", "delta": "1e-3", "method": "lp", "notion": "dp"},
        ),
    ],
)
def test_a_design_for_runs_has_no_larger_loss_than_equal_shares(
    question: Any, options: dict[str, Any], tmp_path: Path
) -> None:
    runs = options["runs"]
    # Each run of `single` has an equal share of the budget.
    shares = {name: Fraction(options[name]) / runs for name in ("epsilon", "delta")}
    single = wb.design(question, **{**options, **shares, "runs": 1})
    together = wb.design(question, **options)
    assert together.objective <= single.objective * (1 + 1e-9)
    assert together.details["composed"]["delta"] <= float(options["delta"])
    together.save(tmp_path / "runs.json")
    checker = Path(__file__).parents[3] / "tools/check_certificate.py"
    completed = subprocess.run(
        [sys.executable, checker, tmp_path / "runs.json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
