"""Repair of noise on the integers or the reals that misses a claim, in exact arithmetic.

law without tails    (1 - λ) f + λ g, g staircase noise at half the budget: its tails fall like e^(-ε/2) a
                     sensitivity, and it is pure private. The least λ = 2^-j that holds.
otherwise            the least law above f with f(η) <= e^ε f(η + s) everywhere: pure private, hence private in
                     every notion with an ε
"""

from __future__ import annotations

from fractions import Fraction

from workbench.errors import NotCertified
from workbench.exact.integer_law import IntegerLaw
from workbench.exact.numbers import exp_bounds
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise
from workbench.mechanisms.real_noise import AdditiveRealNoise
from workbench.privacy.audit import holds
from workbench.privacy.claim import Claim

__all__ = ["inverse_exponential", "repair_line", "staircase"]

_BITS = 64
_HALVINGS = 60
LineNoise = AdditiveIntegerNoise | AdditiveRealNoise


def inverse_exponential(epsilon: Fraction, bits: int = _BITS) -> Fraction:
    """A rational a little above e^-ε: mass that falls by this share at most keeps the budget. ε > 0."""
    places = bits + int(2 * epsilon)
    return Fraction(min(exp_bounds(-epsilon, places)[1], (1 << places) - 1), 1 << places)


def staircase(ratio: Fraction, reach: int, inner: int) -> IntegerLaw:
    """f(η) ∝ 1 for |η| < inner, ratio^j for inner + (j - 1) reach <= |η| < inner + j reach: pure at ln 1/ratio."""
    steps = [max(0, -(-(abs(eta) - inner + 1) // reach)) for eta in range(1 - inner - reach, inner + reach)]
    return IntegerLaw(1 - inner - reach, [ratio**step for step in steps], reach, ratio)


def repair_line(mechanism: LineNoise, claim: Claim) -> tuple[LineNoise, Fraction]:
    """(a mechanism that meets the claim, the share of its mass that moved at most). Raises NotCertified."""
    epsilon, reach = claim.values.get("epsilon"), mechanism.reach
    if not isinstance(epsilon, Fraction) or not epsilon:
        raise NotCertified("The noise misses the claim, and only one epsilon > 0 for all differences can be repaired.")
    noise = mechanism.noise
    if not noise.ratio and claim.values.get("delta"):
        other = staircase(inverse_exponential(epsilon / 2), reach, 1)
        for halving in range(_HALVINGS, -1, -4):
            share = Fraction(1, 1 << halving)
            candidate = mechanism.with_noise(noise.mixed(other, share))
            if holds(candidate, claim):
                return candidate, share
    raised = noise.raised(reach, inverse_exponential(epsilon))
    candidate = mechanism.with_noise(raised)
    if not holds(candidate, claim):
        raise NotCertified("The noise misses the claim and could not be repaired.")
    before, after = noise.window(raised.first, raised.last), raised.window(raised.first, raised.last)
    differences = (abs(a / noise.total - b / raised.total) for a, b in zip(before, after, strict=True))
    return candidate, sum(differences, Fraction(0)) / 2
