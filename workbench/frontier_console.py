"""What every frontier command does: run under a bar, write, report, keep what is finished on Ctrl-C."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.console import emit_json, err, interrupted, out, table
from workbench.errors import InvalidRequest

if TYPE_CHECKING:
    import pandas as pd

    from workbench.frontier import Outcome, Plan

__all__ = ["best", "progress", "records", "run_plan", "writable"]

_REASONS = 3  # why rows have no value: so many reasons are shown, the most frequent first


def writable(path: Path) -> None:
    """Refuse a folder that cannot be written before anything is computed."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe = path / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        InvalidRequest.must("out", "a folder that can be written", f"{path}: {error.strerror}")


def progress(plan: Plan) -> Outcome:
    """Run a plan under a bar with the time that is left, on stderr."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from workbench.frontier import run

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task("solving", total=len(plan.tasks))
        return run(plan, lambda done, total: bar.update(task, completed=done))


def run_plan(plan: Plan, folder: Path, json: bool) -> None:
    """Run, write, report; after Ctrl-C what is finished is written and said."""
    from workbench.frontier import frame, write

    outcome = progress(plan)
    made = frame(outcome.rows)
    files = write(plan, made, folder) if outcome.rows else []
    if json:
        emit_json(
            {
                "title": plan.title, "rows": records(made), "files": [str(path) for path in files],
                "tasks": outcome.tasks, "finished": outcome.finished, "interrupted": outcome.interrupted,
            }
        )  # fmt: skip
    else:
        _report(plan, made, files, outcome.seconds)
    if outcome.interrupted:
        kept = f"{len(outcome.rows)} rows are in {folder / 'frontier.csv'}" if files else "nothing is written"
        interrupted(f"{outcome.finished} of {outcome.tasks} tasks are finished; {kept}.")


def records(made: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as strict JSON: no NaN, infinities as "inf"."""

    def plain(value: Any) -> Any:
        if isinstance(value, float) and not math.isfinite(value):
            return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
        return value.item() if hasattr(value, "item") else value

    rows = made.astype(object).where(made.notna(), None).to_dict("records")
    return [{str(key): plain(value) for key, value in row.items()} for row in rows]


def _report(plan: Plan, made: pd.DataFrame, files: list[Path], seconds: float) -> None:
    """How many rows of what, what disagrees, and where it is."""
    if made.empty:
        return
    groups = made.groupby(["curve", "mechanism", "notion"], sort=False, dropna=False)
    cells = []
    for (curve, mechanism, notion), part in groups:
        judged = part["oracle_agrees"].dropna()
        failed = int(part["objective"].isna().sum())
        agree = f"{int(judged.sum())} of {len(judged)}" if len(judged) else "-"
        closed = part["objective"] - part["bound"] <= 1e-6 * part["objective"].abs().clip(lower=1)
        proven = f"{int(closed.sum())} of {len(part)}" if part["bound"].notna().any() else "-"
        certified = int(part["certified"].eq(True).sum())
        mechanism, notion = (None if name != name else name for name in (mechanism, notion))  # of "failed": neither
        cells.append([curve, mechanism, notion, len(part), proven, certified or "-", agree, failed or "-"])
    heads = ["curve", "mechanism", "notion", "rows", "proven", "certified", "oracle agrees", "without a value"]
    out.print(table(plan.title, heads, cells))
    bad = made[made["oracle_agrees"].eq(False)]
    for _, row in bad.iterrows():
        out.print(f"DISAGREES with {row['oracle']}: epsilon = {row['epsilon']:g}, delta = {row['delta']:g}")
    reasons = made.loc[made["objective"].isna() & made["error"].notna(), "error"].value_counts()
    for reason, count in reasons.head(_REASONS).items():
        out.print(f"{count} without a value: {reason}", highlight=False, markup=False)
    if len(reasons) > _REASONS:
        out.print(f"{len(reasons) - _REASONS} more reasons are in the table's column error.", highlight=False)
    names = sorted({path.stem for path in files if path.suffix == ".png"})
    where = files[0].parent
    plots = f", and {', '.join(names)} as PNG and SVG" if names else ""
    out.print(f"{len(made)} rows in {seconds:.1f} s: {where / 'frontier.csv'}{plots}", highlight=False)


def best(made: pd.DataFrame) -> None:
    """The winners of every group, with the runner-up beside them; one table per group."""
    heads = ["ε", "δ", "bits", "best", "error", "no less than", "next"]
    for (task, group), rows in made.groupby(["task", "group"], sort=False):
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
