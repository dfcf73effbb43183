"""`workbench compare noise`."""

from __future__ import annotations

from typing import Annotated, Any

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
)
from workbench.console import Json, emit_json, err, out, table
from workbench.errors import InvalidRequest

__all__ = ["COMPARE_EXAMPLES", "compare_noise"]

COMPARE_EXAMPLES = """Examples:

  workbench compare noise --n 8 --max-shift 3 --epsilon 1.5 --delta 0.1 --solvers highs,gurobi,scip

  workbench compare noise --n 40 --max-shift 3 --epsilon 1 --solvers highs,ortools:glop,cvxpy:clarabel --json"""


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
    request = asked_request(question, epsilon, delta, notion, cost, minimise, budget, prior, zero_mean, equal)
    request |= {"time_limit": time_limit, "gap": gap, "seed": seed, "method": method}
    from workbench.compare import compare_noise as run

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
    else:
        _report(f"{question!r}, {notion}", rows, "dp_delta" if notion == "dp" else "pdp_delta")
    if all(row["status"] == "failed" for row in rows):
        raise typer.Exit(1)


def _report(title: str, rows: list[dict[str, Any]], delta_key: str) -> None:
    """The rows as a table, and what went wrong in words."""
    from workbench.designing import upward

    short = {"residual": ".1g", "seconds": ".3f"}
    keys = ["solver", "status", "objective", "bound", "residual", delta_key, "pure_epsilon", "private", "agrees",
            "seconds"]  # fmt: skip
    heads = ["solver", "status", "objective", "bound", "residual", f"{delta_key[:-6].upper()} δ", "pure ε",
             "private", "agrees", "seconds"]  # fmt: skip
    cells = [
        [
            upward(row[k]) if k in (delta_key, "pure_epsilon") and row[k] is not None
            else format(row[k], short[k]) if k in short and isinstance(row[k], float) else row[k]
            for k in keys
        ]
        for row in rows
    ]  # fmt: skip
    caption = (
        "δ, ε and private are of the PMF as returned, in exact arithmetic (rounded up); agrees: with the closed form."
    )
    out.print(table(title, heads, cells, caption=caption))
    for row in rows:
        if row["error"]:
            name = "" if row["error"].startswith(row["solver"]) else f"{row['solver']}: "
            out.print(f"{name}{row['error']}", highlight=False, markup=False)
