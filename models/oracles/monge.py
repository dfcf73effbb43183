"""Find the partition of labels into intervals (bins) with the smallest sum of interval losses.

`least_partition` answers this if a penalty λ is subtracted for each bin. It is the inner loop of
the fast algorithm of `workbench.models.oracles.bins`.

Notation. k is the number of labels, y a label, p_y its prior probability, o an output and ℓ(o, y)
the loss. F(o) = Σ_y p_y ℓ(o, y), q = e^ε - 1, and for a bin S = {r..i-1} of labels

    L_c(r, i) = min over o between y_{r-1} and y_i of F(o) + q Σ_{y in S} p_y ℓ(o, y).

f(i) is the smallest sum for the first i labels. L_c is Monge, which means that it satisfies the
quadrangle inequality below.

    f(0) = 0,    f(i) = min over r < i of f(r) + L_c(r, i) - λ,        i = 1..k
                                                                 (labels r..i-1 form a bin)

    L_c(a,c) + L_c(b,d) <= L_c(a,d) + L_c(b,c)    for a <= b <= c <= d

Therefore a later candidate r that has once become better than an earlier one stays better. The
candidates form a queue, and each is the best for one range of i (Galil and Giancarlo 1989). The
ends of the ranges are found by bisection, in O(k log k) evaluations of L_c.

Every prefix sum is stored as an unevaluated pair hi + lo (the TwoSum algorithm), so that the
difference of two prefix sums has a small error relative to the difference. Without this, small bins
would be wrong for weights e^ε up to 10^13. A row of `table` is one cache line: the prefix sums of
p, of p y and of a third term (columns 0-5, as pairs), the label, and F at the label. `weight_sums`
are the prefix sums of p again, contiguous in memory for bisection.

Numba compiles the code. For a small problem loading Numba takes longer than solving the problem in
plain Python, which is then used. The code is the same, so the sums are the same in the same order.
Logarithms differ in their last bits, so Poisson losses are always compiled.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from workbench.solvers.arrays import Integers, Pair, Vector

# Kinds of losses in a `Problem`. Compiled code compares them with the numbers 0 and 2.
SQUARED = 0  # The squared loss.
POISSON = 1  # The Poisson losses.
QUANTILE = 2  # The absolute and the pinball losses.

# A problem has a kind, the table, shape (k + 1, 8), the weight sums, shape (k + 1,), and the
# numbers (q, mean, spread, τ, scale): the mean of the labels as they stand in the table, the
# smallest F(o) (0 for quantile losses), and for quantile losses the loss scale * pinball:τ.
Problem = tuple[int, Vector, Vector, tuple[float, ...]]

_MAX_PLAIN_LABELS = 150  # Up to this many labels plain Python is faster than loading Numba.


def prefix_pairs(values: Vector) -> Pair:
    """Compute running sums as pairs hi and lo, each of shape (k + 1,) and starting at 0.

    Args:
        values: numbers that are summed, shape (k,).
    """
    if _uses_plain_python(values.size):
        return _prefix_pairs(values)
    return _compile_functions().prefix_pairs(values)


def least_partition(problem: Problem, penalty: float) -> tuple[float, Integers, int]:
    """Find the partition of all labels into bins S with the smallest Σ (L_c(S) - penalty).

    Args:
        problem: kind, table, weight sums and numbers of the problem (see `Problem`).
        penalty: number λ that is subtracted for each bin.

    Returns:
        The minimum, the first labels of its bins, shape (d,), and how often L_c was evaluated.
    """
    kind, table, *_ = problem
    if kind != POISSON and _uses_plain_python(table.shape[0] - 1):
        solve: Callable[..., Any] = _least_partition
    else:
        solve = _compile_functions().least_partition
    # Compiled code does not warn about floats either.
    with np.errstate(all="ignore"):
        minimum, last_starts, evaluations = solve(problem, penalty)
    starts = []
    end = last_starts.size - 1
    while end > 0:
        end = int(last_starts[end])
        starts.append(end)
    return float(minimum), np.array(starts[::-1], dtype=np.int64), int(evaluations)


def _uses_plain_python(label_count: int) -> bool:
    """Check whether a problem is small and Numba is not loaded yet."""
    return label_count <= _MAX_PLAIN_LABELS and "numba" not in sys.modules


class _CompiledFunctions(NamedTuple):
    """The compiled functions of this module."""

    prefix_pairs: Callable[[Vector], Pair]
    least_partition: Callable[..., tuple[float, Integers, int]]


@cache
def _compile_functions() -> _CompiledFunctions:
    """Compile the functions of this module.

    The functions that others call are compiled for all callers from now on.
    """
    global divergence, interval_loss
    from numba import njit

    divergence = njit(cache=True, inline="always")(_divergence)
    interval_loss = njit(cache=True)(_interval_loss)
    return _CompiledFunctions(njit(cache=True)(_prefix_pairs), njit(cache=True)(_least_partition))


def _prefix_pairs(values: Vector) -> Pair:
    """Compute running sums of values (k,) as pairs hi (k+1,), lo (k+1,).

    s is the running sum in floats, and e the sum of its rounding errors.
    """
    n = values.size
    high = np.zeros(n + 1)
    low = np.zeros(n + 1)
    s = 0.0
    e = 0.0
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
    """Compute the excess of a mean loss at the output b over that at the optimal output a.

    It is (a-b)² for the squared loss, and a log(a/b) - a + b for the Poisson losses.
    """
    if kind == 0:
        return (a - b) * (a - b)
    if a <= 0.0:
        return b
    u = (b - a) / a
    return float(a * (u - np.log1p(u)))


divergence = _divergence


def _interval_loss(problem: Problem, r: int, i: int) -> float:
    """Compute L_c(r, i) for the labels S = r..i-1.

    It is the minimum of F(o) + q Σ_S p ℓ(o, y) over y_{r-1} <= o <= y_i. s0, s1 and s2 are the
    sums of p, p y and the third term over S.
    """
    kind, table, weight_sums, numbers = problem
    q, mean, spread, tau, scale = numbers
    k = table.shape[0] - 1
    s0 = (table[i, 0] - table[r, 0]) + (table[i, 1] - table[r, 1])
    s1 = (table[i, 2] - table[r, 2]) + (table[i, 3] - table[r, 3])
    if kind == 2:
        target = tau * (1.0 + q * s0)
        if r > 0 and weight_sums[r] >= target:
            j = r - 1
        else:
            # This bisection finds the first label of S where P[j+1] + q (P[j+1] - P[r]) reaches
            # the target.
            level = (target + q * weight_sums[r]) / (1.0 + q)
            low, high = r, i
            while low < high:
                middle = (low + high) >> 1
                if weight_sums[middle + 1] >= level:
                    high = middle
                else:
                    low = middle + 1
            j = low if low < i or i < k else i - 1
        if i - r == 1 and j == r:
            return float(table[j, 7])
        m = min(max(j + 1, r), i)
        o = table[j, 6]
        lower_s0 = (table[m, 0] - table[r, 0]) + (table[m, 1] - table[r, 1])
        lower_s1 = (table[m, 2] - table[r, 2]) + (table[m, 3] - table[r, 3])
        lower_loss = (1.0 - tau) * (o * lower_s0 - lower_s1)
        bin_loss = lower_loss + tau * ((s1 - lower_s1) - o * (s0 - lower_s0))
        return float(table[j, 7] + q * scale * max(bin_loss, 0.0))
    centre = mean
    bin_spread = 0.0
    if i - r == 1:
        centre = table[r, 6]
    elif s0 > 0.0:
        centre = s1 / s0
        s2 = (table[i, 4] - table[r, 4]) + (table[i, 5] - table[r, 5])
        if kind == 0:
            bin_spread = max(s2 - s1 * centre, 0.0)
        elif centre > 0.0:
            bin_spread = max(s2 - s1 * np.log(centre), 0.0)
    o = (mean + q * s0 * centre) / (1.0 + q * s0)
    if r > 0 and o < table[r - 1, 6]:
        o = table[r - 1, 6]
    if i < k and o > table[i, 6]:
        o = table[i, 6]
    bin_loss = bin_spread + s0 * divergence(kind, centre, o)
    return float(spread + divergence(kind, mean, o) + q * bin_loss)


interval_loss = _interval_loss


def _least_partition(problem: Problem, penalty: float) -> tuple[float, Any, int]:
    """Return (f(k), last_starts, number of evaluations of L_c).

    last_starts[i] is the first label of the last bin in the best partition of the labels 0..i-1.
    The deque candidates[head..tail] holds first labels; candidates[j] is the best one for the
    positions from range_starts[j] on, up to range_starts[j + 1].
    """
    _, table, _, _ = problem
    k = table.shape[0] - 1
    min_sums = np.zeros(k + 1)  # min_sums[i] is f(i) of the module header.
    last_starts = np.zeros(k + 1, dtype=np.int64)
    candidates = np.zeros(k + 1, dtype=np.int64)
    range_starts = np.zeros(k + 1, dtype=np.int64)
    head = 0
    tail = 0
    range_starts[0] = 1
    # This is f(c) + L_c(c, k) of the last candidate of the deque.
    last_end_value = interval_loss(problem, 0, k)
    # L_c(c, i) and L_c(i, k) are evaluated for every i (none for i = k, one before the loop).
    evaluations = 2 * k
    for i in range(1, k + 1):
        while head < tail and range_starts[head + 1] <= i:
            head += 1
        c = candidates[head]
        min_sums[i] = min_sums[c] + interval_loss(problem, c, i) - penalty
        last_starts[i] = c
        if i == k:
            break
        end_value = min_sums[i] + interval_loss(problem, i, k)
        if end_value >= last_end_value:
            continue
        # The candidate i is better at `high`, and from its first better position on.
        high = k
        while tail > head and range_starts[tail] > i:
            c = candidates[tail]
            position = range_starts[tail]
            evaluations += 2
            new_value = min_sums[i] + interval_loss(problem, i, position)
            if new_value > min_sums[c] + interval_loss(problem, c, position):
                break
            high = position
            tail -= 1
        c = candidates[tail]
        low = max(range_starts[tail], i) + 1
        # The crossing is mostly near the last one: the step is doubled, then bisected.
        step = 1
        while low + step < high:
            middle = low + step
            evaluations += 2
            new_value = min_sums[i] + interval_loss(problem, i, middle)
            if new_value < min_sums[c] + interval_loss(problem, c, middle):
                high = middle
                break
            low = middle + 1
            step *= 2
        while low < high:
            middle = (low + high) >> 1
            evaluations += 2
            new_value = min_sums[i] + interval_loss(problem, i, middle)
            if new_value < min_sums[c] + interval_loss(problem, c, middle):
                high = middle
            else:
                low = middle + 1
        tail += 1
        candidates[tail] = i
        range_starts[tail] = low
        last_end_value = end_value
    return min_sums[k], last_starts, evaluations
