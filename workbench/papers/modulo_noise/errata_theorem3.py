"""Errata of Section 3.2: Theorem 3 and its corollary, proof and numbers; Remark 3; the limits. Each with its check."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from models.oracles.bounded_difference import bounded_difference_limit, column_cut_law
from models.oracles.printed_theorem3 import phi_35_36, printed_level_curve, printed_pmf, staircases
from models.oracles.single_distance import level_curve_breakpoints
from workbench.papers.artifact import Erratum
from workbench.papers.modulo_noise.common import (
    bounded,
    law,
    least_deltas,
    needed,
    numbers,
    single,
    solve_each,
    staircase,
)
from workbench.papers.modulo_noise.pmfs import table1_staircases

__all__ = ["limits", "section_sd", "theorem3"]


def _levels(lengths: tuple[int, ...]) -> list[int]:
    return np.repeat(np.arange(len(lengths)), lengths).tolist()


def theorem3() -> Iterator[Erratum]:
    """Table 1, (15), (31), (34)-(38), (41), (44) and Appendix 10."""
    given = numbers()["table1"]["parameters"]
    n, mu_bar, epsilon = given["n"], given["mu_bar"], given["epsilon"]
    question = bounded(n, mu_bar)
    printed = dict(zip(numbers()["table1"]["delta"], numbers()["table1"]["pmf"], strict=True))
    best = {d: 1 - e for d, e in zip(printed, solve_each(question, [(epsilon, d) for d in printed]), strict=True)}
    for delta in (0.1212, 0.1522):
        pmf = column_cut_law(n, mu_bar, epsilon, delta).pmf
        assert pmf is not None
        uses = needed(pmf, question, epsilon)
        yield Erratum(
            f"Table 1, column δ = {delta:g}; Theorem 3; Fig. 10(b)",
            f"f(0) = {printed[delta][0]:.4f} is optimal",
            f"f(0) = {best[delta]:.9f}: (" + ", ".join(f"{mass:.6f}" for mass in pmf) + ")",
            f"MILP (13) reaches {best[delta]:.9f}, proven by HiGHS; this PMF needs only δ = {uses:.6f} by exact audit",
            best[delta] > printed[delta][0] + 5e-4 and uses <= delta and abs(float(pmf[0]) - best[delta]) < 1e-8,
        )
    rho = 0.4425
    least, theirs = least_deltas(question, [(epsilon, rho)])[0], printed_level_curve(n, mu_bar, epsilon, rho)
    yield Erratum(
        "(15), (44) with Table 1: the least δ for ρ <= 0.4425",
        f"δ = 0.1522 (Corollary 2 gives {theirs:.6f})",
        f"δ = {least:.9f}",
        "minimum-δ MILP (15), proven by HiGHS",
        least < theirs - 0.02,
    )
    symmetric = bounded(n, mu_bar, directed=False)
    uses_both = [needed(noise, symmetric, epsilon) for _, noise in table1_staircases()]
    honest, one_sided = (law(q, epsilon).value for q in (symmetric, question))
    yield Erratum(
        "(6), Definitions 5 and 6",
        "M is one-sided: {μ̂} or {1..μ̄}",
        "when X' neighbours X as X neighbours X', (6) gives M = -M: {±μ̂}, {±1..±μ̄}",
        "against the symmetric M the PMFs of Table 1 have PDP δ = "
        + " / ".join(f"{use:.6f}" for use in uses_both)
        + f"; the least error at δ = 0 is {honest:.6f}, not {one_sided:.6f}",
        min(uses_both) > 0.5 and honest > one_sided + 0.1,
    )
    yield Erratum(
        "Theorem 3, condition b + r < μ̄",
        "Table 1, Figs 10 and 12(b) confirm Theorem 3",
        "neither meets its condition: Table 1 has b + r = 4 >= 3, Fig. 12(b) b + r = 3 >= 3",
        f"n = {n}, μ̄ = {mu_bar}: {n // mu_bar} + {n % mu_bar}; n = 9, μ̄ = 3: {9 // 3} + {9 % 3}",
        n // mu_bar + n % mu_bar >= mu_bar and 9 // 3 + 9 % 3 >= 3,
    )
    yield from _formulas()
    yield from _proof(n, mu_bar, epsilon)


def _formulas() -> Iterator[Erratum]:
    wide = bounded(24, 6)
    stairs = next(s for s in staircases(24, 6, 1.5) if (s.h, s.j) == (3, 1))
    uses = needed(staircase(wide, _levels(stairs.lengths), 1.5), wide, 1.5)
    yield Erratum(
        "Theorem 3(a), (31): flat regions from h = 3 on",
        f"n = 24, μ̄ = 6, ε = 1.5, (h, j) = (3, 1): private for δ = {stairs.lower:.6f}",
        f"that PMF needs δ = {uses:.6f}",
        "exact audit of the printed staircase",
        uses > stairs.lower * 1.01,
    )
    n, mu_bar, epsilon = 12, 4, 1.0
    regions = [s for s in staircases(n, mu_bar, epsilon) if s.h]
    delta = round((regions[0].upper + regions[1].lower) / 2, 6)
    uses = needed(printed_pmf(n, mu_bar, epsilon, delta), bounded(n, mu_bar), epsilon)
    yield Erratum(
        "Theorem 3(b), (38), (41): linear regions from h = 2 on",
        f"n = {n}, μ̄ = {mu_bar}, ε = {epsilon:g}, (h, j) = (2, 1): private for δ = {delta:.6f}",
        f"that PMF needs δ = {uses:.6f}",
        "exact audit of the printed PMF, (38) completed as below",
        uses > delta * 1.01,
    )
    off = {(s.h, s.j): phi_35_36(n, mu_bar, epsilon, s.h, s.j) - s.mass for s in regions}
    yield Erratum(
        "(34) = (35)-(36)",
        "the two forms of φ₀ᵏ are equal",
        "they differ when j = h",
        f"n = {n}, μ̄ = {mu_bar}, ε = {epsilon:g}: second minus first form "
        + ", ".join(f"{gap:.3g} at (h, j) = {at}" for at, gap in off.items()),
        all((abs(gap) > 1e-3) == (h == j) for (h, j), gap in off.items()),
    )
    b, r = divmod(n, mu_bar)
    h, j = 2, 1
    groups = {i: mu_bar if i <= b - h else 1 if i == b - h + j + 1 else mu_bar - 1 for i in range(1, b + 1)}
    total = 1 + sum(groups.values()) + r + h - 1
    yield Erratum(
        "(38)",
        "lengths for i in [b - h + 1 : b] and i = b + 2",
        "the group i = b + 1 (length μ̄ - 1 when j < h) is missing",
        f"n = {n}, μ̄ = {mu_bar}, (h, j) = (2, 1): the printed lengths add up to {total}, not n + 1 = {n + 1}; with it "
        f"to {total + mu_bar - 1}",
        total != n + 1 and total + mu_bar - 1 == n + 1,
    )
    pmf = printed_pmf(n, mu_bar, epsilon, delta)
    yield Erratum(
        "(41), last line",
        "ψ_i^{b-h+j+1}(δ) = 1 - Σ ℓ_i ψ_i^k",
        "the indices are swapped: ψ_{b-h+j+1}^k(δ)",
        f"with the singleton read so, the PMF sums to {pmf.sum():.12f} and stays between its neighbours",
        abs(pmf.sum() - 1) < 1e-12 and bool((np.diff(pmf) <= 1e-12).all()),
    )


def _proof(n: int, mu_bar: int, epsilon: float) -> Iterator[Erratum]:
    question = bounded(n, mu_bar)
    b = n // mu_bar
    phi = float(1 - law(question, epsilon).value)
    right, printed = phi * math.exp(-b * epsilon), staircases(n, mu_bar, epsilon)[0].upper
    before, after = (1 - e for e in solve_each(question, [(epsilon, right * 0.999), (epsilon, right * 1.02)]))
    yield Erratum(
        "(37b), first boundary δ̄₀₀ for r >= 1",
        f"φ₀ e^{{-(b-1)ε}} = {printed:.6f} (n = {n}, μ̄ = {mu_bar}, ε = {epsilon:g})",
        f"φ₀ e^{{-bε}} = {right:.6f}",
        f"MILP (13): f(0) = {before:.9f} just below it, {after:.9f} 2 % above it (φ₀ = {phi:.9f})",
        abs(before - phi) < 1e-8 and after > phi + 1e-5,
    )
    levels = [0, *(-(-eta // mu_bar) for eta in range(1, n)), -1]
    short = staircase(question, levels, epsilon)
    uses = needed(short, question, epsilon)
    single_mass = float(short.pmf[n - mu_bar])
    yield Erratum(
        "Appendix 10: groups shorter than μ̄ never split",
        "splitting one needs a privacy loss of at least 2δ",
        "the two violations belong to different differences μ, and δ is a maximum over μ, not a sum",
        f"n = {n}, μ̄ = {mu_bar}, ε = {epsilon:g}: emptying f({n}) alone splits the last group of {n % mu_bar} and "
        f"needs δ = {uses:.6f}, one mass of the group before it ({single_mass:.6f})",
        abs(uses - single_mass) < 1e-12,
    )


def section_sd() -> Iterator[Erratum]:
    """Remark 3 and the text before (23)."""
    epsilon = 0.75
    question, a = single(7, 2), math.exp(-epsilon)
    best = 1 - solve_each(question, [(epsilon, 0)])[0]
    order = 4
    printed, right = (1 - a) / (1 - a ** (order + 1)), (1 - a) / (1 - a**order)
    yield Erratum(
        "Remark 3",
        "replace n by N_μ̂",
        "replace n by N_μ̂ - 1",
        f"n = 7, μ̂ = 2 (N_μ̂ = 4), ε = 0.75, δ = 0: (17b) gives {printed:.6f} with N_μ̂, {right:.6f} with N_μ̂ - 1; LP "
        f"(14): {best:.6f}",
        abs(best - right) < 1e-8 and abs(best - printed) > 1e-3,
    )
    n, rho = 4, 0.55
    first, second = level_curve_breakpoints(n + 1, rho)[:2]
    at = round(float(first + second) / 2, 6)
    least = least_deltas(single(n, 1), [(at, rho)])[0]
    printed, right = (1 - rho) * math.exp(-n * at), (1 - rho) * math.exp(-(n - 1) * at)
    yield Erratum(
        "text before (23)",
        "δ = (1 - ρ*) e^{-nε} in the first section",
        "δ = (1 - ρ*) e^{-(n-1)ε}, as (21) and (24) say",
        f"n = {n}, μ̂ = 1, ρ = {rho}, ε = {at:.6f}: printed {printed:.6f}, right {right:.6f}; minimum-δ MILP (15): "
        f"{least:.6f}",
        abs(least - right) < 1e-8 and abs(least - printed) > 1e-3,
    )


def limits() -> Iterator[Erratum]:
    """(46), (50), and the constraint f(0) >= 1/2 that they rest on."""
    plateau = numbers()["text"]["plateau"]["value"]
    epsilon = 0.3
    far, solved = law(single(4000, 1), epsilon).value, solve_each(single(60, 1), [(epsilon, 0)])[0]
    yield Erratum(
        "(46); proofs of Lemmas 2 and 3",
        f"ρ∞* = {plateau} for ε <= ln 2, as f(0) >= 0.5 is a constraint",
        "ρ∞* = e^{-ε} for every ε > 0: (13) has no such constraint",
        f"ε = 0.3: e^{{-ε}} = {math.exp(-epsilon):.6f}; Lemma 3 at n = 4000 gives {far:.6f}, LP (14) at n = 60 "
        f"{solved:.6f}",
        abs(far - math.exp(-epsilon)) < 1e-9 and abs(solved - math.exp(-epsilon)) < 1e-6,
    )
    mu_bar, epsilon = 3, 0.5
    limit = bounded_difference_limit(mu_bar, epsilon)
    far, solved = law(bounded(6000, mu_bar), epsilon).value, solve_each(bounded(60, mu_bar), [(epsilon, 0)])[0]
    yield Erratum(
        "(50)",
        f"ρ∞* = {plateau} for ε <= ln(1 + μ̄)",
        "ρ∞* = μ̄a / (μ̄a + 1 - a), a = e^{-ε}, for every ε > 0",
        f"μ̄ = 3, ε = 0.5: {limit:.6f}; Lemma 4 at n = 6000 gives {far:.6f}, LP (14) at n = 60 {solved:.6f}",
        abs(far - limit) < 1e-9 and solved > 0.8,
    )
