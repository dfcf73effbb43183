"""Single distance (SD): 𝓜 = {μ}, or {μ, -μ}, under (ε, δ)-PDP, for every δ and every ε > 0.

The multiples of μ form a cycle of N_μ elements. Follow it from 0 until the first broken constraint,
at hop h: then f(hμ) >= a^h f(0) and f(hμ) <= δ, while the hops 0..h alone weigh T_h f(0) <= 1 with
T_h = 1 + a + ... + a^h. So
    f(0) <= max{ 1/T_{N_μ - 1}, max over h of min(1/T_h, δ e^{hε}) },
and the level cut after hop h of the cycle attains each term (`cuts`): Lemma 3, Theorem 2 and
Corollary 1 of Kadam et al. 2024, Remark 3 read as n -> N_μ - 1 (printed n -> N_μ). With {μ, -μ} the
cycle is followed both ways; the nearer break, at hop h, gives T = 1 + 2(a + ... + a^h), and no
break before the two ways meet gives the hop law.

| paper             | here                                                        |
|-------------------|-------------------------------------------------------------|
| μ̂                 | `shift`                                                     |
| N_μ               | `order`, at least 2; the paper's n is `order - 1`           |
| k, section        | k = order - 1 - h for the cut after hop h                   |
| δ̲_k, δ̄_k          | `rational_forms.theorem2(order)`                            |
| δ^ε               | `level_curve(order, ε, error_rate)`                         |
"""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from workbench.models.convex.requirements import MASS_ABOVE_RATIO
from workbench.models.oracles.cuts import best_level_cut, least_delta, level_cuts
from workbench.models.oracles.hops import shift_multiples, shift_order
from workbench.models.oracles.question import ClosedForm, Question, Shift, negate_shift
from workbench.solvers.arrays import Ints

_ONE_WAY_PROOF = (
    "One directed shift, every ε and δ: the first broken constraint on the cycle of the shift "
    "bounds f(0), and cutting there attains it."
)
_BOTH_WAYS_PROOF = (
    "One shift and its opposite, every ε and δ: the nearer broken constraint of the two ways round "
    "the cycle bounds f(0), and cutting both ways there attains it."
)


def _cycle_shifts(order: int, both_ways: bool) -> tuple[Shift, ...]:
    """Return the relation on the cycle Z_order."""
    return ((1,), (order - 1,)) if both_ways else ((1,),)


def single_distance_law(
    sizes: Ints,
    shift: Shift,
    epsilon: float,
    delta: float,
    *,
    both_ways: bool = False,
) -> ClosedForm:
    """Compute the optimal error rate and PMF: Lemma 3 (δ = 0) and Theorem 2 (δ > 0).

    Args:
        sizes: orders of the cyclic factors.
        shift: μ.
        epsilon: ε.
        delta: δ.
        both_ways: whether 𝓜 = {shift, -shift}, shift != -shift, else 𝓜 = {shift}.
    """
    length = shift_order(sizes, shift)
    cycle_shifts = _cycle_shifts(length, both_ways)
    error, masses = best_level_cut((length,), cycle_shifts, epsilon, delta)
    pmf = np.zeros(math.prod(sizes))
    pmf[shift_multiples(sizes, shift)] = masses
    if both_ways:
        return ClosedForm("symmetric single distance", error, pmf, "optimum", _BOTH_WAYS_PROOF)
    return ClosedForm("Theorem 2", error, pmf, "optimum", _ONE_WAY_PROOF)


def level_curve(
    order: int,
    epsilon: float,
    error_rate: float,
    *,
    both_ways: bool = False,
) -> float:
    """Compute the smallest δ at which the optimal error rate is at most `error_rate`.

    This is Corollary 1, (24); it is 0 from ε_0 on.

    Args:
        order: N_μ.
        epsilon: ε.
        error_rate: 1 - f(0).
        both_ways: whether 𝓜 = {μ, -μ}, else 𝓜 = {μ}.
    """
    cuts = level_cuts((order,), _cycle_shifts(order, both_ways), epsilon)
    return least_delta(cuts.totals, cuts.losses, cuts.total, error_rate)


def state_single_distance(question: Question) -> Iterator[ClosedForm]:
    """Yield the optimum of PDP with one shift or one pair ±μ, else a lower bound.

    The lower bound belongs to the hardest single shift or pair of 𝓜.

    Args:
        question: any question.
    """
    if question.requires != MASS_ABOVE_RATIO:
        return
    budgets = question.budgets
    sizes = question.sizes
    hardest_law = None
    mirrored_shifts = set()
    for shift, epsilon in budgets.items():
        if shift in mirrored_shifts:
            # The pair of this shift was computed with its mirror image.
            continue
        mirror = negate_shift(sizes, shift)
        is_pair = mirror != shift and budgets.get(mirror) == epsilon
        if is_pair:
            mirrored_shifts.add(mirror)
        law = single_distance_law(sizes, shift, epsilon, question.delta, both_ways=is_pair)
        if len(budgets) == 1 + is_pair:
            yield law
            return
        if hardest_law is None or law.value > hardest_law.value:
            hardest_law = law
    if hardest_law is not None:
        proof = (
            "Any shifts: dropping all but one shift, or one pair ±μ, can only lower the optimal "
            "error rate."
        )
        name = f"{hardest_law.name} of one shift"
        yield replace(hardest_law, name=name, pmf=None, kind="lower bound", proof=proof)
