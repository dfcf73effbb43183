"""Find the unbiased private laws with the smallest loss on given outputs, by a linear program (LP).

`solve_exact_quantizer` answers this for all inputs in a range (the exact quantizer).
`make_grid_problem` states it for inputs on a grid (MVU, the mechanism of Chaudhuri et al. 2022).

Terms. Outputs are also called bins. A law is the distribution of the output at one input; p_x is
the law at the input x. A knot is an input at which the law is a variable; between knots it is
affine. A link is a pair of neighbouring points whose laws are compared. n is the number of points,
m the number of outputs.

Inputs are in [-1, 1]; requests for other inputs are rescaled by half their width.

A `LawProblem` fixes the number of points and how losses depend on the outputs, while ε and the
outputs vary. It keeps its solver between solves. It returns the optimal value, the laws and, from
the LP's duals, the slope of the value in every output, so that a search can optimise outputs.
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

# Maps outputs (m,) to the losses of all laws and their slopes in the outputs, both (n, m).
LossTables = Callable[[Vector], Pair]

Bins = Rationals  # The exact outputs in increasing order.
# After the deadline one program still gets this time (or the time limit, if that is shorter).
_MIN_PROGRAM_SECONDS = 5.0
_ZERO_MASS = 1e-11  # If no law draws an output with a larger probability, its masses are set to 0.


def ignore_progress(line: str) -> None:
    """Ignore a line about the progress of a search.

    Args:
        line: the text of the line.
    """


@dataclass(frozen=True)
class LawQuestion:
    """The question of an unbiased private law on [-1, 1] of least expected error, without outputs.

    Attributes:
        epsilon: the budget ε > 0 for inputs in [-1, 1].
        density: the density of the inputs on [-1, 1].
        loss: "absolute", "squared", or λ in [0, 1] for λ|e| + (1 - λ) e² of the error e.
        metric: None for ε-DP; "absolute" or "squared" for privacy by the distance |x - x'| or its
            square (see `make_exact_problem`).
        solver: the label of the solver, as `workbench doctor` lists it.
        options: options of the solver. Questions that only differ in them are equal.
        progress: is called with lines about the progress of a search.
        deadline: when the last of all programs must have ended.
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
        """Return ε as a double, for solvers."""
        return float(self.epsilon)


@dataclass(frozen=True)
class QuantizerAnswer:
    """A quantizer that a method found.

    Attributes:
        objective: the optimal value of the program, as the solver found it.
        bound: a lower bound on the objective; None if the solver gives none.
        quantizer: the laws of the program as exact numbers, not yet repaired or audited.
        solution: the solution that the solver returned; None if no solver was called.
        start_values: the value that each start of a search over outputs reached; empty without
            a search.
        notes: notes for the report.
    """

    objective: float
    bound: float | None
    quantizer: Quantizer
    solution: Solution | None
    start_values: tuple[float, ...] = ()
    notes: Strings = ()


@dataclass(frozen=True)
class LawAnswer:
    """The optimal laws at given outputs.

    Attributes:
        value: the optimal value of the LP.
        laws: the laws at all points. Shape (n, m).
        slopes: the slope of the value in every output. Shape (m,), or empty without dual values.
        solution: the solution that the solver returned.
    """

    value: float
    laws: Vector
    slopes: Vector
    solution: Solution


def make_no_answer_error(solution: Solution) -> NotProven:
    """Make the error for a solver that ended without an optimum.

    Args:
        solution: the solution that the solver returned.
    """
    reason = f"{solution.solver} stopped without an answer: {solution.raw_status}."
    return NotProven(reason, bound=solution.bound)


class LawProblem:
    """Minimise the expected loss of private unbiased laws at points, for varying ε and outputs.

    Args:
        points: the points in increasing order, a knot twice for its two one-sided limits. Shape
            (n,).
        outputs: the number m of outputs.
        losses: computes the losses and their slopes at outputs.
        symmetric: whether points and losses are symmetric around 0. Then outputs must be
            symmetric too. Without links only the laws at points >= 0 are then variables of the
            program; the others are their mirror images.
        links: maps ε to r - 1 for every link, where r is the factor by which the probabilities of
            an output at both ends of the link may differ. Shape (n - 1,). Default: every two laws
            are compared, with r = e^ε.
        context: the question whose solver, options and deadline are used. Default: HiGHS without a
            time limit.
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
        self.points = points
        self.outputs = outputs
        self._losses = losses
        self._cached_outputs = b""  # The bytes of the outputs of `_cached_losses`; none yet.
        self._cached_losses: Pair = (points, points)
        self.context = context or LawQuestion(ONE)  # Its ε is not used: `solve` takes one.
        self.symmetric = symmetric and links is None
        self.odds: Callable[[float], float | Vector] = links or compute_odds
        # Of a symmetric problem the middle point and the points right of it are stated.
        first = points.size // 2 if self.symmetric else 0
        self.stated_points = np.arange(first, points.size)
        relation = "chain" if links else "all"
        self.model = LawModel(self.stated_points.size, outputs, self.symmetric, relation)

    @cached_property
    def _session(self) -> Session:
        """Open the session of the solver."""
        with translate_errors():
            return get_backend(self.context.solver).open(self.model.program, self.context.options)

    def compute_losses(self, outputs: Vector) -> Pair:
        """Compute the losses of outputs and their slopes. The last result is cached.

        Args:
            outputs: the outputs (m,).

        Returns:
            The losses (n, m), and their slopes in the outputs (n, m).
        """
        key = outputs.tobytes()
        if self._cached_outputs != key:
            self._cached_losses = self._losses(outputs)
            self._cached_outputs = key
        return self._cached_losses

    def compute_reach_excess(self, epsilon: float) -> float:
        """Compute how far beyond ±1 the outermost outputs must be for a private law to exist.

        Let all outputs be at least -B, and let p_{x'} <= r p_x for two points x < x'. Multiply by
        (output + B) >= 0 and sum over the outputs. As the laws are unbiased, this gives
        x' + B <= r (x + B), hence B >= (x' - x)/(r - 1) - x. The mirror image of this bounds the
        largest output. At the largest such B, the law on the two outputs ±B is private.

        Args:
            epsilon: the budget ε > 0.

        Returns:
            The largest such B, less 1.
        """
        odds = self.odds(epsilon)  # r - 1
        if self.model.relation == "all":
            # The pair of points -1 and 1 gives the largest B.
            return float(2 / odds)
        inner_distance = 1 - np.maximum(-self.points[:-1], self.points[1:])
        return float((np.diff(self.points) / odds - inner_distance).max())

    def _fold(self, table: Vector, sign: float = 1.0) -> Vector:
        """Add the losses (n, m) of every point and its mirror image, if the problem is symmetric.

        With an odd number of points the middle one is its own mirror image and counts once. For
        slopes in the outputs the sign is -1: if an output moves, its mirror image moves the other
        way. Returns the rows of the stated points.
        """
        if not self.symmetric:
            return table
        folded_table = table + sign * table[::-1, ::-1]
        if table.shape[0] % 2:
            folded_table[table.shape[0] // 2] /= 2
        return folded_table[self.stated_points]

    def unfold_laws(self, stated_laws: Vector) -> Vector:
        """Return the laws at all points (n, m).

        Args:
            stated_laws: the laws of the program, at the points that are stated.
        """
        if not self.symmetric:
            return stated_laws
        mirror = stated_laws[::-1, ::-1]
        if self.points.size % 2:
            middle = (stated_laws[:1] + mirror[-1:]) / 2
            stated_laws = np.concatenate([middle, stated_laws[1:]])
        return np.concatenate([mirror[: self.points.size // 2], stated_laws])

    def parameter_values(self, epsilon: float, outputs: Vector) -> Values:
        """Return the parameter values of `model.program`.

        Args:
            epsilon: the budget ε > 0.
            outputs: the outputs (m,).
        """
        losses, _ = self.compute_losses(outputs)
        stated_losses = self._fold(losses)
        stated_points = self.points[self.stated_points]
        return self.model.values(self.odds(epsilon), outputs, stated_points, stated_losses)

    def solve(self, epsilon: float, outputs: Vector, *, start: str = "hot") -> Solution:
        """Solve the program and return the solver's solution, whatever its status is.

        Args:
            epsilon: the budget ε > 0.
            outputs: the outputs (m,).
            start: "hot" continues from the solver's last solution, "cold" forgets it.

        Raises:
            KeyboardInterrupt: the user interrupted the solver.
        """
        deadline = self.context.deadline
        with translate_errors():
            values = self.parameter_values(epsilon, outputs)
            limit = deadline.solver_time_limit
            if limit is not None:
                # A search that ran out of time must still solve for its outputs.
                limit = max(limit, min(_MIN_PROGRAM_SECONDS, deadline.seconds or 0.0))
            solution = self._session.solve(values, start=start, time_limit=limit)
        if solution.termination is Termination.INTERRUPTED:
            raise KeyboardInterrupt
        return solution

    def find_optimum(
        self, epsilon: float, outputs: Vector, *, start: str = "hot"
    ) -> LawAnswer | None:
        """Return the optimum at given outputs, or None if the solver found no point.

        Args:
            epsilon: the budget ε > 0.
            outputs: the outputs (m,).
            start: "hot" or "cold" (see `solve`).

        Raises:
            NotProven: the time limit ended the solver.
        """
        solution = self.solve(epsilon, outputs, start=start)
        if solution.termination is Termination.TIME_LIMIT:
            raise make_no_answer_error(solution)
        return self.read_solution(solution, outputs)

    def read_solution(self, solution: Solution, outputs: Vector) -> LawAnswer | None:
        """Return the laws of a solution and the slopes of its value; None if it has no point.

        Args:
            solution: the solution that the solver returned.
            outputs: the outputs (m,) that were solved for.
        """
        if solution.x is None:
            return None
        stated_laws = self.model.laws(solution.x)
        losses, loss_slopes = self.compute_losses(outputs)
        # The sum is rounded once, so it is the same on every machine.
        value = math.fsum((self._fold(losses) * stated_laws).ravel())
        slopes = np.zeros(0)
        if solution.row_dual is not None:
            slopes = self.model.slopes(
                stated_laws, solution.row_dual, self._fold(loss_slopes, -1.0)
            )
        return LawAnswer(value, self.unfold_laws(stated_laws), slopes, solution)

    def unfold_duals(self, row_dual: Vector) -> Pair:
        """Return the dual values of the rows Σ_i p_x(i) = 1 and of the means, (n,) each.

        In a symmetric program a stated point stands for itself and its mirror image, so each gets
        half of its dual value. The middle point stands for itself only.

        Args:
            row_dual: the dual values of the program's rows. The first rows are the sums of the
                stated laws, the next ones their means.
        """
        count = self.stated_points.size
        odd = self.points.size % 2  # 1 if there is a middle point, else 0.
        alpha = row_dual[:count]
        beta = row_dual[count : 2 * count]
        if not self.symmetric:
            return alpha, beta
        all_alpha = np.concatenate([alpha[odd:][::-1], alpha]) / 2
        all_beta = np.concatenate([-beta[odd:][::-1], beta]) / 2
        if odd:
            # The mean of the middle point is 0 by symmetry.
            all_alpha[count - 1] = alpha[0]
            all_beta[count - 1] = 0.0
        return all_alpha, all_beta

    def close(self) -> None:
        """Release the resources of the solver."""
        if "_session" in self.__dict__:
            self._session.close()


def add_end_points(inner: NDArray[Any]) -> Pair:
    """Add -1 and 1 to points, and make the weights of all points.

    Args:
        inner: points in (-1, 1). Shape (n,).

    Returns:
        The points (n + 2,) and their weights (n + 2,): equal ones inside, and 0 at ±1, where laws
        are constrained but have no loss.
    """
    weights = np.pad(np.full(inner.size, 1 / inner.size), 1)
    return np.concatenate([[-1.0], inner, [1.0]]), weights


def make_exact_problem(
    knots: Vector, outputs: int, question: LawQuestion, *, symmetric: bool
) -> LawProblem:
    """Make the exact quantizer LP on fixed knots.

    Without a metric the law may jump at every inner knot, and nowhere else. With the metric
    "absolute" the guarantee is p_x <= e^{ε|x-x'|} p_{x'} for all real inputs. It is stated for a
    continuous law by |p_b - p_a| <= ε (b - a) min(p_a, p_b) on every piece [a, b]: as the law is
    affine there, this bounds the slope of ln p by ε. With "squared", inputs are dithered to the
    knots, and ln(p_b/p_a) <= ε (b - a)² for neighbouring knots.

    Args:
        knots: the knots from -1 to 1 in increasing order. Shape (k,).
        outputs: the number of outputs.
        question: density, loss and metric of the law, and the solver.
        symmetric: whether density and outputs are symmetric around 0.
    """
    metric = question.metric

    def losses(bins: Vector) -> Pair:
        """Return the losses and their slopes in the outputs, one row for each law."""
        integrals = ErrorIntegrals(knots, bins, question.density)
        table = integrals.weights(question.loss).reshape(-1, bins.size)
        slopes = integrals.slopes(question.loss).reshape(-1, bins.size)
        if metric is None:
            return table, slopes
        return _join_one_sided(table), _join_one_sided(slopes)

    # A law has two one-sided limits at every inner knot; a continuous law has one value.
    points = np.repeat(knots, 2)[1:-1]
    links = None
    if metric is not None:
        points = knots
        links = _make_links(np.diff(knots), metric)
    return LawProblem(points, outputs, losses, symmetric=symmetric, links=links, context=question)


def _join_one_sided(table: Vector) -> Vector:
    """Add the losses (or slopes) of the two one-sided laws at every knot, for a continuous law.

    Args:
        table: one row for each end of the K pieces, in order (left, right, left, ...). Shape
            (2 K, m).

    Returns:
        One row for each of the K + 1 knots. Shape (K + 1, m).
    """
    zeros = np.zeros((1, table.shape[1]))
    right_sides = np.concatenate([table[0::2], zeros])
    left_sides = np.concatenate([zeros, table[1::2]])
    return np.asarray(right_sides + left_sides)


def _make_links(widths: Vector, metric: str) -> Callable[[float], Vector]:
    """Make the function of ε that limits how much laws change over each link.

    Args:
        widths: the widths of the links (n - 1,).
        metric: "absolute" or "squared". With "absolute" the limit r - 1 for a link of width w is
            ε w: the law is affine on the link, and the slope of its logarithm must be at most ε at
            every input. (For the two ends alone, the larger e^{εw} - 1 would be enough.) With
            "squared" only the two ends are compared, and the limit is e^{εw²} - 1.

    Returns:
        The function that maps ε to the limits r - 1 (n - 1,), where r is the factor by which the
        probabilities of an output at both ends of a link may differ.
    """
    if metric == "absolute":
        return lambda epsilon: epsilon * widths
    return lambda epsilon: np.array([compute_odds(float(epsilon * w**2)) for w in widths])


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
    """Make MVU's LP: the least mean error over grid points, private between all of them.

    Args:
        points: the grid points (n,).
        outputs: the number of outputs.
        loss: "absolute", "squared", or λ for λ|e| + (1 - λ) e².
        weights: the weights of the points, shape (n,). Default: equal weights.
        symmetric: whether points, weights and outputs are symmetric. Default: whether points and
            weights are.
        metric: None for ε-DP, or "absolute" or "squared" for privacy by distance. "absolute"
            holds for all real inputs, which are dithered to the points.
        context: the question whose solver, options and deadline are used (see `LawProblem`).
    """
    if weights is None:
        weights = np.full(points.size, 1 / points.size)
    shares = weights[:, None]

    def losses(bins: Vector) -> Pair:
        """Return the losses of the points and their slopes in the outputs, (k, m) each."""
        gaps = bins - points[:, None]
        return shares * compute_error(np.abs(gaps), loss), shares * error_slope(gaps, loss)

    if symmetric is None:
        has_symmetric_points = np.allclose(points, -points[::-1])
        symmetric = bool(has_symmetric_points and np.allclose(shares, shares[::-1]))
    links = None
    if metric is not None:
        links = _make_links(np.diff(points), metric)
    return LawProblem(points, outputs, losses, symmetric=symmetric, links=links, context=context)


def list_knots(bins: Sequence[Fraction], extra: int | Sequence[Fraction]) -> list[Fraction]:
    """List ±1, the bins in (-1, 1) and extra knots in increasing order.

    Args:
        bins: the outputs in increasing order, in units in which inputs are in [-1, 1].
        extra: the number of equally spaced knots from -1 to 1, or the extra knots themselves.
    """
    extra_knots: Sequence[Fraction] = ()
    if not isinstance(extra, int):
        extra_knots = extra
    elif extra >= 2:
        extra_knots = [Fraction(2 * k, extra - 1) - 1 for k in range(extra)]
    return sorted({Fraction(-1), ONE, *(b for b in bins if -1 < b < 1), *extra_knots})


def solve_exact_quantizer(
    bins: Bins, question: LawQuestion, *, knots: int | Sequence[Fraction] = 0
) -> QuantizerAnswer | None:
    """Solve the exact quantizer LP at given outputs.

    Args:
        bins: the outputs in increasing order.
        question: density, loss, metric and ε of the law, with the solver (see `LawQuestion`).
        knots: the number of equally spaced extra knots, or the extra knots themselves.

    Returns:
        The answer, or None if the solver says that the program is infeasible.

    Raises:
        NotProven: a limit stopped the solver.
    """
    all_knots = list_knots(bins, knots)
    outputs = np.array(bins, dtype=float)
    is_symmetric = question.density.is_symmetric and are_symmetric(bins)
    problem = make_exact_problem(
        np.array(all_knots, dtype=float), len(bins), question, symmetric=is_symmetric
    )
    solution = problem.solve(question.float_epsilon, outputs, start="cold")
    problem.close()
    if solution.termination is Termination.INFEASIBLE:
        return None
    answer = problem.read_solution(solution, outputs)
    if answer is None:
        raise make_no_answer_error(solution)
    # A solver's zero may be a tiny mass, by which an output could leak.
    laws = answer.laws * (answer.laws.max(axis=0) > _ZERO_MASS)
    mechanism = Quantizer.from_ends("exact quantizer", bins, all_knots, laws)
    return QuantizerAnswer(answer.value, solution.bound, mechanism, solution)
