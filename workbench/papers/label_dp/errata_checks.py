"""What is wrong as printed in the label-DP paper, each with the computation that shows it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from models.losses import loss_named
from models.oracles.bins import interval_losses, optimal_bins
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.label_randomizers.label_randomizer import project
from workbench.papers.artifact import Erratum, erratum, printed
from workbench.papers.label_dp.figures import signature
from workbench.papers.label_dp.lattice import lattice_noise
from workbench.privacy.audit import audit

__all__ = ["errata", "pointer_steps"]


def errata() -> Sequence[Erratum]:
    """Every erratum, checked now."""
    return [
        _cubic(),
        _squared_minimum(),
        _pointer(),
        _assumption(),
        _infinite(),
        _all_clipped(),
        _caption(),
        _exponential(),
    ]


def _cubic() -> Erratum:
    counts = {k: sum(i - j + 1 for i in range(1, k + 1) for j in range(1, i + 1)) for k in (50, 100, 200)}
    exponent = math.log(counts[200] / counts[50]) / math.log(4)
    return erratum("label_dp", "cubic", exponent > 2.9, counts=counts[100], exponent=exponent)


def _squared_minimum() -> Erratum:
    y, p = np.array([0.0, 1.0, 5.0]), np.array([0.5, 0.3, 0.2])
    weights = p * np.array([1.0, 3.0, 3.0])  # e^ε = 3 on the last two
    x = float(weights @ y / weights.sum())
    true = float(weights @ (x - y) ** 2)
    printed = float(weights @ y**2 - 2 * (weights @ y) * x + x * x)
    right = float(weights @ y**2 - 2 * (weights @ y) * x + weights.sum() * x * x)
    used = float(interval_losses(y, p, math.log(3), loss_named("squared"))[1, 2])
    return erratum(
        "label_dp",
        "squared_minimum",
        abs(right - true) < 1e-12 and abs(used - true) < 1e-12 and abs(printed - true) > 0.1,
        true=true,
        printed=printed,
        right=right,
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
    return erratum(
        "label_dp",
        "pointer",
        printed is None and right == 1,
        printed="it cycles for ever" if printed is None else f"{printed} moves",
        right=right,
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
    return erratum(
        "label_dp",
        "assumption",
        bool(
            at[19] < at[9] < 0
            and constant < 1e-12
            and (table >= -1e-12).all()
            and keeps
            and np.array_equal(printed.starts, deviating.starts)
        ),
        at=at[9],
        at_2=at[19],
        constant=constant,
    )


def _infinite() -> Erratum:
    value = float(loss_named("poisson")(0.0, 3.0))
    return erratum("label_dp", "infinite", math.isinf(value), value=value)


def _all_clipped() -> Erratum:
    h = np.array([-1.0, -2.0, -0.5])
    kept = np.maximum(h, 0)
    return erratum(
        "label_dp",
        "all_clipped",
        kept.sum() == 0 and bool(np.allclose(project(h), 1 / 3)),
        kept=kept.sum(),
        round=project(h).round(4).tolist(),
    )


def _caption() -> Erratum:
    claims = printed("label_dp")["fig5"]
    matrix = [[Fraction(0) if d == 0 else Fraction(1, d) for d in row] for row in claims["denominators"]]
    half, two = signature(matrix, Fraction(1, 2)), signature(matrix, Fraction(2))
    return erratum(
        "label_dp", "caption", half is None and two == claims["signature"], two=two is not None, half=half is not None
    )


def _exponential() -> Erratum:
    epsilons = []
    for high in (4, 10, 51):
        noise = lattice_noise("exponential", 0, high, 1)
        pairs = [(i, j) for i in range(high + 1) for j in range(i)]
        epsilons.append(audit(Channel.of(noise.rows, pairs), 1).pure_epsilon)
    return erratum(
        "label_dp",
        "exponential",
        all(abs(value - 0.5) < 1e-9 for value in epsilons),
        listed=", ".join(f"{value:.6f}" for value in epsilons),
    )
