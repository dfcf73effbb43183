"""Test the exact repair of channels, and exact lower bounds from multipliers, on answers 0..5.

Any multipliers (dual values of the linear program) must give a valid bound, and any matrix must be
repaired to a private channel. K is a channel as integers whose rows have the same sum.
"""

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
from workbench.solvers.backend import solve

LINE = wb.FiniteQuery("0..5", max_shift=1)
SQUARED_LOSSES = make_loss_table(LINE, "squared")
ABSOLUTE_LOSSES = make_loss_table(wb.FiniteQuery("0..5", neighbours="all"), "absolute")


def make_edges(pairs, epsilon: Fraction) -> Edges:
    """Make the ordered pairs of neighbours with one ε. If `pairs` is None, these are all pairs."""
    return Edges.from_groups(pairs, [0] * len(pairs or ()), epsilons=[epsilon])


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("delta", ["0", "0.001", "0.3"])
@pytest.mark.parametrize("pairs", [LINE.pairs, None, ((0, 1), (0, 5), (2, 3))])
def test_any_random_matrix_is_repaired_to_a_private_channel(seed: int, delta: str, pairs):
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(6, 0.2), size=6)
    rows[rng.random((6, 6)) < 0.3] = 0
    rows[:, 0] += 1e-30  # No row is all zeros.
    epsilon = Fraction(seed + 1, 4)
    max_delta = Fraction(delta)
    K = repair_integer_rows(
        round_to_integers(rows), make_edges(pairs, epsilon), max_delta, output=2
    )
    channel = Channel.from_pairs(K.tolist(), pairs)
    assert wb.audit(channel, epsilon).meets("dp", epsilon, max_delta)
    assert len({int(row.sum()) for row in K}) == 1


def test_the_repair_does_not_change_a_private_channel():
    K = round_to_integers(np.full((6, 6), 1 / 6))
    edges = make_edges(LINE.pairs, Fraction(1))
    assert (repair_integer_rows(K, edges, Fraction(1, 100), output=2) == K).all()


def test_mixing_reaches_the_largest_allowed_loss_and_never_exceeds_it():
    K = round_to_integers(np.full((6, 6), 1 / 6))
    loss = compute_integer_loss(K, SQUARED_LOSSES, LINE.prior)
    for share in (Fraction(1, 2), Fraction(999999, 10**6), Fraction(1)):
        max_loss = share * loss
        mixture = mix_within_max_loss(K, SQUARED_LOSSES, LINE.prior, max_loss)
        mixture_loss = compute_integer_loss(mixture, SQUARED_LOSSES, LINE.prior)
        assert max_loss * (1 - Fraction(1, 10**15)) <= mixture_loss <= max_loss


def test_mixing_for_the_largest_loss_0_publishes_the_answers():
    K = round_to_integers(np.full((6, 6), 1 / 6))
    identity = mix_within_max_loss(K, SQUARED_LOSSES, LINE.prior, Fraction(0))
    assert identity.diagonal().tolist() == [1 << 96] * 6


def test_the_repair_satisfies_a_different_epsilon_for_each_pair():
    budgets = {(0, 1): Fraction(1, 2), (1, 2): Fraction(2)}
    rows = np.array([[0.9, 0.1, 0], [0, 1, 0], [0, 0.3, 0.7]])
    edges = Edges.from_groups(pairs=[*budgets], groups=[0, 1], epsilons=[*budgets.values()])
    K = repair_integer_rows(round_to_integers(rows), edges, Fraction(0), output=1)
    channel = Channel.from_pairs(K.tolist(), [*budgets])
    assert wb.audit(channel, budgets).meets("metric", budgets)


def draw_ratio_multipliers(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Draw multipliers for LINE.

    "ratio" belongs to the privacy constraints of the 10 ordered pairs and 6 outputs, "losses" to
    the constraints that the loss of each answer is at most the worst-case loss.
    """
    ratio_multipliers = rng.exponential(scale=0.2, size=(10, 6))
    # About half of the constraints do not hold with equality.
    ratio_multipliers *= rng.random((10, 6)) < 0.5
    return {"ratio": ratio_multipliers, "losses": rng.random(6)}


@pytest.mark.parametrize("seed", range(20))
def test_random_multipliers_never_prove_more_than_the_optimum_of_listed_pairs(seed: int):
    multipliers = draw_ratio_multipliers(np.random.default_rng(seed))
    epsilon = Fraction(seed + 2, 7)
    delta = Fraction(seed % 3, 50)
    edges = make_edges(LINE.pairs, epsilon)
    optimum = wb.design(LINE, epsilon=epsilon, delta=delta)
    loss = optimum.details["loss"]
    assert bound_least_loss(SQUARED_LOSSES, LINE.prior, edges, delta, multipliers) <= loss
    assert bound_least_delta(SQUARED_LOSSES, LINE.prior, edges, loss, multipliers) <= delta
    rows = np.array([row.integers for row in optimum.mechanism.rows], dtype=object)
    worst_loss = compute_integer_loss(rows, SQUARED_LOSSES, prior=None)
    worst_loss_bound = bound_least_loss(
        SQUARED_LOSSES, prior=None, edges=edges, delta=delta, multipliers=multipliers
    )
    assert worst_loss_bound <= worst_loss


@pytest.mark.parametrize("seed", range(20))
def test_random_shares_never_prove_more_than_the_optimum_of_a_line(seed: int):
    """A share is the dual value of one answer: of the constraint that its row sums to 1."""
    epsilon = Fraction(seed + 2, 7)
    shares = np.random.default_rng(seed).normal(size=6)
    bound = bound_loss_on_line(SQUARED_LOSSES, LINE.prior, epsilon, shares)
    assert bound <= wb.design(LINE, epsilon=epsilon).details["loss"]


@pytest.mark.parametrize("seed", range(20))
def test_random_multipliers_never_prove_more_than_the_optimum_of_all_pairs(seed: int):
    rng = np.random.default_rng(seed)
    epsilon = Fraction(seed + 2, 7)
    query = wb.FiniteQuery("0..5", neighbours="all")
    optimum = wb.design(query, epsilon=epsilon, loss="absolute")
    # "least" belongs to the constraints t_o <= M(x, o), "most" to M(x, o) <= e^ε t_o. The variable
    # t_o is the smallest probability of output o.
    multipliers = {"least": rng.exponential(1, (6, 6)), "most": rng.exponential(1, (6, 6))}
    edges = make_edges(None, epsilon)
    bound = bound_least_loss(
        ABSOLUTE_LOSSES, query.prior, edges, delta=Fraction(0), multipliers=multipliers
    )
    assert bound <= optimum.details["loss"]


@pytest.mark.parametrize("epsilon", ["0.05", "1", "5"])
def test_the_shares_of_post_processed_noise_prove_its_optimum_on_a_line(epsilon: str):
    geometric = post_process_geometric(SQUARED_LOSSES.floats, np.full(6, 1 / 6), float(epsilon))
    bound = bound_loss_on_line(SQUARED_LOSSES, LINE.prior, Fraction(epsilon), geometric.row_duals)
    assert float(bound) == pytest.approx(geometric.value, rel=1e-10)
    assert bound <= wb.design(LINE, epsilon=epsilon).details["loss"]


@pytest.mark.parametrize(
    ("pairs", "losses"), [(consecutive_pairs(6), SQUARED_LOSSES), (None, ABSOLUTE_LOSSES)]
)
def test_the_multipliers_of_a_solver_prove_the_optimum_of_the_program(pairs, losses):
    values = np.arange(6.0)
    groups = (0,) * len(pairs or ())
    model = ChannelModel(
        values,
        values,
        prior=np.full(6, 1 / 6),
        loss=losses.floats,
        pairs=pairs,
        groups=groups,
        scale=2.0**20,
    )
    solution = solve(model.program, model.values([1.0]))
    multipliers = model.multipliers(solution.row_dual)
    edges = make_edges(pairs, Fraction(1))
    bound = bound_least_loss(losses, LINE.prior, edges, delta=Fraction(0), multipliers=multipliers)
    assert float(bound) == pytest.approx(solution.objective, rel=1e-10)
