"""Live LPs for the laws at given points, re-solved hot: the exact quantizer on knots, MVU on its input grid.

Inputs are in [-1, 1]: a request for others is asked in units of their width.

A `LawProblem` fixes how many points there are and how losses depend on the outputs; ε and the outputs move. It returns
the optimal value, the laws and, from the LP's duals, the slope of the value in every output, so that outputs can be
optimised on top.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.errors import NotProven
from workbench.exact.numbers import ONE, Rationals
from workbench.exact.objects import Progress, Strings, Values
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.mechanisms.quantization_error import ErrorIntegrals, compute_error, error_slope
from workbench.models.quantizer.program import LawModel, compute_odds
from workbench.pipeline.outcome import translate_errors
from workbench.questions.density import Density, uniform_density
from workbench.questions.quantization import are_symmetric
from workbench.solvers.arrays import Pair, Vector
from workbench.solvers.backend import Options, Session, get_backend
from workbench.solvers.search import Deadline
from workbench.solvers.solution import Solution, Termination

LossTables = Callable[
    [Vector], Pair
]  # outputs (m,) -> costs and their slopes in the outputs, both (n, m)
Bins = Rationals
_LAST_SECONDS = 5.0  # At least so many seconds, or the whole time limit if that is less, are given to one program.


def ignore_progress(line: str) -> None:
    """Where nobody is told what a search has reached."""


@dataclass(frozen=True)
class LawQuestion:
    """What is asked of an unbiased private law on inputs in [-1, 1], all but its outputs: the least expected error.

    Args:
        epsilon: > 0.
        density: of the inputs.
        loss: "absolute", "squared", or λ for λ|e| + (1 - λ) e².
        metric: None for ε-DP; else a metric of `exact_problem`.
        solver, options: a label of `workbench doctor`, and what it is told; options do not tell questions apart.
        progress: told what a search has reached.
        deadline: when all of its programs together must have ended.
    """

    epsilon: Fraction
    density: Density = field(default_factory=uniform_density)
    loss: object = "absolute"
    metric: str | None = None
    solver: str = "highs"
    options: Options = field(default_factory=Options, compare=False)
    progress: Progress = field(default=ignore_progress, compare=False)
    deadline: Deadline = field(default_factory=Deadline, compare=False)

    @property
    def float_epsilon(self) -> float:
        """ε as solvers take it."""
        return float(self.epsilon)


@dataclass(frozen=True)
class QuantizerAnswer:
    """objective, bound: of the program; quantizer: its laws, read exactly; starts: what every start of a search over
    outputs reached, if there was one; words: for the reader."""

    objective: float
    bound: float | None
    quantizer: Quantizer
    solution: Solution
    start_values: tuple[float, ...] = ()
    notes: Strings = ()


@dataclass(frozen=True)
class LawAnswer:
    """value: of the LP; laws: at all points (n, m); slope: dV/dB (m,); solution: the solver's full answer."""

    value: float
    laws: Vector
    slopes: Vector
    solution: Solution


def make_no_answer_error(solution: Solution) -> NotProven:
    """The error of a solver that ended without an optimum, for its caller to raise."""
    reason = f"{solution.solver} stopped without an answer: {solution.raw_status}."
    return NotProven(reason, bound=solution.bound)


class LawProblem:
    """The least expected loss of private unbiased laws at points, as a function of ε and the outputs.

    Args:
        points: (n,) in increasing order, a knot twice for its two one-sided limits.
        outputs: m.
        losses: as above.
        symmetric: points and costs are symmetric; then outputs must be, and half of the laws are stated.
        links: where only neighbouring laws are compared: ε -> how much more likely an output may be at one end of each
            link than at the other, less 1, (n - 1,). By default every two laws are, by e^ε.
        context: the question whose solver, options and deadline are used. Default: HiGHS without a limit.
    """

    def __init__(
        self,
        points: Vector,
        outputs: int,
        losses: LossTables,
        *,
        symmetric: bool,
        links: Callable[[float], Vector] | None = None,
        context: LawQuestion | None = None,
    ) -> None:
        self.points, self.outputs, self._losses = points, outputs, losses
        self._last: tuple[bytes, Pair] = b"", (points, points)
        self.context = context or LawQuestion(ONE)
        self.symmetric = symmetric and links is None
        self.odds: Callable[[float], float | Vector] = links or compute_odds
        self.keep = np.arange(points.size // 2 if self.symmetric else 0, points.size)
        self.model = LawModel(self.keep.size, outputs, self.symmetric, "chain" if links else "all")

    @cached_property
    def _session(self) -> Session:
        with translate_errors():
            return get_backend(self.context.solver).open(self.model.program, self.context.options)

    def compute_losses(self, outputs: Vector) -> Pair:
        """What outputs cost, and the slopes; those asked for last are kept. Shapes (n, m)."""
        key = outputs.tobytes()
        if self._last[0] != key:
            self._last = key, self._losses(outputs)
        return self._last[1]

    def compute_reach_excess(self, epsilon: float) -> float:
        """How far beyond the last points ±1 outputs must reach on either side for a law to exist, and need not farther.

        With outputs >= -B and p_{x'} <= r p_x, x' + B <= r (x + B): B >= (x' - x)/(r - 1) - x, and its mirror image. At
        that B the law on ±B alone meets all of it.
        """
        odds = self.odds(epsilon)
        if self.model.relation == "all":
            return float(2 / odds)
        inside = 1 - np.maximum(-self.points[:-1], self.points[1:])
        return float((np.diff(self.points) / odds - inside).max())

    def _fold(self, table: Vector, sign: float = 1.0) -> Vector:
        """Losses of a point and its mirror image together (the middle of an odd number is its own mirror); sign: -1 for
        slopes, as an output's mirror image moves the other way."""
        if not self.symmetric:
            return table
        folded = table + sign * table[::-1, ::-1]
        if table.shape[0] % 2:
            folded[table.shape[0] // 2] /= 2
        return folded[self.keep]

    def unfold_laws(self, half: Vector) -> Vector:
        """The laws at all points from those of the program."""
        if not self.symmetric:
            return half
        mirror = half[::-1, ::-1]
        if self.points.size % 2:
            half = np.concatenate([(half[:1] + mirror[-1:]) / 2, half[1:]])
        return np.concatenate([mirror[: self.points.size // 2], half])

    def parameter_values(self, epsilon: float, outputs: Vector) -> Values:
        """The parameter values of `model.program`."""
        costs = self._fold(self.compute_losses(outputs)[0])
        return self.model.values(self.odds(epsilon), outputs, self.points[self.keep], costs)

    def solve(self, epsilon: float, outputs: Vector, *, start: str = "hot") -> Solution:
        """The solver's answer alone."""
        with translate_errors():
            values, limit = (
                self.parameter_values(epsilon, outputs),
                self.context.deadline.solver_time_limit,
            )
            if (
                limit is not None
            ):  # a search that ran out of time still has its outputs to solve for
                limit = max(limit, min(_LAST_SECONDS, self.context.deadline.seconds or 0.0))
            solution = self._session.solve(values, start=start, time_limit=limit)
        if solution.termination is Termination.INTERRUPTED:
            raise KeyboardInterrupt
        return solution

    def find_optimum(
        self, epsilon: float, outputs: Vector, *, start: str = "hot"
    ) -> LawAnswer | None:
        """Return the optimum at these outputs, or None when the solver has none.

        Raises:
            NotProven: when the time limit ended the solver.
        """
        solution = self.solve(epsilon, outputs, start=start)
        if solution.termination is Termination.TIME_LIMIT:
            raise make_no_answer_error(solution)
        return self.read_solution(solution, outputs)

    def read_solution(self, solution: Solution, outputs: Vector) -> LawAnswer | None:
        """What a solution says; None when it is none. The slope is empty where the solver gives no dual values."""
        if solution.x is None:
            return None
        half, row_dual = self.model.laws(solution.x), solution.row_dual
        losses, moved = self.compute_losses(outputs)
        value = math.fsum(
            (self._fold(losses) * half).ravel()
        )  # rounded once, so the same on every machine
        laws, slope = self.unfold_laws(half), np.zeros(0)
        if row_dual is not None:
            slope = self.model.slopes(half, row_dual, self._fold(moved, -1.0))
        return LawAnswer(value, laws, slope, solution)

    def unfold_duals(self, row_dual: Vector) -> Pair:
        """Those of Σ p = 1 and of the means, at all points: one that is stated stands for two, but for the middle."""
        n, odd = self.keep.size, self.points.size % 2
        alpha, beta = row_dual[:n], row_dual[n : 2 * n]
        if not self.symmetric:
            return alpha, beta
        both = (
            np.concatenate([alpha[odd:][::-1], alpha]) / 2,
            np.concatenate([-beta[odd:][::-1], beta]) / 2,
        )
        if odd:  # the mean of the middle point is 0 by symmetry
            both[0][n - 1], both[1][n - 1] = alpha[0], 0.0
        return both

    def close(self) -> None:
        """Give the solver's resources back."""
        if "_session" in self.__dict__:
            self._session.close()


def add_end_points(inner: NDArray[Any]) -> Pair:
    """Points and ±1, and their weights: equal ones inside, none at ±1, where laws bind but cost nothing."""
    return np.concatenate([[-1.0], inner, [1.0]]), np.pad(np.full(inner.size, 1 / inner.size), 1)


def make_exact_problem(
    knots: Vector, outputs: int, question: LawQuestion, *, symmetric: bool
) -> LawProblem:
    """The exact quantizer LP on fixed knots (bins need not be knots; then the law just has no jump there), at any ε.

    metric "absolute": p(x) <= e^{ε|x-x'|} p(x') for all real x, by a continuous law with |p(b) - p(a)| <= ε (b - a)
    min(p(a), p(b)) on every piece; "squared": for inputs dithered to the knots, ln p(b)/p(a) <= ε (b - a)².
    """

    metric = question.metric

    def losses(bins: Vector) -> Pair:
        """What the end laws of all pieces cost, and the slopes in the outputs."""
        integrals, shape = ErrorIntegrals(knots, bins, question.density), (-1, bins.size)
        cost, slopes = (
            each(question.loss).reshape(shape) for each in (integrals.weights, integrals.slopes)
        )
        return (cost, slopes) if metric is None else (_joined(cost), _joined(slopes))

    # of every law both one-sided limits at every knot inside, and ±1; of a continuous one the knots
    points, links = (
        (np.repeat(knots, 2)[1:-1], None)
        if metric is None
        else (knots, _links(np.diff(knots), metric))
    )
    return LawProblem(points, outputs, losses, symmetric=symmetric, links=links, context=question)


def _joined(table: Vector) -> Vector:
    """Losses at the knots of a continuous law: those of its two sides together. Shape (K + 1, m)."""
    none = np.zeros((1, table.shape[1]))
    return np.asarray(np.concatenate([table[0::2], none]) + np.concatenate([none, table[1::2]]))


def _links(width: Vector, metric: str) -> Callable[[float], Vector]:
    """ε -> how much more likely an output may be at one end of a link than at the other, less 1.

    "absolute": for every real input between, whose law is affine, the logarithm's slope must stay below ε: ε w, which
    is less than the e^{εw} - 1 that would do for the two ends alone. "squared": for the two ends, e^{εw²} - 1.
    """
    if metric == "absolute":
        return lambda epsilon: epsilon * width
    return lambda epsilon: np.array([compute_odds(float(epsilon * w**2)) for w in width])


def make_grid_problem(
    points: Vector,
    outputs: int,
    loss: object = "squared",
    *,
    weights: Vector | None = None,
    symmetric: bool | None = None,
    metric: str | None = None,
    context: LawQuestion | None = None,
) -> LawProblem:
    """MVU's LP in P: the mean error over the grid points (weighted when asked), private between all of them.

    symmetric: whether points and weights are, and outputs will be; found out by default.
    metric: as in `exact_problem`; "absolute" holds for all real inputs, which are dithered to the points.
    context: see `LawProblem`.
    """
    share = (np.full(points.size, 1 / points.size) if weights is None else weights)[:, None]

    def losses(bins: Vector) -> Pair:
        gap = bins - points[:, None]
        return share * compute_error(np.abs(gap), loss), share * error_slope(gap, loss)

    if symmetric is None:
        symmetric = bool(np.allclose(points, -points[::-1]) and np.allclose(share, share[::-1]))
    links = None if metric is None else _links(np.diff(points), metric)
    return LawProblem(points, outputs, losses, symmetric=symmetric, links=links, context=context)


def list_knots(bins: Sequence[Fraction], extra: int | Sequence[Fraction]) -> list[Fraction]:
    """±1, the bins inside (-1, 1), and `extra` points equally spaced from -1 to 1, or these, each once."""
    if isinstance(extra, int):
        extra = [Fraction(2 * k, extra - 1) - 1 for k in range(extra)] if extra >= 2 else []
    return sorted({Fraction(-1), ONE, *(b for b in bins if -1 < b < 1), *extra})


def solve_exact_quantizer(
    bins: Bins, question: LawQuestion, *, knots: int | Sequence[Fraction] = 0
) -> QuantizerAnswer | None:
    """The exact quantizer LP at these bins; knots: how many equally spaced extra ones, or these. None when the solver
    says infeasible.

    Raises NotProven when a limit stopped the solver.
    """
    cuts = list_knots(bins, knots)
    outputs = np.array(bins, dtype=float)
    even = question.density.is_symmetric and are_symmetric(bins)
    problem = make_exact_problem(np.array(cuts, dtype=float), len(bins), question, symmetric=even)
    solution = problem.solve(question.float_epsilon, outputs, start="cold")
    problem.close()
    if solution.termination is Termination.INFEASIBLE:
        return None
    answer = problem.read_solution(solution, outputs)
    if answer is None:
        raise make_no_answer_error(solution)
    # a mass of 1e-11 at most is a solver's zero: an output that is nowhere used may not be told from one that leaks
    laws = answer.laws * (answer.laws.max(axis=0) > 1e-11)
    mechanism = Quantizer.from_ends("exact quantizer", bins, cuts, laws)
    return QuantizerAnswer(answer.value, solution.bound, mechanism, solution)
