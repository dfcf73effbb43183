"""Compute the smallest error rate of additive noise under (ε, δ)-DP, for any shifts and dimension.

`dp_law` computes the error rate in closed form, and the PMF that attains it: the hop law for δ = 0,
the hockey-stick law for δ > 0.

Notation. f is the PMF of the noise η on the group, so the error rate is 1 - f(0). μ is a shift (a
difference of neighbouring answers) with the budget ε_μ, and 𝓜 the set of shifts. N is the order of
the group, and N_μ the order of μ in it: the smallest number of shifts μ that lead back to 0. 1₀ is
the PMF with all mass at 0, and x⁺ = max(0, x).

δ = 0, the hop law. Each constraint f(η) <= e^{ε_μ} f(η + μ) says f(η + μ) >= e^{-ε_μ} f(η). Let
d(η) be the length of a shortest path from 0 to η, where a step of the shift μ has the length ε_μ.
Then f(η) >= f(0) e^{-d(η)}. Summing over η gives f(0) <= 1 / Σ e^{-d}. Conversely f = f(0) e^{-d},
zero where no path leads, satisfies every constraint because d(η + μ) <= d(η) + ε_μ. With one ε,
d = ε · (least number of shifts): the law contains Lemmas 3 and 4 and example (59) of Kadam et al.
2024.

δ > 0, the hockey-stick law: (1 - δ) times that error rate. It is attained by δ·1₀ + (1 - δ)·f₀ with
f₀ the hop law: only η = 0 can exceed e^ε times its shifted mass, and by δ at most.

Proof that no mechanism has a smaller error rate. Let T = Σ e^{-d} be the total weight of the hop
law. A word is a sequence of shifts, its length the sum of their ε_μ, and its weight e^-length. Give
every reachable η the lexicographically smallest of its shortest words. A part of consecutive shifts
of such a word is again such a word (else a better part could be put in its place), so the words
form a tree with the root 0. Write excess(e) = f(p) - e^{ε_μ} f(c) for an edge e = (p -> c) of the
shift μ. Along the path from 0 to η, f(0) e^{-d(η)} - f(η) is the sum, over its edges e = (p -> c),
of excess(e) times the weight of the word from p to η. Summed over η: T f(0) - 1 <= Σ_e excess(e)⁺
W(e), where W(e) is the total weight of the words that start at p with the edge e. Such a word
begins with μ and is a part of a word of the tree, so it is a word from the root 0 as well: W(e) <=
W(0 -> μ). For one shift the positive excesses sum to at most δ, by (ε, δ)-DP, and the W(0 -> μ) of
all shifts sum to T - 1. So T f(0) <= 1 + δ (T - 1), that is 1 - f(0) >= (1 - δ)(1 - 1/T). ∎

(ε, δ)-PDP implies (ε, δ)-DP (Theorem 1 of Kadam et al. 2024), so the same number is a lower bound
under PDP.

Shortest paths need no queue here. The group is commutative, so a shortest path may take all steps
of one shift first, then all of the next. So it is exact to treat each shift once, with
k = 0, 1, ..., N_μ - 1 repetitions. The repetitions are found by doubling: after t rounds all
k < 2^t are covered. This takes at most |𝓜| log2(N) operations on whole arrays.

| paper (Kadam et al. 2024) | here                                   |
|---------------------------|----------------------------------------|
| ρ(δ, ε)                   | `dp_law(question).value`               |
| N_μ                       | `shift_order(sizes, shift)`, (18)      |
| ε_μ                       | `budgets[shift]` (metric privacy)      |
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from workbench.models.convex.requirements import HOCKEY_STICK
from workbench.models.oracles.question import ClosedForm, Question, Shift
from workbench.solvers.arrays import Integers, Ints, Vector

Answer = TypeVar("Answer")

UNREACHABLE = -1  # The hop distance of an element to which no path leads.
# Results that depend on the shifts and ε alone are cached for groups of at most this order.
MAX_REMEMBERED_ELEMENTS = 10_000
_MAX_INT32_ELEMENTS = 2**30  # Distances of larger groups need 64 bits.

_HOP_PROOF = (
    "For any shifts and δ = 0. Let d(η) be the smallest total ε of shifts that lead from 0 to η. "
    "Their constraints give f(η) >= f(0) e^{-d(η)}, and f(η) = f(0) e^{-d(η)} is private."
)
_TREE_PROOF = (
    "For any shifts, under (ε, δ)-DP. Let f₀ be the optimal law at δ = 0. A tree of shortest paths "
    "from 0 bounds f(0) by δ + (1 - δ) f₀(0). Mass δ on 0 plus (1 - δ) f₀ attains this bound."
)


def remember_small_groups(law: Callable[..., Answer]) -> Callable[..., Answer]:
    """Decorate a function so that its last 64 results for small groups are cached.

    Requests for several δ share the shifts and ε, so results that do not depend on δ are reused.

    Args:
        law: a function whose first argument is the sizes of a group, with hashable arguments.
    """
    cached_law = lru_cache(maxsize=64)(law)

    def evaluate(sizes: Ints, *arguments: Any) -> Answer:
        """Return the cached result for a small group, and compute it for a large one."""
        if math.prod(sizes) <= MAX_REMEMBERED_ELEMENTS:
            return cached_law(sizes, *arguments)
        return law(sizes, *arguments)

    return evaluate


def shift_order(sizes: Ints, shift: Shift) -> int:
    """Return the order N_μ of a shift: how often it is repeated to come back to 0.

    For one cyclic factor it is (n + 1) / gcd(n + 1, μ), (18) of Kadam et al. 2024.

    Args:
        sizes: orders of the cyclic factors of the group.
        shift: the shift μ, one integer per cyclic factor.
    """
    orders = [size // math.gcd(step, size) for step, size in zip(shift, sizes, strict=True)]
    return math.lcm(*orders)


def shift_multiples(sizes: Ints, shift: Shift) -> Integers:
    """Return the row-major positions of 0, μ, 2μ, ..., (N_μ - 1) μ, shape (N_μ,).

    Args:
        sizes: orders of the cyclic factors of the group.
        shift: the shift μ, one integer per cyclic factor.
    """
    times = np.arange(shift_order(sizes, shift), dtype=np.int64)
    positions = np.zeros_like(times)
    for step, size in zip(shift, sizes, strict=True):
        positions = positions * size + times * step % size
    return positions


def values_after_shift(values: NDArray[Any], shift: Shift) -> NDArray[Any]:
    """Return the value at η + μ for every η, in the shape of the group.

    Args:
        values: values of the elements, in the shape of the group.
        shift: the shift μ, one integer per cyclic factor.
    """
    return np.roll(values, tuple(-step for step in shift), axis=tuple(range(values.ndim)))


def _relax(distance: NDArray[Any], shift: Shift, length: float) -> None:
    """Shorten paths by repetitions of one shift, in place.

    distance(η) becomes the minimum over k >= 0 of distance(η - k·shift) + k·length.
    """
    repetitions = 1
    order = shift_order(distance.shape, shift)
    while repetitions < order:
        reached = values_after_shift(distance, tuple(-repetitions * part for part in shift))
        reached += np.asarray(repetitions * length, dtype=reached.dtype)
        if not np.less(reached, distance).any():
            # All k < 2^t are covered and 2^t gains nothing, so no multiple of 2^t can gain either.
            return
        np.minimum(distance, reached, out=distance)
        repetitions *= 2


@remember_small_groups
def hop_distances(sizes: Ints, shifts: tuple[Shift, ...]) -> Integers:
    """Compute the smallest number of shifts from 0 to each element, row-major.

    Args:
        sizes: orders of the cyclic factors of the group.
        shifts: differences of neighbouring answers, one integer per cyclic factor.

    Returns:
        Distances, -1 where no path leads, read-only, shape (prod(sizes),).
    """
    fits_int32 = math.prod(sizes) < _MAX_INT32_ELEMENTS
    # It exceeds every distance, and its sum with a distance does not overflow.
    infinity = 2**30 if fits_int32 else 2**62
    distance = np.full(sizes, infinity, dtype=np.int32 if fits_int32 else np.int64)
    distance[(0,) * len(sizes)] = 0
    for shift in shifts:
        _relax(distance, shift, length=1)
    hops = np.where(distance < infinity, distance, UNREACHABLE).astype(np.int64).reshape(-1)
    hops.setflags(write=False)
    return hops


@remember_small_groups
def hop_weights(sizes: Ints, budgets: tuple[tuple[Shift, float], ...]) -> Vector:
    """Compute e^{-d(η)}, the smallest mass of η relative to f(0), row-major.

    With one ε, d is ε times the hop distance, computed from integers.

    Args:
        sizes: orders of the cyclic factors of the group.
        budgets: budget ε > 0 of every shift.

    Returns:
        Weights, 1 at 0 and exactly 0 where no path leads, shape (prod(sizes),).
    """
    epsilons = dict(budgets)
    if len(set(epsilons.values())) <= 1:
        hops = hop_distances(sizes, tuple(epsilons))
        epsilon = next(iter(epsilons.values()), 1.0)
        distance = np.where(hops == UNREACHABLE, np.inf, hops * epsilon)
    else:
        distance = np.full(sizes, np.inf)
        distance[(0,) * len(sizes)] = 0.0
        for shift, budget in budgets:
            _relax(distance, shift, budget)
    return np.exp(-distance.reshape(-1))


def dp_law(question: Question) -> ClosedForm:
    """Compute the optimal error rate under (ε, δ)-DP, with the PMF that attains it.

    Args:
        question: any shifts, any dimension, one ε or one for each shift. Its `requires` is ignored.
    """
    delta = question.delta
    weights = hop_weights(question.sizes, tuple(question.budgets.items()))
    weight_sum = float(weights[1:].sum())
    pmf = (1.0 - delta) * (weights / (1.0 + weight_sum))
    pmf[0] += delta
    error_rate = (1.0 - delta) * (weight_sum / (1.0 + weight_sum))
    if delta == 0.0:
        return ClosedForm("hop law", error_rate, pmf, kind="optimum", proof=_HOP_PROOF)
    return ClosedForm("hockey-stick law", error_rate, pmf, kind="optimum", proof=_TREE_PROOF)


def state_dp_law(question: Question) -> Iterator[ClosedForm]:
    """Yield the optimum of DP questions, and of PDP at δ = 0, else a lower bound.

    At δ = 0 both notions are the same. For δ > 0 PDP implies DP.

    Args:
        question: question about the error rate, of any notion and with any shifts.
    """
    law = dp_law(question)
    if question.requires == HOCKEY_STICK or question.delta == 0.0:
        yield law
    else:
        proof = (
            "Any shifts: (ε, δ)-PDP implies (ε, δ)-DP, whose optimal error rate is (1 - δ) "
            "times that of δ = 0."
        )
        yield replace(law, name="hockey-stick bound", pmf=None, kind="lower bound", proof=proof)
