"""`workbench design quantizer` and `workbench evaluate quantizer`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workbench.console import Json, emit_json, err, out, table
from workbench.errors import InvalidRequest

if TYPE_CHECKING:
    from workbench.design_quantizer import QuantizerDesign

__all__ = ["DESIGN_EXAMPLES", "EVALUATE_EXAMPLES", "design_quantizer", "evaluate_quantizer"]

DESIGN_EXAMPLES = """Examples:

  workbench design quantizer --bins=-3,-0.5,0.5,3 --epsilon 1

  workbench design quantizer --bins=-3,-0.5,0.5,3 --epsilon 1 --knots 41 --plot law.png

  workbench design quantizer --levels 4 --epsilon 1 --method exact --json

  workbench design quantizer --levels 4 --epsilon 1.5 --method mvu

  workbench design quantizer --bins=-4,0.2,0.6,4 --epsilon 1 --method optm --density normal:0.5,0.1"""

EVALUATE_EXAMPLES = """Examples:

  workbench evaluate quantizer --mechanism rqm --bins=-2.7,-0.9,0.9,2.7 --q 0.22

  workbench evaluate quantizer --mechanism erm --bins=-5.1,-0.1,0.1,5.1 --gamma 0.026 --json

  workbench evaluate quantizer --mechanism pbm --levels 4 --epsilon 1"""

Bins = Annotated[str | None, typer.Option(help='Outputs, increasing: "--bins=-3,-0.5,0.5,3".')]
Levels = Annotated[int | None, typer.Option(help="How many outputs to optimise, instead of --bins.")]
C = Annotated[str, typer.Option("--c", help="Inputs are in [-c, c].")]
Density = Annotated[str, typer.Option(help="Of the inputs: uniform, or normal:MU,SIGMA clipped to [-c, c].")]


def design_quantizer(
    epsilon: Annotated[str, typer.Option(help="Privacy budget > 0.")],
    bins: Bins = None,
    levels: Levels = None,
    method: Annotated[str, typer.Option(help="exact, optm, product or mvu.")] = "exact",
    knots: Annotated[
        int | None, typer.Option(help="Extra knots of the exact LP (0 with --bins, 41 with --levels).")
    ] = None,
    cost: Annotated[
        str | None, typer.Option(help="mae, mse, or a share of mae in [0, 1]; mae by default, mse for mvu.")
    ] = None,
    density: Density = "uniform",
    c: C = "1",
    metric: Annotated[
        str | None, typer.Option(help="absolute or squared: privacy in proportion to the inputs' distance.")
    ] = None,
    reach: Annotated[str | None, typer.Option(help="Largest output allowed with --levels.")] = None,
    inputs: Annotated[int | None, typer.Option(help="Points MVU dithers inputs to (as many as outputs).")] = None,
    starts: Annotated[int, typer.Option(help="Starts of the search over outputs.", min=1, max=7)] = 4,
    solver: Annotated[str, typer.Option(help="A name from `workbench solvers`.")] = "highs",
    time_limit: Annotated[float | None, typer.Option(help="Seconds of one linear program.")] = None,
    save: Annotated[Path | None, typer.Option(help="Write the mechanism and its design as JSON.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Write a picture of the output law (.png, .svg or .pdf).")] = None,
    json: Json = False,
) -> None:
    """The best unbiased private quantizer: given outputs or optimised ones, audited exactly for every real input."""
    if plot is not None and plot.suffix.lower() not in (".png", ".svg", ".pdf"):
        InvalidRequest.must("plot file", "named .png, .svg or .pdf", plot.name)
    for target in (save, plot):
        if target is not None and not target.absolute().parent.is_dir():
            InvalidRequest.must("output folder", "an existing folder", target.parent)
    from workbench import rooms

    rooms.check()
    from workbench.design_quantizer import design
    from workbench.mechanisms.quantization import Quantization

    question = Quantization(bins, levels=levels, c=c, density=density)
    made = design(
        question, epsilon=epsilon, method=method, knots=knots, cost=cost, metric=metric, reach=reach, inputs=inputs,
        starts=starts, solver=solver, time_limit=time_limit,
        progress=lambda line: err.print(line, highlight=False, markup=False),
    )  # fmt: skip
    if save is not None:
        _save(made, save)
    if plot is not None:
        from workbench.papers.reproduce import save_figure
        from workbench.quantizer_plots import law_plot

        save_figure(
            law_plot(made.mechanism, f"{made.request['method']} at ε = {float(made.request['epsilon']):g}"), plot
        )
    if json:
        emit_json(made.to_dict())
    else:
        _report(made)


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
    from workbench.evaluate_quantizer import evaluate

    found = evaluate(
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


def _save(made: QuantizerDesign, path: Path) -> None:
    import json as json_module

    from workbench.papers.reproduce import write_whole

    content = {
        "format": "dp-workbench quantizer",
        "version": 1,
        "mechanism": made.mechanism.to_dict(),
        "design": made.to_dict(),
        "note": "The design is what was claimed when this was written; only an audit of the mechanism proves anything.",
    }
    write_whole(path, (json_module.dumps(content, indent=1, allow_nan=False) + "\n").encode())


def _report(made: QuantizerDesign) -> None:
    r, law = made.to_dict(), made.oracle
    out.print(f"[bold]{made.question!r}[/bold]", highlight=False)
    bound = "none proven" if made.bound is None else f"{made.bound:.9g}"
    metric = "" if r["metric"] is None else f" ({r['metric']} metric)"
    rows: list[list[Any]] = [
        ["method", r["method"]],
        ["MAE", f"{r['mae']:.9g}"],
        ["MAE (51 points)", f"{r['mae_51']:.9g}"],
        ["mean squared error", f"{r['mse']:.9g}"],
        ["objective", f"{made.objective:.9g}"],
        ["bound on it", bound],
        ["solver", f"{r['solver']} {r['version']}, {r['status']}, {r['seconds']:.3f} s"],
        ["asked", f"epsilon = {r['epsilon']:g}{metric}"],
        ["exact epsilon", repr(r["exact"]["epsilon"])],
        ["exact bias", f"{r['exact']['bias']:.3g}"],
        ["as returned", "meets the request exactly" if made.private else "MISSES the request in exact arithmetic"],
    ]
    if law.value is not None:
        verdict = "agrees" if law.agrees else "DISAGREES"
        rows.append(["oracle", f"{law.name}: {law.value:.9g} ({law.kind}), {verdict}"])
    out.print(table("", ["", ""], rows))
    quantizer = made.mechanism
    shown = quantizer.law([-float(quantizer.c), 0.0, float(quantizer.c)])
    cells = [[float(b), *map(float, shown[:, i])] for i, b in enumerate(quantizer.outputs)]
    out.print(table("Output law", ["output", "p at x = -c", "p at x = 0", "p at x = c"], cells))
    for sentence in made.words:
        out.print(f"[yellow]note[/yellow] {sentence}", highlight=False)
