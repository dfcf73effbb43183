"""Real values: unbiased mechanisms for x in [-1, 1] in the budget table, and for a query with real answers in a range.

Few outputs, so few bits a message; private for every two inputs. DQL is private in proportion to |x - x'|, at most 2:
its ε per unit is half the budget, and it is the decoder's that counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

from models.quantizer import smallest_reach
from solvers.search import bisect
from workbench.exact.objects import Values
from workbench.families.api import design
from workbench.families.frontier_plan import Row, budget_row, design_row
from workbench.families.outcome import translated_errors
from workbench.families.quantizer.family import FAMILY
from workbench.families.quantizer.limit import mae_limit
from workbench.families.quantizer.published import PUBLISHED, UNBIASED
from workbench.families.quantizer.search import best_rqm
from workbench.families.recommendation import Candidate, Query, RealQuery, command_line, designed, published_value
from workbench.families.requirements import is_hockey_stick
from workbench.io.files import spelled
from workbench.mechanisms.baselines.poisson_binomial import poisson_binomial
from workbench.mechanisms.dyadic_laplace.dyadic_law import levels as dql_levels
from workbench.mechanisms.dyadic_laplace.mean_length import UNIFORM, mean_bits
from workbench.mechanisms.quantization import Quantization, spelled_range

MOST_LEVELS = 16  # outputs of a designed quantizer; more bits than 4 are left unused
REACH = 20  # of a designed quantizer's outputs, in least reaches: the MAE falls slowly as they go to infinity


def value_rows(values: Values, epsilon: Fraction, delta: Fraction, bits: Sequence[Fraction]) -> Iterable[Row]:
    """Unbiased mechanisms for x in [-1, 1] at one ε, for every number of bits."""
    with translated_errors():
        bound = mae_limit(float(epsilon)).lower

    def row(size: Fraction, mechanism: str, needs: float | None, note: str, error: float | None = None) -> Row:
        group, known = "unbiased, ε-LDP, mean absolute error", {"bits": float(size), "loss": "absolute", "note": note}
        more = {} if error is None else {"objective": error, "bound": bound}
        return budget_row("value", group, mechanism, epsilon, Fraction(0), needs, **known, **more)

    for size in bits:
        outputs = min(MOST_LEVELS, math.floor(2 ** float(size) + 1e-9))
        for method, name in (("exact", "exact quantizer"), ("mvu", "MVU")):
            known = row(size, name, math.log2(outputs), f"{outputs} outputs within {REACH}x the least reach")
            reached = design_row(partial(_designed, method, outputs, epsilon), **known)
            yield reached | ({"objective": reached["mae"], "bound": bound} if "mae" in reached else {})
        rqm = best_rqm(min(outputs, 8), epsilon)
        if rqm is not None:
            yield row(size, "RQM", math.log2(rqm.m), f"{rqm.m} outputs", rqm.mae())
        pbm = poisson_binomial(outputs, epsilon=epsilon)
        yield row(size, "PBM", math.log2(outputs), f"{outputs} outputs; made for sums of many", pbm.mae())
        dql = _best_dql(epsilon, size)
        if dql is not None:
            scale, ell, length = dql
            note = f"database ε {2 * scale:.4g}, ℓ = {ell:.4g}; needs shared randomness, bits are a mean"
            yield row(size, "DQL", length, note, 1 / scale)
        yield row(size, "Laplace", None, "a real number, no bit budget holds it", 2 / float(epsilon))


def _designed(method: str, outputs: int, epsilon: Fraction) -> Any:
    reach = REACH * smallest_reach(float(epsilon))
    question = Quantization(levels=outputs)
    return design(question, epsilon=epsilon, method=method, loss="absolute", starts=2, reach=reach)


def _best_dql(epsilon: Fraction, bits: Fraction) -> tuple[float, float, float] | None:
    """(database ε per unit, ℓ, mean bits) of the DQL with the least error whose decoder has ε/2 per unit.

    On the curve ℓ ε_db = ε/2 a larger ε_db errs less and takes more bits: a scan, refined by bisection.
    """
    budget = float(epsilon) / 2 * (1 - 1e-12)

    def length(share: float) -> float:
        return mean_bits(budget * share, dql_levels(1 / share), "gamma", UNIFORM)

    def too_long(share: float) -> bool:
        return length(share) > float(bits)

    fits = [k / 64 for k in range(1, 64) if not too_long(k / 64)]
    if not fits:
        return None
    share, _ = bisect(too_long, max(fits), min(max(fits) + 1 / 64, 1 - 1e-9), turns=30)
    return budget * share, 1 / share, length(share)


def candidates(query: Query) -> Iterable[Candidate]:
    """None for finitely many answers."""
    yield Candidate("quantizer", reason="it is for real answers in a range: --range instead of --answers")


def real_candidates(query: RealQuery) -> Iterable[Candidate]:
    """Quantizers with few optimised outputs, and what is published, where every two answers are neighbours."""
    served = query.local and is_hockey_stick(query.notion) and query.uniform
    none = None if served else "it is for all of a range on which answers are uniform, under dp or pure"
    ends, loss = (query.low, query.high), query.loss
    for levels in (2, 4):
        question = Quantization(levels=levels, range=ends)
        best = partial(designed, FAMILY, question, query.time, loss=loss, epsilon=query.epsilon)
        command = None
        if served and query.max_loss is None:
            given = {"range": spelled_range(ends), "levels": levels, "loss": loss, "epsilon": spelled(query.epsilon)}
            command = command_line("design quantizer", given)
        words = f"unbiased; {levels // 2} bits a message; pure, δ unused"
        yield Candidate(f"quantizer, {levels} outputs", words, command, None if none else best, none,
                        programs=levels > 2)  # fmt: skip
    whole = replace(query, sensitivity=query.width)
    for entry in (entry for entry in PUBLISHED if entry.serves(whole)):
        unbiased = "unbiased; " if entry.name in UNBIASED else ""
        words = f"{unbiased}published ({entry.source}); a closed form in floating point, not certified"
        yield Candidate(entry.name, words, None, None if none else partial(published_value, entry, query), none)
