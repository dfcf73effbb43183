"""Make a solver's noise exactly private by mixing it with noise of a smaller budget.

A solver's noise exceeds its budget by rounding errors. The share of private noise in the mixture is
about the smallest for which the exact audit accepts the mixture. The private noise satisfies a
smaller budget than the requested one (`NoiseClaimBounds.make_private_law`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from workbench.exact.integer_law import IntegerLaw
from workbench.families.noise.bracket import LineNoise, NoiseClaimBounds
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise
from workbench.privacy.audit import provably_satisfies_claim
from workbench.privacy.repair import mix_line_noise

_MAX_SHARE_EXPONENT = 48  # The smallest share of private noise that is tried is 2^-48.
_MASS_BITS = 96  # Masses of a law whose tails are listed are rounded to this many bits.
_NEGLIGIBLE_TAIL = 1e-27  # A tail is listed until this share of its mass is left.


def repair_line_noise(mechanism: LineNoise, claim_bounds: NoiseClaimBounds) -> LineNoise:
    """Return noise that the exact audit proves private, mixed with private noise if needed.

    Clamped noise is audited before it is clamped. The claim then also holds after clamping, as
    every notion of this family survives post-processing. (The clamped noise alone might satisfy a
    budget that the noise misses by its last digit; it is repaired all the same.)

    Args:
        mechanism: noise that is private up to the accuracy of a solver.
        claim_bounds: the claim and its bounds.

    Returns:
        The mechanism itself if it is private, otherwise a mixture.

    Raises:
        NotCertified: no mixture is private.
    """
    if _is_proven_private(mechanism, claim_bounds):
        return mechanism

    def is_accepted(candidate: LineNoise) -> bool:
        """Return whether the exact audit accepts a mixture."""
        return _is_proven_private(candidate, claim_bounds)

    private_law = claim_bounds.make_private_law(mechanism.reach)
    listed_noise = _list_tails(mechanism)
    mixture, _ = mix_line_noise(
        listed_noise, private_law, is_accepted, max_exponent=_MAX_SHARE_EXPONENT
    )
    return mixture


def _is_proven_private(mechanism: LineNoise, claim_bounds: NoiseClaimBounds) -> bool:
    """Check by the exact audit of all shifts whether noise satisfies its claim."""
    shifts = _list_shifts(mechanism)
    if isinstance(mechanism, AdditiveIntegerNoise):
        question = replace(mechanism.question, clamp=None)
        mechanism = AdditiveIntegerNoise(question, mechanism.noise)
    return provably_satisfies_claim(
        mechanism, claim_bounds.claim, map(mechanism.compare_with_shift, shifts)
    )


def _list_shifts(mechanism: LineNoise) -> Iterator[int]:
    """List the shifts to audit. Large shifts are the most likely to fail and come first.

    Shifts to one side suffice for a symmetric law, as the others compare the same masses.
    """
    law = mechanism.cells  # An atom at 0 is not part of it. It keeps the law symmetric.
    is_symmetric = law.first == -law.last and law.weights == law.weights[::-1]
    for distance in range(mechanism.reach, 0, -1):
        yield distance
        if not is_symmetric:
            yield -distance


def _list_tails(mechanism: LineNoise) -> LineNoise:
    """Return the mechanism with its tails listed as masses, up to where they are negligible."""
    # `with_noise` makes a mechanism without an atom, so the mass of an atom must be in the law.
    law = mechanism.noise
    if not law.ratio:
        return mechanism
    blocks = math.ceil(math.log(_NEGLIGIBLE_TAIL) / math.log(law.ratio))
    unit = (1 << _MASS_BITS) / law.total
    first = law.first - blocks * law.period
    window = law.weights_between(first, law.last + blocks * law.period)
    weights = [max(1, round(weight * unit)) for weight in window]
    return mechanism.with_noise(IntegerLaw(first, weights))
