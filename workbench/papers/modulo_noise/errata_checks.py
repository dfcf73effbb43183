"""The numbers of errata that declared/modulo_noise.toml asks for and no source of rows or expression gives."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from workbench.exact.integer_law import IntegerLaw
from workbench.exact.numbers import read_number
from workbench.exact.objects import Record
from workbench.mechanisms.baselines.count_queries import (
    clamped_geometric,
    discrete_gaussian,
)
from workbench.models.oracles.bounded_difference import column_cut_law
from workbench.models.oracles.printed_theorem3 import (
    phi_35_36,
    printed_level_curve,
    printed_pmf,
    staircases,
)
from workbench.papers.modulo_noise.common import (
    law,
    needed,
    numbers,
    question_of,
    solve_each,
    staircase,
)
from workbench.papers.modulo_noise.curves import clamped
from workbench.papers.modulo_noise.figures import levels, table1_staircases
from workbench.pipeline.api import design
from workbench.privacy.curve import profile
from workbench.questions.modulo_noise import ModuloNoise


def _listed(values: Iterable[float], between: str = ", ") -> str:
    return between.join(f"{value:.6f}" for value in values)


def post_processing(variance: float, at: float) -> Record:
    """By how much clamping a Gaussian raises its hockey stick (nowhere), and its PDP δ at one ε."""
    radius, noise = discrete_gaussian(read_number(variance, "variance"))
    free, within = (clamped(n, IntegerLaw(-radius, noise)) for n in (None, 8))
    grid = np.linspace(0, 3, 301).tolist()
    before, after = (profile(mechanism, "pdp").delta(at) for mechanism in (free, within))
    return {
        "before": before,
        "after": after,
        "grows": max(profile(within).deltas(grid) - profile(free).deltas(grid)),
    }


def variables(n: int) -> Record:
    """Columns of the compiled programs."""

    def columns(question: ModuloNoise) -> int:
        solution = design(question, notion="pdp", epsilon=1.5, delta=0.1, certify=False).solution
        assert solution
        return int(solution.program.shape[1])

    return {
        "alone": columns(question_of(n=n, shifts=[1])),
        "columns": columns(question_of(n=n, max_shift=3)),
    }


# Section 3.2: Theorem 3 and its corollary, proof and numbers. n, μ̄, ε: of the case it is held to.


def not_optimal(n: int, mu_bar: int, epsilon: float, delta: float) -> Record:
    """A column of Table 1 beside the optimum, and the δ that this needs."""
    question, printed = question_of(n=n, max_shift=mu_bar), numbers()["table1"]
    pmf = column_cut_law(n, mu_bar, epsilon, delta).pmf
    assert pmf is not None
    return {
        "printed": printed["pmf"][printed["delta"].index(delta)][0],
        "best": 1 - solve_each(question, [(epsilon, delta)])[0],
        "f0": float(pmf[0]),
        "listed": _listed(pmf),
        "uses": needed(pmf, question, epsilon),
    }


def one_sided(n: int, mu_bar: int, epsilon: float) -> Record:
    """What Table 1's PMFs need against symmetric differences, and the least error against these."""
    symmetric = question_of(n=n, max_shift=mu_bar, directed=False)
    uses = [needed(noise, symmetric, epsilon) for _, noise in table1_staircases()]
    one_sided = law(question_of(n=n, max_shift=mu_bar), epsilon).value
    honest = law(symmetric, epsilon).value
    return {
        "listed": _listed(uses, " / "),
        "least": min(uses),
        "honest": honest,
        "one_sided": one_sided,
    }


def flat_regions(n: int, mu_bar: int, epsilon: float) -> Record:
    """What the printed PMF of a flat region needs."""
    stairs = next(s for s in staircases(n, mu_bar, epsilon) if (s.h, s.j) == (3, 1))
    wide = question_of(n=n, max_shift=mu_bar)
    return {
        "lower": stairs.lower,
        "uses": needed(staircase(wide, levels(stairs), epsilon), wide, epsilon),
    }


def linear_regions(n: int, mu_bar: int, epsilon: float) -> Record:
    """The printed PMF between the first two flat regions."""
    first, second = [s for s in staircases(n, mu_bar, epsilon) if s.h][:2]
    delta = round((first.upper + second.lower) / 2, 6)
    pmf = printed_pmf(n, mu_bar, epsilon, delta)
    uses = needed(pmf, question_of(n=n, max_shift=mu_bar), epsilon)
    return {"delta": delta, "pmf": pmf.sum(), "rise": float(np.diff(pmf).max()), "uses": uses}


def two_forms(n: int, mu_bar: int, epsilon: float) -> Record:
    """By how much the second form of φ₀ᵏ differs: where j = h, and elsewhere."""
    regions = [s for s in staircases(n, mu_bar, epsilon) if s.h]
    off = {(s.h, s.j): phi_35_36(n, mu_bar, epsilon, s.h, s.j) - s.mass for s in regions}
    return {
        "listed": ", ".join(f"{gap:.3g} at (h, j) = {at}" for at, gap in off.items()),
        "least": min(abs(gap) for (h, j), gap in off.items() if h == j),
        "most": max(abs(gap) for (h, j), gap in off.items() if h != j),
    }


def lengths(n: int, mu_bar: int) -> Record:
    """The printed lengths of (38) at (h, j) = (2, 1), added up."""
    (b, r), h, j = divmod(n, mu_bar), 2, 1
    groups = [
        mu_bar if i <= b - h else 1 if i == b - h + j + 1 else mu_bar - 1 for i in range(1, b + 1)
    ]
    return {"total": 1 + sum(groups) + r + h - 1}


def first_boundary(n: int, mu_bar: int, epsilon: float) -> Record:
    """f(0) just below and 2 % above the right boundary."""
    question = question_of(n=n, max_shift=mu_bar)
    phi = float(1 - law(question, epsilon).value)
    right = phi * math.exp(-(n // mu_bar) * epsilon)
    before, after = (
        1 - e for e in solve_each(question, [(epsilon, right * 0.999), (epsilon, right * 1.02)])
    )
    printed = staircases(n, mu_bar, epsilon)[0].upper
    return {"printed": printed, "right": right, "before": before, "after": after, "phi": phi}


def short_groups(n: int, mu_bar: int, epsilon: float) -> Record:
    """What a staircase whose last mass is gone needs."""
    question = question_of(n=n, max_shift=mu_bar)
    short = staircase(question, [0, *(-(-eta // mu_bar) for eta in range(1, n)), -1], epsilon)
    return {"uses": needed(short, question, epsilon), "single_mass": float(short.pmf[n - mu_bar])}


# Baselines.


def last_line(n: int) -> Record:
    """What the printed rows of the clamped geometric law α = 1/2 miss, which is f(n - q)."""
    ratio = Fraction(1, 2)
    noise = IntegerLaw(0, [1], ratio=ratio)
    inside = [sum(noise.weight(k - q) for k in range(1, n)) for q in range(n + 1)]
    kept = [
        noise.weight_below(1 - q) + middle + noise.total - noise.weight_below(n - q + 1)
        for q, middle in enumerate(inside)
    ]
    rows = [value / noise.total for value in kept]
    exactly = all(
        sum(row.integers) == row.total for row in clamped_geometric(n, ratio).rows
    ) and all(1 - row == noise.weight(n - q) / noise.total for q, row in enumerate(rows))
    return {"missing": float(1 - min(rows)), "exactly": exactly}


def unchanged(n: int) -> Record:
    """δ(ε) of the geometric law at six ε, clamped into 0..n and not."""
    law = IntegerLaw(0, [1], 1, "0.4717")
    within, free = (
        profile(clamped(m, law), "pdp").deltas(("0.1", "0.5", "0.75", "0.76", "1", "2"))
        for m in (n, None)
    )
    return {
        "listed": _listed(within),
        "listed_2": _listed(free),
        "apart": np.abs(within - free).max(),
    }


def corollary2(n: int, mu_bar: int, epsilon: float) -> Record:
    """The printed level curve."""
    return {"theirs": printed_level_curve(n, mu_bar, epsilon, 0.4425)}
