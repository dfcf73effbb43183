"""Profiles, dominating pairs, dp_accounting and OpenDP, each against the exact audit."""

from __future__ import annotations

import math
import sys
import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.privacy.composition import compose, dominating_pair, loss_distribution
from workbench.privacy.curve import plot_profile, profile
from workbench.privacy.opendp import MEASURES, measurement, renyi

WEIGHTS = st.lists(st.integers(0, 60), min_size=5, max_size=9).filter(lambda w: sum(w) > 0)
EPSILONS = ["0", "0.1", "0.7", "1", "2.5", "6"]


def hole() -> wb.AdditiveNoise:
    return wb.AdditiveNoise(wb.ModuloNoise(n=8, max_shift=2), [400, 120, 50, 0, 3, 7, 0, 60, 130])


def plain() -> wb.AdditiveNoise:
    return wb.AdditiveNoise(wb.ModuloNoise(n=8, max_shift=2), [400, 120, 50, 20, 3, 7, 22, 60, 130])


# Profiles.


@settings(max_examples=40, deadline=None)
@given(WEIGHTS, st.booleans())
def test_the_profile_is_the_audit_at_every_epsilon(weights, directed):
    noise = wb.AdditiveNoise(wb.ModuloNoise(n=len(weights) - 1, max_shift=2, directed=directed), weights)
    dp, pdp = profile(noise, "dp"), profile(noise, "pdp")
    for epsilon in EPSILONS:
        audit = wb.audit(noise, epsilon)
        assert dp.at(epsilon).compare(audit.dp_delta) == 0
        assert pdp.at(epsilon).a == audit.pdp_delta
        for curve in (dp, pdp):
            assert curve.heights(np.array([float(epsilon)]))[0] == pytest.approx(curve.delta(epsilon), abs=1e-12)
    assert dp.pure_epsilon == pdp.pure_epsilon == wb.audit(noise, 0).pure_epsilon


def test_the_profile_changes_where_it_says():
    noise = plain()
    pdp = profile(noise, "pdp")
    for end in pdp.ends[1:]:
        before, after = (pdp.delta(Fraction(float(end)) + step) for step in (Fraction(-1, 10**9), Fraction(1, 10**9)))
        assert after <= before
    heights = [pdp.delta(float(e)) for e in np.linspace(0, pdp.pure_epsilon, 50)]
    assert heights == sorted(heights, reverse=True)
    assert pdp.delta(pdp.pure_epsilon) == 0
    with pytest.raises(wb.InvalidRequest):
        profile(noise, "rdp")


def test_a_profile_of_many_pieces_is_drawn_in_seconds(tmp_path):
    weights = np.random.default_rng(3).integers(1, 10**6, 600).tolist()
    noise = wb.AdditiveNoise(wb.ModuloNoise(n=599, max_shift=20), weights)
    start = time.perf_counter()
    plot_profile(noise, tmp_path / "p.png")
    assert time.perf_counter() - start < 20  # point by point in exact arithmetic: minutes
    assert len(profile(noise).ends) > 4000


def test_the_profile_of_a_quantizer_and_a_plot(tmp_path):
    law = wb.PiecewiseAffine.of([-1, 1], [-3, 3], [[Fraction(2, 3), Fraction(1, 3)], [Fraction(1, 3), Fraction(2, 3)]])
    curve = profile(law)
    assert curve.delta(0) == pytest.approx(1 / 3)
    assert curve.delta("0.6932") == 0
    with pytest.raises(wb.InvalidRequest, match="real inputs"):
        profile(law, "pdp")
    plot_profile(law, tmp_path / "p.svg", ["0.5"])
    plot_profile(hole(), tmp_path / "q.png")
    assert (tmp_path / "q.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(wb.InvalidRequest, match="named"):
        plot_profile(law, tmp_path / "p.bmp")


# Dominating pairs.


@settings(max_examples=40, deadline=None)
@given(WEIGHTS, st.booleans(), st.fractions(min_value=0, max_value=20))
def test_the_pair_attains_the_worst_hockey_stick_exactly(weights, directed, e):
    noise = wb.AdditiveNoise(wb.ModuloNoise(n=len(weights) - 1, max_shift=2, directed=directed), weights)
    pair = dominating_pair(noise)
    assert sum(pair.p) == sum(pair.q) == 1
    assert min(*pair.p, *pair.q) >= 0
    f = noise.exact_pmf
    worst = max(
        sum(max(Fraction(0), f[k] - e * f[(k + shift) % len(f)]) for k in range(len(f)))
        for (shift,) in noise.question.differences
    )
    assert pair.hockey_stick(e) == worst


# dp_accounting.


@pytest.mark.parametrize("make", [hole, plain])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_one_run_brackets_the_exact_delta(make, epsilon):
    pytest.importorskip("dp_accounting")
    exact = wb.audit(make(), epsilon).dp_delta
    found = compose(make(), 1, epsilon=epsilon)
    assert found.delta_low <= exact.upper
    assert exact.lower <= found.delta
    assert found.delta - found.delta_low < 2e-4


def test_the_case_where_the_default_flag_says_zero():
    # P puts 1/4 where Q has nothing, Q nothing where P has nothing: swapped and "symmetric", δ(0) would come out as 0
    pytest.importorskip("dp_accounting")
    rows = wb.Channel.of([[1, 3], [0, 4]], [(0, 1)], directed=True)
    assert compose(rows, 1, epsilon=3).delta >= 0.25
    back = wb.Channel.of([[1, 3], [0, 4]], [(1, 0)], directed=True)
    assert compose(back, 1, epsilon=0).delta >= float(wb.audit(back, 0).dp_delta.lower) > 0.24


def test_two_runs_bracket_the_exact_product():
    pytest.importorskip("dp_accounting")
    rows = [[Fraction(3, 5), Fraction(2, 5)], [Fraction(2, 5), Fraction(3, 5)]]
    twice = [[a * b for a in row for b in row] for row in rows]
    for epsilon in ("0", "0.3", "0.6"):
        exact = wb.audit_channel(twice, [(0, 1)], epsilon).dp_delta
        found = compose(wb.Channel.of(rows, [(0, 1)]), 2, epsilon=epsilon)
        assert found.delta_low <= exact.upper
        assert exact.lower <= found.delta < exact.upper + 1e-3


def test_composition_beats_adding_up_and_says_what_is_infinite():
    pytest.importorskip("dp_accounting")
    found = compose(plain(), 50, delta="1e-6")
    assert found.epsilon_low <= found.epsilon < 50 * wb.audit(plain(), 0).pure_epsilon
    assert compose(hole(), 50, delta="1e-6").epsilon == math.inf
    for bad in ({"times": 0, "delta": 0}, {"times": 1}, {"times": 1, "delta": 0, "epsilon": 1},
                {"times": 1, "delta": 0, "interval": 0}):  # fmt: skip
        with pytest.raises(wb.InvalidRequest):
            compose(plain(), **bad)


@pytest.mark.parametrize(("times", "interval"), [(10**6, 1e-4), (10, 1e-7)])
def test_a_grid_beyond_memory_is_refused_with_one_that_is_not(times, interval):
    pytest.importorskip("dp_accounting")
    with pytest.raises(wb.InvalidRequest, match=f"interval must be at least .* for {times} runs"):
        compose(plain(), times, delta="1e-6", interval=interval)
    assert compose(plain(), 1, epsilon=1, interval=1e-6).delta > 0


def test_without_the_extra_one_sentence_says_so(monkeypatch):
    for name in ("dp_accounting", "opendp"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(wb.WorkbenchError, match="accounting"):
        loss_distribution(dominating_pair(plain()))
    with pytest.raises(wb.WorkbenchError, match=r"dp-workbench\[opendp\]"):
        measurement(plain())


# OpenDP.


@pytest.fixture
def dp():
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib", "honest-but-curious")
    return dp


def count(dp):
    return dp.t.make_count(dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance())


def test_it_chains_after_a_count_and_the_maps_are_the_audit(dp):
    noise = plain()
    for distance in (1, 2, 5, 100):
        question = wb.ModuloNoise(n=8, max_shift=min(distance, 8))
        exact = wb.audit(wb.AdditiveNoise(question, noise.masses), 1)
        chained = {m: count(dp) >> measurement(noise, m, epsilon=1 if m == "approximate" else None) for m in MEASURES}
        assert chained["max_divergence"].map(distance) == exact.pure_epsilon
        assert chained["approximate"].map(distance) == (1.0, exact.dp_delta.upper)
        rho = chained["zero_concentrated_divergence"].map(distance)
        assert rho >= exact.pure_epsilon**2 / 2
        curve = chained["renyi_divergence"].map(distance)
        assert 0 < curve(1.5) < curve(4.0) < exact.pure_epsilon
        assert curve(2.0) <= 2 * rho
        for one in chained.values():
            assert 0 <= one([1, 2, 3]) <= 8


def test_it_composes(dp):
    chained = count(dp) >> measurement(plain())
    both = dp.c.make_composition([chained, chained])
    assert both.map(1) >= 2 * chained.map(1)
    assert len(both([1, 2])) == 2


def test_inputs_are_clamped_and_noise_is_the_mechanisms(dp):
    point = wb.AdditiveNoise(wb.ModuloNoise(n=4, max_shift=1), [0, 1, 0, 0, 0])  # always adds 1 modulo 5
    release = measurement(point)
    assert [release(k) for k in (-7, 0, 3, 4, 99)] == [1, 1, 4, 0, 0]
    assert release.map(1) == math.inf
    assert release.map(0) == 0.0


def test_a_certified_design_can_be_exported(dp):
    d = wb.design(wb.ModuloNoise(n=8, max_shift=2), epsilon=1)
    assert measurement(d).map(2) <= 1.0
    assert measurement(d.certificate).map(1) <= 1.0


def test_bad_exports():
    vector = wb.AdditiveNoise(wb.ModuloNoise(sizes=(2, 2), shifts=[(0, 1)]), [1, 1, 1, 1])
    for bad in ((vector,), ("x",), (plain(), "rdp"), (plain(), "approximate")):
        with pytest.raises(wb.InvalidRequest):
            measurement(*bad)
    with pytest.raises(wb.InvalidRequest, match="epsilon"):
        measurement(plain(), epsilon=1)


def test_renyi_is_an_upper_bound_of_the_definition():
    f = plain().masses.floats
    for alpha in (1.5, 2.0, 10.0):
        worst = max(
            math.log(math.fsum(f**alpha * f[plain().question.index(shift)] ** (1 - alpha))) / (alpha - 1)
            for shift in plain().question.differences
        )
        assert worst * (1 - 1e-12) <= renyi(plain(), alpha) <= worst * (1 + 1e-12)
    assert renyi(hole(), 2.0) == math.inf
    with pytest.raises(wb.InvalidRequest, match="alpha"):
        renyi(plain(), 1.0)
