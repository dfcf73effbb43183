"""Sweeps: every point of a specification answered once, and kept.

    >>> import workbench as wb
    >>> result = wb.sweep("examples/sweeps/modulo.toml", jobs=2)      # doctest: +SKIP
    >>> result.points, result.known, result.solved                   # doctest: +SKIP
    (60, 0, 60)
    >>> result.to_frame().objective.min()                            # doctest: +SKIP

Tasks end in any order; this process alone writes the ledger, one transaction for each task. What is in the ledger is
not solved again, so an interrupted sweep goes on where it stopped, with the same answers: a task is kept whole or not
at all, and its answers depend on nothing outside it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from pathlib import Path

from workbench.errors import InvalidRequest, WorkbenchError
from workbench.exact.objects import Values
from workbench.io.extras import require_extra
from workbench.pipeline.option import integer_reader
from workbench.solvers.search import Deadline
from workbench.sweeps.ledger import DEFAULT_LEDGER, Ledger, LedgerRow
from workbench.sweeps.result import SweepCounts, SweepResult
from workbench.sweeps.specification import Chunk, Spec, read_spec
from workbench.sweeps.workers import Answers, count_cores, run_on_cluster, run_on_processes

Progress = Callable[[SweepCounts], None]


def sweep(
    spec: Path | str | Values | Spec,
    ledger: Path | str | Ledger = DEFAULT_LEDGER,
    *,
    jobs: int | None = None,
    cluster: str | None = None,
    progress: Progress = lambda outcome: None,
) -> SweepResult:
    """Answer every point of a specification that the ledger does not know yet.

    Args:
        spec: a TOML file, the same as a mapping, or a `Spec` read before.
        ledger: where the rows are kept; made when there is none.
        jobs: processes of this machine; 1 stays in this one, None takes all cores.
        cluster: address of a Dask scheduler to use instead, "tcp://host:8786".
        progress: told the state after each task.

    Returns the rows of all points, those known before included, as a `wb.Result` that reads the ledger when it is used.

    Raises:
        InvalidRequest: a wrong specification, before anything runs.
        WorkbenchError, CorruptFile: the ledger or the cluster cannot be used. What was committed is kept.
        KeyboardInterrupt: Ctrl-C; likewise.
    """
    if jobs is not None:
        integer_reader(1, 1024)(jobs, "jobs")
    if cluster is not None and jobs is not None:
        raise InvalidRequest("jobs must be left out with a cluster, which has its own workers.")
    specification = spec if isinstance(spec, Spec) else read_spec(spec)
    if cluster is not None:
        require_extra("cluster", "A sweep on a cluster")
    if isinstance(ledger, Ledger):
        return _run_specification(specification, ledger, jobs, cluster, progress)
    with Ledger(ledger) as book:
        return _run_specification(specification, book, jobs, cluster, progress)


def _run_specification(
    spec: Spec, book: Ledger, jobs: int | None, cluster: str | None, progress: Progress
) -> SweepResult:
    clock = Deadline()
    book.record_specification(spec.text)
    known = book.find_known_keys(spec.keys)
    chunks = [chunk for chunk in (c.without_keys(known) for c in spec.chunks) if chunk.keys]
    outcome = SweepCounts(spec.name, str(book.path), len(spec), len(known))
    progress(outcome)
    with contextlib.closing(
        _solve_chunks(chunks, jobs, cluster)
    ) as stream:  # an error here ends the workers too
        for at, answers in stream:
            if answers is None:
                outcome.given_up += len(chunks[at].keys)
            else:
                chunk = chunks[at]
                if len(answers) != len(chunk.keys):
                    raise WorkbenchError(
                        f"A worker sent {len(answers)} answers to {len(chunk.keys)} requests."
                    )
                book.add(  # another sweep may have written some of them meanwhile, which then stay
                    LedgerRow(key, request, answer, seconds)
                    for key, request, (_, answer, seconds) in zip(
                        chunk.keys, chunk.requests, answers, strict=True
                    )
                )
                outcome.solved += len(answers)
                outcome.statuses.update(status for status, _, _ in answers)
            progress(outcome)
    return SweepResult.from_counts(outcome, spec.keys, clock.elapsed_seconds)


def _solve_chunks(
    chunks: list[Chunk], jobs: int | None, cluster: str | None
) -> Generator[tuple[int, Answers | None], None, None]:
    if cluster is None:
        yield from run_on_processes(chunks, min(jobs or count_cores(), len(chunks)))
    elif chunks:
        yield from run_on_cluster(chunks, cluster)
