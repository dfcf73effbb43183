"""Compare two methods for PDP noise with δ > 0: "fast" and "literal", both on HiGHS.

"literal" solves the mixed-integer program (13) of Kadam et al. 2024. "fast" is the method of the
workbench (`workbench.models.modulo.fast`). Both run in one thread, with gap 1e-9 and a limit of
120 s. A row has the CPU seconds of the fastest of three turns of each method:

    literal_seconds   HiGHS loads and solves the compiled program. Compilation does not count
    fast_seconds      everything from the question to the proven answer
    nodes             number of violation patterns that "fast" searched. It is 0 if the proof uses
                      level functions, or if the first program proves the optimum

If "literal" reaches the limit, it runs once, and its row has the CPU seconds until then. HiGHS
measures its limit in wall-clock time. If it got less than 90 % of 120 s of CPU time, because the
machine was busy, it is solved again with a longer limit.

The last rows are the totals, and n = 256, 511 and 1023, for which "literal" is not run. The default
is a subset of a few minutes. `python -m bench fast_milp --full` runs the whole suite of 228
instances (an hour).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from workbench.models.convex.requirements import MASS_ABOVE_RATIO as PDP
from workbench.models.modulo.fast import FastSession
from workbench.models.modulo.program import ModuloModel, loss_vector
from workbench.solvers.backend import Options, get_backend, solve
from workbench.solvers.program import Program
from workbench.solvers.solution import Solution, Termination

TITLE = "Fast exact MILP against the literal model (HiGHS, one thread, gap 1e-9, limit 120 s)"
TIME_LIMIT_SECONDS = 120.0
GAP = 1e-9  # Relative gap at which both methods stop.
TURNS = 3
# After a time-out with less CPU time than this share of the limit, the program is solved again.
_MIN_USED_SHARE = 0.9
COLUMNS = (
    "instance",
    "epsilon",
    "delta",
    "loss",
    "literal",
    "literal_seconds",
    "fast",
    "fast_seconds",
    "ratio",
    "nodes",
    "objective",
    "gap",
    "difference",
)

Shifts = tuple[tuple[int, ...], ...]
Group = tuple[str, tuple[int, ...], Shifts]  # Name, sizes and shifts.


def list_groups(full: bool) -> Iterator[Group]:
    """Yield the name, the sizes and the shifts of every question.

    "BD mu=3 n=10" is noise modulo 11 with neighbours at the distances 1, 2 and 3 (bounded
    difference). "5x5, 3 shifts" is noise on a grid.

    Args:
        full: whether to yield the whole suite.
    """
    for mu, n in itertools.product((3, 4), (10, 16, 24, 32, 48, 64) if full else (10, 16)):
        yield f"BD mu={mu} n={n}", (n + 1,), tuple((k,) for k in range(1, mu + 1))
    yield "{1,3,5,6} n=16", (17,), ((1,), (3,), (5,), (6,))
    if full:
        for n in (24, 32):
            steps = np.random.default_rng(n).choice(np.arange(1, n + 1), 4, replace=False)
            yield f"random 4 of n={n}", (n + 1,), tuple((int(k),) for k in sorted(steps))
    for n, mu in ((16, 2), (24, 3)) if full else ((16, 2),):
        yield f"symmetric BD mu={mu} n={n}", (n + 1,), _mirror_shifts(range(1, mu + 1), n)
    yield "5x5, 3 shifts", (5, 5), ((0, 1), (1, 0), (1, 1))
    yield "4x6, 4 shifts", (4, 6), ((0, 1), (1, 0), (0, 5), (3, 0))


def _mirror_shifts(steps: Iterable[int], n: int) -> Shifts:
    """Return the shifts k and -k modulo n + 1 for every step k."""
    steps = [*steps]
    negatives = [-k for k in reversed(steps)]
    return tuple((k % (n + 1),) for k in (*steps, *negatives))


def _time_solution(solve_once: Callable[[], Solution]) -> tuple[Solution, float]:
    """Return a solution and the CPU seconds of the fastest turn. A time-out ends the turns."""
    seconds = float("inf")
    for _ in range(TURNS):
        begin = time.process_time()
        solution = solve_once()
        seconds = min(seconds, time.process_time() - begin)
        if solution.termination is Termination.TIME_LIMIT:
            break
    return solution, seconds


def _time_instance(
    group: Group, epsilon: float, delta: float, loss: str, has_literal: bool = True
) -> dict[str, Any]:
    """Return the row of one instance.

    Args:
        group: name, sizes and shifts of the question.
        epsilon: budget.
        delta: budget.
        loss: name of the loss.
        has_literal: whether to solve the literal model.
    """
    name, sizes, shifts = group
    model = ModuloModel(sizes, shifts, PDP, loss_vector(loss, sizes))
    options = Options(time_limit=TIME_LIMIT_SECONDS, gap=GAP)
    row: dict[str, Any] = {"instance": name, "epsilon": epsilon, "delta": delta, "loss": loss}
    values = model.values([epsilon], delta)

    def solve_fast() -> Solution:
        with FastSession(model, get_backend("highs"), options) as session:
            return session.solve(values)

    fast_solution, fast_seconds = _time_solution(solve_fast)
    assert fast_solution.objective is not None
    row |= {
        "fast_seconds": fast_seconds,
        "fast": str(fast_solution.termination),
        "nodes": fast_solution.nodes,
        "objective": fast_solution.objective,
        "gap": fast_solution.gap,
    }
    if has_literal:
        solution, seconds = _time_literal(model.program, values)
        row |= {"literal_seconds": seconds, "literal": str(solution.termination)}
        row["difference"] = None
        if solution.objective is not None:
            row["difference"] = fast_solution.objective - solution.objective
        row["ratio"] = seconds / fast_seconds
    return row


def _time_literal(program: Program, values: Mapping[str, Any]) -> tuple[Solution, float]:
    """Return the solution of the literal program and its CPU seconds.

    The limit of TIME_LIMIT_SECONDS is one of CPU time, but HiGHS measures wall-clock time.
    """
    options = Options(time_limit=TIME_LIMIT_SECONDS, gap=GAP)
    begin = time.perf_counter()
    solution, seconds = _time_solution(lambda: solve(program, values, options=options))
    is_time_out = solution.termination is Termination.TIME_LIMIT
    if is_time_out and seconds < _MIN_USED_SHARE * TIME_LIMIT_SECONDS:
        time_limit = TIME_LIMIT_SECONDS * (time.perf_counter() - begin) / seconds
        long_options = replace(options, time_limit=time_limit)
        solution, seconds = _time_solution(lambda: solve(program, values, options=long_options))
    return solution, seconds


def run_fast_milp_benchmark(full: bool = False) -> pd.DataFrame:
    """Return one row for each instance, then the totals and the large instances.

    Args:
        full: whether to run the whole suite.
    """
    epsilons = (0.5, 1.0, 1.5) if full else (0.5, 1.5)
    rows = []
    for epsilon, delta, loss in itertools.product(epsilons, (0.01, 0.1), ("error-rate", "squared")):
        rows += [_time_instance(group, epsilon, delta, loss) for group in list_groups(full)]
    frame = pd.DataFrame(rows)
    totals = pd.DataFrame(_summarise_instances(frame))
    large_rows = pd.DataFrame(_time_large_instances(full))
    return pd.concat([frame, totals, large_rows], ignore_index=True)[[*COLUMNS]]


def _summarise_instances(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return one row with the totals and one row with the smallest ratio.

    Args:
        frame: one row for each instance.
    """
    # Where "literal" reached the limit, its objective need not be optimal.
    optimal_rows = frame[frame["literal"] == "optimal"]
    # Differences are relative to objectives above 1 and absolute for the others.
    sizes = optimal_rows["objective"].abs().clip(lower=1.0)
    total = {
        "instance": f"total of {len(frame)}; worst relative difference",
        "fast_seconds": frame["fast_seconds"].sum(),
        "literal_seconds": frame["literal_seconds"].sum(),
        "difference": (optimal_rows["difference"].abs() / sizes).max(),
        "literal": f"{(frame['literal'] != 'optimal').sum()} time-outs",
        "fast": f"{(frame['fast'] != 'optimal').sum()} time-outs",
        "ratio": frame["literal_seconds"].sum() / frame["fast_seconds"].sum(),
    }
    return [total, {"instance": "least ratio", "ratio": frame["ratio"].min()}]


def _time_large_instances(full: bool) -> list[dict[str, Any]]:
    """Return the rows of the instances for which the literal model is not solved."""
    losses = ("error-rate", "squared")
    large_group: Group = ("BD mu=3 n=256", (257,), ((1,), (2,), (3,)))
    rows = []
    for epsilon, delta in itertools.product((0.5, 1.0, 1.5), (0.01, 0.1)):
        rows += [
            _time_instance(large_group, epsilon, delta, loss, has_literal=False)
            for loss in (losses if full else losses[:1])
        ]
    for n, steps in itertools.product((511, 1023), ((1, 2, 3), (1, 3, 4))):
        shifts = tuple((k % (n + 1),) for k in (*steps, *(-k for k in steps)))
        group: Group = (f"symmetric {steps} n={n}", (n + 1,), shifts)
        rows += [
            _time_instance(group, epsilon=1.0, delta=0.05, loss=loss, has_literal=False)
            for loss in losses
        ]
    return rows
