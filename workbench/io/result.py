"""What every computation of many rows returns: rows to iterate over, a table, plots, files, and whether it was stopped.

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
Plots = Mapping[
    str, "Callable[[], Figure | None]"
]  # a plot is drawn when it is called; None: too few rows

Progress = Callable[[int, int, str], None]  # told (parts done, parts, what is next)

MAX_SILENT_SECONDS = 5.0  # seconds between two lines about a long search
_SHOWN = 30  # rows in a notebook


def ignore_progress(done: int, total: int, what: str) -> None:
    """Nobody is told."""


def limit_message_rate(
    tell: Callable[[str], object], seconds: float | None = None
) -> Callable[[str], None]:
    """Tells a line where nothing was told for so long."""
    last = time.monotonic()

    def told(line: str) -> None:
        nonlocal last
        if time.monotonic() - last > (MAX_SILENT_SECONDS if seconds is None else seconds):
            last = time.monotonic()
            tell(line)

    return told


def check_progress(progress: Any) -> None:
    """Raise InvalidRequest for what cannot be told how far a computation is."""
    if not callable(progress):
        must("progress", "a function of (done, total, what)", repr(progress))


def _no_plots(table: pd.DataFrame) -> Plots:
    return {}


@dataclass(frozen=True, repr=False, eq=False)
class Result(Sequence[Row]):
    """Rows and what can be done with them: iterate, `to_frame()`, `plot()`, `save()`; a notebook shows both.

    Attributes:
        title: one line.
        rows: in the order they were computed.
        name: stem of the file that holds the table.
        columns: that the table has in any case, first.
        draw: the table -> its plots by name, the most telling one first.
        finished, total: how many parts (tasks, runs, artifacts) were computed, of how many that were planned.
        seconds: that took.
        sentences: what follows from the rows.
        noted: columns in a notebook; all where none is named.
    """

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
        """Whether Ctrl-C came before the last part; the rows of the finished parts are here."""
        return self.finished < self.total

    def describe_interruption(self, words: str) -> str | None:
        """How much is finished after Ctrl-C, "Interrupted: 2 of 5 " and words; None where nothing was cut short."""
        return (
            f"Interrupted: {self.finished} of {self.total} {words}" if self.is_interrupted else None
        )

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, at: Any) -> Any:
        return self.rows[at]

    @cached_property
    def _table(self) -> pd.DataFrame:
        return make_table(self.rows, self.columns)

    def to_frame(self) -> pd.DataFrame:
        """The rows as a pandas DataFrame: `columns`, then the others in order of appearance."""
        return self._table.copy()

    @property
    def plots(self) -> list[str]:
        """The names of the plots that `plot` and `save` try to draw."""
        return list(self.draw(self._table))

    def plot(
        self, path: str | Path | None = None, *, which: str | None = None, width: Width = None
    ) -> Figure:
        """One plot as a matplotlib figure, saved where a path is given (.png, .svg or .pdf).

        which: its name in `plots`; the first that the rows suffice for by default. width: "column" or "page" of a
        paper (3.3 and 7 inches), or inches, with letters of 8 pt.
        Raises InvalidRequest for an unknown name, or when there are too few rows.
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
        """Write a file (.csv, .tex or .json the table, .png, .svg or .pdf the plot), or else a folder with all of them.

        A folder is made when missing; it gets `name`.csv and every plot that the rows suffice for as PNG, SVG and PDF.
        width: of plots, as `plot` takes it. columns: of a .csv or .tex table; a .tex table has those of the question by
        default, a .csv table all.
        Returns the files. Raises InvalidRequest where there is nothing to draw; OSError.
        """
        target = Path(path)
        ending = target.suffix.lower()
        if ending[1:] in PICTURE_FORMATS:
            self.plot(target, width=width)
        elif ending in _TABLES:
            unknown = [name for name in columns or () if name not in self._table]
            if unknown:
                must("columns", f"among {', '.join(map(str, self._table))}", ", ".join(unknown))
            _write_result_file(target, _TABLES[ending](self, [*columns] if columns else None))
        elif ending and not target.is_dir():
            must(
                "path",
                "named .csv, .tex, .json, .png, .svg or .pdf, or a folder without an ending (--html writes a page)",
                target,
            )
        else:
            return self._save_all(target, width)
        return [target]

    def _save_all(self, folder: Path, width: Width) -> list[Path]:
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
        """JSON-ready: title, rows, how much is finished, the sentences."""
        return {
            "title": self.title,
            "rows": table_records(self._table),
            "finished": self.finished,
            "total": self.total,
            "interrupted": self.is_interrupted,
            "sentences": list(self.sentences),
        }

    def to_json(self) -> str:
        """`to_dict` as strict JSON."""
        import json

        return json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False, indent=1) + "\n"

    def __repr__(self) -> str:
        rows = f"{len(self)} row{'' if len(self) == 1 else 's'}"
        stopped = (
            f", interrupted after {self.finished} of {self.total}" if self.is_interrupted else ""
        )
        return f"Result({self.title!r}, {rows}{stopped})"

    def __str__(self) -> str:
        """The title and the rows; of many the first and the last."""
        rows = self._table.dropna(axis="columns", how="all")
        return f"{self.title}\n{rows.to_string(index=False, na_rep='-', max_rows=_SHOWN)}"

    def _repr_html_(self) -> str:
        """The first rows and the first plot, without script."""
        from workbench.io.shown import (
            MAX_SVG_CHARACTERS,
            render_document,
            render_picture,
            render_table,
        )

        shown = make_table(self.rows[:_SHOWN]).dropna(axis="columns", how="all")
        shown = shown[
            [name for name in shown if not self.notebook_columns or name in self.notebook_columns]
        ]
        more = [f"{len(self) - _SHOWN} more rows"] if len(self) > _SHOWN else []
        stopped = (
            [f"Interrupted: {self.finished} of {self.total} parts are finished."]
            if self.is_interrupted
            else []
        )
        try:
            drawing = render_picture(self.plot, MAX_SVG_CHARACTERS)
        except InvalidRequest:  # too few rows
            drawing = ""
        notes = [*more, *stopped, *self.sentences]
        return render_document(self.title, render_table(shown), notes, drawing)


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
    """Rows as they are computed, one for each of `total` parts; after Ctrl-C those so far."""
    begin, finished = time.perf_counter(), list[Row]()
    with suppress(KeyboardInterrupt):
        finished.extend(rows)
    seconds = time.perf_counter() - begin
    return Result(
        title,
        finished,
        name,
        columns,
        draw,
        len(finished),
        total,
        seconds,
        tuple(sentences(finished)),
    )


def make_table(rows: Iterable[Row], columns: Sequence[str] = ()) -> pd.DataFrame:
    """Rows as a table: the columns, then those that some row has, in order of appearance, unless all are empty."""
    import pandas as pd

    full = [{**dict.fromkeys(columns), **row} for row in rows]
    extra = list(dict.fromkeys(name for row in full for name in row if name not in columns))
    table = pd.DataFrame(full, columns=[*columns, *extra])
    return table.drop(columns=[name for name in extra if table[name].isna().all()])


def table_records(table: pd.DataFrame) -> list[Row]:
    """The rows of a table as strict JSON: no NaN, infinities as "inf"."""
    rows: list[Row] = to_jsonable(
        table.astype(object).where(table.notna(), None).to_dict("records"), nan_as_null=True
    )
    return rows


def encode_csv_table(table: pd.DataFrame) -> bytes:
    """A table as CSV with twelve significant digits; texts that spreadsheets take for formulas after an apostrophe."""
    from workbench.io.files import escape_spreadsheet_text

    texts = table.select_dtypes(exclude=["number", "bool"]).columns
    table = table.assign(**{name: table[name].map(escape_spreadsheet_text) for name in texts})
    return bytes(table.to_csv(index=False, float_format="%.12g", lineterminator="\n").encode())


# Columns that a table on paper shows though they are constant.
_ALWAYS = ("epsilon", "delta", "delta_high", "rho", "mu", "alpha", "objective", "objective_high")
_ASKED = frozenset(
    (*_ALWAYS, "class", "curve", "mechanism", "notion", "loss", "runs", "bits", "levels", "max_loss", "bound",
     "certified")
)  # fmt: skip
_ACCENTS = {
    "\u0302": "hat", "\u0303": "tilde", "\u0304": "bar", "\u0305": "bar", "\u0307": "dot", "\u0308": "ddot",
    "\u0331": "underline", "\u0332": "underline",
}  # fmt: skip
_GREEK = "α alpha β beta γ gamma δ delta ε varepsilon η eta θ theta λ lambda μ mu π pi ρ rho σ sigma τ tau φ varphi ψ psi"
_SIGNS = "Δ Delta Σ Sigma Φ Phi Ω Omega ℓ ell ∞ infty ≤ le ≥ ge → to ‖ Vert − mathbin{-} ∈ in · cdot × times ± pm"
_NAMES = [*_GREEK.split(), *_SIGNS.split()]
_COMMANDS = {sign: f"\\{name}" for sign, name in zip(_NAMES[::2], _NAMES[1::2], strict=True)}
_LOWERED = dict(zip("₀₁₂₃₄₅₆₇₈₉ₖₙₘᵢⱼ", "0123456789knmij", strict=True))
_RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹ᵏⁿ⁻", "0123456789kn-", strict=True))
_SYMBOLS = {
    **{ord(sign): f"${command}$" for sign, command in _COMMANDS.items()},
    **{ord(sign): f"$_{letter}$" for sign, letter in _LOWERED.items()},
    **{ord(sign): f"$^{letter}$" for sign, letter in _RAISED.items()},
    ord("𝒴"): "$\\mathcal{Y}$",
}


def list_question_columns(table: pd.DataFrame) -> list[str]:
    """List the columns that say what was asked and what it costs, for a table on paper: all where none says so, and of
    these no others than budgets and the objective where all rows have the same value."""
    if "objective" not in table:
        return [*table]
    chosen = [name for name in table if name in _ASKED and table[name].notna().any()]
    if "bound" in chosen and len(table) == int((table["bound"] == table["objective"]).sum()):
        chosen.remove("bound")
    return [name for name in chosen if name in _ALWAYS or table[name].astype(str).nunique() > 1]


def _accented(text: str) -> str:
    """Letters with combining accents as mathematics, which LaTeX engines without Unicode know."""
    return re.sub(
        f"(.)([{''.join(_ACCENTS)}])",
        lambda match: f"$\\{_ACCENTS[match[2]]}{{{_COMMANDS.get(match[1], match[1])}}}$",
        text,
    )


def encode_tex_table(table: pd.DataFrame, title: str) -> bytes:
    """A table for LaTeX (booktabs), numbers with six significant digits, the title as its caption."""
    caption = title.translate({ord(sign): f"\\{sign}" for sign in "&%$#_{}"})
    shown = table.map(
        lambda value: str(value).replace("inf", "∞") if value in (math.inf, -math.inf) else value
    )
    text = shown.to_latex(index=False, float_format="%.6g", na_rep="", escape=True, caption=caption)
    text = _accented(unicodedata.normalize("NFC", text)).translate(_SYMBOLS)
    return re.sub(r"(?<!\\)\$\$", "", text).encode()  # one formula, so that an index has its letter


_TABLES: Mapping[str, Callable[[Result, Sequence[str] | None], bytes]] = {
    ".csv": lambda result, columns: encode_csv_table(
        result.to_frame()[columns or [*result.to_frame()]]
    ),
    ".tex": lambda result, columns: encode_tex_table(
        result.to_frame()[columns or list_question_columns(result.to_frame())], result.title
    ),
    ".json": lambda result, columns: result.to_json().encode(),
}
RESULT_ENDINGS = (
    *_TABLES,
    *(f".{form}" for form in PICTURE_FORMATS),
)  # endings of what `Result.save` writes into one file


def _write_result_file(path: Path, content: bytes) -> None:
    from workbench.io.files import write_atomically

    if not path.absolute().parent.is_dir():
        must("path", "in an existing folder", path)
    write_atomically(path, content)
