"""PDP delta of the baselines as a function of epsilon, exactly stepped, and the least error a baseline can have.

    δ(ε) = max over neighbouring answers q, q' = q ± 1 of  Σ_k Pr[k|q] over {k : Pr[k|q] > e^ε Pr[k|q']}       (2), (3)

is a staircase in ε whose steps are the privacy losses ln Pr[k|q]/Pr[k|q']. The least error is that of the smallest
parameter with δ(ε) <= δ, since error grows with the parameter: a scan of the parameter, refined by bisection, whose
result is audited exactly. (δ need not fall as the parameter grows, so a feasible stretch narrower than the scan's step
could be missed; `full` scans ten times finer.)
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from workbench.errors import WorkbenchError
from workbench.mechanisms.channel import within
from workbench.mechanisms.fitting import FAMILIES
from workbench.papers.modulo_noise.common import Floats
from workbench.privacy.profile import pdp_profile_channel

__all__ = ["adjacent_pairs", "least_parameter", "pdp_steps", "two_sided"]

_TIE = 1e-11  # two losses this close are one
_RANGES = {"geometric": (0.002, 0.9995), "gaussian": (math.log(0.01), math.log(1e4)), "exponential": (0.02, 60.0)}


def adjacent_pairs(table: Floats) -> tuple[Floats, Floats]:
    """Rows q and rows q ± 1 of a channel, aligned. Shapes (2n, outputs)."""
    return np.concatenate([table[:-1], table[1:]]), np.concatenate([table[1:], table[:-1]])


def two_sided(weights: Callable[[Floats], Floats], reach: int) -> tuple[Floats, Floats]:
    """The law proportional to weights(η) on -reach..reach, and the same law moved by one: noise without clamping."""
    eta = np.arange(-reach, reach + 1, dtype=float)
    law = weights(eta)
    law = law / law.sum()
    return law[None, :-1], law[None, 1:]


def pdp_steps(p: Floats, q: Floats, most: float) -> list[tuple[float, float]]:
    """(ε from which on, δ) of the staircase δ(ε) on [0, most], of all pairs of rows p[i], q[i]."""
    with np.errstate(divide="ignore", invalid="ignore"):
        losses = np.where(p > 0, np.log(p / q), -np.inf)
    starts = np.unique(np.round(losses[(losses > _TIE) & (losses <= most)], 11))
    points: list[tuple[float, float]] = []
    for start in (0.0, *starts.tolist()):
        delta = float(np.where(losses > start + _TIE, p, 0.0).sum(axis=1).max())
        if not points or delta < points[-1][1] - 1e-15:
            points.append((float(start), delta))
    return points


def _delta(table: Floats, epsilon: float) -> float:
    p, q = adjacent_pairs(table)
    return float(np.where(p > math.exp(epsilon) * q * (1 + _TIE), p, 0.0).sum(axis=1).max())


def least_parameter(family: str, n: int, epsilon: float, delta: float, *, full: bool = False) -> float:
    """The smallest parameter of a family whose clamped mechanism on 0..n is (epsilon, delta)-PDP for neighbours ± 1."""
    baseline = FAMILIES[family]
    low, high = _RANGES[family]
    grid = np.linspace(low, high, 4001 if full else 401)
    first = next((i for i, x in enumerate(grid) if _delta(baseline.table(n, float(x)), epsilon) <= delta), None)
    if first is None:
        raise WorkbenchError(f"No {family} mechanism reaches delta = {delta:g} at epsilon = {epsilon:g}.")
    good, bad = float(grid[first]), float(grid[max(first - 1, 0)])
    for _ in range(50):
        middle = (good + bad) / 2
        good, bad = (middle, bad) if _delta(baseline.table(n, middle), epsilon) <= delta else (good, middle)
    found = baseline.parameter(good) * (1 + 1e-9)  # off the tie, so that exact arithmetic agrees
    audited = float(pdp_profile_channel(baseline.build(n, found), within(n, 1), [epsilon])[0])
    if audited > delta:
        raise WorkbenchError(f"The exact audit gives delta = {audited:g} for {family} at {found:g}, asked {delta:g}.")
    return found
