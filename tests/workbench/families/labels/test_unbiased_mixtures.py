"""Labels of hardly any prior take mixtures of their neighbours' rows: private, unbiased, and hardly dearer."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import workbench as wb
from models.unbiased_levels import InteriorSearch, optimum
from workbench.families.labels.unbiased_channel import Kept, exact_channel
from workbench.mechanisms.label_randomizers.randomized_response import odds_below
from workbench.privacy.audit import audit_extremes

UNIFORM = np.full(5, 0.2)
SPARSE = np.array([0.0, 0.3, 0.0, 0.0, 0.4, 1e-12, 0.3 - 2e-12, 1e-12])


def geometric_clusters(k, apart):
    """Two clusters, with priors that fall to 1e-20: multipliers of the last labels are below the others' rounding."""
    rng = np.random.default_rng(7)
    y = np.concatenate([np.sort(rng.random(k // 2)), apart + np.sort(rng.random(k - k // 2))])
    return y, 0.8 ** np.linspace(0, 200, k)


def test_the_least_labels_inside_are_left_out_and_never_an_end():
    y = np.arange(8.0)
    assert Kept.beside(y, SPARSE, 0.0).positions.tolist() == [0, 1, 4, 5, 6, 7]
    kept = Kept.beside(y, SPARSE, 1e-11)
    assert kept.positions.tolist() == [0, 1, 4, 6, 7]
    assert kept.shares.sum() == pytest.approx(1, rel=1e-15)
    assert kept.bound(2.0) <= 2.0 * (1 - 1e-12) < kept.bound(2.0) * (1 + 1e-14)
    none = Kept.beside(np.arange(5.0), UNIFORM, 0.1)
    assert none.whole
    assert none.bound(2.0) == 2.0
    assert none.shares is UNIFORM


@pytest.mark.parametrize("epsilon", ["0.01", "4"])
def test_mixtures_are_private_and_unbiased_exactly(epsilon):
    y, odds = np.array([-1.0, 0.1, 0.25, 1 / 3, 2, 2.5, 7, 8]), odds_below(epsilon)[0]
    kept = Kept.beside(y, SPARSE, 1e-11)
    point = optimum(InteriorSearch(float(odds) - 1), kept.values, kept.shares)
    outputs, channel = exact_channel(kept.values, odds, point)
    complete, values = kept.completed(channel), [Fraction(o) for o in outputs.tolist()]
    assert [row.mean(values) for row in complete.rows] == [Fraction(v) for v in y.tolist()]
    assert audit_extremes(complete, epsilon).meets("pure", Fraction(epsilon), 0)
    assert [complete.rows[at] for at in kept.positions.tolist()] == list(channel.rows)
    everywhere = optimum(InteriorSearch(float(odds) - 1), y, SPARSE)
    loss = float((SPARSE[:, None] * complete.matrix * (outputs - y[:, None]) ** 2).sum())
    assert kept.bound(point.bound) <= everywhere.objective * (1 + 1e-9)
    assert everywhere.bound <= loss * (1 + 1e-12) <= everywhere.objective * (1 + 1e-8)


def test_far_clusters_with_a_vanishing_prior_are_proven():
    y, p = geometric_clusters(80, 1e6)
    design = wb.design(wb.Labels(y, p), method="unbiased", epsilon=12)
    assert design.bound <= design.objective <= design.bound * (1 + 1e-7)
    assert design.certificate.bias.worst == 0
    assert len(design.mechanism.rows) == 80
