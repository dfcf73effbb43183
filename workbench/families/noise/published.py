"""List published noise for comparison, with the smallest parameter that is private at the budget.

`PUBLISHED` is the table that the rest of the package reads. A law on the reals is added to
`_REAL_LAWS`, and its density to `list_curves` if plots are to show it. A law on the integers is
added in `workbench.pipeline.integer_laws`.

On the integers the laws are proven private (`workbench.pipeline.integer_laws`) and their losses
are exact. On the reals this is so for the staircase. For the other laws on the reals the loss is a
closed form in floating point. If the budget is (ε, δ), the condition in the table is proven for the
parameter in ball arithmetic. For several runs the numbers are for comparison only.

A notion of several bounds, such as zCDP, GDP or a curve, implies more than one convex bound for two
neighbouring laws. All other notions, such as DP, imply one bound on their ratio P/Q. Under a notion
of several bounds only Gaussian noise is listed.

Notation. x is the noise and Δ the sensitivity. δ(ε) is the smallest δ at which the noise is
(ε, δ)-private. b, A, σ and w are the parameters of the laws.

    noise on the reals    density                                 private because
    Laplace               e^(-|x|/b)/2b                           δ(ε) = 1 - e^((ε - Δ/b)/2)
    staircase (pure)      steps of Δ that fall by e^-ε            pure, audited
    truncated Laplace     ∝ e^(-ε|x|/Δ) on [-A, A]                the mass within Δ of an end is δ
    Gaussian              normal, standard deviation σ            exact δ(ε), Balle and Wang 2018
    uniform               uniform on [-w, w], and an atom at 0    δ is the total variation distance
                                                                  between noise and shifted noise
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from workbench.errors import NotApplicable
from workbench.exact.integer_law import IntegerLaw
from workbench.exact.numbers import ZERO, log_upper_bound, make_ball
from workbench.families.noise.expected_loss import compute_noise_loss
from workbench.families.noise.request import NoiseRequest
from workbench.families.noise.staircase import make_staircase_on_reals
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise
from workbench.mechanisms.real_noise import MAX_STEPS, best_gamma
from workbench.models.oracles import line_noise
from workbench.models.oracles.canonical_noise import discrete_gaussian_loss, rounded_gaussian_loss
from workbench.pipeline.integer_laws import (
    LAW_NAMES,
    LAW_SOURCES,
    FittedLaw,
    compute_masses,
    fit_best_law,
)
from workbench.pipeline.published import Published, Reference, compute_references, published_for
from workbench.pipeline.requirements import is_hockey_stick
from workbench.privacy.audit import satisfies_claim
from workbench.privacy.claim import Claim
from workbench.questions.unbounded_noise import IntegerNoise, RealNoise
from workbench.solvers.arrays import Pair, Vector
from workbench.solvers.search import bisect

# For several runs only these laws are listed (their shapes are those of `published_shapes`).
REPEATED_NOISE_NAMES = ("geometric", "discrete Gaussian")

_PARAMETER_ROUNDING = 1e-14  # A parameter is enlarged by this share, which covers its own rounding.
_MIN_SIGMA = 1e-3  # No budget allows this σ: 1/2σ² is above the largest ε.
_SIGMA_HALVINGS = 62  # The interval of the logarithm of σ is halved this many times.
_MAX_PLOTTED_REACH = 1 << 22  # Laws that reach beyond this noise value are not plotted.
_BALL_BITS = 160  # Conditions are proven in balls of this precision.
_CURVE_CELLS = 1200  # Densities on the reals are plotted as their means on this many cells.
_PLOTTED_PRIVACY_LOSS = 45  # Tails of laws on the integers are plotted until they fall by e^-45.


@dataclass(frozen=True)
class _Fit:
    """A law on the reals for Δ = 1, with the smallest parameter that is private at a budget.

    Attributes:
        loss: the expected loss.
        symbol: the symbol of the parameter, such as σ.
        parameter: the value of the parameter.
        is_proven: whether the law is proven private.
    """

    loss: float
    symbol: str
    parameter: float
    is_proven: bool


@dataclass(frozen=True)
class _RealLaw:
    """A published law on the reals with one parameter.

    Attributes:
        name: the name in reports.
        source: the publication.
        fit: maps (ε, δ, loss name) to the fit for Δ = 1. Raises NotApplicable.
        find_deviation: maps a claim of a notion of several bounds to σ for Δ = 1, or to None if σ
            is not known. None: the law is not normal, and no parameter is known.
    """

    name: str
    source: str
    fit: Callable[[Fraction, Fraction, str], _Fit]
    find_deviation: Callable[[Claim], float | None] | None = None


def list_losses(request: NoiseRequest) -> list[tuple[str, float]]:
    """List the published noise for a request with its expected loss.

    Args:
        request: the request for noise.

    Returns:
        (name, expected loss) pairs, smallest loss first. Noise that does not apply to the request
        is left out.
    """
    references = compute_references(published_for(request), request)
    losses = {name: reference.objective for name, reference in references.items()}
    names = sorted(losses, key=losses.__getitem__)
    return [(name, losses[name]) for name in names]


# Noise on the reals.


def _is_on_reals(request: NoiseRequest) -> bool:
    """Check whether a request is for noise on the reals whose expected loss has a closed form.

    This is so for the absolute and the squared loss of noise that is not clamped.
    """
    question = request.question
    if isinstance(question, IntegerNoise) or getattr(question, "clamp", None) is not None:
        return False
    return request.loss_name in line_noise.POWERS


def _compute_real_reference(law: _RealLaw, request: NoiseRequest) -> Reference:
    """Compute the loss of a law on the reals for the sensitivity of a request.

    Raises NotApplicable.
    """
    sensitivity = float(request.question.sensitivity)
    name = request.loss_name
    delta = request.claim.delta
    if request.has_several_bounds:
        sigma = None
        if law.find_deviation is not None:
            sigma = law.find_deviation(request.audited_claim)
        if sigma is None:
            notion = request.claim.notion.name
            raise NotApplicable(f"its parameter is not known for the notion {notion}")
        fit = _make_normal_fit(sigma, name, is_proven=False)
        is_proven = fit.is_proven
    else:
        if delta == 1:
            raise NotApplicable("at delta = 1 the answer itself may be published")
        fit = law.fit(request.claim.epsilon or ZERO, delta, name)
        # The conditions are proven for DP, which is the notion itself, or pure DP at δ = 0.
        is_proven = fit.is_proven and (is_hockey_stick(request.claim.notion) or not delta)
    loss = fit.loss * sensitivity ** line_noise.POWERS[name]
    return Reference(
        loss, is_proven, mechanism=None, symbol=fit.symbol, value=fit.parameter * sensitivity
    )


def _compute_staircase_reference(request: NoiseRequest) -> Reference:
    """Audit the staircase that is designed at δ = 0, and compute its exact loss."""
    if request.has_several_bounds or not request.claim.epsilon:
        raise NotApplicable("it needs epsilon > 0, and a notion of one ratio")
    question = request.question
    assert isinstance(question, RealNoise)
    epsilon = request.claim.epsilon
    name = request.loss_name
    if best_gamma(float(epsilon), name) * MAX_STEPS < 0.5:
        # The centre step is narrower than any cell of a design.
        sensitivity = float(question.sensitivity)
        return Reference(line_noise.staircase_reals(float(epsilon), sensitivity, name))
    noise = make_staircase_on_reals(question, epsilon, name)
    is_proven = satisfies_claim(noise, Claim("pure", epsilon))
    # The listed cells reach one step beyond the centre step, on each side of the cell 0.
    centre_cells = noise.cells.last - noise.steps + Fraction(1, 2)
    loss = float(compute_noise_loss(noise, request))
    return Reference(
        loss, is_proven, mechanism=noise, symbol="γ Δ", value=float(centre_cells * noise.width)
    )


def _fit_laplace(epsilon: Fraction, delta: Fraction, loss: str) -> _Fit:
    """Fit Laplace noise of scale b.

    At δ = 0 noise with the exact scale 1/ε is private, so b, its float, is not rounded up.
    """
    # At this scale δ(ε) of the module is δ.
    scale = float(1 / (epsilon - 2 * Fraction(math.log1p(-delta))))
    if delta:
        scale *= 1 + _PARAMETER_ROUNDING
    power = line_noise.POWERS[loss]
    is_proven = not delta or _is_proven_in_balls(
        lambda: (
            1 / make_ball(Fraction(scale)) <= make_ball(epsilon) - 2 * make_ball(1 - delta).log()
        )
    )
    return _Fit(scale**power * math.factorial(power), "b", scale, is_proven)


def _fit_truncated_laplace(epsilon: Fraction, delta: Fraction, loss: str) -> _Fit:
    """Fit Laplace noise of scale 1/ε on [-A, A]."""
    if not 0 < delta <= Fraction(1, 2):
        raise NotApplicable("it needs 0 < delta <= 1/2")
    end = line_noise.truncated_laplace_support(float(epsilon), float(delta)) * (
        1 + _PARAMETER_ROUNDING
    )
    is_proven = _is_proven_in_balls(
        lambda: (
            make_ball(epsilon).expm1()
            <= 2 * make_ball(delta) * make_ball(epsilon * Fraction(end)).expm1()
        )
    )
    expected_loss = line_noise.truncated_laplace(float(epsilon), float(delta), 1.0, loss)
    return _Fit(expected_loss, "A", end, is_proven)


def _fit_gaussian(epsilon: Fraction, delta: Fraction, loss: str) -> _Fit:
    """Fit the analytic Gaussian mechanism."""
    if not delta:
        raise NotApplicable("it needs delta > 0")
    # `compute_gaussian_sigma` proves its σ in ball arithmetic.
    return _make_normal_fit(compute_gaussian_sigma(epsilon, delta), loss, is_proven=True)


def _is_proven_in_balls(holds: Callable[[], Any]) -> bool:
    """Check whether ball arithmetic proves a condition."""
    from flint import ctx

    with ctx.workprec(_BALL_BITS):
        return bool(holds())


def _make_normal_fit(sigma: float, loss: str, *, is_proven: bool) -> _Fit:
    """Make the fit of a normal law of standard deviation σ."""
    expected_loss = sigma**2
    if loss == "absolute":
        expected_loss = sigma * math.sqrt(2 / math.pi)
    return _Fit(expected_loss, "σ", sigma, is_proven)


def _find_gaussian_deviation(claim: Claim) -> float | None:
    """Find σ of the Gaussian for Δ = 1 under a notion of several bounds; None if unknown."""
    mu = claim.notion.gaussian_mu(claim.values)
    if mu is not None:
        return 1 / float(mu)
    variance = claim.notion.gaussian_variance(claim.values)
    return None if variance is None else math.sqrt(variance)


def _fit_uniform(epsilon: Fraction, delta: Fraction, loss: str) -> _Fit:
    """Fit (0, δ)-DP noise: 0 with probability p, otherwise uniform on [-w, w].

    The law and its shift by 1 differ by the atom p and by the share 1/2w of the rest, so the law is
    private if p + (1 - p)/2w = δ. This is solved for w in rationals. p is the atom for which the
    expected loss is smallest: 0 up to δ = 1/2 (absolute loss) or δ = 2/3 (squared loss).
    """
    if not delta:
        raise NotApplicable("it needs delta > 0")
    power = line_noise.POWERS[loss]
    atom = max(ZERO, (power + 1) * delta - power)
    width = (1 - atom) / (2 * (delta - atom)) if delta < 1 else ZERO
    expected_loss = float((1 - atom) * width**power / (power + 1))
    return _Fit(expected_loss, "w", float(width), is_proven=True)


# Laws for plots.


def list_curves(request: NoiseRequest, edges: Vector) -> dict[str, Pair]:
    """List published laws by name, for plots beside a design.

    On the reals these are the staircase, and for δ > 0 truncated Laplace and Gaussian noise.

    Args:
        request: the request for noise.
        edges: the edges of the cells of the design on the reals, or its noise values. Shape (n,).

    Returns:
        The curve of each law by name. On the reals it is (edges (1201,), mean densities (1200,)),
        on the integers (values (v,), masses (v,)), with as many values as the law has.
    """
    if request.has_several_bounds:
        return {}
    if isinstance(request.question, IntegerNoise):
        return _list_integer_laws(request) if request.question.clamp is None else {}
    epsilon = float(request.claim.epsilon or 0)
    delta = float(request.claim.delta)
    sensitivity = float(request.question.sensitivity)
    fine_edges = np.linspace(edges[0], edges[-1], _CURVE_CELLS + 1)
    distances = np.abs(fine_edges[1:] + fine_edges[:-1]) / 2
    gamma = best_gamma(epsilon, request.loss_name)
    fall = math.exp(-epsilon)  # The factor from one step to the next.
    # With these peaks the masses are 1.
    staircase_peak = (1 - fall) / (2 * sensitivity * (gamma + fall * (1 - gamma)))
    staircase = staircase_peak * fall ** np.ceil(distances / sensitivity - gamma)
    densities = {"staircase (pure)": (fine_edges, staircase)}
    if delta:
        end = line_noise.truncated_laplace_support(epsilon, delta) * sensitivity
        laplace_peak = epsilon / (2 * sensitivity * -math.expm1(-epsilon * end / sensitivity))
        laplace = laplace_peak * np.exp(-epsilon * distances / sensitivity)
        laplace[distances > end] = 0.0
        densities["truncated Laplace"] = (fine_edges, laplace)
        sigma = compute_gaussian_sigma(epsilon, delta) * sensitivity
        normal = np.exp(-((distances / sigma) ** 2) / 2) / (sigma * math.sqrt(2 * math.pi))
        densities["Gaussian"] = (fine_edges, normal)
    return densities


def _list_integer_laws(request: NoiseRequest) -> dict[str, Pair]:
    """List the laws of published noise on the integers: name -> (values, masses)."""
    if request.aim.runs > 1:
        return {name: _compute_run_law(name, request) for name in REPEATED_NOISE_NAMES}
    laws = {}
    for name in LAW_NAMES:
        with suppress(NotApplicable):
            fit, _ = _fit_integer_law(name, request)
            law = fit.law
            reach = _find_reach(law)
            if reach <= _MAX_PLOTTED_REACH:
                laws[name] = np.arange(-reach, reach + 1.0), compute_masses(law, -reach, reach)
    return laws


def _compute_run_law(name: str, request: NoiseRequest) -> Pair:
    """Compute the law of the noise of one of several runs.

    Returns:
        The noise values (n,) and their masses (n,).
    """
    from workbench.models.noise.repeated_wide_noise import (
        RepeatedWideNoise,
        published_shapes,
    )  # The import is slow.

    d = int(request.question.sensitivity)
    noise = RepeatedWideNoise(
        request.aim.runs,
        float(request.claim.epsilon or 0),
        delta=float(request.claim.delta),
        sensitivity=d,
        shape=published_shapes(d)[name],
    )
    return noise.law()


# Noise on the integers.


def _fit_integer_law(name: str, request: NoiseRequest) -> tuple[FittedLaw, float]:
    """Fit the law of a name with the smallest expected loss that is private at the budget.

    Returns:
        The fitted law, and its exact expected loss for the request.
    """
    question = request.question
    assert isinstance(question, IntegerNoise)

    def compute_loss(fit: FittedLaw) -> float:
        return float(compute_noise_loss(AdditiveIntegerNoise(question, fit.law), request))

    budget = (request.claim.epsilon, request.claim.delta)
    notion = request.claim.notion.name
    fit = fit_best_law(name, question.sensitivity, budget, notion, compute_loss)
    return fit, compute_loss(fit)


def _compute_integer_reference(name: str, request: NoiseRequest) -> Reference:
    """Compute the loss of the published noise of a name on the integers."""
    if request.has_several_bounds:
        return _compute_gaussian_reference(name, request)
    if request.aim.runs > 1:
        x, law = _compute_run_law(name, request)
        power = line_noise.POWERS[request.loss_name]
        return Reference(float((law * np.abs(x) ** power).sum()))
    fit, loss = _fit_integer_law(name, request)
    return Reference(
        loss,
        is_certified=fit.is_private(),
        mechanism=fit.mechanism,
        symbol=fit.symbol,
        value=fit.value,
        extra_columns=fit.exact_values,
    )


def _compute_gaussian_reference(name: str, request: NoiseRequest) -> Reference:
    """Compute the loss of Gaussian noise under a notion of several bounds, in floating point."""
    parameter = _find_gaussian_parameter(name, request)
    assert parameter is not None
    d = request.question.sensitivity

    def compute_loss(eta: int) -> float:
        return float(request.line_losses[0].value_at(eta))

    if name == "discrete Gaussian":
        return Reference(discrete_gaussian_loss(d * d * parameter, compute_loss))
    return Reference(rounded_gaussian_loss(parameter / d, compute_loss))


def _find_gaussian_parameter(name: str, request: NoiseRequest) -> float | None:
    """Find the parameter of the Gaussian noise that uses a budget of several bounds exactly.

    Returns:
        σ²/D² for the name "discrete Gaussian", μ for "rounded Gaussian". None if the name or the
        notion has no such parameter.
    """
    claim = request.audited_claim
    if name == "discrete Gaussian":
        parameter = claim.notion.gaussian_variance(claim.values)
    elif name == "rounded Gaussian":
        parameter = claim.notion.gaussian_mu(claim.values)
    else:
        return None
    return None if parameter is None else float(parameter)


def _is_listed_on_integers(name: str, request: NoiseRequest) -> bool:
    """Check whether noise of a name on the integers is listed for a request.

    Under a notion of several bounds this is Gaussian noise, for even losses. For several runs it
    is the noise of REPEATED_NOISE_NAMES. For a worst-case loss there is none.
    """
    if not isinstance(request.question, IntegerNoise):
        return False
    if request.has_several_bounds:
        return (
            request.line_losses[0].is_even and _find_gaussian_parameter(name, request) is not None
        )
    if name not in LAW_NAMES or request.is_worst_case:
        return False
    return request.aim.runs == 1 or name in REPEATED_NOISE_NAMES


def _find_reach(law: IntegerLaw) -> int:
    """Find the noise value up to which a law is plotted.

    The masses beyond it are below e^-45, about 3e-20, of the masses at the end of the listed law.
    """
    blocks = 0
    if law.ratio:
        blocks = math.ceil(_PLOTTED_PRIVACY_LOSS / -log_upper_bound(law.ratio))
    return int(max(abs(law.first), abs(law.last)) + law.period * blocks)


def compute_gaussian_sigma(epsilon: float | Fraction, delta: float | Fraction) -> float:
    """Compute σ/Δ of the analytic Gaussian mechanism.

    It is the least double for which ball arithmetic proves that
    Φ(1/2σ - εσ) - e^ε Φ(-1/2σ - εσ) <= δ (Balle and Wang 2018, Theorem 8).

    Args:
        epsilon: the budget ε > 0.
        delta: the budget δ in (0, 1).

    Returns:
        The standard deviation of the noise for sensitivity 1.
    """
    from flint import arb, ctx

    def normal_cdf(x: arb) -> arb:
        """Enclose Φ(x), the standard normal distribution function."""
        return (-x / arb(2).sqrt()).erfc() / 2

    def is_private(value: float) -> bool:
        """Return whether Φ(1/2σ - εσ) - e^ε Φ(-1/2σ - εσ) <= δ is proven for σ = value."""
        sigma = arb(value)
        epsilon_ball = make_ball(Fraction(epsilon))
        half_shift = 1 / (2 * sigma)
        first_term = normal_cdf(half_shift - epsilon_ball * sigma)
        second_term = epsilon_ball.exp() * normal_cdf(-half_shift - epsilon_ball * sigma)
        return bool(first_term - second_term <= make_ball(Fraction(delta)))

    max_sigma = float(10 / delta + 10 / epsilon)  # This σ is private at every budget.
    # The two terms nearly cancel at a small δ or a large ε, which needs more bits.
    with ctx.workprec(_BALL_BITS + math.ceil(-math.log2(delta)) + math.ceil(3 * epsilon)):
        _, sigma = bisect(
            is_private,
            _MIN_SIGMA,
            max_sigma,
            max_steps=_SIGMA_HALVINGS,
            choose_point=lambda low, high: math.sqrt(low * high),
        )
    return sigma


def _publish_real_law(law: _RealLaw) -> Published:
    """Return the entry of a law on the reals."""
    return Published(
        law.name,
        law.source,
        make_reference=partial(_compute_real_reference, law),
        serves=_is_on_reals,
        any_budget=law.find_deviation is not None,
    )


_LAPLACE = _RealLaw("Laplace", "Dwork et al. 2006", _fit_laplace)
_REAL_LAWS = (
    _RealLaw("truncated Laplace", "Geng et al. 2020", _fit_truncated_laplace),
    _RealLaw("Gaussian", "Balle and Wang 2018", _fit_gaussian, _find_gaussian_deviation),
    _RealLaw("uniform", "Geng et al. 2019", _fit_uniform),
)
_INTEGER_LAWS = {**LAW_SOURCES, "rounded Gaussian": "Awan and Vadhan 2023"}

PUBLISHED = (
    _publish_real_law(_LAPLACE),
    Published(
        "staircase (pure)",
        "Geng and Viswanath 2014",
        make_reference=_compute_staircase_reference,
        serves=_is_on_reals,
    ),
    *map(_publish_real_law, _REAL_LAWS),
    *(
        Published(
            name,
            source,
            make_reference=partial(_compute_integer_reference, name),
            serves=partial(_is_listed_on_integers, name),
            any_budget=True,
        )
        for name, source in _INTEGER_LAWS.items()
    ),
)
