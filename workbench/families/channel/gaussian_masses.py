"""Gaussian noise published as the nearest output, as a simple channel within a budget of several
bounds.
"""

from __future__ import annotations

import math

import numpy as np

from workbench.families.channel.request import ChannelRequest
from workbench.solvers.arrays import Vector

# Gaussian noise is not tried above this many compared masses, because its audit takes too long.
_MAX_GAUSSIAN_COMPARISONS = 50_000
# The noise is widened by this share, so that its rounded masses are within the budget.
_GAUSSIAN_WIDENING = 1e-9
# This share of every row is uniform, because masses far from the answer underflow.
_UNIFORM_SHARE = 2.0**-40


def compute_gaussian_masses(request: ChannelRequest) -> Vector | None:
    """Compute the masses of Gaussian noise within the budget of a request.

    Args:
        request: request under a notion of several bounds.

    Returns:
        Masses of shape (k, m). None if answers or outputs are not numbers, or if the notion allows
        no Gaussian noise.
    """
    question = request.question
    relative_spread = _find_relative_spread(request)
    if relative_spread is None or question.numbers is None:
        return None
    if len(question.ordered_pairs) * question.m > _MAX_GAUSSIAN_COMPARISONS:
        return None
    inputs, outputs = (np.array([*map(float, points)]) for points in question.numbers)
    distances = [abs(inputs[i] - inputs[j]) for i, j in question.ordered_pairs]
    sensitivity = max(distances, default=0.0)
    if not sensitivity:
        return None
    from scipy.special import ndtr  # The import is slow.

    order = np.argsort(outputs)
    middles = (outputs[order][1:] + outputs[order][:-1]) / 2
    cell_ends = np.r_[-np.inf, middles, np.inf] - inputs[:, None]
    standard_ends = cell_ends / (sensitivity * relative_spread * (1 + _GAUSSIAN_WIDENING))
    low = standard_ends[:, :-1]
    high = standard_ends[:, 1:]
    masses = np.empty((inputs.size, outputs.size))
    # Both tails are differences of small numbers, so masses far from the answer keep their digits.
    masses[:, order] = np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))
    return masses * (1 - _UNIFORM_SHARE) + _UNIFORM_SHARE / outputs.size


def _find_relative_spread(request: ChannelRequest) -> float | None:
    """Return the standard deviation of sufficient Gaussian noise over the sensitivity.

    None if none is known.
    """
    claim = request.audited_claim
    mu = claim.notion.gaussian_mu(claim.values)
    variance = claim.notion.gaussian_variance(claim.values)
    if mu:
        return 1 / float(mu)
    if variance:
        return math.sqrt(float(variance))
    return None
