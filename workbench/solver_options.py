"""The solver's options as every design takes them: three by name, or all of them in one `Options`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from workbench import rooms  # noqa: F401  (it names a foreign `solvers` in one sentence)

# isort: split
from solvers.backend import Options
from workbench.errors import InvalidRequest

__all__ = ["checked_options", "limits", "settled"]

MOST_SEED = 2**31 - 1


def settled(options: Any, time_limit: Any, gap: Any = None, seed: Any = None) -> Options:
    """The options that were given, one way or the other. Raises InvalidRequest for both ways, or a wrong value."""
    if options is None:
        return limits(time_limit, gap, seed)
    if (time_limit, gap, seed) != (None, None, None):
        raise InvalidRequest("options must be given alone, without time_limit, gap and seed.")
    return checked_options(options)


def checked_options(options: Any) -> Options:
    """The solver's options; none are the default ones."""
    if options is not None and not isinstance(options, Options):
        InvalidRequest.must("options", "a solvers.backend.Options", repr(options))
    return options or Options()


def limits(time_limit: Any, gap: Any = None, seed: Any = None) -> Options:
    """The options that are given by name: seconds, relative gap, seed."""
    if time_limit is not None and not (_number(time_limit) and 0 < time_limit < math.inf):
        InvalidRequest.must("time_limit", "a finite number of seconds > 0", repr(time_limit))
    if gap is not None and not (_number(gap) and 0 <= gap < math.inf):
        InvalidRequest.must("gap", "a finite number >= 0", repr(gap))
    whole = isinstance(seed, (int, np.integer)) and not isinstance(seed, bool)
    if seed is not None and not (whole and 0 <= seed <= MOST_SEED):
        InvalidRequest.must("seed", f"an integer in 0..{MOST_SEED}", repr(seed))
    return Options(
        time_limit=None if time_limit is None else min(float(time_limit), 1e9),
        gap=None if gap is None else float(gap),
        seed=None if seed is None else int(seed),
    )


def _number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        return False
    return bool(-1e300 < value < 1e300)
