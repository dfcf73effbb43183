"""`workbench recommend`: which class of mechanisms for a query, with proven numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from workbench.cli.console import Json, emit_json, out, table
from workbench.cli.output_paths import html_file, output_files
from workbench.errors import InvalidRequest
from workbench.io.result import Result

__all__ = ["EXAMPLES", "recommend"]

EXAMPLES = """Examples:

  workbench recommend --answers 0..100 --max-shift 1 --epsilon 1 --delta 1e-5

  workbench recommend --answers 0..20 --max-shift 2 --epsilon 0.5 --loss absolute --prior worst --plot classes.png

  workbench recommend --answers 0..20 --max-shift 1 --epsilon 1 --delta 0.3 --baseline pmf.csv

  workbench recommend --range 0..200000 --epsilon 0.5 --delta 0.05 --loss absolute --html classes.html

  workbench recommend --answers red,green,blue --neighbours all --epsilon 1 --loss error-rate --json"""


def recommend(
    epsilon: Annotated[str, typer.Option("--epsilon", help="Privacy budget > 0.")],
    answers: Annotated[str | None, typer.Option("--answers", help="Answers, as design channel takes them.")] = None,
    real: Annotated[
        str | None, typer.Option("--range", help="Instead: real answers between two numbers, 0..200000.")
    ] = None,
    sensitivity: Annotated[
        str | None, typer.Option("--sensitivity", help="With --range: how far neighbours differ; all of it.")
    ] = None,
    max_shift: Annotated[str | None, typer.Option("--max-shift", help="Answers so far apart are neighbours.")] = None,
    neighbours: Annotated[str | None, typer.Option("--neighbours", help="all, consecutive or a CSV of pairs.")] = None,
    outputs: Annotated[str | None, typer.Option("--outputs", help="What may be published; the answers.")] = None,
    prior: Annotated[str, typer.Option("--prior", help="uniform, worst, weights or a CSV of them.")] = "uniform",
    loss: Annotated[str, typer.Option("--loss", help="squared, absolute, error-rate, ... or a CSV.")] = "squared",
    delta: Annotated[str, typer.Option("--delta", help="In [0, 1].")] = "0",
    notion: Annotated[str, typer.Option("--notion", help="dp, pure, pdp or metric.")] = "dp",
    baseline: Annotated[
        list[str] | None, typer.Option("--baseline", help="Your own: a CSV of noise,probability or a matrix.")
    ] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page that needs no network.")] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Write a picture (.png, .svg or .pdf).")] = None,
    json: Json = False,
) -> None:
    """Which class of mechanisms for a query: some, each at its best, with proven numbers, the least loss first."""
    from workbench.comparison.recommend import recommend as recommended

    files = {"answers": answers, "neighbours": neighbours, "outputs": outputs, "prior": prior, "loss": loss}
    output_files(None, plot, files)
    files_given = {f"baseline {k}": path for k, path in enumerate(baseline or [])}
    output_files(None, plot, files_given)
    html_file(html, {**files, **files_given})
    if (answers is None) == (real is None):
        raise InvalidRequest("The answers must be given by exactly one of answers and range.")
    given: dict[str, Any] = {
        **files,
        "range": real,
        "sensitivity": sensitivity,
        "baseline": baseline,
        "max_shift": max_shift,
        "epsilon": epsilon,
        "delta": delta,
        "notion": notion,
    }
    plain = {"prior": "uniform", "delta": "0"}  # need not be repeated in commands
    result = recommended(**{name: v for name, v in given.items() if v not in (None, plain.get(name))})
    if plot is not None:
        result.save(plot)
    from workbench.cli.frontier_output import write_html  # loads the families

    write_html(result, html)
    if json:
        emit_json(result.to_dict())
    else:
        _report(result)


def _report(result: Result) -> None:
    heads = ["class", "loss", "proven bound", "certified", "notes"]
    cells = [[row["class"], row["objective"], row["bound"], row["certified"], row["notes"]] for row in result]
    out.print(table(result.title, heads, cells))
    for row in result:
        if row["command"]:
            out.print(f"{row['class']}: {row['command']}", highlight=False, markup=False, soft_wrap=True)
    for sentence in result.sentences:
        out.print(sentence, highlight=False, markup=False)
