"""The solver's options as every request takes them: some by name, or all of them in one `Options`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from solvers.backend import Options
from workbench.errors import InvalidRequest

__all__ = ["solver_options"]

_LONGEST = 10**9  # seconds; solvers refuse more


def solver_options(options: Any, given: Mapping[str, Any]) -> Options:
    """The options that were given, one way or the other; given: time_limit, gap and seed as exact values, or None.

    Raises InvalidRequest for both ways at once.
    """
    if options is None:
        seconds, gap = given.get("time_limit"), given.get("gap")
        return Options(
            time_limit=None if seconds is None else float(min(seconds, _LONGEST)),
            gap=None if gap is None else float(gap),
            seed=given.get("seed"),
        )
    if any(value is not None for value in given.values()):
        raise InvalidRequest(f"options must be given alone, without {', '.join(given)}.")
    if not isinstance(options, Options):
        InvalidRequest.must("options", "a solvers.backend.Options", repr(options))
    return options
