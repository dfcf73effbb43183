"""Tests of RR-on-Bins (Ghazi et al. 2022): the bins with the smallest expected loss.

`optimal_bins` is fast and `printed_bins` is the algorithm of the paper. They are compared with each
other, and with the loss of the channel that their bins define.
"""

from __future__ import annotations

import math
import subprocess
import sys
from fractions import Fraction
from functools import partial
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.models.losses import parse_loss
from workbench.models.oracles import bins, monge

LOSSES = ("squared", "absolute", "poisson", "poisson-deviance", "pinball:0.8")


def channel_loss(
    chosen_bins: bins.Bins, labels: np.ndarray, prior: np.ndarray, epsilon: float, loss: str
) -> float:
    """Return the expected loss of randomized response on bins, from the matrix of its channel."""
    exp_epsilon = math.exp(epsilon)
    bin_count = chosen_bins.d
    loss_function = parse_loss(loss)
    expected_loss = 0.0
    for i, label in enumerate(labels):
        own_bin = max(j for j in range(bin_count) if chosen_bins.starts[j] <= i)
        for j, output in enumerate(chosen_bins.values):
            weight = exp_epsilon if j == own_bin else 1
            mass = weight / (exp_epsilon + bin_count - 1)
            expected_loss += prior[i] / prior.sum() * mass * float(loss_function(output, label))
    return expected_loss


def check_bins(
    labels: np.ndarray, prior: np.ndarray, epsilon: float, loss: str, rel: float = 1e-9
) -> None:
    """Check that both algorithms and the channel have the same loss, and that the bound is tight."""
    fast = bins.optimal_bins(labels, prior, epsilon, loss)
    printed = bins.printed_bins(labels, prior, epsilon, loss)
    largest_label = labels.max()
    size = largest_label * (1 + abs(math.log(max(largest_label, 1e-9))))
    if loss == "squared":
        size = np.ptp(labels) ** 2
    # The sums of the printed algorithm cancel, which costs digits in units of the largest loss.
    tolerance = rel * abs(printed.objective) + 1e-12 * size
    assert abs(fast.objective - printed.objective) <= tolerance
    expected_loss = channel_loss(fast, labels, prior, epsilon, loss)
    assert fast.objective == pytest.approx(expected_loss, rel=1e-9, abs=1e-12 * size)
    assert fast.bound <= fast.objective
    assert fast.bound >= fast.objective - 1e-10 * size
    assert fast.starts[0] == 0
    assert (np.diff(fast.starts) > 0).all()


@pytest.mark.parametrize(
    ("labels", "prior", "epsilon", "loss", "stored_loss", "bin_count"),
    [
        (np.arange(21.0), None, 0.5, "squared", 35.0205916791, 2),
        (np.arange(21.0), None, 4, "squared", 6.75867268725, 4),
        (np.arange(21.0), None, 1, "absolute", 4.47836540514, 2),
        (np.arange(21.0), None, 2, "poisson", -13.8539307418, 2),
        (np.arange(31.0), 0.8 ** np.arange(31), 4, "squared", 5.26975709484, 4),
        (np.arange(31.0), 0.8 ** np.arange(31), 2, "absolute", 2.12674082007, 3),
        (np.arange(20.0) ** 2, 1 / np.arange(1, 21), 1, "squared", 6245.94252704, 2),
        (np.arange(20.0) ** 2, 1 / np.arange(1, 21), 4, "absolute", 16.9610234662, 6),
    ],
)
def test_stored_optima_and_numbers_of_bins(labels, prior, epsilon, loss, stored_loss, bin_count):
    """The stored losses are values of the current program, pinned. Prior None is uniform."""
    for search in (bins.optimal_bins, bins.printed_bins):
        result = search(labels, prior, epsilon, loss)
        assert result.objective == pytest.approx(stored_loss, rel=1e-11)
        assert result.d == bin_count


# The counter-example.
Y = np.array([5.0, 8, 10, 14])  # Labels.
P = np.array([25.0, 5, 2, 4]) / 36  # Their prior.
Q = 2.0  # e^ε - 1.


def counter_example_loss(r: int, i: int, *, is_clamped: bool) -> float:
    """Return the loss of the bin of labels r..i-1, by trying every label as its output.

    A clamped output is at most one label outside the bin.
    """
    output_indices = [j for j in range(4) if not is_clamped or r - 1 <= j <= i]
    weights = np.where((np.arange(4) >= r) & (np.arange(4) < i), 1 + Q, 1.0)
    return min(float(P * weights @ np.abs(Y[j] - Y)) for j in output_indices)


def test_losses_of_the_counter_example_are_monge_only_with_clamped_outputs():
    """A loss w of bins is Monge if w(a, c) + w(b, d) <= w(a, d) + w(b, c) for a < b <= c < d."""
    result = bins.optimal_bins(Y, P, math.log(3), "absolute")
    assert result.objective == pytest.approx(float(Fraction(55, 36)), rel=1e-14)
    quadruples = [(a, b, c, d) for a, b, c, d in combinations(range(5), 4)] + [
        (a, b, b, d) for a, b, d in combinations(range(5), 3)
    ]

    def compute_monge_gap(quadruple: tuple[int, ...], *, is_clamped: bool) -> float:
        """Return the right side minus the left side of the Monge condition."""
        a, b, c, d = quadruple
        if b == c:
            return 0.0
        w = partial(counter_example_loss, is_clamped=is_clamped)
        return w(a, d) + w(b, c) - w(a, c) - w(b, d)

    assert min(compute_monge_gap(quadruple, is_clamped=False) for quadruple in quadruples) < -1e-3
    assert min(compute_monge_gap(quadruple, is_clamped=True) for quadruple in quadruples) > -1e-12


@pytest.mark.parametrize("loss", LOSSES)
def test_the_clamped_loss_is_monge(loss):
    rng = np.random.default_rng(5)
    for _ in range(6):
        k = 9
        y = np.sort(rng.uniform(0.5, 20, k))
        p = rng.dirichlet(np.full(k, 0.4))
        arguments = bins._build_partition_problem(
            y, p, math.expm1(rng.uniform(0.2, 6)), parse_loss(loss)
        )
        w = {
            (r, i): monge.interval_loss(arguments, r, i)
            for r in range(k)
            for i in range(r + 1, k + 1)
        }
        scale = max(w.values())
        for a, b, c, d in combinations(range(k + 1), 4):
            assert w[a, c] + w[b, d] <= w[a, d] + w[b, c] + 1e-12 * scale


priors = st.lists(st.floats(0, 1), min_size=1, max_size=14).filter(lambda p: sum(p) > 1e-3)


@settings(max_examples=120, deadline=None)
@given(
    priors,
    st.floats(math.log(0.01), math.log(12)),
    st.sampled_from(LOSSES),
    st.randoms(use_true_random=False),
)
def test_both_algorithms_equal_the_loss_of_the_channel(prior, log_epsilon, loss, random):
    labels = np.cumsum([random.choice([1, 1, 2, 0.25, 7]) for _ in prior])
    check_bins(labels, np.array(prior), math.exp(log_epsilon), loss)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 12.0])
def test_priors_near_a_point_mass_with_ties_or_with_zeros(loss, epsilon):
    labels = np.arange(1.0, 13)
    for prior in (
        np.eye(12)[4] + 1e-9,
        np.eye(12)[0],
        np.tile([1.0, 0.0], 6),
        np.repeat([1.0, 3.0], 6),
        np.ones(12),
    ):
        check_bins(labels, prior, epsilon, loss)


def test_labels_far_from_zero_keep_their_digits():
    labels = np.arange(40.0)
    result = bins.optimal_bins(labels, None, 3.0, "squared")
    moved_result = bins.optimal_bins(labels + 2.0**30, None, 3.0, "squared")
    assert moved_result.objective == pytest.approx(result.objective, rel=1e-12)
    assert np.array_equal(moved_result.starts, result.starts)


def test_large_sets_agree_with_a_coarse_grid_and_prove_a_bound():
    for loss in ("squared", "absolute", "poisson-deviance"):
        result = bins.optimal_bins(np.arange(50_000.0), None, 4.0, loss)
        coarse_result = bins.printed_bins(np.arange(200.0), None, 4.0, loss)
        # The losses are compared in units of the range of the labels.
        power = 2 if loss == "squared" else 1
        relative_loss = result.objective / 50_000**power
        coarse_relative_loss = coarse_result.objective / 200**power
        assert relative_loss == pytest.approx(coarse_relative_loss, rel=2e-2)
        assert result.bound == pytest.approx(result.objective, rel=2e-12)


def test_plain_python_and_compiled_code_agree_to_the_last_bit(monkeypatch):
    compiled = monge._compile_functions()
    monkeypatch.setattr(monge, "interval_loss", monge._interval_loss)
    monkeypatch.setattr(monge, "divergence", monge._divergence)
    rng = np.random.default_rng(11)
    for loss in ("squared", "absolute", "pinball:0.9"):
        for k in (1, 2, 3, 17, 60, 150):
            y = np.cumsum(rng.exponential(size=k))
            p = rng.dirichlet(np.full(k, 0.5))
            assert np.array_equal(monge._prefix_pairs(y * p), compiled.prefix_pairs(y * p))
            arguments = bins._build_partition_problem(
                y, p, math.expm1(rng.uniform(0.01, 20)), parse_loss(loss)
            )
            for penalty in (0.0, 10.0 ** rng.uniform(-3, 3)):
                plain_results = monge._least_partition(arguments, penalty)
                compiled_results = compiled.least_partition(arguments, penalty)
                for plain, fast in zip(plain_results, compiled_results, strict=True):
                    assert np.array_equal(plain, fast)


def test_small_problems_load_no_compiler():
    script = """
import sys
from workbench.models.oracles import bins, monge
assert bins.optimal_bins(range(monge._MAX_PLAIN_LABELS), None, 1.0).d and "numba" not in sys.modules
assert bins.optimal_bins(range(1, 9), None, 1.0, "poisson").d and "numba" in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_prefix_pairs_keep_the_digits_that_a_running_sum_loses():
    """Each prefix sum is a pair of doubles. A running sum of one double would end at 1."""
    values = np.array([1e16, 1.0, 1.0, -1e16, 1.0])
    high, low = monge.prefix_pairs(values)
    assert Fraction(high[-1]) + Fraction(low[-1]) == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0}, "epsilon must be in"),
        ({"epsilon": 31}, "epsilon must be in"),
        ({"loss": "error-rate"}, "for RR-on-Bins"),
        ({"loss": "poisson", "labels": [-1, 2]}, "labels must be >= 0"),
    ],
)
def test_invalid_requests_are_refused(change, message):
    request = {"labels": [1.0, 2.0], "prior": None, "epsilon": 1.0, "loss": "squared"} | change
    with pytest.raises(ValueError, match=message):
        bins.optimal_bins(**request)
