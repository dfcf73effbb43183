"""Tests of the optimal unbiased randomizer of labels.

Its channel has the mass (1 + q [y in the set]) t for each set of labels, with q = e^ε - 1 and one
output per set. Tests compare the cone program with stored optima, its lower bound with brute force
over all sets, and check the exact channel that is built from its solution.

A question is a pair (labels, prior), both of shape (k,).
"""

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
    """Return the labels 0..k-1 with equal weights."""
    return np.arange(float(k)), np.full(k, 1 / k)


def lognormal(k):
    """Return lognormal labels with equal weights."""
    return np.sort(np.random.default_rng(5).lognormal(size=k)), np.full(k, 1 / k)


def some_without_prior(k):
    """Return the labels 0..k-1, of which about 60 % have weight 0."""
    p = np.random.default_rng(3).random(k) < 0.4
    return np.arange(float(k)), p / p.sum()


def clusters(k, distance):
    """Return labels in two clusters at this distance, with equal weights."""
    rng = np.random.default_rng(5)
    first_cluster = rng.normal(size=k // 2)
    second_cluster = distance + rng.normal(size=k - k // 2)
    return np.sort(np.concatenate([first_cluster, second_cluster])), np.full(k, 1 / k)


def outlier(k):
    """Return the labels 0..k-2 and 100,000, with equal weights."""
    return np.append(np.arange(k - 1.0), 1e5), np.full(k, 1 / k)


def hardly_any_prior(k):
    """Return the labels 0..k-1, most of which have a tiny weight."""
    return np.arange(float(k)), np.random.default_rng(5).dirichlet(np.full(k, 0.1))


def find_optimum(labels, prior, epsilon, **options):
    """Return (e^ε rounded down to a rational, the optimum of the cone program)."""
    odds, _ = round_odds_down(epsilon)
    search = UnbiasedSearch(float(odds) - 1, "cvxpy:clarabel", Options(), **options)
    return odds, find_unbiased_optimum(search, labels, prior)


def make_optimum(sets, t, s):
    """Return an optimum without a proof. t, s: mass and moment of each set."""
    return UnbiasedOptimum(
        sets, t, s, objective=1.0, proof=Proof(0.0, np.zeros(1), np.zeros(1)), solution=None
    )


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
def test_optima_equal_those_of_column_generation(k, epsilon, value):
    """The values were computed once by column generation over all sets."""
    best = find_optimum(*uniform(k), epsilon)[1]
    assert best.objective == pytest.approx(value, rel=3e-9)
    assert best.bound == pytest.approx(best.objective, rel=2e-8)


@pytest.mark.parametrize("epsilon", ["0.01", "0.5", 3, 12])
@pytest.mark.parametrize(
    "question", [uniform(30), lognormal(101), some_without_prior(40)], ids=["even", "far", "zero"]
)
def test_the_channel_is_exact_and_within_the_gap(question, epsilon):
    y, p = question
    odds, best = find_optimum(y, p, epsilon)
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
        (clusters(k=40, distance=1e6), "0.01"),
        (clusters(k=40, distance=1e6), "0.5"),
        (clusters(k=60, distance=1e3), 12),
        (outlier(120), 12),
        (hardly_any_prior(120), 12),
    ],
    ids=["far", "farther", "large", "outlier", "prior"],
)
def test_labels_in_far_clusters_have_a_tight_bound(question, epsilon):
    """Single multipliers have no correct digits here, and some masses are 1e-7 of the largest."""
    y, p = question
    odds, best = find_optimum(y, p, epsilon)
    assert best.bound <= best.objective * (1 + 1e-9)
    channel = build_exact_channel(y, odds, best)
    outputs = channel.outputs
    values = [Fraction(o) for o in outputs.tolist()]
    assert [row.mean(values) for row in channel.rows] == [Fraction(v) for v in y.tolist()]
    assert audit_extremes(channel, epsilon).meets("pure", Fraction(epsilon), 0)
    loss = float((p[:, None] * channel.matrix * (outputs - y[:, None]) ** 2).sum())
    assert best.bound * (1 - 1e-12) <= loss <= best.bound * (1 + 1e-7)


def test_clusters_too_far_apart_for_a_solver_are_not_proven():
    """Their small masses are below the tolerances of the solver.

    The design is refused with a bound, which is below the loss of randomized response.
    """
    y, p = clusters(k=40, distance=1e9)
    with pytest.raises(wb.NotProven) as refused:
        wb.design(wb.Labels(y, p), method="unbiased", epsilon=1)
    assert 0 <= refused.value.bound <= unbiased.randomized_response_loss(y, p, math.expm1(1))


def test_a_time_limit_counts_for_all_programs_together():
    with pytest.raises(wb.NotProven, match=r"time limit|ended with the optimum between"):
        wb.design(wb.Labels(*uniform(300)), method="unbiased", epsilon=1, time_limit=0.01)


def test_pooled_multipliers_are_negative_on_intervals_only():
    """At each output o, the labels y with f_y(o) = p (o - y)² - v - u (o - y) < 0 are an interval."""
    rng = np.random.default_rng(8)
    y, p = np.sort(rng.normal(size=12)), rng.dirichlet(np.ones(12))
    q = math.expm1(1.0)
    best = find_optimum(y, p, epsilon=1)[1]
    for size in (1e-3, 1.0):
        v = size * rng.normal(size=12)
        u = size * rng.normal(size=12)
        u -= 2 * p * (y - y.mean())
        v, u = unbiased.pool_multipliers(y, p, v, u)
        o = np.linspace(-9, 9, 5_001)[:, None]
        is_negative = p * (o - y) ** 2 - v - u * (o - y) < -1e-12
        starts = np.diff(is_negative.astype(int), axis=1, prepend=0) == 1
        assert starts.sum(axis=1).max() == 1
        assert unbiased.prove_lower_bound(y, p, q, v, u)[0].bound <= best.objective
    # All f_y are p (o - y + 3) (o - y - 2), so there is nothing to pool.
    np.testing.assert_allclose(unbiased.pool_multipliers(y, p, 6 * p, -p), (6 * p, -p))


def test_labels_that_differ_by_tiny_masses_only_are_refused():
    """Such masses are left out, so the two labels could only be published with a bias."""
    y = np.arange(3.0)
    sets = Intervals(np.array([0, 1, 2, 0]), np.array([0, 1, 2, 2]))
    with pytest.raises(ArithmeticError, match=r"has no mass|far from a randomizer|too few"):
        build_exact_channel(
            y, Fraction(2), make_optimum(sets, np.array([0.0, 0.0, 0.0, 1.0]) + 1e-60, np.ones(4))
        )


def test_the_bound_over_intervals_holds_for_all_sets():
    """The linear program of all 2^5 sets, with outputs on a fine grid, is slightly above the bound."""
    from scipy.optimize import linprog

    y = np.array([0.0, 1, 2.5, 3, 5])
    p = np.array([0.3, 0.1, 0.2, 0.1, 0.3])
    q = math.expm1(1.5)
    _, best = find_optimum(y, p, "1.5")
    grid = np.linspace(-8, 13, 200)
    w = np.array([[1 + q * inside for inside in members] for members in product((0, 1), repeat=5)])
    weights = np.repeat(w, grid.size, axis=0)
    outputs = np.tile(grid, len(w))
    loss = (weights * (outputs[:, None] - y) ** 2) @ p
    rows = np.concatenate([weights.T, (weights * outputs[:, None]).T])
    answer = linprog(loss, A_eq=rows, b_eq=np.concatenate([np.ones(5), y]), method="highs")
    assert best.bound * (1 - 1e-9) <= answer.fun <= best.bound * 1.01


def test_too_few_sets_leave_a_gap():
    """With singletons only, the loss is above the optimum over all sets and the bound below it."""
    optimum = 98.0075419  # That of `test_optima_equal_those_of_column_generation`.
    y, p = uniform(11)
    q = math.expm1(1.0)
    singletons = Intervals(np.arange(11), np.arange(11))
    answer = solve(unbiased.build_cone_program(y, p, q, singletons, 100.0), solver="cvxpy:clarabel")
    proof, rays = unbiased.prove_lower_bound(
        y, p, q, *unbiased.label_multipliers(y, p, q, 100.0, answer.row_dual)
    )
    assert proof.bound < optimum < answer.objective * 100
    assert rays.shape[0]
    assert unbiased.randomized_response_loss(y, p, q) == pytest.approx(
        answer.objective * 100, rel=1e-6
    )


def test_pricing_finds_the_smallest_reduced_cost():
    """Its minimum over outputs is compared with a fine grid of outputs."""
    rng = np.random.default_rng(2)
    y = np.arange(6.0)
    q = Fraction(3)
    for zeros in (0, 2):
        for _ in range(10):
            p = np.append(np.zeros(zeros), rng.dirichlet(np.ones(6 - zeros)))
            v = rng.normal(size=6) * 4
            u = rng.normal(size=6)
            prices = Quadratics.from_multipliers(y, p, v, u).price_pieces(q)
            o = np.linspace(-60, 60, 40_001)[:, None]
            f = p * (o - y) ** 2 - v - u * (o - y)
            grid_minimum = (f + 3 * np.minimum(f, 0)).sum(axis=1).min()
            assert prices.depths.min() - 1e-9 <= grid_minimum <= prices.depths.min() + 1e-3
            assert 0 <= to_fraction(prices.slack) < 1e-30
            bound, rays = lower_until_feasible(Quadratics.from_multipliers(y, p, v, u), q)
            assert bound >= v.sum() + min(grid_minimum, 0.0) - 1e-2
            assert len(rays) == (prices.depths < 0).sum()


def test_reduced_costs_in_fractions_are_not_below_the_proven_minimum():
    """The reduced cost at an output is Σ f_y + q Σ min(f_y, 0), here for badly scaled labels."""
    y = np.array([1e6, 1e6 + 0.1, 1e6 + 1, 2e6])
    p = np.array([0.5, 1e-18, 0.0, 0.5 - 1e-18])
    v = np.array([3.0, 1e-7, -2e-5, 4.0]) * 1e7
    u = np.array([3.0, 1e-7, 2e-6, -5.0]) * 10
    q = round_odds_up(math.expm1(12))
    assert q > Fraction(math.expm1(12))
    prices = Quadratics.from_multipliers(y, p, v, u).price_pieces(q)
    proven_minimum = to_fraction(min(prices.minima) - prices.slack)
    reduced_costs = []
    outputs = np.concatenate([np.linspace(-1e7, 1e7, 2001), np.linspace(9.9e5, 1.01e6, 2001)])
    for o in map(Fraction, outputs):
        differences = [o - Fraction(label) for label in y.tolist()]
        f = [
            Fraction(a) * g * g - Fraction(b) - Fraction(c) * g
            for a, b, c, g in zip(p, v, u, differences, strict=True)
        ]
        reduced_costs.append(sum(f) + q * sum(min(x, 0) for x in f))
        assert reduced_costs[-1] >= proven_minimum
    assert min(reduced_costs) <= proven_minimum * Fraction(9, 10) < 0


def test_any_multipliers_prove_a_lower_bound():
    rng = np.random.default_rng(4)
    y, p = uniform(6)
    q = math.expm1(1.0)
    best = find_optimum(*uniform(6), 1)[1]
    for _ in range(30):
        v = rng.normal(size=6) * 5
        u = rng.normal(size=6) * 3
        assert unbiased.prove_lower_bound(y, p, q, v, u)[0].bound <= best.objective


def test_sets_that_do_not_distinguish_labels_are_refused():
    y, _ = uniform(3)
    all_labels = Intervals(np.array([0]), np.array([2]))
    with pytest.raises(ArithmeticError, match="distinguish all labels"):
        build_exact_channel(y, Fraction(2), make_optimum(all_labels, np.ones(1), np.ones(1)))


def test_a_channel_of_singletons_has_the_label_as_its_mean():
    y, _ = uniform(3)
    sets = Intervals(np.arange(3), np.arange(3))
    singletons = make_optimum(sets, np.full(3, 0.25), np.array([-0.25, 0.25, 0.75]))
    channel = build_exact_channel(y, Fraction(2), singletons)
    outputs = channel.outputs
    assert [row.mean([Fraction(o) for o in outputs.tolist()]) for row in channel.rows] == [0, 1, 2]


def test_progress_is_reported():
    messages: list[str] = []
    find_optimum(*uniform(30), 1, progress=messages.append)
    assert messages
    assert "30 labels" in messages[-1]
