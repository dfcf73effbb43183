"""`workbench sweep` and `workbench results`."""

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


_ASKED = ("sizes", "levels", "notion", "loss", "method", "bits", "epsilon", "delta", "max_loss")
_ANSWERED = ("status", "objective", "bound", "audited", "private")
_FOUND = ("claimed", "optimal", "found")  # statuses of what was answered


def sweep(
    spec: Path,
    *,
    ledger: Path,
    dry_run: bool,
    json: bool,
    **workers: Any,
) -> Report:
    """Answer every point of a grid of models, parameters, notions, costs and solvers, once; every answer is kept.

    A failed solve is a row with its status and its reason. Exit code 1 when workers died too often to finish.
    """
    from workbench.sweeps.run import sweep as run
    from workbench.sweeps.specification import read_spec

    require_distinct_files({"specification": spec}, _ledger_files(ledger))
    read = read_spec(spec)

    def known() -> int:
        if not ledger.exists():
            return 0
        with Ledger(ledger, create=False) as book:
            return len(book.find_known_keys(read.keys))

    if dry_run:
        return _said(
            {"name": read.name, "points": len(read), "tasks": len(read.chunks), "known": known()}
        )

    def work(tell: Progress) -> SweepResult:
        def progress(outcome: SweepCounts) -> None:
            failed = sum(n for status, n in outcome.statuses.items() if status not in _FOUND)
            tell(
                outcome.solved,
                outcome.points - outcome.known,
                f"sweep, {failed} not optimal" if failed else "sweep",
            )

        return run(read, ledger, **workers, progress=progress)

    try:
        result = run_with_progress(work, "sweep", lines=not json)
    except KeyboardInterrupt:
        kept = f"{known()} of {len(read)} rows are in {ledger}, and the same command goes on from there."
        raise WorkbenchError(f"Interrupted; {kept}") from None
    return _said(result.counts.to_dict(), failed=bool(result.given_up))


def _ledger_files(ledger: Path) -> Record:
    """The ledger and what SQLite keeps beside it."""
    names = {"ledger": "", "log of the ledger": "-wal", "index of the ledger's log": "-shm"}
    return {name: Path(f"{ledger}{ending}") for name, ending in names.items()}


def _said(values: Values, *, failed: bool = False) -> Report:
    rows = [
        (name.replace("_", " "), str(value)) for name, value in values.items() if name != "statuses"
    ]
    rows += [
        (f"status {status}", str(number)) for status, number in values.get("statuses", {}).items()
    ]
    return Report(values, [make_facts_grid(rows)], has_failed=failed)


def list_(*, ledger: Path, model: str | None, status: str | None, limit: int) -> Report:
    """The rows of the ledger: what was asked, and what came of it."""
    with Ledger(ledger, create=False) as book:
        total, matching, chosen = (
            len(book),
            0,
            deque[LedgerRow](maxlen=min(limit, sys.maxsize) or None),
        )
        for row in book.rows():
            if model in (None, row.request_values["model"]) and status in (
                None,
                row.answer_values["status"],
            ):
                matching += 1
                chosen.append(row)
    lines = [_brief(row) for row in chosen]
    heads = ("key", "model", "backend", "asked", *_ANSWERED)
    caption = f"{len(chosen)} of {matching} matching rows, {total} in {ledger}"
    cells = [[line["key"][:12], *(line[name] for name in heads[1:])] for line in lines]
    values = {"ledger": str(ledger), "rows_in_ledger": total, "matching": matching, "rows": lines}
    return Report(values, [make_table("Ledger", heads, cells, caption=caption)])


def _brief(row: LedgerRow) -> Values:
    request, answer = row.request_values, row.answer_values
    given = request["parameters"]
    words = ", ".join(f"{name} {given[name]}" for name in _ASKED if given.get(name) is not None)
    line = {
        "key": row.key,
        "model": request["model"],
        "backend": request["backend"],
        "asked": words,
    }
    return line | {name: answer.get(name) for name in (*_ANSWERED, "failure")}


def show(key: str, *, ledger: Path) -> Report:
    """Everything about one row: the request it is filed under, versions, options, and the answer."""
    with Ledger(ledger, create=False) as book:
        row = book.find(key)
    request, answer = row.request_values, row.answer_values
    lines = [("key", row.key), ("", "sha256 of the request; the answer's seal is intact")]
    lines += [(name, str(request[name])) for name in ("model", "backend")]
    for group in ("parameters", "options", "versions"):
        lines += [
            (f"{group[:-1]} {name}", str(value))
            for name, value in request[group].items()
            if value is not None
        ]
    lines += [
        (name.replace("_", " "), str(value)) for name, value in answer.items() if value is not None
    ]
    values = {"key": row.key, "request": request, "answer": answer, "seconds": row.seconds}
    return Report(values, [make_facts_grid([*lines, ("seconds", f"{row.seconds:.4g}")])])


def export(target: Path, *, ledger: Path, spec: Path | None, effort: bool) -> Report:
    """Write the rows as a flat table, sorted by request, with their provenance."""
    from workbench.sweeps.export import check_export_path
    from workbench.sweeps.export import export_ledger as write

    check_export_path(target)
    check_output_file(target, "export file")
    beside = target.with_name(target.name + ".json") if target.suffix.lower() == ".csv" else None
    inputs = {**_ledger_files(ledger), "specification": spec}
    require_distinct_files(inputs, {"export file": target, "provenance beside the export": beside})
    wanted = None
    if spec:
        from workbench.sweeps.specification import read_spec

        wanted = set(read_spec(spec).keys)
    with Ledger(ledger, create=False) as book:
        files, count = write(book, target, keys=wanted, effort=effort)
    missing = 0 if wanted is None else len(wanted) - count
    words = f"Wrote {count} rows to {' and '.join(file.name for file in files)}."
    words += f" {missing} points of the specification have no row yet." if missing else ""
    return Report(
        {"files": [str(file) for file in files], "rows": count, "missing": missing}, [words]
    )


def merge(sources: list[Path], *, ledger: Path, json: bool) -> Report:
    """Add the rows of other ledgers, such as another machine's, to one; a key that is there keeps its answer.

    Exit code 1 when two ledgers answer the same request differently: the keys are listed.
    """
    from workbench.sweeps.merge import MergeResult
    from workbench.sweeps.merge import merge_ledgers as run

    for source in sources:
        require_distinct_files(_ledger_files(source), _ledger_files(ledger))

    def work(tell: Progress) -> MergeResult:
        total = sum(map(_length, sources))
        return run(sources, ledger, lambda read: tell(read, total, "rows"))

    merged = run_with_progress(work, "merge", lines=not json)
    different = [{"key": key, "ledger": str(source)} for key, source in merged.different]
    words = [
        f"{merged.new} rows are new in {ledger}, {merged.equal} were there with the same answer."
    ]
    words += [
        f"{line['key'][:12]}: {line['ledger']} has another answer, which was not taken."
        for line in different
    ]
    values = {
        "ledger": str(ledger),
        "new": merged.new,
        "equal": merged.equal,
        "different": different,
    }
    return Report(values, words, has_failed=bool(different))


def _length(source: Path) -> int:
    with Ledger(source, create=False) as book:
        return len(book)
