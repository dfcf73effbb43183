"""Test that a design is never worse than simple candidates of its class.

The candidates are the optimum at δ = 0, a constant output, and noise that is known to be private. A
stopped search returns the best candidate with the status "stopped" and an interval.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import workbench as wb
from workbench.errors import NotProven
from workbench.families.channel.problem import ChannelProblem
from workbench.families.channel.request import ChannelRequest

TINY_DELTAS = ("1e-18", "1e-15", "1e-12", "1e-9")
# Questions and options of which every class of mechanisms has one.
QUESTIONS: dict[str, tuple[Any, dict[str, Any]]] = {
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


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_tiny_delta_has_no_larger_loss_than_delta_zero(name: str) -> None:
    question, options = QUESTIONS[name]
    # Labels need a delta under dp. Their notion without a delta is pure.
    pure_options = {**options, "notion": "pure"} if name == "labels" else options
    at_zero_delta = wb.design(question, epsilon=1, **pure_options)
    for delta in TINY_DELTAS:
        design = wb.design(question, epsilon=1, delta=Fraction(delta), **options)
        assert design.objective <= at_zero_delta.objective, delta
        assert design.private
        assert design.certificate is not None
        assert design.bound is None or design.bound <= design.objective * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", ["0.5", "4"])
def test_a_tiny_delta_has_no_larger_loss_at_other_epsilons(epsilon: str) -> None:
    at_zero_delta = wb.design(wb.IntegerNoise(2), epsilon=epsilon)
    design = wb.design(wb.IntegerNoise(2), epsilon=epsilon, delta=Fraction(1, 10**16))
    assert design.objective <= at_zero_delta.objective
    assert design.private


@pytest.mark.parametrize("question", [wb.IntegerNoise(1), wb.RealNoise(1)])
def test_noise_at_delta_zero_is_returned_if_the_program_is_too_large(question: Any) -> None:
    at_zero_delta = wb.design(question, epsilon="0.001")
    design = wb.design(question, epsilon="0.001", delta="1e-6")
    assert design.objective <= at_zero_delta.objective
    assert 0.9 * design.objective < design.bound <= design.objective
    assert design.private
    assert design.status == "gap_limit"


def test_a_channel_at_delta_zero_is_returned_if_the_program_is_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    question = wb.FiniteQuery("0..12", neighbours="all")
    at_zero_delta = wb.design(question, epsilon="0.5", loss="absolute", notion="pure")
    # More masses are compared with delta > 0 than with delta = 0.
    monkeypatch.setattr(ChannelRequest, "MAX_COMPARISONS", 400)
    with pytest.raises(NotProven, match="would fit") as caught:
        wb.design(question, epsilon="0.5", delta="1e-6", loss="absolute", method="program")
    design = caught.value.design
    assert design.objective == pytest.approx(at_zero_delta.objective)
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
def test_a_stopped_channel_has_no_larger_loss_than_a_constant(budget: dict[str, Any]) -> None:
    labels = wb.Labels([*range(10)])
    constant_loss = sum((label - 5) ** 2 for label in range(10)) / 10
    try:
        design = wb.design(labels, method="lp", time_limit=0.3, **budget)
    except NotProven as error:
        design = error.design
        assert design.solution is not None or design.status == "stopped"
    assert design.objective <= constant_loss
    assert 0 <= design.bound <= design.objective
    assert design.private


def test_a_constant_is_no_candidate_for_unbiased_channels() -> None:
    question = wb.FiniteQuery("0..3", max_shift=1, outputs="-20..23")
    design = wb.design(question, epsilon="0.5", constraints=("unbiased",))
    assert design.origin != "constant"


@pytest.mark.parametrize(
    ("options", "constant_loss"),
    [
        ({"epsilon": "0.01", "sensitivity": 2}, 2.5),
        ({"epsilon": "0.01", "sensitivity": 2, "delta": "0.001"}, 2.5),
        ({"epsilon": "0.01", "sensitivity": 2, "prior": [1, 5]}, 11 / 6),
        ({"epsilon": "0.01", "sensitivity": 2, "prior": "worst"}, 5),
        ({"epsilon": "0.001"}, 2.5),
    ],
)
def test_a_range_has_no_larger_loss_than_a_constant(
    options: dict[str, Any], constant_loss: float
) -> None:
    """The losses of a constant are computed by hand: |x - 5| for x uniform on 0..10 is 2.5."""
    design = wb.design("channel", range="0..10", loss="absolute", **options)
    assert design.objective <= constant_loss * (1 + 1e-15)
    assert design.bound <= design.objective <= 1.01 * design.bound
    assert design.private


def test_a_tiny_delta_of_a_range_has_no_larger_loss_than_delta_zero() -> None:
    options = {"range": "0..10", "sensitivity": 5, "loss": "absolute", "epsilon": 1}
    at_zero_delta = wb.design("channel", **options)
    design = wb.design("channel", **options, delta="1e-15")
    assert design.objective <= at_zero_delta.objective
    assert design.private


def test_delta_one_on_a_range_is_an_error() -> None:
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


def test_a_stopped_channel_is_the_design_at_delta_zero_with_one_interval_in_its_error() -> None:
    question = wb.FiniteQuery("0..10", max_shift=1)
    at_zero_delta = wb.design(question, epsilon=1, notion="pdp")
    for delta in ("1e-7", "0.001", "0.02"):
        with pytest.raises(NotProven) as caught:
            wb.design(question, epsilon=1, notion="pdp", delta=delta, time_limit=1e-6)
        design = caught.value.design
        message = str(caught.value)
        assert design.objective <= at_zero_delta.objective
        assert design.private
        assert f"{design.objective:.9g}" in message
        assert message.count("bound") == 1


@pytest.mark.parametrize(
    ("budget", "noise_loss"),
    [
        # Rounded Gaussian noise of variance 1 has a squared loss of at most 1 + 1/12.
        ({"notion": "gdp", "mu": 1}, 1.1),
        # Gaussian noise of variance 5.
        ({"notion": "zcdp", "rho": "0.1"}, 5.1),
        # Gaussian noise of variance 1.
        ({"notion": "renyi", "alpha": 2, "epsilon": 1}, 1.1),
        # Pure noise at about epsilon = 1.14.
        ({"notion": "curve", "curve": "1:0.1"}, 1.4),
    ],
)
def test_a_stopped_channel_has_no_larger_loss_than_noise_within_its_budget(
    budget: dict[str, Any], noise_loss: float
) -> None:
    with pytest.raises(NotProven) as caught:
        wb.design(wb.FiniteQuery("0..40", max_shift=1), **budget, time_limit=1e-6)
    design = caught.value.design
    assert design.private
    assert design.objective <= noise_loss
    assert design.status == "stopped"
    assert f"reaches {design.objective:.9g}" in str(caught.value)


@pytest.mark.parametrize("loss", ["poisson", "squared"])
@pytest.mark.parametrize("delta", ["1e-6", "0.01"])
def test_a_bound_at_delta_zero_gives_a_bound_at_delta(loss: str, delta: str) -> None:
    """This also holds for negative losses. All Poisson losses of these labels are negative."""
    labels = wb.Labels([40, 50, 60], [1, 2, 1])
    options = {"loss": loss, "method": "lp", "epsilon": 1}
    pure = wb.design(labels, **options)
    design = wb.design(labels, **options, delta=delta)
    bound = ChannelProblem(design.request.channel_request).bound_at_delta(pure.objective)
    assert bound is not None
    assert bound <= design.objective <= pure.objective


@pytest.mark.parametrize("notion", ["dp", "pdp"])
@pytest.mark.parametrize("prior", [None, "worst"])
def test_delta_one_publishes_the_true_answer_without_a_solver(
    notion: str, prior: str | None
) -> None:
    design = wb.design(
        wb.FiniteQuery("0..10", max_shift=1, prior=prior), epsilon=1, delta=1, notion=notion
    )
    assert design.objective == 0
    assert design.bound == 0
    assert design.private
    assert design.status == "optimal"
    assert design.solution is None


def test_bins_at_delta_zero_are_the_design_for_labels_with_a_small_delta() -> None:
    labels = wb.Labels([*range(8)])
    bins = wb.design(labels, epsilon=1)
    for delta, status in (("1e-18", "optimal"), ("1e-9", "optimal"), ("0.001", "stopped")):
        design = wb.design(labels, epsilon=1, delta=delta)
        assert design.objective == bins.objective
        assert design.bound <= design.objective
        assert (design.status, design.private) == (status, True)
        assert design.certificate.claim.delta == 0
        assert design.family.extra_json(design)["method"] == "bins"
    assert wb.design(labels, epsilon=1, delta="0.3").objective < bins.objective


def test_the_bound_of_bins_at_a_delta_holds_for_negative_losses() -> None:
    """All Poisson losses of these labels are negative, so that 0 is no lower bound."""
    labels = wb.Labels([40, 50, 60], [1, 2, 1])
    bins = wb.design(labels, epsilon=1, loss="poisson")
    design = wb.design(labels, epsilon=1, loss="poisson", delta="1e-9")
    assert design.objective <= bins.objective < 0
    assert design.bound is not None
    assert bins.objective - 1e-3 < design.bound <= design.objective


def test_a_loss_without_bins_has_a_design_for_a_small_delta() -> None:
    design = wb.design(wb.Labels("0..5"), epsilon=1, loss="error-rate", delta="1e-6")
    assert (design.status, design.private) == ("optimal", True)


def test_a_note_states_the_smaller_loss_of_bins_if_method_lp_was_requested() -> None:
    labels = wb.Labels([*range(8)])
    bins = wb.design(labels, epsilon=1)
    design = wb.design(labels, epsilon=1, delta="1e-6", method="lp")
    assert bins.objective < design.objective
    assert any(f"{bins.objective:.9g}" in sentence for sentence in design.words)


def test_a_frontier_of_real_noise_states_why_delta_one_has_no_loss() -> None:
    rows = {
        row["mechanism"]: row
        for row in wb.frontier("noise", on="reals", sensitivity=1, epsilon=1, delta=1).rows
    }
    for name in ("noise", "Laplace"):
        assert rows[name].get("objective") is None
        assert "the answer itself may be published" in rows[name]["failure"]
