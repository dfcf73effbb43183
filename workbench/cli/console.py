"""What every command prints: tables for people, one JSON object for machines, one line for an error.

With --json exactly one object goes to stdout and nothing else does; progress and errors go to stderr. An error prints
one line, exits 2, and with --json also puts {"error": kind, "message": line} on stdout.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TextIO, TypeVar

import typer
from rich import box
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from workbench.data.tables import is_number
from workbench.exact.objects import Values
from workbench.io.result import Progress, limit_message_rate

R = TypeVar("R")


class _Output(Console):
    """Where results go. A row that is wider than the output is not cut off: a number would lose its digits."""

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*objects, **{"crop": False, **options})

    def on_broken_pipe(self) -> None:
        """Rich would end the process here; `main` ends it quietly, as for everything else that is printed."""
        raise BrokenPipeError


_PAIR, _DEEP = 26, 8  # signs of a pair of columns; rows from which a table of pairs is folded
# Piped output has no terminal to fit; unless COLUMNS asks for a width, give tables room instead of rich's 80 columns.
_FITS = (sys.stdout is not None and sys.stdout.isatty()) or os.environ.get(
    "COLUMNS", ""
).isdecimal()
# What is printed names files and what others add: no word of it is markup, a colon's emoji or a number to be coloured.
_PLAIN: Values = {"markup": False, "emoji": False, "highlight": False}
out = _Output(width=None if _FITS else 120, **_PLAIN)
err = _Output(stderr=True, **_PLAIN)


@dataclass(frozen=True)
class Report:
    """What a command answers.

    values: the object of --json, or what makes it; shown: what is printed otherwise, tables and lines; stopped: a line
    for stderr, such as what Ctrl-C has left, which is exit code 2; failed: whether the answer is bad news, exit code 1.
    """

    values: Values | Callable[[], Values]
    parts: Iterable[Any] = ()
    stop_message: str | None = None
    has_failed: bool = False

    def emit(self, json: bool) -> None:
        """Print it and exit as it says."""
        if json:
            emit_json(self.values() if callable(self.values) else self.values)
        else:
            for part in self.parts:
                out.print(part)
        if self.stop_message is not None:  # no second object on stdout
            print(to_one_line(self.stop_message), file=sys.stderr)
            raise typer.Exit(2)
        if self.has_failed:
            raise typer.Exit(1)


_answers: TextIO | None = None


@contextlib.contextmanager
def reserve_stdout() -> Iterator[None]:
    """Keep stdout for `emit_json`: what others print there meanwhile, plug-ins and native libraries (Gurobi and SCIP do
    on Ctrl-C), goes to stderr."""
    global _answers
    before, outer, kept = sys.stdout, _answers, None
    _answers = before
    with contextlib.suppress(io.UnsupportedOperation, AttributeError, ValueError):
        if before.fileno() == 1:
            before.flush()
            kept = os.dup(1)
            os.dup2(2, 1)
            _answers = open(  # noqa: SIM115
                kept, "w", encoding=before.encoding, errors=before.errors, closefd=False
            )
    sys.stdout = sys.stderr
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # whoever runs the command has said so
            _answers.flush()
        sys.stdout, _answers = before, outer
        if kept is not None:
            os.dup2(kept, 1)
            os.close(kept)


def result_stream() -> TextIO:
    """Where the object of --json goes."""
    return _answers or sys.stdout


def open_streams() -> None:
    """Give a process that was started without stdin, stdout or stderr the null device there: the next file it opens
    would take the number, and what a library prints would end up in it."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            if os.open(os.devnull, os.O_RDWR) != number:  # lowest free number first
                continue
        if getattr(sys, name) is None:
            mode = "w" if number else "r"
            stream = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)


def drop_output(stream: TextIO | None = None) -> None:
    """Forget what could not be written to stdout (or stderr): at exit Python would try again, and exit with 120."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), (stream or result_stream()).fileno())


def escape_unencodable() -> None:
    """Print what a terminal's encoding lacks as \\x.. instead of failing: the name of a file need not be text."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def to_one_line(message: str) -> str:
    """A message on one line, without the control characters that a file or an argument may have put into it."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(message.split()))


def emit_json(payload: Values) -> None:
    """Print one strict JSON object (no NaN, no Infinity) on stdout."""
    result_stream().write(json.dumps(payload, allow_nan=False, ensure_ascii=False) + "\n")
    result_stream().flush()


def make_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], *, caption: str | None = None
) -> Table:
    """A rich table; numbers right-aligned and shown with nine significant digits, None as a dash."""
    shown = Table(
        title=title or None,
        caption=caption,
        title_justify="left",
        caption_justify="left",
        header_style="bold",
        box=box.SIMPLE_HEAD,
        show_header=any(columns),
        pad_edge=False,
    )
    for k, column in enumerate(columns):
        numeric = any(
            isinstance(row[k], (int, float)) and not isinstance(row[k], bool) for row in rows
        )
        words = [
            word for row in rows for word in _format_table_cell(row[k]).split() if is_number(word)
        ]
        least = max(
            map(len, words), default=None
        )  # a number is never broken, however narrow the output
        shown.add_column(
            column,
            justify="right" if numeric else "left",
            overflow="fold",
            no_wrap=k == 0 or numeric,
            min_width=least,
        )
    for row in rows:
        shown.add_row(*map(_format_table_cell, row))
    return shown


def fold_table(title: str, heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    """A long table of pairs in several columns beside each other, as many as the width has room for; others as `table`
    shows them."""
    across = min(out.width // _PAIR, -(-len(rows) // _DEEP)) if len(heads) == 2 else 1
    if across < 2:
        return make_table(title, heads, rows)
    deep = -(-len(rows) // across)
    parts = [[*rows[k * deep : (k + 1) * deep]] for k in range(across)]
    parts = [part + [["", ""]] * (deep - len(part)) for part in parts]
    return make_table(
        title,
        [*heads] * across,
        [[cell for pair in line for cell in pair] for line in zip(*parts, strict=True)],
    )


def make_facts_grid(rows: Iterable[tuple[str, str]]) -> Table:
    """Labels and sentences in two aligned columns."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column(overflow="fold")
    for row in rows:
        grid.add_row(*row)
    return grid


def make_note(sentence: str) -> Text:
    """A sentence that a reader must know."""
    return Text.assemble(("note", "yellow"), " ", sentence)


def make_verbatim(text: str) -> Group:
    """A text whose lines are broken by the terminal alone, so that they can be copied (Rich wraps a bare text)."""
    return Group(Text(text, no_wrap=True, overflow="ignore"))


def _format_table_cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def run_with_progress(
    work: Callable[[Progress], R], what: str = "solving", *, lines: bool = False
) -> R:
    """Do some work under a bar with the time that is left, on stderr; work: told where to report its progress.

    lines: whether a line now and then says so where stderr is no terminal.
    """
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    say, begin = limit_message_rate(err.print), time.monotonic()
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task(what, total=None)

        def tell(done: int, total: int, what: str) -> None:
            bar.update(task, completed=done, total=total, description=what)
            if lines and bar.disable and done:
                rest = (time.monotonic() - begin) / done * (total - done)
                say(f"{what}: {done} of {total} points, about {rest:.0f} s left")

        return work(tell)
