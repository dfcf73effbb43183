"""Limit the time of exact computations, which the time limit of a solver does not cover.

`limit_time` sets a limit that long loops check by calling `check_time_limit`. `limit_cpu_time`
interrupts any work between two of its steps. A loop over items that take a moment each looks at the
clock once in `ITEMS_PER_CLOCK_CHECK` of them:

    for position, item in enumerate(items):
        if position % ITEMS_PER_CLOCK_CHECK == 0:
            check_time_limit()
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

ITEMS_PER_CLOCK_CHECK = 64  # A loop over short items looks at the clock once in this many of them.

# An interruption that some code has swallowed is repeated after this CPU time.
_INTERRUPTION_PERIOD_SECONDS = 1

# The time at which the limit is reached, on the clock of `time.perf_counter`.
_end: ContextVar[float] = ContextVar("end", default=math.inf)


class OutOfTime(Exception):
    """The time limit is reached. Whoever set the limit catches it.

    Attributes:
        bound: A lower bound on the minimised value that was proven in time, or None.
        incumbent: The smallest value that was found in time, or None.
    """

    bound: float | None = None
    incumbent: float | None = None


@contextmanager
def limit_time(seconds: float | None) -> Iterator[None]:
    """Limit the exact computations inside this context to a number of seconds.

    Args:
        seconds: The limit in seconds of wall-clock time. None: no limit.
    """
    end = math.inf if seconds is None else time.perf_counter() + seconds
    token = _end.set(end)
    try:
        yield
    finally:
        _end.reset(token)


def check_time_limit() -> None:
    """Raise OutOfTime if the time limit is reached."""
    if time.perf_counter() > _end.get():
        raise OutOfTime


@contextmanager
def limit_cpu_time(seconds: float) -> Iterator[None]:
    """Raise OutOfTime inside this context after a number of seconds of CPU time.

    The limit only works in the main thread, and where the operating system has interval timers (not
    on Windows).

    Args:
        seconds: The seconds of CPU time, > 0.
    """
    has_timer = hasattr(signal, "setitimer")
    is_main_thread = threading.current_thread() is threading.main_thread()
    if not has_timer or not is_main_thread:
        yield
        return

    def interrupt(*_: object) -> None:
        """Raise OutOfTime in the main thread."""
        raise OutOfTime

    previous_handler = signal.signal(signal.SIGPROF, interrupt)
    # The signal is repeated in case some code swallows the exception.
    signal.setitimer(signal.ITIMER_PROF, seconds, _INTERRUPTION_PERIOD_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous_handler)
