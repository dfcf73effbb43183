"""Estimate how many rows have each input of a finite channel, from its published outputs alone.

M is the channel, c_x the number of rows with the input x, and N_o the number of published outputs
o. N has the mean Mᵀ c. If the rows of M are linearly independent, A is the pseudo-inverse of Mᵀ, so
that A Mᵀ is the identity. Then t = A N is unbiased, and its variance for given c is

    Var t_j = Σ_x c_x (Σ_o A_jo² M_xo - (Σ_o A_jo M_xo)²) = Σ_o A_jo² E N_o - c_j

because Σ_o A_jo M_xo is 1 for x = j and otherwise 0. Σ_o A_jo² N_o - t_j is an unbiased estimate of
it. The estimates are functions of the outputs alone, so they use no further budget.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.errors import InvalidRequest
from workbench.exact.arrays import Integers, Vector
from workbench.mechanisms.channel import Channel

# With a larger condition number, the totals would lose more than half of the digits of a double.
_MAX_CONDITION = 1e8


@dataclass(frozen=True)
class Totals:
    """Unbiased estimates of the number of rows of each input.

    Attributes:
        values: The estimates t, shape (k,). They may be negative or no integers.
        errors: Their standard errors, shape (k,). They measure the randomization alone.
    """

    values: Vector
    errors: Vector


def estimate_totals(channel: Channel, output_counts: Integers) -> Totals:
    """Estimate the number of rows of each input of a channel.

    Args:
        channel: A channel with k inputs and m outputs.
        output_counts: How often each output was published, shape (m,).

    Raises:
        InvalidRequest: If the laws of the inputs are (almost) linearly dependent, so that no
            estimate is unbiased.
    """
    transposed = channel.matrix.T
    has_few_outputs = transposed.shape[0] < transposed.shape[1]
    if has_few_outputs or not np.linalg.cond(transposed) <= _MAX_CONDITION:
        raise InvalidRequest(
            "mechanism must have laws that determine the totals. Got a channel whose rows are "
            "linearly dependent, so no total can be estimated without bias."
        )
    inverse = np.linalg.pinv(transposed)
    values = inverse @ output_counts
    variances = inverse**2 @ output_counts - values
    return Totals(values, np.sqrt(np.maximum(variances, 0.0)))
