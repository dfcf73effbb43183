"""The commands `verify`, `reproduce`, `programs` and `doctor`."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import typer

from workbench.cli.console import Report, err, make_table, result_stream, run_with_progress
from workbench.cli.output_paths import check_output_folder
from workbench.errors import must
from workbench.exact.objects import Record

_GROUP_COLUMNS = (
    "solver",
    "oracle",
    "kind",
    "requests",
    "agree",
    "disagree",
    "worst",
    "exactly_private",
)
# Heads of columns whose names, which programs read, are not plain.
_GROUP_HEADS = {"oracle": "known formula", "worst": "largest difference"}
_GROUP_CAPTION = (
    "largest difference: largest |optimum - known formula|, or largest excess beyond a bound.\n"
    "exactly private: answers of the solver, without repair, that are private at the requested "
    "budget in exact arithmetic."
)
_PROGRAM_COLUMNS = ("name", "kind", "rows", "columns", "nonzeros", "value", "model", "parameters")
_ARTIFACT_COLUMNS = ("paper", "artifact", "parameter", "type", "default", "meaning")
# Progress is printed for one program in this many.
_PROGRAMS_PER_MESSAGE = 10


def verify_models(**options: Any) -> Report:
    """Solve a fixed list of requests and compare the results with the known formulas.

    The list is a grid of sizes and budgets. The exit code is 1 if a result disagrees.

    Args:
        options: Keyword arguments of `workbench.comparison.verify.verify`: solvers, families and
            grid.
    """
    from workbench.comparison.verify import summarise_verification, verify

    result = run_with_progress(lambda report: verify(**options, progress=report), "verifying")
    disagreements = [row for row in result if row["agrees"] is False]
    groups = summarise_verification(result)
    heads = [_GROUP_HEADS.get(name, name.replace("_", " ")) for name in _GROUP_COLUMNS]
    cells = [[group[name] for name in _GROUP_COLUMNS] for group in groups]
    table = make_table("Models against known formulas", heads, cells, caption=_GROUP_CAPTION)
    for row in disagreements:
        err.print(f"disagrees: {_describe_disagreement(row)}", soft_wrap=True)

    values = {
        "requests": len(result),
        "disagreements": len(disagreements),
        "summary": groups,
        "rows": result.rows,
        "interrupted": result.is_interrupted,
    }
    interruption = result.describe_interruption("requests are answered.")
    return Report(values, parts=[table], stop_message=interruption, has_failed=bool(disagreements))


def _describe_disagreement(row: Any) -> str:
    """Return the request of a row, its objective and the value of its formula."""
    from workbench.comparison.verify import VERIFICATION_COLUMNS

    options = [f"{name}={value}" for name, value in row.items() if name not in VERIFICATION_COLUMNS]
    reason = row["failure"] or f"{row['objective']:.9g} against {row['oracle_value']:.9g}"
    return f"{row['solver']} on {row['question']} {' '.join(options)}: {reason}"


def reproduce_papers(
    *,
    results: Path | None,
    format: list[str] | None,
    assignments: list[str] | None,
    only_lists: bool,
    papers: list[str] | None,
    only: list[str] | None,
    **options: Any,
) -> Report:
    """Reproduce the figures and tables of the papers and compare the printed numbers.

    Args:
        results: Folder for the results.
        format: Additional formats.
        assignments: Parameters of the artifacts as NAME=VALUE.
        only_lists: Whether to list the artifacts with their parameters, and recompute nothing.
        papers: Names of papers.
        only: Names of figures and tables, errata or claims.
        options: Further keyword arguments of `workbench.papers.reproduce.reproduce`: full, jobs
            and dpi.
    """
    from workbench.papers.reproduce import RESULTS_FOLDER, reproduce

    if only_lists and assignments:
        must("set", "left out with --list", repr(assignments[0]))
    if only_lists:
        return _list_artifacts(papers, only)
    parameters = _read_assignments(assignments or ())
    if parameters and results is None:
        rule = "given with --set: results/ keeps the parameters of the papers"
        must("out", rule, "none")
    folder = results or RESULTS_FOLDER
    check_output_folder(folder, "out")
    result = reproduce(
        papers,
        only,
        folder,
        **options,
        formats=format or (),
        progress=lambda done, total, line: err.print(line),
        **parameters,
    )
    surprises = [row for row in result if row["surprising"]]

    def list_parts() -> Iterator[str]:
        """Yield the parts of the report."""
        yield from result.sentences
        for row in surprises:
            difference = f"printed {row['printed']:g}, ours {row['ours']:.9g} ({row['verdict']})"
            yield f"unexpected: {row['place']}, {row['what']}: {difference}"
        if not result.is_interrupted:
            gallery = folder / "README.md"
            yield (
                f"Results are in {gallery} (gallery), with tables as CSV and figures as PNG, SVG "
                "and PDF beside it."
            )

    values = {
        "results": str(folder),
        "surprises": [f"{row['place']}: {row['what']}" for row in surprises],
        "interrupted": result.is_interrupted,
    }
    interruption = result.describe_interruption("artifacts are finished; these are kept.")
    return Report(values, parts=list_parts(), stop_message=interruption)


def _read_assignments(texts: Iterable[str]) -> Record:
    """Return the values of --set by name. Raises InvalidRequest."""
    from workbench.papers.reproduce import reproduce

    parameters: Record = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not value.strip():
            must("set", "NAME=VALUE, such as n=16", repr(text))
        if name.strip() in inspect.signature(reproduce).parameters:
            must("set", "NAME=VALUE with a parameter that --list shows", repr(text))
        if name.strip() in parameters:
            must("set", "one value for each parameter", repr(text))
        parameters[name.strip()] = value.strip()
    return parameters


def _list_artifacts(papers: Any, only: Any) -> Report:
    """Return the table of the artifacts and their parameters."""
    from workbench.papers.reproduce import list_artifacts

    rows = list_artifacts(papers, only)
    cells = [[row[name] for name in _ARTIFACT_COLUMNS] for row in rows]
    caption = "Change a parameter with --only ARTIFACT --set PARAMETER=VALUE --out FOLDER."
    table = make_table("Figures and tables", _ARTIFACT_COLUMNS, cells, caption=caption)
    return Report({"artifacts": rows}, [table])


def doctor(*, json: bool) -> None:
    """Report what is installed: packages, solvers and licences, extras, folders.

    The exit code is 1 if the installation is bad.

    Args:
        json: Whether to print a JSON object.
    """
    from workbench.cli.doctor import doctor as run

    raise typer.Exit(run(json, result_stream()))


def list_programs(**options: Any) -> Report:
    """List the programs of the library with their size and their optimum.

    Args:
        options: Keyword arguments of `workbench.comparison.library.list_library`: patterns of
            names and the largest size.
    """
    from workbench.comparison.library import list_library

    rows = list_library(**options)
    cells = [[row[column] for column in _PROGRAM_COLUMNS] for row in rows]
    table = make_table(f"{len(rows)} programs", _PROGRAM_COLUMNS, cells)
    return Report({"programs": rows}, [table])


def export_programs(folder: Path, **options: Any) -> Report:
    """Write programs as NAME.mps and NAME.json, with optimum, bound, point and dual.

    Args:
        folder: Folder to write.
        options: Further keyword arguments of `workbench.comparison.library.export_library`:
            patterns of names, the largest size and the time limit.
    """
    from workbench.comparison.library import export_library

    def report(done: int, total: int, name: str) -> None:
        """Print a line before every few programs."""
        if done % _PROGRAMS_PER_MESSAGE == 0:
            err.print(f"[{done + 1}/{total}] {name}")

    check_output_folder(folder, "folder")
    rows = export_library(folder, **options, progress=report)
    sentence = f"Wrote {len(rows)} programs into {folder}."
    return Report({"folder": str(folder), "programs": rows}, [sentence])


def verify_programs(folder: Path) -> Report:
    """Verify an exported folder in rational arithmetic: values, violations and dual bounds.

    Args:
        folder: The folder.
    """
    from workbench.comparison.library import verify_folder

    rows = verify_folder(folder)
    false_names = [row["name"] for row in rows if row["holds"] is False]
    true_count = sum(row["holds"] is True for row in rows)
    sentence = f"{true_count} of {len(rows)} records hold, recomputed in rationals."
    for name in false_names:
        sentence += f" {name} does NOT."
    return Report(
        {"folder": str(folder), "programs": rows}, [sentence], has_failed=bool(false_names)
    )
