"""The commands `sweep` and `results`."""

from __future__ import annotations

import sys
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.cli.console import Report, make_facts_grid, make_table, run_with_progress
from workbench.cli.output_paths import check_output_file
from workbench.errors import WorkbenchError
from workbench.exact.objects import Record, Values
from workbench.io.files import require_distinct_files
from workbench.io.result import Progress
from workbench.sweeps.ledger import Ledger, LedgerRow

if TYPE_CHECKING:
    from workbench.sweeps.result import SweepCounts, SweepResult


# Columns of a request that are shown.
_REQUEST_COLUMNS = (
    "sizes",
    "levels",
    "notion",
    "loss",
    "method",
    "bits",
    "epsilon",
    "delta",
    "max_loss",
)
# Columns of an answer that are shown.
_ANSWER_COLUMNS = ("status", "objective", "bound", "audited", "private")
# Answers with these statuses do not count as failures.
_SUCCESS_STATUSES = ("claimed", "optimal", "found")
# Keys are shown with this many characters.
_SHOWN_KEY_LENGTH = 12


def run_sweep(
    spec: Path,
    *,
    ledger: Path,
    dry_run: bool,
    json: bool,
    **workers: Any,
) -> Report:
    """Solve every point of a grid of models, parameters, notions, losses and solvers.

    Points that are already in the ledger are skipped. Every answer is stored in the ledger.
    A failed solve is a row with its status and its reason.

    If 4 worker processes die at the same points, these are given up, and the exit code is 1.

    Args:
        spec: Specification of the grid.
        ledger: File of the ledger.
        dry_run: Whether to count the points only.
        json: Whether standard output is JSON. Progress is then not printed as lines.
        workers: Options of `workbench.sweeps.run.sweep` that choose the workers, such as the number
            of processes or a cluster.
    """
    from workbench.sweeps.run import sweep
    from workbench.sweeps.specification import read_spec

    require_distinct_files({"specification": spec}, _list_ledger_files(ledger))
    grid = read_spec(spec)

    def count_known_points() -> int:
        """Count the points of the sweep that the ledger has already."""
        if not ledger.exists():
            return 0
        with Ledger(ledger, create=False) as book:
            return len(book.find_known_keys(grid.keys))

    if dry_run:
        counts = {"name": grid.name, "points": len(grid), "tasks": len(grid.chunks)}
        return _report_counts({**counts, "known": count_known_points()})

    def work(report: Progress) -> SweepResult:
        """Solve the sweep and report its progress."""

        def report_counts(counts: SweepCounts) -> None:
            """Report the solved points, and how many of them failed."""
            failed_count = 0
            for status, count in counts.statuses.items():
                if status not in _SUCCESS_STATUSES:
                    failed_count += count
            text = "sweep"
            if failed_count:
                text = f"sweep, {failed_count} not optimal"
            report(counts.solved, counts.points - counts.known, text)

        return sweep(grid, ledger, **workers, progress=report_counts)

    try:
        result = run_with_progress(work, "sweep", lines=not json)
    except KeyboardInterrupt:
        raise WorkbenchError(
            f"Interrupted; {count_known_points()} of {len(grid)} rows are in {ledger}, and the "
            "same command continues from there."
        ) from None
    return _report_counts(result.counts.to_dict(), has_failed=bool(result.given_up))


def _list_ledger_files(ledger: Path) -> Record:
    """Return the ledger and the files that SQLite keeps beside it."""
    endings = {"ledger": "", "log of the ledger": "-wal", "index of the ledger's log": "-shm"}
    return {name: Path(f"{ledger}{ending}") for name, ending in endings.items()}


def _report_counts(values: Values, *, has_failed: bool = False) -> Report:
    """Report the counts of a sweep."""
    rows = []
    for name, value in values.items():
        if name != "statuses":
            rows.append((name.replace("_", " "), str(value)))
    for status, count in values.get("statuses", {}).items():
        rows.append((f"status {status}", str(count)))
    return Report(values, [make_facts_grid(rows)], has_failed=has_failed)


def list_results(*, ledger: Path, model: str | None, status: str | None, limit: int) -> Report:
    """List the rows of the ledger: the requests and their answers.

    Args:
        ledger: File of the ledger.
        model: Show only this model. None: all.
        status: Show only this status. None: all.
        limit: Number of rows to show. 0: all.
    """
    matching_count = 0
    # The limit 0 stands for all rows.
    last_rows = deque[LedgerRow](maxlen=min(limit, sys.maxsize) or None)
    with Ledger(ledger, create=False) as book:
        total = len(book)
        for row in book.rows():
            is_model = model in (None, row.request_values["model"])
            if is_model and status in (None, row.answer_values["status"]):
                matching_count += 1
                last_rows.append(row)
    lines = [_summarise_row(row) for row in last_rows]
    columns = ("key", "model", "backend", "asked", *_ANSWER_COLUMNS)
    heads = ["requested" if column == "asked" else column for column in columns]
    cells = []
    for line in lines:
        others = [line[column] for column in columns[1:]]
        cells.append([line["key"][:_SHOWN_KEY_LENGTH], *others])
    caption = f"{len(lines)} of {matching_count} matching rows, {total} in {ledger}"
    values = {
        "ledger": str(ledger),
        "rows_in_ledger": total,
        "matching": matching_count,
        "rows": lines,
    }
    return Report(values, [make_table("Ledger", heads, cells, caption=caption)])


def _summarise_row(row: LedgerRow) -> Values:
    """Return the key, the solver, the request as a text ("asked"), and the answer of a row."""
    request = row.request_values
    answer = row.answer_values
    parameters = request["parameters"]
    shown_names = [name for name in _REQUEST_COLUMNS if parameters.get(name) is not None]
    line = {
        "key": row.key,
        "model": request["model"],
        "backend": request["backend"],
        "asked": ", ".join(f"{name} {parameters[name]}" for name in shown_names),
    }
    return line | {name: answer.get(name) for name in (*_ANSWER_COLUMNS, "failure")}


def show_result(key: str, *, ledger: Path) -> Report:
    """Show one row: its request, versions, options, and answer.

    Args:
        key: Beginning of the key of the row.
        ledger: File of the ledger.
    """
    with Ledger(ledger, create=False) as book:
        row = book.find(key)
    request = row.request_values
    answer = row.answer_values
    lines = [("key", row.key), ("", "sha256 of the request; the answer's seal is intact")]
    lines += [(name, str(request[name])) for name in ("model", "backend")]
    for group in ("parameters", "options", "versions"):
        for name, value in request[group].items():
            if value is not None:
                # One entry is a parameter, an option or a version.
                lines.append((f"{group.removesuffix('s')} {name}", str(value)))
    for name, value in answer.items():
        if value is not None:
            lines.append((name.replace("_", " "), str(value)))
    lines.append(("seconds", f"{row.seconds:.4g}"))
    values = {"key": row.key, "request": request, "answer": answer, "seconds": row.seconds}
    return Report(values, [make_facts_grid(lines)])


def export_results(target: Path, *, ledger: Path, spec: Path | None, effort: bool) -> Report:
    """Write the rows as a flat table, sorted by request, with their provenance.

    Args:
        target: File to write.
        ledger: File of the ledger.
        spec: Specification of the points to export. None: all.
        effort: Whether to add the runtimes.
    """
    from workbench.sweeps.export import check_export_path, export_ledger

    check_export_path(target)
    check_output_file(target, "export file")
    provenance_file = None
    if target.suffix.lower() == ".csv":
        provenance_file = target.with_name(target.name + ".json")
    inputs = {**_list_ledger_files(ledger), "specification": spec}
    outputs = {"export file": target, "provenance beside the export": provenance_file}
    require_distinct_files(inputs, outputs)
    keys = None
    if spec:
        from workbench.sweeps.specification import read_spec

        keys = set(read_spec(spec).keys)
    with Ledger(ledger, create=False) as book:
        files, count = export_ledger(book, target, keys=keys, effort=effort)
    sentence = f"Wrote {count} rows to {' and '.join(file.name for file in files)}."
    missing_count = 0
    if keys is not None:
        missing_count = len(keys) - count
    if missing_count:
        sentence += f" {missing_count} points of the specification have no row yet."
    values = {"files": [str(file) for file in files], "rows": count, "missing": missing_count}
    return Report(values, [sentence])


def merge_results(sources: list[Path], *, ledger: Path, json: bool) -> Report:
    """Add the rows of other ledgers to a ledger. A row that it has keeps its answer.

    The exit code is 1 if two ledgers have different answers to a request. Their keys are listed.

    Args:
        sources: Files of the other ledgers.
        ledger: File of the ledger.
        json: Whether to print a JSON object.
    """
    from workbench.sweeps.merge import MergeResult, merge_ledgers

    for source in sources:
        require_distinct_files(_list_ledger_files(source), _list_ledger_files(ledger))

    def work(report: Progress) -> MergeResult:
        """Merge the ledgers and report the rows that were read."""
        total = sum(map(_count_rows, sources))
        return merge_ledgers(
            sources, ledger, report_rows_read=lambda count: report(count, total, "rows")
        )

    result = run_with_progress(work, "merge", lines=not json)
    differences = [{"key": key, "ledger": str(source)} for key, source in result.different]
    sentences = [
        f"{result.new} rows are new in {ledger}, {result.equal} were there with the same answer."
    ]
    for line in differences:
        key = line["key"][:_SHOWN_KEY_LENGTH]
        sentences.append(f"{key}: {line['ledger']} has another answer, which was not taken.")
    values = {
        "ledger": str(ledger),
        "new": result.new,
        "equal": result.equal,
        "different": differences,
    }
    return Report(values, sentences, has_failed=bool(differences))


def _count_rows(source: Path) -> int:
    """Return the number of rows of a ledger."""
    with Ledger(source, create=False) as book:
        return len(book)
