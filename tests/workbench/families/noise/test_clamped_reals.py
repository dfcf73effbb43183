"""Test noise on the reals that is clamped to a range: its loss and its samples."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import workbench as wb
from workbench.privacy.expected_error import compute_expected_error


def test_clamped_loss_equals_midpoint_sum():
    """The loss equals a midpoint sum over answers and noise values."""
    plain = wb.AdditiveRealNoise.from_masses(wb.RealNoise(1), 2, -3, [1, 2, 3, 4, 3, 2, 1], 5)
    edges, values = plain.density()
    eta = np.linspace(edges[0], edges[-1], 70_001)
    eta = (eta[1:] + eta[:-1]) / 2
    mass = values[np.searchsorted(edges, eta) - 1] * (edges[-1] - edges[0]) / eta.size
    for width in (1, 3):
        x = (np.arange(400) + 0.5) / 400 * width
        law = replace(plain, question=wb.RealNoise(1, clamp=(0, width)))
        for name, power in (("absolute", 1), ("squared", 2)):
            each = [(mass * np.abs(np.clip(one + eta, 0, width) - one) ** power).sum() for one in x]
            assert float(law.clamped_loss(name)) == pytest.approx(np.mean(each), rel=1e-4)
            weights = [Fraction(1, 10), Fraction(2, 10), Fraction(0), Fraction(7, 10)]
            own = np.average(each, weights=np.repeat([1, 2, 0, 7], 100))
            assert float(law.clamped_loss(name, weights)) == pytest.approx(own, rel=1e-4)
            finest = [
                (mass * np.abs(np.clip(u + eta, 0, width) - u) ** power).sum()
                for u in np.linspace(0, width, 801)
            ]
            assert float(law.clamped_loss(name, None)) == pytest.approx(max(finest), rel=1e-4)
    narrow, wide = (
        replace(plain, question=wb.RealNoise(1, clamp=ends)) for ends in ((0, "1/8"), (0, 9))
    )
    assert narrow.clamped_loss("squared", None) > narrow.clamped_loss("squared")
    assert wide.clamped_loss("squared", None) == plain.loss("squared")
    uneven = wb.AdditiveRealNoise.from_masses(law.question, 2, -1, [1, 2, 2], 5)
    with pytest.raises(wb.InvalidRequest, match="not even"):
        uneven.clamped_loss("squared", weights)


def test_samples_of_clamped_noise_have_its_loss(tmp_path):
    """The design, its file and its samples agree; the certificate is that of the noise."""
    question = wb.RealNoise(1, clamp="0..2")
    clamped, plain = (
        wb.design(q, epsilon=1, loss="absolute", steps=4) for q in (question, wb.RealNoise(1))
    )
    assert clamped.mechanism.cells == plain.mechanism.cells
    assert clamped.bound is None
    assert clamped.objective < plain.objective
    clamped.save(tmp_path / "clamped.json")
    held = wb.load(tmp_path / "clamped.json")
    assert held == clamped.mechanism
    x = np.linspace(0, 2, 20_001)
    drawn = held.publish(x, insecure_seed=1)
    assert drawn.min() == 0
    assert drawn.max() == 2
    assert np.abs(drawn - x).mean() == pytest.approx(clamped.objective, abs=0.03)
    with pytest.raises(wb.InvalidRequest, match="clamp must be left out if epsilon"):
        wb.design(question, minimise="epsilon", max_loss=1)


@pytest.mark.parametrize(
    ("prior", "words"), [("1,3", "each of 2 equal parts"), ("worst", "for the worst answer")]
)
@pytest.mark.parametrize("loss", ["absolute", "squared"])
def test_prior_gives_weights_of_parts_of_the_range(prior: str, words: str, loss: str):
    """`recommend` returns the same, and its command computes the same row."""
    query = {"range": "-1..2", "loss": loss, "prior": prior, "epsilon": "1", "delta": "0.01"}
    (row,) = wb.recommend(**query, only="real noise, clamped", time_limit=300)
    made = wb.design(
        wb.RealNoise(3, clamp="-1..2"), loss=loss, prior=prior, epsilon=1, delta="0.01"
    )
    assert made.objective == row["objective"]
    assert words in made.words[-1]
    assert f"--prior {prior}" in row["command"]
    plain = wb.design(wb.RealNoise(3), loss=loss, epsilon=1, delta="0.01")
    assert made.mechanism.cells == plain.mechanism.cells
    assert made.objective < plain.objective
    error = compute_expected_error(made.mechanism, loss)
    assert (error.mean_error, error.worst_error) == tuple(
        made.mechanism.clamped_loss(loss, each) for each in ((1,), None)
    )
    assert error.mean_error < plain.mechanism.loss(loss)


def test_stopped_search_reports_the_loss_of_clamped_noise(monkeypatch):
    """The reported loss is not that of the noise before it is clamped."""
    plain = wb.design(wb.RealNoise(3), loss="absolute", epsilon=1, delta="0.01")
    known = wb.design(wb.RealNoise(3, clamp="-1..2"), loss="absolute", epsilon=1, delta="0.01")
    late = wb.NotProven(
        "The search stopped.", design=replace(plain, details={**plain.details, "stopped": True})
    )

    def stopped(*_: object, **__: object) -> None:
        raise late

    monkeypatch.setattr("workbench.families.noise.problem.NoiseSession.design", stopped)
    with pytest.raises(
        wb.NotProven, match=f"Clamped, its expected loss is {known.objective:.9g}"
    ) as error:
        wb.design(wb.RealNoise(3, clamp="-1..2"), loss="absolute", epsilon=1, delta="0.01")
    assert (error.value.incumbent, error.value.bound) == (known.objective, None)
    assert error.value.design.mechanism.question.clamp == known.mechanism.question.clamp
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
