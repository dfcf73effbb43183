"""Tests of the lower bound of RR-on-Bins against the optimum in rational arithmetic."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import accumulate, product

import pytest

from workbench.models.oracles.bins import optimal_bins


@pytest.mark.parametrize("loss", ["absolute", "squared"])
def test_the_bound_is_below_the_exact_optimum_over_all_partitions(loss: str):
    """The bound is computed in floats and lowered by more than their rounding errors."""
    source = random.Random(loss)
    for _ in range(100):
        k = source.randint(2, 5)
        labels = [Fraction(v / 1000) for v in sorted(source.sample(range(1000), k))]
        weights = [Fraction(source.choice([1, 1, 2, 5, 1000])) for _ in range(k)]
        epsilon = source.choice([1e-9, 1e-4, 0.01, 0.3, 1.0, 4.0, 12.0, 25.0])
        q = Fraction(math.expm1(epsilon))
        # A cut of 1 between two labels starts a new bin.
        min_loss = min(
            partition_loss(labels, weights, q, bin_of_label=[0, *accumulate(cuts)], loss=loss)
            for cuts in product((0, 1), repeat=k - 1)
        )
        bound = optimal_bins(
            list(map(float, labels)), list(map(float, weights)), epsilon, loss
        ).bound
        assert min_loss * (1 - Fraction(1, 10**9)) <= bound <= min_loss


def partition_loss(
    labels: list[Fraction], weights: list[Fraction], q: Fraction, bin_of_label: list[int], loss: str
) -> Fraction:
    """Return the exact loss of randomized response on the bins of a partition; q is e^ε - 1."""
    bin_count = bin_of_label[-1] + 1
    power = 1 if loss == "absolute" else 2
    total = Fraction(0)
    for j in range(bin_count):
        w = [
            weight / sum(weights) * (1 + q * (label_bin == j))
            for weight, label_bin in zip(weights, bin_of_label, strict=True)
        ]
        # The best output is a label for absolute loss, and the mean for squared loss.
        outputs = labels
        if loss == "squared":
            outputs = [sum(a * y for a, y in zip(w, labels, strict=True)) / sum(w)]
        total += min(
            sum(a * abs(o - y) ** power for a, y in zip(w, labels, strict=True)) for o in outputs
        )
    return total / (bin_count + q)
