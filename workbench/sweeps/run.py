"""Sweeps: every point of a specification answered once, and kept.

    >>> import workbench as wb
    >>> outcome = wb.sweep("examples/sweeps/noise.toml", jobs=2)      # doctest: +SKIP
    >>> outcome.points, outcome.known, outcome.solved                 # doctest: +SKIP
    (60, 0, 60)

Tasks end in any order; this process alone writes the ledger, one transaction for each task. What is in the ledger is
not solved again, so an interrupted sweep goes on where it stopped, with the same answers: a task is kept whole or not
at all, and its answers depend on nothing outside it.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.errors import InvalidRequest, WorkbenchError
from workbench.io.extras import need
from workbench.sweeps.ledger import DEFAULT, Ledger, Row
from workbench.sweeps.specification import Chunk, Spec, read_spec
from workbench.sweeps.workers import Answers, Task, here, on_cluster, on_processes

__all__ = ["Outcome", "sweep"]

Progress = Callable[["Outcome"], None]


@dataclass
class Outcome:
    """What a sweep did: points asked for, known before, solved now; statuses of what was solved; given_up: points of
    tasks whose processes died again and again (run the sweep again to retry them)."""

    name: str
    ledger: str
    points: int
    known: int
    solved: int = 0
    given_up: int = 0
    statuses: Counter[str] = field(default_factory=Counter)

    @property
    def left(self) -> int:
        """Points that have no row."""
        return self.points - self.known - self.solved

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "name": self.name, "ledger": self.ledger, "points": self.points, "known": self.known,
            "solved": self.solved, "left": self.left, "given_up": self.given_up,
            "statuses": dict(sorted(self.statuses.items())),
        }  # fmt: skip


def sweep(
    spec: Path | str | Mapping[str, Any] | Spec,
    ledger: Path | str | Ledger = DEFAULT,
    *,
    jobs: int | None = None,
    cluster: str | None = None,
    progress: Progress = lambda outcome: None,
) -> Outcome:
    """Answer every point of a specification that the ledger does not know yet.

    Args:
        spec: a TOML file, the same as a mapping, or a `Spec` read before.
        ledger: where the rows are kept; made when there is none.
        jobs: processes of this machine; 1 stays in this one, None takes all cores.
        cluster: address of a Dask scheduler to use instead, "tcp://host:8786".
        progress: told the state after each task.

    Raises:
        InvalidRequest: a wrong specification, before anything runs.
        WorkbenchError, CorruptFile: the ledger or the cluster cannot be used. What was committed is kept.
        KeyboardInterrupt: Ctrl-C; likewise.
    """
    if jobs is not None and (isinstance(jobs, bool) or not isinstance(jobs, int) or not 1 <= jobs <= 1024):
        InvalidRequest.must("jobs", "an integer in 1..1024", jobs)
    if cluster is not None and jobs is not None:
        raise InvalidRequest("jobs must be left out with a cluster, which has its own workers.")
    if cluster is not None:
        need("cluster", "A sweep on a cluster")
    asked = spec if isinstance(spec, Spec) else read_spec(spec)
    if isinstance(ledger, Ledger):
        return _run(asked, ledger, jobs, cluster, progress)
    with Ledger(ledger) as book:
        return _run(asked, book, jobs, cluster, progress)


def _run(spec: Spec, book: Ledger, jobs: int | None, cluster: str | None, progress: Progress) -> Outcome:
    book.remember(spec.text)
    known = book.known(spec.keys)
    chunks = [chunk for chunk in (c.without(known) for c in spec.chunks) if chunk.keys]
    outcome = Outcome(spec.name, str(book.path), len(spec), len(known))
    progress(outcome)
    with contextlib.closing(_answers(chunks, jobs, cluster)) as stream:  # an error here ends the workers too
        for at, answers in stream:
            if answers is None:
                outcome.given_up += len(chunks[at].keys)
            else:
                _file(book, chunks[at], answers)
                outcome.solved += len(answers)
                outcome.statuses.update(status for status, _, _ in answers)
            progress(outcome)
    return outcome


def _answers(
    chunks: list[Chunk], jobs: int | None, cluster: str | None
) -> Generator[tuple[int, Answers | None], None, None]:
    tasks = [Task(c.model, c.fixed, c.points, c.recheck, c.backend, c.versions) for c in chunks]
    if not tasks:
        return
    if cluster is not None:
        yield from on_cluster(tasks, cluster)
    elif (processes := min(jobs or _cores(), len(tasks))) == 1:
        yield from here(tasks)
    else:
        yield from on_processes(tasks, processes)


def _cores() -> int:
    from joblib import cpu_count

    return int(cpu_count())


def _file(book: Ledger, chunk: Chunk, answers: Answers) -> None:
    """Commit a task's rows; another sweep may have written some of them meanwhile, which then stay."""
    if len(answers) != len(chunk.keys):
        raise WorkbenchError(f"A worker sent {len(answers)} answers to {len(chunk.keys)} requests.")
    book.add(
        Row(key, request, answer, seconds)
        for key, request, (_, answer, seconds) in zip(chunk.keys, chunk.requests, answers, strict=True)
    )
