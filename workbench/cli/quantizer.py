"""`workbench evaluate quantizer`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from workbench.cli.console import Json, emit_json, out, table

__all__ = ["EVALUATE_EXAMPLES", "evaluate_quantizer"]

EVALUATE_EXAMPLES = """Examples:

  workbench evaluate quantizer --mechanism rqm --bins=-2.7,-0.9,0.9,2.7 --q 0.22

  workbench evaluate quantizer --mechanism erm --bins=-5.1,-0.1,0.1,5.1 --gamma 0.026 --json

  workbench evaluate quantizer --mechanism pbm --levels 4 --epsilon 1"""

Bins = Annotated[str | None, typer.Option(help='Outputs, increasing: "--bins=-3,-0.5,0.5,3".')]
C = Annotated[str, typer.Option("--c", help="Inputs are in [-c, c].")]
Density = Annotated[str, typer.Option(help="Of the inputs: uniform, or normal:MU,SIGMA clipped to [-c, c].")]


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

    found = evaluation(
        mechanism, bins=bins, q=q, gamma=gamma, beta=beta, theta=theta, levels=levels, epsilon=epsilon, c=c,
        density=density,
    )  # fmt: skip
    if json:
        emit_json(found)
        return
    rows: list[list[Any]] = [
        ["outputs", ", ".join(f"{b:g}" for b in found["bins"])],
        ["exact epsilon", found["exact"]["epsilon"]],
        ["bias", found["exact"]["bias"]],
        ["MAE", found["mae"]],
        ["MAE (51 points)", found["mae_51"]],
        ["mean squared error", found["mse"]],
    ]
    names = {"epsilon": "published bound on epsilon", "error": "published bound on the error"}
    rows += [[names[key], value] for key, value in (found["bounds"] or {}).items()]
    out.print(table(f"{mechanism}, inputs {found['density']}", ["", ""], rows))
