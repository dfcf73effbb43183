"""What a notion measures of a mechanism, comparison by comparison, as far as it decides a claim."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from workbench.errors import InvalidRequest
from workbench.mechanisms.mechanism import Mechanism
from workbench.privacy.claim import Claim
from workbench.privacy.notions import Notion
from workbench.privacy.notions.laws import Laws
from workbench.privacy.notions.notion import Result

__all__ = ["holds", "measure", "measure_whole"]


def measure(mechanism: Mechanism, claim: Claim) -> Iterator[Result]:
    """What the notion of a claim measures, as far as it decides the claim, one comparison after the other.

    Raises InvalidRequest.
    """
    measuring = claim.notion
    whole = measure_whole(mechanism, measuring, claim.values)
    if whole is not None:
        yield Result((), whole, claim.values)
        return
    for comparison in mechanism.extremes() if claim.by_ratio else mechanism.comparisons():
        values = claim.at(comparison.label)
        yield Result(comparison.label, measuring.measure(Laws(comparison.p, comparison.q), values), values)


def measure_whole(mechanism: Mechanism, measuring: Notion, values: Mapping[str, Any]) -> Any | None:
    """What a notion measures over all pairs of real inputs at once; None where the comparisons decide it.

    Raises InvalidRequest where nothing decides it.
    """
    if mechanism.segments is None and not measuring.convex:
        raise InvalidRequest(f"The notion {measuring.name} is not decided for a law that is not affine in its input.")
    return measuring.measure_segments(mechanism.segments, values) if mechanism.segments else None


def holds(mechanism: Mechanism, claim: Claim) -> bool:
    """Whether a mechanism meets a claim, decided exactly, as far as the first comparison that does not."""
    return all(claim.notion.meets(result.measured, result.values) for result in measure(mechanism, claim))
