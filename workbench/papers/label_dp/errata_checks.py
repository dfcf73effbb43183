"""Compute the numbers that prove the errata of Ghazi et al., Regression with Label DP.

Each function returns a dictionary of numbers and texts. declared/label_dp.toml prints them and has
the condition under which they show the erratum. A new erratum is a function here and an entry
there. Algorithm, assumption and figure numbers are the paper's. k is the number of labels.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from workbench.exact.objects import Record
from workbench.mechanisms.channel import Channel, pairs_within
from workbench.mechanisms.label_randomizers.label_randomizer import project_counts
from workbench.models.losses import parse_loss
from workbench.models.oracles.bins import evaluate_partition, interval_losses, optimal_bins
from workbench.papers.artifact import read_printed_numbers
from workbench.papers.label_dp.figures import compute_signature, get_example_matrix
from workbench.papers.label_dp.lattice import make_lattice_noise
from workbench.privacy.audit import audit

_MAX_POINTER_MOVES = 100  # A pointer that moves this often never stops.


def sum_printed_staircase(delta: int, r: int, epsilon: float) -> Record:
    """Sum the masses of Definition 24 for two values of its b, which the paper does not define.

    Args:
        delta: The width Δ >= 2 of a step.
        r: The integer 1 <= r <= Δ.
        epsilon: The ε of the noise, > 0.

    Returns:
        total: the sum of all masses for b = e^-ε. other_total: the sum for b = e^-ε/2.
    """
    totals = []
    falls = math.exp(-epsilon)
    for b in (falls, math.exp(-epsilon / 2)):
        first_mass = (1 - b) / (2 * r + 2 * b * (delta - r) - (1 - b))
        # The masses of 0..Δ-1; every further step of width Δ has e^-ε times them.
        step = first_mass * (r + falls * (delta - r))
        totals.append(2 * step / (1 - falls) - first_mass)
    total, other_total = totals
    return {"total": total, "other_total": other_total}


def check_table_index(epsilon: float) -> Record:
    """Compare the table A of Algorithm 2 with the smallest losses of RR-on-Bins, for k = 4 labels.

    Args:
        epsilon: The ε of the budget, > 0.

    Returns:
        losses: A[k][d]/(d - 1 + e^ε) for d = 1..k, as text. max_difference: the largest difference
        from the smallest loss of all partitions into d intervals.
    """
    labels = np.array([0.0, 1.0, 3.0, 7.0])
    prior = np.array([0.4, 0.3, 0.2, 0.1])
    loss = parse_loss("squared")
    k = labels.size
    interval_loss = interval_losses(labels, prior, epsilon, loss)
    # A[i][j] is the smallest sum of the losses of j intervals of the first i labels. The last of
    # these intervals has the labels r..i-1, which count from 0.
    table = np.full((k + 1, k + 1), np.inf)
    table[0, 0] = 0.0
    for i, j in itertools.product(range(1, k + 1), range(1, k + 1)):
        table[i, j] = min(table[r, j - 1] + interval_loss[r, i - 1] for r in range(i))
    losses = []
    differences = []
    for d in range(1, k + 1):
        losses.append(table[k, d] / (d - 1 + math.exp(epsilon)))
        partitions = [(0, *starts) for starts in itertools.combinations(range(1, k), d - 1)]
        partition_losses = []
        for starts in partitions:
            value, _ = evaluate_partition(labels, prior, epsilon, loss, np.array(starts))
            partition_losses.append(value)
        differences.append(abs(losses[-1] - min(partition_losses)))
    return {
        "losses": ", ".join(f"{value:.6f}" for value in losses),
        "max_difference": max(differences),
    }


def count_candidates() -> Record:
    """Count the candidates that Algorithm 2 compares for k labels, and how the number grows.

    Returns:
        candidate_count: the number for k = 100. exponent: the a of growth as k^a, from k = 50 to
        k = 200.
    """
    counts = {}
    for k in (50, 100, 200):
        # Row i compares Σ_{j <= i} (i - j + 1) = i (i + 1)/2 candidates.
        counts[k] = sum(i * (i + 1) // 2 for i in range(1, k + 1))
    return {
        "candidate_count": counts[100],
        "exponent": math.log(counts[200] / counts[50]) / math.log(4),
    }


def check_squared_minimum() -> Record:
    """Compute the minimal squared loss of an interval of labels by the printed formula and others.

    Returns:
        true_minimum: by the definition. printed_minimum, corrected_minimum: by the printed and the
        corrected formula. computed_minimum: by `interval_losses`, which the designs use.
    """
    y = np.array([0.0, 1.0, 5.0])
    prior = np.array([0.5, 0.3, 0.2])
    # The interval has the last two labels, whose weights are multiplied by e^ε = 3.
    weights = prior * np.array([1.0, 3.0, 3.0])
    x = float(weights @ y / weights.sum())
    return {
        "true_minimum": float(weights @ (x - y) ** 2),
        "printed_minimum": float(weights @ y**2 - 2 * (weights @ y) * x + x * x),
        "corrected_minimum": float(weights @ y**2 - 2 * (weights @ y) * x + weights.sum() * x * x),
        "computed_minimum": float(
            interval_losses(y, prior, math.log(3), parse_loss("squared"))[1, 2]
        ),
    }


def count_pointer_moves(weights: Sequence[float], *, corrected: bool) -> int | None:
    """Return how often the weighted-median pointer moves until it stops, or None if it cycles.

    The pointer starts at the first value. It moves until the weights on both sides balance.

    Args:
        weights: The weights of the values, in the order of the values.
        corrected: Whether the rule for moving back is the corrected one, not the printed one.
    """
    k = 0
    for step in range(_MAX_POINTER_MOVES):
        lower_weight = sum(weights[: k + 1])
        upper_weight = sum(weights[k + 1 :])
        # After a move back, the weight at the pointer counts as upper weight. The printed rule
        # forgets that.
        upper_after_move = upper_weight
        if corrected:
            upper_after_move += weights[k]
        if lower_weight < upper_weight:
            k += 1
        elif lower_weight - weights[k] >= upper_after_move:
            k -= 1
        else:
            return step
    return None


def compare_pointers() -> Record:
    """Count the moves of the printed and of the corrected pointer for the weights 2, 3, 2.

    Returns:
        printed_outcome: in words. printed_cycles: whether the printed pointer never stops.
        corrected_moves: a number, or None.
    """
    weights = (2, 3, 2)
    printed_moves = count_pointer_moves(weights, corrected=False)
    outcome = "it cycles forever" if printed_moves is None else f"{printed_moves} moves"
    return {
        "printed_outcome": outcome,
        "corrected_moves": count_pointer_moves(weights, corrected=True),
        "printed_cycles": printed_moves is None,
    }


def check_assumption4() -> Record:
    """Check Assumption 4 and the optimal bins for the Poisson deviance and the Poisson loss.

    Returns:
        loss_at_10, loss_at_20: the Poisson loss of the output 10 for the labels 10 and 20.
        shift_spread: by how much deviance - loss varies over outputs for one label.
        min_deviance: the smallest deviance.
        max_turns: the largest increase of the number of turns from one label to the next. The turns
            of a label are the changes of direction of its deviances over the outputs (each counts
            2).
        has_same_bins: whether both losses have the same optimal bins.
    """
    loss = parse_loss("poisson")
    deviance = parse_loss("poisson-deviance")
    y = np.arange(1, 21.0)
    # Assumption 4: the losses of an output decrease up to this label and increase beyond.
    loss_at_10, loss_at_20 = loss(10.0, [10.0, 20.0])
    shifts = [float(deviance(output, 7.0) - loss(output, 7.0)) for output in (1.0, 3.0, 12.0)]
    matrix = deviance.matrix(y, y)
    # Every change of direction counts as 2.
    turns = np.abs(np.diff(np.sign(np.diff(matrix, axis=0)), axis=0)).sum(axis=0)
    loss_bins = optimal_bins(y, None, 1.0, loss)
    deviance_bins = optimal_bins(y, None, 1.0, deviance)
    return {
        "loss_at_10": loss_at_10,
        "loss_at_20": loss_at_20,
        "shift_spread": max(shifts) - min(shifts),
        "min_deviance": matrix.min(),
        "max_turns": np.diff(turns).max(),
        "has_same_bins": np.array_equal(loss_bins.starts, deviance_bins.starts),
    }


def project_negative_counts() -> Record:
    """Project counts that are all negative, as noisy counts may be, onto probabilities.

    Returns:
        kept_sum: the sum of the counts after negative ones are set to 0. shares: the projection.
        max_deviation: the largest distance of a share from 1/3, the uniform probability.
    """
    counts = np.array([-1.0, -2.0, -0.5])
    shares = project_counts(counts)
    return {
        "kept_sum": np.maximum(counts, 0).sum(),
        "shares": shares.round(4).tolist(),
        "max_deviation": np.abs(shares - 1 / 3).max(),
    }


def check_fig5_caption() -> Record:
    """Check the constraints of the example of Fig. 5 with e^ε = 2 and with e^ε = 1/2.

    Returns:
        holds_for_2, holds_for_half: whether they hold. agrees_with_print: whether the signature
        for 2 is the printed one.
    """
    matrix = get_example_matrix()
    half_signature = compute_signature(matrix, Fraction(1, 2))
    two_signature = compute_signature(matrix, Fraction(2))
    return {
        "holds_for_2": two_signature is not None,
        "holds_for_half": half_signature is not None,
        "agrees_with_print": two_signature == read_printed_numbers("label_dp")["fig5"]["signature"],
    }


def audit_exponential_noise() -> Record:
    """Audit exponential noise for ε = 1 on the labels 0..D, for D = 4, 10 and 51.

    Returns:
        epsilons: the exact ε for each D, as text. min_epsilon, max_epsilon: the extremes.
    """
    epsilons = []
    for high in (4, 10, 51):
        rows = make_lattice_noise("exponential", 0, high, 1).rows
        channel = Channel.from_pairs(rows, pairs_within(high, high))
        epsilons.append(audit(channel, 1).pure_epsilon)
    return {
        "epsilons": ", ".join(f"{value:.6f}" for value in epsilons),
        "min_epsilon": min(epsilons),
        "max_epsilon": max(epsilons),
    }


def evaluate_poisson_at_zero() -> Record:
    """Return as "loss" the Poisson loss of the output 0 for the label 3."""
    return {"loss": float(parse_loss("poisson")(0.0, 3.0))}
