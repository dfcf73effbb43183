"""A limit on the time of exact work, which no solver's limit covers: `until` sets it, long loops call `go_on`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_over: ContextVar[Callable[[], bool]] = ContextVar("over", default=bool)  # without a limit: False


class OutOfTime(Exception):
    """The time is up; caught where the limit was set. bound: what was proven before."""

    bound: float | None = None


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
