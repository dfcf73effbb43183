"""Turn a solver's approximate unbiased randomizer into a channel that is exactly private and
exactly unbiased.

The labels are y_0 < ... < y_(k-1). The randomizer is a list of intervals S = [i, j] of labels, also
called sets. Each has an output o_S that labels inside S publish more often than labels outside. A
solver returns a mass t and a moment s = t o for each set, in floats. For two labels, the sets
[0, 0] and [1, 1] with equal masses are randomized response with stretched outputs.

The exact channel. Let a/b be a rational, at most e^ε, and let S have the integer mass n_S > 0 and
the moment μ_S = n_S o_S. A label inside S publishes o_S with probability n_S a / T, any other label
with probability n_S b / T. T is one number for all labels. Two labels differ by the factor a/b at
most, so the channel is private. Consider label y_i and the one before it: they differ only by the
sets that start at i and those that end at i - 1. So

    all rows have the sum 1        Σ n of the sets that start at i
      is equivalent to               = Σ n of the sets that end at i - 1,  0 < i < k, and
                                   T = b Σ n + (a - b) Σ n of the sets that contain any one label
    E[o | y] = y for every y       (a - b) (Σ μ of the sets that start at i
      is equivalent to               - Σ μ of the sets that end at i - 1) = T (y_i - y_(i-1)), and
                                   b Σ μ + (a - b) Σ μ of the sets that start at 0 = T y_0

Rounding. These are the equations of flows n and μ on a graph with an edge from node i to node j + 1
for each S. Nodes 0 and k are the same node, the ground. Most masses and moments are rounded floats.
The edges of a maximum-weight spanning tree then get the values that satisfy the equations of all
nodes, from the leaves to the ground: integers for n, and rationals for μ. Finally a flow around the
cycle that one edge outside the tree closes satisfies the last equation.

The outputs must be floats. So the outputs outside the tree lie on a lattice of step h (a power of
two, 2^-22 of the root of the loss). An output of the tree is a ratio μ/n. It is split between its
two neighbours on the lattice in masses that preserve its mean exactly. This increases the squared
loss by at most h²/4.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import DisjointSet

from workbench.exact.distribution import Distribution
from workbench.mechanisms.channel import Channel
from workbench.models.labels.unbiased_levels import UnbiasedOptimum
from workbench.solvers.arrays import Vector


class _Precision(NamedTuple):
    """The precision to which the masses of a solver are used.

    Attributes:
        dropped_below_bits: masses below 2^-bits of the largest one are dropped.
        mass_bits: masses are rounded to multiples of 2^-bits of the largest one.
    """

    dropped_below_bits: int
    mass_bits: int


# The precisions are tried in this order, until one of them gives a randomizer.
_PRECISIONS = (
    _Precision(dropped_below_bits=18, mass_bits=52),
    _Precision(dropped_below_bits=42, mass_bits=67),
    _Precision(dropped_below_bits=60, mass_bits=85),
)
# The lattice of the outputs is this many binary digits finer than the root of the loss.
_LATTICE_BITS = 22
# The lattice is at most this many binary digits finer than the largest output.
_MAX_LATTICE_BITS = 50


class _Column(NamedTuple):
    """Mass on one output that is larger for an interval of labels.

    Attributes:
        output: output in steps h of the lattice.
        mass: mass n, > 0.
        first: position of the first label of the interval.
        last: position of the last label of the interval.
    """

    output: int
    mass: Fraction
    first: int
    last: int


def build_exact_channel(labels: Vector, odds: Fraction, point: UnbiasedOptimum) -> Channel:
    """Build a channel that is exactly private and exactly unbiased.

    Small masses are dropped. If this makes the channel fail, fewer masses are dropped. This is
    needed if only small masses distinguish the labels within clusters that are far apart.

    Args:
        labels: increasing labels, shape (k,).
        odds: e^ε, rounded down to a rational a/b > 1.
        point: intervals of labels, with their masses t and moments s in floats.

    Returns:
        The channel, shape (k, m). Its outputs are increasing floats.

    Raises:
        ArithmeticError: the point is too far from a randomizer.
    """
    for precision in _PRECISIONS:
        try:
            return _build_at_precision(labels, odds, point, precision)
        except ArithmeticError as error:
            last_error = error
    raise last_error


def _build_at_precision(
    labels: Vector, odds: Fraction, point: UnbiasedOptimum, precision: _Precision
) -> Channel:
    """Build the exact channel at one precision.

    Raises ArithmeticError if the masses are too inaccurate.
    """
    k = labels.size
    a = odds.numerator
    b = odds.denominator
    is_used = point.t > 0
    first = point.sets.first[is_used]
    last = point.sets.last[is_used]
    t = point.t[is_used]
    outputs = point.s[is_used] / t
    step = _choose_lattice_step(point.objective, outputs)
    # Node k is the same node as the ground, node 0.
    heads = [0 if end == k else end for end in (last + 1).tolist()]
    tree = _SpanningTree(k, first.tolist(), heads, t.tolist())
    n = _complete_masses(tree, t, precision)
    # The sets that start at 0 are those that contain label 0. T, and the last equation of the
    # header, have the coefficient a for them and b for all others.
    coefficients = [a if tail == 0 else b for tail in tree.tails]
    total = sum(factor * mass for factor, mass in zip(coefficients, n, strict=True))
    y = [Fraction(value) for value in labels.tolist()]
    differences = [(high - low) * total / (a - b) for low, high in pairwise(y)]
    lattice_outputs = [round(Fraction(output) / step) * step for output in outputs.tolist()]
    rounded_moments = [mass * output for mass, output in zip(n, lattice_outputs, strict=True)]
    tree_moments = tree.complete_flow(rounded_moments, [Fraction(0), *differences])
    moments = _complete_moments(tree, n, tree_moments, coefficients, target=y[0] * total)
    columns: list[_Column] = []
    for mass, moment, start, end in zip(n, moments, first.tolist(), last.tolist(), strict=True):
        if mass > 0:
            columns += _split_on_lattice(mass, Fraction(moment) / mass / step, start, end)
    places, table = _tabulate_columns(k, columns, a, b)
    rows = (Distribution.from_integers(row.tolist(), "a row of the channel") for row in table)
    axis_labels = (tuple(y), tuple(place * step for place in places))
    return Channel(tuple(rows), axis_labels=axis_labels)


def _choose_lattice_step(loss: float, outputs: Vector) -> Fraction:
    """Return the step of the lattice of outputs, a power of two."""
    loss_resolution = math.sqrt(loss) * 2.0**-_LATTICE_BITS
    output_resolution = float(np.abs(outputs).max()) * 2.0**-_MAX_LATTICE_BITS
    return Fraction(2) ** math.floor(math.log2(max(loss_resolution, output_resolution)))


def _split_on_lattice(mass: int, output: Fraction, first: int, last: int) -> list[_Column]:
    """Split a mass between the two lattice points beside its output, with the same mean."""
    low = math.floor(output)
    low_mass = mass * (low + 1 - output)
    high_mass = mass * (output - low)
    columns = [_Column(low, low_mass, first, last), _Column(low + 1, high_mass, first, last)]
    return [column for column in columns if column.mass]


def _complete_masses(tree: _SpanningTree, t: Vector, precision: _Precision) -> list[int]:
    """Return the integer masses n of all sets. The masses of dropped sets are 0.

    Raises ArithmeticError if a set of the tree would need a negative mass.
    """
    is_small = t < 2.0**-precision.dropped_below_bits * t.max()
    is_outside_tree = ~np.isin(np.arange(t.size), tree.edges)
    used_masses = np.where(is_small & is_outside_tree, 0.0, t)
    unit = 2**precision.mass_bits
    integers = [round(Fraction(mass) * unit) for mass in (used_masses / used_masses.max()).tolist()]
    n = tree.complete_flow(integers, [0] * tree.node_count)
    if min((n[e] for e in tree.edges), default=1) < 0:
        raise ArithmeticError("the solver's masses are too far from a randomizer")
    return n


def _complete_moments(
    tree: _SpanningTree,
    n: list[int],
    moments: list[Any],
    coefficients: list[int],
    target: Fraction,
) -> list[Any]:
    """Adjust the moments so that Σ coefficients · μ = target, the last equation of the header.

    A flow is added around the cycle that one edge outside the tree closes, so the equations of the
    nodes still hold. Returns the moments of all edges. Raises ArithmeticError.
    """
    # Effect of every edge: the change of the sum for one unit of flow around the edge's cycle.
    effects = tree.sum_cycle_costs(coefficients)
    used_edges = [e for e, mass in enumerate(n) if mass > 0]
    free_edge = max(used_edges, key=lambda e: n[e] * abs(effects[e]))
    if not effects[free_edge]:
        raise ArithmeticError("too few sets are in use")
    unit_values = [int(e == free_edge) for e in range(len(n))]
    unit_flow = tree.complete_flow(unit_values, [0] * tree.node_count)
    pairs = zip(coefficients, moments, strict=True)
    current_sum = sum(coefficient * moment for coefficient, moment in pairs)
    units = (target - current_sum) / effects[free_edge]
    adjusted_moments = []
    for moment, flow in zip(moments, unit_flow, strict=True):
        adjusted_moments.append(moment + units * flow if flow else moment)
    if any(moment and not mass for mass, moment in zip(n, adjusted_moments, strict=True)):
        raise ArithmeticError("a set that must carry a moment has no mass")
    return adjusted_moments


def _tabulate_columns(
    k: int, columns: list[_Column], a: int, b: int
) -> tuple[list[int], NDArray[Any]]:
    """Return (outputs, table): the increasing outputs in steps of the lattice, and the channel in
    integers, shape (k, m), all rows of one sum.
    """
    common = math.lcm(*{column.mass.denominator for column in columns})
    outputs = sorted({column.output for column in columns})
    table = np.zeros((k, len(outputs)), dtype=object)
    for column in columns:
        weight = int(column.mass * common)
        masses = table[:, bisect_left(outputs, column.output)]
        masses += b * weight
        masses[column.first : column.last + 1] += (a - b) * weight
    return outputs, table


class _SpanningTree:
    """A spanning tree of largest weight of the header's graph, and the flows that it completes.

    For three labels the nodes are 0, 1, 2, and the interval [1, 2] is an edge from node 1 to node
    0, the ground.

    Args:
        k: number of nodes. Node 0 is the ground.
        tails: node at which each edge starts.
        heads: node at which each edge ends.
        weights: weight of each edge.

    Attributes:
        node_count: number of nodes.
        edges: indices of the edges of the tree.
        order: (node, its edge towards the ground) for every node except 0, leaves last.
    """

    def __init__(self, k: int, tails: list[int], heads: list[int], weights: list[float]) -> None:
        self.node_count = k
        self.tails = tails
        self.heads = heads
        self.edges: list[int] = []
        self.order: list[tuple[int, int]] = []
        parts = DisjointSet(range(k))
        edges_by_node: list[list[int]] = [[] for _ in range(k)]
        for e in sorted(range(len(tails)), key=lambda e: -weights[e]):
            if parts.merge(tails[e], heads[e]):
                self.edges.append(e)
                edges_by_node[tails[e]].append(e)
                edges_by_node[heads[e]].append(e)
        if len(self.edges) < k - 1:
            raise ArithmeticError("the sets in use do not distinguish all labels")
        # An entry of the stack is a node and the edge by which it was reached.
        stack = [(0, -1)]
        while stack:
            node, incoming_edge = stack.pop()
            for e in edges_by_node[node]:
                if e != incoming_edge:
                    neighbour = heads[e] if tails[e] == node else tails[e]
                    stack.append((neighbour, e))
                    self.order.append((neighbour, e))

    def complete_flow(self, values: list[Any], sources: list[Any]) -> list[Any]:
        """Set the values on the edges of the tree so that the flow satisfies its sources.

        Args:
            values: values of all edges. Values on edges of the tree are ignored.
            sources: for every node, the sum of the values on edges that leave it minus the sum on
                edges that enter it. The entry of node 0 is ignored.

        Returns:
            The values of all edges.
        """
        flows = list(values)
        excess = list(sources)
        tree_edges = {*self.edges}
        for e, value in enumerate(values):
            if e not in tree_edges and value:
                excess[self.tails[e]] -= value
                excess[self.heads[e]] += value
        for node, e in reversed(self.order):
            if self.tails[e] == node:
                flows[e] = excess[node]
                excess[self.heads[e]] += excess[node]
            else:
                flows[e] = -excess[node]
                excess[self.tails[e]] += excess[node]
        return flows

    def sum_cycle_costs(self, costs: list[int]) -> list[int]:
        """Sum the costs around the cycle that each edge closes with the tree.

        Args:
            costs: cost of each edge.

        Returns:
            The cost of one unit around the cycle of each edge. It is 0 for edges of the tree.
        """
        # The potential of a node is the cost of the path from the ground.
        potentials = {0: 0}
        for node, e in self.order:
            if self.tails[e] == node:
                potentials[node] = potentials[self.heads[e]] - costs[e]
            else:
                potentials[node] = potentials[self.tails[e]] + costs[e]
        cycle_costs = []
        for cost, tail, head in zip(costs, self.tails, self.heads, strict=True):
            cycle_costs.append(cost + potentials[tail] - potentials[head])
        return cycle_costs
