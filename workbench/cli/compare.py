"""`workbench compare`: every solver on the programs of a suite, or on one request of a family."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from workbench.cli.console import Report, err, make_table, run_with_progress
from workbench.cli.console import out as stdout
from workbench.cli.options import Examples, make_command, select_given
from workbench.cli.output_paths import check_output_folder
from workbench.errors import InvalidRequest
from workbench.exact.objects import Values

if TYPE_CHECKING:
    import pandas as pd

    from workbench.io.result import Result
    from workbench.pipeline.family import Family


_MORE = (" --solvers highs,gurobi,scip", " --solvers all --json")
_HEADS = {
    "solver": "solver",
    "status": "status",
    "objective": "objective",
    "bound": "bound",
    "residual": "residual",
    "pdp_delta": "PDP δ",
    "dp_delta": "DP δ",
    "pure_epsilon": "pure ε",
    "private": "private",
    "oracle_agrees": "agrees",
    "seconds": "seconds",
}
_CAPTION = "δ, ε and private are of the mechanism as returned, in exact arithmetic; agrees: with the closed form."
_ROUNDED_UP = ("pdp_delta", "dp_delta", "pure_epsilon")
_FORMATS = {"residual": ".1g", "seconds": ".3f"}
_SUITE = [
    "solver",
    "solved",
    "mean s",
    "ratio",
    "MB",
    "worst gap",
    "residual",
    "private",
    "certified",
    "not solved",
]


def compare(
    context: typer.Context,
    *,
    suite: str | None,
    out: Path | None,
    programs: Path | None,
    listing: bool,
    json: bool,
    **given: Any,
) -> Report | None:
    """Compare solvers: a family on one request, --suite on a versioned suite of programs of every model."""
    if context.invoked_subcommand:
        if suite is not None:
            raise InvalidRequest(
                f"suite must be left out with {context.invoked_subcommand}. Got {suite!r}."
            )
        return None
    suite = _suite_of(suite, programs, listing=listing, json=json)
    if suite is None and programs is None:
        stdout.print(context.get_help())
        return None

    from workbench.comparison.compare import compare_programs
    from workbench.pipeline.programs import select_instances

    taken = (
        [] if suite is None else select_instances(suite, given["instances"])
    )  # what is wrong is refused before a folder is made
    if listing:
        rows = [{"instance": instance.name, "model": instance.model} for instance in taken]
        cells = [[*row.values()] for row in rows]
        return Report(
            {"instances": rows},
            [make_table(f"{len(rows)} instances", ["instance", "model"], cells)],
        )
    if out:
        check_output_folder(out, "out")
    source = programs or str(suite)
    result = run_with_progress(lambda tell: compare_programs(source, **given, progress=tell))
    if not result.rows:
        raise KeyboardInterrupt
    report = _suite_report(
        result, suite or f"{Path(programs or '').name} (files)", given["time_limit"], out
    )
    if programs is None:
        return report
    return replace(report, parts=[_answers(result), *report.parts])


def _suite_of(suite: str | None, programs: Path | None, *, listing: bool, json: bool) -> str | None:
    """The suite that is run or listed, None where it is files or there is none. Raises InvalidRequest."""
    if programs is not None and (suite is not None or listing):
        raise InvalidRequest("programs must be given without suite and list. Got both.")
    if json and programs is None and suite is None and not listing:
        raise InvalidRequest("suite must be given with --json. Got none.")
    return "default" if listing and suite is None else suite


def _suite_report(result: Result, suite: str, time_limit: float, folder: Path | None) -> Report:
    """Write what there is and report it; after Ctrl-C the finished runs."""
    from workbench.comparison.report import summarise_runs
    from workbench.io.files import write_atomically
    from workbench.io.result import encode_csv_table, table_records

    solvers = summarise_runs(result.to_frame(), time_limit)
    if folder:
        result.save(folder)
        write_atomically(folder / "summary.csv", encode_csv_table(solvers))
    values = {
        "suite": suite,
        "summary": table_records(solvers),
        "runs": table_records(result.to_frame()),
        "recommendations": list(result.sentences),
        "interrupted": result.is_interrupted,
    }
    written = [f"{len(result)} runs: {folder}"] if folder else []
    place = f"in {folder}" if folder else "shown above"
    shown = [*_solvers(solvers, suite), *result.sentences, *written]
    return Report(values, shown, result.describe_interruption(f"runs are finished, {place}."))


def _answers(result: Result) -> Any:
    """The table of what every solver answered to every file."""
    heads = ["program", "solver", "status", "objective", "bound", "residual", "seconds"]
    cells = [
        [
            row["instance"],
            row["solver"],
            row["status"],
            *(
                None if row.get(name) is None else f"{row[name]:.9g}"
                for name in ("objective", "bound")
            ),
            _short(row.get("residual")),
            None if row.get("seconds") is None else f"{row['seconds']:.3f}",
        ]
        for row in result
    ]
    return make_table("Answers", heads, cells)


def _solvers(results: pd.DataFrame, suite: str) -> Iterator[Any]:
    """The tables of solvers, one for every kind of program."""
    for kind, part in results.groupby("kind", sort=False):
        cells = [
            [
                row["solver"],
                f"{row['solved']} of {row['instances']}",
                f"{row['shifted_mean_seconds']:.3f}",
                f"{row['ratio']:.2f}",
                "-" if row["most_peak_mb"] != row["most_peak_mb"] else f"{row['most_peak_mb']:.0f}",
                *(_short(row[name]) for name in ("worst_gap_to_best", "worst_residual")),
                *(
                    f"{row[name]} of {row['answers']}" if row["answers"] else "-"
                    for name in ("private_as_returned", "certified")
                ),
                row["not_solved"],
            ]
            for _, row in part.iterrows()
        ]
        yield make_table(f"{kind}s of suite {suite}", _SUITE, cells)


def _short(value: float | None) -> str:
    return "-" if value is None or value != value else f"{value:.1g}"


def compare_command(kind: Family) -> Examples | None:
    """The command of a family that asks a solver, with the examples of designing on several of them."""
    if all(option.name != "solver" for option in kind.options):
        return None
    from workbench.comparison.compare import TIME_LIMIT_SECONDS, compare_request, read_solver_names

    limit = TIME_LIMIT_SECONDS["request"]
    words = f"Seconds; {limit:g} by default for solvers that take a limit."
    options = [
        replace(option, help=words) if option.name == "time_limit" else option
        for option in kind.options_for("command")
        if option.name != "solver"
    ]

    def run(*, solvers: str, **given: Any) -> Report:
        names = read_solver_names(solvers)
        request = kind.make_request_from_values(
            kind.read_values(select_given(given), "command") | {"check": "audit"}
        )
        result = compare_request(
            request,
            names,
            limit=limit,
            progress=lambda done, total, solver: err.print(f"{solver} ..."),
        )
        if given.get("time_limit") is None:
            given["time_limit"] = limit
        values = _spelled(request.question, given, result)
        kept = result.describe_interruption("solvers have answered.")
        return Report(values, _rows(result), kept, all(row["objective"] is None for row in result))

    summary = f"One request of {kind.name} on several solvers: status, bound, exact privacy, and which one to use."
    stems = [line.replace("design", "compare", 1) for line in kind.design_examples]
    examples = [stem + more for stem, more in zip(stems, _MORE, strict=False)]
    return make_command("compare FAMILY", run, options, summary=summary), examples


def _spelled(question: Any, given: Values, result: Result) -> Values:
    """The request as it was given, and the rows."""
    return {
        **{name: str(value) if isinstance(value, Path) else value for name, value in given.items()},
        "question": question.to_dict() if hasattr(question, "to_dict") else repr(question),
        "rows": result.to_dict()["rows"],
        "recommendation": result.sentences[0],
        "interrupted": result.is_interrupted,
    }


def _rows(result: Result) -> Iterator[Any]:
    """The rows as a table, what went wrong in words, and which solver to use."""
    cells = [[_cell(name, row.get(name)) for name in _HEADS] for row in result]
    yield make_table(result.title, list(_HEADS.values()), cells, caption=_CAPTION)
    for row in result:
        if row["failure"]:
            name = "" if row["failure"].startswith(row["solver"]) else f"{row['solver']}: "
            yield f"{name}{row['failure']}"
    yield result.sentences[0]


def _cell(name: str, value: Any) -> Any:
    from workbench.pipeline.design import format_upper_bound

    if name in _ROUNDED_UP and value is not None:
        return format_upper_bound(value)
    return format(value, _FORMATS[name]) if name in _FORMATS and isinstance(value, float) else value
