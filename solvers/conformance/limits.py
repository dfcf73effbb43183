"""Clauses about options, limits, and the answers that are returned at a limit."""

from __future__ import annotations

import re
import time
from typing import Any
from unittest import mock

from workbench.solvers.backend import Options
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
from workbench.solvers.data import Data
from workbench.solvers.errors import UnsupportedOption
from workbench.solvers.solution import PointStatus, Solution, Termination

# An acceptable value of every named option.
OPTION_VALUES: dict[str, Any] = {
    "time_limit": 60.0,
    "gap": 1e-4,
    "node_limit": 10_000,
    "iteration_limit": 100_000,
    "threads": 1,
    "seed": 3,
    "feasibility_tolerance": 1e-7,
    "integrality_tolerance": 1e-7,
    "presolve": False,
    "algorithm": "simplex",
    "dual_feasibility_tolerance": 1e-8,
}
_HANG_SECONDS = 120.0  # Only a solver that ignores its limit takes longer.
_MIN_OPEN_GAP = 1e-6  # A gap above this counts as open.


class LimitClauses(Contract):
    """Clauses about options and limits."""

    @clause("options")
    def test_every_option_is_honoured_or_refused_by_name(self) -> None:
        """Honour every named option that is supported, and refuse every other one by its name."""
        solver = self.solver()
        for option, value in OPTION_VALUES.items():
            options = Options(**({"threads": None} | {option: value}))
            if option not in solver.supported_options:
                message = (
                    rf"^{re.escape(self.label)} cannot honour the option {option}; leave it out\.$"
                )
                with require_refusal(UnsupportedOption, message):
                    solver.open(self.easy_program(), options)
                continue
            with solver.open(self.easy_program(), options) as session:
                solution = session.solve()
            require_equal(
                f"termination with the option {option}", solution.termination, Termination.OPTIMAL
            )
            require_equal("threads", solution.threads, options.threads)
            require_equal("seed", solution.seed, options.seed)

    @clause("options")
    def test_unknown_native_option_is_refused_by_name(self) -> None:
        """Refuse an option in the solver's own names that it does not have."""
        with require_refusal(UnsupportedOption, "no_such_option"):
            self.solver().open(self.easy_program(), Options(native={"no_such_option": 1}))

    @clause("options", "lp", option="algorithm")
    def test_unknown_algorithm_is_refused(self) -> None:
        """Refuse an unknown algorithm with a message that lists the supported ones."""
        with require_refusal(UnsupportedOption, "algorithm must be one of simplex"):
            self.solver().open(self.easy_program(), Options(algorithm="guessing"))

    @clause("options")
    def test_more_threads(self) -> None:
        """Run on two threads, or refuse by UnsupportedOption."""
        try:
            solution = self.solve(self.easy_program(), threads=2)
        except UnsupportedOption as error:
            require(
                "thread" in str(error), f"the message must name the threads. Got {str(error)!r}."
            )
        else:
            require_optimal(solution)
            require_equal("threads", solution.threads, 2)

    @clause("limits", "milp", option="time_limit")
    def test_time_limit_with_incumbent(self) -> None:
        """Return the incumbent and a bound below it under TIME_LIMIT."""
        for limit in (0.4, 4.0, 20.0):  # A busy machine may have no incumbent sooner.
            begin = time.perf_counter()
            solution = self.solve(instances.make_packing(), time_limit=limit)
            _require_no_hang(begin)
            if solution.x is not None:
                break
        require_equal("termination", solution.termination, Termination.TIME_LIMIT)
        require_equal("point", solution.point, PointStatus.FEASIBLE)
        _require_open_gap(solution)
        require(
            solution.residuals and solution.residuals.max_violation <= 1e-6,
            f"the point must be feasible. Got {solution}.",
        )

    @clause("limits", "milp", option="time_limit")
    def test_time_limit_without_incumbent(self) -> None:
        """Return no point under TIME_LIMIT if none was found, and no bound above the optimum."""
        solution = self.solve(instances.make_market_split(), time_limit=0.3)
        require_equal("termination", solution.termination, Termination.TIME_LIMIT)
        require(solution.x is None, f"x must be None. Got {solution.x}.")
        require_equal("point", solution.point, PointStatus.NONE)
        require_equal("objective", solution.objective, None)
        require_equal("gap", solution.gap, None)
        # The objective is the sum of 40 binaries, so every bound above 40 is false.
        is_bound = solution.bound is None or 0 <= solution.bound <= 40
        require(is_bound, f"bound must be None or in [0, 40]. Got {solution.bound}.")

    @clause("limits", "lp", option="time_limit")
    def test_lp_time_limit(self) -> None:
        """Report TIME_LIMIT of a linear program, and call its point feasible only if it is."""
        solution = self.solve(instances.make_slow_lp(500), time_limit=0.003)
        require_equal("termination", solution.termination, Termination.TIME_LIMIT)
        residuals = solution.residuals
        has_true_status = (
            residuals is None
            or solution.point is PointStatus.INFEASIBLE
            or residuals.max_violation < 1e-6
        )
        require(has_true_status, f"a point that violates rows must be INFEASIBLE. Got {residuals}.")

    @clause("limits", "lp", option="time_limit")
    def test_time_limit_is_per_solve(self) -> None:
        """Count the time limit from the beginning of each solve, not of the session."""
        program = instances.add_parameters(
            instances.make_random_lp(60, 40, seed=2), row_upper=("shift", 1)
        )
        limit = self.ample_seconds
        solve_count = 0
        begin = time.perf_counter()
        with self.solver().open(program, Options(time_limit=limit)) as session:
            # All solves together take longer than the limit of one solve.
            while time.perf_counter() - begin < limit + 0.3:
                solve_count += 1
                solution = session.solve({"shift": 0.001 * (solve_count % 7)})
                if solution.seconds <= limit / 2:  # Otherwise the machine is slow, not the solver.
                    require_optimal(solution)

    @clause("limits", "milp", option="time_limit")
    def test_loading_counts_against_the_time_limit(self) -> None:
        """Subtract the seconds of loading the program from the solver's time limit."""
        with self.solver().open(instances.make_packing(), Options(time_limit=300.0)) as session:
            load = session._build

            def load_slowly(data: Data) -> None:
                """Load the data as if it had taken 299.5 s."""
                session._deadline._begin -= 299.5  # Pretend that loading has taken 299.5 s.
                load(data)

            begin = time.perf_counter()
            with mock.patch.object(session, "_build", load_slowly):
                solution = session.solve()
        require_equal("termination", solution.termination, Termination.TIME_LIMIT)
        require(solution.seconds > 299.5, f"seconds must include loading. Got {solution.seconds}.")
        _require_no_hang(begin)

    @clause("limits", "milp", option="gap")
    def test_gap_limit(self) -> None:
        """Report GAP_LIMIT, not OPTIMAL, if the solver stops at the gap of the options."""
        time_limit = {"time_limit": 20} if "time_limit" in self.solver().supported_options else {}
        solution = self.solve(instances.make_packing(), gap=0.25, **time_limit)
        require_equal("termination", solution.termination, Termination.GAP_LIMIT)
        is_between = solution.gap is not None and 1e-9 < solution.gap <= 0.25
        require(is_between, f"gap must be in (1e-9, 0.25]. Got {solution.gap}.")
        _require_open_gap(solution)

    @clause("limits", "milp", option="node_limit")
    def test_node_limit(self) -> None:
        """Report NODE_LIMIT with an open gap."""
        time_limit = {"time_limit": 30} if "time_limit" in self.solver().supported_options else {}
        solution = self.solve(instances.make_packing(), node_limit=1, **time_limit)
        require_equal("termination", solution.termination, Termination.NODE_LIMIT)
        require(
            solution.gap is None or solution.gap > _MIN_OPEN_GAP,
            f"gap must be open. Got {solution.gap}.",
        )

    @clause("limits", "lp", option="iteration_limit")
    def test_iteration_limit(self) -> None:
        """Report ITERATION_LIMIT of a linear program."""
        solution = self.solve(instances.make_slow_lp(60), iteration_limit=2)
        require_equal("termination", solution.termination, Termination.ITERATION_LIMIT)

    @clause("limits", "lp")
    def test_a_cutoff_ends_a_linear_program_only_where_its_duals_prove_it(self) -> None:
        """Solve to the optimum, or end at a cutoff that the bound proves, without a point."""
        for scale in (1.0, 2.0**20):
            program = instances.make_random_lp(40, 30, seed=4, scale=scale)
            optimum = self.solve(program).objective
            require(optimum is not None, "the program must have an optimum.")
            assert optimum is not None
            with self.solver().open(program, Options()) as session:
                for cutoff in (optimum + 1.0, optimum - 1.0, None):
                    _require_cutoff(session.solve(start="cold", cutoff=cutoff), cutoff, optimum)


def _require_cutoff(solution: Solution, cutoff: float | None, optimum: float) -> None:
    """Require the optimum, or termination CUTOFF with a bound that proves it.

    Args:
        solution: the solution under test.
        cutoff: the solver may stop if no point has an objective below this. None for no cutoff.
        optimum: the optimal objective.
    """
    if solution.termination is not Termination.CUTOFF:
        require_optimal(solution)
        require_close("objective", solution.objective, optimum, 1e-4 * abs(optimum))
        return
    require(
        cutoff is not None and cutoff < optimum,
        f"no cutoff must end at {cutoff}: the optimum is {optimum}.",
    )
    require(solution.x is None, f"x must be None. Got {solution.x}.")
    is_proof = (
        cutoff is not None
        and solution.bound is not None
        and cutoff - 1e-6 <= solution.bound <= optimum + 1e-6
    )
    require(is_proof, f"bound must be in [{cutoff}, {optimum}]. Got {solution.bound}.")


def _require_open_gap(solution: Solution) -> None:
    """Require an incumbent of negative cost, and a bound below it."""
    objective = solution.objective
    bound = solution.bound
    is_open = (
        objective is not None
        and bound is not None
        and solution.gap is not None
        and solution.gap > _MIN_OPEN_GAP
        and bound < objective < 0
    )
    require(is_open, f"bound < objective < 0 must hold. Got bound {bound}, objective {objective}.")


def _require_no_hang(begin: float) -> None:
    """Require that at most _HANG_SECONDS have passed since a time of `time.perf_counter`."""
    seconds = time.perf_counter() - begin
    require(
        seconds < _HANG_SECONDS,
        f"the solve must end soon after its limit. It took {seconds:.0f} s.",
    )
