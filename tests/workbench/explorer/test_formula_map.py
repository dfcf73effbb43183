"""Test the map of formulas: its regions, its messages, and the page that shows it.

In the page, the map shows the optimum at the pointer, and a click moves the sliders there.
"""

from __future__ import annotations

import math
from typing import Any
from urllib.parse import urlencode

import pytest

import workbench as wb
from bench.chromium import Chromium, Page
from tests.workbench.explorer.test_chromium import IS_IDLE
from workbench.errors import WorkbenchError
from workbench.explorer.server import Server
from workbench.explorer.tasks import Tasks

# A channel for the counts 0..3, as the texts of the page.
COUNTS = {"answers": "0..3", "max_shift": "1", "loss": "absolute", "epsilon": "1", "delta": "0.05"}


def compute_map(name: str, given: dict[str, str]) -> dict[str, Any]:
    """Return the map of a family's question, as the page receives it."""
    return Tasks().run("formulas", {"family": name, "given": given})


def evaluate_polynomial(coefficients: list[float], x: float) -> float:
    """Return Σ c_k x^k."""
    return sum(coefficient * x**k for k, coefficient in enumerate(coefficients))


def test_the_regions_of_the_map_are_the_pieces_of_the_formula() -> None:
    regions = compute_map("channel", COUNTS)["regions"]
    question = wb.FiniteQuery("0..3", max_shift=1)
    formula = wb.formula(question, loss="absolute", epsilon="0.01..4", delta="0..1")
    texts = [region["name"].split(": ")[1] for region in regions]
    assert texts == [piece.to_text() for piece in formula.pieces]
    for region in regions:
        # A point in the middle of the region.
        epsilon = region["x"][20]
        delta = (region["low"][20] + region["high"][20]) / 2
        numerator, delta_factor, denominator = [
            evaluate_polynomial(region.get(name, []), math.exp(epsilon))
            for name in ("numerator", "numerator_delta", "denominator")
        ]
        optimum = float(formula(epsilon, delta)[0])
        assert (numerator + delta * delta_factor) / denominator == pytest.approx(optimum, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "given", "message"),
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
def test_an_error_says_why_a_question_has_no_map(
    name: str, given: dict[str, str], message: str
) -> None:
    with pytest.raises(WorkbenchError, match=message):
        compute_map(name, given)


def open_map(browser: Chromium, server: Server, given: dict[str, str]) -> Page:
    """Open the page of a channel and wait for its map, and until nothing moves the map."""
    page = browser.open("about:blank", load=False, height=2400)
    page.go(server.make_address(urlencode({"family": "channel", **given})))
    page.wait(f"document.querySelector('svg.map') && {IS_IDLE}")
    return page


POINTED_TEXT = "document.querySelector('p.pointed').textContent"


def read_pointed_text(page: Page) -> tuple[float, float, float, str]:
    """Return (ε, δ, optimum, formula) of a text such as "ε = 1, δ = 0.1: 0.36 = 3(1 - δ) / ..."."""
    budget, _, equation = page.js(POINTED_TEXT).partition(": ")
    epsilon, delta = (float(part.split("= ")[1]) for part in budget.split(", "))
    optimum, _, formula = equation.partition(" = ")
    return epsilon, delta, float(optimum), formula


def point_at_map(page: Page) -> tuple[int, int]:
    """Move the mouse to 0.6 of the width and 0.3 of the height of the map, and return x and y."""
    box = "document.querySelector('svg.map').getBoundingClientRect()"
    x, y = page.js(
        f"(({{ left, top, width, height }}) => "
        f"[left + 0.6 * width, top + 0.3 * height].map(Math.round))({box})"
    )
    page.mouse("mouseMoved", x, y)
    return x, y


def test_pointing_at_a_region_shows_its_optimum(browser: Chromium, server: Server) -> None:
    page = open_map(browser, server, COUNTS)
    assert page.js(POINTED_TEXT).startswith("Point at a region")
    point_at_map(page)
    epsilon, delta, optimum, formula = read_pointed_text(page)
    assert formula == "3(1 - δ) / (2e^ε + 2)"
    # ε and δ are shown with three digits.
    assert optimum == pytest.approx(3 * (1 - delta) / (2 * math.exp(epsilon) + 2), rel=0.02)
    # The region and its formula in the list are highlighted.
    assert page.js("document.querySelectorAll('.region.pointed, li.pointed').length") == 2
    assert not page.complaints


def test_a_click_on_the_map_moves_the_sliders(browser: Chromium, server: Server) -> None:
    page = open_map(browser, server, COUNTS)
    x, y = point_at_map(page)
    epsilon, delta, *_ = read_pointed_text(page)
    page.mouse("mousePressed", x, y, buttons=1)
    page.mouse("mouseReleased", x, y)
    values = page.js("""['epsilon', 'delta']
        .map((name) => Number(document.getElementById(`option-${name}`).value))""")
    assert values == pytest.approx([epsilon, delta], rel=0.01)
    page.wait("document.querySelector('.badge.proven')")
    # The map holds for all ε and δ, so it stays.
    assert page.js("document.querySelectorAll('svg.map').length") == 1
    assert not page.complaints


def test_the_keyboard_points_at_a_region_by_focus(browser: Chromium, server: Server) -> None:
    page = open_map(browser, server, COUNTS)
    page.js("document.querySelector('.region').focus() ?? 1")
    assert page.js(POINTED_TEXT).startswith("ε = ")
    assert not page.complaints


def test_under_pure_dp_the_map_is_a_curve_over_epsilon(browser: Chromium, server: Server) -> None:
    pure_counts = {name: text for name, text in COUNTS.items() if name != "delta"} | {
        "notion": "pure"
    }
    page = open_map(browser, server, pure_counts)
    assert page.js("document.querySelectorAll('ol.formulas li').length") == 2
    page.js("document.querySelector('ol.formulas li:last-child').focus() ?? 1")
    assert "(3e^(2ε) + 2e^ε + 1) / (2e^(2ε)(e^ε + 1))" in page.js(POINTED_TEXT)
    assert not page.complaints
