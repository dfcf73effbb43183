"""Find the best OPTM mechanism (Cai et al. 2024, Algorithm 2) on given outputs.

A two-bin mechanism draws one output left of the input and one right of it from two selection
distributions, and publishes one of the two. `solve_optm` answers: which selection probabilities q
minimise the upper bound on the mean absolute error (MAE) that OPTM uses, (8) of the paper? The
programs are those of its Theorems 5 and 6 (`workbench.models.quantizer.two_bin`). They are linear
only for given bounds o <= q <= u, so a search over these bounds is needed.

Terms. The outputs are called bins, and m is their number. A bounded vector is a selection
distribution whose entries need bounds. A slice is a narrow interval [o, u] of such an entry. As in
the paper, q_j(i) is the probability of bin i in the selection distribution of length j. RQM is the
randomized quantization mechanism. Its selection probabilities depend on one number, `rqm_q`.

Slices. If only one vector of two entries is bounded (m <= 5 with the outer bins outside the inputs,
any density), the bounds are slices [l, l + width] of its first entry. A range of slices is
discarded if the optimum of one linear program that relaxes all slices in it is worse than the best
slice found. The result equals that of the search over all slices; a test checks this.

Larger m. The reduced program of Theorem 6 on a grid of its three bounds gives a start. Then all
bounds are slices around the best point (Theorem 5). They are moved to the new best point while it
improves, and narrowed if it does not. This is a local search, so no lower bound is claimed.

Small ε, or no solution. Both bounds of a slice are in one privacy constraint, so u/o <= e^ε is
necessary: slices must be thin in proportion to ε. The probability of inner bins is also of the
order of ε (for two bins left of x, q_2(2) is at most about ε/2). Slices are then thin relative to
q, around selections of RQM. One of these has rqm_q = 0, randomized response on the two outermost
bins. It is private if any law on these bins is private; so a law is found if one exists. The others
have rqm_q in proportion to ε: the best of a geometric grid, then values between its neighbours.

Every returned mechanism is a `two_bin` mechanism in exact rationals. Its exact ε is computed, and
the caller repairs or rejects a mechanism above the budget.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from workbench.errors import NotProven
from workbench.families.quantizer.laws import LawQuestion, QuantizerAnswer
from workbench.mechanisms.baselines.two_bin import rqm_selection, two_bin
from workbench.models.quantizer.entrywise_program import EntrywiseProgram
from workbench.models.quantizer.two_bin import TwoBinShape, VectorBounds, VectorKey
from workbench.pipeline.outcome import translate_errors
from workbench.questions.density import Density
from workbench.questions.quantization import are_symmetric
from workbench.solvers.arrays import Pair, Vector
from workbench.solvers.backend import Session, get_backend
from workbench.solvers.data import Data
from workbench.solvers.search import OpenNodes
from workbench.solvers.solution import Solution, Termination, proves_infeasibility

# Widths of slices: the paper's, then thinner ones if that leaves no solution.
WIDTHS = (0.01, 0.002, 0.0004)

_FIRST_SLICE_WIDTH = 0.04  # Slices around an incumbent have this width first.
_LAST_SLICE_WIDTH = 2e-4  # The search around an incumbent ends at this width.
_MIN_SLICE_GAIN = 1e-4  # Slices are narrowed if a program lowers the objective by less than this.
# Ranges are only discarded if their bound is worse by more than this tolerance of solvers.
_PRUNING_TOLERANCE = 1e-9
# A local search starts from RQM with each of these numbers.
_START_RQM_NUMBERS = (0.03, 0.1, 0.2, 0.35, 0.5)
# Multipliers that proved the last so many programs of a pattern infeasible are kept.
_MAX_KEPT_PROOFS = 8
_COUNT_ROUNDING = 1e-9  # A quotient this close below a whole number counts as that number.
_SELECTION_TOLERANCE = 1e-3  # The best rqm_q is found up to this share.
# The values of the three bounds in the programs of Theorem 6 (`SliceSearch._solve_theorem6`).
_UPPER_BOUNDS = (0.1, 0.3, 0.6, 1.0)
_LAST_BOUNDS = (0.05, 0.15, 0.3, 0.5, 0.8)
_FIRST_LOWER_BOUND = 0.02
_FINE_LOWER_STEP = 0.02  # The step of the lower bound, if the upper bound has one value only.
_COARSE_LOWER_STEP = 0.06  # The same for several upper bounds, to keep the number of programs.


@dataclass(frozen=True)
class RelativeSliceLimits:
    """Parameters of slices that are thin relative to q, for small ε.

    Attributes:
        max_epsilon: the ε below which slices of the paper's width are too thick.
        thickness: the largest distance of ln q from the centre of a slice, as a share of ε.
        centre_ratio: the ratio of neighbouring centres.
        centre_count: the number of centres from tanh(ε/2) down. One more lies above it if that
            centre is less than 1.
        no_law_value: the value of a slice without a solution, more than any error of bins.
        mass_scale: the factor of masses in programs at a small ε, where masses are small. A
            tolerance of 1e-7 is then 1e-13 of probability.
    """

    max_epsilon: float = 0.1
    thickness: float = 1e-3
    centre_ratio: float = 2.0
    centre_count: int = 12
    no_law_value: float = 1e9
    mass_scale: float = 2.0**20


_RELATIVE = RelativeSliceLimits()


def make_two_bin_shape(bins: Sequence[Fraction], density: Density) -> TwoBinShape:
    """Make the two-bin family on given bins, symmetric if bins and density are.

    Args:
        bins: the outputs in increasing order.
        density: the density of the inputs.
    """
    outputs = tuple(map(float, bins))
    masses = density.interval_masses([-1.0, *(b for b in outputs if -1 < b < 1), 1.0])
    is_symmetric = density.is_symmetric and are_symmetric(bins)
    return TwoBinShape(outputs, tuple(masses.tolist()), is_symmetric)


def make_rqm_selections(shape: TwoBinShape, rqm_q: float) -> dict[VectorKey, Vector]:
    """Make RQM's selections of the bounded vectors.

    Args:
        shape: the bins, pieces and selection distributions.
        rqm_q: the number of RQM, in [0, 1). 0 is two-point randomized response, which is private
            whenever any law on these bins is.
    """
    laws = rqm_selection(shape.m, Fraction(rqm_q))
    selections = {}
    for side, length in shape.bounded_vectors:
        # RQM has one distribution of each length 1, 2, ..., m - 1, in this order.
        selections[side, length] = laws[length - 1].floats
    return selections


class ProgramOptimum(NamedTuple):
    """The optimum of a program.

    Attributes:
        objective: the optimal value.
        x: the columns of the program (columns,).
        solution: the solution that the solver returned.
    """

    objective: float
    x: Vector
    solution: Solution


@dataclass
class _LivePattern:
    """The session of all programs of one pattern, and proofs that such programs are infeasible.

    Attributes:
        session: the live session.
        proofs: multipliers (rows,) that proved programs infeasible, the last used ones first.
        was_infeasible: whether the last program was infeasible.
    """

    session: Session
    proofs: list[Vector] = field(default_factory=list)
    was_infeasible: bool = False

    def proves_infeasibility(self, data: Data) -> bool:
        """Return whether a proof of an earlier program also proves this program infeasible.

        Proofs are only tried after an infeasible program, because trying them takes time.
        """
        if not self.was_infeasible:
            return False
        for k, multipliers in enumerate(self.proofs):
            if proves_infeasibility(data, multipliers):
                self.proofs.insert(0, self.proofs.pop(k))
                return True
        return False


class ProgramSolver:
    """Solve two-bin programs with live sessions, one for all programs of the same pattern.

    Most programs of a search are infeasible, often for the same reason as an earlier one. So the
    multipliers that prove a program infeasible are kept and tried on later programs. If they prove
    a program infeasible, too, it is not solved.

    Args:
        question: the question, whose solver, options and deadline are used.

    Attributes:
        scale: the factor of all masses in programs.
        solve_count: the number of programs solved or proven infeasible.
    """

    def __init__(self, question: LawQuestion) -> None:
        self.question = question
        self.scale = 1.0
        if question.float_epsilon < _RELATIVE.max_epsilon:
            self.scale = _RELATIVE.mass_scale
        self.solve_count = 0
        self._live: dict[tuple[bytes, bytes], _LivePattern] = {}

    def solve(self, lp: EntrywiseProgram) -> ProgramOptimum | None:
        """Return the optimum of a program, or None without one.

        Args:
            lp: the linear program to solve.

        Raises:
            NotProven: the time limit ended the solver.
        """
        return self._read_optimum(self._solve(lp))

    def solve_with_bound(self, lp: EntrywiseProgram) -> tuple[float, ProgramOptimum | None]:
        """Return a lower bound on the minimum of a program, and its optimum or None.

        The bound is only infinite if the solver says that no point exists. A solver that fails
        proves nothing.

        Args:
            lp: the linear program to solve.

        Raises:
            NotProven: the time limit ended the solver.
        """
        solution = self._solve(lp)
        if solution is None:
            return math.inf, None
        optimum = self._read_optimum(solution)
        if optimum is None:
            return -math.inf, None
        bound = optimum.objective
        if solution.bound is not None:
            bound = min(bound, solution.bound)
        return bound, optimum

    def _solve(self, lp: EntrywiseProgram) -> Solution | None:
        """Solve a program, or return None if it is infeasible.

        Raises NotProven if the time limit ended the solver.
        """
        question = self.question
        self.solve_count += 1
        with translate_errors():
            program = lp.to_program("two-bin selections", scale=self.scale)
            matrix = program.template.A
            pattern = matrix.indices.tobytes(), matrix.indptr.tobytes()
            if pattern not in self._live:
                backend = get_backend(question.solver)
                self._live[pattern] = _LivePattern(backend.open(program, question.options))
            live = self._live[pattern]
            if live.proves_infeasibility(program.template):
                return None
            live.session.follow(program)
            solution = live.session.solve(time_limit=question.deadline.solver_time_limit)
        if solution.termination is Termination.INTERRUPTED:
            raise KeyboardInterrupt
        if solution.termination is Termination.TIME_LIMIT:
            raise NotProven(
                f"The time limit ended the search after {self.solve_count - 1} linear programs of "
                f"{question.solver}."
            )
        live.was_infeasible = solution.termination is Termination.INFEASIBLE
        if not live.was_infeasible:
            return solution
        if solution.ray is not None:
            live.proofs.insert(0, solution.ray)
            del live.proofs[_MAX_KEPT_PROOFS:]
        return None

    @staticmethod
    def _read_optimum(solution: Solution | None) -> ProgramOptimum | None:
        """Return the optimum of a solution; None without one."""
        if solution is None or not solution.is_optimal:
            return None
        if solution.objective is None or solution.x is None:
            return None
        return ProgramOptimum(solution.objective, solution.x, solution)

    def close(self) -> None:
        """Release the resources of the solvers."""
        for live in self._live.values():
            live.session.close()
        self._live.clear()


def _make_slice(q: Vector, half_width: float | Vector) -> Pair:
    """Return the lower and upper bounds of a slice around a selection."""
    return np.maximum(q - half_width, 0.0), np.minimum(q + half_width, 1.0)


class SliceSearch:
    """Search for the best selection by Theorem 5's programs on one two-bin family.

    Args:
        shape: the bins, pieces and selection distributions.
        epsilon: the budget ε > 0.
        solver: solves the programs.

    Attributes:
        best: the best optimum of the programs solved, None before there is one.
    """

    def __init__(self, shape: TwoBinShape, epsilon: float, solver: ProgramSolver) -> None:
        self.shape = shape
        self.epsilon = epsilon
        self.solver = solver
        self.best: ProgramOptimum | None = None

    @property
    def best_value(self) -> float:
        """Return the least objective so far."""
        return math.inf if self.best is None else self.best.objective

    def solve_slice(self, bounds: VectorBounds) -> ProgramOptimum | None:
        """Solve the program with these bounds, and record its optimum if it is the best."""
        optimum = self.solver.solve(self.shape.theorem5(self.epsilon, bounds))
        if optimum is not None and optimum.objective < self.best_value:
            self.best = optimum
        return optimum

    def search_slices(self, key: VectorKey, width: float) -> None:
        """Find the best slice of a vector of two entries by branch and bound."""
        # Slice k is [k width, (k + 1) width], from k = 1 on.
        count = math.floor(1 / width + _COUNT_ROUNDING) - 1
        edges = width * np.arange(1, count + 2)
        ranges: OpenNodes[tuple[int, int]] = OpenNodes()

        def make_bounds(start: int, stop: int) -> VectorBounds:
            """Return bounds of the vector whose first entry is in the slices start..stop - 1."""
            low = float(edges[start])
            high = float(edges[stop])
            return {key: (np.array([low, 1 - high]), np.array([high, 1 - low]))}

        ranges.put(-math.inf, (0, count))
        while ranges.lower_bound < self.best_value:
            start, stop = ranges.first_node
            ranges.pop()
            if stop - start == 1:
                self.solve_slice(make_bounds(start, stop))
                continue
            middle = (start + stop) // 2
            for part in ((start, middle), (middle, stop)):
                program = self.shape.theorem5(self.epsilon, make_bounds(*part), optimistic=True)
                bound, _ = self.solver.solve_with_bound(program)
                if bound < math.inf:
                    # Only ranges that are worse beyond the solver's tolerance are discarded.
                    ranges.put(bound - _PRUNING_TOLERANCE, part)

    def search_relative_slices(self) -> None:
        """Find the best of thin slices around RQM's selections.

        The selections have rqm_q = 0, and rqm_q in proportion to tanh(ε/2).
        """
        # From ε = 1 on the slices do not become thicker.
        share = math.exp(_RELATIVE.thickness * min(self.epsilon, 1.0)) - 1

        def compute_value(rqm_q: float) -> float:
            """Return the best loss of the thin slice around RQM's selections for `rqm_q`."""
            bounds = {}
            for key, q in make_rqm_selections(self.shape, float(rqm_q)).items():
                bounds[key] = _make_slice(q, share * np.minimum(q, 1 - q))
            optimum = self.solve_slice(bounds)
            if optimum is None:
                return _RELATIVE.no_law_value
            return optimum.objective

        compute_value(0.0)
        ratio = _RELATIVE.centre_ratio
        grid = [math.tanh(self.epsilon / 2) * ratio**-k for k in range(-1, _RELATIVE.centre_count)]
        # RQM is defined below 1. The first centre exceeds 1 from ε = ln 3 on.
        centres = [rqm_q for rqm_q in grid if rqm_q < 1]
        values = [compute_value(rqm_q) for rqm_q in centres]
        if min(values) >= _RELATIVE.no_law_value:
            return
        from scipy.optimize import minimize_scalar  # The import is slow.

        best = centres[int(np.argmin(values))]
        minimize_scalar(
            compute_value,
            bounds=(best / ratio, min(1.0, best * ratio)),
            method="bounded",
            options={"xatol": _SELECTION_TOLERANCE * best},
        )

    def search_around(self, selection: dict[VectorKey, Vector]) -> None:
        """Search slices of every bounded vector around a selection.

        They are recentred while that gains, and narrowed when it does not.
        """
        width = _FIRST_SLICE_WIDTH
        value = math.inf
        while width > _LAST_SLICE_WIDTH:
            optimum = self.solve_slice({key: _make_slice(q, width) for key, q in selection.items()})
            if optimum is None or not value - optimum.objective > _MIN_SLICE_GAIN:
                width /= 2
            if optimum is not None:
                value = min(value, optimum.objective)
                selection = self._read_selection(optimum)

    def _read_selection(self, optimum: ProgramOptimum) -> dict[VectorKey, Vector]:
        """Return the bounded vectors of an optimum."""
        shape = self.shape
        return {key: shape.read_distribution(optimum.x, key) for key in shape.bounded_vectors}

    def list_starts(self) -> Iterator[dict[VectorKey, Vector]]:
        """Yield selections to start from: Theorem 6's best point, then RQM's."""
        reduced_optimum = self.find_theorem6_optimum()
        if reduced_optimum is not None:
            yield self._read_selection(reduced_optimum)
        for rqm_q in _START_RQM_NUMBERS:
            yield make_rqm_selections(self.shape, rqm_q)

    def find_theorem6_optimum(self) -> ProgramOptimum | None:
        """Return the best optimum of Theorem 6's LPs on a grid of its bounds. None without one."""
        optima = self._solve_theorem6()
        return min(optima, key=lambda optimum: optimum.objective, default=None)

    def _solve_theorem6(self) -> Iterator[ProgramOptimum]:
        """Yield the optima of Theorem 6's LPs on a grid of its bounds.

        There are none with fewer than two bins inside. `upper` bounds q_{s-1}(s-1) from above;
        `o_before` and `o_last` bound q_{t-1}(1) and q_t(1) from below. B_s and B_t are the inner
        bins closest to -1 and 1.
        """
        inner_bins = self.shape.inner_bins
        if not self.shape.symmetric or len(inner_bins) < 2:
            return
        uppers: tuple[float, ...] = _UPPER_BOUNDS
        step = _COARSE_LOWER_STEP
        if inner_bins[0] == 2:
            # q_{s-1} has length 1, so its bound is not needed and has one value.
            uppers = (1.0,)
            step = _FINE_LOWER_STEP
        last_bounds: tuple[float, ...] = _LAST_BOUNDS
        if inner_bins[-1] == self.shape.m - 1:
            # There is one bin right of 1. The program needs no bound `o_last`.
            last_bounds = (0.0,)
        for upper, o_last in itertools.product(uppers, last_bounds):
            for o_before in np.arange(_FIRST_LOWER_BOUND, 1.0, step):
                program = self.shape.theorem6(self.epsilon, upper, float(o_before), o_last)
                optimum = self.solver.solve(program)
                if optimum is not None:
                    yield optimum


def solve_optm(
    bins: Sequence[Fraction],
    question: LawQuestion,
    *,
    width: float | None = WIDTHS[0],
    solver: ProgramSolver | None = None,
) -> QuantizerAnswer | None:
    """Find the best two-bin mechanism by OPTM's LPs on given bins.

    Args:
        bins: the outputs in increasing order, in units of c.
        question: ε, density and solver. OPTM minimises its own bound on the MAE, so the loss is not
            used.
        width: slices are [k width, (k + 1) width] within [0, 1], k >= 1. None: slices that are thin
            relative to q (see the module).
        solver: live sessions that a search over bins shares. None: new sessions, which are closed
            at the end.

    Returns:
        The answer, without a lower bound. Its objective is the upper bound on the MAE that the
        program minimises, which is half of (8) of the paper. None if no program has a solution.

    Raises:
        NotProven: the time limit ended the search.
        SolverUnavailable: the solver cannot solve linear programs.
    """
    if solver is None:
        with closing(ProgramSolver(question)) as new_solver:
            return solve_optm(bins, question, width=width, solver=new_solver)
    shape = make_two_bin_shape(bins, question.density)
    bounded_keys = shape.bounded_vectors
    bounded_lengths = [length for _, length in bounded_keys]
    search = SliceSearch(shape, question.float_epsilon, solver)
    if not bounded_keys:
        search.solve_slice({})
    elif width is None:
        search.search_relative_slices()
    elif bounded_lengths == [2]:
        # Only one vector is bounded, and it has two entries.
        search.search_slices(bounded_keys[0], width)
    else:
        for start in search.list_starts():
            search.search_around(start)
    return make_optm_answer(bins, shape, search.best)


def make_optm_answer(
    bins: Sequence[Fraction], shape: TwoBinShape, optimum: ProgramOptimum | None
) -> QuantizerAnswer | None:
    """Make the answer of OPTM from the optimum of a program. None if there is no optimum.

    Args:
        bins: the outputs in increasing order, in units of c.
        shape: the shape of these bins.
        optimum: the optimum of the best program.
    """
    if optimum is None:
        return None
    quantizer = two_bin(list(bins), *shape.read_selections(optimum.x), name="OPTM")
    return QuantizerAnswer(optimum.objective, None, quantizer, optimum.solution)


def solve_optm_with_thinner_slices(
    bins: Sequence[Fraction], question: LawQuestion
) -> QuantizerAnswer | None:
    """Find the best two-bin mechanism with the first width of slices that has a solution.

    A small ε, or bins just within reach, need thin slices.

    Args:
        bins: the outputs in increasing order, in units of c.
        question: ε, density and solver. The loss is not used.

    Returns:
        The answer of `solve_optm` for that width. None if no width has a solution.
    """
    for width in list_slice_widths(question.epsilon):
        answer = solve_optm(bins, question, width=width)
        if answer is not None:
            return answer
    return None


def list_slice_widths(epsilon: Fraction) -> tuple[float | None, ...]:
    """List the widths of slices to try in turn; None stands for slices relative to q.

    Args:
        epsilon: the budget ε > 0.
    """
    return (None,) if epsilon < _RELATIVE.max_epsilon else (*WIDTHS, None)
