"""The whole trade-off of error against δ for a question, at fixed ε, as an exact list of pieces.

    >>> import workbench as wb
    >>> pieces = delta_frontier(wb.ModuloNoise(n=8, max_shift=3, directed=True), epsilon=1.5, high=0.2)
    >>> round(pieces.error_at(0.1212), 9), all(piece.proven for piece in pieces)
    (0.450172331, True)

Read in the other direction the pieces are the curve of the least δ (`DeltaFrontier.least_delta_at`). `frontier modulo`
draws both, over many ε.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.errors import InvalidRequest, NotProven, must
from workbench.exact.numbers import Real, exact, probability
from workbench.exact.objects import FloatPair
from workbench.families.outcome import translated_errors
from workbench.families.registry import family_of
from workbench.io.plain_figures import chart, lines, series
from workbench.io.shown import Facts, Shown
from workbench.mechanisms.modulo import ModuloNoise

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from models.modulo_level_frontier import Piece


_LOSSES = ("error-rate", "eta-squared", "squared", "circular-squared")


class DeltaFrontier(tuple["Piece", ...], Shown):
    """The linear pieces of the least error in order of δ, each with its two ends and whether it is proven (to 1e-9 of
    the value); see `models.modulo_frontier`."""

    def facts(self) -> Facts:
        """How many pieces, and the error at their ends."""
        proven, first, last = sum(piece.proven for piece in self), self[0], self[-1]
        words = f"{first.value_low:.9g} at delta = 0, {last.value_high:.9g} at delta = {last.delta_high:g}"
        return [("linear pieces", f"{len(self)}, {proven} of them proven"), ("least error", words)]

    def figure(self) -> Figure:
        """The error against δ, piece by piece, and what is proven where they are not."""
        x, y, low = (
            [getattr(piece, f"{what}_{end}") for piece in self for end in ("low", "high")]
            for what in ("delta", "value", "bound")
        )
        open_ones = [series("proven interval", "band", 0, x, y, low=low)] if low != y else []
        drawn = [series("linear pieces", "segments", 0, x, y), *open_ones]
        return chart(lines("The least error at every δ", "δ", "least error", drawn))

    def _at(self, delta: Real) -> tuple[Piece, float]:
        from models.modulo_level_frontier import piece_at

        wanted = float(probability(delta, "delta"))
        try:
            return piece_at(self, wanted), wanted
        except (ValueError, LookupError):
            return must("delta", "within the pieces of delta_frontier", delta)

    def error_interval(self, delta: Real) -> FloatPair:
        """(bound, value): between them lies the least error at a δ. Raises InvalidRequest outside the frontier."""
        piece, wanted = self._at(delta)
        return piece.bound(wanted), piece.value(wanted)

    def error_at(self, delta: Real) -> float:
        """The least error at a δ. Raises InvalidRequest outside the frontier; NotProven, with incumbent and bound,
        where it is not known."""
        piece, wanted = self._at(delta)
        value = piece.value(wanted)
        return _known(f"delta = {wanted:g}: the least error", value if piece.proven else piece.bound(wanted), value)

    def least_delta_interval(self, error: Real) -> FloatPair:
        """(bound, value) of the least δ at which the least error is at most `error`.

        The value is reached; below the bound the error is proven to be larger. Raises InvalidRequest where no δ of the
        frontier reaches the error; NotProven, with the bound, where none is known to.
        """
        wanted = float(exact(error, "error"))
        ends = [(piece.delta_low, piece.delta_high) for piece in self]
        value = first_delta(ends, [(piece.value_low, piece.value_high) for piece in self], wanted)
        bound = first_delta(ends, [(piece.bound_low, piece.bound_high) for piece in self], wanted)
        if bound is None:
            must("error", "one that the pieces of delta_frontier reach", error)
        if value is None:
            unknown = f"No delta of the frontier is known to reach error {wanted:g}; none below {bound:.9g} does."
            raise NotProven(unknown, bound=bound)
        return bound, value

    def least_delta_at(self, error: Real) -> float:
        """The least δ at which the least error is at most `error`. Raises as `least_delta_interval`, and NotProven
        where it is not proven which δ that is."""
        return _known(f"error {float(exact(error, 'error')):g}: the least delta", *self.least_delta_interval(error))


def _known(what: str, bound: float, value: float) -> float:
    if bound < value:
        raise NotProven(
            f"The frontier is not proven at {what} lies in [{bound:.9g}, {value:.9g}].", incumbent=value, bound=bound
        )
    return value


def delta_frontier(
    question: ModuloNoise,
    *,
    epsilon: Real | Mapping[Any, Real],
    loss: str = "error-rate",
    high: Real = 1,
    solver: str = "highs",
    time_limit: float | None = None,
    progress: Callable[[float, int], None] = lambda delta, pieces: None,
) -> DeltaFrontier:
    """The least error of PDP noise as a function of δ on [0, high].

    Args:
        question: answers and neighbour relation.
        epsilon: as `wb.design`: one, or one for each shift.
        loss: error-rate, eta-squared, squared or circular-squared.
        high: the largest δ, in (0, 1].
        solver: a backend with duals and vertex solutions (highs, gurobi).
        time_limit: seconds, after which what is not yet proven is marked, with a bound; None: until all is proven.
        progress: told (how much of [0, high] is proven, pieces so far) whenever that changes.

    Returns:
        The linear pieces in order of δ.

    Raises:
        InvalidRequest, SolverUnavailable: see `workbench.errors`.
    """
    from models import modulo_frontier
    from workbench.families.modulo.request import ModuloRequest

    most = probability(high, "high")
    if not most:
        must("high", "a number in (0, 1]", high)
    InvalidRequest.unless_among(_LOSSES, "loss", loss)
    request = family_of(question).request(
        question,
        epsilon=epsilon,
        delta=most,
        notion="pdp",
        loss=loss,
        solver=solver,
        time_limit=time_limit,
        certify=False,
    )
    assert isinstance(request, ModuloRequest)
    with translated_errors():
        pieces = modulo_frontier.delta_frontier(
            question.sizes,
            tuple(request.budgets),
            [*map(float, request.budgets.values())],
            request.losses,
            high=float(most),
            solver=request.solver,
            limit=modulo_frontier.Limit(request.options.time_limit),
            progress=progress,
        )
    return DeltaFrontier(pieces)


def first_delta(deltas: Sequence[Sequence[float]], values: Sequence[Sequence[float]], most: float) -> float | None:
    """The least delta at which a falling piecewise linear function is at most a number; None if it is nowhere."""
    for (a, b), (low, high) in zip(deltas, values, strict=True):
        if low <= most:
            return a
        if high <= most:
            return a + (b - a) * (low - most) / (low - high)
    return None
