"""`workbench evaluate mechanism` and `workbench evaluate quantizer`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from workbench.cli.console import Json, emit_json, out, table
from workbench.errors import InvalidRequest

__all__ = ["MECHANISM_EXAMPLES", "QUANTIZER_EXAMPLES", "evaluate_mechanism", "evaluate_quantizer"]

MECHANISM_EXAMPLES = """Examples:

  workbench evaluate mechanism noise.json --loss zero-one

  workbench evaluate mechanism law.json --data normal:0.5,0.1 --loss squared

  workbench evaluate mechanism labels.json --data column.csv --json    (one column of true inputs)"""

QUANTIZER_EXAMPLES = """Examples:

  workbench evaluate quantizer --mechanism rqm --bins=-2.7,-0.9,0.9,2.7 --q 0.22

  workbench evaluate quantizer --mechanism erm --bins=-5.1,-0.1,0.1,5.1 --gamma 0.026 --json

  workbench evaluate quantizer --mechanism pbm --levels 4 --epsilon 1"""

Bins = Annotated[str | None, typer.Option(help='Outputs, increasing: "--bins=-3,-0.5,0.5,3".')]
C = Annotated[str, typer.Option("--c", help="Inputs are in [-c, c].")]
Density = Annotated[str, typer.Option(help="Of the inputs: uniform, or normal:MU,SIGMA clipped to [-c, c].")]


def evaluate_mechanism(
    file: Annotated[Path, typer.Argument(help="A certificate or a mechanism, as the workbench writes them.")],
    loss: Annotated[
        str | None,
        typer.Option(help="absolute, squared, zero-one, pinball:τ or huber:h; real inputs: the first two."),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(help="CSV file with one column of inputs; on real inputs also uniform or normal:MU,SIGMA."),
    ] = None,
    json: Json = False,
) -> None:
    """Any mechanism file: its exact expected loss on data, on its worst input, and its exact pure epsilon."""
    from workbench.comparison.evaluate import evaluate
    from workbench.families.design import jsonable
    from workbench.privacy.loading import read

    contents = read(file)
    if not contents.relates:
        InvalidRequest.must("mechanism", "a file that says which inputs are neighbours", file.name)
    [row] = evaluate(contents.mechanism, loss=loss, data=data)
    if json:
        emit_json({"file": file.name} | {name: jsonable(value) for name, value in row.items()})
        return
    names = {"data": "data", "mean_error": f"mean {row['loss']} loss", "worst_error": "of the worst input",
             "worst_input": "worst input", "pure_epsilon": "exact pure epsilon"}  # fmt: skip
    out.print(table(row["mechanism"], ["", ""], [[words, row[name]] for name, words in names.items()]))


def evaluate_quantizer(
    mechanism: Annotated[str, typer.Option(help="rqm, erm, pbm, randomized-response or biased.")],
    bins: Bins = None,
    q: Annotated[str | None, typer.Option("--q", help="RQM's selection probability in [0, 1).")] = None,
    gamma: Annotated[str | None, typer.Option(help="ERM's γ.")] = None,
    beta: Annotated[str | None, typer.Option(help="Rate of the biased variant's exponential choice.")] = None,
    theta: Annotated[str | None, typer.Option(help="PBM's θ in (0, 1/2).")] = None,
    levels: Annotated[int | None, typer.Option(help="Outputs of PBM.")] = None,
    epsilon: Annotated[str | None, typer.Option(help="Of PBM (instead of --theta) and randomized-response.")] = None,
    density: Density = "uniform",
    c: C = "1",
    json: Json = False,
) -> None:
    """A published quantizer: its exact epsilon for every real input, its bias, its errors and its published bounds."""
    from workbench.families.quantizer.evaluate import evaluation

    values = evaluation(
        mechanism, bins=bins, q=q, gamma=gamma, beta=beta, theta=theta, levels=levels, epsilon=epsilon, c=c,
        density=density,
    )  # fmt: skip
    if json:
        emit_json(values)
        return
    rows: list[list[Any]] = [
        ["outputs", ", ".join(f"{b:g}" for b in values["bins"])],
        ["exact epsilon", values["exact"]["epsilon"]],
        ["bias", values["exact"]["bias"]],
        ["MAE", values["mae"]],
        ["MAE (51 points)", values["mae_51"]],
        ["mean squared error", values["mse"]],
    ]
    names = {"epsilon": "published bound on epsilon", "error": "published bound on the error"}
    rows += [[names[key], value] for key, value in (values["bounds"] or {}).items()]
    out.print(table(f"{mechanism}, inputs {values['density']}", ["", ""], rows))
