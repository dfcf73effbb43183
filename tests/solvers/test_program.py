"""Tests of `compile_program`: a program has the numbers of CVXPY's canonical form, or is refused."""

from __future__ import annotations

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from workbench.solvers.backend import solve
from workbench.solvers.canonical import compile_program
from workbench.solvers.errors import InvalidProgram
from workbench.solvers.solution import compute_residuals

NUMBERS = st.floats(-100, 100, allow_subnormal=False).map(lambda value: round(value, 6))


def make_varied_problem():
    """State a problem with parameters of every shape, in every place where DPP allows them.

    Returns:
        The CVXPY problem, and its parameters by name.
    """
    p = {
        "scalar": cp.Parameter(name="scalar"),
        "vector": cp.Parameter(3, name="vector"),
        "matrix": cp.Parameter((2, 3), name="matrix"),
        "positive": cp.Parameter(name="positive", nonneg=True),
    }
    x = cp.Variable((2, 3), name="x", bounds=[-1, 4])
    y = cp.Variable(3, name="y")
    z = cp.Variable(name="z", bounds=[0, p["positive"]])
    rows = [
        cp.sum(cp.multiply(p["matrix"], x)) + p["scalar"] * y[0] >= p["scalar"] - 1,
        p["matrix"].T @ x[:, 0] + y == 2 * p["vector"],
        x @ p["vector"] <= 3,
        cp.norm1(y) <= 5 + p["positive"],
        cp.max(x) + z <= 10,
    ]
    cost = (
        cp.sum(cp.multiply(p["matrix"], x))
        + p["vector"] @ y
        + p["positive"] * cp.norm_inf(y)
        - 3 * z
    )
    return cp.Problem(cp.Minimize(cost + 2 * p["scalar"] + 1), rows), p


def canonicalize_with_cvxpy(problem):
    """Return CVXPY's numbers for HiGHS at the current values of the parameters.

    The result has the names of the fields of `Data` as keys.
    """
    data, _, _ = problem.get_problem_data(cp.HIGHS)
    c, offset, A, b = data["param_prob"].apply_parameters()
    return {
        "c": c,
        "offset": offset,
        "A": -A.toarray(),
        "row_upper": b,
        "lower": data["param_prob"].lower_bounds,
        "upper": data["param_prob"].upper_bounds,
    }


VARIED_PROBLEM, VARIED_PARAMETERS = make_varied_problem()
VARIED_PROGRAM = compile_program(VARIED_PROBLEM, "varied")


@settings(max_examples=40, deadline=None)
@given(
    scalar=NUMBERS,
    positive=NUMBERS.map(abs),
    vector=arrays(float, 3, elements=NUMBERS),
    matrix=arrays(float, (2, 3), elements=NUMBERS),
)
def test_numbers_at_any_parameters_are_those_of_cvxpy(scalar, positive, vector, matrix):
    values = {"scalar": scalar, "positive": positive, "vector": vector, "matrix": matrix}
    data = VARIED_PROGRAM.data(values)
    for name, parameter in VARIED_PARAMETERS.items():
        parameter.value = values[name]
    for section, expected in canonicalize_with_cvxpy(VARIED_PROBLEM).items():
        numbers = data.A.toarray() if section == "A" else getattr(data, section)
        np.testing.assert_allclose(numbers, expected, rtol=1e-14, atol=1e-14, err_msg=section)


def test_only_equations_have_a_lower_side():
    zeros = {name: np.zeros(parameter.shape) for name, parameter in VARIED_PARAMETERS.items()}
    data = VARIED_PROGRAM.data(zeros)
    is_equation = np.isfinite(data.row_lower)
    np.testing.assert_array_equal(data.row_lower[is_equation], data.row_upper[is_equation])
    assert is_equation.sum() == 3


def test_the_template_is_the_program_at_zero():
    zeros = {name: np.zeros(parameter.shape) for name, parameter in VARIED_PARAMETERS.items()}
    data = VARIED_PROGRAM.data(zeros)
    np.testing.assert_array_equal(data.A.toarray(), VARIED_PROGRAM.template.A.toarray())


def test_sections_that_no_parameter_moves_are_not_copied():
    zeros = {name: np.zeros(parameter.shape) for name, parameter in VARIED_PARAMETERS.items()}
    data = VARIED_PROGRAM.data(zeros)
    assert data.lower is VARIED_PROGRAM.template.lower
    assert data.c is not VARIED_PROGRAM.template.c


def test_values_of_cvxpy_parameters_do_not_change_the_program():
    problem, parameters = make_varied_problem()
    for k, parameter in enumerate(parameters.values()):
        parameter.value = np.full(parameter.shape, 1.5 + k)
    program = compile_program(problem)
    assert parameters["vector"].value.tolist() == [2.5, 2.5, 2.5]
    expected = VARIED_PROGRAM.template.A.toarray()
    np.testing.assert_array_equal(program.template.A.toarray(), expected)


def test_parameters_keep_names_and_shapes():
    expected = {"scalar": (), "vector": (3,), "matrix": (2, 3), "positive": ()}
    assert VARIED_PROGRAM.parameters == expected


def test_variables_keep_names_and_shapes():
    assert {block.name for block in VARIED_PROGRAM.variables} >= {"x", "y", "z"}
    assert VARIED_PROGRAM.block("x").shape == (2, 3)
    assert VARIED_PROGRAM.block("z").shape == ()


def test_every_column_and_row_belongs_to_a_block():
    row_count, column_count = VARIED_PROGRAM.shape
    assert sum(block.size for block in VARIED_PROGRAM.variables) == column_count
    assert sum(block.size for block in VARIED_PROGRAM.rows) == row_count


def test_a_program_as_a_text_begins_with_its_name_and_kind():
    assert str(VARIED_PROGRAM).startswith("varied: LP, ")


def test_an_unknown_variable_is_refused():
    with pytest.raises(KeyError, match="no variable 'w'"):
        VARIED_PROGRAM.block("w")


def test_a_matrix_variable_is_stored_in_fortran_order():
    x = cp.Variable((2, 3), name="x")
    target = np.arange(6.0).reshape(2, 3)
    program = compile_program(cp.Problem(cp.Minimize(cp.sum(x)), [x >= target]))
    columns = target.ravel(order="F")
    np.testing.assert_array_equal(program.block("x").read(columns), target)
    assert compute_residuals(program.template, columns).max_violation == 0
    exchanged_columns = columns[[1, 0, 2, 3, 4, 5]]
    assert compute_residuals(program.template, exchanged_columns).rows > 0


def test_row_blocks_have_the_labels_of_constraints():
    x = cp.Variable(2, name="x", nonneg=True)
    rows = [
        (x[0] + x[1] <= 3).set_label("budget"),
        x[0] >= 1,
        (x[0] == 2 * x[1]).set_label("ratio"),
    ]
    program = compile_program(cp.Problem(cp.Maximize(x[0]), rows))
    assert [block.name for block in program.rows] == ["ratio", "budget", "constraint[1]"]
    budget = next(block for block in program.rows if block.name == "budget")
    assert program.template.row_upper[budget.start] == 3
    assert program.template.A.toarray()[budget.start].tolist() == [1, 1]


def test_a_maximisation_is_stored_as_a_minimisation():
    x = cp.Variable(name="x", bounds=[0, 1])
    maximisation = compile_program(cp.Problem(cp.Maximize(2 * x)))
    minimisation = compile_program(cp.Problem(cp.Minimize(2 * x)))
    assert (maximisation.sense, minimisation.sense) == (-1, 1)
    assert maximisation.template.c.tolist() == [-2]
    assert minimisation.template.c.tolist() == [2]


def test_integer_and_boolean_variables_become_integer_columns():
    x = cp.Variable(2, name="x", integer=True)
    y = cp.Variable(name="y", boolean=True)
    z = cp.Variable(name="z")
    program = compile_program(
        cp.Problem(cp.Minimize(cp.sum(x) + y + z), [x >= -3, z >= 0, cp.sum(x) + y + z >= 1])
    )
    template = program.template
    assert template.integrality[program.block("x").start :][:2].tolist() == [True, True]
    y_column = program.block("y").start
    assert template.integrality[y_column]
    assert (template.lower[y_column], template.upper[y_column]) == (0, 1)
    assert program.is_mip
    assert "MILP, 3 integer" in str(program)


def test_a_parameter_without_effect_is_required():
    x = cp.Variable(name="x", bounds=[0, 1])
    unused = cp.Parameter(name="unused")
    program = compile_program(cp.Problem(cp.Minimize(x + 0 * unused), [x >= 0.5]))
    assert program.data({"unused": 3.0}).c.tolist() == [1]
    with pytest.raises(InvalidProgram, match=r"Missing \['unused'\]"):
        program.data({})


def test_a_scaled_program_has_the_same_points_in_other_units():
    x = cp.Variable(2, name="x", bounds=[0, 0.1])
    k = cp.Variable(name="k", integer=True, bounds=[0, 7])
    level = cp.Parameter(name="level")
    scale = 2.0**20
    problem = cp.Problem(cp.Minimize(3 * x[0] + 5 * k + 1), [x[0] + level * x[1] + 2 * k >= 0.3])
    program = compile_program(problem, scale=scale)
    data = program.data({"level": 0.7})
    scaled_data = data.with_scale(scale)
    x_column = program.block("x").start
    k_column = program.block("k").start
    point = np.zeros(3)
    point[x_column : x_column + 2] = 0.05, 0.02
    point[k_column] = 3
    scaled_point = np.where(data.integrality, point, point * scale)
    activities = data.A @ point
    np.testing.assert_allclose(scaled_data.A @ scaled_point, scale * activities, rtol=1e-15)
    objective = data.c @ point + data.offset
    scaled_objective = scaled_data.c @ scaled_point + scaled_data.offset
    assert scaled_objective == pytest.approx(scale * objective, rel=1e-15)
    assert scaled_data.upper[k_column] == 7
    assert scaled_data.upper[x_column] == 0.1 * scale


def test_a_scale_of_one_copies_nothing():
    data = VARIED_PROGRAM.template
    assert data.with_scale(1.0) is data


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, r"Missing \['level'\], unknown \[\]"),
        ({"level": 1.0, "delta": 1.0}, r"Missing \[\], unknown \['delta'\]"),
        ({"level": [1.0, 2.0]}, r"parameter level must be of shape \(\)\. Got shape \(2,\)\."),
        ({"level": np.nan}, "every parameter must be finite"),
        ({"level": np.inf}, "every parameter must be finite"),
    ],
)
def test_wrong_parameter_values_are_refused(values, message):
    x = cp.Variable(name="x")
    level = cp.Parameter(name="level")
    program = compile_program(cp.Problem(cp.Minimize(x), [x >= level]))
    with pytest.raises(InvalidProgram, match=message):
        program.data(values)


def list_refused_problems():
    """Return pytest parameters (CVXPY problem, part of the message) that cannot be compiled."""
    x = cp.Variable(2, name="x")
    y = cp.Variable(2, name="y")
    second_x = cp.Variable(2, name="x")
    p = cp.Parameter(name="p")
    q = cp.Parameter(name="q")
    second_p = cp.Parameter(name="p")
    symmetric_parameter = cp.Parameter((2, 2), name="S", symmetric=True)
    symmetric_variable = cp.Variable((2, 2), name="box", symmetric=True)
    cases = [
        # Name of the case, objective to minimise, constraints, part of the message.
        ("quadratic cost", cp.sum_squares(x), [], "linear objective"),
        ("cone", x[0], [cp.norm2(x) <= 1], "linear"),
        ("exponential", x[0], [cp.exp(x[1]) <= 1], "linear"),
        (
            "semidefinite",
            cp.trace(symmetric_variable),
            [symmetric_variable >> np.eye(2)],
            "linear",
        ),
        ("not DPP", p * q * x[0], [x >= 0], "DPP"),
        ("not convex", -cp.abs(x[0]), [x >= 0], "DPP"),
        (
            "shared variable name",
            cp.sum(x + second_x),
            [x >= 0, second_x >= 0],
            "distinct variable",
        ),
        ("shared parameter name", p * x[0] + second_p * y[0], [x >= 0], "distinct parameter"),
        ("attribute", cp.sum(symmetric_parameter @ x), [x >= 0], "attributes"),
        ("variable attribute", cp.sum(symmetric_variable), [symmetric_variable >= 0], "attributes"),
    ]
    return [
        pytest.param(cp.Problem(cp.Minimize(objective), constraints), message, id=name)
        for name, objective, constraints, message in cases
    ]


@pytest.mark.parametrize(("problem", "message"), list_refused_problems())
def test_a_problem_that_is_no_linear_program_is_refused(problem, message):
    with pytest.raises(InvalidProgram, match=message):
        compile_program(problem, "the model")


@pytest.mark.parametrize(
    ("section", "value", "message"),
    [
        ("c", np.nan, "every cost must be finite"),
        ("c", 1e15, "every cost must be below 1e15"),
        ("lower", np.nan, "every variable bound must be a number"),
        ("lower", np.inf, "crossed|below inf"),
        ("upper", -np.inf, "crossed|above -inf"),
        ("upper", -1.0, "variable 0 has crossed bounds: 0 > -1"),
        ("row_upper", 1e16, "every finite row bound must be below 1e15"),
        ("row_lower", 9.0, "row 0 has crossed bounds"),
    ],
)
def test_a_number_that_solvers_misread_is_refused(section, value, message):
    x = cp.Variable(name="x", bounds=[0, 2])
    data = compile_program(cp.Problem(cp.Minimize(x), [x <= 1])).template
    data.check()
    getattr(data, section)[0] = value
    with pytest.raises(InvalidProgram, match=message):
        data.check()


@pytest.mark.parametrize("value", [1e-12, -9.9e-10, 1e15, np.nan, np.inf])
def test_a_coefficient_that_solvers_misread_is_refused(value):
    x = cp.Variable(name="x", bounds=[0, 2])
    data = compile_program(cp.Problem(cp.Minimize(x), [x <= 1])).template
    data.A.data[0] = value
    with pytest.raises(InvalidProgram, match="coefficient"):
        data.check()


def test_a_stored_coefficient_of_zero_is_accepted():
    x = cp.Variable(name="x", bounds=[0, 2])
    data = compile_program(cp.Problem(cp.Minimize(x), [x <= 1])).template
    data.A.data[0] = 0.0
    data.check()


def test_a_factor_of_the_costs_does_not_change_the_solution():
    """Without the factor, the costs are below HiGHS's tolerance and every point is optimal."""
    x = cp.Variable(2, name="x", bounds=[0, 3])
    program = compile_program(
        cp.Problem(cp.Minimize(1e-10 * x[0] + 3e-10 * x[1] + 1), [x[0] + x[1] >= 2]),
        "tiny",
        scale=4,
    )
    solution = solve(replace(program, cost=2.0**40), solver="highs")
    assert solution["x"].tolist() == [2, 0]
    assert solution.objective == pytest.approx(1 + 2e-10, rel=1e-15)
    assert solution.bound == pytest.approx(1 + 2e-10, rel=1e-15)
    assert solution.row_dual == pytest.approx([-1e-10], rel=1e-9)
    assert solution.reduced_cost == pytest.approx([0, 2e-10], rel=1e-9, abs=1e-20)
