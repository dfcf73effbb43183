"""Compute the smallest error rate of noise modulo a group if neighbours differ by a single shift.

`single_distance_law` computes the smallest error rate of additive noise under (ε, δ)-PDP, and the
noise that attains it, for any δ and any ε > 0. Neighbouring answers differ by one shift μ, or by μ
or -μ. The source is "single distance" in Kadam et al. 2024: Lemma 3, Theorem 2 and Corollary 1.

Notation. 𝓜 is the set of shifts, {μ} or {μ, -μ}. f is the PMF of the noise, so that the error rate
is 1 - f(0). a = e^-ε. A constraint f(η) <= e^ε f(η + μ) is broken if it does not hold; PDP allows
a mass of at most δ on the elements η of broken constraints. A hop is one step from η to η + μ. The
hop law (`hops`) is the PMF f(η) = f(0) a^d, where d is the smallest number of hops from 0 to η. A
level cut (`cuts`) falls in the same way up to a last hop; beyond it all masses are smaller by a
further factor θ in [0, 1].

Proof. The multiples of μ form a cycle of N_μ elements. Follow it from 0 until the first broken
constraint, at hop h: then f(hμ) >= a^h f(0) and f(hμ) <= δ, while the hops 0..h alone weigh
T_h f(0) <= 1 with T_h = 1 + a + ... + a^h. So

    f(0) <= max{ 1/T_{N_μ - 1}, max over h of min(1/T_h, δ e^{hε}) },

and the level cut after hop h of the cycle attains each term. Remark 3 of the paper is read as
n -> N_μ - 1; it prints n -> N_μ. If 𝓜 = {μ, -μ}, the cycle is followed both ways. The nearer break,
at hop h, gives T = 1 + 2(a + ... + a^h). If nothing breaks before the two ways meet, the bound is
that of the hop law.

| paper             | here                                                        |
|-------------------|-------------------------------------------------------------|
| μ̂ (μ above)       | `shift`                                                     |
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
    """Return the shifts on the cycle Z_order: 1, or 1 and -1."""
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
        sizes: orders of the cyclic factors of the group.
        shift: the shift μ, one integer per cyclic factor.
        epsilon: budget ε > 0.
        delta: budget δ in [0, 1].
        both_ways: whether 𝓜 = {shift, -shift} with shift != -shift; otherwise 𝓜 = {shift}.

    Returns:
        The proven optimum. Its PMF is zero outside the multiples of the shift.
    """
    order = shift_order(sizes, shift)
    cycle_shifts = _cycle_shifts(order, both_ways)
    error, masses = best_level_cut((order,), cycle_shifts, epsilon, delta)
    pmf = np.zeros(math.prod(sizes))
    pmf[shift_multiples(sizes, shift)] = masses
    if both_ways:
        return ClosedForm(
            "symmetric single distance", error, pmf, kind="optimum", proof=_BOTH_WAYS_PROOF
        )
    return ClosedForm("Theorem 2", error, pmf, kind="optimum", proof=_ONE_WAY_PROOF)


def level_curve(
    order: int,
    epsilon: float,
    error_rate: float,
    *,
    both_ways: bool = False,
) -> float:
    """Compute the smallest δ at which the optimal error rate is at most `error_rate`.

    This is (24), Corollary 1 of Kadam et al. 2024. It is 0 if ε is so large that δ = 0 suffices.

    Args:
        order: number N_μ of multiples of the shift, at least 2.
        epsilon: budget ε > 0.
        error_rate: error rate 1 - f(0) in [0, 1].
        both_ways: whether 𝓜 = {μ, -μ}; otherwise 𝓜 = {μ}.
    """
    cuts = level_cuts((order,), _cycle_shifts(order, both_ways), epsilon)
    return least_delta(cuts.totals, cuts.broken_weights, cuts.total, error_rate)


def state_single_distance(question: Question) -> Iterator[ClosedForm]:
    """Yield the proven optimum for one shift or one pair ±μ, and a lower bound for more shifts.

    The lower bound is the optimum of the single shift, or pair ±μ, of 𝓜 with the largest error
    rate. Questions of other notions than PDP get no statement.

    Args:
        question: question about the error rate, of any notion and with any shifts.
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
        is_only_shift = len(budgets) == 1 + is_pair
        if is_only_shift:
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
