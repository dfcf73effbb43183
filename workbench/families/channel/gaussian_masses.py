"""Compute a simple private channel under Rényi DP, zCDP or GDP: Gaussian noise is added to the
answer, and the nearest output is published.

Rounding is post-processing, so the channel is as private as the noise. `problem` offers it as a
candidate for notions that bound more than one ratio.
"""

from __future__ import annotations

import math

import numpy as np

from workbench.families.channel.request import ChannelRequest
from workbench.solvers.arrays import Vector

# Gaussian noise is not tried above this many compared masses, because its audit takes too long.
_MAX_GAUSSIAN_COMPARISONS = 50_000
# The standard deviation is enlarged by this share, so that rounded masses are within the budget.
_GAUSSIAN_WIDENING = 1e-9
# Every row is mixed with this share of the uniform distribution, because masses far from the
# answer underflow to 0, and a neighbour's output of mass 0 would violate every budget.
_UNIFORM_SHARE = 2.0**-40


def compute_gaussian_masses(request: ChannelRequest) -> Vector | None:
    """Compute the masses of Gaussian noise within the budget of a request.

    Args:
        request: request for k answers and m outputs, under a notion that bounds more than one
            ratio.

    Returns:
        Probability of every output for every answer, shape (k, m). None if answers or outputs are
        not numbers, if no sufficient Gaussian noise is known for the notion, if no two neighbours
        differ, or if the audit would compare more than 50,000 masses.
    """
    question = request.question
    relative_spread = _find_relative_spread(request)
    if relative_spread is None or question.numbers is None:
        return None
    if len(question.ordered_pairs) * question.m > _MAX_GAUSSIAN_COMPARISONS:
        return None
    inputs, outputs = (np.array([*map(float, numbers)]) for numbers in question.numbers)
    distances = [abs(inputs[i] - inputs[j]) for i, j in question.ordered_pairs]
    sensitivity = max(distances, default=0.0)
    if not sensitivity:
        return None
    from scipy.special import ndtr  # The import is slow.

    # An output gets the mass between the middles of it and its neighbours on the line.
    order = np.argsort(outputs)
    middles = (outputs[order][1:] + outputs[order][:-1]) / 2
    cell_ends = np.r_[-np.inf, middles, np.inf] - inputs[:, None]
    standard_ends = cell_ends / (sensitivity * relative_spread * (1 + _GAUSSIAN_WIDENING))
    low = standard_ends[:, :-1]
    high = standard_ends[:, 1:]
    masses = np.empty((inputs.size, outputs.size))
    # Above the answer the upper tails are subtracted, below it the lower ones. Both are small
    # numbers there, so masses far from the answer keep their digits.
    masses[:, order] = np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))
    return masses * (1 - _UNIFORM_SHARE) + _UNIFORM_SHARE / outputs.size


def _find_relative_spread(request: ChannelRequest) -> float | None:
    """Return the standard deviation of private Gaussian noise for the sensitivity 1.

    None if the notion states neither the μ of GDP nor a sufficient variance.
    """
    claim = request.audited_claim
    mu = claim.notion.gaussian_mu(claim.values)
    variance = claim.notion.gaussian_variance(claim.values)
    if mu:
        return 1 / float(mu)
    if variance:
        return math.sqrt(float(variance))
    return None
