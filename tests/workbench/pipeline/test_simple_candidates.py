"""The optimum at δ = 0 and the constant are candidates wherever they are in the class."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import workbench as wb
from workbench.errors import NotProven
from workbench.families.channel.problem import ChannelProblem
from workbench.families.channel.request import ChannelRequest

TINY = ("1e-18", "1e-15", "1e-12", "1e-9")
FAMILIES: dict[str, tuple[Any, dict[str, Any]]] = {
    "reals": (wb.RealNoise(1), {"loss": "absolute"}),
    "integers": (wb.IntegerNoise(3), {"loss": "absolute"}),
    "pinball": (wb.IntegerNoise(1), {"loss": "pinball:0.3"}),
    "clamped": (wb.IntegerNoise(1, clamp=(0, 10)), {"prior": "worst"}),
    "clamped reals": (wb.RealNoise(1, clamp=(0, 5)), {"loss": "absolute"}),
    "modulo": (wb.ModuloNoise(n=10, max_shift=2), {"loss": "squared"}),
    "modulo, pdp": (wb.ModuloNoise(n=8, max_shift=3), {"notion": "pdp"}),
    "channel": (wb.FiniteQuery("0..10", max_shift=1), {"loss": "absolute"}),
    "channel, pdp": (wb.FiniteQuery("0..4", max_shift=1), {"notion": "pdp"}),
    "worst input": (wb.FiniteQuery("0..10", max_shift=2, prior="worst"), {}),
    "free outputs": (wb.FiniteQuery("0..6", max_shift=1, outputs="free"), {}),
    "labels": (wb.Labels([*range(8)]), {"method": "lp", "notion": "dp"}),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_a_tiny_delta_costs_no_more_than_none(name: str) -> None:
    question, options = FAMILIES[name]
    # labels under dp need a delta; their notion without one is pure
    without = {**options, "notion": "pure"} if name == "labels" else options
    least = wb.design(question, epsilon=1, **without)
    for delta in TINY:
        design = wb.design(question, epsilon=1, delta=Fraction(delta), **options)
        assert design.objective <= least.objective, delta
        assert design.private
        assert design.certificate is not None
        assert design.bound is None or design.bound <= design.objective * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", ["0.5", "4"])
def test_tiny_deltas_at_other_budgets(epsilon: str) -> None:
    least = wb.design(wb.IntegerNoise(2), epsilon=epsilon)
    design = wb.design(wb.IntegerNoise(2), epsilon=epsilon, delta=Fraction(1, 10**16))
    assert design.objective <= least.objective
    assert design.private


@pytest.mark.parametrize("question", [wb.IntegerNoise(1), wb.RealNoise(1)])
def test_noise_whose_program_is_too_large_is_that_of_no_delta(question: Any) -> None:
    least = wb.design(question, epsilon="0.001")
    design = wb.design(question, epsilon="0.001", delta="1e-6")
    assert design.objective <= least.objective
    assert 0.9 * design.objective < design.bound <= design.objective
    assert design.private
    assert design.status == "gap_limit"


def test_a_channel_whose_program_is_too_large_is_that_of_no_delta(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    question = wb.FiniteQuery("0..12", neighbours="all")
    least = wb.design(question, epsilon="0.5", loss="absolute", notion="pure")
    monkeypatch.setattr(
        ChannelRequest, "MAX_COMPARISONS", 400
    )  # with delta more masses are compared
    with pytest.raises(NotProven, match="would fit") as caught:
        wb.design(question, epsilon="0.5", delta="1e-6", loss="absolute", method="program")
    design = caught.value.design
    assert design.objective == pytest.approx(least.objective)
    assert design.private
    assert design.status == "stopped"


@pytest.mark.parametrize(
    "budget",
    [
        {"notion": "curve", "curve": "0.5:0.1,1:0.01"},
        {"notion": "tradeoff", "tradeoff": "0:0.9,0.05:0.7,0.3:0.3,1:0"},
        {"notion": "gdp", "mu": 1},
        {"notion": "zcdp", "rho": "0.05"},
    ],
)
def test_a_stopped_channel_costs_no_more_than_a_constant(budget: dict[str, Any]) -> None:
    labels = wb.Labels([*range(10)])
    constant = sum((label - 5) ** 2 for label in range(10)) / 10
    try:
        design = wb.design(labels, method="lp", time_limit=0.3, **budget)
    except NotProven as error:
        design = error.design
        assert design.solution is not None or design.status == "stopped"
    assert design.objective <= constant
    assert 0 <= design.bound <= design.objective
    assert design.private


def test_a_constant_is_no_candidate_for_unbiased_channels() -> None:
    question = wb.FiniteQuery("0..3", max_shift=1, outputs="-20..23")
    design = wb.design(question, epsilon="0.5", constraints=("unbiased",))
    assert design.origin != "constant"


@pytest.mark.parametrize(
    ("options", "constant"),
    [
        ({"epsilon": "0.01", "sensitivity": 2}, 2.5),
        ({"epsilon": "0.01", "sensitivity": 2, "delta": "0.001"}, 2.5),
        ({"epsilon": "0.01", "sensitivity": 2, "prior": [1, 5]}, 11 / 6),
        ({"epsilon": "0.01", "sensitivity": 2, "prior": "worst"}, 5),
        ({"epsilon": "0.001"}, 2.5),
    ],
)
def test_a_range_costs_no_more_than_a_constant(options: dict[str, Any], constant: float) -> None:
    design = wb.design("channel", range="0..10", loss="absolute", **options)
    assert design.objective <= constant * (1 + 1e-15)
    assert design.bound <= design.objective <= 1.01 * design.bound
    assert design.private


def test_a_tiny_delta_of_a_range_costs_no_more_than_none() -> None:
    given = {"range": "0..10", "sensitivity": 5, "loss": "absolute", "epsilon": 1}
    least = wb.design("channel", **given)
    for delta in ("1e-15",):
        design = wb.design("channel", **given, delta=delta)
        assert design.objective <= least.objective
        assert design.private


def test_all_of_delta_on_a_range_is_refused_at_once() -> None:
    for options in ({}, {"sensitivity": 2}, {"prior": "worst"}):
        with pytest.raises(wb.InvalidRequest, match="delta must be less than 1"):
            wb.design("channel", range="0..10", epsilon=1, delta=1, **options)


@pytest.mark.parametrize("budget", [{"notion": "zcdp", "rho": "0.5"}, {"notion": "gdp", "mu": 1}])
def test_stopped_real_noise_is_private(budget: dict[str, Any]) -> None:
    with pytest.raises(NotProven) as caught:
        wb.design(wb.RealNoise(1), time_limit=1e-6, **budget)
    design = caught.value.design
    assert design.private
    assert design.status == "stopped"
    assert 0 <= design.bound < design.objective < 20


def test_a_stopped_channel_is_that_of_no_delta_and_its_error_says_one_interval() -> None:
    question = wb.FiniteQuery("0..10", max_shift=1)
    least = wb.design(question, epsilon=1, notion="pdp")
    for delta in ("1e-7", "0.001", "0.02"):
        with pytest.raises(NotProven) as caught:
            wb.design(question, epsilon=1, notion="pdp", delta=delta, time_limit=1e-6)
        design, text = caught.value.design, str(caught.value)
        assert design.objective <= least.objective
        assert design.private
        assert f"{design.objective:.9g}" in text
        assert text.count("bound") == 1


@pytest.mark.parametrize(
    ("budget", "most"),
    [
        (
            {"notion": "gdp", "mu": 1},
            1.1,
        ),  # Gaussian noise of variance 1, rounded: 1 + 1/12 at most
        ({"notion": "zcdp", "rho": "0.1"}, 5.1),  # of variance 5
        ({"notion": "renyi", "alpha": 2, "epsilon": 1}, 1.1),
        ({"notion": "curve", "curve": "1:0.1"}, 1.4),  # pure noise at about epsilon = 1.14
    ],
)
def test_a_stopped_channel_costs_no_more_than_noise_that_is_within_its_budget(
    budget: dict[str, Any], most: float
) -> None:
    with pytest.raises(NotProven) as caught:
        wb.design(wb.FiniteQuery("0..40", max_shift=1), **budget, time_limit=1e-6)
    design = caught.value.design
    assert design.private
    assert design.objective <= most
    assert design.status == "stopped"
    assert f"reaches {design.objective:.9g}" in str(caught.value)


@pytest.mark.parametrize("loss", ["poisson", "squared"])
@pytest.mark.parametrize("delta", ["1e-6", "0.01"])
def test_a_bound_at_no_delta_bounds_one_with_delta(loss: str, delta: str) -> None:
    """Also of losses that are negative, as all of Poisson's are here."""
    labels = wb.Labels([40, 50, 60], [1, 2, 1])
    options = {"loss": loss, "method": "lp", "epsilon": 1}
    pure = wb.design(labels, **options)
    design = wb.design(labels, **options, delta=delta)
    bound = ChannelProblem(design.request.channel_request).bound_at_delta(pure.objective)
    assert bound is not None
    assert bound <= design.objective <= pure.objective


@pytest.mark.parametrize("notion", ["dp", "pdp"])
@pytest.mark.parametrize("prior", [None, "worst"])
def test_all_of_delta_publishes_the_answer_at_once(notion: str, prior: str | None) -> None:
    design = wb.design(
        wb.FiniteQuery("0..10", max_shift=1, prior=prior), epsilon=1, delta=1, notion=notion
    )
    assert design.objective == 0
    assert design.bound == 0
    assert design.private
    assert design.status == "optimal"
    assert design.solution is None


def test_bins_without_delta_answer_labels_with_one_where_their_loss_is_smaller() -> None:
    labels = wb.Labels([*range(8)])
    least = wb.design(labels, epsilon=1)
    for delta, status in (("1e-18", "optimal"), ("1e-9", "optimal"), ("0.001", "stopped")):
        design = wb.design(labels, epsilon=1, delta=delta)
        assert design.objective == least.objective
        assert design.bound <= design.objective
        assert (design.status, design.private) == (status, True)
        assert design.certificate.claim.delta == 0
        assert design.family.extra_json(design)["method"] == "bins"
    assert wb.design(labels, epsilon=1, delta="0.3").objective < least.objective


def test_the_bound_of_bins_at_a_delta_holds_for_negative_losses() -> None:
    """All of Poisson's losses are negative here, so that 0 is no bound."""
    labels = wb.Labels([40, 50, 60], [1, 2, 1])
    least = wb.design(labels, epsilon=1, loss="poisson")
    design = wb.design(labels, epsilon=1, loss="poisson", delta="1e-9")
    assert design.objective <= least.objective < 0
    assert design.bound is not None
    assert least.objective - 1e-3 < design.bound <= design.objective


def test_a_loss_that_bins_do_not_know_is_answered_with_a_delta() -> None:
    design = wb.design(wb.Labels("0..5"), epsilon=1, loss="error-rate", delta="1e-6")
    assert (design.status, design.private) == ("optimal", True)


def test_labels_by_lp_with_a_delta_say_what_bins_cost_without() -> None:
    labels = wb.Labels([*range(8)])
    least = wb.design(labels, epsilon=1)
    design = wb.design(labels, epsilon=1, delta="1e-6", method="lp")
    assert least.objective < design.objective
    assert any(f"{least.objective:.9g}" in sentence for sentence in design.words)


def test_a_frontier_of_real_noise_says_why_delta_one_has_no_row() -> None:
    rows = {
        row["mechanism"]: row
        for row in wb.frontier("noise", on="reals", sensitivity=1, epsilon=1, delta=1).rows
    }
    for name in ("noise", "Laplace"):
        assert rows[name].get("objective") is None
        assert "the answer itself may be published" in rows[name]["failure"]
