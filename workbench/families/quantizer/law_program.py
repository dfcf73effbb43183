"""The exact quantizer LP: the best unbiased ε-private law for given bins and knots."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from solvers.solution import Solution, Termination
from workbench.errors import NotProven
from workbench.families.quantizer.law_question import LawQuestion
from workbench.families.quantizer.laws import exact_problem
from workbench.mechanisms.density import uniform
from workbench.mechanisms.piecewise_affine import Quantizer

__all__ = ["ExactAnswer", "exact_quantizer", "knots_of", "least_metric_epsilon"]

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class ExactAnswer:
    """objective, bound: of the LP; quantizer: its laws, read exactly; starts: of the bin search, if there was one."""

    objective: float
    bound: float | None
    quantizer: Quantizer
    solution: Solution
    starts: tuple[float, ...] = ()


def knots_of(bins: tuple[Fraction, ...], c: Fraction, extra: int | Sequence[Fraction]) -> list[Fraction]:
    """±c, the bins inside (-c, c), and `extra` points equally spaced from -c to c, or these, each once."""
    knots = {-c, c, *(b for b in bins if -c < b < c)}
    if not isinstance(extra, int):
        knots |= set(extra)
    elif extra >= 2:
        knots |= {-c + 2 * c * Fraction(k, extra - 1) for k in range(extra)}
    return sorted(knots)


def exact_quantizer(
    bins: tuple[Fraction, ...], question: LawQuestion, *, knots: int | Sequence[Fraction] = 0
) -> ExactAnswer | None:
    """The LP at these bins; knots: how many equally spaced extra ones, or these. None when the solver says infeasible.

    Raises NotProven when a limit stopped the solver.
    """
    density, metric = question.density, question.metric
    cuts = knots_of(bins, question.c, knots)
    outputs = np.array([float(b) for b in bins])
    even = density.symmetric and all(a == -b for a, b in zip(bins, reversed(bins), strict=True))
    problem = exact_problem(
        np.array([float(k) for k in cuts]), len(bins), density, question.cost, symmetric=even, metric=metric,
        solver=question.solver, options=question.options,
    )  # fmt: skip
    answer = problem.answer(float(question.epsilon), outputs, start="cold", slopes=False)
    if answer is None:
        solution = problem.solve(float(question.epsilon), outputs, start="cold")
        problem.close()
        if str(solution.termination) == "infeasible":
            return None
        stopped = solution.termination is Termination.INTERRUPTED
        reason = f"{question.solver} stopped without an answer: {solution.raw_status}."
        raise NotProven(reason, bound=solution.bound, interrupted=stopped)
    problem.close()
    # a mass of 1e-11 at most is a solver's zero: an output that is nowhere used may not be told from one that leaks
    laws = answer.laws * (answer.laws.max(axis=0) > 1e-11)
    ends = laws.reshape(-1, 2, len(bins)) if metric is None else np.stack([laws[:-1], laws[1:]], 1)
    mechanism = Quantizer.from_ends("exact quantizer", bins, cuts, ends)
    return ExactAnswer(answer.value, answer.solution.bound, mechanism, answer.solution)


def least_metric_epsilon(outputs: Sequence[float], knots: Sequence[float], metric: str) -> float:
    """The least ε, to 1e-4 of itself, with an unbiased metric-private law on these outputs and knots; inf beyond 2^20.

    By bisection: what is feasible at one ε is so at every larger one.
    """
    problem = exact_problem(np.array(knots), len(outputs), uniform(knots[-1]), symmetric=False, metric=metric)
    bins = np.array(outputs)

    def feasible(epsilon: float) -> bool:
        return problem.solve(epsilon, bins).x is not None

    low, high = 0.0, 1.0
    while not feasible(high):
        low, high = high, 2 * high
        if high > 2**20:
            return math.inf
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if feasible(middle) else (middle, high)
    problem.close()
    return high
