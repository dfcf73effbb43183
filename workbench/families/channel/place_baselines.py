"""Published mechanisms for places of the plane at a budget: what the best channel is compared with.

    planar exponential            Pr[j|i] ∝ e^(-r d(x_i, x_j)), the largest r that the exact audit of its rows proves
    planar Laplace, remapped      noise of density ε²/2π e^(-ε|z|) (Andrés et al. 2013), to the nearest place of a full
                                  rectangular grid, from there to the place of least expected loss under the prior
                                  (Chatzikokolakis et al. 2017): ε-metric-private as it is, whatever follows; so
                                  neighbours D apart have ε D

The mass of a cell is that of four corners [0, a] x [0, b], each two integrals of the radius' law over angles,

    1/2π ∫_0^φ 1 - (1 + ε a/cos θ) e^(-ε a/cos θ) dθ,    tan φ = b/a and for the other edge a/b,

enclosed by balls; beyond 60/ε there is less than 1e-24. The mechanism itself is the noise: nothing is rounded here but
the number told.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from workbench.exact.arrays import Vector
from workbench.exact.numbers import ball
from workbench.exact.objects import Pair
from workbench.families.channel.baselines import (
    BudgetedQuery,
    budgets_of,
    epsilon_delta,
    expected,
    exponential_weights,
    log_softmax,
    selection,
)
from workbench.families.frontier_plan import NotApplicable
from workbench.families.published import Published, Reference
from workbench.mechanisms.plane import Plane

_FAR = 60  # times 1/ε
_ENCLOSED = 128


def _places(query: BudgetedQuery) -> Plane:
    q = query.question
    if not q.planar or q.inputs != q.outputs:
        raise NotApplicable("it is for places of the plane that are published themselves")
    if epsilon_delta(query)[1]:
        raise NotApplicable("it is for delta = 0")
    return Plane(q.inputs, q.inputs, "L2")


def _gaps(query: BudgetedQuery) -> Vector:
    """Distances of places."""
    values, unit = _places(query).losses()
    return np.asarray(values / unit, dtype=float)


def laplace(query: BudgetedQuery) -> Reference:
    """The noise, to the nearest place, to the best one; its loss enclosed."""
    from flint import arb, ctx

    plane = _places(query)
    if query.question.prior is None:
        raise NotApplicable("its remapping needs a prior")
    x, y, at = _grid(plane)
    epsilon = epsilon_delta(query)[0]
    if not query.per_distance:
        pairs, _ = budgets_of(query)
        epsilon /= Fraction(math.sqrt(max(int(plane.table[i, j]) for i, j in pairs)) * (1 + 1e-15)) / plane.unit
    elif query.question.norm == "Linf":
        raise NotApplicable("its noise is private per Euclidean distance, which is more than Linf")
    with ctx.workprec(_ENCLOSED):
        law = _law(_corners(epsilon, plane.unit), x, y, at)
        weights = np.array([ball(p) for p in query.question.prior], dtype=object)
        joint = (weights[:, None] * law).T  # of cell and place
        floats = np.array([[float(mass.mid()) for mass in row] for row in joint.tolist()])
        best = (floats @ query.losses.floats).argmin(axis=1)
        rows = np.full((len(law), query.question.m), arb(0))
        for mass, o in zip(law.T, best.tolist(), strict=True):
            rows[:, o] += mass
    return Reference(expected(query, rows), True, None, "epsilon", float(epsilon))


def _grid(plane: Plane) -> tuple[list[int], list[int], list[Pair]]:
    """(columns, lines, the place of every point in them) of a full rectangular grid."""
    points = [(int(a), int(b)) for a, b in plane.first.tolist()]
    x, y = (sorted({point[axis] for point in points}) for axis in (0, 1))
    if len(points) != len(x) * len(y):
        raise NotApplicable("its cells are known for full rectangular grids alone")
    return x, y, [(x.index(a), y.index(b)) for a, b in points]


def _corners(epsilon: Fraction, unit: int) -> Callable[[int, int], Any]:
    """The masses of [0, a] x [0, b], odd in a and b, for lengths in halves of a unit."""
    from flint import acb, arb

    halves = 2 * unit
    far = math.ceil(_FAR / epsilon * halves)

    @cache
    def edge(a: int, b: int) -> Any:
        if not a or not b:
            return arb(0)
        scaled = acb(ball(epsilon * a / halves))

        def mass(angle: Any, _: Any) -> Any:
            reach = scaled / angle.cos()
            return 1 - (1 + reach) * (-reach).exp()

        angle = acb((arb(b) / arb(a)).atan())
        return acb.integral(mass, acb(0), angle).real / (2 * arb.pi())

    def corner(a: int, b: int) -> Any:
        if a < 0 or b < 0:
            return corner(abs(a), abs(b)) * ((1 if a >= 0 else -1) * (1 if b >= 0 else -1))
        a, b = min(a, far), min(b, far)
        return edge(a, b) + edge(b, a)

    return corner


def _law(corners: Callable[[int, int], Any], x: list[int], y: list[int], at: list[Pair]) -> Any:
    """The mass of every place's cell from every place; outermost cells have no end. (k, k) balls."""
    far = 1 << 62

    columns, lines = ([-far, *map(sum, pairwise(values)), far] for values in (x, y))  # in halves
    law = np.empty((len(at), len(at)), dtype=object)
    for i, (a, b) in enumerate(at):
        corner = [[corners(u - 2 * x[a], v - 2 * y[b]) for v in lines] for u in columns]
        for j, (c, d) in enumerate(at):
            law[i, j] = corner[c + 1][d + 1] - corner[c][d + 1] - corner[c + 1][d] + corner[c][d]
    return law


def _of_places(query: BudgetedQuery) -> bool:
    return query.question.planar


PUBLISHED = (
    Published(
        "planar Laplace, remapped",
        "Andrés et al. 2013; Chatzikokolakis et al. 2017",
        laplace,
        _of_places,
        with_prior=True,
    ),
    Published(
        "planar exponential",
        "McSherry and Talwar 2007",
        selection(_gaps, log_softmax, exponential_weights, float),
        _of_places,
    ),
)
