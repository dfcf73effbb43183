"""Compute the numbers by which claims of Cai et al. 2024 are judged.

Each function returns a dictionary of numbers and texts, which declared/optm.toml names under
[claims]. MAE is the mean absolute error. OPTM, MVU, RQM and ERM are the mechanisms of the paper.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd

from workbench.exact.objects import Record
from workbench.mechanisms.baselines.two_bin import (
    equal_bins,
    erm,
    erm_proven_epsilon_bound,
    rqm,
)
from workbench.privacy.audit import audit_extremes


def compare_rqm_definition() -> Record:
    """Compare the law of RQM with its definition by random subsets of bins.

    By the definition each inner bin is kept with probability q, and the kept bins next to the input
    are used. Subsets are listed one by one, in exact fractions.

    Returns:
        max_difference: the largest difference of a probability, over 21 inputs and 5 bins.
    """
    bins = [Fraction(value) for value in ("-1.8", "-0.9", "0", "0.9", "1.8")]
    q = Fraction("0.4")
    quantizer = rqm("-1.8,-0.9,0,0.9,1.8", q)
    inputs = [Fraction(k, 10) for k in range(-10, 11)]
    laws = quantizer.probabilities(np.array([float(x) for x in inputs]))
    differences = []
    for x, law in zip(inputs, laws, strict=True):
        expected = [Fraction(0)] * len(bins)
        for are_kept in itertools.product((False, True), repeat=len(bins) - 2):
            probability = math.prod(
                (q if is_kept else 1 - q for is_kept in are_kept), start=Fraction(1)
            )
            inner_bins = [i for i, is_kept in enumerate(are_kept, 1) if is_kept]
            subset = [0, *inner_bins, len(bins) - 1]
            left = max(i for i in subset if bins[i] <= x)
            right = min(i for i in subset if bins[i] > x)
            share = (bins[right] - x) / (bins[right] - bins[left])
            expected[left] += probability * share
            expected[right] += probability * (1 - share)
        differences += [abs(float(e) - p) for e, p in zip(expected, law, strict=True)]
    return {"max_difference": max(differences)}


def measure_bias_by_bits() -> Record:
    """Compute the exact bias of RQM and ERM with 2, 4, ..., 64 equal bins in [-2, 2].

    Returns:
        biases: the largest bias for each number of bits, as text. max_bias: the largest of them.
    """
    biases = []
    for bits in range(1, 7):
        bins = equal_bins(2**bits, 2)
        biases.append(max(rqm(bins, "0.4").bias, erm(bins, "1").bias))
    return {"biases": ", ".join(map(str, biases)), "max_bias": max(biases)}


def measure_growth_in_bins() -> Record:
    """Measure how the exact ε of ERM and RQM grows with the number m of equal bins.

    The parameters are γ = 1, q = 0.4, c = 1 and Δ = 1.

    Returns:
        erm_epsilons, rqm_epsilons: the exact ε for m = 8, 16, 32, 64, as text. most_erm_growth: the
        largest growth of ERM's ε from m to 2m. least_rqm_ratio: the smallest ratio of RQM's growths
        from m to 2m, which is 2 for a function that is linear in m. least_margin: the smallest
        distance of ERM's ε from its proven bound.
    """
    sizes = (8, 16, 32, 64)
    erms = [audit_extremes(erm(equal_bins(m, 2), 1), 0).pure_epsilon for m in sizes]
    rqms = [audit_extremes(rqm(equal_bins(m, 2), "0.4"), 0).pure_epsilon for m in sizes]
    margins = [
        erm_proven_epsilon_bound(m, 1, 1) - epsilon for m, epsilon in zip(sizes, erms, strict=True)
    ]
    rqm_growths = np.diff(rqms)
    return {
        "erm_epsilons": ", ".join(f"{value:.3f}" for value in erms),
        "rqm_epsilons": ", ".join(f"{value:.3f}" for value in rqms),
        "most_erm_growth": float(np.diff(erms).max()),
        "least_rqm_ratio": float((rqm_growths[1:] / rqm_growths[:-1]).min()),
        "least_margin": min(margins),
    }


def compare_last_accuracies(table: pd.DataFrame) -> Record:
    """Compare the accuracies after the last batch of Fig. 4c or 4d.

    Args:
        table: The stored table of the figure.

    Returns:
        batch: the number of the last batch. accuracies: the accuracies with two standard errors, as
        text. most_gain: how many standard errors of the difference OPTM is above both MVU and RQM
        at most, over the batches.
    """
    last_batch = int(table["batch"].max())
    means = table.pivot_table("accuracy", "batch", "mechanism")
    errors = table.pivot_table("standard error", "batch", "mechanism")

    def compute_gains(mechanism: str) -> pd.Series:
        """Return OPTM's mean minus that of a mechanism, over its standard error, for each batch."""
        spread = np.sqrt(errors["OPTM"] ** 2 + errors[mechanism] ** 2)
        gains: pd.Series = (means["OPTM"] - means[mechanism]) / spread
        return gains

    mvu_gains = compute_gains("MVU")
    rqm_gains = compute_gains("RQM")
    least_gains = mvu_gains.where(mvu_gains < rqm_gains, rqm_gains)
    parts = []
    for name in ("OPTM", "MVU", "RQM"):
        mean = means[name][last_batch]
        parts.append(f"{name} {mean:.4f} ± {2 * errors[name][last_batch]:.4f}")
    return {
        "batch": last_batch,
        "accuracies": ", ".join(parts),
        "most_gain": least_gains.max(),
    }


def compare_gaussian_gains(table: pd.DataFrame) -> Record:
    """Compare the gain of OPTM's asymmetric bins over RQM at each σ of Table 2.

    Args:
        table: The stored table of Table 2.

    Returns:
        gains: the MAE of RQM minus that of OPTM for each σ, as text. is_falling: whether the gain
        falls as σ grows, for OPTM by the authors' code and by Theorem 4.
    """
    errors = table.pivot_table("mae", "sigma", "mechanism").sort_index()
    names = ("OPTM, as in the authors' code", "OPTM, Theorem 4, Table 6's bins")
    gains_by_name = {name: errors["RQM"] - errors[name] for name in names}
    parts = []
    for name, gains in gains_by_name.items():
        parts.append(f"{name}: {', '.join(f'{gain:.3f}' for gain in gains)}")
    return {
        "gains": "; ".join(parts),
        "is_falling": all((gains.diff().dropna() < 0).all() for gains in gains_by_name.values()),
    }
