"""The command `compare`: solvers on the programs of a suite, or on one request of a family."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from workbench.cli.console import Report, err, make_table, run_with_progress
from workbench.cli.console import out as stdout
from workbench.cli.options import Examples, list_input_files, make_command, select_given
from workbench.cli.output_paths import check_output_folder, check_outputs
from workbench.errors import InvalidRequest
from workbench.exact.objects import Values

if TYPE_CHECKING:
    import pandas as pd

    from workbench.io.result import Result
    from workbench.pipeline.family import Family


# Further options of the first two examples.
_EXAMPLE_OPTIONS = (" --solvers highs,gurobi,scip", " --solvers all --json")
# Heads of the table of one request, by column.
_REQUEST_HEADS = {
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
_REQUEST_CAPTION = (
    "δ, ε and private describe the mechanism as returned, in exact arithmetic. agrees: the "
    "objective agrees with the known formula."
)
_ROUNDED_UP_COLUMNS = ("pdp_delta", "dp_delta", "pure_epsilon")
_COLUMN_FORMATS = {"residual": ".1g", "seconds": ".3f"}
_SUITE_HEADS = [
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


def compare_suite(
    context: typer.Context,
    *,
    suite: str | None,
    out: Path | None,
    programs: Path | None,
    listing: bool,
    json: bool,
    **options: Any,
) -> Report | None:
    """Compare solvers on one request of a family, or on a versioned suite of programs (--suite).

    Args:
        context: Context of the command.
        suite: Name of the suite.
        out: Folder for the results.
        programs: MPS file, or folder of MPS files.
        listing: Whether to list the instances only.
        json: Whether to print a JSON object.
        options: Solvers, instances and limits.
    """
    if context.invoked_subcommand:
        if suite is not None:
            command = context.invoked_subcommand
            raise InvalidRequest(f"suite must be left out with {command}. Got {suite!r}.")
        return None
    suite = _select_suite(suite, programs, listing=listing, json=json)
    if suite is None and programs is None:
        stdout.print(context.get_help())
        return None

    from workbench.comparison.compare import compare_programs
    from workbench.pipeline.programs import select_instances

    # Wrong names are refused before a folder is made.
    instances = []
    if suite is not None:
        instances = select_instances(suite, options["instances"])
    if listing:
        rows = [{"instance": instance.name, "model": instance.model} for instance in instances]
        cells = [[*row.values()] for row in rows]
        table = make_table(f"{len(rows)} instances", ["instance", "model"], cells)
        return Report({"instances": rows}, [table])
    if out:
        check_output_folder(out, "out")
    source = programs or str(suite)
    result = run_with_progress(lambda report: compare_programs(source, **options, progress=report))
    if not result.rows:
        raise KeyboardInterrupt
    title = suite or f"{Path(programs or '').name} (files)"
    report = _report_suite(result, title, options["time_limit"], out)
    if programs is None:
        return report
    return replace(report, parts=[_make_answer_table(result), *report.parts])


def _select_suite(
    suite: str | None, programs: Path | None, *, listing: bool, json: bool
) -> str | None:
    """Return the suite to run or to list. None if files are given, or neither suite nor files.

    Raises InvalidRequest if the options contradict each other.
    """
    if programs is not None and (suite is not None or listing):
        raise InvalidRequest("programs must be given without suite and list. Got both.")
    if json and programs is None and suite is None and not listing:
        raise InvalidRequest("suite must be given with --json. Got none.")
    if listing and suite is None:
        return "default"
    return suite


def _report_suite(result: Result, suite: str, time_limit: float, folder: Path | None) -> Report:
    """Write the finished runs, and return their report."""
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
    parts = [*_list_solver_tables(solvers, suite), *result.sentences]
    place = "shown above"
    if folder:
        parts.append(f"{len(result)} runs: {folder}")
        place = f"in {folder}"
    stop_message = result.describe_interruption(f"runs are finished, {place}.")
    return Report(values, parts, stop_message=stop_message)


def _make_answer_table(result: Result) -> Any:
    """Make the table of the answer of every solver to every file."""
    heads = ["program", "solver", "status", "objective", "bound", "residual", "seconds"]
    return make_table("Answers", heads, [_make_answer_cells(row) for row in result])


def _make_answer_cells(row: Values) -> list[Any]:
    """Return the cells of the answer of one solver to one file."""
    return [
        row["instance"],
        row["solver"],
        row["status"],
        _format_or_none(row.get("objective"), ".9g"),
        _format_or_none(row.get("bound"), ".9g"),
        _format_magnitude(row.get("residual")),
        _format_or_none(row.get("seconds"), ".3f"),
    ]


def _format_or_none(value: float | None, spec: str) -> str | None:
    """Format a number, or return None."""
    if value is None:
        return None
    return format(value, spec)


def _list_solver_tables(results: pd.DataFrame, suite: str) -> Iterator[Any]:
    """Make the tables of solvers, one for every kind of program."""
    for kind, part in results.groupby("kind", sort=False):
        cells = [_make_solver_cells(row) for _, row in part.iterrows()]
        yield make_table(f"{kind}s of suite {suite}", _SUITE_HEADS, cells)


def _make_solver_cells(row: pd.Series) -> list[Any]:
    """Return the cells of one solver in the order of _SUITE_HEADS. A dash stands for no value."""
    peak_memory = "-"
    # NaN, which stands for an unknown memory, is not equal to itself.
    if row["most_peak_mb"] == row["most_peak_mb"]:
        peak_memory = f"{row['most_peak_mb']:.0f}"
    private = "-"
    certified = "-"
    answers = row["answers"]
    if answers:
        private = f"{row['private_as_returned']} of {answers}"
        certified = f"{row['certified']} of {answers}"
    return [
        row["solver"],
        f"{row['solved']} of {row['instances']}",
        f"{row['shifted_mean_seconds']:.3f}",
        f"{row['ratio']:.2f}",
        peak_memory,
        _format_magnitude(row["worst_gap_to_best"]),
        _format_magnitude(row["worst_residual"]),
        private,
        certified,
        row["not_solved"],
    ]


def _format_magnitude(value: float | None) -> str:
    """Format a number with one digit, and None or NaN as a dash."""
    if value is None or value != value:
        return "-"
    return f"{value:.1g}"


def compare_command(kind: Family) -> Examples | None:
    """Return the command that compares solvers on a request of a family, with its examples.

    Args:
        kind: The family. None is returned if it calls no solver.
    """
    if all(option.name != "solver" for option in kind.options):
        return None
    from workbench.comparison.compare import TIME_LIMIT_SECONDS, compare_request, read_solver_names

    limit = TIME_LIMIT_SECONDS["request"]
    time_limit_help = f"Time limit in seconds. Default: {limit:g}, for solvers that have a limit."
    options = []
    for option in kind.options_for("command"):
        if option.name == "time_limit":
            option = replace(option, help=time_limit_help)
        if option.name != "solver":
            options.append(option)

    def run(
        *, solvers: str, out: Path | None, plot: Path | None, width: str | None, **values: Any
    ) -> Report:
        names = read_solver_names(solvers)
        check_outputs(list_input_files(options, values), {"plot file": plot}, width)
        if out:
            check_output_folder(out, "out")
        exact_values = kind.read_values(select_given(values), "command")
        request = kind.make_request_from_values(exact_values | {"check": "audit"})
        result = compare_request(
            request,
            names,
            limit=limit,
            progress=lambda done, total, solver: err.print(f"{solver} ..."),
        )
        if values.get("time_limit") is None:
            values["time_limit"] = limit
        if out:
            result.save(out)
        if plot:
            result.plot(plot, width=width)
        is_unsolved = all(row["objective"] is None for row in result)
        interruption = result.describe_interruption("solvers have answered.")
        json_values = _request_to_json(request.question, values, result)
        return Report(
            json_values,
            _list_request_parts(result, has_pdp=request.claim.notion.quantity == "pdp_delta"),
            stop_message=interruption,
            has_failed=is_unsolved,
        )

    summary = (
        f"Compare solvers on one request of {kind.name}: status, bound, exact privacy, and which "
        "solver to use."
    )
    commands = [line.replace("design", "compare", 1) for line in kind.design_examples]
    pairs = zip(commands, _EXAMPLE_OPTIONS, strict=False)
    examples = [command + options_text for command, options_text in pairs]
    return make_command("compare FAMILY", run, options, summary=summary), examples


def _request_to_json(question: Any, values: Values, result: Result) -> Values:
    """Return the request as it was given, and the rows, for JSON."""
    given = {}
    for name, value in values.items():
        given[name] = str(value) if isinstance(value, Path) else value
    question_entry = repr(question)
    if hasattr(question, "to_dict"):
        question_entry = question.to_dict()
    return {
        **given,
        "question": question_entry,
        "rows": result.to_dict()["rows"],
        "recommendation": result.sentences[0],
        "interrupted": result.is_interrupted,
    }


def _list_request_parts(result: Result, *, has_pdp: bool) -> Iterator[Any]:
    """Yield the table of solvers, their failures, and the recommendation.

    The table has the δ of PDP only if the request asks for PDP (`has_pdp`).
    """
    heads = {**_REQUEST_HEADS}
    if not has_pdp:
        del heads["pdp_delta"]
    cells = [[_format_column(name, row.get(name)) for name in heads] for row in result]
    yield make_table(result.title, list(heads.values()), cells, caption=_REQUEST_CAPTION)
    for row in result:
        failure = row["failure"]
        if failure and failure.startswith(row["solver"]):
            yield failure
        elif failure:
            yield f"{row['solver']}: {failure}"
    yield result.sentences[0]


def _format_column(name: str, value: Any) -> Any:
    """Format a value of the table of one request."""
    from workbench.pipeline.design import format_upper_bound

    if name in _ROUNDED_UP_COLUMNS and value is not None:
        return format_upper_bound(value)
    if name in _COLUMN_FORMATS and isinstance(value, float):
        return format(value, _COLUMN_FORMATS[name])
    return value
