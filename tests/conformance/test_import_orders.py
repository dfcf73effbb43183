"""Tests that the solvers' libraries can be loaded together, and are loaded only when used.

Each test runs Python code in a child process, because a library stays loaded in its process.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

from workbench.solvers.backend import get_backend, list_backend_names

ROOT = pathlib.Path(__file__).parents[2]
# Package -> its module that loads the native library.
NATIVE_MODULES = {
    "cvxpy": "cvxpy",
    "highspy": "highspy",
    "ortools": "ortools.math_opt.core.python.solver",
    "gurobipy": "gurobipy",
}

# Orders of import. Every ordered pair of packages occurs in the first two orders. The other two
# start with ortools and with highspy.
ORDERS = [
    ("cvxpy", "highspy", "ortools", "gurobipy"),
    ("gurobipy", "ortools", "highspy", "cvxpy"),
    ("ortools", "gurobipy", "cvxpy", "highspy"),
    ("highspy", "gurobipy", "ortools", "cvxpy"),
]

# Code that solves the same program with every installed solver and prints "ok".
SOLVE_WITH_ALL = """
from workbench.solvers.conformance import instances
from workbench.solvers.backend import get_backend
from workbench.solvers.errors import BackendUnavailable
for label in ("highs", "gurobi", "ortools:glop", "ortools:gscip", "cvxpy:clarabel", "scip"):
    try:
        if get_backend(label).is_installed():
            with get_backend(label).open(instances.make_triangle()) as session:
                assert abs(session.solve().objective - 3) < 1e-5, label
    except BackendUnavailable as error:
        assert "licence" in str(error)
print("ok")
"""


# Code that defines `print_loaded`, which prints the libraries that are loaded, as a sorted list.
DEFINE_PRINT_LOADED = """
import sys

def print_loaded(*other_names):
    natives = {'highspy', 'gurobipy', 'ortools', 'cvxpy', 'clarabel', 'scs', 'pyscipopt'}
    loaded = {name.partition('.')[0] for name in sys.modules}
    print(sorted(loaded & (natives | {*other_names})))
"""


def run_python(code):
    """Run code in a new Python process, and return its stdout and stderr in one text."""
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout + run.stderr


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_solver_libraries_load_together(order):
    if not all(
        get_backend(label).is_installed()
        for label in ("highs", "gurobi", "ortools:glop", "cvxpy:clarabel")
    ):
        pytest.skip("not all four packages are installed")
    imports = "".join(f"import {NATIVE_MODULES[package]}\n" for package in order)
    assert run_python(imports + SOLVE_WITH_ALL) == "ok\n"


def test_scip_can_be_loaded_before_the_other_solvers():
    if not get_backend("scip").is_installed():
        pytest.skip("scip is not installed")
    assert run_python("import pyscipopt\n" + SOLVE_WITH_ALL) == "ok\n"


def test_describing_backends_imports_no_solver():
    output = run_python(
        DEFINE_PRINT_LOADED + "from workbench.solvers.backend import describe_backends\n"
        "rows = describe_backends()\n"
        "print_loaded()\n"
        "print([row['name'] for row in rows])\n"
    )
    assert output == f"[]\n{list_backend_names()}\n"


def test_a_session_imports_only_its_solver():
    output = run_python(
        DEFINE_PRINT_LOADED + "from workbench.solvers.conformance import instances\n"
        "from workbench.solvers.backend import get_backend\n"
        "get_backend('highs').open(instances.make_triangle()).solve()\n"
        "print_loaded()\n"
    )
    assert output == "['highspy']\n"


def test_the_conformance_tests_import_no_solver_and_no_test_runner():
    output = run_python(
        DEFINE_PRINT_LOADED + "import workbench.solvers.conformance\n"
        "print_loaded('pytest', '_pytest')\n"
    )
    assert output == "[]\n"
