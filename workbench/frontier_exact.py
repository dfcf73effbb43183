"""The whole trade-off of error against δ for a question, at fixed ε, as an exact list of pieces.

    >>> import workbench as wb
    >>> pieces = wb.delta_frontier(wb.ModuloNoise(n=8, max_shift=3, directed=True), epsilon=1.5, high=0.2)
    >>> round(wb.error_at(pieces, 0.1212), 9), all(piece.proven for piece in pieces)
    (0.450172331, True)

`workbench frontier noise` draws it, over many ε.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench import rooms
from workbench.errors import InvalidRequest
from workbench.mechanisms.modulo import ModuloNoise
from workbench.numbers import Real, probability

if TYPE_CHECKING:
    from models.noise_frontier import Piece

__all__ = ["delta_frontier", "error_at"]

_COSTS = ("error-rate", "eta-squared", "squared", "circular-squared")


def delta_frontier(
    question: ModuloNoise,
    *,
    epsilon: Real | Mapping[Any, Real],
    cost: str = "error-rate",
    high: Real = 1,
    solver: str = "highs",
    time_limit: float | None = None,
) -> list[Piece]:
    """The least error of PDP noise as a function of δ on [0, high].

    Args:
        question: answers and neighbour relation.
        epsilon: as `wb.design`: one, or one for each shift.
        cost: error-rate, eta-squared, squared or circular-squared.
        high: the largest δ, in (0, 1].
        solver: a backend with duals and vertex solutions (highs, gurobi).
        time_limit: seconds, after which what is not yet proven is marked.

    Returns:
        The linear pieces in order of δ, each with its two ends and whether it is proven (to 1e-9 of the value); see
        `models.noise_frontier`.

    Raises:
        InvalidRequest, SolverUnavailable: see `workbench.errors`.
    """
    rooms.check()
    from models import noise_frontier
    from workbench.noise_asked import checked_choices, numbers
    from workbench.solver_options import limits

    checked_choices(question, "pdp", cost, "error", "fast", solver)
    if cost not in _COSTS:
        InvalidRequest.must("cost", f"one of {', '.join(_COSTS)}", repr(cost))
    limits(time_limit)
    most = probability(high, "high")
    if not most:
        InvalidRequest.must("high", "a number in (0, 1]", high)
    from models.noise import cost_vector

    costs = cost_vector(cost, question.sizes)
    budgets, _, _ = numbers(question, "pdp", "error", (cost, costs), epsilon, most, None)
    with rooms.speaking_our_errors():
        return noise_frontier.delta_frontier(
            question.sizes, tuple(budgets), [float(value) for value in budgets.values()], costs, high=float(most),
            solver=solver, time_limit=None if time_limit is None else float(time_limit),
        )  # fmt: skip


def error_at(pieces: Sequence[Piece], delta: Real) -> float:
    """The least error at a δ on a frontier. Raises InvalidRequest for a δ that it does not cover."""
    rooms.check()
    from models.noise_frontier import at

    asked = float(probability(delta, "delta"))
    try:
        return at(pieces, asked)
    except (ValueError, AttributeError, TypeError, IndexError):
        InvalidRequest.must("delta", "within the pieces of wb.delta_frontier", delta)
