"""Notebook output fits on the page, has less than 60 kB, and shows a picture."""

from __future__ import annotations

from typing import Any

import pytest

import workbench as wb

_MAX_BYTES = 60_000


def _make_objects() -> dict[str, Any]:
    """Return one object of every class that notebooks show with a picture, by name."""
    channel = wb.design("channel", answers="0..20", max_shift=1, epsilon=1, delta="1e-5")
    return {
        "channel": channel,
        "letters": wb.design(
            "channel", answers="a,b,c", neighbours="all", loss="error-rate", epsilon=1
        ),
        "labels": wb.design("labels", labels="0..20", epsilon=4),
        "laplace": wb.design("laplace", epsilon=1, bits=5),
        "quantizer": wb.design("quantizer", bins="-3,-0.5,0.5,3", epsilon=1),
        "frontier": wb.frontier(
            wb.ModuloNoise(n=4, max_shift=1), epsilon="0.5:1.5:3", delta=[0, 0.1], notion="dp"
        ),
        "recommend": wb.recommend(answers="0..10", max_shift=1, epsilon=1, delta="1e-5"),
        "risk": wb.risk(channel),
        "runs": wb.compose(channel, 16, delta="1e-4"),
        "profile": wb.profile(channel),
    }


def test_questions_and_verdicts_are_shown_in_one_line() -> None:
    questions = [
        wb.FiniteQuery("0..100", max_shift=1),
        wb.ModuloNoise(n=8, max_shift=3),
        wb.Labels([0, 1, 2]),
        wb.Quantization(levels=4),
        wb.IntegerNoise(2, clamp=(0, 100)),
        wb.RealNoise("0.5"),
        wb.design(wb.ModuloNoise(n=4, max_shift=1), epsilon=1).oracle,
    ]
    for question in questions:
        page = question._repr_html_()
        assert page.startswith("<div style='max-width:820px'><strong>")
        assert "Fraction" not in page
        assert len(page) < 400
    assert "clamped into 0..100" in questions[4]._repr_html_()


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """Return the HTML that a notebook shows for each object, by name."""
    return {name: shown._repr_html_() for name, shown in _make_objects().items()}


def test_notebook_output_is_small_and_has_a_picture(pages: dict[str, str]) -> None:
    sizes = {name: len(page) for name, page in pages.items()}
    assert max(sizes.values()) <= _MAX_BYTES, sizes
    assert all("<svg" in page or "<img" in page for page in pages.values())


def test_nothing_is_wider_than_the_page(pages: dict[str, str]) -> None:
    for page in pages.values():
        assert page.startswith("<div style='max-width:820px'>")
        assert page.count("<table") == page.count(
            "<div style='overflow-x:auto;max-width:100%'><table"
        )


def test_a_channel_has_the_names_of_its_query() -> None:
    (axis, *_) = (
        wb.design("channel", answers="a,b,c", neighbours="all", loss="error-rate", epsilon=1)
        .plot()
        .axes
    )
    assert [tick.get_text() for tick in axis.get_xticklabels()] == ["a", "b", "c"]
    assert [tick.get_text() for tick in axis.get_yticklabels()] == ["a", "b", "c"]
