"""`workbench frontier FAMILY`, the same for every family."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.cli.console import Report, make_table, run_with_progress
from workbench.cli.options import Examples, list_input_files, make_command, select_given
from workbench.cli.output_paths import (
    check_output_file,
    check_output_folder,
    check_outputs,
    is_page,
)
from workbench.errors import must
from workbench.io.files import PICTURE_FORMATS, require_distinct_files
from workbench.io.result import RESULT_ENDINGS

if TYPE_CHECKING:
    import pandas as pd

    from workbench.io.result import Result
    from workbench.pipeline.family import Family


_REASONS = 3  # why rows have no value: so many reasons are shown, the most frequent first
_CLOSED = 1e-6  # gap of what counts as proven
_LEAST_SIZE = (
    1e-3  # Smaller objectives count as this part of the largest of their curve in that gap.
)
_HEADS = [
    "curve",
    "mechanism",
    "notion",
    "rows",
    "proven",
    "certified",
    "oracle agrees",
    "without a value",
]


def frontier_command(kind: Family) -> Examples | None:
    """The command that draws the trade-offs of a family; None of one that has no frontier."""
    if kind.frontier is None:
        return None
    from workbench.frontiers import run as frontiers
    from workbench.pipeline.option import read_options

    offered = frontiers.get_frontier(kind)
    options = [option for option in offered.options if "command" in option.places]
    certifies = any(option.name == "certify" for option in offered.options)

    def run(
        *,
        raw: bool = False,
        jobs: int,
        out: Path | None,
        html: Path | None,
        plot: Path | None,
        width: str | None,
        columns: str | None,
        **given: Any,
    ) -> Report:
        out = out or Path(f"frontier-{kind.name}")
        inputs = list_input_files([option for option in options if option.question], given)
        for path in [
            out / "frontier.csv",
            *(path for end in ("csv", *PICTURE_FORMATS) for path in out.glob(f"*.{end}")),
        ]:
            require_distinct_files(inputs, {"out": path})
        chosen = _columns(columns, out)
        check_outputs(
            inputs,
            {"html file": html, "plot file": plot, "out": out if is_page(out) else None},
            width,
        )
        plan = frontiers.make_frontier_plan(
            kind, None, read_options(options, select_given(given)) | {"certify": not raw}
        )
        if chosen_file := out.suffix.lower() in RESULT_ENDINGS and not out.is_dir():
            check_output_file(out, "out")
        if not is_page(out) and not chosen_file:
            check_output_folder(out, "out")
        result = run_with_progress(lambda tell: frontiers.run_frontier_plan(plan, tell, jobs))
        files = _written(
            result, out, [path for path in (out, html) if path and is_page(path)], chosen
        )
        if plot and files:
            result.plot(plot, width=width)
        more = {"title": result.title, "tasks": result.total, "finished": result.finished}
        kept = f"{len(result)} rows are in {files[0]}" if files else "nothing is written"
        more |= {"files": [*map(str, files)], "interrupted": result.is_interrupted}
        shown, stopped = (
            _report(result, files, chosen),
            result.describe_interruption(f"tasks are finished; {kept}."),
        )
        return Report(lambda: more | {"rows": result.to_dict()["rows"]}, shown, stopped)

    return make_command(
        "frontier", run, options, [] if certifies else ["raw"], offered.summary
    ), offered.examples


def _columns(columns: str | None, out: Path) -> list[str] | None:
    """The columns that are chosen for a table. Raises InvalidRequest, also for a file that no result can be."""
    ending = out.suffix.lower()
    if ending and not is_page(out) and not out.is_dir() and ending not in RESULT_ENDINGS:
        must("out", f"a folder, or a file named {', '.join(RESULT_ENDINGS)} or .html", out.name)
    if columns is None:
        return None
    if ending not in (".csv", ".tex"):
        must("columns", "given with --out FILE.csv or FILE.tex", out.name)
    chosen = [name.strip() for name in columns.split(",")]
    return (
        chosen if all(chosen) else must("columns", "names of columns, separated by commas", columns)
    )


def _written(
    result: Result, place: Path, pages: Sequence[Path], columns: Sequence[str] | None = None
) -> list[Path]:
    """What was written: the table and its plots unless the place is a page, and pages; nothing where there are no
    rows. Columns that no row has are left out."""
    if not result.rows:
        return []
    known = None if columns is None else [name for name in columns if name in result.to_frame()]
    files = [] if place in pages else result.save(place, columns=known)
    for page in pages:
        from workbench.explorer.page import build_result_page, write_page

        write_page(page, build_result_page(result))
    return [*files, *pages]


def _report(
    result: Result, files: Sequence[Path], columns: Sequence[str] | None = None
) -> Iterator[Any]:
    """How many rows of what, what disagrees, and where it is."""
    if not result.rows:
        return
    rows = result.to_frame()
    groups = rows.groupby(["curve", "mechanism", "notion"], sort=False, dropna=False)
    yield make_table(result.title, _HEADS, [_counts(key, part) for key, part in groups])
    yield from result.sentences
    for _, row in rows[rows["oracle_agrees"].eq(False)].iterrows():
        yield f"DISAGREES with {row['oracle']}: epsilon = {row['epsilon']:g}, delta = {row['delta']:g}"
    reasons = rows.loc[rows["objective"].isna() & rows["failure"].notna(), "failure"].value_counts()
    for reason, count in reasons.head(_REASONS).items():
        yield f"{count} without a value: {reason}"
    if "note" in rows:
        for (name, note), part in rows.groupby(["mechanism", "note"], sort=False):
            yield f"{name}, {len(part)} {'row' if len(part) == 1 else 'rows'}: {note}"
    if len(reasons) > _REASONS:
        yield f"Other reasons ({len(reasons) - _REASONS}) are in the table's column failure."
    rest = [name for name in columns or () if name not in rows]
    if rest:
        yield f"No row has the column {', '.join(rest)}. There are {', '.join(map(str, rows))}."
    names = sorted({path.stem for path in files if path.suffix == ".png"})
    plots = f", and {', '.join(names)} as PNG, SVG and PDF" if names else ""
    yield f"{len(rows)} rows in {result.seconds:.1f} s: {files[0]}{plots}"


def _counts(key: Any, part: pd.DataFrame) -> list[Any]:
    """One curve: how many rows, and how many of them are proven, certified, in agreement, without a value."""
    agreement, failed = part["oracle_agrees"].dropna(), int(part["objective"].isna().sum())
    agree = f"{int(agreement.sum())} of {len(agreement)}" if len(agreement) else "-"
    objective, bound = (
        part[name].astype(float) for name in ("objective", "bound")
    )  # of None alone: objects
    sizes = objective.abs()
    closed = objective - bound <= _CLOSED * sizes.clip(lower=_LEAST_SIZE * sizes.max())
    proven = f"{int(closed.sum())} of {len(part)}" if part["bound"].notna().any() else "-"
    certified = int(part["certified"].eq(True).sum())
    names = [
        None if name != name else name for name in key
    ]  # of "failed": neither mechanism nor notion
    return [*names, len(part), proven, certified or "-", agree, failed or "-"]
