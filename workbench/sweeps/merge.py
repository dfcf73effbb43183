"""Ledgers of several machines made one: every row once, and what two of them answer differently is said."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from workbench.sweeps.ledger import Ledger, Row

_BATCH = 500  # rows of one transaction
_OF_THE_RUN = (
    "recheck",
    "start",
    "residual",
)  # What depends on the points that were solved before in the same run.
_ROUNDING = 1e-9  # Numbers that differ by less are equal: a hot start ends at other last digits than a cold one.


class Merged(NamedTuple):
    """new: rows added; equal: rows that were there with the same answer; different: keys, each with the ledger whose
    answer to it is not the one kept."""

    new: int
    equal: int
    different: list[tuple[str, Path]]


def merge(
    sources: Iterable[Path], into: Path, tell: Callable[[int], object] = lambda _: None
) -> Merged:
    """Add the rows of ledgers, and the specifications that were run, to the ledger `into`, made where there is none.

    A key that is there already keeps its answer. Where a solve started, and whether it was solved a second time, is no
    part of an answer. Batches are committed as they are read, so that an interrupted merge
    is gone on with by the same call; the seconds that a row took are no part of its answer. tell: the rows read so far.

    Raises InvalidRequest where a source is no file, CorruptFile for a damaged one, and what opening a ledger raises.
    """
    new, different, read = 0, list[tuple[str, Path]](), 0
    opened = [
        Ledger(source, create=False) for source in sources
    ]  # all of them, before anything is written
    try:
        with Ledger(into) as book:
            for other in opened:
                rows = other.rows()
                while batch := list(itertools.islice(rows, _BATCH)):
                    there = book.known([row.key for row in batch])
                    different += [
                        (row.key, other.path)
                        for row in batch
                        if row.key in there and not _agree(book.find(row.key), row)
                    ]
                    new += book.add(batch)
                    tell(read := read + len(batch))
                for sweep in other.sweeps():
                    book.remember(sweep["text"], sweep["first_run"])
    finally:
        for other in opened:
            other.close()
    return Merged(new, read - new - len(different), different)


def _agree(kept: Row, other: Row) -> bool:
    """Whether two rows of one request have the same answer."""
    if kept.answer == other.answer:
        return True
    first, second = (
        {name: value for name, value in row.answer_values.items() if name not in _OF_THE_RUN}
        for row in (kept, other)
    )
    return first.keys() == second.keys() and all(
        _same(value, second[name]) for name, value in first.items()
    )


def _same(first: Any, second: Any) -> bool:
    """Whether two values of an answer are equal, floats up to the rounding of another path to them."""
    if type(first) is float and type(second) is float:
        return math.isclose(first, second, rel_tol=_ROUNDING, abs_tol=_ROUNDING)
    return type(first) is type(second) and bool(first == second)
