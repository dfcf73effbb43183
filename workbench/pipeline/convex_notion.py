"""Requests under a notion that implies several convex bounds, or infinitely many.

A notion gives the first bounds that its budget implies (`Notion.initial_requirements`). The program
gains their tangents where its answer violates them, and further bounds (`Notion.find_cuts`). Every
such program is a relaxation, so that its Lagrangian bound is a bound on the optimum. The solver's
answer is never claimed to be private: the caller repairs it until the exact audit accepts it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from workbench.errors import NotProven, must
from workbench.exact.distribution import Distribution
from workbench.models.convex.requirements import Bound
from workbench.notions.laws import Laws
from workbench.pipeline.infeasible import raise_no_point
from workbench.pipeline.outcome import translate_errors
from workbench.pipeline.requirements import to_model_bound
from workbench.privacy.audit import Privacy
from workbench.privacy.claim import Claim
from workbench.solvers.arrays import Ints, Vector
from workbench.solvers.backend import get_backend, solve
from workbench.solvers.errors import BackendUnavailable, SolverError
from workbench.solvers.program import Program
from workbench.solvers.search import Deadline, bisect
from workbench.solvers.solution import Solution, Termination

if TYPE_CHECKING:
    from workbench.models.convex.interior import LevelRange
    from workbench.models.convex.tangent_program import Comparisons

# Randomized response is tried as a start up to this ε.
_MAX_RESPONSE_EPSILON = 6.0
# Randomized response is tried from this ε on.
_MIN_RESPONSE_EPSILON = 1e-4
# Tangents are added for this long if the request has no time limit.
DEFAULT_TANGENT_SECONDS = 60.0
# A relative excess over a limit up to this is left to the repair.
_REPAIRABLE_EXCESS = 1e-9

Label = Ints


class ClaimedBounds:
    """The bounds that a claim implies for neighbouring laws, including those that are added later.

    Args:
        claim: The claim.
        label: Label of any comparison.

    Attributes:
        bounds: All bounds so far.
    """

    def __init__(self, claim: Claim, label: Label) -> None:
        self.claim = claim
        self.values = claim.values_at(label)
        requirements = claim.notion.initial_requirements(self.values)
        self.bounds: list[Bound] = [*map(to_model_bound, requirements)]

    @property
    def levels(self) -> LevelRange | None:
        """Return the range of levels of the notion, with the bound at every level."""
        from workbench.models.convex.interior import LevelRange

        levels = self.claim.notion.requirement_range(self.values)
        if levels is None:
            return None
        low, high, requirement_at = levels
        return LevelRange(low, high, lambda level: to_model_bound(requirement_at(level)))

    def add_violated(self, p: Vector, q: Vector) -> Iterable[Bound]:
        """Return further bounds that two laws violate, and add them for later programs.

        Args:
            p: A law.
            q: The law of a neighbour.
        """
        violated = [*map(to_model_bound, self.claim.notion.find_cuts(p, q, self.values))]
        self.bounds += [bound for bound in violated if bound not in self.bounds]
        return violated


def find_implied_pure_epsilon(claim: Claim) -> float:
    """Return an ε whose pure DP implies a claim, close to the largest one.

    Randomized response decides this for every notion that survives post-processing, because it
    dominates all pairs of laws with the same pure ratio.

    Args:
        claim: The claim: a notion with its budget.

    Raises:
        InvalidRequest: The ε is too small or too large.
    """
    values = claim.values_at(())

    def is_too_large(epsilon: float) -> bool:
        heavy = max(1, round(math.exp(epsilon) * (1 << 40)))
        laws = Laws(Distribution([heavy, 1 << 40]), Distribution([1 << 40, heavy]))
        try:
            measurement = claim.notion.measure(laws, values)
            return not claim.notion.is_within_budget(measurement, values)
        except NotProven:
            return True

    candidates = (_MIN_RESPONSE_EPSILON * 2**k for k in range(19))
    high = next((epsilon for epsilon in candidates if is_too_large(epsilon)), 40.0)
    start = 0.0 if high == _MIN_RESPONSE_EPSILON else high / 2
    low: float = bisect(is_too_large, start, high, max_steps=12)[0]
    if low > _MAX_RESPONSE_EPSILON:
        rule = f"missed by randomized response at epsilon = {_MAX_RESPONSE_EPSILON:g}"
        must("the budget", rule, "a larger one")
    if low < _MIN_RESPONSE_EPSILON:
        must("the budget", "met by randomized response at epsilon = 1e-4", "a smaller one")
    return low


def solve_by_tangents(
    request: Any, label: Label, base_program: Program, comparisons: Comparisons
) -> tuple[Solution, float | None]:
    """Solve the program of a request with the tangents that its claim needs.

    Args:
        request: The request. Its solver must give dual values, which prove the bound.
        label: Label of any comparison.
        base_program: The program without the claim.
        comparisons: The pairs of neighbouring laws.

    Returns:
        The answer, and a bound on the optimum.

    Raises:
        Infeasible, InvalidRequest, NotProven, SolverUnavailable: There is no answer.
    """
    # This module is slow to import.
    from workbench.models.convex.tangent_program import TangentProgram

    options = request.how.options
    solver = request.how.solver
    deadline = Deadline(options.time_limit)
    if options.time_limit is None:
        deadline = Deadline(DEFAULT_TANGENT_SECONDS)
    with translate_errors():
        if not base_program.is_mip and not get_backend(solver).capabilities().duals:
            must("solver", f"one that gives dual values under {request.claim.notion.name}", solver)
        claimed_bounds = ClaimedBounds(request.audited_claim, label)
        live_program = TangentProgram(
            base_program,
            comparisons,
            claimed_bounds.bounds,
            solver,
            level_range=claimed_bounds.levels,
            options=replace(options, time_limit=None),
        )
        try:
            live_program.solve(claimed_bounds.add_violated, _REPAIRABLE_EXCESS, deadline)
            solution = live_program.build_solution()
            return solution, solution.bound
        except BackendUnavailable:
            raise
        except SolverError:
            if deadline.has_passed:
                message = "The search stopped at its time limit, before it had a mechanism."
                raise NotProven(message) from None
            solution = solve(live_program.master.program, solver=solver, options=options)
    if solution.x is None or solution.termination is Termination.INTERRUPTED:
        raise_no_point(solution, "mechanism meets the request", "")
    return solution, solution.bound


def is_claim_proven(privacy: Privacy, claim: Claim) -> bool:
    """Return whether the exact audit proves a claim. A tight claim may stay undecided.

    Args:
        privacy: The result of the exact audit.
        claim: The claim: a notion with its budget.
    """
    try:
        return privacy.holds(claim)
    except NotProven:
        return False
