"""Test channels for real answers in a range, whose answers are rounded to the middles of cells.

For the worst answer ("prior": "worst"), an answer is rounded at random to an end of its cell. The
loss is compared with a mean over real answers, and the bound with the losses of other private
mechanisms. A search refines the cells until loss and bound are within 1 %.
"""

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
from workbench.families.channel.recommendation import bound_loss_on_cells
from workbench.models.losses import parse_loss
from workbench.models.oracles.bins import optimal_bins
from workbench.questions.range_query import RangeQuery


def get_power(loss: str) -> int:
    """Return p for the loss |output - answer|^p."""
    return 2 if loss == "squared" else 1


def get_float_outputs(design: wb.Design) -> np.ndarray:
    """Return the outputs of a design, shape (m,)."""
    return np.array([float(o) for o in design.question.outputs])


def assert_within_one_percent(design: wb.Design) -> None:
    """Assert that the loss is at most 1 % above the proven bound."""
    assert 0.99 * design.objective <= design.bound <= design.objective


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_the_loss_is_the_mean_over_real_answers(loss: str):
    design = wb.design(RangeQuery("-1..5", cells=6), loss=loss, epsilon=1)
    x = (np.arange(60_000) + 0.5) / 60_000 * 6 - 1
    errors = np.abs(get_float_outputs(design)[None, :] - x[:, None]) ** get_power(loss)
    rows = design.mechanism.matrix[np.floor(x + 1).astype(int)]
    assert design.objective == pytest.approx((rows * errors).sum(axis=1).mean(), rel=1e-6)
    assert "rounded to -0.5..4.5:1. The loss includes the rounding." in design.words[0]


def search_range() -> _RangeSearch:
    """Search the best channel of a range until loss and bound are within 1 %."""
    request = FAMILY.make_request(RangeQuery("0..8", sensitivity=4), epsilon="0.1", loss="squared")
    search = _RangeSearch(request)
    search.run()
    assert search.is_close
    return search


def test_a_finished_search_returns_a_certified_design():
    assert search_range().design().certificate is not None


def test_a_search_whose_program_was_stopped_is_not_proven():
    """With more time another channel may be found, even if loss and bound are within 1 %."""
    search = search_range()
    search._has_stopped_program = True
    with pytest.raises(wb.NotProven, match="The time limit was reached") as stopped:
        search.design()
    assert stopped.value.design.objective == stopped.value.incumbent


@pytest.mark.parametrize("epsilon", ["0.5", "2"])
@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_one_randomized_bit_is_not_below_the_bound_nor_clearly_better(loss: str, epsilon: str):
    """The bit says whether the answer is in the upper half. A grid gives its best outputs."""
    design = wb.design(RangeQuery("0..1"), loss=loss, epsilon=epsilon)
    true_mass = math.exp(float(epsilon)) / (1 + math.exp(float(epsilon)))
    x = (np.arange(2000) + 0.5) / 2000
    outputs = np.linspace(0, 1, 2001)[:, None]
    weights = np.where(x < 0.5, true_mass, 1 - true_mass)
    output_losses = (weights * np.abs(outputs - x) ** get_power(loss)).mean(axis=1)
    # By symmetry both outputs have the same smallest loss.
    bit_loss = 2 * output_losses.min()
    assert design.certificate is not None
    assert design.bound > 0
    assert_within_one_percent(design)
    assert design.bound <= bit_loss * (1 + 1e-6)
    assert design.objective <= bit_loss * 1.01


@pytest.mark.parametrize("sensitivity", [3, "3.125"])
def test_a_sensitivity_below_the_width_of_the_range_reduces_the_loss(sensitivity):
    """Few cells do not divide a sensitivity of 3.125 in 0..10."""
    design = wb.design(RangeQuery("0..10", sensitivity=sensitivity), loss="squared", epsilon=1)
    all_neighbours = wb.design(RangeQuery("0..10"), loss="squared", epsilon=1)
    assert_within_one_percent(design)
    assert design.objective < all_neighbours.objective


def test_points_of_neighbours_are_rounded_up_for_privacy_and_down_for_the_bound():
    """The sensitivity 3 is 2.4 cells of width 1.25: rounded up 3 cells, rounded down 2."""
    query = RangeQuery("0..10", sensitivity=3, cells=8)
    assert query.max_point_distance == 3
    two_points_apart = RangeQuery("0..10", cells=8).finite_query(max_distance=2).pairs
    assert query.lower_bound_query().pairs == two_points_apart


def test_the_loss_of_a_shifted_and_scaled_range_is_scaled():
    unit = wb.design(RangeQuery("0..1"), loss="squared", epsilon=1)
    scaled = wb.design(RangeQuery("-100..300"), loss="squared", epsilon=1)
    assert scaled.objective == pytest.approx(400**2 * unit.objective, rel=1e-6)


def test_the_first_row_of_a_recommendation_is_the_channel_of_the_range():
    design = wb.design(RangeQuery("-100..300"), loss="squared", epsilon=1)
    row = wb.recommend(range="-100..300", epsilon=1, time_limit=300)[0]
    assert row["class"] == "channel on a grid"
    assert row["objective"] == pytest.approx(design.objective, rel=1e-12)
    assert row["command"].startswith("workbench recommend ")


def compute_answer_losses(design: wb.Design, x: np.ndarray) -> np.ndarray:
    """Compute the expected loss at real answers x, shape (n,), for a design with 8 cells of 0..10.

    For the worst answer, an answer is rounded at random to one of the two ends of its cell.
    """
    positions = x * 8 / 10
    cell = np.minimum(positions.astype(int), 7)
    laws = design.mechanism.matrix[cell]
    if design.question.prior is None:
        share = (positions - cell)[:, None]
        laws = (1 - share) * laws + share * design.mechanism.matrix[cell + 1]
    errors = np.abs(get_float_outputs(design) - x[:, None])
    return (laws * errors ** get_power(str(design.request.aim.loss))).sum(axis=1)


ANSWERS = np.linspace(0, 10, 8 * 1000 + 1)


def test_with_a_prior_of_parts_the_loss_is_the_weighted_mean_over_real_answers():
    design = wb.design(RangeQuery("0..10", cells=8, prior="1,3"), loss="squared", epsilon=1)
    weights = np.where(ANSWERS < 5, 1, 3)
    expected_loss = np.average(compute_answer_losses(design, ANSWERS), weights=weights)
    assert design.objective == pytest.approx(expected_loss, rel=1e-3)
    assert 0.9 * design.objective < design.bound < design.objective
    assert design.objective < float(design.question.best_constant("squared")[1])


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_for_the_worst_answer_the_loss_is_the_largest_over_real_answers(loss: str):
    design = wb.design(RangeQuery("0..10", cells=8, prior="worst"), loss=loss, epsilon=1)
    worst_loss = compute_answer_losses(design, ANSWERS).max()
    assert design.objective == pytest.approx(worst_loss, rel=1e-3)
    assert 0.9 * design.objective < design.bound < design.objective
    assert design.objective < float(design.question.best_constant(loss)[1])
    rounding = "at random to one of the two nearest, the answer being the mean, of 0..10:1.25"
    assert rounding in design.words[0]


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_for_the_worst_answer_the_bound_is_at_most_the_optimum_of_the_cell_ends(loss: str):
    cell_ends = wb.FiniteQuery("0..10:2.5", "free", neighbours="all", prior="worst")
    optimum = wb.design(cell_ends, loss=loss, epsilon=1).objective
    coarse = wb.design(RangeQuery("0..10", cells=4, prior="worst"), loss=loss, epsilon=1)
    fine = wb.design(RangeQuery("0..10", cells=8, prior="worst"), loss=loss, epsilon=1)
    assert coarse.bound <= optimum + 1e-9
    # The range has more answers than the cell ends, so its loss is larger.
    assert optimum <= fine.objective * (1 + 1e-6)


@pytest.mark.parametrize(
    ("prior", "loss", "delta"),
    [
        (None, "absolute", "0"),
        ("1,3", "squared", "0"),
        ("1,3", "absolute", "1e-9"),
        (None, "squared", "1e-5"),
    ],
)
def test_ranges_at_large_epsilon_are_within_one_percent(prior, loss: str, delta: str):
    design = wb.design(RangeQuery("-3..5", prior=prior), loss=loss, epsilon=8, delta=delta)
    assert_within_one_percent(design)
    assert "(within 1 %)" in design.words[0]
    assert ("It is private at delta = 0." in design.words[0]) == (delta != "0")
    assert design.certificate.deciding_audit.dp_delta.upper <= float(delta)


@pytest.mark.parametrize(("prior", "loss"), [(None, "absolute"), ("1,3", "squared")])
def test_the_bound_is_below_the_loss_of_randomized_response_on_other_bins(prior, loss: str):
    """The bins are 47 intervals of growing width, and their outputs are the middles."""
    design = wb.design(RangeQuery("-3..5", prior=prior), loss=loss, epsilon=8)
    bin_ends = np.linspace(0, 1, 48) ** 1.1 * 8 - 3
    outputs = (bin_ends[1:] + bin_ends[:-1]) / 2
    x = (np.arange(8000) + 0.5) / 1000 - 3
    bin_index = np.searchsorted(bin_ends[1:-1], x)
    errors = np.abs(x[:, None] - outputs) ** get_power(loss)
    odds = math.exp(8)
    weighted_errors = errors.sum(axis=1) + (odds - 1) * errors[np.arange(x.size), bin_index]
    answer_losses = weighted_errors / (odds + outputs.size - 1)
    weights = np.where(x < 1, 1, 3) if prior else None
    assert design.bound <= np.average(answer_losses, weights=weights)


@pytest.mark.parametrize(("delta", "sensitivity"), [("0", None), ("1e-6", None), ("0", "0.7771")])
def test_cells_are_multiples_of_the_parts_of_a_prior(delta: str, sensitivity: str | None):
    query = RangeQuery("0..1", prior="1,2,1", sensitivity=sensitivity)
    design = wb.design(query, loss="absolute", delta=delta, epsilon=1)
    # Without a sensitivity, RR-on-Bins is the answer, which has no cells.
    assert sensitivity is None or design.question.cells % 3 == 0
    assert 0.7 * design.objective < design.bound <= design.objective


@pytest.mark.parametrize(("epsilon", "delta"), [("1", "1e-3"), ("4", "1e-2"), ("3", "1e-4")])
@pytest.mark.parametrize(
    ("prior", "loss"), [("2,1,1", "absolute"), ("4,0,4", "absolute"), ("1,1,2", "squared")]
)
def test_the_bound_at_a_small_delta_is_below_the_optimum_of_a_plain_program(
    epsilon: str, delta: str, prior: str, loss: str
):
    """The bound is the loss of the best bins of six points minus the largest gain of δ.

    The program has 121 outputs. Its optimum is slightly above that of all real outputs.
    """
    points = np.arange(6) + 0.5
    weights = np.repeat([float(weight) for weight in prior.split(",")], 2)
    bins = optimal_bins(points, weights, float(epsilon), parse_loss(loss))
    gain = float(bound_gain_of_delta(Fraction(epsilon), Fraction(delta), inputs=6))
    largest_loss = 5.0 ** get_power(loss)
    bound = bins.bound - gain * largest_loss
    losses = np.abs(np.linspace(0.5, 5.5, 121) - points[:, None]) ** get_power(loss)
    are_neighbours = np.ones((6, 6), dtype=bool)
    budget = {"epsilon": epsilon, "delta": delta}
    optimum = least_loss(losses, weights, are_neighbours, budget)
    assert 0.5 * optimum < bound <= optimum * (1 + 1e-6)
    assert 0 < gain < 0.02


@pytest.mark.parametrize("sensitivity", ["3", "2.1"])
def test_answers_that_are_rounded_at_random_are_private(sensitivity: str):
    query = RangeQuery("0..10", sensitivity=sensitivity, cells=10, prior="worst")
    design = wb.design(query, epsilon=1, delta="0.02", loss="absolute")
    x = np.linspace(0, 10, 101)
    cell = np.minimum(x.astype(int), 9)
    share = (x - cell)[:, None]
    laws = (1 - share) * design.mechanism.matrix[cell] + share * design.mechanism.matrix[cell + 1]
    hockey_sticks = np.maximum(laws[:, None, :] - math.e * laws[None], 0).sum(axis=2)
    are_neighbours = np.abs(x[:, None] - x) <= float(sensitivity) + 1e-9
    assert hockey_sticks[are_neighbours].max() <= 0.02 + 1e-9
    # Answers that are no neighbours are not protected at this budget.
    assert hockey_sticks.max() > 0.1


def test_the_best_constant_for_the_squared_loss_is_the_mean_with_the_variance():
    """With weights 1 and 3 the density is 1/20 on 0..5 and 3/20 on 5..10."""
    query = RangeQuery("0..10", prior="1,3")
    assert query.best_constant("squared") == (Fraction(25, 4), Fraction(325, 48))


def test_the_best_constant_for_the_absolute_loss_is_the_median():
    output, loss = RangeQuery("0..10", prior="1,3").best_constant("absolute")
    lower_half = (np.arange(20_000) + 0.5) / 4000
    x = np.concatenate([lower_half, *[5 + lower_half] * 3])
    assert output == Fraction(20, 3)
    assert float(loss) == pytest.approx(np.abs(x - 20 / 3).mean(), rel=1e-6)


def test_cells_that_are_no_multiple_of_the_parts_of_the_prior_are_refused():
    with pytest.raises(wb.InvalidRequest, match="cells must be a multiple of 3"):
        RangeQuery("0..1", prior="1,2,1", cells=4)


def test_a_saved_channel_of_a_range_is_loaded_unchanged(tmp_path):
    design = wb.design(RangeQuery("0..4", cells=4), loss="absolute", epsilon=1, delta="0.1")
    design.save(tmp_path / "range.json")
    mechanism = wb.load(tmp_path / "range.json")
    assert mechanism == design.mechanism
    assert [float(x) for x in mechanism.inputs] == [0.5, 1.5, 2.5, 3.5]
    assert design.row()["objective"] == design.objective
    assert design.to_dict()["question"]["range"] == "0..4"


@pytest.mark.parametrize(
    ("options", "message"),
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
def test_options_that_do_not_apply_to_a_range_are_refused(options, message):
    with pytest.raises(wb.InvalidRequest, match=message):
        FAMILY.make_request_from_options(**{"epsilon": 1, **options})


@pytest.fixture(
    scope="module",
    params=[
        ("absolute", "0.5", "0"),
        ("squared", "0.5", "0"),
        ("absolute", "3", "0"),
        ("squared", "3", "0"),
        ("absolute", "3", "1e-9"),
    ],
    ids=str,
)
def worst_design(request: pytest.FixtureRequest) -> wb.Design:
    """Design the channel of -2..6 for the worst answer, for several losses and budgets."""
    loss, epsilon, delta = request.param
    query = RangeQuery("-2..6", prior="worst")
    return wb.design(query, loss=loss, epsilon=epsilon, delta=delta)


def test_channels_for_the_worst_answer_are_private_and_within_one_percent(worst_design: wb.Design):
    assert_within_one_percent(worst_design)
    assert "(within 1 %)" in worst_design.words[0]
    assert worst_design.privacy.dp_delta.upper <= float(worst_design.request.claim.delta)


def test_the_loss_of_the_worst_answer_is_the_largest_on_a_fine_grid(worst_design: wb.Design):
    positions = np.linspace(0, worst_design.question.cells, 1601)[:-1]
    cell = positions.astype(int)
    share = (positions - cell)[:, None]
    matrix = worst_design.mechanism.matrix
    laws = (1 - share) * matrix[cell] + share * matrix[cell + 1]
    x = np.linspace(-2, 6, 1601)[:-1]
    power = get_power(str(worst_design.request.aim.loss))
    errors = np.abs(worst_design.mechanism.outputs - x[:, None]) ** power
    largest_loss = (laws * errors).sum(axis=1).max()
    loss = worst_design.objective
    assert 0.995 * loss <= largest_loss <= loss * (1 + 1e-9)


def test_the_bound_for_the_worst_answer_is_below_the_loss_of_shifted_bins(worst_design: wb.Design):
    """Randomized response on 17 bins of equal width, whose ends are shifted by a random offset."""
    power = get_power(str(worst_design.request.aim.loss))
    odds = math.exp(float(worst_design.request.claim.epsilon))
    equal_ends = np.linspace(-2, 6, 17)
    width = equal_ends[1] - equal_ends[0]
    x = np.linspace(-2, 6, 2001)
    mean_losses = np.zeros(x.size)
    for offset in np.arange(20) / 20:
        ends = np.concatenate([[-2.0], equal_ends[:-1] + offset * width + 1e-9, [6.0]])
        outputs = (ends[1:] + ends[:-1]) / 2
        errors = np.abs(x[:, None] - outputs) ** power
        bin_index = np.clip(np.searchsorted(ends, x) - 1, 0, None)
        weighted_errors = errors.sum(axis=1) + (odds - 1) * errors[np.arange(x.size), bin_index]
        mean_losses += weighted_errors / (odds + outputs.size - 1) / 20
    assert worst_design.bound <= mean_losses.max()


@pytest.mark.parametrize(
    ("epsilon", "delta", "prior", "loss"),
    [("1", "0.05", "1,3", "squared"), ("1", "0.3", "worst", "squared")],
)
def test_channels_at_a_large_delta_are_within_one_percent(
    epsilon: str, delta: str, prior: str | None, loss: str
):
    query = RangeQuery("0..1", prior=prior)
    design = wb.design(query, loss=loss, epsilon=epsilon, delta=delta)
    assert_within_one_percent(design)
    assert design.privacy.dp_delta.upper <= float(delta) * (1 + 1e-12)
    pure = wb.design(query, loss=loss, epsilon=epsilon)
    assert design.objective < pure.objective


def test_a_stopped_search_reports_an_interval_wider_than_one_percent():
    """At a large ε and δ few grids are small enough to be solved."""
    with pytest.raises(wb.NotProven, match="The time limit was reached") as error:
        wb.design(RangeQuery("0..1"), loss="absolute", epsilon=8, delta="0.05", time_limit=1)
    design = error.value.design
    assert design.bound < 0.99 * design.objective
    interval = f"lies between {design.bound:.9g} and {design.objective:.9g} (not proven within 1 %)"
    assert interval in design.words[0]
    assert design.certificate is not None


def test_a_search_without_time_still_has_a_private_design():
    query = RangeQuery("10..18", prior="worst")
    with pytest.raises(wb.NotProven, match="The time limit was reached") as error:
        wb.design(query, loss="absolute", epsilon=5, delta="0.01", time_limit="0.001")
    design = error.value.design
    # Publishing 14 has a loss of at most 4.
    assert design.bound < design.objective <= 4
    assert design.privacy.dp_delta.upper <= 0.01


def test_bins_are_the_cells_of_a_range_at_large_epsilon():
    design = wb.design(RangeQuery("0..1"), loss="squared", epsilon=12)
    assert len(design.mechanism.cells) == design.question.m < 64
    assert_within_one_percent(design)


LEAST_EPSILON = {"range": "0..10", "loss": "absolute", "minimise": "epsilon", "max_loss": "2"}


def test_the_smallest_epsilon_of_a_range_is_that_of_the_recommendation():
    design = FAMILY.design_request(FAMILY.make_request_from_options(**LEAST_EPSILON))
    row = wb.recommend(**LEAST_EPSILON, only="channel on a grid", time_limit=300)[0]
    assert (design.objective, design.bound) == (row["objective"], row["bound"])
    assert "--only" in row["command"]
    assert design.details["loss"] <= 2
    assert design.privacy.pure_epsilon <= design.objective * (1 + 1e-9)
    # At an ε that is 3 % smaller no channel has the loss 2, unless the bound is below this ε.
    smaller_epsilon = design.objective * 0.97
    below = wb.design(RangeQuery("0..10"), loss="absolute", epsilon=smaller_epsilon)
    assert below.bound > 2 or design.bound < smaller_epsilon


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"epsilon": "0.5"}, wb.Infeasible, r"no epsilon up to 0\.5 is sufficient"),
        ({"max_loss": "2.5"}, wb.InvalidRequest, r"max_loss must be less than 2\.5"),
    ],
)
def test_a_largest_loss_that_is_too_small_or_trivial_is_refused(options, error, message: str):
    with pytest.raises(error, match=message):
        FAMILY.design_request(FAMILY.make_request_from_options(**{**LEAST_EPSILON, **options}))


def test_at_small_epsilon_the_loss_is_nearly_that_of_the_best_constant():
    design = wb.design(RangeQuery("0..8", prior="5,1,1,0"), loss="absolute", epsilon="0.2")
    constant_loss = float(design.question.best_constant("absolute")[1])
    assert design.objective == pytest.approx(constant_loss, rel=0.01)
    assert_within_one_percent(design)


@pytest.mark.parametrize("loss", ["absolute", "squared"])
def test_a_range_far_from_0_has_the_same_loss_and_bound(loss: str):
    near = wb.design("channel", range="0..1", epsilon=8, loss=loss)
    far = wb.design("channel", range="1000000000..1000000001", epsilon=8, loss=loss)
    assert (far.objective, far.bound) == (near.objective, near.bound)


@pytest.mark.parametrize("loss", ["absolute", "squared"])
@pytest.mark.parametrize("epsilon", ["0.5", "1", "3"])
def test_no_channel_on_cells_is_below_the_bound_of_two_cells(loss: str, epsilon: str):
    """On two cells of the width 1 the bound of the squared loss is close to the optimum."""
    query = RangeQuery("0..2", sensitivity=1, cells=2)
    design = wb.design(query, loss=loss, epsilon=epsilon)
    bound = bound_loss_on_cells(loss, float(epsilon))
    assert bound <= design.objective <= 1.2 * bound
    assert bound_loss_on_cells(loss, None) < bound
