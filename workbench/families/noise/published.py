"""Published noise beside a design, with its least parameter at the same budget: its loss, and its law for pictures.

On the integers laws are proven private (`workbench.pipeline.integer_laws`) and their losses exact; on the reals so is
the staircase. Of the other laws on the reals the loss is a closed form in floating point, and the parameter is proven
to be enough where the budget is (ε, δ), in balls around the condition below. For several runs the numbers are for
comparison only.

    noise on the reals      density                                             private because
    Laplace                 e^(-|x|/b)/2b                                       δ(ε) = 1 - e^((ε - Δ/b)/2)
    staircase (pure)        steps of Δ that fall by e^-ε                        pure, audited
    truncated Laplace       ∝ e^(-ε|x|/Δ) on [-A, A]                            a shift takes δ beyond the end
    Gaussian                normal                                              its exact δ(ε), see `gaussian_sigma`
    uniform                 uniform on [-w, w], and an atom at 0                (0, δ): total variation of a shift
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from workbench.errors import NotApplicable
from workbench.exact.integer_law import IntegerLaw
from workbench.exact.numbers import ZERO, log_upper_bound, make_ball
from workbench.families.noise.problem import compute_noise_loss, make_staircase_on_reals
from workbench.families.noise.request import NoiseRequest
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise
from workbench.mechanisms.real_noise import MAX_STEPS, best_gamma
from workbench.models.oracles import line_noise
from workbench.models.oracles.canonical_noise import discrete_gaussian_loss, rounded_gaussian_loss
from workbench.pipeline.integer_laws import LAW_NAMES, LAW_SOURCES, FittedLaw, fit_best_law
from workbench.pipeline.integer_laws import compute_masses as masses_of
from workbench.pipeline.published import Published, Reference, compute_references, published_for
from workbench.pipeline.requirements import is_hockey_stick
from workbench.privacy.audit import satisfies_claim
from workbench.privacy.claim import Claim
from workbench.questions.unbounded_noise import IntegerNoise, RealNoise
from workbench.solvers.arrays import Pair, Vector
from workbench.solvers.search import bisect

REPEATED_NOISE_NAMES = (
    "geometric",
    "discrete Gaussian",
)  # The noise that several runs have (`published_shapes`).
_Fitted = tuple[float, str, float, bool]  # Loss, symbol, parameter, whether it is proven private.
_PARAMETER_ROUNDING = 1e-14  # A parameter is enlarged by this share, which covers its own rounding.
_MIN_SIGMA = 1e-3  # No budget allows this σ: 1/2σ² is above the largest ε.
_SIGMA_HALVINGS = 62  # A bisection halves the interval of the logarithm of σ so often.
_MAX_LAW_VALUES = 1 << 22  # Laws of more values are not computed for comparison.


def list_losses(request: NoiseRequest) -> list[tuple[str, float]]:
    """List the published noise for a request with its mean loss, best first."""
    references = compute_references(published_for(request), request)
    return sorted(
        ((name, reference.objective) for name, reference in references.items()),
        key=lambda row: row[1],
    )


# On the reals.


def _is_on_reals(request: NoiseRequest) -> bool:
    """Whether the loss of noise on the reals is known: of one run, not clamped, absolute or squared."""
    question = request.question
    clamped = isinstance(question, IntegerNoise) or getattr(question, "clamp", None) is not None
    return not clamped and request.loss_name in line_noise.POWERS


def _cost_on_reals(
    law: Callable[[Fraction, Fraction, str], _Fitted], request: NoiseRequest
) -> Reference:
    """Scale a law for Δ = 1, (ε, δ, loss) -> `_Fitted`, to the sensitivity of a request."""
    spread, name = float(request.question.sensitivity), request.loss_name
    if request.has_several_bounds:
        sigma = _find_deviation(request.audited_claim) if law is _fit_gaussian else None
        if sigma is None:
            raise NotApplicable(
                f"its parameter is not known for the notion {request.claim.notion.name}"
            )
        (loss, symbol, value), proven = _describe_normal(sigma, name), False
    else:
        if request.claim.delta == 1:
            raise NotApplicable("at delta = 1 the answer itself may be published")
        loss, symbol, value, proven = law(request.claim.epsilon or ZERO, request.claim.delta, name)
        proven = proven and (is_hockey_stick(request.claim.notion) or not request.claim.delta)
    return Reference(loss * spread ** line_noise.POWERS[name], proven, None, symbol, value * spread)


def _cost_staircase(request: NoiseRequest) -> Reference:
    """Audit the staircase as it is designed at δ = 0, and compute its loss."""
    if request.has_several_bounds or not request.claim.epsilon:
        raise NotApplicable("it needs epsilon > 0, and a notion of one ratio")
    assert isinstance(request.question, RealNoise)
    spread, name = float(request.question.sensitivity), request.loss_name
    if (
        best_gamma(float(request.claim.epsilon), name) * MAX_STEPS < 0.5
    ):  # narrower than any cell of a design
        return Reference(line_noise.staircase_reals(float(request.claim.epsilon), spread, name))
    noise = make_staircase_on_reals(request.question, request.claim.epsilon, name)
    private, most = (
        satisfies_claim(noise, Claim("pure", request.claim.epsilon)),
        noise.cells.last - noise.steps + Fraction(1, 2),
    )
    return Reference(
        float(compute_noise_loss(noise, request)), private, noise, "γ Δ", float(most * noise.width)
    )


def _fit_laplace(epsilon: Fraction, delta: Fraction, loss: str) -> _Fitted:
    scale = float(1 / (epsilon - 2 * Fraction(math.log1p(-delta)))) * (
        1 + _PARAMETER_ROUNDING * bool(delta)
    )
    power = line_noise.POWERS[loss]
    proven = not delta or _is_proven_in_balls(
        lambda: (
            1 / make_ball(Fraction(scale)) <= make_ball(epsilon) - 2 * make_ball(1 - delta).log()
        )
    )
    return scale**power * math.factorial(power), "b", scale, proven  # without δ it is 1/ε itself


def _fit_truncated_laplace(epsilon: Fraction, delta: Fraction, loss: str) -> _Fitted:
    if not 0 < delta <= Fraction(1, 2):
        raise NotApplicable("it needs 0 < delta <= 1/2")
    end = line_noise.truncated_laplace_support(float(epsilon), float(delta)) * (
        1 + _PARAMETER_ROUNDING
    )
    proven = _is_proven_in_balls(
        lambda: (
            make_ball(epsilon).expm1()
            <= 2 * make_ball(delta) * make_ball(epsilon * Fraction(end)).expm1()
        )
    )
    return line_noise.truncated_laplace(float(epsilon), float(delta), 1.0, loss), "A", end, proven


def _fit_gaussian(epsilon: Fraction, delta: Fraction, loss: str) -> _Fitted:
    if not delta:
        raise NotApplicable("it needs delta > 0")
    return *_describe_normal(compute_gaussian_sigma(epsilon, delta), loss), True


def _is_proven_in_balls(holds: Callable[[], Any]) -> bool:
    """Whether balls of 160 bits prove it."""
    from flint import ctx

    with ctx.workprec(160):
        return bool(holds())


def _describe_normal(sigma: float, loss: str) -> tuple[float, str, float]:
    return sigma * math.sqrt(2 / math.pi) if loss == "absolute" else sigma**2, "σ", sigma


def _find_deviation(claim: Claim) -> float | None:
    """Find σ of the Gaussian for Δ = 1 under a notion of several bounds; None if it is not known."""
    mu, variance = (
        claim.notion.gaussian_mu(claim.values),
        claim.notion.gaussian_variance(claim.values),
    )
    return 1 / float(mu) if mu is not None else None if variance is None else math.sqrt(variance)


def _fit_uniform(epsilon: Fraction, delta: Fraction, loss: str) -> _Fitted:
    """Fit (0, δ)-DP noise: p at 0, else uniform on [-w, w].

    A shift by 1 takes p and 1/2w of the rest: p + (1 - p)/2w = δ, in rationals.
    """
    if not delta:
        raise NotApplicable("it needs delta > 0")
    power = line_noise.POWERS[loss]
    atom = max(ZERO, (power + 1) * delta - power)
    width = (1 - atom) / (2 * (delta - atom)) if delta < 1 else ZERO
    return float((1 - atom) * width**power / (power + 1)), "w", float(width), True


def list_curves(request: NoiseRequest, edges: Vector) -> dict[str, Pair]:
    """List laws by name: (edges, mean densities) on the reals, (values, masses) on the integers."""
    if request.has_several_bounds:
        return {}
    if isinstance(request.question, IntegerNoise):
        return _list_integer_laws(request) if request.question.clamp is None else {}
    epsilon, delta, spread = (
        float(request.claim.epsilon or 0),
        float(request.claim.delta),
        float(request.question.sensitivity),
    )
    fine = np.linspace(edges[0], edges[-1], 1201)
    middle = np.abs(fine[1:] + fine[:-1]) / 2
    share, b = best_gamma(epsilon, request.loss_name), math.exp(-epsilon)
    top = (1 - b) / (2 * spread * (share + b * (1 - share)))
    densities = {"staircase (pure)": (fine, top * b ** np.ceil(middle / spread - share))}
    if delta:
        end = line_noise.truncated_laplace_support(epsilon, delta) * spread
        peak = epsilon / (2 * spread * -math.expm1(-epsilon * end / spread))
        truncated = np.where(middle <= end, peak * np.exp(-epsilon * middle / spread), 0.0)
        sigma = compute_gaussian_sigma(epsilon, delta) * spread
        normal = np.exp(-((middle / sigma) ** 2) / 2) / (sigma * math.sqrt(2 * math.pi))
        densities |= {"truncated Laplace": (fine, truncated), "Gaussian": (fine, normal)}
    return densities


def _list_integer_laws(request: NoiseRequest) -> dict[str, Pair]:
    if request.aim.runs > 1:
        return {name: _compute_run_law(name, request) for name in REPEATED_NOISE_NAMES}
    laws = {}
    for name in LAW_NAMES:
        with suppress(NotApplicable):
            if (size := _find_reach(law := _fit_law(name, request)[0].law)) <= _MAX_LAW_VALUES:
                laws[name] = np.arange(-size, size + 1.0), masses_of(law, -size, size)
    return laws


def _compute_run_law(name: str, request: NoiseRequest) -> Pair:
    """Compute (values, masses) of the noise of one of several runs."""
    from workbench.models.noise.repeated_wide_noise import (
        RepeatedWideNoise,
        published_shapes,
    )  # slow to import

    epsilon, delta, d = (
        float(request.claim.epsilon or 0),
        float(request.claim.delta),
        int(request.question.sensitivity),
    )
    return RepeatedWideNoise(request.aim.runs, epsilon, delta, d, published_shapes(d)[name]).law()


def _fit_law(name: str, request: NoiseRequest) -> tuple[FittedLaw, float]:
    """Fit the best law of a name; return it with its exact mean loss, or expected loss of clamped noise."""
    question = request.question
    assert isinstance(question, IntegerNoise)

    def loss(fit: FittedLaw) -> float:
        return float(compute_noise_loss(AdditiveIntegerNoise(question, fit.law), request))

    best = fit_best_law(
        name,
        question.sensitivity,
        (request.claim.epsilon, request.claim.delta),
        request.claim.notion.name,
        loss,
    )
    return best, loss(best)


def _cost_on_integers(name: str, request: NoiseRequest) -> Reference:
    if request.has_several_bounds:
        value, d = _find_gaussian_parameter(name, request), request.question.sensitivity
        assert value is not None
        scale, mean = (
            (d * d * value, discrete_gaussian_loss)
            if name in LAW_NAMES
            else (value / d, rounded_gaussian_loss)
        )
        return Reference(mean(scale, lambda eta: float(request.line_losses[0].value_at(eta))))
    if request.aim.runs > 1:
        x, law = _compute_run_law(name, request)
        return Reference(float((law * np.abs(x) ** line_noise.POWERS[request.loss_name]).sum()))
    fit, loss = _fit_law(name, request)
    return Reference(
        loss, fit.is_private(), fit.mechanism, fit.symbol, fit.value, extra_columns=fit.exact_values
    )


def _find_gaussian_parameter(name: str, request: NoiseRequest) -> float | None:
    """Find σ²/D² or μ of the Gaussian noise that meets a notion of several bounds exactly; None if there is none."""
    measured = request.audited_claim.notion
    known = {
        "discrete Gaussian": measured.gaussian_variance,
        "rounded Gaussian": measured.gaussian_mu,
    }
    value = known[name](request.audited_claim.values) if name in known else None
    return None if value is None else float(value)


def _is_listed_on_integers(name: str, request: NoiseRequest) -> bool:
    """Whether noise of a name on the integers is listed: under a notion of several bounds the Gaussian one that meets
    it, for losses that are even; for several runs what has a shape."""
    if not isinstance(request.question, IntegerNoise):
        return False
    if request.has_several_bounds:
        return (
            request.line_losses[0].is_even and _find_gaussian_parameter(name, request) is not None
        )
    return (
        name in LAW_NAMES
        and not request.is_worst_case
        and (request.aim.runs == 1 or name in REPEATED_NOISE_NAMES)
    )


def _find_reach(law: IntegerLaw) -> int:
    """Find the largest noise value whose mass a float shows."""
    blocks = math.ceil(45 / -log_upper_bound(law.ratio)) if law.ratio else 0
    return int(max(abs(law.first), abs(law.last)) + law.period * blocks)


def compute_gaussian_sigma(epsilon: float | Fraction, delta: float | Fraction) -> float:
    """σ/Δ of the analytic Gaussian mechanism: the least float for which balls of 160 bits prove that
    Φ(1/2σ - εσ) - e^ε Φ(-1/2σ - εσ) <= δ (Balle and Wang 2018, Theorem 8)."""
    from flint import arb, ctx

    def tail(x: arb) -> arb:
        return (-x / arb(2).sqrt()).erfc() / 2

    def good(s: float) -> bool:
        sigma, budget = arb(s), make_ball(Fraction(epsilon))
        reach = 1 / (2 * sigma)
        return bool(
            tail(reach - budget * sigma) - budget.exp() * tail(-reach - budget * sigma)
            <= make_ball(Fraction(delta))
        )

    far = float(10 / delta + 10 / epsilon)
    with ctx.workprec(160 + math.ceil(-math.log2(delta)) + math.ceil(3 * epsilon)):
        return bisect(
            good,
            _MIN_SIGMA,
            far,
            max_steps=_SIGMA_HALVINGS,
            choose_point=lambda low, high: math.sqrt(low * high),
        )[1]


PUBLISHED = (
    Published("Laplace", "Dwork et al. 2006", partial(_cost_on_reals, _fit_laplace), _is_on_reals),
    Published("staircase (pure)", "Geng and Viswanath 2014", _cost_staircase, _is_on_reals),
    *(
        Published(
            name,
            source,
            partial(_cost_on_reals, law),
            _is_on_reals,
            any_budget=law is _fit_gaussian,
        )
        for name, source, law in (
            ("truncated Laplace", "Geng et al. 2020", _fit_truncated_laplace),
            ("Gaussian", "Balle and Wang 2018", _fit_gaussian),
            ("uniform", "Geng et al. 2019", _fit_uniform),
        )
    ),
    *(
        Published(
            name,
            source,
            partial(_cost_on_integers, name),
            partial(_is_listed_on_integers, name),
            any_budget=True,
        )
        for name, source in {**LAW_SOURCES, "rounded Gaussian": "Awan and Vadhan 2023"}.items()
    ),
)
