"""Noise modulo a group and channels for many runs: no worse than a split budget, composed by proof."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import pytest

import workbench as wb
from workbench.cli import main
from workbench.privacy import certificate_file
from workbench.privacy.composition import bound_composed_delta

DIALS = wb.ModuloNoise(n=8, max_shift=1)
ANSWERS = wb.FiniteQuery("0..3", max_shift=1)


def checked(design: wb.Design, runs: int, epsilon: str, delta: str) -> None:
    """The composition is within the budget, proven anew; the certificate holds."""
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
    assert (
        certificate_file.certificate_from_dict(design.certificate.to_dict()).composed == claim
    )  # by both checkers
    assert (
        wb.compose(design, runs, epsilon=epsilon, interval=1e-3).delta
        <= design.details["composed"]["delta"]
    )
    assert (design.status, design.private) == ("found", True)
    assert f"for {runs} runs together" in str(design)
    assert design.bound is None
    assert f"none: not proven optimal among all designs for {runs} runs" in str(design)
    assert f"No bound is proven over all designs for {runs} runs." in " ".join(design.words)


@pytest.fixture(scope="module")
def dial() -> wb.Design:
    return wb.design(DIALS, epsilon=4, delta="1e-5", notion="dp", loss="circular-squared", runs=16)


def test_noise_modulo_a_group_beats_the_split_budget(dial: wb.Design):
    checked(dial, 16, "4", "1e-5")
    split = wb.design(
        DIALS,
        epsilon=Fraction(1, 4),
        delta=Fraction(1, 1600000),
        notion="dp",
        loss="circular-squared",
    )
    assert dial.objective < 0.97 * split.objective


def test_another_library_agrees(dial: wb.Design):
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    pmf = dial.mechanism.pmf.tolist()
    p, q = ({k: math.log(pmf[(k + shift) % 9]) for k in range(9)} for shift in (0, 1))
    composed = pld.from_two_probability_mass_functions(
        p, q, pessimistic_estimate=False, value_discretization_interval=1e-4
    ).self_compose(16)
    assert composed.get_delta_for_epsilon(4.0) <= 1e-5


def test_channels_beat_the_split_budget():
    found = wb.design(ANSWERS, epsilon=2, delta="1e-2", runs=4)
    checked(found, 4, "2", "1e-2")
    split = wb.design(ANSWERS, epsilon=Fraction(1, 2), delta=Fraction(1, 400))
    assert found.objective < split.objective


def test_labels_are_no_worse_than_the_split_budget():
    """Consecutive labels: composed over the neighbours that are asked for, not over all pairs."""
    labels = wb.Labels.uniform(0, 2)
    lp = {"method": "lp", "notion": "dp", "neighbours": "consecutive"}
    found = wb.design(labels, epsilon=2, delta="1e-2", runs=4, **lp)
    assert found.certificate is not None
    assert bound_composed_delta(found.certificate.mechanism, 4, Fraction(2)) <= Fraction(1, 100)
    assert found.details["composed"]["delta"] <= 1e-2
    assert found.certificate.composed.runs == 4
    assert (found.status, found.private) == ("found", True)
    assert "for 4 runs together" in str(found)
    assert found.to_dict()["exact"]["composed"]["runs"] == 4
    split = wb.design(labels, epsilon=Fraction(1, 2), delta=Fraction(1, 400), **lp)
    assert found.bound is None
    assert found.objective <= split.objective
    for given in ({"method": "bins"}, {"notion": "metric"}, {"notion": "zcdp", "rho": 1}):
        with pytest.raises(wb.InvalidRequest, match="must be"):
            wb.design(labels, runs=4, **{"epsilon": 1, **lp, **given})


@pytest.mark.parametrize("question", [DIALS, ANSWERS])
def test_without_delta_the_split_is_optimal(question):
    found = wb.design(question, epsilon=2, notion="dp", runs=4)
    once = wb.design(question, epsilon=Fraction(1, 2), notion="dp")
    assert found.objective == once.objective
    assert found.bound == once.bound
    assert found.details["composed"]["delta"] == 0


@pytest.mark.parametrize(
    "given", [{"notion": "pdp"}, {"notion": "pure", "delta": 0}, {"epsilon": {1: 1}}]
)
def test_what_runs_cannot_be_is_one_sentence(given):
    with pytest.raises(wb.InvalidRequest, match="runs must be"):
        wb.design(DIALS, **{"epsilon": 2, "delta": "1e-3", "notion": "dp", "runs": 4} | given)
    with pytest.raises(wb.InvalidRequest, match="runs must be"):
        wb.design(DIALS, notion="zcdp", rho=1, runs=4)
    for runs in (0, 1025, 10**9):
        with pytest.raises(wb.InvalidRequest, match="runs must be an integer in 1"):
            wb.design(ANSWERS, epsilon=1, runs=runs)


def test_the_command(capsys: pytest.CaptureFixture[str]):
    line = "channel --answers 0..2 --max-shift 1 --loss error-rate --epsilon 2 --delta 1e-3 --runs 4 --json"
    with pytest.raises(SystemExit) as stop:
        main(["design", *line.split()])
    made = json.loads(capsys.readouterr().out)
    assert not stop.value.code
    assert made["runs"] == 4
    assert made["epsilon"] == 2
    assert made["exact"]["composed"]["delta"] <= 1e-3
    assert made["bound"] is None
