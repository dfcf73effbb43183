"""Clauses about points, statuses, duals, bounds and rays of programs with known answers.

`Contract` provides `self.solve`. `self.accuracy` is the largest accepted error of an answer.
"""

from __future__ import annotations

import numpy as np

from workbench.solvers.conformance import instances
from workbench.solvers.conformance.clauses import (
    Contract,
    clause,
    require,
    require_close,
    require_equal,
    require_infeasible,
    require_optimal,
    require_refusal,
)
from workbench.solvers.errors import BackendUnavailable
from workbench.solvers.program import Program
from workbench.solvers.solution import (
    PointStatus,
    Solution,
    Start,
    Termination,
    is_unbounded_direction,
    proves_infeasibility,
)

INF = np.inf
_RANDOM_SEEDS = range(3)
_FINE_SCALE = 2.0**20  # Tolerances are finer by this factor in the scaled programs.
_SHIFT = 1e-4  # A side of a row is moved by this in both directions to measure a slope.


class AnswerClauses(Contract):
    """Clauses about linear programs."""

    @clause("answers", "lp")
    def test_lp_optimal(self) -> None:
        """Return the optimal point, its objective and residuals, and say how they were found."""
        solution = self.solve(instances.make_triangle())
        require_optimal(solution)
        require_equal("point", solution.point, PointStatus.FEASIBLE)
        require_close("x", solution["x"], [1, 1], tolerance=self.accuracy)
        require_close("objective", solution.objective, 3, tolerance=self.accuracy)
        _require_small_residuals(solution, self.accuracy)
        require_equal("start", solution.start, Start.COLD)
        require(
            solution.nodes is None or solution.nodes >= 0,
            f"nodes must be >= 0. Got {solution.nodes}.",
        )
        require_equal("solver", solution.solver, self.label)
        require(solution.version, "version must not be empty.")
        require(solution.raw_status, "raw_status must not be empty.")
        require(solution.seconds > 0, f"seconds must be > 0. Got {solution.seconds}.")
        require(
            self.label in str(solution), f"str(solution) must contain {self.label}. Got {solution}."
        )

    @clause("answers", "lp")
    def test_every_kind_of_row_and_column(self) -> None:
        """Solve a program with rows and columns of every kind."""
        solution = self.solve(instances.make_mixed_program())
        require_optimal(solution)
        require_close("objective", solution.objective, 0.25, tolerance=self.accuracy)
        require_close("x", solution["x"], [2, -1.5, 0.5, -3, 1], tolerance=10 * self.accuracy)
        require_close("the fixed column", solution["x"][2], 0.5, tolerance=self.accuracy)

    @clause("answers")
    def test_empty_lp(self) -> None:
        """Solve linear programs without rows, and with an empty row.

        A backend that solves integer programs only must refuse linear programs.
        """
        if not self.capabilities().lp:
            with require_refusal(BackendUnavailable, "cannot solve"):
                self.solve(instances.make_program([-1], [[1]], 0, 1, upper=1))
            return
        _require_empty_programs_solved(self, integer=False)

    @clause("answers", "lp")
    def test_no_columns(self) -> None:
        """Return the empty point of a program without columns, or INFEASIBLE.

        The program is feasible if and only if all rows admit zero.
        """
        solution = self.solve(
            instances.make_program([], np.zeros((2, 0)), [-1, 0], [0, 1], offset=2.5)
        )
        require_optimal(solution)
        require_equal("objective", solution.objective, 2.5)
        require(
            solution.x is not None and solution.x.shape == (0,),
            f"x must be empty. Got {solution.x}.",
        )
        require_optimal(self.solve(instances.make_program([], np.zeros((0, 0)), 0, 0)))
        impossible = self.solve(instances.make_program([], np.zeros((1, 0)), 1, 2))
        require_equal("termination", impossible.termination, Termination.INFEASIBLE)

    @clause("answers", "lp")
    def test_no_cost(self) -> None:
        """Return any feasible point of a program without costs as optimal."""
        solution = self.solve(instances.make_program([0, 0], [[1, 1]], 1, 2))
        require_optimal(solution)
        require_equal("objective", solution.objective, 0)
        _require_small_residuals(solution, 1e-3)

    @clause("statuses", "lp")
    def test_lp_infeasible(self) -> None:
        """Report INFEASIBLE without point and bound; with a proof, if certificates are claimed."""
        program = instances.make_infeasible_program()
        solution = self.solve(program)
        require_infeasible(solution)
        require_equal("bound", solution.bound, None)
        require_equal("gap", solution.gap, None)
        if self.capabilities().infeasibility_certificate:
            is_proof = solution.ray is not None and proves_infeasibility(
                program.template, solution.ray
            )
            require(
                is_proof,
                f"ray must be row multipliers that prove infeasibility. Got {solution.ray}.",
            )

    @clause("statuses", "lp")
    def test_lp_unbounded(self) -> None:
        """Report UNBOUNDED without a bound, and return no ray or an unbounded direction.

        An unbounded direction is one along which the objective falls for ever.
        """
        program = instances.make_unbounded_program()
        solution = self.solve(program)
        require_equal("termination", solution.termination, Termination.UNBOUNDED)
        require_equal("bound", solution.bound, None)
        is_direction = solution.ray is None or is_unbounded_direction(
            program.template, solution.ray
        )
        require(is_direction, f"ray must be an improving direction. Got {solution.ray}.")
        if solution.x is not None:
            _require_small_residuals(solution, 1e-3)

    @clause("statuses", "lp")
    def test_lp_primal_and_dual_infeasible(self) -> None:
        """Report INFEASIBLE where the program and its dual are both infeasible."""
        require_infeasible(self.solve(instances.make_doubly_infeasible_program()))

    @clause("duals", "lp", "duals")
    def test_duals_signs(self) -> None:
        """Report row duals that are <= 0 at upper bounds, and reduced costs c - A'y."""
        solution = self.solve(instances.make_triangle())
        require_equal("dual", solution.dual, PointStatus.FEASIBLE)
        require_close("row_dual", solution.row_dual, [-1 / 3, -1 / 3], self.accuracy)
        require_close("reduced_cost", solution.reduced_cost, [0, 0], tolerance=self.accuracy)
        require_close("bound", solution.bound, 3, tolerance=10 * self.accuracy)

    @clause("duals", "lp", "duals")
    def test_duals_are_slopes(self) -> None:
        """Report as dual of a row the derivative of the optimum by its active side."""
        for seed in _RANDOM_SEEDS:
            self._require_slopes(instances.make_random_lp(seed=seed))

    def _require_slopes(self, program: Program) -> None:
        """Compare the duals with those of HiGHS, and one of them with a difference quotient."""
        solution = self.solve(program)
        reference = self.solve_by_highs(program)
        data = program.template
        duals = reference.row_dual
        require(duals is not None, "HiGHS must return duals.")
        assert duals is not None
        require_close("row_dual", solution.row_dual, duals, 10 * self.accuracy)
        assert solution.row_dual is not None
        reduced_cost = data.c - data.A.T @ solution.row_dual
        require_close("reduced_cost", solution.reduced_cost, reduced_cost, 10 * self.accuracy)

        # Row 0 is an equation, of which both sides would have to move.
        row = int(np.argmax(np.abs(duals[1:]))) + 1
        active_side = "row_lower" if duals[row] > 0 else "row_upper"
        moving_program = instances.add_parameters(program, **{active_side: ("shift", row)})
        with self.solver().open(moving_program) as session:
            optimum_above = session.solve({"shift": _SHIFT}).objective
            optimum_below = session.solve({"shift": -_SHIFT}).objective
        has_objectives = optimum_above is not None and optimum_below is not None
        require(has_objectives, "the shifted programs must have an objective.")
        assert optimum_above is not None
        assert optimum_below is not None
        slope = (optimum_above - optimum_below) / (2 * _SHIFT)
        require_close(
            "the slope of the optimum", slope, duals[row], max(1e-5, self.accuracy / _SHIFT)
        )

    @clause("bounds", "lp", "duals")
    def test_lagrangian_bound(self) -> None:
        """Report duals of linear programs whose Lagrangian bound is the optimum."""
        for seed in _RANDOM_SEEDS:
            solution = self.solve(instances.make_random_lp(seed=seed))
            require_close("bound", solution.bound, solution.objective, 10 * self.accuracy)
            require_close("gap", solution.gap, 0, tolerance=10 * self.accuracy)
        mixed = self.solve(instances.make_mixed_program())
        require_close("bound", mixed.bound, mixed.objective, 10 * self.accuracy)

    @clause("bounds", "lp")
    def test_an_optimal_lp_has_a_bound(self) -> None:
        """Return a bound with the optimum of a linear program.

        The bound comes from the duals if they are claimed, else from the solver.
        """
        solution = self.solve(instances.make_triangle())
        require_optimal(solution)
        require_close("bound", solution.bound, 3, tolerance=10 * self.accuracy)
        has_duals = self.capabilities().duals
        require(
            (solution.native_bound is None) == has_duals,
            "the bound must come from the duals if they are claimed.",
        )

    @clause("scaling", "lp")
    def test_scaled_lp(self) -> None:
        """Report point, duals and residuals of a scaled program in the units of the model."""
        plain = self.solve(instances.make_random_lp(seed=5))
        scaled = self.solve(instances.make_random_lp(seed=5, scale=_FINE_SCALE))
        tolerance = 10 * self.accuracy
        require_optimal(scaled)
        require_close("objective", scaled.objective, plain.objective, tolerance)
        require_close("x", scaled.x, plain.x, tolerance)
        _require_small_residuals(scaled, tolerance)
        if self.capabilities().duals:
            require_close("row_dual", scaled.row_dual, plain.row_dual, tolerance)
            require_close("reduced_cost", scaled.reduced_cost, plain.reduced_cost, tolerance)


class IntegerClauses(Contract):
    """Clauses about programs with integer columns."""

    @clause("integers", "milp")
    def test_milp_optimal(self) -> None:
        """Return the optimum of a knapsack with a bound that proves it, and no duals."""
        solution = self.solve(instances.make_knapsack())
        require_optimal(solution)
        require_close("objective", solution.objective, -41, tolerance=1e-6)
        require_close("bound", solution.bound, -41, tolerance=1e-6)
        require_close("gap", solution.gap, 0, tolerance=1e-6)
        _require_small_residuals(solution, 1e-6)
        require(solution.row_dual is None, f"row_dual must be None. Got {solution.row_dual}.")
        require(
            solution.reduced_cost is None,
            f"reduced_cost must be None. Got {solution.reduced_cost}.",
        )

    @clause("integers", "milp")
    def test_mixed_integers(self) -> None:
        """Solve a program with continuous and integer columns.

        A backend that solves programs in integers only must raise BackendUnavailable.
        """
        program = instances.make_mixed_program(integer=True)
        if self.capabilities().integer_only:
            with require_refusal(BackendUnavailable, "integers only"):
                self.solve(program)
            return
        solution = self.solve(program)
        require_optimal(solution)
        require_close("x", solution["x"], [2, -1.5, 0.5, -3, 1], tolerance=1e-6)

    @clause("integers", "milp")
    def test_milp_with_a_constant_cost(self) -> None:
        """Add the offset of the objective to objective and bound."""
        base = instances.make_knapsack().template
        program = instances.make_program(
            base.c, base.A.toarray(), -INF, 47, upper=1, integer=True, offset=100
        )
        solution = self.solve(program)
        require_close("objective", solution.objective, 59, tolerance=1e-6)
        require_close("bound", solution.bound, 59, tolerance=1e-6)

    @clause("integers", "milp")
    def test_fractional_bounds_of_integers(self) -> None:
        """Solve programs whose integer columns have fractional bounds.

        HiGHS 1.13 answers the first one wrongly, unless the bounds are rounded before.
        """
        program = instances.make_program(
            [0.7, -0.9],
            [[-1.91, 2.25], [0.09, -3.35], [3.56, 1.64]],
            [-INF, -INF, 3.18],
            [4.56, -6.44, 4.19],
            upper=[2.3, 2.6],
            integer=True,
        )
        solution = self.solve(program)
        require_optimal(solution)
        require_close("x", solution["x"], [0, 2], tolerance=1e-6)
        require_close("bound", solution.bound, -1.8, tolerance=1e-6)
        # A bound that is 3 up to rounding admits 3.
        almost_three = instances.make_program([-1], [[1]], 0, 9, upper=3 - 1e-12, integer=True)
        require_close("objective", self.solve(almost_three).objective, -3, tolerance=1e-6)
        # No integer lies between 1.25 and 1.75.
        no_integer = instances.make_program([-1], [[1]], 0, 9, lower=1.25, upper=1.75, integer=True)
        require_equal("termination", self.solve(no_integer).termination, Termination.INFEASIBLE)

    @clause("integers", "milp")
    def test_implied_integers(self) -> None:
        """Minimise x1 to 0 under x1 >= x2, x0 + x2 = x3, 68 x2 + x3 <= 12.

        The presolve of HiGHS 1.13 returns 1.
        """
        if self.capabilities().integer_only:
            return
        program = instances.make_program(
            [0, 1, 0, 0],
            [[0, 1, -1, 0], [1, 0, 1, -1], [0, 0, -68, -1]],
            [0, 0, -12],
            [INF, 0, INF],
            lower=[-INF, -INF, 0, 0],
            integer=[True, True, False, True],
        )
        solution = self.solve(program)
        require_optimal(solution)
        require_close("objective", solution.objective, 0, tolerance=1e-6)

    @clause("integers", "milp")
    def test_large_integers(self) -> None:
        """Claim no optimum among integers beyond the reach of the search.

        The answer is then NUMERICAL with a note, and without a bound.
        """
        # Some solvers search only integers up to `integer_reach`. The optimum here is 4e7.
        is_limited = self.integer_reach < 4e7
        large_optimum = instances.make_program(
            [-1.0, 1e-9], [[1.0, 1.0]], -INF, 5e7, upper=4e7, integer=True
        )
        solution = self.solve(large_optimum)
        if is_limited and solution.termination is Termination.NUMERICAL:
            require_equal("bound", solution.bound, None)
            require(solution.notes, "notes must say how far the solver searches.")
        else:
            require_close("objective", solution.objective, -4e7, tolerance=40)
        rows = [[1.0, 1.0], [1.0, -1.0]]
        # Only the rows limit these columns.
        no_bounds = instances.make_program([-1.0, -1.0], rows, -5, 5, lower=-INF, integer=True)
        solution = self.solve(no_bounds)
        if not is_limited:
            require_close("objective", solution.objective, -5, tolerance=1e-6)

    @clause("integers")
    def test_empty_milp(self) -> None:
        """Solve integer programs without rows, and with an empty row.

        A backend that solves linear programs only must refuse integer programs.
        """
        if not self.capabilities().milp:
            with require_refusal(BackendUnavailable, "cannot solve"):
                self.solve(instances.make_program([-1], [[1]], 0, 1, upper=1, integer=True))
            return
        _require_empty_programs_solved(self, integer=True)

    @clause("statuses", "milp")
    def test_milp_infeasible(self) -> None:
        """Report INFEASIBLE without a point for integer columns without upper bounds."""
        require_infeasible(self.solve(instances.make_infeasible_program(integer=True)))

    @clause("statuses", "milp")
    def test_milp_infeasible_in_integers_alone(self) -> None:
        """Report INFEASIBLE where only the integers have no point."""
        solution = self.solve(instances.make_program([1, 1], [[2, 2]], 3, 3, upper=5, integer=True))
        require_equal("termination", solution.termination, Termination.INFEASIBLE)

    @clause("statuses", "milp")
    def test_milp_unbounded(self) -> None:
        """Report UNBOUNDED without a bound, and with no point of huge numbers."""
        solution = self.solve(instances.make_unbounded_program(integer=True))
        require_equal("termination", solution.termination, Termination.UNBOUNDED)
        require_equal("bound", solution.bound, None)
        has_small_point = solution.x is None or np.abs(solution.x).max() < 1e15
        require(has_small_point, f"x must be None or below 1e15. Got {solution.x}.")

    @clause("statuses", "milp")
    def test_milp_primal_and_dual_infeasible(self) -> None:
        """Report INFEASIBLE where program and dual of the relaxation are both infeasible."""
        require_infeasible(self.solve(instances.make_doubly_infeasible_program(integer=True)))

    @clause("scaling", "milp")
    def test_scaled_milp(self) -> None:
        """Report columns of a scaled program in the units of the model.

        Integer columns keep their values: they are not scaled.
        """
        is_integer_only = self.capabilities().integer_only
        program = instances.make_program(
            [-1, -3],
            [[2, 1], [0, 1]],
            -INF,
            [4.5, 1.25],
            upper=9,
            integer=True if is_integer_only else [True, False],
            scale=_FINE_SCALE,
        )
        optimum = [1, 1] if is_integer_only else [1, 1.25]
        solution = self.solve(program)
        require_optimal(solution)
        require_close("x", solution.x, optimum, tolerance=1e-6)
        require_close("bound", solution.bound, -optimum[0] - 3 * optimum[1], tolerance=1e-6)


def _require_small_residuals(solution: Solution, tolerance: float) -> None:
    """Require that the point violates no row, bound or integrality by more than a tolerance."""
    residuals = solution.residuals
    is_small = residuals is not None and residuals.max_violation <= tolerance
    require(is_small, f"residuals must be at most {tolerance:.3g}. Got {residuals}.")


def _require_empty_programs_solved(contract: Contract, *, integer: bool) -> None:
    """Require the answers of a program without rows, and of two with a row of zeros."""
    tolerance = 10 * contract.accuracy
    no_rows = instances.make_program([-1, -2], np.zeros((0, 2)), 0, 0, upper=3, integer=integer)
    solution = contract.solve(no_rows)
    require_optimal(solution)
    require_close("x", solution["x"], [3, 3], tolerance=tolerance)
    empty_row = instances.make_program([-1], [[0]], -1, 1, upper=3, integer=integer)
    require_close("x", contract.solve(empty_row)["x"], [3], tolerance=tolerance)
    impossible = contract.solve(instances.make_program([-1], [[0]], 1, 2, upper=3, integer=integer))
    require_equal("termination", impossible.termination, Termination.INFEASIBLE)
