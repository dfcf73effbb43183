"""Repair: turn masses that are nearly private into masses that are, changing as little as possible.

Solver output satisfies f(η) <= e^ε f(η+μ) up to rounding, and rounding either way breaks an exact bound. With integers
k(η) over 2^b and E = ⌊2^112 e^ε⌋ / 2^112 <= e^ε

    raise        k(η+μ) to ⌈k(η) / E⌉ wherever η is no violation of μ, to the least fixed point
    then         k(η) <= E k(η+μ) <= e^ε k(η+μ) holds exactly there, whatever the k are divided by
    violations   of a bound on their mass: the pattern {η : f(η) > e^ε f(η+μ)} of every μ is kept, zeros stay zero
    room         if δ is still missed, mix with the closure without violations, k <- (1-θ) k + θ k', by the least share
                 that does: k' is purely private, and both the hockey stick and the mass on violations can only fall

Noise on the integers or the reals, f with neighbours up to s apart:

    law without tails    (1 - λ) f + λ g, g staircase noise at half the budget: its tails fall like e^(-ε/2) a
                         sensitivity, and it is pure private
    otherwise            the least law above f with f(η) <= e^ε f(η + s) everywhere: pure private, hence private in
                         every notion with an ε

The exact audit judges every step; nothing here is trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from workbench.errors import NotCertified, NotProven
from workbench.exact.arrays import Flags
from workbench.exact.integer_law import IntegerLaw, raise_law_to_ratio, raise_to_floors
from workbench.exact.numbers import ONE, ZERO, exp_bounds
from workbench.exact.objects import Pair
from workbench.mechanisms.additive import AdditiveNoise
from workbench.privacy.audit import Privacy, audit_for_claim, provably_satisfies_claim
from workbench.privacy.claim import Claim
from workbench.questions.modulo_noise import ModuloNoise, Shift

if TYPE_CHECKING:
    from workbench.mechanisms.integer_noise import AdditiveIntegerNoise
    from workbench.mechanisms.real_noise import AdditiveRealNoise

    Noise: TypeAlias = AdditiveIntegerNoise | AdditiveRealNoise

Pattern = Mapping[Shift, Flags]  # difference -> (N,) where the loss may exceed ε
Accepted = TypeVar("Accepted")

_BITS = 112  # of E below e^ε
_SMALLEST = 96  # bits of the smallest weight
_WIDEST = 4096  # bits of a weight
_PLACES = 64  # of a ratio


def find_least_share(
    mix: Callable[[Fraction], Accepted | None], max_exponent: int, halvings: int = 0
) -> tuple[Accepted, Fraction]:
    """(what is accepted, θ) for the least share θ >= 2^-least of a private law that is mixed in: its power of two, then
    so many halvings more. mixed: θ -> the mixture, None where it is refused. Raises NotCertified where θ = 1 is."""
    best, high = mix(ONE), ONE
    if best is None:
        raise NotCertified("The exact audit refuses every mixture with a private law.")
    enough, less = 0, max_exponent  # 2^-enough is accepted
    while less - enough > 1:
        middle = (enough + less) // 2
        candidate = mix(Fraction(1, 1 << middle))
        enough, less, best = (
            (enough, middle, best) if candidate is None else (middle, less, candidate)
        )
    high, low = Fraction(1, 1 << enough), Fraction(1, 2 << enough)
    for _ in range(halvings):
        share = (low + high) / 2
        candidate = mix(share)
        low, high, best = (share, high, best) if candidate is None else (low, share, candidate)
    return best, high


def floor_scaled_exp(epsilon: Fraction) -> int:
    """⌊2^112 e^ε⌋."""
    return exp_bounds(epsilon, _BITS)[0]


def find_violation_pattern(mechanism: AdditiveNoise, budgets: Mapping[Shift, Fraction]) -> Pattern:
    """Where a mechanism means its privacy loss to exceed ε: f(η) > e^ε f(η+μ) (1 + 1e-6) + 1e-12, in floats.

    Ratios tight up to rounding are no violations, and neither are masses below what a solver can see.
    """
    f = mechanism.pmf
    return {
        shift: f
        > np.exp(min(float(epsilon), 700.0))
        * f[mechanism.question.shifted_positions(shift)]
        * (1 + 1e-6)
        + 1e-12
        for shift, epsilon in budgets.items()
    }


def raise_weights(
    question: ModuloNoise,
    weights: Sequence[int],
    budgets: Mapping[Shift, Fraction],
    pattern: Pattern | None,
) -> list[int]:
    """The least integers >= weights with k(η) <= E k(η+μ) for every μ and every η outside its pattern.

    Largest first, so that every element is final when it is taken: ⌈k/E⌉ <= k.
    """
    moves = [(question.shifted_positions(shift).tolist(), floor_scaled_exp(epsilon), None if pattern is None else pattern[shift].tolist())
             for shift, epsilon in budgets.items()]  # fmt: skip

    def least(at: int, weight: int) -> Iterator[Pair]:
        return (
            (index[at], -(-(weight << _BITS) // e))
            for index, e, free in moves
            if free is None or not free[at]
        )

    return raise_to_floors(list(weights), least)


def repair_noise(
    question: ModuloNoise,
    values: Sequence[Fraction],
    claim: Claim,
    pattern: Pattern | None = None,
) -> Privacy:
    """The exact audit of a mechanism near `values`, which proves a claim of it.

    Args:
        question: of N elements; values: N rationals, negative ones count as 0.
        claim: what to meet; masses are raised for the ratios that its notion bounds, and mixed with uniform noise where
            it bounds none (uniform noise reveals nothing).
        pattern: of the outcomes that may break the ratio, where the notion bounds their mass; by default what the
            values mean.

    Raises:
        NotCertified: the values are all zero, or need weights of more than 4096 bits.
    """
    k = _scale_to_integers(values)

    def private(weights: Sequence[int]) -> Privacy | None:
        privacy = audit_for_claim(AdditiveNoise(question, weights), claim)
        with suppress(
            NotProven
        ):  # as good as refused: a mechanism a little further away can be proven
            return privacy if privacy.holds(claim) else None
        return None

    required = {
        shift: several
        for shift in question.differences
        if (several := claim.list_ratio_bounds(shift))
    }
    budgets = {
        shift: min(bound.epsilon for bound in several) for shift, several in required.items()
    }
    bounds = [bound for several in required.values() for bound in several]
    pure = bool(bounds) and all(bound.delta == 0 for bound in bounds)
    repaired = private(k)
    if repaired is None and (pure or {bound.kind for bound in bounds} == {"mass-above-ratio"}):
        if pattern is None and not pure:
            pattern = find_violation_pattern(AdditiveNoise(question, k), budgets)
        k = raise_weights(question, k, budgets, pattern)
        repaired = private(k)
    if repaired is not None:
        return repaired
    if pure:
        raise NotCertified("The exact audit refuses the repaired masses.")
    closed = raise_weights(question, k, budgets, None) if bounds else [1] * len(k)
    total, closed_total = sum(k), sum(closed)

    def mixed(share: Fraction) -> Privacy | None:
        top, whole = share.numerator, share.denominator
        return private(
            [
                (whole - top) * a * closed_total + top * b * total
                for a, b in zip(k, closed, strict=True)
            ]
        )

    # the share may be large where a solver has not come close before
    close = bool(bounds) and len(bounds) == len(required)
    return find_least_share(mixed, 80, 0 if close else 10)[0]


def _scale_to_integers(values: Sequence[Fraction]) -> list[int]:
    """Integers in proportion to the values > 0, the smallest of 96 bits, 0 for the others. Raises NotCertified."""
    least = min((value for value in values if value > 0), default=None)
    if least is None:
        raise NotCertified("There is no mass to repair.")
    width = _SMALLEST + max(0, (least.denominator // least.numerator).bit_length())
    if width > _WIDEST:
        raise NotCertified(
            f"Masses as small as 2^-{width - _SMALLEST} need weights of more than {_WIDEST} bits."
        )
    return [max(0, int(value * (1 << width))) for value in values]


def compute_exact_loss(mechanism: AdditiveNoise, losses: Any) -> Fraction:
    """Σ f(η) loss(η) exactly, floats as they are; for a matrix (answers, N) the largest over rows."""
    table = np.asarray(losses, dtype=np.float64)
    rows = table if table.ndim == 2 else table[None, :]
    return max(mechanism.masses.mean([*map(Fraction, row.tolist())]) for row in rows)


def bound_inverse_exponential(epsilon: Fraction, bits: int = _PLACES) -> Fraction:
    """A rational a little above e^-ε: mass that falls by this share at most keeps the budget. ε > 0."""
    places = bits + int(2 * epsilon)
    return Fraction(min(exp_bounds(-epsilon, places)[1], (1 << places) - 1), 1 << places)


def build_staircase_law(ratio: Fraction, reach: int, inner: int) -> IntegerLaw:
    """f(η) ∝ 1 for |η| < inner, ratio^j for inner + (j - 1) reach <= |η| < inner + j reach: pure at ln 1/ratio."""
    beside = [ratio] * reach
    return IntegerLaw(1 - inner - reach, [*beside, *[ONE] * (2 * inner - 1), *beside], reach, ratio)


def repair_line_noise(mechanism: Noise, claim: Claim) -> tuple[Noise, Fraction]:
    """(a mechanism that meets the claim, the share of its mass that moved at most). Raises NotCertified."""
    epsilon, reach = claim.values.get("epsilon"), mechanism.reach
    if not isinstance(epsilon, Fraction) or not epsilon:
        raise NotCertified(
            "The noise misses the claim, and only one epsilon > 0 for all differences can be repaired."
        )
    noise = mechanism.noise
    if not noise.ratio and claim.values.get("delta"):
        with suppress(NotCertified):
            private = build_staircase_law(bound_inverse_exponential(epsilon / 2), reach, 1)
            return mix_line_noise(
                mechanism, private, lambda candidate: provably_satisfies_claim(candidate, claim), 60
            )
    weights = [weight << _PLACES for weight in noise.weights]
    raised = raise_law_to_ratio(noise.first, weights, reach, bound_inverse_exponential(epsilon))
    candidate = mechanism.with_noise(raised)
    if not provably_satisfies_claim(candidate, claim):
        raise NotCertified("The noise misses the claim and could not be repaired.")
    before, after = (
        noise.weights_between(raised.first, raised.last),
        raised.weights_between(raised.first, raised.last),
    )
    differences = (
        abs(a / noise.total - b / raised.total) for a, b in zip(before, after, strict=True)
    )
    return candidate, sum(differences, ZERO) / 2


def mix_line_noise(
    mechanism: Noise, private: IntegerLaw, accepted: Callable[[Noise], bool], least: int
) -> tuple[Noise, Fraction]:
    """Noise without tails mixed with another law, by the least share >= 2^-least that is accepted, and the share; an
    atom stays apart. Raises NotCertified."""
    cells, total, pad = mechanism.cells, mechanism.total, private.period if private.ratio else 0
    low, high = min(cells.first - pad, private.first), max(cells.last + pad, private.last)
    masses = [
        *zip(cells.weights_between(low, high), private.weights_between(low, high), strict=True)
    ]

    def mixed(share: Fraction) -> Noise | None:
        weights = [(1 - share) * a / total + share * b / private.total for a, b in masses]
        law, atom = (
            IntegerLaw(low, weights, private.period, private.ratio),
            (1 - share) * mechanism.atom / total,
        )
        candidate: Any = mechanism.with_noise(law)
        if atom:
            candidate = replace(candidate, atom=atom / (1 - atom) * law.total)
        return candidate if accepted(candidate) else None

    return find_least_share(mixed, least)
