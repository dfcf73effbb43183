"""Infeasible requests: whether they are, which of the user's wishes conflict, and the least budget that would do.

That a linear or conic program has no point is said only where multipliers of its rows prove it, which we check. The
rest is the solver's word: what conflicts and what would do, and that an integer program has no point, whose proof is a
search tree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

from workbench.errors import Infeasible, NotProven
from workbench.exact.objects import Values
from workbench.solvers.backend import Options, solve
from workbench.solvers.conflict import find_conflict
from workbench.solvers.data import Data
from workbench.solvers.errors import SolverError
from workbench.solvers.program import Program
from workbench.solvers.search import Deadline
from workbench.solvers.solution import Solution, Termination

EXPLANATION_SECONDS = 10.0  # for one part of an explanation
_UP = Context(prec=6, rounding=ROUND_CEILING)
_DIGITS = 1e-6  # relative width at which a bisection stops
Ask = Callable[[Values], Solution]  # what a solver says to a request at other values


def is_infeasibility_proven(solution: Solution) -> bool:
    """Whether a program that a solver calls infeasible is: by the solver's multipliers, else by those of HiGHS."""
    program = solution.program
    if solution.ray is not None or program.is_mip:
        return True
    if program.cones is not None:
        return False
    try:
        stated = Program(program.name, solution.data.without_costs, scale=program.scale)
        return solve(stated, options=Options(time_limit=EXPLANATION_SECONDS)).ray is not None
    except SolverError:
        return False


def raise_infeasible(
    solution: Solution, status: str, what: str | None, trivial: str, why: Callable[[], str] = str
) -> NoReturn:
    """Raise what it means that a solver calls a program infeasible: Infeasible where that is proven, else NotProven.

    status: its words; what: there is none of, such as "channel meets the budget 0.1"; None where something meets the
    request, as `trivial` says; why: explains.
    """
    if what is None:
        raise NotProven(
            f"{status} to a feasible request ({trivial}); its tolerances are too coarse here."
        )
    if not is_infeasibility_proven(solution):
        raise NotProven(f"Whether a {what} is undecided: {status}, and no multipliers prove it.")
    raise Infeasible(f"No {what} ({status}).{why()}")


def raise_no_point(
    solution: Solution, what: str | None, trivial: str, why: Callable[[], str] = str
) -> NoReturn:
    """Raise what an answer without a point means: Infeasible or NotProven. The rest is as in `refuse_infeasible`."""
    if solution.termination is Termination.INTERRUPTED:
        raise KeyboardInterrupt  # Ctrl-C while the solver ran: there is no incumbent to keep
    status = f"{solution.solver} says {solution.raw_status!r}"
    if solution.termination is Termination.INFEASIBLE:
        raise_infeasible(solution, status, what, trivial, why)
    raise NotProven(f"{status} and returned no point.", bound=solution.bound)


def find_wish_rows(program: Program, wishes: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Wish, in the user's words -> positions of its rows. wishes: name of a block of rows -> wish."""
    positions: dict[str, list[np.ndarray]] = {}
    for block in program.rows:
        if block.name in wishes:
            positions.setdefault(wishes[block.name], []).append(
                np.arange(block.start, block.start + block.size)
            )
    return {wish: np.concatenate(parts) for wish, parts in positions.items()}


def explain_conflict(
    data: Data,
    wishes: Mapping[str, np.ndarray],
    solver: str,
    options: Options,
    scale: float,
    limits: str = "",
) -> tuple[Sequence[str], str]:
    """The wishes that cannot hold together, and a sentence of them; nothing where none were found in time.

    limits: what no wish can be left out of, such as "with delta = 0.1".
    """
    conflicting = find_conflict(
        data, wishes, solver, options, scale=scale, seconds=EXPLANATION_SECONDS
    )
    if not conflicting:
        return (), ""
    words = f" By itself it cannot hold{limits}"
    if len(conflicting) > 1:
        words = f" These cannot hold together{limits}, and could without any one of them"
    return conflicting, f"{words}: {'; '.join(conflicting)}."


def find_least_feasible(
    feasible: Callable[[float], bool | None], at: float, most: float
) -> float | None:
    """The least value >= `at` (which is infeasible) at which a request is feasible, from above, to 1e-6 relative.

    feasible: monotone; None where it could not be decided. inf: not up to `most`; None: not decided in SECONDS.
    """
    deadline, low, high, reached = Deadline(EXPLANATION_SECONDS), at, at, False
    while not reached or high - low > _DIGITS * high:
        if reached:
            tried = (low * high) ** 0.5 if low > 0 and high > 2 * low else (low + high) / 2
        else:  # up in steps: the largest values are hard on a solver
            low, high = high, min(2 * high, most) if high > 0 else most
            tried = high
        if low >= most:
            return math.inf
        verdict = feasible(tried)
        if verdict is None or deadline.has_passed:
            return None
        low, high = (low, tried) if verdict else (tried, high)
        reached = reached or verdict
    return high


def format_least_value(name: str, value: float | None, none: str) -> str:
    """A sentence about what `least` found, rounded up to six digits; empty for what was not decided."""
    if value is None:
        return ""
    if value == math.inf:
        return f" {none}."
    return f" The least {name} that would do is {float(_UP.create_decimal(repr(value * (1 - 1e-9)))):.6g}."


def explain_sufficient_budgets(request: Any, ask: Ask, largest: float, most: int) -> str:
    """The least ε, δ and max_loss that would do, each with everything else as it was asked.

    largest: loss of all; most: ε that is tried.
    """

    def feasible(epsilon: Any) -> bool | None:
        """Whether a solver has an answer at another ε; None where it stopped before."""
        solution = ask({"epsilon": epsilon})
        if solution.x is None:
            return False if solution.termination is Termination.INFEASIBLE else None
        limited = request.aim.minimise == "delta" and request.claim.delta is not None
        return not limited or (solution.objective or 0.0) <= float(request.claim.delta or 0) * (
            1 + 1e-9
        )

    def reached(name: str, **point: Any) -> str:
        """The least of a parameter, minimised at other values, in words."""
        solution = ask(point)
        value = math.inf if solution.termination is Termination.INFEASIBLE else solution.objective
        return format_least_value(
            name, value, "No budget would do" if name == "max_loss" else f"No {name} would do"
        )

    epsilon = request.claim.epsilon
    each = epsilon if isinstance(epsilon, Mapping) else {}
    if each:
        factor, name, others = (
            most / float(max(each.values())),
            "factor for every epsilon",
            "epsilons",
        )
        value = find_least_feasible(
            lambda c: feasible({shift: e * Fraction(c) for shift, e in each.items()}), 1.0, factor
        )
    else:
        name, others = "epsilon", "epsilon"
        value = find_least_feasible(lambda e: feasible(Fraction(e)), float(epsilon), most)
    words = format_least_value(name, value, f"No {others} up to {most} would do")
    if request.claim.notion.has_delta:
        most_loss = Fraction(largest) if request.aim.max_loss is None else request.aim.max_loss
        words += reached("delta", minimise="delta", delta=None, max_loss=most_loss)
    if request.aim.max_loss is not None:
        delta = Fraction(1) if request.claim.delta is None else request.claim.delta
        words += reached("max_loss", minimise="loss", max_loss=None, delta=delta)
    return words
