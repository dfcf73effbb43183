"""Tests of the optimal PDP noise at one δ, as found by the search over level functions.

It is compared with the mixed-integer program of Kadam et al. 2024 (the literal MILP) and with the
search over patterns. A search that is stopped must claim no proof.

The error rate is 1 - f(0) for the PMF f of the noise. A pair is a noise value η and a difference μ
of answers (a shift); it is broken if f(η) > e^ε f(η + μ). A pattern lists the broken pairs. A level
function has the optimal masses for one choice of them (`workbench.models.modulo.level_noise`).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import workbench as wb
from workbench.models.convex.requirements import MASS_ABOVE_RATIO as PDP
from workbench.models.modulo import fast as modulo_fast
from workbench.models.modulo import level_frontier as modulo_level_frontier
from workbench.models.modulo.fast import FastSession
from workbench.models.modulo.level_frontier import (
    BOUND_MARGIN,
    MAX_DECISIONS,
    LevelOptimum,
    is_searchable,
    search_level_optimum,
)
from workbench.models.modulo.level_noise import distance_weights, simplest_noise
from workbench.models.modulo.patterns import NoiseProblem
from workbench.models.modulo.program import ModuloModel, loss_vector
from workbench.solvers.backend import Options, get_backend, solve

BD3 = ((1,), (2,), (3,))  # One-sided neighbours at distance up to 3.
GRID = ((0, 1), (1, 0), (1, 1))  # One-sided neighbours in a product of two groups.
SHIFTS_25 = ((1,), (2,), (3,), (24,), (23,), (22,))  # BD3 in both directions, modulo 25.


def error_rate_problem(sizes, shifts, epsilon: float, delta: float) -> NoiseProblem:
    """Return the problem of the smallest error rate at one ε and one δ."""
    return NoiseProblem(
        sizes,
        shifts,
        np.full(len(shifts), math.exp(epsilon)),
        loss_vector("error-rate", sizes),
        delta,
    )


def search_from_simplest_noise(noise: NoiseProblem, **limits) -> LevelOptimum:
    """Search level functions, starting from the simplest noise. limits: e.g. max_decisions."""
    w = distance_weights(noise)
    return search_level_optimum(noise, w, simplest_noise(noise, w), **limits)


def check_pmf(noise: NoiseProblem, answer: LevelOptimum) -> None:
    """Check that f has the value, breaks exactly the stated pairs, and at most delta of mass."""
    f = answer.best.pmf
    broken = answer.best.broken_pairs
    assert f.sum() == pytest.approx(1.0, abs=1e-12)
    assert f.min() >= 0.0
    assert 1.0 - f[0] == pytest.approx(answer.best.value, abs=1e-12)
    for e, target, pairs in zip(noise.exp_epsilon, noise.targets(), broken, strict=True):
        assert (pairs == (f > e * f[target] * (1.0 + 1e-9))).all()
        assert f[pairs].sum() <= noise.delta * (1.0 + 1e-9)


@pytest.mark.parametrize(
    ("sizes", "shifts"),
    [
        ((9,), BD3),
        ((9,), (*BD3, (8,), (7,), (6,))),
        ((4, 3), ((0, 1), (1, 0))),
        ((8,), ((1,), (4,), (5,))),
        ((10,), ((2,), (5,), (0,))),
        ((7,), ((1,), (2,), (6,))),
    ],
)
def test_optimum_equals_the_literal_milp(monkeypatch, sizes, shifts):
    # Groups of at most this size would be left to the search over patterns.
    monkeypatch.setattr(modulo_level_frontier, "MAX_PATTERN_ELEMENTS", 0)
    model = ModuloModel(sizes, shifts, PDP, loss_vector("error-rate", sizes))
    for epsilon, delta in ((0.3, 0.12), (0.5, 0.2), (1.5, 0.1212), (1.5, 0.02), (4.0, 0.6)):
        noise = error_rate_problem(sizes, shifts, epsilon, delta)
        assert is_searchable(noise)
        answer = search_from_simplest_noise(noise)
        assert answer.is_proven
        literal = solve(model.program, model.values([epsilon], delta), options=Options(gap=1e-9))
        assert answer.best.value == pytest.approx(literal.objective, abs=1e-8)
        check_pmf(noise, answer)


@pytest.mark.parametrize(
    ("sizes", "shifts", "epsilon", "delta"),
    [
        ((5, 5), GRID, 1.0, 0.1),
        ((5, 5), GRID, 0.5, 0.1),
        ((25,), SHIFTS_25, 1.0, 0.1),
        ((33,), ((4,), (10,), (25,), (31,)), 1.5, 0.1),
        ((40,), BD3, 0.5, 0.02),
        ((40,), BD3, 1.5, 0.1),
    ],
)
def test_optimum_equals_the_search_over_patterns(monkeypatch, sizes, shifts, epsilon, delta):
    noise = error_rate_problem(sizes, shifts, epsilon, delta)
    answer = search_from_simplest_noise(noise)
    assert answer.is_proven
    assert answer.best.value < simplest_noise(noise, distance_weights(noise)).value - 1e-6
    check_pmf(noise, answer)
    model = ModuloModel(sizes, shifts, PDP, loss_vector("error-rate", sizes))
    with FastSession(model, get_backend("highs")) as session:
        by_levels = session.solve(model.values([epsilon], delta))
        monkeypatch.setattr(modulo_fast, "is_searchable", lambda noise: False)
        by_patterns = session.solve(model.values([epsilon], delta))
    # The two solutions really come from different methods.
    assert by_levels.notes[0].startswith("proven over level functions")
    assert by_patterns.notes[0].startswith("proven over violation patterns")
    assert (by_levels.solver, by_patterns.solver) == ("level functions", "highs")
    assert by_levels.objective == pytest.approx(by_patterns.objective, abs=1e-12)
    assert by_levels.objective - by_levels.bound == pytest.approx(BOUND_MARGIN, rel=1e-3)
    assert by_levels.bound <= by_patterns.objective
    # The violations are those of the literal MILP, in its own variables.
    assert by_levels.residuals.max_violation <= 1e-9
    assert by_levels.is_optimal


def test_a_stopped_search_claims_nothing_and_patterns_continue(monkeypatch):
    noise = error_rate_problem(sizes=(25,), shifts=SHIFTS_25, epsilon=1.0, delta=0.1)
    start_value = simplest_noise(noise, distance_weights(noise)).value
    for max_decisions in (0, 1000):
        answer = search_from_simplest_noise(noise, max_decisions=max_decisions)
        assert not answer.is_proven
        assert answer.best.value <= start_value
        check_pmf(noise, answer)
    monkeypatch.setattr(
        modulo_fast,
        "search_level_optimum",
        lambda noise, w, best_known, **_: search_level_optimum(
            noise, w, best_known, max_decisions=200
        ),
    )
    model = ModuloModel((25,), noise.shifts, PDP, noise.loss)
    with FastSession(model, get_backend("highs")) as session:
        solution = session.solve(model.values([1.0], 0.1))
    assert solution.notes[0].startswith("proven over violation patterns")
    assert solution.objective == pytest.approx(
        search_from_simplest_noise(noise).best.value, abs=1e-12
    )


def test_a_level_function_whose_pmf_misses_its_value_proves_nothing(monkeypatch):
    """The PMF is judged by its own sums, not by those of the search."""
    noise = error_rate_problem(sizes=(5, 5), shifts=GRID, epsilon=1.0, delta=0.1)
    w = distance_weights(noise)
    original = modulo_level_frontier._OptimumSearch.rebuild_levels

    def forget_the_last_level(self, trace, dropped_mask):
        """Rebuild the level function, but give no mass to the elements of its largest level."""
        level = original(self, trace, dropped_mask)
        level[level == level[np.isfinite(level)].max()] = np.inf
        return level

    monkeypatch.setattr(
        modulo_level_frontier._OptimumSearch, "rebuild_levels", forget_the_last_level
    )
    answer = search_level_optimum(noise, w, simplest_noise(noise, w))
    assert not answer.is_proven
    check_pmf(noise, answer)


SEARCHABLE_NOISE = error_rate_problem(sizes=(25,), shifts=BD3, epsilon=1.0, delta=0.1)


def test_error_rates_at_one_epsilon_on_medium_groups_are_searchable():
    assert is_searchable(SEARCHABLE_NOISE)


@pytest.mark.parametrize(
    "noise",
    [
        # Small groups are left to the patterns, so that level functions can judge the result.
        error_rate_problem(sizes=(24,), shifts=BD3, epsilon=1.0, delta=0.1),
        error_rate_problem(sizes=(100_001,), shifts=BD3, epsilon=1.0, delta=0.1),
        error_rate_problem(sizes=(25,), shifts=BD3, epsilon=1e-3, delta=0.1),
        error_rate_problem(sizes=(25,), shifts=BD3, epsilon=1.0, delta=1.0),
        replace(SEARCHABLE_NOISE, exp_epsilon=np.exp([1.0, 1.0, 2.0])),
        replace(SEARCHABLE_NOISE, loss=loss_vector("squared", (25,))),
        replace(SEARCHABLE_NOISE, delta=None, max_loss=0.5),
    ],
    ids=[
        "small group",
        "huge group",
        "small epsilon",
        "delta of 1",
        "several epsilons",
        "other loss",
        "minimal delta",
    ],
)
def test_other_noise_is_not_searchable_over_level_functions(noise):
    assert not is_searchable(noise)


def test_a_small_gap_or_a_node_limit_uses_patterns():
    model = ModuloModel((25,), SHIFTS_25, PDP, loss_vector("error-rate", (25,)))
    for options in (Options(gap=1e-12), Options(node_limit=3)):
        with FastSession(model, get_backend("highs"), options) as session:
            answer = session.solve(model.values([1.5], 0.1))
        assert answer.nodes > 0


def test_a_tiny_time_limit_still_gives_a_pmf():
    model = ModuloModel((25,), SHIFTS_25, PDP, loss_vector("error-rate", (25,)))
    with FastSession(model, get_backend("highs"), Options(time_limit=1e-9)) as session:
        answer = session.solve(model.values([1.5], 0.1))
    assert not answer.is_optimal
    assert answer["f"].sum() == pytest.approx(1.0)


def test_patterns_get_most_of_the_time_limit(monkeypatch):
    """A stopped search over level functions has no bound, but one over patterns has."""
    calls = []

    def record_limits(noise, w, best_known, deadline, max_decisions):
        """Record the limits of a search over level functions, and stop it at once."""
        calls.append((deadline.seconds, max_decisions))
        return search_level_optimum(noise, w, best_known, deadline, max_decisions=0)

    monkeypatch.setattr(modulo_fast, "search_level_optimum", record_limits)
    model = ModuloModel((25,), SHIFTS_25, PDP, loss_vector("error-rate", (25,)))
    for limit in (None, 1.0, 600.0):
        with FastSession(model, get_backend("highs"), Options(time_limit=limit)) as session:
            answer = session.solve(model.values([1.5], 0.1))
        assert answer.bound is not None
        seconds, max_decisions = calls[-1]
        assert seconds == (None if limit is None else 0.5 * limit)
        assert max_decisions == (MAX_DECISIONS if limit != 1.0 else 50_000)


@pytest.mark.parametrize(("epsilon", "delta"), [("18", "0.5"), ("20", "0.9999999999")])
def test_an_absolute_proof_is_reported_if_the_error_rate_is_tiny(epsilon, delta):
    design = wb.design(
        wb.ModuloNoise(n=30, max_shift=3),
        epsilon=epsilon,
        delta=delta,
        notion="pdp",
        loss="error-rate",
    )
    assert 0 <= design.bound <= design.objective
    has_absolute_proof = any("Proven in absolute terms" in sentence for sentence in design.words)
    assert design.gap <= 2e-6 or has_absolute_proof


def test_no_absolute_proof_is_reported_if_the_error_rate_is_large():
    design = wb.design(
        wb.ModuloNoise(n=30, max_shift=3), epsilon=1, delta="0.1", notion="pdp", loss="error-rate"
    )
    assert not any("Proven in absolute terms" in sentence for sentence in design.words)
