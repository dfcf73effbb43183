"""What is wrong as printed in the label-DP paper, each with the computation that shows it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from workbench.exact.objects import Record
from workbench.mechanisms.channel import Channel, pairs_within
from workbench.mechanisms.label_randomizers.label_randomizer import project_counts
from workbench.models.losses import parse_loss
from workbench.models.oracles.bins import interval_losses, optimal_bins
from workbench.papers.artifact import read_printed_numbers
from workbench.papers.label_dp.figures import example, signature
from workbench.papers.label_dp.lattice import lattice_noise
from workbench.privacy.audit import audit


def cubic() -> Record:
    """Candidates that Algorithm 2 weighs, and their growth."""
    counts = {
        k: sum(i * (i + 1) // 2 for i in range(1, k + 1)) for k in (50, 100, 200)
    }  # Σ_{j <= i} i - j + 1
    return {"counts": counts[100], "exponent": math.log(counts[200] / counts[50]) / math.log(4)}


def squared_minimum() -> Record:
    """The least squared loss of an interval, as printed and as it is."""
    y, p = np.array([0.0, 1.0, 5.0]), np.array([0.5, 0.3, 0.2])
    weights = p * np.array([1.0, 3.0, 3.0])  # e^ε = 3 on the last two
    x = float(weights @ y / weights.sum())
    return {
        "true": float(weights @ (x - y) ** 2),
        "printed": float(weights @ y**2 - 2 * (weights @ y) * x + x * x),
        "right": float(weights @ y**2 - 2 * (weights @ y) * x + weights.sum() * x * x),
        "used": float(interval_losses(y, p, math.log(3), parse_loss("squared"))[1, 2]),
    }


def pointer_steps(weights: Sequence[float], *, corrected: bool) -> int | None:
    """Moves of the weighted-median pointer from the first value until it stops; None when it cycles (for 100)."""
    at = 0
    for step in range(100):
        low, high, own = sum(weights[: at + 1]), sum(weights[at + 1 :]), weights[at]
        if low < high:
            at += 1
        elif low - own >= high + (own if corrected else 0):
            at -= 1
        else:
            return step
    return None


def pointer() -> Record:
    """Moves of the printed and of the corrected pointer."""
    weights = (2, 3, 2)
    printed = pointer_steps(weights, corrected=False)
    moves = "it cycles for ever" if printed is None else f"{printed} moves"
    return {
        "printed": moves,
        "right": pointer_steps(weights, corrected=True),
        "cycles": printed is None,
    }


def assumption() -> Record:
    """Whether the Poisson deviance meets the assumption, and cuts the bins that the Poisson loss does."""
    loss, deviance = parse_loss("poisson"), parse_loss("poisson-deviance")
    y = np.arange(1, 21.0)
    at = loss(10.0, y)  # must fall up to y = 10 and rise beyond
    shift = [float(deviance(o, 7.0) - loss(o, 7.0)) for o in (1.0, 3.0, 12.0)]
    table = deviance.matrix(y, y)
    turns = np.abs(np.diff(np.sign(np.diff(table, axis=0)), axis=0)).sum(axis=0)  # 2 for each
    return {
        "at": at[9],
        "at_2": at[19],
        "constant": max(shift) - min(shift),
        "least": table.min(),
        "turns": np.diff(turns).max(),
        "same": np.array_equal(
            optimal_bins(y, None, 1.0, loss).starts, optimal_bins(y, None, 1.0, deviance).starts
        ),
    }


def all_clipped() -> Record:
    """A projection of counts that are all negative."""
    h = np.array([-1.0, -2.0, -0.5])
    shares = project_counts(h)
    return {
        "kept": np.maximum(h, 0).sum(),
        "round": shares.round(4).tolist(),
        "off": np.abs(shares - 1 / 3).max(),
    }


def caption() -> Record:
    """The signatures of the example with e^ε = 1/2 and 2."""
    half, two = (signature(example(), Fraction(exp_epsilon)) for exp_epsilon in ("1/2", "2"))
    return {
        "two": two is not None,
        "half": half is not None,
        "same": two == read_printed_numbers("label_dp")["fig5"]["signature"],
    }


def exponential() -> Record:
    """The exact ε of exponential noise on label ranges."""
    ranges = {high: lattice_noise("exponential", 0, high, 1).rows for high in (4, 10, 51)}
    epsilons = [
        audit(Channel.from_pairs(rows, pairs_within(high, high)), 1).pure_epsilon
        for high, rows in ranges.items()
    ]
    return {
        "listed": ", ".join(f"{value:.6f}" for value in epsilons),
        "least": min(epsilons),
        "most": max(epsilons),
    }


def infinite() -> Record:
    """The Poisson loss of the output 0."""
    return {"value": float(parse_loss("poisson")(0.0, 3.0))}
