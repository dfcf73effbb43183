"""Stop a native solve at Ctrl-C, and keep the best point that it has found.

    with Interruption(stop=model.terminate) as interruption:
        model.optimize()
    if interruption.is_pressed:   # Ctrl-C was pressed during the solve.
        ...

Python runs signal handlers only between bytecodes. A long native solve therefore delays Ctrl-C
until it ends, and then the KeyboardInterrupt discards its answer. Here the C-level handler writes
to a pipe, which a waiting thread reads while the main thread is inside the solver. The thread asks
the solver to stop, and the solve returns normally with the best point found. A second Ctrl-C raises
KeyboardInterrupt as soon as the native call returns.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

_MAX_READ_SIGNALS = 64  # The watcher reads at most this many signal numbers at a time.


class _Watcher:
    """A thread that calls `stop` when Python's C handler writes the number of SIGINT to a pipe.

    There is one watcher for each process.

    Attributes:
        pid: id of the process.
        reader: end of the pipe from which the thread reads signal numbers.
        writer: end of the pipe to which the C handler writes.
        stop: asks the current solver to stop. None while no solver runs.
    """

    def __init__(self) -> None:
        import socket  # This import is slow.

        self.pid = os.getpid()
        self.reader, self.writer = socket.socketpair()
        self.writer.setblocking(False)
        self.stop: Callable[[], object] | None = None
        threading.Thread(target=self._watch, name="solver-interrupt", daemon=True).start()

    def _watch(self) -> None:
        """Call `stop` whenever the C-level handler writes the number of SIGINT. Never returns."""
        while True:
            signal_numbers = self.reader.recv(_MAX_READ_SIGNALS)
            stop = self.stop
            if stop is not None and signal.SIGINT in signal_numbers:
                with contextlib.suppress(Exception):
                    stop()


_watcher: _Watcher | None = None

# The C functions behind those of `signal`, which look up every handler in an enumeration. For small
# programs this takes as long as other parts of a solve.
_native_signal: Any = importlib.import_module("_signal")


def _get_watcher() -> _Watcher:
    """Return the watcher of this process, and start it at the first call."""
    global _watcher
    if _watcher is None or _watcher.pid != os.getpid():  # Threads do not survive a fork.
        _watcher = _Watcher()
    return _watcher


class Interruption:
    """A context in which Ctrl-C calls `stop` from another thread instead of raising.

    The context acts only in the main thread, and only if Ctrl-C has Python's default meaning.
    Otherwise it does nothing. The native call must release the interpreter lock.

    Attributes:
        is_pressed: whether Ctrl-C was pressed inside the context.
    """

    def __init__(self, stop: Callable[[], object]) -> None:
        """Prepare the context.

        Args:
            stop: asks the solver to stop. It is called in another thread.
        """
        self.is_pressed = False
        self._stop = stop
        self._saved_handler: Any = None
        self._saved_wakeup_fd = -1

    def __enter__(self) -> Interruption:
        if (
            threading.current_thread() is threading.main_thread()
            and _native_signal.getsignal(signal.SIGINT) is signal.default_int_handler
        ):
            watcher = _get_watcher()
            watcher.stop = self._stop
            descriptor = watcher.writer.fileno()
            self._saved_wakeup_fd = signal.set_wakeup_fd(descriptor, warn_on_full_buffer=False)
            self._saved_handler = _native_signal.signal(signal.SIGINT, self._handle_signal)
        return self

    def _handle_signal(self, number: int, frame: FrameType | None) -> None:
        """Note the first Ctrl-C, and raise KeyboardInterrupt at the second one."""
        if self.is_pressed:
            signal.default_int_handler(number, frame)
        self.is_pressed = True

    def __exit__(self, *_: object) -> None:
        if self._saved_handler is not None:
            _native_signal.signal(signal.SIGINT, self._saved_handler)
            signal.set_wakeup_fd(self._saved_wakeup_fd, warn_on_full_buffer=False)
            _get_watcher().stop = None
            self._saved_handler = None
