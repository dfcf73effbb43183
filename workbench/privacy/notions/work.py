"""The work that deciding claims may still take, where it is limited: for a file, not for a request of one's own.

Units are those of `workbench.privacy.audit_work`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["count_work", "limited"]

_left: ContextVar[float] = ContextVar("left", default=math.inf)


@contextmanager
def limited(units: float) -> Iterator[None]:
    """At most so many units inside, and no more than a limit around this one leaves."""
    before = _left.get()
    allowed = min(before, units)
    _left.set(allowed)
    try:
        yield
    finally:
        _left.set(before - (allowed - _left.get()))


def count_work(units: float) -> bool:
    """Take units before they are worked off; False, and nothing is taken, where fewer are left."""
    left = _left.get() - units
    if left >= 0:
        _left.set(left)
    return left >= 0
