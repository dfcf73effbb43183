"""What T runs allow one run: rounded down against exact sums, and never below what private mechanisms do."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

from models.composed_event_bound import composed_event, event_bounds


def exact_event(runs: int, epsilon: float, p: float, n: float) -> Decimal:
    """δ_T(p, n) to 60 digits."""
    with localcontext(prec=60):
        a, b, total = Decimal(p), Decimal(n), Decimal(0)
        factor = Decimal(epsilon).exp()

        def power(base: Decimal, k: int) -> Decimal:
            return base**k if k else Decimal(1)

        for k in range(runs + 1):
            here, there = (power(x, k) * power(1 - x, runs - k) for x in (a, b))
            total += math.comb(runs, k) * max(Decimal(0), here - factor * there)
        return total


@pytest.mark.parametrize(("runs", "epsilon"), [(1, 0.5), (2, 1.0), (5, 0.7), (16, 4.0)])
def test_events_are_rounded_down(runs: int, epsilon: float):
    ratio = math.exp(-epsilon / runs)
    points = [(0.3, 0.3 * ratio * (1 + k * 2.0**-52)) for k in range(-3, 4)]
    points += [(1.0, 0.0), (1.0, 0.7), (0.4, 0.0), (1e-6, 1e-9), (1 - 1e-9, 0.5), (0.9, 0.89), (1.0, 1.0), (0.0, 0.0)]
    found = composed_event(runs, epsilon, *np.array(points).T)
    for (p, n), value in zip(points, found.tolist(), strict=True):
        exact = exact_event(runs, epsilon, p, n)
        assert Decimal(value) <= exact
        assert value >= float(exact) * (1 - 3e-9) - 1e-14


@pytest.mark.parametrize(("runs", "epsilon", "delta"), [(2, 1.0, 1e-5), (8, 3.0, 1e-12), (16, 4.0, 1e-3)])
def test_no_private_pair_exceeds_the_bounds(runs: int, epsilon: float, delta: float):
    levels = np.exp(epsilon / runs * np.array([0.0, 0.5, 0.99, 1.5]))
    highest = event_bounds(runs, epsilon, delta, levels)
    assert np.all(np.diff(highest) <= 0)
    ratio = math.exp(-epsilon / runs)
    response = (1 - levels * ratio) / (1 + ratio)  # randomised response, ε/T-private
    assert np.all(highest >= response)
    revealed = 1 - (1 - delta) ** (1 / runs)  # an event that Q cannot produce
    assert np.all(highest >= revealed)
    assert highest[0] < 1
