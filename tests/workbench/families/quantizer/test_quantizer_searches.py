"""Test the searches of OPTM, the product optimum, MVU and outputs, and the limits."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from bench.bench_quantizer import solve_all_slices
from workbench.data.intervals import read_bins
from workbench.families.quantizer.laws import (
    LawQuestion,
    make_exact_problem,
    make_grid_problem,
    solve_exact_quantizer,
)
from workbench.families.quantizer.limit import (
    bound_least_error,
    compute_mae_limit,
    solve_unlimited_outputs,
)
from workbench.families.quantizer.mvu import compute_mvu_curve, solve_mvu
from workbench.families.quantizer.optm import (
    ProgramSolver,
    solve_optm,
    solve_optm_with_thinner_slices,
)
from workbench.families.quantizer.output_search import optimise_bins
from workbench.families.quantizer.outputs import (
    make_spread_starts,
    merge_close_outputs,
    search_best_outputs,
)
from workbench.families.quantizer.product import solve_product_optimum
from workbench.families.quantizer.search import find_largest_q_rqm
from workbench.mechanisms.baselines.two_bin import equal_bins, rqm, two_bin
from workbench.models.quantizer.program import smallest_reach
from workbench.privacy.audit import audit_extremes
from workbench.questions.density import normal_density, uniform_density

ONE = Fraction(1)
LAW = LawQuestion(ONE)
BINS = tuple(Fraction(b) for b in ("-3", "-1/2", "1/2", "3"))


def test_pruned_search_equals_the_full_search():
    quick, slow = ProgramSolver(LAW), ProgramSolver(LAW)
    for B, b in itertools.product(
        (Fraction(5, 2), Fraction(3), Fraction(6)), (Fraction(1, 5), Fraction(1, 2), ONE)
    ):
        pruned, full = (
            solve_optm([-B, -b, b, B], LAW, solver=quick),
            solve_all_slices([-B, -b, b, B], ONE, slow),
        )
        assert (pruned is None) == math.isinf(full)
        if pruned is not None:
            assert pruned.objective == pytest.approx(full, abs=1e-9)
            assert pruned.quantizer.mae() <= pruned.objective + 1e-12  # (8) is an upper bound.
    assert slow.solve_count == 9 * 99
    assert quick.solve_count < slow.solve_count / 3


def test_optm_is_private_between_the_bounds_and_above_the_product_optimum():
    for epsilon, bins, product in (
        (Fraction(1, 2), ("-6", "-2/5", "2/5", "6"), 3.8971),
        (ONE, ("-3", "-1/2", "1/2", "3"), 1.8771),
        (Fraction(3, 2), ("-3", "-1/2", "1/2", "3"), 1.1728),
    ):
        outputs = [Fraction(b) for b in bins]
        found, best = (
            solve_optm(outputs, LawQuestion(epsilon)),
            solve_product_optimum(outputs, LawQuestion(epsilon)),
        )
        assert found is not None
        assert best is not None
        assert not best.notes
        assert audit_extremes(found.quantizer, 0).pure_epsilon <= float(epsilon) + 1e-9
        assert audit_extremes(best.quantizer, 0).pure_epsilon <= float(epsilon) + 1e-9
        assert best.objective == pytest.approx(product, abs=1.5e-4)
        assert best.quantizer.mae() == pytest.approx(best.objective, abs=1e-6)
        assert best.bound <= best.objective <= found.quantizer.mae()
        exact = solve_exact_quantizer(tuple(outputs), LawQuestion(epsilon))
        assert exact is not None
        assert exact.objective < best.bound


def test_product_optimum_is_below_a_grid_of_selections():
    best = solve_product_optimum(BINS, LawQuestion(ONE))
    assert best is not None
    for t in np.linspace(0.55, 0.8, 6):
        for a in np.linspace(0.45, 0.7, 8):
            for b in np.linspace(0.05, 0.3, 6):
                quantizer = two_bin(list(BINS), [[1.0], [t, 1 - t], [a, b, 1 - a - b]])
                if audit_extremes(quantizer, 0).pure_epsilon <= 1:
                    assert quantizer.mae() >= best.bound - 1e-9


@pytest.mark.parametrize("m", [3, 5, 6, 9, 16])
def test_optm_supports_every_number_of_bins(m: int):
    bins = equal_bins(m, 3)
    found = solve_optm(bins, LAW)
    assert found is not None
    assert audit_extremes(found.quantizer, 0).pure_epsilon <= 1 + 1e-9
    assert found.quantizer.bias == 0
    exact = solve_exact_quantizer(bins, LawQuestion(ONE))
    assert exact is not None
    assert exact.objective <= found.quantizer.mae() + 1e-9


def test_optm_for_a_clipped_normal_is_asymmetric():
    density = normal_density(0.5, 0.1)
    bins = [Fraction(b) for b in ("-4", "1/5", "3/5", "4")]
    found = solve_optm(bins, LawQuestion(ONE, density))
    even = solve_optm(bins, LAW)
    assert found is not None
    assert even is not None
    assert audit_extremes(found.quantizer, 0).pure_epsilon <= 1 + 1e-9
    assert found.objective <= found.quantizer.mae(density) * 2  # sane
    assert found.quantizer.mae(density) <= found.objective


def test_mvu_equals_printed_values_and_leaves_the_local_optimum():
    for epsilon, alphabet, value in (
        ("0.5", "-4.34,-3.6,3.6,4.34", 3.9585),
        ("1", "-2.42,-1.69,1.69,2.42", 1.9300),
        ("1.5", "-1.83,-1.11,1.11,1.83", 1.2546),
    ):
        found = solve_mvu(
            LawQuestion(Fraction(epsilon), uniform_density(), "squared"), read_bins(alphabet)
        )
        assert found.quantizer.mae_51 == pytest.approx(value, abs=5e-5)
    best = solve_mvu(LawQuestion(Fraction("1.5"), uniform_density(), "squared"), 4)
    assert best.objective == pytest.approx(
        1.61978, abs=1e-4
    )  # The best symmetric outputs have 1.636118.
    assert best.bound is not None
    assert best.bound <= best.objective
    assert best.bound == pytest.approx(1.5985, abs=1e-3)
    assert max(best.start_values) > 1.7  # Some starts end in local optima.
    assert audit_extremes(best.quantizer, 0).pure_epsilon == pytest.approx(1.5, abs=1e-9)


def test_mvu_curve_equals_the_dql_paper():
    rows = compute_mvu_curve([1, 4], bits=3, iterations=15)
    assert [row[0] for row in rows] == [1.0, 4.0]
    assert rows[0][1] > rows[1][1] > 0
    for epsilon, mse, quantizer in rows:
        assert quantizer.mse() == mse
        assert quantizer.m <= 8
        assert audit_extremes(quantizer, 0).meets("metric", epsilon)
        assert audit_extremes(quantizer, 0).metric_epsilon == pytest.approx(epsilon, rel=1e-4)
        assert quantizer.bias == 0
    assert rows[0][1] < 2  # This is the Laplace mechanism at ε = 1.


@pytest.mark.parametrize("m", [12, 14, 16])
def test_product_optimum_is_never_worse_than_optm(m: int):
    found = solve_optm(equal_bins(m, 3), LAW)
    best = solve_product_optimum(equal_bins(m, 3), LawQuestion(ONE), nodes=0)
    assert found is not None
    assert best is not None
    assert best.quantizer.mae() <= found.quantizer.mae() + 1e-9


def test_thin_slices_have_solutions_where_thick_ones_have_none():
    bins = [
        Fraction(b) for b in ("-2.2", "-0.4", "0.4", "2.2")
    ]  # From Table 8; just feasible at ε = 1.
    assert solve_optm(bins, LAW) is None
    found = solve_optm_with_thinner_slices(bins, LAW)
    assert found is not None
    assert audit_extremes(found.quantizer, 0).pure_epsilon <= 1 + 1e-9


def test_mvu_by_distance_is_private_for_all_real_inputs():
    # A ratio e^{εw} between grid points at distance w would give the affine law between them the
    # slope (e^{εw} - 1)/w > ε.
    found = solve_mvu(LawQuestion(ONE, uniform_density(), "squared", "absolute"), BINS)
    assert audit_extremes(found.quantizer, 0).metric_epsilon == pytest.approx(1, abs=1e-9)


def test_close_outputs_are_merged():
    outputs, laws = merge_close_outputs(
        np.array([-1.0, -1e-8, 1e-8, 1.0, 2.0]), np.array([[0.2, 0.3, 0.1, 0.4, 0.0]])
    )
    np.testing.assert_allclose(outputs, [-1, 0, 1])
    np.testing.assert_allclose(laws, [[0.2, 0.4, 0.4]])


@pytest.mark.parametrize(("epsilon", "least"), [("0.5", 3.61), ("1", 1.66), ("1.5", 1.02)])
def test_optimised_bins_beat_every_published_mechanism(epsilon: str, least: float):
    found = optimise_bins(4, LawQuestion(Fraction(epsilon)), starts=1)
    assert found is not None
    assert found.quantizer.mae() < least
    assert found.quantizer.m == 4
    assert abs(float(found.quantizer.bins[-1])) <= 2 * smallest_reach(float(epsilon)) + 1e-5
    assert audit_extremes(found.quantizer, 0).pure_epsilon == pytest.approx(
        float(epsilon), abs=1e-9
    )


def test_search_over_outputs_stays_feasible():
    problem = make_grid_problem(np.linspace(-1, 1, 4), 4)
    found = search_best_outputs(problem, 1.0, make_spread_starts(4, 1.0, 2))
    assert problem.find_optimum(1.0, found.outputs).value == pytest.approx(found.value, abs=1e-9)
    assert search_best_outputs(problem, 1.0, [np.array([-0.3, -0.2, 0.2, 0.3])], limit=1.0) is None


@pytest.mark.parametrize("epsilon", ["0.5", "1", "2"])
def test_limits_are_bounds_and_nearly_attained(epsilon: str):
    eps = float(epsilon)
    free, capped = compute_mae_limit(eps), compute_mae_limit(eps, reach=2 * smallest_reach(eps))
    assert free.lower < free.upper < capped.upper
    assert capped.lower < capped.upper
    assert free.upper - free.lower < 0.012
    # The quantizer is exactly private and unbiased, and its error is the upper end.
    for found in (free, capped):
        assert found.quantizer is not None
        assert audit_extremes(found.quantizer, 0).meets("pure", epsilon)
        assert found.quantizer.bias == 0
        assert found.quantizer.mae() == found.upper
    # Any private unbiased quantizer on a fine grid of outputs has a larger error.
    bins = np.concatenate([-np.geomspace(60, 0.02, 12), np.geomspace(0.02, 60, 12)])
    answer = make_exact_problem(np.linspace(-1, 1, 21), 24, LAW, symmetric=True).find_optimum(
        eps, bins
    )
    assert answer is not None
    assert free.lower <= answer.value


@pytest.mark.parametrize("loss", ["squared", "0.5"])
def test_limit_supports_other_errors(loss: str):
    reach = 2 * smallest_reach(1.0)
    found = bound_least_error(LawQuestion(ONE, loss=loss), reach)
    best = optimise_bins(4, LawQuestion(ONE, uniform_density(), loss), starts=1, knots=11)
    assert best is not None
    value = best.quantizer.expected_loss(loss)
    assert found.lower < value < found.lower * 1.03


def test_largest_q_is_the_largest_private_decimal():
    for m, epsilon in ((3, "2"), (4, "1"), (9, "1.5")):
        bins = equal_bins(
            m, Fraction(12, 10) * Fraction(round(smallest_reach(float(epsilon)) * 100), 100)
        )
        quantizer = find_largest_q_rqm(bins, epsilon, digits=2)
        assert quantizer is not None
        assert audit_extremes(quantizer, 0).meets("pure", epsilon)
        kept = [
            k
            for k in range(100)
            if audit_extremes(rqm(bins, Fraction(k, 100)), 0).meets("pure", epsilon)
        ]
        assert quantizer.pieces == rqm(bins, Fraction(max(kept), 100)).pieces


def test_grid_limit_is_below_every_alphabet():
    points = np.linspace(-1, 1, 5)
    limit = solve_unlimited_outputs(points, 1.0, "squared")
    assert limit.lower <= limit.upper <= limit.lower * (1 + 1e-3)
    problem = make_grid_problem(points, 6)
    rng = np.random.default_rng(0)
    for _ in range(20):
        half = np.sort(rng.uniform(0, 3, 3)) + np.array([0, 0, 1.0])
        answer = problem.find_optimum(1.0, np.concatenate([-half[::-1], half]))
        if answer is not None:
            assert answer.value >= limit.lower - 1e-9
