"""Repair masses that are nearly private into masses that are exactly private, with small changes.

Notation: f(η) is the mass of the noise value η, and μ a difference of neighbouring answers. The
output of a solver satisfies f(η) <= e^ε f(η+μ) only up to rounding, and rounding in either
direction breaks an exact bound. The masses are therefore written as integers k(η) over 2^b. E is
the lower bound ⌊2^112 e^ε⌋ / 2^112 on e^ε. The repair has these steps:

    raising      k(η+μ) is raised to ⌈k(η) / E⌉ for every η and μ, until no k changes. Then
                 k(η) <= E k(η+μ) <= e^ε k(η+μ) holds exactly, and also for k divided by its sum
    violations   a notion such as PDP bounds the mass of {η : f(η) > e^ε f(η+μ)} by δ. These η are
                 found before the repair, and raising skips them
    mixing       if δ is still exceeded, k is replaced by (1-θ) k + θ k', with the smallest
                 sufficient share θ. Here k' is raised without skipping any η. It is purely private,
                 so the hockey stick and the mass on violations can only decrease

Noise with the law f on the integers or the reals, where neighbours are at most s apart:

    law without tails    (1 - λ) f + λ g, with g staircase noise at half the budget: its tails fall
                         like e^(-ε/2) for each sensitivity, and it is purely private
    otherwise            the smallest law above f with f(η) <= e^ε f(η + s) everywhere: it is purely
                         private, hence private in every notion with an ε

The exact audit decides after every step, so no step of the repair has to be trusted.
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
from workbench.notions import HockeyStick, MassAboveRatio
from workbench.privacy.audit import Privacy, audit_for_claim, provably_satisfies_claim
from workbench.privacy.claim import Claim
from workbench.questions.modulo_noise import ModuloNoise, Shift

if TYPE_CHECKING:
    from workbench.mechanisms.integer_noise import AdditiveIntegerNoise
    from workbench.mechanisms.real_noise import AdditiveRealNoise

    Noise: TypeAlias = AdditiveIntegerNoise | AdditiveRealNoise

# Maps each shift to flags of shape (N,): whether the privacy loss at η may exceed ε.
Pattern = Mapping[Shift, Flags]
Mixture = TypeVar("Mixture")

_EXP_BITS = 112  # Binary digits of E, the lower bound on e^ε.
_MIN_WEIGHT_BITS = 96  # The smallest positive weight gets at least this many bits.
_MAX_WEIGHT_BITS = 4096  # Masses that need larger weights are not repaired.
_RATIO_BITS = 64  # Binary digits of e^-ε in the repair of noise on a line.
_MAX_EXP_EPSILON = 700.0  # A larger ε counts as this one, because e^ε is no double.
# A ratio that exceeds e^ε by a smaller factor is rounding of a solver, and no violation.
_MIN_RATIO_EXCESS = 1e-6
# A mass that exceeds its bound by less is below the accuracy of a solver, and no violation.
_MIN_MASS_EXCESS = 1e-12
_MAX_GROUP_EXPONENT = 80  # Shares of the private law above 2^-80 are tried for noise on a group.
_MAX_LINE_EXPONENT = 60  # Shares of the private law above 2^-60 are tried for noise on a line.
_SHARE_HALVINGS = 10  # A share that may be large is found up to 2^-10 of itself.


def find_least_share(
    mix: Callable[[Fraction], Mixture | None], max_exponent: int, halvings: int = 0
) -> tuple[Mixture, Fraction]:
    """Find the smallest share θ of a private law for which a mixture is accepted.

    The search first finds the smallest power of two, 2^-j with j < `max_exponent`. Then it bisects
    between this power and half of it.

    Args:
        mix: Maps θ to the mixture, or to None if the mixture is refused.
        max_exponent: The exponents j < max_exponent are tried.
        halvings: Number of bisection steps.

    Returns:
        The accepted mixture, and its share θ.

    Raises:
        NotCertified: Even θ = 1 is refused.
    """
    accepted_mixture = mix(ONE)
    if accepted_mixture is None:
        raise NotCertified("The exact audit refuses every mixture with a private law.")
    accepted_exponent = 0
    refused_exponent = max_exponent
    while refused_exponent - accepted_exponent > 1:
        middle = (accepted_exponent + refused_exponent) // 2
        candidate = mix(Fraction(1, 1 << middle))
        if candidate is None:
            refused_exponent = middle
        else:
            accepted_exponent = middle
            accepted_mixture = candidate
    high = Fraction(1, 1 << accepted_exponent)
    low = Fraction(1, 2 << accepted_exponent)
    for _ in range(halvings):
        share = (low + high) / 2
        candidate = mix(share)
        if candidate is None:
            low = share
        else:
            high = share
            accepted_mixture = candidate
    return accepted_mixture, high


def floor_scaled_exp(epsilon: Fraction) -> int:
    """Return ⌊2^112 e^ε⌋, a lower bound of e^ε in units of 2^-112."""
    lower, _ = exp_bounds(epsilon, _EXP_BITS)
    return lower


def find_violation_pattern(mechanism: AdditiveNoise, budgets: Mapping[Shift, Fraction]) -> Pattern:
    """Find the outcomes whose privacy loss is meant to exceed ε.

    These have f(η) > e^ε f(η+μ) (1 + 1e-6) + 1e-12 in floats.

    Args:
        mechanism: Noise on a group.
        budgets: ε of each shift μ.
    """
    masses = mechanism.pmf
    pattern = {}
    for shift, epsilon in budgets.items():
        growth = np.exp(min(float(epsilon), _MAX_EXP_EPSILON))
        shifted_masses = masses[mechanism.question.shifted_positions(shift)]
        mass_bounds = growth * shifted_masses * (1 + _MIN_RATIO_EXCESS) + _MIN_MASS_EXCESS
        pattern[shift] = masses > mass_bounds
    return pattern


def raise_weights(
    question: ModuloNoise,
    weights: Sequence[int],
    budgets: Mapping[Shift, Fraction],
    pattern: Pattern | None,
) -> list[int]:
    """Raise weights until k(η) <= E k(η+μ) for every μ and every η outside its pattern.

    The result is the smallest solution that is at least the given weights. The largest weights come
    first, so every weight is final when it is visited, because ⌈k/E⌉ <= k.

    Args:
        question: The question, which has the group.
        weights: Integers k(η) >= 0. Shape (N,).
        budgets: ε of each shift μ.
        pattern: Outcomes that may violate the bound. None for no outcomes.
    """
    shift_bounds = []
    for shift, epsilon in budgets.items():
        shifted_positions = question.shifted_positions(shift).tolist()
        violations = None
        if pattern is not None:
            violations = pattern[shift].tolist()
        shift_bounds.append((shifted_positions, floor_scaled_exp(epsilon), violations))

    def iter_lower_bounds(position: int, weight: int) -> Iterator[Pair]:
        """Yield (other position, smallest weight there) for a weight."""
        for shifted_positions, scaled_exp, violations in shift_bounds:
            if violations is None or not violations[position]:
                # The quotient k(η) / E is rounded up.
                yield shifted_positions[position], -(-(weight << _EXP_BITS) // scaled_exp)

    return raise_to_floors(list(weights), iter_lower_bounds)


def repair_noise(
    question: ModuloNoise,
    values: Sequence[Fraction],
    claim: Claim,
    pattern: Pattern | None = None,
) -> Privacy:
    """Repair the masses of noise on a group until the exact audit proves a claim.

    If the notion bounds ratios, masses are raised to satisfy the bounds. If it bounds none, the law
    is mixed with uniform noise, which reveals nothing.

    Args:
        question: The question, with a group of N elements.
        values: N rational masses. Negative ones count as 0.
        claim: Notion with exact parameters, which the repaired mechanism must satisfy.
        pattern: Outcomes that may violate the ratio, if the notion bounds their mass. None for the
            pattern that the values show.

    Returns:
        The exact audit of the repaired mechanism, which proves the claim.

    Raises:
        NotCertified: The values are all zero, need weights of more than 4096 bits, or no mixture is
            private.
    """
    weights = _scale_to_integers(values)

    def prove(candidate_weights: Sequence[int]) -> Privacy | None:
        """Return an audit that proves the claim, or None."""
        privacy = audit_for_claim(AdditiveNoise(question, candidate_weights), claim)
        # An undecided claim counts as refused: a mechanism a little further away can be proven.
        with suppress(NotProven):
            if privacy.holds(claim):
                return privacy
        return None

    bounds_by_shift = {}
    for shift in question.differences:
        shift_bounds = claim.list_ratio_bounds(shift)
        if shift_bounds:
            bounds_by_shift[shift] = shift_bounds
    budgets = {}
    all_bounds: list[HockeyStick | MassAboveRatio] = []
    for shift, shift_bounds in bounds_by_shift.items():
        budgets[shift] = min(bound.epsilon for bound in shift_bounds)
        all_bounds.extend(shift_bounds)
    is_pure = bool(all_bounds) and all(bound.delta == 0 for bound in all_bounds)
    bounds_violations = {bound.kind for bound in all_bounds} == {"mass-above-ratio"}

    # Try the weights as they are, then raised weights, then mixtures with a private law.
    proof = prove(weights)
    if proof is None and (is_pure or bounds_violations):
        if pattern is None and not is_pure:
            pattern = find_violation_pattern(AdditiveNoise(question, weights), budgets)
        weights = raise_weights(question, weights, budgets, pattern)
        proof = prove(weights)
    if proof is not None:
        return proof
    if is_pure:
        raise NotCertified("The exact audit refuses the repaired masses.")
    if all_bounds:
        private_weights = raise_weights(question, weights, budgets, pattern=None)
    else:
        private_weights = [1] * len(weights)
    total = sum(weights)
    private_total = sum(private_weights)

    def prove_mixture(share: Fraction) -> Privacy | None:
        """Return an audit that proves the claim of the mixture with share θ, or None."""
        # (1-θ) k/K + θ k'/K' is (1-θ) k K' + θ k' K up to a factor, in integers.
        factor = (share.denominator - share.numerator) * private_total
        private_factor = share.numerator * total
        mixed_weights = []
        for weight, private_weight in zip(weights, private_weights, strict=True):
            mixed_weights.append(factor * weight + private_factor * private_weight)
        return prove(mixed_weights)

    # If every shift has one bound, a solver comes so close to it that the share is tiny. Otherwise
    # the share may be large, so that it is worth refining.
    has_single_bounds = bool(all_bounds) and len(all_bounds) == len(bounds_by_shift)
    halvings = 0 if has_single_bounds else _SHARE_HALVINGS
    mixture_proof, _ = find_least_share(prove_mixture, _MAX_GROUP_EXPONENT, halvings)
    return mixture_proof


def _scale_to_integers(values: Sequence[Fraction]) -> list[int]:
    """Scale masses to integers and round them down. Values <= 0 become 0.

    The smallest positive value gets 96 bits. Raises NotCertified.
    """
    smallest = min((value for value in values if value > 0), default=None)
    if smallest is None:
        raise NotCertified("There is no mass to repair.")
    exponent = max(0, (smallest.denominator // smallest.numerator).bit_length())
    width = _MIN_WEIGHT_BITS + exponent
    if width > _MAX_WEIGHT_BITS:
        raise NotCertified(
            f"Masses as small as 2^-{exponent} need weights of more than {_MAX_WEIGHT_BITS} bits."
        )
    return [max(0, int(value * (1 << width))) for value in values]


def compute_exact_loss(mechanism: AdditiveNoise, losses: Any) -> Fraction:
    """Compute Σ f(η) loss(η) exactly. A float counts as its exact binary value.

    Args:
        mechanism: Noise on a group of N elements.
        losses: Losses. Shape (N,), or (answers, N) for the largest sum of any answer.
    """
    table = np.asarray(losses, dtype=np.float64)
    rows = table
    if table.ndim != 2:
        rows = table[None, :]
    return max(mechanism.masses.mean([*map(Fraction, row.tolist())]) for row in rows)


def bound_inverse_exponential(epsilon: Fraction, bits: int = _RATIO_BITS) -> Fraction:
    """Return a rational slightly above e^-ε.

    Masses that fall by at most this factor stay within the budget.

    Args:
        epsilon: ε > 0.
        bits: Binary digits of the result, to which 2ε digits are added.
    """
    places = bits + int(2 * epsilon)
    _, upper = exp_bounds(-epsilon, places)
    return Fraction(min(upper, (1 << places) - 1), 1 << places)


def build_staircase_law(ratio: Fraction, reach: int, inner: int) -> IntegerLaw:
    """Build staircase noise on the integers, which is purely private at ε = ln 1/ratio.

    f(η) ∝ 1 for |η| < inner, and ratio^j for inner + (j - 1) reach <= |η| < inner + j reach.

    Args:
        ratio: Ratio of consecutive steps, in (0, 1).
        reach: Width of a step, in integers.
        inner: Number of integers >= 0 on the top step, which is about half its width.
    """
    side_weights = [ratio] * reach
    weights = [*side_weights, *[ONE] * (2 * inner - 1), *side_weights]
    return IntegerLaw(1 - inner - reach, weights, reach, ratio)


def repair_line_noise(mechanism: Noise, claim: Claim) -> tuple[Noise, Fraction]:
    """Repair noise on the integers or the reals until a claim is proven.

    Args:
        mechanism: Additive noise on the integers or the reals.
        claim: Notion with exact parameters, which the repaired mechanism must satisfy.

    Returns:
        The repaired mechanism, and an upper bound on the share of its mass that moved.

    Raises:
        NotCertified: No repair is found.
    """
    epsilon = claim.values.get("epsilon")
    reach = mechanism.reach
    if not isinstance(epsilon, Fraction) or not epsilon:
        raise NotCertified(
            "The noise is not private, and it can only be repaired for one epsilon > 0 for all "
            "differences."
        )
    noise = mechanism.noise
    if not noise.ratio and claim.values.get("delta"):
        with suppress(NotCertified):
            half_budget_ratio = bound_inverse_exponential(epsilon / 2)
            private_law = build_staircase_law(half_budget_ratio, reach, inner=1)
            return mix_line_noise(
                mechanism,
                private_law,
                is_accepted=lambda candidate: provably_satisfies_claim(candidate, claim),
                max_exponent=_MAX_LINE_EXPONENT,
            )
    # Raised weights are rounded up to integers. The scale keeps this rounding small.
    scaled_weights = [weight << _RATIO_BITS for weight in noise.weights]
    ratio = bound_inverse_exponential(epsilon)
    repaired_law = raise_law_to_ratio(noise.first, scaled_weights, reach, ratio)
    candidate = mechanism.with_noise(repaired_law)
    if not provably_satisfies_claim(candidate, claim):
        raise NotCertified("The noise is not private and could not be repaired.")
    weights_before = noise.weights_between(repaired_law.first, repaired_law.last)
    weights_after = repaired_law.weights_between(repaired_law.first, repaired_law.last)
    moved_mass = ZERO
    for before, after in zip(weights_before, weights_after, strict=True):
        moved_mass += abs(before / noise.total - after / repaired_law.total)
    # Mass that moves changes two sums: it is missing at one integer and added at another.
    return candidate, moved_mass / 2


def mix_line_noise(
    mechanism: Noise,
    private_law: IntegerLaw,
    is_accepted: Callable[[Noise], bool],
    max_exponent: int,
) -> tuple[Noise, Fraction]:
    """Mix noise without tails with a private law, by the smallest share that is accepted.

    An atom of the noise at 0 is preserved separately.

    Args:
        mechanism: Noise without tails.
        private_law: A private law on the same integers or cells.
        is_accepted: Decides whether a mixture is private enough.
        max_exponent: Shares above 2^-max_exponent are tried.

    Returns:
        The mixture, and the share of the private law.

    Raises:
        NotCertified: No mixture is accepted.
    """
    cells = mechanism.cells
    total = mechanism.total
    padding = 0
    if private_law.ratio:
        padding = private_law.period
    low = min(cells.first - padding, private_law.first)
    high = max(cells.last + padding, private_law.last)
    masses = [
        *zip(cells.weights_between(low, high), private_law.weights_between(low, high), strict=True)
    ]

    def mix(share: Fraction) -> Noise | None:
        """Return the mixture with a share of the private law, or None if it is refused."""
        weights = []
        for weight, private_weight in masses:
            private_part = share * private_weight / private_law.total
            weights.append((1 - share) * weight / total + private_part)
        law = IntegerLaw(low, weights, private_law.period, private_law.ratio)
        atom = (1 - share) * mechanism.atom / total
        candidate: Any = mechanism.with_noise(law)
        if atom:
            candidate = replace(candidate, atom=atom / (1 - atom) * law.total)
        return candidate if is_accepted(candidate) else None

    return find_least_share(mix, max_exponent)
