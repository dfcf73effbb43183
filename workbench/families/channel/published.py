"""Evaluate mechanisms from the literature for a finite query: each at its most accurate parameter
that is private at the budget.

`PUBLISHED` lists them. An entry takes a query with a budget and returns a `Reference`. This
contains the expected (or worst-case) loss, the mechanism, its parameter, and whether an exact audit
proves it private. An entry that does not apply raises NotApplicable with the reason. To add a
mechanism, add an entry to `PUBLISHED`; its colour in plots is in `frontier.SERIES`.

The answers x_i lie on a grid, and |x_i - x_j| counts steps of it.

geometric, truncated geometric,   Integer noise is added to the position of the answer on the grid.
discrete Gaussian, staircase      The sum is clamped to the range of the answers and rounded to the
                                  nearest output. Privacy is proven before clamping, for a
                                  sensitivity of D steps, where D is the largest distance of
                                  neighbours (`workbench.pipeline.integer_laws`).
exponential                       Pr[j|i] is proportional to r^|x_i - x_j|, 0 < r < 1, with the
                                  smallest r that the exact audit proves private.
permute-and-flip                  The answers are visited in random order. The visited answer j is
                                  published with probability r^|x_i - x_j|, else the next one is
                                  visited. r as above.
randomized response               The true answer has probability p, and each other output
                                  (1 - p)/(m - 1), where m is the number of outputs. p is the
                                  largest value that ε and δ allow; for δ = 0 it is e^ε times the
                                  probability of another output.

Mechanisms for places are in `published_places`.

Distributions are exact. Their expected losses are enclosed to 100 bits or more, and the nearest
float is reported.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.errors import NotApplicable
from workbench.exact.distribution import to_common_denominator
from workbench.exact.integer_law import IntegerLaw
from workbench.exact.numbers import make_ball
from workbench.exact.time_limit import check_time_limit
from workbench.families.channel.published_places import PLACE_MECHANISMS
from workbench.families.channel.selection import (
    LOSS_BITS,
    BudgetedQuery,
    compute_enclosed_loss,
    find_ratio_bound,
    list_budgets,
    log_exponential_masses,
    make_selection,
    read_epsilon_delta,
    round_exponential_weights,
)
from workbench.mechanisms.channel import Channel
from workbench.notions import MassAboveRatio
from workbench.pipeline.integer_laws import (
    LAW_SOURCES,
    FittedLaw,
    Number,
    compute_clamped_rows,
    fit_best_law,
)
from workbench.pipeline.published import Published, Reference
from workbench.privacy.audit import satisfies_claim
from workbench.privacy.claim import Claim
from workbench.privacy.repair import floor_scaled_exp
from workbench.questions.answer_grid import MAX_GRID_PLACES, AnswerGrid, find_answer_grid
from workbench.solvers.arrays import Vector

# The odds e^ε are rounded down to a multiple of 2^-112, as `floor_scaled_exp` returns them.
_THRESHOLD_BITS = 112
# Permute-and-flip is refused for more answers, because its masses are integers of many digits.
_MAX_FLIPPED_ANSWERS = 60
# Channels are refused if their audit compares more masses.
_MAX_AUDITED_MASSES = 12_000_000


def _is_for_answers(query: BudgetedQuery) -> bool:
    """Return whether the answers of a query are not places."""
    return not query.question.is_planar


def _find_grid_of_answers(query: BudgetedQuery) -> AnswerGrid:
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
    """Make the function that evaluates clamped integer noise for a query."""

    def evaluate(query: BudgetedQuery) -> Reference:
        """Return the noise of the family that is private for the query, with its exact loss."""
        from flint import ctx

        grid = _find_grid_of_answers(query)

        def list_rows(law: IntegerLaw, number: Number) -> list[Any]:
            """List the masses of the outputs for every answer, at the current precision."""
            grid_rows = compute_clamped_rows(law, grid.last + 1, number)
            return grid.convert_rows(grid_rows, query.question.m)

        def estimate_loss(fit: FittedLaw) -> float:
            """Compute the expected loss in floating point."""
            rows = zip(list_rows(fit.law, float), query.losses.floats, strict=True)
            row_losses = [float(row @ loss) for row, loss in rows]
            prior = query.question.prior
            if prior is None:
                return max(row_losses)
            return float(np.dot([float(p) for p in prior], row_losses))

        budget = read_epsilon_delta(query)
        notion_name = query.claim.notion.name
        fitted_law = fit_best_law(name, grid.reach, budget, notion_name, estimate_loss)
        with ctx.workprec(LOSS_BITS):
            masses = list_rows(fitted_law.law, make_ball)
        loss = compute_enclosed_loss(query, masses)
        return Reference(
            loss,
            is_certified=fitted_law.is_private(),
            mechanism=fitted_law.mechanism,
            symbol=fitted_law.symbol,
            value=fitted_law.value,
            extra_columns=fitted_law.exact_values,
        )

    return evaluate


def _measure_grid_distances(query: BudgetedQuery, max_answers: int | None) -> NDArray[Any]:
    """Return the distances of answers and outputs in steps of the grid, shape (k, m).

    Raises NotApplicable, also for more than `max_answers` answers. None: any number of answers.
    """
    grid = _find_grid_of_answers(query)
    if not grid.has_same_outputs:
        raise NotApplicable("it publishes the answers themselves, and the outputs are others")
    read_epsilon_delta(query)  # This refuses other budgets.
    question = query.question
    k = question.k
    if max_answers is not None and k > max_answers:
        raise NotApplicable(f"its masses are computed for at most {max_answers} answers")
    pairs, _ = list_budgets(query)
    mass_count = len(pairs) * k
    if mass_count > _MAX_AUDITED_MASSES:
        raise NotApplicable(
            f"its audit compares {mass_count} masses, more than {_MAX_AUDITED_MASSES}"
        )
    answer_places = np.array(grid.places)
    output_places = np.array([grid.places[question.inputs.index(o)] for o in question.outputs])
    return np.asarray(np.abs(output_places[None, :] - answer_places[:, None]))


@cache  # The rate of a mechanism is bisected, with the same nodes.
def _find_legendre_nodes(count: int) -> tuple[Vector, Vector]:
    """Return the nodes and weights of Gauss-Legendre quadrature on [-1, 1], (count,) each."""
    return np.polynomial.legendre.leggauss(count)


def _log_flipped_masses(distances: Vector, rate: float) -> Vector:
    """Compute ln Pr[j|i] of permute-and-flip, shape (k, m), for r = e^-rate.

    With the weights w_ij = e^(-rate distance_ij), Pr[j|i] is w_ij ∫ Π_{l != j} (1 - w_il t) dt over
    [0, 1]: t is the time at which j is visited, and each other answer l was visited before and
    accepted with probability w_il t. The integrand is a polynomial of t, for which Gauss-Legendre
    quadrature is exact. The integral is at least 1/m, so its logarithm is finite even where a
    weight is 0 in floats.
    """
    weights = np.exp(-rate * distances)
    # The integrand has the degree m - 1, and a number c of nodes is exact up to the degree 2c - 1.
    nodes, shares = _find_legendre_nodes(weights.shape[1] // 2 + 1)
    # The nodes are moved from [-1, 1] to t in [0, 1], and the weights of the nodes are halved.
    factors = 1 - weights[:, :, None] * ((nodes + 1) / 2)
    # Products of the factors before and after each one avoid a division by 0.
    products_before = np.ones_like(factors)
    products_after = np.ones_like(factors)
    for j in range(1, weights.shape[1]):
        products_before[:, j] = products_before[:, j - 1] * factors[:, j - 1]
        products_after[:, -1 - j] = products_after[:, -j] * factors[:, -j]
    integrals = (products_before * products_after) @ (shares / 2)
    return np.asarray(np.log(integrals) - rate * distances)


def _weigh_flipped_rows(distances: list[list[int]], rate: float) -> list[list[int]]:
    """Return integers in proportion to the masses of permute-and-flip, row by row.

    distances: distances of answers and outputs in steps of the grid; rate: -ln r.
    """
    return [_weigh_flipped_row(row) for row in round_exponential_weights(distances, rate)]


def _weigh_flipped_row(weights: list[int]) -> list[int]:
    """Return integers in proportion to the masses of one row of permute-and-flip.

    The weights w_l are integers, in proportion to e^(-rate distance). u is the largest of them and
    n the number of other outputs. The masses are those of `_log_flipped_masses` for the weights
    w_l/u, times u^(n+1): w_j ∫ Π_{l != j} (u - w_l t) dt over [0, 1]. With e_d the sum of all
    products of d of the other weights, this integral is Σ (-1)^d e_d u^(n-d)/(d + 1). Times
    (n + 1)! all terms are integers.
    """
    unit = max(weights)
    n = len(weights) - 1
    sums = [1]
    check_time_limit()
    for weight in weights:
        sums = [a + weight * b for a, b in zip([*sums, 0], [0, *sums], strict=True)]
    powers = [unit**d for d in range(n, -1, -1)]
    scale = math.factorial(n + 1)
    masses_by_weight: dict[int, int] = {}
    for weight in weights:
        if weight in masses_by_weight:
            continue
        # e_d of the other weights = e_d of all weights - weight * e_(d-1) of the other weights.
        sum_of_others = 1
        total = 0
        for d in range(n + 1):
            total += (-1) ** d * sum_of_others * powers[d] * (scale // (d + 1))
            sum_of_others = sums[d + 1] - weight * sum_of_others
        masses_by_weight[weight] = weight * total
    return [masses_by_weight[weight] for weight in weights]


def _evaluate_randomized_response(query: BudgetedQuery) -> Reference:
    """Evaluate randomized response by the audit of two rows.

    Two rows differ in two outputs only, so the other m - 2 outputs are merged into one. All pairs
    of rows are alike, so one pair is audited: a channel of two inputs and three outputs.
    """
    question = query.question
    m = question.m
    columns = {output: j for j, output in enumerate(question.outputs)}
    if not all(answer in columns for answer in question.inputs):
        raise NotApplicable("some answers are not outputs")
    answer_columns = [columns[answer] for answer in question.inputs]
    bound = find_ratio_bound(query)
    epsilon, delta = read_epsilon_delta(query)
    odds = Fraction(floor_scaled_exp(epsilon), 1 << _THRESHOLD_BITS)
    total_odds = m - 1 + odds
    # p is the mass of the true answer and q the mass of another output, p + (m - 1) q = 1. Under
    # PDP, p may exceed e^ε q if p <= δ. So p is δ, or its value for δ = 0 if that is larger. Under
    # DP, the largest p solves p - e^ε q = δ.
    if isinstance(bound, MassAboveRatio):
        answer_mass = max(odds / total_odds, delta)
    else:
        answer_mass = (delta * (m - 1) + odds) / total_odds
    other_mass = (1 - answer_mass) / (m - 1)
    two_rows = [[answer_mass, other_mass], [other_mass, answer_mass]]
    if m > 2:
        two_rows = [[*row, (m - 2) * other_mass] for row in two_rows]
    pair = Channel.from_pairs(two_rows, [(0, 1), (1, 0)])
    claim = Claim.for_mechanism(query.claim.notion, pair, {"epsilon": epsilon, "delta": delta})
    (answer_integer, other_integer), _ = to_common_denominator([answer_mass, other_mass])
    rows = np.full((question.k, m), other_integer, dtype=object)
    rows[np.arange(question.k), answer_columns] = answer_integer
    loss = compute_enclosed_loss(query, rows)
    return Reference(
        loss,
        is_certified=satisfies_claim(pair, claim),
        mechanism=pair,
        symbol="p",
        value=float(answer_mass),
    )


# What the letters in the notes of clamped noise mean. A step is the spacing of the answers' grid.
_NOISE_MEANINGS = {
    "geometric": "noise of k steps of the grid has probability proportional to α^|k|",
    "truncated geometric": "the noise is at most A steps of the grid",
    "staircase": "noise of k steps of the grid has the largest probability if |k| < r",
    "discrete Gaussian": "noise of k steps of the grid has probability proportional to e^(-k²/2σ²)",
}

PUBLISHED = (
    *(
        Published(
            f"clamped {name}",
            source,
            make_reference=_make_clamped_noise(name),
            serves=_is_for_answers,
            parameter_meaning=_NOISE_MEANINGS[name],
        )
        for name, source in LAW_SOURCES.items()
    ),
    Published(
        "exponential",
        "McSherry and Talwar 2007",
        make_reference=make_selection(
            partial(_measure_grid_distances, max_answers=None),
            compute_logs=log_exponential_masses,
            compute_integers=round_exponential_weights,
        ),
        serves=_is_for_answers,
        parameter_meaning="an output d steps of the grid away has probability proportional to r^d",
    ),
    Published(
        "permute-and-flip",
        "McKenna and Sheldon 2020",
        make_reference=make_selection(
            partial(_measure_grid_distances, max_answers=_MAX_FLIPPED_ANSWERS),
            compute_logs=_log_flipped_masses,
            compute_integers=_weigh_flipped_rows,
        ),
        serves=_is_for_answers,
        parameter_meaning="a visited output d steps of the grid away is accepted with probability "
        "r^d",
    ),
    Published(
        "randomized response",
        "Warner 1965; Kairouz et al. 2014",
        make_reference=_evaluate_randomized_response,
        parameter_meaning="p is the probability of the true answer",
    ),
    *PLACE_MECHANISMS,
)
