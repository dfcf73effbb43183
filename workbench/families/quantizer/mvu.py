"""MVU, the minimum variance unbiased mechanism (Chaudhuri et al. 2022): an LP in P inside a search over the alphabet.

Inputs are dithered to n_in equally spaced points of [-1, 1] (x between two points goes to one of them, unbiasedly); a
row-stochastic matrix P (n_in, m) then draws one of the outputs a_1..a_m. Dithering mixes neighbouring rows, so the
whole mechanism is a quantizer whose law is affine between the points and continuous.

    minimise    (1/n_in) Σ_x Σ_i P(x, i) (a_i - x)²   over P and a
    subject to  Σ_i P(x, i) a_i = x,   P(x, i) <= e^ε P(x', i)       (metric: e^{ε d(x, x')})

For fixed a it is an LP; over a it is not convex, and the best alphabet need not be symmetric. The search starts from
several alphabets, symmetric and asymmetric, with exact slopes from the LP's duals, and keeps the best; the lower bound
then shown holds for every alphabet of every size (`alphabet_bound`; of two outputs: of that size), so it also says how
much more outputs could bring. At a given alphabet the bound is that of its LP.
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


def solve_mvu(
    question: LawQuestion,
    outputs: int | Sequence[Fraction],
    *,
    inputs: int | None = None,
    reach: float = math.inf,
    starts: int = 5,
) -> QuantizerAnswer:
    """The MVU mechanism with a given alphabet, or with so many optimised outputs.

    objective: the mean error over the grid; bound: of the LP at a given alphabet, else for every one, None where the
    relation has none; quantizer: the dithered one.

    Args:
        question: loss "squared" is MVU's; its density is not used. metric: "absolute" for p(x) <= e^{ε|x-x'|} p(x') for
            all real inputs, "squared" for e^{ε|x-x'|²} between the points that inputs are dithered to.
        outputs: m >= 2, or outputs a_1 < ... < a_m.
        inputs: n_in >= 2, the points that others are dithered to; as many as outputs by default.
        reach: the largest output allowed in size when the alphabet is optimised; 40 times the least feasible reach by
            default.
        starts: of the alphabet search.

    Raises:
        Infeasible.
    """
    epsilon, loss, metric = question.float_epsilon, question.loss, question.metric
    m = outputs if isinstance(outputs, int) else len(outputs)
    knots = list_knots((), inputs or m)
    points = np.array(knots, dtype=float)
    bins: Sequence[Any]
    if isinstance(outputs, int):
        bins, reached = _alphabet(question, points, m, starts, reach)
    else:
        bins, reached = outputs, ()
    shown = np.array(bins, dtype=float)
    even = np.array_equal(shown, -shown[::-1])
    problem = make_grid_problem(
        points, shown.size, loss, symmetric=even, metric=metric, context=question
    )
    solution = problem.solve(epsilon, shown, start="cold")
    problem.close()
    if solution.termination is Termination.INFEASIBLE:
        raise Infeasible(
            f"No unbiased matrix with these outputs is private at epsilon = {epsilon:g}."
        )
    answer = problem.read_solution(solution, shown)
    if answer is None:
        raise make_no_answer_error(solution)
    lower = answer.solution.bound
    if isinstance(outputs, int):
        lower = compute_alphabet_bound(points, question, reach, m) if metric is None else None
    return QuantizerAnswer(
        answer.value,
        lower,
        Quantizer.from_ends("MVU", bins, knots, answer.laws),
        answer.solution,
        reached,
    )


def _alphabet(
    question: LawQuestion, points: Vector, m: int, starts: int, reach: float
) -> tuple[list[float], tuple[float, ...]]:
    """The best outputs, symmetric or, without a metric, not, and what every start reached. Raises Infeasible."""
    epsilon, metric = question.float_epsilon, question.metric
    problem = make_grid_problem(points, m, question.loss, metric=metric, context=question)
    begin = make_start_alphabets(m, epsilon, points.size, starts, reach)
    best = search_best_outputs(problem, epsilon, begin, limit=reach, progress=question.progress)
    if best is None:
        raise Infeasible(f"No unbiased private alphabet was found at epsilon = {epsilon:g}.")
    there, reached = best.outputs, best.start_values
    if metric is None:
        free = LawProblem(points, m, problem.compute_losses, symmetric=False, context=question)
        begin = _perturbed(there, epsilon, 2 * starts, reach)
        general = search_best_outputs(free, epsilon, begin, symmetric=False, limit=reach)
        if general is not None and general.value < best.value * (1 - 1e-6):
            problem, free = free, problem
            there, reached = orient_outputs(general.outputs), reached + general.start_values
        free.close()
    solution = problem.solve(epsilon, there, start="cold")
    problem.close()
    answer = problem.read_solution(solution, there)
    if answer is None:
        raise make_no_answer_error(solution)
    return widen_outermost_outputs(
        merge_close_outputs(there, answer.laws)[0], problem, epsilon
    ).tolist(), reached


def _perturbed(outputs: Vector, epsilon: float, count: int, reach: float) -> list[Vector]:
    """Outputs, and starts that are not symmetric: so many near them, so many anywhere."""
    m, rng, least = outputs.size, np.random.default_rng(0), 1.02 * smallest_reach(epsilon)
    begin = [outputs]
    for _ in range(count):
        start = np.sort(outputs * (1 + rng.uniform(-0.5, 0.5, m)) + rng.uniform(-0.35, 0.35, m))
        begin.append(
            np.concatenate([[min(start[0], -least)], start[1:-1], [max(start[-1], least)]])
        )
    reaches = least, 2 * least if math.isinf(reach) else max(least, reach)
    return begin + [draw_asymmetric_outputs(rng, m, reaches, least) for _ in range(count)]


def compute_mvu_curve(
    epsilons: Sequence[Real], *, bits: int = 5, iterations: int = 20
) -> list[tuple[float, float, Quantizer]]:
    """MVU with 2^bits outputs and as many dithering points at several ε: (ε, exact MSE for uniform x, quantizer).

    The MSE that is minimised and reported is that of the whole mechanism, dithering included, on inputs in [-1, 1]. It
    is ε·d-private with d = |x - x'| for all real inputs (what the DQL paper compares); outputs are moved from one ε to
    the next, the largest first. Every quantizer is exactly unbiased and exactly private. The outputs are a local
    optimum: less error may be possible. Raises NotCertified.
    """
    size = 2**bits
    knots = np.linspace(-1.0, 1.0, size)
    rows: list[tuple[float, float, Quantizer]] = []
    half = np.arange(0.5, size // 2) / (
        size // 2
    )  # the outputs found at the ε before, in units of 1 + 1/ε
    for epsilon in sorted((read_positive(e, "epsilon") for e in epsilons), reverse=True):
        budget = float(epsilon)
        law = LawQuestion(epsilon, loss="squared", metric="absolute")
        problem = make_exact_problem(knots, size, law, symmetric=True)
        start = mirror_outputs((1 + (1 if rows else 2) / budget) * half, size)
        best = search_best_outputs(problem, budget, [start], rounds=1, iterations=iterations)
        if best is None:
            raise NotCertified(f"No law was found at epsilon = {budget:g}.")
        half = best.outputs[size // 2 :] / (1 + 1 / budget)
        outputs = widen_outermost_outputs(best.outputs, problem, budget)
        answer = problem.find_optimum(budget, outputs, start="cold")
        problem.close()
        if answer is None:
            raise NotCertified(
                f"No law on the outputs found was solved for at epsilon = {budget:g}."
            )
        outputs, laws = merge_close_outputs(outputs, answer.laws)
        quantizer, _ = repair_quantizer(
            Quantizer.from_ends("MVU", outputs.tolist(), knots.tolist(), laws), epsilon, "absolute"
        )
        rows.append((budget, quantizer.mse(), quantizer))
    return rows[::-1]
