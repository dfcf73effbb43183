"""Exact repair and exact bounds, from good and from bad starts."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import workbench as wb
from workbench.families.channel.proof import least_delta_bound, least_loss_bound, line_bound
from workbench.families.channel.repair import Edges, loss_of, repaired, to_integers, within_budget
from workbench.mechanisms.channel import Channel
from workbench.models.channel.program import ChannelModel, consecutive
from workbench.models.oracles.finite_channel import post_processed
from workbench.pipeline.loss_tables import loss_table

LINE = wb.FiniteQuery("0..5", max_shift=1)
LOSSES = loss_table(LINE, "squared")
ALL = loss_table(wb.FiniteQuery("0..5", neighbours="all"), "absolute")


def channel(K, pairs=LINE.pairs) -> Channel:
    return Channel.of(K.tolist(), pairs)


def edges(pairs, epsilons) -> Edges:
    return Edges.of(pairs, [0] * len(pairs or ()), epsilons)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("delta", ["0", "0.001", "0.3"])
@pytest.mark.parametrize("pairs", [LINE.pairs, None, ((0, 1), (0, 5), (2, 3))])
def test_whatever_a_solver_returns_is_made_private(seed: int, delta: str, pairs):
    source = np.random.default_rng(seed)
    rows = source.dirichlet(np.full(6, 0.2), size=6)
    rows[source.random((6, 6)) < 0.3] = 0
    rows[:, 0] += 1e-30
    epsilon, allowed = Fraction(seed + 1, 4), Fraction(delta)
    K = repaired(to_integers(rows), edges(pairs, [epsilon]), allowed, 2)
    assert wb.audit(channel(K, pairs), epsilon).meets("dp", epsilon, allowed)
    assert len({int(row.sum()) for row in K}) == 1


def test_what_is_private_stays_as_it_is():
    rows = np.full((6, 6), 1 / 6)
    K = to_integers(rows)
    assert (repaired(K, edges(LINE.pairs, [Fraction(1)]), Fraction(1, 100), 2) == K).all()


def test_a_budget_is_kept_exactly():
    K = to_integers(np.full((6, 6), 1 / 6))
    loss = loss_of(K, LOSSES, LINE.prior)
    for share in (Fraction(1, 2), Fraction(999999, 10**6), Fraction(1)):
        assert (
            share * loss * (1 - Fraction(1, 10**15))
            <= loss_of(within_budget(K, LOSSES, LINE.prior, share * loss), LOSSES, LINE.prior)
            <= share * loss
        )
    assert within_budget(K, LOSSES, LINE.prior, Fraction(0)).diagonal().tolist() == [1 << 96] * 6


def test_each_pair_has_its_own_ratio():
    budgets = {(0, 1): Fraction(1, 2), (1, 2): Fraction(2)}
    rows = np.array([[0.9, 0.1, 0], [0, 1, 0], [0, 0.3, 0.7]])
    K = repaired(
        to_integers(rows), Edges.of([*budgets], [0, 1], [*budgets.values()]), Fraction(0), 1
    )
    assert wb.audit(channel(K, [*budgets]), budgets).meets("metric", budgets)


@pytest.mark.parametrize("seed", range(20))
def test_no_multipliers_prove_more_than_a_channel_costs(seed: int):
    source = np.random.default_rng(seed)
    epsilon, delta = Fraction(seed + 2, 7), Fraction(seed % 3, 50)
    cheapest = wb.design(LINE, epsilon=epsilon, delta=delta)
    u = source.exponential(0.2, (10, 6)) * (source.random((10, 6)) < 0.5)
    found = {"ratio": u, "losses": source.random(6)}
    assert (
        least_loss_bound(LOSSES, LINE.prior, edges(LINE.pairs, [epsilon]), delta, found)
        <= cheapest.details["loss"]
    )
    worst = loss_of(
        np.array([row.integers for row in cheapest.mechanism.rows], dtype=object), LOSSES, None
    )
    assert least_loss_bound(LOSSES, None, edges(LINE.pairs, [epsilon]), delta, found) <= worst
    max_loss = cheapest.details["loss"]
    assert (
        least_delta_bound(LOSSES, LINE.prior, edges(LINE.pairs, [epsilon]), max_loss, found)
        <= delta
    )
    share = source.normal(0, 1, 6)
    assert (
        line_bound(LOSSES, LINE.prior, epsilon, share)
        <= wb.design(LINE, epsilon=epsilon).details["loss"]
    )
    many = wb.design(wb.FiniteQuery("0..5", neighbours="all"), epsilon=epsilon, loss="absolute")
    columns = {"least": source.exponential(1, (6, 6)), "most": source.exponential(1, (6, 6))}
    assert (
        least_loss_bound(ALL, LINE.prior, edges(None, [epsilon]), Fraction(0), columns)
        <= many.details["loss"]
    )


def test_along_a_line_the_shares_of_post_processed_noise_prove_it():
    for epsilon in ("0.05", "1", "5"):
        found = post_processed(LOSSES.floats, np.full(6, 1 / 6), float(epsilon))
        bound = line_bound(LOSSES, LINE.prior, Fraction(epsilon), found.share)
        assert float(bound) == pytest.approx(found.value, rel=1e-10)
        assert bound <= wb.design(LINE, epsilon=epsilon).details["loss"]


def test_the_models_multipliers_prove_its_optimum():
    values = np.arange(6.0)
    prior = np.full(6, 1 / 6)
    from workbench.solvers.backend import solve

    for pairs, losses in ((consecutive(6), LOSSES), (None, ALL)):
        groups = (0,) * len(pairs or ())
        model = ChannelModel(values, values, prior, losses.floats, pairs, groups, scale=2.0**20)
        solution = solve(model.program, model.values([1.0]))
        bound = least_loss_bound(
            losses,
            LINE.prior,
            edges(pairs, [Fraction(1)]),
            Fraction(0),
            model.multipliers(solution.row_dual),
        )
        assert float(bound) == pytest.approx(solution.objective, rel=1e-10)
