"""What a request for noise may say: every value checked, one sentence for what is wrong, before anything is built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from workbench import rooms  # noqa: F401  (it names a foreign `models` in one sentence)

# isort: split
from models.noise import COSTS, UserConstraints
from models.noise_fast import METHODS
from solvers.solution import Start
from workbench.errors import Infeasible, InvalidRequest
from workbench.mechanisms.modulo import ModuloNoise
from workbench.numbers import Real, exact, probability

__all__ = ["NOTIONS", "Budgets", "checked_choices", "checked_constraints", "checked_prior",
           "checked_start", "differences", "numbers", "spent"]  # fmt: skip

NOTIONS = ("pdp", "dp", "pure")
MOST_EPSILON = 20  # 2^20 e^20 is the largest coefficient of a scaled program, 5e14
LEAST_EPSILON = Fraction(1, 10**12)
MOST_COLUMNS = 5_000_000

Budgets = dict[tuple[int, ...], Fraction]


def checked_choices(question: Any, notion: Any, cost: Any, minimise: Any, method: Any, solver: Any) -> None:
    """The question and everything that is one of a few words."""
    choices: tuple[tuple[str, Any, tuple[str, ...]], ...] = (
        ("notion", notion, NOTIONS),
        ("cost", cost, tuple(COSTS)),
        ("minimise", minimise, ("error", "delta")),
        ("method", method, METHODS),
    )
    for name, value, allowed in choices:
        if not isinstance(value, str) or value not in allowed:
            InvalidRequest.must(name, f"one of {', '.join(allowed)}", repr(value))
    if notion == "pure" and minimise == "delta":
        raise InvalidRequest("minimise must be error when notion is pure, which has no delta. Got 'delta'.")
    if not isinstance(question, ModuloNoise):
        InvalidRequest.must("question", "a ModuloNoise", repr(question))
    if not isinstance(solver, str):
        InvalidRequest.must("solver", "the name of a solver", repr(solver))


def checked_prior(prior: ArrayLike | None) -> NDArray[np.float64] | None:
    """Numbers; that they are probabilities, and enough of them, is for the cost to say."""
    if prior is None:
        return None
    try:
        return np.asarray(prior, dtype=float)
    except (TypeError, ValueError, OverflowError):
        InvalidRequest.must("prior", "a list of probabilities, one for every answer", repr(prior))


def checked_start(start: Any) -> Start:
    """Where a solve starts."""
    try:
        return Start(start)
    except ValueError:
        InvalidRequest.must("start", f"one of {', '.join(Start)}", repr(start))


@dataclass(frozen=True)
class _Checked:
    """The user's function; two of the same function are equal, so that their models are compiled once."""

    make: UserConstraints

    def __call__(self, f: cp.Variable) -> Sequence[cp.Constraint]:
        asked = "a function of the CVXPY variable f that returns a list of its linear constraints"
        try:
            rows = list(self.make(f))
        except Exception as error:
            InvalidRequest.must("constraints", asked, f"{type(error).__name__}: {' '.join(str(error).split())}")
        for row in rows:
            if not isinstance(row, cp.Constraint):
                InvalidRequest.must("constraints", asked, f"a list with {row!r}")
        return rows


def checked_constraints(constraints: Any) -> UserConstraints | None:
    """The user's constraints, whose errors are ours from now on."""
    if constraints is None or isinstance(constraints, _Checked):
        return constraints
    if not callable(constraints):
        InvalidRequest.must("constraints", "a function of the CVXPY variable f", repr(constraints))
    try:
        hash(constraints)
    except TypeError:
        InvalidRequest.must("constraints", "hashable, as functions are", repr(constraints))
    return _Checked(constraints)


def numbers(
    question: ModuloNoise, notion: str, minimise: str, costs: tuple[str, NDArray[np.float64]],
    epsilon: Real | Mapping[Any, Real], delta: Real | None, budget: Real | None,
) -> tuple[Budgets, Fraction | None, Fraction | None]:  # fmt: skip
    """epsilon of every difference, delta and budget, exact.

    costs: the cost's name and its distortions.
    """
    return differences(question, epsilon), *spent(notion, minimise, costs, delta, budget)


def differences(question: ModuloNoise, epsilon: Real | Mapping[Any, Real]) -> Budgets:
    """epsilon of every difference, exact."""
    budgets = question.budgets(epsilon)
    different = {id(one): one for one in budgets.values()}.values()  # one number for all differences is one object
    if max(different) > MOST_EPSILON or min(different) < LEAST_EPSILON:
        between = f"between {float(LEAST_EPSILON):g} and {MOST_EPSILON} (e^epsilon is a coefficient of the program)"
        InvalidRequest.must("epsilon", between, epsilon)
    columns = question.order * (1 + 2 * len(budgets))
    if columns > MOST_COLUMNS:
        raise InvalidRequest(f"The program would have {columns} columns; at most {MOST_COLUMNS} can be stated.")
    return budgets


def spent(
    notion: str, minimise: str, costs: tuple[str, NDArray[np.float64]], delta: Real | None, budget: Real | None
) -> tuple[Fraction | None, Fraction | None]:
    """delta and budget, exact."""
    if minimise == "error":
        if budget is not None:
            InvalidRequest.must("budget", "left out unless minimise is delta", budget)
        share = probability(0 if delta is None else delta, "delta")
        if notion == "pure" and share:
            InvalidRequest.must("delta", "0 when notion is pure", delta)
        return share, None
    if budget is None:
        raise InvalidRequest("budget must be given when minimise is delta. Got none.")
    limit = exact(budget, "budget")
    cost, table = costs
    least = Fraction(float(table.min())) if table.ndim == 1 else Fraction(0)
    if limit < least:
        raise Infeasible(f"No noise has cost {cost} below {float(least):g}. Got budget = {budget}.")
    worst = Fraction(float(table.max()))  # a larger budget asks for nothing
    return None if delta is None else probability(delta, "delta"), min(limit, worst)
