"""Compute the numbers by which claims of Kadam et al. 2024 are judged.

Each function returns a dictionary of numbers and texts, which declared/modulo_noise.toml names
under [claims].
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from workbench.exact.objects import Record
from workbench.models.oracles.bounded_difference import column_cut_law
from workbench.models.oracles.limit_law import limit_law
from workbench.models.oracles.printed_theorem3 import printed_limit
from workbench.models.oracles.single_distance import level_curve
from workbench.papers.claims import compare_series
from workbench.papers.modulo_noise.curves import trace_exact_curve

_LINE_POINTS = 401  # The law is compared with the lines at this many δ.
_SLOPE_EPSILONS = np.linspace(0.2, 3, 113)  # The slope of ln δ is measured at these ε.
_SLOPE_STEP = 1e-4  # The step in ε of a difference quotient.


def check_linear_pieces(n: int, max_shift: int, epsilon: float) -> Record:
    """Compare the optimal error rate with straight lines between its breakpoints.

    Args:
        n: The largest answer.
        max_shift: The largest difference of neighbouring answers.
        epsilon: The ε of the budget.

    Returns:
        piece_count: the number of pieces over δ in [0, 1]. max_difference: the largest distance of
        the column-cut law from the lines, at 401 δ.
    """
    curve = trace_exact_curve(epsilon, n=n, max_shift=max_shift)
    deltas = np.linspace(0, 1, _LINE_POINTS)
    lines = np.interp(deltas, curve["delta"], curve["f0"])
    masses = [1 - column_cut_law(n, max_shift, epsilon, delta).value for delta in deltas]
    return {
        "piece_count": len(curve) - 1,
        "max_difference": float(np.abs(masses - lines).max()),
    }


def check_exponential_decay(order: int, error_rate: float) -> Record:
    """Measure the slope of ln δ as a function of ε at a fixed error rate, for one difference.

    Args:
        order: The number n + 1 of answers.
        error_rate: The error rate.

    Returns:
        slopes: the distinct slopes, as text. max_fraction: the largest distance of a slope from a
        whole number. slope_count: the number of distinct slopes.
    """
    slopes = []
    for epsilon in _SLOPE_EPSILONS:
        delta = level_curve(order, epsilon, error_rate)
        next_delta = level_curve(order, epsilon + _SLOPE_STEP, error_rate)
        if delta > 0 and next_delta > 0:
            slopes.append(math.log(next_delta / delta) / _SLOPE_STEP)
    # A jump of δ between two points gives a slope far below those of the pieces.
    slopes = [slope for slope in slopes if slope > -order]
    whole_slopes = np.round(slopes)
    return {
        "slopes": ", ".join(f"{slope:g}" for slope in np.unique(whole_slopes)),
        "slope_count": len(np.unique(whole_slopes)),
        "max_fraction": float(np.abs(slopes - whole_slopes).max()),
    }


def compare_printed_limit(mu_bar: int, epsilon: float, c: int) -> Record:
    """Compare (55) at a large c with the limit of Lemma 4.

    Args:
        mu_bar: The largest difference of neighbouring answers.
        epsilon: The ε of the budget.
        c: The number of whole groups.

    Returns:
        printed_mass: φ₀ by (55) for j = 1. limit_mass: f(0) of the limit law at δ = 0.
    """
    return {
        "printed_mass": printed_limit(mu_bar, epsilon, c, 1).printed_mass,
        "limit_mass": 1 - limit_law(mu_bar, epsilon, 0.0).value,
    }


def compare_with_baselines(table: pd.DataFrame) -> Record:
    """Compare the error rates of optimal noise in Fig. 5(b) with those of the baselines.

    Args:
        table: The stored table of the figure.

    Returns:
        count: the number of ε. one_sided_count, symmetric_count: the number at which optimal noise
        for one-sided and for symmetric differences has the smallest error rate. larger_ranges: the
        ε at which the latter has not, as text.
    """
    baselines = ["geometric", "independent"]
    columns = {"x": "epsilon", "y": "error", "names": "mechanism", "where": "panel == 'b'"}
    one_sided = compare_series(table, name="optimal", others=baselines, **columns)
    symmetric = compare_series(table, name="symmetric", others=baselines, **columns)
    return {
        "count": one_sided["count"],
        "one_sided_count": one_sided["smaller_count"],
        "symmetric_count": symmetric["smaller_count"],
        "larger_ranges": symmetric["larger_ranges"],
    }


def compare_zero_masses(table: pd.DataFrame) -> Record:
    """Compare the masses at 0 of the laws of Fig. 8.

    Args:
        table: The stored table of the figure.

    Returns:
        masses: f(0) of every law, as text. least_gain: the smallest excess of the optimal laws
        (one-sided and symmetric) over geometric and Gaussian noise.
    """
    masses = table[table["eta"] == 0].set_index("law")["mass"]
    optimal_masses = masses[["optimal", "symmetric"]]
    other_masses = masses.drop(optimal_masses.index)
    return {
        "masses": ", ".join(f"{law} {mass:.4f}" for law, mass in masses.items()),
        "least_gain": optimal_masses.min() - other_masses.max(),
    }


def compare_listed_masses(table: pd.DataFrame) -> Record:
    """Compare the masses of listed differences in Fig. 14 with those of the other noise values.

    Args:
        table: The stored table of the figure.

    Returns:
        least_ratio: the smallest ratio of a mass at 0 or a listed difference to a mass at another
        noise value, over all panels and ε.
    """
    ratios = []
    for (_, shifts, _), rows in table.groupby(["panel", "shifts", "epsilon"]):
        listed_values = {0, *map(int, str(shifts).strip("{}").split(","))}
        is_listed = rows["eta"].isin(listed_values)
        ratios.append(rows["law"][is_listed].min() / rows["law"][~is_listed].max())
    return {"least_ratio": min(ratios)}
