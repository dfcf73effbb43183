"""Print the output of commands: tables for people, or one JSON object for programs.

With --json, exactly one object and nothing else is written to stdout. Progress and errors are
written to stderr. An error is one line, and the exit code is 2. With --json, the object on stdout
is then {"error": class of the error, "message": line}.
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
    """The console of results. It does not cut wide rows, so that no digits are lost."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print without cutting rows, unless the options say so."""
        super().print(*objects, **{"crop": False, **options})

    def on_broken_pipe(self) -> None:
        """Raise BrokenPipeError, which `main` handles. Rich would end the process."""
        raise BrokenPipeError


# A pair of columns of a folded table has this width in characters.
_PAIR_WIDTH = 26
# A table of two columns is only folded if each pair of columns has at least this many rows.
_MIN_FOLDED_ROWS = 8
# Piped output has no terminal width. Unless COLUMNS sets one, it is wider than Rich's 80 columns.
_PIPED_WIDTH = 120
_HAS_TERMINAL = sys.stdout is not None and sys.stdout.isatty()
_HAS_WIDTH = _HAS_TERMINAL or os.environ.get("COLUMNS", "").isdecimal()
# Printed texts contain names of files and of plug-ins. They must not be read as markup, as emoji
# codes or as numbers to be coloured.
_PLAIN_TEXT: Values = {"markup": False, "emoji": False, "highlight": False}
out = _Output(width=None if _HAS_WIDTH else _PIPED_WIDTH, **_PLAIN_TEXT)
err = _Output(stderr=True, **_PLAIN_TEXT)


@dataclass(frozen=True)
class Report:
    """The result of a command.

    Attributes:
        values: The object of --json, or a function that returns it.
        parts: Tables and lines that are printed without --json.
        stop_message: Line for stderr if the command stopped early. The exit code is then 2.
        has_failed: Whether the result is negative. The exit code is then 1.
    """

    values: Values | Callable[[], Values]
    parts: Iterable[Any] = ()
    stop_message: str | None = None
    has_failed: bool = False

    def emit(self, json: bool) -> None:
        """Print the report and exit with its code.

        Args:
            json: Whether to print the JSON object.
        """
        if json:
            emit_json(self.values() if callable(self.values) else self.values)
        else:
            for part in self.parts:
                out.print(part)
        if self.stop_message is not None:
            # This goes to stderr, because stdout has only one JSON object.
            print(to_one_line(self.stop_message), file=sys.stderr)
            raise typer.Exit(2)
        if self.has_failed:
            raise typer.Exit(1)


_json_stream: TextIO | None = None


@contextlib.contextmanager
def reserve_stdout() -> Iterator[None]:
    """Reserve stdout for `emit_json`, and redirect all other output to stderr.

    Plug-ins and native libraries write to stdout too (Gurobi and SCIP do so on Ctrl-C).
    """
    global _json_stream
    stdout = sys.stdout
    outer_stream = _json_stream
    saved_descriptor = None
    _json_stream = stdout
    with contextlib.suppress(io.UnsupportedOperation, AttributeError, ValueError):
        if stdout.fileno() == 1:
            # The descriptor 1 is stdout, and 2 is stderr.
            stdout.flush()
            saved_descriptor = os.dup(1)
            os.dup2(2, 1)
            _json_stream = open(  # noqa: SIM115
                saved_descriptor,
                "w",
                encoding=stdout.encoding,
                errors=stdout.errors,
                closefd=False,
            )
    sys.stdout = sys.stderr
    try:
        yield
    finally:
        # The command has already reported a failure to write.
        with contextlib.suppress(OSError):
            _json_stream.flush()
        sys.stdout = stdout
        _json_stream = outer_stream
        if saved_descriptor is not None:
            os.dup2(saved_descriptor, 1)
            os.close(saved_descriptor)


_booked_release: str | None = None


def note_booked_release(sentences: str | None) -> None:
    """Keep sentences about a booked release for errors of the same command.

    A command that fails after the booking has used the budget, and its output may be lost.

    Args:
        sentences: How to print the release again. None: nothing is booked.
    """
    global _booked_release
    _booked_release = sentences


def describe_booked_release() -> str | None:
    """Return the sentences of `note_booked_release`. None if nothing is booked."""
    return _booked_release


def result_stream() -> TextIO:
    """Return the stream of the JSON object."""
    return _json_stream or sys.stdout


def open_streams() -> None:
    """Open the null device for stdin, stdout and stderr if the process has none.

    The next file that the process opens would otherwise get the free number, and the output of
    libraries would be written to it.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            # The system returns the smallest free number.
            if os.open(os.devnull, os.O_RDWR) != number:
                continue
        if getattr(sys, name) is None:
            mode = "w" if number else "r"
            stream = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)


def drop_output(stream: TextIO | None = None) -> None:
    """Discard output that could not be written. Python would otherwise retry it and exit with 120.

    Args:
        stream: The stream. None: the stream of results.
    """
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), (stream or result_stream()).fileno())


def escape_unencodable() -> None:
    """Print characters that a terminal cannot encode as \\x.., because file names may have them."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def to_one_line(message: str) -> str:
    """Return a message on one line, with control characters replaced by "?".

    Args:
        message: The message, which may contain text of files and arguments.
    """
    line = " ".join(message.split())
    return "".join(c if c.isprintable() else "?" for c in line)


def emit_json(payload: Values) -> None:
    """Print one strict JSON object (no NaN, no Infinity) on stdout.

    Args:
        payload: The object that is printed as JSON.
    """
    result_stream().write(json.dumps(payload, allow_nan=False, ensure_ascii=False) + "\n")
    result_stream().flush()


def make_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], *, caption: str | None = None
) -> Table:
    """Make a table for the terminal.

    Numbers are right-aligned with nine significant digits. None is shown as a dash.

    Args:
        title: Title above the table, or "".
        columns: Heads of the columns. If all are empty, there is no head.
        rows: Cells of every row.
        caption: Text below the table.
    """
    table = Table(
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
        cells = [row[k] for row in rows]
        is_numeric = any(
            isinstance(cell, (int, float)) and not isinstance(cell, bool) for cell in cells
        )
        # A number is never broken, nor a word of the head, however narrow the output.
        texts = " ".join(map(_format_table_cell, cells)).split()
        unbroken_texts = [*column.split(), *(text for text in texts if is_number(text))]
        min_width = max(map(len, unbroken_texts), default=None)
        table.add_column(
            column,
            justify="right" if is_numeric else "left",
            overflow="fold",
            no_wrap=k == 0 or is_numeric,
            min_width=min_width,
        )
    for row in rows:
        table.add_row(*map(_format_table_cell, row))
    return table


def fold_table(title: str, heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    """Make a table. The rows of a long table of two columns continue in further pairs of columns.

    Args:
        title: Title above the table.
        heads: Heads of the columns.
        rows: Cells of every row. Only rows of two cells are folded.
    """
    pair_columns = 1
    if len(heads) == 2:
        # This and the next quotient of negative numbers are rounded up.
        pair_columns = min(out.width // _PAIR_WIDTH, -(-len(rows) // _MIN_FOLDED_ROWS))
    if pair_columns < 2:
        return make_table(title, heads, rows)
    row_count = -(-len(rows) // pair_columns)
    parts = []
    for k in range(pair_columns):
        part = [*rows[k * row_count : (k + 1) * row_count]]
        parts.append(part + [["", ""]] * (row_count - len(part)))
    lines = zip(*parts, strict=True)
    folded_rows = [[cell for pair in line for cell in pair] for line in lines]
    return make_table(title, [*heads] * pair_columns, folded_rows)


def make_facts_grid(rows: Iterable[tuple[str, str]]) -> Table:
    """Make two aligned columns of labels and sentences.

    Args:
        rows: Pairs of a label and a sentence.
    """
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column(overflow="fold")
    for row in rows:
        grid.add_row(*row)
    return grid


def make_note(sentence: str) -> Text:
    """Make the line of a note.

    Args:
        sentence: A sentence that a reader must know.
    """
    return Text.assemble(("note", "yellow"), " ", sentence)


def make_verbatim(text: str) -> Group:
    """Make a text that only the terminal wraps, so that it can be copied.

    Args:
        text: The text.
    """
    return Group(Text(text, no_wrap=True, overflow="ignore"))


def _format_table_cell(value: Any) -> str:
    """Format a value of a table."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.9g}"
    return str(value)


def run_with_progress(
    work: Callable[[Progress], R], what: str = "solving", *, lines: bool = False
) -> R:
    """Run a function while a bar on stderr shows its progress and the remaining time.

    Args:
        work: Function that gets a function to report its progress.
        what: What is being done, as text beside the bar.
        lines: Whether to print a line from time to time if stderr is no terminal.
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
    print_line = limit_message_rate(err.print)
    start = time.monotonic()
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task(what, total=None)

        def report(done: int, total: int, what: str) -> None:
            """Move the bar to `done` of `total` points and label it with `what`."""
            bar.update(task, completed=done, total=total, description=what)
            if lines and bar.disable and done:
                seconds_left = (time.monotonic() - start) / done * (total - done)
                print_line(f"{what}: {done} of {total} points, about {seconds_left:.0f} s left")

        return work(report)
