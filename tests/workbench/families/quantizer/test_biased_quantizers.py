"""Test the trade-off of bias and error of biased quantizers (Cai et al. 2024, Sec. 5)."""

from __future__ import annotations

import itertools
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

import workbench as wb
from workbench.errors import NotProven
from workbench.families.quantizer.biased import BiasedPoint, trace_biased_quantizers
from workbench.families.quantizer.family import FAMILY
from workbench.families.quantizer.frontier import _draw_quantizer_frontier, _list_biased_rows
from workbench.families.quantizer.laws import LawQuestion
from workbench.solvers.search import Deadline


def compute_mean_and_error(point: BiasedPoint, x: float) -> tuple[float, float]:
    """Compute the mean output and the mean absolute error at x, from the definition.

    A biased quantizer selects a bin on each side of x, and publishes one of both with probabilities
    that fall exponentially with the distance, at the rate β.
    """
    quantizer = point.quantizer
    bins = [float(b) for b in quantizer.bins]
    left_count = sum(output <= x for output in bins)
    m = len(bins)
    beta = float(quantizer.beta)
    mean = 0.0
    error = 0.0
    for left in range(left_count):
        for right in range(left_count, m):
            pair_mass = float(quantizer.selection[left_count - 1][left])
            pair_mass *= float(quantizer.selection[m - left_count - 1][m - 1 - right])
            distances = np.array([x - bins[left], bins[right] - x])
            weights = np.exp(-beta * distances)
            masses = pair_mass * weights / weights.sum()
            mean += masses @ [bins[left], bins[right]]
            error += masses @ distances
    return mean, error


@pytest.mark.parametrize("levels", [2, 3])
def test_points_have_the_bias_and_error_of_the_definition(levels: int) -> None:
    points = trace_biased_quantizers(levels, LawQuestion(Fraction(1)))
    inputs = np.linspace(-1, 1, 401)[:-1]
    for point in points[:: max(1, len(points) // 3)]:
        means, errors = np.array([compute_mean_and_error(point, x) for x in inputs]).T
        bias_on_grid = np.abs(means - inputs).max()
        assert bias_on_grid - 1e-9 <= point.bias <= bias_on_grid + 0.02
        # The average over 400 inputs is the integral, up to the jumps of the law.
        assert point.error == pytest.approx(errors.mean(), abs=5e-3)


def test_no_point_beats_another_in_bias_and_error() -> None:
    points = trace_biased_quantizers(2, LawQuestion(Fraction(2)))
    assert len(points) > 2
    for point, next_point in pairwise(points):
        assert point.bias < next_point.bias
        assert point.error > next_point.error


def test_every_point_is_private_and_two_outputs_use_the_budget() -> None:
    """With outputs ±B, p(x, B) is logistic in 2βx, so ε = ln((1 + e^2β)/(1 + e^-2β)) = 2β."""
    points = trace_biased_quantizers(2, LawQuestion(Fraction(1)))
    for point in points:
        assert point.quantizer.epsilon <= 1
        assert point.quantizer.epsilon == pytest.approx(2 * float(point.quantizer.beta))
    # β is a multiple of 8/400.
    assert max(point.quantizer.epsilon for point in points) > 1 - 2 * 8 / 400


def test_a_search_for_biased_quantizers_keeps_its_points_at_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The grid of two outputs has eight outermost outputs B. The first two are not asked again."""
    all_rows = _list_biased_rows({"epsilon": 2}, make_request())
    counter = itertools.count()
    monkeypatch.setattr(Deadline, "has_passed", property(lambda self: next(counter) >= 2))
    rows = _list_biased_rows({"epsilon": 2}, make_request())
    assert 0 < len(rows) < len(all_rows)
    assert {row["status"] for row in rows} == {"time_limit"}
    assert {row["status"] for row in all_rows} == {"searched"}


def test_a_search_for_biased_quantizers_without_time_is_a_failed_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Deadline, "has_passed", True)
    question = make_request().law_question
    with pytest.raises(NotProven, match="before a private biased quantizer was found"):
        trace_biased_quantizers(2, question)
    (row,) = _list_biased_rows({"epsilon": 2}, make_request())
    assert row["status"] == "not_proven"
    assert row["mechanism"] == "biased"


def make_request() -> Any:
    """Make the request of two outputs at ε = 2."""
    return FAMILY.make_request(wb.Quantization(levels=2), epsilon=2)


def test_a_frontier_has_the_biased_points_and_their_columns() -> None:
    result = wb.frontier("quantizer", levels="2", epsilon="1", method="biased", baselines=False)
    table = result.to_frame()
    rows = table[table["curve"] == "biased"]
    points = trace_biased_quantizers(2, LawQuestion(Fraction(1)))
    assert rows["bias"].tolist() == pytest.approx([point.bias for point in points])
    assert rows["objective"].tolist() == pytest.approx([point.error for point in points])
    assert (rows["pure_epsilon"] <= 1).all()


def test_the_plot_of_bias_shows_the_unbiased_quantizer_at_bias_0() -> None:
    point: dict[str, Any] = {"curve": "point", "mechanism": "exact", "levels": 4.0, "epsilon": 1}
    point |= {"status": "optimal"}
    rows = [
        {**point, "curve": "biased", "mechanism": "biased", "bias": 0.1, "objective": 2.0},
        {**point, "curve": "biased", "mechanism": "biased", "bias": 0.2, "objective": 1.8},
        {**point, "bound": 1.6, "objective": 1.7},
    ]
    plots = _draw_quantizer_frontier(pd.DataFrame(rows), "x in [-1, 1]", "absolute")
    figure = plots["error_bias"]()
    assert figure is not None
    points = set()
    for line in figure.axes[0].lines:
        points |= {(x, y) for x, y in np.asarray(line.get_xydata()).tolist()}
    assert points == {(0.1, 2.0), (0.2, 1.8), (0.0, 1.7)}
