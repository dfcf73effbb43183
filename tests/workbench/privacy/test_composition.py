"""Compare privacy profiles, dominating pairs and compositions with the exact audit.

A profile is the curve δ(ε) of one run. A dominating pair (P, Q) has, for every ε, the largest
hockey-stick divergence of any two neighbours.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.privacy import composition
from workbench.privacy.composition import CompositionSeries, compose
from workbench.privacy.curve import draw_profiles, profile
from workbench.privacy.dominating_pair import compute_dominating_pair

WEIGHTS = st.lists(st.integers(0, 60), min_size=5, max_size=9).filter(lambda w: sum(w) > 0)
EPSILONS = ["0", "0.1", "0.7", "1", "2.5", "6"]


def make_noise_with_hole() -> wb.AdditiveNoise:
    """Return noise modulo 9 with two zero masses, so that its pure ε is infinite."""
    return wb.AdditiveNoise(wb.ModuloNoise(n=8, max_shift=2), [400, 120, 50, 0, 3, 7, 0, 60, 130])


def make_plain_noise() -> wb.AdditiveNoise:
    """Return noise modulo 9 without zero masses."""
    return wb.AdditiveNoise(wb.ModuloNoise(n=8, max_shift=2), [400, 120, 50, 20, 3, 7, 22, 60, 130])


def make_noise_of_one_pair() -> wb.AdditiveNoise:
    """Return noise with a single comparison, which is its own dominating pair."""
    return wb.AdditiveNoise(
        wb.ModuloNoise(n=8, shifts=[2], directed=True), make_plain_noise().masses
    )


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
    pdp = profile(make_plain_noise(), "pdp")
    for end in pdp.breakpoints[1:]:
        before = pdp.delta(Fraction(float(end)) - Fraction(1, 10**9))
        after = pdp.delta(Fraction(float(end)) + Fraction(1, 10**9))
        assert after <= before
    heights = [pdp.delta(float(e)) for e in np.linspace(0, pdp.pure_epsilon, 50)]
    assert heights == sorted(heights, reverse=True)
    assert pdp.delta(pdp.pure_epsilon) == 0


def test_a_profile_of_another_notion_than_dp_and_pdp_is_refused():
    with pytest.raises(wb.InvalidRequest):
        profile(make_plain_noise(), "rdp")


def test_a_profile_of_many_pieces_is_drawn_in_seconds():
    weights = np.random.default_rng(3).integers(1, 10**6, 600).tolist()
    noise = wb.AdditiveNoise(wb.ModuloNoise(n=599, max_shift=20), weights)
    start = time.process_time()
    draw_profiles(noise)
    assert time.process_time() - start < 60  # Point by point in exact arithmetic it takes minutes.
    assert len(profile(noise).breakpoints) > 4000


def make_quantizer() -> wb.PiecewiseAffine:
    """Make a quantizer of [-1, 1] to the outputs ±3, whose pure ε is ln 2 = 0.6931..."""
    two_thirds = Fraction(2, 3)
    end_laws = [[two_thirds, 1 - two_thirds], [1 - two_thirds, two_thirds]]
    return wb.PiecewiseAffine.from_laws(knots=[-1, 1], outputs=[-3, 3], ends=end_laws)


def test_the_profile_of_a_quantizer_falls_to_0_at_its_pure_epsilon():
    curve = profile(make_quantizer())
    assert curve.delta(0) == pytest.approx(1 / 3)
    assert curve.delta("0.6932") == 0


def test_a_quantizer_has_no_pdp_profile():
    with pytest.raises(wb.InvalidRequest, match="if the inputs are real numbers"):
        profile(make_quantizer(), "pdp")


def test_an_audit_is_plotted_in_the_format_of_the_file_name(tmp_path):
    wb.audit(make_quantizer(), "0.5").plot(tmp_path / "p.svg")
    wb.audit(make_noise_with_hole()).plot(tmp_path / "q.png", width="column")
    assert (tmp_path / "p.svg").read_text().startswith("<?xml")
    assert (tmp_path / "q.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(wb.InvalidRequest, match="named"):
        wb.audit(make_noise_with_hole()).plot(tmp_path / "p.bmp")


# Dominating pairs.


@settings(max_examples=40, deadline=None)
@given(WEIGHTS, st.booleans(), st.fractions(min_value=0, max_value=20))
def test_the_pair_attains_the_worst_hockey_stick_exactly(weights, directed, e):
    """e is a random rational in place of e^ε."""
    noise = wb.AdditiveNoise(
        wb.ModuloNoise(n=len(weights) - 1, max_shift=2, directed=directed), weights
    )
    pair = compute_dominating_pair(noise)
    assert sum(pair.p) == sum(pair.q) == 1
    assert min(*pair.p, *pair.q) >= 0
    masses = noise.exact_pmf
    hockey_sticks = []
    for (shift,) in noise.question.differences:
        shifted_masses = [*masses[shift:], *masses[:shift]]
        hockey_sticks.append(compute_hockey_stick(masses, shifted_masses, e))
    assert compute_hockey_stick(pair.p, pair.q, e) == max(hockey_sticks)


def compute_hockey_stick(p: Sequence[Fraction], q: Sequence[Fraction], ratio: Fraction) -> Fraction:
    """Return Σ max(0, P - ratio Q) over all outcomes."""
    excesses = [max(Fraction(0), a - ratio * b) for a, b in zip(p, q, strict=True)]
    return sum(excesses, Fraction(0))


def test_the_pair_is_exact_beyond_floats():
    """A step (total of P, total of Q) adds up the outcomes with the largest ratios P/Q."""
    tiny = Fraction(1, 10**400)
    channel = wb.Channel.from_rows(
        [[Fraction(1, 10), Fraction(1, 2), Fraction(2, 5)], [0, tiny, 1 - tiny]]
    )
    pair = compute_dominating_pair(wb.Channel(channel.rows, [(0, 1)]))
    assert [(a, b) for _, a, b in pair.steps][:2] == [(Fraction(1, 10), 0), (Fraction(3, 5), tiny)]


# Composition.


@pytest.mark.parametrize("make", [make_noise_with_hole, make_plain_noise], ids=["hole", "plain"])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_composition_of_one_run_is_the_exact_delta(make, epsilon):
    exact = wb.audit(make(), epsilon).dp_delta
    one_run = compose(make(), 1, epsilon=epsilon)
    assert (one_run.delta_low, one_run.delta) == (exact.lower, exact.upper)


@pytest.mark.parametrize("make", [make_noise_with_hole, make_plain_noise], ids=["hole", "plain"])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_epsilon_of_one_run_at_its_delta_is_at_most_the_given_one(make, epsilon):
    delta = compose(make(), 1, epsilon=epsilon).delta
    if 0 < delta < 1:
        at_delta = compose(make(), 1, delta=delta)
        assert at_delta.epsilon <= float(epsilon) + 1e-9
        assert compose(make(), 1, epsilon=at_delta.epsilon).delta == pytest.approx(delta, abs=1e-12)


@pytest.mark.parametrize("make", [make_noise_with_hole, make_plain_noise], ids=["hole", "plain"])
@pytest.mark.parametrize("times", [2, 12])
def test_intervals_of_dp_accounting_overlap_with_ours(make, times):
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    pair = compute_dominating_pair(make())
    # dp_accounting takes logarithms of masses, and the law Q of the pair (P, Q) first.
    log_q = {i: math.log(mass) for i, mass in enumerate(pair.q) if mass}
    log_p = {i: math.log(mass) for i, mass in enumerate(pair.p) if mass}

    def compose_with_dp_accounting(*, is_pessimistic: bool):
        """Return the privacy loss distribution of all runs, rounded up or down."""
        return pld.from_two_probability_mass_functions(
            log_q,
            log_p,
            pessimistic_estimate=is_pessimistic,
            value_discretization_interval=5e-4,
            symmetric=False,
        ).self_compose(times)

    upper = compose_with_dp_accounting(is_pessimistic=True)
    lower = compose_with_dp_accounting(is_pessimistic=False)
    epsilon = times / 4
    at_epsilon = compose(make(), times, epsilon=epsilon)
    assert at_epsilon.delta_low <= at_epsilon.delta
    assert lower.get_delta_for_epsilon(epsilon) <= at_epsilon.delta + 1e-10
    assert at_epsilon.delta_low <= upper.get_delta_for_epsilon(epsilon) + 1e-10
    at_delta = compose(make(), times, delta="1e-3")
    assert at_delta.epsilon_low <= at_delta.epsilon
    assert lower.get_epsilon_for_delta(1e-3) <= at_delta.epsilon + 1e-7
    assert at_delta.epsilon_low <= upper.get_epsilon_for_delta(1e-3) + 1e-7


def test_one_sided_neighbours_are_composed_in_the_given_order():
    # P has the mass 1/4 on an outcome without mass in Q. Q has no such outcome.
    forward = wb.Channel.from_pairs([[1, 3], [0, 4]], [(0, 1)], directed=True)
    assert compose(forward, 1, epsilon=3).delta >= 0.25
    assert compose(forward, 2, epsilon=3).delta >= 1 - 0.75**2
    backward = wb.Channel.from_pairs([[1, 3], [0, 4]], [(1, 0)], directed=True)
    one_run = compose(backward, 1, epsilon=0)
    assert one_run.delta >= float(wb.audit(backward, 0).dp_delta.lower) > 0.24
    assert compose(backward, 3, epsilon=1).delta == 0


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(0, 9), min_size=3, max_size=3).filter(any),
    st.lists(st.integers(0, 9), min_size=3, max_size=3).filter(any),
    st.sampled_from([2, 3, 45]),
    st.sampled_from(["0", "0.05", "0.4", "1.7"]),
)
def test_the_bounds_contain_the_exact_delta_of_the_product(p_weights, q_weights, times, epsilon):
    """The exact δ is the hockey stick of the product, summed over all counts of the outcomes.

    The three outcomes occur i, j and k times in all runs.
    """
    if times == 45 and epsilon != "0.4":
        return  # So many runs are slow.
    p = [Fraction(weight, sum(p_weights)) for weight in p_weights]
    q = [Fraction(weight, sum(q_weights)) for weight in q_weights]
    p_powers = [[mass**i for i in range(times + 1)] for mass in p]
    q_powers = [[mass**i for i in range(times + 1)] for mass in q]
    exp_epsilon = Fraction(*math.exp(float(epsilon)).as_integer_ratio())
    exact = Fraction(0)
    for i in range(times + 1):
        for j in range(times + 1 - i):
            k = times - i - j
            ways = math.comb(times, i) * math.comb(times - i, j)
            p_mass = p_powers[0][i] * p_powers[1][j] * p_powers[2][k]
            q_mass = q_powers[0][i] * q_powers[1][j] * q_powers[2][k]
            exact += ways * max(Fraction(0), p_mass - exp_epsilon * q_mass)
    channel = wb.Channel.from_pairs([p_weights, q_weights], [(0, 1)], directed=True)
    interval = 5e-3 if times == 45 else 1e-3
    bounds = compose(channel, times, epsilon=epsilon, interval=interval)
    assert bounds.delta_low <= float(exact) + 1e-12
    assert float(exact) <= bounds.delta + 1e-12
    assert bounds.delta - bounds.delta_low < 0.03


def test_several_mechanisms_are_composed_by_the_product_of_their_pairs():
    """The joint channel has all outputs of two runs of `first` and one run of `second`."""
    first = [[3, 2], [2, 3]]
    second = [[5, 1], [1, 5]]
    joint = []
    for first_row, second_row in zip(first, second, strict=True):
        outputs = product(first_row, first_row, second_row)
        joint.append([math.prod(weights) for weights in outputs])
    channels = [wb.Channel.from_rows(first), wb.Channel.from_rows(second)]
    for epsilon in ("0", "0.5", "2"):
        exact = wb.audit(wb.Channel.from_rows(joint), epsilon).dp_delta
        bounds = compose(channels, [2, 1], epsilon=epsilon)
        assert bounds.times == (2, 1)
        assert bounds.delta_low <= exact.upper
        assert exact.lower <= bounds.delta < exact.upper + 1e-6


@pytest.mark.parametrize("times", [[1], [1, 2, 3], [1, 0], [1, True], []], ids=str)
def test_invalid_numbers_of_runs_of_two_mechanisms_are_refused(times):
    with pytest.raises(wb.InvalidRequest, match="times must be"):
        compose([make_plain_noise(), make_plain_noise()], times, epsilon=1)


def test_composition_is_tighter_than_adding_epsilons():
    bounds = compose(make_plain_noise(), 50, delta="1e-6")
    assert bounds.epsilon_low <= bounds.epsilon < 50 * wb.audit(make_plain_noise(), 0).pure_epsilon
    # The lower bound uses the same neighbours in every run, so the gap is wider than for one pair.
    assert bounds.epsilon - bounds.epsilon_low < 3e-3 * bounds.epsilon


def test_the_bounds_of_a_single_comparison_are_close():
    bounds = compose(make_noise_of_one_pair(), 50, delta="1e-6")
    assert bounds.epsilon - bounds.epsilon_low < 3e-4 * bounds.epsilon


def test_composition_at_delta_0_adds_the_pure_epsilons():
    pure = wb.audit(make_plain_noise(), 0).pure_epsilon
    assert compose(make_plain_noise(), 50, delta=0).epsilon == pytest.approx(50 * pure, rel=1e-12)


def test_zero_masses_give_an_infinite_epsilon_below_delta_1():
    assert compose(make_noise_with_hole(), 50, delta=0).epsilon_low == math.inf
    assert compose(make_noise_with_hole(), 50, delta="1e-6", interval=0.01).epsilon == math.inf
    assert compose(make_noise_with_hole(), 50, delta=1).epsilon == 0


@pytest.mark.parametrize(
    "options",
    [
        {"times": 0, "delta": 0},
        {"times": 1, "delta": 0, "epsilon": 1},
        {"times": 1, "delta": 0, "interval": 0},
    ],
    ids=str,
)
def test_invalid_options_of_a_composition_are_refused(options):
    with pytest.raises(wb.InvalidRequest):
        compose(make_plain_noise(), **options)


def test_the_default_delta_needs_a_finite_pure_epsilon():
    with pytest.raises(wb.InvalidRequest, match="no epsilon holds at delta = 0"):
        compose(make_noise_with_hole(), 2)


def test_many_runs_are_composed_on_a_coarser_grid(monkeypatch):
    """The grids have fewer points than usual, which only widens the interval between the bounds."""
    for points, runs, budget in (
        (1 << 13, 10**6, {"epsilon": 10**6}),
        (1 << 16, 500, {"delta": "1e-6"}),
    ):
        coarse = replace(composition._SETTINGS, lower_points=2 * points, upper_points=points)
        monkeypatch.setattr(composition, "_SETTINGS", coarse)
        bounds = compose(make_noise_of_one_pair(), runs, **budget)
        assert 0 <= bounds.delta_low <= bounds.delta <= 1
    assert 0 < bounds.epsilon - bounds.epsilon_low < 0.001 * bounds.epsilon


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


def test_a_plot_of_several_numbers_of_runs_names_those_without_a_finite_epsilon(tmp_path):
    """One of ten outcomes is impossible for the neighbour. In five runs this exceeds δ = 0.12."""
    channel = wb.Channel.from_rows([[6, 3, 1, 0], [3, 6, 0, 1]])
    results = tuple(compose(channel, times, delta="0.12") for times in (1, 5, 10))
    figure = CompositionSeries(results).figure()
    assert "No finite ε at 5, 10 runs." in figure.axes[0].get_xlabel()
    with pytest.raises(wb.InvalidRequest, match="finite epsilon"):
        CompositionSeries(results[1:]).figure()
