"""Clamped noise for the worst answer: the least noise f for the prior that makes the least loss largest.

    min_f max_q C_q(f) = max_p min_f Σ_q p_q C_q(f),      C_q(f) = Σ_η f(η) ℓ(clamp(q + η) - q)

Private laws are a convex set and C_q is linear, so the two are equal (von Neumann). The epigraph min t, t >= C_q(f), is
solved in columns (Dantzig and Wolfe 1960): mixtures of the best laws of some priors, of which the game against q is a
small linear program, whose multipliers are the next prior. Any prior's proven bound is one for the worst answer; any
mixture of private laws is private.

Losses are even, so f and the prior may be symmetric: the mean of a law and its mirror image is no worse.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from workbench.errors import NotProven
from workbench.exact.distribution import Distribution
from workbench.exact.integer_law import IntegerLaw

__all__ = ["Response", "worst_case"]

_ROUNDS = 200
_BITS = 40  # of the probabilities of a prior
_CLOSE = 1e-11  # relative, of what a solver's value is worth
_SHARES = 1 << 60


@dataclass(frozen=True)
class Response:
    """The best law for a prior, or for the worst one; bound: no noise costs less under it; excess: as of the law's
    solver; work: in words."""

    law: IntegerLaw
    bound: Fraction
    excess: float
    work: dict[str, object]


def worst_case(
    answers: int,
    loss: Callable[[int], Fraction],
    best: Callable[[tuple[Fraction, ...]], Response],
    *,
    gap: float,
    stop: float | None = None,
) -> Response:
    """A mixture of laws whose loss on the worst of `answers` answers is about the least, and a bound for every noise.

    loss: of published minus true answer, even; best: (prior) -> its response; gap: relative, where to end;
    stop: time (perf_counter) to end at. Raises NotProven.
    """
    table = np.array([float(loss(r)) for r in range(answers)])
    prior = tuple(Fraction(1, answers) for _ in range(answers))
    responses: list[Response] = []
    losses: list[NDArray[np.float64]] = []
    bound = Fraction(0)
    while True:
        response = best(prior)
        responses.append(response)
        bound = max(bound, response.bound)
        losses.append(_losses(response.law, table))
        shares, weights, value = _game(np.array(losses))
        close = value - float(bound) <= max(gap, _CLOSE) * value or len(responses) == _ROUNDS
        if close or (stop is not None and time.perf_counter() > stop):
            break
        prior = weights
    used = [(share, response) for share, response in zip(shares, responses, strict=True) if share]
    law = _mixture([share for share, _ in used], [response.law for _, response in used])
    excess = max(response.excess for _, response in used)
    return Response(law, bound, excess, {**responses[-1].work, "priors": len(responses)})


def _losses(law: IntegerLaw, table: NDArray[np.float64]) -> NDArray[np.float64]:
    """C_q of a law made symmetric, for every answer q. (answers,)"""
    n = table.size - 1
    held = law.clamped(-n, n)
    total = float(sum(held.integers))
    masses = np.array([weight / total for weight in held.integers])
    masses = (masses + masses[::-1]) / 2
    answer, published = np.indices((n + 1, n + 1))
    channel = masses[published - answer + n]
    side = np.cumsum(masses[::-1])[::-1]  # of η >= k - n
    channel[:, n] = side[2 * n - np.arange(n + 1)]
    channel[:, 0] = channel[::-1, n]
    return np.asarray((channel * table[abs(published - answer)]).sum(axis=1))


def _game(losses: NDArray[np.float64]) -> tuple[list[Fraction], tuple[Fraction, ...], float]:
    """(shares of the laws, the worst prior against all mixtures, the value). losses: (laws, answers)."""
    from scipy.optimize import linprog

    laws, answers = losses.shape
    scale = losses.max() or 1.0
    above = np.hstack([losses.T / scale, -np.ones((answers, 1))])
    result = linprog(
        np.r_[np.zeros(laws), 1.0],
        A_ub=above,
        b_ub=np.zeros(answers),
        A_eq=[[1.0] * laws + [0.0]],
        b_eq=[1.0],
        bounds=[(0, None)] * laws + [(None, None)],
        method="highs",
    )
    if result.x is None or not result.success:
        raise NotProven(f"highs ended the game against the worst answer with: {result.message}")
    shares = [Fraction(round(max(0.0, share) * _SHARES), _SHARES) for share in result.x[:-1].tolist()]
    p = np.maximum(-np.asarray(result.ineqlin.marginals, dtype=float), 0.0)
    p = (p + p[::-1]) / 2
    whole = [Fraction(round(value * (1 << _BITS))) for value in (p / p.sum()).tolist()]
    prior = tuple(value / sum(whole) for value in whole)
    return [share / sum(shares) for share in shares], prior, float(result["fun"] or 0.0) * scale


def _mixture(shares: Sequence[Fraction], laws: Sequence[IntegerLaw]) -> IntegerLaw:
    """Σ share f of laws made symmetric, with tails of one ratio and period or none."""
    period, ratio = laws[0].period, laws[0].ratio
    high = max(max(-law.first, law.last) for law in laws)
    weights = [Fraction(0)] * (2 * high + 1)
    for share, law in zip(shares, laws, strict=True):
        window = law.window(-high, high)
        part = share / law.total / 2
        weights = [w + part * (a + b) for w, a, b in zip(weights, window, reversed(window), strict=True)]
    return IntegerLaw(-high, Distribution(weights), period, ratio)
