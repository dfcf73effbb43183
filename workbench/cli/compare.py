"""`workbench compare --suite ...`: every solver on the same programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workbench.cli.bars import under_a_bar
from workbench.cli.console import Json, emit_json, interrupted, table
from workbench.cli.console import out as stdout
from workbench.cli.output_paths import output_folder
from workbench.errors import InvalidRequest

if TYPE_CHECKING:
    import pandas as pd

    from workbench.io.result import Result

__all__ = ["EXAMPLES", "compare"]

EXAMPLES = """Examples:

  workbench compare --suite default

  workbench compare --suite small --solvers highs,gurobi,ortools:glop --time-limit 5

  workbench compare --suite default --instances "noise-milp-*,mvu-*" --out comparison --json

  workbench compare --programs FOLDER --out ranking   (MPS files of `workbench programs export`, or your own)

  workbench compare modulo --n 8 --max-shift 3 --epsilon 1.5   (one request instead of a suite)"""


def compare(
    context: typer.Context,
    suite: Annotated[str | None, typer.Option(help="default, small or library.")] = None,
    solvers: Annotated[str | None, typer.Option(help="Names from `workbench doctor`; every installed one.")] = None,
    instances: Annotated[str | None, typer.Option(help='Patterns of instance names: "noise-milp-*,mvu-*".')] = None,
    time_limit: Annotated[float, typer.Option(help="Seconds of one run.")] = 20.0,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the report; results/solver_comparison for all of default, else none."),
    ] = None,
    programs: Annotated[
        Path | None, typer.Option(help='A folder of MPS files instead, ours or yours; NAME.json: {"optimum": 1.5}.')
    ] = None,
    listing: Annotated[bool, typer.Option("--list", help="Only list the instances (of default).")] = False,
    json: Json = False,
) -> None:
    """Compare solvers: a family on one request, --suite on a versioned suite of programs of every model."""
    if context.invoked_subcommand is not None:
        if suite is not None:
            raise InvalidRequest(f"suite must be left out with {context.invoked_subcommand}. Got {suite!r}.")
        return
    if programs is not None:
        if suite is not None or listing:
            raise InvalidRequest("programs must be given without suite and list. Got both.")
        _programs(programs, solvers, instances, time_limit, out, json)
        return
    if suite is None and listing:
        suite = "default"
    if suite is None:
        if json:
            raise InvalidRequest("suite must be given with --json. Got none.")
        stdout.print(context.get_help(), highlight=False, markup=False)
        return

    from workbench.comparison.compare import compare_suite
    from workbench.families.programs import chosen

    if listing:
        _list(chosen(suite, instances), json)
        return
    whole = suite == "default" and solvers in (None, "all") and instances is None
    folder = Path("results/solver_comparison") if out is None and whole else out
    if folder is not None:
        chosen(suite, instances)  # what is wrong is refused before a folder is made
        output_folder(folder, "out")
    result = under_a_bar(
        lambda tell: compare_suite(suite, solvers, instances=instances, time_limit=time_limit, progress=tell)
    )
    if not result.rows:
        raise KeyboardInterrupt
    _report_suite(result, suite, time_limit, folder, json)


def _programs(
    folder: Path, solvers: str | None, instances: str | None, limit: float, out: Path | None, json: bool
) -> None:
    from workbench.comparison.compare import compare_programs

    if out is not None:
        output_folder(out, "out")
    result = under_a_bar(
        lambda tell: compare_programs(folder, solvers, instances=instances, time_limit=limit, progress=tell)
    )
    if not result.rows:
        raise KeyboardInterrupt
    _report_suite(result, f"{folder.name} (files)", limit, out, json)


def _list(taken: list[Any], json: bool) -> None:
    rows = [{"instance": instance.name, "model": instance.model} for instance in taken]
    if json:
        emit_json({"instances": rows})
    else:
        stdout.print(table(f"{len(rows)} instances", ["instance", "model"], [list(row.values()) for row in rows]))


def _report_suite(result: Result, suite: str, time_limit: float, folder: Path | None, json: bool) -> None:
    """Write what there is and report it; after Ctrl-C the finished runs."""
    from workbench.io.result import records
    from workbench.papers.reproduce import gallery
    from workbench.papers.solver_comparison import artifacts
    from workbench.papers.steps import write_artifact

    report = artifacts(result, suite, time_limit)
    if folder is not None:
        for artifact in report:
            write_artifact(artifact, folder)
        if folder.name in ("solver_comparison", "program_library") and (folder.parent / "README.md").exists():
            gallery(folder.parent)
    if json:
        runs = next(artifact.table for artifact in report if artifact.name == "performance_profile")
        emit_json(
            {
                "suite": suite,
                "summary": records(report[0].table),
                "runs": records(runs),
                "recommendations": list(result.sentences),
                "interrupted": result.interrupted,
            }
        )
    else:
        _report(report[0].table, suite)
        for sentence in result.sentences:
            stdout.print(sentence, highlight=False, markup=False)
        if folder is not None:
            stdout.print(f"{len(result)} runs: {folder}", highlight=False)
    if result.interrupted:
        place = f"in {folder}" if folder else "shown above"
        interrupted(f"{result.finished} of {result.total} runs are finished, {place}.")


def _short(value: float | None) -> str:
    return "-" if value is None or value != value else f"{value:.1g}"


def _report(results: pd.DataFrame, suite: str) -> None:
    """The table of solvers."""
    counts = ("private_as_returned", "certified")
    for kind, part in results.groupby("kind", sort=False):
        cells = [
            [
                r["solver"],
                f"{r['solved']} of {r['instances']}",
                f"{r['shifted_mean_seconds']:.3f}",
                f"{r['ratio']:.2f}",
                _short(r["worst_gap_to_best"]),
                _short(r["worst_residual"]),
                *(f"{r[name]} of {r['answers']}" if r["answers"] else "-" for name in counts),
                r["not_solved"],
            ]
            for _, r in part.iterrows()
        ]
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
