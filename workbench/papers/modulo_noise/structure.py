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
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from models.oracles.bounded_difference import column_cut_law
from models.oracles.cut_vectors import Grid
from models.oracles.printed_theorem3 import printed_pmf, staircases
from models.oracles.single_distance import breakpoints
from workbench.io.figures import COLOURS, SOLVER, legend_below, panels
from workbench.papers.artifact import Artifact
from workbench.papers.modulo_noise.common import (
    DIRECTED,
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

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    caption = (
        "Optimal noise for one difference μ̂ (SD) at δ = 0, n = 7: (a) μ̂ = 3 reaches every noise value, (b) μ̂ = 2 "
        "only the even ones. Bars: Lemma 3; dots: LP (14) solved by HiGHS; the number above a bar counts the hops of "
        "μ̂ from 0. The paper draws a sketch and omits ε; ours has ε = 0.75, as in Fig. 9. " + DIRECTED
    )
    return Artifact(
        "fig1", "Fig. 1: structure of optimal noise, single distance", pd.DataFrame(rows, columns=columns),
        _draw1, caption, comparisons,
    )  # fmt: skip


def _draw1(table: pd.DataFrame) -> Figure:
    figure, axes = panels(2)
    for axis, (panel, part) in zip(axes, table.groupby("panel"), strict=True):
        axis.bar(part["eta"], part["law"], color=COLOURS[0], label="Lemma 3 (number: hops of μ̂ from 0)")
        axis.plot(part["eta"], part["solver"], color=COLOURS[1], marker="o", label="LP (14), HiGHS", **SOLVER)
        for eta, hops, mass in zip(part["eta"], part["hops"], part["law"], strict=True):
            text, colour = (str(hops), "black") if hops >= 0 else ("–", "#777777")
            axis.annotate(text, (eta, mass), (0, 6), textcoords="offset points", ha="center", fontsize=9, color=colour)
        first = part.iloc[0]
        parameters = f"n = {first['n']}, μ̂ = {first['shift']}, ε = {first['epsilon']:g}, δ = 0"
        axis.set_title(f"({panel}) {parameters}", fontsize=10)
        axis.set_xlabel("noise value η")
        axis.set_ylabel("probability f(η)")
        axis.set_xticks(part["eta"])
        axis.set_ylim(0, 0.62)
    legend_below(figure, axes[:1], columns=2)
    return figure


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
    caption = (
        f"Optimal error rate against δ for one difference (SD), n = {n}, μ̂ = {shift}, ε = {epsilon}: flat from δ̲ₖ "
        "to δ̄ₖ, falling linearly in between, breakpoints exact by (19). Dots: MILP (13) solved by HiGHS, in the "
        "middle of every region. The paper draws a sketch without parameters; these are ours, so that every section "
        "can be seen. " + DIRECTED
    )
    table = pd.DataFrame(rows, columns=["kind", "k", "name", "delta", "error_rate", "solver"])
    return Artifact("fig2", "Fig. 2: error rate against δ, single distance", table, _draw2, caption)


def _sub(k: int) -> str:
    return str(k).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))


def _draw2(table: pd.DataFrame) -> Figure:
    figure, (axis,) = panels(width=7.2, height=4.6)
    flat = table[table["kind"] == "flat"]
    points = flat[["delta", "error_rate"]].to_numpy()
    for i in range(len(points) - 1):
        horizontal = i % 2 == 0
        label = {0: "flat region", 1: "linear region"}.get(i)
        colour = COLOURS[0] if horizontal else COLOURS[1]
        axis.plot(points[i : i + 2, 0], points[i : i + 2, 1], color=colour, linewidth=2.2, label=label)
    solved = table[table["kind"] == "solver"]
    axis.plot(solved["delta"], solved["solver"], color="black", marker="o", label="MILP (13), HiGHS", **SOLVER)
    for name, delta, error in flat[["name", "delta", "error_rate"]].itertuples(index=False):
        start = name.startswith("δ̲")
        if 0 < delta < 1:
            axis.annotate(
                name, (delta, error), (-3, -15) if start else (3, 6), textcoords="offset points",
                ha="right" if start else "left", fontsize=10,
            )  # fmt: skip
    parameters = f"n = {FIG2['n']}, μ̂ = {FIG2['shift']}, ε = {FIG2['epsilon']}"
    axis.set_title(f"Optimal error rate, single distance ({parameters})", fontsize=10)
    axis.set_xlabel("δ")
    axis.set_ylabel("error rate ρ*(δ, ε)")
    axis.set_xlim(0, 1)
    axis.set_ylim(0, 0.62)
    legend_below(figure, [axis])
    return figure


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
    caption = (
        f"Noise for bounded differences (BD), n = {n}, μ̄ = {mu_bar}, ε = {epsilon:g}, (a) in a flat and (b) in a "
        "linear region of Theorem 3. Bars: the optimum (column-cut law, proven here); steps: the PMF that Theorem 3 "
        "prints for the same δ, computed by us from (30)-(41); diamond: f(0) found by MILP (13). In (a) Theorem 3 is "
        "not optimal; in (b) its f(0) is, but its PMF is not private for its δ (exact audit). The paper draws a "
        "sketch without parameters; ours satisfy its condition b + r < μ̄. " + DIRECTED
    )
    return Artifact(
        "fig3", "Fig. 3: structure of optimal noise, bounded difference", pd.DataFrame(rows, columns=columns),
        _draw3, caption,
    )  # fmt: skip


def _draw3(table: pd.DataFrame) -> Figure:
    figure, axes = panels(2, height=4.3)
    for axis, (panel, part) in zip(axes, table.groupby("panel"), strict=True):
        first = part.iloc[0]
        axis.bar(part["eta"], part["law"], color=COLOURS[0], alpha=0.85, label="optimum (column-cut law)")
        edges = np.append(part["eta"] - 0.5, part["eta"].iloc[-1] + 0.5)
        axis.stairs(part["theorem3"], edges, baseline=None, color=COLOURS[1], linewidth=2, label="Theorem 3 as printed")
        axis.plot([0], [first["solver_f0"]], color="black", marker="D", label="f(0) by MILP (13), HiGHS", **SOLVER)
        kind = "flat" if panel == "a" else "linear"
        axis.set_title(
            f"({panel}) {kind} region, δ = {first['delta']:g}\n"
            f"optimum: f(0) = {first['law']:.5f}, needs δ = {first['law_delta']:.5f}\n"
            f"Theorem 3: f(0) = {first['theorem3']:.5f}, needs δ = {first['theorem3_delta']:.5f}",
            fontsize=10,
        )
        axis.set_yscale("log")
        axis.set_ylim(3e-3, 0.6)
        axis.set_xlabel("noise value η")
        axis.set_ylabel("probability f(η), logarithmic")
        axis.set_xticks(part["eta"])
    legend_below(figure, axes[:1])
    return figure


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
    caption = (
        f"f(0) = 1 - ρ* against δ for bounded differences (BD), n = {n}, μ̄ = {mu_bar}, ε = {epsilon:g} (b = 3, r = "
        "0). Blue: column-cut law with exact breakpoints, proven optimal for these parameters; dots: MILP (13) solved "
        f"by HiGHS; orange: Theorem 3 as printed, with its {regions} flat regions after Lemma 4, which lies below the "
        "optimum. The paper draws a sketch without parameters. " + DIRECTED
    )
    table = pd.DataFrame(rows, columns=["curve", "delta", "f0"])
    return Artifact("fig4", "Fig. 4: f(0) against δ, bounded difference", table, _draw4, caption)


def _draw4(table: pd.DataFrame) -> Figure:
    figure, (axis,) = panels(width=7.2, height=4.6)
    curves = dict(list(table.groupby("curve")))
    axis.plot(
        curves["law"]["delta"], curves["law"]["f0"], color=COLOURS[0], linewidth=2, label="optimum (column-cut law)"
    )
    axis.plot(
        curves["theorem3"]["delta"], curves["theorem3"]["f0"], "--", color=COLOURS[1], linewidth=1.8,
        label="Theorem 3 as printed",
    )  # fmt: skip
    axis.plot(
        curves["solver"]["delta"], curves["solver"]["f0"], color="black", marker="o", label="MILP (13), HiGHS", **SOLVER
    )
    parameters = f"n = {FIG3['n']}, μ̄ = {FIG3['mu_bar']}, ε = {FIG3['epsilon']:g}"
    axis.set_title(f"Largest f(0), bounded difference ({parameters})", fontsize=10)
    axis.set_xlabel("δ")
    axis.set_ylabel("f(0) = 1 − ρ*")
    axis.set_xlim(-0.008, 0.42)
    axis.set_ylim(0.3, 0.43)
    legend_below(figure, [axis])
    return figure
