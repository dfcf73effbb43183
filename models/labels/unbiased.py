"""The least-squares unbiased label randomizer as a second-order cone program over intervals of labels.

    min Σ_y p_y E (o-y)²   s.t.  M is ε-DP for all pairs of labels,  E[o | y] = y     (Sec. 6 of the label-DP paper)

Every ε-DP channel is a mixture of rays: a column M[·,o] is t (1 + q 1_S) for outputs o, label sets S and t >= 0, with
q = e^ε - 1 (the extreme rays of t_o <= M[y,o] <= e^ε t_o). By Jensen's inequality rays of the same S merge: what is
left of them is a mass t_S and a moment s_S, with the output s_S / t_S. With w_yS = 1 + q 1[y in S], W_S = Σ p w,
c_S = Σ p w y / W_S and V_S = Σ p w (y - c_S)², the program over a family of sets is

    min Σ_S V_S t_S + W_S (s_S - c_S t_S)² / t_S    s.t.   Σ_S w_yS t_S = 1,   Σ_S w_yS s_S = y   for every y.

In every optimum that we have seen the sets are intervals of sorted labels, a monotone path from {0} to {k-1}; that is
not assumed: the lower bound prices all sets and all outputs. For intervals the difference of two consecutive labels'
rows leaves those that start at the one or end at the other, so the equations are a flow and one dense row each.

The bound prices all sets and all outputs exactly (`workbench.models.labels.unbiased_bound`). Multipliers v, u of the
two rows of y give f_y(o) = p_y (o-y)² - v_y - u_y (o-y); those that sets of labels without a gap between them leave
open are pooled (`pooled`).

Outputs leave the label range: unbiasedness costs an order of magnitude (labels 0..10 uniform, ε = 1: 98.0075420
against 8.40878638).

| here                             | meaning                                                                     |
|----------------------------------|-----------------------------------------------------------------------------|
| Intervals: first, last (n,)      | the sets S                                                                  |
| program: upper, lower, moment    | ρ + τ, ρ - τ, 2 σ (n,) in a cone (σ² <= ρ τ), with τ = (1+q) t and          |
|                                  | σ = √((1+q) W) (s - c t)/h, so that ρ costs 1                               |
| h² = unit                        | about the size of the optimum: tolerances of solvers are absolute           |
| program: step, steps             | consecutive rows' differences over q/(1+q);  whole, mean: rows' p-averages  |
| lowest                           | the best bound that (v, u) give, and the sets that price below zero         |
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import scipy.sparse as sp

from workbench.models.labels.unbiased_bound import Quadratics, lower_until_feasible, round_odds_up
from workbench.solvers.arrays import Flags, Pair, Positions, Vector
from workbench.solvers.data import MIN_COEFFICIENT
from workbench.solvers.program import Block, Data, Program

_SMALL = 1e-8  # coefficients that solvers would drop: their error is below that of the solver


@dataclass(frozen=True)
class Proof:
    """A lower bound, and the multipliers v, u (k,) that prove it."""

    bound: float
    v: Vector
    u: Vector

    def rescale(self, labels: Vector, prior: Vector, q: float, width: float) -> Proof:
        """What these multipliers, of labels moved and divided by a width, prove of the labels themselves."""
        unit = Fraction(width)
        v, u = (
            [x * unit**2 for x in map(Fraction, self.v)],
            [x * unit for x in map(Fraction, self.u)],
        )
        return replace(
            self,
            bound=lower_until_feasible(
                Quadratics.from_multipliers(labels, prior, v, u), round_odds_up(q)
            )[0],
        )


@dataclass(frozen=True)
class Intervals:
    """Sets of consecutive labels: first (n,) and last (n,) positions, 0 <= first <= last < k."""

    first: Positions
    last: Positions

    @classmethod
    def all_intervals(cls, k: int) -> Intervals:
        """All k (k + 1)/2 of them."""
        return cls(*np.triu_indices(k))

    def moments(self, labels: Vector, prior: Vector, q: float) -> tuple[Vector, Vector, Vector]:
        """(W, c, V), each (n,)."""

        def sums(values: Vector) -> Vector:
            run = np.concatenate([[0.0], np.cumsum(values)])
            return np.asarray(run[-1] + q * (run[self.last + 1] - run[self.first]))

        weight = sums(prior)
        centre = sums(prior * labels) / weight
        return weight, centre, np.maximum(sums(prior * labels**2) - weight * centre**2, 0.0)


def randomized_response_loss(labels: Vector, prior: Vector, q: float) -> float:
    """The loss of k-ary randomized response with its bias taken out, o_i = ((q + k) y_i - Σ y)/q: an upper bound."""
    k = labels.size
    outputs = ((q + k) * labels - labels.sum()) / q
    square = (outputs[None, :] - labels[:, None]) ** 2
    return float(prior @ (square.sum(axis=1) + q * np.diag(square)) / (q + k))


def build_flow_rows(sets: Intervals, k: int, last: Vector) -> sp.csr_array:
    """The rows of consecutive labels' differences, 1 where a set starts and -1 where it ends, and a last row. (k, n)"""
    n = sets.first.size
    starts, ends = np.flatnonzero(sets.first > 0), np.flatnonzero(sets.last < k - 1)
    steps = sp.csr_array(
        (
            np.repeat([1.0, -1.0], [starts.size, ends.size]),
            (
                np.concatenate([sets.first[starts] - 1, sets.last[ends]]),
                np.concatenate([starts, ends]),
            ),
        ),
        shape=(k - 1, n),
    )
    return sp.csr_array(sp.vstack([steps, sp.csr_array(last[None, :])]))


def build_cone_program(
    labels: Vector, prior: Vector, q: float, sets: Intervals, unit: float
) -> Program:
    """The program over some intervals, the objective in units of `unit` (see the module's table).

    labels: (k,) increasing, about 1 in size; prior: (k,).
    """
    k, n, h = labels.size, sets.first.size, np.sqrt(unit)
    W, c, V = sets.moments(labels, prior, q)
    flow = build_flow_rows(sets, k, W / (1 + q))
    moved = flow @ sp.diags_array(np.where(np.abs(c) < _SMALL * h, 0.0, c / h))
    # τ = (upper - lower)/2, σ = moment/2, ρ = (upper + lower)/2
    spread = flow @ sp.diags_array(np.sqrt((1 + q) / W))
    rows = sp.csc_array(
        sp.block_array([[flow / 2, -flow / 2, None], [moved / 2, -moved / 2, spread / 2]])
    )
    rows.data[np.abs(rows.data) < MIN_COEFFICIENT] = 0.0
    rows.eliminate_zeros()
    right = np.concatenate(
        [np.zeros(k - 1), [1.0], np.diff(labels) / h * (1 + q) / q, [prior @ labels / h]]
    )
    mass = V / unit / (1 + q)
    loss = np.concatenate([1 + mass, 1 - mass, np.zeros(n)]) / 2
    free = np.full(3 * n, np.inf)
    data = Data(loss, 0.0, rows, right, right, -free, free, np.zeros(3 * n, dtype=bool))
    names, sizes = ("step", "whole", "steps", "mean"), (k - 1, 1, k - 1, 1)
    at = np.cumsum([0, *sizes])
    return Program(
        name=f"unbiased randomizer of {k} labels, {n} intervals",
        template=data,
        variables=tuple(
            Block(name, i * n, (n,)) for i, name in enumerate(("upper", "lower", "moment"))
        ),
        rows=tuple(Block(name, int(at[i]), (sizes[i],)) for i, name in enumerate(names)),
        cones=np.arange(3 * n).reshape(3, n).T,
    )


def masses_and_moments(
    labels: Vector, prior: Vector, q: float, sets: Intervals, unit: float, x: Vector
) -> Pair:
    """(t, s), each (n,), of a point x of `program`."""
    upper, lower, moment = x.reshape(3, -1) / 2 / (1 + q)
    t = np.maximum(upper - lower, 0.0)
    W, c, _ = sets.moments(labels, prior, q)
    return t, c * t + np.sqrt(unit * (1 + q) / W) * moment


def label_multipliers(
    labels: Vector, prior: Vector, q: float, unit: float, row_dual: Vector
) -> Pair:
    """(v, u) of the module's bound, from the multipliers of `program`."""

    def of_labels(multipliers: Vector) -> Vector:
        prices: Vector = prior * multipliers[-1]
        step = multipliers[:-1] * (1 + q) / q
        prices[1:] += step
        prices[:-1] -= step
        return prices

    k = labels.size
    v, u = of_labels(row_dual[:k]) * unit, of_labels(row_dual[k:]) * np.sqrt(unit)
    return v + u * labels, u


def prove_lower_bound(
    labels: Vector, prior: Vector, q: float, v: Vector, u: Vector
) -> tuple[Proof, Flags]:
    """(the best bound of (v, u) and of what they become when pooled; sets of the rays of negative reduced cost)."""
    pairs = [(v, u), pool_multipliers(labels, prior, v, u)]
    above = round_odds_up(q)
    priced = [
        (pair, lower_until_feasible(Quadratics.from_multipliers(labels, prior, *pair), above))
        for pair in pairs
    ]
    (v, u), (bound, rays) = max(priced, key=lambda candidate: candidate[1][0])
    return Proof(bound, v, u), rays


def pool_multipliers(labels: Vector, prior: Vector, v: Vector, u: Vector) -> Pair:
    """Multipliers for which every {y : f_y(o) < 0} is an interval: the mean, of neighbours whose roots do not rise.

    The roots l_y <= r_y of f_y rise with y where multipliers are those of an optimum on intervals. A solver leaves them
    open where labels hardly differ (a cluster far from another one): each alone is noise that no interval shows and
    other sets add up, while their sum is known well. Labels are pooled until both roots rise: of a pool's share
    p_y/Σp each takes Σ f. (Pool adjacent violators; any multipliers bound the optimum, so nothing is assumed.)
    """
    blocks: list[
        tuple[float, float, float, int, float, float]
    ] = []  # Σ f = a o² + b o + c, the first label, roots
    parts = (prior, -2 * prior * labels - u, prior * labels**2 - v + u * labels)
    for place, (a, b, c) in enumerate(zip(*(part.tolist() for part in parts), strict=True)):
        block = (a, b, c, place, *_roots(a, b, c))
        while blocks and (blocks[-1][4] > block[4] or blocks[-1][5] > block[5]):
            before = blocks.pop()
            a, b, c = (x + z for x, z in zip(before[:3], block[:3], strict=True))
            block = (a, b, c, before[3], *_roots(a, b, c))
        blocks.append(block)
    v, u = v.copy(), u.copy()
    ends = [*(block[3] for block in blocks[1:]), labels.size]
    for (a, b, c, first, *_), end in zip(blocks, ends, strict=True):
        if end - first > 1 and a > 0:
            share, y = prior[first:end] / a, labels[first:end]
            v[first:end] = -share * (a * y**2 + b * y + c)
            u[first:end] = -2 * prior[first:end] * y - share * b
    return v, u


def _roots(a: float, b: float, c: float) -> tuple[float, float]:
    """Between which a o² + b o + c < 0; without such o, twice where it is least."""
    if a <= 0:
        return (
            (-math.inf, -c / b) if b > 0 else (-c / b, math.inf) if b < 0 else (-math.inf, math.inf)
        )
    middle = -b / (2 * a)
    half = math.sqrt(max(0.0, middle * middle - c / a))
    return middle - half, middle + half
