"""Figs 11 and 12, and one figure the paper has not: the error rate of PDP and of DP at the same (epsilon, delta).

Lines are closed forms (proven where drawn, see each caption), points are MILP (13) or the DP-LP, solved by HiGHS.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from models.oracles.cut_vectors import Grid
from workbench.families.requirements import HOCKEY_STICK, ratio_kind
from workbench.mechanisms.additive import ModuloNoise
from workbench.papers.artifact import Artifact, artifact
from workbench.papers.modulo_noise.common import bounded, law, numbers, single, solve_each
from workbench.papers.modulo_noise.lines import column_cut_curve, printed_curve, single_curve

__all__ = ["dp_vs_pdp", "fig11", "fig12"]

FIG11_EPSILONS = (0.5, 1.0, 1.5, 2.0)
FIG11_DELTAS = (0.0, 0.2, 0.5, 0.7)
FIG12_EPSILONS = (0.75, 1.5, 2.25)  # at least ln 2, where the column-cut law is proven (μ̄ = 3 divides n = 9)
NOTIONS = ("pdp", "dp")
DP_VS_PDP = {"n": 8, "mu_bar": 3, "epsilon": 1.5}


def fig11(full: bool = False) -> Artifact:
    """The error rate of BD noise against the reach μ̄ of the neighbours."""
    given = numbers()["fig11"]["parameters"]
    n = given["left"]["n"]
    left = [("left", epsilon, given["left"]["delta"]) for epsilon in FIG11_EPSILONS]
    right = [("right", given["right"]["epsilon"], delta) for delta in FIG11_DELTAS]
    rows = []
    for mu_bar in range(1, n + 1):
        question = bounded(n, mu_bar)
        errors = solve_each(question, [(epsilon, delta) for _, epsilon, delta in left + right])
        for (panel, epsilon, delta), error in zip(left + right, errors, strict=True):
            closed = law(question, epsilon, delta)
            rows.append((panel, mu_bar, epsilon, delta, error, closed.value, closed.name, closed.kind))
    table = pd.DataFrame(rows, columns=["panel", "mu_bar", "epsilon", "delta", "solver", "law", "law_name", "law_kind"])
    unproven = int((table["law_kind"] != "optimum").sum())
    searched = int((table["law_name"] == "level search").sum())

    return artifact("modulo_noise", "fig11", table, searched=searched, count_table=len(table), unproven=unproven)


def fig12(full: bool = False) -> Artifact:
    """The error rate of SD and BD noise against delta."""
    given = numbers()["fig12"]["parameters"]
    n, shift, mu_bar = given["a"]["n"], given["a"]["shift"], given["b"]["mu_bar"]
    order = single(n, shift).order // np.gcd(n + 1, shift)
    grid = [0.0, *np.round(np.linspace(0.05, 0.95, 10 if not full else 37), 4).tolist()]
    rows: list[tuple[object, ...]] = []
    for panel, question in (("a", single(n, shift)), ("b", bounded(n, mu_bar))):
        errors = solve_each(question, [(epsilon, delta) for epsilon in FIG12_EPSILONS for delta in grid])
        for k, epsilon in enumerate(FIG12_EPSILONS):
            solved = errors[k * len(grid) : (k + 1) * len(grid)]
            line = single_curve(int(order), epsilon) if panel == "a" else column_cut_curve(Grid(n, mu_bar, epsilon))
            rows += [(panel, "law", epsilon, delta, 1 - mass) for delta, mass in line]
            rows += [(panel, "solver", epsilon, delta, error) for delta, error in zip(grid, solved, strict=True)]
            if panel == "b":
                points = printed_curve(n, mu_bar, epsilon)
                rows += [(panel, "theorem3", epsilon, delta, 1 - mass) for delta, mass in points]

    table = pd.DataFrame(rows, columns=["panel", "curve", "epsilon", "delta", "error_rate"])
    return artifact("modulo_noise", "fig12", table)


def dp_vs_pdp(full: bool = False) -> Artifact:
    """The error rate under PDP and under DP at the same epsilon and delta, one-sided and symmetric differences."""
    n, mu_bar, epsilon = int(DP_VS_PDP["n"]), int(DP_VS_PDP["mu_bar"]), DP_VS_PDP["epsilon"]
    grid = [0.0, *np.round(np.linspace(0.025, 0.6, 24), 4).tolist()]
    rows: list[tuple[object, ...]] = []
    for relation, question in (("one-sided", bounded(n, mu_bar)), ("symmetric", bounded(n, mu_bar, directed=False))):
        for notion in NOTIONS:
            errors = solve_each(question, [(epsilon, delta) for delta in grid], notion=notion)
            rows += [(relation, notion, "solver", d, error) for d, error in zip(grid, errors, strict=True)]
            rows += [(relation, notion, "law", d, e) for d, e in _line(question, n, mu_bar, epsilon, notion)]
    table = pd.DataFrame(rows, columns=["relation", "notion", "curve", "delta", "error_rate"])
    at = table[(table["relation"] == "one-sided") & (table["curve"] == "solver") & (table["delta"] == 0.2)]
    pdp, dp = at["error_rate"]

    return artifact("modulo_noise", "dp_vs_pdp", table, n=n, mu_bar=mu_bar, epsilon=epsilon, pdp=pdp, dp=dp)


def _line(question: ModuloNoise, n: int, mu_bar: int, epsilon: float, notion: str) -> list[tuple[float, float]]:
    if ratio_kind(notion) == HOCKEY_STICK:  # a line
        return [(delta, law(question, epsilon, delta, notion).value) for delta in (0.0, 1.0)]
    if question.directed:
        return [(delta, 1 - mass) for delta, mass in column_cut_curve(Grid(n, mu_bar, epsilon))]
    fine = [float(delta) for delta in np.round(np.linspace(0, 0.6, 241), 4)]
    return [(delta, law(question, epsilon, delta).value) for delta in fine]
