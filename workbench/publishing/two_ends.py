"""The best noise on the integers for sensitivity 1 and δ > 0, in closed form.

Noise f on the integers is (ε, δ)-private between neighbouring answers that differ by 1. The loss is
|η|^p with p = 1 or 2. Let m_k be the mass of the law e^(ε (k - |η|)) on |η| <= k, without division
by its sum, and c_k its loss. Both follow from

    m_k = w_k + e^ε m_{k-1},   c_k = w_k k^p + e^ε c_{k-1},   w_0 = 1, w_k = 2 otherwise

The best noise is a mixture of the laws of two neighbouring ends k and k + 1, with
m_k <= 1/δ < m_{k+1}.

Lower bound. The mean of f(η) and f(-η) is as private and has the same loss, so let f be even. Let
λ_j >= 0 with λ_j >= y w_j - w_j j^p + e^ε λ_{j-1} for j >= 0, λ_{-1} = 0, and z = max λ_j. Then

    zδ >= Σ_{j>=0} λ_j (f(j) - e^ε f(j+1)) = Σ_{j>=0} f(j) (λ_j - e^ε λ_{j-1}) >= y - E|η|^p

so the loss of all such noise is at least y - zδ, for every y. The best y makes λ_k = λ_{k+1} = z
without the condition λ_j >= 0: y = (c_{k+1} - c_k)/(m_{k+1} - m_k).

Privacy. Integer weights are computed from the end inwards: W_j = floor(e W_{j+1}) + s_j for a
rational e <= e^ε, with s_j = 0 but for j = k and k + 1. So W_j - e^ε W_{j+1} <= s_j exactly, and
the law is private if s_k + s_{k+1} <= δ Σ W. The certificate proves this again.

Reals. A number of sensitivity Δ gets Δ (η + U), with U uniform in [-1/2, 1/2). Rounded at random to
the two nearest multiples of Δ, any noise on the reals is integer noise in units of Δ, whose loss
rises by at most Δ²/4 for p = 2, and is the same or larger for p = 1 (`workbench.families.noise`).
So the bound for the reals is Δ² (bound - 1/4) or Δ bound. It is close to the loss for a small ε.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from workbench.exact.integer_law import IntegerLaw
from workbench.exact.numbers import exp_interval
from workbench.solvers.search import bisect_integers

POWERS = {"absolute": 1, "squared": 2}  # The exponent p of a loss.
_MAX_END = 5000  # Laws with a larger end are not computed, as their certificates are long.
_EXP_BITS = 160  # Bits of the enclosure of e^ε.
_WEIGHT_BITS = 80  # s_k + s_{k+1} is this power of 2.
_BOUND_BITS = 120  # λ is rounded up to a multiple of this power of 1/2.


@dataclass(frozen=True)
class TwoEndsNoise:
    """The best noise on the integers for sensitivity 1.

    Attributes:
        law: The law of the noise.
        bound: A proven lower bound on the loss of all such noise.
    """

    law: IntegerLaw
    bound: Fraction


def find_two_ends_noise(epsilon: Fraction, delta: Fraction, loss: str) -> TwoEndsNoise | None:
    """Find the best noise on the integers for sensitivity 1.

    Args:
        epsilon: ε > 0.
        delta: δ in (0, 1).
        loss: "squared" or "absolute".

    Returns:
        The noise. None if its law is too long.
    """
    factor_low, factor_high = exp_interval(epsilon, _EXP_BITS)
    end = _find_end(float(factor_low), float(delta))
    if end is None:
        return None
    total_slack = 1 << _WEIGHT_BITS

    def list_weights(outer_slack: int) -> list[int]:
        """List W_0 .. W_{k+1}. `outer_slack` is s_{k+1}."""
        weights = [outer_slack]
        for j in range(end, -1, -1):
            slack = total_slack - outer_slack if j == end else 0
            inner_weight = weights[-1] * factor_low.numerator // factor_low.denominator
            weights.append(inner_weight + slack)
        return weights[::-1]

    def is_private(outer_slack: int) -> bool:
        """Return whether the noise with this slack at its outer end is (ε, δ)-private, exactly."""
        weights = list_weights(outer_slack)
        return total_slack <= delta * (2 * sum(weights) - weights[0])

    if not is_private(total_slack):
        return None  # The end was found in floats, and is one too small.
    # The search begins at -1, because it does not try its lower end, and 0 may be private.
    _, least_outer_slack = bisect_integers(is_private, -1, total_slack)
    right = list_weights(least_outer_slack)
    if not right[-1]:
        right.pop()  # Without slack at k + 1, the noise ends at k.
    # The slice [:0:-1] reverses the list without its first entry, so that η = 0 occurs once.
    law = IntegerLaw(first=1 - len(right), weights=[*right[:0:-1], *right])
    return TwoEndsNoise(law, _bound_loss(factor_high, delta, POWERS[loss], end))


def bound_loss_on_reals(bound: Fraction, sensitivity: Fraction, loss: str) -> Fraction:
    """Bound the loss of all noise on the reals.

    Args:
        bound: A lower bound for noise on the integers with sensitivity 1, at the same budget.
        sensitivity: Δ, the sensitivity on the reals.
        loss: "squared" or "absolute".

    Returns:
        The bound, at least 0.
    """
    if loss == "absolute":
        return sensitivity * bound
    return sensitivity**2 * max(Fraction(0), bound - Fraction(1, 4))


def _find_end(factor: float, delta: float) -> int | None:
    """Find the largest k with m_k <= 1/δ, in floats. None if it is too large.

    `factor` is e^ε.
    """
    mass = 1.0
    for end in range(_MAX_END):
        mass = 2 + factor * mass  # This is m_{end + 1}.
        if mass * delta > 1:
            return end
    return None


def _bound_loss(factor: Fraction, delta: Fraction, power: int, end: int) -> Fraction:
    """Compute y - zδ, rounded down. `factor` is at least e^ε, `end` is k, `power` is p."""
    slope = float(factor)
    float_mass = 1.0
    float_cost = 0.0
    for j in range(1, end + 1):
        float_mass = 2 + slope * float_mass
        float_cost = 2.0 * j**power + slope * float_cost
    mass = Fraction(float_mass)
    cost = Fraction(float_cost)
    next_mass = 2 + factor * mass
    next_cost = 2 * (end + 1) ** power + factor * cost
    # Every y gives a bound, so m_k and c_k in floats are enough here.
    unit = 1 << _BOUND_BITS
    # The multiplier is y, and the price is λ_j.
    scaled_multiplier = math.floor((next_cost - cost) / (next_mass - mass) * unit)
    multiplier = Fraction(scaled_multiplier, unit)
    growth = math.ceil(factor * unit)
    price = 0  # λ_j in units of 2^-_BOUND_BITS, rounded up.
    largest_price = 0
    j = 0
    # From j^p >= y on, λ stays 0 once it is 0.
    while price or j**power < multiplier:
        mass_weight = 1 if j == 0 else 2
        growing = -(-price * growth // unit)
        price = max(0, mass_weight * (scaled_multiplier - j**power * unit) + growing)
        largest_price = max(largest_price, price)
        j += 1
        if j > 4 * _MAX_END:
            return Fraction(0)  # λ never falls to 0, so y gives no bound.
    return max(Fraction(0), multiplier - Fraction(largest_price, unit) * delta)
