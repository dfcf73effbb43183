"""What an audit would cost, counted before it starts: a hostile file may be small and still take for ever.

unit        one comparison of two short masses, about 10^-7 s
two laws    their outcomes, each 1 + bits/1024 units, and (bits/100)² for the fractions they end in
PDP on real inputs    20 m³ for every two pieces of a law on m outputs: every order in which outcomes can violate
"""

from __future__ import annotations

from collections.abc import Iterable

from workbench.errors import CorruptFile
from workbench.mechanisms.additive import AdditiveNoise
from workbench.mechanisms.masses import Masses
from workbench.mechanisms.piecewise import PiecewiseAffine
from workbench.privacy.relation import ChannelPairs

__all__ = ["LIMIT", "affordable", "cost"]

LIMIT = 200_000_000  # half a minute


def cost(mechanism: AdditiveNoise | ChannelPairs | PiecewiseAffine, notion: str | None = None) -> int:
    """The units an audit takes; notion: of a claim, where one is to be decided."""
    if isinstance(mechanism, AdditiveNoise):
        return 2 * len(mechanism.question.shifts) * _pair([mechanism.masses])
    if isinstance(mechanism, ChannelPairs):
        return len(mechanism.pairs) * _pair(mechanism.channel.rows)
    found = len(mechanism.ends) ** 2 * _pair(mechanism.ends)
    if notion == "pdp":
        found += (len(mechanism.ends) // 2) ** 2 * 20 * len(mechanism.outputs) ** 3
    return found


def _pair(laws: Iterable[Masses]) -> int:
    one = next(iter(laws := list(laws)))
    bits = max(law.total.bit_length() for law in laws)
    return len(one) * (1 + bits // 1024) + (bits // 100) ** 2


def affordable(mechanism: AdditiveNoise | ChannelPairs | PiecewiseAffine, notion: str | None = None) -> None:
    """Raise CorruptFile for an audit beyond the limit."""
    units = cost(mechanism, notion)
    if units > LIMIT:
        raise CorruptFile(f"An audit of {units} comparisons is refused; {LIMIT} are allowed.")
