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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, NoReturn, TextIO

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from workbench.io.files import is_number

__all__ = [
    "Json",
    "answers",
    "drop_output",
    "emit_json",
    "epilog",
    "err",
    "facts",
    "interrupted",
    "one_line",
    "open_streams",
    "out",
    "own_stdout",
    "show_everything",
    "table",
]

Json = Annotated[bool, typer.Option("--json", help="Print one machine-readable JSON object on stdout, nothing else.")]


class _Output(Console):
    """Where results go. A row that is wider than the output is not cut off: a number would lose its digits."""

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*objects, **{"crop": False, **options})

    def on_broken_pipe(self) -> None:
        """Rich would end the process here; `main` ends it quietly, as for everything else that is printed."""
        raise BrokenPipeError


# Piped output has no terminal to fit; unless COLUMNS asks for a width, give tables room instead of rich's 80 columns.
_FITS = (sys.stdout is not None and sys.stdout.isatty()) or os.environ.get("COLUMNS", "").isdecimal()
# What is printed names files and what others add: no word of it is markup, a colon's emoji or a number to be coloured.
_PLAIN: dict[str, Any] = {"markup": False, "emoji": False, "highlight": False}
out = _Output(width=None if _FITS else 120, **_PLAIN)
err = _Output(stderr=True, **_PLAIN)


_answers: TextIO | None = None


@contextlib.contextmanager
def own_stdout() -> Iterator[None]:
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
            _answers = open(kept, "w", encoding=before.encoding, errors=before.errors, closefd=False)  # noqa: SIM115
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


def answers() -> TextIO:
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
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8", closefd=False))  # noqa: SIM115


def drop_output(stream: TextIO | None = None) -> None:
    """Forget what could not be written to stdout (or stderr): at exit Python would try again, and exit with 120."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), (stream or answers()).fileno())


def show_everything() -> None:
    """Print what a terminal's encoding lacks as \\x.. instead of failing: the name of a file need not be text."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def one_line(message: str) -> str:
    """A message on one line, without the control characters that a file or an argument may have put into it."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(message.split()))


def emit_json(payload: Mapping[str, Any]) -> None:
    """Print one strict JSON object (no NaN, no Infinity) on stdout."""
    answers().write(json.dumps(payload, allow_nan=False, ensure_ascii=False) + "\n")
    answers().flush()


def epilog(examples: Iterable[str]) -> str:
    """Examples as the end of a help text."""
    lines = [escape(text if text.startswith("(") else f"  workbench {text}") for text in examples]
    return "\n\n".join(["Examples:", *lines])


def interrupted(message: str) -> NoReturn:
    """After a report of what Ctrl-C left: say so on stderr and exit 2, with no second object on stdout."""
    print(f"Interrupted: {one_line(message)}", file=sys.stderr)
    raise typer.Exit(2)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], *, caption: str | None = None) -> Table:
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
        numeric = any(isinstance(row[k], (int, float)) and not isinstance(row[k], bool) for row in rows)
        words = [word for row in rows for word in show(row[k]).split() if is_number(word)]
        least = max(map(len, words), default=None)  # a number is never broken, however narrow the output
        shown.add_column(
            column, justify="right" if numeric else "left", overflow="fold", no_wrap=k == 0 or numeric, min_width=least
        )
    for row in rows:
        shown.add_row(*map(show, row))
    return shown


def facts(rows: Sequence[tuple[str, str]]) -> Table:
    """Labels and sentences in two aligned columns."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column(overflow="fold")
    for label, sentence in rows:
        grid.add_row(label, sentence)
    return grid


def show(value: Any) -> str:
    """One cell."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.9g}"
    return str(value)
