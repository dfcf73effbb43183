"""Test that a page offers what the family accepts, according to its messages."""

from __future__ import annotations

import pytest

from workbench.explorer.given import (
    find_slider_range,
    first_example,
    make_suggestions,
    read_option_values,
)
from workbench.explorer.page_request import (
    adapt_request,
    classify_missing_options,
    find_request_refusal,
    list_slider_options,
)
from workbench.explorer.tasks import Tasks
from workbench.pipeline.registry import get_family, list_families

NOISE = {"n": "8", "max_shift": "3", "epsilon": "1.5", "delta": "0.1"}


def test_only_what_applies_is_offered() -> None:
    room = classify_missing_options(get_family("modulo"), NOISE)
    assert {"rho", "mu", "alpha", "curve", "tradeoff", "max_loss"} <= set(room["unfit"])
    assert not {"notion", "loss", "minimise", "runs"} & set(room["unfit"])
    assert room["instead"] == {"sizes": ["n"], "shifts": ["max_shift"]}
    zcdp = classify_missing_options(
        get_family("modulo"), {"n": "8", "max_shift": "3", "notion": "zcdp", "rho": "0.1"}
    )
    assert {"epsilon", "delta", "minimise"} <= set(zcdp["unfit"])
    assert "rho" not in zcdp["unfit"]
    bins = classify_missing_options(
        get_family("labels"), {"labels": "0..20", "epsilon": "4", "method": "bins"}
    )
    assert {"delta", "neighbours", "constraints"} <= set(bins["unfit"])


@pytest.mark.parametrize(
    ("name", "given", "changed", "wanted"),
    [
        (
            "modulo",
            {**NOISE, "notion": "zcdp"},
            "notion",
            {"n": "8", "max_shift": "3", "notion": "zcdp", "rho": "0.1"},
        ),
        (
            "modulo",
            {**NOISE, "minimise": "delta"},
            "minimise",
            {**NOISE, "minimise": "delta", "max_loss": "0.5"},
        ),
        (
            "labels",
            {"labels": "0..7", "epsilon": "4", "notion": "gdp", "method": "bins"},
            "notion",
            {"labels": "0..7", "notion": "gdp", "method": "lp", "mu": "0.5"},
        ),
    ],
)
def test_after_a_choice_the_request_fits(
    name: str, given: dict[str, str], changed: str, wanted: dict[str, str]
) -> None:
    fit = adapt_request(get_family(name), given, changed, "0.5")
    assert fit == wanted
    assert find_request_refusal(get_family(name), given) is not None
    assert find_request_refusal(get_family(name), fit) is None


@pytest.mark.parametrize(
    "notion", ["dp", "pure", "pdp", "metric", "curve", "tradeoff", "renyi", "zcdp", "gdp"]
)
def test_every_notion_begins_with_a_request_that_is_taken_and_its_own_sliders(notion: str) -> None:
    kind = get_family("modulo")
    given = adapt_request(kind, {**NOISE, "notion": notion}, "notion")
    assert find_request_refusal(kind, given) is None
    own = {
        "zcdp": "rho",
        "gdp": "mu",
        "renyi": "epsilon",
        "curve": "curve",
        "tradeoff": "tradeoff",
    }.get(notion, "epsilon")
    slid = list_slider_options(kind, read_option_values(kind, given))
    assert own in slid
    assert ("delta" in slid) == (notion in ("dp", "pdp"))


def test_sliders_have_the_ranges_of_what_they_move() -> None:
    options = {option.name: option for option in get_family("modulo").options}
    share = find_slider_range(options["delta"])
    assert share is not None
    assert share["scale"] == "share"
    assert 0 < share["low"] < 1e-6
    assert find_slider_range(options["alpha"])["low"] > 1  # type: ignore[index]
    assert find_slider_range(options["runs"])["scale"] == "count"  # type: ignore[index]
    assert find_slider_range(options["n"]) is None


def test_a_price_is_drawn_against_every_number_of_a_notion() -> None:
    live = Tasks()
    given = {"n": "6", "max_shift": "1", "notion": "zcdp", "rho": "0.1"}
    curve = live.run("along", {"family": "modulo", "given": given, "along": "rho"})
    (designs,) = [one for one in curve["figure"]["series"] if one["name"] == "designs"]
    assert designs["x"] == sorted(designs["x"])
    assert designs["y"] == sorted(designs["y"], reverse=True)
    assert 0.1 in designs["x"]


def test_designs_on_the_way_are_told_with_their_laws() -> None:
    told: list[dict] = []  # type: ignore[type-arg]
    Tasks().run(
        "along",
        {"family": "modulo", "given": NOISE, "along": "epsilon"},
        lambda d, n, part=None: told.append(part),
    )
    assert len(told) >= 5
    assert {part["along"] for part in told} == {"epsilon"}
    assert all(part["view"]["figures"][0]["kind"] == "bars" for part in told)
    assert not any(part["view"]["certified"] for part in told)


def test_what_is_infeasible_says_so_as_the_command_line_does() -> None:
    view = Tasks().run("design", {"family": "laplace", "given": {"epsilon": "1", "bits": "1"}})
    assert view["objective"] is None
    assert view["status"] == "infeasible"
    assert view["reason"].startswith("Not reachable: no ell brings the mean length")


@pytest.mark.parametrize("kind", list_families(), ids=lambda kind: kind.name)
def test_every_family_has_a_first_request(kind) -> None:  # type: ignore[no-untyped-def]
    assert find_request_refusal(kind, first_example(kind)) is None


def test_zero_stands_apart_from_a_logarithmic_axis() -> None:
    figure = Tasks().run("along", {"family": "modulo", "given": NOISE, "along": "delta"})["figure"]
    (designs,) = [one for one in figure["series"] if one["name"] == "designs"]
    assert figure["zero"]
    assert figure["x"]["log"]
    assert designs["x"][0] == 0
    assert 0 < designs["x"][1] < 1e-6


def test_examples_read_no_file_and_losses_are_lists() -> None:
    given = [example["given"] for example in make_suggestions(get_family("channel"))["examples"]]
    assert given
    assert not any("places" in one for one in given)  # The example reads city.csv.
    for name, words in (
        ("noise", ["absolute", "squared", "error-rate"]),
        ("quantizer", ["absolute", "squared"]),
    ):
        assert make_suggestions(get_family(name))["words"]["loss"][: len(words)] == words
