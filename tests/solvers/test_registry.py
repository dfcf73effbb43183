"""The registry, the list for `workbench doctor`, and refusals before a solver is used."""

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


def line(integer=False):
    """min -x, 0 <= x <= 2."""
    one = np.ones(1)
    data = Data(
        -one,
        0.0,
        sp.csc_array((0, 1)),
        np.zeros(0),
        np.zeros(0),
        0 * one,
        2 * one,
        np.array([integer]),
    )
    return Program("line", data, variables=(Block("x", 0, (1,)),))


def test_names_are_labels():
    assert list_backend_names()[0] == "highs"
    assert {
        "gurobi",
        "ortools:glop",
        "ortools:pdlp",
        "ortools:cp-sat",
        "ortools:gscip",
        "scip",
    } <= set(list_backend_names())
    assert {"cvxpy:clarabel", "cvxpy:scs"} <= set(list_backend_names())
    for name in list_backend_names():
        assert get_backend(name).label == name
    assert (
        set(contract.TABLES)
        == set(CLASSES)
        == {name.partition(":")[0] for name in list_backend_names()}
    )


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
    ],
)
def test_unknown_labels(label, message):
    with pytest.raises(BackendUnavailable, match=message):
        get_backend(label)


def test_listing():
    rows = describe_backends()
    assert [row["name"] for row in rows] == list_backend_names()
    assert [row["name"] for row in rows if row["default"]] == ["highs"]
    assert all(row["licence"] is None for row in rows)
    first = rows[0]
    assert first["installed"] is True
    assert first["version"] == version("highspy")
    assert "hot start" in first["capabilities"]
    probed = {row["name"]: row for row in describe_backends(probe=True)}
    assert probed["highs"]["licence"] == "open source"
    assert (probed["gurobi"]["licence"] is None) is not probed["gurobi"]["installed"]


def test_plain_families_pick_a_variant():
    assert solve(line(), solver="ortools").solver == "ortools:glop"
    assert solve(line(integer=True), solver="ortools").solver == "ortools:gscip"
    assert solve(line(), solver="cvxpy").solver == "cvxpy:clarabel"


def test_not_installed(monkeypatch):
    monkeypatch.setattr(contract, "is_importable", lambda module: False)
    with pytest.raises(
        BackendUnavailable, match=r"^highs is not installed \(pip install highspy\)\.$"
    ):
        solve(line())


def test_no_licence(monkeypatch):
    gurobi = get_backend("gurobi")
    if not gurobi.is_installed():
        pytest.skip("gurobi is not installed")
    from workbench.solvers.backends import gurobi as gurobi_backend

    def refuse(process):
        raise BackendUnavailable("gurobi has no usable licence: expired")

    monkeypatch.setattr(gurobi_backend, "_get_environment", refuse)
    gurobi_backend._is_restricted.cache_clear()
    assert gurobi.licence() == Licence("gurobi has no usable licence: expired", usable=False)
    with pytest.raises(BackendUnavailable, match="no usable licence"):
        solve(line(), solver="gurobi")


def test_wrong_kind_of_program():
    with pytest.raises(
        BackendUnavailable,
        match="ortools:glop cannot solve mixed-integer programs, and line is one",
    ):
        solve(line(integer=True), solver="ortools:glop")
    with pytest.raises(
        BackendUnavailable, match="ortools:cp-sat cannot solve linear programs, and line is one"
    ):
        solve(line(), solver="ortools:cp-sat")
    with pytest.raises(BackendUnavailable, match="cvxpy:clarabel cannot solve mixed-integer"):
        solve(line(integer=True), solver="cvxpy")


def test_errors_are_one_tree():
    assert issubclass(LicenceExceeded, BackendUnavailable)
    assert issubclass(BackendUnavailable, SolverError)
    assert issubclass(UnsupportedOption, ValueError)


def test_words():
    assert Capabilities(milp=True, hot_start=True).describe() == "lp, milp, hot start"
    assert str(Licence("full")) == "full"
    assert (
        str(Licence("size-limited", 2000, 2000))
        == "size-limited: at most 2000 columns and 2000 rows"
    )
    assert Options(gap=0.1, threads=None).list_set_options() == {"gap": 0.1}


def test_plain_ortools_refuses_what_its_solver_cannot_honour():
    with pytest.raises(
        UnsupportedOption, match="ortools:gscip cannot honour the option iteration_limit"
    ):
        solve(line(integer=True), solver="ortools", options=Options(iteration_limit=5))


def test_solve_once_from_a_model():
    x = cp.Variable(3, name="x", bounds=[0, 1])
    level = cp.Parameter(name="level")
    program = compile_program(cp.Problem(cp.Maximize(cp.sum(x)), [x[0] + x[1] <= level]), "model")
    solution = solve(program, {"level": 0.5})
    assert solution.objective == pytest.approx(1.5)
    assert solution["x"].shape == (3,)
