"""Requests under a notion that several convex bounds state, or infinitely many of them.

A notion gives the bounds that its budget implies (`Notion.initial_requirements`); the program gains their tangents where its answer
breaks them, and further bounds (`Notion.find_cuts`). Every such program is a relaxation, so its Lagrangian bound is one on
the optimum. What is claimed is never the solver's answer: the caller repairs it until the exact audit accepts it.
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

_MAX_RESPONSE_EPSILON = 6.0  # ε up to which randomized response is tried for a budget.
DEFAULT_TANGENT_SECONDS = (
    60.0  # After so many seconds the tangents end where the request has no time limit.
)
_REPAIRABLE_EXCESS = 1e-9  # over a limit, relative, that is left to the repair

Label = Ints


class ClaimedBounds:
    """The bounds that a claim implies of neighbouring laws: those it states, and further ones as laws break them."""

    def __init__(self, claim: Claim, label: Label) -> None:
        self.claim, self.values = claim, claim.values_at(label)
        self.bounds: list[Bound] = [
            *map(to_model_bound, claim.notion.initial_requirements(self.values))
        ]

    @property
    def levels(self) -> LevelRange | None:
        """Of the notion, in numbers."""
        from workbench.models.convex.interior import LevelRange

        levels = self.claim.notion.requirement_range(self.values)
        return (
            None
            if levels is None
            else LevelRange(*levels[:2], lambda level: to_model_bound(levels[2](level)))
        )

    def add_violated(self, p: Vector, q: Vector) -> Iterable[Bound]:
        """Further bounds that two laws break, which later programs start from."""
        new = [*map(to_model_bound, self.claim.notion.find_cuts(p, q, self.values))]
        self.bounds += [bound for bound in new if bound not in self.bounds]
        return new


def find_implied_pure_epsilon(claim: Claim) -> float:
    """About the largest ε whose pure DP implies a claim, from below: that of randomized response, on which every notion
    that survives post-processing is decided for all pairs of a pure ratio. Raises InvalidRequest where it is tiny."""
    values = claim.values_at(())

    def too_much(epsilon: float) -> bool:
        heavy = max(1, round(math.exp(epsilon) * (1 << 40)))
        laws = Laws(Distribution([heavy, 1 << 40]), Distribution([1 << 40, heavy]))
        try:
            return not claim.notion.is_within_budget(claim.notion.measure(laws, values), values)
        except NotProven:
            return True

    high = next((e for e in (1e-4 * 2**k for k in range(19)) if too_much(e)), 40.0)
    low, _ = bisect(too_much, 0.0 if high == 1e-4 else high / 2, high, max_steps=12)
    if low > _MAX_RESPONSE_EPSILON:
        must(
            "the budget",
            f"missed by randomized response at epsilon = {_MAX_RESPONSE_EPSILON:g}",
            "a larger one",
        )
    if low < 1e-4:
        must("the budget", "met by randomized response at epsilon = 1e-4", "a smaller one")
    return low


def solve_by_tangents(
    request: Any, label: Label, base_program: Program, comparisons: Comparisons
) -> tuple[Solution, float | None]:
    """(the answer of the program of a request with the tangents that its claim needs, a bound on the optimum).

    label: of any comparison; base: the program without the claim. The solver must
    give dual values, which prove the bound. Raises Infeasible, InvalidRequest, NotProven, SolverUnavailable.
    """
    from workbench.models.convex.tangent_program import TangentProgram  # slow to import

    options, solver = request.how.options, request.how.solver
    deadline = Deadline(
        DEFAULT_TANGENT_SECONDS if options.time_limit is None else options.time_limit
    )
    with translate_errors():
        if not base_program.is_mip and not get_backend(solver).capabilities().duals:
            must("solver", f"one that gives dual values under {request.claim.notion.name}", solver)
        stated = ClaimedBounds(request.audited_claim, label)
        plain = replace(options, time_limit=None)
        live = TangentProgram(
            base_program,
            comparisons,
            stated.bounds,
            solver,
            level_range=stated.levels,
            options=plain,
        )
        try:
            live.solve(stated.add_violated, _REPAIRABLE_EXCESS, deadline)
            known = live.build_solution()
            return known, known.bound
        except BackendUnavailable:
            raise
        except SolverError:
            if deadline.has_passed:
                words = "The search stopped at its time limit, before it had a mechanism."
                raise NotProven(words) from None
            solution = solve(live.master.program, solver=solver, options=options)
    if solution.x is None or solution.termination is Termination.INTERRUPTED:
        raise_no_point(solution, "mechanism meets the request", "")
    return solution, solution.bound


def is_claim_proven(privacy: Privacy, claim: Claim) -> bool:
    """Whether the exact audit meets a claim; a tight one may stay undecided."""
    try:
        return privacy.holds(claim)
    except NotProven:
        return False
