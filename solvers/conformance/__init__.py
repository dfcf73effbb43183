"""Tests that every solver backend must pass, those of other packages included.

A test file of a package that adds a backend subclasses `BackendContract`; pytest and unittest run
its methods:

    from workbench.solvers.conformance import BackendContract
    from my_package import Linprog


    class TestLinprog(BackendContract):
        label = "linprog"
        backend_class = Linprog

Each method is one clause of the contract: its area, and a rule that the backend must follow on
programs with known answers (`instances`). A broken clause raises `ContractBroken`, which names the
area, the rule and the value that the backend returned. A clause that needs a capability or an
option that the backend does not claim is skipped.

    area          the clause is about
    answers       points, objectives and residuals of linear programs
    integers      the same of programs with integer columns
    statuses      terminations, and rays that prove them
    duals         multipliers of rows, reduced costs, their signs
    bounds        bounds on the optimum
    scaling       answers in the units of the model, whatever units the solver is given
    parameters    numbers that move in a live session; starts from a basis
    numbers       numbers that solvers misread
    options       options that are honoured, or refused by name
    limits        limits of time, nodes, iterations, gap and objective
    interrupts    Ctrl-C during a solve
    sessions      several sessions, closed sessions, errors of the native library, licences
    silence       stdout and stderr

This package imports neither pytest nor any native solver.
"""

from __future__ import annotations

from workbench.solvers.conformance import instances as instances
from workbench.solvers.conformance.answers import AnswerClauses, IntegerClauses
from workbench.solvers.conformance.clauses import ContractBroken as ContractBroken
from workbench.solvers.conformance.interrupts import InterruptClauses
from workbench.solvers.conformance.limits import LimitClauses
from workbench.solvers.conformance.sessions import SessionClauses


class BackendContract(
    AnswerClauses, IntegerClauses, SessionClauses, LimitClauses, InterruptClauses
):
    """All clauses of the contract, as test methods.

    A subclass sets `label`, and `backend_class` if the backend is not registered under the label.
    """
