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


def test_limits_at_bins_count_not_only_the_ends():
    made = rqm(equal_bins(5, "1.8"), "0.4")
    found = audit_extremes(made, 0)
    assert found.pure_epsilon == pytest.approx(2.238047, abs=1e-6)
    assert np.abs(np.log(made.matrix[0] / made.matrix[-1])).max() == pytest.approx(2.2316, abs=1e-4)


@pytest.mark.parametrize(
    "make", [lambda: rqm("-2,-0.7,0.1,0.9,2.2", "0.35"), lambda: erm("-3,-0.5,0.5,3", 2)]
)
def test_a_dense_grid_comes_close_and_never_above(make):
    made = make()
    cuts = np.array([float(k) for k in made.knots])
    x = np.unique(np.concatenate([np.linspace(-1, 1, 4001), cuts, np.maximum(cuts - 1e-9, -1)]))
    law = made.probabilities(x)
    seen = np.log(law.max(axis=0) / law.min(axis=0)).max()
    found = audit_extremes(made, 0).pure_epsilon
    assert seen <= found + 1e-12
    assert seen == pytest.approx(found, abs=1e-6)


def test_the_decision_is_exact_at_the_last_digit():
    ratio = Fraction(3)
    made = Quantizer.from_ends(
        "x",
        [-2, 2],
        [-1, 1],
        [[[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]]],
    )
    found = audit_extremes(made, 0)
    assert found.pure_ratio == ratio
    assert made.bias == 0
    assert not found.meets(
        "pure", "1.098612288668109691"
    )  # just below ln 3 = 1.0986122886681096914
    assert found.meets("pure", "1.098612288668109692")
    assert found.pure_epsilon >= math.log(3)


def test_zeros_and_constant_laws():
    reachable = two_bin(bins=[-1, 1], selection=[[1]])
    assert audit_extremes(reachable, 0).pure_epsilon == math.inf
    assert not audit_extremes(reachable, 0).meets("pure", epsilon=1000)
    unused = Quantizer.from_ends("x", [-2, 0, 2], [-1, 1], [[[0.75, 0.0, 0.25], [0.25, 0.0, 0.75]]])
    assert (
        audit_extremes(unused, 0).pure_ratio == 3
    )  # an output that is nowhere drawn reveals nothing


def test_metric_privacy_of_a_continuous_law():
    made = Quantizer.from_ends(
        "x", [-2, 2], [-1, 0, 1], [[[0.75, 0.25], [0.5, 0.5]], [[0.5, 0.5], [0.25, 0.75]]]
    )
    found = audit_extremes(made, 0)
    assert (
        found.worst_result("metric").measurement.value == 1
    )  # |slope| / p = 0.25 / 0.25 at the ends
    x = np.linspace(-1, 1, 401)
    p = np.log(made.probabilities(x))
    gap = np.abs(x[:, None] - x[None, :])
    loss = np.abs(p[:, None] - p[None, :]).max(axis=2)
    assert (loss <= found.metric_epsilon * gap + 1e-12).all()
    assert (loss > 0.99 * found.metric_epsilon * gap)[gap > 0].any()
    squared, _ = audit_quantizer(made, Fraction(2, 3), "squared")
    least = find_least_epsilon(squared, "squared", Fraction(2, 3))
    assert least == pytest.approx(math.log(2), abs=1e-12)  # 0.25 -> 0.5 on a link of length 1
    assert is_private(made, Fraction("0.6931471805599454"), "squared")
    assert not is_private(made, Fraction("0.6931471805599453"), "squared")


def test_a_jump_has_no_metric_privacy():
    assert audit_extremes(erm("-2,-0.5,0.5,2", 1), 0).metric_epsilon == math.inf
    # RQM's law does not jump.
    assert audit_extremes(rqm("-2,-0.5,0.5,2", "0.3"), 0).metric_epsilon < 2
    with pytest.raises(InvalidRequest, match="must not jump"):
        is_private(erm("-2,-0.5,0.5,2", 1), Fraction(1), "squared")


def test_bias_is_exact():
    made = Quantizer.from_ends(
        "x",
        [-2, 2],
        [-1, 1],
        [[[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 3), Fraction(2, 3)]]],
    )
    assert made.bias == Fraction(1, 3)


def test_a_metric_certificate_lists_no_comparisons(monkeypatch: pytest.MonkeyPatch):
    knots = [Fraction(k, 10) for k in range(-10, 11)]
    laws = [[3 - x, 3 + x] for x in knots]
    law = PiecewiseAffine.from_laws(
        knots, [-3, 3], [end for a, b in pairwise(laws) for end in (a, b)]
    )
    steepest = max(  # |p_b - p_a| / ((b - a) min(p_a, p_b)), from the definition
        abs(Fraction(b[i], 6) - Fraction(a[i], 6))
        / ((y - x) * min(Fraction(a[i], 6), Fraction(b[i], 6)))
        for (x, y), (a, b) in zip(pairwise(knots), pairwise(laws), strict=True)
        for i in (0, 1)
    )
    assert (
        steepest
        == audit_extremes(law, 0).worst_result("metric").measurement.value
        == Fraction(1, 2)
    )
    listed = wb.Certificate(law, "metric", steepest).privacy
    assert listed.is_complete
    monkeypatch.setattr(
        PiecewiseAffine, "comparisons", lambda self: pytest.fail("comparisons were listed")
    )
    certificate = wb.Certificate(law, "metric", steepest)
    assert certificate.holds()
    assert "metric" in " ".join(certificate.sentences)
    with pytest.raises(wb.NotCertified, match="exact metric epsilon is"):
        wb.Certificate(law, "metric", steepest - Fraction(1, 10**9))
