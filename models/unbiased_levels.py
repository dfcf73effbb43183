"""Solving `models.unbiased` from few labels to many: the sets of a coarse optimum show where those of the fine one are.

All k (k + 1)/2 intervals are used for few labels only. Labels are joined four by four until few are left; on every
finer level the program is solved over a band of intervals around the sets in use one level above, and every label by
itself. The last level ends when the bound, which prices all sets, is met; until then the band follows the optimum and
takes in the sets that price below zero.

Where a solver's digits do not reach that, `InteriorSearch` solves the same levels by `models.unbiased_interior`, with
all intervals of more labels: the smallest masses count there as well, each beside those of its own labels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from models.unbiased import Intervals, Proof, dual_values, lowest, masses, program, randomized_response
from models.unbiased_bound import Quadratics, rounded_up
from models.unbiased_interior import InteriorPoint, interior_point
from solvers.arrays import Flags, Pair, Positions, Vector
from solvers.backend import Options, solve
from solvers.search import Deadline
from solvers.solution import Solution, Termination

_FEW, _FEW_INTERIOR = 24, 201  # labels whose intervals are all used
_MANY, _TRIES = 100, 2  # labels from which a solver that leaves the gap wide open is given up, after so many programs
_HOPELESS = 1.0  # relative gap that counts as wide open
_JOINED = 4
_PADS = (3, 6, 12, 12)  # of the band, in labels; the next one where the gap no longer halves
_STALLS = 2  # the same, after so many that do not halve it
_USED, _USED_INTERIOR = 1e-7, 1e-4  # mass of a set that is in use (`Optimum.shares`)
_SPECK = 1e-8  # of the largest: masses below it tell nothing
_CUTS = 3  # times that sets with gaps join the intervals, for the multipliers' sake
_ENOUGH = 1e-7  # relative gap of many labels that a solver need not close further, once it stalls
_COARSE = 1e-3  # relative gap of a level that only shows where to look
_THIN = (1e-3, 1e-4, 1e-5, 1e-6)  # the same, of the sets that are kept in the end
_THICK = (0.1, 0.01)  # tried before, of interior points: of what is beside a set
_OFF = 4.0  # a guess of the objective's size that is wrong by more is corrected
_LEAST_LIMIT = 1e-3  # seconds of a program when no time is left
_TOLERANCES = (1e-12, 1e-9)  # Clarabel's; where it finds no point at the first, the second is tried


@dataclass(frozen=True)
class Optimum:
    """A randomizer t, s (n,) on intervals, and the bound (Σ p (o - y)², in the labels' own units) that was proven, by
    multipliers in units of the labels' width.

    origin: what the moments s are about; solution: of the last program, None for an interior point of our own;
    objective: of the point as the solver left it, which meets the equations to its tolerance;
    wider: the point on more sets that it was thinned from.
    """

    sets: Intervals
    t: Vector
    s: Vector
    objective: float
    proof: Proof
    solution: Solution | None
    wider: Optimum | None = None
    origin: float = 0.0

    @property
    def bound(self) -> float:
        """The proof's."""
        return self.proof.bound

    @property
    def shares(self) -> Vector:
        """The masses (n,), of the largest one; of an interior point, of all that start, or end, where the set does."""
        if self.solution is not None:
            return np.asarray(self.t / self.t.max())
        first, after = self.sets.first, self.sets.last + 1
        starts, ends = np.bincount(first, self.t, after.max() + 1), np.bincount(after, self.t, after.max() + 1)
        beside = np.minimum(starts[first], ends[after])
        return np.asarray(self.t / np.maximum(beside, _SPECK * beside.max()))

    def closed(self, gap: float) -> bool:
        """Whether the bound is as near, relatively."""
        return self.objective - self.bound <= gap * self.objective

    def used(self, share: float, *, singles: bool = False) -> Intervals:
        """The sets of more than a share (`shares`); singles: and every label by itself."""
        sets = self.sets
        which = self.shares > share
        if self.solution is None:
            which[_heaviest(sets.first, self.t)] = which[_heaviest(sets.last, self.t)] = True
        if singles:
            which |= sets.first == sets.last
        return Intervals(sets.first[which], sets.last[which])


class NoPoint(Exception):
    """No randomizer was found. solution: the solver's answer, None where floats ended."""

    def __init__(self, solution: Solution | None = None) -> None:
        super().__init__()
        self.solution = solution


def optimum(search: Search, labels: Vector, prior: Vector, seen: Optimum | None = None) -> Optimum:
    """The best unbiased randomizer to the relative gap of a search, or as near as its digits go. Raises NoPoint.

    labels: (k,) increasing; prior: (k,) >= 0 with sum 1. seen: what another search found: its objective, about the size
    of the optimum, and its bound. The finest level follows from the coarser ones.
    """
    q, (middle, width) = search.q, ((labels[0] + labels[-1]) / 2, labels[-1] - labels[0])
    y = (labels - middle) / width
    levels = [(y, prior)]
    while levels[-1][0].size > search.FEW:
        levels.append(_joined(*levels[-1]))
    unit = randomized_response(*levels[-1], q) if seen is None else seen.objective / width**2
    sets = Intervals.every(levels[-1][0].size)
    for (y, p), (finer, _) in zip(levels[:0:-1], levels[-2::-1], strict=True):
        coarse = search.level(y, p, sets, unit, max(search.GAP, _COARSE))
        if coarse.solution is not None and y.size > _MANY and not coarse.closed(_HOPELESS):
            raise NoPoint(coarse.solution)  # the finer levels would leave more open
        sets, unit = _band(coarse.used(search.USED), y.size, finer.size), _size(coarse)
    search.known = None if seen is None else replace(seen.proof, bound=seen.bound / width**2)
    last = search.level(*levels[0], sets, unit, search.GAP)
    best = search.thinned(*levels[0], last)
    proof = best.proof.restated(labels, prior, q, width)
    whole = _moved(replace(last, proof=proof), middle, width)
    return whole if best is last else replace(_moved(replace(best, proof=proof), middle, width), wider=whole)


def _moved(best: Optimum, middle: float, width: float) -> Optimum:
    """The optimum in the labels' own units, those of its proof."""
    s, objective = best.s * width, best.objective * width**2
    if best.solution is None:
        return replace(best, s=s, objective=objective, origin=middle)
    s = s + middle * best.t
    return replace(best, s=s, objective=objective, solution=_in_units(best.solution, objective, best.bound))


def _better(*proofs: Proof | None) -> Proof:
    """That of the greatest bound."""
    return max((proof for proof in proofs if proof is not None), key=lambda proof: proof.bound)


@dataclass
class Search(ABC):
    """The programs of one search, on labels of width 1; progress is told a line for each.

    FEW: labels whose intervals are all used; USED, THIN: shares of sets in use, and of those that are kept in the end;
    GAP: relative, that is looked for in the end. gap: looked for now; known: a proof for the finest level.
    """

    FEW: ClassVar[int]
    USED: ClassVar[float]
    THIN: ClassVar[tuple[float, ...]]
    GAP: ClassVar[float]

    q: float
    progress: Callable[[str], None] = field(default=lambda line: None, kw_only=True)
    programs: int = field(default=0, init=False)
    clock: Deadline = field(default_factory=Deadline, init=False)
    gap: float = field(default=np.inf, init=False)
    known: Proof | None = field(default=None, init=False)

    @abstractmethod
    def solved(self, y: Vector, p: Vector, sets: Intervals, unit: float) -> tuple[Optimum, Flags]:
        """The optimum over some intervals with the bound that it gives, and the rays that price below zero. Raises
        NoPoint."""

    def over(self, k: int, tries: int, stalled: int, gap: float) -> bool:
        """Whether a level ends with this relative gap, after so many programs, of which some did not halve it."""
        return stalled == len(_PADS)

    def report(self, k: int, n: int, value: float, bound: float) -> None:
        """A line of progress."""
        self.progress(
            f"{self.programs} programs in {self.clock.elapsed:.0f} s: {k} labels, {n} intervals, "
            f"relative gap {(value - bound) / max(value, 1e-300):.2g}"
        )

    def level(self, y: Vector, p: Vector, sets: Intervals, unit: float, gap: float) -> Optimum:
        """The optimum of one level to a relative gap, or until the gap no longer shrinks. Raises NoPoint."""
        best: Optimum | None = None
        tries, stalled, self.gap = 0, 0, gap
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
                now = replace(now, proof=_better(now.proof, best.proof))
            best = now
            left = (now.objective - now.bound) / now.objective
            if right and (left <= gap or self.over(y.size, tries, stalled, left)):
                return best
            unit = _size(best)
            if right:
                sets = _band(best.used(self.USED), y.size, y.size, rays, _PADS[stalled])
            elif stalled >= len(_PADS):
                return best

    def thinned(self, y: Vector, p: Vector, best: Optimum) -> Optimum:
        """The optimum on as few of its sets as keep the gap: interior points leave specks on many others."""
        if not best.closed(_COARSE):
            return best
        most, self.gap = max(best.objective - best.bound, self.GAP * best.objective), np.inf
        for share in self.THIN:
            with suppress(NoPoint):
                now, _ = self.solved(y, p, best.used(share, singles=True), _size(best))
                proof = _better(best.proof, now.proof)
                if now.objective - proof.bound <= most:
                    return replace(now, proof=proof)
        return best


@dataclass
class SolverSearch(Search):
    """Programs that a solver answers. The time limit of the options is for all of them together."""

    FEW, USED, THIN, GAP = _FEW, _USED, _THIN, 1e-8

    solver: str
    options: Options

    @property
    def tried(self) -> list[Options]:
        """What a solver is told, in turn."""
        if self.solver not in ("cvxpy", "cvxpy:clarabel"):
            return [self.options]
        names, native = ("tol_gap_abs", "tol_gap_rel", "tol_feas"), self.options.native
        return [replace(self.options, native={**dict.fromkeys(names, t), **native}) for t in _TOLERANCES]

    def over(self, k: int, tries: int, stalled: int, gap: float) -> bool:
        """Of many labels, also where a solver leaves the gap open."""
        if k <= _MANY:
            return super().over(k, tries, stalled, gap)
        enough = stalled > 0 and gap <= _ENOUGH
        return enough or stalled >= _STALLS or (tries >= _TRIES and gap > _HOPELESS)

    def solved(self, y: Vector, p: Vector, sets: Intervals, unit: float) -> tuple[Optimum, Flags]:
        """By the first of what a solver is told that gives a point."""
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
        self.report(y.size, t.size, value, proof.bound)
        return Optimum(sets, t, s, value, proof, solution), rays


@dataclass
class InteriorSearch(Search):
    """Interior points of our own, their moments about the middle of the labels; deadline: to end at."""

    FEW, USED, THIN, GAP = _FEW_INTERIOR, _USED_INTERIOR, (*_THICK, *_THIN), 3e-8

    deadline: Deadline = field(default_factory=Deadline)

    def over(self, k: int, tries: int, stalled: int, gap: float) -> bool:
        """Also where all intervals were there."""
        return super().over(k, tries, stalled, gap) or (k <= self.FEW and stalled > 0)

    def solved(self, y: Vector, p: Vector, sets: Intervals, unit: float) -> tuple[Optimum, Flags]:
        """By an interior point, its proof brought closer."""
        if self.deadline.passed:
            raise NoPoint
        point = interior_point(y, p, self.q, sets, unit, deadline=self.deadline)
        self.programs += 1
        if point is None:
            raise NoPoint
        proof, rays = lowest(y, p, self.q, point.v, point.u)
        proof = _better(proof, self.known)
        self.report(y.size, point.t.size, point.objective, proof.bound)
        if unit / _OFF < point.objective < unit * _OFF:
            proof = self.closer(y, p, sets, unit, point, proof)
        return Optimum(sets, point.t, point.s, point.objective, proof, None), rays

    def closer(self, y: Vector, p: Vector, sets: Intervals, unit: float, point: InteriorPoint, proof: Proof) -> Proof:
        """The proof, or a better one of multipliers that sets with gaps bind as well: intervals leave them open where
        labels hardly differ."""
        others = np.zeros((0, y.size), dtype=bool)
        value, multipliers = point.objective, point
        for _ in range(_CUTS):
            bound = proof.bound
            if value - bound <= self.gap * value or point.bound - bound < (value - bound) / 2:
                break  # what is left is not theirs
            below = Quadratics.of(y, p, multipliers.v, multipliers.u).prices(rounded_up(self.q)).negative
            gaps = (np.diff(below.astype(np.int8), axis=1, prepend=0) == 1).sum(axis=1) > 1
            others = np.unique(np.concatenate([others, below[gaps]]), axis=0)
            again = interior_point(y, p, self.q, sets, unit, others, self.deadline)
            self.programs += 1
            if again is None:
                break
            multipliers = again
            proof = _better(proof, lowest(y, p, self.q, again.v, again.u)[0])
            self.report(y.size, sets.first.size + len(others), value, proof.bound)
            if value - proof.bound > (value - bound) / 2:
                break
        return proof


def _heaviest(nodes: Positions, t: Vector) -> Positions:
    """The position of the largest mass at every node."""
    order = np.lexsort((t, nodes))
    ends: Positions = order[np.append(np.flatnonzero(np.diff(nodes[order])), order.size - 1)]
    return ends


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
