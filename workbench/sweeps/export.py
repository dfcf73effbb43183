"""The ledger as a flat table, and that table as CSV or Parquet with its provenance.

One line a row, sorted by request, so that two ledgers with the same answers export the same bytes. Columns: key,
model, backend, the parameters, the solver's options, versions, then the answer; exact numbers as the nearest double
(their spelling is in the request, `workbench results show KEY`), lists as JSON. A CSV's provenance is FILE.csv.json
beside it, a Parquet file's is in its own metadata under "dp-workbench".
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import workbench
from workbench.errors import InvalidRequest
from workbench.families.outcome import renamed
from workbench.io.extras import need
from workbench.io.files import write_whole
from workbench.sweeps.ledger import MIGRATIONS, Ledger, Row, canonical

__all__ = ["FORMATS", "export", "flat", "provenance"]

FORMATS = (".csv", ".parquet")
NUMBERS = frozenset(
    ("epsilon", "delta", "budget", "bits", "c", "reach", "low", "high", "option_time_limit", "option_gap")
)
Table = list[dict[str, Any]]


def flat(rows: Iterable[Row], *, effort: bool = False) -> Table:
    """One flat mapping a row, sorted by request, all with the same columns; effort: with the seconds each took."""
    lines = [_line(row, effort) for row in sorted(rows, key=lambda row: row.request)]
    columns = dict.fromkeys(key for group in ("head", "tail") for line in lines for key in line[group])
    return [dict.fromkeys(columns) | line["head"] | line["tail"] for line in lines]


def _line(row: Row, effort: bool) -> dict[str, dict[str, Any]]:
    request = row.request_values
    head = {"key": row.key, "model": request["model"], "backend": request["backend"]}
    head |= request["parameters"] | {f"option_{name}": value for name, value in request["options"].items()}
    head = {name: _number(value) if name in NUMBERS else _cell(value) for name, value in head.items()}
    backend = [version for name, version in request["versions"].items() if name != "workbench"]
    head |= {"backend_version": next(iter(backend), None), "workbench": request["versions"]["workbench"]}
    tail = {name: _infinite(_cell(value)) for name, value in renamed(row.answer_values).items()}
    return {"head": head, "tail": tail | ({"seconds": row.seconds} if effort else {})}


def _number(value: Any) -> float | None:
    return None if value is None else float(Fraction(value))


def _cell(value: Any) -> Any:
    return canonical(value) if isinstance(value, (list, dict)) else value


def _infinite(value: Any) -> Any:
    return float(value) if value in ("inf", "-inf") else value


def provenance(ledger: Ledger, rows: Sequence[Row], *, unreadable: int = 0) -> dict[str, Any]:
    """Where a table comes from: ledger, schema, versions, specifications, how many rows, when."""
    versions = {canonical(row.request_values["versions"]) for row in rows}
    return {
        "ledger": str(ledger.path), "schema": len(MIGRATIONS), "rows": len(rows), "unreadable_rows": unreadable,
        "exported": datetime.now(UTC).isoformat(timespec="seconds"),
        "exported_by": f"workbench {workbench.__version__}",
        "versions": [json.loads(text) for text in sorted(versions)],
        "specifications": [] if unreadable else ledger.sweeps(),
        "meaning": "audited false: not checked for privacy exactly; status claimed: the solver's word, without a bound",
    }  # fmt: skip


def writable(path: Path) -> None:
    """Refuse a file of another ending (InvalidRequest), or Parquet without pyarrow (NotInstalled)."""
    if path.suffix.lower() not in FORMATS:
        InvalidRequest.must("export file", f"named {' or '.join(FORMATS)}", path.name)
    if path.suffix.lower() == ".parquet":
        need("parquet", "Parquet")


def export(table: Table, origin: Mapping[str, Any], path: Path) -> list[Path]:
    """Write a table as .csv (with a .json of its provenance beside it) or .parquet; the files written.

    Raises InvalidRequest for another ending, NotInstalled for Parquet without pyarrow.
    """
    writable(path)
    if path.suffix.lower() == ".parquet":
        write_whole(path, _parquet(table, origin))
        return [path]
    content = _csv(table)
    beside = path.with_name(path.name + ".json")
    more = {**origin, "file": path.name, "sha256": hashlib.sha256(content).hexdigest()}
    write_whole(path, content)
    write_whole(beside, (json.dumps(more, indent=1, ensure_ascii=False) + "\n").encode())
    return [path, beside]


def _csv(table: Table) -> bytes:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(table[0] if table else ["key"])
    words = {True: "true", False: "false", None: ""}
    for line in table:
        writer.writerow(words[v] if v is None or isinstance(v, bool) else v for v in line.values())
    return buffer.getvalue().encode()


def _parquet(table: Table, origin: Mapping[str, Any]) -> bytes:
    import pyarrow
    import pyarrow.parquet

    columns = {name: pyarrow.array([line[name] for line in table]) for name in (table[0] if table else ["key"])}
    arrow = pyarrow.table(columns).replace_schema_metadata({"dp-workbench": json.dumps(origin, ensure_ascii=False)})
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(arrow, buffer)
    return buffer.getvalue()
