"""The whole trade-off of error against δ for a question, at fixed ε, as an exact list of pieces.

    >>> import workbench as wb
    >>> pieces = wb.delta_frontier(wb.ModuloNoise(n=8, max_shift=3, directed=True), epsilon=1.5, high=0.2)
    >>> round(wb.error_at(pieces, 0.1212), 9), all(piece.proven for piece in pieces)
    (0.450172331, True)

With `store=FILE` what is proven is kept: after Ctrl-C or a time limit the same call goes on from there. Read in the
other direction the pieces are the curve of the least δ (`least_delta_at`). `workbench frontier noise` draws both, over
many ε.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from workbench.errors import CorruptFile, InvalidRequest, NotProven
from workbench.exact.numbers import Real, exact, probability
from workbench.families.outcome import translated_errors
from workbench.io.files import file_path, is_there, parse_json, read_text, write_whole
from workbench.mechanisms.modulo import ModuloNoise

if TYPE_CHECKING:
    from models.noise_frontier import Piece
    from models.noise_levels import Stairs
    from workbench.families.noise.request import NoiseRequest

__all__ = ["delta_frontier", "error_at", "least_delta_at"]

_FORMAT = "dp-workbench δ-frontier 2"  # 1 had no digest
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
    store: Path | str | None = None,
) -> list[Piece]:
    """The least error of PDP noise as a function of δ on [0, high].

    Args:
        question: answers and neighbour relation.
        epsilon: as `wb.design`: one, or one for each shift.
        cost: error-rate, eta-squared, squared or circular-squared.
        high: the largest δ, in (0, 1].
        solver: a backend with duals and vertex solutions (highs, gurobi).
        time_limit: seconds, after which what is not yet proven is marked, with a bound; None: until all is proven.
        progress: told (how much of [0, high] is proven, pieces so far) whenever that changes.
        store: a file that keeps what is proven, for calls that go on from there (error rate, one ε, more than 24
            answers: smaller questions take seconds). It is refused unless it is as it was written, by its SHA-256; what
            it says is not proven again. Leave it out to prove all of it.

    Returns:
        The linear pieces in order of δ, each with its two ends and whether it is proven (to 1e-9 of the value); see
        `models.noise_frontier`.

    Raises:
        InvalidRequest, SolverUnavailable, CorruptFile (the store): see `workbench.errors`.
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
    if store is not None:
        return _stored(request, file_path(store, "store"), float(most), progress)
    with translated_errors():
        return noise_frontier.delta_frontier(
            question.sizes, tuple(request.budgets), [float(value) for value in request.budgets.values()], request.costs,
            high=float(most), solver=request.solver,
            limit=noise_frontier.Limit(request.options.time_limit), progress=progress,
        )  # fmt: skip


def _stored(request: NoiseRequest, path: Path, high: float, progress: Callable[[float, int], None]) -> list[Piece]:
    """The frontier from level functions; the staircase is read from the file, and written after every window."""
    from models.noise_frontier import proven
    from models.noise_instance import Noise
    from models.noise_level_frontier import has_levels, level_frontier
    from models.noise_levels import LevelSearch, Stairs

    question, budgets = request.question, request.budgets
    shifts = tuple(budgets)
    epsilons = np.array([float(value) for value in budgets.values()])
    if not has_levels(Noise(question.sizes, shifts, np.exp(epsilons), request.costs)):
        InvalidRequest.must(
            "store", "left out unless cost is error-rate, with one ε and more than 24 answers", str(path)
        )
    described = {"sizes": list(question.sizes), "shifts": sorted(map(list, shifts)), "epsilon": str(budgets[shifts[0]])}
    limit = request.options.time_limit
    stop = None if limit is None else time.perf_counter() + limit
    search = LevelSearch(question.sizes, shifts, float(epsilons[0]), stop)
    if is_there(path):
        kept = parse_json(read_text(path, name="store"))
        if not isinstance(kept, dict) or kept.get("format") != _FORMAT:
            raise CorruptFile(f"{path.name} is no store of a δ-frontier in this format. Delete it to begin anew.")
        if kept.pop("sha256", None) != _digest(kept):
            raise CorruptFile(f"{path.name} was changed since it was written. Delete it to begin anew.")
        if kept.get("question") != described:
            raise InvalidRequest(f"store must be of this question and ε. {path.name} is of {kept.get('question')}.")
        if not _staircase(kept, search.stairs):
            raise CorruptFile(f"{path.name} holds no staircase of its question.")
        search.stairs = Stairs(kept["s"], kept["t"], kept["proven"])

    def tell(stairs: Stairs, pieces: list[Piece]) -> None:
        kept = {"format": _FORMAT, "question": described, "s": stairs.s, "t": stairs.t, "proven": stairs.proven}
        write_whole(path, json.dumps(kept | {"sha256": _digest(kept)}).encode())
        progress(proven(pieces), len(pieces))

    return level_frontier(search, high, tell)


def _digest(kept: Mapping[str, Any]) -> str:
    """Of a store without its digest: the numbers as JSON writes them, to the last bit."""
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def _staircase(kept: Mapping[str, Any], first: Stairs) -> bool:
    """Whether a file holds rising S and falling T between the ends that every staircase of the question has."""
    s, t, since = (kept.get(name) for name in ("s", "t", "proven"))
    numbers = all(isinstance(part, list) and all(isinstance(x, float) for x in part) for part in (s, t))
    if not numbers or not isinstance(since, float) or not 0.0 <= since <= 1.0:
        return False
    assert isinstance(s, list)
    assert isinstance(t, list)
    if len(s) != len(t) or len(s) < 2:
        return False
    ends = (s[0], s[-1], t[-1]) == (0.0, 1.0, 1.0) and t[0] == first.t[0]
    return ends and all(a < b for a, b in pairwise(s)) and all(a > b for a, b in pairwise(t))


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

    wanted = float(probability(delta, "delta"))
    try:
        piece = piece_at(pieces, wanted)
    except (ValueError, AttributeError, TypeError, LookupError):
        InvalidRequest.must("delta", "within the pieces of wb.delta_frontier", delta)
    value, bound = piece.value(wanted), piece.bound(wanted)
    if interval:
        return bound, value
    if not piece.proven:
        raise NotProven(
            f"The frontier is not proven at delta = {wanted:g}: the least error lies in [{bound:.9g}, {value:.9g}].",
            incumbent=value, bound=bound,
        )  # fmt: skip
    return value


@overload
def least_delta_at(pieces: Sequence[Piece], error: Real, *, interval: Literal[False] = False) -> float: ...


@overload
def least_delta_at(pieces: Sequence[Piece], error: Real, *, interval: Literal[True]) -> tuple[float, float]: ...


def least_delta_at(pieces: Sequence[Piece], error: Real, *, interval: bool = False) -> float | tuple[float, float]:
    """The least δ on a frontier at which the least error is at most `error`; with interval=True (bound, value).

    The value is reached; below the bound the error is proven to be larger. They differ by nothing where the frontier is
    proven (to 1e-9 of the error).

    Raises:
        InvalidRequest: no δ of the frontier reaches the error.
        NotProven: it is not proven which δ that is, and no interval was asked for, or no δ is known; carries
            incumbent and bound.
    """
    wanted = float(exact(error, "error"))
    try:
        ends = [(piece.delta_low, piece.delta_high) for piece in pieces]
        value = _first(ends, [(piece.value_low, piece.value_high) for piece in pieces], wanted)
        bound = _first(ends, [(piece.bound_low, piece.bound_high) for piece in pieces], wanted)
    except (AttributeError, TypeError):
        InvalidRequest.must("pieces", "those of wb.delta_frontier", type(pieces).__name__)
    if bound is None:
        InvalidRequest.must("error", "one that the pieces of wb.delta_frontier reach", error)
    if value is None:
        raise NotProven(f"No delta of the frontier is known to reach error {wanted:g}; none below {bound:.9g} does.",
                        bound=bound)  # fmt: skip
    if interval:
        return bound, value
    if bound < value:
        raise NotProven(
            f"The frontier is not proven at error {wanted:g}: the least delta lies in [{bound:.9g}, {value:.9g}].",
            incumbent=value, bound=bound,
        )  # fmt: skip
    return value


def _first(deltas: Sequence[tuple[float, float]], values: Sequence[tuple[float, float]], most: float) -> float | None:
    """The least delta at which a falling piecewise linear function is at most a number; None if it is nowhere."""
    for (a, b), (low, high) in zip(deltas, values, strict=True):
        if low <= most:
            return a
        if high <= most:
            return a + (b - a) * (low - most) / (low - high)
    return None
