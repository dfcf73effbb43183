"""Channels for real answers on a range: their cost against an integral, their bound against other channels."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import workbench as wb
from tests.fuzz.queries import least_loss
from workbench.families.channel.family import FAMILY
from workbench.families.channel.proof import bound_gain_of_delta
from workbench.families.channel.range import _RangeSearch
from workbench.models.losses import parse_loss
from workbench.models.oracles.bins import optimal_bins
from workbench.questions.range_query import RangeQuery


def best(low, high, sensitivity=None, cells=None, loss="squared", epsilon=1, delta="0"):
    return wb.design(RangeQuery((low, high), sensitivity=sensitivity, cells=cells), loss=loss, epsilon=epsilon,
                     delta=delta)  # fmt: skip


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_the_cost_is_the_mean_over_real_answers(loss: str):
    design = best(-1, 5, cells=6, loss=loss)
    outputs = np.array([float(o) for o in design.question.outputs])
    x = (np.arange(60_000) + 0.5) / 60_000 * 6 - 1
    error = np.abs(outputs[None, :] - x[:, None]) ** (2 if loss == "squared" else 1)
    rows = design.mechanism.matrix[np.floor(x + 1).astype(int)]
    assert design.objective == pytest.approx((rows * error).sum(axis=1).mean(), rel=1e-6)
    assert "rounded to -0.5..4.5:1. The loss includes the rounding." in design.words[0]


@pytest.mark.parametrize("cut", [False, True])
def test_a_range_of_which_a_program_was_stopped_says_so(cut: bool):
    """Also where what it has is within 1 %: with more time another one may be found."""
    request = FAMILY.make_request(RangeQuery("0..8", sensitivity=4), epsilon="0.1", loss="squared")
    search = _RangeSearch(request)
    search.run()
    search._is_stopped = cut
    assert search.is_close
    if not cut:
        assert search.design().certificate is not None
        return
    with pytest.raises(wb.NotProven, match="The time limit was reached") as stopped:
        search.design()
    assert stopped.value.design.objective == stopped.value.incumbent


@pytest.mark.parametrize("epsilon", ["0.5", "2"])
@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_one_randomised_bit_is_between_bound_and_cost_or_above(loss: str, epsilon: str):
    """Is x in the upper half, by randomised response: outputs at each half's best point, found on a grid here."""
    value = best(0, 1, loss=loss, epsilon=epsilon)
    right = math.exp(float(epsilon)) / (1 + math.exp(float(epsilon)))
    x, o = (np.arange(2000) + 0.5) / 2000, np.linspace(0, 1, 2001)[:, None]
    power = 2 if loss == "squared" else 1
    weights = np.where(x < 0.5, right, 1 - right)
    bit = 2 * (weights * np.abs(o - x) ** power).mean(axis=1).min()
    assert value.certificate is not None
    assert 0 < value.bound <= value.objective <= value.bound / 0.99
    assert value.bound <= bit * (1 + 1e-6)
    assert value.objective <= bit * 1.01


def test_neighbours_within_a_sensitivity():
    value = best(0, 10, sensitivity=3, epsilon=1)
    everyone = best(0, 10, epsilon=1)
    assert value.bound <= value.objective <= value.bound / 0.99
    assert value.objective < everyone.objective
    assert (
        RangeQuery("0..10", sensitivity=3, cells=8).lower_bound_query().pairs
        == RangeQuery("0..10", cells=8).finite_query(2).pairs
    )
    assert RangeQuery("0..10", sensitivity=3, cells=8).max_point_distance == 3
    uneven = best(0, 10, sensitivity="3.125", epsilon=1)  # which few cells do not divide
    assert 0.99 * uneven.objective <= uneven.bound <= uneven.objective


def test_a_range_that_is_shifted_and_scaled_costs_the_same():
    first, second = best(0, 1), best(-100, 300)
    assert second.objective == pytest.approx(400**2 * first.objective, rel=1e-6)
    table = wb.recommend(range="-100..300", epsilon=1, time_limit=300)
    assert table[0]["class"] == "channel on a grid"
    assert table[0]["objective"] == pytest.approx(second.objective, rel=1e-12)
    assert table[0]["command"].startswith("workbench recommend ")


@pytest.mark.parametrize(
    ("prior", "loss"), [("1,3", "squared"), ("worst", "squared"), ("worst", "absolute")]
)
def test_a_prior_of_parts_and_the_worst_answer(prior: str, loss: str):
    cells = 8
    value = wb.design(RangeQuery("0..10", cells=cells, prior=prior), loss=loss, epsilon=1)
    x = np.linspace(0, 10, 8 * 1000 + 1)
    outputs = np.array([float(o) for o in value.question.outputs])
    at = np.minimum((x * cells / 10).astype(int), cells - 1)
    rows = value.mechanism.matrix[at]
    if prior == "worst":  # at random to an end of the cell
        share = (x * cells / 10 - at)[:, None]
        rows = (1 - share) * rows + share * value.mechanism.matrix[at + 1]
    errors = (rows * np.abs(outputs - x[:, None]) ** (2 if loss == "squared" else 1)).sum(axis=1)
    own = errors.max() if prior == "worst" else np.average(errors, weights=np.where(x < 5, 1, 3))
    assert value.objective == pytest.approx(own, rel=1e-3)
    free = wb.design(
        wb.FiniteQuery("0..10:2.5", "free", neighbours="all", prior="worst"), loss=loss, epsilon=1
    )
    if prior == "worst":
        assert free.objective <= value.objective * (1 + 1e-6)  # of five answers alone
        assert (
            "at random to one of the two nearest, the answer being the mean, of 0..10:1.25"
            in value.words[0]
        )
        assert (
            wb.design(RangeQuery("0..10", cells=4, prior=prior), loss=loss, epsilon=1).bound
            <= free.objective + 1e-9
        )
    assert 0.9 * value.objective < value.bound < value.objective
    constant = value.question.best_constant(loss)
    assert value.objective < float(constant[1])


@pytest.mark.parametrize(
    ("prior", "loss", "delta"),
    [(None, "absolute", "0"), ("1,3", "squared", "0"), ("1,3", "absolute", "1e-9"), (None, "squared", "1e-5")],
)  # fmt: skip
def test_ranges_at_large_epsilon_are_within_one_percent(prior, loss: str, delta: str):
    value = wb.design(RangeQuery("-3..5", prior=prior), loss=loss, epsilon=8, delta=delta)
    assert 0.99 * value.objective <= value.bound <= value.objective
    assert "(within 1 %)" in value.words[0]
    assert ("It is private at delta = 0." in value.words[0]) == (delta != "0")
    assert value.certificate.deciding_audit.dp_delta.upper <= float(delta)
    uneven = np.linspace(0, 1, 48) ** 1.1 * 8 - 3  # some other bins cost more
    middles = (uneven[1:] + uneven[:-1]) / 2
    x = (np.arange(8000) + 0.5) / 1000 - 3
    own, error = (
        np.searchsorted(uneven[1:-1], x),
        np.abs(x[:, None] - middles) ** (2 if loss == "squared" else 1),
    )
    odds = math.exp(8)
    mean = (error.sum(axis=1) + (odds - 1) * error[np.arange(x.size), own]) / (
        odds + middles.size - 1
    )
    assert value.bound <= np.average(mean, weights=np.where(x < 1, 1, 3) if prior else None)


@pytest.mark.parametrize(("delta", "sensitivity"), [("0", None), ("1e-6", None), ("0", "0.7771")])
def test_cells_are_multiples_of_the_parts_of_a_prior(delta: str, sensitivity: str | None):
    value = wb.design(
        RangeQuery("0..1", prior="1,2,1", sensitivity=sensitivity),
        loss="absolute",
        delta=delta,
        epsilon=1,
    )
    assert sensitivity is None or value.question.cells % 3 == 0
    assert 0.7 * value.objective < value.bound <= value.objective


@pytest.mark.parametrize(("epsilon", "delta"), [("1", "1e-3"), ("4", "1e-2"), ("3", "1e-4")])
@pytest.mark.parametrize(
    ("prior", "loss"), [("2,1,1", "absolute"), ("4,0,4", "absolute"), ("1,1,2", "squared")]
)
def test_the_bound_of_a_small_delta_is_below_a_plain_program(
    epsilon: str, delta: str, prior: str, loss: str
):
    """That of the best bins of k points, less what δ may gain: below the program at (ε, δ) on many outputs."""
    k, x = 6, np.arange(6) + 0.5
    shares = np.repeat([float(v) for v in prior.split(",")], 2)
    bins = optimal_bins(x, shares, float(epsilon), parse_loss(loss))
    gain = float(bound_gain_of_delta(Fraction(epsilon), Fraction(delta), k))
    bound = bins.bound - gain * 5.0 ** (2 if loss == "squared" else 1)
    table = np.abs(np.linspace(0.5, 5.5, 121) - x[:, None]) ** (2 if loss == "squared" else 1)
    least = least_loss(
        table, shares, np.ones((k, k), dtype=bool), {"epsilon": epsilon, "delta": delta}
    )
    assert (
        0.5 * least < bound <= least * (1 + 1e-6)
    )  # that the outputs are on a grid makes it larger
    assert 0 < gain < 0.02


@pytest.mark.parametrize("sensitivity", ["3", "2.1"])
def test_answers_rounded_at_random_are_as_private_as_their_points(sensitivity: str):
    query = RangeQuery("0..10", sensitivity=sensitivity, cells=10, prior="worst")
    value = wb.design(query, epsilon=1, delta="0.02", loss="absolute")
    x = np.linspace(0, 10, 101)
    at = np.minimum(x.astype(int), 9)
    rows = value.mechanism.matrix
    rows = rows[at] * (1 - x + at)[:, None] + rows[at + 1] * (x - at)[:, None]
    near = np.abs(x[:, None] - x) <= float(sensitivity) + 1e-9
    sticks = np.maximum(rows[:, None, :] - math.e * rows[None], 0).sum(axis=2)
    assert sticks[near].max() <= 0.02 + 1e-9
    assert sticks.max() > 0.1  # of others


def test_what_one_output_costs():
    assert RangeQuery("0..10", prior="1,3").best_constant("squared") == (
        Fraction(25, 4),
        Fraction(325, 48),
    )
    output, loss = RangeQuery("0..10", prior="1,3").best_constant("absolute")
    x = np.concatenate(
        [(np.arange(20_000) + 0.5) / 4000, *[5 + (np.arange(20_000) + 0.5) / 4000] * 3]
    )
    assert output == Fraction(20, 3)
    assert float(loss) == pytest.approx(np.abs(x - 20 / 3).mean(), rel=1e-6)
    with pytest.raises(wb.InvalidRequest, match="cells must be a multiple of 3"):
        RangeQuery("0..1", prior="1,2,1", cells=4)


def test_a_certificate_holds_the_channel_of_the_cells(tmp_path):
    design = best(0, 4, cells=4, loss="absolute", delta="0.1")
    design.save(tmp_path / "range.json")
    held = wb.load(tmp_path / "range.json")
    assert held == design.mechanism
    assert [float(x) for x in held.inputs] == [0.5, 1.5, 2.5, 3.5]
    assert design.row()["objective"] == design.objective
    assert design.to_dict()["question"]["range"] == "0..4"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"range": "0..5", "answers": "0..5"}, "exactly one of answers, range and places"),
        ({"range": "0..5", "max_shift": 1}, "max_shift must be left out with a range"),
        (
            {"answers": "0..5", "max_shift": 1, "cells": 4},
            "cells must be left out unless a range is given",
        ),
        ({"range": "0..5", "sensitivity": 6}, "at most the width of the range"),
        (
            {"range": "0..5", "loss": "error-rate"},
            "loss of a range must be one of absolute, squared",
        ),
        ({"range": "0..5", "minimise": "delta", "max_loss": 1}, "must be left out with a range"),
        (
            {"range": "0..5", "minimise": "epsilon", "max_loss": 1, "runs": 2},
            "must be left out with a range",
        ),
        (
            {"range": "0..5", "notion": "pdp", "delta": "0.1"},
            "notion must be dp for a range with delta > 0",
        ),
        (
            {"range": "0..5", "notion": "metric"},
            "budgets per distance must be left out with a range",
        ),
    ],
)
def test_what_a_range_does_not_take(given, words):
    with pytest.raises(wb.InvalidRequest, match=words):
        FAMILY.make_request_from_options(**{"epsilon": 1, **given})


@pytest.mark.parametrize(
    ("loss", "epsilon", "delta"),
    [("absolute", "0.5", "0"), ("squared", "0.5", "0"), ("absolute", "3", "0"), ("squared", "3", "0"),
     ("absolute", "3", "1e-9")],
)  # fmt: skip
def test_the_worst_answer(loss: str, epsilon: str, delta: str):
    value = wb.design(RangeQuery("-2..6", prior="worst"), loss=loss, epsilon=epsilon, delta=delta)
    assert 0.99 * value.objective <= value.bound <= value.objective
    assert "(within 1 %)" in value.words[0]
    power = 2 if loss == "squared" else 1
    assert value.privacy.dp_delta.upper <= float(delta)
    at, share = np.divmod(np.linspace(0, value.question.cells, 1601)[:-1], 1)
    laws = value.mechanism.matrix[at.astype(int)] * (1 - share)[:, None]
    laws += value.mechanism.matrix[at.astype(int) + 1] * share[:, None]
    x = np.linspace(-2, 6, 1601)[:-1]
    errors = (laws * np.abs(value.mechanism.outputs - x[:, None]) ** power).sum(axis=1)
    assert 0.995 * value.objective <= errors.max() <= value.objective * (1 + 1e-9)
    bins, odds, x, mean = (
        np.linspace(-2, 6, 17),
        math.exp(float(epsilon)),
        np.linspace(-2, 6, 2001),
        np.zeros(2001),
    )
    for shift in np.arange(20) / 20:  # equal bins, at every shift
        cut = np.concatenate([[-2.0], bins[:-1] + shift * (bins[1] + 2) + 1e-9, [6.0]])
        error = np.abs(x[:, None] - (cut[1:] + cut[:-1]) / 2) ** power
        at = np.clip(np.searchsorted(cut, x) - 1, 0, None)
        mean += (
            (error.sum(axis=1) + (odds - 1) * error[np.arange(x.size), at]) / (odds + at.max()) / 20
        )
    assert value.bound <= mean.max()


@pytest.mark.parametrize(
    ("epsilon", "delta", "prior", "loss"),
    [("1", "0.05", "1,3", "squared"), ("1", "0.3", "worst", "squared")],
)
def test_a_large_delta_is_within_one_percent(
    epsilon: str, delta: str, prior: str | None, loss: str
):
    value = wb.design(RangeQuery("0..1", prior=prior), loss=loss, epsilon=epsilon, delta=delta)
    assert 0.99 * value.objective <= value.bound <= value.objective
    assert value.privacy.dp_delta.upper <= float(delta) * (1 + 1e-12)
    pure = wb.design(RangeQuery("0..1", prior=prior), loss=loss, epsilon=epsilon)
    assert value.objective < pure.objective


def test_an_interval_that_stays_wide_is_told():
    """At a large ε and δ few grids are small enough to be solved."""
    with pytest.raises(wb.NotProven, match="The time limit was reached") as error:
        wb.design(RangeQuery("0..1"), loss="absolute", epsilon=8, delta="0.05", time_limit=1)
    value = error.value.design
    assert value.bound < 0.99 * value.objective
    words = f"lies between {value.bound:.9g} and {value.objective:.9g} (not proven within 1 %)"
    assert words in value.words[0]
    assert value.certificate is not None


def test_a_range_whose_time_is_over_at_once_has_a_design():
    with pytest.raises(wb.NotProven, match="The time limit was reached") as error:
        wb.design(
            RangeQuery("10..18", prior="worst"),
            loss="absolute",
            epsilon=5,
            delta="0.01",
            time_limit="0.001",
        )
    value = error.value.design
    assert value.bound < value.objective <= 4
    assert value.privacy.dp_delta.upper <= 0.01


def test_bins_are_cells_of_their_own():
    steep = wb.design(RangeQuery("0..1"), loss="squared", epsilon=12)
    assert len(steep.mechanism.cells) == steep.question.m < 64
    assert 0.99 * steep.objective <= steep.bound <= steep.objective


def test_the_least_epsilon_is_that_of_the_table():
    asked = {"range": "0..10", "loss": "absolute", "minimise": "epsilon", "max_loss": "2"}
    value = FAMILY.design_request(FAMILY.make_request_from_options(**asked))
    row = wb.recommend(**asked, only="channel on a grid", time_limit=300)[0]
    assert (value.objective, value.bound) == (row["objective"], row["bound"])
    assert "--only" in row["command"]
    assert value.details["loss"] <= 2
    assert value.privacy.pure_epsilon <= value.objective * (1 + 1e-9)
    above = wb.design(RangeQuery("0..10"), loss="absolute", epsilon=value.objective * 0.97)
    assert above.bound > 2 or value.bound < value.objective * 0.97
    with pytest.raises(wb.Infeasible, match=r"no epsilon up to 0\.5 is sufficient"):
        FAMILY.design_request(FAMILY.make_request_from_options(**asked, epsilon="0.5"))
    with pytest.raises(wb.InvalidRequest, match=r"max_loss must be less than 2\.5"):
        FAMILY.design_request(FAMILY.make_request_from_options(**{**asked, "max_loss": "2.5"}))


def test_one_bin_is_the_constant():
    value = wb.design(RangeQuery("0..8", prior="5,1,1,0"), loss="absolute", epsilon="0.2")
    assert value.objective == pytest.approx(
        float(value.question.best_constant("absolute")[1]), rel=0.01
    )
    assert 0.99 * value.objective <= value.bound <= value.objective


@pytest.mark.parametrize("loss", ["absolute", "squared"])
def test_a_range_far_from_0_has_the_loss_and_the_bound_of_one_that_starts_there(loss: str):
    near, far = (
        wb.design("channel", range=ends, epsilon=8, loss=loss)
        for ends in ("0..1", "1000000000..1000000001")
    )
    assert (far.objective, far.bound) == (near.objective, near.bound)
