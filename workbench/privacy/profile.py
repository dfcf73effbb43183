"""Privacy profiles: δ as a function of ε, exact up to one final rounding upwards.

    δ_PDP(ε) = max_μ Σ f(η) over {η : f(η) > e^ε f(η+μ)}        a staircase in ε
    δ_DP(ε)  = max_μ Σ max(0, f(η) - e^ε f(η+μ))                 convex in e^ε, never above the staircase

Each is the audit's own tally at every ε, so a curve and a certificate can never disagree: the floats returned are the
smallest ones not below the exact δ (PDP), or at most an ulp above that (DP). The *_channel versions take rows and
pairs as `audit_channel` does, for baselines that are no additive noise (clamping).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.mechanisms.additive import AdditiveNoise
from workbench.numbers import Real, positive, round_up
from workbench.privacy.relation import Auditable, ChannelPairs, Noise, Rows
from workbench.privacy.tally import Tally, tally

__all__ = ["dp_profile", "dp_profile_channel", "pdp_profile", "pdp_profile_channel"]


def dp_profile(mechanism: AdditiveNoise, epsilons: Iterable[Real]) -> NDArray[np.float64]:
    """The DP δ of additive noise at each ε >= 0, rounded up. Shape (len(epsilons),). Raises InvalidRequest."""
    return _profile(Noise(mechanism), epsilons, _dp)


def pdp_profile(mechanism: AdditiveNoise, epsilons: Iterable[Real]) -> NDArray[np.float64]:
    """The PDP δ of additive noise at each ε >= 0, rounded up. Shape (len(epsilons),). Raises InvalidRequest."""
    return _profile(Noise(mechanism), epsilons, _pdp)


def dp_profile_channel(
    rows: Rows, pairs: Iterable[Any], epsilons: Iterable[Real], *, directed: bool = False
) -> NDArray[np.float64]:
    """The DP δ of a finite channel at each ε >= 0, rounded up. Shape (len(epsilons),). Raises InvalidRequest."""
    return _profile(ChannelPairs.of(rows, pairs, directed=directed), epsilons, _dp)


def pdp_profile_channel(
    rows: Rows, pairs: Iterable[Any], epsilons: Iterable[Real], *, directed: bool = False
) -> NDArray[np.float64]:
    """The PDP δ of a finite channel at each ε >= 0, rounded up. Shape (len(epsilons),). Raises InvalidRequest."""
    return _profile(ChannelPairs.of(rows, pairs, directed=directed), epsilons, _pdp)


def _profile(subject: Auditable, epsilons: Iterable[Real], height: Callable[[Tally], float]) -> NDArray[np.float64]:
    budgets: list[Fraction] = [positive(epsilon, "epsilon", or_zero=True) for epsilon in epsilons]
    curve = np.zeros(len(budgets))
    for one in subject.comparisons(0):
        curve = np.maximum(curve, [height(tally(one.p, one.q, epsilon)) for epsilon in budgets])
    return curve


def _dp(count: Tally) -> float:
    return count.dp_delta.upper


def _pdp(count: Tally) -> float:
    return round_up(count.pdp_delta)
