"""One suite, every backend. A test that takes `label` runs once per backend and variant that has the capabilities its
`needs` marker names; what a backend cannot honour is excluded here, by name and with the reason.
"""

from __future__ import annotations

import functools

import pytest

from solvers.backend import backend, names

# label -> test -> why this backend is not held to it
EXCLUDED: dict[str, dict[str, str]] = {
    "cvxpy:clarabel": {
        "test_interrupt_lp": "Clarabel keeps the interpreter's lock and has no stop that CVXPY passes on: Ctrl-C is "
        "raised when its solve has ended",
    },
    "ortools:cp-sat": {
        "test_milp_primal_and_dual_infeasible": "CP-SAT looks no further than 1e7, so its word on a program without "
        "bounds proves nothing (we say numerical)",
        "test_milp_infeasible": "the same: its columns have no upper bounds",
    },
    "scip": {
        "test_interrupt_lp": "an LP that keeps SCIP busy takes PySCIPOpt longer to write than SCIP to solve; the same "
        "stop is tested on a MILP",
    },
}

# label -> absolute accuracy of objective, point and duals on the suite's programs; vertices are exact but for rounding
ACCURACY = {"ortools:pdlp": 1e-3, "cvxpy:clarabel": 1e-5, "cvxpy:scs": 1e-3}


@functools.cache
def unusable(label: str) -> str | None:
    """Why an installed backend cannot be tested here, or None."""
    state = backend(label).licence()
    return None if state.usable else state.kind


def pytest_configure(config):
    config.addinivalue_line("markers", "needs(*capabilities): run for the backends that have them all")


def pytest_generate_tests(metafunc):
    if "label" not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker("needs")
    needed = marker.args if marker is not None else ()
    cases = []
    for label in names():
        capabilities = backend(label).capabilities()
        if not backend(label).installed() or not all(getattr(capabilities, need) for need in needed):
            continue
        reason = unusable(label) or EXCLUDED.get(label, {}).get(metafunc.function.__name__)
        cases.append(pytest.param(label, marks=[pytest.mark.skip(reason=reason)] if reason else []))
    metafunc.parametrize("label", cases)


@pytest.fixture
def accuracy(label: str) -> float:
    return ACCURACY.get(label, 1e-7)
