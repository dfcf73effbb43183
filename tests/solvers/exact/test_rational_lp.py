"""Tests of linear programs in rationals, and of designs that are certified with them."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

import workbench as wb
from bench.bench_certify import KINDS, certify_design, draw_question
from workbench.families.modulo.family import FAMILY
from workbench.families.modulo.problem import ModuloProblem
from workbench.families.modulo.repair import certify_noise
from workbench.pipeline.routes import Programs
from workbench.solvers.backend import get_backend
from workbench.solvers.data import Data, floor_to_bits
from workbench.solvers.errors import NoRationalSolution
from workbench.solvers.exact.rational_lp import RationalLP, to_object_array
from workbench.solvers.exact.rational_refinement import _to_doubles, solve_rational
from workbench.solvers.program import Program
from workbench.solvers.session import Session
from workbench.solvers.solution import Termination

STEEP_RATIO = 39824784  # e^17.5, rounded. Eight steps of this ratio reach 1e-61.


def make_knapsack() -> RationalLP:
    """State max x + y under 3x + y <= 1 and x + 3y <= 1, with the optimum 1/2 at (1/4, 1/4)."""
    lp = RationalLP(2)
    lp.cost = [Fraction(-1), Fraction(-1)]
    lp.add_row({0: 3, 1: 1}, high=1)
    lp.add_row({0: 1, 1: 3}, high=1)
    return lp


def make_knapsack_in_doubles() -> Program:
    """State the program of `make_knapsack` in doubles."""
    data = Data(
        c=np.array([-1.0, -1.0]),
        offset=0.0,
        A=sp.csc_array(np.array([[3.0, 1.0], [1.0, 3.0]])),
        row_lower=np.full(2, -np.inf),
        row_upper=np.ones(2),
        lower=np.zeros(2),
        upper=np.ones(2),
        integrality=np.zeros(2, dtype=bool),
    )
    return Program("knapsack", data)


def test_a_vertex_is_exact():
    point = solve_rational(make_knapsack())
    assert point.solve_vertex() == [Fraction(1, 4), Fraction(1, 4)]
    assert abs(point.objective + Fraction(1, 2)) < Fraction(1, 1 << 200)
    assert point.bound is not None
    assert point.bound <= Fraction(-1, 2)
    assert Fraction(-1, 2) - point.bound < Fraction(1, 1 << 50)


def test_doubles_become_the_rationals_that_they_are():
    upper_sides = np.array([np.inf, 1.0])
    data = Data(
        c=np.array([-0.3, 0.0]),
        offset=2.0,
        A=sp.csc_array(np.array([[0.1, 0.0], [1.0, 1.0]])),
        row_lower=np.array([0.05, 1.0]),
        row_upper=upper_sides,
        lower=np.array([0.0, -np.inf]),
        upper=upper_sides,
        integrality=np.array([False, False]),
    )
    lp = RationalLP.from_data(data)
    assert lp.cost == [Fraction(-0.3), 0]
    assert lp.rows == [{0: Fraction(0.1)}, {0: 1, 1: 1}]
    assert lp.sides == [(Fraction(0.05), None), (1, 1)]
    assert lp.bounds == [(0, None), (None, 1)]


def test_a_third_is_found_to_two_hundred_bits():
    """The optimum of max x with x + y = 1 and 2x <= y is x = 1/3."""
    lp = RationalLP(2)
    lp.cost = [Fraction(-1), Fraction(0)]
    lp.add_row({0: 1, 1: 1}, low=1, high=1)
    lp.add_row({0: 2, 1: -1}, high=0)
    point = solve_rational(lp)
    assert abs(point.x[0] - Fraction(1, 3)) < Fraction(1, 1 << 200)
    assert point.solve_vertex() == [Fraction(1, 3), Fraction(2, 3)]


def test_no_second_solve_follows_an_optimal_basis(monkeypatch):
    solve_count = 0
    original_solve = Session.solve

    def count_and_solve(self, *args, **kwargs):
        """Solve, and count the solves of all sessions."""
        nonlocal solve_count
        solve_count += 1
        return original_solve(self, *args, **kwargs)

    monkeypatch.setattr(Session, "solve", count_and_solve)
    point = solve_rational(make_knapsack())
    assert solve_count == 1
    with get_backend("highs").open(make_knapsack_in_doubles()) as session:
        basis = session.solve().basis
    assert solve_count == 2
    point_from_basis = solve_rational(make_knapsack(), basis=basis)
    assert solve_count == 2  # The given basis is optimal, so no program was solved.
    assert (point_from_basis.x, point_from_basis.bound) == (point.x, point.bound)


def test_a_basis_that_is_not_optimal_is_improved():
    with get_backend("highs").open(make_knapsack_in_doubles()) as session:
        basis = session.solve().basis
    # The classes of HiGHS are taken from its own basis, so that it need not be imported.
    status = type(basis.col_status[0])
    basis_of_origin = type(basis)()
    basis_of_origin.col_status = [status.kLower] * 2
    basis_of_origin.row_status = [status.kBasic] * 2
    point = solve_rational(make_knapsack(), basis=basis_of_origin)
    assert point.solve_vertex() == [Fraction(1, 4), Fraction(1, 4)]


def test_masses_far_below_the_tolerance_of_solvers_are_found():
    """A chain x_{k+1} = x_k / 2^12 of ten steps ends at 2^-120. Solvers in doubles call this 0."""
    lp = RationalLP(11)
    lp.add_row(dict.fromkeys(range(11), 1), low=1, high=1)
    for k in range(10):
        lp.add_row({k: 1, k + 1: -(1 << 12)}, low=0, high=0)
    lp.cost[10] = Fraction(1)
    x = solve_rational(lp).x
    for k in range(10):
        assert abs(x[k + 1] * (1 << 12) / x[k] - 1) < Fraction(1, 1 << 80)


def test_an_infeasible_program_is_refused():
    lp = make_knapsack()
    lp.add_row({0: 1}, low=Fraction(1, 2))
    with pytest.raises(NoRationalSolution, match="no answer"):
        solve_rational(lp)


def test_a_coefficient_that_is_no_dyadic_rational_is_refused():
    lp = make_knapsack()
    lp.add_row({0: Fraction(1, 3)}, high=1)
    with pytest.raises(NoRationalSolution, match="dyadic"):
        solve_rational(lp)


@pytest.mark.parametrize("solver", ["highs", "gurobi"])
def test_random_designs_are_certified_at_the_optimum(solver):
    if not get_backend(solver).licence().usable:
        pytest.skip("no licence")
    rng = random.Random(4)
    certified_count = 0
    for number in range(24):
        question = draw_question(KINDS[number % 4], rng)
        options = {"notion": rng.choice(["pdp", "dp", "pure"])}
        options["loss"] = rng.choice(["error-rate", "squared"])
        is_pure = options["notion"] == "pure"
        options["delta"] = "0" if is_pure else rng.choice(["1e-9", "1e-6", "0.01", "0.1"])
        options["epsilon"] = rng.choice(["0.5", "1", "3"])
        outcome = certify_design(question, options | {"solver": solver}, time_limit=300.0)
        assert outcome["outcome"] in {"certified", "refused"}, outcome
        if outcome["outcome"] == "certified":
            certified_count += 1
            assert outcome["loss_optimum"] is not None
            assert outcome["loss_optimum"] < 1e-12
    assert certified_count >= 22


def make_steep_chain(ratio: Fraction, n: int) -> RationalLP:
    """State x_0 <= ratio x_1, x_1 <= ratio x_2, ..., with Σ x = 1 and the objective 1 - x_0.

    At the optimum x_k is x_0 / ratio^k, so the last values are below a solver's tolerance. Several
    corrections are needed, in which HiGHS reports no iterations.
    """
    lp = RationalLP(n)
    lp.cost = [0] + [1] * (n - 1)
    lp.add_row(dict.fromkeys(range(n), 1), low=1, high=1)
    for k in range(n):
        lp.add_row({k: Fraction(1), (k + 1) % n: -ratio}, high=0)
    return lp


def compute_chain_optimum(ratio: Fraction, n: int) -> Fraction:
    """Return the optimum of `make_steep_chain`: 1 - x_0 with x_0 = 1 / Σ ratio^-k."""
    return 1 - 1 / sum(1 / ratio**k for k in range(n))


def test_a_steep_chain_is_solved_to_every_digit():
    n = 9
    ratio = Fraction(STEEP_RATIO)
    optimum = compute_chain_optimum(ratio, n)
    point = solve_rational(make_steep_chain(ratio, n))
    last_mass = (1 - optimum) / ratio ** (n - 1)
    assert float(point.x[-1] / last_mass) == pytest.approx(1, rel=1e-6)
    assert point.objective == pytest.approx(optimum, rel=1e-15)
    assert point.bound == pytest.approx(point.objective, rel=1e-15)


def test_the_bound_may_belong_to_another_program():
    n = 9
    ratio = Fraction(STEEP_RATIO)
    steeper_ratio = ratio * (1 + Fraction(1, 1 << 40))
    steeper_lp = make_steep_chain(steeper_ratio, n)
    point = solve_rational(make_steep_chain(ratio, n), bound_program=steeper_lp)
    assert point.bound is not None
    assert point.bound <= compute_chain_optimum(steeper_ratio, n)
    assert point.bound > point.objective * Fraction(99, 100)


def test_a_certified_design_corrects_an_error_below_the_optimum():
    """At its default tolerances HiGHS returns an error rate of the MILP below the optimum."""
    question = wb.ModuloNoise(n=33, shifts=[4])
    request = FAMILY.make_request(
        question, epsilon=3, delta="1e-8", notion="pdp", method="literal", certify=False
    )
    solution = ModuloProblem(request).solve_program(Programs("highs"))
    certified_noise = certify_noise(request, solution)
    closed_form = wb.design(question, notion="pdp", epsilon=3, delta="1e-8").oracle
    assert closed_form.valid
    assert solution.objective < closed_form.value - 1e-9
    assert float(certified_noise.objective) >= closed_form.value - 1e-15


def test_the_closed_form_replaces_a_basis_that_cannot_be_certified(monkeypatch):
    from workbench.families.modulo import repair

    def refuse_basis(*_, **__):
        """Fail as if no basis could be certified."""
        raise wb.NotCertified("the basis is infeasible.")

    def find_no_pattern(made, budgets):
        """Return None, no violated pairs, for every difference."""
        return dict.fromkeys(budgets)

    monkeypatch.setattr(repair, "_solve_pattern", refuse_basis)
    monkeypatch.setattr(repair, "find_violation_pattern", find_no_pattern)
    design = wb.design(
        wb.ModuloNoise(n=8, shifts=[1, 2, 3], directed=True),
        epsilon=1.5,
        delta=0.1212,
        notion="pdp",
        solver="highs",
    )
    assert design.private
    # 1 - f(0) for the corrected f(0) = 0.549827669 of Table 1 of Kadam et al. 2024.
    assert design.objective == pytest.approx(0.450172331, abs=1e-9)


@pytest.mark.parametrize(
    ("shift", "epsilon", "delta"), [(1, 8, "1e-9"), (1, 20, "1e-12"), (2, 3, "1e-30")]
)
def test_designs_with_tiny_masses_are_certified(shift, epsilon, delta):
    question = wb.ModuloNoise(n=40, shifts=[shift])
    design = wb.design(question, epsilon=epsilon, delta=delta, notion="pdp")
    assert design.private
    assert design.certificate.delta == Fraction(delta)


def test_integers_become_the_nearest_doubles():
    rng = random.Random(7)
    values = [rng.choice((-1, 1)) * rng.getrandbits(rng.randrange(1, 700)) for _ in range(300)]
    for shift in (0, 1, 300, 650):
        nearest_doubles = [float(Fraction(v, 1 << shift)) for v in values]
        assert _to_doubles(to_object_array(values), shift).tolist() == nearest_doubles


def test_integers_beyond_the_range_of_doubles_are_clipped():
    doubles = _to_doubles(to_object_array([1 << 5000, -(1 << 5000), 3]), shift=0).tolist()
    assert doubles == [2.0**1000, -(2.0**1000), 3.0]


def test_doubles_are_rounded_down_to_bits_exactly():
    rng = random.Random(7)
    numbers = [0.0, -0.1, 1.5, 5e-324, -1e300]
    numbers += [rng.uniform(-1, 1) * 2.0 ** rng.randrange(-300, 100) for _ in range(200)]
    for bits in (-60, 0, 20, 320):
        floors = [math.floor(Fraction(v) * Fraction(2) ** bits) for v in numbers]
        assert floor_to_bits(np.array(numbers), bits).tolist() == floors


def test_a_correction_that_fails_hot_is_solved_again_from_a_cold_start(monkeypatch):
    starts = []
    original_solve = Session.solve

    def fail_third_solve(self, values=None, *, start="hot", **kwargs):
        """Solve and record the start, but report a numerical failure of the third solve."""
        solution = original_solve(self, values, start=start, **kwargs)
        starts.append(start)
        if len(starts) == 3:
            return replace(solution, termination=Termination.NUMERICAL)
        return solution

    monkeypatch.setattr(Session, "solve", fail_third_solve)
    point = solve_rational(make_steep_chain(Fraction(STEEP_RATIO), 9))
    assert point.bound == pytest.approx(point.objective, rel=1e-15)
    assert starts[2:4] == ["hot", "cold"]
