"""The exact quantizer LP: the best unbiased ε-private law for given bins and knots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from solvers.solution import Solution, Termination
from workbench.errors import NotProven
from workbench.families.quantizer.law_question import LawQuestion
from workbench.families.quantizer.laws import exact_problem
from workbench.mechanisms.piecewise_affine import Quantizer

__all__ = ["QuantizerAnswer", "exact_quantizer", "knots_of"]

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class QuantizerAnswer:
    """objective, bound: of the program; quantizer: its laws, read exactly; starts: what every start of a search over
    outputs reached, if there was one, reach: the largest output that it could choose; words: for the reader."""

    objective: float
    bound: float | None
    quantizer: Quantizer
    solution: Solution
    starts: tuple[float, ...] = ()
    reach: float | None = None
    words: tuple[str, ...] = ()


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
) -> QuantizerAnswer | None:
    """The LP at these bins; knots: how many equally spaced extra ones, or these. None when the solver says infeasible.

    Raises NotProven when a limit stopped the solver.
    """
    density, metric = question.density, question.metric
    cuts = knots_of(bins, question.c, knots)
    outputs = np.array([float(b) for b in bins])
    even = density.symmetric and all(a == -b for a, b in zip(bins, reversed(bins), strict=True))
    problem = exact_problem(
        np.array([float(k) for k in cuts]),
        len(bins),
        density,
        question.loss,
        symmetric=even,
        metric=metric,
        solver=question.solver,
        options=question.options,
    )
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
    return QuantizerAnswer(answer.value, answer.solution.bound, mechanism, answer.solution)
