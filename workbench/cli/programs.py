"""`workbench programs`: the library of linear and mixed-integer programs, as files for any solver."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from workbench.cli.console import Json, emit_json, err, out, table
from workbench.cli.output_paths import output_folder

__all__ = ["app"]

app = typer.Typer(help="The library of programs: every LP and MILP of the models as MPS files with known optima.")

Names = Annotated[str | None, typer.Option(help='Patterns of names: "noise-milp-*,mvu-*".')]
Most = Annotated[int | None, typer.Option(min=1, help="Only programs with at most so many non-zeros.")]
Folder = Annotated[Path, typer.Argument(metavar="FOLDER")]
TimeLimit = Annotated[float, typer.Option(min=0.001, help="Seconds of one solve.")]


@app.command(
    "list", epilog="Examples:\n\n  workbench programs list\n\n  workbench programs list --names 'mvu-*' --json"
)
def list_(names: Names = None, most: Most = None, json: Json = False) -> None:
    """What is in the library: name, equation, size, parameters."""
    from workbench.comparison.library import listing

    rows = listing(names, most)
    if json:
        emit_json({"programs": rows})
        return
    heads = ["name", "kind", "rows", "columns", "nonzeros", "model", "parameters"]
    out.print(table(f"{len(rows)} programs", heads, [[row[head] for head in heads] for row in rows]))


@app.command(epilog="Examples:\n\n  workbench programs export library\n\n  workbench programs export small --most 1000")
def export(
    folder: Folder, names: Names = None, most: Most = None, time_limit: TimeLimit = 60.0, json: Json = False
) -> None:
    """Write programs as NAME.mps and NAME.json: what they are, value and bound of the optimum, point and dual."""
    from workbench.comparison.library import export as run

    output_folder(folder, "folder")
    rows = run(folder, names, most, time_limit=time_limit, progress=_tell)
    if json:
        emit_json({"folder": str(folder), "programs": rows})
        return
    out.print(f"Wrote {len(rows)} programs into {folder}.", highlight=False, markup=False)


def _tell(done: int, total: int, what: str) -> None:
    if done % 10 == 0:
        err.print(f"[{done + 1}/{total}] {what}", highlight=False, markup=False)


@app.command(
    epilog="Examples:\n\n  workbench programs solve library/mvu-m4.mps --solver ortools:glop\n\n"
    "  workbench programs solve mine.mps --solver all --json"
)
def solve(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Named .mps or .mps.gz; ours or anybody's.")],
    solver: Annotated[str, typer.Option(help="Names from `workbench doctor`, or all.")] = "highs",
    time_limit: TimeLimit = 60.0,
    json: Json = False,
) -> None:
    """Solve a program from its file alone and compare with the optimum beside it; exit 1 where they disagree."""
    from workbench.comparison.compare import solver_names
    from workbench.comparison.library import solve_file

    rows = solve_file(file, solver_names(solver), time_limit)
    if json:
        emit_json({"file": str(file), "answers": rows})
    else:
        heads = ["solver", "status", "objective", "bound", "residual", "agrees", "seconds"]
        known = rows[0]["known_value"]
        caption = (
            "No optimum is known."
            if known is None
            else (f"The optimum is known to lie in [{rows[0]['known_bound']}, {known}].")
        )
        out.print(table(file.name, heads, [[row[head] for head in heads] for row in rows], caption=caption))
        for row in rows:
            if row["failure"]:
                out.print(row["failure"], highlight=False, markup=False)
    _exit(any(row["agrees"] is False for row in rows))


@app.command(epilog="Example:\n\n  workbench programs verify library")
def verify(folder: Folder, json: Json = False) -> None:
    """Decide every value, violation and dual bound of an exported folder again, in rationals, from the files alone."""
    from workbench.comparison.library import verify_folder

    rows = verify_folder(folder)
    wrong = [row["name"] for row in rows if row["holds"] is False]
    if json:
        emit_json({"folder": str(folder), "programs": rows})
    else:
        held = sum(row["holds"] is True for row in rows)
        words = f"{held} of {len(rows)} records hold, recomputed in rationals."
        out.print(words + "".join(f" {name} does NOT." for name in wrong), highlight=False, markup=False)
    _exit(bool(wrong))


def _exit(wrong: Any) -> None:
    if wrong:
        raise typer.Exit(1)
