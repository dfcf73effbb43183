"""The repair of noise on the integers and the reals: a solver's law, mixed with about the least share of noise well
within the budget with which the exact audit accepts it."""

from __future__ import annotations

import math
from dataclasses import replace

from workbench.exact.integer_law import IntegerLaw
from workbench.families.noise.bracket import LineNoise, NoiseClaimBounds
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise
from workbench.privacy.audit import provably_satisfies_claim
from workbench.privacy.repair import mix_line_noise

_LEAST = 48  # bits of the least share
_BITS = 96  # of a mass of a law whose tails are written out
_REST = 1e-27  # of a tail's mass


def repair_line_noise(mechanism: LineNoise, claim_bounds: NoiseClaimBounds) -> LineNoise:
    """What the exact audit proves, of clamped noise before it is clamped: then it holds after, as every notion of this
    family survives post-processing. Rows of clamped noise may meet a budget that the noise itself misses by its last
    digit. Raises NotCertified."""
    if _is_proven_private(mechanism, claim_bounds):
        return mechanism

    def accepted(candidate: LineNoise) -> bool:
        return _is_proven_private(candidate, claim_bounds)

    return mix_line_noise(
        _written_out(mechanism), claim_bounds.make_private_law(mechanism.reach), accepted, _LEAST
    )[0]


def _is_proven_private(mechanism: LineNoise, claim_bounds: NoiseClaimBounds) -> bool:
    """Of all shifts, the farthest first, which press most; of a law that is its own mirror image those to one side, as
    the others compare the same masses."""
    law = mechanism.cells
    even = law.first == -law.last and law.weights == law.weights[::-1]
    shifts = (s for far in range(mechanism.reach, 0, -1) for s in ((far,) if even else (far, -far)))
    if isinstance(mechanism, AdditiveIntegerNoise):
        mechanism = AdditiveIntegerNoise(replace(mechanism.question, clamp=None), mechanism.noise)
    return provably_satisfies_claim(
        mechanism, claim_bounds.claim, map(mechanism.compare_with_shift, shifts)
    )


def _written_out(mechanism: LineNoise) -> LineNoise:
    """The mechanism without tails, which are written out to where nothing is left of them."""
    law = mechanism.noise
    if not law.ratio:
        return mechanism
    blocks = math.ceil(math.log(_REST) / math.log(law.ratio))
    unit = (1 << _BITS) / law.total
    window = law.weights_between(law.first - blocks * law.period, law.last + blocks * law.period)
    weights = [max(1, round(weight * unit)) for weight in window]
    return mechanism.with_noise(IntegerLaw(law.first - blocks * law.period, weights))
