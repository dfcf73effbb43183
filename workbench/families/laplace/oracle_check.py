"""Theorem 8 as the judge of the search over ℓ: an ℓ whose bound on the mean length fits the bits fits them itself.

So the least ℓε is at most that of the smallest such ℓ. The theorem is about the signed Elias delta code.
"""

from __future__ import annotations

import numpy as np

from workbench.families.oracle import OracleVerdict
from workbench.mechanisms.dyadic_laplace.dyadic_law import levels_at
from workbench.mechanisms.dyadic_laplace.mean_length import DataLaw, elias_delta_bound

__all__ = ["verdict_on"]

_OCTAVES = np.arange(-30, 7.01, 0.25)  # log2 δ₀; every one that fits bounds the least ℓ from above


def verdict_on(decoder_epsilon: float, epsilon: float, bits: float, code: str, data: DataLaw) -> OracleVerdict:
    """The verdict on a least decoder ε, inf where none was found."""
    if code != "delta":
        return OracleVerdict.none("no closed form is known for the least ell; Theorem 8 is about the delta code.")
    ell, deltas, pmf = levels_at(np.exp2(_OCTAVES))
    spread = np.log1p(2 * ell * np.log(ell))  # ln(2ℓ ln ℓ + 1) >= δ₀
    size = np.log(2 * epsilon * data.mean_size + 9 / 8 * spread + 2) - (pmf * np.log(deltas)).sum(axis=1)
    fits = [value for value, z in zip(ell.tolist(), size.tolist(), strict=True) if elias_delta_bound(z) <= bits]
    if not fits:
        return OracleVerdict.none("Theorem 8 shows no ell within these bits.")
    proof = "Theorem 8: its bound on the mean length of the delta code is within the bits at this ell."
    return OracleVerdict.judge(decoder_epsilon, "Theorem 8", min(fits) * epsilon, "upper bound", proof)
