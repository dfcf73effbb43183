"""Backends that are wrong on purpose fail in exactly the clauses that they break."""

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

SLOW_AREAS = ("limits", "interrupts")
TESTS = [name for name in dir(BackendContract) if name.startswith("test_")]
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
    """Forgets that columns are integer."""

    def _build(self, data):
        super()._build(replace(data, integrality=np.zeros(data.c.size, bool)))


class Stale(BaseSession):
    """Says that numbers were moved in the live object, and moves none."""

    def _update(self, change, data):
        return True


class Loud(BaseSession):
    """Prints while it solves."""

    def _run(self, start, basis):
        print("solving")
        return super()._run(start, basis)


class Unproven(BaseSession):
    """Claims infeasibility without the certificate that the backend says it has."""

    def _run(self, start, basis):
        raw = super()._run(start, basis)
        raw.ray = None
        return raw


class ColdStarts(BaseSession):
    """Builds the native object afresh for every solve."""

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
    """Raises KeyboardInterrupt after Ctrl-C, and so throws its incumbent away."""

    def _run(self, start, basis):
        raw = super()._run(start, basis)
        raw.termination = Termination.NUMERICAL
        return raw


class Deaf(BaseSession):
    """Takes options in the solver's names that do not exist."""

    def __init__(self, owner, program, options):
        known = {name: value for name, value in options.native.items() if name != "no_such_option"}
        super().__init__(owner, program, replace(options, native=known))


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


def contract_with(session_class, **attributes):
    """The contract of HiGHS with another session."""
    wrong = type("Wrong", (Highs,), {"session": session_class})
    return type(
        "WrongContract", (BackendContract,), {"label": "highs", "backend_class": wrong} | attributes
    )()


def broken_clauses(contract):
    """Name of each clause that fails -> its message."""
    messages = {}
    for name in TESTS:
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
def test_a_wrong_backend_fails_in_the_clauses_that_it_breaks(defect):
    messages = broken_clauses(contract_with(defect))
    assert messages.keys() == DEFECTS[defect]
    for name, message in messages.items():
        area = getattr(BackendContract, name).area
        assert message.startswith(f"highs breaks the clause {area!r}, {name}: ")


def test_limits_are_clauses_as_well():
    contract = contract_with(Unlimited)
    with pytest.raises(
        ContractBroken, match=r"'limits', test_lp_time_limit: .* must be time_limit. Got optimal"
    ):
        contract.test_lp_time_limit()


class CarelessHighs(Highs):
    session = Careless


def test_interrupts_are_clauses_as_well():
    contract = contract_with(Careless, backend_class=CarelessHighs, has_interruption=True)
    message = r"'interrupts', test_interrupt_lp: .* must be 'interrupted'. Got 'KeyboardInterrupt'"
    with pytest.raises(ContractBroken, match=message):
        contract.test_interrupt_lp()


class Modest(Highs):
    """Claims next to nothing."""

    def capabilities(self):
        return Capabilities(lp=True)


def test_what_is_not_claimed_is_skipped_with_the_reason():
    contract = contract_with(BaseSession, excluded={"test_no_cost": "it is a test"})
    contract.backend_class = Modest
    contract.test_lp_optimal()
    for name, reason in (
        ("test_milp_optimal", "highs does not claim the capability milp"),
        ("test_duals_signs", "highs does not claim the capability duals"),
        ("test_basis_start", "highs does not claim the capability hot_start"),
        ("test_no_cost", "it is a test"),
    ):
        with pytest.raises(SkipTest, match=reason):
            getattr(contract, name)()


def test_what_has_no_option_is_skipped_with_the_reason(monkeypatch):
    contract = contract_with(BaseSession)
    solver = contract.solver()
    solver.supported_options = frozenset({"threads"})
    monkeypatch.setattr(contract, "solver", lambda: solver)
    with pytest.raises(SkipTest, match="highs does not support the option time_limit"):
        contract.test_lp_time_limit()
    with pytest.raises(SkipTest, match="highs does not support the option gap"):
        contract.test_gap_limit()


@pytest.mark.parametrize("change", ["is_installed", "licence"])
def test_what_cannot_run_here_is_skipped_with_the_reason(monkeypatch, change):
    contract = contract_with(BaseSession, label="absent")
    state = {"is_installed": False, "licence": Licence("no licence here", usable=False)}[change]
    monkeypatch.setattr(contract.backend_class, change, lambda self: state)
    with pytest.raises(SkipTest, match=r"absent is not installed|no licence here"):
        contract.test_lp_optimal()


def test_exclusions_name_tests_and_reasons():
    for excluded in ({"test_no_such_clause": "because"}, {"test_no_cost": ""}):
        with pytest.raises(
            TypeError, match="excluded must be names of tests of the contract with reasons"
        ):
            contract_with(BaseSession, excluded=excluded)


def test_every_test_is_a_clause_of_a_listed_area():
    table = sys.modules[BackendContract.__module__].__doc__.partition("the clause is about")[2]
    areas = {line.split()[0] for line in table.splitlines() if line.startswith("    ")}
    assert {getattr(BackendContract, name).area for name in TESTS} == areas
    assert len(TESTS) >= 50
