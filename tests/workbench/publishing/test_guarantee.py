"""Test the guarantee and the error in words against exact values and values by hand.

The guarantee is worded for an attacker who guesses which of two equally likely neighbours is true.
The *advantage* is the largest difference of the two probabilities of an event, so a guess is right
with probability (1 + advantage) / 2. The *width* of noise is the smallest w with Pr[|noise| <= w]
>= .95.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest

import workbench as wb
from workbench.exact.integer_law import IntegerLaw
from workbench.mechanisms.joint_noise import JointNoise
from workbench.privacy.repair import bound_inverse_exponential
from workbench.publishing.guarantee import (
    bound_advantage,
    compute_coverage,
    count_right_guesses,
    describe_guarantee,
    find_noise_width,
    list_warnings,
    measure_advantage,
)
from workbench.questions.joint_query import JointQuery


def make_geometric_noise(epsilon: str) -> IntegerLaw:
    """Return noise that is ε-private for answers one apart."""
    return IntegerLaw(0, [1], 1, bound_inverse_exponential(Fraction(epsilon)))


@pytest.mark.parametrize(("epsilon", "guesses"), [("0", 50), ("0.5", 63), ("1", 74), ("2000", 100)])
def test_pure_budgets_have_the_guesses_of_hand_calculation(epsilon: str, guesses: int) -> None:
    """The best attacker is right with probability e^ε / (1 + e^ε), .6225 at 1/2 and .7311 at 1."""
    assert count_right_guesses(bound_advantage(epsilon)) == guesses


BUDGETS = [
    (epsilon, delta)
    for epsilon in ("0.01", "0.1", "0.5", "1", "2")
    for delta in ("0", "1e-9", "0.01", "0.3")
]


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_the_printed_guesses_are_the_exact_ones_rounded_up(epsilon: str, delta: str) -> None:
    """The exact number is 100 (e^ε + δ) / (e^ε + 1), in decimals of 50 digits."""
    with localcontext() as context:
        context.prec = 50
        power = Decimal(epsilon).exp()
        expected = math.ceil(100 * (power + Decimal(delta)) / (power + 1))
    advantage = bound_advantage(epsilon, delta)
    sentence = describe_guarantee(advantage, "add-remove")[1]
    assert f"in at most {expected} of 100 cases" in sentence


def test_the_bound_is_reached_by_geometric_noise() -> None:
    """δ(0) of noise ∝ a^|η| at the shift 1 is (1 - a)/(1 + a), which is the bound at ε = ln 1/a."""
    mechanism = wb.AdditiveIntegerNoise(wb.IntegerNoise(1), IntegerLaw(0, [1], 1, Fraction(3, 5)))
    exact = measure_advantage(mechanism)
    assert exact == Fraction(1, 4)
    bound = bound_advantage(Fraction(math.log(5 / 3)))
    assert float(bound) == pytest.approx(0.25, abs=1e-12)


@pytest.mark.parametrize("delta", [Fraction(1, 100), Fraction(1, 4)])
def test_the_bound_with_a_delta_is_reached_by_three_outcomes(delta: Fraction) -> None:
    """P = (δ, (1-δ) e^ε/(1+e^ε), (1-δ)/(1+e^ε), 0) and Q in reverse, at e^ε = 3."""
    wide = (1 - delta) * Fraction(3, 4)
    narrow = (1 - delta) * Fraction(1, 4)
    channel = wb.Channel.from_rows([[delta, wide, narrow, 0], [0, narrow, wide, delta]])
    bound = bound_advantage(Fraction(math.log(3)), delta)
    assert float(measure_advantage(channel)) == pytest.approx(float(bound), abs=1e-12)


def test_a_histogram_is_guessed_by_its_worst_neighbours() -> None:
    """One row more in one bin, K = 1: δ(0) = (1 - a)/(1 + a). Replaced: two bins change."""
    added = JointNoise(JointQuery("rows-anywhere", rows=1), IntegerLaw(0, [1], 1, Fraction(1, 2)))
    replaced = JointNoise(JointQuery("rows-anywhere", "replace", 1), added.noise)
    assert measure_advantage(added) == Fraction(1, 3)
    # The privacy losses of the two bins are ±ln 2 with the masses 2/3 and 1/3, so the sum is
    # 2 ln 2, 0, -2 ln 2 with 4/9, 4/9, 1/9: δ(0) = 4/9 - 1/9.
    assert measure_advantage(replaced) == Fraction(1, 3)


@pytest.mark.parametrize(
    ("neighbours", "numbers", "sentences"),
    [
        (
            "add-remove",
            1,
            (
                "Suppose it is equally likely beforehand that the person is in the data or not.",
                "An attacker who knows all other rows and sees this number guesses which of the "
                "two is true, and is right in at most 63 of 100 cases. Without this number, it is "
                "50 of 100 cases.",
            ),
        ),
        (
            "replace",
            4,
            (
                "Suppose it is equally likely beforehand that the rows of the person are one of "
                "two given sets of rows.",
                "An attacker who knows all other rows and sees these numbers guesses which of the "
                "two is true, and is right in at most 63 of 100 cases. Without these numbers, it "
                "is 50 of 100 cases.",
            ),
        ),
    ],
)
def test_the_words_fit_the_relation(
    neighbours: str, numbers: int, sentences: tuple[str, str]
) -> None:
    assert describe_guarantee(bound_advantage("0.5"), neighbours, numbers) == sentences


def test_a_person_of_one_row_has_one_of_two_rows() -> None:
    prior = describe_guarantee(Fraction(0), "replace", has_one_row=True)[0]
    assert prior.endswith("that the row of the person is one of two given rows.")


@pytest.mark.parametrize(("epsilon", "warning_count"), [("4", 0), ("5", 1)])
def test_a_guarantee_of_100_right_guesses_has_a_warning(epsilon: str, warning_count: int) -> None:
    """100 e^ε / (1 + e^ε) is 98.2 at ε = 4 and 99.3 at ε = 5."""
    assert len(list_warnings(bound_advantage(epsilon))) == warning_count


def test_an_unknown_relation_is_refused() -> None:
    with pytest.raises(wb.InvalidRequest, match="neighbours"):
        describe_guarantee(Fraction(0), "both")


def test_the_width_of_geometric_noise_at_one_half() -> None:
    """Pr[|noise| <= w] = 1 - 2 a^(w + 1) / (1 + a) with a = e^(-1/2): .9624 at 6, .9380 at 5."""
    noise = make_geometric_noise("0.5")
    assert find_noise_width(noise) == 6
    assert float(compute_coverage(noise, 6)) == pytest.approx(0.9624, abs=5e-5)
    assert float(compute_coverage(noise, 5)) < 0.95


def test_the_root_mean_square_of_geometric_noise_at_one_half() -> None:
    """√(2a) / (1 - a) with a = e^(-1/2)."""
    noise = make_geometric_noise("0.5")
    # The coefficients of 1, η and η² in the polynomial η².
    square = (Fraction(0), Fraction(0), Fraction(1))
    variance = noise.mean(lambda eta: eta**2, square)
    a = math.exp(-0.5)
    assert math.sqrt(variance) == pytest.approx(math.sqrt(2 * a) / (1 - a))


@pytest.mark.parametrize(
    ("noise", "width"),
    [
        (IntegerLaw(-2, [1, 2, 94, 2, 1]), 1),  # P(|η| <= 1) = .98 and P(η = 0) = .94
        (IntegerLaw(-1, [2, 95, 3]), 0),  # P(η = 0) = .95 exactly
        (IntegerLaw(3, [1]), 3),  # constant noise away from 0
        (IntegerLaw(-4, [6, 0, 0, 0, 94]), 4),  # one side only
    ],
)
def test_the_width_is_the_smallest_one(noise: IntegerLaw, width: int) -> None:
    assert find_noise_width(noise) == width
