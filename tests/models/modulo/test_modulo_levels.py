"""Tests of the smallest error rate of PDP noise for all δ, as computed from level functions.

A level function gives each noise value a level, an integer or infinity; its mass is proportional to
e^(-ε level). T is the sum of these weights, and S the largest weight that one shift breaks (see the
header of `workbench.models.modulo.levels`). The result is a frontier: a list of pieces in δ.

It is compared with brute force over all level functions, with the search over patterns, and with
designs at single δ. A search that is stopped must still give proven intervals.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tests.models.modulo.frontier_pieces import bound_at, piece_at
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


def list_level_functions(sizes, shifts, epsilon):
    """Yield (S, T) of every level function of a small group (see the header of `levels`)."""
    infinite_level = 99
    N = math.prod(sizes)
    a = math.exp(-epsilon)
    steps = [shift_positions(sizes, mu) for mu in shifts]
    for later_levels in itertools.product((*range(1, N), infinite_level), repeat=N - 1):
        levels = np.array((0, *later_levels))
        is_finite = levels < infinite_level
        weights = np.where(is_finite, a**levels, 0.0)
        S = max(weights[(levels[step] > levels + 1) & is_finite].sum() for step in steps)
        yield S, weights.sum()


@pytest.mark.parametrize(
    ("sizes", "shifts", "epsilon"),
    [
        ((5,), ((1,),), 0.4),
        ((5,), ((1,), (4,)), 1.0),
        ((5,), ((1,), (2,)), 0.3),
        ((2, 2), ((0, 1), (1, 0)), 0.5),
    ],
)
def test_staircase_has_the_smallest_T_of_all_level_functions(sizes, shifts, epsilon):
    search = LevelSearch(sizes, shifts, epsilon)
    compute_level_frontier(search, high=1.0)
    S, T = np.array(list(list_level_functions(sizes, shifts, epsilon))).T
    # 1e-12 keeps every bound above 0.
    for max_S in np.random.default_rng(0).uniform(low=0, high=1, size=50) + 1e-12:
        stair = np.searchsorted(search.stairs.s, max_S, side="right") - 1
        assert search.stairs.t[stair] == pytest.approx(T[max_S >= S].min(), rel=1e-9)


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
def test_level_functions_and_patterns_give_the_same_frontier(monkeypatch, sizes, shifts, epsilon):
    by_levels = compute_delta_frontier(sizes, shifts, epsilon)
    monkeypatch.setattr(modulo_frontier, "has_levels", lambda noise: False)
    by_patterns = compute_delta_frontier(sizes, shifts, epsilon)
    assert all(piece.is_proven for piece in by_levels)
    assert (by_levels[0].delta_low, by_levels[-1].delta_high) == (0.0, 1.0)
    for previous, piece in itertools.pairwise(by_levels):
        assert previous.delta_high == piece.delta_low
    for delta in np.random.default_rng(1).uniform(low=0, high=1, size=40) ** 3:
        expected = piece_at(by_patterns, delta).value_at(delta)
        assert piece_at(by_levels, delta).value_at(delta) == pytest.approx(expected, abs=3e-9)


@pytest.mark.parametrize("shifts", [((1,), (2,), (3,)), ((1,), (2,), (26,), (25,))])
def test_frontier_of_27_answers_equals_designs_at_single_deltas(monkeypatch, shifts):
    # Without level functions the designs come from a search over patterns by linear programs.
    monkeypatch.setattr(modulo_fast, "is_searchable", lambda noise: False)
    pieces = compute_delta_frontier(sizes=(27,), shifts=shifts, epsilon=1.0)
    assert all(piece.is_proven for piece in pieces)
    model = ModuloModel((27,), shifts, PDP, loss_vector("error-rate", (27,)))
    with FastSession(model, get_backend("highs")) as session:
        for delta in (1e-4, 0.003, 0.04, 0.3, 0.8):
            solution = session.solve(model.values([1.0], delta))
            assert solution.is_optimal
            assert piece_at(pieces, delta).value_at(delta) == pytest.approx(
                solution.objective, abs=2e-9
            )


def test_all_pieces_of_64_answers_are_proven():
    pieces = compute_delta_frontier(sizes=(64,), shifts=((1,), (2,), (3,)), epsilon=1.0)
    assert all(piece.is_proven for piece in pieces)
    assert len(pieces) > 1000


def test_pieces_of_a_stopped_search_enclose_the_smallest_error_rate():
    shifts = ((1,), (2,), (29,), (28,))
    full_frontier = compute_delta_frontier(sizes=(30,), shifts=shifts, epsilon=0.7)
    search = LevelSearch(sizes=(30,), shifts=shifts, epsilon=0.7)
    for _ in range(3):
        search.prove(search.stairs.proven_from * 0.8, search.stairs.proven_from)
    search.deadline = Deadline(0.0)
    with pytest.raises(OutOfTime):
        search.prove(0.0, search.stairs.proven_from)
    pieces = compute_level_frontier(search, high=1.0)
    assert {piece.is_proven for piece in pieces} == {True, False}
    for delta in np.linspace(0, 1, 101):
        error_rate = piece_at(full_frontier, delta).value_at(delta)
        piece = piece_at(pieces, delta)
        assert bound_at(piece, delta) - 1e-9 <= error_rate <= piece.value_at(delta) + 1e-9
        assert bound_at(piece, delta) <= piece.value_at(delta)
        if piece.is_proven:
            assert piece.value_at(delta) == pytest.approx(error_rate, abs=2e-9)


def test_a_search_needs_a_shift_that_is_not_zero():
    with pytest.raises(ValueError, match="not 0"):
        LevelSearch(sizes=(5,), shifts=((0,),), epsilon=1.0)
