"""What the paper has right: its closed forms, evaluated as printed, against the solver on many small cases.

Every formula is written out here once more from the print, so that it stands on its own and not on our oracles.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import pandas as pd

from workbench.papers.artifact import Artifact, artifact
from workbench.papers.modulo_noise.common import bounded, least_deltas, needed, single, solve_each

__all__ = ["formulas"]

EPSILONS = (0.4, 1.0, 1.75)
_Case = tuple[str, str, float, float]  # formula, what it gives, |printed - solver|, δ needed beyond the one allowed


def formulas(full: bool = False) -> Artifact:
    """The largest difference between each right formula and the solver."""
    cases = [*_lemma3(9 if full else 7), *_theorem2(7 if full else 5), *_corollary1(5), *_lemma4(12 if full else 9)]
    table = pd.DataFrame(cases, columns=["formula", "gives", "difference", "excess"])
    rows = []
    for formula, part in table.groupby("formula", sort=False):
        worst, excess = float(part["difference"].max()), float(part["excess"].max())
        verdict = "right in every case" if worst < 1e-7 and excess <= 1e-9 else "WRONG"
        rows.append((formula, part["gives"].iloc[0], len(part), "< 1e-7" if worst < 1e-7 else f"{worst:.2g}", verdict))

    columns = ["formula", "gives", "cases", "largest difference to the solver", "verdict"]
    shown = pd.DataFrame(rows, columns=columns)
    return artifact("modulo_noise", "formulas", shown)


def _lemma3(most: int) -> Iterator[_Case]:
    """(17b), (18c)."""
    for n in range(2, most + 1):
        for shift in range(1, n + 1):
            cycle = (n + 1) // math.gcd(n + 1, shift)
            name = "(17)" if cycle == n + 1 else "(18)"
            errors = solve_each(single(n, shift), [(epsilon, 0) for epsilon in EPSILONS])
            for epsilon, error in zip(EPSILONS, errors, strict=True):
                a = math.exp(-epsilon)
                yield name, "f(0), single distance, δ = 0", abs((1 - a) / (1 - a**cycle) - 1 + error), 0.0


def _lower(n: int, k: int, epsilon: float) -> float:
    """δ̲_k, (19b), (19c)."""
    a = math.exp(-epsilon)
    return a ** (n - k) * (1 - a) / (1 - a ** (n - k + 1)) if k else 0.0


def _upper(n: int, k: int, epsilon: float) -> float:
    """δ̄_k, (19a), (19b)."""
    a = math.exp(-epsilon)
    return a ** (n - k - 1) * (1 - a) / (1 - a ** (n - k + 1)) if k < n else 1.0


def _flat(n: int, k: int, epsilon: float) -> list[float]:
    """f_(h), h = 0..n, of (20)."""
    return [_lower(n, k, epsilon) * math.exp((n - k - h) * epsilon) if h <= n - k else 0.0 for h in range(n + 1)]


def _linear(n: int, k: int, epsilon: float, delta: float) -> list[float]:
    """f_(h), h = 0..n, of (21)."""
    rest = (math.exp(epsilon) - 1) / (math.exp(k * epsilon) - 1) * (1 - delta / _lower(n, k, epsilon))
    return [
        delta * math.exp((n - k - h) * epsilon) if h <= n - k else math.exp((n - h) * epsilon) * rest
        for h in range(n + 1)
    ]


def _theorem2(most: int) -> Iterator[_Case]:
    """(19)-(21): PMF and error rate in the middle of every flat and linear region."""
    for n in range(2, most + 1):
        for epsilon in EPSILONS:
            flat = [(_lower(n, k, epsilon) + _upper(n, k, epsilon)) / 2 for k in range(1, n + 1)]
            linear = [(_upper(n, k - 1, epsilon) + _lower(n, k, epsilon)) / 2 for k in range(1, n + 1)]
            question = single(n, 1)
            errors = iter(solve_each(question, [(epsilon, delta) for delta in [*flat, *linear]]))
            for k, delta in enumerate(flat, 1):
                pmf = _flat(n, k, epsilon)
                excess = needed(pmf, question, epsilon) - delta
                yield "(19), (20)", "PMF, single distance, flat region", abs(pmf[0] - 1 + next(errors)), excess
            for k, delta in enumerate(linear, 1):
                pmf = _linear(n, k, epsilon, delta)
                gap = max(abs(pmf[0] - 1 + next(errors)), abs(sum(pmf) - 1))
                yield "(19), (21)", "PMF, single distance, linear region", gap, needed(pmf, question, epsilon) - delta


def _corollary1(n: int) -> Iterator[_Case]:
    """(24), (25): the least δ for an error rate, where section k holds: ε_k <= ε < ε_(k-1)."""
    for rho in (0.3, 0.55):
        question = single(n, 1)
        grid = [0.2 * step for step in range(1, 11)]
        for epsilon, least in zip(grid, least_deltas(question, [(e, rho) for e in grid]), strict=True):
            a = math.exp(-epsilon)
            # ε >= ε_k where section k reaches f(0) >= 1 - ρ, (25); the first such k
            k = next(k for k in range(n + 1) if (1 - a) / (1 - a ** (n + 1 - k)) >= 1 - rho)
            printed = math.exp(-(n - k) * epsilon) * (1 - rho) if k else 0.0
            yield "(24), (25)", "least δ for an error rate", abs(printed - least), 0.0


def _lemma4(most: int) -> Iterator[_Case]:
    """(28), (29)."""
    for n in range(3, most + 1, 2):
        for mu_bar in range(1, n + 1):
            b, r = divmod(n, mu_bar)
            errors = solve_each(bounded(n, mu_bar), [(epsilon, 0) for epsilon in EPSILONS])
            for epsilon, error in zip(EPSILONS, errors, strict=True):
                total = 1 + mu_bar * sum(math.exp(-i * epsilon) for i in range(1, b + 1))
                total += r * math.exp(-(b + 1) * epsilon)
                yield "(28), (29)", "f(0), bounded difference, δ = 0", abs(1 / total - 1 + error), 0.0
