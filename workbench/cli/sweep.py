"""`workbench sweep` and `workbench results`."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workbench.cli.console import Json, emit_json, err, facts, out, table
from workbench.errors import InvalidRequest, WorkbenchError
from workbench.io.files import distinct_files
from workbench.sweeps.ledger import DEFAULT, Ledger, Row

if TYPE_CHECKING:
    from workbench.sweeps.result import Outcome
    from workbench.sweeps.run import Progress

__all__ = ["SWEEP_EXAMPLES", "app", "sweep"]

SWEEP_EXAMPLES = """Examples:

  workbench sweep examples/sweeps/modulo.toml

  workbench sweep examples/sweeps/models.toml --jobs 2 --ledger mine.sqlite --json

  workbench sweep examples/sweeps/modulo.toml --dry-run

  workbench sweep examples/sweeps/modulo.toml --cluster tcp://head:8786   (extra "cluster")

Ctrl-C loses nothing: the same command goes on where it stopped."""

_LIST_EXAMPLES = """Examples:

  workbench results list

  workbench results list --status not_proven --model noise --json"""

_SHOW_EXAMPLES = "Examples:\n\n  workbench results show 3f9a1c"

_EXPORT_EXAMPLES = """Examples:

  workbench results export table.csv

  workbench results export table.parquet --spec examples/sweeps/modulo.toml   (extra "parquet")

  workbench results export rescued.csv --salvage   (what can be read of a damaged ledger)"""

app = typer.Typer(help="What sweeps found: the rows of the ledger, and their export.", no_args_is_help=True)

LedgerFile = Annotated[Path, typer.Option("--ledger", help="The ledger's SQLite file.")]


def sweep(
    spec: Annotated[Path, typer.Argument(metavar="SPEC.toml", help="The grids to sweep.")],
    ledger: LedgerFile = DEFAULT,
    jobs: Annotated[int | None, typer.Option(help="Processes of this machine; all its cores by default.")] = None,
    cluster: Annotated[str | None, typer.Option(help="A Dask scheduler instead, tcp://HOST:PORT.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check the specification and count; run nothing.")] = False,
    json: Json = False,
) -> None:
    """Answer every point of a grid of models, parameters, notions, costs and solvers, once; every answer is kept.

    A failed solve is a row with its status and its reason. Exit code 1 when workers died too often to finish.
    """

    from workbench.sweeps.run import sweep as run
    from workbench.sweeps.specification import read_spec

    distinct_files({"specification": spec}, _ledger_files(ledger))
    read = read_spec(spec)
    if dry_run:
        known = 0
        if ledger.exists():
            with Ledger(ledger, create=False) as book:
                known = len(book.known(read.keys))
        report = {"name": read.name, "points": len(read), "tasks": len(read.chunks), "known": known}
        _say(report, json)
        return
    try:
        with _watching(quiet=json) as progress:
            result = run(read, ledger, jobs=jobs, cluster=cluster, progress=progress)
    except KeyboardInterrupt:
        have = 0
        if ledger.exists():
            with Ledger(ledger, create=False) as book:
                have = len(book.known(read.keys))
        raise WorkbenchError(
            f"Interrupted; {have} of {len(read)} rows are in {ledger}, and the same command goes on from there."
        ) from None
    _say(result.outcome.to_dict(), json)
    if result.given_up:
        raise typer.Exit(1)


def _ledger_files(ledger: Path) -> dict[str, Path | str | None]:
    """The ledger and what SQLite keeps beside it."""
    names = {"ledger": "", "log of the ledger": "-wal", "index of the ledger's log": "-shm"}
    return {name: Path(f"{ledger}{ending}") for name, ending in names.items()}


def _say(report: dict[str, Any], json: bool) -> None:
    if json:
        emit_json(report)
        return
    rows = [(name.replace("_", " "), str(value)) for name, value in report.items() if name != "statuses"]
    rows += [(f"status {status}", str(number)) for status, number in report.get("statuses", {}).items()]
    out.print(facts(rows), highlight=False)


@contextmanager
def _watching(*, quiet: bool) -> Iterator[Progress]:
    """A bar with the time left on a terminal, a line every ten seconds elsewhere, on stderr."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    begin = last_shown = time.monotonic()
    columns = (
        TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("left"), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=err, transient=True, disable=quiet or not err.is_terminal) as bar:
        task = bar.add_task("sweep")

        def progress(outcome: Outcome) -> None:
            nonlocal last_shown
            failed = sum(n for status, n in outcome.statuses.items() if status not in ("claimed", "optimal", "found"))
            words = f"sweep, {failed} not optimal" if failed else "sweep"
            todo = outcome.points - outcome.known
            bar.update(task, total=todo, completed=outcome.solved, description=words)
            now = time.monotonic()
            if bar.disable and not quiet and now - last_shown > 10 and outcome.solved:
                last_shown, rest = now, (now - begin) / outcome.solved * outcome.left
                err.print(f"{words}: {outcome.solved} of {todo} points, about {rest:.0f} s left", highlight=False)

        yield progress


@app.command("list", epilog=_LIST_EXAMPLES)
def list_(
    ledger: LedgerFile = DEFAULT,
    model: Annotated[str | None, typer.Option(help="Only this model.")] = None,
    status: Annotated[str | None, typer.Option(help="Only this status, such as optimal or infeasible.")] = None,
    limit: Annotated[int, typer.Option(min=0, help="The last so many rows; 0 for all.")] = 20,
    json: Json = False,
) -> None:
    """The rows of the ledger: what was asked, and what came of it."""
    with Ledger(ledger, create=False) as book:
        total, matching, chosen = len(book), 0, deque[Row](maxlen=limit or None)
        for row in book.rows():
            if _wanted(row, model, status):
                matching += 1
                chosen.append(row)
    lines = [_brief(row) for row in chosen]
    if json:
        emit_json({"ledger": str(ledger), "rows_in_ledger": total, "matching": matching, "rows": lines})
        return
    heads = ["key", "model", "backend", "asked", "status", "objective", "bound", "audited", "private"]
    caption = f"{len(chosen)} of {matching} matching rows, {total} in {ledger}"
    cells = [[line["key"][:12], *(line[name] for name in heads[1:])] for line in lines]
    out.print(table("Ledger", heads, cells, caption=caption))


def _wanted(row: Row, model: str | None, status: str | None) -> bool:
    return model in (None, row.request_values["model"]) and status in (None, row.answer_values["status"])


def _brief(row: Row) -> dict[str, Any]:

    request, answer = row.request_values, row.answer_values
    names = ("sizes", "levels", "notion", "loss", "method", "bits", "epsilon", "delta", "max_loss")
    given = request["parameters"]
    words = ", ".join(f"{name} {given[name]}" for name in names if given.get(name) is not None)
    shown = {name: answer.get(name) for name in ("status", "objective", "bound", "audited", "private")}
    line = {"key": row.key, "model": request["model"], "backend": request["backend"], "asked": words}
    return line | shown | {"failure": answer.get("failure")}


@app.command(epilog=_SHOW_EXAMPLES)
def show(
    key: Annotated[str, typer.Argument(help="The beginning of a row's key.")],
    ledger: LedgerFile = DEFAULT,
    json: Json = False,
) -> None:
    """Everything about one row: the request it is filed under, versions, options, and the answer."""
    with Ledger(ledger, create=False) as book:
        row = book.find(key)
    if json:
        emit_json({"key": row.key, "request": row.request_values, "answer": row.answer_values, "seconds": row.seconds})
        return
    request = row.request_values
    lines = [("key", row.key), ("", "sha256 of the request; the answer's seal is intact")]
    lines += [(name, str(request[name])) for name in ("model", "backend")]
    for group in ("parameters", "options", "versions"):
        lines += [(f"{group[:-1]} {name}", str(value)) for name, value in request[group].items() if value is not None]
    lines += [(name.replace("_", " "), str(value)) for name, value in row.answer_values.items() if value is not None]
    out.print(facts([*lines, ("seconds", f"{row.seconds:.4g}")]), highlight=False, markup=False)


@app.command(epilog=_EXPORT_EXAMPLES)
def export(
    target: Annotated[Path, typer.Argument(metavar="FILE", help="Named .csv or .parquet.")],
    ledger: LedgerFile = DEFAULT,
    spec: Annotated[Path | None, typer.Option(help="Only the points of this specification.")] = None,
    effort: Annotated[bool, typer.Option("--effort", help="With a column of the seconds each row took.")] = False,
    salvage: Annotated[bool, typer.Option("--salvage", help="Of a damaged ledger: what can still be read.")] = False,
    json: Json = False,
) -> None:
    """Write the rows as a flat table, sorted by request, with their provenance."""
    from workbench.sweeps.export import export as write
    from workbench.sweeps.export import writable

    writable(target)
    if not target.absolute().parent.is_dir():
        InvalidRequest.must("output folder", "an existing folder", target.parent)
    beside = target.with_name(target.name + ".json") if target.suffix.lower() == ".csv" else None
    inputs = {**_ledger_files(ledger), "specification": spec}
    distinct_files(inputs, {"export file": target, "provenance beside the export": beside})
    wanted: set[str] | None = None
    if spec is not None:
        from workbench.sweeps.specification import read_spec

        wanted = set(read_spec(spec).keys)
    with TemporaryDirectory() as folder:
        source, lost = ledger, 0
        if salvage:
            source = Path(folder) / "salvaged.sqlite"
            lost = Ledger.salvage(ledger, source)
        with Ledger(source, create=False) as book:
            origin = {"ledger": str(ledger), "unreadable_rows": lost}
            files, count = write(book, target, keys=wanted, effort=effort, origin=origin)
    missing = 0 if wanted is None else len(wanted) - count
    report = {"files": [str(file) for file in files], "rows": count, "unreadable_rows": lost, "missing": missing}
    if json:
        emit_json(report)
        return
    words = f"Wrote {count} rows to {' and '.join(file.name for file in files)}."
    if lost:
        words += f" {lost} rows of the ledger cannot be read."
    if missing:
        words += f" {missing} points of the specification have no row yet."
    out.print(words, highlight=False, markup=False)
