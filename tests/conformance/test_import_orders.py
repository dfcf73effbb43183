"""The pinned solvers load together in every order, and only when they are used."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

from workbench.solvers.backend import get_backend, list_backend_names

ROOT = pathlib.Path(__file__).parents[2]
PACKAGES = ("cvxpy", "highspy", "ortools.math_opt.core.python.solver", "gurobipy")

# Every ordered pair occurs in the first two orders. The others put the two packages that share a
# SONAME in the middle.
ORDERS = [
    (0, 1, 2, 3),
    (3, 2, 1, 0),
    (2, 3, 0, 1),
    (1, 3, 2, 0),
]

SOLVE = """
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


def child(code):
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout + run.stderr


@pytest.mark.parametrize(
    "order", ORDERS, ids=lambda order: "-".join(PACKAGES[k].split(".")[0] for k in order)
)
def test_solver_libraries_load_together(order):
    if not all(
        get_backend(label).is_installed()
        for label in ("highs", "gurobi", "ortools:glop", "cvxpy:clarabel")
    ):
        pytest.skip("not all four packages are installed")
    imports = "".join(f"import {PACKAGES[k]}\n" for k in order)
    assert child(imports + SOLVE) == "ok\n"


def test_optional_scip_loads_after_and_before():
    if not get_backend("scip").is_installed():
        pytest.skip("scip is not installed")
    assert child("import pyscipopt\n" + SOLVE) == "ok\n"


def test_describing_backends_imports_no_solver():
    """What is installed is known without importing a native library or taking a licence."""
    said = child(
        "import sys\n"
        "from workbench.solvers.backend import describe_backends\n"
        "rows = describe_backends()\n"
        "loaded = {name.partition('.')[0] for name in sys.modules}\n"
        "print(sorted(loaded & {'highspy', 'gurobipy', 'ortools', 'cvxpy', 'clarabel', 'scs', 'pyscipopt'}))\n"
        "print([row['name'] for row in rows])\n"
    )
    assert said == f"[]\n{list_backend_names()}\n"


def test_opening_a_session_imports_its_own_solver_only():
    said = child(
        "import sys\n"
        "from workbench.solvers.conformance import instances\n"
        "from workbench.solvers.backend import get_backend\n"
        "get_backend('highs').open(instances.make_triangle()).solve()\n"
        "loaded = {name.partition('.')[0] for name in sys.modules}\n"
        "print(sorted(loaded & {'highspy', 'gurobipy', 'ortools', 'cvxpy', 'clarabel', 'scs', 'pyscipopt'}))\n"
    )
    assert said == "['highspy']\n"


def test_the_contract_needs_no_solver_and_no_test_runner():
    said = child(
        "import sys\n"
        "import workbench.solvers.conformance\n"
        "loaded = {name.partition('.')[0] for name in sys.modules}\n"
        "natives = {'highspy', 'gurobipy', 'ortools', 'cvxpy', 'clarabel', 'scs', 'pyscipopt'}\n"
        "print(sorted(loaded & (natives | {'pytest', '_pytest'})))\n"
    )
    assert said == "[]\n"
