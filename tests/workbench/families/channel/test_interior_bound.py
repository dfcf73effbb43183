"""Test that lower bounds from multipliers never exceed the optimum of a convex program stated here.

The notions have several bounds for each pair of neighbours, such as Rényi DP and zCDP.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from statistics import NormalDist

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog

import workbench as wb
from workbench.families.channel import problem
from workbench.families.channel.family import FAMILY
from workbench.families.channel.interior_bound import bound_smooth_loss, solve_by_interior_point
from workbench.families.channel.proof import bound_least_loss
from workbench.families.channel.repair import Edges
from workbench.models.convex.requirements import POWER_CONE, RELATIVE_ENTROPY, Bound
from workbench.notions.gdp import GDP
from workbench.pipeline.loss_tables import LossTable

# The ordered pairs of neighbours among three consecutive inputs.
LINE = [(0, 1), (1, 0), (1, 2), (2, 1)]


def solve_convex_program(
    losses: np.ndarray,
    prior: np.ndarray | None,
    power_limits: dict[float, float],
    max_entropy: float = 0,
) -> float:
    """Compute the smallest loss of a channel on a line with CVXPY and Clarabel.

    Args:
        losses: shape (k, m). Consecutive inputs are neighbours.
        prior: shape (k,). None: the worst-case loss is minimised.
        power_limits: α -> largest Σ_o P(o)^α Q(o)^(1-α) of neighbouring rows P and Q.
        max_entropy: largest relative entropy of neighbouring rows. 0: not limited.
    """
    k, m = losses.shape
    M = cp.Variable((k, m), nonneg=True)
    constraints = [cp.sum(M, axis=1) == 1]
    for i, j in [(i, i + s) for i in range(k) for s in (-1, 1) if 0 <= i + s < k]:
        for alpha, limit in power_limits.items():
            t = cp.Variable(m)
            constraints.append(cp.sum(t) <= limit)
            constraints.append(cp.PowCone3D(t, M[j], M[i], np.full(m, 1 / alpha)))
        if max_entropy:
            constraints.append(cp.sum(cp.rel_entr(M[i], M[j])) <= max_entropy)
    answer_losses = cp.sum(cp.multiply(losses, M), axis=1)
    loss = cp.max(answer_losses) if prior is None else prior @ answer_losses
    return float(cp.Problem(cp.Minimize(loss), constraints).solve(solver="CLARABEL"))


@pytest.mark.parametrize(
    "prior", [(Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)), None], ids=["prior", "worst"]
)
def test_random_multipliers_and_tangents_prove_no_more_than_the_optimum(prior):
    rng = np.random.default_rng(3)
    table = LossTable("own", np.array(rng.integers(0, 9, (3, 5)), dtype=object), unit=4)
    bounds = [
        Bound(POWER_CONE, level=3.0, limit=1.4),
        Bound(RELATIVE_ENTROPY, level=1.0, limit=0.1),
    ]
    prior_floats = None if prior is None else np.array([float(p) for p in prior])
    optimum = solve_convex_program(table.floats, prior_floats, {3.0: 1.4}, max_entropy=0.1)
    largest_bound = -math.inf
    for size in np.repeat([0.01, 0.1, 1.0, 10.0], 25):
        weighted_bounds = [
            (bound, i, j, float(size * rng.random())) for i, j in LINE for bound in bounds
        ]
        # The rows are nearly uniform for large multipliers.
        masses = rng.dirichlet(np.full(5, 0.5 if size < 1 else 20.0), 3)
        proven = bound_smooth_loss(
            table, prior, weights=rng.random(3), weighted_bounds=weighted_bounds, masses=masses
        )
        largest_bound = max(largest_bound, float(proven))
    assert largest_bound <= optimum + 1e-7


@pytest.mark.parametrize("prior", ["5,2,1", "worst"])
@pytest.mark.parametrize(
    ("budget", "power_limits", "max_entropy"),
    [
        ({"notion": "renyi", "alpha": 3, "epsilon": "0.4"}, {3.0: math.exp(2 * 0.4)}, 0.0),
        # zCDP limits every order. Four orders and the relative entropy give a smaller optimum.
        (
            {"notion": "zcdp", "rho": "0.2"},
            {order: math.exp((order - 1) * 0.2 * order) for order in (1.5, 2.0, 3.0, 5.0)},
            0.2,
        ),
    ],
    ids=["renyi", "zcdp"],
)
def test_the_interior_point_method_proves_its_own_point(prior, budget, power_limits, max_entropy):
    query = wb.FiniteQuery("0..2", "0..2:0.25", max_shift=1, prior=prior)
    request = FAMILY.make_request(query, **budget)
    masses, bound = solve_by_interior_point(request)
    losses = request.losses.floats
    answer_losses = (masses * losses).sum(axis=1)
    weights = request.prior_weights
    loss = answer_losses.max() if weights is None else weights @ answer_losses
    assert float(bound) <= loss + 1e-9
    assert loss - float(bound) <= 1e-4 * loss
    optimum = solve_convex_program(losses, weights, power_limits, max_entropy)
    assert optimum - 1e-6 <= loss
    if budget["notion"] == "renyi":
        assert float(bound) <= optimum + 1e-6


def test_a_design_on_a_fine_list_of_outputs_agrees_with_the_convex_program():
    query = wb.FiniteQuery("0..2", "0..2:0.05", max_shift=1)
    design = wb.design(query, notion="renyi", alpha=4, epsilon="0.8")
    losses = (np.linspace(0, 2, 41) - np.arange(3)[:, None]) ** 2
    optimum = solve_convex_program(losses, np.full(3, 1 / 3), {4.0: math.exp(3 * 0.8)})
    assert design.bound <= optimum + 1e-7
    assert optimum - 1e-6 <= design.objective <= design.bound * 1.01


def test_random_multipliers_of_several_hockey_sticks_prove_no_more_than_the_optimum():
    """Every pair has three (ε, δ). The optimum is computed by SciPy for three inputs, four outputs."""
    rng = np.random.default_rng(11)
    table = LossTable("own", np.array(rng.integers(0, 9, (3, 4)), dtype=object), unit=3)
    budgets = [
        (Fraction(0), Fraction(1, 4)),
        (Fraction(1, 2), Fraction(1, 10)),
        (Fraction(-1, 2), Fraction(9, 20)),
    ]
    sticks = [(pair, *budget) for pair in LINE for budget in budgets]
    # The variables are the 12 masses, and the excess of each hockey stick at each output.
    variable_count = 12 + 4 * len(sticks)
    upper_rows = []
    upper_limits = []
    for index, ((i, j), epsilon, delta) in enumerate(sticks):
        first_excess = 12 + 4 * index
        for o in range(4):
            row = np.zeros(variable_count)
            row[[4 * i + o, 4 * j + o, first_excess + o]] = 1, -math.exp(epsilon), -1
            upper_rows.append(row)
            upper_limits.append(0.0)
        row = np.zeros(variable_count)
        row[first_excess : first_excess + 4] = 1
        upper_rows.append(row)
        upper_limits.append(float(delta))
    objective = np.concatenate([(table.floats / 3).ravel(), np.zeros(variable_count - 12)])
    row_sums = np.hstack([np.kron(np.eye(3), np.ones(4)), np.zeros((3, variable_count - 12))])
    solution = linprog(objective, upper_rows, upper_limits, row_sums, np.ones(3), method="highs")
    edges = Edges([pair for pair, _, _ in sticks], [epsilon for _, epsilon, _ in sticks])
    deltas = [delta for _, _, delta in sticks]
    prior = [Fraction(1, 3)] * 3
    for _ in range(50):
        multipliers = rng.random((len(sticks), 4)) * rng.choice([0.01, 0.1, 1])
        bound = bound_least_loss(table, prior, edges, deltas, multipliers={"ratio": multipliers})
        assert bound <= solution.fun + 1e-9
    solver_multipliers = -solution.ineqlin.marginals.reshape(len(sticks), 5)[:, :4]
    bound = bound_least_loss(table, prior, edges, deltas, multipliers={"ratio": solver_multipliers})
    assert float(bound) == pytest.approx(solution.fun, abs=1e-9)


@pytest.mark.parametrize("mu", ["0.1", "1", "3", "8"])
def test_sufficient_hockey_sticks_imply_gaussian_dp(mu):
    """Two consecutive hockey sticks P - e^ε Q <= δ allow no point (P, Q) beyond the curve of GDP.

    The worst point is where both are equations. It must have Φ^-1(P) - Φ^-1(Q) <= μ, up to the
    rounding of ε to multiples of 2^-14.
    """
    grid = GDP().hockey_stick_grid({"mu": Fraction(mu)})
    for (_, stick), (_, next_stick) in pairwise(grid):
        ratio = math.exp(stick.epsilon)
        next_ratio = math.exp(next_stick.epsilon)
        q = float(stick.delta - next_stick.delta) / (next_ratio - ratio)
        p = float(stick.delta) + ratio * q
        if p > 1e-9 and q > 1e-9:
            distance = NormalDist().inv_cdf(p) - NormalDist().inv_cdf(q)
            assert distance <= float(mu) * (1 + 1e-4)


@pytest.mark.parametrize("mu", ["0.1", "1", "3", "8"])
def test_implied_hockey_sticks_are_those_of_two_normal_laws(mu):
    """The hockey stick of N(μ, 1) and N(0, 1) at ε is Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ)."""

    def upper_tail(x: float) -> float:
        """Return 1 - Φ(x), with all digits for large x."""
        return math.erfc(x / 2**0.5) / 2

    shift = float(mu)
    for implied, sufficient in GDP().hockey_stick_grid({"mu": Fraction(mu)})[:-1]:
        assert sufficient.epsilon == implied.epsilon
        assert sufficient.delta < implied.delta
        middle = float(implied.epsilon) / shift
        delta = upper_tail(middle - shift / 2)
        delta -= math.exp(implied.epsilon) * upper_tail(middle + shift / 2)
        assert delta <= float(implied.delta) <= delta + 1e-12


@pytest.mark.parametrize(
    ("answers", "outputs", "budget"),
    [
        ("0..3", "0..3:0.5", {"notion": "gdp", "mu": 3}),
        ("0..3", "0..3:0.5", {"notion": "gdp", "mu": "0.1"}),
        ("0..3", "0..3:0.25", {"notion": "zcdp", "rho": "0.1"}),
        ("0..20", None, {"notion": "renyi", "alpha": 8, "epsilon": "0.5"}),
    ],
    ids=str,
)
def test_channels_on_listed_outputs_are_proven_within_one_percent(answers, outputs, budget):
    design = wb.design(wb.FiniteQuery(answers, outputs, max_shift=1), **budget)
    assert design.certificate is not None
    assert design.objective * 0.99 <= design.bound <= design.objective


def test_the_interior_point_method_proves_a_channel_that_tangents_do_not():
    query = wb.FiniteQuery("0..20", max_shift=1)
    design = wb.design(query, notion="zcdp", rho="0.1", loss="absolute")
    assert 0.999 * design.objective <= design.bound <= design.objective


@pytest.mark.parametrize(
    "budget", [{"notion": "gdp", "mu": 1}, {"notion": "zcdp", "rho": "0.1"}], ids=str
)
def test_the_absolute_loss_needs_no_outputs_between_answers(budget):
    options = {"loss": "absolute", **budget}
    on_answers = wb.design(wb.FiniteQuery("0..3", "0..3", max_shift=1), **options)
    on_halves = wb.design(wb.FiniteQuery("0..3", "0..3:0.5", max_shift=1), **options)
    assert on_answers.objective - on_answers.bound <= 1e-6 * on_answers.objective
    assert on_halves.objective >= on_answers.bound


def test_a_large_channel_under_zcdp_has_the_loss_of_the_convex_program(monkeypatch):
    """The answers are 0..6. Programs of more than 10 masses count as large here.

    The convex program limits the relative entropy and order 2. Its optimum is a lower bound on the
    optimum under zCDP, which also limits every other order. Here it is the optimum.
    """
    monkeypatch.setattr(problem, "MAX_INTERIOR_COLUMNS", 10)
    query = wb.FiniteQuery("0..6", max_shift=1)
    design = wb.design(query, loss="squared", notion="zcdp", rho="0.5")
    assert design.route == "interior method"
    assert design.certificate is not None
    assert design.objective - design.bound <= 1e-6 * design.objective
    losses = (np.arange(7)[:, None] - np.arange(7)) ** 2.0
    optimum = solve_convex_program(losses, np.full(7, 1 / 7), {2.0: math.e}, max_entropy=0.5)
    assert design.objective == pytest.approx(optimum, rel=1e-6)


def test_tangents_answer_if_the_interior_method_has_no_start(monkeypatch):
    monkeypatch.setattr(problem, "MAX_INTERIOR_COLUMNS", 10)
    monkeypatch.setattr(problem, "solve_by_interior_point", lambda request: None)
    design = wb.design(wb.FiniteQuery("0..3", max_shift=1), notion="zcdp", rho="0.1")
    assert design.route == "tangents"


def test_a_channel_with_an_interval_is_returned_if_its_method_is_exhausted(monkeypatch):
    """The bound is replaced by one that is 5e-4 below the loss, which is within the accepted gap."""
    solve = problem.solve_by_interior_point

    def solve_with_gap(request):
        """Solve the request, and lower its bound."""
        masses, bound = solve(request)
        return masses, bound * (1 - Fraction(5, 10_000))

    monkeypatch.setattr(problem, "MAX_INTERIOR_COLUMNS", 10)
    monkeypatch.setattr(problem, "solve_by_interior_point", solve_with_gap)
    design = wb.design(wb.FiniteQuery("0..3", max_shift=1), notion="zcdp", rho="0.1")
    assert design.certificate is not None
    assert design.status == "stopped"
    assert f"the optimum lies between {design.bound:.9g} and" in design.words[-1]
