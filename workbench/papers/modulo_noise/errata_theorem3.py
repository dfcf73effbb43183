"""Errata of Section 3.2: Theorem 3 and its corollary, proof and numbers; Remark 3; the limits. Each with its check."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from models.oracles.bounded_difference import bounded_difference_limit, column_cut_law
from models.oracles.printed_theorem3 import phi_35_36, printed_level_curve, printed_pmf, staircases
from models.oracles.single_distance import level_curve_breakpoints
from workbench.papers.artifact import Erratum, erratum
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
from workbench.papers.modulo_noise.figures import table1_staircases

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
        yield erratum(
            "modulo_noise",
            "theorem3_4",
            best[delta] > printed[delta][0] + 5e-4 and uses <= delta and abs(float(pmf[0]) - best[delta]) < 1e-8,
            delta=delta,
            printed=printed[delta][0],
            best=best[delta],
            listed=", ".join(f"{mass:.6f}" for mass in pmf),
            uses=uses,
        )
    rho = 0.4425
    least, theirs = least_deltas(question, [(epsilon, rho)])[0], printed_level_curve(n, mu_bar, epsilon, rho)
    yield erratum("modulo_noise", "theorem3_1", least < theirs - 0.02, theirs=theirs, least=least)
    symmetric = bounded(n, mu_bar, directed=False)
    uses_both = [needed(noise, symmetric, epsilon) for _, noise in table1_staircases()]
    honest, one_sided = (law(q, epsilon).value for q in (symmetric, question))
    yield erratum(
        "modulo_noise",
        "theorem3_2",
        min(uses_both) > 0.5 and honest > one_sided + 0.1,
        listed=" / ".join(f"{use:.6f}" for use in uses_both),
        honest=honest,
        one_sided=one_sided,
    )
    yield erratum(
        "modulo_noise",
        "theorem3_3",
        n // mu_bar + n % mu_bar >= mu_bar and 9 // 3 + 9 % 3 >= 3,
        n=n,
        mu_bar=mu_bar,
        n_2=n // mu_bar,
        n_3=n % mu_bar,
        word=9 // 3,
        word_2=9 % 3,
    )
    yield from _formulas()
    yield from _proof(n, mu_bar, epsilon)


def _formulas() -> Iterator[Erratum]:
    wide = bounded(24, 6)
    stairs = next(s for s in staircases(24, 6, 1.5) if (s.h, s.j) == (3, 1))
    uses = needed(staircase(wide, _levels(stairs.lengths), 1.5), wide, 1.5)
    yield erratum("modulo_noise", "formulas_1", uses > stairs.lower * 1.01, lower=stairs.lower, uses=uses)
    n, mu_bar, epsilon = 12, 4, 1.0
    regions = [s for s in staircases(n, mu_bar, epsilon) if s.h]
    delta = round((regions[0].upper + regions[1].lower) / 2, 6)
    uses = needed(printed_pmf(n, mu_bar, epsilon, delta), bounded(n, mu_bar), epsilon)
    yield erratum(
        "modulo_noise", "formulas_2", uses > delta * 1.01, n=n, mu_bar=mu_bar, epsilon=epsilon, delta=delta, uses=uses
    )
    off = {(s.h, s.j): phi_35_36(n, mu_bar, epsilon, s.h, s.j) - s.mass for s in regions}
    yield erratum(
        "modulo_noise",
        "formulas_3",
        all((abs(gap) > 1e-3) == (h == j) for (h, j), gap in off.items()),
        n=n,
        mu_bar=mu_bar,
        epsilon=epsilon,
        listed=", ".join((f"{gap:.3g} at (h, j) = {at}" for at, gap in off.items())),
    )
    b, r = divmod(n, mu_bar)
    h, j = 2, 1
    groups = {i: mu_bar if i <= b - h else 1 if i == b - h + j + 1 else mu_bar - 1 for i in range(1, b + 1)}
    total = 1 + sum(groups.values()) + r + h - 1
    yield erratum(
        "modulo_noise",
        "formulas_4",
        total != n + 1 and total + mu_bar - 1 == n + 1,
        n=n,
        mu_bar=mu_bar,
        total=total,
        n_2=n + 1,
        total_2=total + mu_bar - 1,
    )
    pmf = printed_pmf(n, mu_bar, epsilon, delta)
    yield erratum(
        "modulo_noise", "formulas_5", abs(pmf.sum() - 1) < 1e-12 and bool((np.diff(pmf) <= 1e-12).all()), pmf=pmf.sum()
    )


def _proof(n: int, mu_bar: int, epsilon: float) -> Iterator[Erratum]:
    question = bounded(n, mu_bar)
    b = n // mu_bar
    phi = float(1 - law(question, epsilon).value)
    right, printed = phi * math.exp(-b * epsilon), staircases(n, mu_bar, epsilon)[0].upper
    before, after = (1 - e for e in solve_each(question, [(epsilon, right * 0.999), (epsilon, right * 1.02)]))
    yield erratum(
        "modulo_noise",
        "proof_1",
        abs(before - phi) < 1e-8 and after > phi + 1e-5,
        printed=printed,
        n=n,
        mu_bar=mu_bar,
        epsilon=epsilon,
        right=right,
        before=before,
        after=after,
        phi=phi,
    )
    levels = [0, *(-(-eta // mu_bar) for eta in range(1, n)), -1]
    short = staircase(question, levels, epsilon)
    uses = needed(short, question, epsilon)
    single_mass = float(short.pmf[n - mu_bar])
    yield erratum(
        "modulo_noise",
        "proof_2",
        abs(uses - single_mass) < 1e-12,
        n=n,
        mu_bar=mu_bar,
        epsilon=epsilon,
        n_2=n % mu_bar,
        uses=uses,
        single_mass=single_mass,
    )


def section_sd() -> Iterator[Erratum]:
    """Remark 3 and the text before (23)."""
    epsilon = 0.75
    question, a = single(7, 2), math.exp(-epsilon)
    best = 1 - solve_each(question, [(epsilon, 0)])[0]
    order = 4
    printed, right = (1 - a) / (1 - a ** (order + 1)), (1 - a) / (1 - a**order)
    yield erratum(
        "modulo_noise",
        "section_sd_1",
        abs(best - right) < 1e-8 and abs(best - printed) > 1e-3,
        printed=printed,
        right=right,
        best=best,
    )
    n, rho = 4, 0.55
    first, second = level_curve_breakpoints(n + 1, rho)[:2]
    at = round(float(first + second) / 2, 6)
    least = least_deltas(single(n, 1), [(at, rho)])[0]
    printed, right = (1 - rho) * math.exp(-n * at), (1 - rho) * math.exp(-(n - 1) * at)
    yield erratum(
        "modulo_noise",
        "section_sd_2",
        abs(least - right) < 1e-8 and abs(least - printed) > 1e-3,
        n=n,
        rho=rho,
        at=at,
        printed=printed,
        right=right,
        least=least,
    )


def limits() -> Iterator[Erratum]:
    """(46), (50), and the constraint f(0) >= 1/2 that they rest on."""
    plateau = numbers()["text"]["plateau"]["value"]
    epsilon = 0.3
    far, solved = law(single(4000, 1), epsilon).value, solve_each(single(60, 1), [(epsilon, 0)])[0]
    yield erratum(
        "modulo_noise",
        "limits_1",
        abs(far - math.exp(-epsilon)) < 1e-9 and abs(solved - math.exp(-epsilon)) < 1e-6,
        plateau=plateau,
        exp=math.exp(-epsilon),
        far=far,
        solved=solved,
    )
    mu_bar, epsilon = 3, 0.5
    limit = bounded_difference_limit(mu_bar, epsilon)
    far, solved = law(bounded(6000, mu_bar), epsilon).value, solve_each(bounded(60, mu_bar), [(epsilon, 0)])[0]
    yield erratum(
        "modulo_noise",
        "limits_2",
        abs(far - limit) < 1e-9 and solved > 0.8,
        plateau=plateau,
        limit=limit,
        far=far,
        solved=solved,
    )
