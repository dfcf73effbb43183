"""Hop law: the least error rate of pure privacy (δ = 0) for any shifts, in any dimension.

Each constraint f(η) <= e^{ε_μ} f(η + μ) says f(η + μ) >= e^{-ε_μ} f(η), hence f(η) >= f(0) e^{-d(η)} with d the length
of a shortest path from 0 to η whose steps are the shifts and whose lengths are the ε_μ. Summing over η gives
f(0) <= 1 / Σ e^{-d}, and f = f(0) e^{-d}, zero where nothing leads, satisfies every constraint because
d(η + μ) <= d(η) + ε_μ. With one ε, d = ε · (least number of shifts): the law contains Lemmas 3 and 4 and example (59)
of Kadam et al. 2024.

Shortest paths need no queue here. The group is commutative, so a shortest path may take all its steps of one shift
first, then all of the next: relaxing over k = 0, 1, ..., order - 1 repetitions of each shift *once* is exact. The
repetitions are relaxed by doubling: after t rounds k < 2^t is covered. That is |𝓜| log2(N) whole-array operations at
most, whatever the number of levels (a breadth-first search of Z_N with small shifts has N / max(shift) of them).

| paper    | here                                   |
|----------|----------------------------------------|
| f(η)     | `hop_law(...).pmf`                     |
| N_μ      | `order(sizes, shift)`, (18)            |
| ε_μ      | `epsilon[shift]` (metric privacy)      |
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.oracles.closed_form import ClosedForm, Shift, check_budgets, check_sizes
from models.oracles.question import Question
from solvers.arrays import Integers, Vector

UNREACHABLE = -1
SMALL = 10_000  # elements up to which what depends on them alone, and on ε, is remembered


def order(sizes: tuple[int, ...], shift: Shift) -> int:
    """Order of a shift in the group: N_μ = (n + 1) / gcd(n + 1, μ) for one cyclic factor, (18)."""
    return math.lcm(*(size // math.gcd(step, size) for step, size in zip(shift, sizes, strict=True)))


def multiples(sizes: tuple[int, ...], shift: Shift) -> Integers:
    """Row-major positions of 0, μ, 2μ, ..., (N_μ - 1) μ; shape (N_μ,)."""
    times = np.arange(order(sizes, shift), dtype=np.int64)
    flat = np.zeros_like(times)
    for step, size in zip(shift, sizes, strict=True):
        flat = flat * size + times * step % size
    return flat


def _relax(distance: NDArray[Any], shift: Shift, loss: float) -> None:
    """Replace distance(η), in place, by the least distance(η - k·shift) + k·loss over k >= 0."""
    sizes = distance.shape
    axes = tuple(range(len(sizes)))
    repetitions, total = 1, order(sizes, shift)
    while repetitions < total:
        step = tuple(repetitions * part % size for part, size in zip(shift, sizes, strict=True))
        moved = np.roll(distance, step, axis=axes)
        moved += np.asarray(repetitions * loss, dtype=moved.dtype)
        if not np.less(moved, distance).any():
            return  # covered up to 2^t - 1 and no gain from 2^t: no multiple of 2^t can gain either
        np.minimum(distance, moved, out=distance)
        repetitions *= 2


def hop_distances(sizes: Sequence[int], shifts: Sequence[Sequence[int]]) -> Integers:
    """Least number of shifts that lead from 0 to each element, -1 where none do; shape (prod(sizes),), row-major.

    Raises OutsideDomain on bad sizes or shifts.
    """
    shape = check_sizes(sizes)
    steps = tuple(check_budgets(shape, shifts, 1.0))
    return (_remembered if math.prod(shape) <= SMALL else _hop_distances)(shape, steps)


def _hop_distances(shape: tuple[int, ...], steps: tuple[Shift, ...]) -> Integers:
    """`hop_distances` of checked arguments; read-only."""
    narrow = math.prod(shape) < 2**30
    far = 2**30 if narrow else 2**62
    distance: NDArray[Any] = np.full(shape, far, dtype=np.int32 if narrow else np.int64)
    distance[(0,) * len(shape)] = 0
    for shift in steps:
        _relax(distance, shift, 1)
    hops = np.where(distance < far, distance, UNREACHABLE).astype(np.int64).reshape(-1)
    hops.setflags(write=False)
    return hops


_remembered = lru_cache(maxsize=64)(_hop_distances)  # budgets move more often than questions


def budget_distances(
    sizes: Sequence[int], shifts: Sequence[Sequence[int]], epsilon: float | Mapping[Shift, float]
) -> Vector:
    """Least Σ ε_μ of shifts that lead from 0 to each element, inf where none do; shape (prod(sizes),), row-major.

    With one ε this is ε times the hop distance, computed from whole numbers. Raises OutsideDomain.
    """
    shape = check_sizes(sizes)
    budgets = check_budgets(shape, shifts, epsilon)
    if len(set(budgets.values())) <= 1:
        hops = hop_distances(shape, list(budgets))
        return np.where(hops == UNREACHABLE, np.inf, hops * next(iter(budgets.values()), 1.0))
    distance: Vector = np.full(shape, np.inf)
    distance[(0,) * len(shape)] = 0.0
    for shift, budget in budgets.items():
        _relax(distance, shift, budget)
    return distance.reshape(-1)


def hop_weights(
    sizes: Sequence[int], shifts: Sequence[Sequence[int]], epsilon: float | Mapping[Shift, float]
) -> Vector:
    """e^{-d(η)}, the least mass η can have relative to f(0); 1 at 0 and exactly 0 where no path leads."""
    weights: Vector = np.exp(-budget_distances(sizes, shifts, epsilon))
    return weights


def hop_law(
    sizes: Sequence[int], shifts: Sequence[Sequence[int]], epsilon: float | Mapping[Shift, float]
) -> ClosedForm:
    """Optimal error rate and PMF for δ = 0, any shifts, any dimension, one ε or one per shift. Raises OutsideDomain."""
    shape = check_sizes(sizes)
    budgets = tuple(check_budgets(shape, shifts, epsilon).items())
    return (_remembered_law if math.prod(shape) <= SMALL else _hop_law)(shape, budgets)


def _hop_law(shape: tuple[int, ...], budgets: tuple[tuple[Shift, float], ...]) -> ClosedForm:
    """`hop_law` of checked arguments."""
    levels = dict(budgets)
    weights = hop_weights(shape, list(levels), levels)
    elsewhere = float(weights[1:].sum())
    return ClosedForm(
        name="hop law",
        value=elsewhere / (1.0 + elsewhere),
        pmf=weights / (1.0 + elsewhere),
        kind="optimum",
        proof="Any shifts, δ = 0: each path of constraints from 0 gives f(η) >= f(0) e^{-d(η)}; equality is feasible.",
    )


_remembered_law = lru_cache(maxsize=64)(_hop_law)  # a law of DP is asked for again at every δ


def statements(question: Question) -> Iterator[ClosedForm]:
    """Answer every question at δ = 0, where pure privacy, DP and PDP are one."""
    if question.delta == 0.0:
        yield hop_law(question.sizes, question.shifts, question.budgets)
