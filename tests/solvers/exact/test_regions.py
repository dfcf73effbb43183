"""Tests of formulas of parametric programs: their values, ends and proofs.

Most tests use channels of k answers under DP with a parameter x = e^ε. Answers that differ by 1 are
neighbours.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from flint import fmpz_poly

from workbench.models.channel.program import ChannelModel, consecutive_pairs
from workbench.solvers.errors import NoRationalSolution
from workbench.solvers.exact.parametric import ParametricProgram, solve_affine_system
from workbench.solvers.exact.polynomials import ONE, ZERO, Affine, Root, find_sign_interval
from workbench.solvers.exact.rational_lp import RationalLP
from workbench.solvers.exact.rational_refinement import solve_rational
from workbench.solvers.exact.regions import Formula, Region, build_region, find_regions
from workbench.solvers.program import Data, Program
from workbench.solvers.search import Deadline

REFINEMENT_ERROR = Fraction(1, 1 << 40)  # Rational refinement is at least this accurate.
ZERO_DELTA = (Fraction(0), Fraction(0))
ALL_DELTAS = (Fraction(0), Fraction(1))


def make_channel(
    losses: Sequence[Sequence[int]], *, has_delta: bool, weights: Sequence[int]
) -> ParametricProgram:
    """State the optimal channel of k answers and outputs in x = e^ε, and in δ if `has_delta`.

    Args:
        losses: (k, k) loss of each answer and output.
        has_delta: whether δ is a parameter. Otherwise it is 0.
        weights: (k,) the prior is proportional to them.
    """
    k = len(losses)
    answers = np.arange(float(k))
    total = sum(weights)
    prior = np.array([weight / total for weight in weights])
    model = ChannelModel(
        answers,
        answers,
        prior,
        loss=np.array(losses, float),
        pairs=consecutive_pairs(k),
        has_delta=has_delta,
    )
    first_column = model.program.block("M").start
    exact_costs = {}
    for i in range(k):
        for j in range(k):
            exact_costs[first_column + i + j * k] = Fraction(weights[i] * losses[i][j], total)
    delta = "delta" if has_delta else None
    return ParametricProgram(model.program, {"exp_epsilon": [1]}, delta, exact={"c": exact_costs})


def list_distances(k: int) -> list[list[int]]:
    """Return the absolute errors (k, k) of k answers and outputs."""
    return [[abs(i - j) for j in range(k)] for i in range(k)]


def refine_optimum(program: ParametricProgram, x: Fraction, delta: Fraction) -> Fraction:
    """Compute the optimum by rational refinement, which uses no code of polynomials."""
    # The parameter exp_epsilon has one entry, x^1.
    values = {"exp_epsilon": [x]}
    if program.delta:
        values["delta"] = [delta]
    double_lp = RationalLP.from_program(program.program, values)
    # Refinement needs costs whose denominators are powers of two, so the exact costs are scaled.
    scale = math.lcm(*(int(cost.denom()) for cost in program.cost))
    lp = RationalLP(double_lp.columns)
    lp.bounds = double_lp.bounds
    lp.sides = double_lp.sides
    lp.rows = double_lp.rows
    lp.cost = [Fraction(int((cost * scale).numer()[0])) for cost in program.cost]
    return solve_rational(lp).objective / scale


def find_formula(regions: Sequence[Region], x: Fraction, delta: Fraction) -> Formula:
    """Return the formula of the region that contains (x, δ)."""
    for region in regions:
        is_right_of_low = not region.low.is_above(x)
        is_left_of_high = region.high is None or not region.high.is_below(x)
        if is_right_of_low and is_left_of_high:
            for formula in region.formulas:
                if formula.low(x) <= delta <= formula.high(x):
                    return formula
    raise LookupError(f"no region contains x = {x}, delta = {delta}")


@pytest.mark.parametrize("seed", range(6))
def test_formulas_of_random_channels_are_the_optima(seed: int) -> None:
    rng = random.Random(seed)
    k = rng.choice([3, 4])
    has_delta = bool(seed % 2)
    losses = [[0 if i == j else rng.randint(1, 6) for j in range(k)] for i in range(k)]
    weights = [rng.randint(1, 4) for _ in range(k)]
    program = make_channel(losses, has_delta=has_delta, weights=weights)
    deltas = ALL_DELTAS if has_delta else ZERO_DELTA
    regions, open_intervals = find_regions(program, Fraction(1), high=None, deltas=deltas)
    program.close()
    assert not open_intervals
    # The regions cover x >= 1 without a gap or an overlap.
    for first, second in pairwise(regions):
        assert first.high is not None
        assert first.high.compare(second.low) == 0
    assert regions[-1].high is None
    for _ in range(6):
        x = Fraction(rng.randint(1 << 12, 1 << 15), 1 << 12)
        delta = Fraction(rng.randint(0, 1 << 10), 1 << 10) if has_delta else Fraction(0)
        value = find_formula(regions, x, delta).value
        assert value is not None
        assert abs(value(x, delta) - refine_optimum(program, x, delta)) < REFINEMENT_ERROR


def test_consecutive_formulas_are_equal_where_they_meet() -> None:
    program = make_channel(list_distances(4), has_delta=True, weights=[1] * 4)
    regions, _ = find_regions(program, Fraction(1), high=None, deltas=ALL_DELTAS)
    for region in regions:
        for first, second in pairwise(region.formulas):
            assert first.value is not None
            assert second.value is not None
            meeting_delta = first.high
            assert meeting_delta == second.low
            ratio = (meeting_delta.constant, meeting_delta.denominator)
            assert first.value.substitute_delta(*ratio) == second.value.substitute_delta(*ratio)


def test_the_side_of_a_row_may_depend_on_x() -> None:
    """The optimum of min z with z >= 0 and z >= -x is 0 for every x >= 1."""
    from workbench.models.statement import Parameter, Problem, Variable

    z = Variable(1, "z")
    x = Parameter(1, "exp_epsilon")
    program = Problem(z, [z * -1.0 <= x]).to_program("moving side")
    parametric = ParametricProgram(program, {"exp_epsilon": [1]}, exact={"row_upper": {}})
    regions, _ = find_regions(parametric, Fraction(1), high=None, deltas=ZERO_DELTA)
    assert [[f.value for f in region.formulas] for region in regions] == [[Affine.from_number(0)]]


def test_an_infeasible_interval_has_a_formula_without_value() -> None:
    """The rows z >= 2 and z <= 1 have no solution."""
    data = Data(
        np.ones(1),
        offset=0.0,
        A=sp.csc_array(np.array([[1.0], [1.0]])),
        row_lower=np.array([2.0, -np.inf]),
        row_upper=np.array([np.inf, 1.0]),
        lower=np.zeros(1),
        upper=np.array([np.inf]),
        integrality=np.zeros(1, dtype=bool),
    )
    program = ParametricProgram(Program("empty", data), {})
    regions, _ = find_regions(program, Fraction(1), high=None, deltas=ZERO_DELTA)
    assert [[f.value for f in region.formulas] for region in regions] == [[None]]


def test_after_the_time_limit_the_whole_interval_is_open() -> None:
    program = make_channel(list_distances(4), has_delta=False, weights=[1] * 4)
    regions, open_intervals = find_regions(
        program, Fraction(1), high=None, deltas=ZERO_DELTA, deadline=Deadline(-1.0)
    )
    assert regions == []
    assert [(float(low), high) for low, high in open_intervals] == [(1.0, None)]


def test_programs_with_integer_columns_are_refused() -> None:
    data = Data(
        np.ones(1),
        offset=0.0,
        A=sp.csc_array(np.array([[1.0]])),
        row_lower=np.zeros(1),
        row_upper=np.ones(1),
        lower=np.zeros(1),
        upper=np.ones(1),
        integrality=np.ones(1, dtype=bool),
    )
    with pytest.raises(NoRationalSolution, match="without integer columns"):
        ParametricProgram(Program("binary", data), {})


def test_sign_intervals_end_at_the_roots_of_a_polynomial() -> None:
    """The roots above 1 are 7/5, √2 and √3."""
    polynomial = fmpz_poly([-7, 5]) * fmpz_poly([-2, 0, 1]) * fmpz_poly([-3, 0, 1])
    samples = [Fraction(6, 5), Fraction(141, 100), Fraction(3, 2), Fraction(2)]
    one = Root.from_rational(Fraction(1))
    intervals = [
        find_sign_interval(polynomials=[polynomial], x=x, low=one, high=None) for x in samples
    ]
    expected = [
        (1, 7 / 5),
        (7 / 5, math.sqrt(2)),
        (math.sqrt(2), math.sqrt(3)),
        (math.sqrt(3), None),
    ]
    for (low, high), (expected_low, expected_high) in zip(intervals, expected, strict=True):
        assert float(low) == pytest.approx(expected_low)
        assert (None if high is None else float(high)) == pytest.approx(expected_high)


def test_roots_are_compared_exactly() -> None:
    """√2 is found in two ways, as the upper and as the lower end of an interval."""
    one = Root.from_rational(Fraction(1))
    seven_fifths = Root.from_rational(Fraction(7, 5))
    x = Fraction(141, 100)  # It lies between 7/5 and √2.
    product = fmpz_poly([-7, 5]) * fmpz_poly([-2, 0, 1])
    low, sqrt_2 = find_sign_interval(polynomials=[product], x=x, low=one, high=None)
    same_sqrt_2, _ = find_sign_interval(polynomials=[product], x=Fraction(3, 2), low=one, high=None)
    _, sqrt_3 = find_sign_interval(polynomials=[fmpz_poly([-3, 0, 1])], x=x, low=one, high=None)
    assert sqrt_2 is not None
    assert sqrt_3 is not None
    assert low.compare(seven_fifths) == 0
    assert same_sqrt_2.compare(sqrt_2) == 0
    assert sqrt_2.halve().halve().compare(same_sqrt_2) == 0
    assert sqrt_2.compare(seven_fifths) == 1
    assert sqrt_2.compare(sqrt_3) == -1


def test_an_interval_does_not_end_at_a_double_root() -> None:
    double_root_at_2 = fmpz_poly([-2, 1]) * fmpz_poly([-2, 1])
    root_at_5 = fmpz_poly([5, -1])
    one = Root.from_rational(Fraction(1))
    low, high = find_sign_interval([double_root_at_2, root_at_5], Fraction(3, 2), one, high=None)
    assert high is not None
    assert (low.low, high.low) == (1, 5)


def test_equations_with_polynomials_are_solved() -> None:
    """x z_0 + z_1 = 1 and z_0 + x z_1 = 0 have the solution x/(x² - 1) and -1/(x² - 1)."""
    x = fmpz_poly([0, 1])
    values = solve_affine_system(
        [({0: x, 1: ONE}, Affine.from_number(1)), ({0: ONE, 1: x}, Affine.from_number(0))]
    )
    denominator = fmpz_poly([-1, 0, 1])
    assert values[0] == Affine.from_ratio(x, ZERO, denominator)
    assert values[1] == Affine.from_ratio(fmpz_poly([-1]), ZERO, denominator)


def test_singular_equations_are_refused() -> None:
    x = fmpz_poly([0, 1])
    with pytest.raises(NoRationalSolution, match="singular"):
        solve_affine_system(
            [({0: x, 1: x}, Affine.from_number(1)), ({0: ONE, 1: ONE}, Affine.from_number(1))]
        )


def test_rational_refinement_finds_bases_if_the_solver_proposes_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def find_channel_regions() -> list[Region]:
        """Find the regions of a channel with three inputs. They cover all x >= 1."""
        program = make_channel(list_distances(3), has_delta=True, weights=[1, 2, 1])
        regions, open_intervals = find_regions(program, Fraction(1), high=None, deltas=ALL_DELTAS)
        assert not open_intervals
        return regions

    def propose_nothing(*_: object) -> None:
        raise NoRationalSolution("The solver proposes no basis.")

    proposed_regions = find_channel_regions()
    monkeypatch.setattr(ParametricProgram, "propose_basis", propose_nothing)
    refined_regions = find_channel_regions()
    x = Fraction(7, 3)
    delta = Fraction(1, 50)
    proposed_value = find_formula(proposed_regions, x, delta).value
    assert find_formula(refined_regions, x, delta).value == proposed_value


def test_a_region_is_built_only_around_a_sample_where_its_basis_is_optimal() -> None:
    program = make_channel(list_distances(3), has_delta=False, weights=[1] * 3)
    regions, _ = find_regions(program, Fraction(1), high=None, deltas=ZERO_DELTA)
    first, second = regions[:2]
    basis = first.formulas[0].vertex.basis
    ends = (Root.from_rational(Fraction(1)), None)
    # The first basis is for the lower end of δ, the second for the only formula.
    rebuilt = build_region(program, [basis, basis], x=first.sample, ends=ends, deltas=ZERO_DELTA)
    assert rebuilt.high is not None
    assert first.high is not None
    assert rebuilt.high.compare(first.high) == 0
    with pytest.raises(NoRationalSolution, match="does not hold"):
        build_region(program, [basis, basis], x=second.sample, ends=ends, deltas=ZERO_DELTA)
