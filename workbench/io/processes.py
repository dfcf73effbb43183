"""Worker processes that run nothing of the current folder, and none that outlives its parent."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator

ONE_THREAD_ENVIRONMENT = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
SAFE_PATH_ENVIRONMENT = {
    "PYTHONSAFEPATH": "1"
}  # in a new Python's environment: its path has no current folder
_PR_SET_PDEATHSIG = 1
_PERIOD = 1.0  # seconds between two looks at the parent


def end_with_parent(parent: int) -> None:
    """End this process when `parent`, the process that started it, has ended, within seconds and whatever it does.

    On Linux the kernel kills it, even within a solver that never returns to Python; elsewhere, and when the parent
    died before this call, a thread notices that the process was given to another parent.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PERIOD)
        os._exit(1)

    if os.name == "posix":
        threading.Thread(target=watch, name="parent watch", daemon=True).start()


def begin_worker(parent: int) -> None:
    """A worker's first act: Ctrl-C is the parent's business, and without the parent there is no work."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent(parent)


@contextlib.contextmanager
def safe_start() -> Iterator[None]:
    """While it lasts, a new Python process has no current folder on its path: `python -c` and `python -m`, by which
    libraries start processes, put it first."""
    before = {name: os.environ.get(name) for name in SAFE_PATH_ENVIRONMENT}
    os.environ.update(SAFE_PATH_ENVIRONMENT)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
