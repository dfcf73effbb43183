"""`workbench design noise` and `workbench compare noise`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workbench.console import Json, emit_json, err, facts, out, table
from workbench.errors import InvalidRequest
from workbench.mechanisms.modulo import ModuloNoise

if TYPE_CHECKING:
    from workbench.designing import Design

__all__ = ["COMPARE_EXAMPLES", "DESIGN_EXAMPLES", "asked_question", "compare_noise", "design_noise"]

DESIGN_EXAMPLES = """Examples:

  workbench design noise --n 8 --max-shift 3 --epsilon 1.5

  workbench design noise --n 8 --shifts 1,2,3 --directed --epsilon 1.5 --delta 0.1212 --plot pmf.png

  workbench design noise --sizes 5x5 --shifts "0,1;1,0" --epsilon 1 --delta 0.01 --notion dp --json

  workbench design noise --n 8 --max-shift 3 --epsilon 1.5 --minimise delta --budget 0.4425

  workbench design noise --n 8 --shifts 1,2 --epsilon "1=0.5,2=1" --cost squared --zero-mean"""

COMPARE_EXAMPLES = """Examples:

  workbench compare noise --n 8 --max-shift 3 --epsilon 1.5 --delta 0.1 --solvers highs,gurobi,scip

  workbench compare noise --n 40 --max-shift 3 --epsilon 1 --solvers highs,ortools:glop,cvxpy:clarabel --json"""

N = Annotated[int | None, typer.Option("--n", help="Scalar query with answers 0..n.")]
Sizes = Annotated[str | None, typer.Option(help='Vector query: orders of its coordinates, "5x5".')]
Shifts = Annotated[
    str | None, typer.Option(help='How neighbouring answers differ: "1,2,3", for vectors "0,1;1,0".')
]  # fmt: skip
MaxShift = Annotated[int | None, typer.Option(help="All differences 1..MAX_SHIFT (instead of --shifts).")]
Directed = Annotated[bool, typer.Option("--directed", help="Only the given sign of the differences, as the paper.")]
Epsilon = Annotated[str, typer.Option(help='Privacy budget > 0; "1=0.5,2=1" gives each difference its own.')]
Delta = Annotated[str | None, typer.Option(help="In [0, 1]; 0 by default. With --minimise delta: an upper limit.")]
Notion = Annotated[str, typer.Option(help="pdp, dp or pure.")]
Cost = Annotated[
    str,
    typer.Option(help="error-rate, squared, eta-squared, circular-squared, prior-squared or worst-squared."),
]
Minimise = Annotated[str, typer.Option(help="error, or delta for a given --budget.")]
Budget = Annotated[str | None, typer.Option(help="Largest cost allowed, with --minimise delta.")]
Prior = Annotated[Path | None, typer.Option(help="CSV with N probabilities of the true answer (cost prior-squared).")]
ZeroMean = Annotated[bool, typer.Option("--zero-mean", help="Require noise of mean zero.")]
Equal = Annotated[str | None, typer.Option(help='Require equal masses: "1=8,2=7" (row-major noise values).')]
TimeLimit = Annotated[float | None, typer.Option(help="Seconds.")]
Gap = Annotated[float | None, typer.Option(help="Relative MILP gap at which the solver may stop.")]
Seed = Annotated[int | None, typer.Option(help="Of the solver.")]
Method = Annotated[str, typer.Option(help="fast, or literal: PDP with delta > 0 as the printed MILP.")]


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
        _output(plot, "plot file", (".png", ".svg", ".pdf"))
    if save is not None:
        _output(save, "saved file")
    question = asked_question(n, sizes, shifts, max_shift, directed)
    request = _request(question, epsilon, delta, notion, cost, minimise, budget, prior, zero_mean, equal)
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


def compare_noise(
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
    solvers: Annotated[str, typer.Option(help="Names from `workbench solvers`, comma-separated.")] = "highs,gurobi",
    time_limit: TimeLimit = 60.0,
    gap: Gap = None,
    seed: Seed = None,
    method: Method = "fast",
    json: Json = False,
) -> None:
    """The same noise on several solvers: status, bound, residuals and exact privacy of each. A failure is a row."""
    question = asked_question(n, sizes, shifts, max_shift, directed)
    request = _request(question, epsilon, delta, notion, cost, minimise, budget, prior, zero_mean, equal)
    request |= {"time_limit": time_limit, "gap": gap, "seed": seed, "method": method}
    from workbench.compare import compare_noise as run
    from workbench.designing import upward

    names = [name.strip() for name in solvers.split(",") if name.strip()]
    if not names:
        InvalidRequest.must("solvers", "at least one name", repr(solvers))
    rows = run(question, names, progress=lambda line: err.print(line, highlight=False), **request)
    if json:
        asked = {
            "epsilon": epsilon,
            "delta": delta,
            "notion": notion,
            "cost": cost,
            "minimise": minimise,
            "budget": budget,
        }
        emit_json({"question": question.to_dict(), **asked, "rows": rows})
        if all(row["status"] == "failed" for row in rows):
            raise typer.Exit(1)
        return
    delta_key = "dp_delta" if notion == "dp" else "pdp_delta"
    short = {"residual": ".1g", "seconds": ".3f"}
    keys = ["solver", "status", "objective", "bound", "residual", delta_key, "pure_epsilon", "private", "agrees",
            "seconds"]  # fmt: skip
    heads = ["solver", "status", "objective", "bound", "residual", f"exact {delta_key[:-6]} δ", "exact pure ε",
             "private", "agrees", "seconds"]  # fmt: skip
    cells = [
        [
            upward(row[k]) if k in (delta_key, "pure_epsilon") and row[k] is not None
            else format(row[k], short[k]) if k in short and isinstance(row[k], float) else row[k]
            for k in keys
        ]
        for row in rows
    ]  # fmt: skip
    caption = "private: the PMF as returned meets the request in exact arithmetic; agrees: with the closed form."
    out.print(table(f"{question!r}, {notion}", heads, cells, caption=caption))
    for row in rows:
        if row["error"]:
            name = "" if row["error"].startswith(row["solver"]) else f"{row['solver']}: "
            out.print(f"{name}{row['error']}", highlight=False, markup=False)
    if all(row["status"] == "failed" for row in rows):
        raise typer.Exit(1)


def asked_question(
    n: int | None, sizes: str | None, shifts: str | None, max_shift: int | None, directed: bool
) -> ModuloNoise:
    """The question that the options of a noise command spell. Raises InvalidRequest."""
    orders = None if sizes is None else _integers(sizes.lower().replace("x", ","), "sizes")
    given: list[Any] | None = None
    if shifts is not None:
        if orders is not None and len(orders) > 1:
            given = [tuple(_integers(part, "shifts")) for part in shifts.split(";") if part.strip()]
        else:
            given = list(_integers(shifts.replace(";", ","), "shifts"))
    return ModuloNoise(n=n, sizes=orders, shifts=given, max_shift=max_shift, directed=directed)


def _output(path: Path, name: str, endings: tuple[str, ...] = ()) -> None:
    """Refuse a place that cannot be written before anything is computed."""
    if endings and path.suffix.lower() not in endings:
        InvalidRequest.must(name, f"named {', '.join(endings[:-1])} or {endings[-1]}", path.name)
    if not path.absolute().parent.is_dir():
        InvalidRequest.must("output folder", "an existing folder", path.parent)
    if path.is_dir():
        InvalidRequest.must(name, "a file", f"the folder {path.name}")


def _integers(text: str, name: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")] if text.strip() else []
    except ValueError:
        InvalidRequest.must(name, "integers", repr(text))


def _request(
    question: ModuloNoise,
    epsilon: str,
    delta: str | None,
    notion: str,
    cost: str,
    minimise: str,
    budget: str | None,
    prior: Path | None,
    zero_mean: bool,
    equal: str | None,
) -> dict[str, Any]:
    return {
        "epsilon": _epsilon(question, epsilon),
        "delta": delta,
        "notion": notion,
        "cost": cost,
        "minimise": minimise,
        "budget": budget,
        "prior": None if prior is None else _prior(prior),
        "constraints": _constraints(question, zero_mean, equal),
    }


def _epsilon(question: ModuloNoise, text: str) -> Any:
    if "=" not in text:
        return text
    budgets: dict[Any, str] = {}
    for part in text.split("," if question.scalar else ";"):
        shift, _, value = part.partition("=")
        key = tuple(_integers(shift, "epsilon's shift"))
        if key in budgets:
            raise InvalidRequest(f"epsilon must give each difference one budget. Got two for {shift.strip()}.")
        budgets[key] = value.strip()
    return budgets


def _prior(path: Path) -> list[float]:
    try:
        cells = path.read_text("utf-8").replace(",", "\n").split()
        return [float(cell) for cell in cells]
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise InvalidRequest(f"prior must be a readable file of probabilities. Got {path.name}: {error}.") from None


def _constraints(question: ModuloNoise, zero_mean: bool, equal: str | None) -> Any:
    if not zero_mean and equal is None:
        return None
    from workbench import rooms

    rooms.check()
    from models import noise

    makers = [noise.zero_mean(question.sizes)] if zero_mean else []
    if equal is not None:
        groups = [_integers(group.replace("=", ","), "equal") for group in equal.split(",")]
        flat = [k for group in groups for k in group]
        if any(len(group) < 2 for group in groups) or not all(0 <= k < question.order for k in flat):
            InvalidRequest.must("equal", f"groups of noise values in 0..{question.order - 1} such as 1=8", repr(equal))
        makers.append(noise.equal_masses(groups))
    return lambda f: [row for make in makers for row in make(f)]


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
