"""Test that what `recommend` says is true: its bounds, its advice on averages, and its exposures.

A *class* is a set of mechanisms, one row of the table, with the loss of its best mechanism and a
lower bound on the loss of all its mechanisms.
"""

from __future__ import annotations

import itertools
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

# Largest ε that a search for the smallest ε tries.
MAX_EPSILON = 20


def index_by_class(result: Any) -> dict[str, Any]:
    """Return class -> row of a table of `recommend`."""
    return {row["class"]: row for row in result}


# Bounds.


@pytest.mark.parametrize("error", [NotProven(""), OutOfTime()])
def test_a_bound_on_the_loss_is_not_reported_as_a_bound_on_epsilon(error: Exception):
    """The design at the first ε is stopped, with a bound on its loss."""
    error.bound = 6.018

    def design_at(epsilon: Fraction) -> Design:
        """Fail at every ε."""
        raise error

    aim = Aim(loss="squared", minimise="epsilon", max_loss=Fraction(1))
    request = Request(question=None, claim=Claim("dp", Fraction(20)), aim=aim, how=How())
    with pytest.raises(type(error)) as raised:
        _search_least_value(design_at, request, lower_end=Fraction(0), name="epsilon")
    assert raised.value.bound is None


def test_a_stopped_search_for_the_smallest_epsilon_keeps_its_best_design():
    """ε = 2 is feasible, and the designs at all smaller ε are stopped."""
    question = wb.FiniteQuery("0..3", max_shift=1)
    design = wb.design(question, loss="squared", epsilon=2)

    def design_at(epsilon: Fraction) -> Design:
        """Return the design if ε is at least 2."""
        if epsilon < 2:
            raise OutOfTime
        return design

    aim = Aim(loss="squared", minimise="epsilon", max_loss=Fraction(design.objective) * 2)
    request = Request(question=question, claim=Claim("dp", Fraction(2)), aim=aim, how=How())
    with pytest.raises(NotProven) as raised:
        _search_least_value(design_at, request, lower_end=Fraction(0), name="epsilon")
    assert raised.value.design.objective == 2
    assert raised.value.bound == 0


def test_a_stopped_bisection_reports_the_largest_epsilon_that_is_excluded(
    monkeypatch: pytest.MonkeyPatch,
):
    """The loss may be at most 3, and the first ε has a loss of at least 40. The second ε is
    stopped.
    """
    tried_epsilons: list[Fraction] = []

    def solve(query: Query) -> Value:
        """Solve at the first ε, and be stopped at every later one."""
        tried_epsilons.append(query.claim.epsilon)
        if len(tried_epsilons) > 1:
            raise NotProven("stopped", bound=97.1)
        return Value(objective=50.0, bound=40.0, is_certified=True)

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


# The required fields of a design, apart from its loss.
DESIGN_FIELDS = {
    "request": None,
    "mechanism": None,
    "claim": None,
    "oracle": OracleVerdict.without_formula("none."),
}


def test_a_raw_design_keeps_a_bound_above_its_loss():
    """A raw answer may be better than the bound, because it is not private."""
    assert Design(objective=0.8, bound=6.0, **DESIGN_FIELDS).bound == 6.0


def test_a_certified_design_drops_a_bound_above_its_loss():
    certificate = wb.design(wb.FiniteQuery("0..2", max_shift=1), epsilon=1).certificate
    fields = {**DESIGN_FIELDS, "certificate": certificate}
    # A rounding error is accepted.
    assert Design(objective=0.8, bound=0.8 + 1e-12, **fields).bound == 0.8 + 1e-12
    design = Design(objective=0.8, bound=6.0, **fields)
    assert design.bound is None
    assert "is therefore no bound" in design.words[-1]


# Name -> function that returns the rows of a table, or the row of a design. ε is minimised where
# the name contains "epsilon".
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
            # A bound on the loss instead of ε could be larger.
            assert row["bound"] <= MAX_EPSILON


# Averages.


def test_the_class_for_averages_has_the_smallest_variance():
    """A quantizer with four outputs has a smaller absolute loss than one with two outputs, but a
    larger variance. So the average of many outputs is better with two outputs.
    """
    result = wb.recommend(range="0..200000", epsilon=1, loss="absolute", time_limit=300)
    rows = index_by_class(result)
    two_outputs = rows["quantizer, 2 outputs"]
    four_outputs = rows["quantizer, 4 outputs"]
    assert four_outputs["objective"] < two_outputs["objective"]
    assert two_outputs["rmse"] < four_outputs["rmse"]
    (sentence,) = [text for text in result.sentences if "averaged" in text and "Use" in text]
    assert sentence.startswith("Use the quantizer, 2 outputs")
    # A channel has a bias, which does not decrease if outputs are averaged.
    channel = rows["channel on a grid"]
    assert channel["bias"] > 0
    assert f"{channel['bias']:.6g} stays in every average" in " ".join(result.sentences)
    # For a value uniform on [-1, 1], the outputs ±B have the mean squared error B² - 1/3, and
    # B = (e^ε + 1)/(e^ε - 1) makes them unbiased. Half the range is 1e5.
    reach = (math.e + 1) / (math.e - 1)
    assert two_outputs["rmse"] ** 2 == pytest.approx((reach**2 - 1 / 3) * 1e10, rel=1e-6)


def test_a_biased_class_is_never_recommended_for_averages():
    query = Query(
        question=RangeQuery("0..10"), claim=Claim("dp", Fraction(1)), aim=Aim(loss="absolute")
    )
    biased_row = {
        "class": "channel on a grid",
        "objective": 1.0,
        "bound": None,
        "certified": True,
        "notes": "biased",
        "bias": 2.5,
        "rmse": 0.1,
    }
    candidates = [Candidate("channel on a grid")]
    sentences = [
        *describe_range_query(query, rows=[biased_row], candidates=candidates, mechanisms={})
    ]
    assert not [sentence for sentence in sentences if "averaged" in sentence]
    assert "2.5 stays in every average" in sentences[0]


RANGE_QUERY = {"range": "0..10", "epsilon": 1, "delta": "0.05"}


@pytest.mark.parametrize("name", ["Laplace", "truncated Laplace", "Gaussian"])
def test_the_rmse_of_published_noise_does_not_depend_on_the_loss(name: str):
    (absolute_row,) = wb.recommend(**RANGE_QUERY, loss="absolute", only=name)
    (squared_row,) = wb.recommend(**RANGE_QUERY, loss="squared", only=name)
    assert absolute_row["rmse"] == pytest.approx(squared_row["objective"] ** 0.5, rel=1e-12)


def test_uniform_noise_for_the_squared_loss_has_no_larger_rmse():
    """The parameters of uniform noise are chosen for the loss."""
    (absolute_row,) = wb.recommend(**RANGE_QUERY, loss="absolute", only="uniform")
    (squared_row,) = wb.recommend(**RANGE_QUERY, loss="squared", only="uniform")
    assert absolute_row["rmse"] >= squared_row["objective"] ** 0.5 * (1 - 1e-12)


def test_the_bias_of_nearest_outputs_bounds_the_shift_of_every_mean():
    """With probability 1/20 the answer itself is published. Otherwise an output is drawn, and the
    two outputs nearest to the answer have 20 times the probability of the others.
    """
    mechanism = NearestOutputs(
        ends=(Fraction(0), Fraction(10)),
        bins=tuple(map(Fraction, (1, 3, 6, 9))),
        own=2,
        odds=Fraction(20),
        direct=Fraction(1, 20),
        steps=64,
    )
    outputs = np.array([1.0, 3.0, 6.0, 9.0])
    for answer in np.linspace(0, 10, 401):
        nearest = np.argsort(np.abs(outputs - answer), kind="stable")[:2]
        weights = np.ones(outputs.size)
        weights[nearest] = 20
        drawn_mean = float(outputs @ weights / weights.sum())
        bias = 0.95 * drawn_mean + 0.05 * answer - answer
        assert abs(bias) <= float(mechanism.largest_bias) * (1 + 1e-9)


# Sentences on classes that were not computed.


def test_a_table_of_one_class_has_no_sentence_on_classes():
    one_class = wb.recommend(answers="0..10", max_shift=1, epsilon=1, only="exponential")
    assert "class" not in " ".join(one_class.sentences)
    all_classes = wb.recommend(answers="0..3", max_shift=1, epsilon=1)
    assert "It is optimal in its class." in " ".join(all_classes.sentences)


def test_sentences_name_stopped_classes_and_a_better_constant_output(
    monkeypatch: pytest.MonkeyPatch,
):
    """Publishing 50 for every answer in 0..100 has the loss 850. The only solved class has 1177."""

    def solve_none() -> Value:
        raise OutOfTime

    channel = Channel.from_pairs(np.full((101, 101), 1 / 101), [(0, 1)])
    value = Value(objective=1177.0, bound=None, is_certified=True, mechanism=channel)
    candidates = [
        Candidate("modulo noise", "wraps around", lambda: value),
        *(Candidate(f"class {i}", solve=solve_none, uses_solver=True) for i in range(5)),
    ]
    monkeypatch.setattr(recommending, "list_candidates", lambda query: candidates)
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
        "notes": f"unbiased; {STOPPED_NOTE}; {BORROWED_NOTE} staircase (pure)",
    }
    sentences = [
        *describe_range_query(
            query, rows=[row], candidates=[Candidate("real noise")], mechanisms={}
        )
    ]
    (sentence,) = [text for text in sentences if "time limit of 3 seconds" in text]
    assert "real noise" in sentence


# Exposure: the probability of outputs that a neighbour produces never, or 10,000 e^ε times less
# often.


def test_a_channel_of_a_range_is_recommended_with_its_exposure():
    result = wb.recommend(**RANGE_QUERY, loss="absolute", only="channel on a grid", time_limit=300)
    sentence = "With probability up to 0.05 it publishes an output that a neighbour cannot produce"
    assert sentence in " ".join(result.sentences)
    design = result.best
    exposure = compute_exposure(design.mechanism, Fraction(1))
    # An exposure is at most δ, up to one part in ten thousand.
    assert 0.04 < exposure <= Fraction(1, 20) * (1 + Fraction(1, 10_000))
    assert design.to_dict()["exposure"] == pytest.approx(float(exposure))
    assert dict(design.facts())["exposure"].startswith(
        "outputs that a neighbour cannot produce, or produces 10,000"
    )


def design_errors(**budget: Any) -> wb.Design:
    """Design the channel of smallest error rate at ε = 0.1, for five answers that are neighbours.

    budget: δ, if it is not 0.
    """
    query = wb.FiniteQuery("0..4", neighbours="all")
    return wb.design(query, loss="error-rate", epsilon="0.1", **budget)


def test_the_exposure_is_the_largest_probability_of_outputs_that_a_neighbour_cannot_produce():
    design = design_errors(delta="0.2")
    rows = [[*row] for row in design.mechanism.rows]
    exclusive_masses = []
    for row, neighbour_row in itertools.permutations(rows, 2):
        masses = zip(row, neighbour_row, strict=True)
        exclusive_masses.append(sum(p for p, q in masses if not q))
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


def test_the_exposure_of_directed_neighbours_counts_only_the_protected_order():
    query = wb.FiniteQuery("0..4", max_shift=1, directed=True)
    design = wb.design(query, loss="squared", epsilon=1, delta="0.01")
    exposure = compute_exposure(design.mechanism, Fraction(1))
    # The largest exposure for δ = 0.01 (next test).
    assert exposure <= Fraction(1, 100) / (1 - Fraction(1, 10_000))
    rows = design.mechanism.matrix
    ratio = 10_000 * math.exp(1)
    exposures = [rows[i][rows[i] > ratio * rows[j]].sum() for i, j in design.mechanism.pairs]
    assert float(exposure) == pytest.approx(max(exposures))


def test_an_exposure_may_exceed_delta_by_one_part_in_ten_thousand():
    """The first output has the masses P and Q = P/27,183, just below P/(10,000 e). So it counts, but
    the hockey stick P - e Q, the smallest δ, is smaller than P.
    """
    tiny = Fraction(1, 10**5)
    channel = Channel.from_pairs([[tiny, 1 - tiny], [tiny / 27_183, 1 - tiny / 27_183]], [(0, 1)])
    exposure = compute_exposure(channel, Fraction(1))
    delta = tiny * (1 - Fraction(math.e) / 27_183)
    assert delta < exposure <= delta / (1 - Fraction(1, 10_000))


# Time limits and sizes.


def make_staircase_noise(question: RealNoise, epsilon: Fraction, steps: int) -> AdditiveRealNoise:
    """Return staircase noise that is private at ε, with a number of steps per sensitivity."""
    ratio = bound_inverse_exponential(epsilon)
    law = build_staircase_law(ratio, reach=steps, inner=steps // 2)
    return AdditiveRealNoise(question, steps, law)


def test_exact_losses_end_at_the_time_limit():
    """A limit of -1 seconds has passed at the start."""
    question = RealNoise(Fraction(1, 10), clamp=(0, 10))
    noise = make_staircase_noise(question, Fraction(1), steps=8)
    assert noise.clamped_loss("squared") > 0
    with limit_time(-1), pytest.raises(OutOfTime):
        noise.clamped_loss("squared")
    with limit_time(-1), pytest.raises(OutOfTime):
        noise.loss("squared")


def test_a_loss_with_too_many_cells_is_refused():
    question = RealNoise(Fraction(1, 2), clamp=(0, 10**6))
    noise = make_staircase_noise(question, Fraction(1, 1000), steps=64)
    with pytest.raises(NotCertified, match="cells"):
        noise.clamped_loss("squared")


@pytest.mark.parametrize("sensitivity", ["0.0385", "0.001"])
def test_a_mean_has_clamped_noise_and_no_channel(sensitivity: str):
    """The range is 2,000 or 77,000 times as long as the sensitivity.

    A channel on at most 512 cells has a larger loss than noise, so it is not tried.
    """
    query = {"range": "18..95", "sensitivity": sensitivity, "epsilon": 1, "loss": "absolute"}
    rows = index_by_class(wb.recommend(**query, time_limit=300))
    clamped = rows["real noise, clamped"]
    plain = rows["real noise"]
    assert clamped["certified"]
    assert 0.999 * plain["objective"] < clamped["objective"] < plain["objective"]
    assert rows["channel on a grid"]["objective"] is None
    assert "workbench design channel" in rows["channel on a grid"]["notes"]


def test_a_channel_too_large_for_a_notion_does_not_hide_other_classes():
    rows = index_by_class(
        wb.recommend(answers="0..100", max_shift=1, notion="zcdp", rho="0.5", time_limit=1)
    )
    assert rows["best channel"]["objective"] is None or rows["best channel"]["certified"]
    assert "integer noise, clamped" in rows
