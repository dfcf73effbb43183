"""Limits on the time of exact work, which no solver's limit covers.

`until` sets one that long loops look at when they call `go_on`; `cpu_limit` ends any work between two of its steps.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_over: ContextVar[Callable[[], bool]] = ContextVar("over", default=bool)  # without a limit: False


class OutOfTime(Exception):
    """The time is up; caught where the limit was set. bound: of what is minimised, proven before; incumbent: its least
    value that was found."""

    bound: float | None = None
    incumbent: float | None = None


@contextmanager
def until(over: Callable[[], bool]) -> Iterator[None]:
    """Inside, exact work ends where the time is over."""
    before = _over.set(over)
    try:
        yield
    finally:
        _over.reset(before)


def go_on() -> None:
    """Raises OutOfTime where the time is over."""
    if _over.get()():
        raise OutOfTime


@contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Raise OutOfTime inside after so many seconds of CPU time: only in the main thread, and where there are such
    clocks (not on Windows)."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds, 1)  # again each second, should something swallow the exception
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
