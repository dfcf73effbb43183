"""Real values in the budget table: unbiased mechanisms for x in [-1, 1], private for every two inputs.

DQL is private in proportion to |x - x'|, at most 2: its ε per unit is half the budget, and it is the decoder's that
counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from models.quantizer import smallest_reach
from workbench.families.api import design
from workbench.families.frontier_plan import Row, budget_row, design_row
from workbench.families.outcome import translated_errors
from workbench.families.quantizer.limit import mae_limit
from workbench.families.quantizer.search import best_rqm
from workbench.mechanisms.baselines.poisson_binomial import poisson_binomial
from workbench.mechanisms.dyadic_laplace.dyadic_law import levels as dql_levels
from workbench.mechanisms.dyadic_laplace.mean_length import UNIFORM, mean_bits
from workbench.mechanisms.quantization import Quantization

__all__ = ["value_rows"]

MOST_LEVELS = 16  # outputs of a designed quantizer; more bits than 4 are left unused
REACH = 20  # of a designed quantizer's outputs, in least reaches: the MAE falls slowly as they go to infinity


def value_rows(
    values: Mapping[str, Any], epsilon: Fraction, delta: Fraction, bits: Sequence[Fraction]
) -> Iterable[Row]:
    """Unbiased mechanisms for x in [-1, 1] at one ε, for every number of bits."""
    group = "unbiased, ε-LDP, mean absolute error"
    zero = Fraction(0)
    with translated_errors():
        bound = mae_limit(float(epsilon)).lower
    for size in bits:
        outputs = min(MOST_LEVELS, math.floor(2 ** float(size) + 1e-9))

        def known(mechanism: str, needs: float | None, note: str = "", size: Fraction = size) -> Row:
            return budget_row(
                "value", group, mechanism, epsilon, zero, needs, bits=float(size), loss="absolute", note=note
            )

        for method, name in (("exact", "exact quantizer"), ("mvu", "MVU")):
            note = f"{outputs} outputs within {REACH}x the least reach"
            yield _quantizer(method, outputs, epsilon, known(name, math.log2(outputs), note), bound)
        rqm = best_rqm(min(outputs, 8), epsilon)
        if rqm is not None:
            yield known("RQM", math.log2(rqm.m), f"{rqm.m} outputs") | {"objective": rqm.mae(), "bound": bound}
        pbm = poisson_binomial(outputs, epsilon=epsilon)
        note = f"{outputs} outputs; made for sums of many"
        yield known("PBM", math.log2(outputs), note) | {"objective": pbm.mae(), "bound": bound}
        dql = _best_dql(epsilon, size)
        if dql is not None:
            scale, ell, length = dql
            note = f"database ε {2 * scale:.4g}, ℓ = {ell:.4g}; needs shared randomness, bits are a mean"
            yield known("DQL", length, note) | {"objective": 1 / scale, "bound": bound}
        yield known("Laplace", None, "a real number, no bit budget holds it") | {
            "objective": 2 / float(epsilon),
            "bound": bound,
        }


def _quantizer(method: str, outputs: int, epsilon: Fraction, known: Row, bound: float) -> Row:
    reach = REACH * smallest_reach(float(epsilon), 1.0)
    row = design_row(
        lambda: design(
            Quantization(levels=outputs), epsilon=epsilon, method=method, loss="absolute", starts=2, reach=reach
        ),
        **known,
    )
    return row | ({"objective": row["mae"], "bound": bound} if "mae" in row else {})


def _best_dql(epsilon: Fraction, bits: Fraction) -> tuple[float, float, float] | None:
    """(database ε per unit, ℓ, mean bits) of the DQL with the least error whose decoder has ε/2 per unit.

    On the curve ℓ ε_db = ε/2 a larger ε_db errs less and takes more bits: a scan, refined by bisection.
    """
    budget, most = float(epsilon) / 2 * (1 - 1e-12), float(bits)

    def length(share: float) -> float:
        return mean_bits(budget * share, dql_levels(1 / share), "gamma", UNIFORM)

    shares = [k / 64 for k in range(1, 64)]
    fits = [share for share in shares if length(share) <= most]
    if not fits:
        return None
    low, high = max(fits), min(max(fits) + 1 / 64, 1 - 1e-9)
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if length(middle) <= most else (low, middle)
    return budget * low, 1 / low, length(low)
