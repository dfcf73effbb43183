"""Run the tasks of a sweep: in this process, in processes of this machine (loky), or on Dask.

The functions `run_on_...` yield (index of a task, its answers) as tasks end, in any order. They
yield (index, None) for a task that was given up because its processes died repeatedly. If a process
dies, only the tasks that it was solving are affected.

A hot start solves a point from the last solution of the same program. A cold start begins without a
solution.

loky is used through joblib's copy of it, whose futures report at once that a worker has died.
joblib's Dask backend would wait forever in that case, so Dask is called directly.
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

# For each point: the status, the canonical JSON of the answer, the seconds.
Answers = list[tuple[str, str, float]]

MAX_DEATHS = 3  # After this many deaths of processes that had a task, the task is tried alone.
CONNECT_SECONDS = 30.0  # The time limit for connecting to a scheduler.
NO_WORKER_SECONDS = 60.0  # A cluster may be without workers for at most this time.
REPLY_SECONDS = 60.0  # The time limit for an answer of a scheduler.
CLOSE_SECONDS = 2.0  # The time limit for closing a connection to a scheduler.

_IDLE_WORKER_SECONDS = 120  # A process without a task ends after this time.
_POLL_SECONDS = 2  # The state of a cluster is checked at least this often.
_SOLVED_STATUSES = ("claimed", "optimal", "gap_limit", "found")
# A hot and a cold start agree if their objectives differ by at most these tolerances.
_RELATIVE_TOLERANCE = 1e-6
_ABSOLUTE_TOLERANCE = 2e-9

# HiGHS has one thread pool for each process, so only one thread at a time may solve.
_solver_lock = threading.Lock()


@dataclass(frozen=True)
class Task:
    """The data that a worker needs to solve a piece of a path.

    Attributes:
        model: The name of the family.
        fixed: The exact values of the options that are fixed on the path.
        points: The values of the hot options of each point.
        recheck: The indices of the points that are also solved from a cold start.
        backend: The name of the solver, as in `workbench doctor`. None if no solver is used.
        versions: Library -> version, as in the requests. A worker must have the same versions.
    """

    model: str
    fixed: Values
    points: tuple[Values, ...]
    recheck: tuple[int, ...]
    backend: str | None
    versions: Mapping[str, str | None]


def list_versions(label: str | None) -> dict[str, str | None]:
    """Return the version of this workbench and of the solver's library.

    The version of the workbench is part of every key and must stay there: the bytes of old keys
    must not change.

    Args:
        label: The name of the solver, as in `workbench doctor`. None if no solver is used.

    Returns:
        Library -> version.
    """
    versions: dict[str, str | None] = {"workbench": workbench.__version__}
    if label is not None:
        from workbench.solvers.backend import get_backend

        solver = get_backend(label)
        versions[solver.distribution] = solver.version()
    return versions


def solve_task(task: Task) -> Answers:
    """Solve every point of a task. This function runs in a worker.

    A failed solve is an answer.

    Args:
        task: A piece of a path of points, with the family and the solver.

    Returns:
        For each point: the status, the canonical JSON of the answer, the seconds.

    Raises:
        SolverUnavailable: This process has other versions than the keys of the answers.
    """
    from workbench.pipeline.registry import get_family

    versions = list_versions(task.backend)
    if versions != task.versions:
        raise SolverUnavailable(
            f"A worker has other versions, {versions}, than this process, {dict(task.versions)}."
        )
    family = get_family(task.model)
    first_request = family.make_request_from_values({**task.fixed, **task.points[0]})
    with _solver_lock, family.open_session(first_request) as session:
        timed_answers = _solve_points(session, task)
    return [
        (answer["status"], _to_strict_json(answer), seconds) for answer, seconds in timed_answers
    ]


def _solve_points(session: Any, task: Task) -> list[tuple[Record, float]]:
    """Return (answer, seconds) of every point.

    All points are solved hot. If a cold start disagrees at a rechecked point, all are solved again
    cold, and these answers are returned.
    """
    timed_answers = [_solve_point(session, point, cold=False) for point in task.points]
    for index in task.recheck:
        hot_answer, _ = timed_answers[index]
        if hot_answer.get("start") != "hot":
            continue
        cold_answer, _ = _solve_point(session, task.points[index], cold=True)
        if _objectives_agree(hot_answer, cold_answer):
            hot_answer["recheck"] = "a cold start agrees"
            continue
        timed_answers = [_solve_point(session, point, cold=True) for point in task.points]
        answer, _ = timed_answers[index]
        answer["recheck"] = "a hot start disagreed; the whole task was solved cold"
        return timed_answers
    return timed_answers


def _solve_point(session: Any, point: Values, *, cold: bool) -> tuple[Record, float]:
    """Solve one point and return its answer and the seconds."""
    from workbench.pipeline.outcome import failure_row

    clock = Deadline()
    try:
        answer = session.row(point, start="cold" if cold else "hot")
    except Exception as error:
        answer = failure_row(error)
    has_failed = answer["status"] not in _SOLVED_STATUSES
    if not cold and has_failed and answer.get("start") != "cold":
        # A failure is only accepted from a cold start.
        return _solve_point(session, point, cold=True)
    return answer, clock.elapsed_seconds


def _objectives_agree(hot: Values, cold: Values) -> bool:
    """Return whether two answers have the same status and nearly the same objective."""
    hot_objective = hot["objective"]
    cold_objective = cold["objective"]
    if hot["status"] != cold["status"]:
        return False
    if hot_objective is None or cold_objective is None:
        return hot_objective is None and cold_objective is None
    tolerance = _RELATIVE_TOLERANCE * abs(cold_objective) + _ABSOLUTE_TOLERANCE
    return bool(abs(hot_objective - cold_objective) <= tolerance)


def _to_strict_json(answer: Values) -> str:
    """Write an answer as canonical JSON, in which infinities are texts."""
    values = dict(answer)
    for key, value in answer.items():
        if isinstance(value, float) and not isfinite(value):
            values[key] = str(value)
    return canonical_json(values)


# Processes of this machine.


def run_on_processes(
    tasks: Sequence[Any],
    jobs: int,
    function: Callable[[Any], Any] = solve_task,
    *,
    tasks_per_process: int = 2,
) -> Generator[tuple[int, Any | None], None, None]:
    """Run tasks on processes of this machine, one thread each.

    When a process dies, all submitted tasks are tried again, because it is unknown which of them
    was the cause. A task that was submitted at MAX_DEATHS deaths is tried once more alone. It is
    given up if its process dies again.

    Args:
        tasks: The arguments of `function`, one for each task.
        jobs: The number of processes; 1 runs the tasks in this process.
        function: The function that a worker calls with a task.
        tasks_per_process: The number of tasks for each process that are submitted at a time.

    Yields:
        (index of a task, its result), or (index, None) for a task that was given up.
    """
    if jobs <= 1:
        yield from enumerate(map(function, tasks))
        return
    waiting = list(range(len(tasks)))[::-1]  # The next task is the last one.
    suspects: list[int] = []
    deaths: Counter[int] = Counter()
    try:
        while waiting:
            capacity = tasks_per_process * jobs
            yield from _run_in_pool(
                tasks,
                waiting=waiting,
                jobs=jobs,
                capacity=capacity,
                deaths=deaths,
                suspects=suspects,
                function=function,
            )
        for index in suspects:
            died_again: list[int] = []
            # One more death of its process adds the task to `died_again`.
            deaths[index] = MAX_DEATHS
            yield from _run_in_pool(
                tasks,
                waiting=[index],
                jobs=1,
                capacity=1,
                deaths=deaths,
                suspects=died_again,
                function=function,
            )
            if died_again:
                yield index, None
    except BaseException:
        with _hide_errors_of_killed_pools():
            get_executor(jobs).shutdown(wait=True, kill_workers=True)
        raise


@contextlib.contextmanager
def _hide_errors_of_killed_pools() -> Iterator[None]:
    """Do not print that the thread of a pool did not find a task while the pool is shut down.

    After Ctrl-C the processes end on their own, and the tasks are removed by the main thread. The
    thread of the pool may then raise KeyError or ValueError.
    """
    show = threading.excepthook

    def show_other_errors(error: threading.ExceptHookArgs) -> None:
        """Print an error, unless the thread of a pool did not find a task."""
        is_of_pool = error.thread is not None and error.thread.name == "ExecutorManagerThread"
        if not (is_of_pool and issubclass(error.exc_type, (KeyError, ValueError))):
            show(error)

    threading.excepthook = show_other_errors
    try:
        yield
    finally:
        threading.excepthook = show


def _run_in_pool(
    tasks: Sequence[Any],
    waiting: list[int],
    jobs: int,
    capacity: int,
    deaths: Counter[int],
    suspects: list[int],
    function: Callable[[Any], Any],
) -> Iterator[tuple[int, Any | None]]:
    """Run the waiting tasks until all are done or a process dies.

    After a death, the submitted tasks are added to `waiting` again, or to `suspects` if they were
    submitted at MAX_DEATHS deaths.

    Args:
        tasks: The arguments of `function`, one for each task.
        waiting: Indices of the tasks to run, the next one last. It is changed.
        jobs: The number of processes.
        capacity: The largest number of tasks that are submitted at a time.
        deaths: For each index, the number of deaths while the task was submitted. It is changed.
        suspects: Indices of tasks that must be tried alone. It is changed.
        function: The function that a worker calls with a task.

    Yields:
        (index of a task, its result).
    """
    pool = get_executor(jobs)
    running: dict[Any, int] = {}
    while waiting or running:
        try:
            while waiting and len(running) < capacity:
                # `submit` may find a broken pool. The task then stays in `waiting`.
                running[pool.submit(function, tasks[waiting[-1]])] = waiting[-1]
                waiting.pop()
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                answers = future.result()
                yield running.pop(future), answers
        except BrokenProcessPool:
            finished_tasks = {
                future: index for future, index in running.items() if _has_result(future)
            }
            for future, index in finished_tasks.items():
                yield index, future.result()
            interrupted_indices = [
                index for future, index in running.items() if future not in finished_tasks
            ]
            for index in sorted(interrupted_indices, reverse=True):
                deaths[index] += 1
                if deaths[index] >= MAX_DEATHS:
                    suspects.append(index)
                else:
                    waiting.append(index)
            return


def _has_result(future: Any) -> bool:
    """Return whether a future ended without an exception."""
    return future.done() and not future.cancelled() and future.exception() is None


def count_cores() -> int:
    """Return the number of processes that this process may run at a time on this machine."""
    from joblib import cpu_count

    return int(cpu_count())


def get_executor(jobs: int) -> Any:
    """Return the worker processes of this machine, reusing those of the last call.

    Args:
        jobs: The number of processes.
    """
    from multiprocessing import resource_tracker

    from joblib.externals.loky import get_reusable_executor

    # loky replaces a worker between two tasks if its memory has grown. The user cannot act on
    # this warning.
    warnings.filterwarnings(
        "ignore", "A worker stopped while some jobs were given to the executor", UserWarning
    )
    with safe_start():
        # The trackers of semaphores are separate processes, which must start safely too.
        resource_tracker.ensure_running()
        return get_reusable_executor(
            max_workers=jobs,
            timeout=_IDLE_WORKER_SECONDS,
            initializer=begin_worker,
            initargs=(os.getpid(),),
            env=ONE_THREAD_ENVIRONMENT | SAFE_PATH_ENVIRONMENT,
        )


# A cluster.


def run_on_cluster(tasks: Sequence[Task], address: str) -> Iterator[tuple[int, Answers | None]]:
    """Run tasks on the workers of a Dask scheduler, which retries the tasks of dead workers.

    A task that Dask gives up is tried once more alone, because another task may have killed its
    workers.

    Args:
        tasks: The tasks to solve.
        address: The address of the scheduler, such as tcp://host:8786.

    Yields:
        (index of a task, its answers), or (index, None) for a task that was given up.

    Raises:
        NotInstalled: Dask is not installed.
        WorkbenchError: The cluster cannot be reached, was lost, or stays without workers.
    """
    client = _connect(address)
    from distributed.comm import CommClosedError

    lost_error = WorkbenchError(
        f"The cluster at {address} was lost. The rows that it had sent are kept. Run the same "
        "command to continue from there."
    )
    with _close_quietly(client):
        try:
            batches = [list(range(len(tasks)))]
            while batches:
                batch = batches.pop()
                batch_tasks = [tasks[index] for index in batch]
                for position, answers, was_killed in _gather_answers(
                    client, batch_tasks, address, lost_error
                ):
                    if was_killed and len(batch) > 1:
                        batches.append([batch[position]])
                    else:
                        yield batch[position], answers
        except (CancelledError, TimeoutError, CommClosedError):
            raise lost_error from None


def _connect(address: str) -> Any:
    """Return a client of the Dask scheduler at an address.

    Raises NotInstalled without Dask, and WorkbenchError if the cluster cannot be reached within
    CONNECT_SECONDS.
    """
    require_extra("cluster", "A sweep on a cluster")
    from distributed import Client

    try:
        return Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        reason = " ".join(str(error).split())
    # The failed client is collected here, where no lock of Dask is held. Its finalizer takes the
    # lock that starting another client holds, so a collection at that moment would wait forever.
    gc.collect()
    raise WorkbenchError(f"The cluster at {address} cannot be reached: {reason}.")


def _gather_answers(
    client: Any, tasks: Sequence[Task], address: str, lost_error: WorkbenchError
) -> Iterator[tuple[int, Answers | None, bool]]:
    """Yield (index, answers, whether its workers died) of every task as tasks end.

    Raises WorkbenchError if the cluster stays without workers, and `lost_error` if the scheduler
    has cancelled the tasks.
    """
    from distributed import KilledWorker
    from distributed import wait as wait_for

    # Dask would return a stored result for a pure function of equal arguments.
    futures = client.map(solve_task, list(tasks), pure=False, key="sweep")
    running = {future.key: (future, index) for index, future in enumerate(futures)}
    # The cluster keeps a result as long as some variable here refers to its future.
    del futures
    seconds_without_workers = 0.0
    while running:
        running_futures = [future for future, _ in running.values()]
        with contextlib.suppress(TimeoutError), client.as_current():
            wait_for(running_futures, timeout=_POLL_SECONDS, return_when="FIRST_COMPLETED")
        del running_futures
        if any(future.cancelled() for future, _ in running.values()):
            raise lost_error
        ended_tasks = [(future, index) for future, index in running.values() if future.done()]
        # A scheduler that was stopped, or whose machine is gone, does not close its connection.
        # Its workers are therefore requested, which fails then.
        workers = client.sync(client.scheduler.identity, callback_timeout=REPLY_SECONDS)["workers"]
        if workers:
            seconds_without_workers = 0.0
        else:
            seconds_without_workers += _POLL_SECONDS
        if seconds_without_workers >= NO_WORKER_SECONDS:
            raise WorkbenchError(
                f"The cluster at {address} has had no worker for {seconds_without_workers:g} s."
            )
        for future, index in ended_tasks:
            answers = None
            was_killed = False
            try:
                answers = future.result(timeout=REPLY_SECONDS if workers else _POLL_SECONDS)
            except KilledWorker:
                was_killed = True
            except TimeoutError:
                # The worker died with the answer. Another worker solves the task again.
                continue
            yield index, answers, was_killed
            del running[future.key]
            future.release()


@contextlib.contextmanager
def _close_quietly(client: Any) -> Iterator[None]:
    """Close a client at the end, without waiting for a lost scheduler and without Dask's log.

    An error about a lost cluster is already one sentence.
    """
    names = logging.root.manager.loggerDict
    dask_names = [name for name in names if name.partition(".")[0] == "distributed"]
    levels = {logger: logger.level for logger in map(logging.getLogger, dask_names)}
    for logger in levels:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        with contextlib.suppress(TimeoutError, OSError):
            client.close(timeout=CLOSE_SECONDS)
        for logger, level in levels.items():
            logger.setLevel(level)
