"""Search for the least-squares unbiased label randomizer, from few labels to many.

`workbench.models.labels.unbiased` states a cone program over some intervals of labels. All k (k + 1)/2 intervals are
too many beyond a hundred labels, so labels are joined four by four until few are left. The coarsest program has all
intervals. Every finer one has a band of intervals around those that the level above uses, and every label by itself.

The program of each coarser level is solved once. The last one is solved again on a wider band, with the intervals that
price below zero, until its bound is met or the bands are used up. The bound prices all sets and all outputs, so it
holds for whatever band was taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from workbench.models.labels.unbiased import (
    Intervals,
    Proof,
    build_cone_program,
    label_multipliers,
    masses_and_moments,
    prove_lower_bound,
    randomized_response_loss,
)
from workbench.solvers.arrays import Flags, Pair, Vector
from workbench.solvers.backend import Options, solve
from workbench.solvers.search import Deadline
from workbench.solvers.solution import Solution, Termination

_MAX_COARSEST_LABELS = 24  # All intervals of so many labels are used.
_JOINED = 4  # So many consecutive labels are one label of the next coarser level.
_BAND_PADS = (3, 6, 12, 12)  # Labels by which the band is wider, in each program of the last level.
_GAP = 1e-8  # The last level ends at this relative gap.
_USED_SHARE = 1e-7  # Sets of a smaller share of the largest mass are not in use.
_LEAST_LIMIT_SECONDS = 1e-3  # The time limit of a program when no time is left.
_CLARABEL_TOLERANCE = (
    1e-12  # Clarabel stops at this feasibility and gap, or as near as its digits go.
)


@dataclass(frozen=True)
class UnbiasedOptimum:
    """A randomizer t, s (n,) on intervals, and the bound (Σ p (o - y)², in the labels' own units) that was proven, by
    multipliers in units of the labels' width.

    solution: of the last program; objective: of the point as the solver left it, which meets the equations to its
    tolerance.
    """

    sets: Intervals
    t: Vector
    s: Vector
    objective: float
    proof: Proof
    solution: Solution

    @property
    def bound(self) -> float:
        """The proof's."""
        return self.proof.bound

    def is_gap_closed(self, gap: float) -> bool:
        """Whether the bound is as near, relatively."""
        return self.objective - self.bound <= gap * self.objective

    @property
    def used_sets(self) -> Intervals:
        """The sets that carry more than a speck of mass."""
        is_used = self.t > _USED_SHARE * self.t.max()
        return Intervals(self.sets.first[is_used], self.sets.last[is_used])


class NoPoint(Exception):
    """No randomizer was found. solution: the solver's answer."""

    def __init__(self, solution: Solution) -> None:
        super().__init__()
        self.solution = solution


def find_unbiased_optimum(search: UnbiasedSearch, labels: Vector, prior: Vector) -> UnbiasedOptimum:
    """Find the best unbiased randomizer and prove a bound.

    Args:
        search: The solver, its options and the odds.
        labels: Increasing. (k,)
        prior: Weights >= 0 with sum 1. (k,)

    Raises:
        NoPoint: the solver found no randomizer.
    """
    middle = (labels[0] + labels[-1]) / 2
    width = labels[-1] - labels[0]
    levels = [((labels - middle) / width, prior)]
    while levels[-1][0].size > _MAX_COARSEST_LABELS:
        levels.append(_joined(*levels[-1]))
    sets = Intervals.all_intervals(levels[-1][0].size)
    unit = randomized_response_loss(*levels[-1], search.q)
    for (y, p), (finer, _) in zip(levels[:0:-1], levels[-2::-1], strict=True):
        coarse, _ = search.solve(y, p, sets, unit)
        sets = _band(coarse.used_sets, y.size, finer.size)
        unit = coarse.objective
    best = search.close_gap(*levels[0], sets, unit)
    proof = best.proof.rescale(labels, prior, search.q, width)
    objective = best.objective * width**2
    solution = _in_units(best.solution, objective, proof.bound)
    moments = best.s * width + middle * best.t
    return UnbiasedOptimum(best.sets, best.t, moments, objective, proof, solution)


@dataclass
class UnbiasedSearch:
    """The programs of one search, on labels of width 1. The time limit of the options is for all of them together.

    q: e^ε - 1; progress: told a line for each program.
    """

    q: float
    solver: str
    options: Options
    progress: Callable[[str], None] = field(default=lambda line: None, kw_only=True)
    programs: int = field(default=0, init=False)
    clock: Deadline = field(default_factory=Deadline, init=False)

    def _remaining_options(self) -> Options:
        """The options of the next program, with the time that is left."""
        limit = self.options.time_limit
        if limit is not None:
            limit = max(_LEAST_LIMIT_SECONDS, limit - self.clock.elapsed_seconds)
        native = self.options.native
        if self.solver in ("cvxpy", "cvxpy:clarabel"):
            names = ("tol_gap_abs", "tol_gap_rel", "tol_feas")
            native = {**dict.fromkeys(names, _CLARABEL_TOLERANCE), **native}
        return replace(self.options, native=native, time_limit=limit)

    def solve(
        self, y: Vector, p: Vector, sets: Intervals, unit: float
    ) -> tuple[UnbiasedOptimum, Flags]:
        """Solve the program over some intervals. Raises NoPoint.

        Args:
            y: Labels of width 1. (k,)
            p: Their prior. (k,)
            sets: The intervals.
            unit: About the objective: tolerances of solvers are absolute.

        Returns:
            The optimum with the bound that its multipliers prove, and the sets that price below zero. (n, k)
        """
        solution = solve(
            build_cone_program(y, p, self.q, sets, unit),
            solver=self.solver,
            options=self._remaining_options(),
        )
        self.programs += 1
        if (
            solution.x is None
            or solution.objective is None
            or solution.termination is Termination.INTERRUPTED
        ):
            raise NoPoint(solution)
        t, s = masses_and_moments(y, p, self.q, sets, unit, solution.x)
        proof = Proof(-np.inf, *np.zeros((2, y.size)))
        rays = np.zeros((0, y.size), dtype=bool)
        if solution.row_dual is not None:
            proof, rays = prove_lower_bound(
                y, p, self.q, *label_multipliers(y, p, self.q, unit, solution.row_dual)
            )
        value = max(solution.objective * unit, 1e-16)
        self.progress(
            f"{self.programs} programs in {self.clock.elapsed_seconds:.0f} s: {y.size} labels, {t.size} intervals, "
            f"relative gap {(value - proof.bound) / value:.2g}"
        )
        return UnbiasedOptimum(sets, t, s, value, proof, solution), rays

    def close_gap(self, y: Vector, p: Vector, sets: Intervals, unit: float) -> UnbiasedOptimum:
        """Solve the last level on wider and wider bands, until its gap is closed. Raises NoPoint.

        Arguments as `solve`.
        """
        best = None
        for pad in _BAND_PADS:
            try:
                point, rays = self.solve(y, p, sets, unit)
            except NoPoint:
                if best is None:
                    raise
                return best  # The solver is out of digits or of time.
            if best is not None and best.bound > point.bound:
                point = replace(point, proof=best.proof)
            best = point
            if best.is_gap_closed(_GAP):
                return best
            sets = _band(best.used_sets, y.size, y.size, rays, pad)
            unit = best.objective
        assert best is not None
        return best


def _in_units(solution: Solution, objective: float, bound: float) -> Solution:
    """The solution with its objective in the labels' own units, and the bound that prices all sets."""
    stated = solution.program
    factor = objective / solution.objective if solution.objective else 1.0
    scaled = replace(stated, template=replace(stated.template, c=stated.template.c * factor))
    return replace(solution, program=scaled, native_bound=bound)


def _joined(labels: Vector, prior: Vector) -> Pair:
    """Groups of four consecutive labels: their mean, their share."""
    starts = np.arange(0, labels.size, _JOINED)
    counts = np.diff([*starts, labels.size])
    return np.add.reduceat(labels, starts) / counts, np.add.reduceat(prior, starts)


def _band(
    sets: Intervals, coarse: int, fine: int, rays: Flags | None = None, pad: int = _BAND_PADS[0]
) -> Intervals:
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
