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
from rich.table import Table

__all__ = [
    "Json", "drop_output", "emit_json", "epilog", "err", "facts", "interrupted", "one_line", "open_streams", "out",
    "own_stdout", "show_everything", "table",
]  # fmt: skip

Json = Annotated[bool, typer.Option("--json", help="Print one machine-readable JSON object on stdout, nothing else.")]

# Piped output has no terminal to fit; give tables room instead of rich's 80 columns.
_WIDTH = None if sys.stdout is not None and sys.stdout.isatty() else 120
out = Console(width=_WIDTH)
err = Console(stderr=True)


@contextlib.contextmanager
def own_stdout() -> Iterator[None]:
    """Keep stdout for ourselves: what native libraries print there meanwhile (Gurobi and SCIP do on Ctrl-C) goes to
    stderr. Does nothing where stdout is not the process's own."""
    try:
        real = sys.stdout.fileno() == 1
    except (io.UnsupportedOperation, AttributeError, ValueError):
        real = False
    if not real:
        yield
        return
    before, kept = sys.stdout, os.dup(1)
    before.flush()
    os.dup2(2, 1)
    sys.stdout = open(kept, "w", encoding=before.encoding, errors=before.errors, closefd=False)  # noqa: SIM115
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # whoever runs the command has said so
            sys.stdout.flush()
        sys.stdout = before
        os.dup2(kept, 1)
        os.close(kept)


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
        os.dup2(os.open(os.devnull, os.O_WRONLY), (stream or sys.stdout).fileno())


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
    sys.stdout.write(json.dumps(payload, allow_nan=False, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def epilog(examples: Iterable[str]) -> str:
    """Examples as the end of a help text."""
    lines = [text if text.startswith("(") else f"  workbench {text}" for text in examples]
    return "\n\n".join(["Examples:", *lines])


def interrupted(message: str) -> NoReturn:
    """After a report of what Ctrl-C left: say so on stderr and exit 2, with no second object on stdout."""
    print(f"Interrupted: {one_line(message)}", file=sys.stderr)
    raise typer.Exit(2)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], *, caption: str | None = None) -> Table:
    """A rich table; numbers right-aligned and shown with nine significant digits, None as a dash."""
    shown = Table(
        title=title or None, caption=caption, title_justify="left", caption_justify="left", header_style="bold",
        box=box.SIMPLE_HEAD, show_header=any(columns), pad_edge=False,
    )  # fmt: skip
    for k, column in enumerate(columns):
        numeric = any(isinstance(row[k], (int, float)) and not isinstance(row[k], bool) for row in rows)
        shown.add_column(column, justify="right" if numeric else "left", overflow="fold", no_wrap=k == 0 or numeric)
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
