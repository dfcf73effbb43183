"""Curves with their exact breakpoints, as the points to join by straight lines.

    f(0) = max{ 1/T₀, max over cuts of min(1/T, δ/S) }    rises from flat level to flat level (`models.oracles.cuts`)

A flat level 1/T is reached at δ = S/T and left at δ = S'/T, where the next cut (of loss S') begins to pay.
"""

from __future__ import annotations

import numpy as np

from models.oracles.column_cut import every_cut
from models.oracles.cut_vectors import Grid
from models.oracles.cuts import level_cuts
from models.oracles.printed_theorem3 import staircases
from workbench.errors import WorkbenchError
from workbench.papers.modulo_noise.common import Floats

__all__ = ["column_cut_curve", "cut_curve", "printed_curve", "single_curve"]

Points = list[tuple[float, float]]


def cut_curve(totals: Floats, losses: Floats, total: float) -> Points:
    """(δ, f(0)) at every breakpoint of the upper envelope of cuts, from δ = 0 to δ = 1.

    totals, losses: T and S of the cuts, shape (cuts,), the cut of everything but 0 (T = S = 1) included; total: T₀.
    """
    points, level = [(0.0, 1.0 / total)], 1.0 / total
    for index in np.lexsort((totals, losses)):  # cheapest first; at one price the highest level
        reached, loss = 1.0 / float(totals[index]), float(losses[index])
        if reached > level * (1 + 1e-12):
            points += [(level * loss, level), (reached * loss, reached)]
            level = reached
    return points


def column_cut_curve(grid: Grid) -> Points:
    """(δ, f(0)) of the column-cut law at its breakpoints."""
    cuts = every_cut(grid)
    if cuts is None:
        raise WorkbenchError(f"Too many cut vectors to list for n = {grid.n}, mu_bar = {grid.mu_bar}.")
    return cut_curve(np.append(cuts.totals, 1.0), np.append(cuts.losses, 1.0), grid.total)


def single_curve(order: int, epsilon: float) -> Points:
    """(δ, f(0)) of Theorem 2 at its breakpoints; order: N_μ."""
    cuts = level_cuts((order,), ((1,),), epsilon)
    return cut_curve(cuts.totals, cuts.losses, cuts.total)


def printed_curve(n: int, mu_bar: int, epsilon: float) -> Points:
    """(δ, f(0)) of Theorem 3 as printed, at its printed boundaries; wrong, see `errata_theorem3`."""
    points: Points = []
    for stairs in staircases(n, mu_bar, epsilon):
        points += [(stairs.lower, stairs.mass), (stairs.upper, stairs.mass)]
    return [*points, (1.0, 1.0)]
