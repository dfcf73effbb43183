"""Test that a page offers what the family accepts, according to its messages."""

from __future__ import annotations

from typing import Any

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
from workbench.pipeline.family import Family
from workbench.pipeline.registry import get_family, list_families

NOISE = {"n": "8", "max_shift": "3", "epsilon": "1.5", "delta": "0.1"}


def test_parameters_of_other_notions_do_not_fit() -> None:
    dp = classify_missing_options(get_family("modulo"), NOISE)
    assert {"rho", "mu", "alpha", "curve", "tradeoff", "max_loss"} <= set(dp["unfit"])
    assert not {"notion", "loss", "minimise", "runs"} & set(dp["unfit"])
    zcdp = classify_missing_options(
        get_family("modulo"), {"n": "8", "max_shift": "3", "notion": "zcdp", "rho": "0.1"}
    )
    assert {"epsilon", "delta", "minimise"} <= set(zcdp["unfit"])
    assert "rho" not in zcdp["unfit"]


def test_an_option_that_states_the_question_otherwise_replaces_the_given_one() -> None:
    missing_options = classify_missing_options(get_family("modulo"), NOISE)
    assert missing_options["instead"] == {"sizes": ["n"], "shifts": ["max_shift"]}


def test_options_that_the_method_does_not_support_do_not_fit() -> None:
    bins = classify_missing_options(
        get_family("labels"), {"labels": "0..20", "epsilon": "4", "method": "bins"}
    )
    assert {"delta", "neighbours", "constraints"} <= set(bins["unfit"])


@pytest.mark.parametrize(
    ("name", "given", "changed_option", "expected"),
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
def test_a_request_is_adapted_to_a_changed_option(
    name: str, given: dict[str, str], changed_option: str, expected: dict[str, str]
) -> None:
    family = get_family(name)
    assert find_request_refusal(family, given) is not None
    adapted = adapt_request(family, given, changed_option, limit="0.5")
    assert adapted == expected
    assert find_request_refusal(family, adapted) is None


@pytest.mark.parametrize(
    "notion", ["dp", "pure", "pdp", "metric", "curve", "tradeoff", "renyi", "zcdp", "gdp"]
)
def test_a_request_under_every_notion_is_accepted_and_has_its_sliders(notion: str) -> None:
    family = get_family("modulo")
    given = adapt_request(family, {**NOISE, "notion": notion}, "notion")
    assert find_request_refusal(family, given) is None
    parameters = {"zcdp": "rho", "gdp": "mu", "curve": "curve", "tradeoff": "tradeoff"}
    sliders = list_slider_options(family, read_option_values(family, given))
    assert parameters.get(notion, "epsilon") in sliders
    assert ("delta" in sliders) == (notion in ("dp", "pdp"))


def test_the_range_of_a_slider_depends_on_its_option() -> None:
    options = {option.name: option for option in get_family("modulo").options}
    share = find_slider_range(options["delta"])
    assert share is not None
    assert share["scale"] == "share"
    assert 0 < share["low"] < 1e-6
    assert find_slider_range(options["alpha"])["low"] > 1  # type: ignore[index]
    assert find_slider_range(options["runs"])["scale"] == "count"  # type: ignore[index]
    assert find_slider_range(options["n"]) is None


def find_designs(figure: dict[str, Any]) -> dict[str, Any]:
    """Return the series of the designs in the figure of a curve."""
    (designs,) = [series for series in figure["series"] if series["name"] == "designs"]
    return designs


def test_the_loss_decreases_along_rho() -> None:
    given = {"n": "6", "max_shift": "1", "notion": "zcdp", "rho": "0.1"}
    curve = Tasks().run("along", {"family": "modulo", "given": given, "along": "rho"})
    designs = find_designs(curve["figure"])
    assert designs["x"] == sorted(designs["x"])
    assert designs["y"] == sorted(designs["y"], reverse=True)
    assert 0.1 in designs["x"]


def test_designs_along_a_curve_are_reported_with_their_laws() -> None:
    parts: list[dict[str, Any]] = []

    def store_part(done_count: int, total: int, part: Any = None) -> None:
        """Store the part of the answer that the task reports."""
        parts.append(part)

    Tasks().run("along", {"family": "modulo", "given": NOISE, "along": "epsilon"}, store_part)
    assert len(parts) >= 5
    assert {part["along"] for part in parts} == {"epsilon"}
    assert all(part["view"]["figures"][0]["kind"] == "bars" for part in parts)
    assert not any(part["view"]["certified"] for part in parts)


def test_an_infeasible_request_has_the_reason_of_the_command_line() -> None:
    view = Tasks().run("design", {"family": "laplace", "given": {"epsilon": "1", "bits": "1"}})
    assert view["objective"] is None
    assert view["status"] == "infeasible"
    assert view["reason"].startswith("Not reachable: no ell brings the mean length")


@pytest.mark.parametrize("family", list_families(), ids=lambda family: family.name)
def test_every_family_accepts_its_first_example(family: Family) -> None:
    assert find_request_refusal(family, first_example(family)) is None


def test_a_logarithmic_axis_of_delta_starts_with_0() -> None:
    figure = Tasks().run("along", {"family": "modulo", "given": NOISE, "along": "delta"})["figure"]
    designs = find_designs(figure)
    assert figure["zero"]
    assert figure["x"]["log"]
    assert designs["x"][0] == 0
    assert 0 < designs["x"][1] < 1e-6


def test_examples_that_read_a_file_are_not_suggested() -> None:
    examples = make_suggestions(get_family("channel"))["examples"]
    assert examples
    # The example with places reads city.csv.
    assert not any("places" in example["given"] for example in examples)


@pytest.mark.parametrize(
    ("name", "first_losses"),
    [
        ("noise", ["absolute", "squared", "error-rate"]),
        ("quantizer", ["absolute", "squared"]),
    ],
)
def test_the_losses_of_a_family_are_suggested(name: str, first_losses: list[str]) -> None:
    losses = make_suggestions(get_family(name))["words"]["loss"]
    assert losses[: len(first_losses)] == first_losses
