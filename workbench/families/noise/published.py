"""Published noise beside a design, with its least parameter at the same budget: its loss, and its law for pictures.

On the integers laws are proven private (`workbench.families.integer_laws`) and their losses exact; on the reals they
are closed forms in floating point. For several runs, and on the reals, the numbers are for comparison only.

    noise on the reals      density                                             private because
    Laplace                 e^(-|x|/b)/2b                                       δ(ε) = 1 - e^((ε - Δ/b)/2)
    staircase (pure)        steps of Δ that fall by e^-ε                        pure
    truncated Laplace       ∝ e^(-ε|x|/Δ) on [-A, A]                            a shift takes δ beyond the end
    Gaussian                normal                                              its exact δ(ε), see `gaussian_sigma`
    uniform                 uniform on [-w, w], and an atom at 0                (0, δ): total variation of a shift
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from models.oracles import line_noise
from solvers.search import bisect
from workbench.exact.numbers import ln_up
from workbench.families.frontier_plan import NotApplicable
from workbench.families.integer_laws import NAMES, SOURCES, FittedLaw, fitted_laws
from workbench.families.integer_laws import masses as masses_of
from workbench.families.noise.problem import exact_loss
from workbench.families.noise.request import NoiseRequest
from workbench.families.published import Published, Reference
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise, IntegerNoise

_WIDEST = 1 << 22  # values of a law that is computed for comparison
Vector = NDArray[np.float64]


def beside(request: NoiseRequest) -> list[tuple[str, float]]:
    """(noise, its mean loss), best first."""
    if request.convex or request.worst:
        return []
    if request.runs > 1 and isinstance(request.question, IntegerNoise):
        power = line_noise.POWERS[request.loss_name]
        means = {label: float((law * np.abs(x) ** power).sum()) for label, (x, law) in _integer_laws(request).items()}
    else:
        means = {}
        for entry in PUBLISHED:
            with suppress(NotApplicable):
                means[entry.name] = entry.cost(request).objective
    return sorted(means.items(), key=lambda row: row[1])


# On the reals.


def _on_reals(law: Callable[[float, float, str], tuple[float, str, float]]) -> Callable[[NoiseRequest], Reference]:
    """An entry of (ε, δ, loss) -> (loss, symbol, parameter) for Δ = 1, both grown by Δ."""

    def cost(request: NoiseRequest) -> Reference:
        if isinstance(request.question, IntegerNoise):
            raise NotApplicable("it is noise on the reals")
        clamped = getattr(request.question, "clamp", None) is not None
        if request.loss_name not in line_noise.POWERS or request.runs > 1 or clamped:
            raise NotApplicable("its loss is known for one run, not clamped, and the losses absolute and squared")
        spread = float(request.question.sensitivity)
        loss, symbol, value = law(float(request.epsilon or 0), float(request.delta), request.loss_name)
        return Reference(loss * spread ** line_noise.POWERS[request.loss_name], False, None, symbol, value * spread)

    return cost


def _laplace(epsilon: float, delta: float, loss: str) -> tuple[float, str, float]:
    scale = 1 / (epsilon - 2 * math.log1p(-delta))
    power = line_noise.POWERS[loss]
    return scale**power * math.factorial(power), "b", scale


def _staircase(epsilon: float, delta: float, loss: str) -> tuple[float, str, float]:
    return line_noise.staircase_reals(epsilon, 1.0, loss), "γ Δ", line_noise.staircase_share(epsilon, loss)


def _truncated(epsilon: float, delta: float, loss: str) -> tuple[float, str, float]:
    if not 0 < delta <= 0.5:
        raise NotApplicable("it needs 0 < delta <= 1/2")
    return line_noise.truncated_laplace(epsilon, delta, 1.0, loss), "A", line_noise.support(epsilon, delta)


def _gaussian(epsilon: float, delta: float, loss: str) -> tuple[float, str, float]:
    if not delta:
        raise NotApplicable("it needs delta > 0")
    sigma = gaussian_sigma(epsilon, delta)
    return sigma * math.sqrt(2 / math.pi) if loss == "absolute" else sigma**2, "σ", sigma


def _uniform(epsilon: float, delta: float, loss: str) -> tuple[float, str, float]:
    """(0, δ)-DP: p at 0, else uniform on [-w, w]. A shift by 1 takes p and 1/2w of the rest: p + (1 - p)/2w = δ."""
    if not delta:
        raise NotApplicable("it needs delta > 0")
    power = line_noise.POWERS[loss]
    atom = max(0.0, (power + 1) * delta - power)
    width = (1 - atom) / (2 * (delta - atom)) if delta < 1 else 0.0
    return (1 - atom) * width**power / (power + 1), "w", width


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
        from models.repeated_wide_noise import RepeatedWideNoise, published_shapes  # slow to import

        shapes = published_shapes(d)
        return {name: RepeatedWideNoise(request.runs, epsilon, delta, d, shapes[name]).law() for name in shapes}
    return {name: _drawn(fit) for name, (fit, _) in _fitted(request).items() if _size(fit) <= _WIDEST}


def _fitted(request: NoiseRequest) -> dict[str, tuple[FittedLaw, float]]:
    """name -> the best law of that name, and its exact mean loss, of clamped noise the expected loss."""
    laws: dict[str, tuple[FittedLaw, float]] = {}
    for name in NAMES:
        with suppress(NotApplicable):
            laws[name] = _fit(name, request)
    return laws


def _fit(name: str, request: NoiseRequest) -> tuple[FittedLaw, float]:
    question = request.question
    if not isinstance(question, IntegerNoise):
        raise NotApplicable("it is noise on the integers")
    fitted = fitted_laws(name, question.sensitivity, request.epsilon, request.delta, request.notion)
    losses = [(fit, float(exact_loss(AdditiveIntegerNoise(question, fit.law), request))) for fit in fitted]
    return min(losses, key=lambda pair: pair[1])


def _on_integers(name: str) -> Callable[[NoiseRequest], Reference]:
    def cost(request: NoiseRequest) -> Reference:
        fit, loss = _fit(name, request)
        return Reference(loss, fit.holds(), fit.mechanism, fit.symbol, fit.value)

    return cost


def _drawn(fitted: FittedLaw) -> tuple[Vector, Vector]:
    """(values, masses), as far as a float shows mass."""
    size = _size(fitted)
    return np.arange(-size, size + 1.0), masses_of(fitted.law, size)[0]


def _size(fitted: FittedLaw) -> int:
    law = fitted.law
    blocks = math.ceil(45 / -ln_up(law.ratio)) if law.ratio else 0
    return int(max(abs(law.first), abs(law.last)) + law.period * blocks)


def gaussian_sigma(epsilon: float, delta: float) -> float:
    """σ/Δ of the analytic Gaussian mechanism: the least float for which balls of 160 bits prove that
    Φ(1/2σ - εσ) - e^ε Φ(-1/2σ - εσ) <= δ (Balle and Wang 2018, Theorem 8)."""
    from flint import arb, ctx

    def tail(x: arb) -> arb:
        return (-x / arb(2).sqrt()).erfc() / 2

    def good(s: float) -> bool:
        sigma, budget = arb(s), arb(epsilon)
        reach = 1 / (2 * sigma)
        return bool(tail(reach - budget * sigma) - budget.exp() * tail(-reach - budget * sigma) <= arb(delta))

    with ctx.workprec(160):
        return bisect(good, 1e-6, 10 / delta + 10 / epsilon, turns=60)[1]


PUBLISHED = (
    Published("Laplace", "Dwork et al. 2006", "b = Δ/(ε - 2 ln(1 - δ)), the least scale", _on_reals(_laplace)),
    Published("staircase (pure)", "Geng and Viswanath 2014", "γ, best for the loss; δ unused", _on_reals(_staircase)),
    Published("truncated Laplace", "Geng et al. 2020", "A, the least support", _on_reals(_truncated)),
    Published("Gaussian", "Balle and Wang 2018", "σ, the least by its exact δ(ε)", _on_reals(_gaussian)),
    Published("uniform", "Geng et al. 2019", "w, and an atom at 0 for large δ; ε unused", _on_reals(_uniform)),
    *(Published(name, SOURCES[name][0], SOURCES[name][1], _on_integers(name)) for name in NAMES),
)
