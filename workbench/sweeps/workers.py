"""Where the tasks of a sweep run: in this process, in processes of this machine (loky), or on a Dask cluster.

Every way yields (position of the task, its answers) as tasks end, in any order, and (position, None) for a task that
was given up because the processes working on it died again and again. A dead process costs what it held, nothing else.

(loky is used through joblib's own copy of it: its futures say at once when a worker has died. joblib's Dask backend
would wait for ever, so Dask is called directly.)
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from math import isfinite
from typing import Any

import workbench
from workbench.errors import SolverUnavailable, WorkbenchError
from workbench.exact.objects import Record, Values
from workbench.io.extras import require_extra
from workbench.io.processes import (
    ONE_THREAD_ENVIRONMENT,
    SAFE_PATH_ENVIRONMENT,
    begin_worker,
    safe_start,
)
from workbench.solvers.search import Deadline
from workbench.sweeps.ledger import canonical_json

Answers = list[
    tuple[str, str, float]
]  # of each point: status, canonical JSON of its answer, seconds it took

MAX_DEATHS = 3  # of the processes that hold a task, until it is given up
CONNECT_SECONDS = 30.0  # seconds to reach a scheduler
NO_WORKER_SECONDS = 60.0  # seconds a cluster may be without workers
REPLY_SECONDS = 60.0  # seconds a scheduler may take to answer
CLOSE_SECONDS = 2.0  # seconds to say goodbye to it
_solver_lock = threading.Lock()  # HiGHS keeps one thread pool per process
_SOLVED_STATUSES = ("claimed", "optimal", "gap_limit", "found")


@dataclass(frozen=True)
class Task:
    """What is sent to a worker: a family's name, the exact values of a path's fixed options, its points, which of them
    are solved twice, and the versions that the answers will be filed under."""

    model: str
    fixed: Values
    points: tuple[Values, ...]
    recheck: tuple[int, ...]
    backend: str | None
    versions: Mapping[str, str | None]


def list_versions(label: str | None) -> dict[str, str | None]:
    """This workbench and the solver's library, with their versions.

    The workbench's version is part of every key, and must stay there: the bytes of old keys are frozen.
    """
    known: dict[str, str | None] = {"workbench": workbench.__version__}
    if label is not None:
        from workbench.solvers.backend import get_backend

        answering = get_backend(label)
        known[answering.distribution] = answering.version()
    return known


def solve_task(task: Task) -> Answers:
    """Answer every point of a task; runs in a worker. A failed solve is an answer.

    Raises SolverUnavailable when this process has other versions than the task is filed under.
    """
    from workbench.pipeline.registry import get_family

    if (mine := list_versions(task.backend)) != task.versions:
        raise SolverUnavailable(
            f"A worker has other versions, {mine}, than this process, {dict(task.versions)}."
        )
    kind = get_family(task.model)
    with (
        _solver_lock,
        kind.open_session(
            kind.make_request_from_values({**task.fixed, **task.points[0]})
        ) as session,
    ):
        timed = _solve_points(session, task)
    return [(answer["status"], _to_strict_json(answer), seconds) for answer, seconds in timed]


def _solve_points(session: Any, task: Task) -> list[tuple[Record, float]]:
    """Hot from point to point; where a cold start disagrees at one of the points to re-check, all of it cold."""
    timed = [_solve_point(session, point, cold=False) for point in task.points]
    for k in task.recheck:
        hot = timed[k][0]
        if hot.get("start") == "hot":
            cold, _ = _solve_point(session, task.points[k], cold=True)
            if not _objectives_agree(hot, cold):
                timed = [_solve_point(session, point, cold=True) for point in task.points]
                timed[k][0]["recheck"] = "a hot start disagreed; the whole task was solved cold"
                return timed
            hot["recheck"] = "a cold start agrees"
    return timed


def _solve_point(session: Any, point: Values, *, cold: bool) -> tuple[Record, float]:
    from workbench.pipeline.outcome import failure_row

    clock = Deadline()
    try:
        answer = session.row(point, start="cold" if cold else "hot")
    except Exception as error:
        answer = failure_row(error)
    if not cold and answer["status"] not in _SOLVED_STATUSES and answer.get("start") != "cold":
        return _solve_point(
            session, point, cold=True
        )  # a failure is believed from a cold start only
    return answer, clock.elapsed_seconds


def _objectives_agree(hot: Values, cold: Values) -> bool:
    """Whether two answers agree: the same status, and objectives within 1e-6 relative or 2e-9 absolute."""
    a, b = hot["objective"], cold["objective"]
    if hot["status"] != cold["status"] or (a is None) != (b is None):
        return False
    return a is None or abs(a - b) <= 1e-6 * abs(b) + 2e-9


def _to_strict_json(answer: Values) -> str:
    """Canonical JSON with infinities in words."""
    infinite = {
        key: str(value)
        for key, value in answer.items()
        if isinstance(value, float) and not isfinite(value)
    }
    return canonical_json({**answer, **infinite})


# Processes of this machine.


def run_on_processes(
    tasks: Sequence[Any],
    jobs: int,
    function: Callable[[Any], Any] = solve_task,
    *,
    tasks_per_process: int = 2,
) -> Generator[tuple[int, Any | None], None, None]:
    """On `jobs` processes of this machine, one thread each; 1 stays in this one. work: what is done with a task there.

    ahead: how many tasks for each process are under way at a time, in the order of tasks. When a process dies, those
    are retried; a task that saw DEATHS of them is tried once more alone, and given up when its process dies again.
    """
    if jobs <= 1:
        yield from enumerate(map(function, tasks))
        return
    waiting, suspects = list(range(len(tasks)))[::-1], list[int]()
    deaths: Counter[int] = Counter()
    try:
        while waiting:
            yield from _run_in_pool(
                tasks, waiting, jobs, tasks_per_process * jobs, deaths, suspects, function
            )
        for at in suspects:
            died: list[int] = []
            deaths[at] = MAX_DEATHS
            yield from _run_in_pool(tasks, [at], 1, 1, deaths, died, function)
            if died:
                yield at, None
    except BaseException:
        get_executor(jobs).shutdown(wait=True, kill_workers=True)
        raise


def _run_in_pool(
    tasks: Sequence[Any],
    waiting: list[int],
    jobs: int,
    capacity: int,
    deaths: Counter[int],
    suspects: list[int],
    work: Callable[[Any], Any],
) -> Iterator[tuple[int, Any | None]]:
    """Run what is waiting until it is done or a process dies; then those under way wait again or become suspects."""
    pool = get_executor(jobs)
    running: dict[Any, int] = {}
    while waiting or running:
        try:
            while waiting and len(running) < capacity:
                running[pool.submit(work, tasks[waiting[-1]])] = waiting[-1]
                waiting.pop()
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                answers = future.result()
                yield running.pop(future), answers
        except BrokenProcessPool:
            ended = {
                f: at
                for f, at in running.items()
                if f.done() and not f.cancelled() and f.exception() is None
            }
            for future, at in ended.items():
                yield at, future.result()
            for at in sorted((at for f, at in running.items() if f not in ended), reverse=True):
                deaths[at] += 1
                (suspects if deaths[at] >= MAX_DEATHS else waiting).append(at)
            return


def count_cores() -> int:
    """How many processes this machine can run at a time, as this one is allowed to use it."""
    from joblib import cpu_count

    return int(cpu_count())


def get_executor(jobs: int) -> Any:
    """The worker processes of this machine; those of the last call when they are still there."""
    from multiprocessing import resource_tracker

    from joblib.externals.loky import get_reusable_executor

    # a worker whose memory has grown is replaced between two tasks: nothing that a user could act upon
    warnings.filterwarnings(
        "ignore", "A worker stopped while some jobs were given to the executor", UserWarning
    )
    with safe_start():  # the trackers of semaphores are processes of their own
        resource_tracker.ensure_running()
        return get_reusable_executor(
            max_workers=jobs,
            timeout=120,
            initializer=begin_worker,
            initargs=(os.getpid(),),
            env=ONE_THREAD_ENVIRONMENT | SAFE_PATH_ENVIRONMENT,
        )


# A cluster.


def run_on_cluster(tasks: Sequence[Task], address: str) -> Iterator[tuple[int, Answers | None]]:
    """On the workers of a Dask scheduler such as tcp://host:8786, which retries what a dead worker held.

    What it gives up is tried once more alone: it may have shared its workers with the task that killed them. Raises
    NotInstalled without Dask, WorkbenchError when the cluster cannot be reached or stays without workers.
    """
    client = _connect(address)
    from distributed.comm import CommClosedError

    lost = WorkbenchError(
        f"The cluster at {address} was lost; the rows it had sent are kept, and the same command goes on from there."
    )
    with _close_quietly(client):
        try:
            batches = [list(range(len(tasks)))]
            while batches:
                batch = batches.pop()
                for at, answers, killed in _gather_answers(
                    client, [tasks[at] for at in batch], address, lost
                ):
                    if killed and len(batch) > 1:
                        batches.append([batch[at]])
                    else:
                        yield batch[at], answers
        except (CancelledError, TimeoutError, CommClosedError):
            raise lost from None


def _connect(address: str) -> Any:
    """Return a client of the Dask scheduler at an address. Raises NotInstalled without Dask, WorkbenchError when the
    cluster cannot be reached within `CONNECTING` seconds."""
    require_extra("cluster", "A sweep on a cluster")
    from distributed import Client

    try:
        return Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        why = " ".join(str(error).split())
    # The client that failed dies here, where no lock of Dask's is held: its finalizer takes the lock that starting
    # another client holds, so a collection in that moment would wait for ever.
    gc.collect()
    raise WorkbenchError(f"The cluster at {address} cannot be reached: {why}.")


def _gather_answers(
    client: Any, tasks: Sequence[Task], address: str, lost: WorkbenchError
) -> Iterator[tuple[int, Answers | None, bool]]:
    """(position, answers, whether its workers died) of every task, as they end. Raises WorkbenchError; `lost` where
    the scheduler let them go."""
    from distributed import KilledWorker
    from distributed import wait as wait_for

    futures = client.map(solve_task, list(tasks), pure=False, key="sweep")
    running = {future.key: (future, at) for at, future in enumerate(futures)}
    del futures
    alone = 0.0
    while running:
        with contextlib.suppress(TimeoutError), client.as_current():
            wait_for(
                [future for future, _ in running.values()], timeout=2, return_when="FIRST_COMPLETED"
            )
        if any(future.cancelled() for future, _ in running.values()):
            raise lost
        ended = [(future, at) for future, at in running.values() if future.done()]
        # a scheduler that was stopped, or whose machine is gone, closes no connection: ask it
        alive = client.sync(client.scheduler.identity, callback_timeout=REPLY_SECONDS)["workers"]
        alone = 0.0 if alive else alone + 2
        if alone >= NO_WORKER_SECONDS:
            raise WorkbenchError(f"The cluster at {address} has had no worker for {alone:g} s.")
        for future, at in ended:
            answers, killed = None, False
            try:
                answers = future.result(timeout=REPLY_SECONDS if alive else 2)
            except KilledWorker:
                killed = True
            except TimeoutError:  # its worker died with the answer: another one works it out again
                continue
            yield at, answers, killed
            del running[future.key]
            future.release()


@contextlib.contextmanager
def _close_quietly(client: Any) -> Iterator[None]:
    """Close a client in the end, without waiting for a scheduler that is gone, and without its log of that: whoever
    lost the cluster is told in one sentence."""
    names = [
        name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "distributed"
    ]
    before = {log: log.level for log in map(logging.getLogger, names)}
    for log in before:
        log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        with contextlib.suppress(TimeoutError, OSError):
            client.close(timeout=CLOSE_SECONDS)
        for log, level in before.items():
            log.setLevel(level)
