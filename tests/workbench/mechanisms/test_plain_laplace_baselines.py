"""Test the mechanisms of Fig. 1 of the DQL paper against sums and integrals of their definitions.

The number x is uniform on [-1, 1].
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.stats import laplace

import workbench as wb
from workbench.families.laplace.family import FAMILY
from workbench.families.laplace.published import PUBLISHED
from workbench.mechanisms.dyadic_laplace.elias import Code, class_length
from workbench.mechanisms.dyadic_laplace.mean_length import UNIFORM_DATA, DataLaw
from workbench.mechanisms.dyadic_laplace.plain_baselines import (
    compute_quantized_bits,
    compute_quantized_mse,
    describe_dithering,
    describe_laplace,
    describe_quantized_laplace,
)

# Midpoints of many cells, whose average is the integral over x.
INPUTS = np.linspace(-1, 1, 4001)[:-1] + 1 / 4000


def count_bits(m: np.ndarray, code: Code) -> np.ndarray:
    """Count the bits of the codewords of integers m: k = 2m for m > 0, otherwise 1 - 2m."""
    k = np.where(m > 0, 2 * m, 1 - 2 * m)
    return class_length(np.floor(np.log2(k)).astype(np.int64), code)


@pytest.mark.parametrize("code", ["gamma", "delta"])
@pytest.mark.parametrize(("epsilon", "step"), [(0.5, 0.7), (2.0, 0.3), (10.0, 1.7)])
def test_quantized_laplace_has_the_bits_and_error_of_its_law(
    epsilon: float, step: float, code: Code
) -> None:
    largest = math.ceil((1 + 45 / epsilon) / step)
    m = np.arange(-largest, largest + 1)
    upper = laplace.cdf(step * (m + 0.5) - INPUTS[:, None], scale=1 / epsilon)
    lower = laplace.cdf(step * (m - 0.5) - INPUTS[:, None], scale=1 / epsilon)
    law = upper - lower
    bits = (law @ count_bits(m, code)).mean()
    mse = (law * (step * m - INPUTS[:, None]) ** 2).sum(axis=1).mean()
    assert compute_quantized_bits(epsilon, step, code) == pytest.approx(bits, rel=1e-6)
    assert compute_quantized_mse(epsilon, step) == pytest.approx(mse, rel=1e-6)


def test_a_small_step_adds_the_variance_of_uniform_rounding() -> None:
    assert compute_quantized_mse(epsilon=1.0, step=0.01) == pytest.approx(
        2 + 0.01**2 / 12, rel=1e-9
    )


def test_the_error_of_a_step_of_1e_9_takes_no_sum_over_its_cells() -> None:
    """A sum over the 10^11 cells does not fit into memory. The rounding adds at most (w/2)²."""
    assert compute_quantized_mse(epsilon=1.0, step=1e-9) == pytest.approx(2, rel=1e-12)


@pytest.mark.parametrize(("epsilon", "step"), [(100.0, 0.3), (100.0, 2.0), (1e4, 0.7), (0.01, 9.0)])
def test_the_error_is_the_integral_over_the_density_of_the_noisy_number(
    epsilon: float, step: float
) -> None:
    """E[(w M - x)² | Z = z] is the average over x, whose pieces between jumps are cubes.

    The integral over z has nodes between the jumps of x + z at both ends of x.
    """

    def average_over_inputs(z: float) -> float:
        """Return the mean squared error at the noise z, averaged over uniform x."""
        first = math.floor((z - 1) / step + 0.5)
        last = math.floor((z + 1) / step + 0.5)
        messages = np.arange(first, last + 1)
        lower = np.maximum(step * (messages - 0.5) - z, -1)
        upper = np.minimum(step * (messages + 0.5) - z, 1)
        return float((((upper - step * messages) ** 3 - (lower - step * messages) ** 3) / 6).sum())

    last_z = 60 / epsilon
    positions = np.arange(-2 - last_z / step, 2 + last_z / step).round() + 0.5
    cuts = np.concatenate([step * positions - 1, step * positions + 1, np.linspace(0, last_z, 61)])
    cuts = np.unique(np.clip(cuts, 0, last_z))
    nodes, weights = np.polynomial.legendre.leggauss(12)
    total = 0.0
    for a, b in itertools.pairwise(cuts):
        for node, weight in zip(a + (b - a) * (1 + nodes) / 2, weights * (b - a) / 2, strict=True):
            density = epsilon * math.exp(-epsilon * node)  # Both signs of z together.
            total += weight * density * average_over_inputs(node)
    assert compute_quantized_mse(epsilon, step) == pytest.approx(total, rel=1e-9)


def test_the_law_of_quantized_laplace_has_the_epsilon_of_the_noise() -> None:
    """Rounding is post-processing, so the decoder has the guarantee ε |x - x'|, and no better."""
    epsilon = 2.0
    step = describe_quantized_laplace(epsilon, 5, "gamma").step
    assert step is not None
    edges = step * (np.arange(-40, 41) - 0.5)
    laws = np.diff(laplace.cdf(edges - np.array([[0.2], [0.6]]), scale=1 / epsilon), axis=1)
    loss = np.abs(np.log(laws[0] / laws[1])).max()
    assert loss == pytest.approx(epsilon * 0.4, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_dithering_has_the_bits_of_its_law(epsilon: float) -> None:
    """P(|M| >= h) is integrated over x in [0, 1] and the radius R with density ε² r e^(-εr)."""

    def compute_tail(h: float) -> float:
        """Compute P(|M| >= h)."""

        def integrand(r: float, x: float) -> float:
            """Return the density of R times the probability of |M| >= h at the radius r."""
            density = epsilon**2 * r * math.exp(-epsilon * r)
            return density * min(1.0, max(0.0, x / (2 * r) - h + 1))

        # The first part is |M| >= h for sure; beyond R = x/(2(h-1)) the event is impossible.
        total = 0.0
        cuts = [lambda x: 0.0, lambda x: x / (2 * h)]
        total += dblquad(integrand, 0, 1, *cuts, epsabs=1e-10)[0]
        end = (lambda x: 60 / epsilon) if h == 1 else (lambda x: x / (2 * (h - 1)))
        total += dblquad(integrand, 0, 1, lambda x: x / (2 * h), end, epsabs=1e-10)[0]
        return total

    lengths = class_length(np.arange(5), "gamma")
    partial_sum = float(lengths[0]) + sum(
        float(lengths[j] - lengths[j - 1]) * compute_tail(2.0 ** (j - 1)) for j in range(1, 5)
    )
    bits = describe_dithering(epsilon, "gamma").mean_bits
    # P(|M| >= 16) is at most E (ε x/(2·15))²/2, and further classes add a fourth of it each.
    remainder = 2 * (epsilon / 30) ** 2 / 6 * 4 / 3
    assert partial_sum - 1e-6 <= bits <= partial_sum + remainder + 1e-6


@pytest.mark.parametrize("epsilon", [1e-6, 1e6])
def test_dithering_at_extreme_budgets(epsilon: float) -> None:
    """At a small ε every message is 0 with one bit. A message has about log2 ε bits twice."""
    bits = describe_dithering(epsilon, "gamma").mean_bits
    if epsilon < 1:
        assert bits == pytest.approx(1 + epsilon / 2, rel=1e-6)
    else:
        assert 2 * math.log2(epsilon) - 6 < bits < 2 * math.log2(epsilon) + 3


def test_each_mechanism_of_fig_1_lacks_one_property_at_five_bits() -> None:
    plain = describe_laplace(1.0)
    quantized = describe_quantized_laplace(epsilon=1.0, bits=5, code="gamma")
    dithered = describe_dithering(1.0, "gamma")
    assert plain.mean_bits == math.inf
    assert quantized.mean_bits == pytest.approx(5)
    assert quantized.mse > plain.mse == dithered.mse == 2
    assert dithered.decoder_epsilon == math.inf
    assert quantized.decoder_epsilon == 1


def test_published_entries_have_the_columns_of_a_frontier() -> None:
    request = FAMILY.make_request(UNIFORM_DATA, epsilon=1, bits=5)
    rows = {entry.name: entry.row(request) for entry in PUBLISHED if entry.serves(request)}
    assert rows["Laplace"]["mean_bits"] == math.inf
    assert rows["dithering without local noise"]["decoder_epsilon"] == math.inf
    quantized = rows["quantized Laplace"]
    assert compute_quantized_bits(1.0, quantized["step"], "gamma") == pytest.approx(5)
    assert quantized["objective"] == pytest.approx(compute_quantized_mse(1.0, quantized["step"]))


def test_entries_are_for_uniform_numbers_and_more_than_one_bit_alone() -> None:
    other = FAMILY.make_request(DataLaw.uniform(0, 1), epsilon=1, bits=5)
    one_bit = FAMILY.make_request(UNIFORM_DATA, epsilon=1, bits=1)
    assert not [entry.name for entry in PUBLISHED if entry.serves(other)]
    names = {entry.name for entry in PUBLISHED if entry.serves(one_bit)}
    assert names == {"Laplace", "dithering without local noise"}


def test_a_frontier_lists_the_three_mechanisms_beside_dql() -> None:
    table = wb.frontier("laplace", epsilon="1", bits="5", ell="2").to_frame()
    rows = table.set_index("mechanism")
    assert rows.loc["quantized Laplace", "bits"] == 5
    dql = table[table["curve"] == "point"].iloc[0]
    assert 1 < dql["decoder_epsilon"] < rows.loc["dithering without local noise", "decoder_epsilon"]
    assert dql["objective"] < rows.loc["quantized Laplace", "objective"]
