"""Published noise on the integers for a budget: the least parameter that exact arithmetic proves private.

    name                  f(η)                                        for (ε, δ) and answers up to D apart
    geometric             ∝ α^|η| (discrete Laplace)                  pure: α = e^(-ε/D); with δ the least α that does
    truncated geometric   ∝ e^(-ε|η|/D) for |η| <= A                  the least A: what a shift takes beyond A is <= δ
    discrete Gaussian     ∝ e^(-η²/2σ²) (Canonne et al. 2020)         the least σ²
    staircase             steps of D falling by e^-ε (Geng 2014)      pure; its inner step r = 1..D is the user's

Whatever is published from q + η, clamped or wrapped around, is as private (post-processing) in every notion but pdp. A
parameter is found in floating point, and the exact audit of the law on the line decides.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
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
from workbench.notions import get_notion as known_notion
from workbench.pipeline.requirements import HOCKEY_STICK, get_ratio_kind, list_ratio_notions
from workbench.privacy.audit import satisfies_claim
from workbench.privacy.claim import Claim
from workbench.privacy.repair import bound_inverse_exponential, build_staircase_law
from workbench.questions.unbounded_noise import IntegerNoise
from workbench.solvers.arrays import Vector
from workbench.solvers.search import bisect

LAW_SOURCES = {  # name -> whose it is
    "geometric": "Ghosh, Roughgarden and Sundararajan 2009",
    "truncated geometric": "Geng et al. 2020, on the integers",
    "discrete Gaussian": "Canonne, Kamath and Steinke 2020",
    "staircase": "Geng and Viswanath 2014",
}
LAW_NAMES = tuple(LAW_SOURCES)
Number = Callable[[Fraction], Any]  # what arithmetic is in, of a rational: floats, balls
_MAX_LAW_LENGTH = 4_000_000  # noise values that are worked through in floating point
_MAX_AUDITED_MASSES = 400_000  # noise values times shifts that an exact audit works through
_SHIFTS = (
    128  # up to which geometric noise is audited at a δ; beyond, and without one, by group privacy
)
_SLACKS = (0.0, 1e-12, 1e-9, 1e-7, 1e-5, 1e-3)  # off the tie, so that exact arithmetic agrees
_TAIL = 46.0  # e^-46 is 1e-20
_TURNS = 60  # of a bisection in floats
_DENOMINATOR = 1 << 40  # of α near 1, at most
_LEAST_VARIANCE = 1e-4  # e^(-1/2σ²) is below e^-700, the least ratio of any budget
_ROUGH, _SCANNED = 4, 400  # σ²/D² below which smaller ones are tried too, and how many
_INNER = 32  # inner steps of a staircase that are compared at once


@dataclass(frozen=True)
class FittedLaw:
    """A law for a budget. symbol, value: of its parameter; claim: what it is private for on the line, with
    answers up to `span` apart: D, or 1 where ε/D a step proves ε for D of them (group privacy of pure DP), which is
    then what `exact` says of its audit."""

    law: IntegerLaw
    symbol: str
    value: float
    claim: Claim
    span: int
    exact_values: Values

    @property
    def mechanism(self) -> AdditiveIntegerNoise:
        """The noise, not clamped, for answers up to `span` apart."""
        return AdditiveIntegerNoise(IntegerNoise(self.span), self.law)

    def is_private(self) -> bool:
        """Whether exact arithmetic proves the claim."""
        return satisfies_claim(self.mechanism, self.claim)


def fit_laws(
    name: str, reach: int, epsilon: Fraction, delta: Fraction, notion: str
) -> list[FittedLaw]:
    """The law of a name with its least parameter; of the staircase one for each inner step, or some of many, to be
    proven by `holds`.

    reach: D; notion: pure, dp or pdp, for which the pure laws alone stay private however their answers are published.
    Raises NotApplicable.
    """
    measure = known_notion(notion)
    if notion not in list_ratio_notions() or measure.is_per_distance:
        raise NotApplicable(f"its parameter is not known for the notion {notion}")
    post_processed = get_ratio_kind(notion) == HOCKEY_STICK
    if _noise_length(reach, epsilon) > _MAX_LAW_LENGTH:
        raise NotApplicable("its law is too long at this budget")
    if name == "staircase":
        if reach == 1:
            raise NotApplicable("between answers one step apart it is the geometric noise")
        return _list_staircases(reach, epsilon, 1, reach)
    if name == "geometric":
        return [
            _fit_geometric(
                reach, epsilon, delta if measure.has_delta and post_processed else Fraction(0)
            )
        ]
    if not delta or not measure.has_delta:
        raise NotApplicable("it needs delta > 0")
    if not post_processed:
        raise NotApplicable(
            "clamped or wrapped around it is no longer private under pdp, which is no post-processing"
        )
    return [
        (_fit_truncated_geometric if name == "truncated geometric" else _fit_discrete_gaussian)(
            reach, epsilon, delta
        )
    ]


def fit_best_law(
    name: str,
    reach: int,
    budget: tuple[Fraction, Fraction],
    notion: str,
    loss: Callable[[FittedLaw], float],
) -> FittedLaw:
    """The law of a name with the parameter of least loss; of many inner steps of a staircase ever finer ones around the
    best are compared. budget: (ε, δ). Raises NotApplicable."""
    fitted = fit_laws(name, reach, *budget, notion)
    while True:
        best = fitted[0] if len(fitted) == 1 else min(fitted, key=loss)
        position = fitted.index(best)
        low, high = (
            int(fitted[min(max(position + side, 0), len(fitted) - 1)].value) for side in (-1, 1)
        )
        if name != "staircase" or high - low <= 2:
            return best
        fitted = _list_staircases(reach, budget[0], low, high)


def _find_first_private(
    laws: Iterable[tuple[IntegerLaw, float]],
    symbol: str,
    reach: int,
    notion: str,
    budget: dict[str, Fraction],
) -> FittedLaw:
    """The first that the exact audit finds private."""
    for law, value in laws:
        fitted = _make_fitted_law(law, symbol, value, reach, notion, budget)
        if fitted.is_private():
            return fitted
    raise NotApplicable("no parameter of it was proven to meet the budget")


def _check_audit_size(reach: int, values: float) -> None:
    if reach * values > _MAX_AUDITED_MASSES:
        raise NotApplicable(f"its audit would compare more than {_MAX_AUDITED_MASSES} masses")


def _make_fitted_law(
    law: IntegerLaw, symbol: str, value: float, reach: int, notion: str, budget: dict[str, Fraction]
) -> FittedLaw:
    span = 1 if not known_notion(notion).has_delta and law.period == 1 else reach
    mechanism = AdditiveIntegerNoise(IntegerNoise(span), law)
    claim = Claim.for_mechanism(
        notion,
        mechanism,
        budget if span == reach else {**budget, "epsilon": budget["epsilon"] / reach},
    )
    exact = {} if span == reach else {"pure_epsilon": round_up(budget["epsilon"]), "dp_delta": 0.0}
    return FittedLaw(law, symbol, value, claim, span, exact)


def _fit_geometric(reach: int, epsilon: Fraction, delta: Fraction) -> FittedLaw:
    pure = bound_inverse_exponential(epsilon / reach)
    alphas, delta = [pure], delta if reach <= _SHIFTS else Fraction(0)
    if delta:
        eta = np.arange(_noise_length(reach, epsilon))

        def private(alpha: float) -> bool:
            return (
                _hockey_stick_at_shift(np.power(alpha, eta, dtype=np.float64), reach, epsilon)
                <= delta
            )

        least = bisect(private, 0.0, float(pure), max_steps=_TURNS)[1]
        digits = math.ceil(_DENOMINATOR / min(1.0, least))  # as many of a small α as of a large one
        near = (Fraction(least * (1 + slack)).limit_denominator(digits) for slack in _SLACKS)
        alphas = [*(min(pure, alpha) for alpha in near), pure]
    laws = ((IntegerLaw(0, [1], 1, alpha), float(alpha)) for alpha in alphas)
    return _find_first_private(
        laws, "α", reach, "dp" if delta else "pure", {"epsilon": epsilon, "delta": delta}
    )


def _fit_truncated_geometric(reach: int, epsilon: Fraction, delta: Fraction) -> FittedLaw:
    ratio = bound_inverse_exponential(epsilon / reach)
    tail = math.ceil(reach * (_TAIL - math.log(delta)) / float(epsilon)) + 2 * reach
    half = np.power(float(ratio), np.arange(tail), dtype=np.float64)
    sums = np.cumsum(half)  # f(0) + ... + f(end), up to a factor

    def private(end: int) -> bool:
        """Whether the mass of the last D values, which a shift takes beyond the end, is within δ: nothing else is above
        the ratio."""
        beyond = half[np.abs(np.arange(end - reach + 1, end + 1))].sum()
        return bool(beyond <= float(delta) * (1 + 1e-12) * (2 * sums[end] - 1))

    ends = range((reach + 1) // 2, half.size)
    at = bisect_left(ends, True, key=private)
    if at == len(ends):
        raise NotApplicable("its support would be too long at this delta")
    _check_audit_size(reach, 2 * ends[at])

    def law_to(end: int) -> IntegerLaw:
        weights = [1 << (64 + 2 * math.ceil(1.5 * float(epsilon) * end / reach))]
        for _ in range(end):  # upwards, so that no ratio exceeds e^ε
            weights.append(-(-weights[-1] * ratio.numerator // ratio.denominator))
        return IntegerLaw(-end, Distribution([*weights[:0:-1], *weights]))

    laws = ((law_to(end), float(end)) for end in range(ends[at], ends[at] + 3))
    return _find_first_private(laws, "A", reach, "dp", {"epsilon": epsilon, "delta": delta})


def _fit_discrete_gaussian(reach: int, epsilon: Fraction, delta: Fraction) -> FittedLaw:
    # σ² of Dwork and Roth's theorem A.1, and more
    bound = (
        reach**2
        * 2
        * (math.log(1.25 / float(delta)) + float(epsilon))
        / min(1.0, float(epsilon)) ** 2
    )
    if bound > 1e8:
        raise NotApplicable("its law is too long at this budget")

    def private(log_variance: float) -> bool:
        variance = math.exp(log_variance)
        half = np.exp(
            -(np.arange(math.ceil(14 * math.sqrt(variance)) + 2 * reach + 2) ** 2.0)
            / (2 * variance)
        )
        return _hockey_stick_at_shift(half, reach, epsilon) <= delta

    least = bisect(private, math.log(_LEAST_VARIANCE), math.log(bound + 1), max_steps=_TURNS)[1]
    if least < math.log(
        _ROUGH * reach**2
    ):  # where a law of few values may be private below one that is not
        smaller = np.linspace(math.log(_LEAST_VARIANCE), least, _SCANNED)
        at = next(i for i, value in enumerate(smaller) if i == len(smaller) - 1 or private(value))
        least = bisect(
            private, float(smaller[max(at - 1, 0)]), float(smaller[at]), max_steps=_TURNS
        )[1]
    _check_audit_size(reach, 30 * math.exp(least / 2))

    variances = (Fraction(math.exp(least) * (1 + slack)) for slack in _SLACKS)
    laws = (
        (IntegerLaw(-radius, law), float(v))
        for v in variances
        for radius, law in [discrete_gaussian(v)]
    )
    return _find_first_private(laws, "σ²", reach, "dp", {"epsilon": epsilon, "delta": delta})


def _list_staircases(reach: int, epsilon: Fraction, low: int, high: int) -> list[FittedLaw]:
    """Staircases with inner steps from low to high, of more than `_INNER` as many at equal distances."""
    _check_audit_size(reach, 5 * reach)
    ratio = bound_inverse_exponential(epsilon)
    inner = sorted({round(r) for r in np.linspace(low, high, min(_INNER, high + 1 - low))})
    budget = {"epsilon": epsilon, "delta": Fraction(0)}
    return [
        _make_fitted_law(build_staircase_law(ratio, reach, r), "r", r, reach, "pure", budget)
        for r in inner
    ]


def _noise_length(reach: int, epsilon: Fraction) -> int:
    """Noise values to where pure noise has next to nothing left."""
    return reach * (math.ceil(_TAIL / float(epsilon)) + 2)


def _hockey_stick_at_shift(half: Vector, reach: int, epsilon: Fraction) -> float:
    """The hockey stick at a shift of D of an even law that falls from 0 on, from f(0), f(1), ..."""
    law = np.concatenate([half[:0:-1], half, np.zeros(reach)])
    law /= law.sum()
    moved = np.concatenate([np.zeros(reach), law[:-reach]])
    return float(np.maximum(law - math.exp(epsilon) * moved, 0).sum())


def compute_masses(law: IntegerLaw, low: int, high: int, number: Number = float) -> NDArray[Any]:
    """f(η) for η = low..high, shape (high + 1 - low,). number: what arithmetic is in, of a rational: floats, balls."""
    eta, weights = (
        np.arange(low, high + 1),
        np.array([number(Fraction(weight, law.total)) for weight in law.weights]),
    )
    blocks = -(-np.maximum(np.maximum(eta - law.last, law.first - eta), 0) // law.period)
    near = np.where(eta > law.last, eta - blocks * law.period, eta + blocks * law.period)
    ratio = number(law.ratio)  # whose power by an array is a float, of a Fraction too
    return np.asarray(
        weights[near - law.first] * np.array([ratio**block for block in blocks.tolist()])
    )


def compute_clamped_rows(law: IntegerLaw, count: int, number: Number = float) -> list[NDArray[Any]]:
    """List Pr[output j | answer i] of noise clamped into 0..count-1, a row of shape (count,) for each answer in turn.

    Only numbers >= 0 are added, so that none loses digits, however small it is.
    """
    every = compute_masses(law, 1 - count, count - 1, number)
    below = np.cumsum(every) + number(law.weight_below(1 - count) / law.total)  # Pr[noise <= η]
    above = np.cumsum(every[::-1])[::-1] + number(
        1 - law.weight_below(count) / law.total
    )  # Pr[noise >= η]
    rows = []
    for first in range(count - 1, -1, -1):
        if first % ITEMS_PER_CLOCK_CHECK == 0:
            check_time_limit()
        inside = every[first + 1 : first + count - 1]
        rows.append(
            np.concatenate(
                [below[first : first + 1], inside, above[first + count - 1 : first + count]]
            )
        )
    return rows
