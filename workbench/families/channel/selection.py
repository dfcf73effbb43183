"""Find the most accurate private mechanism among those that select an output by weights
e^(-rate distance), such as the exponential mechanism; and helpers for published mechanisms.

A larger rate means less loss and less privacy. The largest private rate is found by bisection in
floating point, on the logarithms of the masses, which do not underflow. The exact audit of the
channel then decides. Expected losses are enclosed by balls (intervals with proven error bounds).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from operator import mul
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from workbench.errors import NotApplicable
from workbench.exact.distribution import to_common_denominator
from workbench.exact.numbers import ZERO, RationalPair, ball_ends, exp_bounds, nearest_float
from workbench.exact.time_limit import ITEMS_PER_CLOCK_CHECK, check_time_limit
from workbench.mechanisms.channel import Channel
from workbench.notions import MassAboveRatio, Requirement
from workbench.pipeline.loss_tables import Integers
from workbench.pipeline.published import Reference
from workbench.privacy.audit import satisfies_claim
from workbench.privacy.claim import Claim
from workbench.solvers.arrays import Vector
from workbench.solvers.search import bisect

if TYPE_CHECKING:
    from workbench.families.channel.request import ChannelRequest
    from workbench.pipeline.recommendation import Query

# Masses and losses are enclosed at this precision.
LOSS_BITS = 256
# A bisection on a rate halves its interval this often.
_RATE_HALVINGS = 55
# The bisection starts from an upper end of (2 ε + 60) / (smallest positive distance), where masses
# of other outputs are below e^-60.
_RATE_MARGIN = 60.0
# The rate is lowered by these shares, one after the other, until the audit proves the channel.
_RATE_SLACKS = (1e-12, 1e-9, 1e-7, 1e-5, 1e-3)
# The smallest weight of a selection has this many bits.
_WEIGHT_BITS = 64
# Weights below e^-100 times that of the smallest positive distance are raised to this value.
_MAX_LOG_WEIGHT = 100.0

# A finite query with its losses and a budget.
BudgetedQuery: TypeAlias = "ChannelRequest | Query"


def list_budgets(query: BudgetedQuery) -> tuple[Any, Any]:
    """List the ordered pairs of neighbouring positions, and their budgets.

    Args:
        query: a finite query with a budget.

    Returns:
        (pairs, budget): the pairs, in both orders unless directed. The budget is the ε of the
        claim (None if its notion has no ε), or a mapping from pairs to ε if ε is per unit of
        distance.
    """
    question = query.question
    epsilon = query.claim.epsilon
    if epsilon is None or not query.claim.notion.is_per_distance:
        return [*question.ordered_pairs], epsilon
    pairs, distances = question.metric_pairs()
    ordered_pairs = [*pairs, *((j, i) for i, j in pairs)]
    # The reversed pairs have the same distances.
    epsilons = [epsilon * distance for distance in [*distances, *distances]]
    return ordered_pairs, dict(zip(ordered_pairs, epsilons, strict=True))


def read_epsilon_delta(query: BudgetedQuery) -> RationalPair:
    """Return (ε, δ) of a budget. δ is 0 if the notion has none.

    Args:
        query: a finite query with a budget.

    Raises:
        NotApplicable: the notion has other parameters.
    """
    claim = query.claim
    if claim.epsilon is None or {*claim.notion.parameters} - {"epsilon", "delta"}:
        raise NotApplicable(f"its parameter is not known for the notion {claim.notion.name}")
    return claim.epsilon, claim.delta or ZERO


def find_ratio_bound(query: BudgetedQuery) -> Requirement:
    """Return the bound on a ratio that a notion with ε and δ puts on neighbours.

    Args:
        query: a finite query with a budget.

    Raises:
        NotApplicable: the notion has not exactly one such bound.
    """
    notion = query.claim.notion
    if {*notion.parameters} == {"epsilon", "delta"} and not notion.is_per_distance:
        bounds = Claim(notion, *read_epsilon_delta(query)).list_ratio_bounds(())
        if len(bounds) == 1:
            return bounds[0]
    raise NotApplicable(f"its parameter is not known for the notion {notion.name}")


def compute_enclosed_loss(query: BudgetedQuery, rows: Iterable[Integers]) -> float:
    """Compute the loss of a channel, enclosed by balls.

    Args:
        query: a finite query with losses and a prior.
        rows: masses of every input, integers or balls. Each row is divided by its sum.

    Returns:
        The float nearest to the expected loss, or to the worst-case loss without a prior.
    """
    from flint import arb, ctx

    with ctx.workprec(LOSS_BITS):
        row_losses = []
        for position, (row, loss) in enumerate(zip(rows, query.losses.values, strict=True)):
            if position % ITEMS_PER_CLOCK_CHECK == 0:
                check_time_limit()
            row_losses.append(arb(row @ loss) / arb(row.sum()))
        prior = query.question.prior
        if prior is None:
            total_loss = max(row_losses)
        else:
            shares, unit = to_common_denominator(prior)
            total_loss = sum(map(mul, row_losses, shares), arb(0)) / unit
        low, high = ball_ends(total_loss / query.losses.unit)
    return nearest_float((low + high) / 2)


def log_exponential_masses(distances: Vector, rate: float) -> Vector:
    """Compute the logarithms of the masses of the exponential mechanism, shape (k, m).

    Args:
        distances: distances of answers and outputs, shape (k, m).
        rate: rate > 0 of the weights, per unit of distance.
    """
    # An answer that is an output has the distance 0, so no row has only tiny weights.
    weights = -rate * distances
    largest_weights = weights.max(axis=1, keepdims=True)
    shifted = weights - largest_weights
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def round_exponential_weights(distances: list[list[Any]], rate: float) -> list[list[int]]:
    """Return integers in proportion to e^(-rate distance), rounded up.

    The weight of a distance is at least e^-100 times that of the smallest distance above 0. This
    changes no loss that a float shows, and keeps the integers short.

    Args:
        distances: distances of answers and outputs, k rows of m numbers.
        rate: rate > 0 of the weights, per unit of distance.
    """
    steps = sorted({distance for row in distances for distance in row})
    nearest_step = next(step for step in steps if step > 0)
    largest_exponent = min(rate * steps[-1], rate * nearest_step + _MAX_LOG_WEIGHT)
    bits = _WEIGHT_BITS + math.ceil(largest_exponent / math.log(2))
    weights = {}
    for step in steps:
        exponent = Fraction(min(rate * step, largest_exponent))
        _, weights[step] = exp_bounds(-exponent, bits)
    return [[weights[distance] for distance in row] for row in distances]


def _invert_exponential(rate: float) -> float:
    """Return r = e^-rate, the parameter of the geometric mechanism."""
    return math.exp(-rate)


class _PrivateSelection(NamedTuple):
    """The mechanism with the largest private rate for a question and a claim."""

    question: Any
    claim: Claim
    rate: float
    mechanism: Channel

    def is_for(self, query: BudgetedQuery) -> bool:
        """Return whether a query has this question and this claim."""
        return query.question is self.question and bool(query.claim == self.claim)


def make_selection(
    measure_distances: Callable[[BudgetedQuery], NDArray[Any]],
    compute_logs: Callable[[Vector, float], Vector],
    compute_integers: Callable[[list[list[Any]], float], list[list[int]]],
    convert_rate: Callable[[float], float] = _invert_exponential,
) -> Callable[[BudgetedQuery], Reference]:
    """Make the function that evaluates a mechanism with weights e^(-rate distance) for a query.

    Args:
        measure_distances: returns the distances of a query, shape (k, m).
        compute_logs: (distances, rate) -> logarithms of the masses, shape (k, m).
        compute_integers: (distances, rate) -> rows of integers in proportion to the masses.
        convert_rate: rate -> the parameter that is reported. Default: r = e^-rate.

    Returns:
        A function that returns the mechanism with the largest private rate, up to a relative
        1e-12. It raises NotApplicable if the mechanism does not apply to the query, or if no rate
        was proven private.
    """

    def find_private_mechanism(query: BudgetedQuery) -> _PrivateSelection:
        """Find the largest private rate and its mechanism. They do not depend on the loss."""
        question = query.question
        distances = measure_distances(query)
        _, delta = read_epsilon_delta(query)
        pairs, epsilon = list_budgets(query)
        first, second = np.array(pairs).T
        # There is one budget for all pairs, or one for each pair in their order.
        budgets = [*epsilon.values()] if isinstance(epsilon, dict) else [epsilon]
        epsilons = np.array([float(budget) for budget in budgets])
        # The notion bounds the mass above the ratio, not the part of it that exceeds the ratio.
        bounds_mass = delta and isinstance(find_ratio_bound(query), MassAboveRatio)

        def is_private(rate: float) -> bool:
            """Return whether the masses are private in floats."""
            check_time_limit()
            logs = compute_logs(distances, rate)
            privacy_losses = logs[first] - logs[second]
            if not delta:
                return bool((privacy_losses.max(axis=1) <= epsilons).all())
            # With δ, all pairs have the same ε.
            shared_epsilon, *_ = epsilons
            # The masses whose ratio exceeds e^ε, or the parts of them above e^ε times the other.
            excess = np.exp(np.where(privacy_losses > shared_epsilon, logs[first], -np.inf))
            if not bounds_mass:
                excess *= -np.expm1(np.minimum(shared_epsilon - privacy_losses, 0.0))
            return bool(excess.sum(axis=1).max() <= float(delta))

        nearest_distance = float(distances[distances > 0].min())
        high = (2 * float(epsilons.max()) + _RATE_MARGIN) / nearest_distance
        low, _ = bisect(
            is_above=lambda rate: not is_private(rate), low=0.0, high=high, max_steps=_RATE_HALVINGS
        )
        budget = {"epsilon": epsilon, "delta": delta}
        for slack in _RATE_SLACKS:
            rate = low * (1 - slack)
            rows = compute_integers(distances.tolist(), rate)
            mechanism = Channel.from_pairs(rows, pairs, directed=True)
            claim = Claim.for_mechanism(query.claim.notion, mechanism, budget)
            if satisfies_claim(mechanism, claim):
                return _PrivateSelection(question, query.claim, rate, mechanism)
        raise NotApplicable("no parameter of it was proven private at this budget")

    # The last fit, if any: the next query often has another loss only.
    last_fits: list[_PrivateSelection] = []

    def evaluate(query: BudgetedQuery) -> Reference:
        if not (last_fits and last_fits[0].is_for(query)):
            last_fits[:] = [find_private_mechanism(query)]
        (fit,) = last_fits
        return Reference(
            compute_enclosed_loss(query, (row.array for row in fit.mechanism.rows)),
            is_certified=True,
            mechanism=fit.mechanism,
            symbol="r",
            value=convert_rate(fit.rate),
        )

    return evaluate
