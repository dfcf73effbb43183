"""Whether noise is private by itself: clamping is post-processing, of which no privacy is to come."""

from __future__ import annotations

from dataclasses import replace

from workbench.mechanisms.integer_noise import AdditiveIntegerNoise
from workbench.mechanisms.mechanism import Mechanism
from workbench.privacy.claim import Claim
from workbench.privacy.measure import holds

__all__ = ["private_unclamped"]


def private_unclamped(mechanism: Mechanism, claim: Claim) -> bool:
    """Whether a claim holds, of clamped noise before it is clamped: then it holds after, as every notion of this family
    survives post-processing. Rows of clamped noise may meet a budget that the noise itself misses by its last digit.
    Raises NotProven."""
    if isinstance(mechanism, AdditiveIntegerNoise) and mechanism.question.clamp is not None:
        mechanism = AdditiveIntegerNoise(replace(mechanism.question, clamp=None), mechanism.noise)
    return holds(mechanism, claim)
