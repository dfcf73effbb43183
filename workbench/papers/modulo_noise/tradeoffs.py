"""Fig. 7: the (epsilon, delta) trade-off at equal error, minimum delta by (15) against the baselines.

Every baseline is fitted to the error (`fit`), its delta is an exact staircase in epsilon (`pdp_steps`). The optimum at
a fixed error rate is Corollary 1, exact, with the MILP's points on it; at a fixed MSE there is only the MILP.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from models.oracles.single_distance import level_curve
from workbench.mechanisms.baselines.fitting import FAMILIES, fit
from workbench.papers.artifact import Artifact, artifact
from workbench.papers.modulo_noise.baseline_curves import adjacent_pairs, pdp_steps
from workbench.papers.modulo_noise.common import least_deltas, numbers, single
from workbench.papers.modulo_noise.comparisons import epsilons

__all__ = ["fig7"]

MOST = 3.0  # the largest ε shown


def fig7(full: bool = False) -> Artifact:
    """Least delta against epsilon at MSE 0.6101 (a) and at error rate 0.3 (b)."""
    given = numbers()["fig7"]["parameters"]
    grid = epsilons(full)
    rows: list[tuple[object, ...]] = []
    n, mse = given["a"]["n"], given["a"]["mse"]
    for name, loss, directed in (("optimal", "eta-squared", True), ("symmetric", "squared", False)):
        deltas = least_deltas(single(n, 1, directed=directed), [(epsilon, mse) for epsilon in grid], loss=loss)
        rows += [("a", name, "solver", np.nan, e, delta) for e, delta in zip(grid, deltas, strict=True)]
    for name in ("geometric", "gaussian", "exponential"):
        x = fit(name, n, mse=mse)
        steps = pdp_steps(*adjacent_pairs(FAMILIES[name].build(n, x).matrix), MOST)
        rows += [("a", name, "steps", x, epsilon, delta) for epsilon, delta in steps]
    n, rho = given["b"]["n"], given["b"]["error_rate"]
    fine = [float(e) for e in np.round(np.arange(0.25, 3.0001, 0.005), 4)]
    for name, directed in (("optimal", True), ("symmetric", False)):
        deltas = least_deltas(single(n, 1, directed=directed), [(epsilon, rho) for epsilon in grid])
        rows += [("b", name, "solver", np.nan, e, delta) for e, delta in zip(grid, deltas, strict=True)]
        rows += [("b", name, "law", np.nan, e, level_curve(n + 1, e, rho, both_ways=not directed)) for e in fine]
    for name in ("geometric", "gaussian"):
        x = fit(name, n, error_rate=rho)
        steps = pdp_steps(*adjacent_pairs(FAMILIES[name].build(n, x).matrix), MOST)
        rows += [("b", name, "steps", x, epsilon, delta) for epsilon, delta in steps]
    private = math.log((1 - rho) * n / rho)  # from here on f(0) <= e^ε f(η): no violation at all
    rows += [("b", "independent", "steps", rho, 0.0, 1 - rho), ("b", "independent", "steps", rho, private, 0.0)]

    columns = ["panel", "mechanism", "curve", "parameter", "epsilon", "delta"]
    return artifact("modulo_noise", "fig7", pd.DataFrame(rows, columns=columns))
