"""What is wrong as printed in the label-DP paper, each with the computation that shows it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from models.losses import loss_named
from models.oracles.bins import interval_costs, optimal_bins
from workbench.mechanisms.label_randomizers.label_lattice import LatticeNoise
from workbench.mechanisms.label_randomizers.label_randomizer import project
from workbench.papers.artifact import Erratum
from workbench.papers.label_dp.mechanism_loss import numbers
from workbench.papers.label_dp.pictures import signature
from workbench.privacy.audit import audit_channel

__all__ = ["errata", "pointer_steps"]


def errata() -> Sequence[Erratum]:
    """Every erratum, checked now."""
    return [_cubic(), _squared_minimum(), _pointer(), _assumption(), _infinite(), _all_clipped(), _caption(),
            _exponential()]  # fmt: skip


def _cubic() -> Erratum:
    counts = {k: sum(i - j + 1 for i in range(1, k + 1) for j in range(1, i + 1)) for k in (50, 100, 200)}
    exponent = math.log(counts[200] / counts[50]) / math.log(4)
    return Erratum(
        "Sec. 3.1, App. B: running time of Algorithm 2",
        "O(k²) for the dynamic programme",
        "O(k³): A[i][j] is a minimum over r for every pair (i, j); the fast exact algorithm here is O(k log k) a round",
        f"candidates r >= j-1 looked at for k = 100: {counts[100]} (k² = 10000); exponent of k between 50 and 200: "
        f"{exponent:.2f}",
        exponent > 2.9,
    )


def _squared_minimum() -> Erratum:
    y, p = np.array([0.0, 1.0, 5.0]), np.array([0.5, 0.3, 0.2])
    weights = p * np.array([1.0, 3.0, 3.0])  # e^ε = 3 on the last two
    x = float(weights @ y / weights.sum())
    true = float(weights @ (x - y) ** 2)
    printed = float(weights @ y**2 - 2 * (weights @ y) * x + x * x)
    right = float(weights @ y**2 - 2 * (weights @ y) * x + weights.sum() * x * x)
    used = float(interval_costs(y, p, math.log(3), loss_named("squared"))[1, 2])
    return Erratum(
        "App. B, squared loss, minimum value",
        "Σwy² - 2(Σwy)x + x²",
        "Σwy² - 2(Σwy)x + (Σw)x²",
        f"labels 0, 1, 5, weights 0.5, 0.9, 0.6: true {true:.6g}, printed {printed:.6g}, corrected {right:.6g}",
        abs(right - true) < 1e-12 and abs(used - true) < 1e-12 and abs(printed - true) > 0.1,
    )


def pointer_steps(weights: Sequence[float], *, corrected: bool, limit: int = 100) -> int | None:
    """Moves of the weighted-median pointer from the first value until it stops; None when it cycles."""
    at = 0
    for step in range(limit):
        low, high, own = sum(weights[: at + 1]), sum(weights[at + 1 :]), weights[at]
        if low < high:
            at += 1
        elif low - own >= high + (own if corrected else 0):
            at -= 1
        else:
            return step
    return None


def _pointer() -> Erratum:
    weights = (2, 3, 2)
    printed, right = pointer_steps(weights, corrected=False), pointer_steps(weights, corrected=True)
    return Erratum(
        "App. B, absolute-value loss, weighted-median pointer",
        "move down if w_lo - w_x >= w_hi",
        "move down if w_lo - w_x >= w_hi + w_x (w_hi + w_x is what lies above after the move)",
        f"weights 2, 3, 2: as printed {'it cycles for ever' if printed is None else f'{printed} moves'}; corrected it "
        f"stops after {right} move",
        printed is None and right == 1,
    )


def _assumption() -> Erratum:
    loss, deviance = loss_named("poisson"), loss_named("poisson-deviance")
    y = np.arange(1, 21.0)
    at = loss(10.0, y)  # must fall up to y = 10 and rise beyond
    shift = [float(deviance(o, 7.0) - loss(o, 7.0)) for o in (1.0, 3.0, 12.0)]
    constant = max(shift) - min(shift)
    table = deviance.matrix(y, y)
    keeps = bool((np.diff(np.abs(np.diff(np.sign(np.diff(table, axis=0)), axis=0)).sum(axis=0)) <= 2).all())
    printed, deviating = optimal_bins(y, None, 1.0, loss), optimal_bins(y, None, 1.0, deviance)
    return Erratum(
        "Sec. 3.1, Assumption 4",
        "all the standard losses satisfy it, the Poisson log loss among them",
        "ℓ_Poi(ŷ, y) = ŷ - y log ŷ is negative and keeps falling in y beyond ŷ > 1; adding y log y - y (the deviance) "
        "repairs both and shifts every mechanism's loss by one constant",
        f"ℓ_Poi(10, y) at y = 10, 20: {at[9]:.4g}, {at[19]:.4g} (should rise); deviance minus ℓ_Poi is constant in ŷ "
        f"within {constant:.1g}; both give the same bins",
        bool(at[19] < at[9] < 0 and constant < 1e-12 and (table >= -1e-12).all() and keeps
             and np.array_equal(printed.starts, deviating.starts)),
    )  # fmt: skip


def _infinite() -> Erratum:
    value = float(loss_named("poisson")(0.0, 3.0))
    return Erratum(
        "Theorem 7",
        "ℓ(ŷ, y) <= B for all y, ŷ in 𝒴, for the losses considered",
        "B is infinite for the Poisson log loss when 0 is a label, and the theorem says nothing there",
        f"ℓ_Poi(0, 3) = {value}",
        math.isinf(value),
    )


def _all_clipped() -> Erratum:
    h = np.array([-1.0, -2.0, -0.5])
    kept = np.maximum(h, 0)
    return Erratum(
        "Algorithm 4",
        "p' = h' / Σ h' with h' clipped at 0",
        "0/0 when every noisy count is clipped; ours is then the uniform prior",
        f"noisy counts -1, -2, -0.5 sum to {kept.sum():g} after clipping; ours: {project(h).round(4).tolist()}",
        kept.sum() == 0 and bool(np.allclose(project(h), 1 / 3)),
    )


def _caption() -> Erratum:
    claims = numbers()["fig5"]
    matrix = [[Fraction(0) if d == 0 else Fraction(1, d) for d in row] for row in claims["denominators"]]
    half, two = signature(matrix, Fraction(1, 2)), signature(matrix, Fraction(2))
    return Erratum(
        "caption of Fig. 5",
        "e^ε = 1/2",
        "e^ε = 2",
        f"the printed M meets (2) for e^ε = 2: {two is not None}; for 1/2: {half is not None}",
        half is None and two == claims["signature"],
    )


def _exponential() -> Erratum:
    epsilons = []
    for high in (4, 10, 51):
        noise = LatticeNoise("exponential", 0, high, 1)
        pairs = [(i, j) for i in range(high + 1) for j in range(i)]
        epsilons.append(audit_channel(noise.channel, pairs, 1).pure_epsilon)
    return Erratum(
        "App. F: the exponential mechanism",
        "to guarantee the same privacy the noise must scale with 2/ε",
        "Lap(D/ε) conditioned on the label range D is ε-DP already: the factor e^{|y-y'|/b} Z(y')/Z(y) is largest for "
        "the two ends of the range, whose normalisers Z are equal: e^{D/b}; the paper's scale 2D/ε gives ε/2",
        "exact audit of the discrete mechanism with the paper's scale for ε = 1, D = 4, 10, 51: "
        + ", ".join(f"{value:.6f}" for value in epsilons),
        all(abs(value - 0.5) < 1e-9 for value in epsilons),
    )  # fmt: skip
