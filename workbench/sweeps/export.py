"""The ledger as a flat table, and that table as CSV or Parquet with its provenance.

One line a row, sorted by request, so that two ledgers with the same answers export the same bytes. Columns: key,
model, backend, the parameters, the solver's options, versions, then the answer; exact numbers as the nearest double
(their spelling is in the request, `workbench results show KEY`), lists as JSON. A CSV's provenance is FILE.csv.json
beside it, a Parquet file's is in its own metadata under "dp-workbench".
"""

from __future__ import annotations

import csv
import functools
import hashlib
import io
import itertools
import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import workbench
from workbench.errors import must
from workbench.exact.objects import Record, Values
from workbench.io.extras import require_extra
from workbench.io.files import escape_spreadsheet_text, write_atomically, write_json
from workbench.sweeps.ledger import SCHEMA, Ledger, LedgerRow, canonical_json

EXPORT_SUFFIXES = (".csv", ".parquet")
NUMERIC_COLUMNS = frozenset(
    (
        "epsilon",
        "delta",
        "max_loss",
        "bits",
        "c",
        "reach",
        "low",
        "high",
        "option_time_limit",
        "option_gap",
    )
)
_INFINITY_TEXTS = ("inf", "-inf")
_PARQUET_BATCH_ROWS = 10_000  # rows of Parquet


def _flatten_row(row: LedgerRow, effort: bool) -> tuple[Record, Record]:
    """What was asked, and what was answered."""
    request = row.request_values
    head = {"key": row.key, "model": request["model"], "backend": request["backend"]}
    head |= request["parameters"] | {
        f"option_{name}": value for name, value in request["options"].items()
    }
    for name, value in head.items():
        head[name] = (
            float(Fraction(value))
            if name in NUMERIC_COLUMNS and value is not None
            else _to_export_cell(value)
        )
    backend = [version for name, version in request["versions"].items() if name != "workbench"]
    head |= {
        "backend_version": next(iter(backend), None),
        "workbench": request["versions"]["workbench"],
    }
    tail = {
        name: float(v) if v in _INFINITY_TEXTS else _to_export_cell(v)
        for name, v in row.answer_values.items()
    }
    return head, tail | ({"seconds": row.seconds} if effort else {})


def _to_export_cell(value: Any) -> Any:
    return canonical_json(value) if isinstance(value, (list, dict)) else value


def check_export_path(path: Path) -> None:
    """Refuse a file of another ending (InvalidRequest), or Parquet without pyarrow (NotInstalled)."""
    if path.suffix.lower() not in EXPORT_SUFFIXES:
        must("export file", f"named {' or '.join(EXPORT_SUFFIXES)}", path.name)
    if path.suffix.lower() == ".parquet":
        require_extra("parquet", "Parquet")


@dataclass(frozen=True)
class _FlatRows:
    """The lines of a table, read from the ledger each time they are gone through: they may be more than the memory
    holds. numbers: of the rows."""

    ledger: Ledger
    numbers: list[int]
    effort: bool

    @cached_property
    def columns_and_versions(self) -> tuple[list[str], set[str]]:
        """The columns, and the versions, as JSON, that answered."""
        head, tail, versions = {"key": None}, {}, set()
        for row in self.ledger.read_numbered_rows(self.numbers):
            first, last = _flatten_row(row, self.effort)
            head.update(dict.fromkeys(first))
            tail.update(dict.fromkeys(last))
            versions.add(canonical_json(row.request_values["versions"]))
        return [*dict.fromkeys([*head, *tail])], versions

    def __iter__(self) -> Iterator[Record]:
        columns, _ = self.columns_and_versions
        for row in self.ledger.read_numbered_rows(self.numbers):
            head, tail = _flatten_row(row, self.effort)
            yield dict.fromkeys(columns) | head | tail


def flatten_ledger(
    ledger: Ledger, keys: Collection[str] | None = None, *, effort: bool = False
) -> list[Record]:
    """One flat mapping a row (all without keys), sorted by request, all with the same columns; effort: with the seconds
    each took."""
    return list(_FlatRows(ledger, ledger.list_row_numbers(keys), effort))


def export_ledger(
    ledger: Ledger,
    path: Path,
    *,
    keys: Collection[str] | None = None,
    effort: bool = False,
) -> tuple[list[Path], int]:
    """Write rows as .csv (with a .json of their provenance beside it) or .parquet: the files written, how many rows.

    Args:
        keys: of the rows; None for all.
        effort: with the seconds each took.

    Raises InvalidRequest for another ending, NotInstalled for Parquet without pyarrow, CorruptFile for a
    damaged ledger.
    """
    check_export_path(path)
    lines = _FlatRows(ledger, ledger.list_row_numbers(keys), effort)
    source = {
        "ledger": str(ledger.path),
        "schema": SCHEMA,
        "rows": len(lines.numbers),
        "exported": datetime.now(UTC).isoformat(timespec="seconds"),
        "exported_by": f"workbench {workbench.__version__}",
        "versions": [json.loads(text) for text in sorted(lines.columns_and_versions[1])],
        "specifications": ledger.list_specifications(),
        "meaning": "audited false: not checked for privacy exactly; status claimed: the solver's word, without a bound",
    }
    if path.suffix.lower() == ".parquet":
        write_atomically(path, _write_parquet(lines, source))
        return [path], len(lines.numbers)
    beside, sha256 = path.with_name(path.name + ".json"), hashlib.sha256()
    write_atomically(path, _write_csv(lines, sha256.update))
    write_json(beside, {**source, "file": path.name, "sha256": sha256.hexdigest()})
    return [path, beside], len(lines.numbers)


def _write_csv(lines: _FlatRows, seen: Callable[[bytes], None]) -> Iterator[bytes]:
    """The file in parts, each told to `seen`."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    words = {True: "true", False: "false", None: ""}
    table = (
        [
            words[v] if v is None or isinstance(v, bool) else escape_spreadsheet_text(v)
            for v in line.values()
        ]
        for line in lines
    )
    for cells in itertools.chain([lines.columns_and_versions[0]], table):
        writer.writerow(cells)
        part = buffer.getvalue().encode()
        buffer.seek(0)
        buffer.truncate()
        seen(part)
        yield part


def _split_batches(lines: _FlatRows) -> Iterator[list[Record]]:
    rest = iter(lines)
    return iter(lambda: [*itertools.islice(rest, _PARQUET_BATCH_ROWS)], [])


def _write_parquet(lines: _FlatRows, origin: Values) -> bytes:
    import pyarrow
    import pyarrow.parquet

    empty = pyarrow.schema([(name, pyarrow.null()) for name in lines.columns_and_versions[0]])
    parts = (pyarrow.Table.from_pylist(batch).schema for batch in _split_batches(lines))
    schema = functools.reduce(
        lambda a, b: pyarrow.unify_schemas([a, b], promote_options="permissive"), parts, empty
    )
    buffer, words = io.BytesIO(), {"dp-workbench": json.dumps(origin, ensure_ascii=False)}
    with pyarrow.parquet.ParquetWriter(buffer, schema.with_metadata(words)) as writer:
        for batch in _split_batches(lines):
            writer.write_table(pyarrow.Table.from_pylist(batch, schema=schema))
    return buffer.getvalue()
