"""Compute the numbers by which claims of the paper on dyadic quantized Laplace noise are judged.

Each function returns a dictionary of numbers and texts, which declared/dql.toml names under
[claims]. ℓ is the ratio of the decoder's ε to the database's.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from workbench.exact.objects import Record
from workbench.mechanisms.dyadic_laplace.dyadic_law import component, compute_levels
from workbench.mechanisms.dyadic_laplace.mean_length import DataLaw, mean_bits


def measure_level_privacy(ell: float, level_count: int) -> Record:
    """Compute the ε of the decoder, who knows the level, for the first levels at ε = 1.

    Args:
        ell: The ratio ℓ > 1.
        level_count: The number of levels.

    Returns:
        most_epsilon: the largest ε of a level.
    """
    return {"most_epsilon": max(component(ell, t).epsilon for t in range(level_count))}


def compare_guarantees(table: pd.DataFrame) -> Record:
    """Compare the ε of DQL and MVU at the mean squared errors of MVU in Fig. 3.

    At the mean squared error v the database's ε of DQL is sqrt(2/v). The decoder's is ℓ times as
    large, with ln ℓ interpolated between the computed ε.

    Args:
        table: The stored table of Fig. 3.

    Returns:
        count: the number of MVU's points. database_count: the number of points at which DQL's
        database has the smaller ε. last_better, first_worse: the largest mean squared error at
        which it has, and the smallest at which it has not. decoder_count: the number of points
        with a DQL curve. decoder_worse_count: the number of these at which DQL's decoder has the
        larger ε. least_factor: the smallest ratio of the decoder's ε of DQL to that of MVU.
    """
    dql = table[table["mechanism"] == "DQL"].dropna(subset="ell").sort_values("epsilon")
    mvu = table[table["mechanism"] == "MVU"].sort_values("mse")
    database_epsilons = np.sqrt(2 / mvu["mse"])
    is_better = database_epsilons < mvu["database_epsilon"]
    is_drawn = database_epsilons.between(dql["epsilon"].min(), dql["epsilon"].max())
    log_ell = np.interp(np.log(database_epsilons), np.log(dql["epsilon"]), np.log(dql["ell"]))
    factors = (database_epsilons * np.exp(log_ell) / mvu["decoder_epsilon"])[is_drawn]
    return {
        "count": len(mvu),
        "database_count": int(is_better.sum()),
        "last_better": mvu["mse"][is_better].max(),
        "first_worse": mvu["mse"][~is_better].min(),
        "decoder_count": len(factors),
        "decoder_worse_count": int((factors > 1).sum()),
        "least_factor": factors.min(),
    }


def measure_length_growth(ell: float) -> Record:
    """Compare exact mean lengths with log2(ε E|x|) and with the mutual information, for large ε.

    The inputs are uniform in [-1, 1], so E|x| = 1/2. A scheme that adds Laplace noise exactly sends
    at least the mutual information of input and output, log2(ε) - log2(e) + o(1) bits.

    Args:
        ell: The ratio ℓ > 1.

    Returns:
        excesses: length minus log2(ε E|x|) at ε = 10^2, 10^4, 10^6, 10^8, as text. most_growth:
        the largest growth of the excess over 2 log2(log2(ε E|x|)), from one ε to the next.
        information_excess: length minus mutual information at ε = 10^4, in bits.
    """
    law = compute_levels(ell)
    data = DataLaw.uniform(-1, 1)
    excesses = []
    rests = []
    lengths = {}
    for exponent in (2, 4, 6, 8):
        epsilon = 10.0**exponent
        lengths[exponent] = mean_bits(epsilon, law, "delta", data)
        size_bits = math.log2(epsilon / 2)
        excesses.append(lengths[exponent] - size_bits)
        rests.append(excesses[-1] - 2 * math.log2(size_bits))
    return {
        "excesses": ", ".join(f"{value:.2f}" for value in excesses),
        "most_growth": float(np.diff(rests).max()),
        "information_excess": lengths[4] - (math.log2(1e4) - math.log2(math.e)),
    }


def measure_lengths_far_out(ell: float) -> Record:
    """Compute the mean length of the gamma code of inputs up to 10^12, at ε = 1.

    Args:
        ell: The ratio ℓ > 1.

    Returns:
        lengths: the mean lengths in bits for x = 1, 10^3, 10^6, 10^12, as text. is_finite: whether
        all are finite.
    """
    law = compute_levels(ell)
    lengths = [mean_bits(1.0, law, "gamma", DataLaw.point(x)) for x in (1.0, 1e3, 1e6, 1e12)]
    return {
        "lengths": ", ".join(f"{length:.2f}" for length in lengths),
        "is_finite": all(math.isfinite(length) for length in lengths),
    }
