"""The exact quantizer LP: the best unbiased ε-private law for given bins and knots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from solvers.solution import Solution, Termination
from workbench.errors import NotProven
from workbench.families.quantizer.laws import LawQuestion, exact_problem
from workbench.mechanisms.piecewise_affine import Quantizer


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
    if isinstance(extra, int):
        extra = [-c + 2 * c * Fraction(k, extra - 1) for k in range(extra)] if extra >= 2 else []
    return sorted({-c, c, *(b for b in bins if -c < b < c), *extra})


def exact_quantizer(
    bins: tuple[Fraction, ...], question: LawQuestion, *, knots: int | Sequence[Fraction] = 0
) -> QuantizerAnswer | None:
    """The LP at these bins; knots: how many equally spaced extra ones, or these. None when the solver says infeasible.

    Raises NotProven when a limit stopped the solver.
    """
    cuts = knots_of(bins, question.c, knots)
    outputs = np.array([float(b) for b in bins])
    even = question.density.symmetric and all(a == -b for a, b in zip(bins, reversed(bins), strict=True))
    problem = exact_problem(np.array([float(k) for k in cuts]), len(bins), question, symmetric=even)
    solution = problem.solve(float(question.epsilon), outputs, start="cold")
    problem.close()
    if solution.termination is Termination.INFEASIBLE:
        return None
    answer = problem.read(solution, outputs)
    if answer is None:
        reason = f"{question.solver} stopped without an answer: {solution.raw_status}."
        raise NotProven(reason, bound=solution.bound, interrupted=solution.termination is Termination.INTERRUPTED)
    # a mass of 1e-11 at most is a solver's zero: an output that is nowhere used may not be told from one that leaks
    laws = answer.laws * (answer.laws.max(axis=0) > 1e-11)
    mechanism = Quantizer.from_ends("exact quantizer", bins, cuts, laws)
    return QuantizerAnswer(answer.value, solution.bound, mechanism, solution)
