"""Ctrl-C reaches the solver while it runs, and its incumbent survives.

Python runs signal handlers only between bytecodes, so a long native solve swallows Ctrl-C until it ends, and then the
KeyboardInterrupt throws its answer away. `Interruption` lets the C-level handler write to a pipe, which a waiting
thread reads while the main thread is inside the solver; the thread asks the solver to stop, and the solve returns
normally with what it has.

    with Interruption(stop=model.terminate) as interruption:
        model.optimize()
    interruption.seen       # whether Ctrl-C was pressed meanwhile

It acts only in the main thread and only when Ctrl-C has Python's default meaning; otherwise it does nothing. The
native call must release the interpreter lock.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any


class _Watcher:
    """One thread per process that waits for the signal numbers that Python's C handler writes into a pipe."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.reader, self.writer = socket.socketpair()
        self.writer.setblocking(False)
        self.stop: Callable[[], object] | None = None
        threading.Thread(target=self._watch, name="solver-interrupt", daemon=True).start()

    def _watch(self) -> None:
        while True:
            numbers = self.reader.recv(64)
            stop = self.stop
            if stop is not None and signal.SIGINT in numbers:
                with contextlib.suppress(Exception):
                    stop()


_watcher: _Watcher | None = None


def _watching() -> _Watcher:
    global _watcher
    if _watcher is None or _watcher.pid != os.getpid():  # threads do not survive a fork
        _watcher = _Watcher()
    return _watcher


class Interruption:
    """While inside, Ctrl-C calls `stop` (from another thread) instead of raising; `seen` says that it happened.

    A second Ctrl-C raises KeyboardInterrupt as soon as the native call is back.
    """

    def __init__(self, stop: Callable[[], object]) -> None:
        self.seen = False
        self._stop = stop
        self._handler: Any = None
        self._fd = -1

    def __enter__(self) -> Interruption:
        if (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        ):
            watcher = _watching()
            watcher.stop = self._stop
            self._fd = signal.set_wakeup_fd(watcher.writer.fileno(), warn_on_full_buffer=False)
            self._handler = signal.signal(signal.SIGINT, self._on_signal)
        return self

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.seen:
            signal.default_int_handler(number, frame)
        self.seen = True

    def __exit__(self, *_: object) -> None:
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
            signal.set_wakeup_fd(self._fd, warn_on_full_buffer=False)
            _watching().stop = None
            self._handler = None
