"""Start worker processes that load no code of the current folder and end with their parent."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator

_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)
ONE_THREAD_ENVIRONMENT = dict.fromkeys(_THREAD_VARIABLES, "1")
# With this variable, a new Python process has no current folder on its path.
SAFE_PATH_ENVIRONMENT = {"PYTHONSAFEPATH": "1"}
_PR_SET_PDEATHSIG = 1  # Option of prctl on Linux: send a signal when the parent ends.
_PARENT_CHECK_SECONDS = 1.0  # Time between two checks of the parent.


def end_with_parent(parent: int) -> None:
    """End this process within seconds after its parent has ended.

    On Linux the kernel kills it, even within a solver that never returns to Python. On other
    systems, and if the parent died before this call, a thread notices that the process has a new
    parent.

    Args:
        parent: Process ID of the parent.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    def watch_parent() -> None:
        """Exit as soon as the process has another parent."""
        while os.getppid() == parent:
            time.sleep(_PARENT_CHECK_SECONDS)
        os._exit(1)

    if os.name == "posix":
        threading.Thread(target=watch_parent, name="parent watch", daemon=True).start()


def begin_worker(parent: int) -> None:
    """Prepare a new worker process: it ignores Ctrl-C, and ends when its parent ends.

    The parent handles Ctrl-C.

    Args:
        parent: Process ID of the parent.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent(parent)


@contextlib.contextmanager
def safe_start() -> Iterator[None]:
    """Keep the current folder off the module path of Python processes that start in this context.

    Libraries start processes by `python -c` and `python -m`. Both would import modules of the
    current folder first.
    """
    earlier_values = {name: os.environ.get(name) for name in SAFE_PATH_ENVIRONMENT}
    os.environ.update(SAFE_PATH_ENVIRONMENT)
    try:
        yield
    finally:
        for name, value in earlier_values.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
