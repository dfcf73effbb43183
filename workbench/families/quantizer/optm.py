"""OPTM's search (Algorithm 2): over the bounds of q, with proven pruning.

Slices. With one vector of two entries to bound (m <= 5 with the outer bins outside, any density) the bounds are
slices [l, l + width] of its first entry. A range of slices is discarded when even its optimistic LP (a relaxation of
every slice in it, workbench.models.quantizer.two_bin) is worse than the best slice found: the result is that of the
full search, tested so.

Larger m. Theorem 6's reduced LP on a grid of its three bounds gives a start; then all bounds are slices around the
incumbent (Theorem 5), recentred while it improves and narrowed when it does not. A local search: no bound is claimed.

Small ε, or nothing found. Both bounds of a slice enter one privacy constraint, so u/o <= e^ε is necessary: slices must
be thin in proportion to ε, and the mass of inner bins is itself of the order of ε (at two bins left of x, q_2(2) <=
about ε/2). Then slices are thin relative to q and their centres are RQM's selections: q = 0, which is two-point
randomized response on the outermost bins and private whenever any law on these bins is, and q in proportion to ε,
best of a geometric grid, then between its neighbours there. That a law exists is thus never denied for want of a slice.

Every winner is a `two_bin` mechanism in exact rationals; its exact ε is the judge, and a design above the request is
mixed back or dropped by the caller.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
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
from workbench.solvers.search import OpenNodes
from workbench.solvers.solution import Solution, Termination

WIDTHS = (0.01, 0.002, 0.0004)  # of slices: the paper's, then thinner where that leaves no solution
_SMALL = 0.1  # ε below which slices of the paper's width are too thick: q is resolved relative to ε
_THICKNESS = 1e-3  # of ε: how far ln q may be from the centre of a relative slice
_RATIO = 2.0  # between neighbouring centres
_CENTRES = 12
_NO_LAW = (
    1e9  # the value of a slice without a solution, more than any error of bins that are searched
)
_FINE = (
    2.0**20
)  # at a small ε masses are small: in units of 2^-20 a tolerance of 1e-7 is 1e-13 of probability


def make_two_bin_shape(bins: Sequence[Fraction], density: Density) -> TwoBinShape:
    """The two-bin family on these bins, symmetric when bins and density are."""
    outputs = tuple(map(float, bins))
    masses = density.interval_masses([-1.0, *(b for b in outputs if -1 < b < 1), 1.0])
    return TwoBinShape(
        outputs, tuple(masses.tolist()), density.is_symmetric and are_symmetric(bins)
    )


def make_rqm_selections(shape: TwoBinShape, q: float) -> dict[VectorKey, Vector]:
    """RQM's selections of the bounded vectors; q = 0: two-point randomized response, private whenever anything is."""
    laws = rqm_selection(shape.m, Fraction(q))
    return {key: laws[key[1] - 1].floats for key in shape.bounded_vectors}


class ProgramOptimum(NamedTuple):
    """The optimum of a program."""

    objective: float
    x: Vector
    solution: Solution


class ProgramSolver:
    """Programs on live objects of the question's solver, one for all programs that are written alike."""

    def __init__(self, question: LawQuestion) -> None:
        self.question = question
        self.scale = _FINE if question.float_epsilon < _SMALL else 1.0
        self._open: dict[tuple[bytes, bytes], Session] = {}
        self.solve_count = 0

    def solve(self, lp: EntrywiseProgram) -> ProgramOptimum | None:
        """Return the solver's optimum, or None without one.

        Raises:
            NotProven: when the time limit ended the solver.
        """
        return self._point(self._solution(lp))

    def solve_with_bound(self, lp: EntrywiseProgram) -> tuple[float, ProgramOptimum | None]:
        """Return a lower bound on the program's minimum, and the solver's optimum or None without one.

        The bound is infinite only where the solver says that no point exists. A solver that fails proves nothing.

        Raises:
            NotProven: when the time limit ended the solver.
        """
        solution = self._solution(lp)
        point = self._point(solution)
        if point is None:
            infeasible = solution.termination is Termination.INFEASIBLE
            return math.inf if infeasible else -math.inf, None
        return min(
            point.objective, point.objective if solution.bound is None else solution.bound
        ), point

    def _solution(self, lp: EntrywiseProgram) -> Solution:
        """Solve a program. Raises NotProven when the time limit ended the solver."""
        question = self.question
        self.solve_count += 1
        with translate_errors():
            program = lp.to_program("two-bin selections", scale=self.scale)
            pattern = program.template.A.indices.tobytes(), program.template.A.indptr.tobytes()
            if pattern not in self._open:
                self._open[pattern] = get_backend(question.solver).open(program, question.options)
            self._open[pattern].follow(program)
            solution = self._open[pattern].solve(time_limit=question.deadline.solver_time_limit)
        if solution.termination is Termination.INTERRUPTED:
            raise KeyboardInterrupt
        if solution.termination is Termination.TIME_LIMIT:
            raise NotProven(
                f"The time limit ended the search after {self.solve_count - 1} linear programs of {question.solver}."
            )
        return solution

    @staticmethod
    def _point(solution: Solution) -> ProgramOptimum | None:
        """The optimum that a solution holds; None without one."""
        if not solution.is_optimal or solution.objective is None or solution.x is None:
            return None
        return ProgramOptimum(solution.objective, solution.x, solution)

    def close(self) -> None:
        """Give the solvers' resources back."""
        for session in self._open.values():
            session.close()
        self._open.clear()


def _around(q: Vector, far: float | Vector) -> Pair:
    """Slices around a selection."""
    return np.maximum(q - far, 0.0), np.minimum(q + far, 1.0)


class _Search:
    """Theorem 5's programs on one shape, and the best of those solved."""

    def __init__(self, shape: TwoBinShape, epsilon: float, live: ProgramSolver) -> None:
        self.shape, self.epsilon, self.live = shape, epsilon, live
        self.best: ProgramOptimum | None = None

    @property
    def value(self) -> float:
        """The least objective so far."""
        return math.inf if self.best is None else self.best.objective

    def at(self, bounds: VectorBounds) -> ProgramOptimum | None:
        """The program with these bounds."""
        point = self.live.solve(self.shape.theorem5(self.epsilon, bounds))
        if point is not None and point.objective < self.value:
            self.best = point
        return point

    def slices(self, key: VectorKey, width: float) -> None:
        """The best slice of a vector of two entries."""
        count = int(1 / width + 1e-9) - 1
        edges = width * np.arange(1, count + 2)
        ranges: OpenNodes[tuple[int, int]] = OpenNodes()

        def bounds(start: int, stop: int) -> VectorBounds:
            low, high = float(edges[start]), float(edges[stop])
            return {key: (np.array([low, 1 - high]), np.array([high, 1 - low]))}

        ranges.put(-math.inf, (0, count))
        while ranges.lower_bound < self.value:
            start, stop = ranges.first_node
            ranges.pop()
            if stop - start == 1:
                self.at(bounds(start, stop))
                continue
            middle = (start + stop) // 2
            for part in ((start, middle), (middle, stop)):
                bound, _ = self.live.solve_with_bound(
                    self.shape.theorem5(self.epsilon, bounds(*part), optimistic=True)
                )
                if (
                    bound < math.inf
                ):  # 1e-9 covers the solver's tolerance: only clearly worse ranges are discarded
                    ranges.put(bound - 1e-9, part)

    def relative(self) -> None:
        """The best of thin slices around RQM's selections, q = 0 and q in proportion to tanh(ε/2)."""
        spread = math.exp(_THICKNESS * min(self.epsilon, 1.0)) - 1

        def value(q: float) -> float:
            laws = make_rqm_selections(self.shape, float(q))
            point = self.at(
                {key: _around(p, spread * np.minimum(p, 1 - p)) for key, p in laws.items()}
            )
            return _NO_LAW if point is None else point.objective

        value(0.0)
        centres = [math.tanh(self.epsilon / 2) * _RATIO**-k for k in range(-1, _CENTRES)]
        values = [value(q) for q in centres]
        if min(values) < _NO_LAW:
            best = centres[int(np.argmin(values))]
            ends, fine = (best / _RATIO, min(1.0, best * _RATIO)), 1e-3 * best
            from scipy.optimize import minimize_scalar  # slow to import

            minimize_scalar(value, bounds=ends, method="bounded", options={"xatol": fine})

    def around(self, here: dict[VectorKey, Vector]) -> None:
        """Slices of every bounded vector around a selection, recentred while that gains, narrowed when it does not."""
        width, value = 0.04, math.inf
        while width > 2e-4:
            point = self.at({key: _around(q, width) for key, q in here.items()})
            if point is None or not value - point.objective > 1e-4:
                width /= 2
            if point is not None:
                value = min(value, point.objective)
                here = {key: self.shape.read_distribution(point.x, key) for key in here}

    def starts(self) -> Iterator[dict[VectorKey, Vector]]:
        """Selections of the bounded vectors to start from: Theorem 6's best point, then RQM's at several q."""
        reduced = min(self._theorem6(), key=lambda point: point.objective, default=None)
        if reduced is not None:
            yield {
                key: self.shape.read_distribution(reduced.x, key)
                for key in self.shape.bounded_vectors
            }
        for q in (0.03, 0.1, 0.2, 0.35, 0.5):
            yield make_rqm_selections(self.shape, q)

    def _theorem6(self) -> Iterator[ProgramOptimum]:
        """The optima of Theorem 6's LPs on a grid of its bounds; none with fewer than two bins inside."""
        inside = self.shape.inner_bins
        if not self.shape.symmetric or len(inside) < 2:
            return
        uppers = (1.0,) if inside[0] == 2 else (0.1, 0.3, 0.6, 1.0)
        lasts = (0.0,) if inside[-1] == self.shape.m - 1 else (0.05, 0.15, 0.3, 0.5, 0.8)
        for u in uppers:
            for o_last in lasts:
                for before in np.arange(0.02, 1.0, 0.02 if len(uppers) == 1 else 0.06):
                    point = self.live.solve(
                        self.shape.theorem6(self.epsilon, u, float(before), o_last)
                    )
                    if point is not None:
                        yield point


def solve_optm(
    bins: Sequence[Fraction],
    question: LawQuestion,
    *,
    width: float | None = 0.01,
    solver: ProgramSolver | None = None,
) -> QuantizerAnswer | None:
    """Find the best two-bin mechanism by OPTM's LPs on these bins; None when no LP has a solution.

    Args:
        bins: outputs in increasing order, in units of c.
        question: ε, density and solver. OPTM minimises its own bound on the MAE, so that the loss is not used.
        width: slices are [k width, (k + 1) width] within [0, 1], k >= 1, or None for relative ones.
        live: the solver's objects of a search over bins.

    Returns:
        The answer, whose objective is the upper bound on the MAE that the LP minimises, (8) halved.

    Raises:
        NotProven: when the time limit ended the search.
        SolverUnavailable: when the solver cannot solve linear programs.
    """
    shape = make_two_bin_shape(bins, question.density)
    search = _Search(shape, question.float_epsilon, solver or ProgramSolver(question))
    if not shape.bounded_vectors:
        search.at({})
    elif width is None:
        search.relative()
    elif len(shape.bounded_vectors) == 1 and shape.bounded_vectors[0][1] == 2:
        search.slices(shape.bounded_vectors[0], width)
    else:
        for start in search.starts():
            search.around(start)
    if solver is None:
        search.live.close()
    if search.best is None:
        return None
    quantizer = two_bin(list(bins), *shape.read_selections(search.best.x), name="OPTM")
    return QuantizerAnswer(search.best.objective, None, quantizer, search.best.solution)


def solve_optm_with_thinner_slices(
    bins: Sequence[Fraction], question: LawQuestion
) -> QuantizerAnswer | None:
    """`optm` at the first of `widths_for` ε that gives a solution: a small ε, or bins just within reach, need thin
    slices."""
    answers = (
        solve_optm(bins, question, width=width) for width in list_slice_widths(question.epsilon)
    )
    return next((answer for answer in answers if answer is not None), None)


def list_slice_widths(epsilon: Fraction) -> tuple[float | None, ...]:
    """The widths of slices to try in turn; None: relative ones."""
    return (None,) if epsilon < _SMALL else (*WIDTHS, None)
