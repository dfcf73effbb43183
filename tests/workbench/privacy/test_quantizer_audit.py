"""Compare the exact audit of quantizers with dense grids of inputs and with known laws."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import workbench as wb
from workbench.errors import InvalidRequest
from workbench.families.quantizer.certify import audit_quantizer, find_least_epsilon, is_private
from workbench.mechanisms.baselines.two_bin import equal_bins, erm, rqm, two_bin
from workbench.mechanisms.piecewise_affine import PiecewiseAffine, Quantizer
from workbench.privacy.audit import audit_extremes


def test_the_largest_ratio_may_be_at_a_bin_and_not_at_the_ends():
    quantizer = rqm(equal_bins(5, "1.8"), "0.4")
    end_epsilon = np.abs(np.log(quantizer.matrix[0] / quantizer.matrix[-1])).max()
    # Values of the current program, pinned.
    assert end_epsilon == pytest.approx(2.2316, abs=1e-4)
    assert audit_extremes(quantizer, 0).pure_epsilon == pytest.approx(2.238047, abs=1e-6)


@pytest.mark.parametrize(
    "make_quantizer", [lambda: rqm("-2,-0.7,0.1,0.9,2.2", "0.35"), lambda: erm("-3,-0.5,0.5,3", 2)]
)
def test_the_pure_epsilon_is_the_supremum_over_a_dense_grid_of_inputs(make_quantizer):
    quantizer = make_quantizer()
    knots = np.array([float(knot) for knot in quantizer.knots])
    before_knots = np.maximum(knots - 1e-9, -1)  # The law may jump at a knot.
    x = np.unique(np.concatenate([np.linspace(-1, 1, 4001), knots, before_knots]))
    laws = quantizer.probabilities(x)
    grid_epsilon = np.log(laws.max(axis=0) / laws.min(axis=0)).max()
    exact_epsilon = audit_extremes(quantizer, 0).pure_epsilon
    assert grid_epsilon <= exact_epsilon + 1e-12
    assert grid_epsilon == pytest.approx(exact_epsilon, abs=1e-6)


def test_the_decision_is_exact_at_the_last_digit():
    """The largest ratio is 3, and ln 3 = 1.0986122886681096914..."""
    quantizer = Quantizer.from_ends(
        "x",
        [-2, 2],
        [-1, 1],
        [[[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]]],
    )
    privacy = audit_extremes(quantizer, 0)
    assert privacy.pure_ratio == 3
    assert quantizer.bias == 0
    assert not privacy.meets("pure", "1.098612288668109691")
    assert privacy.meets("pure", "1.098612288668109692")
    assert privacy.pure_epsilon >= math.log(3)


def test_an_output_that_some_inputs_exclude_has_an_infinite_epsilon():
    quantizer = two_bin(bins=[-1, 1], selection=[[1]])
    assert audit_extremes(quantizer, 0).pure_epsilon == math.inf
    assert not audit_extremes(quantizer, 0).meets("pure", epsilon=1000)


def test_an_output_without_mass_at_any_input_reveals_nothing():
    ends = [[[0.75, 0.0, 0.25], [0.25, 0.0, 0.75]]]
    quantizer = Quantizer.from_ends("x", [-2, 0, 2], [-1, 1], ends)
    assert audit_extremes(quantizer, 0).pure_ratio == 3


# The law at -1, 0 and 1 is (3/4, 1/4), (1/2, 1/2) and (1/4, 3/4). It is linear between them.
CONTINUOUS_QUANTIZER = Quantizer.from_ends(
    "x", [-2, 2], [-1, 0, 1], [[[0.75, 0.25], [0.5, 0.5]], [[0.5, 0.5], [0.25, 0.75]]]
)


def test_the_metric_epsilon_is_the_largest_slope_of_the_log_probability():
    privacy = audit_extremes(CONTINUOUS_QUANTIZER, 0)
    # At the ends, |slope| / p is 0.25 / 0.25.
    assert privacy.worst_result("metric").measurement.value == 1
    x = np.linspace(-1, 1, 401)
    logs = np.log(CONTINUOUS_QUANTIZER.probabilities(x))
    distances = np.abs(x[:, None] - x[None, :])
    privacy_losses = np.abs(logs[:, None] - logs[None, :]).max(axis=2)
    assert (privacy_losses <= privacy.metric_epsilon * distances + 1e-12).all()
    is_close = privacy_losses > 0.99 * privacy.metric_epsilon * distances
    assert is_close[distances > 0].any()


def test_the_epsilon_per_squared_distance_is_that_of_two_neighbouring_knots():
    """From the knot -1 to the knot 0 at distance 1, a probability rises from 1/4 to 1/2."""
    budget = Fraction(2, 3)
    privacy, _ = audit_quantizer(CONTINUOUS_QUANTIZER, budget, "squared")
    least_epsilon = find_least_epsilon(privacy, "squared", budget)
    assert least_epsilon == pytest.approx(math.log(2), abs=1e-12)
    # The budgets are next to ln 2 in the 16th decimal.
    assert is_private(CONTINUOUS_QUANTIZER, Fraction("0.6931471805599454"), "squared")
    assert not is_private(CONTINUOUS_QUANTIZER, Fraction("0.6931471805599453"), "squared")


def test_only_a_law_without_jumps_has_a_finite_metric_epsilon():
    """The law of ERM jumps at bins, and that of RQM does not."""
    assert audit_extremes(erm("-2,-0.5,0.5,2", 1), 0).metric_epsilon == math.inf
    assert audit_extremes(rqm("-2,-0.5,0.5,2", "0.3"), 0).metric_epsilon < 2


def test_a_budget_per_squared_distance_refuses_a_law_with_jumps():
    with pytest.raises(InvalidRequest, match="must not jump"):
        is_private(erm("-2,-0.5,0.5,2", 1), Fraction(1), "squared")


def test_the_bias_is_the_exact_largest_one():
    """At -1 the mean is -2 3/4 + 2 1/4 = -1. At 1 it is 2/3, so the bias is 1/3."""
    quantizer = Quantizer.from_ends(
        "x",
        [-2, 2],
        [-1, 1],
        [[[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 3), Fraction(2, 3)]]],
    )
    assert quantizer.bias == Fraction(1, 3)


def test_a_metric_certificate_lists_no_comparisons(monkeypatch: pytest.MonkeyPatch):
    knots = [Fraction(k, 10) for k in range(-10, 11)]
    laws = [[3 - x, 3 + x] for x in knots]
    law = PiecewiseAffine.from_laws(
        knots, [-3, 3], [end for a, b in pairwise(laws) for end in (a, b)]
    )
    # Of the probability (3 + x)/6, the slope is 1/6 and the least value 2/6.
    metric_epsilon = Fraction(1, 2)
    assert audit_extremes(law, 0).worst_result("metric").measurement.value == metric_epsilon
    assert wb.Certificate(law, "metric", metric_epsilon).privacy.is_complete
    monkeypatch.setattr(
        PiecewiseAffine, "comparisons", lambda self: pytest.fail("comparisons were listed")
    )
    certificate = wb.Certificate(law, "metric", metric_epsilon)
    assert certificate.holds()
    assert "metric" in " ".join(certificate.sentences)
    with pytest.raises(wb.NotCertified, match="exact metric epsilon is"):
        wb.Certificate(law, "metric", metric_epsilon - Fraction(1, 10**9))
