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

ASKED: dict[str, dict[str, Any]] = {
    "modulo": {"n": 4, "max_shift": 1, "level": "none"},
    "channel": {"answers": "0..2", "max_shift": 1},
    "noise": {},
    "labels": {"labels": "0..2", "method": "lp"},
    "quantizer": {"levels": "2,3", "starts": 1},
}


@pytest.mark.parametrize("name", ASKED)
def test_a_frontier_lists_what_the_registry_has_for_its_requests(name: str):
    kind, given = get_family(name), {**ASKED[name], "epsilon": "1"}
    given |= {} if name == "quantizer" else {"delta": "0.1"}
    rows = [row for row in wb.frontier(name, **given) if row["curve"] == "baseline"]
    shown = {row["mechanism"] for row in rows}
    assert shown
    assert shown <= {*index_by_name(kind.published_mechanisms())}
    assert "baselines" in {option.name for option in get_frontier(kind).options}
    assert not [
        row for row in wb.frontier(name, **given, baselines=False) if row["curve"] == "baseline"
    ]
    for row in rows:
        assert row.get("objective") is not None or row["failure"], row


def test_every_entry_states_its_source():
    entries = [entry for kind in list_builtin_families() for entry in kind.published_mechanisms()]
    assert len(entries) > 30
    for entry in entries:
        assert any(word.strip(";,").isdigit() for word in entry.source.split()), entry.name


def test_families_packages_and_users_have_entries_of_one_type(monkeypatch: pytest.MonkeyPatch):
    """Frontiers and `recommend` list all three; reports list those of the family, whatever is installed."""
    noise = get_family("noise")

    def geometric(request: Any) -> Any:
        return wb.design(
            request.question, epsilon=request.claim.epsilon, notion="pure", loss="squared"
        ).mechanism

    plugin = Plugin(Baseline("installed", "noise", geometric), "somebody 1.0")
    elsewhere = Plugin(Baseline("elsewhere", "modulo", geometric), "somebody 1.0")
    monkeypatch.setattr(
        "workbench.pipeline.published.load_plugins",
        lambda group: {"installed": plugin, "elsewhere": elsewhere},
    )
    ours = [entry.name for entry in noise.published_mechanisms()]
    entries = list_entries(noise, [Baseline("mine", "noise", geometric)])
    assert all(type(entry) is Published for entry in entries)
    assert [entry.name for entry in entries] == [*ours, "installed", "mine"]
    assert [entry.package for entry in entries] == [*[""] * len(ours), "somebody 1.0", USER_PACKAGE]
    request = noise.make_request(wb.IntegerNoise(1), epsilon=1, delta="0.01", loss="squared")
    assert {*compute_references(entries, request)} >= {"geometric", "installed", "mine"}
    assert {entry.name for entry in published_for(request)} <= {*ours}
    assert all(entry.serves(request) for entry in published_for(request))
    assert "Laplace" not in {entry.name for entry in published_for(request)}


def test_noise_beside_a_design_is_audited_in_frontiers():
    request = get_family("noise").make_request(
        wb.IntegerNoise(1), epsilon=1, delta="0.01", loss="squared"
    )
    known = compute_references(published_for(request), request)
    rows = wb.frontier(wb.IntegerNoise(1), epsilon="1", delta="0.01", loss="squared")
    shown = {row["mechanism"]: row for row in rows if row["curve"] == "baseline"}
    assert "it equals geometric noise" in shown.pop("staircase")["failure"]
    assert set(shown) == {"geometric", "truncated geometric", "discrete Gaussian"} == set(known)
    for name, row in shown.items():
        assert row["objective"] == known[name].objective
        assert row["private"] is True
        assert row["dp_delta"] <= 0.01


def test_requests_for_several_runs_list_their_own_entries():
    assert tuple(published_shapes(2)) == REPEATED_NOISE_NAMES
    rows = wb.frontier(wb.IntegerNoise(1), epsilon="4", delta="1e-5", loss="squared", runs="1,2")
    shown = {row["mechanism"] for row in rows if row["curve"] == "baseline" and row["runs"] == 2}
    assert shown == set(REPEATED_NOISE_NAMES)


def test_gaussian_noise_stands_beside_a_design_under_its_own_notion():
    """σ² = 1/2ρ = 5 for ρ = .1; beyond a few steps the discrete law has that variance."""
    design = wb.design(wb.IntegerNoise(1), notion="zcdp", rho="0.1", loss="squared")
    beside = design.family.extra_json(design)["beside"]
    assert beside["discrete Gaussian"] == pytest.approx(5, rel=1e-9)
    assert design.objective < beside["discrete Gaussian"]


@pytest.mark.parametrize(
    "budget",
    [
        {"notion": "zcdp", "rho": "0.5"},
        {"notion": "gdp", "mu": 1},
        {"notion": "renyi", "alpha": 2, "epsilon": 1},
    ],
)
def test_gaussian_noise_on_the_reals_has_its_variance_under_its_own_notion(budget: dict[str, Any]):
    """Δ²/2ρ, Δ²/μ² and αΔ²/2ε are 4 for Δ = 2; the other laws have no such parameter."""
    kind = get_family("noise")
    request = kind.make_request(wb.RealNoise(2), loss="squared", **budget)
    known = compute_references(published_for(request), request)
    assert {name: cost.objective for name, cost in known.items()} == {"Gaussian": pytest.approx(4)}


def test_a_user_baseline_is_audited_under_every_notion():
    response = {"mine": [[0.7 if i == j else 0.1 for j in range(4)] for i in range(4)]}
    given: dict[str, Any] = {
        "answers": "0..3",
        "max_shift": 1,
        "notion": "zcdp",
        "baseline": response,
        "only": "mine",
    }
    (row,) = wb.recommend(rho=2, **given)
    assert row["certified"] is True
    assert row["objective"] == pytest.approx((2 * 0.1 * (1 + 4 + 9) + 2 * 0.1 * (1 + 1 + 4)) / 4)
    (row,) = wb.recommend(rho="0.1", **given)
    assert row["objective"] is None
    assert "not private" in row["notes"]


def test_noise_between_answers_several_steps_apart_says_its_epsilon_for_all_of_them():
    """What is audited of pure noise is one step at ε/D; a row says what D of them lose."""
    for question in (wb.IntegerNoise(3), wb.FiniteQuery("0..9", max_shift=3)):
        rows = {row["mechanism"]: row for row in wb.frontier(question, epsilon="1", baselines=True)}
        row = rows.get("geometric") or rows["clamped geometric"]
        assert row["pure_epsilon"] == 1
        assert (row["dp_delta"], row["private"]) == (0, True)
