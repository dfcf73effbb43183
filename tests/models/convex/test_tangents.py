"""Tests of the tangents of convex bounds, and of designs that are found by adding tangents."""

from __future__ import annotations

import numpy as np
import pytest

import workbench as wb
from workbench.models.convex.requirements import HOCKEY_STICK, POWER_CONE, RELATIVE_ENTROPY, Bound
from workbench.models.convex.tangents import compute_tangents, evaluate_terms, max_term_sum


def divergence(bound: Bound, p: np.ndarray, q: np.ndarray) -> float:
    """Return the number that a bound limits, for two laws p and q."""
    if bound.kind == HOCKEY_STICK:
        return float(np.maximum(0, p - bound.level * q).sum())
    if bound.kind == POWER_CONE:
        return float((p**bound.level * q ** (1 - bound.level)).sum())
    return float((p * np.log(p / q)).sum())


@pytest.mark.parametrize(
    ("kind", "level"),
    [(HOCKEY_STICK, 1.7), (POWER_CONE, 3.0), (POWER_CONE, 24.0), (RELATIVE_ENTROPY, 1.0)],
)
def test_a_bound_implies_its_tangents_and_they_are_tight(kind, level):
    """Tangents at random laws (r, s) hold for laws (p, q) at the limit; tangents at (p, q) touch."""
    source = np.random.default_rng(1)
    nearly_tight_count = 0
    for _ in range(300):
        p, q, r, s = source.dirichlet(np.full(6, source.choice([0.2, 1.0, 5.0])), size=4) + 1e-9
        p, q, r, s = (law / law.sum() for law in (p, q, r, s))
        if source.random() < 0.5:
            # These laws are near (p, q), so that their tangents are nearly tight.
            r = p * source.uniform(low=0.95, high=1.05, size=6)
            s = q * source.uniform(low=0.95, high=1.05, size=6)
        bound = Bound(kind, level, divergence(Bound(kind, level, limit=1.0), p, q))
        a, b = compute_tangents(bound, r, s)
        terms = np.maximum(a * p + b * q, 0.0).sum()
        assert terms <= max_term_sum(bound) + 1e-12 * bound.limit
        nearly_tight_count += terms > 0.5 * max_term_sum(bound)
        if bound.limit < 1e4 and (p / q).max() < 50 and (q / p).max() < 50:
            a, b = compute_tangents(bound, p, q)
            touching_terms = np.maximum(a * p + b * q, 0.0).sum()
            assert touching_terms == pytest.approx(max_term_sum(bound), rel=1e-6, abs=1e-9)
    assert nearly_tight_count > 3


@pytest.mark.parametrize(
    ("question", "request_"),
    [
        # The conic solver ends inaccurate here.
        (wb.Labels([0, 1, 2]), {"method": "lp", "notion": "zcdp", "rho": "0.1"}),
        # The conic solver ends 2 % from its bound here.
        (wb.Labels([0, 1, 2, 4]), {"method": "lp", "notion": "zcdp", "rho": "0.1"}),
        (
            wb.Labels([0, 1, 2, 4]),
            {"method": "lp", "notion": "renyi", "alpha": "32", "epsilon": "2"},
        ),
        (
            wb.ModuloNoise(n=6, max_shift=2),
            {"loss": "squared", "notion": "renyi", "alpha": "200", "epsilon": "3"},
        ),
    ],
    ids=["inaccurate", "far", "renyi-32", "renyi-200"],
)
def test_designs_for_which_a_conic_solver_is_inaccurate_have_a_tight_bound(question, request_):
    design = wb.design(question, **request_)
    assert design.certificate is not None
    assert 0 <= design.objective - design.bound <= 2e-6 * design.objective


@pytest.mark.parametrize(
    ("question", "request_", "min_loss"),
    [
        # With the worst prior the largest loss is a column beside the masses.
        (
            wb.FiniteQuery(range(5), [6, 8], neighbours="consecutive", prior="worst"),
            {
                "loss": [[0, 7], [1.5, 2.2], [10, 8], [0.8, 5.5], [2.4, 2]],
                "notion": "renyi",
                "alpha": 8,
                "epsilon": 2,
            },
            8.0,  # Every input may publish 8.
        ),
        (
            wb.FiniteQuery(range(3), [-3, 4, 5, 8], neighbours="all", prior="worst"),
            {"loss": "absolute", "notion": "zcdp", "rho": 1},
            None,
        ),
        # Unused outputs have masses of 1e-7, the solver's tolerance, at extreme ratios.
        (
            wb.FiniteQuery(range(3), range(5), neighbours="all", prior=[3, 7, 2]),
            {"loss": "pinball:0.3", "notion": "zcdp", "rho": "0.1"},
            None,
        ),
        (
            wb.FiniteQuery(range(4), [-2, -1, 1, 2], neighbours="all"),
            {"loss": "error-rate", "notion": "gdp", "mu": 2},
            None,
        ),
    ],
    ids=["epigraph-renyi", "epigraph-zcdp", "useless-outputs", "four-inputs-gdp"],
)
def test_channels_under_convex_bounds_have_a_tight_bound(question, request_, min_loss):
    design = wb.design(question, **request_)
    assert design.certificate is not None
    assert -1e-12 <= design.objective - design.bound <= 1e-5 * design.objective
    if min_loss is not None:
        assert design.objective == pytest.approx(min_loss, rel=1e-9)


def test_terms_count_a_mass_at_an_extreme_ratio():
    """The ratio 1e9 is beyond the steepest tangent, which would not count it in full."""
    p = np.array([1 - 1e-5, 1e-5])
    q = np.array([1 - 1e-14, 1e-14])
    bound = Bound(POWER_CONE, level=2.3, limit=5.0)
    assert evaluate_terms(bound, p, q).sum() == pytest.approx(
        divergence(Bound(POWER_CONE, level=2.3, limit=1.0), p, q) - 1
    )
    assert evaluate_terms(Bound(RELATIVE_ENTROPY, level=1.0, limit=1e-5), p, q).sum() > 2e-5
