"""Tests of the unbiased randomizer: the cone program, its bound over all sets, exact channels."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import workbench as wb
from workbench.families.labels.unbiased_channel import build_exact_channel
from workbench.mechanisms.label_randomizers.randomized_response import round_odds_down
from workbench.models.labels import unbiased
from workbench.models.labels.unbiased import Intervals, Proof
from workbench.models.labels.unbiased_bound import Quadratics, lower_until_feasible, round_odds_up
from workbench.models.labels.unbiased_levels import (
    UnbiasedOptimum,
    UnbiasedSearch,
    find_unbiased_optimum,
)
from workbench.privacy.audit import audit_extremes
from workbench.solvers.backend import Options, solve
from workbench.solvers.exact.polynomials import to_fraction


def uniform(k):
    return np.arange(float(k)), np.full(k, 1 / k)


def lognormal(k):
    return np.sort(np.random.default_rng(5).lognormal(size=k)), np.full(k, 1 / k)


def some_without_prior(k):
    p = np.random.default_rng(3).random(k) < 0.4
    return np.arange(float(k)), p / p.sum()


def clusters(k, apart):
    rng = np.random.default_rng(5)
    return np.sort(
        np.concatenate([rng.normal(size=k // 2), apart + rng.normal(size=k - k // 2)])
    ), np.full(k, 1 / k)


def outlier(k):
    return np.append(np.arange(k - 1.0), 1e5), np.full(k, 1 / k)


def hardly_any_prior(k):
    return np.arange(float(k)), np.random.default_rng(5).dirichlet(np.full(k, 0.1))


def found(labels, prior, epsilon, **options):
    odds, _ = round_odds_down(epsilon)
    return odds, find_unbiased_optimum(
        UnbiasedSearch(float(odds) - 1, "cvxpy:clarabel", Options(), **options), labels, prior
    )


def point(sets, t, s):
    return UnbiasedOptimum(sets, t, s, 1.0, Proof(0.0, np.zeros(1), np.zeros(1)), None)


@pytest.mark.parametrize(
    ("k", "epsilon", "value"),
    [
        (11, 1, 98.00754197),
        (11, 4, 2.713355584),
        (21, 1, 390.5497078),
        (21, 4, 10.78431481),
        (52, 1, 2532.271314),
        (52, 4, 69.17465903),
        (80, 1, 6071.526137),
        (80, 4, 165.3189957),
    ],
)
def test_the_values_of_column_generation(k, epsilon, value):
    best = found(*uniform(k), epsilon)[1]
    assert best.objective == pytest.approx(value, rel=3e-9)
    assert best.bound == pytest.approx(best.objective, rel=2e-8)


@pytest.mark.parametrize("epsilon", ["0.01", "0.5", 3, 12])
@pytest.mark.parametrize(
    "question", [uniform(30), lognormal(101), some_without_prior(40)], ids=["even", "far", "zero"]
)
def test_the_channel_is_exact_and_within_the_gap(question, epsilon):
    y, p = question
    odds, best = found(y, p, epsilon)
    channel = build_exact_channel(y, odds, best)
    outputs = channel.outputs
    values = [Fraction(o) for o in outputs.tolist()]
    assert [row.mean(values) for row in channel.rows] == [Fraction(v) for v in y.tolist()]
    assert audit_extremes(channel, epsilon).meets("pure", Fraction(epsilon), 0)
    loss = float((p[:, None] * channel.matrix * (outputs - y[:, None]) ** 2).sum())
    assert best.bound <= loss * (1 + 1e-12)
    assert loss <= best.bound * (1 + 1e-7)
    assert np.isin(outputs.size, range(y.size, 4 * y.size))


@pytest.mark.parametrize(
    ("question", "epsilon"),
    [
        (clusters(40, 1e6), "0.01"),
        (clusters(40, 1e6), "0.5"),
        (clusters(60, 1e3), 12),
        (outlier(120), 12),
        (hardly_any_prior(120), 12),
    ],
    ids=["far", "farther", "large", "outlier", "prior"],
)
def test_labels_in_far_clusters_are_closed_as_well(question, epsilon):
    """Their multipliers are noise one by one, and their masses 1e-7 of the largest."""
    y, p = question
    odds, best = found(y, p, epsilon)
    assert best.bound <= best.objective * (1 + 1e-9)
    channel = build_exact_channel(y, odds, best)
    outputs = channel.outputs
    values = [Fraction(o) for o in outputs.tolist()]
    assert [row.mean(values) for row in channel.rows] == [Fraction(v) for v in y.tolist()]
    assert audit_extremes(channel, epsilon).meets("pure", Fraction(epsilon), 0)
    loss = float((p[:, None] * channel.matrix * (outputs - y[:, None]) ** 2).sum())
    assert best.bound * (1 - 1e-12) <= loss <= best.bound * (1 + 1e-7)


def test_clusters_too_far_apart_for_a_solver_are_not_proven():
    """Their small masses are below the solver's tolerances.

    The design is refused, with a bound below the loss of a private randomizer.
    """
    y, p = clusters(40, 1e9)
    with pytest.raises(wb.NotProven) as refused:
        wb.design(wb.Labels(y, p), method="unbiased", epsilon=1)
    assert 0 <= refused.value.bound <= unbiased.randomized_response_loss(y, p, math.expm1(1))


def test_a_time_limit_counts_for_all_programs_together():
    with pytest.raises(wb.NotProven, match=r"time limit|ended with the optimum between"):
        wb.design(wb.Labels(*uniform(300)), method="unbiased", epsilon=1, time_limit=0.01)


def test_pooled_multipliers_are_negative_on_intervals_alone():
    rng = np.random.default_rng(8)
    y, p = np.sort(rng.normal(size=12)), rng.dirichlet(np.ones(12))
    q, best = math.expm1(1.0), found(y, p, 1)[1]
    for size in (1e-3, 1.0):
        v, u = size * rng.normal(size=12), size * rng.normal(size=12)
        u -= 2 * p * (y - y.mean())
        v, u = unbiased.pool_multipliers(y, p, v, u)
        o = np.linspace(-9, 9, 5_001)[:, None]
        raised = p * (o - y) ** 2 - v - u * (o - y) < -1e-12
        starts = np.diff(raised.astype(int), axis=1, prepend=0) == 1
        assert starts.sum(axis=1).max() == 1
        assert unbiased.prove_lower_bound(y, p, q, v, u)[0].bound <= best.objective
    kept = unbiased.pool_multipliers(
        y, p, 6 * p, -p
    )  # All f_y are p (o - y + 3) (o - y - 2), so there is nothing to pool.
    np.testing.assert_allclose(kept, (6 * p, -p))


def test_a_set_without_mass_carries_no_moment():
    """Two labels differ by masses alone that are left out: refused, not published with a bias."""
    y = np.arange(3.0)
    sets = Intervals(np.array([0, 1, 2, 0]), np.array([0, 1, 2, 2]))
    with pytest.raises(ArithmeticError, match=r"has no mass|far from a randomizer|too few"):
        build_exact_channel(
            y, Fraction(2), point(sets, np.array([0.0, 0.0, 0.0, 1.0]) + 1e-60, np.ones(4))
        )


def test_no_sets_but_intervals_are_needed_by_brute_force():
    """The linear program of all 2^5 sets on a fine grid is near the bound and not below it."""
    from scipy.optimize import linprog

    y, p, q = np.array([0.0, 1, 2.5, 3, 5]), np.array([0.3, 0.1, 0.2, 0.1, 0.3]), math.expm1(1.5)
    _, best = found(y, p, "1.5")
    grid = np.linspace(-8, 13, 200)
    w = np.array([[1 + q * inside for inside in chosen] for chosen in product((0, 1), repeat=5)])
    weights = np.repeat(w, grid.size, axis=0)
    outputs = np.tile(grid, len(w))
    loss = (weights * (outputs[:, None] - y) ** 2) @ p
    rows = np.concatenate([weights.T, (weights * outputs[:, None]).T])
    answer = linprog(loss, A_eq=rows, b_eq=np.concatenate([np.ones(5), y]), method="highs")
    assert best.bound * (1 - 1e-9) <= answer.fun <= best.bound * 1.01


def test_a_band_that_misses_the_optimum_has_a_gap():
    """Singletons alone: the bound of their multipliers stays below the optimum over all sets."""
    y, p = uniform(11)
    q, alone = math.expm1(1.0), Intervals(np.arange(11), np.arange(11))
    answer = solve(unbiased.build_cone_program(y, p, q, alone, 100.0), solver="cvxpy:clarabel")
    proof, rays = unbiased.prove_lower_bound(
        y, p, q, *unbiased.label_multipliers(y, p, q, 100.0, answer.row_dual)
    )
    assert proof.bound < 98.0075419 < answer.objective * 100
    assert rays.shape[0]
    assert unbiased.randomized_response_loss(y, p, q) == pytest.approx(
        answer.objective * 100, rel=1e-6
    )


def test_pricing_finds_the_least_reduced_cost():
    rng = np.random.default_rng(2)
    y, q = np.arange(6.0), Fraction(3)
    for zeros in (0, 2):
        for _ in range(10):
            p = np.append(np.zeros(zeros), rng.dirichlet(np.ones(6 - zeros)))
            v, u = rng.normal(size=6) * 4, rng.normal(size=6)
            prices = Quadratics.from_multipliers(y, p, v, u).price_pieces(q)
            o = np.linspace(-60, 60, 40_001)[:, None]
            f = p * (o - y) ** 2 - v - u * (o - y)
            swept = (f + 3 * np.minimum(f, 0)).sum(axis=1).min()
            assert prices.depths.min() - 1e-9 <= swept <= prices.depths.min() + 1e-3
            assert 0 <= to_fraction(prices.slack) < 1e-30
            bound, rays = lower_until_feasible(Quadratics.from_multipliers(y, p, v, u), q)
            assert bound >= v.sum() + min(swept, 0.0) - 1e-2
            assert len(rays) == (prices.depths < 0).sum()


def test_a_bound_is_proven_by_rationals_at_every_set_and_output():
    """Sets and depths of the pieces agree with fractions of f_y, within and between the pieces."""
    y, p = np.array([1e6, 1e6 + 0.1, 1e6 + 1, 2e6]), np.array([0.5, 1e-18, 0.0, 0.5 - 1e-18])
    v, u, q = (
        np.array([3.0, 1e-7, -2e-5, 4.0]) * 1e7,
        np.array([3.0, 1e-7, 2e-6, -5.0]) * 10,
        round_odds_up(math.expm1(12)),
    )
    assert q > Fraction(math.expm1(12))
    prices = Quadratics.from_multipliers(y, p, v, u).price_pieces(q)
    floor = to_fraction(min(prices.minima) - prices.slack)
    deepest = []
    for o in (
        Fraction(at)
        for at in np.concatenate([np.linspace(-1e7, 1e7, 2001), np.linspace(9.9e5, 1.01e6, 2001)])
    ):
        gaps = [o - Fraction(label) for label in y.tolist()]
        f = [
            Fraction(a) * g * g - Fraction(b) - Fraction(c) * g
            for a, b, c, g in zip(p, v, u, gaps, strict=True)
        ]
        deepest.append(sum(f) + q * sum(min(x, 0) for x in f))
        assert deepest[-1] >= floor
    assert min(deepest) <= floor * Fraction(9, 10) < 0


def test_any_multipliers_bound_the_optimum():
    rng = np.random.default_rng(4)
    y, p = uniform(6)
    q, best = math.expm1(1.0), found(*uniform(6), 1)[1]
    for _ in range(30):
        v, u = rng.normal(size=6) * 5, rng.normal(size=6) * 3
        assert unbiased.prove_lower_bound(y, p, q, v, u)[0].bound <= best.objective


def test_floats_that_are_no_randomizer_are_refused():
    y, _ = uniform(3)
    sets = Intervals(np.arange(3), np.arange(3))
    with pytest.raises(ArithmeticError, match="distinguish all labels"):
        build_exact_channel(
            y, Fraction(2), point(Intervals(np.array([0]), np.array([2])), np.ones(1), np.ones(1))
        )
    alone = point(sets, np.full(3, 0.25), np.array([-0.25, 0.25, 0.75]))
    channel = build_exact_channel(y, Fraction(2), alone)
    outputs = channel.outputs
    assert [row.mean([Fraction(o) for o in outputs.tolist()]) for row in channel.rows] == [0, 1, 2]


def test_progress_is_reported():
    said: list[str] = []
    found(*uniform(30), 1, progress=said.append)
    assert said
    assert "30 labels" in said[-1]
