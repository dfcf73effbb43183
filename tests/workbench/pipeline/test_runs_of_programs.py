"""Test designs for many runs of the families with programs: modulo, channel and labels.

A design must not be worse than the design of one run with an equal split of the budget, and the
composition of its runs must be proven.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction

import pytest

import workbench as wb
from workbench.cli import main
from workbench.privacy import certificate_file
from workbench.privacy.composition import bound_composed_delta

MODULO_QUESTION = wb.ModuloNoise(n=8, max_shift=1)
COUNT = wb.FiniteQuery("0..3", max_shift=1)


def assert_composition_is_proven(design: wb.Design, runs: int, epsilon: str, delta: str) -> None:
    """Assert that the runs are within the budget, and that reports and certificate state it."""
    assert bound_composed_delta(design.mechanism, runs, Fraction(epsilon)) <= Fraction(delta)
    assert design.details["composed"] == {
        **design.details["composed"],
        "runs": runs,
        "epsilon": float(epsilon),
    }
    assert design.details["composed"]["delta"] <= float(delta)
    assert design.certificate is not None
    assert design.certificate.holds()
    claim = design.certificate.composed
    assert claim is not None
    assert (claim.runs, claim.epsilon, claim.delta) == (runs, Fraction(epsilon), Fraction(delta))
    read_certificate = certificate_file.certificate_from_dict(design.certificate.to_dict())
    assert read_certificate.composed == claim
    composition = wb.compose(design, runs, epsilon=epsilon, interval=1e-3)
    assert composition.delta <= design.details["composed"]["delta"]
    assert (design.status, design.private) == ("found", True)
    assert f"for {runs} runs together" in str(design)
    assert design.bound is None
    assert f"none: not proven optimal among all designs for {runs} runs" in str(design)
    assert f"No bound is proven over all designs for {runs} runs." in " ".join(design.words)


@pytest.fixture(scope="module")
def modulo_design() -> wb.Design:
    """Return noise modulo 9 for 16 runs at (4, 1e-5)."""
    return wb.design(
        MODULO_QUESTION, epsilon=4, delta="1e-5", notion="dp", loss="circular-squared", runs=16
    )


def test_noise_modulo_a_group_beats_the_split_budget(modulo_design: wb.Design):
    assert_composition_is_proven(modulo_design, runs=16, epsilon="4", delta="1e-5")
    split = wb.design(
        MODULO_QUESTION,
        epsilon=Fraction(1, 4),
        delta=Fraction(1, 1600000),
        notion="dp",
        loss="circular-squared",
    )
    assert modulo_design.objective < 0.97 * split.objective


def test_dp_accounting_confirms_the_composed_delta(modulo_design: wb.Design):
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    pmf = modulo_design.mechanism.pmf.tolist()
    p = {k: math.log(pmf[k]) for k in range(9)}
    q = {k: math.log(pmf[(k + 1) % 9]) for k in range(9)}
    composed = pld.from_two_probability_mass_functions(
        p, q, pessimistic_estimate=False, value_discretization_interval=1e-4
    ).self_compose(16)
    assert composed.get_delta_for_epsilon(4.0) <= 1e-5


def test_channels_beat_the_split_budget():
    design = wb.design(COUNT, epsilon=2, delta="1e-2", runs=4)
    assert_composition_is_proven(design, runs=4, epsilon="2", delta="1e-2")
    split = wb.design(COUNT, epsilon=Fraction(1, 2), delta=Fraction(1, 400))
    assert design.objective < split.objective


LABELS = wb.Labels.uniform(0, 2)
LABEL_OPTIONS = {"method": "lp", "notion": "dp", "neighbours": "consecutive"}


@pytest.fixture(scope="module")
def labels_design() -> wb.Design:
    """Return a randomizer of three labels for 4 runs at (2, 0.01)."""
    return wb.design(LABELS, epsilon=2, delta="1e-2", runs=4, **LABEL_OPTIONS)


def test_labels_are_no_worse_than_the_split_budget(labels_design: wb.Design):
    assert labels_design.bound is None
    split = wb.design(LABELS, epsilon=Fraction(1, 2), delta=Fraction(1, 400), **LABEL_OPTIONS)
    assert labels_design.objective <= split.objective


def test_the_composition_of_labels_is_over_the_requested_neighbours(labels_design: wb.Design):
    """The neighbours are consecutive labels, and not all pairs."""
    assert labels_design.certificate is not None
    mechanism = labels_design.certificate.mechanism
    assert bound_composed_delta(mechanism, times=4, epsilon=Fraction(2)) <= Fraction(1, 100)
    assert labels_design.details["composed"]["delta"] <= 1e-2


def test_the_reports_of_labels_state_the_runs(labels_design: wb.Design):
    assert labels_design.certificate.composed.runs == 4
    assert (labels_design.status, labels_design.private) == ("found", True)
    assert "for 4 runs together" in str(labels_design)
    assert labels_design.to_dict()["exact"]["composed"]["runs"] == 4


@pytest.mark.parametrize(
    "options", [{"method": "bins"}, {"notion": "metric"}, {"notion": "zcdp", "rho": 1}]
)
def test_unsupported_requests_of_labels_for_runs_are_errors(options):
    with pytest.raises(wb.InvalidRequest, match="must be"):
        wb.design(LABELS, runs=4, **{"epsilon": 1, **LABEL_OPTIONS, **options})


@pytest.mark.parametrize("question", [MODULO_QUESTION, COUNT])
def test_without_delta_the_split_is_optimal(question):
    design = wb.design(question, epsilon=2, notion="dp", runs=4)
    split = wb.design(question, epsilon=Fraction(1, 2), notion="dp")
    assert design.objective == split.objective
    assert design.bound == split.bound
    assert design.details["composed"]["delta"] == 0


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 2, "delta": "1e-3", "notion": "pdp"},
        {"epsilon": 2, "delta": 0, "notion": "pure"},
        {"epsilon": {1: 1}, "delta": "1e-3", "notion": "dp"},
        {"notion": "zcdp", "rho": 1},
    ],
)
def test_unsupported_requests_for_runs_are_errors(options):
    with pytest.raises(wb.InvalidRequest, match="runs must be"):
        wb.design(MODULO_QUESTION, runs=4, **options)


@pytest.mark.parametrize("runs", [0, 1025, 10**9])
def test_a_number_of_runs_outside_1_to_1024_is_refused(runs: int):
    with pytest.raises(wb.InvalidRequest, match="runs must be an integer in 1"):
        wb.design(COUNT, epsilon=1, runs=runs)


def test_json_of_the_command_states_runs_and_composition(capsys: pytest.CaptureFixture[str]):
    question = "channel --answers 0..2 --max-shift 1 --loss error-rate"
    budget = "--epsilon 2 --delta 1e-3 --runs 4"
    with pytest.raises(SystemExit) as stop:
        main(["design", *question.split(), *budget.split(), "--json"])
    design = json.loads(capsys.readouterr().out)
    assert not stop.value.code
    assert design["runs"] == 4
    assert design["epsilon"] == 2
    assert design["exact"]["composed"]["delta"] <= 1e-3
    assert design["bound"] is None
