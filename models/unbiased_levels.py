"""Solving `models.unbiased` from few labels to many: the sets of a coarse optimum show where those of the fine one are.

All k (k + 1)/2 intervals are used for few labels only. Labels are joined four by four until few are left; on every
finer level the program is solved over a band of intervals around the sets in use one level above, and every label by
itself. The last level ends when the bound, which prices all sets, is met; until then the band follows the optimum and
takes in the sets that price below zero.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np

from models.unbiased import Intervals, Proof, dual_values, lowest, masses, program, randomized_response
from solvers.arrays import Flags, Pair, Vector
from solvers.backend import Options, solve
from solvers.search import Deadline
from solvers.solution import Solution, Termination

_FEW = 24  # labels whose intervals are all used
_MANY, _TRIES = 100, 2  # labels from which a solver that leaves the gap wide open is given up, after so many programs
_HOPELESS = 1.0  # relative gap that counts as wide open
_JOINED = 4
_PADS = (3, 6, 12, 12)  # of the band, in labels; the next one where the gap no longer halves
_STALLS = 2  # the same, after so many that do not halve it
_GAP = 1e-8  # relative, that is looked for in the end
_USED = 1e-7  # mass of a set that is in use, of the largest
_ENOUGH = 1e-7  # relative gap of many labels that a solver need not close further, once it stalls
_COARSE = 1e-3  # relative gap of a level that only shows where to look
_THIN = (1e-3, 1e-4, 1e-5, 1e-6)  # the same, of the sets that are kept in the end
_OFF = 4.0  # a guess of the objective's size that is wrong by more is corrected
_LEAST_LIMIT = 1e-3  # seconds of a program when no time is left
_TOLERANCES = (1e-12, 1e-9)  # Clarabel's; where it finds no point at the first, the second is tried


@dataclass(frozen=True)
class Optimum:
    """A randomizer t, s (n,) on intervals, and the bound (Σ p (o - y)², in the labels' own units) that was proven, by
    multipliers in units of the labels' width.

    solution: of the last program; objective: of the point as the solver left it, which meets the equations to its
    tolerance; wider: the point on more sets that it was thinned from.
    """

    sets: Intervals
    t: Vector
    s: Vector
    objective: float
    proof: Proof
    solution: Solution
    wider: Optimum | None = None

    @property
    def bound(self) -> float:
        """The proof's."""
        return self.proof.bound

    def closed(self, gap: float) -> bool:
        """Whether the bound is as near, relatively."""
        return self.objective - self.bound <= gap * self.objective

    def used(self, share: float, *, singles: bool = False) -> Intervals:
        """The sets of more than a share of the largest mass; singles: and every label by itself."""
        sets = self.sets
        which = self.t > share * self.t.max()
        if singles:
            which |= sets.first == sets.last
        return Intervals(sets.first[which], sets.last[which])


class NoPoint(Exception):
    """No randomizer was found. solution: the solver's answer."""

    def __init__(self, solution: Solution) -> None:
        super().__init__()
        self.solution = solution


def optimum(search: Search, labels: Vector, prior: Vector) -> Optimum:
    """The best unbiased randomizer to a relative gap of 1e-8, or as near as a solver's digits go. Raises NoPoint.

    labels: (k,) increasing; prior: (k,) >= 0 with sum 1. The finest level follows from the coarser ones.
    """
    q, (middle, width) = search.q, ((labels[0] + labels[-1]) / 2, labels[-1] - labels[0])
    y = (labels - middle) / width
    levels = [(y, prior)]
    while levels[-1][0].size > _FEW:
        levels.append(_joined(*levels[-1]))
    unit = randomized_response(*levels[-1], q)
    sets = Intervals.every(levels[-1][0].size)
    for (y, p), (finer, _) in zip(levels[:0:-1], levels[-2::-1], strict=True):
        coarse = search.level(y, p, sets, unit, _COARSE)
        sets, unit = _band(coarse.used(_USED), y.size, finer.size), _size(coarse)
    last = search.level(*levels[0], sets, unit, _GAP)
    best = search.thinned(*levels[0], last)
    proof = best.proof.restated(labels, prior, q, width)
    whole = _moved(replace(last, proof=proof), middle, width)
    return whole if best is last else replace(_moved(replace(best, proof=proof), middle, width), wider=whole)


def _moved(best: Optimum, middle: float, width: float) -> Optimum:
    """The optimum in the labels' own units, those of its proof."""
    s, objective = best.s * width + middle * best.t, best.objective * width**2
    return replace(best, s=s, objective=objective, solution=_in_units(best.solution, objective, best.bound))


def _better(*optima: Optimum) -> Proof:
    """That of the greatest bound."""
    return max((each.proof for each in optima), key=lambda proof: proof.bound)


@dataclass
class Search:
    """The programs of one search, on labels of width 1; progress is told a line for each. The time limit of the options
    is for all of them together."""

    q: float
    solver: str
    options: Options
    progress: Callable[[str], None] = field(default=lambda line: None, kw_only=True)
    programs: int = field(default=0, init=False)
    clock: Deadline = field(default_factory=Deadline, init=False)

    @property
    def tried(self) -> list[Options]:
        """What a solver is told, in turn."""
        if self.solver not in ("cvxpy", "cvxpy:clarabel"):
            return [self.options]
        names, native = ("tol_gap_abs", "tol_gap_rel", "tol_feas"), self.options.native
        return [replace(self.options, native={**dict.fromkeys(names, t), **native}) for t in _TOLERANCES]

    def over(self, k: int, tries: int, stalled: int, gap: float) -> bool:
        """Whether a level ends with this relative gap, after so many programs, of which some did not halve it; of many
        labels, also where a solver leaves the gap open."""
        if k <= _MANY:
            return stalled == len(_PADS)
        enough = stalled > 0 and gap <= _ENOUGH
        return enough or stalled >= _STALLS or (tries >= _TRIES and gap > _HOPELESS)

    def solved(self, y: Vector, p: Vector, sets: Intervals, unit: float) -> tuple[Optimum, Flags]:
        """The optimum over some intervals with the bound that it gives, and the rays that price below zero: by the
        first of what a solver is told that gives a point. Raises NoPoint."""
        stated = program(y, p, self.q, sets, unit)
        for options in self.tried:
            limit = options.time_limit
            if limit is not None:
                limit = max(_LEAST_LIMIT, limit - self.clock.elapsed)
            solution = solve(stated, solver=self.solver, options=replace(options, time_limit=limit))
            self.programs += 1
            if solution.x is not None or solution.termination not in (Termination.ERROR, Termination.NUMERICAL):
                break
        if solution.x is None or solution.objective is None or solution.termination is Termination.INTERRUPTED:
            raise NoPoint(solution)
        t, s = masses(y, p, self.q, sets, unit, solution.x)
        proof, rays = Proof(-np.inf, *np.zeros((2, y.size))), np.zeros((0, y.size), dtype=bool)
        if solution.row_dual is not None:
            proof, rays = lowest(y, p, self.q, *dual_values(y, p, self.q, unit, solution.row_dual))
        value = solution.objective * unit
        self.progress(
            f"{self.programs} programs in {self.clock.elapsed:.0f} s: {y.size} labels, {t.size} intervals, "
            f"relative gap {(value - proof.bound) / max(value, 1e-300):.2g}"
        )
        return Optimum(sets, t, s, value, proof, solution), rays

    def level(self, y: Vector, p: Vector, sets: Intervals, unit: float, gap: float) -> Optimum:
        """The optimum of one level to a relative gap, or until the gap no longer shrinks. Raises NoPoint."""
        best = None
        tries = stalled = 0
        while True:
            tries += 1
            try:
                now, rays = self.solved(y, p, sets, unit)
            except NoPoint:
                if best is None:
                    raise
                return best  # the solver is out of digits
            right = unit / _OFF < now.objective < unit * _OFF
            if best is not None:
                stalled += now.objective - max(now.bound, best.bound) > (best.objective - best.bound) / 2
                now = replace(now, proof=_better(now, best))
            best = now
            left = (now.objective - now.bound) / now.objective
            if right and (left <= gap or self.over(y.size, tries, stalled, left)):
                return best
            unit = _size(best)
            if right:
                sets = _band(best.used(_USED), y.size, y.size, rays, _PADS[stalled])
            elif stalled >= len(_PADS):
                return best

    def thinned(self, y: Vector, p: Vector, best: Optimum) -> Optimum:
        """The optimum on as few of its sets as keep the gap: interior points leave specks on many others."""
        if not best.closed(_COARSE):
            return best
        most = max(best.objective - best.bound, _GAP * best.objective)
        for share in _THIN:
            with suppress(NoPoint):
                now, _ = self.solved(y, p, best.used(share, singles=True), _size(best))
                proof = _better(best, now)
                if now.objective - proof.bound <= most:
                    return replace(now, proof=proof)
        return best


def _in_units(solution: Solution, objective: float, bound: float) -> Solution:
    """The solution with its objective in the labels' own units, and the bound that prices all sets."""
    stated = solution.program
    factor = objective / solution.objective if solution.objective else 1.0
    scaled = replace(stated, template=replace(stated.template, c=stated.template.c * factor))
    return replace(solution, program=scaled, native_bound=bound)


def _size(optimum: Optimum) -> float:
    return max(optimum.objective, 1e-16)


def _joined(labels: Vector, prior: Vector) -> Pair:
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
