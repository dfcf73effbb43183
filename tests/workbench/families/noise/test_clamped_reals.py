"""Test noise on the reals that is clamped to a range: its loss and its samples."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.mechanisms import cut_noise
from workbench.privacy.expected_error import compute_expected_error

# Noise on 7 cells of width 1/2, with an atom at 0, that is not clamped.
UNCLAMPED = wb.AdditiveRealNoise.from_masses(
    wb.RealNoise(1), steps=2, first=-3, weights=[1, 2, 3, 4, 3, 2, 1], atom=5
)
# Weights of four equal parts of the range.
WEIGHTS = [Fraction(1, 10), Fraction(2, 10), Fraction(0), Fraction(7, 10)]


def clamp_noise(low: object, high: object) -> wb.AdditiveRealNoise:
    """Return the noise `UNCLAMPED`, clamped to a range."""
    return replace(UNCLAMPED, question=wb.RealNoise(1, clamp=(low, high)))


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize(("loss", "power"), [("absolute", 1), ("squared", 2)])
def test_clamped_loss_equals_a_sum_over_answers_and_noise(width: int, loss: str, power: int):
    edges, densities = UNCLAMPED.density()
    grid = np.linspace(edges[0], edges[-1], 70_001)
    eta = (grid[1:] + grid[:-1]) / 2
    masses = densities[np.searchsorted(edges, eta) - 1] * np.diff(grid)

    def compute_loss(answer: float) -> float:
        """Compute the expected loss of an answer. The atom at 0 adds no loss."""
        errors = np.clip(answer + eta, 0, width) - answer
        return float((masses * np.abs(errors) ** power).sum())

    mechanism = clamp_noise(0, width)
    losses = [compute_loss(answer) for answer in (np.arange(400) + 0.5) / 400 * width]
    assert float(mechanism.clamped_loss(loss)) == pytest.approx(np.mean(losses), rel=1e-4)
    weighted_mean = np.average(losses, weights=np.repeat([1, 2, 0, 7], 100))
    assert float(mechanism.clamped_loss(loss, WEIGHTS)) == pytest.approx(weighted_mean, rel=1e-4)
    worst = max(compute_loss(answer) for answer in np.linspace(0, width, 801))
    assert float(mechanism.clamped_loss(loss, None)) == pytest.approx(worst, rel=1e-4)


def test_worst_case_loss_is_larger_than_the_mean_loss():
    narrow = clamp_noise(0, "1/8")
    assert narrow.clamped_loss("squared", None) > narrow.clamped_loss("squared")


@pytest.mark.parametrize("weights", [(1,), WEIGHTS, None], ids=["uniform", "parts", "worst"])
@pytest.mark.parametrize("loss", ["absolute", "squared"])
def test_loss_with_rounded_masses_is_a_close_upper_bound(monkeypatch, loss: str, weights: Any):
    """The tail has 30 periods, or its masses are rounded so coarsely that they stop falling."""
    mechanism = wb.design(wb.RealNoise(1, clamp="0..30"), epsilon=1, loss="absolute").mechanism
    exact_loss = mechanism.clamped_loss(loss, weights)
    monkeypatch.setattr(cut_noise, "_MAX_EXACT_BITS", 0)
    assert 0 < mechanism.clamped_loss(loss, weights) - exact_loss < Fraction(1, 2**100)
    monkeypatch.setattr(cut_noise, "_MASS_BITS", 24)
    excess = mechanism.clamped_loss(loss, weights) - exact_loss
    assert 0 < excess < Fraction(1000, 2**24) * 30**2


def test_worst_case_loss_of_a_wide_range_is_that_of_unclamped_noise():
    assert clamp_noise(low=0, high=9).clamped_loss("squared", None) == UNCLAMPED.loss("squared")


def test_clamped_loss_of_asymmetric_noise_raises():
    question = wb.RealNoise(1, clamp=(0, 3))
    asymmetric = wb.AdditiveRealNoise.from_masses(
        question, steps=2, first=-1, weights=[1, 2, 2], atom=5
    )
    with pytest.raises(wb.InvalidRequest, match="not even"):
        asymmetric.clamped_loss("squared", WEIGHTS)


@pytest.fixture(scope="module")
def clamped_design() -> wb.Design:
    """Return a design of noise that is clamped to 0..2."""
    return wb.design(wb.RealNoise(1, clamp="0..2"), epsilon=1, loss="absolute", steps=4)


def test_clamping_reduces_the_loss_of_the_same_noise(clamped_design: wb.Design):
    unclamped = wb.design(wb.RealNoise(1), epsilon=1, loss="absolute", steps=4)
    assert clamped_design.mechanism.cells == unclamped.mechanism.cells
    assert clamped_design.objective < unclamped.objective


def test_clamped_noise_on_the_reals_has_no_lower_bound(clamped_design: wb.Design):
    assert clamped_design.bound is None


def test_a_saved_design_of_clamped_noise_is_loaded_unchanged(clamped_design: wb.Design, tmp_path):
    clamped_design.save(tmp_path / "clamped.json")
    assert wb.load(tmp_path / "clamped.json") == clamped_design.mechanism


def test_samples_of_clamped_noise_have_its_loss(clamped_design: wb.Design):
    answers = np.linspace(0, 2, 20_001)
    published = clamped_design.mechanism.publish(answers, insecure_seed=1)
    assert published.min() == 0
    assert published.max() == 2
    mean_error = np.abs(published - answers).mean()
    assert mean_error == pytest.approx(clamped_design.objective, abs=0.03)


def test_budget_of_clamped_noise_cannot_be_minimised():
    with pytest.raises(wb.InvalidRequest, match="clamp must be left out if epsilon"):
        wb.design(wb.RealNoise(1, clamp="0..2"), minimise="epsilon", max_loss=1)


@pytest.mark.parametrize("prior", ["1,3", "worst"])
@pytest.mark.parametrize("loss", ["absolute", "squared"])
def test_clamping_the_staircase_changes_its_loss_and_not_its_law(prior: str, loss: str):
    question = wb.RealNoise(3, clamp="-1..2")
    design = wb.design(question, loss=loss, prior=prior, epsilon=1)
    unclamped = wb.design(wb.RealNoise(3), loss=loss, epsilon=1)
    assert design.mechanism.cells == unclamped.mechanism.cells
    weights = None if prior == "worst" else (1, 3)
    assert design.objective == pytest.approx(
        float(design.mechanism.clamped_loss(loss, weights)), rel=1e-12
    )
    assert design.objective < unclamped.objective


@pytest.mark.parametrize(
    ("prior", "note"), [("1,3", "each of 2 equal parts"), ("worst", "for the worst answer")]
)
@pytest.mark.parametrize("loss", ["absolute", "squared"])
def test_prior_gives_weights_of_parts_of_the_range(prior: str, note: str, loss: str):
    """`recommend` returns a row with the same loss, and a command with the prior."""
    question = wb.RealNoise(3, clamp="-1..2")
    design = wb.design(question, loss=loss, prior=prior, epsilon=1, delta="0.01")
    assert note in design.words[-1]
    query = {"range": "-1..2", "loss": loss, "prior": prior, "epsilon": "1", "delta": "0.01"}
    (row,) = wb.recommend(**query, only="real noise, clamped", time_limit=300)
    assert design.objective == row["objective"]
    assert f"--prior {prior}" in row["command"]


@pytest.mark.parametrize("prior", ["1,3", "worst"])
@pytest.mark.parametrize("loss", ["absolute", "squared"])
def test_clamping_at_delta_changes_the_loss_and_not_the_law(prior: str, loss: str):
    question = wb.RealNoise(3, clamp="-1..2")
    design = wb.design(question, loss=loss, prior=prior, epsilon=1, delta="0.01")
    unclamped = wb.design(wb.RealNoise(3), loss=loss, epsilon=1, delta="0.01")
    assert design.mechanism.cells == unclamped.mechanism.cells
    assert design.objective < unclamped.objective


@pytest.mark.parametrize("loss", ["absolute", "squared"])
def test_the_expected_error_of_clamped_noise_is_its_clamped_loss(loss: str):
    question = wb.RealNoise(3, clamp="-1..2")
    mechanism = wb.design(question, loss=loss, epsilon=1, delta="0.01").mechanism
    unclamped = wb.design(wb.RealNoise(3), loss=loss, epsilon=1, delta="0.01").mechanism
    error = compute_expected_error(mechanism, loss)
    uniform_prior = (1,)  # The weight of the whole range, as one part.
    assert error.mean_error == mechanism.clamped_loss(loss, uniform_prior)
    assert error.worst_error == mechanism.clamped_loss(loss, None)
    assert error.mean_error < unclamped.loss(loss)


def test_stopped_search_reports_the_loss_of_clamped_noise(monkeypatch):
    """The search designs noise that is not clamped. The reported loss is the one after clamping."""
    question = wb.RealNoise(3, clamp="-1..2")
    clamped = wb.design(question, loss="absolute", epsilon=1, delta="0.01")
    unclamped = wb.design(wb.RealNoise(3), loss="absolute", epsilon=1, delta="0.01")
    best_so_far = replace(unclamped, details={**unclamped.details, "stopped": True})

    def stop_search(*_: object, **__: object) -> None:
        """End like a search for unclamped noise that reaches its time limit."""
        raise wb.NotProven("The search stopped.", design=best_so_far)

    monkeypatch.setattr("workbench.families.noise.problem.NoiseSession.design", stop_search)
    with pytest.raises(
        wb.NotProven, match=f"Clamped, its expected loss is {clamped.objective:.9g}"
    ) as error:
        wb.design(question, loss="absolute", epsilon=1, delta="0.01")
    assert (error.value.incumbent, error.value.bound) == (clamped.objective, None)
    assert error.value.design.mechanism.question.clamp == clamped.mechanism.question.clamp
    assert "the best found before it is clamped" in error.value.design.words[-1]


def test_prior_without_clamp_raises():
    with pytest.raises(
        wb.InvalidRequest, match="prior must be left out for noise that is not clamped"
    ):
        wb.design(wb.RealNoise(1), prior="worst", epsilon=1)
    with pytest.raises(
        wb.InvalidRequest, match=r"left out for noise that is not clamped\. Got 2 weights"
    ):
        wb.design(wb.RealNoise(1), prior="1,3", epsilon=1)
    with pytest.raises(wb.InvalidRequest, match=r"prior must be weights >= 0, not all 0\. Got 0"):
        wb.design(wb.RealNoise(1, clamp=(0, 4)), prior="0,0", epsilon=1)


def test_frontier_of_clamped_noise_equals_its_designs():
    question, query = wb.RealNoise(5, clamp="0..5"), {"loss": "absolute", "delta": "0.01"}
    rows = wb.frontier(question, epsilon="0.5,1", baselines=False, **query)
    designs = [wb.design(question, epsilon=epsilon, **query) for epsilon in ("0.5", "1")]
    assert [row["objective"] for row in rows] == [design.objective for design in designs]
    assert all(row["certified"] and row["bound"] is None for row in rows)
