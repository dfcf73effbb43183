"""Tasks in processes of their own, which can be stopped at any moment: a solver that is at work hears nothing else.

A lane runs one task at a time. `live` answers sliders, `slow` draws curves and exports, and is ended when it has had
nothing to do for a while. Workers are forked from a process that has imported everything, where the system can.
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

LANE_LIMIT_SECONDS = {"live": 20.0, "slow": 120.0}  # seconds of one task
LANE_BY_TASK = dict.fromkeys(
    ("suggestions", "fields", "adapt", "design", "certify"), "live"
)  # of a task; the others are slow
_MIN_WORKER_BYTES = 4 << 30  # A worker may always use so many bytes of address space.
_PRELOADED_MODULES = [
    "workbench.explorer.tasks",
    "workbench.models.modulo.program",
    "workbench.solvers.backends.highs",
]  # what nearly every design needs
_SLOW_WORKER_IDLE_SECONDS = 15.0  # seconds after which the slow worker gives its memory back
_BUSY_LANE_SECONDS = 60.0  # seconds until a busy lane is given up
_TICK_SECONDS = 0.25

Message = dict[str, Any]


class TaskStopped(WorkbenchError):
    """A task was stopped: by its limit, by whoever asked for it, or because its process died."""


def _run_worker(pipe: Any, files: FileTexts) -> None:
    """A worker: tasks from a pipe, one after the other, each answered by messages and one result."""
    gc.freeze()  # what was there before the fork stays shared: the collector does not write to it
    begin_worker(os.getppid())  # the process it was forked from, which ends with the explorer
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(
            resource.RLIMIT_AS, (worker_memory_limit(), resource.getrlimit(resource.RLIMIT_AS)[1])
        )
    from workbench.explorer.tasks import Tasks

    tasks = Tasks(files)
    while True:
        try:
            task, request = pipe.recv()
        except (EOFError, OSError):
            return
        pipe.send(_run_task(tasks, task, request, partial(_send_progress, pipe)))


def worker_memory_limit() -> int:
    """Bytes of address space that a worker may use: half of the machine's memory, and at least 4 GB."""
    try:
        physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):  # a system that does not say
        physical = 0
    return max(_MIN_WORKER_BYTES, physical // 2)


def _send_progress(pipe: Any, done: int, total: int, part: Any = None) -> None:
    """Send how far a task is, with what has come out of its last part."""
    pipe.send({"done": done, "total": total} | ({} if part is None else {"part": part}))


def _run_task(tasks: Any, task: str, request: Values, tell: Callable[..., None]) -> Message:
    try:
        return {"result": tasks.run(task, request, tell)}
    except WorkbenchError as error:
        return {"error": type(error).__name__, "message": str(error)}
    except MemoryError:
        words = f"The request needs more than the {worker_memory_limit() >> 30} GB that a page may use: ask for less, or use the"
        return {
            "error": "WorkbenchError",
            "message": f"{words} command line, which has no such limit.",
        }
    except Exception as error:
        return make_bug_message(error)


def make_bug_message(error: Exception) -> Message:
    """The message of an error that nobody foresaw."""
    return {
        "error": "Bug",
        "message": f"{type(error).__name__}: {' '.join(str(error).split())} (this is a bug)",
    }


class _Lane:
    """One worker at most, one task at a time."""

    def __init__(self, context: Any, limit: float, files: FileTexts) -> None:
        self._context, self._limit, self._files = context, limit, files
        self._turn = threading.Lock()
        self._closed = False
        self._process: Any = None
        self._pipe: Any = None

    def start_worker(self) -> None:
        """Make sure that there is a worker. Raises Stopped."""
        if self._closed:
            raise TaskStopped("The server has stopped: start workbench explore again.")
        if self._process is None or not self._process.is_alive():
            self.kill_worker()
            pipe, theirs = self._context.Pipe()
            process = self._context.Process(
                target=_run_worker, args=(theirs, tuple(self._files)), daemon=True
            )
            with safe_start():
                process.start()
            theirs.close()
            self._process, self._pipe = process, pipe
            if self._closed:  # meanwhile
                self.kill_worker()

    def prestart_worker(self) -> None:
        """Start the worker before it is needed."""
        with self._turn, contextlib.suppress(TaskStopped):
            self.start_worker()

    def kill_worker(self) -> None:
        """Kill the worker, whatever it does."""
        process, self._process = self._process, None
        pipe, self._pipe = self._pipe, None
        if process:
            process.kill()
            process.join(5)
        if pipe:
            pipe.close()

    def close(self) -> None:
        """Kill the worker and start no other."""
        self._closed = True
        self.kill_worker()

    def kill_idle_worker(self) -> None:
        """End the worker unless it is at work."""
        if self._turn.acquire(blocking=False):
            try:
                self.kill_worker()
            finally:
                self._turn.release()

    def run(self, task: str, request: Values) -> Generator[Message, None, None]:
        """The messages of a task, the last one its result or error, an empty one at every tick. Closing the iterator
        stops the task. Raises Stopped."""
        deadline = Deadline(_BUSY_LANE_SECONDS)
        while not self._turn.acquire(timeout=_TICK_SECONDS):
            if deadline.has_passed:
                raise TaskStopped("The explorer is busy with other requests.")
            yield {}
        finished = False
        try:
            self.start_worker()
            pipe = self._pipe
            pipe.send((task, dict(request)))
            deadline = Deadline(self._limit)
            while not finished:
                if deadline.has_passed:
                    raise TaskStopped(
                        f"Stopped after {self._limit:g} s. Ask for less, or use the command line."
                    )
                message = pipe.recv() if pipe.poll(_TICK_SECONDS) else {}
                finished = "result" in message or "error" in message
                yield message
        except (EOFError, OSError):
            raise TaskStopped(
                "The computation ended unexpectedly; it may have needed too much memory."
            ) from None
        finally:
            if not finished:
                self.kill_worker()
            self._turn.release()


class Lanes:
    """The lanes of an explorer. files: (family, option, text) whose texts may name files."""

    def __init__(
        self, files: FileTexts = (), limits: Mapping[str, float] = LANE_LIMIT_SECONDS
    ) -> None:
        forks = "forkserver" in multiprocessing.get_all_start_methods()
        context = multiprocessing.get_context("forkserver" if forks else "spawn")
        if forks:
            context.set_forkserver_preload(_PRELOADED_MODULES)
        self._lanes = {name: _Lane(context, limit, files) for name, limit in limits.items()}
        self._idle: threading.Timer | None = None
        self._starting: threading.Thread | None = None

    def start(self) -> None:
        """Have the worker that answers sliders started; the page need not wait for it."""
        self._starting = threading.Thread(target=self._lanes["live"].prestart_worker, daemon=True)
        self._starting.start()

    def run(self, task: str, request: Values) -> Generator[Message, None, None]:
        """The messages of a task (`_Lane.run`). The slow worker leaves when nobody has needed it for a while."""
        name = LANE_BY_TASK.get(task, "slow")
        try:
            yield from self._lanes[name].run(task, request)
        finally:
            if name == "slow":
                self._schedule_idle_kill()

    def _schedule_idle_kill(self) -> None:
        if self._idle:
            self._idle.cancel()
        self._idle = threading.Timer(
            _SLOW_WORKER_IDLE_SECONDS, self._lanes["slow"].kill_idle_worker
        )
        self._idle.daemon = True
        self._idle.start()

    def kill_workers(self) -> None:
        """Kill all workers."""
        if self._idle:
            self._idle.cancel()
        for lane in self._lanes.values():
            lane.close()
        if self._starting:
            self._starting.join(10)  # a worker whose start is cut short complains on stderr
