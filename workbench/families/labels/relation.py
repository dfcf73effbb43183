"""Which labels neighbour each other, and with what budget."""

from __future__ import annotations

from itertools import combinations

from models.channel import consecutive
from workbench.errors import InvalidRequest
from workbench.privacy.notions import notion as named

__all__ = ["MASSES", "ROWS", "Neighbours", "Pairs", "check_size", "pairs_of"]

# What a certificate may take, its repair included: each is a minute or two.
MASSES = 2_000_000  # of a channel whose rows are all compared for pure ε, which is decided output by output
ROWS = 1_500  # whose pairs are listed one by one
_WORK = 10_000_000  # ordered pairs times (outputs + _PAIR), where every pair is compared on its own
_PAIR = 200  # outputs that one more pair counts as

Pairs = tuple[tuple[int, int], ...]
Neighbours = str | Pairs


def pairs_of(neighbours: Neighbours, notion: str, k: int) -> Pairs | None:
    """Unordered neighbouring positions, or None for the compact all-pairs rows. Raises InvalidRequest."""
    measure = named(notion)
    if measure.per_distance:
        if not isinstance(neighbours, str):
            InvalidRequest.must("neighbours", "left out when notion is metric (every pair has its budget)", "pairs")
        return consecutive(k)  # their budgets add up along the line
    if isinstance(neighbours, str):
        if neighbours == "consecutive":
            return consecutive(k)
        return None if measure.ratio_decides else tuple(combinations(range(k), 2))
    wrong = [pair for pair in neighbours if pair[0] == pair[1] or not all(0 <= at < k for at in pair)]
    if wrong or not neighbours:
        InvalidRequest.must("neighbours", f"pairs of different positions in 0..{k - 1}", wrong[0] if wrong else "none")
    return tuple(sorted({(min(pair), max(pair)) for pair in neighbours}))


def check_size(k: int, m: int, pairs: Pairs | None, masses: int = MASSES) -> None:
    """Raise InvalidRequest when a channel of k labels and m outputs is too large, or too small, to be certified.

    pairs: those that are compared one by one; None for pure ε over all, which is decided output by output.
    """
    if k == 1:
        InvalidRequest.must("labels", "at least two for a neighbour relation", 1)
    if pairs is None:
        most = min(ROWS, masses // m)
        if k > most:
            InvalidRequest.must("labels", f"at most {most} for a certificate of {m} outputs", k)
        return
    most = _WORK // (2 * (m + _PAIR))
    if len(pairs) > most:
        got = f"{len(pairs)} ({k} labels)"
        InvalidRequest.must("pairs of neighbours", f"at most {most} for a certificate of {m} outputs", got)
