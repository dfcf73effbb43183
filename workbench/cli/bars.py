"""Commands that take a while: a bar with the time that is left."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from workbench.cli.console import err

if TYPE_CHECKING:
    from workbench.io.result import Result

__all__ = ["under_a_bar"]

Progress = Callable[[int, int, str], None]


def under_a_bar(work: Callable[[Progress], Result], what: str = "solving") -> Result:
    """Do some work under a bar with the time that is left, on stderr; work: told where to report its progress."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    described = TextColumn("{task.description}", markup=False)
    columns = (described, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        return work(lambda done, total, what: bar.update(task, completed=done, total=total))
