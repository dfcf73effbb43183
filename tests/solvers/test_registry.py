"""Tests of the registry of backends: labels, the table of `workbench doctor`, and refusals."""

from __future__ import annotations

from importlib.metadata import version

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from workbench.solvers import contract
from workbench.solvers.backend import (
    CLASSES,
    Options,
    describe_backends,
    get_backend,
    list_backend_names,
    solve,
)
from workbench.solvers.canonical import compile_program
from workbench.solvers.contract import Capabilities, Licence
from workbench.solvers.errors import (
    BackendUnavailable,
    LicenceExceeded,
    SolverError,
    UnsupportedOption,
)
from workbench.solvers.program import Block, Data, Program


def make_line(integer=False):
    """State min -x with 0 <= x <= 2, where x is a real or an integer."""
    data = Data(
        c=np.array([-1.0]),
        offset=0.0,
        A=sp.csc_array((0, 1)),
        row_lower=np.zeros(0),
        row_upper=np.zeros(0),
        lower=np.array([0.0]),
        upper=np.array([2.0]),
        integrality=np.array([integer]),
    )
    return Program("line", data, variables=(Block("x", 0, (1,)),))


def test_all_backends_and_variants_are_listed():
    labels = list_backend_names()
    assert labels[0] == "highs"
    expected = {"gurobi", "ortools:glop", "ortools:pdlp", "ortools:cp-sat", "ortools:gscip", "scip"}
    expected |= {"cvxpy:clarabel", "cvxpy:scs"}
    assert expected <= set(labels)


def test_a_backend_has_the_label_by_which_it_is_found():
    for label in list_backend_names():
        assert get_backend(label).label == label


def test_every_backend_has_a_class_and_a_table():
    names = {label.partition(":")[0] for label in list_backend_names()}
    assert set(contract.TABLES) == set(CLASSES) == names


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("simplex", r"^solver must be one of highs, gurobi, .*\. Got 'simplex'\.$"),
        (
            "ortools:scip",
            r"^the variant of ortools must be one of glop, pdlp, cp-sat, gscip\. Got 'scip'\.$",
        ),
        ("highs:ipm", r"^the variant of highs must be left out\. Got 'ipm'\.$"),
        ("", "solver must be one of"),
        ("glop", r"Got 'glop'\. Did you mean ortools:glop\?$"),
        ("hihgs", r"Got 'hihgs'\. Did you mean highs\?$"),
    ],
)
def test_an_unknown_label_is_refused(label, message):
    with pytest.raises(BackendUnavailable, match=message):
        get_backend(label)


def test_the_table_of_backends_describes_highs():
    rows = describe_backends()
    assert [row["name"] for row in rows] == list_backend_names()
    assert [row["name"] for row in rows if row["default"]] == ["highs"]
    highs_row = rows[0]
    assert highs_row["installed"] is True
    assert highs_row["version"] == version("highspy")
    assert "hot start" in highs_row["capabilities"]


def test_licences_are_described_only_on_request():
    assert all(row["licence"] is None for row in describe_backends())
    rows_by_name = {row["name"]: row for row in describe_backends(probe=True)}
    assert rows_by_name["highs"]["licence"] == "open source"
    gurobi_row = rows_by_name["gurobi"]
    assert (gurobi_row["licence"] is not None) == gurobi_row["installed"]


def test_a_label_without_variant_selects_one_for_the_program():
    assert solve(make_line(), solver="ortools").solver == "ortools:glop"
    assert solve(make_line(integer=True), solver="ortools").solver == "ortools:gscip"
    assert solve(make_line(), solver="cvxpy").solver == "cvxpy:clarabel"


def test_a_backend_that_is_not_installed_is_refused(monkeypatch):
    monkeypatch.setattr(contract, "is_importable", lambda module: False)
    message = r"^highs is not installed \(pip install highspy\)\.$"
    with pytest.raises(BackendUnavailable, match=message):
        solve(make_line())


def test_gurobi_without_a_licence_is_refused(monkeypatch):
    gurobi = get_backend("gurobi")
    if not gurobi.is_installed():
        pytest.skip("gurobi is not installed")
    from workbench.solvers.backends import gurobi as gurobi_backend

    def refuse(process):
        """Fail as Gurobi with an expired licence."""
        raise BackendUnavailable("gurobi has no usable licence: expired")

    monkeypatch.setattr(gurobi_backend, "_get_environment", refuse)
    gurobi_backend._is_restricted.cache_clear()
    assert gurobi.licence() == Licence("gurobi has no usable licence: expired", usable=False)
    with pytest.raises(BackendUnavailable, match="no usable licence"):
        solve(make_line(), solver="gurobi")


@pytest.mark.parametrize(
    ("solver", "integer", "message"),
    [
        ("ortools:glop", True, "ortools:glop cannot solve mixed-integer programs, and line is one"),
        ("ortools:cp-sat", False, "ortools:cp-sat cannot solve linear programs, and line is one"),
        ("cvxpy", True, "cvxpy:clarabel cannot solve mixed-integer"),
    ],
)
def test_a_program_of_the_wrong_kind_is_refused(solver, integer, message):
    with pytest.raises(BackendUnavailable, match=message):
        solve(make_line(integer=integer), solver=solver)


def test_errors_have_a_common_base():
    assert issubclass(LicenceExceeded, BackendUnavailable)
    assert issubclass(BackendUnavailable, SolverError)
    assert issubclass(UnsupportedOption, ValueError)


def test_capabilities_are_described_by_their_names():
    assert Capabilities(milp=True, hot_start=True).describe() == "lp, milp, hot start"


def test_a_licence_is_described_with_its_limits():
    assert str(Licence("full")) == "full"
    limited_licence = Licence("size-limited", max_columns=2000, max_rows=2000)
    assert str(limited_licence) == "size-limited: at most 2000 columns and 2000 rows"


def test_options_without_a_value_are_not_listed():
    assert Options(gap=0.1, threads=None).list_set_options() == {"gap": 0.1}


def test_the_selected_variant_refuses_an_option_that_it_does_not_have():
    message = "ortools:gscip cannot honour the option iteration_limit"
    with pytest.raises(UnsupportedOption, match=message):
        solve(make_line(integer=True), solver="ortools", options=Options(iteration_limit=5))


def test_a_compiled_model_is_solved_at_parameter_values():
    x = cp.Variable(3, name="x", bounds=[0, 1])
    level = cp.Parameter(name="level")
    program = compile_program(cp.Problem(cp.Maximize(cp.sum(x)), [x[0] + x[1] <= level]), "model")
    solution = solve(program, {"level": 0.5})
    assert solution.objective == pytest.approx(1.5)
    assert solution["x"].shape == (3,)
