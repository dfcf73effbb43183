"""Fit published noise on the integers to a budget: the smallest parameter that is proven private.

    name                  f(η)                                    for (ε, δ), answers up to D apart
    geometric             ∝ α^|η| (discrete Laplace)              α = e^(-ε/D); smallest α if δ > 0
    truncated geometric   ∝ e^(-ε|η|/D) for |η| <= A              smallest A with mass <= δ beyond A
    discrete Gaussian     ∝ e^(-η²/2σ²) (Canonne et al. 2020)     smallest σ²
    staircase             steps of D falling by e^-ε (Geng 2014)  δ = 0; inner step r in 1..D

η is the noise, q the answer, f the law of the noise, and D (`reach`) the largest difference between
neighbouring answers. Any function of q + η, such as clamping or wrapping around, is at least as
private (post-processing) under every notion except pdp. A parameter is found in floating point. The
exact audit of the law, before clamping, then decides whether it is private.

The search for α and σ² tests answers exactly D apart (`_hockey_stick_at_shift`), the worst case for
these log-concave laws. The exact audit tests every difference up to D.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.errors import NotApplicable
from workbench.exact.distribution import Distribution
from workbench.exact.integer_law import IntegerLaw
from workbench.exact.numbers import round_up
from workbench.exact.objects import Values
from workbench.exact.time_limit import ITEMS_PER_CLOCK_CHECK, check_time_limit
from workbench.mechanisms.baselines.count_queries import discrete_gaussian
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise
from workbench.notions import get_notion
from workbench.pipeline.requirements import HOCKEY_STICK, get_ratio_kind, list_ratio_notions
from workbench.privacy.audit import satisfies_claim
from workbench.privacy.claim import Claim
from workbench.privacy.repair import bound_inverse_exponential, build_staircase_law
from workbench.questions.unbounded_noise import IntegerNoise
from workbench.solvers.arrays import Vector
from workbench.solvers.search import bisect

LAW_SOURCES = {
    "geometric": "Ghosh, Roughgarden and Sundararajan 2009",
    "truncated geometric": "Geng et al. 2020, on the integers",
    "discrete Gaussian": "Canonne, Kamath and Steinke 2020",
    "staircase": "Geng and Viswanath 2014",
}
LAW_NAMES = tuple(LAW_SOURCES)
# Converts a rational to the arithmetic of a result, for example `float`.
Number = Callable[[Fraction], Any]
# Laws with more noise values are not computed in floating point.
_MAX_LAW_LENGTH = 4_000_000
# An exact audit compares at most this many masses (noise values times shifts).
_MAX_AUDITED_MASSES = 400_000
# For a larger D, geometric noise is fitted at δ = 0, where group privacy proves it without an
# audit of D shifts.
_MAX_GEOMETRIC_SHIFTS = 128
# A parameter that was found in floats may be too small by a rounding error. It is increased by
# these shares in turn until exact arithmetic proves the law private.
_PARAMETER_SLACKS = (0.0, 1e-12, 1e-9, 1e-7, 1e-5, 1e-3)
# Pure noise is cut where its mass is below e^-46, which is 1e-20.
_TAIL_EXPONENT = 46.0
# A parameter is bisected this many times.
_MAX_BISECTIONS = 60
# An α near 1 has at most this denominator.
_ALPHA_DENOMINATOR = 1 << 40
# At this σ², e^(-1/2σ²) is below e^-700, the smallest ratio of any budget.
_MIN_VARIANCE = 1e-4
# If σ²/D² is below this, the law has few values, and a smaller σ² may be private although a larger
# one is not. The bisection could then miss the smallest σ², so smaller σ² are scanned as well.
_SCANNED_VARIANCE_RATIO = 4
# A scan tries this many values of σ².
_SCANNED_VARIANCES = 400
# At most this many inner steps of a staircase are compared at once.
_MAX_INNER_STEPS = 32
# Discrete Gaussian noise whose σ² may exceed this is not fitted, because its law is too long.
_MAX_GAUSSIAN_VARIANCE = 1e8
# This many ends of truncated geometric noise are tried, from the first one that looks private.
_TRIED_ENDS = 3
# A mass in floats may exceed δ by this share, as its sum was rounded. The audit decides exactly.
_FLOAT_ROUNDING = 1e-12


@dataclass(frozen=True)
class FittedLaw:
    """A published law with a parameter that was fitted to a budget.

    Group privacy of pure DP: a law that is ε/D-private for answers 1 apart is ε-private for answers
    D apart. The claim is then about answers 1 apart, whose audit is D times shorter.

    Attributes:
        law: The law.
        symbol: Symbol of its parameter, such as "α".
        value: Value of its parameter.
        claim: Claim of the noise without clamping, for answers up to `span` apart.
        span: D, or 1 if the claim uses group privacy.
        exact_values: Privacy for answers D apart by group privacy, by the names of an audit. Empty
            if the claim does not use group privacy.
    """

    law: IntegerLaw
    symbol: str
    value: float
    claim: Claim
    span: int
    exact_values: Values

    @property
    def mechanism(self) -> AdditiveIntegerNoise:
        """Return the noise without clamping, for answers up to `span` apart."""
        return AdditiveIntegerNoise(IntegerNoise(self.span), self.law)

    def is_private(self) -> bool:
        """Return whether exact arithmetic proves the claim."""
        return self._is_proven

    @cached_property
    def _is_proven(self) -> bool:
        """Return whether exact arithmetic proves the claim. The proof is computed once."""
        return satisfies_claim(self.mechanism, self.claim)


@lru_cache(maxsize=64)  # The laws of a budget are compared for several losses.
def fit_laws(
    name: str, reach: int, epsilon: Fraction, delta: Fraction, notion: str
) -> tuple[FittedLaw, ...]:
    """Return a law with its smallest parameter, or staircases with several inner steps.

    `FittedLaw.is_private` must still prove them private.

    Args:
        name: One of LAW_NAMES.
        reach: D, the largest difference of neighbouring answers.
        epsilon: ε.
        delta: δ.
        notion: pure, dp or pdp. Under pdp only pure laws stay private under any post-processing.

    Raises:
        NotApplicable: The law does not apply to the budget.
    """
    measure = get_notion(notion)
    if notion not in list_ratio_notions() or measure.is_per_distance:
        raise NotApplicable(f"its parameter is not known for the notion {notion}")
    allows_post_processing = get_ratio_kind(notion) == HOCKEY_STICK
    if _noise_length(reach, epsilon) > _MAX_LAW_LENGTH:
        raise NotApplicable("its law is too long at this budget")
    if name == "staircase":
        if reach == 1:
            raise NotApplicable("for neighbours one step apart it equals geometric noise")
        return tuple(_list_staircases(reach, epsilon, low=1, high=reach))
    if name == "geometric":
        if not (measure.has_delta and allows_post_processing):
            delta = Fraction(0)
        return (_fit_geometric(reach, epsilon, delta),)
    if not delta or not measure.has_delta:
        raise NotApplicable("it needs delta > 0")
    if not allows_post_processing:
        raise NotApplicable(
            "pdp does not survive post-processing: clamped or wrapped noise is not private"
        )
    if name == "truncated geometric":
        return (_fit_truncated_geometric(reach, epsilon, delta),)
    return (_fit_discrete_gaussian(reach, epsilon, delta),)


def fit_best_law(
    name: str,
    reach: int,
    budget: tuple[Fraction, Fraction],
    notion: str,
    loss: Callable[[FittedLaw], float],
) -> FittedLaw:
    """Return the law of a name with the parameter of the smallest loss.

    If a staircase has many inner steps, finer steps around the best one are compared repeatedly.

    Args:
        name: One of LAW_NAMES.
        reach: D, the largest difference of neighbouring answers.
        budget: (ε, δ).
        notion: pure, dp or pdp.
        loss: Function that returns the loss of a law.

    Raises:
        NotApplicable: The law does not apply to the budget.
    """
    epsilon, delta = budget
    fits: Sequence[FittedLaw] = fit_laws(name, reach, epsilon, delta, notion)
    while True:
        best_fit = fits[0] if len(fits) == 1 else min(fits, key=loss)
        if name != "staircase":
            return best_fit
        # Every inner step between the neighbours of the best one may still be better.
        position = fits.index(best_fit)
        low_step = int(fits[max(position - 1, 0)].value)
        high_step = int(fits[min(position + 1, len(fits) - 1)].value)
        if high_step - low_step <= 2:
            return best_fit
        fits = _list_staircases(reach, epsilon, low_step, high_step)


def _find_first_private(
    laws: Iterable[tuple[IntegerLaw, float]],
    symbol: str,
    reach: int,
    notion: str,
    budget: dict[str, Fraction],
) -> FittedLaw:
    """Return the first law that the exact audit proves private. Raises NotApplicable.

    Args:
        laws: Laws with the values of their parameter, in the order in which they are tried.
        symbol: Symbol of the parameter.
        reach: D, the largest difference of neighbouring answers.
        notion: Name of the notion.
        budget: ε and δ by name.
    """
    for law, value in laws:
        fit = _make_fitted_law(
            law=law, symbol=symbol, value=value, reach=reach, notion=notion, budget=budget
        )
        if fit.is_private():
            return fit
    raise NotApplicable("no parameter of it was proven to be private at the budget")


def _check_audit_size(reach: int, values: float) -> None:
    """Raise NotApplicable if the exact audit of a law of `values` noise values is too large."""
    if reach * values > _MAX_AUDITED_MASSES:
        raise NotApplicable(f"its audit would compare more than {_MAX_AUDITED_MASSES} masses")


def _make_fitted_law(
    law: IntegerLaw, symbol: str, value: float, reach: int, notion: str, budget: dict[str, Fraction]
) -> FittedLaw:
    """Make a fitted law with its claim for shifts up to `reach` under a notion at a budget.

    `value` is the fitted parameter, called `symbol` in reports. For geometric noise at δ = 0 the
    claim is for shift 1 at ε/reach, and group privacy does the rest.
    """
    span = reach
    if not get_notion(notion).has_delta and law.period == 1:
        span = 1
    exact_values: dict[str, float] = {}
    if span != reach:
        exact_values = {"pure_epsilon": round_up(budget["epsilon"]), "dp_delta": 0.0}
        budget = {**budget, "epsilon": budget["epsilon"] / reach}
    mechanism = AdditiveIntegerNoise(IntegerNoise(span), law)
    claim = Claim.for_mechanism(notion, mechanism, budget)
    return FittedLaw(
        law=law, symbol=symbol, value=value, claim=claim, span=span, exact_values=exact_values
    )


def _fit_geometric(reach: int, epsilon: Fraction, delta: Fraction) -> FittedLaw:
    """Return geometric noise with the smallest α that is proven private."""
    pure_alpha = bound_inverse_exponential(epsilon / reach)
    alphas = [pure_alpha]
    if reach > _MAX_GEOMETRIC_SHIFTS:
        delta = Fraction(0)
    if delta:
        eta = np.arange(_noise_length(reach, epsilon))

        def is_private(alpha: float) -> bool:
            """Return whether noise with the ratio α is (ε, δ)-private, in floats."""
            half_weights = np.power(alpha, eta, dtype=np.float64)
            return _hockey_stick_at_shift(half_weights, reach, epsilon) <= delta

        _, least_alpha = bisect(
            is_private, low=0.0, high=float(pure_alpha), max_steps=_MAX_BISECTIONS
        )
        # The rational approximation of a small α has as many digits as that of a large one.
        denominator = math.ceil(_ALPHA_DENOMINATOR / min(1.0, least_alpha))
        alphas = []
        for slack in _PARAMETER_SLACKS:
            alpha = Fraction(least_alpha * (1 + slack)).limit_denominator(denominator)
            alphas.append(min(pure_alpha, alpha))
        alphas.append(pure_alpha)
    laws = (
        (IntegerLaw(first=0, weights=[1], period=1, ratio=alpha), float(alpha)) for alpha in alphas
    )
    notion = "pure"
    if delta:
        notion = "dp"
    return _find_first_private(
        laws, "α", reach, notion, budget={"epsilon": epsilon, "delta": delta}
    )


def _fit_truncated_geometric(reach: int, epsilon: Fraction, delta: Fraction) -> FittedLaw:
    """Return truncated geometric noise with the smallest end A that is proven private."""
    ratio = bound_inverse_exponential(epsilon / reach)
    # Weights fall by e^-ε with every D values. The last listed ones are below e^-46 δ, and 2 D more
    # leave room for shifts by D.
    tail = math.ceil(reach * (_TAIL_EXPONENT - math.log(delta)) / float(epsilon)) + 2 * reach
    # The weights r^|η| of η = 0, 1, ..., and their partial sums.
    half_weights = np.power(float(ratio), np.arange(tail), dtype=np.float64)
    sums = np.cumsum(half_weights)

    def is_private(end: int) -> bool:
        """Return whether the mass that a shift by D moves beyond the end A is at most δ.

        This is the mass of the last D values. No other mass exceeds e^ε times its shifted mass.
        """
        weight_beyond = half_weights[np.abs(np.arange(end - reach + 1, end + 1))].sum()
        total_weight = 2 * sums[end] - 1  # The weight 1 of η = 0 is counted once.
        return bool(weight_beyond <= float(delta) * (1 + _FLOAT_ROUNDING) * total_weight)

    # With a smaller end the support has at most D values. A shift by D then moves all mass out of
    # it.
    ends = range((reach + 1) // 2, half_weights.size)
    position = bisect_left(ends, True, key=is_private)
    if position == len(ends):
        raise NotApplicable("its support would be too long at this delta")
    first_end = ends[position]
    _check_audit_size(reach, 2 * first_end)

    def make_law(end: int) -> IntegerLaw:
        """Return the law with integer weights. The smallest one has at least 64 bits."""
        # From η = 0 to A the weights lose 1.44 ε A/D bits, as log2 e = 1.44.
        weights = [1 << (64 + 2 * math.ceil(1.5 * float(epsilon) * end / reach))]
        for _ in range(end):
            # Weights are rounded up, so that no ratio exceeds e^ε.
            weights.append(-(-weights[-1] * ratio.numerator // ratio.denominator))
        # The slice [:0:-1] reverses the list without its first entry, so that η = 0 occurs once.
        return IntegerLaw(first=-end, weights=Distribution([*weights[:0:-1], *weights]))

    # Some ends are tried, as the first one was found in floating point.
    laws = ((make_law(end), float(end)) for end in range(first_end, first_end + _TRIED_ENDS))
    return _find_first_private(
        laws, "A", reach, notion="dp", budget={"epsilon": epsilon, "delta": delta}
    )


def _fit_discrete_gaussian(reach: int, epsilon: Fraction, delta: Fraction) -> FittedLaw:
    """Return the discrete Gaussian with the smallest σ² that is proven private."""
    # σ² of Dwork and Roth's theorem A.1 is below this bound.
    log_term = math.log(1.25 / float(delta)) + float(epsilon)
    bound = reach**2 * 2 * log_term / min(1.0, float(epsilon)) ** 2
    if bound > _MAX_GAUSSIAN_VARIANCE:
        raise NotApplicable("its law is too long at this budget")

    def is_private(log_variance: float) -> bool:
        """Return whether Gaussian noise with this log-variance is private, in floats."""
        variance = math.exp(log_variance)
        # Beyond 14 σ the mass of a Gaussian is below 1e-43. If σ is much smaller than D, the list
        # must still contain a shift by D.
        length = math.ceil(14 * math.sqrt(variance)) + 2 * reach + 2
        half_weights = np.exp(-(np.arange(length) ** 2.0) / (2 * variance))
        return _hockey_stick_at_shift(half_weights, reach, epsilon) <= delta

    log_min = math.log(_MIN_VARIANCE)
    _, log_variance = bisect(is_private, log_min, math.log(bound + 1), max_steps=_MAX_BISECTIONS)
    if log_variance < math.log(_SCANNED_VARIANCE_RATIO * reach**2):
        candidates = np.linspace(log_min, log_variance, _SCANNED_VARIANCES)
        last = len(candidates) - 1  # This one is private, but rounding may deny it.
        first = next(i for i, v in enumerate(candidates) if i == last or is_private(v))
        low = float(candidates[max(first - 1, 0)])
        high = float(candidates[first])
        _, log_variance = bisect(is_private, low, high, max_steps=_MAX_BISECTIONS)
    # The exact law of `discrete_gaussian` has about 30 σ values.
    _check_audit_size(reach, 30 * math.exp(log_variance / 2))

    def list_laws() -> Iterator[tuple[IntegerLaw, float]]:
        """Yield the law at every slack, with its variance."""
        for slack in _PARAMETER_SLACKS:
            variance = Fraction(math.exp(log_variance) * (1 + slack))
            radius, law = discrete_gaussian(variance)
            yield IntegerLaw(first=-radius, weights=law), float(variance)

    return _find_first_private(
        list_laws(), "σ²", reach, notion="dp", budget={"epsilon": epsilon, "delta": delta}
    )


def _list_staircases(reach: int, epsilon: Fraction, low: int, high: int) -> list[FittedLaw]:
    """List staircases with inner steps from low to high, evenly spaced if there are many."""
    # A staircase lists up to 2 D - 1 weights on its top step and D on each side of it. This makes
    # 4 D, and the size is taken a little larger.
    _check_audit_size(reach, 5 * reach)
    ratio = bound_inverse_exponential(epsilon)
    count = min(_MAX_INNER_STEPS, high + 1 - low)
    inner_steps = sorted({round(r) for r in np.linspace(low, high, count)})
    budget = {"epsilon": epsilon, "delta": Fraction(0)}
    fits = []
    for step in inner_steps:
        law = build_staircase_law(ratio, reach, step)
        fits.append(
            _make_fitted_law(law, "r", value=step, reach=reach, notion="pure", budget=budget)
        )
    return fits


def _noise_length(reach: int, epsilon: Fraction) -> int:
    """Return the number of noise values after which pure noise has negligible mass.

    Its weights fall by e^-ε with every D values. Two steps of D more leave room for shifts by D.
    """
    return reach * (math.ceil(_TAIL_EXPONENT / float(epsilon)) + 2)


def _hockey_stick_at_shift(half_weights: Vector, reach: int, epsilon: Fraction) -> float:
    """Return the hockey stick at ε between an even law and the same law shifted by D.

    Args:
        half_weights: The weights of the noise values 0, 1, ..., up to a common factor.
        reach: The shift D.
        epsilon: ε.
    """
    # The slice [:0:-1] has the weights of ..., 2, 1, so that the weight of 0 occurs once.
    law = np.concatenate([half_weights[:0:-1], half_weights, np.zeros(reach)])
    law /= law.sum()
    shifted_law = np.concatenate([np.zeros(reach), law[:-reach]])
    return float(np.maximum(law - math.exp(epsilon) * shifted_law, 0).sum())


def compute_masses(law: IntegerLaw, low: int, high: int, number: Number = float) -> NDArray[Any]:
    """Return f(η) for η = low..high, of shape (high + 1 - low,).

    Args:
        law: The law f.
        low: First noise value.
        high: Last noise value.
        number: Conversion of a rational to the arithmetic of the result, such as floats or balls.
    """
    eta = np.arange(low, high + 1)
    weights = np.array([number(Fraction(weight, law.total)) for weight in law.weights])
    # A noise value in the tails is moved by whole periods to a listed one. Each period that it is
    # moved multiplies its mass by the ratio.
    distance = np.maximum(np.maximum(eta - law.last, law.first - eta), 0)
    periods = -(-distance // law.period)  # The quotient is rounded up.
    listed = np.where(eta > law.last, eta - periods * law.period, eta + periods * law.period)
    # The power of a Fraction by an array would be a float, so the ratio is converted first.
    ratio = number(law.ratio)
    powers = np.array([ratio**count for count in periods.tolist()])
    return np.asarray(weights[listed - law.first] * powers)


def compute_clamped_rows(law: IntegerLaw, count: int, number: Number = float) -> list[NDArray[Any]]:
    """Return Pr[output j | answer i] of noise that is clamped into 0..count-1.

    Only numbers >= 0 are added, so that small masses keep their digits.

    Args:
        law: The law of the noise.
        count: Number of answers and outputs.
        number: Conversion of a rational to the arithmetic of the result.

    Returns:
        One row of shape (count,) for each answer in turn.
    """
    masses = compute_masses(law, 1 - count, count - 1, number)
    # lower_tail[k] is Pr[noise <= η] and upper_tail[k] is Pr[noise >= η], for η = 1 - count + k.
    lower_tail = np.cumsum(masses) + number(law.weight_below(1 - count) / law.total)
    mass_above = number(1 - law.weight_below(count) / law.total)
    upper_tail = np.cumsum(masses[::-1])[::-1] + mass_above
    rows = []
    # `first` is the index of the noise from answer i to output 0. It falls as i rises.
    for first in range(count - 1, -1, -1):
        if first % ITEMS_PER_CLOCK_CHECK == 0:
            check_time_limit()
        last = first + count - 1
        low_end = lower_tail[first : first + 1]
        high_end = upper_tail[last : last + 1]
        rows.append(np.concatenate([low_end, masses[first + 1 : last], high_end]))
    return rows
