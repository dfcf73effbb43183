"""Known noise beside a design: its cost at the same budget, and its law for pictures. Floats: for comparison only."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.oracles import line_noise
from models.repeated_noise import known_losses, masses
from workbench.families.additive.request import AdditiveRequest
from workbench.mechanisms.integer_noise import IntegerNoise

__all__ = ["beside", "curves"]

Vector = NDArray[np.float64]
_SQRT = math.sqrt(2)
_WIDEST = 1 << 22  # values of a law that is computed for comparison


def beside(request: AdditiveRequest) -> list[tuple[str, float]]:
    """(noise, its mean cost), best first: named costs of noise that is not clamped."""
    name, epsilon, delta = request.cost_name, float(request.epsilon or 0), float(request.delta)
    if request.convex or name not in line_noise.POWERS or getattr(request.question, "clamp", None) is not None:
        return []
    power, spread = line_noise.POWERS[name], float(request.question.sensitivity)
    if isinstance(request.question, IntegerNoise):
        law = _integer_laws(request)
        found = [(label, float((masses * np.abs(values) ** power).sum())) for label, (values, masses) in law.items()]
        return sorted(found, key=lambda row: row[1])
    found = [("staircase (pure)", line_noise.staircase_reals(epsilon, spread, name)),
             ("Laplace (pure)", (spread / epsilon) ** power * math.factorial(power))]  # fmt: skip
    if delta:
        found.append(("truncated Laplace", line_noise.truncated_laplace(epsilon, delta, spread, name)))
        sigma = gaussian_sigma(epsilon, delta) * spread
        found.append(("Gaussian", sigma * math.sqrt(2 / math.pi) if power == 1 else sigma**2))
    return sorted(found, key=lambda row: row[1])


def curves(request: AdditiveRequest, edges: Vector) -> dict[str, tuple[Vector, Vector]]:
    """name -> (edges, mean densities) on the reals; name -> (values, masses) on the integers."""
    if request.convex:
        return {}
    if isinstance(request.question, IntegerNoise):
        return _integer_laws(request) if request.question.clamp is None else {}
    epsilon, delta, spread = float(request.epsilon or 0), float(request.delta), float(request.question.sensitivity)
    fine = np.linspace(edges[0], edges[-1], 1201)
    middle = np.abs(fine[1:] + fine[:-1]) / 2
    share, b = line_noise.staircase_share(epsilon, request.cost_name), math.exp(-epsilon)
    top = (1 - b) / (2 * spread * (share + b * (1 - share)))
    found = {"staircase (pure)": (fine, top * b ** np.ceil(middle / spread - share))}
    if delta:
        end = line_noise.support(epsilon, delta) * spread
        peak = epsilon / (2 * spread * -math.expm1(-epsilon * end / spread))
        truncated = np.where(middle <= end, peak * np.exp(-epsilon * middle / spread), 0.0)
        sigma = gaussian_sigma(epsilon, delta) * spread
        normal = np.exp(-((middle / sigma) ** 2) / 2) / (sigma * math.sqrt(2 * math.pi))
        found |= {"truncated Laplace": (fine, truncated), "Gaussian": (fine, normal)}
    return found


def _integer_laws(request: AdditiveRequest) -> dict[str, tuple[Vector, Vector]]:
    epsilon, delta, d = float(request.epsilon or 0), float(request.delta), int(request.question.sensitivity)
    if request.runs > 1:
        sides = {name: masses(losses)[0] for name, losses in known_losses(request.runs, epsilon, delta).items()}
        return {
            name: (np.arange(1.0 - side.size, side.size), np.concatenate([side[:0:-1], side]))
            for name, side in sides.items()
        }
    span = math.ceil(d * (40 / epsilon + 1))
    if span > _WIDEST:
        return {}
    values = np.arange(-span, span + 1).astype(float)
    laws = {"geometric": np.exp(-epsilon * np.abs(values) / d)}
    if delta:
        sigma = gaussian_sigma(epsilon, delta) * d
        variance = _least(
            lambda x: _excess(np.exp(-(values**2) / (2 * x)), d, epsilon) <= delta, sigma**2 / 16, 4 * sigma**2
        )
        if variance is not None:
            laws["discrete Gaussian"] = np.exp(-(values**2) / (2 * variance))
        reach = line_noise.support(epsilon, delta) * d
        cut = _least(lambda x: _excess(_cut(values, epsilon, d, x), d, epsilon) <= delta, 0.5, 2 * reach + d + 2)
        if cut is not None:
            laws["truncated geometric"] = _cut(values, epsilon, d, cut)
    return {name: (values, law / law.sum()) for name, law in laws.items()}


def _cut(values: Vector, epsilon: float, d: int, end: float) -> Vector:
    return np.where(np.abs(values) <= end, np.exp(-epsilon * np.abs(values) / d), 0.0)


def _excess(weights: Vector, d: int, epsilon: float) -> float:
    """The hockey stick at a shift of d, the largest of a law that falls from 0 on."""
    law = np.concatenate([weights / weights.sum(), np.zeros(d)])
    moved = np.concatenate([np.zeros(d), law[:-d]])
    return float(np.maximum(law - math.exp(epsilon) * moved, 0).sum())


def _least(good: Callable[[float], Any], low: float, high: float) -> float | None:
    """About the least parameter that is private; None where the largest is not."""
    if not good(high):
        return None
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if good(middle) else (middle, high)
    return high


def gaussian_sigma(epsilon: float, delta: float) -> float:
    """σ/Δ of the analytic Gaussian mechanism (Balle and Wang 2018): δ = Φ(1/2σ - εσ) - e^ε Φ(-1/2σ - εσ)."""

    def tail(x: float) -> float:
        return math.erfc(-x / _SQRT) / 2

    def good(s: float) -> bool:
        return tail(1 / (2 * s) - epsilon * s) - math.exp(epsilon) * tail(-1 / (2 * s) - epsilon * s) <= delta

    found = _least(good, 1e-6, 10 / delta + 10 / epsilon)
    assert found is not None
    return found
