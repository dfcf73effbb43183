"""What `recommend` claims is so: bounds of what is minimised, averages by variance, no word on classes not seen."""

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


def by_class(result: Any) -> dict[str, Any]:
    return {row["class"]: row for row in result}


# Bounds.


@pytest.mark.parametrize("stop", [NotProven("", bound=6.018), OutOfTime()])
def test_the_bound_of_a_loss_is_none_on_epsilon(stop: Exception):
    stop.bound = 6.018

    def at(epsilon: Fraction) -> Design:
        raise stop

    aim = Aim(loss="squared", minimise="epsilon", max_loss=Fraction(1))
    request = Request(question=None, claim=Claim("dp", Fraction(20)), aim=aim, how=How())
    with pytest.raises(type(stop)) as raised:
        _search_least_value(at, request, Fraction(0), "epsilon")
    assert raised.value.bound is None


def test_a_search_that_is_stopped_keeps_the_best_that_it_had():
    question = wb.FiniteQuery("0..3", max_shift=1)
    made = wb.design(question, loss="squared", epsilon=2)

    def at(epsilon: Fraction) -> Design:
        if epsilon < 2:
            raise OutOfTime
        return made

    aim = Aim(loss="squared", minimise="epsilon", max_loss=Fraction(made.objective) * 2)
    request = Request(question=question, claim=Claim("dp", Fraction(2)), aim=aim, how=How())
    with pytest.raises(NotProven) as raised:
        _search_least_value(at, request, Fraction(0), "epsilon")
    assert raised.value.design.objective == 2
    assert raised.value.bound == 0


def test_a_bisection_that_is_stopped_gives_back_the_largest_epsilon_that_is_excluded(
    monkeypatch: pytest.MonkeyPatch,
):
    asked: list[Fraction] = []

    def solve(query: Query) -> Value:
        asked.append(query.claim.epsilon)
        if len(asked) > 1:
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
    assert raised.value.bound == asked[0] == 1


def test_a_bound_above_what_a_class_reaches_is_not_shown():
    rows = [
        {"class": "all", "objective": None, "bound": 6.018, "certified": None, "notes": "stopped"},
        {"class": "some", "objective": 0.7937, "bound": 0.5, "certified": True, "notes": ""},
    ]
    candidates = [Candidate("all", contains=("some",)), Candidate("some")]
    everything, some = _drop_false_bounds(rows, candidates)
    assert everything["bound"] is None
    assert "6.018 is not shown, because it is above 0.7937" in everything["notes"]
    assert some["bound"] == 0.5


def test_a_design_claims_no_bound_above_its_objective():
    design = wb.design(wb.FiniteQuery("0..2", max_shift=1), epsilon=1)
    known = {
        "request": None,
        "mechanism": None,
        "claim": None,
        "oracle": OracleVerdict.without_formula("none."),
    }
    assert (
        Design(objective=0.8, bound=6.0, **known).bound == 6.0
    )  # A raw answer may be below because it is not private.
    known["certificate"] = design.certificate
    assert Design(objective=0.8, bound=0.8 + 1e-12, **known).bound == 0.8 + 1e-12
    wrong = Design(objective=0.8, bound=6.0, **known)
    assert wrong.bound is None
    assert "is therefore no bound" in wrong.words[-1]


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


@pytest.mark.parametrize("made", ROWS)
def test_no_bound_is_above_what_is_minimised(made: str):
    rows = [*ROWS[made]()]
    for row in rows:
        if row.get("bound") is not None and row.get("objective") is not None:
            assert row["bound"] <= row["objective"] * (1 + 1e-9), row
        if "epsilon" in made and made != "frontier of losses" and row.get("bound") is not None:
            assert row["bound"] <= 20  # the largest epsilon that is tried: it is no loss


# Averages.


def test_where_many_answers_are_averaged_the_least_variance_counts():
    """A quantizer of four outputs has the lower absolute loss, that of two the lower variance."""
    result = wb.recommend(range="0..200000", epsilon=1, loss="absolute", time_limit=300)
    rows = by_class(result)
    two, four = rows["quantizer, 2 outputs"], rows["quantizer, 4 outputs"]
    assert four["objective"] < two["objective"]
    assert two["rmse"] < four["rmse"]
    (sentence,) = [words for words in result.sentences if "averaged" in words and "Use" in words]
    assert sentence.startswith("Use the quantizer, 2 outputs")
    best = rows["channel on a grid"]
    assert best["bias"] > 0
    assert f"{best['bias']:.6g} stays in every average" in " ".join(result.sentences)
    # of two outputs ±B of a value uniform on [-1, 1]: B² - 1/3, in units of half the range
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


def test_variances_of_published_noise_do_not_depend_on_the_loss_asked_for():
    given = {"range": "0..10", "epsilon": 1, "delta": "0.05"}
    for name in ("Laplace", "truncated Laplace", "Gaussian", "uniform"):
        (absolute,) = wb.recommend(**given, loss="absolute", only=name)
        (squared,) = wb.recommend(**given, loss="squared", only=name)
        if name != "uniform":
            assert absolute["rmse"] == pytest.approx(squared["objective"] ** 0.5, rel=1e-12)
        assert absolute["rmse"] >= squared["objective"] ** 0.5 * (1 - 1e-12)


def test_the_bias_of_nearest_outputs_is_that_of_its_means():
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


# What is said of what was not seen.


def test_of_one_class_nothing_is_said_of_others():
    only = wb.recommend(answers="0..10", max_shift=1, epsilon=1, only="exponential")
    assert "class" not in " ".join(only.sentences)
    every = wb.recommend(answers="0..3", max_shift=1, epsilon=1)
    assert "It is optimal in its class." in " ".join(every.sentences)


def test_classes_that_were_stopped_are_named_and_so_is_a_constant_that_costs_less(
    monkeypatch: pytest.MonkeyPatch,
):
    """Of 0..100 the constant 50 costs 850; a class that costs 1177 is not recommended in silence."""

    def solve_none() -> Value:
        raise OutOfTime

    def candidates(query: Query) -> list[Candidate]:
        mechanism = wb.FiniteQuery("0..100", max_shift=1)
        own = Channel.from_pairs(np.full((mechanism.k, mechanism.m), 1 / 101), [(0, 1)])
        dear = Candidate(
            "modulo noise", "wraps around", lambda: Value(1177.0, None, True, mechanism=own)
        )
        return [
            dear,
            *(Candidate(f"class {i}", solve=solve_none, uses_solver=True) for i in range(5)),
        ]

    monkeypatch.setattr(recommending, "list_candidates", candidates)
    result = wb.recommend(answers="0..100", max_shift=1, epsilon=1)
    words = " ".join(result.sentences)
    for i in range(5):
        assert f"class {i}" in words
        assert STOPPED_NOTE in by_class(result)[f"class {i}"]["notes"]
    assert "Publishing 50 for every answer has the smaller loss 850" in words


def test_a_class_that_borrows_an_answer_is_named_as_stopped():
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


# What δ is spent on.


def test_a_channel_of_a_range_is_recommended_with_its_exposure():
    query = {"range": "0..10", "epsilon": 1, "delta": "0.05", "loss": "absolute"}
    result = wb.recommend(**query, only="channel on a grid", time_limit=60)
    sentence = "With probability up to 0.05 it publishes an output that a neighbour cannot produce"
    assert sentence in " ".join(result.sentences)
    best = result.best
    alone = compute_exposure(best.mechanism, Fraction(1))
    assert 0.04 < alone <= Fraction(1, 20) * (1 + Fraction(1, 10_000))
    assert best.to_dict()["exposure"] == pytest.approx(float(alone))
    assert dict(best.facts())["exposure"].startswith(
        "outputs that a neighbour cannot produce, or produces 10,000"
    )


def test_the_report_of_a_channel_says_how_likely_an_output_of_one_neighbour_alone_is():
    made = wb.design(
        wb.FiniteQuery("0..4", neighbours="all"), loss="error-rate", epsilon="0.1", delta="0.2"
    )
    rows = [[*row] for row in made.mechanism.rows]
    alone = max(
        sum(p for p, q in zip(rows[i], rows[j], strict=True) if not q)
        for i in range(5)
        for j in range(5)
        if i != j
    )
    assert compute_exposure(made.mechanism, Fraction(1, 10)) == alone <= Fraction(1, 5)
    assert made.to_dict()["exposure"] == pytest.approx(float(alone))
    assert "exposure" in dict(made.facts())
    pure = wb.design(wb.FiniteQuery("0..4", neighbours="all"), loss="error-rate", epsilon="0.1")
    assert "exposure" not in dict(pure.facts())
    assert "exposure" not in pure.to_dict()


def test_an_exposure_is_that_of_the_pairs():
    rows = [
        [Fraction(1, 2), Fraction(1, 2), 0],
        [Fraction(1, 4), Fraction(3, 4), 0],
        [0, Fraction(1, 3), Fraction(2, 3)],
    ]
    assert compute_exposure(Channel.from_pairs(rows, [(0, 1)]), Fraction(1)) == 0
    assert compute_exposure(Channel.from_pairs(rows, [(1, 2)]), Fraction(1)) == Fraction(2, 3)
    assert compute_exposure(Channel.from_pairs(rows), Fraction(1)) == Fraction(2, 3)
    assert compute_exposure(Channel.from_pairs(rows[:2]), Fraction(1)) == 0


def test_a_mass_far_below_what_epsilon_allows_is_as_revealing_as_none():
    tiny = Fraction(1, 10**7)
    channel = Channel.from_pairs([[Fraction(1, 3), Fraction(2, 3)], [tiny, 1 - tiny]])
    assert compute_exposure(channel, Fraction(1)) == Fraction(1, 3)
    assert compute_exposure(channel, Fraction(10)) == 0  # e^10 times as likely is what ε allows


def test_the_exposure_of_directed_neighbours_is_that_of_the_protected_order():
    query = wb.FiniteQuery("0..4", max_shift=1, directed=True)
    made = wb.design(query, loss="squared", epsilon=1, delta="0.01")
    alone = compute_exposure(made.mechanism, Fraction(1))
    assert alone <= Fraction(1, 100) / (1 - Fraction(1, 10_000))
    rows, pairs = made.mechanism.matrix, made.mechanism.pairs
    ratio = 10_000 * math.exp(1)
    own = max(rows[i][rows[i] > ratio * rows[j]].sum() for i, j in pairs)
    assert float(alone) == pytest.approx(own)


def test_an_exposure_may_exceed_delta_by_one_part_in_ten_thousand():
    tiny = Fraction(1, 10**5)
    channel = Channel.from_pairs([[tiny, 1 - tiny], [tiny / 27_183, 1 - tiny / 27_183]], [(0, 1)])
    alone = compute_exposure(channel, Fraction(1))
    delta = tiny * (1 - Fraction(math.e) / 27_183)
    assert delta < alone <= delta / (1 - Fraction(1, 10_000))


# Time.


def test_exact_sums_look_at_the_clock():
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


def test_a_loss_of_numbers_too_long_is_refused_by_size():
    question = RealNoise(Fraction(1, 2), clamp=(0, 10**6))
    noise = AdditiveRealNoise(
        question, 64, build_staircase_law(bound_inverse_exponential(Fraction(1, 10)), 64, 33)
    )
    with pytest.raises(NotCertified, match="bits"):
        noise.clamped_loss("squared")


@pytest.mark.parametrize("sensitivity", ["0.0385", "0.001"])
def test_a_class_whose_exact_sums_are_long_is_a_row_that_was_stopped(sensitivity: str):
    (row,) = wb.recommend(
        range="18..95", sensitivity=sensitivity, epsilon=1, only="real noise, clamped", time_limit=1
    )
    assert STOPPED_NOTE in row["notes"] or "bits" in row["notes"]


def test_a_program_too_large_for_a_notion_is_a_row_beside_classes_that_serve():
    rows = by_class(
        wb.recommend(answers="0..100", max_shift=1, notion="zcdp", rho="0.5", time_limit=1)
    )
    assert rows["best channel"]["objective"] is None or rows["best channel"]["certified"]
    assert "integer noise, clamped" in rows
