"""Solve requests under a notion that implies several convex bounds, or infinitely many.

For example, ρ-zCDP bounds the Rényi divergence of every order α > 1. Programs can only contain
finitely many bounds, each of them by tangents:

1. The program has no privacy constraints at first. A list of bounds starts with those that the
   notion names (`Notion.initial_requirements`).
2. The program is solved. For each bound of the list that its solution violates, a tangent is added
   as a linear constraint: at the solution, or where the segment from a point within all bounds to
   the solution leaves the bound. `Notion.find_cuts` returns further bounds that the solution
   violates (no linear inequalities), for the list.
3. Step 2 is repeated until loss and bound are close, no tangent is new, or no excess is larger than
   the repair can remove.

Every such program is a relaxation, so that its Lagrangian bound is a bound on the optimum. The
solver's answer is never claimed to be private: the caller repairs it until the exact audit accepts
it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from workbench.errors import NotProven, must
from workbench.exact.distribution import Distribution
from workbench.exact.numbers import ZERO, nearest_float
from workbench.models.convex.requirements import Bound
from workbench.notions import PowerCone, Requirement
from workbench.notions.laws import Laws
from workbench.pipeline.infeasible import raise_no_point
from workbench.pipeline.outcome import translate_errors
from workbench.pipeline.requirements import MAX_POWER_EXPONENT, to_model_bound
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

# A budget that even randomized response at a larger ε satisfies is refused.
_MAX_RESPONSE_EPSILON = 6.0
# A budget that randomized response satisfies only at a smaller ε is refused.
_MIN_RESPONSE_EPSILON = 1e-4
# The smaller mass of randomized response, as an integer. The ratio is rounded to 40 bits.
_RESPONSE_WEIGHT = 1 << 40
# Tangents are added for this long if the request has no time limit.
DEFAULT_TANGENT_SECONDS = 60.0
# A relative excess over a limit up to this is left to the repair.
_REPAIRABLE_EXCESS = 1e-9

Label = Ints  # Names a pair of neighbours, for example by its shift.


class ClaimedBounds:
    """The list of bounds that a claim implies for neighbouring laws. It grows (module header).

    Args:
        claim: The claim, with the same budget for all neighbours.
        label: Label of any pair of neighbours.

    Attributes:
        claim: The claim.
        values: Parameters of its budget by name.
        bounds: All bounds so far.
    """

    def __init__(self, claim: Claim, label: Label) -> None:
        self.claim = claim
        self.values = claim.values_at(label)
        requirements = [*claim.notion.initial_requirements(self.values)]
        self._check_exponents(requirements)
        self.bounds: list[Bound] = [*map(to_model_bound, requirements)]

    def _check_exponents(self, requirements: Iterable[Requirement]) -> None:
        """Raise InvalidRequest with the name of the budget if it is too large for a program."""
        cones = [cone for cone in requirements if isinstance(cone, PowerCone)]
        exponent = max((cone.exponent for cone in cones), default=ZERO)
        if exponent > MAX_POWER_EXPONENT:
            name = self.claim.notion.parameters[0]
            # The exponent is proportional to this parameter.
            max_parameter = nearest_float(self.values[name] * MAX_POWER_EXPONENT / exponent)
            rule = (
                f"at most {max_parameter:.3g} in a program, because the bounds of a larger one are "
                "above the largest float"
            )
            must(name, rule, f"{nearest_float(self.values[name]):g}")

    @property
    def levels(self) -> LevelRange | None:
        """Return the range of levels, such as orders α, and the bound at each. None: no range."""
        from workbench.models.convex.interior import LevelRange

        levels = self.claim.notion.requirement_range(self.values)
        if levels is None:
            return None
        low, high, requirement_at = levels
        return LevelRange(low, high, bound_at=lambda level: to_model_bound(requirement_at(level)))

    def add_violated(self, p: Vector, q: Vector) -> Iterable[Bound]:
        """Return the bounds that two laws violate, and add new ones to the list.

        Args:
            p: A law.
            q: The law of a neighbour.
        """
        violated = [*map(to_model_bound, self.claim.notion.find_cuts(p, q, self.values))]
        self.bounds += [bound for bound in violated if bound not in self.bounds]
        return violated


def find_implied_pure_epsilon(claim: Claim) -> float:
    """Return an ε, close to the largest one, for which pure ε-DP implies a claim.

    If randomized response of two answers with the ratio e^ε satisfies the claim, every ε-private
    pair of laws does: it is a post-processing of randomized response. This holds for every notion
    that survives post-processing.

    Args:
        claim: The claim: a notion with its budget.

    Raises:
        InvalidRequest: The ε is below _MIN_RESPONSE_EPSILON or above _MAX_RESPONSE_EPSILON.
    """
    values = claim.values_at(())

    def is_too_large(epsilon: float) -> bool:
        """Return whether randomized response at ε is not proven to satisfy the claim."""
        light = _RESPONSE_WEIGHT
        heavy = max(1, round(math.exp(epsilon) * light))
        laws = Laws(Distribution([heavy, light]), Distribution([light, heavy]))
        try:
            measurement = claim.notion.measure(laws, values)
            return not claim.notion.is_within_budget(measurement, values)
        except NotProven:
            return True

    # The candidates end at ε = 26. If none of them is too large, the search ends at 40.
    candidates = (_MIN_RESPONSE_EPSILON * 2**k for k in range(19))
    high = next((epsilon for epsilon in candidates if is_too_large(epsilon)), 40.0)
    start = 0.0 if high == _MIN_RESPONSE_EPSILON else high / 2
    implied_epsilon: float
    # Twelve halvings are enough, because a smaller ε implies the claim, too.
    implied_epsilon, _ = bisect(is_too_large, start, high, max_steps=12)
    if implied_epsilon > _MAX_RESPONSE_EPSILON:
        rule = f"too small for randomized response at epsilon = {_MAX_RESPONSE_EPSILON:g}"
        must("the budget", rule, "a larger one")
    if implied_epsilon < _MIN_RESPONSE_EPSILON:
        rule = f"large enough for randomized response at epsilon = {_MIN_RESPONSE_EPSILON:g}"
        must("the budget", rule, "a smaller one")
    return implied_epsilon


def solve_by_tangents(
    request: Any, label: Label, base_program: Program, comparisons: Comparisons
) -> tuple[Solution, float | None]:
    """Solve the program of a request with the tangents that its claim needs.

    Args:
        request: The request. Its solver must give dual values, which prove the bound.
        label: Label of any pair of neighbours.
        base_program: The program without the claim.
        comparisons: The pairs of neighbouring laws.

    Returns:
        The answer, and a lower bound on the optimum. None: nothing is proven.

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
            # Solve the last program once more, to get its status and its bound.
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
