"""Tests of the contract itself, by sessions of HiGHS that are wrong on purpose.

A clause is one test of `BackendContract`. Every wrong session must fail exactly in the clauses that
DEFECTS lists for it.

A session is one program in one native solver. Each wrong session overrides one of these methods of
`workbench.solvers.session.Session`:

    _build(data)           loads all numbers of the program into a new native object
    _update(change, data)  changes numbers of the native object, and returns whether it did so
    _run(start, basis)     solves, and returns the raw result in the units of the solver
    close()                releases the native object
"""

from __future__ import annotations

import sys
from dataclasses import replace
from unittest import SkipTest

import numpy as np
import pytest

from workbench.solvers.backends.highs import Highs
from workbench.solvers.conformance import BackendContract, ContractBroken
from workbench.solvers.contract import Capabilities, Licence
from workbench.solvers.solution import PointStatus, Termination

SLOW_AREAS = ("limits", "interrupts")  # Clauses of these areas are tested separately.
CLAUSES = [name for name in dir(BackendContract) if name.startswith("test_")]
BaseSession = Highs.session


class FlippedDuals(BaseSession):
    """Reports duals and reduced costs with the other sign."""

    def _run(self, start, basis):
        raw = super()._run(start, basis)
        if raw.dual_values.row_dual is not None:
            raw.dual_values = raw.dual_values._replace(
                row_dual=-raw.dual_values.row_dual, reduced_cost=-raw.dual_values.reduced_cost
            )
        return raw


class WrongStatus(BaseSession):
    """Calls unbounded programs infeasible."""

    def _run(self, start, basis):
        raw = super()._run(start, basis)
        if raw.termination is Termination.UNBOUNDED:
            raw.termination = Termination.INFEASIBLE
            raw.x = raw.ray = None
            raw.point = PointStatus.NONE
        return raw


class LooseBound(BaseSession):
    """Reports a bound of integer programs that is too low, and calls the gap closed."""

    def _run(self, start, basis):
        raw = super()._run(start, basis)
        if self.program.is_mip and raw.bound is not None:
            raw.bound -= 1.0
        return raw


class Relaxed(BaseSession):
    """Ignores that columns are integer."""

    def _build(self, data):
        super()._build(replace(data, integrality=np.zeros(data.c.size, bool)))


class Stale(BaseSession):
    """Reports that it has changed numbers in the live object, and changes none."""

    def _update(self, change, data):
        return True


class Loud(BaseSession):
    """Prints while it solves."""

    def _run(self, start, basis):
        print("solving")
        return super()._run(start, basis)


class Unproven(BaseSession):
    """Returns no certificate of infeasibility, although the backend claims to return one."""

    def _run(self, start, basis):
        raw = super()._run(start, basis)
        raw.ray = None
        return raw


class ColdStarts(BaseSession):
    """Builds the native object again for every solve."""

    def _update(self, change, data):
        return False


class Undying(BaseSession):
    """Stays open when it is closed."""

    def close(self):
        pass


class Unlimited(BaseSession):
    """Calls a solve that was ended by its time limit optimal."""

    def _run(self, start, basis):
        raw = super()._run(start, basis)
        if raw.termination is Termination.TIME_LIMIT:
            raw.termination = Termination.OPTIMAL
        return raw


class Careless(BaseSession):
    """Raises KeyboardInterrupt after Ctrl-C, and so loses the best point found."""

    def _run(self, start, basis):
        raw = super()._run(start, basis)
        raw.termination = Termination.NUMERICAL
        return raw


class Deaf(BaseSession):
    """Accepts a native option that does not exist."""

    def __init__(self, owner, program, options):
        native = dict(options.native)
        native.pop("no_such_option", None)
        super().__init__(owner, program, replace(options, native=native))


# Wrong session -> the clauses that it breaks, without those of SLOW_AREAS.
DEFECTS = {
    FlippedDuals: {
        "test_duals_signs",
        "test_duals_are_slopes",
        "test_lagrangian_bound",
        "test_an_optimal_lp_has_a_bound",
        "test_resolve_equals_cold",
        "test_maximisation",
    },
    WrongStatus: {
        "test_lp_unbounded",
        "test_milp_unbounded",
        "test_goes_on_after_infeasible_and_unbounded",
    },
    LooseBound: {
        "test_milp_optimal",
        "test_milp_with_a_constant_cost",
        "test_fractional_bounds_of_integers",
        "test_milp_resolve_equals_cold",
    },
    Relaxed: {
        "test_milp_optimal",
        "test_mixed_integers",
        "test_milp_with_a_constant_cost",
        "test_fractional_bounds_of_integers",
        "test_empty_milp",
        "test_milp_infeasible_in_integers_alone",
        "test_milp_unbounded",
        "test_scaled_milp",
        "test_milp_resolve_equals_cold",
        "test_bounds_of_integers_move",
    },
    Stale: {
        "test_duals_are_slopes",
        "test_resolve_equals_cold",
        "test_a_session_follows_other_costs_and_bounds_on_its_matrix",
        "test_milp_resolve_equals_cold",
        "test_maximisation",
        "test_ranged_rows_move_on_both_sides",
        "test_goes_on_after_infeasible_and_unbounded",
        "test_bounds_of_integers_move",
    },
    ColdStarts: {
        "test_resolve_equals_cold",
        "test_a_session_follows_other_costs_and_bounds_on_its_matrix",
    },
    Loud: {"test_silence"},
    Unproven: {"test_lp_infeasible"},
    Undying: {"test_a_closed_session_says_so"},
    Deaf: {"test_unknown_native_option_is_refused_by_name"},
}


def make_contract(session_class, **attributes):
    """Return the contract of HiGHS with another session class, and other class attributes."""
    backend_class = type("Wrong", (Highs,), {"session": session_class})
    attributes = {"label": "highs", "backend_class": backend_class} | attributes
    return type("WrongContract", (BackendContract,), attributes)()


def find_broken_clauses(contract):
    """Run the quick clauses of a contract. Return name -> message of each clause that fails."""
    messages = {}
    for name in CLAUSES:
        test = getattr(contract, name)
        if test.area in SLOW_AREAS:
            continue
        try:
            test()
        except SkipTest:
            continue
        except ContractBroken as error:
            messages[name] = str(error)
    return messages


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.__name__)
def test_a_wrong_session_fails_exactly_in_the_clauses_that_it_breaks(defect):
    messages = find_broken_clauses(make_contract(defect))
    assert messages.keys() == DEFECTS[defect]
    for name, message in messages.items():
        area = getattr(BackendContract, name).area
        assert message.startswith(f"highs breaks the clause {area!r}, {name}: ")


def test_an_optimum_claimed_at_the_time_limit_breaks_a_clause():
    contract = make_contract(Unlimited)
    message = r"'limits', test_lp_time_limit: .* must be time_limit. Got optimal"
    with pytest.raises(ContractBroken, match=message):
        contract.test_lp_time_limit()


class CarelessHighs(Highs):
    """HiGHS whose sessions lose the best point at Ctrl-C. The contract starts it in a child process.

    A child process must find the class by its name, so `make_contract` cannot make it.
    """

    session = Careless


def test_losing_the_best_point_at_ctrl_c_breaks_a_clause():
    contract = make_contract(Careless, backend_class=CarelessHighs, has_interruption=True)
    message = r"'interrupts', test_interrupt_lp: .* must be 'interrupted'. Got 'KeyboardInterrupt'"
    with pytest.raises(ContractBroken, match=message):
        contract.test_interrupt_lp()


class HighsForLinearPrograms(Highs):
    """HiGHS that claims no capability except linear programs."""

    def capabilities(self):
        """Claim linear programs alone: no integers, no duals, no hot start."""
        return Capabilities(lp=True)


@pytest.mark.parametrize(
    ("clause", "capability"),
    [
        ("test_milp_optimal", "milp"),
        ("test_duals_signs", "duals"),
        ("test_basis_start", "hot_start"),
    ],
)
def test_a_clause_is_skipped_if_its_capability_is_not_claimed(clause, capability):
    contract = make_contract(BaseSession, backend_class=HighsForLinearPrograms)
    with pytest.raises(SkipTest, match=f"highs does not claim the capability {capability}"):
        getattr(contract, clause)()


def test_a_clause_that_needs_no_other_capability_is_not_skipped():
    make_contract(BaseSession, backend_class=HighsForLinearPrograms).test_lp_optimal()


def test_an_excluded_clause_is_skipped_with_its_reason():
    contract = make_contract(BaseSession, excluded={"test_no_cost": "it is a test"})
    with pytest.raises(SkipTest, match="it is a test"):
        contract.test_no_cost()


def test_a_clause_is_skipped_if_its_option_is_not_supported(monkeypatch):
    contract = make_contract(BaseSession)
    backend = contract.solver()
    backend.supported_options = frozenset({"threads"})
    monkeypatch.setattr(contract, "solver", lambda: backend)
    with pytest.raises(SkipTest, match="highs does not support the option time_limit"):
        contract.test_lp_time_limit()
    with pytest.raises(SkipTest, match="highs does not support the option gap"):
        contract.test_gap_limit()


@pytest.mark.parametrize(
    ("method", "answer", "reason"),
    [
        ("is_installed", False, "absent is not installed"),
        ("licence", Licence("no licence here", usable=False), "no licence here"),
    ],
)
def test_clauses_are_skipped_if_the_backend_is_not_usable(monkeypatch, method, answer, reason):
    contract = make_contract(BaseSession, label="absent")
    monkeypatch.setattr(contract.backend_class, method, lambda self: answer)
    with pytest.raises(SkipTest, match=reason):
        contract.test_lp_optimal()


@pytest.mark.parametrize("excluded", [{"test_no_such_clause": "because"}, {"test_no_cost": ""}])
def test_an_exclusion_without_a_clause_or_a_reason_is_refused(excluded):
    message = "excluded must be names of tests of the contract with reasons"
    with pytest.raises(TypeError, match=message):
        make_contract(BaseSession, excluded=excluded)


def test_every_clause_belongs_to_an_area_that_the_docstring_lists():
    table = sys.modules[BackendContract.__module__].__doc__.partition("the clause is about")[2]
    areas = {line.split()[0] for line in table.splitlines() if line.startswith("    ")}
    assert {getattr(BackendContract, name).area for name in CLAUSES} == areas
    assert len(CLAUSES) >= 50  # The search for names has found the clauses.
