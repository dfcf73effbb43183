"""Solving `models.unbiased` from few labels to many: the sets of a coarse optimum show where those of the fine one are.

All k (k + 1)/2 intervals are used for few labels only. Labels are joined four by four until few are left; on every
finer level the program is solved over a band of intervals around the sets in use one level above, and every label by
itself. The last level ends when the bound, which prices all sets, is met; until then the band follows the optimum and
takes in the sets that price below zero.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from models.unbiased import Intervals, dual_values, lowest, masses, program, randomized_response
from solvers.backend import Options, solve
from solvers.solution import Solution, Termination

__all__ = ["Optimum", "optimum"]

Vector = NDArray[np.float64]
Flags = NDArray[np.bool_]

_FEW = 24  # labels whose intervals are all used
_JOINED = 4
_PADS = (3, 6, 12, 12)  # of the band, in labels; the next one where the gap no longer halves
_USED = 1e-7  # mass of a set that is in use, of the largest
_COARSE = 1e-3  # relative gap of a level that only shows where to look
_THIN = (1e-3, 1e-4, 1e-5, 1e-6)  # the same, of the sets that are kept in the end
_OFF = 4.0  # a guess of the objective's size that is wrong by more is corrected
_TOLERANCES = (1e-12, 1e-9)  # Clarabel's; where it finds no point at the first, the second is tried


@dataclass(frozen=True)
class Optimum:
    """A randomizer t, s (n,) on intervals, and the bound (Σ p (o - y)², in the labels' own units) that was proven.

    objective: of the point as the solver left it, which meets the equations to its tolerance; programs: how many;
    wider: the point on more sets that it was thinned from.
    """

    sets: Intervals
    t: Vector
    s: Vector
    objective: float
    bound: float
    solution: Solution
    programs: int
    wider: Optimum | None = None

    def used(self, share: float, *, singles: bool = False) -> Intervals:
        """The sets of more than a share of the largest mass; singles: and every label by itself."""
        sets = self.sets
        which = self.t > share * self.t.max()
        if singles:
            which |= sets.first == sets.last
        return Intervals(sets.first[which], sets.last[which])


def optimum(
    labels: Vector, prior: Vector, q: float, solver: str, options: Options, *, gap: float = 1e-8,
    progress: Callable[[str], None] = lambda line: None,
) -> Optimum | Solution:  # fmt: skip
    """The best unbiased randomizer to a relative gap, or as near as the solver's digits go; a Solution without a point
    where it found none.

    labels: (k,) increasing; prior: (k,) >= 0 with sum 1.
    """
    middle, width = (labels[0] + labels[-1]) / 2, labels[-1] - labels[0]
    y = (labels - middle) / width
    levels = [(y, prior)]
    while levels[-1][0].size > _FEW:
        levels.append(_joined(*levels[-1]))
    search = _Search(q, solver, options, progress)
    sets, unit = Intervals.every(levels[-1][0].size), randomized_response(*levels[-1], q)
    for (y, p), (finer, _) in zip(levels[:0:-1], levels[-2::-1], strict=True):
        coarse = search.level(y, p, sets, unit, max(gap, _COARSE))
        if not isinstance(coarse, Optimum):
            return coarse
        sets, unit = _band(coarse.used(_USED), y.size, finer.size), _size(coarse)
    last = search.level(*levels[0], sets, unit, gap)
    if not isinstance(last, Optimum):
        return last
    best = search.thinned(*levels[0], last, gap)
    whole = _moved(replace(last, bound=best.bound), middle, width)
    return whole if best is last else replace(_moved(best, middle, width), wider=whole)


def _moved(best: Optimum, middle: float, width: float) -> Optimum:
    """The optimum in the labels' own units."""
    s, objective, bound = best.s * width + middle * best.t, best.objective * width**2, best.bound * width**2
    return replace(best, s=s, objective=objective, bound=bound, solution=_in_units(best.solution, objective, bound))


class _Search:
    """The programs of one search, on labels of width 1."""

    def __init__(self, q: float, solver: str, options: Options, progress: Callable[[str], None]) -> None:
        self.q, self.solver, self.options, self.progress = q, solver, [options], progress
        if solver in ("cvxpy", "cvxpy:clarabel"):
            names = ("tol_gap_abs", "tol_gap_rel", "tol_feas")
            tolerances = [dict.fromkeys(names, tolerance) for tolerance in _TOLERANCES]
            self.options = [replace(options, native={**more, **options.native}) for more in tolerances]
        self.programs, self.begin = 0, time.monotonic()

    def solved(self, y: Vector, p: Vector, sets: Intervals, unit: float) -> tuple[Optimum, Flags] | Solution:
        """The optimum over some intervals with the bound that it gives, and the rays that price below zero."""
        stated = program(y, p, self.q, sets, unit)
        for options in self.options:
            solution = solve(stated, solver=self.solver, options=options)
            self.programs += 1
            if solution.x is not None or solution.termination not in (Termination.ERROR, Termination.NUMERICAL):
                break
        if solution.x is None or solution.objective is None or solution.termination is Termination.INTERRUPTED:
            return solution
        t, s = masses(y, p, self.q, sets, unit, solution.x)
        bound, rays = -np.inf, np.zeros((0, y.size), dtype=bool)
        if solution.row_dual is not None:
            bound, rays = lowest(y, p, self.q, *dual_values(y, p, self.q, unit, solution.row_dual))
        value = solution.objective * unit
        self.progress(
            f"{self.programs} programs in {time.monotonic() - self.begin:.0f} s: {y.size} labels, {t.size} intervals, "
            f"relative gap {(value - bound) / max(value, 1e-300):.2g}"
        )
        return Optimum(sets, t, s, value, bound, solution, self.programs), rays

    def level(self, y: Vector, p: Vector, sets: Intervals, unit: float, gap: float) -> Optimum | Solution:
        """The optimum of one level to a relative gap, or until the gap no longer shrinks."""
        best: Optimum | None = None
        stalled = 0
        while True:
            answer = self.solved(y, p, sets, unit)
            if not isinstance(answer, tuple):
                return answer if best is None else best  # the solver is out of digits
            now, rays = answer
            right = unit / _OFF < now.objective < unit * _OFF
            if best is not None:
                stalled += now.objective - max(now.bound, best.bound) > (best.objective - best.bound) / 2
                now = replace(now, bound=max(now.bound, best.bound))
            best = now
            if right and (now.objective - now.bound <= gap * now.objective or stalled == len(_PADS)):
                return best
            unit = _size(best)
            if right:
                sets = _band(best.used(_USED), y.size, y.size, rays, _PADS[stalled])
            elif stalled >= len(_PADS):
                return best

    def thinned(self, y: Vector, p: Vector, best: Optimum, gap: float) -> Optimum:
        """The optimum on as few of its sets as keep the gap: interior points leave specks on many others."""
        most = max(best.objective - best.bound, gap * best.objective)
        for share in _THIN:
            answer = self.solved(y, p, best.used(share, singles=True), _size(best))
            if isinstance(answer, tuple):
                bound = max(best.bound, answer[0].bound)
                if answer[0].objective - bound <= most:
                    return replace(answer[0], bound=bound)
        return best


def _in_units(solution: Solution, objective: float, bound: float) -> Solution:
    """The solution with its objective in the labels' own units, and the bound that prices all sets."""
    stated = solution.program
    factor = objective / solution.objective if solution.objective else 1.0
    scaled = replace(stated, template=replace(stated.template, c=stated.template.c * factor))
    return replace(solution, program=scaled, native_bound=bound)


def _size(optimum: Optimum) -> float:
    return max(optimum.objective, 1e-16)


def _joined(labels: Vector, prior: Vector) -> tuple[Vector, Vector]:
    """Groups of four consecutive labels: their mean, their share."""
    starts = np.arange(0, labels.size, _JOINED)
    counts = np.diff([*starts, labels.size])
    return np.add.reduceat(labels, starts) / counts, np.add.reduceat(prior, starts)


def _band(sets: Intervals, coarse: int, fine: int, rays: Flags | None = None, pad: int = _PADS[0]) -> Intervals:
    """The intervals of `fine` labels near some of `coarse` ones, each label by itself, and the rays' hulls."""
    share = _JOINED if fine > coarse else 1
    reach = np.arange(-pad, share + pad)
    first, last = sets.first * share, sets.last * share
    if rays is not None and rays.any():
        rays = rays[rays.any(axis=1)]
        first = np.append(first, rays.argmax(axis=1))
        last = np.append(last, fine - 1 - rays[:, ::-1].argmax(axis=1))
    first = np.clip(first[:, None, None] + reach[:, None], 0, fine - 1)
    last = np.clip(last[:, None, None] + reach, 0, fine - 1)
    codes = np.unique(np.append(first * fine + last, np.arange(fine) * (fine + 1)))
    first, last = np.divmod(codes, fine)
    return Intervals(first[first <= last], last[first <= last])
