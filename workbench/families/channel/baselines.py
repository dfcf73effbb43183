"""Published mechanisms for a finite query at a budget, each with its least parameter, or why it cannot serve.

    geometric, truncated geometric,    noise on the answers by value, in steps of the grid that they lie on, clamped to
    discrete Gaussian, staircase       them and published as the nearest output; proven private on the line
                                       (`workbench.families.integer_laws`): D is how far neighbours are apart at most
    exponential                        Pr[j|i] ∝ r^|x_i - x_j|, the least r that the exact audit of its rows proves
    permute-and-flip                   answers in random order, each published with probability r^|x_i - x_j|
    randomized response                the own answer with probability p, e^ε times that of any other (or as δ allows)

Laws are exact; what they cost is enclosed to 100 bits or more, and the nearest float is told.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from solvers.arrays import Vector
from solvers.search import bisect
from workbench.exact.distribution import over_common
from workbench.exact.integer_law import IntegerLaw
from workbench.exact.numbers import ZERO, RationalPair, ball, ball_ends, exp_bounds, nearest_float
from workbench.exact.time_limit import go_on
from workbench.families.frontier_plan import NotApplicable
from workbench.families.integer_laws import SOURCES, FittedLaw, Number, best_law, clamped_rows
from workbench.families.loss_tables import Integers
from workbench.families.published import Published, Reference
from workbench.mechanisms.answer_grid import MOST_PLACES, AnswerGrid, answer_grid
from workbench.mechanisms.channel import Channel
from workbench.privacy.audit import holds
from workbench.privacy.claim import Claim
from workbench.privacy.notions import MassAboveRatio, Requirement, notion
from workbench.privacy.repair import threshold

if TYPE_CHECKING:
    from workbench.families.channel.request import ChannelRequest
    from workbench.families.recommendation import Query

_BITS = 112  # as `threshold`
_ENCLOSED = 256  # of every mass and loss
_FLIPPED = 60  # answers of permute-and-flip
_AUDITED = 12_000_000  # masses that an audit of a channel compares
_HALVINGS = 55  # of a bisection on a rate
_WEIGHED = 64  # bits of the least weight of a selection
_FAR = 100.0  # logarithm below the nearest weight at which the weights of a selection end


BudgetedQuery: TypeAlias = "ChannelRequest | Query"  # a finite query, what its outputs cost, and a budget


def budgets_of(query: BudgetedQuery) -> tuple[Any, Any]:
    """The ordered neighbouring positions, of directed ones each in its order alone, and their budgets."""
    q, epsilon = query.question, query.epsilon
    if epsilon is None or not notion(query.notion).per_distance:
        return [*q.ordered], epsilon
    pairs, distances = q.metric_pairs()
    both = [*pairs, *((j, i) for i, j in pairs)]
    return both, {pair: epsilon * d for pair, d in zip(both, distances * 2, strict=True)}


def epsilon_delta(query: BudgetedQuery) -> RationalPair:
    """ε and δ."""
    if query.epsilon is None or {*notion(query.notion).parameters} - {"epsilon", "delta"}:
        raise NotApplicable(f"its parameter is not known for the notion {query.notion}")
    return query.epsilon, query.delta or ZERO


def _bound(query: BudgetedQuery) -> Requirement:
    """The one bound on a ratio that a notion with a budget (ε, δ) puts on neighbours. Raises NotApplicable."""
    measured = notion(query.notion)
    if {*measured.parameters} == {"epsilon", "delta"} and not measured.per_distance:
        bounds = Claim(measured, *epsilon_delta(query)).requirements(())
        if len(bounds) == 1:
            return bounds[0]
    raise NotApplicable(f"its parameter is not known for the notion {query.notion}")


def expected(query: BudgetedQuery, rows: Iterable[Integers]) -> float:
    """The loss of rows of masses, integers or balls, of any sum."""
    from flint import arb, ctx

    with ctx.workprec(_ENCLOSED):
        each = []
        for row, loss in zip(rows, query.losses.values, strict=True):
            go_on()
            each.append(arb(row @ loss) / arb(row.sum()))
        prior = query.question.prior
        if prior is not None:
            each = [sum((ball(p) * v for p, v in zip(prior, each, strict=True)), arb(0))]
        low, high = ball_ends(max(each) / query.losses.unit)
    return nearest_float((low + high) / 2)


def _grid(query: BudgetedQuery) -> AnswerGrid:
    """The places of the answers. Raises NotApplicable."""
    if query.question.numbers is None:
        raise NotApplicable("it is for answers that are numbers")
    if notion(query.notion).per_distance:
        raise NotApplicable("its parameter is not known for budgets that differ between pairs")
    grid = answer_grid(query.question)
    if grid is None:
        raise NotApplicable(f"its answers are more than {MOST_PLACES} steps of their grid apart")
    return grid


def _clamped(name: str) -> Callable[[BudgetedQuery], Reference]:
    def cost(query: BudgetedQuery) -> Reference:
        grid = _grid(query)

        def rows(law: IntegerLaw, number: Number) -> Iterator[Any]:
            """The masses of the outputs for every answer; nothing is computed before the first is asked for, at the
            precision that is set then."""
            yield from grid.rows_of([*clamped_rows(law, grid.last + 1, number)], query.question.m)

        def roughly(fit: FittedLaw) -> float:
            """What it costs, in floating point."""
            each = [float(row @ loss) for row, loss in zip(rows(fit.law, float), query.losses.floats, strict=True)]
            prior = query.question.prior
            return max(each) if prior is None else float(np.dot([float(p) for p in prior], each))

        best = best_law(name, grid.reach, epsilon_delta(query), query.notion, roughly)
        loss = expected(query, rows(best.law, ball))
        return Reference(loss, best.holds(), best.mechanism, best.symbol, best.value, more=best.exact)

    return cost


def _on_the_grid(query: BudgetedQuery, largest: int | None) -> NDArray[Any]:
    """How many steps of their grid answers and outputs are apart; largest: answers up to which that is worked out."""
    grid = _grid(query)
    if not grid.same_outputs:
        raise NotApplicable("it publishes the answers themselves, and the outputs are others")
    epsilon_delta(query)  # refuses other budgets
    k = query.question.k
    if largest is not None and k > largest:
        raise NotApplicable(f"its masses are worked out for at most {largest} answers")
    if (masses := len(budgets_of(query)[0]) * k) > _AUDITED:
        raise NotApplicable(f"its audit compares {masses} masses, more than {_AUDITED}")
    columns = [grid.places[query.question.inputs.index(output)] for output in query.question.outputs]
    return np.asarray(np.abs(np.array(columns)[None, :] - np.array(grid.places)[:, None]))


def log_softmax(gaps: Vector, rate: float) -> Vector:
    """Logarithms of the masses of the exponential mechanism at e^(-rate gap). Shape of gaps."""
    weights = -rate * gaps  # an answer that is an output has the gap 0, and none is far below its row's largest
    top = weights.max(axis=1, keepdims=True)
    return np.asarray(weights - top - np.log(np.exp(weights - top).sum(axis=1, keepdims=True)))


def selection(
    gaps: Callable[[BudgetedQuery], NDArray[Any]],
    logs: Callable[[Vector, float], Vector],
    exact: Callable[[list[list[Any]], float], list[list[int]]],
    value: Callable[[float], float] = lambda rate: math.exp(-rate),
) -> Callable[[BudgetedQuery], Reference]:
    """A mechanism that selects an answer by weights e^(-rate gap): the largest rate by bisection on the logarithms of
    its masses, of which none is too small, then the exact audit.

    Args:
        gaps: Gives the distances (k, m) of a query.
        logs: (gaps, rate) -> logarithms of the masses.
        exact: (gaps, rate) -> rows of integers in proportion to the masses.
        value: rate -> the parameter that is told.

    Returns:
        The cost function of a published mechanism. It raises NotApplicable.
    """

    def cost(query: BudgetedQuery) -> Reference:
        gap, (_, delta) = gaps(query), epsilon_delta(query)
        pairs, epsilon = budgets_of(query)
        first, second = np.array(pairs).T
        budgets = [*epsilon.values()] if isinstance(epsilon, dict) else [epsilon]  # in the order of the pairs
        allowed = np.array([float(each) for each in budgets])
        is_mass = delta and isinstance(_bound(query), MassAboveRatio)  # the mass counts, not what is above the ratio

        def is_private(rate: float) -> bool:
            go_on()
            table = logs(gap, rate)
            losses = table[first] - table[second]
            if not delta:
                return bool((losses.max(axis=1) <= allowed).all())
            above = np.exp(np.where(losses > allowed[0], table[first], -np.inf))
            if not is_mass:
                above *= -np.expm1(np.minimum(allowed[0] - losses, 0.0))
            return bool(above.sum(axis=1).max() <= float(delta))

        high = (2 * float(allowed.max()) + 60.0) / float(gap[gap > 0].min())
        low, _ = bisect(lambda rate: not is_private(rate), 0.0, high, turns=_HALVINGS)
        for slack in (1e-12, 1e-9, 1e-7, 1e-5, 1e-3):
            rate = low * (1 - slack)
            mechanism = Channel.of(exact(gap.tolist(), rate), pairs, directed=True)
            if holds(mechanism, Claim.of(query.notion, mechanism, {"epsilon": epsilon, "delta": delta})):
                loss = expected(query, (row.array for row in mechanism.rows))
                return Reference(loss, True, mechanism, "r", value(rate))
        raise NotApplicable("no parameter of it was proven to meet the budget")

    return cost


def exponential_weights(gaps: list[list[Any]], rate: float) -> list[list[int]]:
    """Integers in proportion to e^(-rate gap), rounded upwards.

    Gaps that weigh less than e^-100 of the least one above 0 weigh that much: it changes no loss that a float shows,
    and keeps the integers short.
    """
    steps = sorted({gap for row in gaps for gap in row})
    nearest = next(gap for gap in steps if gap > 0)
    farthest = min(rate * steps[-1], rate * nearest + _FAR)
    bits = _WEIGHED + math.ceil(farthest / math.log(2))
    weights = {gap: exp_bounds(-Fraction(min(rate * gap, farthest)), bits)[1] for gap in steps}
    return [[weights[gap] for gap in row] for row in gaps]


def _flipped(gaps: Vector, rate: float) -> Vector:
    """ln Pr[j|i] of permute-and-flip: w_ij ∫ Π_{l != j} (1 - w_il t) dt over [0, 1], by a Gauss rule that is exact.

    The integral is at least 1/m, so that no logarithm is lost where a weight is 0 in floats.
    """
    weights = np.exp(-rate * gaps)
    nodes, shares = np.polynomial.legendre.leggauss(weights.shape[1] // 2 + 1)
    factors = 1 - weights[:, :, None] * ((nodes + 1) / 2)
    before, after = np.ones_like(factors), np.ones_like(factors)  # products, with no division by what may be 0
    for j in range(1, weights.shape[1]):
        before[:, j] = before[:, j - 1] * factors[:, j - 1]
        after[:, -1 - j] = after[:, -j] * factors[:, -j]
    return np.asarray(np.log((before * after) @ (shares / 2)) - rate * gaps)


def _flipped_rows(gaps: list[list[int]], rate: float) -> list[list[int]]:
    """Integers in proportion to the masses of permute-and-flip, of weights that are integers over that of gap 0."""
    return [_flipped_row(row) for row in exponential_weights(gaps, rate)]


def _flipped_row(weights: list[int]) -> list[int]:
    """With e_d the elementary symmetric sums of the other weights in units u, ∫ Π (u - w_l t) dt = Σ (-1)^d e_d
    u^(n-d)/(d + 1); times (n + 1)! all are integers."""
    unit, n = max(weights), len(weights) - 1
    sums = [1]
    for weight in weights:
        go_on()
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


def _randomized_response(query: BudgetedQuery) -> Reference:
    """Two rows differ in two outputs alone, and all pairs of rows alike: a channel of three outputs is audited."""
    q = query.question
    at = {output: j for j, output in enumerate(q.outputs)}
    own = [at.get(x, -1) for x in q.inputs]
    if min(own) < 0:
        raise NotApplicable("some answers are no outputs")
    bound, (epsilon, delta) = _bound(query), epsilon_delta(query)
    odds = Fraction(threshold(epsilon), 1 << _BITS)
    total = q.m - 1 + odds
    chance = max(odds / total, delta) if isinstance(bound, MassAboveRatio) else (delta * (q.m - 1) + odds) / total
    rest = (1 - chance) / (q.m - 1)
    two = [[chance, rest, (q.m - 2) * rest], [rest, chance, (q.m - 2) * rest]]
    pair = Channel.of(two if q.m > 2 else [row[:2] for row in two], [(0, 1), (1, 0)])
    claim = Claim.of(query.notion, pair, {"epsilon": epsilon, "delta": delta})
    (kept, other), _ = over_common([chance, rest])
    rows = np.full((q.k, q.m), other, dtype=object)
    rows[np.arange(q.k), own] = kept
    return Reference(expected(query, rows), holds(pair, claim), pair, "p", float(chance))


def _of_answers(query: BudgetedQuery) -> bool:
    """Whether those of distances are for a question: of answers that are no places."""
    return not query.question.planar


PUBLISHED = (
    *(Published(f"clamped {name}", source, _clamped(name), _of_answers) for name, source in SOURCES.items()),
    Published(
        "exponential",
        "McSherry and Talwar 2007",
        selection(partial(_on_the_grid, largest=None), log_softmax, exponential_weights),
        _of_answers,
    ),
    Published(
        "permute-and-flip",
        "McKenna and Sheldon 2020",
        selection(partial(_on_the_grid, largest=_FLIPPED), _flipped, _flipped_rows),
        _of_answers,
    ),
    Published("randomized response", "Warner 1965; Kairouz et al. 2014", _randomized_response),
)
