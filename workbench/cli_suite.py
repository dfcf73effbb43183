"""`workbench compare --suite ...`: every solver on the same programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workbench.console import Json, emit_json, err, interrupted, table
from workbench.console import out as stdout
from workbench.errors import InvalidRequest

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["EXAMPLES", "compare"]

EXAMPLES = """Examples:

  workbench compare --suite default

  workbench compare --suite small --solvers highs,gurobi,ortools:glop --time-limit 5

  workbench compare --suite default --instances "noise-milp-*,mvu-*" --out comparison --json

  workbench compare noise --n 8 --max-shift 3 --epsilon 1.5   (one request instead of a suite)"""


def compare(
    context: typer.Context,
    suite: Annotated[str | None, typer.Option(help="default, or small.")] = None,
    solvers: Annotated[str | None, typer.Option(help="Names from `workbench solvers`; all installed ones.")] = None,
    instances: Annotated[str | None, typer.Option(help='Patterns of instance names: "noise-milp-*,mvu-*".')] = None,
    time_limit: Annotated[float, typer.Option(help="Seconds of one run.")] = 20.0,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the report; results/solver_comparison for all of default, else none."),
    ] = None,
    listing: Annotated[bool, typer.Option("--list", help="Only list the instances.")] = False,
    json: Json = False,
) -> None:
    """Compare solvers: `noise` on one request, --suite on a versioned suite of programs of every model."""
    if context.invoked_subcommand is not None:
        if suite is not None:
            raise InvalidRequest(f"suite must be left out with {context.invoked_subcommand}. Got {suite!r}.")
        return
    if suite is None:
        if json:
            raise InvalidRequest("suite must be given with --json. Got none.")
        stdout.print(context.get_help(), highlight=False, markup=False)
        return
    from workbench import rooms

    rooms.check()
    from workbench.suite import chosen
    from workbench.suite_run import installed

    if not 0 < time_limit <= 86_400:
        InvalidRequest.must("time-limit", "seconds in (0, 86400]", time_limit)
    taken = chosen(suite, instances)
    if listing:
        _list(taken, json)
        return
    labels = installed(None if solvers is None else [name.strip() for name in solvers.split(",") if name.strip()])
    whole = suite == "default" and solvers is None and instances is None
    folder = Path("results/solver_comparison") if out is None and whole else out
    if folder is not None:
        from workbench.frontier_console import writable

        writable(folder)
    _run(taken, labels, suite, time_limit, folder, json)


def _list(taken: list[Any], json: bool) -> None:
    rows = [{"instance": one.name, "model": one.model} for one in taken]
    if json:
        emit_json({"instances": rows})
    else:
        stdout.print(table(f"{len(rows)} instances", ["instance", "model"], [list(row.values()) for row in rows]))


def _run(taken: list[Any], labels: list[str], suite: str, time_limit: float, folder: Path | None, json: bool) -> None:
    """Run, write what there is, report; after Ctrl-C the finished runs."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from workbench.suite_report import artifacts
    from workbench.suite_run import run_suite

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task("solving", total=len(taken) * len(labels))
        run = run_suite(
            taken, labels, time_limit=time_limit,
            progress=lambda done, total, what: bar.update(task, completed=done, description=what),
        )  # fmt: skip
    if all(row["status"] == "not applicable" for row in run.rows):  # nothing has run
        if run.interrupted:
            raise KeyboardInterrupt
        InvalidRequest.must("solvers", "some that can state one of the instances", ",".join(labels))
    made = artifacts(run, suite, time_limit)
    if folder is not None:
        from workbench.papers.reproduce import gallery, write_artifact

        for artifact in made:
            write_artifact(artifact, folder)
        if folder.name == "solver_comparison" and (folder.parent / "README.md").exists():
            gallery(folder.parent)
    if json:
        from workbench.frontier_console import records

        runs = next(artifact.table for artifact in made if artifact.name == "performance_profile")
        emit_json({"suite": suite, "summary": records(made[0].table), "runs": records(runs),
                   "interrupted": run.interrupted})  # fmt: skip
    else:
        _report(made[0].table, suite)
        if folder is not None:
            stdout.print(f"{len(run.rows)} runs: {folder}", highlight=False)
    if run.interrupted:
        interrupted(f"{len(run.rows)} of {run.total} runs are finished, {f'in {folder}' if folder else 'shown above'}.")


def _short(value: float | None) -> str:
    return "-" if value is None or value != value else f"{value:.1g}"


def _report(found: pd.DataFrame, suite: str) -> None:
    """The table of solvers."""
    for kind, part in found.groupby("kind", sort=False):
        cells = [
            [r["solver"], f"{r['solved']} of {r['instances']}", f"{r['shifted_mean_seconds']:.3f}", f"{r['ratio']:.2f}",
             _short(r["worst_gap_to_best"]), _short(r["worst_residual"]),
             f"{r['private_as_returned']} of {r['answers']}", f"{r['certified']} of {r['answers']}", r["not_solved"]]
            for _, r in part.iterrows()
        ]  # fmt: skip
        heads = [
            "solver",
            "solved",
            "mean s",
            "ratio",
            "worst gap",
            "residual",
            "private",
            "certified",
            "not solved",
        ]
        stdout.print(table(f"{kind}s of suite {suite}", heads, cells))
