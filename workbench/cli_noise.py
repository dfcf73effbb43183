"""`workbench design noise`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workbench.cli_asked import (
    Budget,
    Cost,
    Delta,
    Directed,
    Epsilon,
    Equal,
    Gap,
    MaxShift,
    Method,
    Minimise,
    N,
    Notion,
    Prior,
    Seed,
    Shifts,
    Sizes,
    TimeLimit,
    ZeroMean,
    asked_question,
    asked_request,
    output_file,
)
from workbench.console import Json, emit_json, facts, out, table

if TYPE_CHECKING:
    from workbench.designing import Design

__all__ = ["DESIGN_EXAMPLES", "design_noise"]

DESIGN_EXAMPLES = """Examples:

  workbench design noise --n 8 --max-shift 3 --epsilon 1.5

  workbench design noise --n 8 --shifts 1,2,3 --directed --epsilon 1.5 --delta 0.1212 --plot pmf.png

  workbench design noise --sizes 5x5 --shifts "0,1;1,0" --epsilon 1 --delta 0.01 --notion dp --json

  workbench design noise --n 8 --max-shift 3 --epsilon 1.5 --minimise delta --budget 0.4425

  workbench design noise --n 8 --shifts 1,2 --epsilon "1=0.5,2=1" --cost squared --zero-mean"""


def design_noise(
    epsilon: Epsilon,
    n: N = None,
    sizes: Sizes = None,
    shifts: Shifts = None,
    max_shift: MaxShift = None,
    directed: Directed = False,
    delta: Delta = None,
    notion: Notion = "pdp",
    cost: Cost = "error-rate",
    minimise: Minimise = "error",
    budget: Budget = None,
    prior: Prior = None,
    zero_mean: ZeroMean = False,
    equal: Equal = None,
    solver: Annotated[str, typer.Option(help="A name from `workbench solvers`.")] = "highs",
    time_limit: TimeLimit = None,
    gap: Gap = None,
    seed: Seed = None,
    method: Method = "fast",
    save: Annotated[Path | None, typer.Option(help="Write the certificate (with --raw: the bare mechanism).")] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="The solver's own answer, neither repaired nor certified.")
    ] = False,
    plot: Annotated[Path | None, typer.Option(help="Write a picture of the PMF (.png, .svg or .pdf).")] = None,
    json: Json = False,
) -> None:
    """The best additive noise modulo a finite query domain, judged by its closed form and audited exactly."""
    if plot is not None:
        output_file(plot, "plot file", (".png", ".svg", ".pdf"))
    if save is not None:
        output_file(save, "saved file")
    question = asked_question(n, sizes, shifts, max_shift, directed)
    request = asked_request(question, epsilon, delta, notion, cost, minimise, budget, prior, zero_mean, equal)
    request |= {"time_limit": time_limit, "gap": gap, "seed": seed, "method": method}
    from workbench.design_noise import design

    made = design(question, solver=solver, certify=not raw, **request)
    if save is not None:
        _save(made, save)
    if plot is not None:
        _plot(made, plot)
    if json:
        emit_json(made.to_dict())
    else:
        _report(made)


def _save(made: Design, path: Path) -> None:
    """The certificate; or, with --raw, the bare mechanism, which claims nothing."""
    from workbench.privacy.certificate_file import save_certificate, save_mechanism

    if made.certificate is not None:
        save_certificate(made.certificate, path)
    else:
        save_mechanism(made.mechanism, path)


def _plot(made: Design, path: Path) -> None:
    from workbench.papers.reproduce import save_figure
    from workbench.plots import pmf_plot

    r = made.to_dict()
    relation = "directed" if made.question.directed else "symmetric"
    what = r["cost"] if r["minimise"] == "error" else "δ"
    title = f"{made.question!r}, {relation}\n{made.asked}: {what} {made.objective:.6g}"
    save_figure(pmf_plot(made.mechanism.pmf, made.question.sizes, title), path)


def _report(made: Design) -> None:
    r, law = made.to_dict(), made.oracle
    relation = "directed differences" if r["directed"] else "symmetric differences"
    out.print(f"[bold]{made.question!r}[/bold], {relation}", highlight=False)
    bound = "unknown" if made.bound is None else f"{made.bound:.9g} (gap {made.gap:.2g})"
    what = "delta" if r["minimise"] == "delta" else r["cost"]
    exact = made.exact_words
    rows = [
        (f"least {what}", f"{made.objective:.9g}"),
        ("proven bound", bound),
        ("solver", f"{r['solver']} {r['version']}, {r['status']}, {r['seconds']:.3f} s"),
        ("asked", made.asked),
        ("exact PDP delta", exact["pdp_delta"]),
        ("exact DP delta", exact["dp_delta"]),
        ("exact pure epsilon", exact["pure_epsilon"]),
        ("proof", made.proof),
    ]
    if law.value is None:
        rows.append(("oracle", f"none: {law.proof}"))
    else:
        verdict = "agrees" if law.agrees else "DISAGREES"
        rows.append(("oracle", f"{law.name}: {law.value:.9g} ({law.kind}), {verdict}, difference {law.difference:.2g}"))
        rows.append(("", law.proof))
    out.print(facts(rows), highlight=False)
    out.print()
    masses = made.mechanism.pmf
    heaviest = sorted(range(masses.size), key=lambda k: -masses[k])[:16] if masses.size > 24 else range(masses.size)
    cells = [[made.question.show(made.question.point(k)), float(masses[k])] for k in heaviest]
    title = "PMF" if masses.size <= 24 else f"PMF, the 16 heaviest of {masses.size} noise values"
    out.print(table(title, ["noise", "probability"], cells))
    for sentence in made.words:
        out.print(f"[yellow]note[/yellow] {sentence}", highlight=False)
