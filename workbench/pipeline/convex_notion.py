"""Requests under a notion that several convex bounds state, or infinitely many of them.

A notion gives the bounds that its budget implies (`Notion.relaxed`); the program gains their tangents where its answer
breaks them, and further bounds (`Notion.cuts`). Every such program is a relaxation, so its Lagrangian bound is one on
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
from workbench.pipeline.infeasible import no_point
from workbench.pipeline.outcome import translated_errors
from workbench.pipeline.requirements import in_numbers
from workbench.privacy.audit import Privacy
from workbench.privacy.claim import Claim
from workbench.solvers.arrays import Ints, Vector
from workbench.solvers.backend import backend, solve
from workbench.solvers.errors import BackendUnavailable, SolverError
from workbench.solvers.program import Program
from workbench.solvers.search import Deadline, bisect
from workbench.solvers.solution import Solution, Termination

if TYPE_CHECKING:
    from workbench.models.convex.interior import Levels
    from workbench.models.convex.tangent_program import Comparisons

_WIDEST = 6.0  # ε up to which randomized response is tried for a budget.
PATIENCE = 60.0  # After so many seconds the tangents end where the request has no time limit.
_EXCESS = 1e-9  # over a limit, relative, that is left to the repair

Label = Ints


class ClaimedBounds:
    """The bounds that a claim implies of neighbouring laws: those it states, and further ones as laws break them."""

    def __init__(self, claim: Claim, label: Label) -> None:
        self.claim, self.values = claim, claim.at(label)
        self.bounds: list[Bound] = [*map(in_numbers, claim.notion.relaxed(self.values))]

    @property
    def levels(self) -> Levels | None:
        """Of the notion, in numbers."""
        from workbench.models.convex.interior import Levels

        levels = self.claim.notion.levels(self.values)
        return (
            None
            if levels is None
            else Levels(*levels[:2], lambda level: in_numbers(levels[2](level)))
        )

    def more(self, p: Vector, q: Vector) -> Iterable[Bound]:
        """Further bounds that two laws break, which later programs start from."""
        new = [*map(in_numbers, self.claim.notion.cuts(p, q, self.values))]
        self.bounds += [bound for bound in new if bound not in self.bounds]
        return new


def pure_within(claim: Claim) -> float:
    """About the largest ε whose pure DP implies a claim, from below: that of randomized response, on which every notion
    that survives post-processing is decided for all pairs of a pure ratio. Raises InvalidRequest where it is tiny."""
    values = claim.at(())

    def too_much(epsilon: float) -> bool:
        heavy = max(1, round(math.exp(epsilon) * (1 << 40)))
        laws = Laws(Distribution([heavy, 1 << 40]), Distribution([1 << 40, heavy]))
        try:
            return not claim.notion.meets(claim.notion.measure(laws, values), values)
        except NotProven:
            return True

    high = next((e for e in (1e-4 * 2**k for k in range(19)) if too_much(e)), 40.0)
    low, _ = bisect(too_much, 0.0 if high == 1e-4 else high / 2, high, turns=12)
    if low > _WIDEST:
        must(
            "the budget", f"missed by randomized response at epsilon = {_WIDEST:g}", "a larger one"
        )
    if low < 1e-4:
        must("the budget", "met by randomized response at epsilon = 1e-4", "a smaller one")
    return low


def solve_by_tangents(
    request: Any, label: Label, base: Program, compared: Comparisons
) -> tuple[Solution, float | None]:
    """(the answer of the program of a request with the tangents that its claim needs, a bound on the optimum).

    label: of any comparison; base: the program without the claim. The solver must
    give dual values, which prove the bound. Raises Infeasible, InvalidRequest, NotProven, SolverUnavailable.
    """
    from workbench.models.convex.tangent_program import TangentProgram  # slow to import

    options, solver = request.how.options, request.how.solver
    deadline = Deadline(PATIENCE if options.time_limit is None else options.time_limit)
    with translated_errors():
        if not base.is_mip and not backend(solver).capabilities().duals:
            must("solver", f"one that gives dual values under {request.claim.notion.name}", solver)
        stated = ClaimedBounds(request.audited_claim, label)
        plain = replace(options, time_limit=None)
        live = TangentProgram(
            base, compared, stated.bounds, solver, levels=stated.levels, options=plain
        )
        try:
            live.solve(stated.more, _EXCESS, deadline)
            known = live.solution()
            return known, known.bound
        except BackendUnavailable:
            raise
        except SolverError:
            if deadline.passed:
                words = "The search stopped at its time limit, before it had a mechanism."
                raise NotProven(words) from None
            solution = solve(live.master.program, solver=solver, options=options)
    if solution.x is None or solution.termination is Termination.INTERRUPTED:
        no_point(solution, "mechanism meets the request", "")
    return solution, solution.bound


def meets(privacy: Privacy, claim: Claim) -> bool:
    """Whether the exact audit meets a claim; a tight one may stay undecided."""
    try:
        return privacy.holds(claim)
    except NotProven:
        return False
