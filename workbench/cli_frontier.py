"""`workbench frontier ...`: trade-off curves as a table and plots."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from workbench.console import Json, emit_json, interrupted
from workbench.console import out as stdout
from workbench.errors import InvalidRequest
from workbench.frontier_console import best, progress, records, run_plan, writable
from workbench.grids import grid, whole_grid

__all__ = ["KINDS", "app"]

app = typer.Typer(
    help="Trade-offs between privacy and error: solver points, closed forms, baselines; CSV, PNG and SVG.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

_NOISE = """Examples:

  workbench frontier noise --n 8 --max-shift 3 --epsilon 0.1:4:40 --delta 0,1e-6,0.01,0.1 --notion pdp,dp

  workbench frontier noise --n 8 --shifts 1,2 --epsilon 0.1:4:20:log --delta 0:0.3:16 --cost squared --out trade

  workbench frontier noise --sizes 4x4 --shifts "0,1;1,0" --epsilon 0.5,1,2 --delta 0,0.05 --level 0.3,0.5 --json"""

Epsilon = Annotated[str, typer.Option(help='Grid: "0.1:4:40" (equal steps), "0.1:4:40:log", "0.5,1,2".')]
Out = Annotated[Path, typer.Option(help="Folder for frontier.csv and the plots; made when missing.")]


def noise(
    epsilon: Epsilon,
    n: Annotated[int | None, typer.Option("--n", help="Scalar query with answers 0..n.")] = None,
    sizes: Annotated[str | None, typer.Option(help='Vector query: orders of its coordinates, "5x5".')] = None,
    shifts: Annotated[
        str | None, typer.Option(help='How neighbouring answers differ: "1,2,3", for vectors "0,1;1,0".')
    ] = None,
    max_shift: Annotated[int | None, typer.Option(help="All differences 1..MAX_SHIFT (instead of --shifts).")] = None,
    directed: Annotated[bool, typer.Option("--directed", help="Only the given sign of the differences.")] = False,
    delta: Annotated[str, typer.Option(help="Grid of δ in [0, 1], as --epsilon.")] = "0",
    notion: Annotated[str, typer.Option(help="pdp, dp, pure; several separated by commas.")] = "pdp",
    cost: Annotated[
        str, typer.Option(help="error-rate, squared, eta-squared, circular-squared or worst-squared.")
    ] = "error-rate",
    level: Annotated[
        str, typer.Option(help="Errors for the level curves δ(ε), a grid; auto chooses four, none draws none.")
    ] = "auto",
    baselines: Annotated[bool, typer.Option(help="Published mechanisms at the same budgets.")] = True,
    solver: Annotated[str, typer.Option(help="A name from `workbench solvers`.")] = "highs",
    time_limit: Annotated[float | None, typer.Option(help="Seconds of one solve; then its interval counts.")] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="The solver's own answers, neither repaired nor certified.")
    ] = False,
    out: Out = Path("frontier-noise"),
    json: Json = False,
) -> None:
    """Error of optimal noise against ε and δ: certified points, exact breakpoints, level curves, baselines."""
    from workbench.cli_asked import asked_question

    question = asked_question(n, sizes, shifts, max_shift, directed)
    epsilons, deltas = grid(epsilon, "epsilon"), grid(delta, "delta")
    levels = {"auto": None, "none": []}[level] if level in ("auto", "none") else grid(level, "level")
    from workbench.frontier_noise import plan

    made = plan(
        question, epsilons, deltas, notions=_names(notion, "notion"), cost=cost, levels=levels, baselines=baselines,
        solver=solver, certify=not raw, time_limit=time_limit,
    )  # fmt: skip
    writable(out)
    run_plan(made, out, json)


_QUANTIZER = """Examples:

  workbench frontier quantizer --levels 2,3,4,8 --epsilon 0.5:3:6

  workbench frontier quantizer --levels 4 --epsilon 0.5:3:11 --method exact,mvu,optm --out quantizers --json"""


def quantizer(
    epsilon: Epsilon,
    levels: Annotated[str, typer.Option(help="Numbers of outputs, a grid of integers.")] = "2,4,8",
    method: Annotated[str, typer.Option(help="exact, optm, product, mvu; several separated by commas.")] = "exact",
    cost: Annotated[str, typer.Option(help="mae, mse, or a share of mae in [0, 1].")] = "mae",
    density: Annotated[
        str, typer.Option(help="Of the inputs: uniform, or normal:MU,SIGMA clipped to [-1, 1].")
    ] = "uniform",
    starts: Annotated[int, typer.Option(help="Starts of the search over outputs.", min=1, max=7)] = 2,
    baselines: Annotated[bool, typer.Option(help="RQM, PBM and Laplace at the same budgets.")] = True,
    solver: Annotated[str, typer.Option(help="A name from `workbench solvers`.")] = "highs",
    out: Out = Path("frontier-quantizer"),
    json: Json = False,
) -> None:
    """Error of unbiased private quantizers against ε and the number of outputs, beside RQM, PBM and Laplace."""
    from workbench import rooms

    rooms.check()
    from workbench.frontier_quantizer import plan

    made = plan(
        whole_grid(levels, "levels"), grid(epsilon, "epsilon"), methods=_names(method, "method"), cost=cost,
        density=density, starts=starts, baselines=baselines, solver=solver,
    )  # fmt: skip
    writable(out)
    run_plan(made, out, json)


_LABELS = """Examples:

  workbench frontier labels --prior 0..20 --epsilon 0.1:8:20:log

  workbench frontier labels --prior prior.csv --loss absolute --epsilon 0.5,1,2 --delta 0,0.01,0.1 --method bins,lp"""


def labels(
    prior: Annotated[str, typer.Option(help="CSV of labels and weights, or uniform:LOW..HIGH.")],
    epsilon: Epsilon,
    delta: Annotated[str, typer.Option(help="Grid of δ in [0, 1]; δ > 0 concerns the channel LP.")] = "0",
    loss: Annotated[
        str, typer.Option(help="squared, absolute, poisson, zero-one, ...: see design labels.")
    ] = "squared",
    method: Annotated[str, typer.Option(help="bins, printed, lp, unbiased; several separated by commas.")] = "bins,lp",
    baselines: Annotated[bool, typer.Option(help="Laplace, staircase and randomized responses.")] = True,
    solver: Annotated[str, typer.Option(help="A name from `workbench solvers`.")] = "highs",
    out: Out = Path("frontier-labels"),
    json: Json = False,
) -> None:
    """Loss of label randomizers against ε (and δ), beside noise and randomized response."""
    from workbench.mechanisms.labels import Labels

    question = Labels.parse(prior)
    from workbench import rooms

    rooms.check()
    from workbench.frontier_labels import plan

    made = plan(
        question, grid(epsilon, "epsilon"), grid(delta, "delta"), loss=loss, methods=_names(method, "method"),
        baselines=baselines, solver=solver,
    )  # fmt: skip
    writable(out)
    run_plan(made, out, json)


_LAPLACE = """Examples:

  workbench frontier laplace --epsilon 0.1:4:20 --bits 3,4,5,6,8

  workbench frontier laplace --epsilon 0.1:4:12:log --bits 4:10:4 --code delta --ell 1.1,2,10"""


def laplace(
    epsilon: Epsilon,
    bits: Annotated[str, typer.Option(help="Mean bits a scalar, a grid.")] = "3,4,5,6,8",
    code: Annotated[str, typer.Option(help="Signed Elias code of the integers: gamma or delta.")] = "gamma",
    ell: Annotated[str, typer.Option(help="Decoder relaxations of the level curves, a grid.")] = "1.05,1.2,1.5,2,4",
    out: Out = Path("frontier-laplace"),
    json: Json = False,
) -> None:
    """Privacy, error and bits of the dyadic quantized Laplace mechanism (ε per unit of |x - x'|)."""
    from workbench.frontier_laplace import plan

    made = plan(grid(epsilon, "epsilon"), grid(bits, "bits"), code=code, ells=grid(ell, "ell"))
    writable(out)
    run_plan(made, out, json)


_TABLE = """Examples:

  workbench frontier table --epsilon 0.5,1,2 --delta 0,0.01 --bits 2,4,6

  workbench frontier table --epsilon 1 --bits 1:4:4 --task value --json"""


def budgets(
    epsilon: Annotated[str, typer.Option(help='Grid: "0.5,1,2", "0.1:4:8".')] = "0.5,1,2",
    delta: Annotated[str, typer.Option(help="Grid of δ in [0, 1].")] = "0,0.01",
    bits: Annotated[str, typer.Option(help="Bits a message may have, a grid.")] = "2,4,6",
    task: Annotated[
        str, typer.Option(help="count, value, labels; several separated by commas.")
    ] = "count,value,labels",
    n: Annotated[int, typer.Option("--n", help="Of the count: answers 0..n.")] = 8,
    max_shift: Annotated[int, typer.Option(help="Of the count: how far neighbours differ.")] = 1,
    out: Out = Path("frontier-table"),
    json: Json = False,
) -> None:
    """Which mechanism for which budget: all that fit a task, their errors, the best of each comparable group."""
    from workbench import rooms

    rooms.check()
    from workbench.files import write_whole
    from workbench.frontier_table import budget_table, plan

    sizes = grid(bits, "bits")
    chosen = plan(
        grid(epsilon, "epsilon"), grid(delta, "delta"), sizes, tasks=_names(task, "task"), n=n, max_shift=max_shift
    )
    writable(out)
    outcome = progress(chosen)
    if not outcome.rows:
        raise KeyboardInterrupt
    made = budget_table(outcome.rows, sizes)
    path = out / "table.csv"
    write_whole(path, made.to_csv(index=False, float_format="%.12g", lineterminator="\n").encode())
    if json:
        emit_json({"rows": records(made), "files": [str(path)], "interrupted": outcome.interrupted})
    else:
        best(made)
        stdout.print(f"{len(made)} rows: {path}", highlight=False)
    if outcome.interrupted:
        interrupted(f"{outcome.finished} of {outcome.tasks} tasks are finished; these are in {path}.")


def _names(text: str, name: str) -> list[str]:
    found = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not found:
        InvalidRequest.must(name, "at least one name", repr(text))
    return found


# kind of frontier -> its command and examples; one line per kind
KINDS: dict[str, tuple[Callable[..., None], str]] = {
    "noise": (noise, _NOISE),
    "quantizer": (quantizer, _QUANTIZER),
    "labels": (labels, _LABELS),
    "laplace": (laplace, _LAPLACE),
    "table": (budgets, _TABLE),
}
for _name, (_command, _examples) in KINDS.items():
    app.command(_name, epilog=_examples)(_command)
