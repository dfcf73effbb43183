"""Figs 9, 10, 14 and Table 1: optimal PMFs, and Table 1's staircases beside the true optima.

Table 1 (n = 8, μ̄ = 3, ε = 1.5) is where Theorem 3 shows to be wrong: at δ = .1212 and δ = .1522 the printed PMF is not
optimal. Every printed column is rebuilt as the exact staircase that it rounds, and audited: what it really needs, for
the paper's one-sided differences and for the symmetric ones.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from models.oracles.bounded_difference import column_cut_law
from models.oracles.cut_vectors import Grid
from models.oracles.printed_theorem3 import staircases
from workbench.mechanisms.additive import AdditiveNoise, ModuloNoise
from workbench.papers.artifact import Artifact, Comparison, artifact
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
    staircase,
)
from workbench.papers.modulo_noise.lines import column_cut_curve, printed_curve

__all__ = ["fig9", "fig10", "fig14", "table1", "table1_staircases"]

FIG9_DELTAS = (0.0, 0.1, 0.25, 0.6)
FIG14_EPSILONS = (0.5, 1.0, 1.5)
# column of Table 1 -> the noise values whose printed mass is not that of the optimum
NOT_OPTIMAL = {0.1212: range(9), 0.1522: (0, 1, 2, 3, 6, 8)}


def fig9(full: bool = False) -> Artifact:
    """SD noise for several delta, μ̂ = 3 and μ̂ = 2."""
    printed = numbers()["fig9"]
    given = printed["parameters"]
    rows = []
    for panel, shift in (("a", given["shift_a"]), ("b", given["shift_b"])):
        question = single(given["n"], shift)
        errors = solve_each(question, [(given["epsilon"], delta) for delta in FIG9_DELTAS])
        for delta, error in zip(FIG9_DELTAS, errors, strict=True):
            closed = law(question, given["epsilon"], delta)
            assert closed.pmf is not None
            rows += [(panel, shift, delta, eta, mass, snap(1 - error)) for eta, mass in enumerate(closed.pmf)]
    table = pd.DataFrame(rows, columns=["panel", "shift", "delta", "eta", "law", "solver_f0"])
    zeros = printed["zeros_b"]
    even = table[(table["panel"] == "b")].groupby("eta")["law"].max()
    comparisons = [compare(f"μ̂ = 2: f({eta})", zeros["place"], 0.0, float(even[eta]), 12) for eta in zeros["eta"]]

    return artifact("modulo_noise", "fig9", table, comparisons, listed=", ".join(f"{d:g}" for d in FIG9_DELTAS[1:]))


def fig10(full: bool = False) -> Artifact:
    """BD noise at delta = 0 and at the three printed delta: the true optimum and the printed masses."""
    printed_numbers, shown = numbers()["fig10"], numbers()["table1"]
    given = printed_numbers["parameters"]
    question = bounded(given["n"], given["mu_bar"])
    deltas = [0.0, *printed_numbers["delta"]]
    errors = solve_each(question, [(given["epsilon"], delta) for delta in deltas])
    rows = []
    for delta, error, paper in zip(deltas, errors, shown["pmf"], strict=True):
        closed = column_cut_law(given["n"], given["mu_bar"], given["epsilon"], delta)
        assert closed.pmf is not None
        for eta, mass in enumerate(closed.pmf):
            rows.append(("a" if delta == 0 else "b", delta, eta, mass, snap(1 - error), paper[eta]))
    formulas = staircases(given["n"], given["mu_bar"], given["epsilon"])
    values = (formulas[0].upper, formulas[1].lower, formulas[2].lower)
    comparisons = [
        compare(f"{name} by its printed formula", printed_numbers["place"], printed, value, 4)
        for name, printed, value in zip(printed_numbers["names"], printed_numbers["delta"], values, strict=True)
    ]

    table = pd.DataFrame(rows, columns=["panel", "delta", "eta", "law", "solver_f0", "printed"])
    return artifact("modulo_noise", "fig10", table, comparisons)


def table1_staircases() -> list[tuple[float, AdditiveNoise]]:
    """(printed delta, the exact staircase that the printed column rounds), one for each column of Table 1."""
    given = numbers()["table1"]["parameters"]
    question = bounded(given["n"], given["mu_bar"])
    regions = staircases(given["n"], given["mu_bar"], given["epsilon"])
    chosen = (regions[0], regions[0], regions[1], regions[2])
    return [
        (delta, staircase(question, np.repeat(np.arange(len(r.lengths)), r.lengths).tolist(), given["epsilon"]))
        for delta, r in zip(numbers()["table1"]["delta"], chosen, strict=True)
    ]


def table1(full: bool = False) -> Artifact:
    """Table 1: printed PMFs, what they need, and the optimum at the same delta, one-sided and symmetric."""
    printed = numbers()["table1"]
    given = printed["parameters"]
    n, mu_bar, epsilon = given["n"], given["mu_bar"], given["epsilon"]
    sides = {"one-sided": bounded(n, mu_bar), "symmetric": bounded(n, mu_bar, directed=False)}
    rows: list[dict[str, object]] = []
    comparisons: list[Comparison] = []
    best = {
        name: [1 - error for error in solve_each(question, [(epsilon, d) for d in printed["delta"]])]
        for name, question in sides.items()
    }
    for column, (delta, printed_noise) in enumerate(table1_staircases()):
        closed = column_cut_law(n, mu_bar, epsilon, delta)
        assert closed.pmf is not None
        pmf = [snap(best["one-sided"][column]), *closed.pmf[1:].tolist()]
        row: dict[str, object] = {"delta": delta, "printed_f0": printed["pmf"][column][0]}
        row["optimum_f0"] = pmf[0]
        row["law_f0"] = float(closed.pmf[0])
        row["law_kind"] = closed.kind
        row["printed_needs_delta"] = snap(needed(printed_noise, sides["one-sided"], epsilon))
        row["optimum_needs_delta"] = snap(needed(closed.pmf, sides["one-sided"], epsilon))
        row["printed_needs_delta_symmetric"] = snap(needed(printed_noise, sides["symmetric"], epsilon))
        row["optimum_f0_symmetric"] = snap(best["symmetric"][column])
        row |= {f"f{eta}": mass for eta, mass in enumerate(closed.pmf)}
        rows.append(row)
        for eta, value in enumerate(printed["pmf"][column]):
            differs = eta in NOT_OPTIMAL.get(delta, ())
            remark = "Theorem 3 is not optimal" if differs else ""
            what = f"δ = {delta:g}: f({eta})"
            comparisons.append(compare(what, printed["place"], value, pmf[eta], 4, expected=not differs, remark=remark))
    table = pd.DataFrame(rows)
    both = table["printed_needs_delta_symmetric"]
    proven = int((table["law_kind"] == "optimum").sum())

    return artifact(
        "modulo_noise",
        "table1",
        table,
        comparisons,
        further={
            "optimum": pd.DataFrame(column_cut_curve(Grid(n, mu_bar, epsilon)), columns=["delta", "f0"]),
            "theorem3": pd.DataFrame(printed_curve(n, mu_bar, epsilon), columns=["delta", "f0"]),
        },
        proven=proven,
        count_table=len(table),
        least_both=both.min(),
        most_both=both.max(),
        symmetric=1 - best["symmetric"][0],
        one_sided=1 - best["one-sided"][0],
    )


def fig14(full: bool = False) -> Artifact:
    """Noise for the differences observed in the AMI data, arbitrary neighbourhoods."""
    given = numbers()["fig14"]["parameters"]
    rows = []
    for panel in ("left", "right"):
        n, shifts = given[panel]["n"], given[panel]["shifts"]
        question = ModuloNoise(n=n, shifts=shifts, directed=True)
        for epsilon in FIG14_EPSILONS:
            closed, solved = law(question, epsilon), solve(question, epsilon)
            assert closed.pmf is not None
            relation = "{" + ", ".join(map(str, shifts)) + "}"
            for eta, mass in enumerate(closed.pmf):
                f = snap(solved.mechanism.pmf[eta])
                rows.append((panel, n, relation, epsilon, eta, mass, f, snap(solved.mechanism.pmf[0]), closed.value))
    columns = ["panel", "n", "shifts", "epsilon", "eta", "law", "solver", "solver_f0", "error_rate"]

    return artifact("modulo_noise", "fig14", pd.DataFrame(rows, columns=columns))
