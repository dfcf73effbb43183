"""Solve the linear program of a channel request by several algorithms, until an exact bound proves
the optimum.

The program is solved by the simplex method and by an interior-point method. For δ > 0 a reduced
program comes first, which omits masses and comparisons that are probably unnecessary. (A comparison
is a row that bounds one mass M[y, o] by e^ε times that of a neighbour.) If the optimum is far below
the scale of the losses, the program is finally solved with larger losses. After each solve the
lower bound is recomputed in integers (`workbench.families.channel.proof`), and the search ends as
soon as it is close to the loss.

The notion pdp with δ > 0 needs a mixed-integer program: a binary for each comparison says whether
it may be violated. It is solved once, with the bound of the solver.

Where to change: the order of the solves is in `ChannelProgramSolver._list_attempts`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from workbench.exact.objects import Values
from workbench.families.channel.proof import bound_least_delta, bound_least_loss
from workbench.families.channel.request import ChannelRequest
from workbench.models.channel.program import ChannelModel
from workbench.pipeline.loss_scale import LossScale
from workbench.pipeline.outcome import translate_error
from workbench.pipeline.routes import Programs
from workbench.solvers.backend import Options
from workbench.solvers.errors import SolverError
from workbench.solvers.solution import Solution, Termination

# The interior point with crossover is faster than the simplex method from this many comparisons on.
MIN_INTERIOR_COMPARISONS = 2_000
# The simplex method takes minutes, and the interior point seconds, from this many comparisons on.
_SLOW_SIMPLEX_COMPARISONS = 8_000
# If the exact bound is further from the loss than this relative gap, the next algorithm is tried.
_PROVEN_GAP = 5e-10
# The same gap for programs that are slow to solve by the simplex method.
_LARGE_PROVEN_GAP = 1e-8
# This share of δ is reserved if binaries bound a mass, because rounding cannot be mixed away then.
_DELTA_MARGIN = Fraction(1, 1 << 28)
# The simplex method solves with these tolerances, unless the request gives others.
_SIMPLEX_TOLERANCE = 1e-9
# The multipliers of a reduced program often prove too little at HiGHS's default of 1e-7.
_REDUCED_DUAL_TOLERANCE = 1e-8
# Masses whose hockey sticks exceed δ by at most this become private by a repair that does not
# change the loss.
_MAX_DELTA_EXCESS = 1e-12
# Losses are multiplied by at least this factor for a small optimum, or not at all.
_MIN_LOSS_FACTOR = 16.0
# Losses are multiplied by at most 2^40 for a small optimum.
_MAX_LOSS_EXPONENT = 40

# No other algorithm is tried after one of these.
FINAL_TERMINATIONS = (Termination.INTERRUPTED, Termination.TIME_LIMIT, Termination.INFEASIBLE)


class ProvenSolution(NamedTuple):
    """The best solution of a program.

    Attributes:
        model: model that was solved.
        solution: best solution found. It may have no point.
        bound: largest lower bound on the loss (or on the minimised δ), in the units of the
            request. None: no bound is known.
    """

    model: ChannelModel
    solution: Solution
    bound: Fraction | None


class _Attempt(NamedTuple):
    """One way to solve the program.

    Attributes:
        algorithm: algorithm of the solver. None: as the request or the solver decides.
        is_reduced: whether masses and comparisons that are probably unnecessary are omitted.
        has_larger_losses: whether losses are multiplied, for a small optimum.
    """

    algorithm: str | None
    is_reduced: bool = False
    has_larger_losses: bool = False


class ChannelProgramSolver:
    """A solver of the linear program of a request, or of the program with binaries.

    Args:
        request: request under a notion of one bound.
        loss_scale: scale of the losses, which decides when a gap is small enough.
        programs: compiled programs of the session.
        accepted_gap: relative gap that is accepted in any case.
    """

    def __init__(
        self,
        request: ChannelRequest,
        loss_scale: LossScale,
        programs: Programs,
        accepted_gap: float = 0.0,
    ) -> None:
        self.request = request
        self._loss_scale = loss_scale
        self._programs = programs
        self._accepted_gap = accepted_gap

    def solve_until_proven(self, start: str) -> ProvenSolution:
        """Solve by one algorithm after the other, until the bound proves the optimum.

        Args:
            start: "hot": from the last solution of the session; "cold": from the beginning.

        Returns:
            The best solution and bound. They are the last ones found if nothing proves the
            optimum.
        """
        best: ProvenSolution | None = None
        for attempt in self._list_attempts():
            loss_factor = 1.0
            if attempt.has_larger_losses and best is not None and best.solution.x is not None:
                loss_factor = self._choose_loss_factor(best.solution)
                if loss_factor < _MIN_LOSS_FACTOR:
                    break
            model, solution = self._solve(attempt, loss_factor, start)
            is_final = solution.termination in FINAL_TERMINATIONS
            omits_comparisons = model.stated_comparisons is not None
            if omits_comparisons and not is_final and not self._is_private(solution):
                # A comparison that was omitted is violated, so this is not the optimum.
                continue
            bound = self.compute_lower_bound(model, solution)
            best = _choose_better(best, ProvenSolution(model, solution, bound))
            if is_final or self._is_proven(best):
                break
        assert best is not None
        return best

    def solve_at(self, point: Values) -> Solution:
        """Solve the request at other values once, without a proof.

        Args:
            point: option -> exact value, such as {"epsilon": Fraction(1, 2)}.
        """
        moved_request = self.request.with_values(check="none", **point)
        solver = ChannelProgramSolver(moved_request, self._loss_scale, self._programs)
        _, solution = solver._solve(_Attempt(algorithm=None), loss_factor=1.0, start="cold")
        return solution

    def compute_lower_bound(self, model: ChannelModel, solution: Solution) -> Fraction | None:
        """Compute a lower bound on the minimised quantity, the loss or δ.

        Args:
            model: model of the program.
            solution: its solution. Any multipliers give a valid bound.

        Returns:
            The exact bound of the multipliers. With binaries or extra constraints it is the bound
            of the solver. None if the solver has none.
        """
        request = self.request
        has_exact_bound = not (request.has_extra_constraints or request.bounds.bounds_mass)
        if not has_exact_bound or solution.row_dual is None:
            return None if solution.bound is None else Fraction(solution.bound)
        multipliers = model.multipliers(solution.row_dual)
        prior = request.question.prior
        scaled_losses = request.scaled_losses
        table = scaled_losses.table
        if request.aim.minimise == "delta":
            assert request.aim.max_loss is not None
            max_loss = scaled_losses.scale_loss(request.aim.max_loss)
            return bound_least_delta(table, prior, request.edges, max_loss, multipliers)
        bound = bound_least_loss(table, prior, request.edges, request.bounds.delta, multipliers)
        return scaled_losses.unscale_loss(bound)

    def _list_attempts(self) -> list[_Attempt]:
        """List the ways to solve the program, in order.

        For example, a large request at δ > 0 has [reduced by the interior point, interior point,
        simplex, simplex with larger losses].
        """
        request = self.request
        has_binaries = request.bounds.bounds_mass
        is_algorithm_fixed = (
            request.how.options.algorithm is not None
            or self._programs.backend.name != "highs"
            or has_binaries
        )
        algorithms: list[str | None] = [None]
        if not is_algorithm_fixed:
            algorithms = ["simplex", "interior-point"]
            if request.comparison_count >= MIN_INTERIOR_COMPARISONS:
                algorithms.reverse()
        attempts = [_Attempt(algorithm) for algorithm in algorithms]
        if request.stated_masses is not None or request.binding_comparisons is not None:
            attempts.insert(0, _Attempt(algorithms[0], is_reduced=True))
        if request.aim.minimise == "loss" and not has_binaries:
            last_algorithm = None if is_algorithm_fixed else "simplex"
            attempts.append(_Attempt(last_algorithm, has_larger_losses=True))
        return attempts

    def _is_proven(self, best: ProvenSolution) -> bool:
        """Return whether the bound is so close to the objective that the search can end."""
        objective = best.solution.objective
        if objective is None or best.bound is None:
            return False
        gap = _PROVEN_GAP
        if self.request.comparison_count >= _SLOW_SIMPLEX_COMPARISONS:
            gap = _LARGE_PROVEN_GAP
        gap = max(gap, self._accepted_gap)
        return self._loss_scale.proves(objective, best.bound, gap)

    def _is_private(self, solution: Solution) -> bool:
        """Return whether the hockey sticks of all neighbours are at most δ, up to rounding."""
        if solution.x is None:
            return False
        edges = self.request.edges
        first, second = np.array(edges.pairs, dtype=int).T
        ratios = np.exp([float(epsilon) for epsilon in edges.epsilons])[:, None]
        masses = solution["M"]
        excess = np.maximum(masses[first] - ratios * masses[second], 0.0).sum(axis=1)
        return bool(excess.max() <= float(self.request.bounds.delta) + _MAX_DELTA_EXCESS)

    def _choose_loss_factor(self, solution: Solution) -> float:
        """Return the power of two that makes the optimum about as large as the scale."""
        assert solution.x is not None
        scaled_objective = float(solution.data.c @ solution.x) / self.request.scaled_losses.unit
        if scaled_objective <= 0:
            return 2.0**_MAX_LOSS_EXPONENT
        exponent = max(round(-math.log2(scaled_objective)), 0)
        return 2.0 ** min(exponent, _MAX_LOSS_EXPONENT)

    def _solve(
        self, attempt: _Attempt, loss_factor: float, start: str
    ) -> tuple[ChannelModel, Solution]:
        """Solve the program in one way.

        A session of the solver is kept for every structure of the program, algorithm and factor, so
        that a path of ε and δ solves the same program with other numbers.

        loss_factor: factor of the objective in the solver; start: "hot" or "cold". Returns (model,
        solution); the solution may have no point.
        """
        request = self.request
        bounds = request.bounds
        groups, epsilons = request.group_epsilons()
        support = None
        binding = None
        if attempt.is_reduced:
            support = request.stated_masses
            binding = request.binding_comparisons
        structure = (
            bool(bounds.delta),
            request.aim.minimise,
            groups,
            None if support is None else support.tobytes(),
            None if binding is None else binding.tobytes(),
        )
        key = (structure, attempt.algorithm, loss_factor)
        sessions = self._programs.live_sessions
        try:
            if key not in sessions:
                model = self._find_compiled_model(structure) or request.model(support, binding)
                options = self._choose_options(attempt.algorithm, is_reduced=binding is not None)
                program = replace(model.program, cost=loss_factor * model.program.cost)
                sessions[key] = (model, self._programs.backend.open(program, options))
            model, session = sessions[key]
            values = self._list_parameter_values(model, epsilons)
            return model, session.solve(values, start=start)
        except (ValueError, SolverError) as error:
            raise translate_error(error) from None

    def _list_parameter_values(self, model: ChannelModel, epsilons: Sequence[Fraction]) -> Any:
        """Return the values of the parameters of a program: e^ε, δ and the largest loss."""
        request = self.request
        delta = request.bounds.delta
        if request.bounds.bounds_mass:
            delta *= 1 - _DELTA_MARGIN
        max_loss = 0.0
        if request.aim.max_loss is not None:
            max_loss = float(request.scaled_losses.scale_loss(request.aim.max_loss))
        return model.values([float(e) for e in epsilons], float(delta), max_loss)

    def _find_compiled_model(self, structure: Any) -> ChannelModel | None:
        """Return the model of an open session with the same structure. None if there is none."""
        for (other_structure, *_), (model, _) in self._programs.live_sessions.items():
            if other_structure == structure:
                found_model: ChannelModel = model
                return found_model
        return None

    def _choose_options(self, algorithm: str | None, *, is_reduced: bool) -> Options:
        """Return the options of the solver for one way to solve the program."""
        request = self.request
        options = request.how.options
        if algorithm is not None:
            options = replace(options, algorithm=algorithm)
        if request.bounds.bounds_mass and request.wants_certificate:
            options = self._programs.tighten_tolerances(options)
        if algorithm == "simplex" and options.feasibility_tolerance is None:
            return replace(
                options,
                feasibility_tolerance=_SIMPLEX_TOLERANCE,
                dual_feasibility_tolerance=_SIMPLEX_TOLERANCE,
            )
        is_highs = self._programs.backend.name == "highs"
        if is_reduced and is_highs and options.dual_feasibility_tolerance is None:
            return replace(options, dual_feasibility_tolerance=_REDUCED_DUAL_TOLERANCE)
        return options


def _choose_better(best: ProvenSolution | None, latest: ProvenSolution) -> ProvenSolution:
    """Combine two results of one request: the smaller objective, the larger bound, the latest
    model.
    """
    if best is None:
        return latest
    known_bounds = [bound for bound in (latest.bound, best.bound) if bound is not None]
    solution = latest.solution
    best_objective = best.solution.objective or 0
    is_best_smaller = best.solution.x is not None and best_objective < (solution.objective or 0)
    if solution.x is None or is_best_smaller:
        solution = best.solution
    return ProvenSolution(latest.model, solution, max(known_bounds, default=None))
