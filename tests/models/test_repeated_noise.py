"""Noise for many runs: δ_T against every sequence of outcomes, its gradient, what is reached, what nobody reaches."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from models.line_losses import LineLoss
from models.line_program import LineProgram
from models.repeated_noise import ComposedDelta, best_losses, expected_loss, masses
from models.repeated_noise_bound import _composed, _worth, hockey_stick_bounds, run_bounds

LOSSES = np.array([0.513, 0.707, 0.811, 0.907, 1.003])


@functools.cache
def improved(runs: int, epsilon: float) -> np.ndarray:
    """The noise found in one region of trust."""
    return best_losses(runs, epsilon, 1e-5, np.square, rounds=1)


def laws(losses, most: int = 40):
    """P and Q = P(· + 1) on -most..most."""
    density, _ = masses(losses)
    whole = np.concatenate([density[most:0:-1], density[: most + 1]])
    return whole[:-1], whole[1:]


def test_masses_are_a_law_with_these_losses():
    density, every = masses(LOSSES)
    assert 2 * density.sum() - density[0] == pytest.approx(1, abs=1e-14)
    assert np.log(density[:-1] / density[1:]) == pytest.approx(every[:-1])
    assert every[:5].tolist() == LOSSES.tolist()
    assert set(every[5:]) == {1.003}


@pytest.mark.parametrize("runs", [1, 2, 3])
def test_delta_is_that_of_every_sequence_of_outcomes(runs):
    p, q = laws(LOSSES, 12)
    exact = 0.0
    for outcomes in itertools.product(range(p.size), repeat=runs):
        exact += max(0.0, np.prod(p[list(outcomes)]) - math.exp(1.5) * np.prod(q[list(outcomes)]))
    assert (
        exact - 1e-12 <= ComposedDelta(runs, 1.5, 14.0)(LOSSES) <= exact * 1.001 + 1e-12
    )  # losses on a grid: from above


@pytest.mark.parametrize("loss", [np.square, np.abs, lambda k: (k > 0).astype(float)])
def test_gradients_are_differences(loss):
    composed = ComposedDelta(4, 2.0, 14.0)
    _, slope = composed.gradient(LOSSES)
    value, steep = expected_loss(LOSSES, loss)
    density, _ = masses(LOSSES)
    assert value == pytest.approx(2 * density @ loss(np.arange(density.size, dtype=float)))
    for j, step in enumerate(np.eye(5) * 1e-6):
        assert slope[j] == pytest.approx((composed(LOSSES + step) - composed(LOSSES - step)) / 2e-6, abs=1e-6)
        ends = [expected_loss(LOSSES + sign * step, loss)[0] for sign in (1, -1)]
        assert steep[j] == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-6)


@pytest.mark.parametrize(("runs", "epsilon", "most"), [(16, 4.0, 17.70)])
def test_the_noise_for_many_runs_beats_geometric_and_gaussian(runs, epsilon, most):
    best = improved(runs, epsilon)
    reached = expected_loss(best, np.square)[0]
    assert reached <= most
    assert np.all(np.diff(best[: best.size // 2]) > -1e-3)  # where there is mass
    finest = ComposedDelta(runs, epsilon, min(epsilon + 12, 1.05 * runs * float(best.max())))
    assert finest(best) <= 1.02e-5  # grids differ
    geometric = np.full(60, epsilon / runs)
    assert reached < expected_loss(geometric, np.square)[0]


def composed_letters(runs: int, epsilon: float, p: float, ratio: float) -> float:
    ratios = np.array([ratio])
    return float(_composed(runs, np.array([p]), ratios, _worth(runs, epsilon, ratios))[0])


@pytest.mark.parametrize("runs", [1, 3])
def test_letters_compose_as_every_sequence_does(runs):
    p, ratio = 0.3, 0.4
    one, two = np.array([p, ratio * p, 1 - p * (1 + ratio)]), np.array([ratio * p, p, 1 - p * (1 + ratio)])
    exact = sum(
        max(0.0, np.prod(one[list(word)]) - math.exp(0.7) * np.prod(two[list(word)]))
        for word in itertools.product(range(3), repeat=runs)
    )
    assert exact * (1 - 2e-9) <= composed_letters(runs, 0.7, p, ratio) <= exact


def exact_letters(runs: int, epsilon: float, p: float, ratio: float) -> Decimal:
    """The same from every count of letters, to 80 digits."""
    with localcontext(prec=80):
        up, down, total = Decimal(p), Decimal(ratio) * Decimal(p), Decimal(0)
        for plus in range(runs + 1):
            for minus in range(runs + 1 - plus):
                ways = math.comb(runs, plus) * math.comb(runs - plus, minus)
                mass = ways * up**plus * down**minus * (1 - up - down) ** (runs - plus - minus)
                total += mass * max(Decimal(0), 1 - Decimal(epsilon).exp() * Decimal(ratio) ** (plus - minus))
        return total


@pytest.mark.parametrize(("runs", "epsilon"), [(2, 1.0), (5, 0.3), (16, 4.0)])
def test_letters_are_rounded_down_where_delta_is_tiny(runs: int, epsilon: float):
    """About the ratio of pure privacy δ_T is as small as rounding errors are."""
    pure = math.exp(-epsilon / runs)
    near = [pure * (1 + k * 2.0**-52) for k in range(-6, 7)] + [0.999 * pure, 0.9 * pure]
    for ratio in near:
        for p in (1e-3, 0.3, 1 / (1 + ratio) - 1e-16):
            exact = exact_letters(runs, epsilon, p, ratio)
            assert composed_letters(runs, epsilon, p, ratio) <= exact
            assert composed_letters(runs, epsilon, p, ratio) >= float(exact) * (1 - 1e-8) - 1e-13


@pytest.mark.parametrize("delta", [1e-12, 1e-25])
@pytest.mark.parametrize(("runs", "epsilon"), [(2, 1.0), (7, 3.0)])
def test_pure_noise_is_below_the_bounds_at_any_delta(runs: int, epsilon: float, delta: float):
    levels = np.exp(np.array([0.0, 0.5, 0.9, 0.999]) * epsilon / runs)
    highest = hockey_stick_bounds(runs, epsilon, delta, levels)
    for level, bound in zip(levels, highest, strict=True):
        ratio = (-Decimal(epsilon) / runs).exp()
        assert Decimal(float(bound)) >= (1 - Decimal(float(level)) * ratio) / (1 + ratio)


@pytest.mark.parametrize(("runs", "epsilon"), [(2, 1.0), (4, 2.0), (16, 4.0)])
def test_what_no_noise_exceeds_is_not_exceeded(runs, epsilon):
    """Hockey sticks of one run of feasible noise stay below h(E), its loss above the program's bound."""
    best = improved(runs, epsilon)
    composed = ComposedDelta(runs, epsilon, epsilon + 12)
    levels = np.exp(np.linspace(0, 1.5 * epsilon / math.sqrt(runs), 6))
    highest = hockey_stick_bounds(runs, epsilon, 1e-5, levels)
    for losses in (best, np.full(60, epsilon / runs), (np.arange(60) + 0.5) / 20.0):
        if composed(losses) > 1e-5 * 1.05:
            continue
        p, q = laws(losses, 59)
        assert np.all(np.maximum(0, p[:, None] - levels * q[:, None]).sum(axis=0) <= highest + 1e-9)
    assert np.all(np.diff(highest) <= 0)
    bounds = run_bounds(runs, epsilon, 1e-5, levels=24)
    proven = float(LineProgram(1, 40, [LineLoss.named("squared").at], bounds).solve().bound)
    assert 0.6 * expected_loss(best, np.square)[0] < proven <= expected_loss(best, np.square)[0]


def test_runs_of_a_mixture_with_the_mirror_image_are_less_private():
    """Why the bound is one for symmetric noise: exact, by two runs of three letters."""
    p, q = (Fraction(0), Fraction(1, 2), Fraction(1, 2)), (Fraction(1, 10), Fraction(1, 10), Fraction(8, 10))

    def delta(p: Sequence[Fraction], q: Sequence[Fraction]) -> Fraction:
        return sum(
            (max(Fraction(0), a * b - 3 * c * d) for a, c in zip(p, q, strict=True) for b, d in zip(p, q, strict=True)),
            Fraction(0),
        )

    def mixed(first: Sequence[Fraction], second: Sequence[Fraction]) -> list[Fraction]:
        return [(first[k] + second[m]) / 2 for k, m in ((0, 1), (1, 0), (2, 2))]

    assert (delta(p, q), delta(q, p)) == (Fraction(24, 100), Fraction(19, 100))
    assert delta(mixed(p, q), mixed(q, p)) == Fraction(2775, 10**4)
