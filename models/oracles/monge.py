"""The inner loop of the fast algorithm of `bins`: least-loss partitions under a Monge interval loss.

Numba compiles it. Loading Numba takes longer than a small problem does in plain Python, which is then used: the same
code, so the same sums in the same order (but for logarithms, whose last bits differ: Poisson losses are compiled).

    f(0) = 0,    f(i) = min over r < i of f(r) + L_c(r, i) - λ,        i = 1..k             (labels r..i-1 form a bin)

L_c obeys the quadrangle inequality L_c(a,c) + L_c(b,d) <= L_c(a,d) + L_c(b,c) for a <= b <= c <= d, so a later
candidate r that has once become better than an earlier one stays better: the candidates form a deque with one range of
i's each (Galil and Giancarlo 1989), found by bisection. O(k log k) evaluations.

Every prefix sum is kept as an unevaluated pair hi + lo (TwoSum), so a difference of two of them is accurate relative to
itself and not only to the total: with weights e^ε up to 10^13 that is what keeps small bins right. A row of `table` is
one cache line: P, S1, S2 as pairs, the label, and F at the label; `below` is P again, dense, for bisection.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from workbench.solvers.arrays import Integers, Pair, Vector

SQUARED, POISSON, QUANTILE = 0, 1, 2
Problem = tuple[
    int, Vector, Vector, tuple[float, ...]
]  # kind, table, below, (q, mean, spread, τ, scale)
_SMALL = 150  # labels up to which plain Python takes less than loading Numba


def prefix_pairs(values: Vector) -> Pair:
    """Running sums of values (k,) as pairs: hi (k+1,), lo (k+1,)."""
    return _prefix_pairs(values) if _plainly(values.size) else _compiled().prefix_pairs(values)


def least_partition(problem: Problem, penalty: float) -> tuple[float, Integers, int]:
    """(min over partitions of Σ (L_c(S) - penalty), the first labels of its bins (d,), how often L_c was taken)."""
    plain = problem[0] != POISSON and _plainly(problem[1].shape[0] - 1)
    solve = _least_partition if plain else _compiled().least_partition
    with np.errstate(all="ignore"):  # as compiled
        least, came, taken = solve(problem, penalty)
    starts, at = [], came.size - 1
    while at > 0:
        at = int(came[at])
        starts.append(at)
    return float(least), np.array(starts[::-1], dtype=np.int64), int(taken)


def _plainly(labels: int) -> bool:
    return labels <= _SMALL and "numba" not in sys.modules


class _Compiled(NamedTuple):
    prefix_pairs: Callable[[Vector], Pair]
    least_partition: Callable[..., tuple[float, Integers, int]]


@cache
def _compiled() -> _Compiled:
    """The functions of this module, compiled; those that others call are compiled from now on for everybody."""
    global divergence, interval_loss
    from numba import njit

    divergence = njit(cache=True, inline="always")(_divergence)
    interval_loss = njit(cache=True)(_interval_loss)
    return _Compiled(njit(cache=True)(_prefix_pairs), njit(cache=True)(_least_partition))


def _prefix_pairs(values: Vector) -> Pair:
    """Running sums of values (k,) as pairs: hi (k+1,), lo (k+1,)."""
    n = values.size
    high, low = np.zeros(n + 1), np.zeros(n + 1)
    s, e = 0.0, 0.0
    for i in range(n):
        x = values[i]
        t = s + x
        z = t - s
        e += (s - (t - z)) + (x - z)
        s = t
        high[i + 1] = s + e
        low[i + 1] = (s - high[i + 1]) + e
    return high, low


def _divergence(kind: int, a: float, b: float) -> float:
    """D(a, b) of the loss: (a-b)², or a log(a/b) - a + b."""
    if kind == 0:
        return (a - b) * (a - b)
    if a <= 0.0:
        return b
    u = (b - a) / a
    return float(a * (u - np.log1p(u)))


divergence = _divergence


def _interval_loss(problem: Problem, r: int, i: int) -> float:
    """L_c(r, i): min of G_S(o) = F(o) + q Σ_S p ℓ(o, y) over y_{r-1} <= o <= y_i, for S = labels r..i-1."""
    kind, table, below, numbers = problem
    q, mean, spread, tau, scale = numbers
    k = table.shape[0] - 1
    s0 = (table[i, 0] - table[r, 0]) + (table[i, 1] - table[r, 1])
    s1 = (table[i, 2] - table[r, 2]) + (table[i, 3] - table[r, 3])
    if kind == 2:
        target = tau * (1.0 + q * s0)
        if r > 0 and below[r] >= target:
            j = r - 1
        else:
            # the first label of S where P[j+1] + q (P[j+1] - P[r]) reaches the target
            level = (target + q * below[r]) / (1.0 + q)
            low, high = r, i
            while low < high:
                middle = (low + high) >> 1
                if below[middle + 1] >= level:
                    high = middle
                else:
                    low = middle + 1
            j = low if low < i or i < k else i - 1
        if i - r == 1 and j == r:
            return float(table[j, 7])
        m = min(max(j + 1, r), i)
        o = table[j, 6]
        below0 = (table[m, 0] - table[r, 0]) + (table[m, 1] - table[r, 1])
        below1 = (table[m, 2] - table[r, 2]) + (table[m, 3] - table[r, 3])
        inside = (1.0 - tau) * (o * below0 - below1) + tau * ((s1 - below1) - o * (s0 - below0))
        return float(table[j, 7] + q * scale * max(inside, 0.0))
    centre, within = mean, 0.0
    if i - r == 1:
        centre = table[r, 6]
    elif s0 > 0.0:
        centre = s1 / s0
        s2 = (table[i, 4] - table[r, 4]) + (table[i, 5] - table[r, 5])
        within = max(
            s2 - s1 * centre if kind == 0 else s2 - s1 * np.log(centre) if centre > 0.0 else 0.0,
            0.0,
        )
    o = (mean + q * s0 * centre) / (1.0 + q * s0)
    if r > 0 and o < table[r - 1, 6]:
        o = table[r - 1, 6]
    if i < k and o > table[i, 6]:
        o = table[i, 6]
    return float(
        spread + divergence(kind, mean, o) + q * (within + s0 * divergence(kind, centre, o))
    )


interval_loss = _interval_loss


def _least_partition(problem: Problem, penalty: float) -> tuple[float, Any, int]:
    """(the least value, the first label of the last bin of the best partition of 0..i-1 for every i, as taken)."""
    k = problem[1].shape[0] - 1
    best = np.zeros(k + 1)
    came = np.zeros(k + 1, dtype=np.int64)
    candidate = np.zeros(k + 1, dtype=np.int64)
    begin = np.zeros(k + 1, dtype=np.int64)
    head, tail = 0, 0
    begin[0] = 1
    last = interval_loss(problem, 0, k)  # f(c) + L_c(c, k) of the deque's last one
    taken = 2 * k  # L_c(c, i) and L_c(i, k) for every i (none for i = k, one before the loop)
    for i in range(1, k + 1):
        while head < tail and begin[head + 1] <= i:
            head += 1
        c = candidate[head]
        best[i] = best[c] + interval_loss(problem, c, i) - penalty
        came[i] = c
        if i == k:
            break
        end = best[i] + interval_loss(problem, i, k)
        if end >= last:
            continue
        high = k  # i is better there, and from its first better position on
        while tail > head and begin[tail] > i:
            c, at = candidate[tail], begin[tail]
            taken += 2
            mine = best[i] + interval_loss(problem, i, at)
            if mine > best[c] + interval_loss(problem, c, at):
                break
            high = at
            tail -= 1
        c = candidate[tail]
        low = max(begin[tail], i) + 1
        step = 1  # the crossing is mostly near the last one: double the step, then bisect
        while low + step < high:
            middle = low + step
            taken += 2
            mine = best[i] + interval_loss(problem, i, middle)
            if mine < best[c] + interval_loss(problem, c, middle):
                high = middle
                break
            low = middle + 1
            step *= 2
        while low < high:
            middle = (low + high) >> 1
            taken += 2
            mine = best[i] + interval_loss(problem, i, middle)
            if mine < best[c] + interval_loss(problem, c, middle):
                high = middle
            else:
                low = middle + 1
        tail += 1
        candidate[tail] = i
        begin[tail] = low
        last = end
    return best[k], came, taken
