"""Published mechanisms for a finite query at a budget, each with its least parameter, or why it
cannot serve.

    geometric, truncated geometric,    noise on the answers by value, in steps of the grid that they lie on, clamped to
    discrete Gaussian, staircase       them and published as the nearest output; proven private on the line
                                       (`workbench.pipeline.integer_laws`): D is how far neighbours
                                       are apart at most
    exponential                        Pr[j|i] ∝ r^|x_i - x_j|, the least r that the exact audit of its rows proves
    permute-and-flip                   answers in random order, each published with probability r^|x_i - x_j|
    randomized response                the own answer with probability p, e^ε times that of any other (or as δ allows)

For places of the plane:

    planar exponential                 Pr[j|i] ∝ e^(-r d(x_i, x_j)), the largest r that the exact audit of its rows
                                       proves
    planar Laplace, remapped           noise of density ε²/2π e^(-ε|z|) (Andrés et al. 2013), to the nearest place of a
                                       full rectangular grid, from there to the place of least
                                       expected loss under the prior (Chatzikokolakis et al. 2017):
                                       ε-metric-private as it is, whatever follows; so neighbours D
                                       apart have ε D

The planar Laplace mass of a cell is that of four corners [0, a] x [0, b], each two integrals of the
radius' law over angles,

    1/2π ∫_0^φ 1 - (1 + ε a/cos θ) e^(-ε a/cos θ) dθ,    tan φ = b/a and for the other edge a/b,

enclosed by balls; beyond 60/ε there is less than 1e-24. The mechanism itself is the noise: only the
number reported is rounded.

Laws are exact. Their expected losses are enclosed to 100 bits or more, and the nearest float is
reported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache, partial
from itertools import pairwise
from operator import mul
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from workbench.errors import NotApplicable
from workbench.exact.distribution import to_common_denominator
from workbench.exact.integer_law import IntegerLaw
from workbench.exact.numbers import (
    ZERO,
    RationalPair,
    ball_ends,
    exp_bounds,
    make_ball,
    nearest_float,
)
from workbench.exact.objects import Pair
from workbench.exact.time_limit import ITEMS_PER_CLOCK_CHECK, check_time_limit
from workbench.mechanisms.channel import Channel
from workbench.notions import MassAboveRatio, Requirement
from workbench.pipeline.integer_laws import (
    LAW_SOURCES,
    FittedLaw,
    Number,
    compute_clamped_rows,
    fit_best_law,
)
from workbench.pipeline.loss_tables import Integers
from workbench.pipeline.published import Published, Reference
from workbench.privacy.audit import satisfies_claim
from workbench.privacy.claim import Claim
from workbench.privacy.repair import floor_scaled_exp
from workbench.questions.answer_grid import MAX_GRID_PLACES, AnswerGrid, find_answer_grid
from workbench.questions.places import Plane
from workbench.solvers.arrays import Vector
from workbench.solvers.search import bisect

if TYPE_CHECKING:
    from workbench.families.channel.request import ChannelRequest
    from workbench.pipeline.recommendation import Query

_THRESHOLD_BITS = 112  # Precision of `threshold`.
_LOSS_BITS = 256  # Masses and losses are enclosed at this precision.
_PLACE_BITS = 128  # Masses of cells of the plane are enclosed at this precision.
_MAX_FLIPPED_ANSWERS = 60  # Permute-and-flip is refused for more answers.
_MAX_AUDITED_MASSES = 12_000_000  # Channels whose audit compares more masses are refused.
_RATE_HALVINGS = 55  # A bisection on a rate halves its interval so often.
_WEIGHT_BITS = 64  # The least weight of a selection has so many bits.
_MAX_LOG_WEIGHT = (
    100.0  # Weights below the nearest one by more than this logarithm are raised to it.
)
_NOISE_REACH = 60  # Planar noise beyond this many times 1/ε is left out.

BudgetedQuery: TypeAlias = "ChannelRequest | Query"  # A finite query with its losses and a budget.


def _list_budgets(query: BudgetedQuery) -> tuple[Any, Any]:
    """List the ordered pairs of neighbouring positions, directed pairs in their order alone, and
    their budgets.
    """
    q, epsilon = query.question, query.claim.epsilon
    if epsilon is None or not query.claim.notion.is_per_distance:
        return [*q.ordered_pairs], epsilon
    pairs, distances = q.metric_pairs()
    both = [*pairs, *((j, i) for i, j in pairs)]
    return both, {pair: epsilon * d for pair, d in zip(both, distances * 2, strict=True)}


def _read_epsilon_delta(query: BudgetedQuery) -> RationalPair:
    """Return ε and δ. Raises NotApplicable for a notion with other parameters."""
    if query.claim.epsilon is None or {*query.claim.notion.parameters} - {"epsilon", "delta"}:
        raise NotApplicable(f"its parameter is not known for the notion {query.claim.notion.name}")
    return query.claim.epsilon, query.claim.delta or ZERO


def _find_ratio_bound(query: BudgetedQuery) -> Requirement:
    """Return the one bound on a ratio that a notion of (ε, δ) puts on neighbours.

    Raises NotApplicable.
    """
    measured = query.claim.notion
    if {*measured.parameters} == {"epsilon", "delta"} and not measured.is_per_distance:
        bounds = Claim(measured, *_read_epsilon_delta(query)).list_ratio_bounds(())
        if len(bounds) == 1:
            return bounds[0]
    raise NotApplicable(f"its parameter is not known for the notion {query.claim.notion.name}")


def _compute_enclosed_loss(query: BudgetedQuery, rows: Iterable[Integers]) -> float:
    """Compute the loss of rows of masses, which are integers or balls of any sum."""
    from flint import arb, ctx

    with ctx.workprec(_LOSS_BITS):
        each = []
        for position, (row, loss) in enumerate(zip(rows, query.losses.values, strict=True)):
            if position % ITEMS_PER_CLOCK_CHECK == 0:
                check_time_limit()
            each.append(arb(row @ loss) / arb(row.sum()))
        prior = query.question.prior
        if prior is not None:
            shares, unit = to_common_denominator(prior)
            each = [sum(map(mul, each, shares), arb(0)) / unit]
        low, high = ball_ends(max(each) / query.losses.unit)
    return nearest_float((low + high) / 2)


def _find_answer_grid(query: BudgetedQuery) -> AnswerGrid:
    """Return the places of the answers on their grid. Raises NotApplicable."""
    if query.question.numbers is None:
        raise NotApplicable("it is for answers that are numbers")
    if query.claim.notion.is_per_distance:
        raise NotApplicable("its parameter is not known for budgets that differ between pairs")
    grid = find_answer_grid(query.question)
    if grid is None:
        raise NotApplicable(
            f"its answers are more than {MAX_GRID_PLACES} steps of their grid apart"
        )
    return grid


def _make_clamped_noise(name: str) -> Callable[[BudgetedQuery], Reference]:
    def cost(query: BudgetedQuery) -> Reference:
        from flint import ctx

        grid = _find_answer_grid(query)

        def rows(law: IntegerLaw, number: Number) -> list[Any]:
            """List the masses of the outputs for every answer, at the precision set when called."""
            return grid.convert_rows(
                compute_clamped_rows(law, grid.last + 1, number), query.question.m
            )

        def roughly(fit: FittedLaw) -> float:
            """Compute the expected loss in floating point."""
            each = [
                float(row @ loss)
                for row, loss in zip(rows(fit.law, float), query.losses.floats, strict=True)
            ]
            prior = query.question.prior
            return max(each) if prior is None else float(np.dot([float(p) for p in prior], each))

        best = fit_best_law(
            name, grid.reach, _read_epsilon_delta(query), query.claim.notion.name, roughly
        )
        with ctx.workprec(_LOSS_BITS):
            masses = rows(best.law, make_ball)
        loss = _compute_enclosed_loss(query, masses)
        return Reference(
            loss,
            best.is_private(),
            best.mechanism,
            best.symbol,
            best.value,
            extra_columns=best.exact_values,
        )

    return cost


def _measure_grid_distances(query: BudgetedQuery, largest: int | None) -> NDArray[Any]:
    """Count the steps of the grid between answers and outputs; refuse more answers than `largest`."""
    grid = _find_answer_grid(query)
    if not grid.has_same_outputs:
        raise NotApplicable("it publishes the answers themselves, and the outputs are others")
    _read_epsilon_delta(query)  # refuses other budgets
    k = query.question.k
    if largest is not None and k > largest:
        raise NotApplicable(f"its masses are worked out for at most {largest} answers")
    if (masses := len(_list_budgets(query)[0]) * k) > _MAX_AUDITED_MASSES:
        raise NotApplicable(f"its audit compares {masses} masses, more than {_MAX_AUDITED_MASSES}")
    columns = [
        grid.places[query.question.inputs.index(output)] for output in query.question.outputs
    ]
    return np.asarray(np.abs(np.array(columns)[None, :] - np.array(grid.places)[:, None]))


def _log_exponential_masses(gaps: Vector, rate: float) -> Vector:
    """Compute the logarithms of the masses of the exponential mechanism at e^(-rate gap).

    Shape of gaps.
    """
    weights = (
        -rate * gaps
    )  # an answer that is an output has the gap 0, and none is far below its row's largest
    top = weights.max(axis=1, keepdims=True)
    return np.asarray(weights - top - np.log(np.exp(weights - top).sum(axis=1, keepdims=True)))


def _make_selection(
    gaps: Callable[[BudgetedQuery], NDArray[Any]],
    logs: Callable[[Vector, float], Vector],
    exact: Callable[[list[list[Any]], float], list[list[int]]],
    value: Callable[[float], float] = lambda rate: math.exp(-rate),
) -> Callable[[BudgetedQuery], Reference]:
    """Make the cost function of a mechanism that selects an answer by weights e^(-rate gap).

    The largest rate is found by bisection on the logarithms of the masses, which do not underflow.
    The exact audit then decides.

    Args:
        gaps: Gives the distances (k, m) of a query.
        logs: (gaps, rate) -> logarithms of the masses.
        exact: (gaps, rate) -> rows of integers in proportion to the masses.
        value: rate -> the parameter that is told.

    Returns:
        The cost function of a published mechanism. It raises NotApplicable.
    """

    def cost(query: BudgetedQuery) -> Reference:
        gap, (_, delta) = gaps(query), _read_epsilon_delta(query)
        pairs, epsilon = _list_budgets(query)
        first, second = np.array(pairs).T
        budgets = (
            [*epsilon.values()] if isinstance(epsilon, dict) else [epsilon]
        )  # in the order of the pairs
        allowed = np.array([float(each) for each in budgets])
        is_mass = delta and isinstance(
            _find_ratio_bound(query), MassAboveRatio
        )  # the mass counts, not what is above the ratio

        def is_private(rate: float) -> bool:
            check_time_limit()
            table = logs(gap, rate)
            losses = table[first] - table[second]
            if not delta:
                return bool((losses.max(axis=1) <= allowed).all())
            above = np.exp(np.where(losses > allowed[0], table[first], -np.inf))
            if not is_mass:
                above *= -np.expm1(np.minimum(allowed[0] - losses, 0.0))
            return bool(above.sum(axis=1).max() <= float(delta))

        high = (2 * float(allowed.max()) + 60.0) / float(gap[gap > 0].min())
        low, _ = bisect(lambda rate: not is_private(rate), 0.0, high, max_steps=_RATE_HALVINGS)
        for slack in (1e-12, 1e-9, 1e-7, 1e-5, 1e-3):
            rate = low * (1 - slack)
            mechanism = Channel.from_pairs(exact(gap.tolist(), rate), pairs, directed=True)
            if satisfies_claim(
                mechanism,
                Claim.for_mechanism(
                    query.claim.notion, mechanism, {"epsilon": epsilon, "delta": delta}
                ),
            ):
                loss = _compute_enclosed_loss(query, (row.array for row in mechanism.rows))
                return Reference(loss, True, mechanism, "r", value(rate))
        raise NotApplicable("no parameter of it was proven to meet the budget")

    return cost


def _round_exponential_weights(gaps: list[list[Any]], rate: float) -> list[list[int]]:
    """Return integers in proportion to e^(-rate gap), rounded upwards.

    Gaps that weigh less than e^-100 of the least one above 0 weigh that much: it changes no loss
    that a float shows, and keeps the integers short.
    """
    steps = sorted({gap for row in gaps for gap in row})
    nearest = next(gap for gap in steps if gap > 0)
    farthest = min(rate * steps[-1], rate * nearest + _MAX_LOG_WEIGHT)
    bits = _WEIGHT_BITS + math.ceil(farthest / math.log(2))
    weights = {gap: exp_bounds(-Fraction(min(rate * gap, farthest)), bits)[1] for gap in steps}
    return [[weights[gap] for gap in row] for row in gaps]


def _log_flipped_masses(gaps: Vector, rate: float) -> Vector:
    """Compute ln Pr[j|i] of permute-and-flip by an exact Gauss rule: w_ij ∫ Π_{l != j} (1 - w_il t)
    dt over [0, 1].

    The integral is at least 1/m, so that no logarithm is lost where a weight is 0 in floats.
    """
    weights = np.exp(-rate * gaps)
    nodes, shares = np.polynomial.legendre.leggauss(weights.shape[1] // 2 + 1)
    factors = 1 - weights[:, :, None] * ((nodes + 1) / 2)
    before, after = (
        np.ones_like(factors),
        np.ones_like(factors),
    )  # products, with no division by what may be 0
    for j in range(1, weights.shape[1]):
        before[:, j] = before[:, j - 1] * factors[:, j - 1]
        after[:, -1 - j] = after[:, -j] * factors[:, -j]
    return np.asarray(np.log((before * after) @ (shares / 2)) - rate * gaps)


def _weigh_flipped_rows(gaps: list[list[int]], rate: float) -> list[list[int]]:
    """Return integers in proportion to the masses of permute-and-flip."""
    return [_weigh_flipped_row(row) for row in _round_exponential_weights(gaps, rate)]


def _weigh_flipped_row(weights: list[int]) -> list[int]:
    """Return integers in proportion to the masses of one row.

    With e_d the elementary symmetric sums of the other weights in units u, ∫ Π (u - w_l t) dt = Σ
    (-1)^d e_d u^(n-d)/(d + 1); times (n + 1)! all are integers.
    """
    unit, n = max(weights), len(weights) - 1
    sums = [1]
    check_time_limit()
    for weight in weights:
        sums = [a + weight * b for a, b in zip([*sums, 0], [0, *sums], strict=True)]
    powers = [unit**d for d in range(n, -1, -1)]
    scale = math.factorial(n + 1)
    known: dict[int, int] = {}  # equal weights have equal masses
    for weight in weights:
        if weight not in known:
            others, total = 1, 0  # e_d without this weight: e_d - w e_(d-1) of the others
            for d in range(n + 1):
                total += (-1) ** d * others * powers[d] * (scale // (d + 1))
                others = sums[d + 1] - weight * others
            known[weight] = weight * total
    return [known[weight] for weight in weights]


def _evaluate_randomized_response(query: BudgetedQuery) -> Reference:
    """Audit a channel of three outputs: any two rows differ in two outputs alone, and all pairs of
    rows alike.
    """
    q = query.question
    at = {output: j for j, output in enumerate(q.outputs)}
    own = [at.get(x, -1) for x in q.inputs]
    if min(own) < 0:
        raise NotApplicable("some answers are no outputs")
    bound, (epsilon, delta) = _find_ratio_bound(query), _read_epsilon_delta(query)
    odds = Fraction(floor_scaled_exp(epsilon), 1 << _THRESHOLD_BITS)
    total = q.m - 1 + odds
    chance = (
        max(odds / total, delta)
        if isinstance(bound, MassAboveRatio)
        else (delta * (q.m - 1) + odds) / total
    )
    rest = (1 - chance) / (q.m - 1)
    two = [[chance, rest, (q.m - 2) * rest], [rest, chance, (q.m - 2) * rest]]
    pair = Channel.from_pairs(two if q.m > 2 else [row[:2] for row in two], [(0, 1), (1, 0)])
    claim = Claim.for_mechanism(query.claim.notion, pair, {"epsilon": epsilon, "delta": delta})
    (kept, other), _ = to_common_denominator([chance, rest])
    rows = np.full((q.k, q.m), other, dtype=object)
    rows[np.arange(q.k), own] = kept
    return Reference(
        _compute_enclosed_loss(query, rows), satisfies_claim(pair, claim), pair, "p", float(chance)
    )


def _is_for_answers(query: BudgetedQuery) -> bool:
    """Whether the answers of a question are no places."""
    return not query.question.is_planar


# Places of the plane.


def _find_plane(query: BudgetedQuery) -> Plane:
    q = query.question
    if not q.is_planar or q.inputs != q.outputs:
        raise NotApplicable("it is for places of the plane that are published themselves")
    if _read_epsilon_delta(query)[1]:
        raise NotApplicable("it is for delta = 0")
    return Plane(q.inputs, q.inputs, "L2")


def _measure_place_distances(query: BudgetedQuery) -> Vector:
    """Return the distances between places."""
    values, unit = _find_plane(query).losses()
    return np.asarray(values / unit, dtype=float)


def _evaluate_planar_laplace(query: BudgetedQuery) -> Reference:
    """Move the noise to the nearest place and from there to the best one; enclose its loss."""
    from flint import arb, ctx

    plane = _find_plane(query)
    if query.question.prior is None:
        raise NotApplicable("its remapping needs a prior")
    x, y, at = _find_rectangular_grid(plane)
    epsilon = _read_epsilon_delta(query)[0]
    if not query.is_per_distance:
        pairs, _ = _list_budgets(query)
        epsilon /= (
            Fraction(math.sqrt(max(int(plane.table[i, j]) for i, j in pairs)) * (1 + 1e-15))
            / plane.unit
        )
    elif query.question.norm == "Linf":
        raise NotApplicable("its noise is private per Euclidean distance, which is more than Linf")
    with ctx.workprec(_PLACE_BITS):
        law = _compute_cell_masses(_make_corner_masses(epsilon, plane.unit), x, y, at)
        weights = np.array([make_ball(p) for p in query.question.prior], dtype=object)
        joint = (weights[:, None] * law).T  # of cell and place
        floats = np.array([[float(mass.mid()) for mass in row] for row in joint.tolist()])
        best = (floats @ query.losses.floats).argmin(axis=1)
        rows = np.full((len(law), query.question.m), arb(0))
        for mass, o in zip(law.T, best.tolist(), strict=True):
            rows[:, o] += mass
    return Reference(_compute_enclosed_loss(query, rows), True, None, "epsilon", float(epsilon))


def _find_rectangular_grid(plane: Plane) -> tuple[list[int], list[int], list[Pair]]:
    """Return the columns and lines of a full rectangular grid, and the position of every point in
    them.
    """
    points = [(int(a), int(b)) for a, b in plane.first.tolist()]
    x, y = (sorted({point[axis] for point in points}) for axis in (0, 1))
    if len(points) != len(x) * len(y):
        raise NotApplicable("its cells are known for full rectangular grids alone")
    return x, y, [(x.index(a), y.index(b)) for a, b in points]


def _make_corner_masses(epsilon: Fraction, unit: int) -> Callable[[int, int], Any]:
    """Make the function of the masses of [0, a] x [0, b], odd in a and b, for lengths in halves of
    a unit.
    """
    from flint import acb, arb

    halves = 2 * unit
    far = math.ceil(_NOISE_REACH / epsilon * halves)

    @cache
    def edge(a: int, b: int) -> Any:
        if not a or not b:
            return arb(0)
        scaled = acb(make_ball(epsilon * a / halves))

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


def _compute_cell_masses(
    corners: Callable[[int, int], Any], x: list[int], y: list[int], at: list[Pair]
) -> Any:
    """Compute the mass of every place's cell from every place, (k, k) balls; outermost cells have
    no end.
    """
    far = 1 << 62

    columns, lines = ([-far, *map(sum, pairwise(values)), far] for values in (x, y))  # in halves
    law = np.empty((len(at), len(at)), dtype=object)
    for i, (a, b) in enumerate(at):
        corner = [[corners(u - 2 * x[a], v - 2 * y[b]) for v in lines] for u in columns]
        for j, (c, d) in enumerate(at):
            law[i, j] = corner[c + 1][d + 1] - corner[c][d + 1] - corner[c + 1][d] + corner[c][d]
    return law


def _is_for_places(query: BudgetedQuery) -> bool:
    """Whether the answers of a question are places."""
    return query.question.is_planar


PUBLISHED = (
    *(
        Published(f"clamped {name}", source, _make_clamped_noise(name), _is_for_answers)
        for name, source in LAW_SOURCES.items()
    ),
    Published(
        "exponential",
        "McSherry and Talwar 2007",
        _make_selection(
            partial(_measure_grid_distances, largest=None),
            _log_exponential_masses,
            _round_exponential_weights,
        ),
        _is_for_answers,
    ),
    Published(
        "permute-and-flip",
        "McKenna and Sheldon 2020",
        _make_selection(
            partial(_measure_grid_distances, largest=_MAX_FLIPPED_ANSWERS),
            _log_flipped_masses,
            _weigh_flipped_rows,
        ),
        _is_for_answers,
    ),
    Published(
        "randomized response", "Warner 1965; Kairouz et al. 2014", _evaluate_randomized_response
    ),
    Published(
        "planar Laplace, remapped",
        "Andrés et al. 2013; Chatzikokolakis et al. 2017",
        _evaluate_planar_laplace,
        _is_for_places,
        with_prior=True,
    ),
    Published(
        "planar exponential",
        "McSherry and Talwar 2007",
        _make_selection(
            _measure_place_distances, _log_exponential_masses, _round_exponential_weights, float
        ),
        _is_for_places,
    ),
)
