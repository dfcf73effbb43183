"""PDP delta of the baselines as a function of epsilon, exactly stepped, and the least error a baseline can have.

    δ(ε) = max over neighbouring answers q, q' = q ± 1 of  Σ_k Pr[k|q] over {k : Pr[k|q] > e^ε Pr[k|q']}       (2), (3)

is a staircase in ε whose steps are the privacy losses ln Pr[k|q]/Pr[k|q']. The least error is that of the smallest
parameter with δ(ε) <= δ, found by the scan of `workbench.families.modulo.baselines`; `full` scans ten times finer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from workbench.errors import WorkbenchError
from workbench.exact.numbers import exact
from workbench.families.modulo.baselines import Scan
from workbench.papers.modulo_noise.common import Floats

__all__ = ["adjacent_pairs", "least_parameter", "pdp_steps", "two_sided"]

_TIE = 1e-11  # two losses this close are one


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


@lru_cache
def _scan(family: str, n: int, steps: int) -> Scan:
    return Scan(family, n, [1], steps)


def least_parameter(family: str, n: int, epsilon: float, delta: float, *, full: bool = False) -> float:
    """The smallest parameter of a family whose clamped mechanism on 0..n is (epsilon, delta)-PDP for neighbours ± 1."""
    scan = _scan(family, n, 4001 if full else 401)
    best = scan.audited(exact(epsilon, "epsilon"), exact(delta, "delta"), "pdp")
    if best is None:
        raise WorkbenchError(f"No {family} mechanism reaches delta = {delta:g} at epsilon = {epsilon:g}.")
    return best[0]
