"""Single distance (SD): 𝓜 = {μ}, or {μ, -μ}, under (ε, δ)-PDP, for every δ and every ε > 0.

The multiples of μ form a cycle of N_μ elements. Follow it from 0 until the first broken constraint, at hop h: then
f(hμ) >= a^h f(0) and f(hμ) <= δ, while the hops 0..h alone weigh T_h f(0) <= 1 with T_h = 1 + a + ... + a^h. So
    f(0) <= max{ 1/T_{N_μ - 1}, max over h of min(1/T_h, δ e^{hε}) },
and the level cut after hop h of the cycle attains each term (`cuts`): Lemma 3, Theorem 2 and Corollary 1 of Kadam et
al. 2024, Remark 3 read as n -> N_μ - 1 (printed n -> N_μ). With {μ, -μ} the cycle is followed both ways; the nearer
break, at hop h, gives T = 1 + 2(a + ... + a^h), and no break before the two ways meet gives the hop law.

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
from workbench.models.oracles.hops import shift_multiples
from workbench.models.oracles.hops import shift_order as shift_order
from workbench.models.oracles.question import ClosedForm, Question, Shift, negate_shift
from workbench.solvers.arrays import Ints

_ONE_WAY = (
    "One directed shift, every ε and δ: the first broken constraint on the cycle of the shift bounds f(0), and cutting "
    "there attains it."
)
_BOTH_WAYS = (
    "One shift and its opposite, every ε and δ: the nearer broken constraint of the two ways round the cycle bounds "
    "f(0), and cutting both ways there attains it."
)


def _steps(order: int, both_ways: bool) -> tuple[Shift, ...]:
    """The relation on the cycle Z_order."""
    return ((1,), (order - 1,)) if both_ways else ((1,),)


def single_distance_law(
    sizes: Ints, shift: Shift, epsilon: float, delta: float, *, both_ways: bool = False
) -> ClosedForm:
    """Lemma 3 (δ = 0) and Theorem 2 (δ > 0): optimal error rate and PMF for 𝓜 = {shift}; both_ways: for
    𝓜 = {shift, -shift}, shift != -shift."""
    length = shift_order(sizes, shift)
    error, masses = best_level_cut((length,), _steps(length, both_ways), epsilon, delta)
    pmf = np.zeros(math.prod(sizes))
    pmf[shift_multiples(sizes, shift)] = masses
    name, proof = (
        ("symmetric single distance", _BOTH_WAYS) if both_ways else ("Theorem 2", _ONE_WAY)
    )
    return ClosedForm(name, error, pmf, "optimum", proof)


def level_curve(order: int, epsilon: float, error_rate: float, *, both_ways: bool = False) -> float:
    """Corollary 1, (24): the least δ at which the optimal error rate is `error_rate` or less; 0 from ε_0 on."""
    cuts = level_cuts((order,), _steps(order, both_ways), epsilon)
    return least_delta(cuts.totals, cuts.losses, cuts.total, error_rate)


def state_single_distance(question: Question) -> Iterator[ClosedForm]:
    """Solve PDP with one shift or one pair ±μ; bound any other 𝓜 by its hardest single shift or pair."""
    if question.requires != MASS_ABOVE_RATIO:
        return
    budgets, sizes = question.unit_budgets_text, question.sizes
    hardest = None
    mirrored = set()
    for shift, epsilon in budgets.items():
        if shift in mirrored:
            continue  # its pair has been asked
        mirror = negate_shift(sizes, shift)
        paired = mirror != shift and budgets.get(mirror) == epsilon
        if paired:
            mirrored.add(mirror)
        law = single_distance_law(sizes, shift, epsilon, question.delta, both_ways=paired)
        if len(budgets) == 1 + paired:
            yield law
            return
        if hardest is None or law.value > hardest.value:
            hardest = law
    if hardest is not None:
        yield replace(
            hardest,
            name=f"{hardest.name} of one shift",
            pmf=None,
            kind="lower bound",
            proof="Any shifts: dropping all but one shift, or one pair ±μ, can only lower the optimal error rate.",
        )
