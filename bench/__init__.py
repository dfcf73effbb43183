"""Benchmarks: ratios of CPU seconds measured in one run (`make bench`), never timed tests."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

TURNS = 3


def turns_of(
    calls: Mapping[str, Callable[[], Any]],
    turns: int = TURNS,
    *,
    warm: bool = True,
    clock: Callable[[], float] = time.process_time,
) -> tuple[dict[str, list[float]], dict[str, Any]]:
    """The CPU seconds of each call in every turn, and what it answered; they take turns, so that a busy machine slows
    all alike. warm: by a turn that is not measured; clock: seconds of the processor, of this process unless told."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    answers: dict[str, Any] = {}
    for turn in range(turns + warm):
        for name, call in calls.items():
            begin = clock()
            answers[name] = call()
            if turn >= warm:
                times[name].append(clock() - begin)
    return times, answers


def in_turns(
    calls: Mapping[str, Callable[[], Any]], turns: int = TURNS, *, warm: bool = True
) -> tuple[dict[str, float], dict[str, Any]]:
    """The least of `turns_of`."""
    times, answers = turns_of(calls, turns, warm=warm)
    return {name: min(several) for name, several in times.items()}, answers


def beside(times: Mapping[str, list[float]], reference: str) -> dict[str, float]:
    """The median over turns of what each call took beside the reference in the same turn: what slows both is no part of
    it, as it is of the ratio of two minima that are minutes apart."""
    return {
        name: median(own / other for own, other in zip(several, times[reference], strict=True))
        for name, several in times.items()
        if name != reference
    }


def seconds_of(call: Callable[[], Any], turns: int = TURNS) -> tuple[float, Any]:
    """The least CPU seconds of one call, warm, and its answer."""
    times, answers = in_turns({"": call}, turns)
    return times[""], answers[""]
