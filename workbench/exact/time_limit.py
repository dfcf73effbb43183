"""Limits on the time of exact work, which no solver's limit covers.

`limit_time` sets one that long loops look at when they call `go_on`; `cpu_limit` ends any work between two of its
steps. A loop over items that take a moment each looks at the clock once in `BLOCK` of them:

    for position, item in enumerate(items):
        if position % BLOCK == 0:
            go_on()
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

ITEMS_PER_CLOCK_CHECK = 64  # A loop over short items looks at the clock once in so many of them.

# When the time is over, on the clock of `time.perf_counter`.
_end: ContextVar[float] = ContextVar("end", default=math.inf)


class OutOfTime(Exception):
    """The time is up; caught where the limit was set. bound: of what is minimised, proven before; incumbent: its least
    value that was found."""

    bound: float | None = None
    incumbent: float | None = None


@contextmanager
def limit_time(seconds: float | None) -> Iterator[None]:
    """End exact work inside after so many seconds. None: no limit."""
    before = _end.set(math.inf if seconds is None else time.perf_counter() + seconds)
    try:
        yield
    finally:
        _end.reset(before)


def check_time_limit() -> None:
    """Raise OutOfTime if the time is over."""
    if time.perf_counter() > _end.get():
        raise OutOfTime


@contextmanager
def limit_cpu_time(seconds: float) -> Iterator[None]:
    """Raise OutOfTime inside after so many seconds of CPU time: only in the main thread, and where there are such
    clocks (not on Windows)."""
    if (
        not hasattr(signal, "setitimer")
        or threading.current_thread() is not threading.main_thread()
    ):
        yield
        return

    def stop(*_: object) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(
        signal.ITIMER_PROF, seconds, 1
    )  # again each second, should something swallow the exception
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
