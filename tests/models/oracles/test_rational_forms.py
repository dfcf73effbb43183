"""Tests of closed forms as rational functions of x = e^ε.

They are compared with the numerical oracles at points, and with the results of `wb.formula`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import fmpz_poly

import workbench as wb
from workbench.models.convex.requirements import HOCKEY_STICK
from workbench.models.oracles import finite_channel, rational_forms
from workbench.models.oracles.bounded_difference import column_cut_law
from workbench.models.oracles.hops import dp_law
from workbench.models.oracles.question import build_question
from workbench.models.oracles.single_distance import single_distance_law
from workbench.papers.formulas import (
    compare_bins,
    compare_bounded_difference,
    compare_counts,
    compare_responses,
    compare_single_distance,
)
from workbench.solvers.exact.polynomials import ZERO, Affine

# Sizes of a group, and shifts.
GROUPS: list[tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]] = [
    ((9,), ((1,), (2,), (3,))),
    ((8,), ((3,), (5,))),
    ((12,), ((2,), (10,))),
    ((3, 4), ((0, 1), (1, 0))),
    ((5, 5), ((0, 1), (0, 4), (1, 0), (4, 0))),
]


@pytest.mark.parametrize(("sizes", "shifts"), GROUPS)
def test_the_hop_law_is_the_formula_for_every_epsilon_and_delta(sizes: Any, shifts: Any) -> None:
    law = rational_forms.hop_law(sizes, shifts)
    for epsilon, delta in ((0.3, 0.0), (1.0, 0.2), (2.5, 0.01)):
        question = build_question(
            sizes, shifts, is_directed=True, epsilon=epsilon, delta=delta, requires=HOCKEY_STICK
        )
        value = float(law(Fraction(math.exp(epsilon)), Fraction(delta)))
        assert value == pytest.approx(dp_law(question).value, rel=1e-12)
    noise = wb.ModuloNoise(sizes=sizes, shifts=shifts, directed=True)
    (piece,) = wb.formula(noise, delta="0..1").pieces
    assert piece.value == law
    assert piece.high is None


@pytest.mark.parametrize(
    ("n", "budgets"),
    [(5, {1: 1, 2: 2}), (7, {1: "1/2", 3: 1}), (8, {2: "3/2", 3: 1}), (6, {1: 2, 2: 1, 3: "1/2"})],
)
def test_the_hop_law_of_several_budgets_is_the_formula(n: int, budgets: dict[int, Any]) -> None:
    """The mass of η is proportional to e^(-ε d(η)), where d is the smallest sum of budgets from 0.

    A δ > 0 multiplies the error rate by 1 - δ.
    """
    lengths = {shift: Fraction(budget) for shift, budget in budgets.items()}
    distances = {0: Fraction(0)}
    for _ in range(n + 1):
        for eta, distance in [*distances.items()]:
            for shift, length in lengths.items():
                target = (eta + shift) % (n + 1)
                target_distance = distances.get(target, distance + length)
                distances[target] = min(target_distance, distance + length)
    steps = math.lcm(*(length.denominator for length in lengths.values()))
    max_distance = max(distances.values())
    powers = [int((max_distance - distance) * steps) for distance in distances.values()]
    total = sum((fmpz_poly([0] * power + [1]) for power in powers), ZERO)
    total_without_zero = total - fmpz_poly([0] * max(powers) + [1])
    law = Affine.from_ratio(total_without_zero, -total_without_zero, total)
    formula = wb.formula(
        wb.ModuloNoise(n=n, shifts=[*budgets], directed=True), epsilon=budgets, delta="0..1"
    )
    assert formula.steps == steps
    assert [(piece.value, piece.high) for piece in formula.pieces] == [(law, None)]
    budgets_at_point: dict[tuple[int, ...], float] = {
        (shift,): 0.7 * float(length) for shift, length in lengths.items()
    }
    question = build_question(
        sizes=(n + 1,),
        shifts=tuple(budgets_at_point),
        is_directed=True,
        epsilon=budgets_at_point,
        delta=0.1,
        requires=HOCKEY_STICK,
    )
    low, high = formula("0.7", "0.1")  # Rationals that enclose the value.
    assert dp_law(question).value == pytest.approx(float((low + high) / 2), rel=1e-12)


@pytest.mark.parametrize(("n", "mu"), [(4, 1), (7, 2), (8, 3), (11, 1)])
def test_lemma_3_and_theorem_2_equal_the_oracle(n: int, mu: int) -> None:
    length = (n + 1) // math.gcd(n + 1, mu)
    x = Fraction(math.exp(0.8))
    pieces = rational_forms.theorem2(length)  # The upper end of δ and the error rate of each piece.
    lows = [Affine.from_number(0), *(high for high, _ in pieces)]
    for low, (high, value) in zip(lows, pieces, strict=False):
        delta = (low(x) + high(x)) / 2
        law = single_distance_law(sizes=(n + 1,), shift=(mu,), epsilon=0.8, delta=float(delta))
        assert float(value(x, delta)) == pytest.approx(law.value, rel=1e-12)
    _, error_rate_of_first_piece = pieces[0]
    hop_law_at_delta_0 = rational_forms.hop_law((n + 1,), ((mu,),)).with_delta(Fraction(0))
    assert rational_forms.lemma3(length) == error_rate_of_first_piece == hop_law_at_delta_0


@pytest.mark.parametrize(("n", "mu_bar"), [(5, 2), (8, 3), (12, 5), (9, 9)])
def test_lemma_4_equals_the_oracle(n: int, mu_bar: int) -> None:
    law = rational_forms.lemma4(n, mu_bar)
    for epsilon in (0.3, 1.5):
        value = float(law(Fraction(math.exp(epsilon))))
        oracle_value = column_cut_law(n, mu_bar, epsilon, delta=0.0).value
        assert value == pytest.approx(oracle_value, rel=1e-12)
    shifts = tuple((mu,) for mu in range(1, mu_bar + 1))
    assert law == rational_forms.hop_law((n + 1,), shifts).with_delta(Fraction(0))


# The absolute loss of five answers and outputs, and the same times the uniform prior.
LOSSES = np.array([[abs(y - o) for o in range(5)] for y in range(5)], dtype=float)
WEIGHTED_LOSSES = [[Fraction(abs(y - o), 5) for o in range(5)] for y in range(5)]
UNIFORM_PRIOR = np.full(5, 0.2)


@pytest.mark.parametrize("epsilon", [0.2, 0.7, 2.0])
def test_the_form_of_post_processing_equals_the_oracle(epsilon: float) -> None:
    x = Fraction(math.exp(epsilon))
    loss = rational_forms.geometric_post_processing(WEIGHTED_LOSSES, x)(x)
    oracle = finite_channel.post_process_geometric(LOSSES, UNIFORM_PRIOR, epsilon)
    assert float(loss) == pytest.approx(oracle.value, rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.2, 0.7, 2.0])
def test_the_form_of_bins_equals_the_oracle(epsilon: float) -> None:
    x = Fraction(math.exp(epsilon))
    loss = rational_forms.bins_loss(WEIGHTED_LOSSES, x)(x)
    oracle_value = finite_channel.extremal_value(LOSSES, UNIFORM_PRIOR, epsilon)
    assert float(loss) == pytest.approx(oracle_value, rel=1e-9)


def test_the_form_of_bins_for_the_error_rate_is_that_of_randomized_response() -> None:
    """With four answers it is 3 / (x + 3)."""
    error_weights = [[Fraction(y != o, 4) for o in range(4)] for y in range(4)]
    error_rate = rational_forms.bins_loss(error_weights, Fraction(3))
    assert error_rate == Affine.from_ratio(fmpz_poly([3]), ZERO, fmpz_poly([3, 1]))


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        (compare_single_distance(n=[3, 5], epsilon=0.5), ["lemma 3", "dp", "theorem 2"]),
        (compare_bounded_difference(n=[3, 4], epsilon=1.5), ["lemma 4"]),
        (compare_counts([1, 4], ["absolute", "squared"]), ["verdict"]),
        (compare_responses([2, 5]), ["verdict"]),
        (compare_bins("0..4", ["0,2,4", "1,3"], ["absolute", "squared"]), ["verdict"]),
    ],
)
def test_every_closed_form_equals_the_formula_of_every_piece(rows: Any, columns: list[str]) -> None:
    all_rows = [*rows]
    # Some rows lack a column, such as "theorem 2" for μ > 1, but each column is in some row.
    verdicts = [(column, row[column]) for row in all_rows for column in columns if column in row]
    assert len(verdicts) > 2
    assert {*verdicts} == {(column, "equal") for column in columns}


def test_the_printed_theorem_3_is_refuted_on_an_interval_of_delta() -> None:
    (row,) = [
        row for row in compare_bounded_difference(n=[8, 8], epsilon=1.5) if row["mu_bar"] == 3
    ]
    assert row["theorem 3"] == "REFUTED"
    assert 0.12 < row["from_delta"] < row["to_delta"] < 0.16
    assert row["printed"] == "1 - e^(3ε) / (e^(3ε) + 3e^(2ε) + 2e^ε + 3)"
    assert row["optimum"] == "1 - e^(3ε) / (e^(3ε) + 3e^(2ε) + 2e^ε + 2)"
    noise = wb.ModuloNoise(n=8, max_shift=3, directed=True)
    middle = (row["from_delta"] + row["to_delta"]) / 2
    best = wb.design(noise, epsilon=1.5, delta=middle, notion="pdp").objective
    x = Fraction(math.exp(1.5))
    printed = rational_forms.staircase_error_rate([1, 3, 2, 3])
    assert best < float(printed(x)) - 1e-3
