"""Tests of exact numbers a - b e^ε, by comparison with Python's decimal module.

The workbench computes with FLINT, which shares no code with the decimal module.
"""

from __future__ import annotations

import math
import sys
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from workbench.errors import InvalidRequest
from workbench.exact.numbers import (
    ExpNumber,
    exp_bounds,
    log_upper_bound,
    max_exp_number,
    read_number,
    read_positive,
    read_probability,
    round_down,
    round_up,
    sign_exp,
)

rationals = st.fractions(min_value=-50, max_value=50, max_denominator=10**6)
budgets = st.fractions(min_value=-20, max_value=20, max_denominator=10**4)


def to_decimal(number: Fraction) -> Decimal:
    """Convert a rational to the precision of the current decimal context."""
    return Decimal(number.numerator) / Decimal(number.denominator)


def decimal_exp(epsilon: Fraction) -> Decimal:
    """Return e^ε, rounded in the current decimal context."""
    return to_decimal(epsilon).exp()


def decimal_exp_number(a: Fraction, b: Fraction, epsilon: Fraction) -> Decimal:
    """Return a - b e^ε, rounded in the current decimal context."""
    return to_decimal(a) - to_decimal(b) * decimal_exp(epsilon)


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        (0.1, Fraction(1, 10)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.float32(0.1), Fraction(1, 10)),
        (np.array(0.1), Fraction(1, 10)),
        (np.int64(3), Fraction(3)),
        ("0.1", Fraction(1, 10)),
        (" 1e-6 ", Fraction(1, 10**6)),
        ("1/3", Fraction(1, 3)),
        (Decimal("0.125"), Fraction(1, 8)),
        (Fraction(2, 7), Fraction(2, 7)),
        (5e-324, Fraction(5, 10**324)),
        (Fraction(1, 10**400), Fraction(1, 10**400)),
    ],
)
def test_a_float_is_read_as_the_decimal_that_it_shows(value: object, meant: Fraction) -> None:
    assert read_number(value, "epsilon") == meant


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        "nan",
        "inf",
        "",
        "abc",
        "1/0",
        "1/2/3",
        "/",
        True,
        np.True_,
        None,
        [1.0],
        1j,
        Decimal("NaN"),
        Decimal("sNaN"),
        "1e999999999",
        "1e-999999999",
        "9" * 20_000,
        np.array([0.1]),
        np.nan,
    ],
)
def test_values_that_are_no_finite_number_are_refused(value: object) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_number(value, "epsilon")
    # A message is one line of moderate length, so a long value is cut.
    shown = f"{'9' * 157}..." if value == "9" * 20_000 else value
    assert str(caught.value) == f"epsilon must be a finite number. Got {shown}."


@pytest.mark.parametrize(
    "value",
    ["1e400", "-1e400", 10**400, Decimal("1e-400"), "1e-5000", "1/1e400", Fraction(10**400)],
)
def test_numbers_outside_the_range_of_doubles_are_refused(value: object) -> None:
    with pytest.raises(
        InvalidRequest, match=r"^epsilon must be 0, or of a size from 5e-324 to 1.79e308\. Got "
    ):
        read_number(value, "epsilon")


def test_the_message_of_a_refused_budget_states_its_range() -> None:
    with pytest.raises(InvalidRequest, match=r"^epsilon must be a finite number > 0\. Got -1\.$"):
        read_positive(-1, "epsilon")
    with pytest.raises(InvalidRequest, match=r"^epsilon must be a finite number > 0\. Got 0\.$"):
        read_positive(0, "epsilon")
    assert read_positive(0, "epsilon", or_zero=True) == 0
    with pytest.raises(InvalidRequest, match=r"^delta must be a number in \[0, 1\]\. Got 1\.5\.$"):
        read_probability(1.5, "delta")
    assert read_probability("1", "delta") == 1


@given(st.fractions() | st.fractions(max_denominator=10**6).map(lambda x: x / 2**1070))
@example(Fraction(10) ** 400)
@example(-(Fraction(10) ** 400))
@example(Fraction(1, 10**400))
def test_rounding_up_returns_the_nearest_double_above(value: Fraction) -> None:
    up = round_up(value)
    below = math.nextafter(up, -math.inf)
    assert up == math.inf or Fraction(up) >= value
    assert below == -math.inf or Fraction(below) < value
    assert round_down(value) == -round_up(-value)


@given(budgets, st.integers(8, 300))
@settings(max_examples=80, deadline=None)
def test_exp_bounds_enclose_the_exponential(epsilon: Fraction, bits: int) -> None:
    low, high = exp_bounds(epsilon, bits)
    with localcontext() as context:
        context.prec = 150
        scaled = decimal_exp(epsilon) * 2**bits
        assert low <= scaled <= high
    assert high - low <= 2
    assert (high == low) == (epsilon == 0)


def test_convergents_of_e_are_compared_with_e_correctly() -> None:
    """Convergents p/q of e = [2; 1, 2, 1, 1, 4, ...] lie within 1/q² of it, on alternate sides."""
    p, q = 2, 1
    last_p, last_q = 1, 0
    for k in range(1, 400):
        sign = -1 if k % 2 else 1
        assert sign_exp(Fraction(p), Fraction(q), Fraction(1)) == sign
        assert sign_exp(Fraction(-p), Fraction(-q), Fraction(1)) == -sign
        term = 2 * (k + 1) // 3 if k % 3 == 2 else 1
        p, last_p = term * p + last_p, p
        q, last_q = term * q + last_q, q
    assert q > 10**250  # So the last convergents differ from e by less than 1e-500.


@given(rationals, rationals, budgets)
@settings(max_examples=200, deadline=None)
def test_signs_agree_with_the_decimal_module(a: Fraction, b: Fraction, epsilon: Fraction) -> None:
    with localcontext() as context:
        context.prec = 150
        value = decimal_exp_number(a, b, epsilon)
        # Only an exact zero comes this close to 0, but its decimal value may be rounded.
        if abs(value) < Decimal("1e-100"):
            value = Decimal(0)
    assert sign_exp(a, b, epsilon) == (value > 0) - (value < 0)


@pytest.mark.parametrize("epsilon", ["1e-9", "0.1", "1.5", "30", "700"])
def test_the_doubles_next_to_an_exponential_are_compared_correctly(epsilon: str) -> None:
    budget = Fraction(epsilon)
    nearest = math.exp(float(budget))
    with localcontext() as context:
        context.prec = 400
        for value in (nearest, math.nextafter(nearest, 0), math.nextafter(nearest, math.inf)):
            difference = Decimal(value) - decimal_exp(budget)
            expected_sign = 1 if difference > 0 else -1
            assert sign_exp(Fraction(value), Fraction(1), budget) == expected_sign


def test_bounds_of_tiny_exponents_lie_on_the_correct_side_of_one() -> None:
    tiny = Fraction(1, 10**400)
    assert exp_bounds(tiny, 64) == (2**64, 2**64 + 1)
    assert exp_bounds(-tiny, 64) == (2**64 - 1, 2**64)


def test_signs_at_extreme_budgets_are_decided_quickly() -> None:
    tiny = Fraction(1, 10**400)
    huge = Fraction(10**40)
    assert sign_exp(Fraction(1), Fraction(1), tiny) == -1
    assert sign_exp(1 + 2 * tiny, Fraction(1), tiny) == 1
    # e^x > 1 + x for x > 0.
    assert sign_exp(1 + tiny, Fraction(1), tiny) == -1
    assert sign_exp(Fraction(10) ** 300, Fraction(1, 10**300), huge) == -1
    assert sign_exp(Fraction(1, 10**300), Fraction(10) ** 300, -huge) == 1
    assert sign_exp(Fraction(1), Fraction(1), Fraction(0)) == 0


@given(rationals, rationals, budgets)
@settings(max_examples=100, deadline=None)
def test_the_enclosure_of_an_exp_number_is_at_most_two_doubles_wide(
    a: Fraction, b: Fraction, epsilon: Fraction
) -> None:
    number = ExpNumber.from_terms(a, b, epsilon)
    with localcontext() as context:
        context.prec = 150
        reference = decimal_exp_number(a, b, epsilon)
        slack = Decimal("1e-120")  # The rounding error of the decimal reference is smaller.
        assert Decimal(number.lower) - slack <= reference <= Decimal(number.upper) + slack
    assert number.upper <= math.nextafter(math.nextafter(number.lower, math.inf), math.inf)


@given(st.lists(st.tuples(rationals, rationals, budgets), min_size=1, max_size=6))
@settings(max_examples=80, deadline=None)
def test_the_largest_of_numbers_with_different_exponents_is_found(
    terms: list[tuple[Fraction, Fraction, Fraction]],
) -> None:
    largest = max_exp_number(ExpNumber.from_terms(a, b, epsilon) for a, b, epsilon in terms)
    with localcontext() as context:
        context.prec = 150
        reference = max(decimal_exp_number(a, b, epsilon) for a, b, epsilon in terms)
        value = decimal_exp_number(largest.a, largest.b, largest.epsilon)
        assert abs(reference - value) < Decimal("1e-100")


E = ExpNumber.from_terms(Fraction(0), Fraction(-1), Fraction(1))
SQRT_E = ExpNumber.from_terms(Fraction(0), Fraction(-1), Fraction(1, 2))


def test_an_exp_number_is_compared_with_a_rational() -> None:
    assert E.compare(Fraction(27182, 10000)) == 1
    assert E.compare(Fraction(27183, 10000)) == -1


def test_exp_numbers_are_compared_with_each_other() -> None:
    assert E.compare(SQRT_E) == 1
    assert SQRT_E.compare(E) == -1
    assert E.compare(E) == 0


def test_exp_numbers_with_the_same_rational_value_are_equal() -> None:
    two = ExpNumber.from_terms(Fraction(3), Fraction(1), Fraction(0))  # 3 - e^0
    assert two == ExpNumber.from_terms(Fraction(2), Fraction(0), Fraction(9))


def test_an_exp_number_is_printed_with_its_terms() -> None:
    assert str(E) == "0 - -1*exp(1)"
    assert str(ExpNumber.from_terms(Fraction(1, 2), Fraction(0), Fraction(1))) == "1/2"


@given(st.fractions(min_value=Fraction(1, 10**6), max_value=10**6))
@example(1 + Fraction(1, 2**500))
@example(1 - Fraction(1, 2**60))
@example(Fraction(10) ** 400)
@settings(max_examples=80, deadline=None)
def test_logarithms_are_rounded_up_by_at_most_one_float(ratio: Fraction) -> None:
    up = log_upper_bound(ratio)
    with localcontext() as context:
        context.prec = 400
        logarithm = to_decimal(ratio).ln()
        assert Decimal(up) >= logarithm - Decimal("1e-380")
        assert Decimal(math.nextafter(math.nextafter(up, -math.inf), -math.inf)) <= logarithm
    assert (up == 0) == (ratio == 1)


@pytest.mark.parametrize("bits", [53, 80, 300, 2000])
def test_a_logarithm_beside_a_float_rounds_up_to_it_or_past_it(bits: int) -> None:
    low, high = exp_bounds(Fraction(3, 2), bits)
    # ln(low / 2^bits) is below 1.5, but above the float before 1.5.
    assert log_upper_bound(Fraction(low, 2**bits)) == 1.5
    assert log_upper_bound(Fraction(high, 2**bits)) == math.nextafter(1.5, 2)


def test_numbers_above_the_largest_float_round_up_to_infinity() -> None:
    assert round_up(Fraction(sys.float_info.max) + 1) == math.inf
    assert round_down(Fraction(sys.float_info.max) + 1) == sys.float_info.max
