"""Test that a page draws the requested privacy under every notion, and the mechanism has it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.explorer.figures import make_profile_figures
from workbench.explorer.given import first_example
from workbench.explorer.page_request import adapt_request
from workbench.explorer.tasks import Tasks
from workbench.mechanisms.additive import AdditiveNoise
from workbench.pipeline.registry import get_family

QUESTION = {"n": "6", "max_shift": "1", "epsilon": "1", "notion": "dp", "delta": "0.01"}
# The titles of the privacy figures, up to the colon.
PROFILE = "Privacy profile"
TRADEOFF = "Trade-off curve"
DIVERGENCE = "Rényi divergence"


def make_privacy_figures(notion: str) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
    """Return the options of a request under a notion, and its privacy figures by title."""
    given = adapt_request(get_family("modulo"), {**QUESTION, "notion": notion}, "notion")
    tasks = Tasks()
    tasks.run("certify", {"family": "modulo", "given": given})
    figures = tasks.run("profile", {"family": "modulo", "given": given})["figures"]
    figures_by_title = {}
    for figure in figures:
        title = figure["title"].split(":")[0].removesuffix(" between neighbours")
        figures_by_title[title] = figure
    return given, figures_by_title


def read_series(figure: dict[str, Any], name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the x and y of the series with a name."""
    series = next(series for series in figure["series"] if series["name"] == name)
    return np.array(series["x"], dtype=float), np.array(series["y"], dtype=float)


def has_request(figure: dict[str, Any]) -> bool:
    """Return whether a figure draws the request."""
    return any(series["name"] == "requested" for series in figure["series"])


@pytest.mark.parametrize("notion", ["pure", "dp", "curve", "tradeoff", "gdp"])
def test_the_drawn_profile_is_below_the_drawn_request_and_touches_it(notion: str) -> None:
    _, figures = make_privacy_figures(notion)
    x, y = read_series(figures[PROFILE], "requested")
    if notion == "curve":
        assert list(zip(x, y, strict=True)) == [(0.5, 0.1), (1, 0.01)]
    if notion in ("pure", "dp"):
        assert list(zip(x, y, strict=True)) == [(1, 0.01 if notion == "dp" else 0)]
    deltas = np.interp(x, *read_series(figures[PROFILE], "DP δ"))
    # The tolerance is for interpolation: between drawn points, δ is below the line that joins them.
    assert np.all(deltas <= y + 1e-3)
    assert np.any(deltas >= 0.9 * y - 1e-9)


@pytest.mark.parametrize("notion", ["pure", "dp", "curve", "tradeoff", "gdp"])
def test_the_drawn_tradeoff_curve_is_above_the_drawn_request(notion: str) -> None:
    given, figures = make_privacy_figures(notion)
    alpha, beta = read_series(figures[TRADEOFF], "requested")
    if notion == "tradeoff":
        text = ",".join(f"{a:g}:{b:g}" for a, b in zip(alpha, beta, strict=True))
        assert text == given["tradeoff"]
    errors = np.interp(alpha, *read_series(figures[TRADEOFF], "this mechanism"))
    assert np.all(errors >= beta - 1e-3)


@pytest.mark.parametrize("notion", ["renyi", "zcdp"])
def test_the_drawn_divergence_is_below_the_drawn_request_and_touches_it(notion: str) -> None:
    _, figures = make_privacy_figures(notion)
    orders, limits = read_series(figures[DIVERGENCE], "requested")
    drawn_orders, drawn_divergences = read_series(figures[DIVERGENCE], "this mechanism")
    divergences = np.interp(orders, drawn_orders, drawn_divergences)
    assert np.all(divergences <= limits * (1 + 1e-9))
    if notion == "renyi":
        assert (orders.tolist(), limits.tolist()) == ([2.0], [1.0])
        assert divergences[0] >= 0.99 * limits[0]
    else:
        assert np.any(divergences >= 0.9 * limits)


@pytest.mark.parametrize("notion", ["renyi", "zcdp"])
def test_a_budget_of_divergences_is_drawn_neither_in_the_profile_nor_in_the_tradeoff_curve(
    notion: str,
) -> None:
    _, figures = make_privacy_figures(notion)
    assert not has_request(figures[PROFILE])
    assert not has_request(figures[TRADEOFF])


def test_a_budget_of_metric_privacy_is_not_drawn_in_the_privacy_profile() -> None:
    _, figures = make_privacy_figures("metric")
    assert not has_request(figures[PROFILE])


def test_a_note_says_that_a_divergence_is_infinite() -> None:
    """The divergence of noise without a mass at 2 is infinite. None stands for infinity."""
    renyi_design = wb.design("modulo", n=4, max_shift=1, epsilon=1, notion="renyi", alpha=2)
    noise = AdditiveNoise(renyi_design.question, [3, 1, 0, 1, 1])
    infinite_figure, *_ = make_profile_figures(noise, renyi_design.claim)
    assert None in infinite_figure["series"][0]["y"]
    assert infinite_figure["note"]
    finite_figure, *_ = make_profile_figures(renyi_design.mechanism, renyi_design.claim)
    assert None not in finite_figure["series"][0]["y"]
    assert not finite_figure["note"]


NOTIONS = ("pure", "dp", "pdp", "metric", "curve", "tradeoff", "renyi", "zcdp", "gdp")
REQUESTS = [("channel", notion) for notion in NOTIONS]
# Labels have no probabilistic DP.
REQUESTS += [("labels", notion) for notion in NOTIONS if notion != "pdp"]


@pytest.mark.parametrize(("name", "notion"), REQUESTS)
def test_the_first_example_has_a_certified_design_under_every_notion(
    name: str, notion: str
) -> None:
    family = get_family(name)
    given = adapt_request(family, {**first_example(family), "notion": notion}, "notion")
    given = {**given, "time_limit": "1"}
    view = Tasks().run("certify", {"family": name, "given": given})
    assert view["objective"] is not None
    assert view["certified"]
    assert view["bound"] is None or view["bound"] <= view["objective"] + 1e-9
