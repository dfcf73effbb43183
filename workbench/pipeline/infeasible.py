"""Explain infeasible requests: which constraints conflict, and which budgets are feasible.

An explanation has up to two parts, for example:

    These constraints are jointly infeasible with delta = 0.1; dropping any one of them makes the
    request feasible: symmetric; M[0, 0] >= 0.9.
    The smallest feasible epsilon is 2.1972.

A *wish* is a constraint that the user adds to the model, by the text that names it in the message.

A linear or conic program is reported as infeasible only if multipliers of its rows prove it, which
is checked here. These statements rely on the solver alone: which constraints conflict, which values
are feasible, and that an integer program has no point, because its proof is a search tree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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

# One part of an explanation takes at most this time.
EXPLANATION_SECONDS = 10.0
# Feasible values are shown with six digits, rounded up.
_ROUND_UP_CONTEXT = Context(prec=6, rounding=ROUND_CEILING)
# A feasible value is searched for to this relative precision.
_RELATIVE_PRECISION = 1e-6
# A number may exceed an exact limit by this relative rounding error of a solver.
_ROUNDING_ERROR = 1e-9
# Solves the request with some of its values changed, and returns the solver's answer.
SolveWith = Callable[[Values], Solution]


@dataclass(frozen=True)
class LeastFeasible:
    """The outcome of a search for the smallest feasible value of a parameter.

    Attributes:
        value: The smallest feasible value that was found. None: none was found.
        is_excluded: Whether no allowed value is feasible. If `value` is None and this is False, the
            search was undecided: the solver gave no answer, or time ran out.
    """

    value: float | None = None
    is_excluded: bool = False


def is_infeasibility_proven(solution: Solution) -> bool:
    """Return whether multipliers prove that a program is infeasible. True for integer programs.

    Args:
        solution: An answer that calls the program infeasible. If it has no multipliers, HiGHS
            computes them.
    """
    program = solution.program
    if solution.ray is not None or program.is_mip:
        return True
    if program.cones is not None:
        return False
    try:
        without_costs = Program(program.name, solution.data.without_costs, scale=program.scale)
        options = Options(time_limit=EXPLANATION_SECONDS)
        return solve(without_costs, options=options).ray is not None
    except SolverError:
        return False


def raise_infeasible(
    solution: Solution,
    status: str,
    missing: str | None,
    reason_feasible: str,
    explain: Callable[[], str] = str,
) -> NoReturn:
    """Raise the error for a program that a solver calls infeasible.

    Args:
        solution: The solver's answer.
        status: The solver's answer as text, such as "highs says 'infeasible'".
        missing: The mechanism that does not exist, such as "channel meets the budget 0.1". None if
            the request is known to be feasible.
        reason_feasible: Why the request is feasible, such as "uniform noise is private".
        explain: Function that returns the explanation, with a space before it.

    Raises:
        Infeasible: Multipliers prove that the program is infeasible.
        NotProven: They do not, or the request is known to be feasible.
    """
    if missing is None:
        raise NotProven(
            f"{status} to a feasible request ({reason_feasible}); its tolerances are too coarse "
            "here."
        )
    if not is_infeasibility_proven(solution):
        raise NotProven(f"Whether a {missing} is undecided: {status}, and no multipliers prove it.")
    raise Infeasible(f"No {missing} ({status}).{explain()}")


def raise_no_point(
    solution: Solution,
    missing: str | None,
    reason_feasible: str,
    explain: Callable[[], str] = str,
) -> NoReturn:
    """Raise the error for a solver's answer without a point.

    Args:
        solution: The solver's answer.
        missing: As in `raise_infeasible`.
        reason_feasible: As in `raise_infeasible`.
        explain: As in `raise_infeasible`.

    Raises:
        Infeasible: The program is proven infeasible.
        NotProven: It is not.
        KeyboardInterrupt: The solver was interrupted, so that there is no incumbent to return.
    """
    if solution.termination is Termination.INTERRUPTED:
        raise KeyboardInterrupt
    status = f"{solution.solver} says {solution.raw_status!r}"
    if solution.termination is Termination.INFEASIBLE:
        raise_infeasible(solution, status, missing, reason_feasible, explain)
    raise NotProven(f"{status} and returned no point.", bound=solution.bound)


def find_wish_rows(program: Program, wishes: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Return the row indices of every wish of the user, by the text of the wish.

    Args:
        program: The infeasible program.
        wishes: Text of a wish by the name of its block of rows. Blocks with the same text are one
            wish.
    """
    positions: dict[str, list[np.ndarray]] = {}
    for block in program.rows:
        if block.name in wishes:
            rows = np.arange(block.start, block.start + block.size)
            positions.setdefault(wishes[block.name], []).append(rows)
    return {wish: np.concatenate(parts) for wish, parts in positions.items()}


def explain_conflict(
    data: Data,
    wishes: Mapping[str, np.ndarray],
    solver: str,
    options: Options,
    scale: float,
    limits: str = "",
) -> tuple[Sequence[str], str]:
    """Find wishes that are jointly infeasible, and write a sentence about them.

    Args:
        data: The numbers of the infeasible program.
        wishes: Row indices of every wish, by its text.
        solver: Label of the solver.
        options: Options of the solver.
        scale: Scale of the program.
        limits: The other conditions of the request as text, such as " with delta = 0.1".

    Returns:
        The wishes and the sentence. Both are empty if no conflict was found in time.
    """
    conflict = find_conflict(
        data, wishes, solver, options, scale=scale, seconds=EXPLANATION_SECONDS
    )
    if not conflict:
        return (), ""
    sentence = f" This constraint alone is infeasible{limits}"
    if len(conflict) > 1:
        remedy = "dropping any one of them makes the request feasible"
        sentence = f" These constraints are jointly infeasible{limits}; {remedy}"
    return conflict, f"{sentence}: {'; '.join(conflict)}."


def find_least_feasible(
    is_feasible: Callable[[float], bool | None], start: float, limit: float
) -> LeastFeasible:
    """Find the smallest value at which a request is feasible, within EXPLANATION_SECONDS.

    Args:
        is_feasible: Function that returns False below some value and True above it. It returns
            None if it cannot decide.
        start: An infeasible value.
        limit: The largest value that is tried.

    Returns:
        A feasible value within 1e-6, relative, of the smallest one, or the reason why there is
        none.
    """
    deadline = Deadline(EXPLANATION_SECONDS)
    low = start
    high = start
    has_feasible_end = False
    while not has_feasible_end or high - low > _RELATIVE_PRECISION * high:
        if has_feasible_end:
            value = (low + high) / 2
            if 0 < 2 * low < high:
                # The geometric mean needs fewer steps if the ends differ by orders of magnitude.
                value = (low * high) ** 0.5
        else:
            # The value grows in steps, because solvers have difficulties with the largest values.
            low = high
            high = min(2 * high, limit) if high > 0 else limit
            value = high
        if low >= limit:
            return LeastFeasible(is_excluded=True)
        verdict = is_feasible(value)
        if verdict is None or deadline.has_passed:
            return LeastFeasible()
        if verdict:
            high = value
            has_feasible_end = True
        else:
            low = value
    return LeastFeasible(high)


def format_least_value(name: str, value: float) -> str:
    """Return a sentence, after a space, that states the smallest feasible value of a parameter.

    Args:
        name: Name of the parameter.
        value: The value, which is rounded up to six digits. A value that exceeds six digits by a
            rounding error only is not rounded up.
    """
    reduced_value = value * (1 - _ROUNDING_ERROR)
    rounded_value = float(_ROUND_UP_CONTEXT.create_decimal(repr(reduced_value)))
    return f" The smallest feasible {name} is {rounded_value:.6g}."


def _format_outcome(name: str, outcome: LeastFeasible, excluded_sentence: str) -> str:
    """Return the sentence on the outcome of a search. Empty if the search was undecided.

    Args:
        name: Name of the parameter.
        outcome: Outcome of the search.
        excluded_sentence: Sentence without its full stop, for the case that no value is feasible.
    """
    if outcome.is_excluded:
        return f" {excluded_sentence}."
    if outcome.value is None:
        return ""
    return format_least_value(name, outcome.value)


def has_feasible_values(message: str) -> bool:
    """Return whether an error message states which values are feasible.

    Args:
        message: The text of an `Infeasible`.
    """
    return "smallest feasible" in message or "is feasible." in message


def explain_sufficient_budgets(
    request: Any, solve_with: SolveWith, largest_loss: float, max_epsilon: int
) -> str:
    """Write sentences on the smallest feasible ε, δ and max_loss, each with all else unchanged.

    Args:
        request: An infeasible request.
        solve_with: Function of changed values that returns the solver's answer.
        largest_loss: The largest possible loss.
        max_epsilon: The largest ε that is tried.
    """
    sentences = _explain_epsilon(request, solve_with, max_epsilon)
    if request.claim.notion.has_delta:
        max_loss = request.aim.max_loss
        if max_loss is None:
            max_loss = Fraction(largest_loss)
        solution = solve_with({"minimise": "delta", "delta": None, "max_loss": max_loss})
        sentences += _describe_minimum("delta", solution)
    if request.aim.max_loss is not None:
        delta = request.claim.delta
        if delta is None:
            delta = Fraction(1)
        solution = solve_with({"minimise": "loss", "max_loss": None, "delta": delta})
        sentences += _describe_minimum("max_loss", solution)
    return sentences


def _explain_epsilon(request: Any, solve_with: SolveWith, max_epsilon: int) -> str:
    """Write the sentence on the smallest feasible ε, or on the smallest factor of several ε."""
    epsilon = request.claim.epsilon
    has_delta_limit = request.aim.minimise == "delta" and request.claim.delta is not None
    delta_limit = float(request.claim.delta or 0) * (1 + _ROUNDING_ERROR)

    def is_feasible(changed_epsilon: Any) -> bool | None:
        """Return whether the request is feasible with another ε. None: the solver cannot decide."""
        solution = solve_with({"epsilon": changed_epsilon})
        if solution.x is None:
            return False if solution.termination is Termination.INFEASIBLE else None
        return not has_delta_limit or (solution.objective or 0.0) <= delta_limit

    if not isinstance(epsilon, Mapping):
        outcome = find_least_feasible(
            lambda number: is_feasible(Fraction(number)), float(epsilon), max_epsilon
        )
        return _format_outcome("epsilon", outcome, f"No epsilon up to {max_epsilon} is feasible")

    def is_factor_feasible(factor: float) -> bool | None:
        """Return whether all budgets times a factor are feasible. None: it is undecided."""
        return is_feasible({shift: e * Fraction(factor) for shift, e in epsilon.items()})

    max_factor = max_epsilon / float(max(epsilon.values()))
    outcome = find_least_feasible(is_factor_feasible, start=1.0, limit=max_factor)
    return _format_outcome(
        "factor for every epsilon", outcome, f"No epsilons up to {max_epsilon} are feasible"
    )


def _describe_minimum(name: str, solution: Solution) -> str:
    """Write the sentence on the smallest value of a parameter that the solver minimised."""
    is_excluded = solution.termination is Termination.INFEASIBLE
    outcome = LeastFeasible(value=solution.objective, is_excluded=is_excluded)
    return _format_outcome(name, outcome, f"No {name} is feasible")
