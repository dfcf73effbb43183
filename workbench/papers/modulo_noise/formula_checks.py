"""What the paper has right: its closed forms, evaluated as printed, against the solver on many small cases.

Every formula is written out here once more from the print, so that it stands on its own and not on our oracles.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from solvers.arrays import Vector
from workbench.papers.artifact import Artifact, artifact
from workbench.papers.modulo_noise.common import needed, question_of, solve_each
from workbench.papers.modulo_noise.curves import SOURCES

EPSILONS = (0.4, 1.0, 1.75)


def formulas(full: bool = False) -> Artifact:
    """The largest difference between each right formula and the solver."""
    cases = [*_lemma3(9 if full else 7), *_theorem2(7 if full else 5), *_corollary1(5), *_lemma4(12 if full else 9)]
    rows = []
    for (formula, gives), part in pd.concat(cases).groupby(["formula", "gives"], sort=False):
        worst, excess = float(part["difference"].max()), float(part["excess"].max())
        verdict = "right in every case" if worst < 1e-7 and excess <= 1e-9 else "WRONG"
        rows.append((formula, gives, len(part), "< 1e-7" if worst < 1e-7 else f"{worst:.2g}", verdict))

    columns = ["formula", "gives", "cases", "largest difference to the solver", "verdict"]
    return artifact("modulo_noise", "formulas", pd.DataFrame(rows, columns=columns))


def _cases(formula: str, gives: str, differences: Any, excess: float = 0.0) -> pd.DataFrame:
    """|printed - solver| of some cases, and the δ needed beyond the one allowed."""
    return pd.DataFrame({"formula": formula, "gives": gives, "difference": np.abs(differences), "excess": excess})


def _lemma3(most: int) -> Iterator[pd.DataFrame]:
    """(17b), (18c)."""
    for n in range(2, most + 1):
        for shift in range(1, n + 1):
            cycle = (n + 1) // math.gcd(n + 1, shift)
            solved = SOURCES["least error"](EPSILONS, n=n, shifts=[shift])
            a = np.exp(-solved["epsilon"])
            yield _cases(
                "(17)" if cycle == n + 1 else "(18)",
                "f(0), single distance, δ = 0",
                (1 - a) / (1 - a**cycle) - 1 + solved["solver"],
            )


def _ends(n: int, epsilon: float) -> tuple[Vector, Vector]:
    """δ̲_k and δ̄_k, k = 0..n, (19)."""
    a, k = math.exp(-epsilon), np.arange(n + 1.0)
    lower = a ** (n - k) * (1 - a) / (1 - a ** (n - k + 1))
    upper = a ** (n - k - 1) * (1 - a) / (1 - a ** (n - k + 1))
    lower[0], upper[n] = 0.0, 1.0
    return lower, upper


def _theorem2(most: int) -> Iterator[pd.DataFrame]:
    """(19)-(21): PMF f_(h), h = 0..n, and error rate in the middle of every flat and linear region."""
    for n in range(2, most + 1):
        question, h = question_of(n=n, shifts=[1]), np.arange(n + 1.0)
        for epsilon in EPSILONS:
            lower, upper = _ends(n, epsilon)
            flat, linear = (lower + upper)[1:] / 2, (upper[:-1] + lower[1:]) / 2
            errors = solve_each(question, [(epsilon, delta) for delta in [*flat.tolist(), *linear.tolist()]])
            for k in range(1, n + 1):
                kept = h <= n - k
                steps = np.exp((n - k - h) * epsilon)
                pmf = np.where(kept, lower[k] * steps, 0.0)  # (20)
                yield _cases(
                    "(19), (20)",
                    "PMF, single distance, flat region",
                    [pmf[0] - 1 + errors[k - 1]],
                    needed(pmf, question, epsilon) - flat[k - 1],
                )
                delta = linear[k - 1]
                rest = math.expm1(epsilon) / math.expm1(k * epsilon) * (1 - delta / lower[k])
                pmf = np.where(kept, delta * steps, np.exp((n - h) * epsilon) * rest)  # (21)
                gap = max(abs(pmf[0] - 1 + errors[n + k - 1]), abs(pmf.sum() - 1))
                yield _cases(
                    "(19), (21)", "PMF, single distance, linear region", [gap], needed(pmf, question, epsilon) - delta
                )


def _corollary1(n: int) -> Iterator[pd.DataFrame]:
    """(24), (25): the least δ for an error rate, where section k holds: ε_k <= ε < ε_(k-1)."""
    for rho in (0.3, 0.55):
        solved = SOURCES["least delta"]("0.2:2:10", rho, n=n, shifts=[1])
        a = np.exp(-solved["epsilon"].to_numpy())[:, None]
        reached = (1 - a) / (1 - a ** (n + 1 - np.arange(n + 1))) >= 1 - rho  # ε >= ε_k, (25)
        k = reached.argmax(axis=1)  # the first such k
        printed = np.where(k > 0, np.exp(-(n - k) * solved["epsilon"]) * (1 - rho), 0.0)
        yield _cases("(24), (25)", "least δ for an error rate", printed - solved["delta"])


def _lemma4(most: int) -> Iterator[pd.DataFrame]:
    """(28), (29)."""
    for n in range(3, most + 1, 2):
        for mu_bar in range(1, n + 1):
            b, r = divmod(n, mu_bar)
            solved = SOURCES["least error"](EPSILONS, n=n, max_shift=mu_bar)
            a = np.exp(-solved["epsilon"])
            total = 1 + mu_bar * sum(a**i for i in range(1, b + 1)) + r * a ** (b + 1)
            yield _cases("(28), (29)", "f(0), bounded difference, δ = 0", 1 / total - 1 + solved["solver"])
