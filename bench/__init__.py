"""Benchmarks, and the functions with which they measure time (`make bench`).

A benchmark reports ratios of CPU seconds that are measured in one run, because the seconds
themselves depend on the machine. All calls take turns: in each turn, every call runs once. For
example, the turns of calls a and b run in the order a b a b a b. No test checks the results.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

TURNS = 3  # Default number of measured turns.


def time_turns(
    calls: Mapping[str, Callable[[], Any]],
    turns: int = TURNS,
    *,
    warm: bool = True,
    clock: Callable[[], float] = time.process_time,
) -> tuple[dict[str, list[float]], dict[str, Any]]:
    """Time calls in turns, so that other work on the machine slows down all of them alike.

    Args:
        calls: name -> function without arguments.
        turns: number of measured turns.
        warm: whether a first turn is run without measuring it.
        clock: returns seconds. Default: CPU time of this process.

    Returns:
        Name -> seconds of each turn, and name -> result of the last turn.
    """
    times: dict[str, list[float]] = {name: [] for name in calls}
    results: dict[str, Any] = {}
    warm_up_turns = 1 if warm else 0
    for turn in range(warm_up_turns + turns):
        for name, call in calls.items():
            begin = clock()
            results[name] = call()
            if turn >= warm_up_turns:
                times[name].append(clock() - begin)
    return times, results


def time_best_turn(
    calls: Mapping[str, Callable[[], Any]], turns: int = TURNS, *, warm: bool = True
) -> tuple[dict[str, float], dict[str, Any]]:
    """Time calls in turns, and return the CPU seconds of the fastest turn of each call.

    Args:
        calls: name -> function without arguments.
        turns: number of measured turns.
        warm: whether a first turn is run without measuring it.

    Returns:
        Name -> seconds, and name -> result of the last turn.
    """
    times, results = time_turns(calls, turns, warm=warm)
    return {name: min(seconds) for name, seconds in times.items()}, results


def median_ratios(times: Mapping[str, list[float]], reference: str) -> dict[str, float]:
    """Return the median over turns of (time of a call) / (time of the reference), for each call.

    Both times of a ratio come from the same turn. If the machine is slow during a turn, both times
    grow and the ratio stays the same.

    Args:
        times: name -> seconds of each turn.
        reference: name of the reference, which has no ratio in the result.
    """
    ratios = {}
    for name, seconds in times.items():
        if name != reference:
            pairs = zip(seconds, times[reference], strict=True)
            ratios[name] = median(call / base for call, base in pairs)
    return ratios


def time_call(call: Callable[[], Any], turns: int = TURNS) -> tuple[float, Any]:
    """Return the CPU seconds of the fastest turn of one call, and its result.

    Args:
        call: function without arguments.
        turns: number of measured turns.
    """
    times, results = time_best_turn({"": call}, turns)
    return times[""], results[""]
