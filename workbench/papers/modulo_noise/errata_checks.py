"""Every erratum of the paper with its check. `holds` is always the outcome of a computation, never a constant."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from models.oracles.single_distance import level_curve
from workbench.exact.numbers import exact
from workbench.families.api import design
from workbench.mechanisms.additive import ModuloNoise
from workbench.mechanisms.baselines.count_queries import FAMILIES, clamped_gaussian, clamped_geometric, geometric_alpha
from workbench.mechanisms.channel import Channel, within
from workbench.papers.artifact import Erratum, erratum
from workbench.papers.modulo_noise.common import Floats, bounded, numbers, single, solve_each
from workbench.papers.modulo_noise.curves import adjacent_pairs, least_parameter, two_sided
from workbench.papers.modulo_noise.errata_theorem3 import limits, section_sd, theorem3
from workbench.privacy.curve import profile

__all__ = ["errata"]


def errata() -> list[Erratum]:
    """In the order of the paper."""
    return [*_post_processing(), *_variables(), *section_sd(), *theorem3(), *limits(), *_baselines(), *_comparisons()]


def _hockey_stick(p: Floats, q: Floats, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum(axis=1).max())


def _pdp(p: Floats, q: Floats, epsilon: float) -> float:
    return float(np.where(p > math.exp(epsilon) * q * (1 + 1e-11), p, 0).sum(axis=1).max())


def _post_processing() -> Iterator[Erratum]:
    variance = numbers()["fig6"]["parameters"]["variance"]
    free = two_sided(lambda eta: np.exp(-(eta**2) / (2 * variance)), 60)
    clamped = adjacent_pairs(clamped_gaussian(8, variance).matrix)
    grid = np.linspace(0, 3, 301)
    grows = max(_hockey_stick(*clamped, float(e)) - _hockey_stick(*free, float(e)) for e in grid)
    at = 0.3
    before, after = _pdp(*free, at), _pdp(*clamped, at)
    yield erratum(
        "modulo_noise",
        "post_processing",
        after > before + 0.1 and grows <= 1e-12,
        variance=variance,
        at=at,
        before=before,
        after=after,
    )


def _columns(question: ModuloNoise) -> int:
    solution = design(question, notion="pdp", epsilon=1.5, delta=0.1, certify=False).solution
    assert solution is not None
    return int(solution.program.shape[1])


def _variables() -> Iterator[Erratum]:
    n, mu_bar = 8, 3
    columns, alone = (_columns(question) for question in (bounded(n, mu_bar), single(n, 1)))
    printed = numbers()["text"]["variables"]["value"]
    yield erratum(
        "modulo_noise",
        "variables",
        alone == printed * (n + 1) and columns == (1 + 2 * mu_bar) * (n + 1),
        printed=printed,
        n=n,
        alone=alone,
        columns=columns,
        printed_2=printed * (n + 1),
    )


def _baselines() -> Iterator[Erratum]:
    given = numbers()["fig6"]["parameters"]
    n, alpha, variance = given["n"], exact(given["alpha"], "alpha"), given["variance"]
    wide = float(2 * alpha / (1 - alpha) ** 2)
    summed = 2 * math.fsum((1 - float(alpha)) / (1 + float(alpha)) * float(alpha) ** k * k * k for k in range(1, 400))
    right = geometric_alpha(variance)
    yield erratum(
        "modulo_noise",
        "baselines_1",
        abs(summed - wide) < 1e-9 and abs(wide - variance) > 1 and abs(2 * right / (1 - right) ** 2 - variance) < 1e-9,
        alpha=float(alpha),
        variance=variance,
        wide=wide,
        right=right,
        summed=summed,
        right_2=2 * right / (1 - right) ** 2,
    )
    ratio = Fraction(1, 2)
    law = {eta: (1 - ratio) / (1 + ratio) * ratio ** abs(eta) for eta in range(-n - 1, n + 1)}
    tail = {q: 1 - ratio ** (n - q + 1) / (1 + ratio) for q in range(n + 1)}  # F(n - q)
    rows = [
        ratio**q / (1 + ratio) + sum(law[k - q] for k in range(1, n)) + 1 - tail[q]  # F(-q), the middle, the last
        for q in range(n + 1)
    ]
    missing = [1 - row for row in rows]
    fixed = all(sum(row.integers) == row.total for row in clamped_geometric(n, ratio).rows)
    yield erratum(
        "modulo_noise",
        "baselines_2",
        fixed and missing == [law[n - q] for q in range(n + 1)],
        n=n,
        missing=float(max(missing)),
    )
    exact_alpha = exact("0.4717", "alpha")
    levels = [exact(level, "epsilon") for level in ("0.1", "0.5", "0.75", "0.76", "1", "2")]
    clamped = profile(Channel.of(clamped_geometric(n, exact_alpha), within(n, 1)), "pdp").deltas(levels).tolist()
    free = [float(1 / (1 + exact_alpha)) if math.exp(-float(e)) > float(exact_alpha) else 0.0 for e in levels]
    yield erratum(
        "modulo_noise",
        "baselines_3",
        all(abs(c - f) < 1e-12 for c, f in zip(clamped, free, strict=True)),
        n=n,
        listed=", ".join(f"{d:.6f}" for d in clamped),
        listed_2=", ".join(f"{d:.6f}" for d in free),
    )


def _comparisons() -> Iterator[Erratum]:
    given = numbers()["fig7"]["parameters"]["b"]
    n, rho, at = given["n"], given["error_rate"], 0.5
    optimum = level_curve(n + 1, at, rho)
    independent = 1 - rho if (1 - rho) > math.exp(at) * rho / n else 0.0
    yield erratum(
        "modulo_noise",
        "comparisons_1",
        abs(optimum - independent) < 1e-12,
        rho=rho,
        n=n,
        at=at,
        optimum=optimum,
        independent=independent,
    )
    given = numbers()["fig5"]["parameters"]["a"]
    n, delta, epsilon = given["n"], given["delta"], 2.0
    paper = solve_each(single(n, 1), [(epsilon, delta)], loss="eta-squared")[0]
    one_sided = solve_each(single(n, 1), [(epsilon, delta)], loss="squared")[0]
    symmetric = solve_each(single(n, 1, directed=False), [(epsilon, delta)], loss="squared")[0]
    others = {
        name: FAMILIES[name].build(n, least_parameter(name, n, epsilon, delta)).mse
        for name in ("geometric", "gaussian", "exponential")
    }
    yield erratum(
        "modulo_noise",
        "comparisons_2",
        paper < min(others.values()) and one_sided > max(others.values()) and symmetric > max(others.values()),
        n=n,
        delta=delta,
        epsilon=epsilon,
        paper=paper,
        one_sided=one_sided,
        symmetric=symmetric,
        listed=", ".join((f"{name} {value:.4f}" for name, value in others.items())),
    )
