"""Compare the risks of mechanisms with brute force over tests, known formulas and other libraries.

A test guesses from the output which of two neighbouring answers is true. Its errors (a, b) are the
probabilities of a wrong guess under each answer. The trade-off curve is the least b for each a.
"""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest

import workbench as wb
from workbench.cli import main
from workbench.privacy.risk import RENYI_ORDERS, compute_granted_errors

F = Fraction  # A short name for the many exact numbers of this file.


def make_random_channel(seed: int) -> wb.Channel:
    """Make a channel of three inputs and four outputs with random positive masses."""
    generator = np.random.default_rng(seed)
    weights = generator.integers(low=1, high=9, size=(3, 4))
    output_factors = generator.integers(low=1, high=4, size=4)
    return wb.Channel.from_rows((weights * output_factors).tolist())


def list_errors_of_tests(channel: wb.Channel) -> list[tuple[Fraction, Fraction]]:
    """List the errors of every deterministic test between neighbours.

    A test guesses the first answer at some of the outputs, and the second at the others.
    """
    errors = []
    for pair in channel.comparisons():
        outputs = range(len(pair.p))
        for size in range(len(outputs) + 1):
            for chosen in itertools.combinations(outputs, size):
                p_mass = sum((pair.p[i] for i in chosen), F(0))
                q_mass = sum((pair.q[i] for i in chosen), F(0))
                errors.append((1 - p_mass, q_mass))
    return errors


@pytest.mark.parametrize("seed", range(6))
def test_no_test_beats_the_trade_off_curve_and_its_vertices_are_tests(seed: int):
    channel = make_random_channel(seed)
    risk = wb.risk(channel)
    errors = list_errors_of_tests(channel)
    for a, b in errors:
        assert b >= risk.beta(a)
    assert set(risk.trade_off) <= set(errors)


@pytest.mark.parametrize("seed", range(6))
def test_the_slopes_of_the_trade_off_curve_rise(seed: int):
    vertices = wb.risk(make_random_channel(seed)).trade_off
    slopes = [(d - b) / (c - a) for (a, b), (c, d) in itertools.pairwise(vertices)]
    assert slopes == sorted(slopes)
    assert len(set(slopes)) == len(slopes)


@pytest.mark.parametrize("seed", range(6))
def test_advantage_and_guess_are_those_of_the_best_test(seed: int):
    channel = make_random_channel(seed)
    risk = wb.risk(channel, prior="0.3")
    errors = list_errors_of_tests(channel)
    assert risk.advantage == max(1 - a - b for a, b in errors)
    assert risk.guess == max(F(3, 10) * (1 - a) + F(7, 10) * (1 - b) for a, b in errors)


@pytest.mark.parametrize("seed", range(6))
def test_the_posterior_has_the_prior_odds_times_the_largest_ratio(seed: int):
    channel = make_random_channel(seed)
    ratios = [p / q for pair in channel.comparisons() for p, q in zip(pair.p, pair.q, strict=True)]
    odds = F(3, 7) * max(ratios)
    posterior = F(wb.risk(channel, prior="0.3").posterior)
    assert 0 <= posterior - odds / (1 + odds) < F(1, 10**15)


@pytest.mark.parametrize("seed", range(6))
def test_the_advantage_is_the_delta_at_epsilon_0(seed: int):
    channel = make_random_channel(seed)
    risk = wb.risk(channel)
    assert risk.advantage == wb.audit(channel, 0).dp_delta.a - wb.audit(channel, 0).dp_delta.b


def test_the_trade_off_curve_determines_the_privacy_profile():
    noise = wb.design(
        wb.ModuloNoise(n=12, max_shift=2), epsilon=1, delta="0.05", notion="dp"
    ).mechanism
    curve = wb.risk(noise).trade_off
    for epsilon in (0, 0.3, 0.8, 1, 1.3):
        lines = max(float(1 - b) - math.exp(epsilon) * float(a) for a, b in curve)
        assert max(0.0, lines) == pytest.approx(wb.audit(noise, epsilon).dp_delta.upper, abs=1e-12)


def test_dp_accounting_computes_the_same_profile():
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    channel = wb.Channel.from_rows([[6, 3, 1], [1, 3, 6]])
    curve = wb.risk(channel).trade_off
    laws = [
        {i: math.log(float(law[i])) for i in range(3)} for law in (channel.law(0), channel.law(1))
    ]
    other_profile = pld.from_two_probability_mass_functions(
        laws[1], laws[0], value_discretization_interval=1e-5
    )
    for epsilon in (0.0, 0.5, 1.0, 1.5):
        # The line of slope -e^ε through a vertex (a, b) gives δ = 1 - b - e^ε a.
        delta = max(0.0, *(float(1 - b) - math.exp(epsilon) * float(a) for a, b in curve))
        assert other_profile.get_delta_for_epsilon(epsilon) == pytest.approx(delta, abs=2e-5)


def test_riskcal_computes_the_same_trade_off():
    """The channel is the least private one at (ε, δ), whose curve riskcal has in closed form."""
    riskcal = pytest.importorskip("riskcal").analysis
    epsilon = math.log(3)
    delta = 0.04
    shares = [1, 18, 6, 0]  # Out of 25: δ, (1-δ) e^ε/(1+e^ε), (1-δ)/(1+e^ε) and 0.
    risk = wb.risk(wb.Channel.from_rows([shares, shares[::-1]]))
    alphas = np.linspace(0, 1, 41)
    betas = [float(risk.beta(F(alpha))) for alpha in alphas.tolist()]
    expected_betas = [
        float(riskcal.get_beta_from_adp(epsilon, delta, alpha)) for alpha in alphas.tolist()
    ]
    assert betas == pytest.approx(expected_betas, abs=1e-9)
    expected_advantage = riskcal.get_advantage_from_adp(epsilon, delta)
    assert float(risk.advantage) == pytest.approx(expected_advantage, abs=1e-12)


def test_randomized_response_has_the_known_formulas():
    p = 0.75
    risk = wb.risk(wb.Channel.from_rows([[3, 1], [1, 3]]))
    assert risk.trade_off == ((F(0), F(1)), (F(1, 4), F(1, 4)), (F(1), F(0)))
    for order in RENYI_ORDERS:
        a = float(order)
        divergence = math.log(p**a * (1 - p) ** (1 - a) + (1 - p) ** a * p ** (1 - a)) / (a - 1)
        assert risk.renyi[order] == pytest.approx(divergence, rel=1e-12)
    assert risk.mu == pytest.approx(2 * NormalDist().inv_cdf(p), rel=1e-12)
    low, high = risk.rho
    # ρ is the supremum of D_α/α. It is the limit at α = 1, the KL divergence.
    assert low <= 0.5 * math.log(3) <= high < low * (1 + 1e-5)
    assert (risk.bayes_factor, risk.posterior, risk.guess) == (3, 0.75, F(3, 4))


def test_unbounded_risks_are_reported():
    risk = wb.risk(wb.Channel.from_rows([[1, 1, 0], [0, 1, 1]]), prior="0.01")
    assert (risk.bayes_factor, risk.posterior, risk.mu, risk.rho) == (
        None,
        1.0,
        math.inf,
        (math.inf, math.inf),
    )
    assert risk.trade_off == ((F(0), F(1, 2)), (F(1, 2), F(0)), (F(1), F(0)))
    assert risk.to_dict()["rho"] == risk.to_dict()["mu"] == risk.to_dict()["bayes_factor"] == "inf"
    assert "unbounded" in dict(risk.facts())["minimal GDP mu"]
    assert risk.beta(F(1, 4)) == F(1, 4)
    assert risk.beta(F(3, 4)) == 0


def test_nothing_is_learned_from_equal_laws():
    risk = wb.risk(wb.Channel.from_rows([[1, 1], [1, 1]]))
    assert risk.trade_off == ((F(0), F(1)), (F(1), F(0)))
    assert (risk.advantage, risk.guess, risk.mu, risk.rho, risk.bayes_factor) == (
        0,
        F(1, 2),
        0.0,
        (0.0, 0.0),
        1,
    )


def test_an_unbounded_divergence_is_reported_in_place_of_its_curve():
    bounded = wb.risk(wb.Channel.from_rows([[2, 1], [1, 2]]))
    unbounded = wb.risk(wb.Channel.from_rows([[2, 1], [0, 3]]))
    assert bounded.figure().axes[1].axison
    empty = unbounded.figure().axes[1]
    assert not empty.axison
    assert empty.texts[0].get_text().startswith("Unbounded at every order")


# The command `audit --risk` on a certificate of (1, 0.05)-DP noise.


@pytest.fixture
def certificate_path(tmp_path: Path) -> Path:
    """Return the path of a certificate of noise for the answers 0..6."""
    path = tmp_path / "c.json"
    wb.design(wb.ModuloNoise(n=6, max_shift=1), epsilon=1, delta="0.05", notion="dp").save(path)
    return path


def run_risk(certificate_path: Path, *options: str) -> int:
    """Run `audit --risk` with further options, and return its exit code."""
    with pytest.raises(SystemExit) as stop:
        main(["audit", str(certificate_path), "--risk", *options])
    assert stop.value.code is None or isinstance(stop.value.code, int)
    return stop.value.code or 0


def test_the_command_reports_the_risk(
    certificate_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_risk(certificate_path, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["tradeoff"][0] == [0.0, 1.0]
    # The advantage is δ at ε = 0, so it is above the δ = 0.05 at ε = 1.
    assert report["advantage"] > 0.05
    assert report["rho_lower"] <= report["rho"]
    risk = wb.risk(wb.load(certificate_path))
    # The reported errors are rounded down.
    assert all(F(b) <= risk.beta(F(a)) for a, b in report["tradeoff"])


def test_the_command_draws_the_risk(certificate_path: Path) -> None:
    plot_path = certificate_path.with_name("t.png")
    assert run_risk(certificate_path, "--plot", str(plot_path)) == 0
    assert plot_path.stat().st_size > 10_000


def test_the_command_states_a_bayes_factor_for_a_prior(
    certificate_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_risk(certificate_path, "--prior", "0.01") == 0
    assert "Bayes factor" in capsys.readouterr().out


@pytest.mark.parametrize("prior", ["2", "nan", "half"])
def test_a_prior_that_is_no_probability_is_refused(
    prior: str, certificate_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_risk(certificate_path, "--prior", prior) == 2
    assert capsys.readouterr().err.startswith("InvalidRequest: prior must be")


def test_too_many_masses_are_refused():
    labels = wb.Channel.from_rows([[1] * 200 for _ in range(200)])
    with pytest.raises(wb.InvalidRequest, match="at most 2000000 masses"):
        wb.risk(labels)


def test_a_whole_profile_guarantees_the_trade_off_curve():
    """All pairs (ε, δ(ε)) give the trade-off curve. A single pair guarantees smaller errors."""
    noise = wb.AdditiveNoise(wb.ModuloNoise(n=4, max_shift=1), [6, 3, 1, 1, 3])
    curve = wb.profile(noise)
    risk = wb.risk(noise)
    alphas = np.linspace(0, 1, 51)
    exact_errors = np.array([float(risk.beta(Fraction(k, 50))) for k in range(51)])
    errors_of_profile = compute_granted_errors(
        alphas, curve.breakpoints, curve.float_deltas(curve.breakpoints)
    )
    assert errors_of_profile == pytest.approx(exact_errors, abs=1e-9)
    errors_of_one_pair = compute_granted_errors(alphas, epsilons=[1.0], deltas=[curve.delta(1)])
    assert (errors_of_one_pair <= errors_of_profile + 1e-9).all()
    assert errors_of_one_pair.max() > 0
