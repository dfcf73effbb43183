"""The command `frontier FAMILY`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.cli.console import Report, make_table, run_with_progress
from workbench.cli.options import Examples, list_input_files, make_command, select_given
from workbench.cli.output_paths import (
    Inputs,
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


# At most this many reasons for rows without a value are shown, the most frequent first.
_MAX_REASONS = 3
# A point whose relative gap between objective and bound is at most this counts as proven.
_PROVEN_GAP = 1e-6
# The gap of a small objective is relative to this share of the largest objective of its curve.
_MIN_RELATIVE_SIZE = 1e-3
_HEADS = [
    "curve",
    "mechanism",
    "notion",
    "rows",
    "proven",
    "certified",
    "formula agrees",
    "without a value",
]


def frontier_command(kind: Family) -> Examples | None:
    """Return the command that computes the frontier of a family, with its examples.

    Args:
        kind: The family. None is returned if it has no frontier.
    """
    if kind.frontier is None:
        return None
    from workbench.frontiers import run as frontiers
    from workbench.pipeline.option import read_options

    frontier = frontiers.get_frontier(kind)
    options = [option for option in frontier.options if "command" in option.places]
    certifies = any(option.name == "certify" for option in frontier.options)

    def run(
        *,
        raw: bool = False,
        jobs: int,
        out: Path | None,
        html: Path | None,
        plot: Path | None,
        width: str | None,
        columns: str | None,
        **values: Any,
    ) -> Report:
        out = out or Path(f"frontier-{kind.name}")
        inputs = list_input_files([option for option in options if option.question], values)
        _refuse_overwritten_inputs(inputs, out)
        column_names = _read_column_names(columns, out)
        outputs = {"html file": html, "plot file": plot}
        if is_page(out):
            outputs["out"] = out
        check_outputs(inputs, outputs, width)
        exact_values = read_options(options, select_given(values))
        plan = frontiers.make_frontier_plan(
            kind, question=None, values=exact_values | {"certify": not raw}
        )
        _check_out(out)
        result = run_with_progress(lambda report: frontiers.run_frontier_plan(plan, report, jobs))
        pages = [path for path in (out, html) if path and is_page(path)]
        earlier_files = _list_earlier_files(out)
        files = _write_files(result, out, pages, column_names)
        if plot and files:
            result.plot(plot, width=width)
        entries = {
            "title": result.title,
            "tasks": result.total,
            "finished": result.finished,
            "files": [*map(str, files)],
            "interrupted": result.is_interrupted,
        }
        place = "nothing is written"
        if files:
            place = f"{len(result)} rows are in {files[0]}"
        return Report(
            lambda: entries | {"rows": result.to_dict()["rows"]},
            chain(
                _list_frontier_parts(result, files, column_names),
                _describe_earlier_files(out, earlier_files, files),
            ),
            result.describe_interruption(f"tasks are finished; {place}."),
        )

    without = [] if certifies else ["raw"]
    command = make_command("frontier", run, options, without=without, summary=frontier.summary)
    return command, frontier.examples


def _refuse_overwritten_inputs(inputs: Inputs, out: Path) -> None:
    """Raise InvalidRequest if an input is a file that the results replace."""
    paths = [out / "frontier.csv"]
    for ending in ("csv", *PICTURE_FORMATS):
        paths += out.glob(f"*.{ending}")
    for path in paths:
        require_distinct_files(inputs, {"out": path})


def _list_earlier_files(out: Path) -> list[Path]:
    """Return the table and the plots of an earlier frontier in a folder, or none."""
    table = out / "frontier.csv"
    if not table.exists():
        return []
    pictures = [path for ending in PICTURE_FORMATS for path in sorted(out.glob(f"*.{ending}"))]
    return [table, *pictures]


def _describe_earlier_files(
    out: Path, earlier_files: Sequence[Path], files: Sequence[Path]
) -> Iterator[str]:
    """Yield a sentence if files of an earlier frontier were replaced or remain.

    Args:
        out: The folder.
        earlier_files: Files that were in the folder before.
        files: Files that are written now.
    """
    if not earlier_files or not files:
        return
    sentence = f"The folder {out} contained an earlier frontier, which is replaced."
    remaining_plots = sorted({path.stem for path in earlier_files if path not in files})
    if remaining_plots:
        sentence += f" These plots in it are not of this frontier: {', '.join(remaining_plots)}."
    yield sentence


def _check_out(out: Path) -> None:
    """Raise InvalidRequest if the file or folder of the results cannot be written."""
    if out.suffix.lower() in RESULT_ENDINGS and not out.is_dir():
        check_output_file(out, "out")
    elif not is_page(out):
        check_output_folder(out, "out")


def _read_column_names(columns: str | None, out: Path) -> list[str] | None:
    """Return the names of the columns to write, or None for all columns.

    Raises InvalidRequest, also if `out` has an unknown ending.
    """
    ending = out.suffix.lower()
    if ending and not is_page(out) and not out.is_dir() and ending not in RESULT_ENDINGS:
        must("out", f"a folder, or a file named {', '.join(RESULT_ENDINGS)} or .html", out.name)
    if columns is None:
        return None
    if ending not in (".csv", ".tex"):
        must("columns", "given with --out FILE.csv or FILE.tex", out.name)
    names = [name.strip() for name in columns.split(",")]
    if not all(names):
        must("columns", "names of columns, separated by commas", columns)
    return names


def _write_files(
    result: Result, place: Path, pages: Sequence[Path], columns: Sequence[str] | None = None
) -> list[Path]:
    """Write the results, and return the files. Nothing is written if there are no rows.

    Args:
        result: The frontier.
        place: File or folder of the table and its plots, unless it is one of the pages.
        pages: HTML files to write.
        columns: Names of the columns of the table. Those that no row has are left out. None: all.
    """
    if not result.rows:
        return []
    present_columns = columns
    if columns is not None:
        present_columns = [name for name in columns if name in result.to_frame()]
    files: list[Path] = []
    if place not in pages:
        files += result.save(place, columns=present_columns)
    for page in pages:
        from workbench.explorer.page import build_result_page, write_page

        write_page(page, build_result_page(result))
    return [*files, *pages]


def _list_frontier_parts(
    result: Result, files: Sequence[Path], columns: Sequence[str] | None = None
) -> Iterator[Any]:
    """Yield the table of curves, disagreements, reasons without a value, notes, and the files."""
    if not result.rows:
        return
    rows = result.to_frame()
    groups = rows.groupby(["curve", "mechanism", "notion"], sort=False, dropna=False)
    yield make_table(result.title, _HEADS, [_make_curve_cells(key, part) for key, part in groups])
    yield from result.sentences
    for _, row in rows[rows["oracle_agrees"].eq(False)].iterrows():
        budget = f"epsilon = {row['epsilon']:g}, delta = {row['delta']:g}"
        yield f"DISAGREES with {row['oracle']}: {budget}"
    has_reason = rows["objective"].isna() & rows["failure"].notna()
    reasons = rows.loc[has_reason, "failure"].value_counts()
    for reason, count in reasons.head(_MAX_REASONS).items():
        yield f"{count} without a value: {reason}"
    if "note" in rows:
        for (name, note), part in rows.groupby(["mechanism", "note"], sort=False):
            plural = "" if len(part) == 1 else "s"
            yield f"{name}, {len(part)} row{plural}: {note}"
    if len(reasons) > _MAX_REASONS:
        other_count = len(reasons) - _MAX_REASONS
        yield f"Other reasons ({other_count}) are in the table's column failure."
    missing_columns = [name for name in columns or () if name not in rows]
    if missing_columns:
        names = ", ".join(map(str, rows))
        yield f"No row has the column {', '.join(missing_columns)}. There are {names}."
    plot_names = sorted({path.stem for path in files if path.suffix == ".png"})
    plots = ""
    if plot_names:
        plots = f", and {', '.join(plot_names)} as PNG, SVG and PDF"
    yield f"{len(rows)} rows in {result.seconds:.1f} s: {files[0]}{plots}"


def _make_curve_cells(key: Any, part: pd.DataFrame) -> list[Any]:
    """Return the cells of one curve in the order of _HEADS.

    Args:
        key: Names of the curve, the mechanism and the notion.
        part: Rows of the curve.
    """
    agreement = part["oracle_agrees"].dropna()
    failed_count = int(part["objective"].isna().sum())
    # A column that contains only None has the type object.
    objective = part["objective"].astype(float)
    bound = part["bound"].astype(float)
    sizes = objective.abs()
    is_proven = objective - bound <= _PROVEN_GAP * sizes.clip(
        lower=_MIN_RELATIVE_SIZE * sizes.max()
    )
    proven = "-"
    agrees = "-"
    if part["bound"].notna().any():
        proven = f"{int(is_proven.sum())} of {len(part)}"
    if len(agreement):
        agrees = f"{int(agreement.sum())} of {len(agreement)}"
    certified_count = int(part["certified"].eq(True).sum())
    # A failed task has neither mechanism nor notion, which are NaN in the key. NaN is not equal to
    # itself.
    names = [None if name != name else name for name in key]
    return [*names, len(part), proven, certified_count or "-", agrees, failed_count or "-"]
