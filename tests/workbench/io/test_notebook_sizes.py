"""Test that notebook output fits on the page, has less than 60 kB, and shows a picture."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

import workbench as wb

_MAX_BYTES = 60_000


@functools.cache
def _make_channel() -> wb.Design:
    """Return the channel that several objects describe."""
    return wb.design("channel", answers="0..20", max_shift=1, epsilon=1, delta="1e-5")


# A function for one object of every class that notebooks show with a picture, by name.
MAKERS: dict[str, Callable[[], Any]] = {
    "channel": _make_channel,
    "letters": lambda: wb.design(
        "channel", answers="a,b,c", neighbours="all", loss="error-rate", epsilon=1
    ),
    "labels": lambda: wb.design("labels", labels="0..20", epsilon=4),
    "laplace": lambda: wb.design("laplace", epsilon=1, bits=5),
    "quantizer": lambda: wb.design("quantizer", bins="-3,-0.5,0.5,3", epsilon=1),
    "frontier": lambda: wb.frontier(
        wb.ModuloNoise(n=4, max_shift=1), epsilon="0.5:1.5:3", delta=[0, 0.1], notion="dp"
    ),
    "recommend": lambda: wb.recommend(answers="0..10", max_shift=1, epsilon=1, delta="1e-5"),
    "risk": lambda: wb.risk(_make_channel()),
    "runs": lambda: wb.compose(_make_channel(), 16, delta="1e-4"),
    "profile": lambda: wb.profile(_make_channel()),
}
# The other objects take up to a second each.
FAST_NAMES = ("letters", "labels", "quantizer")
NAMES = [
    name if name in FAST_NAMES else pytest.param(name, marks=pytest.mark.slow) for name in MAKERS
]


@functools.cache
def make_page(name: str) -> str:
    """Return the HTML that a notebook shows for an object."""
    page: str = MAKERS[name]()._repr_html_()
    return page


def test_questions_and_the_comparison_with_a_formula_are_shown_in_one_line() -> None:
    one_line_objects = [
        wb.FiniteQuery("0..100", max_shift=1),
        wb.ModuloNoise(n=8, max_shift=3),
        wb.Labels([0, 1, 2]),
        wb.Quantization(levels=4),
        wb.IntegerNoise(2, clamp=(0, 100)),
        wb.RealNoise("0.5"),
        # An `OracleVerdict`, the comparison of a design with a formula.
        wb.design(wb.ModuloNoise(n=4, max_shift=1), epsilon=1).oracle,
    ]
    for shown_object in one_line_objects:
        page = shown_object._repr_html_()
        assert page.startswith("<div style='max-width:820px'><strong>")
        assert "Fraction" not in page
        assert len(page) < 400


def test_the_line_of_a_question_names_its_clamp() -> None:
    assert "clamped into 0..100" in wb.IntegerNoise(2, clamp=(0, 100))._repr_html_()


@pytest.mark.parametrize("name", NAMES)
def test_notebook_output_is_small_and_has_a_picture(name: str) -> None:
    page = make_page(name)
    assert len(page.encode()) <= _MAX_BYTES
    assert "<svg" in page or "<img" in page


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_wider_than_the_page(name: str) -> None:
    page = make_page(name)
    assert page.startswith("<div style='max-width:820px'>")
    wide_table = "<div style='overflow-x:auto;max-width:100%'><table"
    assert page.count("<table") == page.count(wide_table)


def test_a_channel_has_the_names_of_its_query() -> None:
    design = MAKERS["letters"]()
    axis, *_ = design.plot().axes
    assert [tick.get_text() for tick in axis.get_xticklabels()] == ["a", "b", "c"]
    assert [tick.get_text() for tick in axis.get_yticklabels()] == ["a", "b", "c"]
