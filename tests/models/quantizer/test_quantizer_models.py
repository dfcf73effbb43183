"""Tests of the linear programs of quantizers: laws at knots, and two-bin mechanisms.

They are compared with CVXPY statements and stored optima. Further tests cover symmetry, slopes from
dual values, and the smallest feasible ε.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from bench.bench_quantizer import state_law_program
from workbench.families.quantizer.laws import LawQuestion, make_exact_problem, make_grid_problem
from workbench.mechanisms.baselines.two_bin import equal_bins, two_bin
from workbench.models.quantizer.program import LawModel, smallest_epsilon, smallest_reach
from workbench.models.quantizer.two_bin import TwoBinShape
from workbench.privacy.audit import audit_extremes
from workbench.questions.density import normal_density, uniform_density
from workbench.solvers.backend import solve
from workbench.solvers.canonical import compile_program

LAW = LawQuestion(Fraction(1))
MIXED = replace(LAW, density=normal_density(mu=0.3, sigma=0.4))
HALF = replace(LAW, density=normal_density(mu=0.5, sigma=0.3), loss="0.5")
NEAR = replace(LAW, loss="squared", metric="absolute")
BINS = np.array([-3.0, -0.5, 0.5, 3.0])


def make_knots(bins: np.ndarray, extra: int = 0) -> np.ndarray:
    """Return -1, 1, the outputs between them, and `extra` evenly spaced inputs, sorted."""
    return np.unique(np.concatenate([[-1, 1], bins[np.abs(bins) < 1], np.linspace(-1, 1, extra)]))


@pytest.mark.parametrize(
    ("points", "m", "symmetric", "relation"),
    [
        (6, 4, False, "all"),
        (3, 5, True, "all"),
        (5, 3, False, "chain"),
    ],
)
def test_the_direct_program_has_the_optimum_of_the_cvxpy_statement(
    points: int, m: int, symmetric: bool, relation: str
):
    rng = np.random.default_rng(points)
    model = LawModel(points, m, symmetric, relation)
    compiled = compile_program(state_law_program(model), "stated")
    for _ in range(3):
        if symmetric:
            bins = np.linspace(-3, 3, m)
        else:
            bins = np.sort(np.concatenate([[-3, 3], rng.uniform(-1, 1, m - 2)]))
        point_values = np.sort(rng.uniform(0.1 if symmetric else -1, 1, points))
        odds = np.float64(rng.uniform(2, 4))
        if relation == "chain":
            odds = rng.uniform(2, 4, points - 1)
        values = model.values(odds, bins, point_values, rng.uniform(0, 2, (points, m)))
        direct_solution = solve(model.program, values)
        cvxpy_solution = solve(compiled, values)
        assert direct_solution.termination == cvxpy_solution.termination == "optimal"
        assert direct_solution.objective == pytest.approx(cvxpy_solution.objective, abs=1e-8)


@pytest.mark.parametrize(
    ("bins", "epsilon", "loss_of_few_knots", "loss_of_many_knots"),
    [
        ((-3, -0.5, 0.5, 3), 1.0, 1.798681, 1.700701),
        ((-3, -0.5, 0.5, 3), 1.5, 1.118612, 1.033045),
        ((-6, -0.4, 0.4, 6), 0.5, 3.725848, 3.677523),
    ],
)
def test_stored_optima_with_and_without_symmetry(
    bins: tuple[float, ...], epsilon: float, loss_of_few_knots: float, loss_of_many_knots: float
):
    outputs = np.array(bins, dtype=float)
    for extra, value in ((0, loss_of_few_knots), (41, loss_of_many_knots)):
        for symmetric in (True, False):
            problem = make_exact_problem(
                make_knots(outputs, extra), outputs=4, question=LAW, symmetric=symmetric
            )
            answer = problem.find_optimum(epsilon, outputs)
            assert answer is not None
            assert answer.value == pytest.approx(value, abs=1e-6)
            assert answer.solution.bound == pytest.approx(value, abs=1e-6)
            low = answer.laws.min(axis=0)
            high = answer.laws.max(axis=0)
            assert (high <= np.exp(epsilon) * low * (1 + 1e-9)).all()
            np.testing.assert_allclose(answer.laws @ outputs, problem.points, atol=1e-12)
            problem.close()


def test_two_outputs_allow_a_single_unbiased_law():
    """Its expected absolute loss for uniform inputs on [-1, 1] is (r² - 1/3)/r at the outputs ±r."""
    for reach in (2.2, 5.0):
        bins = np.array([-reach, reach])
        answer = make_exact_problem(
            make_knots(bins, 11), outputs=2, question=LAW, symmetric=True
        ).find_optimum(1.0, bins)
        assert answer is not None
        assert answer.value == pytest.approx((reach**2 - 1 / 3) / reach, abs=1e-9)


def test_further_knots_do_not_increase_the_loss():
    values = []
    for extra in (0, 5, 9, 17, 33):
        answer = make_exact_problem(
            make_knots(BINS, extra), outputs=4, question=MIXED, symmetric=False
        ).find_optimum(1.0, BINS)
        assert answer is not None
        values.append(answer.value)
    assert all(a >= b - 1e-9 for a, b in itertools.pairwise(values))


@pytest.mark.parametrize(
    "make_problem",
    [
        lambda: make_exact_problem(np.linspace(-1, 1, 11), outputs=4, question=LAW, symmetric=True),
        lambda: make_exact_problem(
            np.linspace(-1, 1, 8), outputs=4, question=HALF, symmetric=False
        ),
        lambda: make_grid_problem(np.linspace(-1, 1, 5), 4),
        lambda: make_exact_problem(
            np.linspace(-1, 1, 11), outputs=4, question=NEAR, symmetric=True
        ),
    ],
)
def test_slopes_from_dual_values_equal_differences_of_optima(make_problem):
    problem = make_problem()
    bins = np.array([-3.1, -0.53, 0.53, 3.1])
    optimum = problem.find_optimum(1.4, bins)
    assert optimum is not None
    step_size = 1e-6
    for k in (2, 3):
        mirrored = 3 - k  # Both are moved, so that symmetric problems stay symmetric.
        step = np.zeros(4)
        step[k] = step_size
        step[mirrored] = -step_size
        upper_optimum = problem.find_optimum(1.4, bins + step)
        lower_optimum = problem.find_optimum(1.4, bins - step)
        assert upper_optimum is not None
        assert lower_optimum is not None
        slope = (upper_optimum.value - lower_optimum.value) / (2 * step_size)
        slope_by_duals = optimum.slopes[k] - optimum.slopes[mirrored]
        # The difference quotient has an error of about the tolerance of the solver / step_size.
        assert slope_by_duals == pytest.approx(slope, abs=1e-4)


@pytest.mark.parametrize(("low", "high"), [(-3.0, 3.0), (-1.4, 5.0), (-4.0, 1.2)])
def test_the_program_is_feasible_from_the_smallest_epsilon_on(low: float, high: float):
    min_epsilon = smallest_epsilon(low, high)
    bins = np.array([low, -0.3, 0.6, high])
    problem = make_exact_problem(make_knots(bins, 5), outputs=4, question=LAW, symmetric=False)
    assert problem.find_optimum(min_epsilon * 0.999, bins) is None
    assert problem.find_optimum(min_epsilon * 1.001, bins) is not None


def test_no_epsilon_is_enough_without_a_margin():
    assert smallest_epsilon(low=-1.0, high=2.0) == float("inf")


def test_the_smallest_reach_inverts_the_smallest_epsilon():
    assert smallest_reach(smallest_epsilon(low=-3, high=3)) == pytest.approx(3.0)


def test_metric_laws_hold_between_all_real_inputs():
    problem = make_exact_problem(
        np.linspace(-1, 1, 21), outputs=4, question=replace(LAW, metric="absolute"), symmetric=True
    )
    bins = np.array([-3.0, -0.5, 0.5, 3.0])
    answer = problem.find_optimum(1.2, bins)
    assert answer is not None
    x = np.linspace(-1, 1, 161)
    law = np.stack([np.interp(x, problem.points, answer.laws[:, i]) for i in range(4)], axis=1)
    privacy_loss = np.abs(np.log(law[:, None]) - np.log(law[None, :])).max(axis=2)
    assert (privacy_loss <= 1.2 * np.abs(x[:, None] - x[None, :]) + 1e-8).all()


def make_shape(
    bins: tuple[float, ...] = (-3, -0.5, 0.5, 3), *, symmetric: bool = True
) -> TwoBinShape:
    """Return the outputs of a two-bin mechanism for uniform inputs on [-1, 1]."""
    inside = [b for b in bins if -1 < b < 1]
    return TwoBinShape(
        tuple(map(float, bins)),
        tuple(uniform_density().interval_masses([-1, *inside, 1]).tolist()),
        symmetric,
    )


def bound_two_masses(low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """Return (lower, upper) bounds of two masses with sum 1, the first one in [low, high]."""
    return np.array([low, 1 - high]), np.array([high, 1 - low])


def solve_sheet(sheet) -> float:
    """Return the optimum of a program sheet, or infinity if it is infeasible."""
    solution = solve(sheet.to_program("x"))
    return solution.objective if solution.is_optimal and solution.objective is not None else np.inf


def test_an_optimistic_program_is_a_lower_bound_for_the_slices_inside_it():
    """Each slice restricts the masses of ("l", 2), the choice between the two leftmost bins."""
    shape = make_shape()
    slice_values = [
        solve_sheet(shape.theorem5(1.0, {("l", 2): bound_two_masses(k / 100, (k + 1) / 100)}))
        for k in range(55, 80)
    ]
    min_value = min(slice_values)
    assert np.isfinite(min_value)
    wide_slice = {("l", 2): bound_two_masses(low=0.55, high=0.80)}
    relaxed_value = solve_sheet(shape.theorem5(1.0, wide_slice, optimistic=True))
    assert relaxed_value <= min_value + 1e-9
    # A program of a wide slice that is not optimistic is a restriction.
    restricted_value = solve_sheet(shape.theorem5(1.0, wide_slice))
    assert restricted_value >= min_value


def test_the_optimum_without_symmetry_is_at_most_that_of_symmetric_mechanisms():
    symmetric_optimum = solve_sheet(
        make_shape().theorem5(1.0, {("l", 2): bound_two_masses(low=0.67, high=0.68)})
    )
    free_shape = make_shape(symmetric=False)
    assert free_shape.bounded_vectors == [("l", 2)]
    optimum = solve_sheet(
        free_shape.theorem5(1.0, {("l", 2): bound_two_masses(low=0.67, high=0.68)})
    )
    assert optimum <= symmetric_optimum + 1e-9


@pytest.mark.parametrize("m", [8, 16])
def test_a_solution_of_theorem_6_is_private(m: int):
    bins = equal_bins(m, 3)
    shape = make_shape(tuple(float(b) for b in bins))
    sheet = shape.theorem6(epsilon=3.0, u=0.4 if m == 8 else 0.2, o_before=0.1, o_last=0.1)
    solution = solve(sheet.to_program("Theorem 6"))
    assert solution.is_optimal
    assert solution.x is not None
    left, right = shape.read_selections(solution.x)
    assert audit_extremes(two_bin(list(bins), left, right), 0).pure_epsilon <= 3.0


def test_three_bins_need_no_bounds_and_no_theorem_6():
    assert make_shape((-3, 0, 3)).bounded_vectors == []
    with pytest.raises(ValueError, match="at least two inside"):
        make_shape((-3, 0, 3)).theorem6(epsilon=1.0, u=1.0, o_before=0.1, o_last=0.1)
