"""Export the ledger as a flat table, in CSV or Parquet, with its provenance.

The table has one line for each row of the ledger, sorted by request. Two ledgers with the same
answers therefore export the same bytes. A line has two parts:

    head    key, model, backend, the parameters, option_NAME for each option of the solver,
            backend_version, workbench (its version)
    tail    the values of the answer, and the runtime as "seconds" if requested (`effort`)

Exact numbers are written as the nearest double. `workbench results show KEY` prints their exact
texts, which are in the request. Lists are written as JSON. The provenance (ledger, versions and
specifications) of FILE.csv is in FILE.csv.json. A Parquet file contains it in its own metadata
under "dp-workbench".
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

# The exact numbers in these columns are exported as doubles.
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
_PARQUET_BATCH_ROWS = 10_000  # A Parquet file is written in batches of this many rows.
_CSV_TEXTS = {True: "true", False: "false", None: ""}
_COLUMN_MEANINGS = (
    "audited false: privacy was not checked exactly; "
    "status claimed: the solver's result, without a bound"
)


def _flatten_row(row: LedgerRow, effort: bool) -> tuple[Record, Record]:
    """Return the head and the tail of one row (see the module header).

    Args:
        row: a row of the ledger.
        effort: whether to include the runtime, as the column seconds.
    """
    request = row.request_values
    head = {"key": row.key, "model": request["model"], "backend": request["backend"]}
    head |= request["parameters"]
    head |= {f"option_{name}": value for name, value in request["options"].items()}
    for name, value in head.items():
        if name in NUMERIC_COLUMNS and value is not None:
            head[name] = float(Fraction(value))
        else:
            head[name] = _to_export_cell(value)
    versions = request["versions"]
    solver_versions = [version for name, version in versions.items() if name != "workbench"]
    head["backend_version"] = next(iter(solver_versions), None)
    head["workbench"] = versions["workbench"]
    tail: Record = {}
    for name, value in row.answer_values.items():
        tail[name] = float(value) if value in _INFINITY_TEXTS else _to_export_cell(value)
    if effort:
        tail["seconds"] = row.seconds
    return head, tail


def _to_export_cell(value: Any) -> Any:
    """Return a list or an object as JSON text. Other values are returned unchanged."""
    if isinstance(value, (list, dict)):
        return canonical_json(value)
    return value


def check_export_path(path: Path) -> None:
    """Check that an export file can be written.

    Args:
        path: The file to write. Its suffix chooses the format.

    Raises:
        InvalidRequest: The suffix of the file is not supported.
        NotInstalled: The file is Parquet, and pyarrow is not installed.
    """
    if path.suffix.lower() not in EXPORT_SUFFIXES:
        must("export file", f"named {' or '.join(EXPORT_SUFFIXES)}", path.name)
    if path.suffix.lower() == ".parquet":
        require_extra("parquet", "Parquet")


@dataclass(frozen=True)
class _FlatRows:
    """Iterate over the flat rows of a ledger.

    Each iteration reads the ledger again, because the rows may need more memory than there is.

    Attributes:
        ledger: The open ledger.
        numbers: The numbers of the rows in the ledger, in the order of the export.
        effort: Whether to include the runtime, as the column seconds.
    """

    ledger: Ledger
    numbers: list[int]
    effort: bool

    @cached_property
    def columns_and_versions(self) -> tuple[list[str], set[str]]:
        """Return the names of all columns, and the JSON of all version tables of the requests."""
        head: Record = {"key": None}
        tail: Record = {}
        versions = set()
        for row in self.ledger.read_numbered_rows(self.numbers):
            row_head, row_tail = _flatten_row(row, self.effort)
            # The dictionaries are ordered sets of names.
            head.update(dict.fromkeys(row_head))
            tail.update(dict.fromkeys(row_tail))
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
    """Return one flat record for each row, sorted by request, all with the same columns.

    Args:
        ledger: The open ledger.
        keys: The keys (sha256 of the request) whose rows are exported. None: all rows.
        effort: Whether to include the runtime, as the column seconds.
    """
    return list(_FlatRows(ledger, ledger.list_row_numbers(keys), effort))


def export_ledger(
    ledger: Ledger,
    path: Path,
    *,
    keys: Collection[str] | None = None,
    effort: bool = False,
) -> tuple[list[Path], int]:
    """Write rows of a ledger to a file.

    Args:
        ledger: The open ledger.
        path: The file: .csv (its provenance is written to a .json file beside it) or .parquet.
        keys: The keys (sha256 of the request) whose rows are exported. None: all rows.
        effort: Whether to include the runtime, as the column seconds.

    Returns:
        The files that were written, and the number of rows.

    Raises:
        InvalidRequest: The suffix of the file is not supported.
        NotInstalled: The file is Parquet, and pyarrow is not installed.
        CorruptFile: The ledger is damaged.
    """
    check_export_path(path)
    rows = _FlatRows(ledger, ledger.list_row_numbers(keys), effort)
    _, versions = rows.columns_and_versions
    provenance = {
        "ledger": str(ledger.path),
        "schema": SCHEMA,
        "rows": len(rows.numbers),
        "exported": datetime.now(UTC).isoformat(timespec="seconds"),
        "exported_by": f"workbench {workbench.__version__}",
        "versions": [json.loads(text) for text in sorted(versions)],
        "specifications": ledger.list_specifications(),
        "meaning": _COLUMN_MEANINGS,
    }
    if path.suffix.lower() == ".parquet":
        write_atomically(path, _write_parquet(rows, provenance))
        return [path], len(rows.numbers)
    provenance_path = path.with_name(path.name + ".json")
    sha256 = hashlib.sha256()
    write_atomically(path, _write_csv(rows, sha256.update))
    provenance |= {"file": path.name, "sha256": sha256.hexdigest()}
    write_json(provenance_path, provenance)
    return [path, provenance_path], len(rows.numbers)


def _write_csv(rows: _FlatRows, record: Callable[[bytes], None]) -> Iterator[bytes]:
    """Yield the CSV file line by line. `record` is called with each line, to hash the file."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    columns, _ = rows.columns_and_versions
    lines = (_to_csv_cells(row) for row in rows)
    for cells in itertools.chain([columns], lines):
        writer.writerow(cells)
        line = buffer.getvalue().encode()
        buffer.seek(0)
        buffer.truncate()
        record(line)
        yield line


def _to_csv_cells(row: Record) -> list[Any]:
    """Return the cells of a row as they are written to a CSV file."""
    cells: list[Any] = []
    for value in row.values():
        if value is None or isinstance(value, bool):
            cells.append(_CSV_TEXTS[value])
        else:
            cells.append(escape_spreadsheet_text(value))
    return cells


def _split_batches(rows: _FlatRows) -> Iterator[list[Record]]:
    """Yield the rows in batches of at most _PARQUET_BATCH_ROWS."""
    remaining = iter(rows)
    # The iteration ends at the first empty batch.
    return iter(lambda: [*itertools.islice(remaining, _PARQUET_BATCH_ROWS)], [])


def _write_parquet(rows: _FlatRows, provenance: Values) -> bytes:
    """Return the content of the Parquet file."""
    import pyarrow
    import pyarrow.parquet

    columns, _ = rows.columns_and_versions
    empty_schema = pyarrow.schema([(name, pyarrow.null()) for name in columns])
    # The type of a column is known only after all batches were read.
    schemas = (pyarrow.Table.from_pylist(batch).schema for batch in _split_batches(rows))
    schema = functools.reduce(
        lambda first, second: pyarrow.unify_schemas([first, second], promote_options="permissive"),
        schemas,
        empty_schema,
    )
    buffer = io.BytesIO()
    metadata = {"dp-workbench": json.dumps(provenance, ensure_ascii=False)}
    with pyarrow.parquet.ParquetWriter(buffer, schema.with_metadata(metadata)) as writer:
        for batch in _split_batches(rows):
            writer.write_table(pyarrow.Table.from_pylist(batch, schema=schema))
    return buffer.getvalue()
