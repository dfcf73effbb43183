"""Compare the risks of mechanisms with brute force over tests, known formulas and other libraries."""

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

F = Fraction


def random_channel(seed: int, inputs: int = 3, outputs: int = 4) -> wb.Channel:
    rng = np.random.default_rng(seed)
    return wb.Channel.from_rows(
        (rng.integers(1, 9, (inputs, outputs)) * rng.integers(1, 4, outputs)).tolist()
    )


def errors_of_tests(channel: wb.Channel) -> list[tuple[Fraction, Fraction]]:
    """The errors of every deterministic test between neighbours."""
    return [
        (1 - sum((one.p[i] for i in chosen), F(0)), sum((one.q[i] for i in chosen), F(0)))
        for one in channel.comparisons()
        for size in range(len(one.p) + 1)
        for chosen in itertools.combinations(range(len(one.p)), size)
    ]


@pytest.mark.parametrize("seed", range(6))
def test_no_test_beats_the_curve_and_its_vertices_are_tests(seed: int):
    channel = random_channel(seed)
    risk, points = wb.risk(channel, prior="0.3"), errors_of_tests(channel)
    for a, b in points:
        assert b >= risk.beta(a)
    assert set(risk.trade_off) <= set(points)
    slopes = [(d - b) / (c - a) for (a, b), (c, d) in itertools.pairwise(risk.trade_off)]
    assert slopes == sorted(slopes)
    assert len(set(slopes)) == len(slopes)
    assert risk.advantage == max(1 - a - b for a, b in points)
    assert risk.guess == max(F(3, 10) * (1 - a) + F(7, 10) * (1 - b) for a, b in points)
    odds = F(3, 7) * max(
        one.p[i] / one.q[i] for one in channel.comparisons() for i in range(len(one.p))
    )
    assert 0 <= F(risk.posterior) - odds / (1 + odds) < F(1, 10**15)
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
    known = pld.from_two_probability_mass_functions(
        laws[1], laws[0], value_discretization_interval=1e-5
    )
    for epsilon in (0.0, 0.5, 1.0, 1.5):
        ours = max(0.0, *(float(1 - b) - math.exp(epsilon) * float(a) for a, b in curve))
        assert known.get_delta_for_epsilon(epsilon) == pytest.approx(ours, abs=2e-5)


def test_riskcal_computes_the_same_trade_off():
    """Of the least private (ε, δ) pair, whose curve that library has in closed form."""
    other = pytest.importorskip("riskcal").analysis
    epsilon, delta, shares = (
        math.log(3),
        0.04,
        [1, 18, 6, 0],
    )  # out of 25: δ, (1-δ) e^ε/(1+e^ε), (1-δ)/(1+e^ε)
    risk = wb.risk(wb.Channel.from_rows([shares, shares[::-1]]))
    alphas = np.linspace(0, 1, 41)
    ours = [float(risk.beta(F(alpha))) for alpha in alphas.tolist()]
    known = [float(other.get_beta_from_adp(epsilon, delta, alpha)) for alpha in alphas.tolist()]
    assert ours == pytest.approx(known, abs=1e-9)
    assert float(risk.advantage) == pytest.approx(
        other.get_advantage_from_adp(epsilon, delta), abs=1e-12
    )


def test_randomized_response_has_the_known_formulas():
    p = 0.75
    risk = wb.risk(wb.Channel.from_rows([[3, 1], [1, 3]]))
    assert risk.trade_off == ((F(0), F(1)), (F(1, 4), F(1, 4)), (F(1), F(0)))
    for order in RENYI_ORDERS:
        a = float(order)
        known = math.log(p**a * (1 - p) ** (1 - a) + (1 - p) ** a * p ** (1 - a)) / (a - 1)
        assert risk.renyi[order] == pytest.approx(known, rel=1e-12)
    assert risk.mu == pytest.approx(2 * NormalDist().inv_cdf(p), rel=1e-12)
    low, high = risk.rho
    # KL, which the supremum of D_α/α tends to.
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
    bounded, unbounded = (
        wb.risk(wb.Channel.from_rows(rows)) for rows in ([[2, 1], [1, 2]], [[2, 1], [0, 3]])
    )
    assert bounded.figure().axes[1].axison
    empty = unbounded.figure().axes[1]
    assert not empty.axison
    assert empty.texts[0].get_text().startswith("Unbounded at every order")


def test_the_command_reports_and_draws_the_risk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
):
    monkeypatch.chdir(tmp_path)
    wb.design(wb.ModuloNoise(n=6, max_shift=1), epsilon=1, delta="0.05", notion="dp").save("c.json")

    def run(line: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stop:
            main(["audit", *line.split()])
        return stop.value.code or 0, *capsys.readouterr()

    code, out, _ = run("c.json --risk --json --plot t.png")
    made = json.loads(out)
    assert code == 0
    assert Path("t.png").stat().st_size > 10_000
    assert made["tradeoff"][0] == [0.0, 1.0]
    assert made["advantage"] > 0.05
    assert made["rho_lower"] <= made["rho"]
    assert all(F(b) <= wb.risk(wb.load("c.json")).beta(F(a)) for a, b in made["tradeoff"])
    assert "Bayes factor" in run("c.json --risk --prior 0.01")[1]
    for wrong in ("2", "nan", "half"):
        code, _, err = run(f"c.json --risk --prior {wrong}")
        assert (code, err.startswith("InvalidRequest: prior must be")) == (2, True)


def test_too_many_masses_are_refused():
    labels = wb.Channel.from_rows([[1] * 200 for _ in range(200)])
    with pytest.raises(wb.InvalidRequest, match="at most 2000000 masses"):
        wb.risk(labels)


def test_a_whole_profile_guarantees_the_trade_off_curve():
    """With every (ε, δ(ε)) the trade-off function is the mechanism's own.

    A single budget grants no more.
    """
    noise = wb.AdditiveNoise(wb.ModuloNoise(n=4, max_shift=1), [6, 3, 1, 1, 3])
    curve, found = wb.profile(noise), wb.risk(noise)
    alphas = np.linspace(0, 1, 51)
    own = np.array([float(found.beta(Fraction(k, 50))) for k in range(51)])
    whole = compute_granted_errors(alphas, curve.breakpoints, curve.float_deltas(curve.breakpoints))
    assert whole == pytest.approx(own, abs=1e-9)
    single = compute_granted_errors(alphas, epsilons=[1.0], deltas=[curve.delta(1)])
    assert (single <= whole + 1e-9).all()
    assert single.max() > 0
