"""Printed numbers beside tables of declared/modulo_noise.toml that are no column of theirs, and Table 1.

Table 1 (n = 8, μ̄ = 3, ε = 1.5) is where Theorem 3 shows to be wrong: at δ = .1212 and δ = .1522 the printed PMF is not
optimal. Every printed column is rebuilt as the exact staircase that it rounds, and audited: what it really needs, for
the paper's one-sided differences and for the symmetric ones.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from workbench.exact.objects import Record
from workbench.mechanisms.additive import AdditiveNoise
from workbench.models.oracles.bounded_difference import column_cut_law
from workbench.models.oracles.printed_theorem3 import Staircase, staircases
from workbench.papers.artifact import Artifact, make_artifact
from workbench.papers.modulo_noise.common import (
    compare,
    needed,
    numbers,
    question_of,
    snap,
    solve_each,
    staircase,
)
from workbench.papers.modulo_noise.curves import exact_curve, printed_curve

# column of Table 1 -> the noise values whose printed mass is not that of the optimum
NOT_OPTIMAL = {0.1212: range(9), 0.1522: (0, 1, 2, 3, 6, 8)}


def orders(table: pd.DataFrame) -> Record:
    """The order in which the hops of μ̂ reach the noise values, and those they never reach."""
    comparisons = []
    for panel, part in table.groupby("panel"):
        printed, masses = numbers()["fig1"][f"order_{panel}"], part.set_index("eta")["law"]
        ranks = masses.sort_values(ascending=False, kind="stable").index
        what, place = f"μ̂ = {printed['shift']}", printed["place"]
        for rank, (eta, ours) in enumerate(zip(printed["order"], ranks, strict=False), 1):
            comparisons.append(
                compare(f"{what}: noise value whose mass has rank {rank}", place, eta, int(ours), 0)
            )
        zeros = printed.get("zero", [])
        comparisons += [
            compare(f"{what}: f({eta})", place, 0.0, float(masses[eta]), 12) for eta in zeros
        ]
    return {"comparisons": comparisons}


def boundaries(table: pd.DataFrame) -> Record:
    """The printed boundaries of regions, by their printed formulas."""
    printed = numbers()["fig10"]
    first, second, third = staircases(
        *(printed["parameters"][name] for name in ("n", "mu_bar", "epsilon"))
    )[:3]
    values = (first.upper, second.lower, third.lower)
    comparisons = [
        compare(f"{name} by its printed formula", printed["place"], delta, value, 4)
        for name, delta, value in zip(printed["names"], printed["delta"], values, strict=True)
    ]
    return {"comparisons": comparisons}


def peaks(table: pd.DataFrame) -> Record:
    """Where the second largest peaks are."""
    peaks, masses = numbers()["fig13"]["second_peaks"], table[table["panel"] == "b"]
    second = masses[masses["law"].round(12).rank(method="dense", ascending=False) == 2]
    places = sorted(10 * second["eta1"] + second["eta2"])
    printed = sorted(10 * first + last for first, last in peaks["eta"])
    comparisons = [
        compare(
            f"second largest peak no. {k}, as the number 10 η₁ + η₂",
            peaks["place"],
            theirs,
            int(ours),
            0,
        )
        for k, (theirs, ours) in enumerate(zip(printed, places, strict=True), 1)
    ]
    return {"comparisons": comparisons}


def overtaken(table: pd.DataFrame) -> Record:
    """The ε from which on geometric noise errs less than symmetric optimal noise."""
    rates = table[table["panel"] == "b"].pivot(index="epsilon", columns="mechanism", values="error")
    return {"overtaken": float(rates.index[rates["geometric"] < rates["symmetric"]].min())}


def levels(stairs: Staircase) -> list[int]:
    """The level of each noise value of a staircase."""
    return np.repeat(np.arange(len(stairs.lengths)), stairs.lengths).tolist()


def table1_staircases() -> list[tuple[float, AdditiveNoise]]:
    """(printed delta, the exact staircase that the printed column rounds), one for each column of Table 1."""
    given = numbers()["table1"]["parameters"]
    question = question_of(n=given["n"], max_shift=given["mu_bar"])
    regions = staircases(given["n"], given["mu_bar"], given["epsilon"])
    chosen = (regions[0], regions[0], regions[1], regions[2])
    return [
        (delta, staircase(question, levels(r), given["epsilon"]))
        for delta, r in zip(numbers()["table1"]["delta"], chosen, strict=True)
    ]


def table1(full: bool = False) -> Artifact:
    """Table 1: printed PMFs, what they need, and the optimum at the same delta, one-sided and symmetric."""
    printed = numbers()["table1"]
    n, mu_bar, epsilon = (printed["parameters"][name] for name in ("n", "mu_bar", "epsilon"))
    one_sided, symmetric = (
        question_of(n=n, max_shift=mu_bar, directed=directed) for directed in (True, False)
    )
    best, both = (
        [
            snap(1 - error)
            for error in solve_each(question, [(epsilon, delta) for delta in printed["delta"]])
        ]
        for question in (one_sided, symmetric)
    )
    rows = []
    comparisons = []
    for at, (delta, noise) in enumerate(table1_staircases()):
        closed, pmf = column_cut_law(n, mu_bar, epsilon, delta), printed["pmf"][at]
        assert closed.pmf is not None
        rows.append(
            {
                "delta": delta,
                "printed_f0": pmf[0],
                "optimum_f0": best[at],
                "law_f0": float(closed.pmf[0]),
                "law_kind": closed.kind,
                "printed_needs_delta": needed(noise, one_sided, epsilon),
                "optimum_needs_delta": needed(closed.pmf, one_sided, epsilon),
                "printed_needs_delta_symmetric": needed(noise, symmetric, epsilon),
                "optimum_f0_symmetric": both[at],
                **{f"f{eta}": mass for eta, mass in enumerate(closed.pmf)},
            }
        )
        for eta, (value, mass) in enumerate(
            zip(pmf, [best[at], *closed.pmf[1:].tolist()], strict=True)
        ):
            erratum = "Theorem 3 is not optimal" if eta in NOT_OPTIMAL.get(delta, ()) else ""
            what = f"δ = {delta:g}: f({eta})"
            comparisons.append(compare(what, printed["place"], value, mass, 4, erratum=erratum))
    curves = {
        "optimum": exact_curve(epsilon, n=n, max_shift=mu_bar),
        "theorem3": printed_curve(n, mu_bar, epsilon),
    }
    return make_artifact("modulo_noise", "table1", pd.DataFrame(rows), comparisons, further=curves)
