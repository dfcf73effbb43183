"""Compiled programs equal CVXPY's canonical data; other problems are refused."""

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


def rich_model():
    """Parameters of every shape, in every place where DPP admits them."""
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


def canonical(problem):
    """c, offset, A, b, bounds as CVXPY states them for HiGHS at the parameters' current values."""
    data, _, _ = problem.get_problem_data(cp.HIGHS)
    c, offset, A, b = data["param_prob"].apply_parameters()
    return (
        c,
        offset,
        -A.toarray(),
        b,
        data["param_prob"].lower_bounds,
        data["param_prob"].upper_bounds,
    )


RICH, RICH_PARAMETERS = rich_model()
RICH_PROGRAM = compile_program(RICH, "rich")


@settings(max_examples=40, deadline=None)
@given(
    scalar=NUMBERS,
    positive=NUMBERS.map(abs),
    vector=arrays(float, 3, elements=NUMBERS),
    matrix=arrays(float, (2, 3), elements=NUMBERS),
)
def test_the_map_is_cvxpys(scalar, positive, vector, matrix):
    values = {"scalar": scalar, "positive": positive, "vector": vector, "matrix": matrix}
    data = RICH_PROGRAM.data(values)
    for name, parameter in RICH_PARAMETERS.items():
        parameter.value = values[name]
    c, offset, A, b, lower, upper = canonical(RICH)
    close = {"rtol": 1e-14, "atol": 1e-14}
    np.testing.assert_allclose(data.c, c, **close)
    np.testing.assert_allclose(data.offset, offset, **close)
    np.testing.assert_allclose(data.A.toarray(), A, **close)
    np.testing.assert_allclose(data.row_upper, b, **close)
    np.testing.assert_allclose(data.lower, lower, **close)
    np.testing.assert_allclose(data.upper, upper, **close)
    equal = np.isfinite(data.row_lower)
    np.testing.assert_array_equal(data.row_lower[equal], data.row_upper[equal])
    assert equal.sum() == 3


def test_template_is_at_zero_and_shared():
    zeros = {name: np.zeros(parameter.shape) for name, parameter in RICH_PARAMETERS.items()}
    data = RICH_PROGRAM.data(zeros)
    np.testing.assert_array_equal(data.A.toarray(), RICH_PROGRAM.template.A.toarray())
    assert data.lower is RICH_PROGRAM.template.lower  # no parameter moves it
    assert data.c is not RICH_PROGRAM.template.c


def test_values_left_in_the_model_do_not_matter():
    problem, p = rich_model()
    for k, parameter in enumerate(p.values()):
        parameter.value = np.full(parameter.shape, 1.5 + k)
    again = compile_program(problem)
    assert p["vector"].value.tolist() == [2.5, 2.5, 2.5]
    np.testing.assert_array_equal(again.template.A.toarray(), RICH_PROGRAM.template.A.toarray())


def test_names_and_shapes():
    program = RICH_PROGRAM
    assert program.parameters == {"scalar": (), "vector": (3,), "matrix": (2, 3), "positive": ()}
    assert program.block("x").shape == (2, 3)
    assert program.block("z").shape == ()
    assert {block.name for block in program.variables} >= {"x", "y", "z"}
    assert sum(block.size for block in program.variables) == program.shape[1]
    assert sum(block.size for block in program.rows) == program.shape[0]
    assert str(program).startswith("rich: LP, ")
    with pytest.raises(KeyError, match="no variable 'w'"):
        program.block("w")


def test_matrices_are_read_in_their_own_shape():
    x = cp.Variable((2, 3), name="x")
    target = np.arange(6.0).reshape(2, 3)
    program = compile_program(cp.Problem(cp.Minimize(cp.sum(x)), [x >= target]))
    columns = target.ravel(order="F")
    np.testing.assert_array_equal(program.block("x").read(columns), target)
    assert compute_residuals(program.template, columns).max_violation == 0
    assert compute_residuals(program.template, columns[[1, 0, 2, 3, 4, 5]]).rows > 0


def test_labelled_constraints():
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


def test_sense():
    x = cp.Variable(name="x", bounds=[0, 1])
    up, down = (
        compile_program(cp.Problem(cp.Maximize(2 * x))),
        compile_program(cp.Problem(cp.Minimize(2 * x))),
    )
    assert (up.sense, down.sense) == (-1, 1)
    assert up.template.c.tolist() == [-2]
    assert down.template.c.tolist() == [2]


def test_integers():
    x, y, z = (
        cp.Variable(2, name="x", integer=True),
        cp.Variable(name="y", boolean=True),
        cp.Variable(name="z"),
    )
    program = compile_program(
        cp.Problem(cp.Minimize(cp.sum(x) + y + z), [x >= -3, z >= 0, cp.sum(x) + y + z >= 1])
    )
    template = program.template
    assert template.integrality[program.block("x").start :][:2].tolist() == [True, True]
    at = program.block("y").start
    assert (template.integrality[at], template.lower[at], template.upper[at]) == (True, 0, 1)
    assert program.is_mip
    assert "MILP, 3 integer" in str(program)


def test_a_parameter_without_effect_is_still_asked_for():
    x = cp.Variable(name="x", bounds=[0, 1])
    idle = cp.Parameter(name="idle")
    program = compile_program(cp.Problem(cp.Minimize(x + 0 * idle), [x >= 0.5]))
    assert program.data({"idle": 3.0}).c.tolist() == [1]
    with pytest.raises(InvalidProgram, match=r"Missing \['idle'\]"):
        program.data({})


def test_scaling_is_exact():
    x, k = (
        cp.Variable(2, name="x", bounds=[0, 0.1]),
        cp.Variable(name="k", integer=True, bounds=[0, 7]),
    )
    level = cp.Parameter(name="level")
    scale = 2.0**20
    problem = cp.Problem(cp.Minimize(3 * x[0] + 5 * k + 1), [x[0] + level * x[1] + 2 * k >= 0.3])
    program = compile_program(problem, scale=scale)
    data = program.data({"level": 0.7})
    scaled = data.with_scale(scale)
    point = np.zeros(3)
    point[program.block("x").start :][:2] = 0.05, 0.02
    point[program.block("k").start] = 3
    moved = np.where(data.integrality, point, point * scale)
    np.testing.assert_allclose(scaled.A @ moved, scale * (data.A @ point), rtol=1e-15)
    assert scaled.c @ moved + scaled.offset == pytest.approx(
        scale * (data.c @ point + data.offset), rel=1e-15
    )
    assert scaled.upper[program.block("k").start] == 7
    assert scaled.upper[program.block("x").start] == 0.1 * scale
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
def test_refused_values(values, message):
    x, level = cp.Variable(name="x"), cp.Parameter(name="level")
    program = compile_program(cp.Problem(cp.Minimize(x), [x >= level]))
    with pytest.raises(InvalidProgram, match=message):
        program.data(values)


def refused():
    x, y = cp.Variable(2, name="x"), cp.Variable(2, name="y")
    p, q = cp.Parameter(name="p"), cp.Parameter(name="q")
    twin, same = cp.Variable(2, name="x"), cp.Parameter(name="p")
    symmetric = cp.Parameter((2, 2), name="S", symmetric=True)
    box = cp.Variable((2, 2), name="box", symmetric=True)
    yield "quadratic cost", cp.Problem(cp.Minimize(cp.sum_squares(x))), "linear objective"
    yield "cone", cp.Problem(cp.Minimize(x[0]), [cp.norm2(x) <= 1]), "linear"
    yield "exponential", cp.Problem(cp.Minimize(x[0]), [cp.exp(x[1]) <= 1]), "linear"
    yield "semidefinite", cp.Problem(cp.Minimize(cp.trace(box)), [box >> np.eye(2)]), "linear"
    yield "not DPP", cp.Problem(cp.Minimize(p * q * x[0]), [x >= 0]), "DPP"
    yield "not convex", cp.Problem(cp.Minimize(-cp.abs(x[0])), [x >= 0]), "DPP"
    yield (
        "shared variable name",
        cp.Problem(cp.Minimize(cp.sum(x + twin)), [x >= 0, twin >= 0]),
        "distinct variable",
    )
    yield (
        "shared parameter name",
        cp.Problem(cp.Minimize(p * x[0] + same * y[0]), [x >= 0]),
        "distinct parameter",
    )
    yield "attribute", cp.Problem(cp.Minimize(cp.sum(symmetric @ x)), [x >= 0]), "attributes"
    yield "variable attribute", cp.Problem(cp.Minimize(cp.sum(box)), [box >= 0]), "attributes"


@pytest.mark.parametrize(
    ("problem", "message"), [pytest.param(p, m, id=name) for name, p, m in refused()]
)
def test_refused_problems(problem, message):
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
def test_check(section, value, message):
    x = cp.Variable(name="x", bounds=[0, 2])
    data = compile_program(cp.Problem(cp.Minimize(x), [x <= 1])).template
    data.check()
    getattr(data, section)[0] = value
    with pytest.raises(InvalidProgram, match=message):
        data.check()


@pytest.mark.parametrize("value", [1e-12, -9.9e-10, 1e15, np.nan, np.inf])
def test_check_of_coefficients(value):
    x = cp.Variable(name="x", bounds=[0, 2])
    data = compile_program(cp.Problem(cp.Minimize(x), [x <= 1])).template
    data.A.data[0] = value
    with pytest.raises(InvalidProgram, match="coefficient"):
        data.check()
    data.A.data[0] = 0.0
    data.check()


def test_larger_costs_are_the_same_program():
    x = cp.Variable(2, name="x", bounds=[0, 3])
    program = compile_program(
        cp.Problem(cp.Minimize(1e-10 * x[0] + 3e-10 * x[1] + 1), [x[0] + x[1] >= 2]),
        "tiny",
        scale=4,
    )
    solution = solve(replace(program, cost=2.0**40), solver="highs")
    assert solution["x"].tolist() == [
        2,
        0,
    ]  # at costs below its tolerance every point would be an optimum
    assert solution.objective == pytest.approx(1 + 2e-10, rel=1e-15)
    assert solution.bound == pytest.approx(1 + 2e-10, rel=1e-15)
    assert solution.row_dual == pytest.approx([-1e-10], rel=1e-9)
    assert solution.reduced_cost == pytest.approx([0, 2e-10], rel=1e-9, abs=1e-20)
