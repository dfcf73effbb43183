"""Name the bounds that a model can require of two neighbouring distributions P and Q.

Notation. m = e^ε is a ratio; δ, M and K are limits; α > 1 is the order of a Rényi divergence. All
sums are over the outcomes of P and Q. {P > m Q} is the set of outcomes where this holds.

    "hockey-stick"        Σ max(0, P - m Q) <= δ              linear
    "mass-above-ratio"    Σ P over {P > m Q} <= δ             linear, a binary for each outcome
    both, with δ = 0      P <= m Q                            linear
    "power-cone"          Σ P^α Q^(1-α) <= M                  a power cone for each outcome
    "relative-entropy"    Σ P ln(P/Q) <= K                    an exponential cone for each outcome

The last column says what the bound is in a conic program. No backend gets these cones: the models
replace them by tangents (`workbench.models.convex.tangent_program`), and a binary by a search.

A notion of privacy lists the bounds that it needs. Models and oracles do not know notions by name.

All bounds except "mass-above-ratio" are jointly convex in (P, Q).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

RatioBound: TypeAlias = Literal["hockey-stick", "mass-above-ratio"]

HOCKEY_STICK: RatioBound = "hockey-stick"
MASS_ABOVE_RATIO: RatioBound = "mass-above-ratio"
RATIO_BOUNDS: tuple[RatioBound, ...] = (HOCKEY_STICK, MASS_ABOVE_RATIO)
POWER_CONE = "power-cone"
RELATIVE_ENTROPY = "relative-entropy"


@dataclass(frozen=True)
class Bound:
    """One bound on (P, Q) in numbers.

    Attributes:
        kind: one of the constants of this module, such as HOCKEY_STICK.
        level: m of a hockey stick or a mass above a ratio, α of a power cone; unused for a relative
            entropy.
        limit: the largest allowed sum: δ, M or K.
    """

    kind: str
    level: float
    limit: float
