"""A lower bound on the error of every unbiased ε-private quantizer with so many outputs within a reach.

The largest of these, each valid by itself, for the error a |e| + b e²:

* two outputs: what they cost at the least reach (`workbench.families.quantizer.limit.two_outputs`);
* any number of outputs within the reach (workbench.families.quantizer.limit): near the truth while privacy costs most;
* m outputs without privacy, uniform inputs: between neighbouring outputs d apart an unbiased law errs least when it
  draws those two alone (every other one is a mean-preserving spread of that), ∫ 2 u (d - u)/d du = d²/3 and
  ∫ u (d - u) du = d³/6 over the gap. m - 1 gaps cover [-c, c]; both sums are least for equal gaps d = 2c/(m - 1):
  MAE >= 2c/(3 (m - 1)), mean squared error >= 2c²/(3 (m - 1)²). Near the truth at large ε;
* two inputs x < y cannot be told apart well (Le Cam): E|M(x) - x| + E|M(y) - y| >= (y - x) Σ_i min(p(x, i), p(y, i))
  >= 2 (y - x)/(1 + e^ε). Pairing quantiles q and q + 1/2: MAE >= 2 E|X - median|/(1 + e^ε). And the variance at x is
  at least Δ²/χ² >= Δ² e^ε/(e^ε - 1)², Δ = c + |x| the distance of the mean from that at the farther end (Hammersley,
  Chapman and Robbins). Never 0, where the first is at very large ε.
"""

from __future__ import annotations

import contextlib
import math

import numpy as np

from models.quantizer import odds_of, smallest_reach
from workbench.errors import NotProven
from workbench.families.quantizer.limit import least_error, proven_limit, two_outputs
from workbench.mechanisms.density import Density
from workbench.mechanisms.quantization_error import error_function

__all__ = ["output_bound"]

_ROUNDING = 1 - 1e-9  # of sums of doubles, whose errors are some 1e-13


def output_bound(
    levels: int, epsilon: float, c: float, density: Density, loss: object, reach: float = math.inf
) -> float | None:
    """The bound for `levels` outputs in [-reach, reach], inputs in [-c, c] with a density; None when it is 0."""
    a, b = error_function(loss)
    bounds = [0.0]
    with contextlib.suppress(NotProven):
        limit = least_error(epsilon, c, loss, density=density, reach=reach)
        bounds.append(proven_limit(limit, epsilon, loss))
    if density.shape is None:
        gap = 2 * c / (levels - 1)
        bounds.append((a * gap / 3 + b * gap**2 / 6) * _ROUNDING)
    absolute = 2 * _spread(density) / (2 + odds_of(epsilon))
    x, w = density.grid([0.0])
    odds = odds_of(epsilon)
    squared = float(w @ (c + np.abs(x)) ** 2) * (1 + odds) / odds**2
    bounds.append((a * absolute + b * squared) * _ROUNDING)
    if levels == 2:
        bounds.append(two_outputs(smallest_reach(epsilon, c), loss, float(w @ x**2)) * _ROUNDING)
    best = max(bounds)
    return best if best > 0 else None


def _spread(density: Density) -> float:
    """E|X - median|, less than 2^-40 c below it: at t the derivative of E|X - t| is at most 1 in size."""
    low, high = -density.c, density.c
    while high - low > 2.0**-41 * density.c:
        middle = (low + high) / 2
        x, w = density.grid([middle])
        low, high = (middle, high) if float(w[x <= middle].sum()) < 0.5 else (low, middle)
    x, w = density.grid([high])
    return max(0.0, float(w @ np.abs(x - high)) - (high - low))
