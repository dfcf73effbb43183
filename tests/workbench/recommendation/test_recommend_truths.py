"""The claims of `recommend` are true: bounds, classes for averages, and exposures."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.errors import NotCertified, NotProven
from workbench.exact.time_limit import OutOfTime, limit_time
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.nearest_outputs import NearestOutputs
from workbench.mechanisms.real_noise import AdditiveRealNoise
from workbench.pipeline import recommendation
from workbench.pipeline.design import Design, OracleVerdict
from workbench.pipeline.recommendation import Candidate, Query, Value, find_least_epsilon
from workbench.pipeline.request import Aim, How, Request
from workbench.pipeline.solve import _search_least_value
from workbench.privacy.claim import Claim
from workbench.privacy.exposure import compute_exposure
from workbench.privacy.repair import bound_inverse_exponential, build_staircase_law
from workbench.questions.range_query import RangeQuery
from workbench.questions.unbounded_noise import RealNoise
from workbench.recommendation import recommend as recommending
from workbench.recommendation.recommend import _drop_false_bounds
from workbench.recommendation.wording import BORROWED_NOTE, STOPPED_NOTE, describe_range_query


def index_by_class(result: Any) -> dict[str, Any]:
    """Return class -> row of a table."""
    return {row["class"]: row for row in result}


# Bounds.


@pytest.mark.parametrize("stop", [NotProven("", bound=6.018), OutOfTime()])
def test_a_bound_on_the_loss_is_not_reported_as_a_bound_on_epsilon(stop: Exception):
    stop.bound = 6.018

    def design_at(epsilon: Fraction) -> Design:
        raise stop

    aim = Aim(loss="squared", minimise="epsilon", max_loss=Fraction(1))
    request = Request(question=None, claim=Claim("dp", Fraction(20)), aim=aim, how=How())
    with pytest.raises(type(stop)) as raised:
        _search_least_value(design_at, request, Fraction(0), "epsilon")
    assert raised.value.bound is None


def test_a_stopped_search_for_the_smallest_epsilon_keeps_its_best_design():
    question = wb.FiniteQuery("0..3", max_shift=1)
    design = wb.design(question, loss="squared", epsilon=2)

    def design_at(epsilon: Fraction) -> Design:
        if epsilon < 2:
            raise OutOfTime
        return design

    aim = Aim(loss="squared", minimise="epsilon", max_loss=Fraction(design.objective) * 2)
    request = Request(question=question, claim=Claim("dp", Fraction(2)), aim=aim, how=How())
    with pytest.raises(NotProven) as raised:
        _search_least_value(design_at, request, Fraction(0), "epsilon")
    assert raised.value.design.objective == 2
    assert raised.value.bound == 0


def test_a_stopped_bisection_reports_the_largest_epsilon_that_is_excluded(
    monkeypatch: pytest.MonkeyPatch,
):
    """The first ε has a loss of at least 40, more than the largest loss 3. The second is stopped."""
    tried_epsilons: list[Fraction] = []

    def solve(query: Query) -> Value:
        tried_epsilons.append(query.claim.epsilon)
        if len(tried_epsilons) > 1:
            raise NotProven("stopped", bound=97.1)
        return Value(50.0, 40.0, True)

    monkeypatch.setattr(
        recommendation,
        "list_candidates",
        lambda query: [Candidate("quantizer", solve=lambda: solve(query))],
    )
    query = Query(
        question=RangeQuery("0..10"),
        claim=Claim("dp", Fraction(1)).with_values(epsilon=None),
        aim=Aim(loss="squared", minimise="epsilon", max_loss=Fraction(3)),
    )
    with pytest.raises(NotProven) as raised:
        find_least_epsilon(query, "quantizer")
    assert raised.value.bound == tried_epsilons[0] == 1


def test_a_bound_above_a_loss_of_the_class_is_not_shown():
    rows = [
        {"class": "all", "objective": None, "bound": 6.018, "certified": None, "notes": "stopped"},
        {"class": "some", "objective": 0.7937, "bound": 0.5, "certified": True, "notes": ""},
    ]
    candidates = [Candidate("all", contains=("some",)), Candidate("some")]
    all_row, some_row = _drop_false_bounds(rows, candidates)
    assert all_row["bound"] is None
    assert "6.018 is not shown, because it is above 0.7937" in all_row["notes"]
    assert some_row["bound"] == 0.5


DESIGN_FIELDS = {
    "request": None,
    "mechanism": None,
    "claim": None,
    "oracle": OracleVerdict.without_formula("none."),
}


def test_a_raw_design_keeps_a_bound_above_its_loss():
    """A raw answer may be below the bound, because it is not private."""
    assert Design(objective=0.8, bound=6.0, **DESIGN_FIELDS).bound == 6.0


def test_a_certified_design_drops_a_bound_above_its_loss():
    certificate = wb.design(wb.FiniteQuery("0..2", max_shift=1), epsilon=1).certificate
    fields = {**DESIGN_FIELDS, "certificate": certificate}
    # A rounding error is accepted.
    assert Design(objective=0.8, bound=0.8 + 1e-12, **fields).bound == 0.8 + 1e-12
    design = Design(objective=0.8, bound=6.0, **fields)
    assert design.bound is None
    assert "is therefore no bound" in design.words[-1]


# Name -> function that returns the rows of a table or a design.
ROWS = {
    "least epsilon": lambda: wb.recommend(
        answers="0..8", max_shift=1, minimise="epsilon", max_loss=1
    ),
    "stopped": lambda: wb.recommend(
        answers="0..60", max_shift=3, minimise="epsilon", max_loss=30, time_limit="0.01"
    ),
    "least epsilon of a range": lambda: wb.recommend(
        range="0..10", minimise="epsilon", max_loss=3, time_limit="0.01"
    ),
    "loss": lambda: wb.recommend(answers="0..8", max_shift=1, epsilon=1, delta="0.01"),
    "frontier": lambda: wb.frontier(
        "channel", answers="0..4", max_shift=1, epsilon="0.5,1", delta="0,0.01"
    ),
    "frontier of losses": lambda: wb.frontier(
        "channel", answers="0..3", max_shift=1, max_loss="0.3,0.6"
    ),
    "frontier of noise": lambda: wb.frontier(
        wb.IntegerNoise(1), epsilon="1", delta="0,0.01", loss="squared"
    ),
    "compare": lambda: wb.compare(
        wb.FiniteQuery("0..4", max_shift=1), epsilon=1, loss="squared", solvers="highs"
    ),
    "design": lambda: [
        wb.design(
            wb.FiniteQuery("0..4", max_shift=1), minimise="epsilon", max_loss="0.5", loss="squared"
        ).row()
    ],
    "least delta": lambda: [
        wb.design(
            wb.FiniteQuery("0..4", max_shift=1),
            minimise="delta",
            max_loss="0.5",
            epsilon=1,
            loss="squared",
        ).row()
    ],
}


@pytest.mark.parametrize("name", ROWS)
def test_no_bound_is_above_the_minimised_quantity(name: str):
    for row in ROWS[name]():
        if row.get("bound") is None:
            continue
        if row.get("objective") is not None:
            assert row["bound"] <= row["objective"] * (1 + 1e-9), row
        if "epsilon" in name:
            # The bound is on ε, of which the largest that is tried is 20, and not on the loss.
            assert row["bound"] <= 20


# Averages.


def test_the_class_for_averages_has_the_smallest_variance():
    """A quantizer with four outputs has a smaller absolute loss than one with two outputs, and a
    larger variance.
    """
    result = wb.recommend(range="0..200000", epsilon=1, loss="absolute", time_limit=300)
    rows = index_by_class(result)
    two, four = rows["quantizer, 2 outputs"], rows["quantizer, 4 outputs"]
    assert four["objective"] < two["objective"]
    assert two["rmse"] < four["rmse"]
    (sentence,) = [text for text in result.sentences if "averaged" in text and "Use" in text]
    assert sentence.startswith("Use the quantizer, 2 outputs")
    channel = rows["channel on a grid"]
    assert channel["bias"] > 0
    assert f"{channel['bias']:.6g} stays in every average" in " ".join(result.sentences)
    # The variance of two outputs ±B for a value uniform on [-1, 1] is B² - 1/3. Half the range is
    # 1e5.
    reach = 1 / np.tanh(0.5)
    assert two["rmse"] ** 2 == pytest.approx((reach**2 - 1 / 3) * 1e10, rel=1e-6)


def test_a_biased_class_is_never_recommended_for_averages():
    query = Query(
        question=RangeQuery("0..10"), claim=Claim("dp", Fraction(1)), aim=Aim(loss="absolute")
    )
    biased = {
        "class": "channel on a grid",
        "objective": 1.0,
        "bound": None,
        "certified": True,
        "notes": "biased",
    }
    words = [
        *describe_range_query(
            query, [biased | {"bias": 2.5, "rmse": 0.1}], [Candidate("channel on a grid")], {}
        )
    ]
    assert not [sentence for sentence in words if "averaged" in sentence]
    assert "2.5 stays in every average" in words[0]


def test_the_variance_of_published_noise_does_not_depend_on_the_loss():
    query = {"range": "0..10", "epsilon": 1, "delta": "0.05"}
    for name in ("Laplace", "truncated Laplace", "Gaussian", "uniform"):
        (absolute,) = wb.recommend(**query, loss="absolute", only=name)
        (squared,) = wb.recommend(**query, loss="squared", only=name)
        if name != "uniform":
            assert absolute["rmse"] == pytest.approx(squared["objective"] ** 0.5, rel=1e-12)
        assert absolute["rmse"] >= squared["objective"] ** 0.5 * (1 - 1e-12)


def test_the_bias_of_nearest_outputs_bounds_the_shift_of_every_mean():
    law = NearestOutputs(
        (Fraction(0), Fraction(10)),
        tuple(map(Fraction, (1, 3, 6, 9))),
        2,
        Fraction(20),
        Fraction(1, 20),
        64,
    )
    outputs = np.array([float(o) for o in law.bins])
    for x in np.linspace(0, 10, 401):
        near = np.argsort(np.abs(outputs - x), kind="stable")[: law.own]
        masses = np.ones(outputs.size)
        masses[near] = float(law.odds)
        mean = (1 - float(law.direct)) * float(outputs @ masses / masses.sum()) + float(
            law.direct
        ) * x
        assert abs(mean - x) <= float(law.largest_bias) * (1 + 1e-9)


# Sentences on classes that were not computed.


def test_a_table_of_one_class_has_no_sentence_on_other_classes():
    one_class = wb.recommend(answers="0..10", max_shift=1, epsilon=1, only="exponential")
    assert "class" not in " ".join(one_class.sentences)
    all_classes = wb.recommend(answers="0..3", max_shift=1, epsilon=1)
    assert "It is optimal in its class." in " ".join(all_classes.sentences)


def test_stopped_classes_and_a_better_constant_output_are_named(monkeypatch: pytest.MonkeyPatch):
    """Publishing 50 for every answer in 0..100 has the loss 850, less than the only class."""

    def solve_none() -> Value:
        raise OutOfTime

    def candidates(query: Query) -> list[Candidate]:
        channel = Channel.from_pairs(np.full((101, 101), 1 / 101), [(0, 1)])
        value = Value(1177.0, None, True, mechanism=channel)
        return [
            Candidate("modulo noise", "wraps around", lambda: value),
            *(Candidate(f"class {i}", solve=solve_none, uses_solver=True) for i in range(5)),
        ]

    monkeypatch.setattr(recommending, "list_candidates", candidates)
    result = wb.recommend(answers="0..100", max_shift=1, epsilon=1)
    sentences = " ".join(result.sentences)
    for i in range(5):
        assert f"class {i}" in sentences
        assert STOPPED_NOTE in index_by_class(result)[f"class {i}"]["notes"]
    assert "Publishing 50 for every answer has the smaller loss 850" in sentences


def test_a_class_that_shows_a_mechanism_of_another_class_is_named_as_stopped():
    query = Query(
        question=RangeQuery("0..10"),
        claim=Claim("dp", Fraction(1)),
        time=recommendation.TimeShares(3.0),
    )
    row = {
        "class": "real noise",
        "objective": 4.0,
        "bound": None,
        "certified": True,
        "bias": 0.0,
        "rmse": 2.0,
    }
    notes = f"unbiased; {STOPPED_NOTE}; {BORROWED_NOTE} staircase (pure)"
    words = [*describe_range_query(query, [row | {"notes": notes}], [Candidate("real noise")], {})]
    assert any(
        "real noise" in sentence and "time limit of 3 seconds" in sentence for sentence in words
    )


# Exposure: the probability of outputs that a neighbour practically never produces.


def test_a_channel_of_a_range_is_recommended_with_its_exposure():
    query = {"range": "0..10", "epsilon": 1, "delta": "0.05", "loss": "absolute"}
    result = wb.recommend(**query, only="channel on a grid", time_limit=60)
    sentence = "With probability up to 0.05 it publishes an output that a neighbour cannot produce"
    assert sentence in " ".join(result.sentences)
    best = result.best
    exposure = compute_exposure(best.mechanism, Fraction(1))
    assert 0.04 < exposure <= Fraction(1, 20) * (1 + Fraction(1, 10_000))
    assert best.to_dict()["exposure"] == pytest.approx(float(exposure))
    assert dict(best.facts())["exposure"].startswith(
        "outputs that a neighbour cannot produce, or produces 10,000"
    )


def design_errors(**budget) -> wb.Design:
    """Design the channel of smallest error rate for five answers that are all neighbours."""
    query = wb.FiniteQuery("0..4", neighbours="all")
    return wb.design(query, loss="error-rate", epsilon="0.1", **budget)


def test_the_exposure_of_a_channel_is_the_largest_mass_that_a_neighbour_has_not():
    design = design_errors(delta="0.2")
    rows = [[*row] for row in design.mechanism.rows]
    exclusive_masses = [
        sum(p for p, q in zip(rows[i], rows[j], strict=True) if not q)
        for i in range(5)
        for j in range(5)
        if i != j
    ]
    exposure = compute_exposure(design.mechanism, Fraction(1, 10))
    assert exposure == max(exclusive_masses) <= Fraction(1, 5)
    assert design.to_dict()["exposure"] == pytest.approx(float(exposure))
    assert "exposure" in dict(design.facts())


def test_a_report_without_delta_has_no_exposure():
    design = design_errors()
    assert "exposure" not in dict(design.facts())
    assert "exposure" not in design.to_dict()


def test_the_exposure_is_the_largest_over_the_neighbouring_pairs():
    rows = [
        [Fraction(1, 2), Fraction(1, 2), 0],
        [Fraction(1, 4), Fraction(3, 4), 0],
        [0, Fraction(1, 3), Fraction(2, 3)],
    ]
    assert compute_exposure(Channel.from_pairs(rows, [(0, 1)]), Fraction(1)) == 0
    assert compute_exposure(Channel.from_pairs(rows, [(1, 2)]), Fraction(1)) == Fraction(2, 3)
    assert compute_exposure(Channel.from_pairs(rows), Fraction(1)) == Fraction(2, 3)
    assert compute_exposure(Channel.from_pairs(rows[:2]), Fraction(1)) == 0


def test_an_output_that_a_neighbour_produces_10_000_times_too_rarely_counts():
    tiny = Fraction(1, 10**7)
    channel = Channel.from_pairs([[Fraction(1, 3), Fraction(2, 3)], [tiny, 1 - tiny]])
    assert compute_exposure(channel, Fraction(1)) == Fraction(1, 3)
    # At ε = 10 the ratio of the masses is below 10,000 e^10.
    assert compute_exposure(channel, Fraction(10)) == 0


def test_the_exposure_of_directed_neighbours_is_that_of_the_protected_order():
    query = wb.FiniteQuery("0..4", max_shift=1, directed=True)
    design = wb.design(query, loss="squared", epsilon=1, delta="0.01")
    exposure = compute_exposure(design.mechanism, Fraction(1))
    assert exposure <= Fraction(1, 100) / (1 - Fraction(1, 10_000))
    rows = design.mechanism.matrix
    ratio = 10_000 * math.exp(1)
    exposures = [rows[i][rows[i] > ratio * rows[j]].sum() for i, j in design.mechanism.pairs]
    assert float(exposure) == pytest.approx(max(exposures))


def test_an_exposure_may_exceed_delta_by_one_part_in_ten_thousand():
    tiny = Fraction(1, 10**5)
    channel = Channel.from_pairs([[tiny, 1 - tiny], [tiny / 27_183, 1 - tiny / 27_183]], [(0, 1)])
    exposure = compute_exposure(channel, Fraction(1))
    delta = tiny * (1 - Fraction(math.e) / 27_183)
    assert delta < exposure <= delta / (1 - Fraction(1, 10_000))


# Time.


def test_exact_sums_end_at_the_time_limit():
    question = RealNoise(Fraction(1, 10), clamp=(0, 10))
    noise = AdditiveRealNoise(
        question, 8, build_staircase_law(bound_inverse_exponential(Fraction(1)), 8, 3)
    )
    exact = noise.clamped_loss("squared")
    assert exact > 0
    with limit_time(-1), pytest.raises(OutOfTime):
        noise.clamped_loss("squared")
    with limit_time(-1), pytest.raises(OutOfTime):
        noise.loss("squared")


def test_an_exact_loss_with_too_many_digits_is_refused():
    question = RealNoise(Fraction(1, 2), clamp=(0, 10**6))
    noise = AdditiveRealNoise(
        question, 64, build_staircase_law(bound_inverse_exponential(Fraction(1, 10)), 64, 33)
    )
    with pytest.raises(NotCertified, match="bits"):
        noise.clamped_loss("squared")


@pytest.mark.parametrize("sensitivity", ["0.0385", "0.001"])
def test_a_class_with_long_exact_sums_is_stopped_or_refused(sensitivity: str):
    (row,) = wb.recommend(
        range="18..95", sensitivity=sensitivity, epsilon=1, only="real noise, clamped", time_limit=1
    )
    assert STOPPED_NOTE in row["notes"] or "bits" in row["notes"]


def test_a_channel_too_large_for_a_notion_does_not_hide_other_classes():
    rows = index_by_class(
        wb.recommend(answers="0..100", max_shift=1, notion="zcdp", rho="0.5", time_limit=1)
    )
    assert rows["best channel"]["objective"] is None or rows["best channel"]["certified"]
    assert "integer noise, clamped" in rows
