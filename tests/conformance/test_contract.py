"""Test every installed solver against the contract. Exclusions have reasons."""

from __future__ import annotations

import pytest

from workbench.solvers.backend import get_backend, list_backend_names
from workbench.solvers.conformance import BackendContract
from workbench.solvers.solution import Termination

# label -> attributes of its contract
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
            "test_milp_primal_and_dual_infeasible": "CP-SAT looks no further than 1e7, so its word on a program "
            "without bounds proves nothing (we say numerical)",
            "test_milp_infeasible": "the same: its columns have no upper bounds",
        },
    },
    "ortools:gscip": {"endless_lp": 1000},
    "cvxpy:clarabel": {
        "accuracy": 1e-5,
        "excluded": {
            "test_interrupt_lp": "Clarabel keeps the interpreter's lock and has no stop that CVXPY passes on: Ctrl-C "
            "is raised when its solve has ended",
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
            "test_interrupt_lp": "an LP that keeps SCIP busy takes PySCIPOpt longer to write than SCIP to solve; the "
            "same stop is tested on a MILP",
        },
    },
}


def contract_of(label: str) -> type[BackendContract]:
    """The tests of one solver, under a name that pytest collects."""
    words = label.replace(":", "-").split("-")
    name = "Test" + "".join(word.capitalize() for word in words)
    return type(
        name,
        (BackendContract,),
        {"__module__": __name__, "label": label, **DIFFERENCES.get(label, {})},
    )


INSTALLED = [label for label in list_backend_names() if get_backend(label).is_installed()]
globals().update({contract.__name__: contract for contract in map(contract_of, INSTALLED)})


def test_differences_are_of_solvers_that_exist():
    assert DIFFERENCES.keys() <= set(list_backend_names())
    assert "highs" in INSTALLED


@pytest.mark.skipif(
    not get_backend("ortools:cp-sat").is_installed(), reason="ortools is not installed"
)
def test_cp_sat_says_how_far_it_looks():
    from workbench.solvers.conformance import instances

    far = instances.make_program(
        [-1.0, 1e-9], [[1.0, 1.0]], -instances.INF, 5e7, upper=4e7, integer=True
    )
    with get_backend("ortools:cp-sat").open(far) as session:
        solution = session.solve()
    assert solution.termination is Termination.NUMERICAL
    assert "1e7" in solution.notes[-1]
