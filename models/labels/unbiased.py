"""State and bound the unbiased label randomizer with the smallest expected squared loss.

`build_cone_program` states the problem as a second-order cone program over intervals of labels.
`masses_and_moments` and `label_multipliers` read its solution, and `prove_lower_bound` proves a
bound on the loss. `workbench.models.labels.unbiased_levels` chooses the intervals.

M[y,o] is the probability of the output o at the label y, p the prior, E [o | y] the mean output at
y, and 1_S the indicator of the set S. The label-DP paper is Ghazi et al. 2022, "Regression with
Label Differential Privacy".

    min Σ_y p_y E (o-y)²   s.t.  M is ε-DP for all pairs of labels,  E[o | y] = y
                                                          (Sec. 6 of the label-DP paper)

Every ε-DP channel is a mixture of rays: a ray has an output o, a set S of labels and a mass t >= 0,
and its column M[·,o] is t (1 + q 1_S), with q = e^ε - 1 (these are the extreme rays of
t_o <= M[y,o] <= e^ε t_o). For example, with labels 0, 1, 2 and S = {1, 2} the column is
(t, e^ε t, e^ε t). By Jensen's inequality all rays of the same S may be merged into one, with a mass
t_S, a moment s_S (mass times output) and the output s_S / t_S, without a larger loss.
Let w_yS = 1 + q 1[y in S] be the weight of the label y in the ray, W_S = Σ_y p_y w_yS,
c_S = Σ_y p_y w_yS y / W_S the centre and V_S = Σ_y p_y w_yS (y - c_S)² the variance. The program
over a family of sets is

    min Σ_S V_S t_S + W_S (s_S - c_S t_S)² / t_S
    s.t.   Σ_S w_yS t_S = 1,   Σ_S w_yS s_S = y   for every y.

In every optimum that we have seen the sets are intervals of sorted labels, whose ends rise from {0}
to {k-1}. This is not assumed: the lower bound covers all sets and all outputs. For intervals, the
difference of the rows of the labels y and y + 1 contains only the intervals that end at y or start
at y + 1. So the equations are stated as these differences (a flow), and one dense row for masses
and one for moments.

The lower bound is computed exactly (`workbench.models.labels.unbiased_bound`). Let v_y be the
multiplier of the mass row of the label y, and u_y that of its moment row. They define the
quadratics f_y(o) = p_y (o-y)² - v_y - u_y (o-y), from which the bound follows. Multipliers that the
solver leaves undetermined are pooled (`pool_multipliers`).

Outputs may lie outside the label range. Unbiasedness increases the loss by an order of magnitude
(labels 0..10 uniform, ε = 1: 98.0075420 against 8.40878638).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from workbench.models.labels.unbiased_bound import (
    Quadratics,
    lower_until_feasible,
    round_odds_up,
)
from workbench.solvers.arrays import Flags, Pair, Positions, Vector
from workbench.solvers.data import MIN_COEFFICIENT
from workbench.solvers.program import Block, Data, Program

# A scaled centre c_S / h below this counts as 0, since solvers would drop it. This changes the
# result by less than the error of a solver.
_MIN_CENTRE = 1e-8


@dataclass(frozen=True)
class Proof:
    """A lower bound on the expected squared loss, and the multipliers that prove it.

    Attributes:
        bound: the lower bound.
        v: multipliers of the rows of masses, shape (k,).
        u: multipliers of the rows of moments, shape (k,).
    """

    bound: float
    v: Vector
    u: Vector

    def rescale(
        self,
        labels: Vector,
        prior: Vector,
        q: float,
        width: float,
    ) -> Proof:
        """Return a proof whose bound holds for the original labels.

        The multipliers belong to labels that were shifted and divided by a width. They stay as they
        are in the result; only the bound changes.

        Args:
            labels: the original labels, shape (k,).
            prior: weights of the labels, shape (k,).
            q: e^ε - 1.
            width: number by which the labels were divided, in label units.
        """
        unit = Fraction(width)
        v = [x * unit**2 for x in map(Fraction, self.v)]
        u = [x * unit for x in map(Fraction, self.u)]
        quadratics = Quadratics.from_multipliers(labels, prior, v, u)
        bound, _ = lower_until_feasible(quadratics, round_odds_up(q))
        return replace(self, bound=bound)


@dataclass(frozen=True)
class Intervals:
    """A list of n sets of consecutive labels.

    Attributes:
        first: position of the first label of each set, shape (n,).
        last: position of the last label of each set, shape (n,).
    """

    first: Positions
    last: Positions

    @classmethod
    def all_intervals(cls, k: int) -> Intervals:
        """Return all k (k + 1)/2 intervals.

        Args:
            k: number of labels.
        """
        first, last = np.triu_indices(k)
        return cls(first, last)

    def moments(
        self,
        labels: Vector,
        prior: Vector,
        q: float,
    ) -> tuple[Vector, Vector, Vector]:
        """Compute W, c and V (module header) of every set, each of shape (n,).

        Args:
            labels: increasing labels, shape (k,).
            prior: weights of the labels, shape (k,).
            q: e^ε - 1.
        """

        def weighted_sums(values: Vector) -> Vector:
            """Sum `values`, shape (k,), with weight e^ε in each set and weight 1 outside it."""
            # Entry j is the sum of the first j values, so the last entry is the sum of all.
            sums = np.concatenate([[0.0], np.cumsum(values)])
            return np.asarray(sums[-1] + q * (sums[self.last + 1] - sums[self.first]))

        W = weighted_sums(prior)
        c = weighted_sums(prior * labels) / W
        V = weighted_sums(prior * labels**2) - W * c**2
        return W, c, np.maximum(V, 0.0)


def randomized_response_loss(
    labels: Vector,
    prior: Vector,
    q: float,
) -> float:
    """Compute the expected squared loss of unbiased k-ary randomized response.

    It is an upper bound on the optimum. The outputs are o_i = ((q + k) y_i - Σ y)/q.

    Args:
        labels: labels, shape (k,).
        prior: weights of the labels, shape (k,).
        q: e^ε - 1.
    """
    k = labels.size
    outputs = ((q + k) * labels - labels.sum()) / q
    squares = (outputs[None, :] - labels[:, None]) ** 2
    return float(prior @ (squares.sum(axis=1) + q * np.diag(squares)) / (q + k))


def build_flow_rows(
    sets: Intervals,
    k: int,
    last_row: Vector,
) -> sp.csr_array:
    """Build the differences of consecutive labels' rows, and a last row.

    Row y of the result, y = 0..k-2, has 1 for the sets that start at the label y + 1, and -1 for
    the sets that end at the label y.

    Args:
        sets: the n sets.
        k: number of labels.
        last_row: coefficients of the last row, shape (n,).

    Returns:
        The rows, shape (k, n).
    """
    n = sets.first.size
    starting_sets = np.flatnonzero(sets.first > 0)
    ending_sets = np.flatnonzero(sets.last < k - 1)
    values = np.repeat([1.0, -1.0], [starting_sets.size, ending_sets.size])
    rows = np.concatenate([sets.first[starting_sets] - 1, sets.last[ending_sets]])
    columns = np.concatenate([starting_sets, ending_sets])
    differences = sp.csr_array((values, (rows, columns)), shape=(k - 1, n))
    return sp.csr_array(sp.vstack([differences, sp.csr_array(last_row[None, :])]))


def build_cone_program(
    labels: Vector,
    prior: Vector,
    q: float,
    sets: Intervals,
    unit: float,
) -> Program:
    """Build the cone program over some intervals.

    The program states the fraction of the module header by a variable ρ with σ² <= ρ τ, where τ and
    σ are multiples of t and of s - c t. With h² = unit they are

        τ = (1+q) t,    σ = √((1+q) W) (s - c t)/h,    so that the cost of ρ is 1.

    columns         meaning
    upper, lower    ρ + τ and ρ - τ
    moment          2 σ; the three columns of a set are in a cone, which states σ² <= ρ τ

    rows            meaning
    step, steps     differences of consecutive labels' mass rows, and of their moment rows, divided
                    by q/(1+q)
    whole, mean     the mean under p of the mass rows, and of the moment rows

    Args:
        labels: increasing labels, about 1 in size, shape (k,).
        prior: weights of the labels, shape (k,).
        q: e^ε - 1.
        sets: the n intervals.
        unit: number by which the objective is divided, about the size of the optimum, because the
            tolerances of solvers are absolute.

    Returns:
        The program. Its columns are "upper", "lower" and "moment", n each.
    """
    k = labels.size
    n = sets.first.size
    h = np.sqrt(unit)
    W, c, V = sets.moments(labels, prior, q)
    flow = build_flow_rows(sets, k, W / (1 + q))
    scaled_centres = np.where(np.abs(c) < _MIN_CENTRE * h, 0.0, c / h)
    centre_flow = flow @ sp.diags_array(scaled_centres)
    # τ = (upper - lower)/2, σ = moment/2, ρ = (upper + lower)/2.
    moment_flow = flow @ sp.diags_array(np.sqrt((1 + q) / W))
    mass_rows = [flow / 2, -flow / 2, None]
    moment_rows = [centre_flow / 2, -centre_flow / 2, moment_flow / 2]
    rows = sp.csc_array(sp.block_array([mass_rows, moment_rows]))
    rows.data[np.abs(rows.data) < MIN_COEFFICIENT] = 0.0
    rows.eliminate_zeros()
    label_steps = np.diff(labels) / h * (1 + q) / q
    right = np.concatenate([np.zeros(k - 1), [1.0], label_steps, [prior @ labels / h]])
    mass_costs = V / unit / (1 + q)
    loss = np.concatenate([1 + mass_costs, 1 - mass_costs, np.zeros(n)]) / 2
    no_bound = np.full(3 * n, np.inf)
    is_integer = np.zeros(3 * n, dtype=bool)
    data = Data(
        loss,
        offset=0.0,
        A=rows,
        row_lower=right,
        row_upper=right,
        lower=-no_bound,
        upper=no_bound,
        integrality=is_integer,
    )
    variable_names = ("upper", "lower", "moment")
    variables = [Block(name, i * n, (n,)) for i, name in enumerate(variable_names)]
    row_blocks = [
        Block("step", 0, (k - 1,)),
        Block("whole", k - 1, (1,)),
        Block("steps", k, (k - 1,)),
        Block("mean", 2 * k - 1, (1,)),
    ]
    return Program(
        name=f"unbiased randomizer of {k} labels, {n} intervals",
        template=data,
        variables=tuple(variables),
        rows=tuple(row_blocks),
        cones=np.arange(3 * n).reshape(3, n).T,
    )


def masses_and_moments(
    labels: Vector,
    prior: Vector,
    q: float,
    sets: Intervals,
    unit: float,
    x: Vector,
) -> Pair:
    """Return the masses t and moments s of a point of the cone program.

    Args:
        labels: labels of the program, shape (k,).
        prior: weights of the labels, shape (k,).
        q: e^ε - 1.
        sets: the n intervals.
        unit: unit of the objective.
        x: the point, shape (3 n,).

    Returns:
        t and s, each of shape (n,).
    """
    # The equations of `build_cone_program`, solved for t and s.
    upper, lower, moment = x.reshape(3, -1) / 2 / (1 + q)
    t = np.maximum(upper - lower, 0.0)
    W, c, _ = sets.moments(labels, prior, q)
    return t, c * t + np.sqrt(unit * (1 + q) / W) * moment


def label_multipliers(
    labels: Vector,
    prior: Vector,
    q: float,
    unit: float,
    row_dual: Vector,
) -> Pair:
    """Return the multipliers v and u of the labels' rows.

    Args:
        labels: labels of the program, shape (k,).
        prior: weights of the labels, shape (k,).
        q: e^ε - 1.
        unit: unit of the objective.
        row_dual: multipliers of the cone program's rows, shape (2 k,).

    Returns:
        v and u, each of shape (k,).
    """

    def rows_to_labels(multipliers: Vector) -> Vector:
        """Convert multipliers of the differences and the mean to multipliers of the labels."""
        label_prices: Vector = prior * multipliers[-1]
        step = multipliers[:-1] * (1 + q) / q
        label_prices[1:] += step
        label_prices[:-1] -= step
        return label_prices

    k = labels.size
    v = rows_to_labels(row_dual[:k]) * unit
    u = rows_to_labels(row_dual[k:]) * np.sqrt(unit)
    return v + u * labels, u


def prove_lower_bound(
    labels: Vector,
    prior: Vector,
    q: float,
    v: Vector,
    u: Vector,
) -> tuple[Proof, Flags]:
    """Prove a lower bound from (v, u) and from these multipliers after pooling.

    Args:
        labels: labels, shape (k,).
        prior: weights of the labels, shape (k,).
        q: e^ε - 1.
        v: multipliers of the rows of masses, shape (k,).
        u: multipliers of the rows of moments, shape (k,).

    Returns:
        The proof with the larger bound, and its rays of negative reduced cost as flags of labels,
        shape (rays, k): each row is the set of one ray.
    """
    odds = round_odds_up(q)
    candidates = []
    for mass_prices, moment_prices in ((v, u), pool_multipliers(labels, prior, v, u)):
        quadratics = Quadratics.from_multipliers(labels, prior, mass_prices, moment_prices)
        bound, rays = lower_until_feasible(quadratics, odds)
        candidates.append((Proof(bound, mass_prices, moment_prices), rays))
    return max(candidates, key=lambda candidate: candidate[0].bound)


class _Pool(NamedTuple):
    """Consecutive labels with the sum a o² + b o + c of their quadratics f_y(o).

    The pool ends where the next one starts.

    Attributes:
        a: coefficient of o².
        b: coefficient of o.
        c: constant.
        first_label: position of the first label.
        low_root: lower end of {o : a o² + b o + c < 0}.
        high_root: upper end of this set. If it is empty, both ends are the minimiser.
    """

    a: float
    b: float
    c: float
    first_label: int
    low_root: float
    high_root: float


def pool_multipliers(
    labels: Vector,
    prior: Vector,
    v: Vector,
    u: Vector,
) -> Pair:
    """Return multipliers for which the set {y : f_y(o) < 0} is an interval for every output o.

    f_y is the quadratic of the module header. At an optimum on intervals both roots of f_y rise
    with y. Where labels hardly differ (in a cluster far from the other labels), a solver determines
    the sum of their multipliers accurately, but not each of them. Such errors lower the bound. So
    neighbouring labels whose roots do not rise are pooled, until both roots rise: each label of a
    pool gets the share p_y/Σp of the sum Σ f of the pool (the algorithm "pool adjacent violators").
    Any multipliers prove a bound, so nothing is assumed.

    Args:
        labels: labels, shape (k,).
        prior: weights of the labels, shape (k,).
        v: multipliers of the rows of masses, shape (k,).
        u: multipliers of the rows of moments, shape (k,).

    Returns:
        The new v and u, each of shape (k,).
    """
    pools: list[_Pool] = []
    linear_parts = -2 * prior * labels - u
    constant_parts = prior * labels**2 - v + u * labels
    coefficients = (prior, linear_parts, constant_parts)
    rows = zip(*(part.tolist() for part in coefficients), strict=True)
    for label, (a, b, c) in enumerate(rows):
        pool = _Pool(a, b, c, label, *_find_roots(a, b, c))
        while pools and (
            pools[-1].low_root > pool.low_root or pools[-1].high_root > pool.high_root
        ):
            last = pools.pop()
            a = last.a + pool.a
            b = last.b + pool.b
            c = last.c + pool.c
            pool = _Pool(a, b, c, last.first_label, *_find_roots(a, b, c))
        pools.append(pool)
    v = v.copy()
    u = u.copy()
    ends = [*(pool.first_label for pool in pools[1:]), labels.size]
    for (a, b, c, first, *_), end in zip(pools, ends, strict=True):
        if end - first > 1 and a > 0:
            share = prior[first:end] / a
            y = labels[first:end]
            v[first:end] = -share * (a * y**2 + b * y + c)
            u[first:end] = -2 * prior[first:end] * y - share * b
    return v, u


def _find_roots(
    a: float,
    b: float,
    c: float,
) -> tuple[float, float]:
    """Return the ends of {o : a o² + b o + c < 0}. If it is empty, both are the minimiser."""
    if a <= 0:
        if b > 0:
            return -math.inf, -c / b
        if b < 0:
            return -c / b, math.inf
        return -math.inf, math.inf
    middle = -b / (2 * a)
    half_width = math.sqrt(max(0.0, middle * middle - c / a))
    return middle - half_width, middle + half_width
