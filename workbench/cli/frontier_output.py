"""What every frontier command does: run under a bar, write, report, keep what is finished on Ctrl-C."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.cli.bars import under_a_bar
from workbench.cli.console import emit_json, interrupted, out, table
from workbench.frontiers import run as frontiers

if TYPE_CHECKING:
    import pandas as pd

    from workbench.families.frontier_plan import Plan
    from workbench.io.result import Result

__all__ = ["best", "run_plan", "write_html"]


_REASONS = 3  # why rows have no value: so many reasons are shown, the most frequent first


def write_html(result: Result, path: Path | None) -> list[Path]:
    """The result as a page, where one is wanted and there are rows; the files written."""
    if path is None or not result.rows:
        return []
    from workbench.explorer.export import result_page, write_page

    write_page(path, result_page(result))
    return [path]


def run_plan(plan: Plan, folder: Path, json: bool, html: Path | None = None, jobs: int = 1) -> None:
    """Run, write, report; after Ctrl-C what is finished is written and said."""
    result = under_a_bar(lambda tell: frontiers.run(plan, tell, jobs))
    files = [*(result.save(folder) if result.rows else []), *write_html(result, html)]
    if json:
        emit_json(
            {
                "title": result.title,
                "rows": result.to_dict()["rows"],
                "files": [str(path) for path in files],
                "tasks": result.total,
                "finished": result.finished,
                "interrupted": result.interrupted,
            }
        )
    else:
        _report(result, files)
    if result.interrupted:
        kept = f"{len(result)} rows are in {files[0]}" if files else "nothing is written"
        interrupted(f"{result.finished} of {result.total} tasks are finished; {kept}.")


def _report(result: Result, files: list[Path]) -> None:
    """How many rows of what, what disagrees, and where it is."""
    if not result.rows:
        return
    rows = result.to_frame()
    groups = rows.groupby(["curve", "mechanism", "notion"], sort=False, dropna=False)
    cells = []
    for (curve, mechanism, notion), part in groups:
        agreement = part["oracle_agrees"].dropna()
        failed = int(part["objective"].isna().sum())
        agree = f"{int(agreement.sum())} of {len(agreement)}" if len(agreement) else "-"
        objective, bound = (part[name].astype(float) for name in ("objective", "bound"))  # of None alone: objects
        closed = objective - bound <= 1e-6 * objective.abs().clip(lower=1)
        proven = f"{int(closed.sum())} of {len(part)}" if part["bound"].notna().any() else "-"
        certified = int(part["certified"].eq(True).sum())
        mechanism, notion = (None if name != name else name for name in (mechanism, notion))  # of "failed": neither
        cells.append([curve, mechanism, notion, len(part), proven, certified or "-", agree, failed or "-"])
    heads = ["curve", "mechanism", "notion", "rows", "proven", "certified", "oracle agrees", "without a value"]
    out.print(table(result.title, heads, cells))
    bad = rows[rows["oracle_agrees"].eq(False)]
    for _, row in bad.iterrows():
        out.print(f"DISAGREES with {row['oracle']}: epsilon = {row['epsilon']:g}, delta = {row['delta']:g}")
    reasons = rows.loc[rows["objective"].isna() & rows["failure"].notna(), "failure"].value_counts()
    for reason, count in reasons.head(_REASONS).items():
        out.print(f"{count} without a value: {reason}", highlight=False, markup=False)
    if len(reasons) > _REASONS:
        out.print(f"{len(reasons) - _REASONS} more reasons are in the table's column failure.", highlight=False)
    names = sorted({path.stem for path in files if path.suffix == ".png"})
    where = files[0].parent
    plots = f", and {', '.join(names)} as PNG and SVG" if names else ""
    out.print(f"{len(rows)} rows in {result.seconds:.1f} s: {where / 'frontier.csv'}{plots}", highlight=False)


def best(budgets: pd.DataFrame) -> None:
    """The winners of every group, with the runner-up beside them; one table per group."""
    heads = ["ε", "δ", "bits", "best", "error", "no less than", "next"]
    for (task, group), rows in budgets.groupby(["task", "group"], sort=False):
        cells: list[list[Any]] = []
        for key, part in rows.groupby(["epsilon", "delta", "bits"], sort=False):
            fitting = part[part["fits"] & part["objective"].notna()]
            if fitting.empty:
                cells.append([*key, "none fits", None, None, ""])
                continue
            first, second = fitting.iloc[0], fitting.iloc[1] if len(fitting) > 1 else None
            proven = float(first["bound"]) if first["bound"] == first["bound"] else None
            rival = "" if second is None else f"{second['mechanism']} {second['objective']:.6g}"
            cells.append([*key, first["mechanism"], float(first["objective"]), proven, rival])
        out.print(table(f"{task}: {group}", heads, cells))
