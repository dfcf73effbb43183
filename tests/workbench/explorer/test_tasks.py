"""Test that the page follows a slider at once, with preliminary designs if solving takes long.

A design is preliminary if its solver was stopped after a moment. The page then requests the task
"complete". The first design of a question is never preliminary, because it also builds the model.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

import workbench as wb
from workbench.errors import InvalidRequest, NotProven
from workbench.explorer import figures, tasks
from workbench.explorer.given import describe_families
from workbench.explorer.tasks import Tasks
from workbench.families.modulo.problem import ModuloSession
from workbench.pipeline.family import Session
from workbench.pipeline.registry import get_family

NOISE = {"n": "16", "max_shift": "3", "delta": "0.05", "notion": "pdp"}


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every design except the first a slow one, with no time for a proof."""
    monkeypatch.setattr(tasks, "_SLOW_DESIGN_SECONDS", 0.0)
    monkeypatch.setattr(tasks, "_PRELIMINARY_SECONDS", Fraction(1, 10**6))


@pytest.fixture
def live() -> Tasks:
    """Return tasks without earlier designs."""
    return Tasks()


def make_request(epsilon: str, **options: str) -> dict[str, Any]:
    """Return the request of a page for noise modulo 17 (or n + 1) at an ε."""
    return {"family": "modulo", "given": {**NOISE, "epsilon": epsilon, **options}}


def read_notes(view: dict[str, Any]) -> list[str]:
    """Return the notes of a design."""
    return [text for label, text in view["facts"] if label == "note"]


def test_a_preliminary_design_states_an_interval_of_the_optimum(
    live: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_SLOW_DESIGN_SECONDS", 0.0)
    monkeypatch.setattr(tasks, "_PRELIMINARY_SECONDS", Fraction(1, 100))
    for epsilon in ("3", "3.1"):
        live.run("design", make_request(epsilon, n="40"))
    # This design needs thousands of linear programs, so a moment is too short for the optimal law.
    view = live.run("design", make_request("1.04", n="40"))
    bound = view["row"]["bound"]
    assert view["preliminary"] is True
    assert bound < view["objective"] - 1e-5
    assert bound <= view["row"]["oracle_value"] + 1e-9
    interval = f"the optimum lies between {bound:.9g} and {view['objective']:.9g}"
    assert read_notes(view)[-1] == f"Preliminary: {interval}. The solver has not finished."


def test_a_slow_design_is_preliminary_and_then_complete(live: Tasks, slow: None) -> None:
    for epsilon in ("1", "1.1"):  # The first design builds the model, the second one is slow.
        assert "preliminary" not in live.run("design", make_request(epsilon))
    view = live.run("design", make_request("1.2"))
    assert view["preliminary"] is True
    assert view["status"] == view["row"]["status"] == "time_limit"
    assert not view["certified"]
    complete = live.run("complete", make_request("1.2"))
    assert "preliminary" not in complete
    assert complete["status"] == "optimal"
    assert complete["objective"] == pytest.approx(complete["row"]["oracle_value"], abs=1e-9)
    assert view["objective"] >= complete["objective"] - 1e-9
    # Between these texts there may be an interval, if the time is enough for a bound.
    assert read_notes(view)[-1].startswith("Preliminary")
    assert read_notes(view)[-1].endswith(". The solver has not finished.")
    assert not any("Preliminary" in note for note in read_notes(complete))
    # The complete design is stored.
    assert "preliminary" not in live.run("design", make_request("1.2"))


def test_the_privacy_profile_is_that_of_the_complete_design(live: Tasks, slow: None) -> None:
    for epsilon in ("1", "1.1"):
        live.run("design", make_request(epsilon))
    live.run("design", make_request("1.2"))
    profile = live.run("profile", make_request("1.2"))
    assert Tasks().run("profile", make_request("1.2")) == profile


def test_a_fast_design_is_never_preliminary(live: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "_SLOW_DESIGN_SECONDS", 1e9)
    for epsilon in ("1", "1.1", "1.2"):
        assert "preliminary" not in live.run("design", make_request(epsilon))


def test_no_more_preliminary_solves_after_one_that_found_nothing(
    live: Tasks, slow: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stopped linear program has no design, so later ones are solved completely."""
    sessions: list[Session] = []
    design = ModuloSession.design

    def count_designs(self: ModuloSession, *arguments: Any, **options: Any) -> Any:
        sessions.append(self)
        if self.request.how.options.time_limit < 1e-3:
            raise wb.NotProven("The time limit was reached without a solution.")
        return design(self, *arguments, **options)

    monkeypatch.setattr(ModuloSession, "design", count_designs)
    for epsilon in ("1", "1.1", "1.2", "1.3"):
        view = live.run("design", make_request(epsilon, notion="dp"))
        assert "preliminary" not in view
        assert view["status"] == "optimal"
    # Four complete solves, and one preliminary solve.
    assert len(sessions) == 5


def test_a_time_limit_in_the_request_is_kept(live: Tasks, slow: None) -> None:
    for epsilon in ("1", "1.1", "1.2"):
        view = live.run("design", make_request(epsilon, time_limit="0.0000001"))
        assert "preliminary" not in view
        assert any(text.startswith("Not proven optimal: ") for _, text in view["facts"])


def test_the_objective_is_never_called_the_bound(live: Tasks) -> None:
    given = {"bins": "-3,-0.5,0.5,3", "epsilon": "1"}
    view = live.run("design", {"family": "quantizer", "given": given})
    assert view["label"] == "mean absolute error"
    figure = live.run("along", {"family": "quantizer", "given": given, "along": "epsilon"})[
        "figure"
    ]
    assert figure["y"]["label"] == "mean absolute error"


def test_no_curve_where_an_option_takes_one_value_only(live: Tasks) -> None:
    given = {"labels": "0..3", "epsilon": "1"}
    assert (
        live.run("along", {"family": "labels", "given": given, "along": "delta"})["figure"] is None
    )  # Pure DP.
    assert (
        live.run("along", {"family": "labels", "given": given, "along": "epsilon"})["figure"]
        is not None
    )


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        (
            "labels",
            {"labels": "0..3", "method": "lp", "notion": "zcdp", "rho": "0.1"},
            "at one epsilon, which",
        ),
    ],
)
def test_why_no_other_mechanisms_are_listed(
    live: Tasks, name: str, given: dict[str, str], words: str
) -> None:
    with pytest.raises(InvalidRequest, match=words):
        live.run("rivals", {"family": name, "given": given})


def test_where_no_mechanism_is_published_the_table_says_so(live: Tasks) -> None:
    given = {"n": "3", "max_shift": "1", "notion": "zcdp", "rho": "0.1"}
    table = live.run("rivals", {"family": "modulo", "given": given})["table"]
    assert (table["rows"], table["note"]) == ([], "None is published for this budget.")
    assert live.run("rivals", make_request("1"))["table"]["note"] == ""


def test_a_family_without_trade_offs_says_so(live: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(get_family("modulo")), "frontier", None)
    with pytest.raises(
        InvalidRequest, match="No published mechanisms are listed for the family modulo"
    ):
        live.run("rivals", make_request("1"))


def test_a_page_begins_with_what_its_sliders_move() -> None:
    for entry in describe_families():
        hot = [option["name"] for option in entry["options"] if option["hot"]]
        assert "epsilon" not in hot or "epsilon" in entry["first"]


def test_what_may_jump_is_drawn_in_steps(live: Tasks) -> None:
    given = {"n": "8", "max_shift": "3", "delta": "0.1", "epsilon": "1"}
    for notion, delta, steps in (("pdp", "0.1", True), ("pdp", "0", False), ("dp", "0.1", False)):
        asked = {
            "family": "modulo",
            "given": {**given, "notion": notion, "delta": delta},
            "along": "epsilon",
        }
        figure = live.run("along", asked)["figure"]
        assert [one["steps"] for one in figure["series"] if one["look"] == "hollow"] == [steps]


def test_what_is_stopped_before_it_is_private_is_no_answer(live: Tasks) -> None:
    """A stopped design is certified or refused. A law that violates its budget has a lower loss."""
    given = {
        "n": "60",
        "max_shift": "7",
        "epsilon": "0.7",
        "delta": "0.13",
        "notion": "pdp",
        "loss": "squared",
    }
    stopped = live.run("certify", {"family": "modulo", "given": given | {"time_limit": "0.3"}})
    assert stopped["certified"]
    assert stopped["note"].startswith("Not proven optimal: ")
    good = wb.design("modulo", n=8, max_shift=3, epsilon=1, certify=False)
    below = replace(good, objective=0.9 * good.objective, bound=good.objective)
    with pytest.raises(NotProven, match="before its law was private"):
        tasks._solve_or_best_found(lambda: below)
    near = replace(below, objective=good.objective * (1 - 1e-9))
    assert tasks._solve_or_best_found(lambda: near) is near


def test_outlines_are_laws_and_cost_what_the_table_says(live: Tasks) -> None:
    """Outlines are laws of the middle answer, except for data-independent noise."""
    given = {"n": "8", "max_shift": "3", "epsilon": "1.5", "delta": "0.1"}
    made = live.run("rivals", {"family": "modulo", "given": given})
    assert len(made["laws"]) == 4
    for law in made["laws"]:
        assert law["x"] == [*range(9)]
        assert sum(law["y"]) == pytest.approx(1, abs=1e-12)
        assert min(law["y"]) >= 0
    costs = {name: cost for name, cost, *_ in made["table"]["rows"]}
    assert {law["name"].split(",")[0] for law in made["laws"]} == set(costs)
    assert 1 - made["laws"][0]["y"][0] == pytest.approx(costs["data-independent"], abs=1e-12)


def test_a_bound_far_above_the_designs_is_no_mark() -> None:
    rows = [
        {
            "delta": delta,
            "objective": least,
            "bound": least,
            "oracle_kind": "upper bound",
            "oracle_value": 1.0,
        }
        for delta, least in ((0.001, 0.99), (0.5, 0.4), (1.0, 0.0))
    ]
    figure = figures.make_curve_figure("delta", "least loss", rows, scale="share", steps=False)
    (marks,) = [one for one in figure["series"] if one["look"] == "halo"]
    assert marks["y"] == [1.0, None, None]


def test_a_curve_whose_points_lie_on_the_floor_is_logarithmic() -> None:
    for losses, log in (([966.0, 2.0, 1.5, 1.2], True), ([0.9, 0.6, 0.1, 0.0005], False)):
        rows = [
            {"epsilon": 1.0 + k, "objective": loss, "bound": loss} for k, loss in enumerate(losses)
        ]
        assert (
            figures.make_curve_figure("epsilon", "least loss", rows, scale="log", steps=False)["y"][
                "log"
            ]
            is log
        )
