"""Test integer noise for many runs, and compare its composed guarantee with dp_accounting."""

from __future__ import annotations

import json
import math
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
    return wb.design(wb.IntegerNoise(), epsilon=1, delta="1e-5", runs=2)


def test_the_design_beats_geometric_noise_within_a_proven_budget(design: wb.Design):
    assert design.objective < GEOMETRIC_LOSS
    assert (design.bound, design.gap) == (None, None)
    assert "none: not proven optimal among all designs for 2 runs" in str(design)
    assert design.details["composed"]["delta"] <= 1e-5
    assert (
        bound_composed_delta(design.mechanism, times=2, epsilon=design.request.claim.epsilon)
        <= design.request.claim.delta
    )
    found = wb.compose(design, 2, epsilon=1)
    assert (
        found.delta_low <= found.delta <= design.details["composed"]["delta"]
    )  # it confirms what was proven
    assert wb.compose(design, 2, delta="1e-5").epsilon <= 1
    assert design.certificate is not None
    assert design.certificate.holds()
    claim = design.certificate.composed
    assert claim is not None
    assert (claim.runs, claim.epsilon, claim.delta) == (2, 1, design.request.claim.delta)
    assert (design.status, design.private) == ("found", True)
    assert "for 2 runs together" in str(design)


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
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    law = design.mechanism.law()
    p = {
        k: math.log(mass)
        for k, mass in zip(design.mechanism.outputs.tolist(), law.floats, strict=True)
        if mass > 1e-30
    }
    q = {k - 1: value for k, value in p.items()}
    both = {k: p[k] for k in p if k in q}, {k: q[k] for k in p if k in q}
    composed = pld.from_two_probability_mass_functions(
        *both, pessimistic_estimate=False, value_discretization_interval=1e-4
    ).self_compose(2)
    assert composed.get_delta_for_epsilon(1.0) <= 1e-5


def test_the_command_reports_the_composition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    line = "noise --on integers --sensitivity 1 --loss squared --epsilon 8 --delta 1e-5 --runs 16 --json --save c.json"
    with pytest.raises(SystemExit) as stop:
        main(["design", *line.split()])
    made = json.loads(capsys.readouterr().out)
    assert not stop.value.code
    assert made["objective"] <= 5.31
    assert (made["bound"], made["gap"]) == (None, None)
    assert "No bound is proven over all designs for 16 runs." in " ".join(made["words"])
    assert made["exact"]["composed"]["runs"] == 16
    assert made["exact"]["composed"]["delta"] <= 1e-5
    assert made["beside"]["discrete Gaussian"] == pytest.approx(5.757, abs=2e-3)
    proven = wb.check(Path("c.json"))
    assert (proven.claim.notion.name, proven.composed.runs) == ("pure", 16)
    assert wb.compose(proven, 16, epsilon=8).delta <= made["exact"]["composed"]["delta"]


@pytest.mark.parametrize(
    ("question", "given"),
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
def test_unsupported_requests_for_several_runs_are_errors(question, given):
    with pytest.raises(wb.InvalidRequest, match="runs must be"):
        wb.design(question, **{"epsilon": 2, "delta": "1e-5", "runs": 4} | given)


def test_a_gap_is_refused_and_a_time_limit_ends_the_search():
    with pytest.raises(wb.InvalidRequest, match="gap must be left out"):
        wb.design(wb.IntegerNoise(), epsilon=1, delta="1e-5", runs=4, gap=0.01)
    start = wb.design(
        wb.IntegerNoise(), epsilon=1, delta="1e-5", runs=2, loss="absolute", time_limit="0.001"
    )
    assert "stopped at its time limit" in str(start)
    assert start.details["composed"]["delta"] <= 1e-5
    assert start.objective <= start.family.extra_json(start)["beside"]["geometric"] * (1 + 1e-6)


def test_a_design_within_a_curve_states_the_requested_budget() -> None:
    """The mechanism is certified for a privacy curve of one run.

    The design still states the requested budget: (epsilon, delta) for 16 runs.
    """
    found = wb.design(
        "modulo", n=10, max_shift=1, loss="circular-squared", epsilon=4, delta="1e-5", runs=16
    )
    assert found.claim.notion.name == "curve"
    assert (
        found.request.claim.notion.name,
        found.request.aim.runs,
        found.request.claim.epsilon,
    ) == ("dp", 16, 4)
    assert found.details["composed"]["delta"] <= 1e-5
    assert found.bound is None


@pytest.mark.parametrize(("delta", "least", "most"), [("0.99", 0.0, 0.2), ("1", 0.0, 0.0)])
def test_noise_for_many_runs_at_a_large_delta_has_a_small_loss(
    delta: str, least: float, most: float
) -> None:
    """With δ = 1 the answer itself is private. The search over noise must still end."""
    design = wb.design(
        wb.ModuloNoise(n=5, max_shift=1), epsilon=2, delta=delta, runs=4, certify=False
    )
    assert least <= design.objective <= most


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
    shares = {name: Fraction(options[name]) / runs for name in ("epsilon", "delta")}
    single = wb.design(question, **{**options, **shares, "runs": 1})
    together = wb.design(question, **options)
    assert together.objective <= single.objective * (1 + 1e-9)
    assert together.details["composed"]["delta"] <= float(options["delta"])
    together.save(tmp_path / "runs.json")
    checker = Path(__file__).parents[3] / "tools/check_certificate.py"
    done = subprocess.run(
        [sys.executable, checker, tmp_path / "runs.json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
