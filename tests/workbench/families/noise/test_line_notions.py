"""Test noise and finite channels under DP curves, Rényi DP, zCDP and GDP."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from workbench.cli import main
from workbench.exact.integer_law import IntegerLaw
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise
from workbench.models.convex.requirements import HOCKEY_STICK, POWER_CONE, RELATIVE_ENTROPY, Bound
from workbench.models.noise.losses import LineLoss
from workbench.models.noise.program import LineProgram
from workbench.models.oracles.canonical_noise import (
    canonical_loss,
    discrete_gaussian_loss,
    rounded_gaussian_loss,
)
from workbench.privacy.audit import audit

BUDGETS = {
    "curve": {"curve": "0.5:0.1,1:0.01"},
    "tradeoff": {"tradeoff": "0:1,0.1:0.6,0.4:0.2,1:0"},
    "renyi": {"alpha": 4, "epsilon": "0.5"},
    "zcdp": {"rho": "0.05"},
    "gdp": {"mu": "1.5"},
}


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run a command line in this process.

    Returns:
        The exit code, standard output and standard error.
    """
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


@pytest.mark.parametrize("notion", BUDGETS)
def test_integer_noise_is_certified_and_within_its_gap(notion, tmp_path: Path):
    design = wb.design(wb.IntegerNoise(1), notion=notion, **BUDGETS[notion])
    assert design.private
    assert design.status == "optimal"
    assert design.bound <= design.objective <= design.bound * (1 + 1e-5)
    assert design.oracle.agrees
    if notion == "zcdp":  # The discrete Gaussian has 10, so almost nothing is gained.
        assert 9.993 < design.bound <= design.objective < 10
    design.save(tmp_path / "design.json")
    proof = wb.check(tmp_path / "design.json")
    assert proof.claim.notion.name == notion
    tighter = {
        name: Fraction(value) * Fraction(9, 10) if name != "alpha" else value
        for name, value in BUDGETS[notion].items()
        if name not in ("curve", "tradeoff")
    }
    points = {
        "curve": {"curve": "0.5:0.09,1:0.009"},
        "tradeoff": {"tradeoff": "0:1,0.1:0.61,0.4:0.21,1:0"},
    }
    claim = {"parameters": {**tighter, **points.get(notion, {})}}
    if "epsilon" in tighter:
        claim = {"epsilon": tighter["epsilon"], "parameters": {"alpha": 4}}
    with pytest.raises(wb.NotCertified):
        wb.Certificate(design.mechanism, notion, **claim)
    text = (tmp_path / "design.json").read_text()
    law = json.loads(text)["mechanism"]["weights"]
    heavy = max(law, key=lambda weight: int(weight, 0))
    (tmp_path / "other.json").write_text(text.replace(heavy, hex(int(heavy, 0) * 2)))
    with pytest.raises(wb.WorkbenchError):
        wb.check(tmp_path / "other.json")


def test_optima_equal_known_laws():
    """The optima are a closed form, the known optimum of an LP and the rounded Gaussian's loss."""
    b = math.exp(-0.7)
    assert canonical_loss(points=[(0.7, 0.0)], loss=lambda k: k * k) == pytest.approx(
        2 * b / (1 - b) ** 2, rel=1e-12
    )
    assert canonical_loss(points=[(1.0, 1e-3)], loss=lambda k: k * k) == pytest.approx(
        1.7739, abs=5e-5
    )
    assert rounded_gaussian_loss(mu=0.3, loss=lambda k: k * k) == pytest.approx(
        1 / 0.09 + 1 / 12, rel=1e-9
    )
    assert discrete_gaussian_loss(variance=10.0, loss=lambda k: k * k) == pytest.approx(
        10, rel=1e-12
    )


@pytest.mark.parametrize("kind", [HOCKEY_STICK, POWER_CONE, RELATIVE_ENTROPY])
def test_relaxation_is_below_every_feasible_law(kind):
    """Geometric noise is feasible for its own divergences: every bound lies below its loss."""
    ratio = math.exp(-0.5)
    law = IntegerLaw(
        first=-1, weights=[Fraction(ratio), 1, Fraction(ratio)], period=1, ratio=Fraction(ratio)
    )
    loss = float(AdditiveIntegerNoise(wb.IntegerNoise(1), law).loss("squared"))
    p, q, _ = law.compare_with_shift(1)
    total, pairs = float(law.total), [(float(a), float(b)) for a, b in zip(p, q, strict=True)]
    if kind == POWER_CONE:
        bound = Bound(POWER_CONE, level=3.0, limit=sum(a**3 * b**-2 for a, b in pairs) / total)
    elif kind == RELATIVE_ENTROPY:
        bound = Bound(
            RELATIVE_ENTROPY, level=1.0, limit=sum(a * math.log(a / b) for a, b in pairs) / total
        )
    else:
        bound = Bound(HOCKEY_STICK, math.exp(0.5), limit=0.0)
    before = 0.0
    for size in (3, 8, 15):
        program = LineProgram(
            sensitivity=1,
            reach=size,
            losses=[LineLoss.from_name("squared").value_at],
            bounds=[bound],
        )
        near = program.columns_of_law(
            np.array([float(mass / law.total) for mass in law.weights_between(low=-40, high=40)])
        )
        answer = program.solve(near)
        assert before * (1 - 1e-9) <= float(answer.bound) <= loss * (1 + 1e-9)
        assert float(answer.bound) == pytest.approx(answer.value, rel=1e-7)
        before = float(answer.bound)
    assert before > (0.9 if kind == HOCKEY_STICK else 0.5) * loss


def test_merged_outcomes_equal_those_of_the_exact_law():
    """P and Q of the open program are those of the exact law, with one outcome beyond the reach."""
    law = IntegerLaw(first=-3, weights=[1, 2, 3, 4, 3, 2, 1], period=2, ratio=Fraction(1, 4))
    total = float(law.total)
    program = LineProgram(
        sensitivity=2,
        reach=3,
        losses=[LineLoss.from_name("absolute").value_at],
        bounds=[],
        is_folded=False,
    )
    x = np.array(
        [
            float(mass) / total
            for mass in (
                *law.weights_between(low=-5, high=5),
                law.total - law.weight_below(6),
                law.weight_below(-5),
            )
        ]
    )
    p, q = program.comparisons.laws_at(x)
    for shift, first, row in zip(program.shifts.tolist(), p, q, strict=True):
        inside = [(float(law.weight(eta)), float(law.weight(eta + shift))) for eta in range(-3, 4)]
        right = (
            float(law.total - law.weight_below(4)),
            float(law.total - law.weight_below(4 + shift)),
        )
        left = float(law.weight_below(-3)), float(law.weight_below(-3 + shift))
        exact = np.array([*inside, right, left]) / total
        assert np.column_stack([first, row]) == pytest.approx(exact)
    folded = LineProgram(
        sensitivity=2, reach=3, losses=[LineLoss.from_name("absolute").value_at], bounds=[]
    )
    half = np.append(x[5:11], x[11])
    for shift in range(2):
        pairs = np.column_stack([law[shift] for law in folded.comparisons.laws_at(half)])
        assert pairs == pytest.approx(np.column_stack([p[shift], q[shift]]))


def test_uneven_losses_clamping_and_reals_are_supported():
    prior = [Fraction(1, 8)] * 4 + [Fraction(1, 2)]
    design = wb.design(wb.IntegerNoise(1, clamp=(0, 4)), notion="zcdp", rho="0.3", prior=prior)
    assert design.private
    assert design.objective <= design.bound * (1 + 1e-5)
    audited = audit(design.mechanism, 0)
    assert audited.meets("zcdp", rho="0.3")
    assert not audited.meets("zcdp", rho="0.1")
    curve = wb.design(wb.RealNoise(1), notion="curve", curve="1:0.2", loss="absolute", gap="5e-3")
    dp = wb.design(wb.RealNoise(1), epsilon=1, delta="0.2", loss="absolute", gap="5e-3")
    assert curve.objective == pytest.approx(dp.objective, rel=1e-6)
    both = wb.design(
        wb.RealNoise(1), notion="curve", curve="0.5:0.3,1:0.2", loss="absolute", gap="2e-2"
    )
    assert both.private
    assert both.objective > dp.bound


def test_noise_for_curve_with_pure_end_has_tails():
    design = wb.design(wb.IntegerNoise(2), notion="curve", curve="0.5:0.1,2:0", loss="absolute")
    assert design.private
    assert design.mechanism.noise.ratio
    assert design.objective <= design.bound * (1 + 1e-5)


@pytest.mark.parametrize("notion", ["curve", "renyi"])
def test_channels_are_certified_and_within_their_gap(notion, tmp_path: Path):
    question = wb.FiniteQuery("0..4", max_shift=1)
    design = wb.design(question, notion=notion, **BUDGETS[notion])
    assert design.private
    assert design.objective <= design.bound * (1 + 1e-3)
    clamped = wb.design(wb.IntegerNoise(1, clamp=(0, 4)), notion=notion, **BUDGETS[notion])
    assert design.bound <= clamped.objective
    design.save(tmp_path / "design.json")
    assert wb.check(tmp_path / "design.json").claim.notion.name == notion


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("noise --on integers --notion zcdp", "rho must be given for the notion zcdp"),
        ("noise --on integers --notion zcdp --rho 0", "rho must be a finite number > 0"),
        (
            "noise --on integers --notion zcdp --rho 99",
            "the budget must be too small for randomized response",
        ),
        (
            "noise --on integers --notion renyi --alpha 1 --epsilon 1",
            "alpha must be a finite number > 1",
        ),
        (
            "noise --on integers --notion pdp --epsilon 1",
            "notion must be one of dp, pure, curve, tradeoff, renyi",
        ),
        ("noise --on integers --notion curve --curve 1:2", "delta must be"),
        ("noise --on integers --epsilon 1 --rho 1", "rho must be left out when notion is dp"),
        ("noise --on integers", "epsilon must be given"),
        (
            "noise --on integers --notion gdp --mu 1 --delta 0.1",
            "delta must be left out when notion is gdp",
        ),
        (
            "noise --on integers --notion gdp --mu 1 --runs 4",
            "runs must be left out when notion is gdp",
        ),
        (
            "noise --on integers --epsilon 1 --max-loss 3",
            "max_loss must be left out unless minimise is",
        ),
        (
            "noise --on integers --minimise epsilon",
            "max_loss must be given to minimise",
        ),
        (
            "noise --on integers --minimise delta --epsilon 1",
            "max_loss must be given to minimise",
        ),
        ("noise --on integers --minimise delta --max-loss 1", "epsilon must be given"),
        (
            "noise --on integers --minimise delta --max-loss 1 --epsilon 1 --notion pure",
            "minimise must be loss or eps",
        ),
        (
            "noise --on integers --minimise delta --max-loss 1 --notion zcdp --rho 1",
            "minimise must be loss, except for",
        ),
        (
            "modulo --n 4 --max-shift 1 --minimise epsilon",
            "max_loss must be given to minimise epsilon",
        ),
        ("modulo --n 4 --max-shift 1 --minimise epsilon --max-loss 0.9", "any epsilon is enough"),
        (
            "channel --answers 0..3 --max-shift 1 --notion zcdp",
            "rho must be given for the notion zcdp",
        ),
        (
            "channel --answers 0..3 --max-shift 1 --epsilon 1 --mu 1",
            "mu must be left out when notion is dp",
        ),
        (
            "channel --answers 0..3 --max-shift 1 --notion gdp --mu 1 --minimise delta "
            "--max-loss 1",
            "minimise must be",
        ),
    ],
)
def test_invalid_requests_raise_one_sentence(capsys, arguments, message):
    code, out, err = run(capsys, "design", *arguments.split())
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.strip().splitlines()) <= 2


@pytest.mark.parametrize(
    ("question", "options"),
    [
        (wb.ModuloNoise(n=8, max_shift=2), {"notion": "dp", "max_loss": "0.5", "delta": "0.01"}),
        (wb.ModuloNoise(n=8, max_shift=2), {"notion": "pure", "max_loss": "5", "loss": "squared"}),
        (wb.IntegerNoise(2), {"notion": "pure", "max_loss": "3", "loss": "absolute"}),
        (wb.IntegerNoise(1), {"max_loss": "2.5", "delta": "0.01"}),
    ],
)
def test_minimal_epsilon_is_certified_and_bounded(question, options):
    """The design at ε is certified within the budget; at ε - 1e-6 a bound is above it."""
    design = wb.design(question, minimise="epsilon", **options)
    assert design.private
    assert design.certificate is not None
    assert float(design.certificate.epsilon) == design.objective
    assert design.bound <= design.objective <= design.bound * (1 + 1e-6)
    other_options = {name: value for name, value in options.items() if name != "max_loss"}
    max_loss = float(options["max_loss"])
    epsilon = Fraction(design.certificate.epsilon)
    assert wb.design(question, epsilon=epsilon, **other_options).objective <= max_loss
    smaller_epsilon = epsilon * (1 - Fraction(1, 10**6))
    assert wb.design(question, epsilon=smaller_epsilon, **other_options).bound > max_loss


@pytest.mark.parametrize(
    ("question", "options"),
    [
        (wb.IntegerNoise(1), {"epsilon": 1, "max_loss": "1.5"}),
        (wb.IntegerNoise(2), {"epsilon": 1, "max_loss": "1.5", "loss": "absolute"}),
        (wb.IntegerNoise(1, (0, 10)), {"epsilon": 1, "max_loss": 1}),
        (wb.IntegerNoise(1), {"epsilon": "0.5", "max_loss": "0.001"}),
    ],
)
def test_minimal_delta_is_certified_and_bounded(question, options):
    """The design at δ is certified within the budget; at δ - 1e-6 a bound is above it."""
    design = wb.design(question, minimise="delta", **options)
    assert design.private
    assert design.status == "optimal"
    assert float(design.certificate.delta) == design.objective == design.to_dict()["delta"]
    assert design.bound <= design.objective <= design.bound * (1 + 1e-6)
    assert design.certificate.objective.value <= Fraction(options["max_loss"])
    other_options = {name: value for name, value in options.items() if name != "max_loss"}
    smaller_delta = Fraction(design.certificate.delta) * (1 - Fraction(1, 10**6))
    at_smaller_delta = wb.design(question, delta=smaller_delta, **other_options)
    assert at_smaller_delta.bound > float(options["max_loss"])


def test_minimal_delta_equals_a_linear_program():
    """SciPy minimises δ for noise f on -40..40 at ε = 0.9, with a squared loss of at most 2.

    The variables are f, the excesses of f over e^ε times the shifted f and the other way round, and
    δ.
    """
    from scipy.optimize import linprog

    last = 40
    n = 2 * last + 1  # Noise values.
    m = n + 2  # Outcomes of the noise and of the shifted noise.
    f = np.zeros((m, n))
    f[1:-1] = np.eye(n)
    shifted_f = np.zeros((m, n))
    shifted_f[:-2] = np.eye(n)
    loss_row = np.hstack([(np.arange(n) - last) ** 2.0, np.zeros(2 * m + 1)])[None]
    rows = [loss_row]
    for k, (p, q) in enumerate(((f, shifted_f), (shifted_f, f))):
        excess_columns = np.zeros((m, 2 * m + 1))
        excess_columns[:, k * m : (k + 1) * m] = -np.eye(m)
        sum_row = np.zeros((1, n + 2 * m + 1))
        sum_row[0, n + k * m : n + (k + 1) * m] = 1
        sum_row[0, -1] = -1  # The excesses sum to at most δ.
        rows += [np.hstack([p - np.exp(0.9) * q, excess_columns]), sum_row]
    limits = np.zeros(sum(map(len, rows)))
    limits[0] = 2.0
    result = linprog(
        np.append(np.zeros(n + 2 * m), 1.0),
        A_ub=np.vstack(rows),
        b_ub=limits,
        A_eq=np.hstack([np.ones(n), np.zeros(2 * m + 1)])[None],
        b_eq=[1.0],
        method="highs",
    )
    design = wb.design(wb.IntegerNoise(1), minimise="delta", epsilon="0.9", max_loss=2)
    assert design.objective == pytest.approx(result.fun, rel=1e-6)


def test_minimal_delta_is_zero_if_pure_noise_has_the_loss():
    design = wb.design(wb.IntegerNoise(1), minimise="delta", epsilon=1, max_loss=2)
    assert (design.objective, design.bound, design.status, design.certificate.delta) == (
        0,
        0,
        "optimal",
        0,
    )
    with pytest.raises(
        wb.Infeasible,
        match=r"at most 0\.5 needs delta > 0\.1",
    ):
        wb.design(wb.IntegerNoise(1), minimise="delta", epsilon=1, max_loss="0.5", delta="0.1")


def test_frontiers_support_every_budget():
    table = wb.frontier(
        wb.IntegerNoise(1),
        notion="dp,renyi",
        epsilon="0.5,1",
        delta="0.1",
        alpha="2",
        max_loss="2,3",
    ).to_frame()
    points, least = table[table["curve"] == "point"], table[table["mechanism"] == "least epsilon"]
    assert len(points) == 4
    assert points["certified"].all()
    assert (points["bound"] <= points["objective"]).all()
    assert least["objective"].tolist() == sorted(least["objective"], reverse=True)
    gaussian = table[(table["mechanism"] == "discrete Gaussian") & (table["notion"] == "renyi")]
    assert (
        gaussian["objective"].to_numpy() >= points[points["notion"] == "renyi"]["bound"].to_numpy()
    ).all()
    channel = wb.frontier(
        wb.FiniteQuery("0..2", max_shift=1), notion="renyi", alpha=2, epsilon="0.5,1"
    ).to_frame()
    assert channel["objective"].is_monotonic_decreasing
    with pytest.raises(wb.InvalidRequest, match="rho must be given for the notion zcdp"):
        wb.frontier(wb.IntegerNoise(1), notion="zcdp")


def test_verification_compares_channels_and_noise():
    result = wb.verify("highs", family="channel", small=True)
    assert all(row["agrees"] for row in result)


def test_noise_on_the_reals_under_zcdp_has_an_interval():
    """With four cells in a sensitivity, the two bounds differ by β²/4 + β²/12 = 1/48.

    The optimum at rho = 1/2 is below the variance 1 of Gaussian noise.
    """
    design = wb.design(wb.RealNoise(1), loss="squared", notion="zcdp", rho="0.5", steps=4)
    assert design.certificate is not None
    assert design.objective < 1
    assert design.objective - design.bound == pytest.approx(1 / 48, rel=1e-4)
