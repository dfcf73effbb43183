"""Figs 1-4: what optimal noise looks like, and how its error falls with delta.

| figure | question                                          | closed form                                     |
|--------|---------------------------------------------------|-------------------------------------------------|
| 1      | SD, delta = 0, μ̂ prime to n + 1 or not            | Lemma 3                                         |
| 2      | SD, error rate against delta                      | Theorem 2, breakpoints (19)                     |
| 3      | BD, a flat and a linear region                    | column-cut law; Theorem 3 as printed beside it  |
| 4      | BD, f(0) against delta                            | column-cut law; Theorem 3 as printed beside it  |
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd

from models.oracles.bounded_difference import column_cut_law
from models.oracles.cut_vectors import Grid
from models.oracles.printed_theorem3 import printed_pmf, staircases
from models.oracles.single_distance import breakpoints
from workbench.papers.artifact import Artifact, artifact
from workbench.papers.modulo_noise.common import (
    bounded,
    compare,
    law,
    needed,
    numbers,
    single,
    snap,
    solve,
    solve_each,
)
from workbench.papers.modulo_noise.lines import column_cut_curve, printed_curve

__all__ = ["fig1", "fig2", "fig3", "fig4"]

FIG1_EPSILON = 0.75  # as in Fig. 9, which shows the same two cases
FIG2 = {"n": 4, "shift": 1, "epsilon": 0.5}  # few sections, none too short to see
FIG3 = {"n": 12, "mu_bar": 4, "epsilon": 1.0}  # b + r = 3 < μ̄ as Theorem 3 asks; μ̄ | n and ε >= ln 2: the law is proven
FIG3_DELTAS = (0.14, 0.1186)  # a flat and a linear region, of the optimum and of Theorem 3 alike


def fig1(full: bool = False) -> Artifact:
    """The PMF of SD noise, and the order in which the hops of μ̂ reach the noise values."""
    rows, comparisons = [], []
    for panel, place in (("a", "order_a"), ("b", "order_b")):
        printed = numbers()["fig1"][place]
        n, shift = numbers()["fig1"]["parameters"]["n"], printed["shift"]
        question = single(n, shift)
        closed, solved = law(question, FIG1_EPSILON), solve(question, FIG1_EPSILON)
        assert closed.pmf is not None
        for eta in range(n + 1):
            hops = next((h for h in range(n + 1) if h * shift % (n + 1) == eta), -1)
            rows.append((panel, n, shift, FIG1_EPSILON, eta, hops, closed.pmf[eta], snap(solved.mechanism.pmf[eta])))
        largest_first = np.argsort(-closed.pmf, kind="stable")
        for position, eta in enumerate(printed["order"]):
            what = f"μ̂ = {shift}: noise value whose mass has rank {position + 1}"
            comparisons.append(compare(what, printed["place"], eta, int(largest_first[position]), 0))
        comparisons += [
            compare(f"μ̂ = {shift}: f({eta})", printed["place"], 0.0, float(closed.pmf[eta]), 12)
            for eta in printed.get("zero", ())
        ]
    columns = ["panel", "n", "shift", "epsilon", "eta", "hops", "law", "solver"]

    return artifact("modulo_noise", "fig1", pd.DataFrame(rows, columns=columns), comparisons)


def fig2(full: bool = False) -> Artifact:
    """The error rate of SD noise against delta: flat and linear regions in turn."""
    n, shift, epsilon = FIG2["n"], FIG2["shift"], FIG2["epsilon"]
    question = single(int(n), int(shift))
    lower, upper = breakpoints(int(n) + 1, epsilon)
    rows: list[tuple[object, ...]] = []
    for k in range(int(n) + 1):
        error = law(question, epsilon, float(lower[k])).value
        rows.append(("flat", k, f"δ̲{_sub(k)}", lower[k], error, np.nan))
        rows.append(("flat", k, f"δ̄{_sub(k)}", upper[k], error, np.nan))
    ends = [float(d) for pair in zip(lower, upper, strict=True) for d in pair]
    middles = [(a + b) / 2 for a, b in pairwise(ends[:-1])]
    for delta, error in zip(middles, solve_each(question, [(epsilon, delta) for delta in middles]), strict=True):
        rows.append(("solver", -1, "", delta, law(question, epsilon, delta).value, error))

    table = pd.DataFrame(rows, columns=["kind", "k", "name", "delta", "error_rate", "solver"])
    return artifact("modulo_noise", "fig2", table, n=n, shift=shift, epsilon=epsilon)


def _sub(k: int) -> str:
    return str(k).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))


def fig3(full: bool = False) -> Artifact:
    """BD noise in a flat and a linear region: the printed staircase and the true optimum at the same delta."""
    n, mu_bar, epsilon = int(FIG3["n"]), int(FIG3["mu_bar"]), FIG3["epsilon"]
    question = bounded(n, mu_bar)
    rows = []
    for panel, delta in zip("ab", FIG3_DELTAS, strict=True):
        closed = column_cut_law(n, mu_bar, epsilon, delta)
        paper = printed_pmf(n, mu_bar, epsilon, delta)
        assert closed.pmf is not None
        solved = solve_each(question, [(epsilon, delta)])[0]
        uses = (snap(needed(closed.pmf, question, epsilon)), snap(needed(paper, question, epsilon)))
        rows += [
            (panel, epsilon, delta, eta, closed.pmf[eta], paper[eta], snap(1 - solved), *uses) for eta in range(n + 1)
        ]
    columns = ["panel", "epsilon", "delta", "eta", "law", "theorem3", "solver_f0", "law_delta", "theorem3_delta"]

    return artifact("modulo_noise", "fig3", pd.DataFrame(rows, columns=columns), n=n, mu_bar=mu_bar, epsilon=epsilon)


def fig4(full: bool = False) -> Artifact:
    """f(0) of BD noise against delta: the true curve, the printed one, the solver's points."""
    n, mu_bar, epsilon = int(FIG3["n"]), int(FIG3["mu_bar"]), FIG3["epsilon"]
    question = bounded(n, mu_bar)
    rows: list[tuple[object, ...]] = []
    for delta, mass in column_cut_curve(Grid(n, mu_bar, epsilon)):
        rows.append(("law", delta, mass))
    for delta, mass in printed_curve(n, mu_bar, epsilon):
        rows.append(("theorem3", delta, mass))
    grid = [0.0, *np.round(np.linspace(0.02, 0.4, 20 if not full else 77), 4).tolist()]
    for delta, error in zip(grid, solve_each(question, [(epsilon, delta) for delta in grid]), strict=True):
        rows.append(("solver", delta, snap(1 - error)))
    regions = len(staircases(n, mu_bar, epsilon)) - 1

    table = pd.DataFrame(rows, columns=["curve", "delta", "f0"])
    return artifact("modulo_noise", "fig4", table, n=n, mu_bar=mu_bar, epsilon=epsilon, regions=regions)
