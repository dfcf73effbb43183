"""Evaluate mechanisms from the literature for places of the plane, each at its most accurate
parameter that is private at the budget.

planar exponential         Pr[j|i] is proportional to e^(-r d(x_i, x_j)), where d is the Euclidean
                           distance of places, with the largest r that the exact audit proves
                           private
planar Laplace, remapped   Noise z of density ε²/2π e^(-ε|z|) (Andrés et al. 2013) is added. The
                           noisy place is moved to the nearest place of a full rectangular grid.
                           From there it is moved to the place of smallest expected loss under the
                           prior (Chatzikokolakis et al. 2017). The noisy place is private with ε
                           times the distance, and moving it is post-processing. So for neighbours
                           at most D apart under a budget ε, the noise has the parameter ε/D

Planar Laplace noise falls into a rectangular cell with a probability that is computed from four
rectangles [0, a] x [0, b] with a corner at the origin. Such a rectangle is cut along its diagonal
into two triangles. The length of the noise is at most R with probability 1 - (1 + ε R) e^(-ε R). At
the angle θ the edge at distance a has the distance R = a/cos θ from the origin. So a triangle has
the probability

    1/2π ∫_0^φ 1 - (1 + ε a/cos θ) e^(-ε a/cos θ) dθ,    tan φ = b/a,

and for the other one a and b are exchanged. The integrals are enclosed by balls (intervals with
proven error bounds). Beyond 60/ε the noise has a probability of less than 1e-24. The mechanism
itself is the noise: only the reported number is rounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from workbench.errors import NotApplicable
from workbench.exact.numbers import make_ball
from workbench.exact.objects import Pair
from workbench.families.channel.selection import (
    BudgetedQuery,
    compute_enclosed_loss,
    list_budgets,
    log_exponential_masses,
    make_selection,
    read_epsilon_delta,
    round_exponential_weights,
)
from workbench.pipeline.published import Published, Reference
from workbench.questions.places import Plane
from workbench.solvers.arrays import Vector

# Masses of cells of the plane are enclosed at this precision.
_PLACE_BITS = 128
# Planar noise beyond this many times 1/ε is left out, because its mass is below 1e-24.
_MAX_NOISE_DISTANCE = 60
# The outermost cells extend to this distance, in halves of a unit, which stands for infinity.
_OUTERMOST_END = 1 << 62
# The largest distance of neighbours is rounded up by this share.
_DISTANCE_MARGIN = 1e-15


def _is_for_places(query: BudgetedQuery) -> bool:
    """Return whether the answers of a query are places."""
    return query.question.is_planar


def _read_plane(query: BudgetedQuery) -> Plane:
    """Return the places of a query at δ = 0. Raises NotApplicable."""
    question = query.question
    if not question.is_planar or question.inputs != question.outputs:
        raise NotApplicable("it is for places of the plane that are published themselves")
    _, delta = read_epsilon_delta(query)
    if delta:
        raise NotApplicable("it is for delta = 0")
    return Plane(question.inputs, question.inputs, "L2")


def _measure_place_distances(query: BudgetedQuery) -> Vector:
    """Return the distances between places, shape (k, k)."""
    values, unit = _read_plane(query).losses()
    return np.asarray(values / unit, dtype=float)


def _evaluate_planar_laplace(query: BudgetedQuery) -> Reference:
    """Move the noise to the nearest place and from there to the best one, and enclose its loss."""
    from flint import arb, ctx

    plane = _read_plane(query)
    prior = query.question.prior
    if prior is None:
        raise NotApplicable("its remapping needs a prior")
    columns, lines, positions = _find_rectangular_grid(plane)
    epsilon = _find_noise_epsilon(query, plane)
    with ctx.workprec(_PLACE_BITS):
        corner_mass = _make_corner_masses(epsilon, plane.unit)
        law = _compute_cell_masses(corner_mass, columns, lines, positions)
        weights = np.array([make_ball(p) for p in prior], dtype=object)
        # Row c has the probability of each true place together with noise that leads to cell c.
        joint_masses = (weights[:, None] * law).T
        floats = np.array([[float(mass.mid()) for mass in row] for row in joint_masses.tolist()])
        best_places = (floats @ query.losses.floats).argmin(axis=1)
        rows = np.full((len(law), query.question.m), arb(0))
        for masses, place in zip(law.T, best_places.tolist(), strict=True):
            rows[:, place] += masses
    loss = compute_enclosed_loss(query, rows)
    return Reference(
        loss, is_certified=True, mechanism=None, symbol="epsilon", value=float(epsilon)
    )


def _find_noise_epsilon(query: BudgetedQuery, plane: Plane) -> Fraction:
    """Return the ε of the noise per unit of Euclidean distance. Raises NotApplicable."""
    epsilon, _ = read_epsilon_delta(query)
    if query.is_per_distance:
        if query.question.norm == "Linf":
            raise NotApplicable(
                "its noise is private per Euclidean distance, which is more than Linf"
            )
        return epsilon
    pairs, _ = list_budgets(query)
    largest_square = max(int(plane.table[i, j]) for i, j in pairs)
    largest_distance = Fraction(math.sqrt(largest_square) * (1 + _DISTANCE_MARGIN)) / plane.unit
    return epsilon / largest_distance


def _find_rectangular_grid(plane: Plane) -> tuple[list[int], list[int], list[Pair]]:
    """Return (x of the columns, y of the lines, [(column, line) of every point]) of a full
    rectangular grid.

    Raises NotApplicable if the points are no such grid.
    """
    points = [(int(a), int(b)) for a, b in plane.first.tolist()]
    x = sorted({a for a, _ in points})
    y = sorted({b for _, b in points})
    if len(points) != len(x) * len(y):
        raise NotApplicable("its cells are known for full rectangular grids only")
    return x, y, [(x.index(a), y.index(b)) for a, b in points]


def _make_corner_masses(epsilon: Fraction, unit: int) -> Callable[[int, int], Any]:
    """Make the function (a, b) -> mass of the rectangle [0, a] x [0, b] under the noise.

    A negative a or b changes the sign of the mass. Lengths are in halves of a unit, and there are
    `unit` units in one unit of distance.
    """
    from flint import acb, arb

    # Number of halves of a unit in one unit of distance.
    halves = 2 * unit
    max_length = math.ceil(_MAX_NOISE_DISTANCE / epsilon * halves)

    @cache
    def integrate_edge(a: int, b: int) -> Any:
        """Return the mass of the triangle between the origin and the edge at the distance a of
        length b.
        """
        if not a or not b:
            return arb(0)
        scaled_length = acb(make_ball(epsilon * a / halves))

        def radial_mass(angle: Any, _: Any) -> Any:
            """Return the probability that noise at an angle does not reach beyond the edge."""
            radius = scaled_length / angle.cos()
            return 1 - (1 + radius) * (-radius).exp()

        angle = acb((arb(b) / arb(a)).atan())
        return acb.integral(radial_mass, acb(0), angle).real / (2 * arb.pi())

    def corner_mass(a: int, b: int) -> Any:
        """Return the mass of a corner, negative if exactly one length is negative."""
        if a < 0 or b < 0:
            is_same_sign = (a >= 0) == (b >= 0)
            mass = corner_mass(abs(a), abs(b))
            return mass if is_same_sign else -mass
        a = min(a, max_length)
        b = min(b, max_length)
        return integrate_edge(a, b) + integrate_edge(b, a)

    return corner_mass


def _compute_cell_masses(
    corner_mass: Callable[[int, int], Any],
    columns: list[int],
    lines: list[int],
    positions: list[Pair],
) -> Any:
    """Compute the mass of the cell of place j if noise is added to place i, (k, k) balls.

    columns, lines: the different x and y of the grid, increasing; positions: column and line of
    every place. The outermost cells have no end. Ends of cells are in halves of a unit.
    """
    column_ends = _list_cell_ends(columns)
    line_ends = _list_cell_ends(lines)
    law = np.empty((len(positions), len(positions)), dtype=object)
    for i, (a, b) in enumerate(positions):
        # The place itself is at 2 x and 2 y in halves of a unit.
        widths = [u - 2 * columns[a] for u in column_ends]
        heights = [v - 2 * lines[b] for v in line_ends]
        corners = [list(map(corner_mass, [width] * len(heights), heights)) for width in widths]
        for j, (c, d) in enumerate(positions):
            # corners[u][v] is the mass of [0, widths[u]] x [0, heights[v]].
            upper_difference = corners[c + 1][d + 1] - corners[c][d + 1]
            law[i, j] = upper_difference - corners[c + 1][d] + corners[c][d]
    return law


def _list_cell_ends(values: list[int]) -> list[int]:
    """Return the ends of cells around increasing values, in halves of a unit."""
    # Two neighbours meet in the middle. In halves of a unit this is their sum.
    return [-_OUTERMOST_END, *map(sum, pairwise(values)), _OUTERMOST_END]


PLACE_MECHANISMS = (
    Published(
        "planar Laplace, remapped",
        "Andrés et al. 2013; Chatzikokolakis et al. 2017",
        make_reference=_evaluate_planar_laplace,
        serves=_is_for_places,
        with_prior=True,
        parameter_meaning="epsilon per unit of distance",
    ),
    Published(
        "planar exponential",
        "McSherry and Talwar 2007",
        make_reference=make_selection(
            _measure_place_distances,
            log_exponential_masses,
            round_exponential_weights,
            convert_rate=float,  # The rate r itself is reported.
        ),
        serves=_is_for_places,
        parameter_meaning="an output at distance d has probability proportional to e^(-r d)",
    ),
)
