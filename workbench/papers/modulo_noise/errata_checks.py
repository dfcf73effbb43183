"""Every erratum of the paper with its check. `holds` is always the outcome of a computation, never a constant."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from models.oracles.single_distance import level_curve
from workbench.exact.numbers import exact
from workbench.families.noise.design import NoiseDesigner
from workbench.mechanisms.baselines.count_queries import clamped_gaussian, clamped_geometric, geometric_alpha
from workbench.mechanisms.baselines.fitting import FAMILIES
from workbench.mechanisms.channel import Channel, within
from workbench.papers.artifact import Erratum
from workbench.papers.modulo_noise.baseline_curves import adjacent_pairs, least_parameter, two_sided
from workbench.papers.modulo_noise.common import Floats, bounded, numbers, single, solve_each
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
    yield Erratum(
        "Section 2.1",
        "neither (ε, δ)-PDP nor (ε, δ)-DP survives post-processing when δ > 0",
        "(ε, δ)-DP is closed under post-processing; only PDP is not",
        f"discrete Gaussian σ² = {variance}, clamped into 0..8: at ε = {at} the PDP δ rises from {before:.6f} to "
        f"{after:.6f}, while the hockey stick rises at none of 301 values of ε in 0..3",
        after > before + 0.1 and grows <= 1e-12,
    )


def _variables() -> Iterator[Erratum]:
    n, mu_bar = 8, 3
    with NoiseDesigner(bounded(n, mu_bar)) as designer:
        columns = designer.solve(1.5, 0.1).program.shape[1]
    with NoiseDesigner(single(n, 1)) as designer:
        alone = designer.solve(1.5, 0.1).program.shape[1]
    printed = numbers()["text"]["variables"]["value"]
    yield Erratum(
        "text after (13h)",
        f"the MILP has {printed}(n + 1) variables",
        "(1 + 2|M|)(n + 1): u and y exist for every μ; 3(n + 1) is |M| = 1",
        f"n = {n}: the compiled program has {alone} columns for |M| = 1 and {columns} for |M| = 3, {printed}(n + 1) = "
        f"{printed * (n + 1)}",
        alone == printed * (n + 1) and columns == (1 + 2 * mu_bar) * (n + 1),
    )


def _baselines() -> Iterator[Erratum]:
    given = numbers()["fig6"]["parameters"]
    n, alpha, variance = given["n"], exact(given["alpha"], "alpha"), given["variance"]
    wide = float(2 * alpha / (1 - alpha) ** 2)
    summed = 2 * math.fsum((1 - float(alpha)) / (1 + float(alpha)) * float(alpha) ** k * k * k for k in range(1, 400))
    right = geometric_alpha(variance)
    yield Erratum(
        "Figs 6 and 8",
        f"α = {float(alpha)} has the MSE {variance}",
        f"its variance is 2α/(1 - α)² = {wide:.4f}; {variance} needs α = {right:.6f}",
        f"summed over 400 noise values: {summed:.4f}; 2α/(1 - α)² at {right:.6f}: {2 * right / (1 - right) ** 2:.6f}",
        abs(summed - wide) < 1e-9 and abs(wide - variance) > 1 and abs(2 * right / (1 - right) ** 2 - variance) < 1e-9,
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
    yield Erratum(
        "(58), last line",
        "f(n|q) = 1 - F(n - q)",
        "f(n|q) = 1 - F(n - q - 1), as (57) says",
        f"geometric law α = 1/2, n = {n}: the printed rows q = 0..{n} miss exactly f(n - q), up to "
        f"{float(max(missing)):.4f}",
        fixed and missing == [law[n - q] for q in range(n + 1)],
    )
    exact_alpha = exact("0.4717", "alpha")
    levels = [exact(level, "epsilon") for level in ("0.1", "0.5", "0.75", "0.76", "1", "2")]
    clamped = profile(Channel.of(clamped_geometric(n, exact_alpha), within(n, 1)), "pdp").deltas(levels).tolist()
    free = [float(1 / (1 + exact_alpha)) if math.exp(-float(e)) > float(exact_alpha) else 0.0 for e in levels]
    yield Erratum(
        "text on Fig. 6",
        "clamping increases δ for the geometric and the Gaussian mechanism",
        "the geometric law's δ(ε) is unchanged: each end output collects a tail of one ratio; the Gaussian's rises at "
        "some ε and falls to 0 beyond the losses of the ends",
        f"α = 0.4717, n = {n}, neighbours ±1, exact audit at six ε: clamped {', '.join(f'{d:.6f}' for d in clamped)}; "
        f"not clamped {', '.join(f'{d:.6f}' for d in free)}",
        all(abs(c - f) < 1e-12 for c, f in zip(clamped, free, strict=True)),
    )


def _comparisons() -> Iterator[Erratum]:
    given = numbers()["fig7"]["parameters"]["b"]
    n, rho, at = given["n"], given["error_rate"], 0.5
    optimum = level_curve(n + 1, at, rho)
    independent = 1 - rho if (1 - rho) > math.exp(at) * rho / n else 0.0
    yield Erratum(
        "text on Fig. 7",
        "the optimal noise significantly outperforms all baselines for every ε > 0",
        "not for small ε: f(0) = δ is then the best there is, and data-independent noise has the same δ",
        f"error rate {rho}, n = {n}, ε = {at}: least δ {optimum:.6f} (Corollary 1), data-independent {independent:.6f}",
        abs(optimum - independent) < 1e-12,
    )
    given = numbers()["fig5"]["parameters"]["a"]
    n, delta, epsilon = given["n"], given["delta"], 2.0
    paper = solve_each(single(n, 1), [(epsilon, delta)], cost="eta-squared")[0]
    one_sided = solve_each(single(n, 1), [(epsilon, delta)], cost="squared")[0]
    symmetric = solve_each(single(n, 1, directed=False), [(epsilon, delta)], cost="squared")[0]
    others = {
        name: FAMILIES[name].build(n, least_parameter(name, n, epsilon, delta)).mse
        for name in ("geometric", "gaussian", "exponential")
    }
    yield Erratum(
        "(11) and text on Figs 5(a), 7(a)",
        "E|q̃ - q|² = Σ η² f(η), by which the optimal noise has the least MSE",
        "published modulo n + 1, the answer is off by η or by η - (n + 1): uniform over answers Σ η (n + 1 - η) f(η)",
        f"n = {n}, δ = {delta}, ε = {epsilon:g}, difference 1: Σ η² f(η) = {paper:.4f}; least true MSE {one_sided:.4f} "
        f"one-sided, {symmetric:.4f} symmetric; baselines "
        + ", ".join(f"{name} {value:.4f}" for name, value in others.items()),
        paper < min(others.values()) and one_sided > max(others.values()) and symmetric > max(others.values()),
    )
