"""`workbench frontier FAMILY`, the same for every family, and `workbench frontier table`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from workbench.cli.bars import under_a_bar
from workbench.cli.console import Json, emit_json, epilog, interrupted
from workbench.cli.console import out as stdout
from workbench.cli.frontier_output import best, run_plan, write_html
from workbench.cli.options import command, given_values, keyword, parameter
from workbench.cli.output_paths import html_file, output_folder
from workbench.families.base import Family
from workbench.families.option import Option
from workbench.families.registry import families
from workbench.frontiers.run import frontier_of, plan_of, read
from workbench.io.files import distinct_files

__all__ = ["frontier_commands"]

_OUT = Annotated[Path, typer.Option("--out", help="Folder for frontier.csv and the plots; made when missing.")]
_HTML = Annotated[Path | None, typer.Option("--html", help="Write a page that needs no network as well.")]
_JOBS = Annotated[int, typer.Option("--jobs", min=1, max=1024, help="Processes of this machine.")]
_RAW = Annotated[bool, typer.Option("--raw", help="The solver's own answers, neither repaired nor certified.")]


def frontier_command(kind: Family) -> Callable[..., None]:
    """The command that draws the trade-offs of a family."""
    offered = frontier_of(kind)
    options = [option for option in offered.options if "command" in option.places]
    certifies = any(option.name == "certify" for option in offered.options)

    def run(*, out: Path, html: Path | None, json: bool, jobs: int, raw: bool = False, **given: Any) -> None:
        _keep_inputs(options, given, out)
        html_file(html, _inputs(options, given))
        values = read(options, given_values(given)) | {"certify": not raw}
        plan = plan_of(kind, None, values)
        output_folder(out, "out")
        run_plan(plan, out, json, html, jobs)

    parameters = [parameter(option) for option in options]
    parameters += [keyword("raw", _RAW, False)] if certifies else []
    parameters += [keyword("jobs", _JOBS, 1), keyword("out", _OUT, Path(f"frontier-{kind.name}"))]
    parameters += [keyword("html", _HTML, None)]
    parameters += [keyword("json", Json, False)]
    return command(run, parameters, offered.summary)


def _inputs(options: list[Option], given: dict[str, Any]) -> dict[str, Path | str | None]:
    """What may be the name of a file that is read."""
    return {
        option.command or option.name: given[option.name]
        for option in options
        if option.question and isinstance(given[option.name], (str, Path))
    }


def _keep_inputs(options: list[Option], given: dict[str, Any], out: Path) -> None:
    """Refuse a folder in which a file that is read may be replaced."""
    read_files = _inputs(options, given)
    for path in [out / "frontier.csv", *(path for ending in ("csv", "png", "svg") for path in out.glob(f"*.{ending}"))]:
        distinct_files(read_files, {"out": path})


def _budgets(*, out: Path, html: Path | None, json: bool, **given: Any) -> None:
    """Which mechanism for which budget: all that fit a task, their errors, the best of each comparable group."""
    from workbench.frontiers.budget_table import budget_table

    html_file(html, {})
    output_folder(out, "out")
    result = under_a_bar(lambda tell: budget_table(**given_values(given), progress=tell))
    if not result.rows:
        raise KeyboardInterrupt
    files = [*result.save(out / "table.csv"), *write_html(result, html)]
    if json:
        emit_json(
            {
                "rows": result.to_dict()["rows"],
                "files": [str(path) for path in files],
                "interrupted": result.interrupted,
            }
        )
    else:
        best(result.to_frame())
        stdout.print(f"{len(result)} rows: {files[0]}", highlight=False)
    if result.interrupted:
        interrupted(f"{result.finished} of {result.total} tasks are finished; these are in {files[0]}.")


def frontier_commands() -> list[tuple[str, Callable[..., None], str]]:
    """(name, function, epilog) of the command of every family that has a frontier, and of the budget table."""
    from workbench.frontiers.budget_table import options

    commands = [
        (kind.name, frontier_command(kind), epilog(frontier_of(kind).examples))
        for kind in families()
        if kind.frontier is not None
    ]
    parameters = [parameter(option) for option in options()]
    parameters += [keyword("out", _OUT, Path("frontier-table")), keyword("html", _HTML, None)]
    parameters += [keyword("json", Json, False)]
    examples = (
        "frontier table --epsilon 0.5,1,2 --delta 0,0.01 --bits 2,4,6",
        "frontier table --epsilon 1 --bits 1:4:4 --task value --json",
    )
    return [*commands, ("table", command(_budgets, parameters, str(_budgets.__doc__)), epilog(examples))]
