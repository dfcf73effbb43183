"""Single distance (SD): 𝓜 = {μ}, or {μ, -μ}, under (ε, δ)-PDP, for every δ and every ε > 0.

The multiples of μ form a cycle of N_μ elements. Follow it from 0 until the first broken constraint, at hop h: then
f(hμ) >= a^h f(0) and f(hμ) <= δ, while the hops 0..h alone weigh T_h f(0) <= 1 with T_h = 1 + a + ... + a^h. So
    f(0) <= max{ 1/T_{N_μ - 1}, max over h of min(1/T_h, δ e^{hε}) },
and the cut after hop h attains each term (`cuts`): Lemma 3, Theorem 2 and Corollary 1 of Kadam et al. 2024, Remark 3
read as n -> N_μ - 1 (printed n -> N_μ). With {μ, -μ} the cycle is followed both ways; the nearer break, at hop h,
gives T = 1 + 2(a + ... + a^h), and no break before the two ways meet gives the hop law.

| paper             | here                                                        |
|-------------------|-------------------------------------------------------------|
| μ̂                 | `shift`                                                     |
| N_μ               | `order`, at least 2; the paper's n is `order - 1`           |
| k, section        | k = order - 1 - h for the cut after hop h                   |
| δ̲_k, δ̄_k          | `breakpoints(order, ε)`                                     |
| ε_k^ρ             | `level_curve_breakpoints(order, error_rate)`                |
| δ^ε               | `level_curve(order, ε, error_rate)`                         |
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from models.oracles.closed_form import (
    ClosedForm,
    OutsideDomain,
    Shift,
    check_count,
    check_delta,
    check_epsilon,
    check_error_rate,
    check_shift,
    check_sizes,
    geometric_sum,
)
from models.oracles.cuts import best_cut, cut_pmf, least_delta
from models.oracles.hops import SMALL, multiples
from models.oracles.hops import order as shift_order
from models.oracles.question import Question, opposite
from models.requirements import MASS_ABOVE_RATIO
from solvers.arrays import Integers, Vector


class _Cycle(NamedTuple):
    """The multiples of a shift and their cuts after hop 0, 1, ...: what an ε and the order decide, whatever δ."""

    hops: Integers  # from 0 to every multiple
    weights: Vector  # a^hops
    elsewhere: float  # their sum without 0
    totals: Vector  # T and S of every cut (`cuts`)
    losses: Vector


def _cycle(length: int, epsilon: float, ways: int) -> _Cycle:
    hops = np.arange(length)
    if ways == 2:
        hops = np.minimum(hops, length - hops)
    heads = np.arange((length - 2) // ways + 1)  # hops with a hole after them
    weights = np.exp(-epsilon * hops)
    totals = 1.0 + ways * geometric_sum(epsilon, heads)
    return _Cycle(hops, weights, float(weights[1:].sum()), totals, np.exp(-epsilon * heads))


_remembered = lru_cache(maxsize=64)(_cycle)  # δ moves more often than ε, and different shifts have one order


def _cut_cycle(
    sizes: Sequence[int], shift: Sequence[int], epsilon: float, delta: float, ways: int
) -> tuple[float, Vector]:
    """Error rate and PMF of the best cut of the cycle of μ, followed one way or both ways."""
    shape = check_sizes(sizes)
    step = check_shift(shape, shift)
    length = shift_order(shape, step)
    if length < 1 + ways:
        wanted = "not be 0 modulo the sizes" if ways == 1 else "differ from its opposite"
        raise OutsideDomain(f"shift must {wanted}. Got {shift!r}.")
    cycle = (_remembered if length <= SMALL else _cycle)(length, check_epsilon(epsilon), ways)
    cut, _ = best_cut(cycle.totals, cycle.losses, 1.0 + cycle.elsewhere, check_delta(delta))
    if cut is None:
        total = 1.0 + cycle.elsewhere
        error, masses = cycle.elsewhere / total, cycle.weights / total
    else:
        error, masses = cut_pmf(cycle.weights, cycle.hops > cut, float(cycle.losses[cut]), delta)
    pmf = np.zeros(math.prod(shape))
    pmf[multiples(shape, step)] = masses
    return error, pmf


def single_distance_law(
    sizes: Sequence[int], shift: Sequence[int], epsilon: float, delta: float, *, both_ways: bool = False
) -> ClosedForm:
    """Lemma 3 (δ = 0) and Theorem 2 (δ > 0): optimal error rate and PMF for 𝓜 = {shift}; both_ways: for
    𝓜 = {shift, -shift}, shift != -shift. Raises OutsideDomain."""
    error, pmf = _cut_cycle(sizes, shift, epsilon, delta, ways=2 if both_ways else 1)
    if both_ways:
        return ClosedForm(
            "symmetric single distance",
            error,
            pmf,
            "optimum",
            "One shift and its opposite, every ε and δ: the nearer broken constraint of the two ways round the cycle "
            "bounds f(0), and cutting both ways there attains it.",
        )
    return ClosedForm(
        "Theorem 2",
        error,
        pmf,
        "optimum",
        "One directed shift, every ε and δ: the first broken constraint on the cycle of the shift bounds f(0), "
        "and cutting there attains it.",
    )


def breakpoints(order: int, epsilon: float) -> tuple[Vector, Vector]:
    """(19a)-(19c): δ̲_k and δ̄_k for k = 0..order-1; the curve is flat on [δ̲_k, δ̄_k], linear from δ̄_{k-1} to δ̲_k."""
    heads = np.arange(check_count("order", order, 2) - 1, -1, -1)
    totals = 1.0 + geometric_sum(check_epsilon(epsilon), heads)
    lower = np.exp(-epsilon * heads) / totals
    upper = np.exp(-epsilon * (heads - 1)) / totals
    lower[0], upper[-1] = 0.0, 1.0
    return lower, upper


def level_curve(order: int, epsilon: float, error_rate: float) -> float:
    """Corollary 1, (24): the least δ at which the optimal error rate is `error_rate` or less; 0 from ε_0 on."""
    heads = np.arange(check_count("order", order, 2))
    totals = 1.0 + geometric_sum(check_epsilon(epsilon), heads)
    losses = np.exp(-epsilon * heads)
    return least_delta(totals[:-1], losses[:-1], float(totals[-1]), check_error_rate(error_rate))


def level_curve_breakpoints(order: int, error_rate: float) -> Vector:
    """(22), (23), (25): ε_k for k = 0..order-1, where δ(ε) jumps; decreasing in k.

    (24) holds on ε_k <= ε < ε_{k-1}. The entry is 0 when section k reaches the error rate at every ε > 0.
    """
    from scipy.optimize import brentq

    mass = 1.0 - check_error_rate(error_rate)
    points = np.zeros(check_count("order", order, 2))
    for k in range(order):
        hops = order - 1 - k

        def excess(epsilon: float, hops: int = hops) -> float:
            return mass * (1.0 + float(geometric_sum(epsilon, hops))) - 1.0

        if mass * (hops + 1) > 1.0:
            if mass == 1.0:
                points[k] = math.inf
                continue
            # T_h < 1/(1 - a) = 1/mass at ε = -ln(error_rate), so the root lies below.
            points[k] = brentq(excess, 1e-300, -math.log(error_rate) + 1e-9, xtol=1e-300, rtol=1e-15, maxiter=500)
    return points


def statements(question: Question) -> Iterator[ClosedForm]:
    """Solve PDP with one shift or one pair ±μ; bound any other 𝓜 by its hardest single shift or pair."""
    if question.requires != MASS_ABOVE_RATIO:
        return
    budgets, sizes = question.budgets, question.sizes
    best: ClosedForm | None = None
    mirrored: set[Shift] = set()
    for shift, epsilon in budgets.items():
        if shift in mirrored:
            continue  # its pair has been asked
        mirror = opposite(sizes, shift)
        paired = mirror != shift and budgets.get(mirror) == epsilon
        if paired:
            mirrored.add(mirror)
        statement = single_distance_law(sizes, shift, epsilon, question.delta, both_ways=paired)
        if len(budgets) == 1 + paired:
            yield statement
            return
        if best is None or statement.value > best.value:
            best = statement
    if best is not None:
        yield replace(
            best,
            name=f"{best.name} of one shift",
            pmf=None,
            kind="lower bound",
            proof="Any shifts: dropping all but one shift, or one pair ±μ, can only lower the optimal error rate.",
        )
