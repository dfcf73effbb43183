"""Test the smallest loss of PDP noise for all δ against closed forms and designs at single δ.

A frontier is a list of pieces. A piece is an interval of δ with the loss and a lower bound at both
ends; between the ends the loss is linear. The error rate is 1 - f(0) for the PMF f of the noise.

The fixture `over_patterns` forces the search over patterns. Without it the default method answers:
level functions for the error rate, otherwise the search. Level functions have more tests in
test_modulo_levels.py.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from tests.models.modulo.frontier_pieces import bound_at, piece_at
from workbench.models.convex.requirements import MASS_ABOVE_RATIO as PDP
from workbench.models.modulo import frontier as modulo_frontier
from workbench.models.modulo.fast import FastSession
from workbench.models.modulo.frontier import compute_delta_frontier
from workbench.models.modulo.program import ModuloModel, loss_vector
from workbench.models.oracles import error_rate_bounds
from workbench.models.oracles.rational_forms import theorem2
from workbench.models.oracles.single_distance import single_distance_law
from workbench.solvers.backend import get_backend

BD3 = ((1,), (2,), (3,))  # One-sided neighbours at distance up to 3 (the paper's example).


@pytest.fixture
def over_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `compute_delta_frontier` search patterns where it would use level functions."""
    monkeypatch.setattr(modulo_frontier, "has_levels", lambda noise: False)


def loss_at(pieces, delta):
    """Return the smallest loss of a frontier at delta."""
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
def test_frontier_equals_designs_at_random_deltas(sizes, shifts, epsilon, loss):
    pieces = compute_delta_frontier(sizes, shifts, epsilon, loss)
    require_proven_and_falling(pieces)
    model = ModuloModel(sizes, shifts, PDP, loss_vector(loss, sizes))
    rng = np.random.default_rng(5)
    with FastSession(model, get_backend("highs")) as session:
        large_deltas = rng.uniform(low=0, high=1, size=4)
        small_deltas = 10 ** rng.uniform(low=-4, high=-0.5, size=6)
        for delta in (*large_deltas, *small_deltas):
            answer = session.solve(model.values([epsilon], float(delta)))
            tolerance = 1e-8 * max(1, answer.objective)
            assert loss_at(pieces, delta) == pytest.approx(answer.objective, abs=tolerance)


def require_proven_and_falling(pieces):
    """Require proven pieces that cover [0, 1], and a loss that never rises with δ."""
    assert all(piece.is_proven for piece in pieces)
    assert pieces[0].delta_low == 0.0
    assert pieces[-1].delta_high == 1.0
    for previous, piece in itertools.pairwise(pieces):
        assert previous.delta_high == piece.delta_low
        assert piece.value_low <= previous.value_high + 1e-9
        assert piece.value_high <= piece.value_low + 1e-9


@pytest.mark.usefixtures("over_patterns")
def test_one_difference_has_the_breakpoints_of_theorem_2():
    pieces = compute_delta_frontier(sizes=(9,), shifts=((1,),), epsilon=0.7)
    exp_epsilon = Fraction(math.exp(0.7))
    # Theorem 2 of Kadam et al. 2024 has pieces (end of the piece as a function of e^ε, formula).
    expected = sorted({0.0, 1.0, *(float(end(exp_epsilon)) for end, _ in theorem2(9))})
    breakpoints = np.array([piece.delta_low for piece in pieces] + [1.0])
    assert breakpoints == pytest.approx(expected, abs=1e-8)
    for delta in np.linspace(0, 1, 41):
        law = single_distance_law(sizes=(9,), shift=(1,), epsilon=0.7, delta=delta)
        assert loss_at(pieces, delta) == pytest.approx(law.value, abs=1e-9)


@pytest.mark.usefixtures("over_patterns")
def test_frontier_contains_the_corrected_table_1():
    """Values are Table 1 of Kadam et al. 2024, corrected: δ and the largest f(0)."""
    pieces = compute_delta_frontier(sizes=(9,), shifts=BD3, epsilon=1.5, high=0.2)
    assert pieces[-1].delta_high == 0.2
    for delta, largest_f0 in (
        (0.0, 0.543191999),
        (0.1212, 0.549827669),
        (0.1238, 0.554833107),
        (0.1522, 0.558290369),
    ):
        assert 1.0 - loss_at(pieces, delta) == pytest.approx(largest_f0, abs=1e-9)


def draw_single_shift(seed: int) -> tuple[tuple[int, ...], tuple[tuple[int], ...], float]:
    """Draw (sizes, shifts, epsilon) with one difference, directed or in both directions."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(4, 32))
    epsilon = round(float(rng.uniform(0.1, 4)), 2)
    shift = 1 if seed % 3 else int(rng.integers(1, max(2, size // 2)))
    is_symmetric = rng.integers(2) and 2 * shift != size
    shifts = ((shift,), (size - shift,)) if is_symmetric else ((shift,),)
    return (size,), shifts, epsilon


@pytest.mark.parametrize(
    "case",
    [
        ((8,), ((1,), (7,)), 1.2),
        ((30,), ((1,),), 0.72),
        ((8,), ((1,), (7,)), 2.91),
        *map(draw_single_shift, range(12)),
    ],
    ids=str,
)
def test_all_pieces_are_proven_and_equal_the_closed_form(case):
    """These cases have pieces that are hard to prove."""
    sizes, shifts, epsilon = case
    pieces = compute_delta_frontier(sizes, shifts, epsilon)
    assert all(piece.is_proven for piece in pieces)
    for delta in np.random.default_rng(1).uniform(low=0, high=1, size=5):
        is_directed = len(shifts) == 1
        form = error_rate_bounds(
            sizes, shifts, is_directed, epsilon, delta=float(delta), requires=PDP
        ).strongest
        if form.kind == "optimum":
            assert loss_at(pieces, delta) == pytest.approx(form.value, abs=1e-8)


@pytest.mark.parametrize(
    ("sizes", "shifts", "epsilon"),
    [((11,), ((3,), (8,)), 1.44), ((16,), ((1,), (15,)), 0.91), ((10,), ((4,),), 1.22)],
)
def test_patterns_with_a_steep_start_are_traced(sizes, shifts, epsilon):
    """The loss of some patterns falls by .3 while delta rises by 3e-8."""
    pieces = compute_delta_frontier(sizes, shifts, epsilon, "squared")
    assert all(piece.is_proven for piece in pieces)


@pytest.mark.usefixtures("over_patterns")
def test_a_frontier_without_time_has_upper_and_lower_bounds():
    stopped = compute_delta_frontier(sizes=(9,), shifts=BD3, epsilon=1.5, seconds=1e-9)
    full_frontier = compute_delta_frontier(sizes=(9,), shifts=BD3, epsilon=1.5)
    assert not any(piece.is_proven for piece in stopped)
    for delta in (0.0, 0.05, 0.3, 0.9):
        min_loss = loss_at(full_frontier, delta)
        assert loss_at(stopped, delta) >= min_loss - 1e-9
        assert bound_at(piece_at(stopped, delta), delta) <= min_loss + 1e-9
    # Pieces that were not searched get the bound of the root relaxation.
    assert max(piece.bound_low for piece in stopped) > 0.4


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
    from workbench.solvers.solution import Termination

    original = modulo_frontier.PatternSearch.run

    def run_interrupted(search, cutoff):
        """Search, and report that Ctrl-C has ended the search."""
        outcome = original(search, cutoff)
        outcome.termination = Termination.INTERRUPTED
        return outcome

    monkeypatch.setattr(modulo_frontier.PatternSearch, "run", run_interrupted)
    with pytest.raises(KeyboardInterrupt):
        compute_delta_frontier(sizes=(9,), shifts=((1,), (8,)), epsilon=1.0)
