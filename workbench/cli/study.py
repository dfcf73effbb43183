"""`workbench verify`, `reproduce`, `programs` and `doctor`: the models against closed forms, the papers, the library of
programs, this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from workbench.cli.console import Report, err, make_table, result_stream, run_with_progress
from workbench.cli.output_paths import check_output_folder

_GROUPS = ("solver", "oracle", "kind", "requests", "agree", "disagree", "worst", "exactly_private")
_GROUPS_CAPTION = """worst: largest |solver - oracle| (for a bound: largest excess beyond it).
exactly private: raw solver PMFs that meet the request in exact arithmetic."""
_LISTED = ("name", "kind", "rows", "columns", "nonzeros", "value", "model", "parameters")


def verify(**given: Any) -> Report:
    """Run the models against their closed forms on a grid; exit 1 when any answer disagrees."""
    from workbench.comparison.verify import VERIFICATION_COLUMNS, summarise_verification
    from workbench.comparison.verify import verify as run

    result = run_with_progress(lambda tell: run(**given, progress=tell), "verifying")
    bad = [row for row in result if row["agrees"] is False]
    groups = summarise_verification(result)

    def shown() -> Iterator[Any]:
        heads = [name.replace("_", " ") for name in _GROUPS]
        cells = [[group[name] for name in _GROUPS] for group in groups]
        yield make_table("Models against oracles", heads, cells, caption=_GROUPS_CAPTION)
        for row in bad:
            request = " ".join(
                f"{name}={value}" for name, value in row.items() if name not in VERIFICATION_COLUMNS
            )
            reason = row["failure"] or f"{row['objective']:.9g} against {row['oracle_value']:.9g}"
            where = f"{row['solver']} on {row['question']} {request}"
            err.print(f"disagrees: {where}: {reason}", soft_wrap=True)

    values = {
        "requests": len(result),
        "disagreements": len(bad),
        "summary": groups,
        "rows": result.rows,
        "interrupted": result.is_interrupted,
    }
    return Report(
        values, shown(), result.describe_interruption("requests are answered."), bool(bad)
    )


def reproduce(*, results: Path, format: list[str] | None, **given: Any) -> Report:
    """Regenerate the papers' figures and tables into results/, printed numbers beside ours."""
    from workbench.papers.reproduce import reproduce as run

    check_output_folder(results, "out")
    given |= {"results": results, "formats": format or ()}
    result = run(**given, progress=lambda done, total, line: err.print(line))
    surprises = [row for row in result if row["surprising"]]

    def shown() -> Iterator[str]:
        yield from result.sentences
        for row in surprises:
            difference = f"printed {row['printed']:g}, ours {row['ours']:.9g} ({row['verdict']})"
            yield f"unexpected: {row['place']}, {row['what']}: {difference}"
        if not result.is_interrupted:
            gallery = results / "README.md"
            yield f"Results are in {gallery} (gallery), with tables as CSV and figures as PNG, SVG and PDF beside it."

    values = {
        "results": str(results),
        "surprises": [f"{row['place']}: {row['what']}" for row in surprises],
        "interrupted": result.is_interrupted,
    }
    return Report(
        values, shown(), result.describe_interruption("artifacts are finished; these are kept.")
    )


def doctor(*, json: bool) -> None:
    """What is installed: whether that set is known to work, solvers and licences, extras, folders; exit 1 when bad."""
    from workbench.cli.doctor import doctor as run

    raise typer.Exit(run(json, result_stream()))


def list_programs(**given: Any) -> Report:
    """What is in the library: name, equation, size, parameters; the optimum, its bound and proof as once exported."""
    from workbench.comparison.library import list_library

    rows = list_library(**given)
    return Report(
        {"programs": rows},
        [
            make_table(
                f"{len(rows)} programs", _LISTED, [[row[head] for head in _LISTED] for row in rows]
            )
        ],
    )


def export_programs(folder: Path, **given: Any) -> Report:
    """Write programs as NAME.mps and NAME.json: what they are, value and bound of the optimum, point and dual."""
    from workbench.comparison.library import export_library as run

    def tell(done: int, total: int, what: str) -> None:
        if done % 10 == 0:
            err.print(f"[{done + 1}/{total}] {what}")

    check_output_folder(folder, "folder")
    rows = run(folder, **given, progress=tell)
    return Report(
        {"folder": str(folder), "programs": rows}, [f"Wrote {len(rows)} programs into {folder}."]
    )


def verify_programs(folder: Path) -> Report:
    """Decide every value, violation and dual bound of an exported folder again, in rationals, from the files alone."""
    from workbench.comparison.library import verify_folder

    rows = verify_folder(folder)
    wrong = [row["name"] for row in rows if row["holds"] is False]
    held = sum(row["holds"] is True for row in rows)
    words = f"{held} of {len(rows)} records hold, recomputed in rationals."
    shown = [words + "".join(f" {name} does NOT." for name in wrong)]
    return Report({"folder": str(folder), "programs": rows}, shown, has_failed=bool(wrong))
