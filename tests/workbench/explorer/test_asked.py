"""Test that a page draws the request under every notion, and that the mechanism satisfies it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.explorer.given import first_example
from workbench.explorer.page_request import adapt_request
from workbench.explorer.processes import _run_task, worker_memory_limit
from workbench.explorer.tasks import Tasks
from workbench.pipeline.registry import get_family

QUESTION = {"n": "6", "max_shift": "1", "epsilon": "1", "notion": "dp", "delta": "0.01"}
PROFILE, TRADE, RENYI = "Privacy profile", "Trade-off curve", "Rényi divergence"


def figures_under(notion: str) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
    given = adapt_request(get_family("modulo"), {**QUESTION, "notion": notion}, "notion")
    tasks = Tasks()
    tasks.run("certify", {"family": "modulo", "given": given})
    drawn = tasks.run("profile", {"family": "modulo", "given": given})["figures"]
    return given, {
        one["title"].split(":")[0].removesuffix(" between neighbours"): one for one in drawn
    }


def named(figure: dict[str, Any], name: str) -> tuple[np.ndarray, np.ndarray]:
    one = next(one for one in figure["series"] if one["name"] == name)
    return np.array(one["x"], dtype=float), np.array(one["y"], dtype=float)


@pytest.mark.parametrize("notion", ["pure", "dp", "curve", "tradeoff", "gdp"])
def test_the_mechanism_keeps_to_what_is_drawn_as_asked(notion: str) -> None:
    given, drawn = figures_under(notion)
    profile, trade = drawn[PROFILE], drawn[TRADE]
    x, y = named(profile, "requested")
    if notion == "curve":
        assert list(zip(x, y, strict=True)) == [(0.5, 0.1), (1, 0.01)]
    if notion in ("pure", "dp"):
        assert list(zip(x, y, strict=True)) == [(1, 0.01 if notion == "dp" else 0)]
    heights = np.interp(x, *named(profile, "DP δ"))
    assert np.all(
        heights <= y + 1e-3
    )  # Between the drawn values, δ is below the line that joins them.
    assert np.any(heights >= 0.9 * y - 1e-9)  # The request binds somewhere.
    alpha, beta = named(trade, "requested")
    if notion == "tradeoff":
        assert (
            ",".join(f"{a:g}:{b:g}" for a, b in zip(alpha, beta, strict=True)) == given["tradeoff"]
        )
    own = np.interp(alpha, *named(trade, "this mechanism"))
    assert np.all(own >= beta - 1e-3)


@pytest.mark.parametrize("notion", ["renyi", "zcdp"])
def test_divergences_are_drawn_where_these_are_asked(notion: str) -> None:
    _, drawn = figures_under(notion)
    orders, limits = named(drawn[RENYI], "requested")
    known, divergences = named(drawn[RENYI], "this mechanism")
    own = np.interp(orders, known, divergences)
    assert np.all(own <= limits * (1 + 1e-9))
    assert (
        own.max() >= 0.99 * limits[own.argmax()]
        if notion == "renyi"
        else np.any(own >= 0.9 * limits)
    )
    assert (orders.tolist(), limits.tolist()) == ([2.0], [1.0]) or notion == "zcdp"
    for title in (PROFILE, TRADE):  # No point of these charts shows the request.
        assert all(one["name"] != "requested" for one in drawn[title]["series"])


def test_a_distance_is_asked_for_by_no_point() -> None:
    _, drawn = figures_under("metric")
    assert all(one["name"] != "requested" for one in drawn[PROFILE]["series"])


def test_an_infinite_divergence_is_said() -> None:
    from workbench.explorer.figures import make_profile_figures

    design = wb.design("modulo", n=4, max_shift=1, epsilon=1, delta=0.3)
    claim = wb.design("modulo", n=4, max_shift=1, epsilon=1, notion="renyi", alpha=2).claim
    figure = make_profile_figures(design.mechanism, claim)[0]
    assert (None in figure["series"][0]["y"]) == bool(figure["note"])


EVERY = ("pure", "dp", "pdp", "metric", "curve", "tradeoff", "renyi", "zcdp", "gdp")
NOTIONS = [("channel", notion) for notion in EVERY] + [
    ("labels", notion) for notion in EVERY if notion != "pdp"
]


@pytest.mark.parametrize(("name", "notion"), NOTIONS)
def test_the_first_question_of_a_page_is_answered_under_every_notion(
    name: str, notion: str
) -> None:
    kind = get_family(name)
    given = adapt_request(kind, {**first_example(kind), "notion": notion}, "notion") | {
        "time_limit": "1"
    }
    view = Tasks().run("certify", {"family": name, "given": given})
    assert view["objective"] is not None
    assert view["certified"]
    assert view["bound"] is None or view["bound"] <= view["objective"] + 1e-9


def test_a_page_that_needs_too_much_memory_says_whose_limit_it_is() -> None:
    class Greedy:
        def run(self, *_: Any) -> Any:
            raise MemoryError

    assert worker_memory_limit() >= 4 << 30
    said = _run_task(Greedy(), "design", {}, lambda *_: None)
    assert f"more than the {worker_memory_limit() >> 30} GB that a page may use" in said["message"]
