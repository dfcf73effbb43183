"""Run the tests of the backends' contract with every installed solver.

DIFFERENCES lists what is different for a solver, such as its accuracy and tests that it cannot
pass. The attributes are explained in `workbench.solvers.conformance`.
"""

from __future__ import annotations

import pytest

from workbench.solvers.backend import get_backend, list_backend_names
from workbench.solvers.conformance import BackendContract
from workbench.solvers.solution import Termination

# Label of a backend -> attributes of its `BackendContract`.
DIFFERENCES: dict[str, dict[str, object]] = {
    "highs": {"ample_seconds": 3.0, "has_interruption": True},
    "ortools:glop": {"has_interruption": True},
    "ortools:pdlp": {
        "accuracy": 1e-3,
        "has_interruption": True,
        # A first-order method gets a small program, and a tolerance that it never reaches.
        "endless_lp": 200,
        "endless_options": {
            "termination_criteria.simple_optimality_criteria.eps_optimal_absolute": 0.0,
            "termination_criteria.simple_optimality_criteria.eps_optimal_relative": 0.0,
        },
    },
    "ortools:cp-sat": {
        "integer_reach": 1e7,
        "has_interruption": True,
        "excluded": {
            "test_milp_primal_and_dual_infeasible": "CP-SAT searches no column beyond 1e7, so for "
            "a program without bounds it proves nothing. The backend reports NUMERICAL.",
            "test_milp_infeasible": "The columns have no upper bounds, as in the test above.",
        },
    },
    "ortools:gscip": {"endless_lp": 1000},
    "cvxpy:clarabel": {
        "accuracy": 1e-5,
        "excluded": {
            "test_interrupt_lp": "Clarabel holds the interpreter lock, and CVXPY cannot stop it. "
            "Ctrl-C raises KeyboardInterrupt when the solve has ended.",
        },
    },
    "cvxpy:scs": {
        "accuracy": 1e-3,
        "endless_lp": 200,
        "endless_options": {"eps_abs": 1e-30, "eps_rel": 0.0, "max_iters": 2_000_000_000},
    },
    "scip": {
        "has_interruption": True,
        "excluded": {
            "test_interrupt_lp": "PySCIPOpt needs more time to read a large LP than SCIP to solve "
            "it. Ctrl-C is tested with a MILP.",
        },
    },
}


def make_test_class(label: str) -> type[BackendContract]:
    """Return the tests of one backend: for "ortools:cp-sat" a class TestOrtoolsCpSat."""
    words = label.replace(":", "-").split("-")
    name = "Test" + "".join(word.capitalize() for word in words)
    attributes = {"__module__": __name__, "label": label, **DIFFERENCES.get(label, {})}
    return type(name, (BackendContract,), attributes)


INSTALLED_LABELS = [label for label in list_backend_names() if get_backend(label).is_installed()]
# pytest collects the classes that are names of this module.
for _label in INSTALLED_LABELS:
    _test_class = make_test_class(_label)
    globals()[_test_class.__name__] = _test_class
del _test_class


def test_every_difference_belongs_to_a_backend():
    assert DIFFERENCES.keys() <= set(list_backend_names())


def test_highs_is_installed():
    assert "highs" in INSTALLED_LABELS


@pytest.mark.skipif(
    not get_backend("ortools:cp-sat").is_installed(), reason="ortools is not installed"
)
def test_cp_sat_claims_no_optimum_if_columns_may_exceed_its_limit():
    """CP-SAT searches columns up to 1e7, and the columns of this program have the bound 4e7."""
    from workbench.solvers.conformance import instances

    program = instances.make_program(
        [-1.0, 1e-9], [[1.0, 1.0]], -instances.INF, 5e7, upper=4e7, integer=True
    )
    with get_backend("ortools:cp-sat").open(program) as session:
        solution = session.solve()
    assert solution.termination is Termination.NUMERICAL
    assert "1e7" in solution.notes[-1]
