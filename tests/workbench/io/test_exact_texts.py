"""Test that exact numbers in files are read back exactly, and that other texts are refused."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench.io.files import format_fraction, parse_hex_integer, parse_json, parse_ratio


@given(st.fractions() | st.decimals(allow_nan=False, allow_infinity=False, places=12).map(Fraction))
def test_decimal_numbers_are_read_back_exactly(value):
    assert parse_ratio(format_fraction(value), "value") == value


def test_very_long_numbers_are_read_back():
    value = Fraction(-(3**9000), 2**30000 + 1)
    assert parse_ratio(format_fraction(value), "value") == value


def test_a_ratio_of_hexadecimals_is_read():
    assert parse_ratio("0x1/0x2", "value") == Fraction(1, 2)


@pytest.mark.parametrize(
    "text", ["0x1/0x0", "--0x1/0x2", "0x1/-0x2", "0x1/0x2/0x3", "0x1", "0x/0x1"]
)
def test_malformed_ratios_of_hexadecimals_are_refused(text: str):
    with pytest.raises(wb.CorruptFile):
        parse_ratio(text, "value")


@given(st.integers(min_value=0, max_value=1 << 2000))
def test_hexadecimals_are_read_back(value):
    assert parse_hex_integer(hex(value), "value") == value


def test_json_numbers_are_read():
    assert parse_json("[1, 2.5]") == [1, 2.5]


def test_a_malformed_json_number_is_refused():
    with pytest.raises(wb.CorruptFile):
        parse_json("[1.e]")
