"""Run a sweep: solve every point of a specification once and store the answers.

    >>> import workbench as wb
    >>> result = wb.sweep("examples/sweeps/modulo.toml", jobs=2)      # doctest: +SKIP
    >>> result.points, result.known, result.solved                   # doctest: +SKIP
    (60, 0, 60)
    >>> result.to_frame().objective.min()                            # doctest: +SKIP

A point is one combination of the values of a grid. A task is a list of points that are solved one
after the other. Tasks end in any order. Only this process writes the ledger, with one transaction
for each task. Points in the ledger are skipped, so an interrupted sweep continues where it stopped.
The interruption does not change the answers: a task is stored completely or not at all, and its
answers do not depend on other tasks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from pathlib import Path

from workbench.errors import InvalidRequest, WorkbenchError
from workbench.exact.objects import Values
from workbench.io.extras import require_extra
from workbench.pipeline.option import MAX_WORKERS, integer_reader
from workbench.solvers.search import Deadline
from workbench.sweeps.ledger import DEFAULT_LEDGER, Ledger, LedgerRow
from workbench.sweeps.result import SweepCounts, SweepResult
from workbench.sweeps.specification import Chunk, Spec, read_spec
from workbench.sweeps.workers import Answers, count_cores, run_on_cluster, run_on_processes

Progress = Callable[[SweepCounts], None]


def _ignore_progress(counts: SweepCounts) -> None:
    """Report nothing: the default progress report."""


def sweep(
    spec: Path | str | Values | Spec,
    ledger: Path | str | Ledger = DEFAULT_LEDGER,
    *,
    jobs: int | None = None,
    cluster: str | None = None,
    progress: Progress = _ignore_progress,
) -> SweepResult:
    """Solve every point of a specification that is not in the ledger.

    Args:
        spec: A TOML file, a mapping with the same content, or a `Spec`.
        ledger: The ledger that stores the rows. It is created if it does not exist.
        jobs: The number of processes on this machine; 1 uses this process. Default: all cores.
        cluster: The address of a Dask scheduler that runs the tasks instead, "tcp://host:8786".
        progress: Called with the counts at the start and after each task.

    Returns:
        The rows of all points, including those known before. The rows are read from the ledger
        when they are first used.

    Raises:
        InvalidRequest: The specification is wrong. This is checked before anything runs.
        WorkbenchError: The ledger or the cluster cannot be used. Committed rows are kept.
        CorruptFile: The ledger is damaged.
        KeyboardInterrupt: Ctrl-C was pressed. Committed rows are kept.
    """
    if jobs is not None:
        integer_reader(minimum=1, maximum=MAX_WORKERS)(jobs, "jobs")
    if cluster is not None and jobs is not None:
        raise InvalidRequest(
            "jobs must be left out with a cluster, which has its own workers. "
            f"Got jobs = {jobs} and cluster = {cluster}."
        )
    specification = spec if isinstance(spec, Spec) else read_spec(spec)
    if cluster is not None:
        require_extra("cluster", "A sweep on a cluster")
    if isinstance(ledger, Ledger):
        return _run_specification(specification, ledger, jobs, cluster, progress)
    with Ledger(ledger) as opened_ledger:
        return _run_specification(specification, opened_ledger, jobs, cluster, progress)


def _run_specification(
    spec: Spec, ledger: Ledger, jobs: int | None, cluster: str | None, progress: Progress
) -> SweepResult:
    """Solve the points of a specification that are not in the ledger, and store their answers.

    `jobs` is the number of processes, `cluster` the address of a scheduler that replaces them.
    """
    clock = Deadline()
    ledger.record_specification(spec.text)
    known_keys = ledger.find_known_keys(spec.keys)
    remaining = (chunk.without_keys(known_keys) for chunk in spec.chunks)
    chunks = [chunk for chunk in remaining if chunk.keys]
    counts = SweepCounts(
        name=spec.name, ledger=str(ledger.path), points=len(spec), known=len(known_keys)
    )
    progress(counts)
    # Closing the stream after an error ends the workers.
    with contextlib.closing(_solve_chunks(chunks, jobs, cluster)) as stream:
        for index, answers in stream:
            chunk = chunks[index]
            if answers is None:
                counts.given_up += len(chunk.keys)
            else:
                # Rows that another sweep has written meanwhile are ignored by the ledger.
                ledger.add(_make_rows(chunk, answers))
                counts.solved += len(answers)
                counts.statuses.update(status for status, _, _ in answers)
            progress(counts)
    return SweepResult.from_counts(counts, spec.keys, clock.elapsed_seconds)


def _make_rows(chunk: Chunk, answers: Answers) -> list[LedgerRow]:
    """Return the rows of a solved chunk. Raises WorkbenchError if answers are missing."""
    if len(answers) != len(chunk.keys):
        raise WorkbenchError(f"A worker sent {len(answers)} answers to {len(chunk.keys)} requests.")
    rows = []
    for key, request, answer in zip(chunk.keys, chunk.requests, answers, strict=True):
        _, text, seconds = answer
        rows.append(LedgerRow(key, request, text, seconds))
    return rows


def _solve_chunks(
    chunks: list[Chunk], jobs: int | None, cluster: str | None
) -> Generator[tuple[int, Answers | None], None, None]:
    """Yield (index of a chunk, its answers) as chunks end; None for a chunk that was given up."""
    if cluster is None:
        yield from run_on_processes(chunks, min(jobs or count_cores(), len(chunks)))
    elif chunks:
        yield from run_on_cluster(chunks, cluster)
