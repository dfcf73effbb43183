"""Tests of the frontier over patterns: closed forms, the fast method at random deltas, its proofs.

The frontier from level functions has its own tests.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from workbench.models.convex.requirements import MASS_ABOVE_RATIO
from workbench.models.convex.requirements import MASS_ABOVE_RATIO as PDP
from workbench.models.modulo import frontier as modulo_frontier
from workbench.models.modulo.fast import FastSession
from workbench.models.modulo.frontier import compute_delta_frontier
from workbench.models.modulo.program import ModuloModel, loss_vector
from workbench.models.oracles import error_rate_bounds
from workbench.models.oracles.rational_forms import theorem2
from workbench.models.oracles.single_distance import single_distance_law
from workbench.solvers.backend import get_backend

BD3 = ((1,), (2,), (3,))


@pytest.fixture
def over_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modulo_frontier, "has_levels", lambda noise: False)


def piece_at(pieces, delta):
    """The piece that holds a δ."""
    return next(piece for piece in pieces[::-1] if piece.delta_low <= delta)


def bound(piece, delta):
    """What is proven at a δ of a piece."""
    return np.interp(
        delta, (piece.delta_low, piece.delta_high), (piece.bound_low, piece.bound_high)
    )


def at(pieces, delta):
    return piece_at(pieces, delta).value_at(delta)


@pytest.mark.usefixtures("over_patterns")
@pytest.mark.parametrize(
    ("sizes", "shifts", "epsilon", "loss"),
    [
        ((9,), BD3, 1.5, "error-rate"),
        ((8,), ((1,), (2,)), 0.5, "squared"),
        ((7,), ((1,), (6,)), 1.0, "circular-squared"),
        ((3, 3), ((0, 1), (1, 0)), 1.0, "error-rate"),
    ],
)
def test_equals_the_milp_at_random_deltas(sizes, shifts, epsilon, loss):
    pieces = compute_delta_frontier(sizes, shifts, epsilon, loss)
    assert all(piece.is_proven for piece in pieces)
    assert pieces[0].delta_low == 0.0
    assert pieces[-1].delta_high == 1.0
    for before, after in itertools.pairwise(pieces):
        assert before.delta_high == after.delta_low
        assert after.value_low <= before.value_high + 1e-9
        assert after.value_high <= after.value_low + 1e-9
    model = ModuloModel(sizes, shifts, PDP, loss_vector(loss, sizes))
    rng = np.random.default_rng(5)
    with FastSession(model, get_backend("highs")) as session:
        for delta in (*rng.uniform(0, 1, 4), *10 ** rng.uniform(-4, -0.5, 6)):
            answer = session.solve(model.values([epsilon], float(delta)))
            assert at(pieces, delta) == pytest.approx(
                answer.objective, abs=1e-8 * max(1, answer.objective)
            )


@pytest.mark.usefixtures("over_patterns")
def test_one_difference_has_the_breakpoints_of_theorem_2():
    pieces = compute_delta_frontier((9,), ((1,),), 0.7)
    expected = sorted({0.0, 1.0, *(float(end(Fraction(math.exp(0.7)))) for end, _ in theorem2(9))})
    breakpoints = np.array([piece.delta_low for piece in pieces] + [1.0])
    assert breakpoints == pytest.approx(expected, abs=1e-8)
    for delta in np.linspace(0, 1, 41):
        assert at(pieces, delta) == pytest.approx(
            single_distance_law((9,), (1,), 0.7, delta).value, abs=1e-9
        )


@pytest.mark.usefixtures("over_patterns")
def test_corrected_table_1_lies_on_it():
    pieces = compute_delta_frontier((9,), BD3, 1.5, high=0.2)
    assert pieces[-1].delta_high == 0.2
    for delta, zero in (
        (0.0, 0.543191999),
        (0.1212, 0.549827669),
        (0.1238, 0.554833107),
        (0.1522, 0.558290369),
    ):
        assert 1.0 - at(pieces, delta) == pytest.approx(zero, abs=1e-9)


def single_shift(seed: int) -> tuple[tuple[int, ...], tuple[tuple[int], ...], float]:
    """These cases have one difference, directed or not. Their patterns were once given up."""
    rng = np.random.default_rng(seed)
    size, epsilon = int(rng.integers(4, 32)), round(float(rng.uniform(0.1, 4)), 2)
    shift = 1 if seed % 3 else int(rng.integers(1, max(2, size // 2)))
    return (
        (size,),
        ((shift,), (size - shift,)) if rng.integers(2) and 2 * shift != size else ((shift,),),
        epsilon,
    )


@pytest.mark.parametrize(
    "case",
    [
        ((8,), ((1,), (7,)), 1.2),
        ((30,), ((1,),), 0.72),
        ((8,), ((1,), (7,)), 2.91),
        *map(single_shift, range(12)),
    ],
    ids=str,
)
def test_no_piece_is_given_up(case):
    sizes, shifts, epsilon = case
    pieces = compute_delta_frontier(sizes, shifts, epsilon)
    assert all(piece.is_proven for piece in pieces)
    for delta in np.random.default_rng(1).uniform(0, 1, 5):
        law = error_rate_bounds(
            sizes, shifts, len(shifts) == 1, epsilon, float(delta), MASS_ABOVE_RATIO
        ).strongest
        if law.kind == "optimum":
            assert at(pieces, delta) == pytest.approx(law.value, abs=1e-8)


@pytest.mark.parametrize(
    ("sizes", "shifts", "epsilon"),
    [((11,), ((3,), (8,)), 1.44), ((16,), ((1,), (15,)), 0.91), ((10,), ((4,),), 1.22)],
)
def test_patterns_that_begin_steeply_are_traced_from_where_they_begin(sizes, shifts, epsilon):
    """The loss of some patterns falls by .3 while delta rises by 3e-8."""
    pieces = compute_delta_frontier(sizes, shifts, epsilon, "squared")
    assert all(piece.is_proven for piece in pieces)


@pytest.mark.usefixtures("over_patterns")
def test_pieces_that_are_not_proven_in_time_are_marked_upper_bounds():
    late = compute_delta_frontier((9,), BD3, 1.5, seconds=1e-9)
    full_frontier = compute_delta_frontier((9,), BD3, 1.5)
    assert not any(piece.is_proven for piece in late)
    for delta in (0.0, 0.05, 0.3, 0.9):
        assert at(late, delta) >= at(full_frontier, delta) - 1e-9
        assert bound(piece_at(late, delta), delta) <= at(full_frontier, delta) + 1e-9
    assert (
        max(piece.bound_low for piece in late) > 0.4
    )  # A program with nothing decided bounds the pieces for which there was no time.


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"high": 0.0}, "high must be"),
        ({"high": 1.5}, "high must be"),
        ({"epsilon": 0.0}, "epsilon > 0"),
        ({"epsilon": float("nan")}, "epsilon > 0"),
        ({"shifts": ()}, "needs shifts"),
        ({"loss": "worst-squared"}, "one number per noise value"),
        ({"loss": "mse"}, "loss must be one of"),
        ({"solver": "scip"}, "solver must give duals"),
    ],
)
def test_invalid_requests_are_refused(change, message):
    request = {"sizes": (5,), "shifts": ((1,),), "epsilon": 1.0, "loss": "error-rate"} | change
    with pytest.raises(ValueError, match=message):
        compute_delta_frontier(**request)


@pytest.mark.usefixtures("over_patterns")
def test_ctrl_c_inside_a_solve_is_not_swallowed(monkeypatch: pytest.MonkeyPatch):
    import workbench.models.modulo.frontier as module
    from workbench.solvers.solution import Termination

    original = module.PatternSearch.run

    def stopped(search, cutoff):
        breakpoints = original(search, cutoff)
        breakpoints.termination = Termination.INTERRUPTED
        return breakpoints

    monkeypatch.setattr(module.PatternSearch, "run", stopped)
    with pytest.raises(KeyboardInterrupt):
        module.compute_delta_frontier((9,), ((1,), (8,)), 1.0)
