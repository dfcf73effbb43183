"""Test noise on the integers and the reals, and finite channels, under notions of several bounds.

These are curve (a list of (ε, δ) pairs that all hold), tradeoff, Rényi DP, zCDP and GDP.
"""

from __future__ import annotations

import functools
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
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

# Notion -> the options of its budget.
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


# Notion -> the claim of a certificate at a budget that is about a tenth smaller.
SMALLER_CLAIMS: dict[str, dict[str, Any]] = {
    "curve": {"parameters": {"curve": "0.5:0.09,1:0.009"}},
    "tradeoff": {"parameters": {"tradeoff": "0:1,0.1:0.61,0.4:0.21,1:0"}},
    "renyi": {"epsilon": Fraction("0.45"), "parameters": {"alpha": 4}},
    "zcdp": {"parameters": {"rho": Fraction("0.045")}},
    "gdp": {"parameters": {"mu": Fraction("1.35")}},
}


@functools.cache
def design_integer_noise(notion: str) -> wb.Design:
    """Design noise on the integers for the sensitivity 1 at the budget of a notion."""
    return wb.design(wb.IntegerNoise(1), notion=notion, **BUDGETS[notion])


@pytest.mark.parametrize("notion", BUDGETS)
def test_integer_noise_is_private_and_within_its_gap(notion: str):
    design = design_integer_noise(notion)
    assert design.private
    assert design.status == "optimal"
    assert design.bound <= design.objective <= design.bound * (1 + 1e-5)
    assert design.oracle.agrees


def test_integer_noise_under_zcdp_has_a_slightly_smaller_variance_than_the_discrete_gaussian():
    """The discrete Gaussian has the variance 1/(2ρ) = 10. The other numbers are pinned."""
    design = design_integer_noise("zcdp")
    assert 9.993 < design.bound <= design.objective < 10


@pytest.mark.parametrize("notion", BUDGETS)
def test_the_certificate_of_integer_noise_names_its_notion(notion: str, tmp_path: Path):
    design_integer_noise(notion).save(tmp_path / "design.json")
    assert wb.check(tmp_path / "design.json").claim.notion.name == notion


@pytest.mark.parametrize("notion", BUDGETS)
def test_integer_noise_is_not_certified_at_a_smaller_budget(notion: str):
    with pytest.raises(wb.NotCertified):
        wb.Certificate(design_integer_noise(notion).mechanism, notion, **SMALLER_CLAIMS[notion])


@pytest.mark.parametrize("notion", BUDGETS)
def test_a_certificate_with_a_changed_mass_is_refused(notion: str, tmp_path: Path):
    path = tmp_path / "design.json"
    design_integer_noise(notion).save(path)
    text = path.read_text()
    largest_weight = max(json.loads(text)["mechanism"]["weights"], key=lambda hexa: int(hexa, 0))
    doubled_weight = hex(2 * int(largest_weight, 0))
    path.write_text(text.replace(largest_weight, doubled_weight))
    with pytest.raises(wb.WorkbenchError):
        wb.check(path)


def test_optima_equal_known_laws():
    """The optima are a closed form, the known optimum of an LP and the rounded Gaussian's loss."""
    # Geometric noise with the ratio α = e^-ε has the variance 2α/(1 - α)².
    alpha = math.exp(-0.7)
    assert canonical_loss(points=[(0.7, 0.0)], loss=lambda k: k * k) == pytest.approx(
        2 * alpha / (1 - alpha) ** 2, rel=1e-12
    )
    # The optimum of `design noise --epsilon 1 --delta 1e-3`, pinned in test_noise_design.py, too.
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
    """Geometric noise is feasible for its own divergences, so every bound is below its loss.

    The bounds increase with the reach of the program.
    """
    ratio = math.exp(-0.5)
    law = IntegerLaw(
        first=-1, weights=[Fraction(ratio), 1, Fraction(ratio)], period=1, ratio=Fraction(ratio)
    )
    loss = float(AdditiveIntegerNoise(wb.IntegerNoise(1), law).loss("squared"))
    p, q, _ = law.compare_with_shift(1)
    total = float(law.total)
    pairs = [(float(a), float(b)) for a, b in zip(p, q, strict=True)]
    if kind == POWER_CONE:
        bound = Bound(POWER_CONE, level=3.0, limit=sum(a**3 * b**-2 for a, b in pairs) / total)
    elif kind == RELATIVE_ENTROPY:
        bound = Bound(
            RELATIVE_ENTROPY, level=1.0, limit=sum(a * math.log(a / b) for a, b in pairs) / total
        )
    else:
        bound = Bound(HOCKEY_STICK, math.exp(0.5), limit=0.0)
    previous_bound = 0.0
    for reach in (3, 8, 15):
        program = LineProgram(
            sensitivity=1,
            reach=reach,
            losses=[LineLoss.from_name("squared").value_at],
            bounds=[bound],
        )
        weights = law.weights_between(low=-40, high=40)
        masses = np.array([float(weight / law.total) for weight in weights])
        answer = program.solve(program.columns_of_law(masses))
        bound_of_reach = float(answer.bound)
        assert previous_bound * (1 - 1e-9) <= bound_of_reach <= loss * (1 + 1e-9)
        assert bound_of_reach == pytest.approx(answer.value, rel=1e-7)
        previous_bound = bound_of_reach
    smallest_share = 0.9 if kind == HOCKEY_STICK else 0.5
    assert previous_bound > smallest_share * loss


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


def test_clamped_noise_with_an_uneven_loss_is_optimal_under_zcdp():
    """The prior is not symmetric, so the loss of noise η and of noise -η differ."""
    prior = [Fraction(1, 8)] * 4 + [Fraction(1, 2)]
    design = wb.design(wb.IntegerNoise(1, clamp=(0, 4)), notion="zcdp", rho="0.3", prior=prior)
    assert design.private
    assert design.objective <= design.bound * (1 + 1e-5)
    privacy = audit(design.mechanism, 0)
    assert privacy.meets("zcdp", rho="0.3")
    assert not privacy.meets("zcdp", rho="0.1")


def design_real_noise(gap: str, **budget: str) -> wb.Design:
    """Design noise on the reals for the absolute error. The search stops at a relative gap."""
    return wb.design(wb.RealNoise(1), loss="absolute", gap=gap, **budget)


def test_real_noise_for_a_curve_of_one_point_equals_dp():
    curve = design_real_noise("5e-3", notion="curve", curve="1:0.2")
    dp = design_real_noise("5e-3", epsilon="1", delta="0.2")
    assert curve.objective == pytest.approx(dp.objective, rel=1e-6)


def test_real_noise_for_a_curve_of_two_points_has_a_larger_loss_than_for_one():
    two_points = design_real_noise("2e-2", notion="curve", curve="0.5:0.3,1:0.2")
    dp = design_real_noise("5e-3", epsilon="1", delta="0.2")
    assert two_points.private
    assert two_points.objective > dp.bound


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
    assert design.status == "optimal"
    assert design.objective == design.bound == design.certificate.delta == 0


def test_a_limit_below_the_smallest_delta_is_infeasible():
    with pytest.raises(wb.Infeasible, match=r"at most 0\.5 needs delta > 0\.1"):
        wb.design(wb.IntegerNoise(1), minimise="delta", epsilon=1, max_loss="0.5", delta="0.1")


@pytest.fixture(scope="module")
def frontier_table() -> pd.DataFrame:
    """Return a frontier of integer noise at two ε, under DP and Rényi DP, and for two losses."""
    return wb.frontier(
        wb.IntegerNoise(1),
        notion="dp,renyi",
        epsilon="0.5,1",
        delta="0.1",
        alpha="2",
        max_loss="2,3",
    ).to_frame()


def test_a_frontier_has_a_certified_point_for_each_notion_and_epsilon(
    frontier_table: pd.DataFrame,
):
    points = frontier_table[frontier_table["curve"] == "point"]
    assert len(points) == 4
    assert points["certified"].all()
    assert (points["bound"] <= points["objective"]).all()


def test_the_least_epsilon_of_a_frontier_decreases_with_the_loss(frontier_table: pd.DataFrame):
    epsilons = frontier_table[frontier_table["mechanism"] == "least epsilon"]["objective"].tolist()
    assert epsilons == sorted(epsilons, reverse=True)


def test_the_discrete_gaussian_is_not_below_the_bound_under_renyi_dp(
    frontier_table: pd.DataFrame,
):
    renyi = frontier_table[frontier_table["notion"] == "renyi"]
    bounds = renyi[renyi["curve"] == "point"]["bound"].to_numpy()
    losses = renyi[renyi["mechanism"] == "discrete Gaussian"]["objective"].to_numpy()
    assert (losses >= bounds).all()


def test_the_losses_of_channels_under_renyi_dp_decrease_with_epsilon():
    query = wb.FiniteQuery("0..2", max_shift=1)
    table = wb.frontier(query, notion="renyi", alpha=2, epsilon="0.5,1").to_frame()
    assert table["objective"].is_monotonic_decreasing


def test_a_frontier_without_the_budget_of_its_notion_is_refused():
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
