"""Exact repair and exact bounds, from good and from bad starts."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import workbench as wb
from workbench.families.channel.proof import bound_least_delta, bound_least_loss, bound_loss_on_line
from workbench.families.channel.repair import (
    Edges,
    compute_integer_loss,
    mix_within_max_loss,
    repair_integer_rows,
    round_to_integers,
)
from workbench.mechanisms.channel import Channel
from workbench.models.channel.program import ChannelModel, consecutive_pairs
from workbench.models.oracles.finite_channel import post_process_geometric
from workbench.pipeline.loss_tables import make_loss_table

LINE = wb.FiniteQuery("0..5", max_shift=1)
LOSSES = make_loss_table(LINE, "squared")
ALL = make_loss_table(wb.FiniteQuery("0..5", neighbours="all"), "absolute")


def channel(K, pairs=LINE.pairs) -> Channel:
    return Channel.from_pairs(K.tolist(), pairs)


def edges(pairs, epsilons) -> Edges:
    return Edges.from_groups(pairs, [0] * len(pairs or ()), epsilons)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("delta", ["0", "0.001", "0.3"])
@pytest.mark.parametrize("pairs", [LINE.pairs, None, ((0, 1), (0, 5), (2, 3))])
def test_whatever_a_solver_returns_is_made_private(seed: int, delta: str, pairs):
    source = np.random.default_rng(seed)
    rows = source.dirichlet(np.full(6, 0.2), size=6)
    rows[source.random((6, 6)) < 0.3] = 0
    rows[:, 0] += 1e-30
    epsilon, allowed = Fraction(seed + 1, 4), Fraction(delta)
    K = repair_integer_rows(round_to_integers(rows), edges(pairs, [epsilon]), allowed, 2)
    assert wb.audit(channel(K, pairs), epsilon).meets("dp", epsilon, allowed)
    assert len({int(row.sum()) for row in K}) == 1


def test_what_is_private_stays_as_it_is():
    rows = np.full((6, 6), 1 / 6)
    K = round_to_integers(rows)
    assert (
        repair_integer_rows(K, edges(LINE.pairs, [Fraction(1)]), Fraction(1, 100), 2) == K
    ).all()


def test_a_budget_is_kept_exactly():
    K = round_to_integers(np.full((6, 6), 1 / 6))
    loss = compute_integer_loss(K, LOSSES, LINE.prior)
    for share in (Fraction(1, 2), Fraction(999999, 10**6), Fraction(1)):
        assert (
            share * loss * (1 - Fraction(1, 10**15))
            <= compute_integer_loss(
                mix_within_max_loss(K, LOSSES, LINE.prior, share * loss), LOSSES, LINE.prior
            )
            <= share * loss
        )
    assert (
        mix_within_max_loss(K, LOSSES, LINE.prior, Fraction(0)).diagonal().tolist() == [1 << 96] * 6
    )


def test_each_pair_has_its_own_ratio():
    budgets = {(0, 1): Fraction(1, 2), (1, 2): Fraction(2)}
    rows = np.array([[0.9, 0.1, 0], [0, 1, 0], [0, 0.3, 0.7]])
    K = repair_integer_rows(
        round_to_integers(rows),
        Edges.from_groups([*budgets], [0, 1], [*budgets.values()]),
        Fraction(0),
        1,
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
        bound_least_loss(LOSSES, LINE.prior, edges(LINE.pairs, [epsilon]), delta, found)
        <= cheapest.details["loss"]
    )
    worst = compute_integer_loss(
        np.array([row.integers for row in cheapest.mechanism.rows], dtype=object), LOSSES, None
    )
    assert bound_least_loss(LOSSES, None, edges(LINE.pairs, [epsilon]), delta, found) <= worst
    max_loss = cheapest.details["loss"]
    assert (
        bound_least_delta(LOSSES, LINE.prior, edges(LINE.pairs, [epsilon]), max_loss, found)
        <= delta
    )
    share = source.normal(0, 1, 6)
    assert (
        bound_loss_on_line(LOSSES, LINE.prior, epsilon, share)
        <= wb.design(LINE, epsilon=epsilon).details["loss"]
    )
    many = wb.design(wb.FiniteQuery("0..5", neighbours="all"), epsilon=epsilon, loss="absolute")
    columns = {"least": source.exponential(1, (6, 6)), "most": source.exponential(1, (6, 6))}
    assert (
        bound_least_loss(ALL, LINE.prior, edges(None, [epsilon]), Fraction(0), columns)
        <= many.details["loss"]
    )


def test_along_a_line_the_shares_of_post_processed_noise_prove_it():
    for epsilon in ("0.05", "1", "5"):
        found = post_process_geometric(LOSSES.floats, np.full(6, 1 / 6), float(epsilon))
        bound = bound_loss_on_line(LOSSES, LINE.prior, Fraction(epsilon), found.label_shares)
        assert float(bound) == pytest.approx(found.value, rel=1e-10)
        assert bound <= wb.design(LINE, epsilon=epsilon).details["loss"]


def test_the_models_multipliers_prove_its_optimum():
    values = np.arange(6.0)
    prior = np.full(6, 1 / 6)
    from workbench.solvers.backend import solve

    for pairs, losses in ((consecutive_pairs(6), LOSSES), (None, ALL)):
        groups = (0,) * len(pairs or ())
        model = ChannelModel(values, values, prior, losses.floats, pairs, groups, scale=2.0**20)
        solution = solve(model.program, model.values([1.0]))
        bound = bound_least_loss(
            losses,
            LINE.prior,
            edges(pairs, [Fraction(1)]),
            Fraction(0),
            model.multipliers(solution.row_dual),
        )
        assert float(bound) == pytest.approx(solution.objective, rel=1e-10)
