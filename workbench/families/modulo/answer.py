"""What a solver's answer to a noise program is worth: whether it proves an optimum, and what a missing point means."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import NoReturn

from solvers.solution import Solution, Termination
from workbench.errors import Infeasible, NotProven
from workbench.families.infeasible import refuse_infeasible
from workbench.families.modulo.request import ModuloRequest
from workbench.families.oracle import ABSOLUTE

__all__ = ["check_limit", "meets", "refuse", "stopped", "why_unproven"]

_LIMITS = {
    Termination.TIME_LIMIT: "the time limit",
    Termination.NODE_LIMIT: "the node limit",
    Termination.ITERATION_LIMIT: "the iteration limit",
    Termination.INTERRUPTED: "an interrupt",
    Termination.NUMERICAL: "numerical trouble",
}


def stopped(solution: Solution) -> bool:
    """Whether Ctrl-C ended the solve."""
    return solution.termination is Termination.INTERRUPTED


def why_unproven(solution: Solution) -> str | None:
    """Why the answer is not a proven optimum; None when it is.

    A solver's word alone is not enough: where a bound is known, objective and bound must agree to 1e-6 relative
    (or 2e-9 absolute), whatever the solver's own tolerances call optimal.
    """
    if solution.termination is not Termination.OPTIMAL:
        limit = _LIMITS.get(solution.termination, f"its status {solution.termination}")
        return f"stopped at {limit} before proving an optimum"
    objective, bound = solution.objective, solution.bound
    assert objective is not None
    if bound is not None and not meets(objective, bound):
        return "says optimal, but its bound does not prove it"
    return None


def meets(objective: float, bound: float) -> bool:
    """Whether a bound is so close that it proves an objective optimal."""
    return abs(objective - bound) <= 1e-6 * abs(objective) + ABSOLUTE


def check_limit(request: ModuloRequest, solution: Solution, why: Callable[[], str]) -> None:
    """Raise Infeasible for a least δ above the limit of the request."""
    least = solution.objective
    if request.minimise != "delta" or request.delta is None or least is None:
        return
    if Fraction(least) > request.delta * (1 + Fraction(1, 10**9)):
        raise Infeasible(
            f"Loss {request.loss} at most {float(request.max_loss or 0):g} needs delta >= {least:.9g} at this epsilon. "
            f"Got delta = {float(request.delta):g}.{why()}"
        )


def refuse(request: ModuloRequest, solution: Solution, why: Callable[[], str], least: float | None = None) -> NoReturn:
    """Raise what an answer without a point means; why: explains an infeasible one; least: a bound known otherwise."""
    answer = f"{request.solver} says {solution.raw_status!r}"
    if solution.termination is Termination.INFEASIBLE:
        budget = request.max_loss
        wish = "the extra constraints" if budget is None else f"max_loss {float(budget):g} and the constraints"
        what = None if request.constraints is None and budget is None else f"noise meets the request with {wish}"
        refuse_infeasible(solution, answer, what, "uniform noise is private", why)
    limit = _LIMITS.get(solution.termination, f"status {solution.termination}")
    known = [bound for bound in (solution.bound, least) if bound is not None]
    words = f"{max(known):.9g}" if known else "unknown"
    raise NotProven(
        f"{answer}: {limit} was reached without an incumbent; bound {words}.",
        bound=max(known, default=None),
        interrupted=stopped(solution),
    )
