"""Test the registry of published mechanisms, which frontiers, reports and recommendations list."""

from __future__ import annotations

from typing import Any

import pytest

import workbench as wb
from workbench.families.noise.published import REPEATED_NOISE_NAMES
from workbench.frontiers.run import get_frontier
from workbench.io.plugins import Plugin
from workbench.models.noise.repeated_wide_noise import published_shapes
from workbench.pipeline.published import (
    USER_PACKAGE,
    Baseline,
    Published,
    compute_references,
    index_by_name,
    list_entries,
    published_for,
)
from workbench.pipeline.registry import get_family, list_builtin_families

# Options of a fast frontier, for every family.
FRONTIER_OPTIONS: dict[str, dict[str, Any]] = {
    "modulo": {"n": 4, "max_shift": 1, "level": "none"},
    "channel": {"answers": "0..2", "max_shift": 1},
    "noise": {},
    "labels": {"labels": "0..2", "method": "lp"},
    "quantizer": {"levels": "2,3", "starts": 1},
}


@pytest.mark.parametrize("name", FRONTIER_OPTIONS)
def test_the_baselines_of_a_frontier_come_from_the_registry(name: str):
    family = get_family(name)
    options = {**FRONTIER_OPTIONS[name], "epsilon": "1"}
    if name != "quantizer":
        options["delta"] = "0.1"
    rows = [row for row in wb.frontier(name, **options) if row["curve"] == "baseline"]
    mechanism_names = {row["mechanism"] for row in rows}
    assert mechanism_names
    assert mechanism_names <= {*index_by_name(family.published_mechanisms())}
    assert "baselines" in {option.name for option in get_frontier(family).options}
    without_baselines = wb.frontier(name, **options, baselines=False)
    assert not [row for row in without_baselines if row["curve"] == "baseline"]
    for row in rows:
        assert row.get("objective") is not None or row["failure"], row


def test_the_source_of_every_entry_has_a_year():
    entries = []
    for family in list_builtin_families():
        entries += family.published_mechanisms()
    assert len(entries) > 30
    for entry in entries:
        assert any(word.strip(";,").isdigit() for word in entry.source.split()), entry.name


def make_geometric_noise(request: Any) -> Any:
    """Return geometric noise at the ε of the request."""
    epsilon = request.claim.epsilon
    return wb.design(request.question, epsilon=epsilon, notion="pure", loss="squared").mechanism


def install_baselines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that a package has a baseline of the family "noise" and one of "modulo"."""
    plugins = {
        "installed": Plugin(Baseline("installed", "noise", make_geometric_noise), "somebody 1.0"),
        "other": Plugin(Baseline("other", "modulo", make_geometric_noise), "somebody 1.0"),
    }
    monkeypatch.setattr("workbench.pipeline.published.load_plugins", lambda group: plugins)


def test_families_packages_and_users_have_entries_of_one_type(monkeypatch: pytest.MonkeyPatch):
    """Frontiers and `recommend` list all three."""
    noise = get_family("noise")
    install_baselines(monkeypatch)
    family_names = [entry.name for entry in noise.published_mechanisms()]
    entries = list_entries(noise, [Baseline("mine", "noise", make_geometric_noise)])
    assert all(type(entry) is Published for entry in entries)
    assert [entry.name for entry in entries] == [*family_names, "installed", "mine"]
    assert [entry.package for entry in entries] == [
        *[""] * len(family_names),
        "somebody 1.0",
        USER_PACKAGE,
    ]
    request = noise.make_request(wb.IntegerNoise(1), epsilon=1, delta="0.01", loss="squared")
    assert {*compute_references(entries, request)} >= {"geometric", "installed", "mine"}


def test_reports_only_list_the_entries_of_the_family(monkeypatch: pytest.MonkeyPatch):
    noise = get_family("noise")
    install_baselines(monkeypatch)
    family_names = [entry.name for entry in noise.published_mechanisms()]
    request = noise.make_request(wb.IntegerNoise(1), epsilon=1, delta="0.01", loss="squared")
    assert {entry.name for entry in published_for(request)} <= {*family_names}
    assert all(entry.serves(request) for entry in published_for(request))
    assert "Laplace" not in {entry.name for entry in published_for(request)}


def test_the_baselines_of_a_frontier_are_audited_and_have_the_losses_of_the_report():
    request = get_family("noise").make_request(
        wb.IntegerNoise(1), epsilon=1, delta="0.01", loss="squared"
    )
    references = compute_references(published_for(request), request)
    rows = wb.frontier(wb.IntegerNoise(1), epsilon="1", delta="0.01", loss="squared")
    baselines = {row["mechanism"]: row for row in rows if row["curve"] == "baseline"}
    # With sensitivity 1, staircase noise is geometric noise.
    assert "it equals geometric noise" in baselines.pop("staircase")["failure"]
    assert set(baselines) == {"geometric", "truncated geometric", "discrete Gaussian"}
    assert set(baselines) == set(references)
    for name, row in baselines.items():
        assert row["objective"] == references[name].objective
        assert row["private"] is True
        assert row["dp_delta"] <= 0.01


def test_frontiers_for_several_runs_list_the_noise_that_is_published_for_runs():
    assert tuple(published_shapes(2)) == REPEATED_NOISE_NAMES
    rows = wb.frontier(wb.IntegerNoise(1), epsilon="4", delta="1e-5", loss="squared", runs="1,2")
    rows_for_two_runs = [row for row in rows if row["runs"] == 2]
    names = {row["mechanism"] for row in rows_for_two_runs if row["curve"] == "baseline"}
    assert names == set(REPEATED_NOISE_NAMES)


def test_a_zcdp_design_is_compared_with_discrete_gaussian_noise():
    """σ² = 1/(2ρ) = 5 for ρ = 0.1. The variance of the discrete Gaussian is almost exactly σ²."""
    design = wb.design(wb.IntegerNoise(1), notion="zcdp", rho="0.1", loss="squared")
    loss_by_name = design.family.extra_json(design)["beside"]
    assert loss_by_name["discrete Gaussian"] == pytest.approx(5, rel=1e-9)
    assert design.objective < loss_by_name["discrete Gaussian"]


@pytest.mark.parametrize(
    "budget",
    [
        {"notion": "zcdp", "rho": "0.5"},
        {"notion": "gdp", "mu": 1},
        {"notion": "renyi", "alpha": 2, "epsilon": 1},
    ],
)
def test_gaussian_noise_on_the_reals_has_its_variance_under_its_own_notion(budget: dict[str, Any]):
    """For Δ = 2 the variances Δ²/(2ρ), Δ²/μ² and αΔ²/(2ε) are 4.

    No other published noise has a parameter for these notions.
    """
    request = get_family("noise").make_request(wb.RealNoise(2), loss="squared", **budget)
    references = compute_references(published_for(request), request)
    assert [*references] == ["Gaussian"]
    assert references["Gaussian"].objective == pytest.approx(4)


def test_a_user_baseline_is_audited_under_every_notion():
    # Randomized response: the true answer has probability 0.7, and each other answer 0.1.
    response = {"mine": [[0.7 if i == j else 0.1 for j in range(4)] for i in range(4)]}
    options: dict[str, Any] = {
        "answers": "0..3",
        "max_shift": 1,
        "notion": "zcdp",
        "baseline": response,
        "only": "mine",
    }
    (row,) = wb.recommend(rho=2, **options)
    assert row["certified"] is True
    end_loss = 0.1 * (1 + 4 + 9)  # The mean squared error at the answers 0 and 3.
    inner_loss = 0.1 * (1 + 1 + 4)  # The mean squared error at the answers 1 and 2.
    assert row["objective"] == pytest.approx((2 * end_loss + 2 * inner_loss) / 4)
    (row,) = wb.recommend(rho="0.1", **options)
    assert row["objective"] is None
    assert "not private" in row["notes"]


def test_the_epsilon_of_a_baseline_holds_between_neighbours_several_steps_apart():
    """The audit of geometric noise covers one step at ε/3. The row has the ε of all three steps."""
    for question in (wb.IntegerNoise(3), wb.FiniteQuery("0..9", max_shift=3)):
        rows = {row["mechanism"]: row for row in wb.frontier(question, epsilon="1", baselines=True)}
        row = rows.get("geometric") or rows["clamped geometric"]
        assert row["pure_epsilon"] == 1
        assert row["dp_delta"] == 0
        assert row["private"] is True
