"""Noise on the reals that is clamped into a range: what it costs, what it publishes."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import workbench as wb


def test_what_clamping_leaves_of_real_noise():
    """Against a midpoint sum over answers and noise values."""
    plain = wb.AdditiveRealNoise.of(wb.RealNoise(1), 2, -3, [1, 2, 3, 4, 3, 2, 1], 5)
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
    uneven = wb.AdditiveRealNoise.of(law.question, 2, -1, [1, 2, 2], 5)
    with pytest.raises(wb.InvalidRequest, match="not even"):
        uneven.clamped_loss("squared", weights)


def test_clamped_noise_publishes_what_its_loss_is_of(tmp_path):
    """The design, its file and its draws; the certificate is that of the noise."""
    question = wb.RealNoise(1, clamp="0..2")
    clamped, plain = (wb.design(q, epsilon=1, loss="absolute", steps=4) for q in (question, wb.RealNoise(1)))
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
    with pytest.raises(wb.InvalidRequest, match="clamp must be left out where epsilon"):
        wb.design(question, minimise="epsilon", max_loss=1)
