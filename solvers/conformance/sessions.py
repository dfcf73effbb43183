"""Clauses about live sessions: changing numbers, hot starts, refused numbers, silence, licences."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from unittest import mock

import numpy as np
import scipy.sparse as sp

from workbench.solvers.backend import get_backend
from workbench.solvers.conformance import instances
from workbench.solvers.conformance.clauses import (
    Contract,
    clause,
    require,
    require_close,
    require_equal,
    require_optimal,
    require_refusal,
)
from workbench.solvers.conformance.instances import MOVING_BASE, MOVING_CHANGES
from workbench.solvers.data import Data
from workbench.solvers.errors import InvalidProgram, LicenceExceeded, SolverError
from workbench.solvers.program import Program
from workbench.solvers.session import Session
from workbench.solvers.solution import Solution, Start, Termination

INF = np.inf
_UNUSABLE_NUMBERS = (np.nan, INF, -INF, 2e15, -1e16)
_MOVABLE_SECTIONS = ("c", "A", "row_upper", "upper", "offset")


def moving_values() -> Iterator[dict[str, float]]:
    """Yield parameter values of `instances.make_moving_program`, each after one more change."""
    values = dict(MOVING_BASE)
    yield values
    for change in MOVING_CHANGES:
        values = values | change
        yield values


def require_same(solution: Solution, reference: Solution, tolerance: float) -> None:
    """Require the termination, objective, point and duals of another solution.

    Args:
        solution: what the backend returned.
        reference: what it must return.
        tolerance: the largest admitted absolute difference of objectives. Points and duals may
            differ ten times as much.
    """
    require_equal("termination", solution.termination, reference.termination)
    if solution.termination is Termination.OPTIMAL:
        require_close("objective", solution.objective, reference.objective, tolerance)
        require_close("x", solution.x, reference.x, 10 * tolerance)
    if solution.row_dual is not None and reference.row_dual is not None:
        require_close("row_dual", solution.row_dual, reference.row_dual, 10 * tolerance)
        if reference.bound is None:
            require_equal("bound", solution.bound, None)
        else:
            require_close("bound", solution.bound, reference.bound, 10 * tolerance)


class SessionClauses(Contract):
    """Clauses about sessions."""

    @clause("parameters", "lp")
    def test_resolve_equals_cold(self) -> None:
        """Return, after every change of parameters, the solution that a new session returns.

        If hot starts are claimed, later solves must start hot.
        """
        for scale in (1.0, 2.0**20):
            starts = []
            with (
                self.solver().open(instances.make_moving_program(scale)) as session,
                get_backend("highs").open(instances.make_moving_program()) as reference_session,
            ):
                for values in moving_values():
                    hot = session.solve(values)
                    reference = reference_session.solve(values, start="cold")
                    starts.append(hot.start)
                    require_same(hot, reference, 10 * self.accuracy)
                require_same(session.solve(values, start="cold"), reference, 10 * self.accuracy)
            require_equal("the first start", starts[0], Start.COLD)
            if self.capabilities().hot_start:
                require_equal("later starts", starts[1:], [Start.HOT] * len(MOVING_CHANGES))

    @clause("parameters", "lp")
    def test_a_session_follows_other_costs_and_bounds_on_its_matrix(self) -> None:
        """Follow programs of the same matrix in one live session.

        Programs of another matrix are refused by InvalidProgram.
        """
        rng = np.random.default_rng(5)
        A = sp.csc_array(rng.uniform(0.2, 1, (8, 6)))

        def make_program(k: int) -> Program:
            """Make the program with matrix A, and random bounds and costs. `k` shifts the costs."""
            low = np.where(rng.random(6) < 0.5, 0.0, -rng.random(6))
            high = np.where(rng.random(6) < 0.3, INF, 1 + rng.random(6))
            limit = A.sum(axis=1) * (0.5 + rng.random())
            cost = rng.uniform(-1, 1, 6) - 0.1 * k
            data = Data(
                cost,
                float(k),
                A,
                row_lower=np.full(8, -INF),
                row_upper=limit,
                lower=low,
                upper=high,
                integrality=np.zeros(6, bool),
            )
            return Program(f"plain {k}", data)

        with self.solver().open(make_program(0)) as session:
            session.solve()
            for k in range(1, 8):
                program = make_program(k)
                session.follow(program)
                hot = session.solve()
                reference = self.solve_by_highs(program)
                require(
                    hot.program is program, "solution.program must be the program that is followed."
                )
                require_equal("termination", hot.termination, reference.termination)
                if reference.x is not None:
                    require_close(
                        "objective", hot.objective, reference.objective, 100 * self.accuracy
                    )
                if self.capabilities().hot_start:
                    require_equal("start", hot.start, Start.HOT)
            all_integer = replace(program.template, integrality=np.ones(6, bool))
            for wrong in (Program("whole", all_integer), instances.make_moving_program()):
                with require_refusal(
                    InvalidProgram, "matrix pattern and integer columns of plain 7"
                ):
                    session.follow(wrong)
            session.follow(
                Program("crossed", replace(program.template, lower=program.template.upper + 1))
            )
            with require_refusal(InvalidProgram, "crossed bounds"):
                session.solve()

    @clause("parameters", "milp")
    def test_milp_resolve_equals_cold(self) -> None:
        """Answer integer programs after every change of parameters as a cold start does."""
        with self.solver().open(instances.make_moving_program(integer=True)) as session:
            for values in moving_values():
                again = session.solve(values)
                cold = session.solve(values, start="cold")
                require_equal("termination", again.termination, cold.termination)
                if cold.x is not None:
                    is_same = again.x is not None and np.array_equal(again.x, cold.x)
                    require(is_same, f"x must be {cold.x}. Got {again.x}.")
                    require_close("bound", again.bound, again.objective, tolerance=1e-6)

    @clause("parameters", "lp")
    def test_maximisation(self) -> None:
        """Report objective and bound of the maximisation, and duals of its minimisation.

        The minimisation has the negative of the objective.
        """
        import cvxpy as cp

        from workbench.solvers.canonical import compile_program

        x = cp.Variable(2, name="x", nonneg=True)
        limit = cp.Parameter(name="limit")
        rows = [x[0] + 2 * x[1] <= limit, 2 * x[0] + x[1] <= 3]
        with self.solver().open(
            compile_program(cp.Problem(cp.Maximize(cp.sum(x) + 5), rows))
        ) as session:
            solution = session.solve({"limit": 3.0})
            require_close("objective", solution.objective, 7, tolerance=self.accuracy)
            require_close(
                "objective", session.solve({"limit": 3.3}).objective, 7.1, tolerance=self.accuracy
            )
        if self.capabilities().duals:
            require_close("bound", solution.bound, 7, tolerance=10 * self.accuracy)
            require_close("row_dual", solution.row_dual, [-1 / 3, -1 / 3], 10 * self.accuracy)

    @clause("parameters", "lp")
    def test_ranged_rows_move_on_both_sides(self) -> None:
        """Move either side of low <= x0 + 2 x1 <= high, up to where the two sides meet."""
        low_optima = ((0.0, 0.5), (0.5, 0.75), (2.0, 1.5), (0.0, 0.5))
        high_optima = ((0.0, -3.0), (0.5, -3.5), (-2.0, -1.0), (0.0, -3.0))
        for cost, side, optima in (
            (1.0, "row_lower", low_optima),
            (-1.0, "row_upper", high_optima),
        ):
            base = instances.make_program([cost, cost], [[1, 2]], 1, 3)
            with self.solver().open(
                instances.add_parameters(base, **{side: ("shift", 0)})
            ) as session:
                for shift, optimum in optima:
                    objective = session.solve({"shift": shift}).objective
                    require_close(
                        f"the objective at shift {shift}", objective, optimum, self.accuracy
                    )

    @clause("parameters", "lp")
    def test_goes_on_after_infeasible_and_unbounded(self) -> None:
        """Solve the next program of a session after one that is infeasible or unbounded."""
        base = instances.make_program([0.0], [[1.0], [1.0]], [-INF, 0.0], [4.0, INF], upper=10.0)
        program = instances.add_parameters(base, c=("cost", 0), row_upper=("ceiling", 0))
        with self.solver().open(program) as session:
            # Minimise cost * x, where 0 <= x <= min(10, 4 + ceiling). None means infeasible.
            for cost, ceiling, optimum in (
                (-1.0, 0.0, -4),
                (-1.0, -6.0, None),
                (-1.0, 1.0, -5),
                (2.0, 1.0, 0),
            ):
                solution = session.solve({"cost": cost, "ceiling": ceiling})
                if optimum is None:
                    require_equal("termination", solution.termination, Termination.INFEASIBLE)
                else:
                    require_close("objective", solution.objective, optimum, self.accuracy)
        free = instances.make_program([0.0, 0.0], [[1.0, -1.0]], -INF, 1.0)
        with self.solver().open(instances.add_parameters(free, c=("cost", 0))) as session:
            require_close(
                "objective", session.solve({"cost": 1.0}).objective, 0, tolerance=self.accuracy
            )
            require_equal(
                "termination", session.solve({"cost": -1.0}).termination, Termination.UNBOUNDED
            )
            require_close(
                "objective", session.solve({"cost": 1.0}).objective, 0, tolerance=self.accuracy
            )

    @clause("parameters", "milp")
    def test_bounds_of_integers_move(self) -> None:
        """Move the bound of an integer column through fractions and integers."""
        base = instances.make_program([-1.0], [[2.0]], -INF, 13.0, upper=0.0, integer=True)
        with self.solver().open(instances.add_parameters(base, upper=("end", 0))) as session:
            for end, optimum in ((3.5, -3), (3.999, -3), (4.0, -4), (40.0, -6), (0.5, 0)):
                objective = session.solve({"end": end}).objective
                require_close(
                    f"the objective at upper bound {end}", objective, optimum, tolerance=1e-6
                )

    @clause("parameters", "lp", "hot_start")
    def test_basis_start(self) -> None:
        """Start from the basis of an earlier solution, in the same session and in a new one."""
        program = instances.make_moving_program()
        with self.solver().open(program) as session:
            first = session.solve(MOVING_BASE)
            require(first.basis is not None, "basis must not be None.")
            session.solve(MOVING_BASE | {"cost": -3.0})
            again = session.solve(MOVING_BASE, start="basis", basis=first.basis)
            require_equal("start", again.start, Start.BASIS)
            _require_no_more_work(again, first)
        with self.solver().open(program) as session:
            _require_no_more_work(
                session.solve(MOVING_BASE, start="basis", basis=first.basis), first
            )

    @clause("numbers")
    def test_misread_numbers_are_refused(self) -> None:
        """Refuse numbers that solvers misread by InvalidProgram, and go on.

        Such are nan, infinite, huge and tiny numbers, and crossed bounds.
        """
        for section in _MOVABLE_SECTIONS:
            for start in ("cold", "hot"):
                self._require_numbers_refused(section, start)

    def _require_numbers_refused(self, section: str, start: str) -> None:
        """Require that one entry refuses every unusable number, and that the session then goes on.

        Args:
            section: section of the entry, one of `_MOVABLE_SECTIONS`.
            start: how the refused solves start, "cold" or "hot".
        """
        is_integer = not self.capabilities().lp
        rows = [[1.0, 2.0], [2.0, 1.0]]
        base = instances.make_program([-1.0, -1.0], rows, -INF, 3.0, upper=9, integer=is_integer)
        with self.solver().open(
            instances.add_parameters(base, **{section: ("number", 0)})
        ) as session:
            if start == "hot":
                require_optimal(session.solve({"number": 0.0}))
            for number in _UNUSABLE_NUMBERS:
                with require_refusal(InvalidProgram, r"finite|1e15|crossed"):
                    session.solve({"number": number}, start=start)
            if section == "A":  # The entry is 1 + number.
                with require_refusal(InvalidProgram, "1e-9"):
                    session.solve({"number": -1.0 + 2.0**-40}, start=start)
            if section in ("upper", "row_upper"):
                interval = instances.make_program(
                    [1.0], [[1.0]], 0.0, 1.0, upper=1.0, integer=is_integer
                )
                with self.solver().open(
                    instances.add_parameters(interval, **{section: ("number", 0)})
                ) as crossed:
                    crossed.solve({"number": 0.0})
                    with require_refusal(InvalidProgram, "crossed"):
                        crossed.solve({"number": -2.0}, start=start)
            require_close("objective", session.solve({"number": 0.0}).objective, -2, tolerance=1e-2)

    @clause("numbers")
    def test_constant_nan_is_refused(self) -> None:
        """Refuse nan in numbers that no parameter moves."""
        for section in ("c", "row_upper", "lower"):
            program = instances.make_program(
                [-1.0], [[1.0]], -INF, 3.0, upper=9, integer=not self.capabilities().lp
            )
            getattr(program.template, section)[0] = np.nan
            with self.solver().open(program) as session, require_refusal(InvalidProgram, "nan"):
                session.solve()

    @clause("silence")
    def test_silence(self) -> None:
        """Write nothing to stdout and stderr, whatever the answer."""
        programs = []
        if self.capabilities().lp:
            programs += [
                instances.make_triangle(),
                instances.make_infeasible_program(),
                instances.make_unbounded_program(),
            ]
            programs += [
                instances.make_doubly_infeasible_program(),
                instances.make_mixed_program(),
                instances.make_random_lp(60, 40),
            ]
        if self.capabilities().milp:
            programs += [instances.make_knapsack(), instances.make_infeasible_program(integer=True)]
            programs += [
                instances.make_unbounded_program(integer=True),
                instances.make_packing(5, 15),
            ]
        with _captured_output() as texts:
            for program in programs:
                with self.solver().open(program) as session:
                    session.solve()
                    session.solve()
        require_equal("the output", texts, [""])

    @clause("sessions")
    def test_licence_is_known_before_building(self) -> None:
        """Refuse a program that is too large for the licence before it is loaded."""
        solver = self.solver()
        licence = solver.licence()
        is_integer = not self.capabilities().lp
        if licence.max_columns is None or licence.max_rows is None:
            wide = instances.make_program(
                np.zeros(2500), np.ones((1, 2500)), 0, 1, integer=is_integer
            )
            solver.check_size(wide)
            return
        limit = (
            rf"admits {licence.max_columns} columns and {licence.max_rows} rows;"
            r" large one has .* and .*\.$"
        )
        with mock.patch.object(
            Session, "_load", side_effect=AssertionError("the program was loaded")
        ):
            for rows, columns in ((1, licence.max_columns + 1), (licence.max_rows + 1, 1)):
                large = instances.make_program(
                    np.zeros(columns), np.ones((rows, columns)), 0, 1, name="large one"
                )
                with require_refusal(LicenceExceeded, limit):
                    solver.open(large)
            largest = licence.max_columns
            solver.open(
                instances.make_program(np.zeros(largest), np.ones((1, largest)), -INF, 1)
            ).close()

    @clause("sessions")
    def test_a_closed_session_says_so(self) -> None:
        """Raise SolverError when a closed session is asked to solve.

        Its solutions remain, and it can be closed twice.
        """
        session = self.solver().open(instances.make_triangle(integer=not self.capabilities().lp))
        solution = session.solve()
        session.close()
        session.close()
        with require_refusal(
            SolverError, f"the session of triangle by {re.escape(self.label)} is closed"
        ):
            session.solve()
        require_close("x", solution["x"], [1, 1], tolerance=1e-2)

    @clause("sessions", "lp")
    def test_sessions_do_not_disturb_each_other(self) -> None:
        """Solve in two open sessions by turns."""
        with (
            self.solver().open(instances.make_triangle()) as first,
            self.solver().open(instances.make_mixed_program()) as second,
        ):
            for _ in range(2):
                require_close("objective", first.solve().objective, 3, tolerance=self.accuracy)
                require_close("objective", second.solve().objective, 0.25, tolerance=self.accuracy)

    @clause("sessions")
    def test_a_native_exception_is_an_answer_or_an_error_of_ours(self) -> None:
        """Answer ERROR, or raise SolverError, where the native library raises.

        The next solve builds the program again.
        """
        with self.solver().open(self.easy_program()) as session:
            with mock.patch.object(session, "_run", side_effect=RuntimeError("first\nsecond")):
                solution = session.solve()
            require_equal("termination", solution.termination, Termination.ERROR)
            require(solution.x is None, f"x must be None. Got {solution.x}.")
            require_equal("bound", solution.bound, None)
            require_equal("raw_status", solution.raw_status, "RuntimeError: first second")
            require_optimal(session.solve())
            message = rf"^{re.escape(self.label)} failed on .*: KeyError: 'missing'\.$"
            with (
                mock.patch.object(session, "_build", side_effect=KeyError("missing")),
                require_refusal(SolverError, message),
            ):
                session.solve(start="cold")


def _require_no_more_work(solution: Solution, first: Solution) -> None:
    """Require the objective of a first solution, in at most as many iterations."""
    require_close("objective", solution.objective, first.objective, tolerance=1e-9)
    has_saved = solution.iterations is not None and first.iterations is not None
    is_no_slower = has_saved and (solution.iterations or 0) <= (first.iterations or 0)
    require(
        is_no_slower, f"iterations must be at most {first.iterations}. Got {solution.iterations}."
    )


@contextlib.contextmanager
def _captured_output() -> Iterator[list[str]]:
    """Collect, as one text, what Python and native libraries write to stdout and stderr."""
    texts: list[str] = []
    _flush_output()
    saved = os.dup(1), os.dup(2)
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as file:
        try:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
            with contextlib.redirect_stdout(file), contextlib.redirect_stderr(file):
                yield texts
                _flush_output()
        finally:
            os.dup2(saved[0], 1)
            os.dup2(saved[1], 2)
            os.close(saved[0])
            os.close(saved[1])
        file.seek(0)
        texts.append(file.read())


def _flush_output() -> None:
    """Write out what Python and, where it can be reached, the C library hold back."""
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name == "posix":
        ctypes.CDLL(None).fflush(None)
