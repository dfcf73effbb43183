"""Programs solved far beyond double precision, and designs that they certify."""

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


def knapsack() -> RationalLP:
    """State max x + y under 3x + y <= 1 and x + 3y <= 1, with its vertex at (1/4, 1/4)."""
    lp = RationalLP(2)
    lp.cost = [Fraction(-1), Fraction(-1)]
    lp.add_row({0: 3, 1: 1}, None, 1)
    lp.add_row({0: 1, 1: 3}, None, 1)
    return lp


def test_a_vertex_is_exact():
    refined = solve_rational(knapsack())
    assert refined.solve_vertex() == [Fraction(1, 4), Fraction(1, 4)]
    assert abs(refined.objective + Fraction(1, 2)) < Fraction(1, 1 << 200)
    assert refined.bound is not None
    assert refined.bound <= Fraction(-1, 2)
    assert Fraction(-1, 2) - refined.bound < Fraction(1, 1 << 50)


def test_floats_are_the_rationals_they_are():
    at_most = np.array([np.inf, 1.0])
    A = sp.csc_array(np.array([[0.1, 0.0], [1.0, 1.0]]))
    free = np.array([False, False])
    data = Data(
        np.array([-0.3, 0.0]),
        2.0,
        A,
        np.array([0.05, 1.0]),
        at_most,
        np.array([0.0, -np.inf]),
        at_most,
        free,
    )
    lp = RationalLP.from_data(data)
    assert lp.cost == [Fraction(-0.3), 0]
    assert lp.rows == [{0: Fraction(0.1)}, {0: 1, 1: 1}]
    assert lp.sides == [(Fraction(0.05), None), (1, 1)]
    assert lp.bounds == [(0, None), (None, 1)]


def test_thirds_are_reached_to_two_hundred_bits():
    lp = RationalLP(2)
    lp.cost = [Fraction(-1), Fraction(0)]
    lp.add_row({0: 1, 1: 1}, 1, 1)
    lp.add_row({0: 2, 1: -1}, None, 0)
    refined = solve_rational(lp)
    assert abs(refined.x[0] - Fraction(1, 3)) < Fraction(1, 1 << 200)
    assert refined.solve_vertex() == [Fraction(1, 3), Fraction(2, 3)]


def test_an_optimal_basis_is_enough(monkeypatch):
    """No other round is solved if the first or a given basis is optimal in exact numbers."""
    solved, solve = [], Session.solve
    monkeypatch.setattr(
        Session, "solve", lambda self, *a, **b: solved.append(solve(self, *a, **b)) or solved[-1]
    )
    first = solve_rational(knapsack())
    assert len(solved) == 1
    data = Data(
        *(
            np.array([-1.0, -1.0]),
            0.0,
            sp.csc_array(np.array([[3.0, 1.0], [1.0, 3.0]])),
            np.full(2, -np.inf),
            np.ones(2),
        ),
        *(np.zeros(2), np.ones(2), np.zeros(2, dtype=bool)),
    )
    with get_backend("highs").open(Program("knapsack", data)) as session:
        basis = session.solve().basis
    again = solve_rational(knapsack(), basis=basis)
    assert len(solved) == 2
    assert again.solve_vertex() == first.solve_vertex() == [Fraction(1, 4), Fraction(1, 4)]
    assert (again.x, again.bound) == (first.x, first.bound)
    worse = type(basis)()
    worse.col_status, worse.row_status = (
        [type(basis.col_status[0]).kLower] * 2,
        [type(basis.col_status[0]).kBasic] * 2,
    )
    assert (
        solve_rational(knapsack(), basis=worse).solve_vertex() == first.solve_vertex()
    )  # the origin is no optimum


def test_masses_far_below_the_solver_come_out_right():
    # a chain x_{k+1} = x_k / 2^12 of ten steps: 2^-120, which any float solver calls zero
    lp = RationalLP(11)
    lp.add_row(dict.fromkeys(range(11), 1), 1, 1)
    for k in range(10):
        lp.add_row({k: 1, k + 1: -(1 << 12)}, 0, 0)
    lp.cost[10] = Fraction(1)
    x = solve_rational(lp).x
    for k in range(10):
        assert abs(x[k + 1] * (1 << 12) / x[k] - 1) < Fraction(1, 1 << 80)


def test_infeasible_and_badly_stated_programs_are_refused():
    lp = knapsack()
    lp.add_row({0: 1}, Fraction(1, 2), None)
    with pytest.raises(NoRationalSolution, match="no answer"):
        solve_rational(lp)
    lp = knapsack()
    lp.add_row({0: Fraction(1, 3)}, None, 1)
    with pytest.raises(NoRationalSolution, match="dyadic"):
        solve_rational(lp)


@pytest.mark.parametrize("solver", ["highs", "gurobi"])
def test_random_designs_end_certified_without_loss(solver):
    if not get_backend(solver).licence().usable:
        pytest.skip("no licence")
    rng = random.Random(4)
    certified = 0
    for number in range(24):
        question = draw_question(KINDS[number % 4], rng)
        options = {"notion": rng.choice(["pdp", "dp", "pure"])}
        options["loss"] = rng.choice(["error-rate", "squared"])
        is_pure = options["notion"] == "pure"
        options["delta"] = "0" if is_pure else rng.choice(["1e-9", "1e-6", "0.01", "0.1"])
        options["epsilon"] = rng.choice(["0.5", "1", "3"])
        outcome = certify_design(question, options | {"solver": solver}, 20.0)
        assert outcome["outcome"] in {"certified", "refused"}, outcome
        if outcome["outcome"] == "certified":
            certified += 1
            assert outcome["loss_optimum"] is not None
            assert outcome["loss_optimum"] < 1e-12
    assert certified >= 22


def steep_chain(steep: Fraction, n: int) -> RationalLP:
    """State a chain x_0 <= steep x_1 <= ... whose last values are below a solver's tolerance.

    HiGHS changes its bases without counting iterations.
    """
    lp = RationalLP(n)
    lp.cost = [0] + [1] * (n - 1)
    lp.add_row(dict.fromkeys(range(n), 1), 1, 1)
    for k in range(n):
        lp.add_row({k: Fraction(1), (k + 1) % n: -steep}, None, 0)
    return lp


def test_chains_of_steep_ratios_reach_every_digit_and_a_bound():
    steep, n = Fraction(39824784), 9  # e^17.5: down to 1e-61
    lp = steep_chain(steep, n)
    wider = RationalLP(n)
    wider.cost, wider.sides = lp.cost, lp.sides
    steeper = steep * (1 + Fraction(1, 1 << 40))
    wider.rows = [{j: -steeper if a < 0 else a for j, a in row.items()} for row in lp.rows]
    total = sum(1 / steep**k for k in range(n))
    found = solve_rational(lp)
    assert float(found.x[-1] * total * steep ** (n - 1)) == pytest.approx(1, rel=1e-6)
    assert found.objective == pytest.approx(1 - 1 / total, rel=1e-15)
    assert found.bound == pytest.approx(found.objective, rel=1e-15)
    loose = solve_rational(lp, bound_program=wider).bound
    assert loose is not None
    assert loose <= 1 - 1 / sum(
        1 / steeper**k for k in range(n)
    )  # of the wider program, below its optimum
    assert loose > found.objective * Fraction(99, 100)


def test_what_a_solver_claims_beyond_reach_is_said():
    # at its default integrality tolerance HiGHS claims an error of the printed MILP below the
    # optimum
    asked = wb.ModuloNoise(n=33, shifts=[4])
    request = FAMILY.make_request(
        asked, epsilon=3, delta="1e-8", notion="pdp", method="literal", certify=False
    )
    solution = ModuloProblem(request).solve_program(Programs("highs"))
    made = certify_noise(request, solution)
    law = wb.design(asked, notion="pdp", epsilon=3, delta="1e-8").oracle
    assert law.valid
    assert solution.objective < law.value - 1e-9
    assert float(made.objective) >= law.value - 1e-15


def test_the_closed_form_steps_in(monkeypatch):
    from workbench.families.modulo import repair as module

    def hopeless(*_, **__):
        raise wb.NotCertified("the basis is infeasible.")

    monkeypatch.setattr(module, "_solve_pattern", hopeless)
    monkeypatch.setattr(
        module, "find_violation_pattern", lambda made, budgets: dict.fromkeys(budgets)
    )
    d = wb.design(
        wb.ModuloNoise(n=8, shifts=[1, 2, 3], directed=True),
        epsilon=1.5,
        delta=0.1212,
        notion="pdp",
        solver="highs",
    )
    assert d.private
    assert d.objective == pytest.approx(0.450172331, abs=1e-9)


def test_deep_chains_and_tiny_deltas():
    for shifts, epsilon, delta in (([1], 8, "1e-9"), ([1], 20, "1e-12"), ([2], 3, "1e-30")):
        d = wb.design(
            wb.ModuloNoise(n=40, shifts=shifts), epsilon=epsilon, delta=delta, notion="pdp"
        )
        assert d.private
        assert d.certificate.delta == Fraction(delta)


def test_integers_and_floats_are_turned_into_each_other_exactly():
    rng = random.Random(7)
    values = [rng.choice((-1, 1)) * rng.getrandbits(rng.randrange(1, 700)) for _ in range(300)]
    for shift in (0, 1, 300, 650):
        assert _to_doubles(to_object_array(values), shift).tolist() == [
            float(Fraction(v, 1 << shift)) for v in values
        ]
    beyond = _to_doubles(to_object_array([1 << 5000, -(1 << 5000), 3]), 0).tolist()
    assert beyond == [2.0**1000, -(2.0**1000), 3.0]
    numbers = [0.0, -0.1, 1.5, 5e-324, -1e300]
    numbers += [rng.uniform(-1, 1) * 2.0 ** rng.randrange(-300, 100) for _ in range(200)]
    for shift in (-60, 0, 20, 320):
        below = [math.floor(Fraction(v) * Fraction(2) ** shift) for v in numbers]
        assert floor_to_bits(np.array(numbers), shift).tolist() == below


def test_a_round_that_fails_hot_is_solved_again_from_nothing(monkeypatch):
    """A round starts cold after its hot start failed, and the answer is the same."""
    from workbench.solvers.solution import Solution, Termination

    starts, solve = [], Session.solve

    def once_lost(self, values=None, *, start="hot", **more):
        solution = solve(self, values, start=start, **more)
        starts.append(start)
        assert isinstance(solution, Solution)
        return (
            replace(solution, termination=Termination.NUMERICAL) if len(starts) == 3 else solution
        )

    monkeypatch.setattr(Session, "solve", once_lost)
    lp = steep_chain(Fraction(39824784), 9)
    point = solve_rational(lp)
    assert point.bound == pytest.approx(point.objective, rel=1e-15)
    assert starts[2:4] == ["hot", "cold"]
