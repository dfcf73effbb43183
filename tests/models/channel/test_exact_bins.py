"""The bound of the best bins against the optimum in rational arithmetic."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import accumulate, product

import pytest

from workbench.models.oracles.bins import optimal_bins


@pytest.mark.parametrize("loss", ["absolute", "squared"])
def test_the_bound_is_below_the_exact_optimum_over_all_partitions(loss: str):
    """In rational arithmetic, one bin among them: the rounding of floats is taken off."""
    source = random.Random(loss)
    for _ in range(100):
        k = source.randint(2, 5)
        x = [Fraction(v / 1000) for v in sorted(source.sample(range(1000), k))]
        weights = [Fraction(source.choice([1, 1, 2, 5, 1000])) for _ in range(k)]
        epsilon = source.choice([1e-9, 1e-4, 0.01, 0.3, 1.0, 4.0, 12.0, 25.0])
        q, worth = Fraction(math.expm1(epsilon)), []
        for cuts in product((0, 1), repeat=k - 1):
            bins, total = [0, *accumulate(cuts)], Fraction(0)
            for own in range(bins[-1] + 1):
                w = [
                    weight / sum(weights) * (1 + q * (at == own))
                    for weight, at in zip(weights, bins, strict=True)
                ]
                outputs = (
                    x
                    if loss == "absolute"
                    else [sum(a * b for a, b in zip(w, x, strict=True)) / sum(w)]
                )
                size = 1 if loss == "absolute" else 2
                total += min(
                    sum(a * abs(o - b) ** size for a, b in zip(w, x, strict=True)) for o in outputs
                )
            worth.append(total / (bins[-1] + 1 + q))
        bound = optimal_bins(
            [float(v) for v in x], [float(v) for v in weights], epsilon, loss
        ).bound
        assert min(worth) * (1 - Fraction(1, 10**9)) <= bound <= min(worth)
