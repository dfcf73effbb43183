"""Tests of the frontier from level functions: pattern search, brute force, stopped searches."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from workbench.models.convex.requirements import MASS_ABOVE_RATIO as PDP
from workbench.models.modulo import fast as modulo_fast
from workbench.models.modulo import frontier as modulo_frontier
from workbench.models.modulo.fast import FastSession
from workbench.models.modulo.frontier import compute_delta_frontier
from workbench.models.modulo.level_frontier import compute_level_frontier
from workbench.models.modulo.levels import LevelSearch, OutOfTime
from workbench.models.modulo.program import ModuloModel, loss_vector, shift_positions
from workbench.solvers.backend import get_backend
from workbench.solvers.search import Deadline


def piece_at(pieces, delta):
    """The piece that holds a δ."""
    return next(piece for piece in pieces[::-1] if piece.delta_low <= delta)


def bound(piece, delta):
    """What is proven at a δ of a piece."""
    return np.interp(
        delta, (piece.delta_low, piece.delta_high), (piece.bound_low, piece.bound_high)
    )


def every_level_function(sizes, shifts, epsilon):
    """(S, T) of all level functions of a small group, by trying them all."""
    N, a = math.prod(sizes), math.exp(-epsilon)
    steps = [shift_positions(sizes, mu) for mu in shifts]
    for chosen in itertools.product((*range(1, N), 99), repeat=N - 1):
        levels = np.array((0, *chosen))
        weights = np.where(levels < 99, a**levels, 0.0)
        yield (
            max(weights[(levels[step] > levels + 1) & (levels < 99)].sum() for step in steps),
            weights.sum(),
        )


@pytest.mark.parametrize(
    ("sizes", "shifts", "epsilon"),
    [
        ((5,), ((1,),), 0.4),
        ((5,), ((1,), (4,)), 1.0),
        ((5,), ((1,), (2,)), 0.3),
        ((2, 2), ((0, 1), (1, 0)), 0.5),
    ],
)
def test_the_staircase_is_that_of_all_level_functions(sizes, shifts, epsilon):
    search = LevelSearch(sizes, shifts, epsilon)
    compute_level_frontier(search, 1.0)
    every = np.array(list(every_level_function(sizes, shifts, epsilon)))
    for bound in np.random.default_rng(0).uniform(0, 1, 50):
        min_total = every[every[:, 0] <= bound + 1e-12, 1].min()
        stair_total = search.stairs.t[
            np.searchsorted(search.stairs.s, bound + 1e-12, side="right") - 1
        ]
        assert stair_total == pytest.approx(min_total, rel=1e-9)


@pytest.mark.parametrize(
    ("sizes", "shifts", "epsilon"),
    [
        ((9,), ((1,), (2,), (3,)), 1.5),
        ((10,), ((1,), (3,), (9,), (7,)), 0.5),
        ((3, 3), ((0, 1), (1, 0), (1, 1)), 0.6),
        ((8,), ((2,), (6,), (4,)), 0.9),
        ((7,), ((1,), (1,), (0,)), 0.3),
    ],
)
def test_both_frontiers_agree(monkeypatch, sizes, shifts, epsilon):
    by_levels = compute_delta_frontier(sizes, shifts, epsilon)
    monkeypatch.setattr(modulo_frontier, "has_levels", lambda noise: False)
    by_patterns = compute_delta_frontier(sizes, shifts, epsilon)
    assert all(piece.is_proven for piece in by_levels)
    assert (by_levels[0].delta_low, by_levels[-1].delta_high) == (0.0, 1.0)
    for before, after in itertools.pairwise(by_levels):
        assert before.delta_high == after.delta_low
    for delta in np.random.default_rng(1).uniform(0, 1, 40) ** 3:
        expected = piece_at(by_patterns, delta).value_at(delta)
        assert piece_at(by_levels, delta).value_at(delta) == pytest.approx(expected, abs=3e-9)


@pytest.mark.parametrize("shifts", [((1,), (2,), (3,)), ((1,), (2,), (26,), (25,))])
def test_a_group_of_27_against_the_fast_method(monkeypatch, shifts):
    monkeypatch.setattr(
        modulo_fast, "is_searchable", lambda noise: False
    )  # Patterns are searched then, with linear programs.
    pieces = compute_delta_frontier((27,), shifts, 1.0)
    assert all(piece.is_proven for piece in pieces)
    model = ModuloModel((27,), shifts, PDP, loss_vector("error-rate", (27,)))
    with FastSession(model, get_backend("highs")) as session:
        for delta in (1e-4, 0.003, 0.04, 0.3, 0.8):
            solution = session.solve(model.values([1.0], delta))
            assert solution.is_optimal
            assert piece_at(pieces, delta).value_at(delta) == pytest.approx(
                solution.objective, abs=2e-9
            )


def test_sixty_four_answers_are_wholly_proven():
    pieces = compute_delta_frontier((64,), ((1,), (2,), (3,)), 1.0)
    assert all(piece.is_proven for piece in pieces)
    assert len(pieces) > 1000


def test_pieces_that_are_not_proven_in_time_are_intervals():
    shifts = ((1,), (2,), (29,), (28,))
    full_frontier = compute_delta_frontier((30,), shifts, 0.7)
    search = LevelSearch((30,), shifts, 0.7)
    for _ in range(3):
        search.prove(search.stairs.proven_from * 0.8, search.stairs.proven_from)
    search.deadline = Deadline(0.0)
    with pytest.raises(OutOfTime):
        search.prove(0.0, search.stairs.proven_from)
    pieces = compute_level_frontier(search, 1.0)
    assert {piece.is_proven for piece in pieces} == {True, False}
    for delta in np.linspace(0, 1, 101):
        truth, piece = piece_at(full_frontier, delta).value_at(delta), piece_at(pieces, delta)
        assert bound(piece, delta) - 1e-9 <= truth <= piece.value_at(delta) + 1e-9
        assert bound(piece, delta) <= piece.value_at(delta)
        assert not piece.is_proven or piece.value_at(delta) == pytest.approx(truth, abs=2e-9)
    with pytest.raises(ValueError, match="not 0"):
        LevelSearch((5,), ((0,),), 1.0)
