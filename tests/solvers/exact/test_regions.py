"""Formulas of parametric programs: their values, exact ends and proofs, and no gaps."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from flint import fmpz_poly

from workbench.models.channel.program import ChannelModel, consecutive_pairs
from workbench.solvers.errors import NoRationalSolution
from workbench.solvers.exact.parametric import ParametricProgram, solve_affine_system
from workbench.solvers.exact.polynomials import ONE, Affine, Root, find_sign_interval
from workbench.solvers.exact.rational_lp import RationalLP
from workbench.solvers.exact.rational_refinement import solve_rational
from workbench.solvers.exact.regions import find_regions
from workbench.solvers.program import Data, Program
from workbench.solvers.search import Deadline

GRID = Fraction(1, 1 << 40)


def channel(
    k: int, losses: Sequence[Sequence[int]], *, delta: bool, weights: Sequence[int]
) -> ParametricProgram:
    """Consecutive answers; a prior of small integers."""
    labels, total = np.arange(float(k)), sum(weights)
    prior = np.array([w / total for w in weights])
    model = ChannelModel(
        labels, labels, prior, np.array(losses, float), consecutive_pairs(k), has_delta=delta
    )
    first = model.program.block("M").start
    exact = {
        first + i + j * k: Fraction(weights[i] * losses[i][j], total)
        for i in range(k)
        for j in range(k)
    }
    return ParametricProgram(
        model.program, {"exp_epsilon": [1]}, "delta" if delta else None, exact={"c": exact}
    )


def optimum(program: ParametricProgram, x: Fraction, delta: Fraction) -> Fraction:
    """By rational refinement, which shares no elimination and no polynomial."""
    scale = math.lcm(*(int(v.denom()) for v in program.cost))
    values = {"exp_epsilon": [x]} | ({"delta": [delta]} if program.delta else {})
    stated = RationalLP.from_program(program.program, values)
    lp = RationalLP(stated.columns)
    lp.bounds, lp.sides, lp.rows = stated.bounds, stated.sides, stated.rows
    lp.cost = [Fraction(int((v * scale).numer()[0])) for v in program.cost]
    return solve_rational(lp).objective / scale


@pytest.mark.parametrize("seed", range(6))
def test_formulas_are_the_optima_of_rational_programs(seed: int) -> None:
    draw = random.Random(seed)
    k, delta = draw.choice([3, 4]), bool(seed % 2)
    losses = [[0 if i == j else draw.randint(1, 6) for j in range(k)] for i in range(k)]
    program = channel(k, losses, delta=delta, weights=[draw.randint(1, 4) for _ in range(k)])
    deltas = (Fraction(0), Fraction(1)) if delta else (Fraction(0), Fraction(0))
    found, left = find_regions(program, Fraction(1), None, deltas)
    program.close()
    assert not left
    for first, second in pairwise(found):  # no gap, no overlap, the same value where they meet
        assert first.high is not None
        assert first.high.compare(second.low) == 0
    assert found[-1].high is None
    for _ in range(6):
        x = Fraction(draw.randint(1 << 12, 1 << 15), 1 << 12)
        at = Fraction(draw.randint(0, 1 << 10), 1 << 10) if delta else Fraction(0)
        here = next(
            r for r in found if not r.low.is_above(x) and (r.high is None or not r.high.is_below(x))
        )
        formula = next(f for f in here.formulas if f.low(x) <= at <= f.high(x))
        assert formula.value is not None
        assert abs(formula.value(x, at) - optimum(program, x, at)) < GRID


def test_neighbouring_formulas_agree_where_they_meet_exactly() -> None:
    distances = [[abs(i - j) for j in range(4)] for i in range(4)]
    found, _ = find_regions(
        channel(4, distances, delta=True, weights=[1] * 4),
        Fraction(1),
        None,
        (Fraction(0), Fraction(1)),
    )
    for region in found:
        for first, second in pairwise(region.formulas):
            assert first.value is not None
            assert second.value is not None
            assert first.high == second.low
            meet = first.value.substitute_delta(first.high.constant, first.high.denominator)
            assert meet == second.value.substitute_delta(
                first.high.constant, first.high.denominator
            )


def test_a_side_may_move_with_x() -> None:
    # z >= -x, which 0 meets
    from workbench.models.statement import Parameter, Problem, Variable

    z, x = Variable(1, "z"), Parameter(1, "exp_epsilon")
    stated = Problem(z, [z * -1.0 <= x]).to_program("reach")
    program = ParametricProgram(stated, {"exp_epsilon": [1]}, exact={"row_upper": {}})
    found, _ = find_regions(program, Fraction(1), None, (Fraction(0), Fraction(0)))
    assert [[f.value for f in region.formulas] for region in found] == [[Affine.from_number(0)]]


def test_an_infeasible_interval_is_proven() -> None:
    low = Data(
        np.ones(1),
        0.0,
        _matrix([[1.0], [1.0]]),
        np.array([2.0, -np.inf]),
        np.array([np.inf, 1.0]),
        np.zeros(1),
        np.array([np.inf]),
        np.zeros(1, dtype=bool),
    )
    found, _ = find_regions(
        ParametricProgram(Program("empty", low), {}), Fraction(1), None, (Fraction(0), Fraction(0))
    )
    assert [[f.value for f in region.formulas] for region in found] == [[None]]


def _matrix(rows: Sequence[Sequence[float]]) -> object:
    import scipy.sparse as sp

    return sp.csc_array(np.array(rows))


def test_a_time_limit_leaves_open_intervals() -> None:
    distances = [[abs(i - j) for j in range(4)] for i in range(4)]
    program = channel(4, distances, delta=False, weights=[1] * 4)
    found, left = find_regions(
        program, Fraction(1), None, (Fraction(0), Fraction(0)), Deadline(-1.0)
    )
    assert found == []
    assert [(float(low), high) for low, high in left] == [(1.0, None)]


def test_integer_columns_have_no_formula() -> None:
    data = Data(
        np.ones(1),
        0.0,
        _matrix([[1.0]]),
        np.zeros(1),
        np.ones(1),
        np.zeros(1),
        np.ones(1),
        np.ones(1, dtype=bool),
    )
    with pytest.raises(NoRationalSolution, match="without integer columns"):
        ParametricProgram(Program("binary", data), {})


def test_roots_are_isolated_and_compared_exactly() -> None:
    p = fmpz_poly([-2, 0, 1]) * fmpz_poly([-3, 0, 1]) * fmpz_poly([-7, 5])  # √2, √3, 7/5
    one, near = (
        Root.from_rational(Fraction(1)),
        [Fraction(6, 5), Fraction(141, 100), Fraction(3, 2), Fraction(2)],
    )
    ends = [find_sign_interval([p], x, one, None) for x in near]
    assert [round(float(low), 6) for low, _ in ends] == [1.0, 1.4, 1.414214, 1.732051]
    assert [high and round(float(high), 6) for _, high in ends] == [1.4, 1.414214, 1.732051, None]
    (_, below), (above, _) = ends[1:3]
    assert below is not None
    assert above.compare(below) == 0
    assert below.halve().halve().compare(above) == 0
    assert below.compare(Root.from_rational(Fraction(7, 5))) == 1
    assert ends[0][1].compare(Root.from_rational(Fraction(7, 5))) == 0
    _, root = find_sign_interval([fmpz_poly([-3, 0, 1])], Fraction(3, 2), one, None)
    assert below.compare(root) == -1


def test_a_double_root_ends_no_interval() -> None:
    p = fmpz_poly([-2, 1]) * fmpz_poly([-2, 1])
    low, high = find_sign_interval(
        [p, fmpz_poly([5, -1])], Fraction(3, 2), Root.from_rational(Fraction(1)), None
    )
    assert (low.low, high.low if high else None) == (1, 5)


def test_sparse_equations_are_solved_over_polynomials() -> None:
    x = fmpz_poly([0, 1])
    values = solve_affine_system(
        [({0: x, 1: ONE}, Affine.from_number(1)), ({0: ONE, 1: x}, Affine.from_number(0))]
    )
    assert values[0] == Affine.from_ratio(x, fmpz_poly([]), fmpz_poly([-1, 0, 1]))
    assert values[1] == Affine.from_ratio(fmpz_poly([-1]), fmpz_poly([]), fmpz_poly([-1, 0, 1]))
    with pytest.raises(NoRationalSolution, match="singular"):
        solve_affine_system(
            [({0: x, 1: x}, Affine.from_number(1)), ({0: ONE, 1: ONE}, Affine.from_number(1))]
        )


def test_rational_refinement_finds_what_a_solver_does_not_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    distances = [[abs(i - j) for j in range(3)] for i in range(3)]
    program = channel(3, distances, delta=True, weights=[1, 2, 1])
    deltas = Fraction(0), Fraction(1)
    expected, _ = find_regions(program, Fraction(1), None, deltas)

    def nothing(*_: object) -> None:
        raise NoRationalSolution("The solver proposes no basis.")

    monkeypatch.setattr(ParametricProgram, "propose_basis", nothing)
    other = channel(3, distances, delta=True, weights=[1, 2, 1])
    refined, left = find_regions(other, Fraction(1), None, deltas)
    assert not left
    at = Fraction(7, 3), Fraction(1, 50)
    values = []
    for parts in (expected, refined):
        here = next(
            r
            for r in parts
            if not r.low.is_above(at[0]) and (r.high is None or not r.high.is_below(at[0]))
        )
        values.append(
            next(f.value for f in here.formulas if f.low(at[0]) <= at[1] <= f.high(at[0]))
        )
    assert values[0] == values[1]


def test_bases_that_are_not_optimal_prove_nothing() -> None:
    from workbench.solvers.exact.regions import build_region

    distances = [[abs(i - j) for j in range(3)] for i in range(3)]
    program = channel(3, distances, delta=False, weights=[1] * 3)
    fixed = Fraction(0), Fraction(0)
    found, _ = find_regions(program, Fraction(1), None, fixed)
    assert len(found) > 1
    first, second = found[:2]
    assert second.high is None or second.high.is_above(second.sample)
    basis = first.formulas[0].vertex.basis
    again = build_region(
        program, [basis, basis], first.sample, (Root.from_rational(Fraction(1)), None), fixed
    )
    assert again.high is not None
    assert first.high is not None
    assert again.high.compare(first.high) == 0
    with pytest.raises(NoRationalSolution, match="does not hold"):
        build_region(
            program, [basis, basis], second.sample, (Root.from_rational(Fraction(1)), None), fixed
        )
    assert (
        program.compute_vertex(basis).value
        != program.compute_vertex(second.formulas[0].vertex.basis).value
    )
