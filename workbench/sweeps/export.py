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
from workbench.io.extras import need
from workbench.io.files import spreadsheet_text, write_json, write_whole
from workbench.sweeps.ledger import SCHEMA, Ledger, Row, canonical

FORMATS = (".csv", ".parquet")
NUMBERS = frozenset(
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
_INFINITE = ("inf", "-inf")
_BATCH = 10_000  # rows of Parquet


def _line(row: Row, effort: bool) -> tuple[Record, Record]:
    """What was asked, and what was answered."""
    request = row.request_values
    head = {"key": row.key, "model": request["model"], "backend": request["backend"]}
    head |= request["parameters"] | {
        f"option_{name}": value for name, value in request["options"].items()
    }
    for name, value in head.items():
        head[name] = (
            float(Fraction(value)) if name in NUMBERS and value is not None else _cell(value)
        )
    backend = [version for name, version in request["versions"].items() if name != "workbench"]
    head |= {
        "backend_version": next(iter(backend), None),
        "workbench": request["versions"]["workbench"],
    }
    tail = {name: float(v) if v in _INFINITE else _cell(v) for name, v in row.answer_values.items()}
    return head, tail | ({"seconds": row.seconds} if effort else {})


def _cell(value: Any) -> Any:
    return canonical(value) if isinstance(value, (list, dict)) else value


def writable(path: Path) -> None:
    """Refuse a file of another ending (InvalidRequest), or Parquet without pyarrow (NotInstalled)."""
    if path.suffix.lower() not in FORMATS:
        must("export file", f"named {' or '.join(FORMATS)}", path.name)
    if path.suffix.lower() == ".parquet":
        need("parquet", "Parquet")


@dataclass(frozen=True)
class _Lines:
    """The lines of a table, read from the ledger each time they are gone through: they may be more than the memory
    holds. numbers: of the rows."""

    ledger: Ledger
    numbers: list[int]
    effort: bool

    @cached_property
    def known(self) -> tuple[list[str], set[str]]:
        """The columns, and the versions, as JSON, that answered."""
        head, tail, versions = {"key": None}, {}, set()
        for row in self.ledger.numbered(self.numbers):
            first, last = _line(row, self.effort)
            head.update(dict.fromkeys(first))
            tail.update(dict.fromkeys(last))
            versions.add(canonical(row.request_values["versions"]))
        return [*dict.fromkeys([*head, *tail])], versions

    def __iter__(self) -> Iterator[Record]:
        columns, _ = self.known
        for row in self.ledger.numbered(self.numbers):
            head, tail = _line(row, self.effort)
            yield dict.fromkeys(columns) | head | tail


def flat(
    ledger: Ledger, keys: Collection[str] | None = None, *, effort: bool = False
) -> list[Record]:
    """One flat mapping a row (all without keys), sorted by request, all with the same columns; effort: with the seconds
    each took."""
    return list(_Lines(ledger, ledger.numbers(keys), effort))


def export(
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
    writable(path)
    lines = _Lines(ledger, ledger.numbers(keys), effort)
    source = {
        "ledger": str(ledger.path),
        "schema": SCHEMA,
        "rows": len(lines.numbers),
        "exported": datetime.now(UTC).isoformat(timespec="seconds"),
        "exported_by": f"workbench {workbench.__version__}",
        "versions": [json.loads(text) for text in sorted(lines.known[1])],
        "specifications": ledger.sweeps(),
        "meaning": "audited false: not checked for privacy exactly; status claimed: the solver's word, without a bound",
    }
    if path.suffix.lower() == ".parquet":
        write_whole(path, _parquet(lines, source))
        return [path], len(lines.numbers)
    beside, sha256 = path.with_name(path.name + ".json"), hashlib.sha256()
    write_whole(path, _csv(lines, sha256.update))
    write_json(beside, {**source, "file": path.name, "sha256": sha256.hexdigest()})
    return [path, beside], len(lines.numbers)


def _csv(lines: _Lines, seen: Callable[[bytes], None]) -> Iterator[bytes]:
    """The file in parts, each told to `seen`."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    words = {True: "true", False: "false", None: ""}
    table = (
        [
            words[v] if v is None or isinstance(v, bool) else spreadsheet_text(v)
            for v in line.values()
        ]
        for line in lines
    )
    for cells in itertools.chain([lines.known[0]], table):
        writer.writerow(cells)
        part = buffer.getvalue().encode()
        buffer.seek(0)
        buffer.truncate()
        seen(part)
        yield part


def _batches(lines: _Lines) -> Iterator[list[Record]]:
    rest = iter(lines)
    return iter(lambda: [*itertools.islice(rest, _BATCH)], [])


def _parquet(lines: _Lines, origin: Values) -> bytes:
    import pyarrow
    import pyarrow.parquet

    empty = pyarrow.schema([(name, pyarrow.null()) for name in lines.known[0]])
    parts = (pyarrow.Table.from_pylist(batch).schema for batch in _batches(lines))
    schema = functools.reduce(
        lambda a, b: pyarrow.unify_schemas([a, b], promote_options="permissive"), parts, empty
    )
    buffer, words = io.BytesIO(), {"dp-workbench": json.dumps(origin, ensure_ascii=False)}
    with pyarrow.parquet.ParquetWriter(buffer, schema.with_metadata(words)) as writer:
        for batch in _batches(lines):
            writer.write_table(pyarrow.Table.from_pylist(batch, schema=schema))
    return buffer.getvalue()
