"""Merge ledgers of several machines into one, and report requests with different answers.

A ledger is the file in which sweeps store their answers (`workbench.sweeps.ledger`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from workbench.sweeps.ledger import Ledger, LedgerRow

_BATCH_ROWS = 500  # One transaction commits at most this many rows.

# These values depend on the points that were solved before in the same run.
_RUN_DEPENDENT_VALUES = ("recheck", "start", "residual")

# Numbers within this relative or absolute tolerance are equal, because the last digits depend on
# the point from which a solve started.
_EQUALITY_TOLERANCE = 1e-9


class MergeResult(NamedTuple):
    """The counts of a merge.

    Attributes:
        new: The number of rows that were added.
        equal: The number of rows whose key and answer were in the target already.
        different: The keys with another answer in the target, each with the ledger that disagrees.
    """

    new: int
    equal: int
    different: list[tuple[str, Path]]


def _ignore_progress(rows_read: int) -> None:
    """Report nothing: the default progress report."""


def merge_ledgers(
    sources: Iterable[Path],
    target: Path,
    report_rows_read: Callable[[int], object] = _ignore_progress,
) -> MergeResult:
    """Add the rows and the specifications of ledgers to a target ledger.

    A key that is in the target already keeps its answer. Values that depend on the run are not
    compared: the start of a solve, its recheck, its residual and its seconds. Rows are committed in
    batches, so the same call continues an interrupted merge.

    Args:
        sources: The ledgers to read. Each must exist.
        target: The ledger to write. It is created if it does not exist.
        report_rows_read: Called with the number of rows read after each batch.

    Returns:
        The counts, and the keys with different answers.

    Raises:
        InvalidRequest: A source is not a file.
        CorruptFile: A ledger is damaged.
        WorkbenchError: A ledger cannot be opened.
    """
    new_count = 0
    read_count = 0
    different: list[tuple[str, Path]] = []
    # All sources are opened first, so that nothing is written if one of them is missing.
    source_ledgers = [Ledger(source, create=False) for source in sources]
    try:
        with Ledger(target) as target_ledger:
            for source_ledger in source_ledgers:
                rows = source_ledger.rows()
                while batch := list(itertools.islice(rows, _BATCH_ROWS)):
                    different_rows = _find_different_rows(batch, target_ledger)
                    different += [(row.key, source_ledger.path) for row in different_rows]
                    new_count += target_ledger.add(batch)
                    read_count += len(batch)
                    report_rows_read(read_count)
                for sweep in source_ledger.list_specifications():
                    target_ledger.record_specification(sweep["text"], sweep["first_run"])
    finally:
        for source_ledger in source_ledgers:
            source_ledger.close()
    return MergeResult(new_count, read_count - new_count - len(different), different)


def _find_different_rows(batch: list[LedgerRow], ledger: Ledger) -> list[LedgerRow]:
    """Return the rows of a batch for whose key the ledger contains another answer."""
    known_keys = ledger.find_known_keys([row.key for row in batch])
    known_rows = (row for row in batch if row.key in known_keys)
    return [row for row in known_rows if not _answers_agree(ledger.find(row.key), row)]


def _answers_agree(first: LedgerRow, second: LedgerRow) -> bool:
    """Return whether two rows of one request have the same answer."""
    if first.answer == second.answer:
        return True
    first_values = _comparable_values(first)
    second_values = _comparable_values(second)
    if first_values.keys() != second_values.keys():
        return False
    return all(_are_equal(value, second_values[name]) for name, value in first_values.items())


def _comparable_values(row: LedgerRow) -> dict[str, Any]:
    """Return the values of an answer that do not depend on the run."""
    values = row.answer_values.items()
    return {name: value for name, value in values if name not in _RUN_DEPENDENT_VALUES}


def _are_equal(first: Any, second: Any) -> bool:
    """Return whether two values of an answer are equal; floats may differ by rounding."""
    if type(first) is float and type(second) is float:
        tolerance = _EQUALITY_TOLERANCE
        return math.isclose(first, second, rel_tol=tolerance, abs_tol=tolerance)
    return type(first) is type(second) and bool(first == second)
