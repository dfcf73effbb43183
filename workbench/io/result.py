"""Collect the rows of a long computation, and show them as a table, plots and files.

If Ctrl-C interrupts the computation, the result contains the finished rows.

>>> result = Result("Squares", [{"x": 1, "y": 1}, {"x": 2, "y": 4}])
>>> result, [row["y"] for row in result]
(Result('Squares', 2 rows), [1, 4])
"""

from __future__ import annotations

import math
import re
import time
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from workbench.errors import InvalidRequest, must
from workbench.exact.numbers import to_jsonable
from workbench.exact.objects import Record
from workbench.io.files import PICTURE_FORMATS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from workbench.io.figures import Width

Row = dict[str, Any]
# Functions that draw plots, by the name of the plot. They return None if there are too few rows.
Plots = Mapping[str, "Callable[[], Figure | None]"]

# A function that is called with (finished parts, number of parts, description of the next part).
Progress = Callable[[int, int, str], None]

MAX_SILENT_SECONDS = 5.0  # A long search reports at least this often.
_MAX_SHOWN_ROWS = 30  # A notebook shows at most this many rows.


def ignore_progress(done: int, total: int, what: str) -> None:
    """Ignore a report of progress.

    Args:
        done: Number of finished parts.
        total: Number of parts.
        what: Description of the next part.
    """


def limit_message_rate(
    tell: Callable[[str], object] | None, seconds: float | None = None
) -> Callable[[str], None]:
    """Wrap a function that prints messages, so that it skips messages that follow too soon.

    Args:
        tell: Prints a message. None: the returned function does nothing.
        seconds: Smallest time between two messages. Default: `MAX_SILENT_SECONDS`.
    """
    last_time = time.monotonic()

    def tell_seldom(line: str) -> None:
        """Print a message unless the last one was printed recently."""
        nonlocal last_time
        min_seconds = MAX_SILENT_SECONDS if seconds is None else seconds
        if tell is not None and time.monotonic() - last_time > min_seconds:
            last_time = time.monotonic()
            tell(line)

    return tell_seldom


def check_progress(progress: Any) -> None:
    """Raise InvalidRequest if the option `progress` is no function."""
    if not callable(progress):
        must("progress", "a function of (done, total, what)", repr(progress))


def _no_plots(table: pd.DataFrame) -> Plots:
    """Return no plots, for results that declare none."""
    return {}


@dataclass(frozen=True, repr=False, eq=False)
class Result(Sequence[Row]):
    """Rows of a computation, with a table, plots and files. A notebook shows table and plot.

    Attributes:
        title: Title in one line.
        rows: Rows in the order in which they were computed.
        name: Stem of the file that holds the table.
        columns: Columns that the table always has, in this order, before all others.
        draw: Maps the table to functions that draw its plots, by name. The most important is first.
        finished: Number of parts (tasks, runs, artifacts) that were computed.
        total: Number of parts that were planned.
        seconds: Runtime in seconds.
        sentences: Conclusions from the rows.
        notebook_columns: Columns that a notebook shows. Empty for all columns.
    """

    # A subclass sets this attribute. It is no argument of the constructor.
    notebook_columns: ClassVar[tuple[str, ...]] = ()
    title: str
    rows: Sequence[Row]
    name: str = "result"
    columns: Sequence[str] = ()
    draw: Callable[[pd.DataFrame], Plots] = _no_plots
    finished: int = 1
    total: int = 1
    seconds: float = 0.0
    sentences: tuple[str, ...] = ()

    @property
    def is_interrupted(self) -> bool:
        """Return whether Ctrl-C ended the computation before its last part."""
        return self.finished < self.total

    def describe_interruption(self, subject: str) -> str | None:
        """Return a text such as "Interrupted: 2 of 5 rows", or None for a complete result.

        Args:
            subject: Words that follow the numbers, such as "rows".
        """
        if not self.is_interrupted:
            return None
        return f"Interrupted: {self.finished} of {self.total} {subject}"

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]

    @cached_property
    def _table(self) -> pd.DataFrame:
        """Return the rows as a table, which is made once."""
        return make_table(self.rows, self.columns)

    def to_frame(self) -> pd.DataFrame:
        """Return the rows as a pandas DataFrame: `columns`, then the others as they appear."""
        return self._table.copy()

    @property
    def plots(self) -> list[str]:
        """Return the names of the plots that `plot` and `save` try to draw."""
        return list(self.draw(self._table))

    def plot(
        self, path: str | Path | None = None, *, which: str | None = None, width: Width = None
    ) -> Figure:
        """Draw one plot with Matplotlib.

        Args:
            path: File to write (.png, .svg or .pdf). None to write no file.
            which: Name of the plot. Default: the first one for which there are enough rows.
            width: "column" or "page" of a paper (3.3 and 7 inches), or inches, with 8 pt text.

        Raises:
            InvalidRequest: The name is unknown, or there are too few rows.
        """
        plots = self.draw(self._table)
        if which is not None and which not in plots:
            must("which", f"one of {', '.join(plots) or 'no plots'}", repr(which))
        for name in plots if which is None else [which]:
            figure = plots[name]()
            if figure is not None:
                if path is not None:
                    from workbench.io.figures import save_figure

                    save_figure(figure, Path(path), width)
                return figure
        raise InvalidRequest(f"rows must be enough for a plot. Got {len(self)} of {self.title!r}.")

    def save(
        self, path: str | Path, *, width: Width = None, columns: Sequence[str] | None = None
    ) -> list[Path]:
        """Write the result to a file, or to a folder with the table and all plots.

        A table is written as .csv, .tex or .json, and the plot as .png, .svg or .pdf. A folder is
        created if necessary. It gets `name`.csv, and PNG, SVG and PDF files of every plot for
        which there are enough rows.

        Args:
            path: Path of the file or folder.
            width: Width of plots, as for `plot`.
            columns: Columns of a .csv or .tex table. Default: all columns of a .csv table, and the
                columns of `list_question_columns` of a .tex table.

        Returns:
            The files that were written.

        Raises:
            InvalidRequest: There is nothing to draw, or an argument is wrong.
            OSError: Writing fails.
        """
        target = Path(path)
        suffix = target.suffix.lower()
        if suffix[1:] in PICTURE_FORMATS:
            self.plot(target, width=width)
        elif suffix in _TABLE_WRITERS:
            unknown = [name for name in columns or () if name not in self._table]
            if unknown:
                must("columns", f"among {', '.join(map(str, self._table))}", ", ".join(unknown))
            content = _TABLE_WRITERS[suffix](self, [*columns] if columns else None)
            _write_result_file(target, content)
        elif suffix and not target.is_dir():
            must(
                "path",
                "named .csv, .tex, .json, .png, .svg or .pdf, or a folder without an ending "
                "(--html writes a page)",
                target,
            )
        else:
            return self._save_all(target, width)
        return [target]

    def _save_all(self, folder: Path, width: Width) -> list[Path]:
        """Write the table and all plots to a folder, and return the files."""
        from workbench.io.figures import save_figure

        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            must("path", f"a folder that can be written ({error.strerror})", folder)
        files = [folder / f"{self.name}.csv"]
        _write_result_file(files[0], encode_csv_table(self._table))
        for name, plot in self.draw(self._table).items():
            figure = plot()
            if figure is None:
                continue
            for form in PICTURE_FORMATS:
                files.append(folder / f"{name}.{form}")
                save_figure(figure, files[-1], width)
        return files

    def to_dict(self) -> Record:
        """Return the result as data for JSON: title, rows, numbers of parts, sentences."""
        return {
            "title": self.title,
            "rows": table_records(self._table),
            "finished": self.finished,
            "total": self.total,
            "interrupted": self.is_interrupted,
            "sentences": list(self.sentences),
        }

    def to_json(self) -> str:
        """Return `to_dict` as strict JSON text."""
        import json

        return json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False, indent=1) + "\n"

    def __repr__(self) -> str:
        rows = f"{len(self)} row{'' if len(self) == 1 else 's'}"
        status = ""
        if self.is_interrupted:
            status = f", interrupted after {self.finished} of {self.total}"
        return f"Result({self.title!r}, {rows}{status})"

    def __str__(self) -> str:
        """Return the title and the rows. Many rows are shortened to the first and last ones."""
        rows = self._table.dropna(axis="columns", how="all")
        text = rows.to_string(index=False, na_rep="-", max_rows=_MAX_SHOWN_ROWS)
        return f"{self.title}\n{text}"

    def _repr_html_(self) -> str:
        """Return the first rows and the first plot as HTML without script."""
        from workbench.io.shown import (
            MAX_SVG_CHARACTERS,
            render_document,
            render_picture,
            render_table,
        )

        table = make_table(self.rows[:_MAX_SHOWN_ROWS]).dropna(axis="columns", how="all")
        if self.notebook_columns:
            table = table[[name for name in table if name in self.notebook_columns]]
        notes = []
        if len(self) > _MAX_SHOWN_ROWS:
            notes.append(f"{len(self) - _MAX_SHOWN_ROWS} more rows")
        if self.is_interrupted:
            notes.append(f"Interrupted: {self.finished} of {self.total} parts are finished.")
        notes += self.sentences
        try:
            drawing = render_picture(self.plot, MAX_SVG_CHARACTERS)
        except InvalidRequest:
            drawing = ""  # There are too few rows for a plot.
        return render_document(self.title, render_table(table), notes, drawing)


def gather_rows(
    title: str,
    rows: Iterable[Row],
    total: int,
    *,
    name: str,
    columns: Sequence[str],
    draw: Callable[[pd.DataFrame], Plots],
    sentences: Callable[[list[Row]], Iterable[str]] = lambda rows: (),
) -> Result:
    """Collect rows while they are computed. After Ctrl-C the result has the finished rows.

    Args:
        title: Title in one line.
        rows: Iterator that computes one row for each part.
        total: Number of parts.
        name: Stem of the file that holds the table.
        columns: Columns that the table always has.
        draw: Maps the table to its plots by name.
        sentences: Maps the rows to conclusions, one sentence each.

    Returns:
        The result. `Result.is_interrupted` says whether parts are missing.
    """
    start = time.perf_counter()
    finished_rows: list[Row] = []
    with suppress(KeyboardInterrupt):
        finished_rows.extend(rows)
    seconds = time.perf_counter() - start
    return Result(
        title=title,
        rows=finished_rows,
        name=name,
        columns=columns,
        draw=draw,
        finished=len(finished_rows),
        total=total,
        seconds=seconds,
        sentences=tuple(sentences(finished_rows)),
    )


def make_table(rows: Iterable[Row], columns: Sequence[str] = ()) -> pd.DataFrame:
    """Make a table of rows.

    Args:
        rows: Rows as mappings of column to value.
        columns: Columns that come first, even if they are empty. Other columns follow in order of
            appearance, unless they are empty.
    """
    import pandas as pd

    full_rows = [{**dict.fromkeys(columns), **row} for row in rows]
    # The dictionary is an ordered set: every column once, in order of appearance.
    names: dict[str, None] = {}
    for row in full_rows:
        names.update(dict.fromkeys(row))
    extra = [name for name in names if name not in columns]
    table = pd.DataFrame(full_rows, columns=[*columns, *extra])
    return table.drop(columns=[name for name in extra if table[name].isna().all()])


def table_records(table: pd.DataFrame) -> list[Row]:
    """Return the rows of a table for strict JSON: None for NaN, and "inf" for infinity."""
    records = table.astype(object).where(table.notna(), None).to_dict("records")
    rows: list[Row] = to_jsonable(records, nan_as_null=True)
    return rows


def encode_csv_table(table: pd.DataFrame) -> bytes:
    """Encode a table as CSV with twelve significant digits.

    Texts that spreadsheets would take for formulas begin with an apostrophe.

    Args:
        table: Table of rows, such as `Result.to_frame` returns.
    """
    from workbench.io.files import escape_spreadsheet_text

    text_columns = table.select_dtypes(exclude=["number", "bool"]).columns
    escaped = {name: table[name].map(escape_spreadsheet_text) for name in text_columns}
    text = table.assign(**escaped).to_csv(index=False, float_format="%.12g", lineterminator="\n")
    return bytes(text.encode())


# A table on paper shows these columns even if all rows have the same value.
_ALWAYS_PRINTED = (
    "epsilon",
    "delta",
    "delta_high",
    "rho",
    "mu",
    "alpha",
    "objective",
    "objective_high",
)
# A table on paper shows these columns, which state the request and the result.
_PRINTED = frozenset(
    (
        *_ALWAYS_PRINTED,
        "class",
        "curve",
        "mechanism",
        "notion",
        "loss",
        "runs",
        "bits",
        "levels",
        "max_loss",
        "bound",
        "certified",
    )
)
# LaTeX commands of combining characters.
_ACCENTS = {
    "\u0302": "hat",
    "\u0303": "tilde",
    "\u0304": "bar",
    "\u0305": "bar",
    "\u0307": "dot",
    "\u0308": "ddot",
    "\u0331": "underline",
    "\u0332": "underline",
}
# Signs, each followed by the name of its LaTeX command.
_GREEK = (
    "α alpha β beta γ gamma δ delta ε varepsilon η eta θ theta λ lambda μ mu π pi ρ rho "
    "σ sigma τ tau φ varphi ψ psi"
)
_SIGNS = (
    "Δ Delta Σ Sigma Φ Phi Ω Omega ℓ ell ∞ infty ≤ le ≥ ge → to ‖ Vert − mathbin{-} ∈ in "
    "· cdot × times ± pm"
)
_SIGNS_AND_NAMES = [*_GREEK.split(), *_SIGNS.split()]
_COMMANDS = {
    sign: f"\\{name}"
    for sign, name in zip(_SIGNS_AND_NAMES[::2], _SIGNS_AND_NAMES[1::2], strict=True)
}
_SUBSCRIPTS = dict(zip("₀₁₂₃₄₅₆₇₈₉ₖₙₘᵢⱼ", "0123456789knmij", strict=True))
_SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹ᵏⁿ⁻", "0123456789kn-", strict=True))
# LaTeX formula of each character that a table may contain.
_FORMULAS = {
    **{ord(sign): f"${command}$" for sign, command in _COMMANDS.items()},
    **{ord(sign): f"$_{letter}$" for sign, letter in _SUBSCRIPTS.items()},
    **{ord(sign): f"$^{letter}$" for sign, letter in _SUPERSCRIPTS.items()},
    ord("𝒴"): "$\\mathcal{Y}$",
}


def list_question_columns(table: pd.DataFrame) -> list[str]:
    """List the columns that state the request and the loss, for a table on paper.

    Columns with one value in all rows are left out, except budgets and the objective. A table
    without an objective keeps all columns.

    Args:
        table: Table of rows, such as `Result.to_frame` returns.
    """
    if "objective" not in table:
        return [*table]
    chosen = [name for name in table if name in _PRINTED and table[name].notna().any()]
    if "bound" in chosen and len(table) == int((table["bound"] == table["objective"]).sum()):
        chosen.remove("bound")
    return [
        name for name in chosen if name in _ALWAYS_PRINTED or table[name].astype(str).nunique() > 1
    ]


def _format_accents(text: str) -> str:
    """Replace letters with combining accents by formulas that LaTeX reads without Unicode."""

    def format_accent(match: re.Match[str]) -> str:
        """Return the formula of one letter with its accent."""
        letter, accent = match.groups()
        return f"$\\{_ACCENTS[accent]}{{{_COMMANDS.get(letter, letter)}}}$"

    return re.sub(f"(.)([{''.join(_ACCENTS)}])", format_accent, text)


def encode_tex_table(table: pd.DataFrame, title: str) -> bytes:
    """Encode a table for LaTeX (booktabs), with six significant digits.

    Args:
        table: Table of rows, such as `Result.to_frame` returns.
        title: Caption.
    """
    escapes = {ord(sign): f"\\{sign}" for sign in "&%$#_{}"}
    caption = title.translate(escapes)

    def format_infinity(value: Any) -> Any:
        """Replace an infinite number by its sign."""
        if value in (math.inf, -math.inf):
            return str(value).replace("inf", "∞")
        return value

    shown = table.map(format_infinity)
    text = shown.to_latex(index=False, float_format="%.6g", na_rep="", escape=True, caption=caption)
    text = _format_accents(unicodedata.normalize("NFC", text)).translate(_FORMULAS)
    # Adjacent formulas become one formula, so that an index is attached to its letter.
    return re.sub(r"(?<!\\)\$\$", "", text).encode()


def _encode_csv(result: Result, columns: Sequence[str] | None) -> bytes:
    """Encode some columns of a result as CSV, or all columns if they are None."""
    table = result.to_frame()
    return encode_csv_table(table[columns or [*table]])


def _encode_tex(result: Result, columns: Sequence[str] | None) -> bytes:
    """Encode some columns of a result for LaTeX, or those of `list_question_columns` if None."""
    table = result.to_frame()
    return encode_tex_table(table[columns or list_question_columns(table)], result.title)


def _encode_json(result: Result, columns: Sequence[str] | None) -> bytes:
    """Encode a result as JSON, always with all columns."""
    return result.to_json().encode()


_TABLE_WRITERS: Mapping[str, Callable[[Result, Sequence[str] | None], bytes]] = {
    ".csv": _encode_csv,
    ".tex": _encode_tex,
    ".json": _encode_json,
}
# Endings of the single files that `Result.save` writes.
RESULT_ENDINGS = (*_TABLE_WRITERS, *(f".{form}" for form in PICTURE_FORMATS))


def _write_result_file(path: Path, content: bytes) -> None:
    """Write a file into an existing folder. Raises InvalidRequest, OSError."""
    from workbench.io.files import write_atomically

    if not path.absolute().parent.is_dir():
        must("path", "in an existing folder", path)
    write_atomically(path, content)
