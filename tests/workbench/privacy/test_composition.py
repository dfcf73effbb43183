"""Compare profiles, dominating pairs, compositions and OpenDP measurements with the exact audit."""

from __future__ import annotations

import math
import sys
import time
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.privacy import composition
from workbench.privacy.composition import CompositionSeries, compose
from workbench.privacy.curve import draw_profiles, profile
from workbench.privacy.dominating_pair import compute_dominating_pair
from workbench.privacy.opendp import MEASURES, bound_renyi_divergence, measurement

WEIGHTS = st.lists(st.integers(0, 60), min_size=5, max_size=9).filter(lambda w: sum(w) > 0)
EPSILONS = ["0", "0.1", "0.7", "1", "2.5", "6"]


def hole() -> wb.AdditiveNoise:
    """Return noise modulo 9 with two zero masses, so that its pure ε is infinite."""
    return wb.AdditiveNoise(wb.ModuloNoise(n=8, max_shift=2), [400, 120, 50, 0, 3, 7, 0, 60, 130])


def plain() -> wb.AdditiveNoise:
    """Return noise modulo 9 without zero masses."""
    return wb.AdditiveNoise(wb.ModuloNoise(n=8, max_shift=2), [400, 120, 50, 20, 3, 7, 22, 60, 130])


def one_pair() -> wb.AdditiveNoise:
    """Return noise with a single comparison, which is its own dominating pair."""
    return wb.AdditiveNoise(wb.ModuloNoise(n=8, shifts=[2], directed=True), plain().masses)


# Profiles.


@settings(max_examples=40, deadline=None)
@given(WEIGHTS, st.booleans())
def test_the_profile_is_the_audit_at_every_epsilon(weights, directed):
    noise = wb.AdditiveNoise(
        wb.ModuloNoise(n=len(weights) - 1, max_shift=2, directed=directed), weights
    )
    dp, pdp = profile(noise, "dp"), profile(noise, "pdp")
    for epsilon in EPSILONS:
        audit = wb.audit(noise, epsilon)
        assert dp.exact_delta(epsilon).compare(audit.dp_delta) == 0
        assert pdp.exact_delta(epsilon).a == audit.pdp_delta
        for curve in (dp, pdp):
            assert curve.float_deltas(np.array([float(epsilon)]))[0] == pytest.approx(
                curve.delta(epsilon), abs=1e-12
            )
    assert dp.pure_epsilon == pdp.pure_epsilon == wb.audit(noise, 0).pure_epsilon


def test_the_pdp_profile_falls_at_its_breakpoints():
    noise = plain()
    pdp = profile(noise, "pdp")
    for end in pdp.breakpoints[1:]:
        before, after = (
            pdp.delta(Fraction(float(end)) + step)
            for step in (Fraction(-1, 10**9), Fraction(1, 10**9))
        )
        assert after <= before
    heights = [pdp.delta(float(e)) for e in np.linspace(0, pdp.pure_epsilon, 50)]
    assert heights == sorted(heights, reverse=True)
    assert pdp.delta(pdp.pure_epsilon) == 0
    with pytest.raises(wb.InvalidRequest):
        profile(noise, "rdp")


def test_a_profile_of_many_pieces_is_drawn_in_seconds():
    weights = np.random.default_rng(3).integers(1, 10**6, 600).tolist()
    noise = wb.AdditiveNoise(wb.ModuloNoise(n=599, max_shift=20), weights)
    start = time.process_time()
    draw_profiles(noise)
    assert time.process_time() - start < 60  # It takes minutes point by point in exact arithmetic.
    assert len(profile(noise).breakpoints) > 4000


def test_the_profile_of_a_quantizer_and_a_plot(tmp_path):
    law = wb.PiecewiseAffine.from_laws(
        [-1, 1], [-3, 3], [[Fraction(2, 3), Fraction(1, 3)], [Fraction(1, 3), Fraction(2, 3)]]
    )
    curve = profile(law)
    assert curve.delta(0) == pytest.approx(1 / 3)
    assert curve.delta("0.6932") == 0
    with pytest.raises(wb.InvalidRequest, match="if the inputs are real numbers"):
        profile(law, "pdp")
    wb.audit(law, "0.5").plot(tmp_path / "p.svg")
    wb.audit(hole()).plot(tmp_path / "q.png", width="column")
    assert (tmp_path / "q.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(wb.InvalidRequest, match="named"):
        wb.audit(law).plot(tmp_path / "p.bmp")


# Dominating pairs.


@settings(max_examples=40, deadline=None)
@given(WEIGHTS, st.booleans(), st.fractions(min_value=0, max_value=20))
def test_the_pair_attains_the_worst_hockey_stick_exactly(weights, directed, e):
    noise = wb.AdditiveNoise(
        wb.ModuloNoise(n=len(weights) - 1, max_shift=2, directed=directed), weights
    )
    pair = compute_dominating_pair(noise)
    assert sum(pair.p) == sum(pair.q) == 1
    assert min(*pair.p, *pair.q) >= 0
    f = noise.exact_pmf
    worst = max(
        sum(max(Fraction(0), f[k] - e * f[(k + shift) % len(f)]) for k in range(len(f)))
        for (shift,) in noise.question.differences
    )
    assert sum(max(Fraction(0), a - e * b) for a, b in zip(pair.p, pair.q, strict=True)) == worst


def test_the_pair_is_exact_beyond_floats():
    tiny = Fraction(1, 10**400)
    rows = wb.Channel.from_rows(
        [[Fraction(1, 10), Fraction(1, 2), Fraction(2, 5)], [0, tiny, 1 - tiny]]
    )
    pair = compute_dominating_pair(wb.Channel([rows.rows[0], rows.rows[1]], [(0, 1)]))
    assert [(a, b) for _, a, b in pair.steps][:2] == [(Fraction(1, 10), 0), (Fraction(3, 5), tiny)]


# Composition.


@pytest.mark.parametrize("make", [hole, plain])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_composition_of_one_run_is_the_exact_delta(make, epsilon):
    exact = wb.audit(make(), epsilon).dp_delta
    found = compose(make(), 1, epsilon=epsilon)
    assert (found.delta_low, found.delta) == (exact.lower, exact.upper)
    if 0 < found.delta < 1:
        back = compose(make(), 1, delta=found.delta)
        assert back.epsilon <= float(epsilon) + 1e-9
        assert compose(make(), 1, epsilon=back.epsilon).delta == pytest.approx(
            found.delta, abs=1e-12
        )


@pytest.mark.parametrize("make", [hole, plain])
@pytest.mark.parametrize("times", [2, 12])
def test_bounds_of_dp_accounting_overlap_with_the_bounds(make, times):
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    pair = compute_dominating_pair(make())
    laws = [{i: math.log(mass) for i, mass in enumerate(law) if mass} for law in (pair.q, pair.p)]

    def other(pessimistic: bool):
        return pld.from_two_probability_mass_functions(
            *laws,
            pessimistic_estimate=pessimistic,
            value_discretization_interval=5e-4,
            symmetric=False,
        ).self_compose(times)

    above, below = other(True), other(False)
    epsilon = times / 4
    found = compose(make(), times, epsilon=epsilon)
    assert found.delta_low <= found.delta
    assert below.get_delta_for_epsilon(epsilon) <= found.delta + 1e-10
    assert found.delta_low <= above.get_delta_for_epsilon(epsilon) + 1e-10
    found = compose(make(), times, delta="1e-3")
    assert found.epsilon_low <= found.epsilon
    assert below.get_epsilon_for_delta(1e-3) <= found.epsilon + 1e-7
    assert found.epsilon_low <= above.get_epsilon_for_delta(1e-3) + 1e-7


def test_one_sided_neighbours_are_composed_in_the_given_order():
    # P has the mass 1/4 on an outcome without mass in Q. Q has no such outcome.
    rows = wb.Channel.from_pairs([[1, 3], [0, 4]], [(0, 1)], directed=True)
    assert compose(rows, 1, epsilon=3).delta >= 0.25
    assert compose(rows, 2, epsilon=3).delta >= 1 - 0.75**2
    back = wb.Channel.from_pairs([[1, 3], [0, 4]], [(1, 0)], directed=True)
    assert compose(back, 1, epsilon=0).delta >= float(wb.audit(back, 0).dp_delta.lower) > 0.24
    assert compose(back, 3, epsilon=1).delta == 0


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(0, 9), min_size=3, max_size=3).filter(any),
    st.lists(st.integers(0, 9), min_size=3, max_size=3).filter(any),
    st.sampled_from([2, 3, 45]),
    st.sampled_from(["0", "0.05", "0.4", "1.7"]),
)
def test_the_bounds_contain_the_exact_delta_of_the_product(one, two, times, epsilon):
    """The exact δ is the hockey stick of the product, summed over all counts of the outcomes."""
    p, q = ([Fraction(k, sum(law)) for k in law] for law in (one, two))
    if times == 45 and epsilon != "0.4":
        return
    exact = Fraction(0)
    e = Fraction(*math.exp(float(epsilon)).as_integer_ratio())
    of_p, of_q = ([[mass**i for i in range(times + 1)] for mass in law] for law in (p, q))
    for i in range(times + 1):
        for j in range(times + 1 - i):
            k = times - i - j
            ways = math.comb(times, i) * math.comb(times - i, j)
            exact += ways * max(
                Fraction(0),
                of_p[0][i] * of_p[1][j] * of_p[2][k] - e * of_q[0][i] * of_q[1][j] * of_q[2][k],
            )
    rows = wb.Channel.from_pairs([one, two], [(0, 1)], directed=True)
    found = compose(rows, times, epsilon=epsilon, interval=5e-3 if times == 45 else 1e-3)
    assert found.delta_low <= float(exact) + 1e-12
    assert float(exact) <= found.delta + 1e-12
    assert found.delta - found.delta_low < 0.03


def test_several_mechanisms_are_composed_by_the_product_of_their_pairs():
    first, second = [[3, 2], [2, 3]], [[5, 1], [1, 5]]
    joint = [
        [a * b * c for a in one for b in one for c in two]
        for one, two in zip(first, second, strict=True)
    ]
    for epsilon in ("0", "0.5", "2"):
        exact = wb.audit(wb.Channel.from_rows(joint), epsilon).dp_delta
        found = compose(
            [wb.Channel.from_rows(first), wb.Channel.from_rows(second)], [2, 1], epsilon=epsilon
        )
        assert found.times == (2, 1)
        assert found.delta_low <= exact.upper
        assert exact.lower <= found.delta < exact.upper + 1e-6
    for bad in ([1], [1, 2, 3], [1, 0], [1, True], []):
        with pytest.raises(wb.InvalidRequest, match="times must be"):
            compose([plain(), plain()], bad, epsilon=1)


def test_composition_is_tighter_than_adding_epsilons():
    found, single = compose(plain(), 50, delta="1e-6"), compose(one_pair(), 50, delta="1e-6")
    pure = wb.audit(plain(), 0).pure_epsilon
    assert found.epsilon_low <= found.epsilon < 50 * pure
    assert single.epsilon - single.epsilon_low < 3e-4 * single.epsilon
    assert found.epsilon - found.epsilon_low < 3e-3 * found.epsilon  # of the fixed neighbours
    assert compose(hole(), 50, delta="1e-6", interval=0.01).epsilon == math.inf
    assert compose(plain(), 50, delta=0).epsilon == pytest.approx(50 * pure, rel=1e-12)
    assert compose(hole(), 50, delta=0).epsilon_low == math.inf
    assert compose(hole(), 50, delta=1).epsilon == 0
    for bad in (
        {"times": 0, "delta": 0},
        {"times": 1, "delta": 0, "epsilon": 1},
        {"times": 1, "delta": 0, "interval": 0},
    ):
        with pytest.raises(wb.InvalidRequest):
            compose(plain(), **bad)
    with pytest.raises(wb.InvalidRequest, match="no epsilon holds at delta = 0"):
        compose(hole(), 2)


def test_many_runs_are_composed_on_a_coarser_grid(monkeypatch):
    """The grids have fewer points than usual, which only widens the interval between the bounds."""
    for points, runs, budget in (
        (1 << 13, 10**6, {"epsilon": 10**6}),
        (1 << 16, 500, {"delta": "1e-6"}),
    ):
        settings = replace(composition._SETTINGS, lower_points=2 * points, upper_points=points)
        monkeypatch.setattr(composition, "_SETTINGS", settings)
        found = compose(one_pair(), runs, **budget)
        assert 0 <= found.delta_low <= found.delta <= 1
    assert 0 < found.epsilon - found.epsilon_low < 0.001 * found.epsilon


def test_composition_of_disjoint_and_of_nearly_disjoint_laws():
    disjoint = wb.AdditiveNoise(wb.ModuloNoise(n=1, max_shift=1), [1, 0])
    for times in (1, 2, 100):
        at_delta = wb.compose(disjoint, times, delta=0.5)
        assert at_delta.epsilon == at_delta.epsilon_low == float("inf")
        at_epsilon = wb.compose(disjoint, times, epsilon=3)
        assert at_epsilon.delta == at_epsilon.delta_low == 1.0
        assert wb.compose(disjoint, times, delta=1).epsilon == 0.0
    extreme = wb.AdditiveNoise(wb.ModuloNoise(n=2, max_shift=1), [2, 1000000, 0])
    assert wb.compose(extreme, 100, delta=0.5, interval=1e-2).epsilon == float("inf")


def test_an_error_names_the_missing_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "opendp", None)
    with pytest.raises(wb.WorkbenchError, match=r"pip install '\.\[opendp\]'"):
        measurement(plain())


# OpenDP.


@pytest.fixture
def dp():
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib", "honest-but-curious")
    return dp


def count(dp):
    """Return OpenDP's transformation that counts the rows of a data set."""
    return dp.t.make_count(dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance())


def test_a_measurement_chains_after_a_count_and_its_map_is_the_audit(dp):
    noise = plain()
    for distance in (1, 2, 5, 100):
        question = wb.ModuloNoise(n=8, max_shift=min(distance, 8))
        exact = wb.audit(wb.AdditiveNoise(question, noise.masses), 1)
        chained = {
            m: count(dp) >> measurement(noise, m, epsilon=1 if m == "approximate" else None)
            for m in MEASURES
        }
        assert chained["max_divergence"].map(distance) == exact.pure_epsilon
        assert chained["approximate"].map(distance) == (1.0, exact.dp_delta.upper)
        rho = chained["zero_concentrated_divergence"].map(distance)
        assert rho >= exact.pure_epsilon**2 / 2
        curve = chained["renyi_divergence"].map(distance)
        assert 0 < curve(1.5) < curve(4.0) < exact.pure_epsilon
        assert curve(2.0) <= 2 * rho
        for one in chained.values():
            assert 0 <= one([1, 2, 3]) <= 8


def test_measurements_are_composed_by_opendp(dp):
    chained = count(dp) >> measurement(plain())
    both = dp.c.make_composition([chained, chained])
    assert both.map(1) >= 2 * chained.map(1)
    assert len(both([1, 2])) == 2


def test_a_measurement_clamps_its_inputs_and_adds_the_noise_of_the_mechanism(dp):
    point = wb.AdditiveNoise(
        wb.ModuloNoise(n=4, max_shift=1), [0, 1, 0, 0, 0]
    )  # always adds 1 modulo 5
    release = measurement(point)
    assert [release(k) for k in (-7, 0, 3, 4, 99)] == [1, 1, 4, 0, 0]
    assert release.map(1) == math.inf
    assert release.map(0) == 0.0


def test_a_certified_design_can_be_exported(dp):
    d = wb.design(wb.ModuloNoise(n=8, max_shift=2), epsilon=1)
    assert measurement(d).map(2) <= 1.0
    assert measurement(d.certificate).map(1) <= 1.0


def test_unsupported_exports_are_refused():
    for bad in (("x",), (plain(), "rdp"), (plain(), "approximate")):
        with pytest.raises(wb.InvalidRequest):
            measurement(*bad)
    with pytest.raises(wb.InvalidRequest, match="epsilon"):
        measurement(plain(), epsilon=1)


def test_renyi_is_an_upper_bound_of_the_definition():
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
    assert bound_renyi_divergence(hole(), 2.0) == math.inf
    with pytest.raises(wb.InvalidRequest, match="alpha"):
        bound_renyi_divergence(plain(), 1.0)


def test_a_plot_of_several_numbers_of_runs_names_those_without_a_finite_epsilon(tmp_path):
    """One of ten outcomes is impossible for the neighbour. In five runs this exceeds δ = 0.12."""
    hole = wb.Channel.from_rows([[6, 3, 1, 0], [3, 6, 0, 1]])
    results = tuple(compose(hole, count, delta="0.12") for count in (1, 5, 10))
    figure = CompositionSeries(results).figure()
    assert "No finite ε at 5, 10 runs." in figure.axes[0].get_xlabel()
    with pytest.raises(wb.InvalidRequest, match="finite epsilon"):
        CompositionSeries(results[1:]).figure()
