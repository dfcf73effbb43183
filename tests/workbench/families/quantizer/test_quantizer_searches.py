"""Test the searches of OPTM, the product optimum, MVU and outputs, and the limits.

OPTM and the product optimum are two-bin mechanisms (`workbench.families.quantizer.problem` lists
the methods). The alphabet of MVU is the list of its outputs. A limit is a lower bound on the error
of every quantizer. Inputs are in [-1, 1].
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

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
    _LivePattern,
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
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.models.quantizer.program import smallest_reach
from workbench.privacy.audit import audit_extremes
from workbench.questions.density import normal_density, uniform_density
from workbench.solvers.session import Session
from workbench.solvers.solution import Solution

ONE = Fraction(1)
LAW = LawQuestion(ONE)  # ε = 1, uniform inputs and the absolute error.
# `bins` are the outputs of a quantizer, in increasing order. m is their number.
BINS = tuple(Fraction(b) for b in ("-3", "-1/2", "1/2", "3"))
SIX_BINS = tuple(Fraction(b) for b in ("-3", "-1/2", "-1/6", "1/6", "1/2", "3"))


def measure_epsilon(quantizer: Quantizer) -> float:
    """Return the smallest ε of a quantizer, from the exact audit."""
    return audit_extremes(quantizer, 0).pure_epsilon


def test_pruned_search_of_optm_equals_the_full_search():
    pruning_solver = ProgramSolver(LAW)
    full_solver = ProgramSolver(LAW)
    outer_bins = (Fraction(5, 2), Fraction(3), Fraction(6))
    inner_bins = (Fraction(1, 5), Fraction(1, 2), ONE)
    for outer, inner in itertools.product(outer_bins, inner_bins):
        bins = [-outer, -inner, inner, outer]
        pruned = solve_optm(bins, LAW, solver=pruning_solver)
        full_objective = solve_all_slices(bins, ONE, full_solver)
        assert (pruned is None) == math.isinf(full_objective)
        if pruned is not None:
            assert pruned.objective == pytest.approx(full_objective, abs=1e-9)
            # OPTM's objective, (8) of Cai et al. 2024, is an upper bound on the MAE.
            assert pruned.quantizer.mae() <= pruned.objective + 1e-12
    # The full search solves one program for each of the 99 slices of each of the 9 choices.
    assert full_solver.solve_count == 9 * 99
    assert pruning_solver.solve_count < full_solver.solve_count / 3


def test_kept_proofs_of_infeasibility_replace_most_solves(monkeypatch: pytest.MonkeyPatch):
    solves = []
    solve = Session.solve

    def count_solves(session: Session, *args: Any, **options: Any) -> Solution:
        """Solve the program of a session, and add the session to `solves`."""
        solves.append(session)
        return solve(session, *args, **options)

    monkeypatch.setattr(Session, "solve", count_solves)
    solver = ProgramSolver(LAW)
    with_proofs = solve_optm(SIX_BINS, LAW, solver=solver)
    assert len(solves) < solver.solve_count / 2
    solves.clear()
    monkeypatch.setattr(_LivePattern, "proves_infeasibility", lambda live, data: False)
    solver_without_proofs = ProgramSolver(LAW)
    without_proofs = solve_optm(SIX_BINS, LAW, solver=solver_without_proofs)
    assert len(solves) == solver_without_proofs.solve_count
    assert with_proofs is not None
    assert without_proofs is not None
    assert with_proofs.objective == pytest.approx(without_proofs.objective, abs=1e-9)


WIDE_BINS = tuple(Fraction(b) for b in ("-6", "-2/5", "2/5", "6"))
# Each row has ε, bins, and the error of the product optimum: values of the current program, pinned.
PRODUCT_OPTIMA = [
    (Fraction(1, 2), WIDE_BINS, 3.8971),
    (ONE, BINS, 1.8771),
    (Fraction(3, 2), BINS, 1.1728),
]


@pytest.mark.parametrize(("epsilon", "bins", "error"), PRODUCT_OPTIMA)
def test_the_product_optimum_is_proven_and_has_its_stored_error(
    epsilon: Fraction, bins: tuple[Fraction, ...], error: float
):
    product = solve_product_optimum(bins, LawQuestion(epsilon))
    assert product is not None
    assert not product.notes  # A note would say that the optimum is not proven.
    assert measure_epsilon(product.quantizer) <= float(epsilon) + 1e-9
    assert product.objective == pytest.approx(error, abs=1.5e-4)
    assert product.quantizer.mae() == pytest.approx(product.objective, abs=1e-6)


@pytest.mark.parametrize(("epsilon", "bins"), [row[:2] for row in PRODUCT_OPTIMA])
def test_the_product_optimum_is_between_the_exact_optimum_and_optm(
    epsilon: Fraction, bins: tuple[Fraction, ...]
):
    question = LawQuestion(epsilon)
    exact = solve_exact_quantizer(bins, question)
    product = solve_product_optimum(bins, question)
    optm = solve_optm(bins, question)
    assert exact is not None
    assert product is not None
    assert optm is not None
    assert measure_epsilon(optm.quantizer) <= float(epsilon) + 1e-9
    assert exact.objective < product.bound <= product.objective <= optm.quantizer.mae()


def test_the_bound_of_the_product_optimum_is_below_a_grid_of_selections():
    """A selection has, for one, two and three bins on a side, the probability of each of them."""
    product = solve_product_optimum(BINS, LAW)
    assert product is not None
    shares = itertools.product(
        np.linspace(0.55, 0.8, 6), np.linspace(0.45, 0.7, 8), np.linspace(0.05, 0.3, 6)
    )
    for first_of_two, first_of_three, second_of_three in shares:
        selection = [
            [1.0],
            [first_of_two, 1 - first_of_two],
            [first_of_three, second_of_three, 1 - first_of_three - second_of_three],
        ]
        quantizer = two_bin(list(BINS), selection)
        if measure_epsilon(quantizer) <= 1:
            assert quantizer.mae() >= product.bound - 1e-9


@pytest.mark.parametrize("m", [3, 5, 6, 9, 16])
def test_optm_supports_every_number_of_bins(m: int):
    bins = equal_bins(m, 3)
    optm = solve_optm(bins, LAW)
    assert optm is not None
    assert measure_epsilon(optm.quantizer) <= 1 + 1e-9
    assert optm.quantizer.bias == 0
    exact = solve_exact_quantizer(bins, LAW)
    assert exact is not None
    assert exact.objective <= optm.quantizer.mae() + 1e-9


def test_optm_bounds_the_error_under_an_asymmetric_density():
    density = normal_density(mu=0.5, sigma=0.1)
    bins = [Fraction(b) for b in ("-4", "1/5", "3/5", "4")]
    optm = solve_optm(bins, LawQuestion(ONE, density))
    assert optm is not None
    assert measure_epsilon(optm.quantizer) <= 1 + 1e-9
    error = optm.quantizer.mae(density)
    assert error <= optm.objective <= 2 * error


def test_optm_has_a_solution_for_the_same_bins_and_uniform_inputs():
    assert solve_optm([Fraction(b) for b in ("-4", "1/5", "3/5", "4")], LAW) is not None


# The alphabets and the MAE over 51 inputs are printed in Cai et al. 2024.
@pytest.mark.parametrize(
    ("epsilon", "alphabet", "printed_error"),
    [
        ("0.5", "-4.34,-3.6,3.6,4.34", 3.9585),
        ("1", "-2.42,-1.69,1.69,2.42", 1.9300),
        ("1.5", "-1.83,-1.11,1.11,1.83", 1.2546),
    ],
)
def test_mvu_equals_printed_values(epsilon: str, alphabet: str, printed_error: float):
    question = LawQuestion(Fraction(epsilon), uniform_density(), "squared")
    mvu = solve_mvu(question, read_bins(alphabet))
    assert mvu.quantizer.mae_51 == pytest.approx(printed_error, abs=5e-5)


def test_the_search_of_mvu_leaves_the_best_symmetric_outputs():
    mvu = solve_mvu(LawQuestion(Fraction("1.5"), uniform_density(), "squared"), 4)
    # Values of the current program, pinned. The best symmetric outputs have 1.636118.
    assert mvu.objective == pytest.approx(1.61978, abs=1e-4)
    assert mvu.bound is not None
    assert mvu.bound <= mvu.objective
    assert mvu.bound == pytest.approx(1.5985, abs=1e-3)
    assert max(mvu.start_values) > 1.7  # Some starts end in local optima.
    assert measure_epsilon(mvu.quantizer) == pytest.approx(1.5, abs=1e-9)


@pytest.fixture(scope="module")
def mvu_curve() -> list[tuple[float, float, Quantizer]]:
    """Return ε, the mean squared error and the quantizer of MVU with 3 bits, for ε = 1 and 4."""
    return list(compute_mvu_curve([1, 4], bits=3, iterations=15))


def test_the_mvu_curve_has_unbiased_quantizers_that_are_private_by_distance(
    mvu_curve: list[tuple[float, float, Quantizer]],
):
    assert [epsilon for epsilon, _, _ in mvu_curve] == [1.0, 4.0]
    for epsilon, _, quantizer in mvu_curve:
        assert quantizer.m <= 8
        assert quantizer.bias == 0
        privacy = audit_extremes(quantizer, 0)
        assert privacy.meets("metric", epsilon)
        assert privacy.metric_epsilon == pytest.approx(epsilon, rel=1e-4)


def test_the_errors_of_the_mvu_curve_decrease_and_are_below_laplace_noise(
    mvu_curve: list[tuple[float, float, Quantizer]],
):
    """The Laplace mechanism has the mean squared error 2 at ε = 1."""
    (_, first_error, first_quantizer), (_, second_error, _) = mvu_curve
    assert 2 > first_error > second_error > 0
    assert first_quantizer.mse() == first_error


@pytest.mark.parametrize("m", [12, 14, 16])
def test_product_optimum_is_never_worse_than_optm(m: int):
    optm = solve_optm(equal_bins(m, 3), LAW)
    product = solve_product_optimum(equal_bins(m, 3), LAW, nodes=0)
    assert optm is not None
    assert product is not None
    assert product.quantizer.mae() <= optm.quantizer.mae() + 1e-9


def test_thin_slices_have_solutions_where_thick_ones_have_none():
    # These bins are from Table 8 of Cai et al. 2024, and just feasible at ε = 1.
    bins = [Fraction(b) for b in ("-2.2", "-0.4", "0.4", "2.2")]
    assert solve_optm(bins, LAW) is None
    optm = solve_optm_with_thinner_slices(bins, LAW)
    assert optm is not None
    assert measure_epsilon(optm.quantizer) <= 1 + 1e-9


def test_mvu_by_distance_is_private_for_all_real_inputs():
    # A ratio e^{εw} between grid points at distance w would not be enough: the logarithm of the
    # affine law between them could have the slope (e^{εw} - 1)/w > ε.
    mvu = solve_mvu(LawQuestion(ONE, uniform_density(), "squared", "absolute"), BINS)
    assert audit_extremes(mvu.quantizer, 0).metric_epsilon == pytest.approx(1, abs=1e-9)


def test_close_outputs_are_merged_and_outputs_without_mass_removed():
    outputs, laws = merge_close_outputs(
        np.array([-1.0, -1e-8, 1e-8, 1.0, 2.0]), np.array([[0.2, 0.3, 0.1, 0.4, 0.0]])
    )
    np.testing.assert_allclose(outputs, [-1, 0, 1])
    np.testing.assert_allclose(laws, [[0.2, 0.4, 0.4]])


@pytest.mark.parametrize(("epsilon", "error_limit"), [("0.5", 3.61), ("1", 1.66), ("1.5", 1.02)])
def test_optimised_bins_stay_below_an_error_and_within_the_reach(epsilon: str, error_limit: float):
    answer = optimise_bins(4, LawQuestion(Fraction(epsilon)), starts=1)
    assert answer is not None
    quantizer = answer.quantizer
    assert quantizer.mae() < error_limit
    assert quantizer.m == 4
    assert abs(float(quantizer.bins[-1])) <= 2 * smallest_reach(float(epsilon)) + 1e-5
    assert measure_epsilon(quantizer) == pytest.approx(float(epsilon), abs=1e-9)


def test_the_value_of_a_search_over_outputs_is_the_optimum_at_its_outputs():
    problem = make_grid_problem(np.linspace(-1, 1, 4), 4)
    optimum = search_best_outputs(
        problem, epsilon=1.0, starts=make_spread_starts(m=4, epsilon=1.0, count=2)
    )
    answer = problem.find_optimum(1.0, optimum.outputs)
    assert answer.value == pytest.approx(optimum.value, abs=1e-9)


def test_a_search_within_the_inputs_finds_no_outputs():
    problem = make_grid_problem(np.linspace(-1, 1, 4), 4)
    start = np.array([-0.3, -0.2, 0.2, 0.3])
    assert search_best_outputs(problem, epsilon=1.0, starts=[start], limit=1.0) is None


@pytest.mark.parametrize("epsilon", ["0.5", "1", "2"])
def test_the_limit_of_all_outputs_is_below_the_limit_of_outputs_within_a_reach(epsilon: str):
    """A limit is an interval that contains the smallest error."""
    unlimited = compute_mae_limit(float(epsilon))
    within_reach = compute_mae_limit(float(epsilon), reach=2 * smallest_reach(float(epsilon)))
    assert unlimited.lower < unlimited.upper < within_reach.upper
    assert within_reach.lower < within_reach.upper
    assert unlimited.upper - unlimited.lower < 0.012


@pytest.mark.parametrize("has_reach", [False, True])
@pytest.mark.parametrize("epsilon", ["0.5", "1", "2"])
def test_a_private_unbiased_quantizer_attains_the_upper_end_of_a_limit(
    epsilon: str, has_reach: bool
):
    reach = 2 * smallest_reach(float(epsilon)) if has_reach else math.inf
    limit = compute_mae_limit(float(epsilon), reach=reach)
    assert limit.quantizer is not None
    assert audit_extremes(limit.quantizer, 0).meets("pure", epsilon)
    assert limit.quantizer.bias == 0
    assert limit.quantizer.mae() == limit.upper


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_the_limit_is_below_the_optimum_on_a_fine_grid_of_outputs(epsilon: float):
    bins = np.concatenate([-np.geomspace(60, 0.02, 12), np.geomspace(0.02, 60, 12)])
    problem = make_exact_problem(np.linspace(-1, 1, 21), outputs=24, question=LAW, symmetric=True)
    answer = problem.find_optimum(epsilon, bins)
    assert answer is not None
    assert compute_mae_limit(epsilon).lower <= answer.value


@pytest.mark.parametrize("loss", ["squared", "0.5"])
def test_four_outputs_are_within_three_percent_of_the_limit_of_other_losses(loss: str):
    reach = 2 * smallest_reach(1.0)
    question = LawQuestion(ONE, loss=loss)
    limit = bound_least_error(question, reach)
    answer = optimise_bins(4, question, starts=1, knots=11)
    assert answer is not None
    assert limit.lower < answer.quantizer.expected_loss(loss) < limit.lower * 1.03


@pytest.mark.parametrize(("m", "epsilon"), [(3, "2"), (4, "1"), (9, "1.5")])
def test_largest_q_of_rqm_is_the_largest_private_hundredth(m: int, epsilon: str):
    reach = Fraction(12, 10) * Fraction(round(smallest_reach(float(epsilon)) * 100), 100)
    bins = equal_bins(m, reach)
    quantizer = find_largest_q_rqm(bins, epsilon, digits=2)
    assert quantizer is not None
    assert audit_extremes(quantizer, 0).meets("pure", epsilon)
    candidates = [rqm(bins, Fraction(k, 100)) for k in range(100)]
    is_private = [audit_extremes(candidate, 0).meets("pure", epsilon) for candidate in candidates]
    largest_k = max(np.flatnonzero(is_private))
    assert quantizer.pieces == candidates[largest_k].pieces


def test_grid_limit_is_below_random_symmetric_alphabets():
    points = np.linspace(-1, 1, 5)
    limit = solve_unlimited_outputs(points, epsilon=1.0, loss="squared")
    assert limit.lower <= limit.upper <= limit.lower * (1 + 1e-3)
    problem = make_grid_problem(points, outputs=6)
    generator = np.random.default_rng(0)
    for _ in range(20):
        # The outermost output is moved outwards, because it must be beyond ±1.
        right_half = np.sort(generator.uniform(low=0, high=3, size=3)) + np.array([0, 0, 1.0])
        alphabet = np.concatenate([-right_half[::-1], right_half])
        answer = problem.find_optimum(1.0, alphabet)
        if answer is not None:
            assert answer.value >= limit.lower - 1e-9
