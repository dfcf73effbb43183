"""Test the comparison of mechanisms that the first page of the explorer shows.

`wb.recommend` compares all mechanisms that answer a question, by class ("best channel", "clamped
geometric", ...). The page shows a sentence about the best one (the lead), a table of rows, and the
page of a mechanism after a click on its row. The tasks of `Tasks` compute what the page asks for:
"recommend" the comparison, "class" one row of it, "rivals" the published mechanisms beside a
design.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any, NoReturn, cast
from urllib.parse import parse_qsl

import pytest

import workbench as wb
from workbench.explorer import alone
from workbench.explorer.comparison import (
    describe_class,
    describe_comparison,
    link_published,
    round_loss,
)
from workbench.explorer.page_request import PageRequest
from workbench.explorer.tasks import Tasks
from workbench.pipeline.registry import get_family
from workbench.recommendation.recommend import Recommendation

QUERY = {"answers": "0..4", "max_shift": "1", "epsilon": "1", "delta": "1e-5", "loss": "squared"}


@pytest.fixture(scope="module")
def counts() -> Recommendation:
    """Return the comparison for counts 0..4."""
    return wb.recommend(answers="0..4", max_shift=1, epsilon=1, delta="1e-5")


@pytest.fixture(scope="module")
def reals() -> Recommendation:
    """Return the comparison for the real numbers in [0, 1]."""
    return wb.recommend(range="0..1", epsilon=1, loss="absolute", time_limit=1)


def test_losses_are_rounded_up_and_bounds_down() -> None:
    """Four digits are kept by default."""
    assert round_loss(1.78579158) == "1.786"
    assert round_loss(1.78575794, digits=5, is_bound=True) == "1.7857"
    assert round_loss(0.0123411) == "0.01235"
    # A number with few digits is not changed.
    assert [round_loss(0.3), round_loss(2), round_loss(1200.0)] == ["0.3", "2", "1200"]


def test_the_lead_claims_no_more_than_the_rows(counts: Recommendation) -> None:
    view = describe_comparison(counts)
    lead = re.fullmatch(
        r"Best: an optimal table of probabilities, mean squared error (?P<loss>\S+) "
        r"\(typically ±(?P<error>[\d.]+)\); no mechanism is below (?P<bound>\S+)\. "
        r"Simpler: geometric \(discrete Laplace\) noise, (?P<more>\S+) % more\.",
        view["lead"],
    )
    assert lead is not None
    rows = {row["class"]: row for row in counts}
    best = rows["best channel"]
    ratio = rows["clamped geometric"]["objective"] / best["objective"]
    root_mean_square = best["objective"] ** 0.5
    percent_more = 100 * (ratio - 1)
    # Losses are rounded up, and bounds down.
    assert best["objective"] <= float(lead["loss"]) < best["objective"] * 1.001
    assert best["bound"] * 0.9999 < float(lead["bound"]) <= best["bound"]
    assert root_mean_square <= float(lead["error"]) < root_mean_square * 1.01
    assert percent_more <= float(lead["more"]) < percent_more * 1.1


def test_a_prior_that_is_assumed_is_named(counts: Recommendation) -> None:
    view = describe_comparison(counts)
    assert "assumes that all answers are equally likely" in view["assumption"]
    best = next(row for row in view["rows"] if row["class"] == "best channel")
    assert best["remark"].startswith("assumes that all answers are equally likely")


def test_no_prior_is_assumed_if_the_worst_answer_counts() -> None:
    worst = wb.recommend(answers="0..2", max_shift=1, epsilon=1, prior="worst")
    assert describe_comparison(worst)["assumption"] == ""


def test_the_lead_has_no_bound_if_the_outputs_are_given() -> None:
    """The bound holds for mechanisms with these outputs only, and the lead is about all."""
    result = wb.recommend(answers="0..4", outputs="0,4", max_shift=1, epsilon=1)
    assert "no mechanism is below" not in describe_comparison(result)["lead"]


def test_a_class_that_was_stopped_leaves_the_best_open(reals: Recommendation) -> None:
    rows = [{**row, "notes": "stopped: early"} for row in reals]
    stopped = Recommendation(reals.title, rows, "recommend", chosen=reals.chosen, query=reals.query)
    assert describe_comparison(stopped)["lead"].startswith("Best found: ")


def test_every_mechanism_of_a_range_can_be_shown(reals: Recommendation) -> None:
    solved = [row for row in reals if row["objective"] is not None]
    assert len(solved) > 5
    for row in solved:
        view = describe_class(reals, row["class"])["view"]
        assert view["objective"] == row["objective"]
        assert view["certified"] == bool(row["certified"])


def test_a_published_mechanism_is_shown_with_its_certificate(counts: Recommendation) -> None:
    answer = describe_class(counts, "clamped geometric")
    certificate = counts.design("clamped geometric").certificate
    assert answer["view"]["certificate"] == certificate.content().decode()
    assert answer["profile"]["risk"]["guess"] > 0.5


def test_a_class_that_does_not_apply_gives_the_reason(reals: Recommendation) -> None:
    with pytest.raises(wb.errors.InvalidRequest, match="cannot be shown: it needs delta > 0"):
        describe_class(reals, "Gaussian")


def refuse_designs(*_: object, **__: object) -> None:
    """Raise an error in place of a computation that must not happen again."""
    raise AssertionError("A design was computed a second time.")


def test_a_page_that_a_click_opens_computes_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = Tasks()
    view = tasks.run("recommend", {"query": QUERY})
    row = next(row for row in view["rows"] if row["class"] == "integer noise, clamped")
    given = dict(parse_qsl(row["state"]))
    family = get_family(given.pop("family"))
    monkeypatch.setattr(type(family), "design_request", refuse_designs)
    monkeypatch.setattr(alone, "compute_recommendation", refuse_designs)
    # The chart has other values of ε.
    monkeypatch.setattr(alone, "compute_class_curve", lambda *_: None)
    assert row["view"]["given"] == given
    assert row["view"]["objective"] == row["objective"]
    assert "certificate" in row["view"]
    assert tasks.run("profile", {"family": family.name, "given": given})["figures"]
    # A published mechanism comes from the same comparison.
    answer = tasks.run("class", {"query": QUERY, "class": "clamped geometric"})
    assert answer["view"]["heading"] == "Geometric (discrete Laplace) noise, clamped"


def test_a_class_is_shown_without_an_earlier_comparison() -> None:
    request = {"query": QUERY, "class": "clamped geometric"}
    answer: dict[str, Any] = Tasks().run("class", request)
    epsilon = Fraction(QUERY["epsilon"])
    expected = wb.recommend(
        answers="0..4", max_shift=1, epsilon=epsilon, delta="1e-5", only="clamped geometric"
    )
    assert answer["view"]["objective"] == expected.rows[0]["objective"]


def test_a_design_of_the_page_is_compared_by_its_loss_alone() -> None:
    """The design minimises the ε of the decoder. The page compares its mean squared error."""
    answer = Tasks().run("rivals", {"family": "laplace", "given": {"epsilon": "1", "bits": "5"}})
    assert answer["design"]["label"] == "mean squared error"
    assert answer["design"]["value"] == 2
    assert answer["overlays"] == {}


def test_published_curves_pass_through_the_table_of_the_budget() -> None:
    given = {"on": "reals", "loss": "absolute", "epsilon": "0.5"}
    answer = Tasks().run("rivals", {"family": "noise", "given": given})
    losses = {name: loss for name, loss, *_ in answer["table"]["rows"]}
    curves = {series["name"]: series for series in answer["overlays"]["epsilon"]}
    assert "Laplace" in curves
    for name, series in curves.items():
        loss = dict(zip(series["x"], series["y"], strict=True))[0.5]
        assert loss == pytest.approx(losses[name], rel=1e-9)
        assert sorted(series["x"]) == series["x"]
        assert series["y"] == sorted(series["y"], reverse=True)


@pytest.mark.parametrize(
    ("family", "given"),
    [
        ("channel", {"answers": "0..4", "max_shift": "1", "epsilon": "1", "delta": "0.01"}),
        ("noise", {"on": "integers", "clamp": "0..4", "epsilon": "1", "delta": "0.01"}),
    ],
)
def test_published_mechanisms_of_a_family_page_are_links(
    family: str, given: dict[str, str]
) -> None:
    """The page of the link has the loss of the table."""
    tasks = Tasks()
    given = {**given, "loss": "squared"}
    answer = tasks.run("rivals", {"family": family, "given": given})
    losses = {name: loss for name, loss, *_ in answer["table"]["rows"]}
    name = next(name for name in losses if name.startswith("geometric"))
    query = dict(parse_qsl(answer["links"][name]))
    class_name = query.pop("class")
    assert query.pop("form") == "numbers"
    view = tasks.run("class", {"query": query, "class": class_name})["view"]
    assert view["objective"] == pytest.approx(losses[name], rel=1e-9)


def test_a_request_that_the_first_page_cannot_express_has_no_links() -> None:
    given = {"answers": "0..4", "max_shift": "1", "epsilon": "1", "prior": "worst"}
    answer = Tasks().run("rivals", {"family": "channel", "given": given})
    assert answer["links"] == {}


def test_the_page_of_laplace_noise_shows_how_its_error_falls_with_epsilon() -> None:
    query = {"range": "0..1", "sensitivity": "1", "epsilon": "1", "loss": "squared"}
    answer = Tasks().run("class", {"query": query, "class": "Laplace"})
    (series,) = answer["along"]["series"]
    assert series["name"] == "Laplace"
    for epsilon, loss in zip(series["x"], series["y"], strict=True):
        # The variance of Laplace noise of scale 1/ε. The scale is rounded up.
        assert loss == pytest.approx(2 / epsilon**2, rel=1e-4)
    assert 1.0 in series["x"]


def test_a_family_without_a_loss_has_no_links_to_published_mechanisms() -> None:
    """A family of a plug-in, as in tests/plugin_package, need not have the option "loss"."""

    class FamilyWithoutLoss:
        """A family that has no option at all."""

        name = "response"

        def get_option(self, name: str) -> NoReturn:
            """Raise the error of an unknown option."""
            raise KeyError(name)

    request = PageRequest(cast("Any", FamilyWithoutLoss()), {"k": "3", "epsilon": "1"}, {})
    assert link_published(request, ["geometric"]) == {}


@pytest.mark.parametrize(
    ("family", "texts", "link_part"),
    [
        ("channel", {"answers": "0..4", "max_shift": "1"}, "class=geometric"),
        ("noise", {"on": "integers", "clamp": "0..4"}, "class=clamped+geometric"),
        ("noise", {"on": "integers"}, None),
        ("modulo", {"n": "4", "max_shift": "1"}, None),
    ],
)
def test_published_mechanisms_are_links_if_the_first_page_has_the_question(
    family: str, texts: dict[str, str], link_part: str | None
) -> None:
    request = PageRequest(get_family(family), {**texts, "epsilon": "1"}, {})
    links = link_published(request, ["geometric"])
    if link_part is None:
        assert links == {}
    else:
        assert link_part in links["geometric"]
