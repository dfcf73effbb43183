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


def assert_composed(design: wb.Design, runs: int, epsilon: str, delta: str) -> None:
    """Assert that the composition is within the budget, and that reports and certificate state it."""
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
    assert_composed(modulo_design, runs=16, epsilon="4", delta="1e-5")
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
    found = wb.design(COUNT, epsilon=2, delta="1e-2", runs=4)
    assert_composed(found, runs=4, epsilon="2", delta="1e-2")
    split = wb.design(COUNT, epsilon=Fraction(1, 2), delta=Fraction(1, 400))
    assert found.objective < split.objective


def test_labels_are_no_worse_than_the_split_budget():
    """The composition is over the requested neighbours, consecutive labels, and not over all pairs."""
    labels = wb.Labels.uniform(0, 2)
    lp = {"method": "lp", "notion": "dp", "neighbours": "consecutive"}
    found = wb.design(labels, epsilon=2, delta="1e-2", runs=4, **lp)
    assert found.certificate is not None
    assert bound_composed_delta(
        found.certificate.mechanism, times=4, epsilon=Fraction(2)
    ) <= Fraction(1, 100)
    assert found.details["composed"]["delta"] <= 1e-2
    assert found.certificate.composed.runs == 4
    assert (found.status, found.private) == ("found", True)
    assert "for 4 runs together" in str(found)
    assert found.to_dict()["exact"]["composed"]["runs"] == 4
    split = wb.design(labels, epsilon=Fraction(1, 2), delta=Fraction(1, 400), **lp)
    assert found.bound is None
    assert found.objective <= split.objective
    for unsupported in ({"method": "bins"}, {"notion": "metric"}, {"notion": "zcdp", "rho": 1}):
        with pytest.raises(wb.InvalidRequest, match="must be"):
            wb.design(labels, runs=4, **{"epsilon": 1, **lp, **unsupported})


@pytest.mark.parametrize("question", [MODULO_QUESTION, COUNT])
def test_without_delta_the_split_is_optimal(question):
    found = wb.design(question, epsilon=2, notion="dp", runs=4)
    once = wb.design(question, epsilon=Fraction(1, 2), notion="dp")
    assert found.objective == once.objective
    assert found.bound == once.bound
    assert found.details["composed"]["delta"] == 0


@pytest.mark.parametrize(
    "given", [{"notion": "pdp"}, {"notion": "pure", "delta": 0}, {"epsilon": {1: 1}}]
)
def test_unsupported_requests_for_runs_are_errors(given):
    options = {"epsilon": 2, "delta": "1e-3", "notion": "dp", "runs": 4}
    with pytest.raises(wb.InvalidRequest, match="runs must be"):
        wb.design(MODULO_QUESTION, **options | given)
    with pytest.raises(wb.InvalidRequest, match="runs must be"):
        wb.design(MODULO_QUESTION, notion="zcdp", rho=1, runs=4)
    for runs in (0, 1025, 10**9):
        with pytest.raises(wb.InvalidRequest, match="runs must be an integer in 1"):
            wb.design(COUNT, epsilon=1, runs=runs)


def test_json_of_the_command_states_runs_and_composition(capsys: pytest.CaptureFixture[str]):
    question = "channel --answers 0..2 --max-shift 1 --loss error-rate"
    budget = "--epsilon 2 --delta 1e-3 --runs 4"
    with pytest.raises(SystemExit) as stop:
        main(["design", *question.split(), *budget.split(), "--json"])
    entries = json.loads(capsys.readouterr().out)
    assert not stop.value.code
    assert entries["runs"] == 4
    assert entries["epsilon"] == 2
    assert entries["exact"]["composed"]["delta"] <= 1e-3
    assert entries["bound"] is None
