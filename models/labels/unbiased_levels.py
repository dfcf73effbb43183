"""Find the unbiased label randomizer with the smallest expected squared loss under label DP.

`find_unbiased_optimum` returns the best unbiased ε-DP randomizer of given labels and a prior, with
a proven lower bound. It solves the problem for few labels first and refines it step by step to all
labels.

Terms. A set is an interval of consecutive labels for which one output is more probable, by the
factor e^ε, than for all other labels. It has a mass t (the probability of this output for the other
labels) and a moment s (t times the output). The cone program over some sets, and the randomizer
that a solution defines, are in `workbench.models.labels.unbiased`. A level is a problem in which
groups of consecutive labels are merged into one label. A ray is a set of labels with negative
reduced cost, so adding it may lower the objective.

All k (k + 1)/2 intervals of k labels are too many beyond a hundred labels. Therefore groups of four
labels are merged until few labels are left. The coarsest program has all intervals. Every finer
program has a band: the intervals near those that the coarser level uses, and the interval of each
single label. For example, 400 labels have levels of 400, 100, 25 and 7 labels.

The program of each coarser level is solved once. The program of the last level is solved again on
wider bands, to which the hulls of the rays are added, until the objective meets the bound or the
bands are used up. The bound covers all sets and all outputs, so it holds for any band.
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

_MAX_COARSEST_LABELS = 24  # With at most this many labels all intervals are used.
_GROUP_SIZE = 4  # This many consecutive labels are one label of the next coarser level.
# In the programs of the last level, the ends of intervals move by up to these numbers of labels.
# Coarser levels use the first number.
_BAND_PADS = (3, 6, 12, 12)
_MAX_GAP = 1e-8  # The last level ends at this relative gap.
_MIN_USED_SHARE = 1e-7  # Sets of a smaller share of the largest mass are not in use.
_MIN_TIME_LIMIT_SECONDS = 1e-3  # If no time is left, a program gets this time limit.
_MIN_OBJECTIVE = 1e-16  # An objective below this counts as this, since gaps are divided by it.
# Clarabel stops at this feasibility and gap, or as near as its digits allow.
_CLARABEL_TOLERANCE = 1e-12


@dataclass(frozen=True)
class UnbiasedOptimum:
    """A randomizer on intervals and a proven bound.

    Attributes:
        sets: the n intervals of labels.
        t: masses of the intervals, shape (n,).
        s: moments of the intervals, shape (n,).
        objective: loss of the point that the solver returned, which satisfies the equations up to
            its tolerance.
        proof: proof of a lower bound on the expected squared loss, in squared label units. Its
            multipliers are for labels that are shifted and scaled to width 1.
        solution: solution of the last program, restated in the original label units.
    """

    sets: Intervals
    t: Vector
    s: Vector
    objective: float
    proof: Proof
    solution: Solution

    @property
    def bound(self) -> float:
        """Return the proven lower bound."""
        return self.proof.bound

    def is_gap_closed(self, gap: float) -> bool:
        """Check whether objective - bound is at most a share of the objective.

        Args:
            gap: the share, such as 1e-8.
        """
        return self.objective - self.bound <= gap * self.objective

    @property
    def used_sets(self) -> Intervals:
        """Return the sets whose mass exceeds _MIN_USED_SHARE of the largest mass."""
        is_used = self.t > _MIN_USED_SHARE * self.t.max()
        return Intervals(self.sets.first[is_used], self.sets.last[is_used])


class NoPoint(Exception):
    """The solver found no randomizer.

    Args:
        solution: the answer of the solver.
    """

    def __init__(self, solution: Solution) -> None:
        super().__init__()
        self.solution = solution


def find_unbiased_optimum(
    search: UnbiasedSearch,
    labels: Vector,
    prior: Vector,
) -> UnbiasedOptimum:
    """Find the best unbiased randomizer and prove a bound.

    Args:
        search: the solver, its options and q = e^ε - 1.
        labels: increasing labels, shape (k,).
        prior: weights >= 0 with sum 1, shape (k,).

    Raises:
        NoPoint: the solver found no randomizer.
    """
    middle = (labels[0] + labels[-1]) / 2
    width = labels[-1] - labels[0]
    coarsest_labels = (labels - middle) / width
    coarsest_prior = prior
    levels = [(coarsest_labels, coarsest_prior)]
    while coarsest_labels.size > _MAX_COARSEST_LABELS:
        coarsest_labels, coarsest_prior = _merge_groups(coarsest_labels, coarsest_prior)
        levels.append((coarsest_labels, coarsest_prior))
    sets = Intervals.all_intervals(coarsest_labels.size)
    unit = randomized_response_loss(coarsest_labels, coarsest_prior, search.q)
    # The levels are solved from the coarsest to the finest but one.
    for (y, p), (finer_y, _) in zip(levels[:0:-1], levels[-2::-1], strict=True):
        coarse_optimum, _ = search.solve(y, p, sets, unit)
        sets = _build_band(coarse_optimum.used_sets, y.size, finer_y.size)
        unit = coarse_optimum.objective
    best = search.close_gap(*levels[0], sets, unit)
    proof = best.proof.rescale(labels, prior, search.q, width)
    objective = best.objective * width**2
    solution = _in_original_units(best.solution, objective, proof.bound)
    moments = best.s * width + middle * best.t
    return UnbiasedOptimum(
        best.sets, best.t, s=moments, objective=objective, proof=proof, solution=solution
    )


@dataclass
class UnbiasedSearch:
    """The programs of one search, on labels of width 1.

    Attributes:
        q: e^ε - 1.
        solver: name of the backend.
        options: options of the solver. The time limit is for all programs together.
        progress: called with a line of text after each program.
        programs: number of programs solved so far.
        clock: the runtime so far.
    """

    q: float
    solver: str
    options: Options
    progress: Callable[[str], None] = field(default=lambda line: None, kw_only=True)
    programs: int = field(default=0, init=False)
    clock: Deadline = field(default_factory=Deadline, init=False)

    def _remaining_options(self) -> Options:
        """Return the options of the next program, with the remaining time as its limit."""
        limit = self.options.time_limit
        if limit is not None:
            limit = max(_MIN_TIME_LIMIT_SECONDS, limit - self.clock.elapsed_seconds)
        native = self.options.native
        if self.solver in ("cvxpy", "cvxpy:clarabel"):
            names = ("tol_gap_abs", "tol_gap_rel", "tol_feas")
            native = {**dict.fromkeys(names, _CLARABEL_TOLERANCE), **native}
        return replace(self.options, native=native, time_limit=limit)

    def solve(
        self,
        y: Vector,
        p: Vector,
        sets: Intervals,
        unit: float,
    ) -> tuple[UnbiasedOptimum, Flags]:
        """Solve the program over some intervals.

        Args:
            y: labels of width 1, shape (k,).
            p: weights of the labels, shape (k,).
            sets: the intervals.
            unit: estimate of the objective. The program is divided by it, because the tolerances
                of solvers are absolute.

        Returns:
            The optimum with the bound that its multipliers prove, and the rays as flags of labels,
            shape (rays, k): each row is a set with negative reduced cost.

        Raises:
            NoPoint: the solver found no randomizer.
        """
        program = build_cone_program(y, p, self.q, sets, unit)
        solution = solve(program, solver=self.solver, options=self._remaining_options())
        self.programs += 1
        was_interrupted = solution.termination is Termination.INTERRUPTED
        if solution.x is None or solution.objective is None or was_interrupted:
            raise NoPoint(solution)
        t, s = masses_and_moments(y, p, self.q, sets, unit, solution.x)
        proof = Proof(-np.inf, *np.zeros((2, y.size)))
        rays = np.zeros((0, y.size), dtype=bool)
        if solution.row_dual is not None:
            v, u = label_multipliers(y, p, self.q, unit, solution.row_dual)
            proof, rays = prove_lower_bound(y, p, self.q, v, u)
        objective = max(solution.objective * unit, _MIN_OBJECTIVE)
        gap = (objective - proof.bound) / objective
        self.progress(
            f"{self.programs} programs in {self.clock.elapsed_seconds:.0f} s: {y.size} labels, "
            f"{t.size} intervals, relative gap {gap:.2g}"
        )
        return UnbiasedOptimum(sets, t, s, objective, proof, solution), rays

    def close_gap(
        self,
        y: Vector,
        p: Vector,
        sets: Intervals,
        unit: float,
    ) -> UnbiasedOptimum:
        """Solve the last level on wider and wider bands, until its gap is closed.

        Args:
            y: labels of width 1, shape (k,).
            p: weights of the labels, shape (k,).
            sets: the intervals of the first band.
            unit: estimate of the objective, as in `solve`.

        Returns:
            The last optimum, with the largest bound that any of the programs proved.

        Raises:
            NoPoint: the solver found no randomizer.
        """
        best = None
        for pad in _BAND_PADS:
            try:
                point, rays = self.solve(y, p, sets, unit)
            except NoPoint:
                if best is None:
                    raise
                # The solver has no digits or no time left.
                return best
            if best is not None and best.bound > point.bound:
                point = replace(point, proof=best.proof)
            best = point
            if best.is_gap_closed(_MAX_GAP):
                return best
            sets = _build_band(best.used_sets, y.size, fine_count=y.size, rays=rays, pad=pad)
            unit = best.objective
        assert best is not None
        return best


def _in_original_units(
    solution: Solution,
    objective: float,
    bound: float,
) -> Solution:
    """Return the solution in the original units of the labels, with the bound over all sets."""
    program = solution.program
    factor = objective / solution.objective if solution.objective else 1.0
    data = replace(program.template, c=program.template.c * factor)
    return replace(solution, program=replace(program, template=data), native_bound=bound)


def _merge_groups(labels: Vector, prior: Vector) -> Pair:
    """Return the mean label and the total weight of each group of consecutive labels."""
    starts = np.arange(0, labels.size, _GROUP_SIZE)
    counts = np.diff([*starts, labels.size])
    return np.add.reduceat(labels, starts) / counts, np.add.reduceat(prior, starts)


def _build_band(
    sets: Intervals,
    coarse_count: int,
    fine_count: int,
    rays: Flags | None = None,
    pad: int = _BAND_PADS[0],
) -> Intervals:
    """Return the intervals of fine labels near some intervals of coarse labels.

    The ends of the fine intervals lie in the end groups of a coarse interval, or up to `pad` labels
    beside them. Each single label is included, and the intervals near the hulls of rays: sets of
    fine labels, shape (rays, fine_count).
    """
    labels_per_group = _GROUP_SIZE if fine_count > coarse_count else 1
    offsets = np.arange(-pad, labels_per_group + pad)
    first = sets.first * labels_per_group
    last = sets.last * labels_per_group
    if rays is not None and rays.any():
        rays = rays[rays.any(axis=1)]
        first = np.append(first, rays.argmax(axis=1))
        last = np.append(last, fine_count - 1 - rays[:, ::-1].argmax(axis=1))
    first = np.clip(first[:, None, None] + offsets[:, None], 0, fine_count - 1)
    last = np.clip(last[:, None, None] + offsets, 0, fine_count - 1)
    single_codes = np.arange(fine_count) * (fine_count + 1)
    codes = np.unique(np.append(first * fine_count + last, single_codes))
    first, last = np.divmod(codes, fine_count)
    is_interval = first <= last
    return Intervals(first[is_interval], last[is_interval])
