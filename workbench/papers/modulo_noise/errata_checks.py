"""Every erratum of the paper with its check, which declared/modulo_noise.toml states: a condition on numbers.

Numbers that a source of rows or an expression gives stand there; this file computes the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from models.oracles.bounded_difference import column_cut_law
from models.oracles.printed_theorem3 import phi_35_36, printed_level_curve, printed_pmf, staircases
from workbench.exact.numbers import exact
from workbench.families.api import design
from workbench.mechanisms.additive import ModuloNoise
from workbench.mechanisms.baselines.count_queries import clamped_gaussian, clamped_geometric
from workbench.mechanisms.channel import Channel, within
from workbench.papers.artifact import Erratum, declared, erratum
from workbench.papers.modulo_noise.common import Floats, bounded, law, needed, numbers, single, solve_each, staircase
from workbench.papers.modulo_noise.curves import SOURCES, adjacent_pairs, two_sided
from workbench.papers.modulo_noise.figures import levels, table1_staircases
from workbench.privacy.curve import profile

Numbers = Iterator[dict[str, Any]]  # those of an erratum, once for each place it is printed at


def errata() -> list[Erratum]:
    """In the order of the paper."""
    return [
        erratum("modulo_noise", name, None, SOURCES, **numbers)
        for name in declared("modulo_noise")["errata"]
        for numbers in _COMPUTED.get(name, _stated)()
    ]


def _stated() -> Numbers:
    yield {}


def _listed(values: Iterable[float], between: str = ", ") -> str:
    return between.join(f"{value:.6f}" for value in values)


def _post_processing() -> Numbers:
    """By how much clamping a Gaussian raises its hockey stick (nowhere), and its PDP δ at one ε."""
    variance, at = numbers()["fig6"]["parameters"]["variance"], 0.3
    free = two_sided(lambda eta: np.exp(-(eta**2) / (2 * variance)), 60)
    clamped = adjacent_pairs(clamped_gaussian(8, variance).matrix)

    def hockey_stick(pair: tuple[Floats, Floats], epsilon: float) -> float:
        return float(np.maximum(pair[0] - math.exp(epsilon) * pair[1], 0).sum(axis=1).max())

    def pdp(pair: tuple[Floats, Floats]) -> float:
        return float(np.where(pair[0] > math.exp(at) * pair[1] * (1 + 1e-11), pair[0], 0).sum(axis=1).max())

    grows = max(hockey_stick(clamped, e) - hockey_stick(free, e) for e in np.linspace(0, 3, 301).tolist())
    yield {"variance": variance, "at": at, "before": pdp(free), "after": pdp(clamped), "grows": grows}


def _variables() -> Numbers:
    """Columns of the compiled programs."""

    def columns(question: ModuloNoise) -> int:
        solution = design(question, notion="pdp", epsilon=1.5, delta=0.1, certify=False).solution
        assert solution is not None
        return int(solution.program.shape[1])

    printed = numbers()["text"]["variables"]["value"]
    yield {"printed": printed, "alone": columns(single(8, 1)), "columns": columns(bounded(8, 3))}


# Section 3.2: Theorem 3 and its corollary, proof and numbers.


def _table1() -> tuple[int, int, float]:
    given = numbers()["table1"]["parameters"]
    return given["n"], given["mu_bar"], given["epsilon"]


def _not_optimal() -> Numbers:
    """Columns of Table 1 beside the optimum, and the δ that this needs."""
    n, mu_bar, epsilon = _table1()
    question, printed = bounded(n, mu_bar), numbers()["table1"]
    masses = dict(zip(printed["delta"], printed["pmf"], strict=True))
    for delta in (0.1212, 0.1522):
        pmf = column_cut_law(n, mu_bar, epsilon, delta).pmf
        assert pmf is not None
        best = 1 - solve_each(question, [(epsilon, delta)])[0]
        yield {
            "delta": delta,
            "printed": masses[delta][0],
            "best": best,
            "f0": float(pmf[0]),
            "listed": _listed(pmf),
            "uses": needed(pmf, question, epsilon),
        }


def _one_sided() -> Numbers:
    """What Table 1's PMFs need against symmetric differences, and the least error against these."""
    n, mu_bar, epsilon = _table1()
    symmetric = bounded(n, mu_bar, directed=False)
    uses = [needed(noise, symmetric, epsilon) for _, noise in table1_staircases()]
    honest, one_sided = (law(question, epsilon).value for question in (symmetric, bounded(n, mu_bar)))
    yield {"listed": _listed(uses, " / "), "least": min(uses), "honest": honest, "one_sided": one_sided}


_SMALL = 12, 4, 1.0  # n, μ̄, ε of the cases that Theorem 3 is held to


def _flat_regions() -> Numbers:
    wide = bounded(24, 6)
    stairs = next(s for s in staircases(24, 6, 1.5) if (s.h, s.j) == (3, 1))
    yield {"lower": stairs.lower, "uses": needed(staircase(wide, levels(stairs), 1.5), wide, 1.5)}


def _linear_regions() -> Numbers:
    """The printed PMF between the first two flat regions."""
    n, mu_bar, epsilon = _SMALL
    first, second = [s for s in staircases(*_SMALL) if s.h][:2]
    delta = round((first.upper + second.lower) / 2, 6)
    pmf = printed_pmf(*_SMALL, delta)
    yield {
        "n": n,
        "mu_bar": mu_bar,
        "epsilon": epsilon,
        "delta": delta,
        "pmf": pmf.sum(),
        "rise": float(np.diff(pmf).max()),
        "uses": needed(pmf, bounded(n, mu_bar), epsilon),
    }


def _two_forms() -> Numbers:
    """By how much the second form of φ₀ᵏ differs: where j = h, and elsewhere."""
    n, mu_bar, epsilon = _SMALL
    off = {(s.h, s.j): phi_35_36(*_SMALL, s.h, s.j) - s.mass for s in staircases(*_SMALL) if s.h}
    yield {
        "n": n,
        "mu_bar": mu_bar,
        "epsilon": epsilon,
        "listed": ", ".join(f"{gap:.3g} at (h, j) = {at}" for at, gap in off.items()),
        "least": min(abs(gap) for (h, j), gap in off.items() if h == j),
        "most": max(abs(gap) for (h, j), gap in off.items() if h != j),
    }


def _lengths() -> Numbers:
    """The printed lengths of (38) at (h, j) = (2, 1), added up."""
    n, mu_bar, _ = _SMALL
    (b, r), h, j = divmod(n, mu_bar), 2, 1
    groups = [mu_bar if i <= b - h else 1 if i == b - h + j + 1 else mu_bar - 1 for i in range(1, b + 1)]
    yield {"n": n, "mu_bar": mu_bar, "total": 1 + sum(groups) + r + h - 1}


def _first_boundary() -> Numbers:
    """f(0) just below and 2 % above the right boundary."""
    n, mu_bar, epsilon = _table1()
    question = bounded(n, mu_bar)
    phi = float(1 - law(question, epsilon).value)
    right = phi * math.exp(-(n // mu_bar) * epsilon)
    before, after = (1 - e for e in solve_each(question, [(epsilon, right * 0.999), (epsilon, right * 1.02)]))
    yield {
        "printed": staircases(n, mu_bar, epsilon)[0].upper,
        "n": n,
        "mu_bar": mu_bar,
        "epsilon": epsilon,
        "right": right,
        "before": before,
        "after": after,
        "phi": phi,
    }


def _short_groups() -> Numbers:
    """What a staircase whose last mass is gone needs."""
    n, mu_bar, epsilon = _table1()
    question = bounded(n, mu_bar)
    short = staircase(question, [0, *(-(-eta // mu_bar) for eta in range(1, n)), -1], epsilon)
    yield {
        "n": n,
        "mu_bar": mu_bar,
        "epsilon": epsilon,
        "uses": needed(short, question, epsilon),
        "single_mass": float(short.pmf[n - mu_bar]),
    }


# Baselines.


def _last_line() -> Numbers:
    """What the printed rows of the clamped geometric law α = 1/2 miss, which is f(n - q)."""
    n, ratio = 8, Fraction(1, 2)
    masses = {eta: (1 - ratio) / (1 + ratio) * ratio ** abs(eta) for eta in range(-n - 1, n + 1)}
    tail = [1 - ratio ** (n - q + 1) / (1 + ratio) for q in range(n + 1)]  # F(n - q)
    rows = [  # F(-q), the middle, the last
        ratio**q / (1 + ratio) + sum(masses[k - q] for k in range(1, n)) + 1 - tail[q] for q in range(n + 1)
    ]
    missing = [1 - row for row in rows]
    fixed = all(sum(row.integers) == row.total for row in clamped_geometric(n, ratio).rows)
    exactly = fixed and missing == [masses[n - q] for q in range(n + 1)]
    yield {"n": n, "missing": float(max(missing)), "exactly": exactly}


def _unchanged() -> Numbers:
    """δ(ε) of the geometric law at six ε, clamped into 0..n and not."""
    n, alpha = 8, exact("0.4717", "alpha")
    grid = [exact(level, "epsilon") for level in ("0.1", "0.5", "0.75", "0.76", "1", "2")]
    clamped = profile(Channel.of(clamped_geometric(n, alpha), within(n, 1)), "pdp").deltas(grid).tolist()
    free = [float(1 / (1 + alpha)) if math.exp(-float(e)) > float(alpha) else 0.0 for e in grid]
    apart = max(abs(c - f) for c, f in zip(clamped, free, strict=True))
    yield {"n": n, "listed": _listed(clamped), "listed_2": _listed(free), "apart": apart}


_COMPUTED: Mapping[str, Callable[[], Numbers]] = {
    "post_processing": _post_processing,
    "variables": _variables,
    "theorem3_4": _not_optimal,
    "theorem3_1": lambda: iter([{"theirs": printed_level_curve(*_table1(), 0.4425)}]),
    "theorem3_2": _one_sided,
    "formulas_1": _flat_regions,
    "formulas_2": _linear_regions,
    "formulas_3": _two_forms,
    "formulas_4": _lengths,
    "formulas_5": _linear_regions,
    "proof_1": _first_boundary,
    "proof_2": _short_groups,
    "baselines_2": _last_line,
    "baselines_3": _unchanged,
}
