"""`workbench recommend`: which class of mechanisms for a query, with proven numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from workbench.cli.console import Json, emit_json, out, table
from workbench.cli.output_paths import output_files
from workbench.io.result import Result

__all__ = ["EXAMPLES", "recommend"]

EXAMPLES = """Examples:

  workbench recommend --answers 0..100 --max-shift 1 --epsilon 1 --delta 1e-5

  workbench recommend --answers 0..20 --max-shift 2 --epsilon 0.5 --cost absolute --prior worst --plot classes.png

  workbench recommend --answers 0..20 --max-shift 1 --epsilon 1 --delta 0.3 --baseline pmf.csv

  workbench recommend --answers red,green,blue --neighbours all --epsilon 1 --cost error-rate --json"""


def recommend(
    answers: Annotated[str, typer.Option("--answers", help="Answers of the query, as design channel takes them.")],
    epsilon: Annotated[str, typer.Option("--epsilon", help="Privacy budget > 0.")],
    max_shift: Annotated[str | None, typer.Option("--max-shift", help="Answers so far apart are neighbours.")] = None,
    neighbours: Annotated[str | None, typer.Option("--neighbours", help="all, consecutive or a CSV of pairs.")] = None,
    outputs: Annotated[str | None, typer.Option("--outputs", help="What may be published; the answers.")] = None,
    prior: Annotated[str, typer.Option("--prior", help="uniform, worst, weights or a CSV of them.")] = "uniform",
    cost: Annotated[str, typer.Option("--cost", help="squared, absolute, error-rate, ... or a CSV.")] = "squared",
    delta: Annotated[str, typer.Option("--delta", help="In [0, 1].")] = "0",
    notion: Annotated[str, typer.Option("--notion", help="dp, pure, pdp or metric.")] = "dp",
    baseline: Annotated[
        list[str] | None, typer.Option("--baseline", help="Your own: a CSV of noise,probability or a matrix.")
    ] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Write a picture (.png, .svg or .pdf).")] = None,
    json: Json = False,
) -> None:
    """Which class of mechanisms for a finite query: each at its best, with proven numbers, best first."""
    from workbench.comparison.recommend import recommend as recommended

    files = {"answers": answers, "neighbours": neighbours, "outputs": outputs, "prior": prior, "cost": cost}
    output_files(None, plot, files)
    files_given = {f"baseline {k}": path for k, path in enumerate(baseline or [])}
    output_files(None, plot, files_given)
    given: dict[str, Any] = {
        **files,
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
