"""Interior points of our own: labels whose gaps span more digits than a solver's tolerances, exact channels of them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import workbench as wb
from models.unbiased import Intervals
from models.unbiased_bound import Quadratics
from models.unbiased_interior import interior_point
from models.unbiased_levels import InteriorSearch, NoPoint, SolverSearch, optimum
from solvers.backend import Options
from solvers.search import Deadline
from workbench.families.labels.unbiased_channel import exact_channel
from workbench.mechanisms.label_randomizers.randomized_response import odds_below
from workbench.privacy.audit import audit_extremes

EPSILON = {"small": "0.01", "one": "1", "large": "12"}


def uniform(k):
    return np.arange(float(k)), np.full(k, 1 / k)


def clusters(k, count, apart, *, some=False):
    rng = np.random.default_rng(k)
    sizes = [k // count + (i < k % count) for i in range(count)]
    y = np.concatenate([i * apart + np.sort(rng.random(size)) for i, size in enumerate(sizes)])
    p = np.where(rng.random(k) < 0.5, 0.0, rng.random(k)) if some else np.ones(k)
    return y, p / p.sum()


def growing(k, ratio):
    return ratio ** np.arange(k), np.full(k, 1 / k)


def offset(k):
    return 1e6 + np.arange(float(k)), np.random.default_rng(k + 1).dirichlet(np.full(k, 0.1))


def expected_loss(y, p, outputs, channel):
    """In rationals, from the channel's own masses."""
    total = Fraction(0)
    for label, weight, row in zip(y.tolist(), p.tolist(), channel.rows, strict=True):
        total += Fraction(weight) * row.mean([(Fraction(o) - Fraction(label)) ** 2 for o in outputs.tolist()])
    return total


HARD = [
    (clusters(120, 2, 1e6), "small"), (clusters(120, 2, 1e6), "large"), (clusters(40, 2, 1e9), "one"),
    (clusters(60, 3, 1e9, some=True), "large"), (growing(120, 1.3), "small"), (growing(120, 1.3), "one"),
    (growing(60, 2.0), "large"), (offset(40), "large"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("question", "max_loss"), HARD, ids=[f"{i}-{max_loss}" for i, (_, max_loss) in enumerate(HARD)]
)
def test_labels_whose_gaps_span_many_digits_are_closed_exactly(question, max_loss):
    (y, p), epsilon = question, Fraction(EPSILON[max_loss])
    odds, _ = odds_below(epsilon)
    best = optimum(InteriorSearch(float(odds) - 1), y, p)
    assert best is not None
    outputs, channel = exact_channel(y, odds, best)
    values = [Fraction(o) for o in outputs.tolist()]
    assert [row.mean(values) for row in channel.rows] == [Fraction(v) for v in y.tolist()]
    assert audit_extremes(channel, epsilon).meets("pure", epsilon, 0)
    loss = expected_loss(y, p, outputs, channel)
    assert Fraction(best.bound) * (1 - Fraction(1, 10**12)) <= loss <= Fraction(best.bound) * (1 + Fraction(1, 10**7))
    assert outputs.size < 20 * y.size


def test_a_design_falls_back_on_them_and_says_so():
    y, p = clusters(40, 2, 1e9)
    design = wb.design(wb.Labels(y, p), method="unbiased", epsilon="0.01")
    assert design.bound <= design.objective <= design.bound * (1 + 1e-7)
    assert any("interior-point method" in sentence for sentence in design.words)
    assert design.solution is None
    assert design.certificate is not None
    assert design.certificate.bias.worst == 0
    plain = wb.design(wb.Labels(*uniform(11)), method="unbiased", epsilon=1)
    assert plain.solution is not None
    assert len(plain.words) == 1


def test_a_time_limit_counts_for_all_programs_together():
    y, p = clusters(120, 2, 1e6)
    with pytest.raises(wb.NotProven, match=r"time limit|ended with the optimum between"):
        wb.design(wb.Labels(y, p), method="unbiased", epsilon=1, time_limit=0.01)
    with pytest.raises(NoPoint):
        optimum(InteriorSearch(1.0, Deadline(0.0)), y, p)


@pytest.mark.parametrize("epsilon", EPSILON.values())
def test_they_agree_with_the_solver(epsilon):
    y, p = uniform(30)
    odds, _ = odds_below(epsilon)
    q = float(odds) - 1
    ours, theirs = optimum(InteriorSearch(q), y, p), optimum(SolverSearch(q, "cvxpy:clarabel", Options()), y, p)
    assert ours is not None
    assert ours.objective == pytest.approx(theirs.objective, rel=1e-7)
    assert ours.bound <= theirs.objective * (1 + 1e-9)


def test_more_labels_than_all_intervals_are_used_for():
    """Two levels, the second over a band; the same labels closer together are the same question."""
    y, p = growing(210, 1.3)
    best = optimum(InteriorSearch(1.0), y, p)
    again = optimum(InteriorSearch(1.0), y * 2.0**-20, p)
    assert best.objective - best.bound <= 1e-7 * best.objective
    assert again.objective == pytest.approx(best.objective * 2.0**-40, rel=1e-8)


def test_sets_with_gaps_bind_the_multipliers_alone():
    """All sets of five labels beside all intervals: the same point, and multipliers that no set prices below zero."""
    rng = np.random.default_rng(3)
    y, p = np.sort(rng.random(5)), rng.dirichlet(np.ones(5))
    q, sets = 2.0, Intervals.every(5)
    chosen = ((np.arange(32)[:, None] >> np.arange(5)) & 1).astype(bool)
    with_gaps = chosen[(np.diff(chosen.astype(int), axis=1, prepend=0) == 1).sum(axis=1) > 1]
    alone, bound = (interior_point(y, p, q, sets, 1.0, others) for others in (None, with_gaps))
    assert bound.t.shape == alone.t.shape == (15,)
    assert bound.objective == pytest.approx(alone.objective, rel=1e-8)
    depths = Quadratics.of(y, p, bound.v, bound.u).prices(Fraction(q)).depths
    assert (depths >= -1e-13).all()
    assert bound.v.sum() == pytest.approx(bound.bound, rel=1e-12)


def test_a_channel_about_an_origin_is_that_about_zero():
    y, p = uniform(12)
    best = optimum(InteriorSearch(1.0), y + 0.5, p)
    assert best.origin == 6.0
    outputs, channel = exact_channel(y + 0.5, Fraction(2), best)
    values = [Fraction(o) for o in outputs.tolist()]
    assert [row.mean(values) for row in channel.rows] == [Fraction(v + 0.5) for v in y.tolist()]
