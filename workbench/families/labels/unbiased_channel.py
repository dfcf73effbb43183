"""From masses and moments on intervals of labels to an exact channel: private and unbiased in rationals.

An interval S = [i, j] is an edge from node i to node j + 1, nodes 0 and k being one, the ground. With odds a/b <= e^ε,
integers n_S > 0 and moments μ_S = n_S o_S the channel is n_S a / T inside S and n_S b / T outside, and

    all rows have the sum 1        n is a flow:   Σ n of the sets that start at i = Σ n of those that end at i - 1
                                   T = b Σ n + (a - b) Σ n of the sets that contain any one label
    E[o | y] = y for every y       (a - b) (Σ μ of those that start at i - Σ μ of those that end at i - 1)
                                       = T (y_i - y_(i-1)),    and  b Σ μ + (a - b) Σ μ of those that start at 0 = T y_0

A maximum-weight spanning tree carries what the solver's floats, rounded on the other edges, leave open: leaf by leaf
for n (integers), and for μ (rationals), where one more edge outside the tree settles the last equation.

What is published are floats: the outputs outside the tree lie on a lattice of step h (a power of two, 2^-22 of the root
of the loss); an output of the tree, a ratio, is split between its two neighbours on the lattice in masses that keep its
mean exactly. That costs at most h²/4 of loss.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import DisjointSet

from workbench.exact.distribution import Distribution
from workbench.exact.objects import Pair
from workbench.mechanisms.channel import Channel
from workbench.models.labels.unbiased_levels import UnbiasedOptimum
from workbench.solvers.arrays import Vector

_PRECISIONS = (
    (18, 52),
    (42, 67),
    (60, 85),
)  # tried in turn: masses of so many bits less are left out; bits of masses
_LATTICE_BITS = 22  # of the outputs' lattice, below the root of the loss


def build_exact_channel(labels: Vector, odds: Fraction, point: UnbiasedOptimum) -> Channel:
    """The channel (k, m), its outputs increasing: exactly private at the odds and exactly unbiased.

    labels: (k,) increasing. Raises ArithmeticError where the point is too far from a randomizer.

    Masses below a share of the largest are left out where they need not carry anything; where what is left is no
    randomizer (labels in far clusters are told apart by small masses alone), the share is less.
    """
    for digits in _PRECISIONS:
        try:
            return _build_at_precision(labels, odds, point, digits)
        except ArithmeticError as error:
            refused = error
    raise refused


def _build_at_precision(
    labels: Vector, odds: Fraction, point: UnbiasedOptimum, digits: Pair
) -> Channel:
    """`exact_channel` with these digits."""
    k, a, b, used = labels.size, odds.numerator, odds.denominator, point.t > 0
    first, last, t = point.sets.first[used], point.sets.last[used], point.t[used]
    outputs = point.s[used] / t
    fine = max(
        math.sqrt(point.objective) * 2.0**-_LATTICE_BITS, float(np.abs(outputs).max()) * 2.0**-50
    )
    step = Fraction(2) ** math.floor(math.log2(fine))
    tree = _SpanningTree(
        k, first.tolist(), [0 if end == k else end for end in (last + 1).tolist()], t.tolist()
    )
    n = _complete_masses(tree, t, digits)
    dense = [b + (a - b) * (tail == 0) for tail in tree.tails]  # the last equation
    total = sum(x * mass for x, mass in zip(dense, n, strict=True))
    y = [Fraction(value) for value in labels.tolist()]
    sources = [Fraction(0), *((high - low) * total / (a - b) for low, high in pairwise(y))]
    lattice = [round(Fraction(output) / step) * step for output in outputs.tolist()]
    moments = _complete_moments(
        tree,
        n,
        tree.complete_flow([x * o for x, o in zip(n, lattice, strict=True)], sources),
        dense,
        y[0] * total,
    )
    columns = []  # (output on the lattice, mass, first, last)
    for mass, moment, start, end in zip(n, moments, first.tolist(), last.tolist(), strict=True):
        if mass > 0:
            place = Fraction(moment) / mass / step
            low = math.floor(place)
            parts = (low, mass * (low + 1 - place)), (low + 1, mass * (place - low))
            columns += [(at, part, start, end) for at, part in parts if part]
    places, table = _tabulate_columns(k, columns, a, b)
    rows = (Distribution.from_integers(row.tolist(), "a row of the channel") for row in table)
    return Channel(tuple(rows), axis_labels=(tuple(y), tuple(at * step for at in places)))


def _complete_masses(tree: _SpanningTree, t: Vector, digits: Pair) -> list[int]:
    """n of all sets, those with hardly a mass left out. Raises ArithmeticError."""
    speck, bits = digits
    heavy = np.where((t < 2.0**-speck * t.max()) & ~np.isin(np.arange(t.size), tree.edges), 0.0, t)
    n = tree.complete_flow(
        [round(Fraction(mass) * 2**bits) for mass in (heavy / heavy.max()).tolist()],
        [0] * tree.nodes,
    )
    if min((n[e] for e in tree.edges), default=1) < 0:
        raise ArithmeticError("the solver's masses are too far from a randomizer")
    return n


def _complete_moments(
    tree: _SpanningTree, n: list[int], moments: list[Any], dense: list[int], target: Fraction
) -> list[Any]:
    """The moments, that of one more edge outside the tree moved so that the last equation holds: Σ dense μ = target.

    Raises ArithmeticError.
    """
    effects = tree.sum_cycle_costs(dense)  # on it of one unit around the cycle that an edge closes
    loose = max((e for e, mass in enumerate(n) if mass > 0), key=lambda e: n[e] * abs(effects[e]))
    if not effects[loose]:
        raise ArithmeticError("too few sets are in use")
    unit = tree.complete_flow([int(e == loose) for e in range(len(n))], [0] * tree.nodes)
    share = (target - sum(x * moment for x, moment in zip(dense, moments, strict=True))) / effects[
        loose
    ]
    moments = [
        moment + share * move if move else moment
        for moment, move in zip(moments, unit, strict=True)
    ]
    if any(moment and not mass for mass, moment in zip(n, moments, strict=True)):
        raise ArithmeticError("a set that must carry a moment has no mass")
    return moments


def _tabulate_columns(
    k: int, columns: list[tuple[int, Fraction, int, int]], a: int, b: int
) -> tuple[list[int], NDArray[Any]]:
    """The outputs in order, and their integers (k, m)."""
    common = math.lcm(*{mass.denominator for _, mass, _, _ in columns})
    outputs = sorted({at for at, *_ in columns})
    table = np.zeros((k, len(outputs)), dtype=object)
    for at, mass, first, last in columns:
        weight = int(mass * common)
        column = table[:, bisect_left(outputs, at)]
        column += b * weight
        column[first : last + 1] += (a - b) * weight
    return outputs, table


class _SpanningTree:
    """A spanning tree of the nodes 0..k-1 (0: the ground) of greatest weight, and flows that it completes."""

    def __init__(self, k: int, tails: list[int], heads: list[int], weights: list[int]) -> None:
        self.nodes, self.tails, self.heads = k, tails, heads
        parts = DisjointSet(range(k))
        near: list[list[int]] = [[] for _ in range(k)]
        self.edges = []
        for e in sorted(range(len(tails)), key=lambda e: -weights[e]):
            if parts.merge(tails[e], heads[e]):
                self.edges.append(e)
                near[tails[e]].append(e)
                near[heads[e]].append(e)
        if len(self.edges) < k - 1:
            raise ArithmeticError("the sets in use do not tell all labels apart")
        self.order = []  # (node, the edge towards the ground), leaves last
        stack = [(0, -1)]  # and the edge it was reached by
        while stack:
            node, by = stack.pop()
            for e in near[node]:
                if e != by:
                    stack.append((heads[e] if tails[e] == node else tails[e], e))
                    self.order.append(stack[-1])

    def complete_flow(self, values: list[Any], sources: list[Any]) -> list[Any]:
        """Values on the other edges as given, on the tree's such that Σ out - Σ in = source at every node but 0."""
        flows, excess, inside = list(values), list(sources), {*self.edges}
        for e, value in enumerate(values):
            if e not in inside and value:
                excess[self.tails[e]] -= value
                excess[self.heads[e]] += value
        for node, e in reversed(self.order):
            out = self.tails[e] == node
            flows[e] = excess[node] if out else -excess[node]
            excess[self.heads[e] if out else self.tails[e]] += excess[node]
        return flows

    def sum_cycle_costs(self, costs: list[int]) -> list[int]:
        """For every edge, what a unit around the cycle that it closes costs; 0 for the tree's."""
        height = {0: 0}  # cost of the way from the ground
        for node, e in self.order:
            out = self.tails[e] == node
            height[node] = (
                height[self.heads[e]] - costs[e] if out else height[self.tails[e]] + costs[e]
            )
        return [
            cost + height[i] - height[j]
            for cost, i, j in zip(costs, self.tails, self.heads, strict=True)
        ]
