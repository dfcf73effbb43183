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

# Options of noise modulo 17 without ε, as the texts in the fields of the page.
NOISE = {"n": "16", "max_shift": "3", "delta": "0.05", "notion": "pdp"}


@pytest.fixture
def slow_designs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat every design as slow, so that later ones are preliminary, with no time for a proof."""
    monkeypatch.setattr(tasks, "_SLOW_DESIGN_SECONDS", 0.0)
    monkeypatch.setattr(tasks, "_PRELIMINARY_SECONDS", Fraction(1, 10**6))


@pytest.fixture
def page_tasks() -> Tasks:
    """Return tasks without earlier designs."""
    return Tasks()


def make_request(epsilon: str, **options: str) -> dict[str, Any]:
    """Return the request of a page for noise modulo 17 (or n + 1) at an ε."""
    return {"family": "modulo", "given": {**NOISE, "epsilon": epsilon, **options}}


def read_notes(view: dict[str, Any]) -> list[str]:
    """Return the notes of a design."""
    return [text for label, text in view["facts"] if label == "note"]


def test_a_preliminary_design_states_an_interval_of_the_optimum(
    page_tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_SLOW_DESIGN_SECONDS", 0.0)
    monkeypatch.setattr(tasks, "_PRELIMINARY_SECONDS", Fraction(1, 100))
    for epsilon in ("3", "3.1"):
        page_tasks.run("design", make_request(epsilon, n="40"))
    # This design needs thousands of linear programs, so a moment is too short for the optimal law.
    view = page_tasks.run("design", make_request("1.04", n="40"))
    bound = view["row"]["bound"]
    assert view["preliminary"] is True
    assert bound < view["objective"] - 1e-5
    assert bound <= view["row"]["oracle_value"] + 1e-9
    interval = f"the optimum lies between {bound:.9g} and {view['objective']:.9g}"
    assert read_notes(view)[-1] == f"Preliminary: {interval}. The solver has not finished."


def run_preliminary_design(page_tasks: Tasks) -> dict[str, Any]:
    """Return the view of a preliminary design at ε = 1.2.

    The first design builds the model, the second one is slow, and the third one is preliminary.
    """
    for epsilon in ("1", "1.1"):
        assert "preliminary" not in page_tasks.run("design", make_request(epsilon))
    return page_tasks.run("design", make_request("1.2"))


def test_after_a_slow_design_the_next_one_is_preliminary(
    page_tasks: Tasks, slow_designs: None
) -> None:
    view = run_preliminary_design(page_tasks)
    assert view["preliminary"] is True
    assert view["status"] == view["row"]["status"] == "time_limit"
    assert not view["certified"]
    # Between these texts there may be an interval, if the time is enough for a bound.
    assert read_notes(view)[-1].startswith("Preliminary")
    assert read_notes(view)[-1].endswith(". The solver has not finished.")


def test_a_preliminary_design_is_completed(page_tasks: Tasks, slow_designs: None) -> None:
    view = run_preliminary_design(page_tasks)
    complete = page_tasks.run("complete", make_request("1.2"))
    assert "preliminary" not in complete
    assert complete["status"] == "optimal"
    assert complete["objective"] == pytest.approx(complete["row"]["oracle_value"], abs=1e-9)
    assert view["objective"] >= complete["objective"] - 1e-9
    assert not any("Preliminary" in note for note in read_notes(complete))


def test_a_complete_design_is_stored(page_tasks: Tasks, slow_designs: None) -> None:
    run_preliminary_design(page_tasks)
    page_tasks.run("complete", make_request("1.2"))
    assert "preliminary" not in page_tasks.run("design", make_request("1.2"))


def test_the_privacy_profile_is_that_of_the_complete_design(
    page_tasks: Tasks, slow_designs: None
) -> None:
    for epsilon in ("1", "1.1"):
        page_tasks.run("design", make_request(epsilon))
    page_tasks.run("design", make_request("1.2"))
    profile = page_tasks.run("profile", make_request("1.2"))
    assert Tasks().run("profile", make_request("1.2")) == profile


def test_a_fast_design_is_never_preliminary(
    page_tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_SLOW_DESIGN_SECONDS", 1e9)
    for epsilon in ("1", "1.1", "1.2"):
        assert "preliminary" not in page_tasks.run("design", make_request(epsilon))


def test_after_a_preliminary_solve_without_a_design_all_are_complete(
    page_tasks: Tasks, slow_designs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stopped linear program has no design, so later ones are solved completely."""
    sessions: list[Session] = []
    design = ModuloSession.design

    def design_if_complete(self: ModuloSession, *arguments: Any, **options: Any) -> Any:
        """Record the solve. Raise the error of a preliminary solve that found no design."""
        sessions.append(self)
        if self.request.how.options.time_limit < 1e-3:
            raise wb.NotProven("The time limit was reached without a solution.")
        return design(self, *arguments, **options)

    monkeypatch.setattr(ModuloSession, "design", design_if_complete)
    for epsilon in ("1", "1.1", "1.2", "1.3"):
        view = page_tasks.run("design", make_request(epsilon, notion="dp"))
        assert "preliminary" not in view
        assert view["status"] == "optimal"
    # Four complete solves, and one preliminary solve.
    assert len(sessions) == 5


def test_a_time_limit_in_the_request_is_kept(page_tasks: Tasks, slow_designs: None) -> None:
    for epsilon in ("1", "1.1", "1.2"):
        view = page_tasks.run("design", make_request(epsilon, time_limit="0.0000001"))
        assert "preliminary" not in view
        assert any(text.startswith("Not proven optimal: ") for _, text in view["facts"])


def test_the_curve_of_a_quantizer_is_named_after_its_loss(page_tasks: Tasks) -> None:
    given = {"bins": "-3,-0.5,0.5,3", "epsilon": "1"}
    view = page_tasks.run("design", {"family": "quantizer", "given": given})
    assert view["label"] == "mean absolute error"
    answer = page_tasks.run("along", {"family": "quantizer", "given": given, "along": "epsilon"})
    assert answer["figure"]["y"]["label"] == "mean absolute error"


@pytest.mark.parametrize(("option", "has_curve"), [("delta", False), ("epsilon", True)])
def test_an_option_of_one_value_has_no_curve(
    page_tasks: Tasks, option: str, has_curve: bool
) -> None:
    """The method of this request is for pure DP, so δ can only be 0."""
    given = {"labels": "0..3", "epsilon": "1"}
    answer = page_tasks.run("along", {"family": "labels", "given": given, "along": option})
    assert (answer["figure"] is not None) == has_curve


# Other mechanisms: the task "rivals".


def test_an_error_says_why_no_other_mechanisms_are_listed(page_tasks: Tasks) -> None:
    given = {"labels": "0..3", "method": "lp", "notion": "zcdp", "rho": "0.1"}
    with pytest.raises(InvalidRequest, match="need a value of epsilon, which"):
        page_tasks.run("rivals", {"family": "labels", "given": given})


def test_a_note_says_that_no_mechanism_is_published_for_the_budget(page_tasks: Tasks) -> None:
    given = {"n": "3", "max_shift": "1", "notion": "zcdp", "rho": "0.1"}
    table = page_tasks.run("rivals", {"family": "modulo", "given": given})["table"]
    assert table["rows"] == []
    assert table["note"] == "None is published for this budget."
    assert page_tasks.run("rivals", make_request("1"))["table"]["note"] == ""


def test_a_family_without_a_frontier_lists_no_other_mechanisms(
    page_tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(get_family("modulo")), "frontier", None)
    message = "No published mechanisms are listed for the family modulo"
    with pytest.raises(InvalidRequest, match=message):
        page_tasks.run("rivals", make_request("1"))


def test_outlines_of_other_mechanisms_are_laws_with_the_loss_in_the_table(
    page_tasks: Tasks,
) -> None:
    """An outline is the law of the middle answer, or of the noise if it does not depend on the
    answer.
    """
    given = {"n": "8", "max_shift": "3", "epsilon": "1.5", "delta": "0.1"}
    answer = page_tasks.run("rivals", {"family": "modulo", "given": given})
    laws = answer["laws"]
    assert len(laws) == 4
    for law in laws:
        assert law["x"] == [*range(9)]
        assert sum(law["y"]) == pytest.approx(1, abs=1e-12)
        assert min(law["y"]) >= 0
    losses = {name: loss for name, loss, *_ in answer["table"]["rows"]}
    assert {law["name"].split(",")[0] for law in laws} == set(losses)
    # The loss is the error rate, so it is the probability of all noise values except 0.
    assert 1 - laws[0]["y"][0] == pytest.approx(losses["data-independent"], abs=1e-12)


# Figures.


def test_the_first_request_of_a_family_has_an_epsilon_for_its_slider() -> None:
    for family in describe_families():
        slider_options = [option["name"] for option in family["options"] if option["hot"]]
        assert "epsilon" not in slider_options or "epsilon" in family["first"]


@pytest.mark.parametrize(
    ("notion", "delta", "has_steps"),
    [("pdp", "0.1", True), ("pdp", "0", False), ("dp", "0.1", False)],
)
def test_only_a_curve_that_may_jump_is_drawn_in_steps(
    page_tasks: Tasks, notion: str, delta: str, has_steps: bool
) -> None:
    """Only under PDP with δ > 0 does the optimum jump as ε increases."""
    given = {"n": "8", "max_shift": "3", "epsilon": "1", "notion": notion, "delta": delta}
    answer = page_tasks.run("along", {"family": "modulo", "given": given, "along": "epsilon"})
    (curve,) = [series for series in answer["figure"]["series"] if series["look"] == "hollow"]
    assert curve["steps"] == has_steps


def test_an_upper_bound_far_above_the_losses_is_not_drawn() -> None:
    """The upper bound of each row is 1. Only the loss 0.99 is near it."""
    rows = []
    for delta, loss in ((0.001, 0.99), (0.5, 0.4), (1.0, 0.0)):
        row = {"delta": delta, "objective": loss, "bound": loss}
        rows.append(row | {"oracle_kind": "upper bound", "oracle_value": 1.0})
    figure = figures.make_curve_figure("delta", "least loss", rows, scale="share", steps=False)
    (marks,) = [series for series in figure["series"] if series["look"] == "halo"]
    assert marks["y"] == [1.0, None, None]


@pytest.mark.parametrize(
    ("losses", "is_logarithmic"),
    [([966.0, 2.0, 1.5, 1.2], True), ([0.9, 0.6, 0.1, 0.0005], False)],
)
def test_a_curve_with_most_losses_far_below_the_largest_is_logarithmic(
    losses: list[float], is_logarithmic: bool
) -> None:
    """On a linear axis most of these losses would lie on the axis."""
    rows = []
    for position, loss in enumerate(losses):
        rows.append({"epsilon": 1.0 + position, "objective": loss, "bound": loss})
    figure = figures.make_curve_figure("epsilon", "least loss", rows, scale="log", steps=False)
    assert figure["y"]["log"] is is_logarithmic


# Stopped designs.


def test_a_stopped_design_is_certified(page_tasks: Tasks) -> None:
    given = {"n": "60", "max_shift": "7", "epsilon": "0.7", "delta": "0.13"}
    given |= {"notion": "pdp", "loss": "squared", "time_limit": "0.3"}
    view = page_tasks.run("certify", {"family": "modulo", "given": given})
    assert view["certified"]
    assert view["note"].startswith("Not proven optimal: ")


def test_a_stopped_design_below_its_lower_bound_is_refused() -> None:
    """A law whose loss is below the bound of all private laws is not private."""
    design = wb.design("modulo", n=8, max_shift=3, epsilon=1, certify=False)
    below_bound = replace(design, objective=0.9 * design.objective, bound=design.objective)
    with pytest.raises(NotProven, match="before its law was private"):
        tasks._solve_or_best_found(lambda: below_bound)
    # A rounding error is accepted.
    near_bound = replace(below_bound, objective=design.objective * (1 - 1e-9))
    assert tasks._solve_or_best_found(lambda: near_bound) is near_bound
