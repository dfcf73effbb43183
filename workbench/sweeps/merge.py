"""Ledgers of several machines made one: every row once, and what two of them answer differently is said."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from workbench.sweeps.ledger import Ledger, LedgerRow

_BATCH_ROWS = 500  # rows of one transaction
_RUN_DEPENDENT_VALUES = (
    "recheck",
    "start",
    "residual",
)  # What depends on the points that were solved before in the same run.
_EQUALITY_TOLERANCE = 1e-9  # Numbers that differ by less are equal: a hot start ends at other last digits than a cold one.


class MergeResult(NamedTuple):
    """new: rows added; equal: rows that were there with the same answer; different: keys, each with the ledger whose
    answer to it is not the one kept."""

    new: int
    equal: int
    different: list[tuple[str, Path]]


def merge_ledgers(
    sources: Iterable[Path],
    target: Path,
    report_rows_read: Callable[[int], object] = lambda _: None,
) -> MergeResult:
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
        with Ledger(target) as book:
            for other in opened:
                rows = other.rows()
                while batch := list(itertools.islice(rows, _BATCH_ROWS)):
                    there = book.find_known_keys([row.key for row in batch])
                    different += [
                        (row.key, other.path)
                        for row in batch
                        if row.key in there and not _answers_agree(book.find(row.key), row)
                    ]
                    new += book.add(batch)
                    report_rows_read(read := read + len(batch))
                for sweep in other.list_specifications():
                    book.record_specification(sweep["text"], sweep["first_run"])
    finally:
        for other in opened:
            other.close()
    return MergeResult(new, read - new - len(different), different)


def _answers_agree(kept: LedgerRow, other: LedgerRow) -> bool:
    """Whether two rows of one request have the same answer."""
    if kept.answer == other.answer:
        return True
    first, second = (
        {
            name: value
            for name, value in row.answer_values.items()
            if name not in _RUN_DEPENDENT_VALUES
        }
        for row in (kept, other)
    )
    return first.keys() == second.keys() and all(
        _are_equal(value, second[name]) for name, value in first.items()
    )


def _are_equal(first: Any, second: Any) -> bool:
    """Whether two values of an answer are equal, floats up to the rounding of another path to them."""
    if type(first) is float and type(second) is float:
        return math.isclose(first, second, rel_tol=_EQUALITY_TOLERANCE, abs_tol=_EQUALITY_TOLERANCE)
    return type(first) is type(second) and bool(first == second)
