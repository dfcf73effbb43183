"""Privacy profiles: δ as a function of ε, exact up to one final rounding upwards.

    δ_PDP(ε) = max_μ Σ f(η) over {η : f(η) > e^ε f(η+μ)}        a staircase in ε
    δ_DP(ε)  = max_μ Σ max(0, f(η) - e^ε f(η+μ))                 convex in e^ε, never above the staircase

Each is the notion's own measure at every ε, so a curve and a certificate can never disagree: the floats returned are
the smallest ones not below the exact δ (PDP), or at most an ulp above that (DP). The *_channel versions take rows and
pairs as `audit_channel` does, for baselines that are no additive noise (clamping).
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.exact.numbers import Real, positive, round_up
from workbench.mechanisms.additive import AdditiveNoise
from workbench.mechanisms.channel import Channel, Rows
from workbench.mechanisms.mechanism import Mechanism
from workbench.privacy.notions import Notion, delta_notion
from workbench.privacy.notions.laws import Laws

__all__ = ["dp_profile", "dp_profile_channel", "pdp_profile", "pdp_profile_channel"]


def dp_profile(mechanism: AdditiveNoise, epsilons: Iterable[Real]) -> NDArray[np.float64]:
    """The DP δ of additive noise at each ε >= 0, rounded up. Shape (len(epsilons),). Raises InvalidRequest."""
    return _profile(mechanism, epsilons, "dp")


def pdp_profile(mechanism: AdditiveNoise, epsilons: Iterable[Real]) -> NDArray[np.float64]:
    """The PDP δ of additive noise at each ε >= 0, rounded up. Shape (len(epsilons),). Raises InvalidRequest."""
    return _profile(mechanism, epsilons, "pdp")


def dp_profile_channel(
    rows: Rows, pairs: Iterable[Any], epsilons: Iterable[Real], *, directed: bool = False
) -> NDArray[np.float64]:
    """The DP δ of a finite channel at each ε >= 0, rounded up. Shape (len(epsilons),). Raises InvalidRequest."""
    return _profile(Channel.of(rows, pairs, directed=directed), epsilons, "dp")


def pdp_profile_channel(
    rows: Rows, pairs: Iterable[Any], epsilons: Iterable[Real], *, directed: bool = False
) -> NDArray[np.float64]:
    """The PDP δ of a finite channel at each ε >= 0, rounded up. Shape (len(epsilons),). Raises InvalidRequest."""
    return _profile(Channel.of(rows, pairs, directed=directed), epsilons, "pdp")


def _profile(mechanism: Mechanism, epsilons: Iterable[Real], notion: str | Notion) -> NDArray[np.float64]:
    """The δ of a notion at each ε >= 0, rounded up, over all comparisons. Shape (len(epsilons),).

    Raises InvalidRequest.
    """
    found = delta_notion(notion)
    budgets: list[Fraction] = [positive(epsilon, "epsilon", or_zero=True) for epsilon in epsilons]
    curve = np.zeros(len(budgets))
    for one in mechanism.comparisons():
        laws = Laws(one.p, one.q)
        curve = np.maximum(
            curve, [round_up(found.upper(found.measure(laws, {"epsilon": epsilon}))) for epsilon in budgets]
        )
    return curve
