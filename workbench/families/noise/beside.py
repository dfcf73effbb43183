"""Published noise beside a design, with its least parameter at the same budget: its loss, and its law for pictures.

On the integers laws are proven private (`workbench.families.integer_laws`) and their losses exact; on the reals they
are closed forms in floating point. For several runs, and on the reals, the numbers are for comparison only.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from models.oracles import line_noise
from models.repeated_wide_noise import RepeatedWideNoise, published_shapes
from solvers.search import bisect
from workbench.exact.numbers import ln_up
from workbench.families.frontier_plan import NotApplicable
from workbench.families.integer_laws import NAMES, FittedLaw, fitted_laws
from workbench.families.integer_laws import masses as masses_of
from workbench.families.noise.problem import exact_loss
from workbench.families.noise.request import NoiseRequest
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise, IntegerNoise

_WIDEST = 1 << 22  # values of a law that is computed for comparison
Vector = NDArray[np.float64]
_SQRT = math.sqrt(2)


def beside(request: NoiseRequest) -> list[tuple[str, float]]:
    """(noise, its mean loss), best first."""
    name, epsilon, delta = request.loss_name, float(request.epsilon or 0), float(request.delta)
    if request.convex or request.worst:
        return []
    if isinstance(request.question, IntegerNoise):
        if request.runs == 1:
            return sorted(((label, loss) for label, (_, loss) in _fitted(request).items()), key=lambda row: row[1])
        power = line_noise.POWERS[name]
        means = {label: float((law * np.abs(x) ** power).sum()) for label, (x, law) in _integer_laws(request).items()}
        return sorted(means.items(), key=lambda row: row[1])
    if name not in line_noise.POWERS:
        return []
    power, spread = line_noise.POWERS[name], float(request.question.sensitivity)
    rows = [
        ("staircase (pure)", line_noise.staircase_reals(epsilon, spread, name)),
        ("Laplace (pure)", (spread / epsilon) ** power * math.factorial(power)),
    ]
    if delta:
        if delta <= 0.5:
            rows.append(("truncated Laplace", line_noise.truncated_laplace(epsilon, delta, spread, name)))
        sigma = gaussian_sigma(epsilon, delta) * spread
        rows.append(("Gaussian", sigma * math.sqrt(2 / math.pi) if power == 1 else sigma**2))
    return sorted(rows, key=lambda row: row[1])


def curves(request: NoiseRequest, edges: Vector) -> dict[str, tuple[Vector, Vector]]:
    """name -> (edges, mean densities) on the reals; name -> (values, masses) on the integers."""
    if request.convex:
        return {}
    if isinstance(request.question, IntegerNoise):
        return _integer_laws(request) if request.question.clamp is None else {}
    epsilon, delta, spread = float(request.epsilon or 0), float(request.delta), float(request.question.sensitivity)
    fine = np.linspace(edges[0], edges[-1], 1201)
    middle = np.abs(fine[1:] + fine[:-1]) / 2
    share, b = line_noise.staircase_share(epsilon, request.loss_name), math.exp(-epsilon)
    top = (1 - b) / (2 * spread * (share + b * (1 - share)))
    densities = {"staircase (pure)": (fine, top * b ** np.ceil(middle / spread - share))}
    if delta:
        end = line_noise.support(epsilon, delta) * spread
        peak = epsilon / (2 * spread * -math.expm1(-epsilon * end / spread))
        truncated = np.where(middle <= end, peak * np.exp(-epsilon * middle / spread), 0.0)
        sigma = gaussian_sigma(epsilon, delta) * spread
        normal = np.exp(-((middle / sigma) ** 2) / 2) / (sigma * math.sqrt(2 * math.pi))
        densities |= {"truncated Laplace": (fine, truncated), "Gaussian": (fine, normal)}
    return densities


def _integer_laws(request: NoiseRequest) -> dict[str, tuple[Vector, Vector]]:
    epsilon, delta, d = float(request.epsilon or 0), float(request.delta), int(request.question.sensitivity)
    if request.runs > 1:
        shapes = published_shapes(d)
        return {name: RepeatedWideNoise(request.runs, epsilon, delta, d, shapes[name]).law() for name in shapes}
    return {name: _drawn(fit) for name, (fit, _) in _fitted(request).items() if _size(fit) <= _WIDEST}


def _fitted(request: NoiseRequest) -> dict[str, tuple[FittedLaw, float]]:
    """name -> the best law of that name, and its exact mean loss, of clamped noise the expected loss."""
    laws: dict[str, tuple[FittedLaw, float]] = {}
    question = request.question
    assert isinstance(question, IntegerNoise)
    for name in NAMES:
        try:
            fitted = fitted_laws(name, question.sensitivity, request.epsilon, request.delta, request.notion)
        except NotApplicable:
            continue
        losses = [(fit, float(exact_loss(AdditiveIntegerNoise(question, fit.law), request))) for fit in fitted]
        laws[name] = min(losses, key=lambda pair: pair[1])
    return laws


def _drawn(fitted: FittedLaw) -> tuple[Vector, Vector]:
    """(values, masses), as far as a float shows mass."""
    size = _size(fitted)
    return np.arange(-size, size + 1.0), masses_of(fitted.law, size)[0]


def _size(fitted: FittedLaw) -> int:
    law = fitted.law
    blocks = math.ceil(45 / -ln_up(law.ratio)) if law.ratio else 0
    return int(max(abs(law.first), abs(law.last)) + law.period * blocks)


def gaussian_sigma(epsilon: float, delta: float) -> float:
    """σ/Δ of the analytic Gaussian mechanism (Balle and Wang 2018): δ = Φ(1/2σ - εσ) - e^ε Φ(-1/2σ - εσ)."""

    def tail(x: float) -> float:
        return math.erfc(-x / _SQRT) / 2

    def good(s: float) -> bool:
        return tail(1 / (2 * s) - epsilon * s) - math.exp(epsilon) * tail(-1 / (2 * s) - epsilon * s) <= delta

    return bisect(good, 1e-6, 10 / delta + 10 / epsilon, turns=60)[1]
