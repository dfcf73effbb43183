"""The whole trade-off of error against δ for a question, at fixed ε, as an exact list of pieces.

    >>> import workbench as wb
    >>> pieces = wb.delta_frontier(wb.ModuloNoise(n=8, max_shift=3, directed=True), epsilon=1.5, high=0.2)
    >>> round(wb.error_at(pieces, 0.1212), 9), all(piece.proven for piece in pieces)
    (0.450172331, True)

`workbench frontier noise` draws it, over many ε.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from workbench.errors import InvalidRequest, NotProven
from workbench.exact.numbers import Real, probability
from workbench.families.outcome import translated_errors
from workbench.mechanisms.modulo import ModuloNoise

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
    progress: Callable[[float, int], None] = lambda delta, pieces: None,
) -> list[Piece]:
    """The least error of PDP noise as a function of δ on [0, high].

    Args:
        question: answers and neighbour relation.
        epsilon: as `wb.design`: one, or one for each shift.
        cost: error-rate, eta-squared, squared or circular-squared.
        high: the largest δ, in (0, 1].
        solver: a backend with duals and vertex solutions (highs, gurobi).
        time_limit: seconds, after which what is not yet proven is marked, with a bound; None: until all is proven.
        progress: told (δ up to which all is proven, pieces so far) before every search.

    Returns:
        The linear pieces in order of δ, each with its two ends and whether it is proven (to 1e-9 of the value); see
        `models.noise_frontier`.

    Raises:
        InvalidRequest, SolverUnavailable: see `workbench.errors`.
    """
    from models import noise_frontier
    from workbench.families.noise.family import FAMILY
    from workbench.families.noise.request import NoiseRequest

    most = probability(high, "high")
    if not most:
        InvalidRequest.must("high", "a number in (0, 1]", high)
    if cost not in _COSTS:
        InvalidRequest.must("cost", f"one of {', '.join(_COSTS)}", repr(cost))
    request = FAMILY.request(
        question, epsilon=epsilon, delta=most, cost=cost, solver=solver, time_limit=time_limit, certify=False
    )
    assert isinstance(request, NoiseRequest)
    with translated_errors():
        return noise_frontier.delta_frontier(
            question.sizes, tuple(request.budgets), [float(value) for value in request.budgets.values()], request.costs,
            high=float(most), solver=request.solver, time_limit=request.options.time_limit,
            progress=progress,
        )  # fmt: skip


@overload
def error_at(pieces: Sequence[Piece], delta: Real, *, interval: Literal[False] = False) -> float: ...


@overload
def error_at(pieces: Sequence[Piece], delta: Real, *, interval: Literal[True]) -> tuple[float, float]: ...


def error_at(pieces: Sequence[Piece], delta: Real, *, interval: bool = False) -> float | tuple[float, float]:
    """The least error at a δ on a frontier; with interval=True (bound, value), between which it lies.

    Raises:
        InvalidRequest: the frontier does not cover δ.
        NotProven: the piece is not proven, and no interval was asked for; carries incumbent and bound.
    """
    from models.noise_frontier import piece_at

    asked = float(probability(delta, "delta"))
    try:
        piece = piece_at(pieces, asked)
    except (ValueError, AttributeError, TypeError, LookupError):
        InvalidRequest.must("delta", "within the pieces of wb.delta_frontier", delta)
    value, bound = piece.value(asked), piece.bound(asked)
    if interval:
        return bound, value
    if not piece.proven:
        raise NotProven(
            f"The frontier is not proven at delta = {asked:g}: the least error lies in [{bound:.9g}, {value:.9g}].",
            incumbent=value, bound=bound,
        )  # fmt: skip
    return value
