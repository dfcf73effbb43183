"""Test measurements for OpenDP: their privacy maps equal the exact audit, and their noise is exact."""

from __future__ import annotations

import math
import sys

import pytest

import workbench as wb
from workbench.privacy.opendp import MEASURES, bound_renyi_divergence, measurement


def hole() -> wb.AdditiveNoise:
    """Return noise modulo 9 with two zero masses, so that its pure ε is infinite."""
    return wb.AdditiveNoise(wb.ModuloNoise(n=8, max_shift=2), [400, 120, 50, 0, 3, 7, 0, 60, 130])


def plain() -> wb.AdditiveNoise:
    """Return noise modulo 9 without zero masses."""
    return wb.AdditiveNoise(wb.ModuloNoise(n=8, max_shift=2), [400, 120, 50, 20, 3, 7, 22, 60, 130])


def test_an_error_names_the_missing_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "opendp", None)
    with pytest.raises(wb.WorkbenchError, match=r"pip install '\.\[opendp\]'"):
        measurement(plain())


@pytest.fixture
def dp():
    """Return OpenDP's interface, or skip the test if OpenDP is not installed."""
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib", "honest-but-curious")
    return dp


def make_count(dp):
    """Return OpenDP's transformation that counts the rows of a data set."""
    return dp.t.make_count(dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance())


def test_a_measurement_chains_after_a_count_and_its_map_is_the_audit(dp):
    noise = plain()
    for distance in (1, 2, 5, 100):
        question = wb.ModuloNoise(n=8, max_shift=min(distance, 8))
        exact = wb.audit(wb.AdditiveNoise(question, noise.masses), 1)
        chained = {}
        for measure in MEASURES:
            epsilon = 1 if measure == "approximate" else None
            chained[measure] = make_count(dp) >> measurement(noise, measure, epsilon=epsilon)
        assert chained["max_divergence"].map(distance) == exact.pure_epsilon
        assert chained["approximate"].map(distance) == (1.0, exact.dp_delta.upper)
        rho = chained["zero_concentrated_divergence"].map(distance)
        assert rho >= exact.pure_epsilon**2 / 2
        curve = chained["renyi_divergence"].map(distance)
        assert 0 < curve(1.5) < curve(4.0) < exact.pure_epsilon
        assert curve(2.0) <= 2 * rho
        for counter in chained.values():
            assert 0 <= counter([1, 2, 3]) <= 8


def test_measurements_are_composed_by_opendp(dp):
    chained = make_count(dp) >> measurement(plain())
    two_runs = dp.c.make_composition([chained, chained])
    assert two_runs.map(1) >= 2 * chained.map(1)
    assert len(two_runs([1, 2])) == 2


def test_a_measurement_clamps_its_inputs_and_adds_the_noise_of_the_mechanism(dp):
    question = wb.ModuloNoise(n=4, max_shift=1)
    adds_1_modulo_5 = wb.AdditiveNoise(question, [0, 1, 0, 0, 0])
    release = measurement(adds_1_modulo_5)
    assert [release(k) for k in (-7, 0, 3, 4, 99)] == [1, 1, 4, 0, 0]
    assert release.map(1) == math.inf
    assert release.map(0) == 0.0


def test_a_design_and_its_certificate_can_be_exported(dp):
    design = wb.design(wb.ModuloNoise(n=8, max_shift=2), epsilon=1)
    assert measurement(design).map(2) <= 1.0
    assert measurement(design.certificate).map(1) <= 1.0


def test_unsupported_exports_are_refused():
    """The approximate measure needs an epsilon, and the default measure takes none."""
    for arguments in (("x",), (plain(), "rdp"), (plain(), "approximate")):
        with pytest.raises(wb.InvalidRequest):
            measurement(*arguments)
    with pytest.raises(wb.InvalidRequest, match="epsilon"):
        measurement(plain(), epsilon=1)


def test_the_bound_on_the_renyi_divergence_is_that_of_the_definition_up_to_rounding():
    f = plain().masses.floats
    for alpha in (1.5, 2.0, 10.0):
        worst = max(
            math.log(
                math.fsum(f**alpha * f[plain().question.shifted_positions(shift)] ** (1 - alpha))
            )
            / (alpha - 1)
            for shift in plain().question.differences
        )
        assert worst * (1 - 1e-12) <= bound_renyi_divergence(plain(), alpha) <= worst * (1 + 1e-12)


def test_the_renyi_divergence_of_noise_with_zero_masses_is_infinite():
    assert bound_renyi_divergence(hole(), 2.0) == math.inf


def test_the_renyi_divergence_needs_an_order_above_1():
    with pytest.raises(wb.InvalidRequest, match="alpha"):
        bound_renyi_divergence(plain(), 1.0)
