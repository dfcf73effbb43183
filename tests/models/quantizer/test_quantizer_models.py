"""Tests of the quantizer models: CVXPY statements, references, symmetry, duals, feasibility."""

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
MIXED = replace(LAW, density=normal_density(0.3, 0.4))
HALF = replace(LAW, density=normal_density(0.5, 0.3), loss="0.5")
NEAR = replace(LAW, loss="squared", metric="absolute")
BINS = np.array([-3.0, -0.5, 0.5, 3.0])


def knots(bins: np.ndarray, extra: int = 0) -> np.ndarray:
    return np.unique(np.concatenate([[-1, 1], bins[np.abs(bins) < 1], np.linspace(-1, 1, extra)]))


@pytest.mark.parametrize(
    ("points", "m", "symmetric", "relation"),
    [
        (6, 4, False, "all"),
        (3, 5, True, "all"),
        (5, 3, False, "chain"),
    ],
)
def test_the_direct_program_is_the_cvxpy_statement(
    points: int, m: int, symmetric: bool, relation: str
):
    rng = np.random.default_rng(points)
    model = LawModel(points, m, symmetric, relation)
    compiled = compile_program(state_law_program(model), "stated")
    for _ in range(3):
        bins = (
            np.linspace(-3, 3, m)
            if symmetric
            else np.sort(np.concatenate([[-3, 3], rng.uniform(-1, 1, m - 2)]))
        )
        point_values = np.sort(rng.uniform(0.1 if symmetric else -1, 1, points))
        odds = (
            rng.uniform(2, 4, points - 1) if relation == "chain" else np.float64(rng.uniform(2, 4))
        )
        values = model.values(odds, bins, point_values, rng.uniform(0, 2, (points, m)))
        one, two = solve(model.program, values), solve(compiled, values)
        assert one.termination == two.termination == "optimal"
        assert one.objective == pytest.approx(two.objective, abs=1e-8)


@pytest.mark.parametrize(
    ("bins", "epsilon", "few", "many"),
    [
        ((-3, -0.5, 0.5, 3), 1.0, 1.798681, 1.700701),
        ((-3, -0.5, 0.5, 3), 1.5, 1.118612, 1.033045),
        ((-6, -0.4, 0.4, 6), 0.5, 3.725848, 3.677523),
    ],
)
def test_references_with_and_without_symmetry(
    bins: tuple[float, ...], epsilon: float, few: float, many: float
):
    outputs = np.array(bins, dtype=float)
    for extra, value in ((0, few), (41, many)):
        for symmetric in (True, False):
            problem = make_exact_problem(knots(outputs, extra), 4, LAW, symmetric=symmetric)
            answer = problem.find_optimum(epsilon, outputs)
            assert answer is not None
            assert answer.value == pytest.approx(value, abs=1e-6)
            assert answer.solution.bound == pytest.approx(value, abs=1e-6)
            low, high = answer.laws.min(axis=0), answer.laws.max(axis=0)
            assert (high <= np.exp(epsilon) * low * (1 + 1e-9)).all()
            np.testing.assert_allclose(answer.laws @ outputs, problem.points, atol=1e-12)
            problem.close()


def test_two_outputs_have_one_law():
    for reach in (2.2, 5.0):
        bins = np.array([-reach, reach])
        answer = make_exact_problem(knots(bins, 11), 2, LAW, symmetric=True).find_optimum(1.0, bins)
        assert answer is not None
        assert answer.value == pytest.approx((reach**2 - 1 / 3) / reach, abs=1e-9)


def test_extra_knots_never_hurt():
    values = []
    for extra in (0, 5, 9, 17, 33):
        answer = make_exact_problem(knots(BINS, extra), 4, MIXED, symmetric=False).find_optimum(
            1.0, BINS
        )
        assert answer is not None
        values.append(answer.value)
    assert all(a >= b - 1e-9 for a, b in itertools.pairwise(values))
    assert values[0] >= values[1] - 1e-9


@pytest.mark.parametrize(
    "make",
    [
        lambda: make_exact_problem(np.linspace(-1, 1, 11), 4, LAW, symmetric=True),
        lambda: make_exact_problem(np.linspace(-1, 1, 8), 4, HALF, symmetric=False),
        lambda: make_grid_problem(np.linspace(-1, 1, 5), 4),
        lambda: make_exact_problem(np.linspace(-1, 1, 11), 4, NEAR, symmetric=True),
    ],
)
def test_slopes_from_duals(make):
    problem = make()
    bins = np.array([-3.1, -0.53, 0.53, 3.1])
    base = problem.find_optimum(1.4, bins)
    assert base is not None
    for k in (2, 3):  # Mirrored pairs keep symmetric problems symmetric.
        step = np.zeros(4)
        step[k], step[3 - k] = 1e-6, -1e-6
        up, down = problem.find_optimum(1.4, bins + step), problem.find_optimum(1.4, bins - step)
        assert up is not None
        assert down is not None
        numeric = (up.value - down.value) / 2e-6
        assert base.slopes[k] - base.slopes[3 - k] == pytest.approx(numeric, abs=1e-4)


@pytest.mark.parametrize(("low", "high"), [(-3.0, 3.0), (-1.4, 5.0), (-4.0, 1.2)])
def test_the_smallest_epsilon_is_where_the_lp_becomes_feasible(low: float, high: float):
    min_epsilon = smallest_epsilon(low, high)
    bins = np.array([low, -0.3, 0.6, high])
    problem = make_exact_problem(knots(bins, 5), 4, LAW, symmetric=False)
    assert problem.find_optimum(min_epsilon * 0.999, bins) is None
    assert problem.find_optimum(min_epsilon * 1.001, bins) is not None
    assert smallest_epsilon(-1.0, 2.0) == float("inf")
    assert smallest_reach(smallest_epsilon(-3, 3)) == pytest.approx(3.0)


def test_metric_laws_hold_between_all_real_inputs():
    problem = make_exact_problem(
        np.linspace(-1, 1, 21), 4, replace(LAW, metric="absolute"), symmetric=True
    )
    bins = np.array([-3.0, -0.5, 0.5, 3.0])
    answer = problem.find_optimum(1.2, bins)
    assert answer is not None
    x = np.linspace(-1, 1, 161)
    law = np.stack([np.interp(x, problem.points, answer.laws[:, i]) for i in range(4)], axis=1)
    loss = np.abs(np.log(law[:, None]) - np.log(law[None, :])).max(axis=2)
    assert (loss <= 1.2 * np.abs(x[:, None] - x[None, :]) + 1e-8).all()


def shape4(bins: tuple[float, ...] = (-3, -0.5, 0.5, 3), symmetric: bool = True) -> TwoBinShape:
    inside = [b for b in bins if -1 < b < 1]
    return TwoBinShape(
        tuple(map(float, bins)),
        tuple(uniform_density().interval_masses([-1, *inside, 1]).tolist()),
        symmetric,
    )


def slice_(low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    return np.array([low, 1 - high]), np.array([high, 1 - low])


def value(sheet) -> float:
    solution = solve(sheet.to_program("x"))
    return solution.objective if solution.is_optimal and solution.objective is not None else np.inf


def test_optimistic_lps_bound_every_slice_inside():
    shape = shape4()
    slices = [
        value(shape.theorem5(1.0, {("l", 2): slice_(k / 100, (k + 1) / 100)}))
        for k in range(55, 80)
    ]
    relaxed = value(shape.theorem5(1.0, {("l", 2): slice_(0.55, 0.80)}, optimistic=True))
    assert relaxed <= min(slices) + 1e-9
    assert np.isfinite(min(slices))
    assert value(shape.theorem5(1.0, {("l", 2): slice_(0.55, 0.80)})) >= min(
        slices
    )  # A wide slice is a restriction.


def test_asymmetric_lp_contains_the_symmetric_one():
    one = value(shape4().theorem5(1.0, {("l", 2): slice_(0.67, 0.68)}))
    both = shape4(symmetric=False)
    assert both.bounded_vectors == [("l", 2)]
    assert value(both.theorem5(1.0, {("l", 2): slice_(0.67, 0.68)})) <= one + 1e-9


@pytest.mark.parametrize("m", [8, 16])
def test_theorem_6_is_safe_and_conservative(m: int):
    bins = equal_bins(m, 3)
    shape = shape4(tuple(float(b) for b in bins))
    sheet = shape.theorem6(3.0, 0.4 if m == 8 else 0.2, 0.1, 0.1)
    solution = solve(sheet.to_program("Theorem 6"))
    assert solution.is_optimal
    assert solution.x is not None
    left, right = shape.read_selections(solution.x)
    assert audit_extremes(two_bin(list(bins), left, right), 0).pure_epsilon <= 3.0


def test_three_bins_need_no_bounds_and_no_theorem_6():
    assert shape4((-3, 0, 3)).bounded_vectors == []
    with pytest.raises(ValueError, match="at least two inside"):
        shape4((-3, 0, 3)).theorem6(1.0, 1.0, 0.1, 0.1)
