"""Make Table 1 of Kadam et al. 2024, and compare printed numbers of the figures with ours.

Most comparisons are declared in declared/modulo_noise.toml: a printed number and a column of a
table. The functions here compare numbers that are no columns. The file names them as `details` of
an artifact. They get its table and return a dictionary, whose "comparisons" are added to the
declared ones.

In Table 1 (answers 0..8, differences 1..3, ε = 1.5) Theorem 3 is wrong: at δ = .1212 and
δ = .1522 the printed PMF is not optimal. Every printed column is rebuilt as the exact staircase
that it rounds. The audit gives the smallest δ for which it is private under probabilistic DP, for
the paper's one-sided differences and for symmetric ones.
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
    compare_printed,
    compute_needed_delta,
    get_printed_numbers,
    make_question,
    make_staircase,
    round_solver_value,
    solve_each,
)
from workbench.papers.modulo_noise.curves import compute_printed_curve, trace_exact_curve

# The δ of a column of Table 1 -> the noise values whose printed mass is not that of the optimum.
NOT_OPTIMAL = {0.1212: range(9), 0.1522: (0, 1, 2, 3, 6, 8)}


def compare_hop_orders(table: pd.DataFrame) -> Record:
    """Return comparisons of the order of the masses in Fig. 1, and of masses that are 0.

    Hops of length μ̂ (modulo n + 1) reach the noise values one after the other, and the masses
    decrease in this order. Noise values that no hop reaches have mass 0.

    Args:
        table: The table of fig1.
    """
    comparisons = []
    for panel, rows in table.groupby("panel"):
        printed_numbers = get_printed_numbers()["fig1"][f"order_{panel}"]
        place = printed_numbers["place"]
        name = f"μ̂ = {printed_numbers['shift']}"
        masses = rows.set_index("eta")["law"]
        order = masses.sort_values(ascending=False, kind="stable").index
        for rank, (theirs, ours) in enumerate(
            zip(printed_numbers["order"], order, strict=False), 1
        ):
            quantity = f"{name}: noise value whose mass has rank {rank}"
            comparisons.append(compare_printed(quantity, place, theirs, int(ours), decimals=0))
        for eta in printed_numbers.get("zero", []):
            quantity = f"{name}: f({eta})"
            mass = float(masses[eta])
            comparisons.append(compare_printed(quantity, place, 0.0, mass, decimals=12))
    return {"comparisons": comparisons}


def compare_boundaries(table: pd.DataFrame) -> Record:
    """Return comparisons of the boundaries of regions with their printed formulas.

    Args:
        table: Not used. Every function named by `details` receives the table.
    """
    printed_numbers = get_printed_numbers()["fig10"]
    parameters = printed_numbers["parameters"]
    regions = staircases(parameters["n"], parameters["mu_bar"], parameters["epsilon"])
    first, second, third, *_ = regions
    boundaries = (first.upper, second.lower, third.lower)
    comparisons = []
    for name, delta, ours in zip(
        printed_numbers["names"], printed_numbers["delta"], boundaries, strict=True
    ):
        quantity = f"{name} by its printed formula"
        place = printed_numbers["place"]
        comparisons.append(compare_printed(quantity, place, delta, ours, decimals=4))
    return {"comparisons": comparisons}


def compare_peaks(table: pd.DataFrame) -> Record:
    """Return comparisons of the places (η₁, η₂) of the second largest masses in Fig. 13 b.

    A place is compared as one number, 10 η₁ + η₂.

    Args:
        table: The table of fig13.
    """
    printed_numbers = get_printed_numbers()["fig13"]["second_peaks"]
    rows = table[table["panel"] == "b"]
    ranks = rows["law"].round(12).rank(method="dense", ascending=False)
    second = rows[ranks == 2]
    ours = sorted(10 * second["eta1"] + second["eta2"])
    theirs = sorted(10 * eta1 + eta2 for eta1, eta2 in printed_numbers["eta"])
    comparisons = []
    for k, (their_place, our_place) in enumerate(zip(theirs, ours, strict=True), 1):
        quantity = f"second largest peak no. {k}, as the number 10 η₁ + η₂"
        comparisons.append(
            compare_printed(
                quantity, printed_numbers["place"], their_place, int(our_place), decimals=0
            )
        )
    return {"comparisons": comparisons}


def find_crossover(table: pd.DataFrame) -> Record:
    """Return the smallest ε from which baselines have a smaller error than modulo noise.

    Args:
        table: The table of fig5.

    Returns:
        Values of the template of the caption. "overtaken_a": the smallest ε of (a2) from which on
        every baseline has a smaller true MSE than modulo noise for one-sided differences.
        "overtaken": the smallest ε of (b) at which geometric noise has a smaller error rate than
        modulo noise for symmetric differences.
    """
    errors_by_panel = {}
    for panel, rows in table.groupby("panel"):
        rows = rows.assign(error=rows["error"].fillna(rows["solver"]))
        errors_by_panel[panel] = rows.pivot(index="epsilon", columns="mechanism", values="error")
    errors = errors_by_panel["a2"]
    modulo_noise = errors[["optimal", "symmetric"]].min(axis=1)
    baselines = errors.drop(columns=["optimal", "symmetric"]).max(axis=1)
    # From the largest ε down, this holds as long as it holds at all larger ε.
    is_smaller = (baselines < modulo_noise)[::-1].cummin()
    rates = errors_by_panel["b"]
    return {
        "overtaken_a": float(is_smaller.index[is_smaller].min()),
        "overtaken": float(rates.index[rates["geometric"] < rates["symmetric"]].min()),
    }


def list_levels(stairs: Staircase) -> list[int]:
    """Return the exponent k of e^-ε in each mass of a staircase: 0 for the largest masses.

    Args:
        stairs: A flat region of Theorem 3. Its `lengths` are the numbers of equal masses in turn.

    Returns:
        One exponent for each noise value 0..n, non-decreasing. The lengths 1, 2, 2 give 0, 1, 1, 2,
        2.
    """
    return np.repeat(np.arange(len(stairs.lengths)), stairs.lengths).tolist()


def build_table1_noise() -> list[tuple[float, AdditiveNoise]]:
    """Rebuild the exact noise that each column of Table 1 rounds.

    Returns:
        (The printed δ, the noise) for each column.
    """
    printed_numbers = get_printed_numbers()["table1"]
    parameters = printed_numbers["parameters"]
    n = parameters["n"]
    epsilon = parameters["epsilon"]
    question = make_question(n=n, max_shift=parameters["mu_bar"])
    first, second, third, *_ = staircases(n, parameters["mu_bar"], epsilon)
    # The first two columns are in the first flat region.
    columns = (first, first, second, third)
    noises = []
    for delta, stairs in zip(printed_numbers["delta"], columns, strict=True):
        noises.append((delta, make_staircase(question, list_levels(stairs), epsilon)))
    return noises


def make_staircase_table(full: bool = False) -> Artifact:
    """Make Table 1: printed PMFs, the δ that they need, and the optimum at the same δ.

    Args:
        full: Not used: the table takes seconds.
    """
    printed_numbers = get_printed_numbers()["table1"]
    parameters = printed_numbers["parameters"]
    n = parameters["n"]
    mu_bar = parameters["mu_bar"]
    epsilon = parameters["epsilon"]
    one_sided = make_question(n=n, max_shift=mu_bar)
    symmetric = make_question(n=n, max_shift=mu_bar, directed=False)

    budgets = [(epsilon, delta) for delta in printed_numbers["delta"]]
    optima = [round_solver_value(1 - error) for error in solve_each(one_sided, budgets)]
    symmetric_optima = [round_solver_value(1 - error) for error in solve_each(symmetric, budgets)]

    rows = []
    comparisons = []
    for k, (delta, noise) in enumerate(build_table1_noise()):
        law = column_cut_law(n, mu_bar, epsilon, delta)
        assert law.pmf is not None
        printed_pmf = printed_numbers["pmf"][k]
        row = {
            "delta": delta,
            "printed_f0": printed_pmf[0],
            "optimum_f0": optima[k],
            "law_f0": float(law.pmf[0]),
            "law_kind": law.kind,
            "printed_needs_delta": compute_needed_delta(noise, one_sided, epsilon),
            "optimum_needs_delta": compute_needed_delta(law.pmf, one_sided, epsilon),
            "printed_needs_delta_symmetric": compute_needed_delta(noise, symmetric, epsilon),
            "optimum_f0_symmetric": symmetric_optima[k],
        }
        row |= {f"f{eta}": mass for eta, mass in enumerate(law.pmf)}
        rows.append(row)
        masses = [optima[k], *law.pmf[1:].tolist()]
        for eta, (theirs, ours) in enumerate(zip(printed_pmf, masses, strict=True)):
            is_wrong = eta in NOT_OPTIMAL.get(delta, ())
            comparison = compare_printed(
                f"δ = {delta:g}: f({eta})",
                printed_numbers["place"],
                theirs,
                ours,
                decimals=4,
                erratum="Theorem 3 is not optimal" if is_wrong else "",
            )
            comparisons.append(comparison)

    curves = {
        "optimum": trace_exact_curve(epsilon, n=n, max_shift=mu_bar),
        "theorem3": compute_printed_curve(n, mu_bar, epsilon),
    }
    return make_artifact("modulo_noise", "table1", pd.DataFrame(rows), comparisons, further=curves)
