"""Run the explorer's tasks in separate processes, which can be stopped at any moment.

A solver that is running does not react to anything else, so its process is killed. A lane is one
worker process that runs one task at a time. The lane `live` answers sliders. The lane `slow` draws
curves, proves and exports; its worker ends after some time without a task. If the system allows it,
workers are forked from a process that has imported everything.

The messages of a task are dictionaries. For example, a curve of 25 designs sends

    {}                                          while it computes
    {"done": 1, "total": 25, "part": {...}}     after each design
    {"result": {...}}                           at the end, or {"error": ..., "message": ...}
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import multiprocessing.connection
import os
import threading
from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any

from workbench.errors import WorkbenchError
from workbench.exact.objects import Values
from workbench.explorer.given import FileTexts
from workbench.io.processes import begin_worker, safe_start
from workbench.solvers.search import Deadline

# Lane -> the time limit of a task in seconds.
LANE_LIMIT_SECONDS = {"live": 20.0, "slow": 120.0}

# Task -> its lane. All other tasks are slow.
LANE_BY_TASK = dict.fromkeys(("suggestions", "fields", "adapt", "design", "certify"), "live")

_MIN_WORKER_BYTES = 4 << 30  # A worker may always use this many bytes of address space, 4 GB.
_SLOW_WORKER_IDLE_SECONDS = 15.0  # The slow worker ends after this time without a task.
_BUSY_LANE_SECONDS = 60.0  # A task that has waited this long for a busy lane is refused.
_KILL_SECONDS = 5.0  # A killed worker is awaited for at most this time.
_START_SECONDS = 10.0  # The thread that starts a worker is awaited for at most this time.
_TICK_SECONDS = 0.25  # A waiting reader gets an empty message at this interval.

# The modules that nearly every design needs, after one that keeps a stop free of tracebacks.
_PRELOADED_MODULES = [
    "workbench.explorer.worker_start",
    "workbench.explorer.tasks",
    "workbench.models.modulo.program",
    "workbench.solvers.backends.highs",
]

Message = dict[str, Any]


class TaskStopped(WorkbenchError):
    """A task was stopped: by its limit, by its requester, or because its process died."""


def _run_worker(pipe: Any, files: FileTexts) -> None:
    """Run tasks from a pipe one after the other, and send their messages and results."""
    # Objects from before the fork stay shared, because the collector does not write to them.
    gc.freeze()
    # The parent is the process from which this one was forked. It ends with the explorer.
    begin_worker(os.getppid())
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        _, hard_limit = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (worker_memory_limit(), hard_limit))
    from workbench.explorer.tasks import Tasks

    tasks = Tasks(files)
    while True:
        try:
            task, request = pipe.recv()
        except (EOFError, OSError):
            return
        pipe.send(_run_task(tasks, task, request, partial(_send_progress, pipe)))


def worker_memory_limit() -> int:
    """Return how many bytes of address space a worker may use.

    They are half of the machine's memory, and at least 4 GB.
    """
    try:
        physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        # The system does not tell the size of its memory.
        physical = 0
    return max(_MIN_WORKER_BYTES, physical // 2)


def _send_progress(pipe: Any, done: int, total: int, part: Any = None) -> None:
    """Send the progress of a task with the result of its last part.

    Args:
        pipe: Pipe to the server.
        done: Number of finished parts.
        total: Number of parts.
        part: Result of the last part. None: it has none.
    """
    message = {"done": done, "total": total}
    if part is not None:
        message["part"] = part
    pipe.send(message)


def _run_task(
    tasks: Any, task: str, request: Values, report_progress: Callable[..., None]
) -> Message:
    """Run a task and return the message with its result or error."""
    try:
        return {"result": tasks.run(task, request, report_progress)}
    except WorkbenchError as error:
        return {"error": type(error).__name__, "message": str(error)}
    except MemoryError:
        message = (
            f"The request needs more than the {worker_memory_limit() >> 30} GB that a page may "
            "use: ask for less, or use the command line, which has no such limit."
        )
        return {"error": "WorkbenchError", "message": message}
    except Exception as error:
        return make_bug_message(error)


def make_bug_message(error: Exception) -> Message:
    """Return the message of an unexpected error.

    Args:
        error: An error that is no WorkbenchError.
    """
    text = " ".join(str(error).split())
    return {"error": "Bug", "message": f"{type(error).__name__}: {text} (this is a bug)"}


class _Lane:
    """A lane with at most one worker, which runs one task at a time.

    Several threads use a lane. `_turn` is locked while a task runs.
    """

    def __init__(self, context: Any, limit: float, files: FileTexts) -> None:
        """Make a lane without a worker.

        Args:
            context: A context of `multiprocessing`.
            limit: Time limit of a task in seconds.
            files: (family, option, text) of each text that may name a file, as in `Lanes`.
        """
        self._context = context
        self._limit = limit
        self._files = files
        self._turn = threading.Lock()
        self._is_closed = False
        self._process: Any = None
        self._pipe: Any = None

    def start_worker(self) -> None:
        """Start a worker if there is none. Raises TaskStopped if the lane is closed."""
        if self._is_closed:
            raise TaskStopped("The server has stopped: start workbench explore again.")
        if self._process is None or not self._process.is_alive():
            self.kill_worker()
            pipe, worker_pipe = self._context.Pipe()
            arguments = (worker_pipe, tuple(self._files))
            process = self._context.Process(target=_run_worker, args=arguments, daemon=True)
            with safe_start():
                process.start()
            worker_pipe.close()
            self._process = process
            self._pipe = pipe
            # Another thread may have closed the lane in the meantime.
            if self._is_closed:
                self.kill_worker()

    def prestart_worker(self) -> None:
        """Start the worker before it is needed. A closed lane stays without one."""
        with self._turn, contextlib.suppress(TaskStopped):
            self.start_worker()

    def kill_worker(self) -> None:
        """Kill the worker if there is one."""
        process = self._process
        pipe = self._pipe
        self._process = None
        self._pipe = None
        if process:
            process.kill()
            process.join(_KILL_SECONDS)
        if pipe:
            pipe.close()

    def close(self) -> None:
        """Kill the worker and prevent a new one."""
        self._is_closed = True
        self.kill_worker()

    def kill_idle_worker(self) -> None:
        """Kill the worker unless it runs a task."""
        if self._turn.acquire(blocking=False):
            try:
                self.kill_worker()
            finally:
                self._turn.release()

    def run(self, task: str, request: Values) -> Generator[Message, None, None]:
        """Yield the messages of a task. The last one is its result or error.

        An empty message is yielded at every tick. Closing the generator stops the task. Raises
        TaskStopped.
        """
        deadline = Deadline(_BUSY_LANE_SECONDS)
        while not self._turn.acquire(timeout=_TICK_SECONDS):
            if deadline.has_passed:
                raise TaskStopped("The explorer is busy with other requests.")
            yield {}
        is_finished = False
        try:
            self.start_worker()
            pipe = self._pipe
            pipe.send((task, dict(request)))
            deadline = Deadline(self._limit)
            while not is_finished:
                if deadline.has_passed:
                    raise TaskStopped(
                        f"Stopped after {self._limit:g} s. Ask for less, or use the command line."
                    )
                message = pipe.recv() if pipe.poll(_TICK_SECONDS) else {}
                is_finished = "result" in message or "error" in message
                yield message
        except (EOFError, OSError):
            raise TaskStopped(
                "The computation ended unexpectedly; it may have needed too much memory."
            ) from None
        finally:
            if not is_finished:
                self.kill_worker()
            self._turn.release()


class Lanes:
    """The lanes of an explorer."""

    def __init__(
        self, files: FileTexts = (), limits: Mapping[str, float] = LANE_LIMIT_SECONDS
    ) -> None:
        """Make lanes without workers.

        Args:
            files: (family, option, text) of each text that may name a file.
            limits: Lane -> the time limit of a task in seconds.
        """
        can_fork = "forkserver" in multiprocessing.get_all_start_methods()
        context = multiprocessing.get_context("forkserver" if can_fork else "spawn")
        if can_fork:
            context.set_forkserver_preload(_PRELOADED_MODULES)
        self._lanes = {name: _Lane(context, limit, files) for name, limit in limits.items()}
        self._idle_timer: threading.Timer | None = None
        self._start_thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the worker that answers sliders. The page does not wait for it."""
        start = self._lanes["live"].prestart_worker
        self._start_thread = threading.Thread(target=start, daemon=True)
        self._start_thread.start()

    def run(self, task: str, request: Values) -> Generator[Message, None, None]:
        """Yield the messages of a task. The last one has its "result" or its "error".

        Earlier messages are empty, or have "done" and "total" parts and the result of the last
        "part". Closing the generator stops the task.

        The slow worker ends after some time without a task.

        Args:
            task: One of `tasks.TASK_NAMES`.
            request: The JSON object of the page.

        Raises:
            TaskStopped: The lane stayed busy, or the task exceeded its limits or lost its process.
        """
        name = LANE_BY_TASK.get(task, "slow")
        try:
            yield from self._lanes[name].run(task, request)
        finally:
            if name == "slow":
                self._schedule_idle_kill()

    def _schedule_idle_kill(self) -> None:
        """Kill the slow worker after some time without a task."""
        if self._idle_timer:
            self._idle_timer.cancel()
        kill = self._lanes["slow"].kill_idle_worker
        self._idle_timer = threading.Timer(_SLOW_WORKER_IDLE_SECONDS, kill)
        self._idle_timer.daemon = True
        self._idle_timer.start()

    def kill_workers(self) -> None:
        """Kill the worker of every lane, also one that is just starting."""
        if self._idle_timer:
            self._idle_timer.cancel()
        for lane in self._lanes.values():
            lane.close()
        if self._start_thread:
            # A worker that is killed while it starts would write to stderr.
            self._start_thread.join(_START_SECONDS)
