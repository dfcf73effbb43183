"""Test the map of formulas: it shows the optimum at the pointer and moves there on a click."""

from __future__ import annotations

import math
from typing import Any
from urllib.parse import urlencode

import pytest

import workbench as wb
from bench.chromium import Chromium, Page
from workbench.errors import WorkbenchError
from workbench.explorer.server import Server
from workbench.explorer.tasks import Tasks

COUNTS = {"answers": "0..3", "max_shift": "1", "loss": "absolute", "epsilon": "1", "delta": "0.05"}


def mapped(name: str, given: dict[str, str]) -> dict[str, Any]:
    return Tasks().run("formulas", {"family": name, "given": given})


def test_its_regions_are_those_of_the_formula() -> None:
    regions = mapped("channel", COUNTS)["regions"]
    solved = wb.formula(
        wb.FiniteQuery("0..3", max_shift=1), loss="absolute", epsilon="0.01..4", delta="0..1"
    )
    assert [one["name"].split(": ")[1] for one in regions] == [
        piece.to_text() for piece in solved.pieces
    ]
    for one in regions:
        epsilon, low, high = (one[name][20] for name in ("x", "low", "high"))
        delta = (low + high) / 2
        x = math.exp(epsilon)
        top, slope, below = (
            sum(c * x**k for k, c in enumerate(one.get(name, [])))
            for name in ("numerator", "numerator_delta", "denominator")
        )
        assert (top + delta * slope) / below == pytest.approx(
            float(solved(epsilon, delta)[0]), rel=1e-12
        )


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("channel", COUNTS | {"answers": "0..30"}, "at most 600 rows and columns"),
        (
            "channel",
            {"answers": "0..3", "max_shift": "1", "notion": "zcdp", "rho": "1"},
            "zcdp is no linear",
        ),
        ("noise", {"sensitivity": "1", "epsilon": "1", "delta": "0.1"}, "infinitely many masses"),
    ],
)
def test_a_question_without_one_says_why(name: str, given: dict[str, str], words: str) -> None:
    with pytest.raises(WorkbenchError, match=words):
        mapped(name, given)


def opened(browser: Chromium, server: Server, given: dict[str, str]) -> Page:
    page = browser.open("about:blank", wait=False, height=2400)
    page.go(server.make_address(urlencode({"family": "channel", **given})))
    page.wait("document.querySelector('svg.map')")
    return page


def test_a_reader_points_at_a_region_and_goes_there(browser: Chromium, server: Server) -> None:
    page = opened(browser, server, COUNTS)
    said = "document.querySelector('p.pointed').textContent"
    assert page.js(said).startswith("Point at a region")
    box = "document.querySelector('svg.map').getBoundingClientRect()"
    at = page.js(
        f"(({{ left, top, width, height }}) => "
        f"[left + 0.6 * width, top + 0.3 * height].map(Math.round))({box})"
    )
    page.mouse("mouseMoved", *at)
    words = page.js(said)
    assert words.endswith("3(1 - δ) / (2e^ε + 2)")
    epsilon, delta = (float(part.split("= ")[1]) for part in words.split(": ")[0].split(", "))
    value = 3 * (1 - delta) / (2 * math.exp(epsilon) + 2)
    assert float(words.split(": ")[1].split(" = ")[0]) == pytest.approx(value, rel=0.02)
    assert page.js("document.querySelectorAll('.region.pointed, li.pointed').length") == 2
    page.mouse("mousePressed", *at, 1)
    page.mouse("mouseReleased", *at)
    given = "[...'εδ'].map((_, k) => Number(document.getElementById(`option-${['epsilon', 'delta'][k]}`).value))"
    assert page.js(given) == pytest.approx([epsilon, delta], rel=0.01)
    page.wait("document.querySelector('.badge.proven')")
    assert (
        page.js("document.querySelectorAll('svg.map').length") == 1
    )  # There is one map for all ε and δ.
    page.js("document.querySelector('.region').focus() ?? 1")  # Without a mouse.
    assert page.js(said).startswith("ε = ")
    assert not page.complaints


def test_without_a_delta_it_is_a_curve(browser: Chromium, server: Server) -> None:
    pure = {name: text for name, text in COUNTS.items() if name != "delta"} | {"notion": "pure"}
    page = opened(browser, server, pure)
    assert page.js("document.querySelectorAll('ol.formulas li').length") == 2
    page.js("document.querySelector('ol.formulas li:last-child').focus() ?? 1")
    assert "(3e^(2ε) + 2e^ε + 1) / (2e^(2ε)(e^ε + 1))" in page.js(
        "document.querySelector('p.pointed').textContent"
    )
    assert not page.complaints
