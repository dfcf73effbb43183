"""`workbench design FAMILY`, the same for every family."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from workbench.cli.console import Json, emit_json, err, facts, one_line, out, table
from workbench.cli.options import command, files_of, parameter, values_of
from workbench.cli.output_paths import html_file, output_files
from workbench.families.base import Family
from workbench.families.design import Design

__all__ = ["design_command"]

_RAW = Annotated[bool, typer.Option("--raw", help="The solver's own answer, neither repaired nor certified.")]
_SAVE = Annotated[Path | None, typer.Option("--save", help="Write the certificate (with --raw: the bare mechanism).")]
_HTML = Annotated[Path | None, typer.Option("--html", help="Write a page that needs no network.")]
_PLOT = Annotated[Path | None, typer.Option("--plot", help="Write a picture of the mechanism (.png, .svg or .pdf).")]
_ALWAYS: list[tuple[str, Any, Any]] = [("html", _HTML, None), ("json", Json, False)]


def design_command(kind: Family) -> Callable[..., None]:
    """The command that designs a mechanism of a family."""

    def run(
        *,
        html: Path | None,
        json: bool,
        raw: bool = False,
        save: Path | None = None,
        plot: Path | None = None,
        **given: Any,
    ) -> None:
        output_files(save, plot, files_of(kind, given))
        html_file(html, {**files_of(kind, given), "saved file": save, "plot file": plot})
        more: dict[str, Any] = {"check": "audit" if raw else "certify"}
        if any(option.name == "progress" for option in kind.options):
            more["progress"] = lambda line: err.print(line, highlight=False, markup=False)
        with kind.open(kind.request_of(values_of(kind, given, **more))) as session:
            design = session.design()
        if save is not None:
            design.save(save)
        if plot is not None:
            design.plot(plot)
        if html is not None:
            from workbench.explorer.export import design_page, write_page

            write_page(html, design_page(design))
        if json:
            emit_json(design.to_dict())
        if design.status == "infeasible":
            sentence = dict(design.facts()).get("not reachable", "No design meets the request.")
            print(f"Infeasible: {one_line(sentence)}", file=sys.stderr)
            raise typer.Exit(2)
        if not json:
            _report(design)

    parameters = [parameter(option) for option in kind.given_in("command")]
    generic: list[tuple[str, Any, Any]] = [("raw", _RAW, False), ("save", _SAVE, None)] if kind.certifies else []
    generic += [("plot", _PLOT, None)] if kind.draws else []
    parameters += [_keyword(name, kind_, default) for name, kind_, default in [*generic, *_ALWAYS]]
    return command(run, parameters, kind.summary)


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _report(design: Design) -> None:
    kind = design.family
    out.print(kind.heading(design), style="bold")
    out.print(facts([fact for fact in design.facts() if fact[0] != "note"]))
    out.print()
    for title, heads, cells in kind.tables(design):
        out.print(table(title, heads, cells))
    for sentence in design.words:
        out.print(f"[yellow]note[/yellow] {escape(sentence)}", markup=True)
