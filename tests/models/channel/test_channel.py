"""Tests of the linear program of channels: closed forms, both forms of its rows, constraints."""

from __future__ import annotations

import math
from itertools import combinations, pairwise

import numpy as np
import pytest

from workbench.models.channel.program import CONSTRAINTS, ChannelModel, consecutive_pairs
from workbench.models.labels.unbiased_levels import UnbiasedSearch, find_unbiased_optimum
from workbench.models.losses import LOSSES, parse_loss
from workbench.models.oracles.bins import optimal_bins, printed_bins
from workbench.solvers.backend import Options, solve

Y = np.arange(8.0)
UNIFORM = np.full(8, 1 / 8)


def make_model(
    loss: str = "absolute", outputs: np.ndarray = Y, prior: np.ndarray = UNIFORM, **fields
) -> ChannelModel:
    """Return a model of channels from the labels 0..7; by default all pairs are neighbours."""
    return ChannelModel(Y, outputs, prior, parse_loss(loss).matrix(outputs, Y), **fields)


def solve_model(channel_model: ChannelModel, epsilon: float = 1.0, delta: float = 0.0) -> float:
    """Return the smallest expected loss, after checking that the bound of the solver is tight."""
    solution = solve(channel_model.program, channel_model.values([epsilon], delta))
    assert solution.is_optimal
    assert solution.bound == pytest.approx(solution.objective, abs=1e-7)
    return solution.objective


def test_a_count_of_seven_people_has_the_stored_loss():
    loss = solve_model(make_model(pairs=consecutive_pairs(8)))
    # The value of the current program, pinned.
    assert loss == pytest.approx(0.682707993, abs=1e-9)


@pytest.mark.parametrize(
    "loss", ["squared", "absolute", "error-rate", "pinball:0.3", "huber:1.5", "poisson-deviance"]
)
def test_compact_rows_have_the_optimum_of_all_pairs(loss):
    prior = 0.7**Y / sum(0.7**Y)
    outputs = Y + 0.5
    full = make_model(loss, outputs, prior, pairs=tuple(combinations(range(8), 2)))
    assert solve_model(make_model(loss, outputs, prior), 1.3) == pytest.approx(
        solve_model(full, 1.3), rel=1e-8
    )


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_for_absolute_loss_rr_on_bins_is_optimal(epsilon):
    prior = np.array([3.0, 1, 0, 4, 1, 5, 9, 2]) / 25
    value = optimal_bins(Y, prior, epsilon, "absolute").objective
    assert solve_model(make_model("absolute", prior=prior), epsilon) == pytest.approx(
        value, rel=1e-8
    )


@pytest.mark.parametrize("loss", ["squared", "poisson-deviance"])
def test_the_program_on_the_best_outputs_has_the_loss_of_rr_on_bins(loss):
    best = optimal_bins(Y, UNIFORM, epsilon=2.0, loss=loss)
    grid = np.union1d(Y + 0.01, best.values)
    assert solve_model(make_model(loss, grid), 2.0) == pytest.approx(best.objective, rel=1e-8)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("loss", ["squared", "absolute", "poisson-deviance", "pinball:0.2"])
def test_the_program_equals_both_algorithms_of_rr_on_bins(loss, seed):
    rng = np.random.default_rng(seed)
    labels = np.sort(rng.choice(np.arange(1.0, 60), 9, replace=False))
    prior = rng.dirichlet(np.full(9, 0.3 + seed))
    epsilon = float(np.exp(rng.uniform(np.log(0.01), np.log(12))))
    fast, printed = (find(labels, prior, epsilon, loss) for find in (optimal_bins, printed_bins))
    outputs = np.union1d(labels, fast.values)
    channel_model = ChannelModel(labels, outputs, prior, parse_loss(loss).matrix(outputs, labels))
    assert fast.objective == pytest.approx(printed.objective, rel=1e-10)
    assert solve_model(channel_model, epsilon) == pytest.approx(fast.objective, rel=1e-6, abs=1e-9)


def test_the_loss_falls_with_delta_to_zero():
    pairs = tuple(combinations(range(8), 2))
    delta_model = make_model(pairs=pairs, has_delta=True)
    min_losses = [solve_model(delta_model, 1.0, delta) for delta in (0.0, 0.05, 0.3, 1.0)]
    assert min_losses[0] == pytest.approx(solve_model(make_model()), rel=1e-7)
    assert all(a > b for a, b in pairwise(min_losses))
    assert min_losses[-1] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("name", [c for c in CONSTRAINTS if c != "unbiased"])
def test_constraints_hold_and_do_not_lower_the_loss(name):
    rng = np.random.default_rng(4)
    prior = rng.dirichlet(np.ones(8))
    channel_model = make_model("squared", prior=prior, constraints=(name,))
    solution = solve(channel_model.program, channel_model.values([1.0]))
    M = solution["M"]
    assert solution.objective >= solve_model(make_model("squared", prior=prior)) - 1e-9
    distances = np.abs(np.arange(8)[None, :] - np.arange(8)[:, None])
    if name == "honest":
        assert (np.diag(M)[:, None] + 1e-8 >= M).all()
    if name == "symmetric":
        assert np.allclose(M, M[::-1, ::-1], atol=1e-8)
    for axis_name, table in (("row-monotone", M), ("column-monotone", M.T)):
        if name == axis_name:
            for y in range(8):
                for o in range(7):
                    closer, further = (o, o + 1) if o >= y else (o + 1, o)
                    assert distances[y, closer] < distances[y, further]
                    assert table[y, closer] >= table[y, further] - 1e-8


def test_an_unbiased_channel_on_a_grid_is_near_the_optimum_over_all_outputs():
    grid = np.arange(-40.0, 48)
    channel_model = make_model("squared", grid, constraints=("unbiased",))
    solution = solve(channel_model.program, channel_model.values([1.0]))
    assert np.allclose(solution["M"] @ grid, Y, atol=1e-6)
    best = find_unbiased_optimum(
        UnbiasedSearch(math.expm1(1.0), "cvxpy:clarabel", Options()), Y, UNIFORM
    )
    # Integer outputs are a restriction.
    assert best.bound - 1e-4 <= solution.objective <= best.objective * 1.01


def test_outputs_of_infinite_loss_get_no_mass():
    channel_model = make_model("poisson", Y)
    solution = solve(channel_model.program, channel_model.values([1.0]))
    assert solution["M"][:, 0].max() < 1e-9
    assert np.isfinite(solution.objective)


def test_every_named_loss_is_smallest_at_the_label():
    for name in LOSSES:
        loss = parse_loss(name.replace("τ", "0.4").replace(":h", ":2"))
        loss_at_label = loss(3.0, 3.0)
        other_losses = loss(np.array([1.0, 8.0]), 3.0)
        assert (other_losses > loss_at_label - 1e-12).all() or loss.kind == "poisson"


def test_losses_with_a_parameter():
    assert parse_loss("pinball:0.5")(1.0, 4.0) * 2 == parse_loss("absolute")(1.0, 4.0)
    assert parse_loss("huber:1")(0.0, 5.0) == 4.5


@pytest.mark.parametrize(
    "name", ["l2", "pinball", "pinball:1", "huber:0", "huber:nan", "squared:1"]
)
def test_invalid_names_of_losses_are_refused(name):
    with pytest.raises(ValueError, match="loss must be one of"):
        parse_loss(name)


def test_invalid_models_are_refused():
    with pytest.raises(ValueError, match="constraints must be among"):
        make_model(constraints=("fair",))
    with pytest.raises(ValueError, match="pairs must be listed"):
        make_model(has_delta=True)
    with pytest.raises(ValueError, match="every label among the outputs"):
        _ = make_model(outputs=Y + 0.5, constraints=("honest",)).program
