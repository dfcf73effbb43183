"""Find MVU, the minimum variance unbiased mechanism of Chaudhuri et al. 2022, by linear programs.

`solve_mvu` finds the outputs and probabilities with the smallest mean squared error of an unbiased
ε-private mechanism on a grid of inputs. `compute_mvu_curve` does so at several ε, for comparison
with Laplace noise in few bits. d(x, x') is a distance of inputs (for metric privacy), LP a linear
program, and an alphabet is a set of outputs.

Inputs are dithered to n_in equally spaced points of [-1, 1]: x between two points goes to one of
them at random, such that the mean is x. A row-stochastic matrix P (n_in, m) then draws one of the
outputs a_1..a_m. Dithering mixes neighbouring rows, so the whole mechanism is a quantizer whose law
is continuous, and affine between the points.

    minimise    (1/n_in) Σ_x Σ_i P(x, i) (a_i - x)²   over P and a
    subject to  Σ_i P(x, i) a_i = x,   P(x, i) <= e^ε P(x', i)       (metric: e^{ε d(x, x')})

For fixed a it is an LP. Over a it is not convex, and the best alphabet need not be symmetric. The
search starts from several alphabets, symmetric and asymmetric, with exact slopes from the LP's
duals. The lower bound of a search (`compute_alphabet_bound`) holds for every alphabet of every
size, or of size 2 if there are two outputs. So it also says by how much more outputs could lower
the error. For a given alphabet, the lower bound is the bound of its LP.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from workbench.errors import Infeasible, NotCertified
from workbench.exact.numbers import Real, read_positive
from workbench.families.quantizer.certify import repair_quantizer
from workbench.families.quantizer.laws import (
    LawProblem,
    LawQuestion,
    QuantizerAnswer,
    list_knots,
    make_exact_problem,
    make_grid_problem,
    make_no_answer_error,
)
from workbench.families.quantizer.limit import compute_alphabet_bound
from workbench.families.quantizer.outputs import (
    draw_asymmetric_outputs,
    make_start_alphabets,
    merge_close_outputs,
    mirror_outputs,
    orient_outputs,
    search_best_outputs,
    widen_outermost_outputs,
)
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.models.quantizer.program import smallest_reach
from workbench.solvers.arrays import Vector
from workbench.solvers.solution import Termination

# An asymmetric alphabet replaces the symmetric one if it lowers the error by more than this share.
_MIN_ASYMMETRIC_GAIN = 1e-6
_MIN_REACH_FACTOR = 1.02  # Asymmetric starts reach at least this multiple of the least reach.
_MAX_FACTOR_CHANGE = 0.5  # Outputs of a random start are multiplied by 1 plus or minus up to this.
_MAX_SHIFT = 0.35  # They are then moved by at most this.
_DEFAULT_REACH_FACTOR = 2  # Without a reach, random starts reach this multiple of their least one.


def solve_mvu(
    question: LawQuestion,
    outputs: int | Sequence[Fraction],
    *,
    inputs: int | None = None,
    reach: float = math.inf,
    starts: int = 5,
) -> QuantizerAnswer:
    """Find the MVU mechanism with a given alphabet, or with a number of optimised outputs.

    Args:
        question: the question of the law. The loss "squared" is MVU's; the density is not used. The
            metric "absolute" is p(x) <= e^{ε|x-x'|} p(x') for all real inputs, "squared" is
            e^{ε|x-x'|²} between the points to which inputs are dithered.
        outputs: the number m >= 2 of outputs to optimise, or the outputs a_1 < ... < a_m.
        inputs: n_in >= 2, the number of points to which inputs are dithered. None: m.
        reach: the largest output allowed in size if the alphabet is optimised. Default: 40 times
            the least feasible reach.
        starts: the number of starts of the search for an alphabet.

    Returns:
        The dithered quantizer. Its objective is the mean error over the grid. Its bound is a lower
        bound on this error: for the given alphabet, or for every alphabet if outputs are optimised.
        It is None if outputs are optimised for a metric.

    Raises:
        Infeasible: no private unbiased matrix exists.
        NotProven: a limit stopped the solver.
    """
    epsilon = question.float_epsilon
    m = outputs if isinstance(outputs, int) else len(outputs)
    knots = list_knots((), inputs or m)
    points = np.array(knots, dtype=float)
    bins: Sequence[Any]
    start_values: tuple[float, ...] = ()
    if isinstance(outputs, int):
        bins, start_values = _search_alphabet(question, points, m, starts, reach)
    else:
        bins = outputs
    alphabet = np.array(bins, dtype=float)
    problem = make_grid_problem(
        points,
        alphabet.size,
        question.loss,
        symmetric=np.array_equal(alphabet, -alphabet[::-1]),
        metric=question.metric,
        context=question,
    )
    solution = problem.solve(epsilon, alphabet, start="cold")
    problem.close()
    if solution.termination is Termination.INFEASIBLE:
        raise Infeasible(
            f"No unbiased matrix with these outputs is private at epsilon = {epsilon:g}."
        )
    answer = problem.read_solution(solution, alphabet)
    if answer is None:
        raise make_no_answer_error(solution)
    bound = answer.solution.bound
    if isinstance(outputs, int):
        bound = None
        if question.metric is None:
            bound = compute_alphabet_bound(points, question, reach, m)
    quantizer = Quantizer.from_ends("MVU", bins, knots, answer.laws)
    return QuantizerAnswer(answer.value, bound, quantizer, answer.solution, start_values)


def _search_alphabet(
    question: LawQuestion, points: Vector, m: int, starts: int, reach: float
) -> tuple[list[float], tuple[float, ...]]:
    """Search for the best outputs: symmetric ones, and without a metric also asymmetric ones.

    Args:
        question: loss, metric and ε of the law, with the solver.
        points: the points to which inputs are dithered (n_in,).
        m: the number of outputs.
        starts: the number of spread alphabets from which the search starts.
        reach: the largest output allowed in size; inf for the default.

    Returns:
        The outputs in increasing order (fewer than m if some were merged), and the value that every
        start reached.

    Raises:
        Infeasible: no start led to a private unbiased matrix.
    """
    epsilon = question.float_epsilon
    problem = make_grid_problem(points, m, question.loss, metric=question.metric, context=question)
    best = search_best_outputs(
        problem,
        epsilon,
        make_start_alphabets(m, epsilon, inputs=points.size, starts=starts, reach=reach),
        limit=reach,
        progress=question.progress,
    )
    if best is None:
        raise Infeasible(f"No unbiased private alphabet was found at epsilon = {epsilon:g}.")
    outputs = best.outputs
    start_values = best.start_values
    if question.metric is None:
        asymmetric_problem = LawProblem(
            points, m, problem.compute_losses, symmetric=False, context=question
        )
        asymmetric_starts = _make_asymmetric_starts(outputs, epsilon, 2 * starts, reach)
        asymmetric_best = search_best_outputs(
            asymmetric_problem, epsilon, asymmetric_starts, symmetric=False, limit=reach
        )
        limit = best.value * (1 - _MIN_ASYMMETRIC_GAIN)
        if asymmetric_best is not None and asymmetric_best.value < limit:
            # The two are swapped, because the asymmetric one is closed below.
            problem, asymmetric_problem = asymmetric_problem, problem
            outputs = orient_outputs(asymmetric_best.outputs)
            start_values += asymmetric_best.start_values
        asymmetric_problem.close()
    solution = problem.solve(epsilon, outputs, start="cold")
    problem.close()
    answer = problem.read_solution(solution, outputs)
    if answer is None:
        raise make_no_answer_error(solution)
    outputs, _ = merge_close_outputs(outputs, answer.laws)
    return widen_outermost_outputs(outputs, problem, epsilon).tolist(), start_values


def _make_asymmetric_starts(
    outputs: Vector, epsilon: float, count: int, reach: float
) -> list[Vector]:
    """Make the starts of a search for asymmetric alphabets, (m,) each.

    These are the given outputs, `count` random alphabets near them, and `count` other random ones.
    """
    m = outputs.size
    rng = np.random.default_rng(0)
    min_reach = _MIN_REACH_FACTOR * smallest_reach(epsilon)
    starts = [outputs]
    for _ in range(count):
        factors = 1 + rng.uniform(-_MAX_FACTOR_CHANGE, _MAX_FACTOR_CHANGE, m)
        start = np.sort(outputs * factors + rng.uniform(-_MAX_SHIFT, _MAX_SHIFT, m))
        first = min(start[0], -min_reach)
        last = max(start[-1], min_reach)
        starts.append(np.concatenate([[first], start[1:-1], [last]]))
    max_reach = max(min_reach, reach)
    if math.isinf(reach):
        max_reach = _DEFAULT_REACH_FACTOR * min_reach
    reaches = (min_reach, max_reach)
    starts += [draw_asymmetric_outputs(rng, m, reaches, min_reach) for _ in range(count)]
    return starts


def compute_mvu_curve(
    epsilons: Sequence[Real], *, bits: int = 5, iterations: int = 20
) -> list[tuple[float, float, Quantizer]]:
    """Find MVU with 2^bits outputs and as many dithering points at several ε.

    The mean squared error (MSE) that is minimised and returned is the error of the whole mechanism,
    dithering included, for uniform inputs in [-1, 1]. The privacy is ε·d with d = |x - x'| for all
    real inputs, as in the comparison of the paper on the dyadic quantized Laplace mechanism
    (`workbench.mechanisms.dyadic_laplace`). The search at one ε starts from the outputs at the next
    larger ε. Every quantizer is exactly unbiased and exactly private. The outputs are a local
    optimum, so a smaller error may be possible.

    Args:
        epsilons: the values of ε > 0 per unit of |x - x'|, in any order.
        bits: the number of bits of an output, at least 1.
        iterations: the largest number of iterations of one descent.

    Returns:
        (ε, exact MSE, quantizer) in increasing order of ε.

    Raises:
        NotCertified: no law was found at some ε.
    """
    size = 2**bits
    half_size = size // 2
    knots = np.linspace(-1.0, 1.0, size)
    rows: list[tuple[float, float, Quantizer]] = []
    # The positive outputs at the previous ε, in units of 1 + 1/ε.
    scaled_half = np.arange(0.5, half_size) / half_size
    for epsilon in sorted((read_positive(e, "epsilon") for e in epsilons), reverse=True):
        float_epsilon = float(epsilon)
        law = LawQuestion(epsilon, loss="squared", metric="absolute")
        problem = make_exact_problem(knots, size, law, symmetric=True)
        # The first start is wider, because it is no optimum of a neighbouring ε.
        scale = 1 + (1 if rows else 2) / float_epsilon
        start = mirror_outputs(scale * scaled_half, size)
        best = search_best_outputs(
            problem, float_epsilon, starts=[start], rounds=1, iterations=iterations
        )
        if best is None:
            raise NotCertified(f"No law was found at epsilon = {float_epsilon:g}.")
        scaled_half = best.outputs[half_size:] / (1 + 1 / float_epsilon)
        outputs = widen_outermost_outputs(best.outputs, problem, float_epsilon)
        answer = problem.find_optimum(float_epsilon, outputs, start="cold")
        problem.close()
        if answer is None:
            raise NotCertified(
                f"No law on the outputs found was solved for at epsilon = {float_epsilon:g}."
            )
        outputs, laws = merge_close_outputs(outputs, answer.laws)
        law_quantizer = Quantizer.from_ends("MVU", outputs.tolist(), knots.tolist(), laws)
        quantizer, _ = repair_quantizer(law_quantizer, epsilon, "absolute")
        rows.append((float_epsilon, quantizer.mse(), quantizer))
    return rows[::-1]
