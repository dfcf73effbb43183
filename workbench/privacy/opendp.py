"""Additive noise on counts as an OpenDP measurement (optional extra "opendp"): chains after a count, composes.

The measurement takes any integer (unbounded domain, absolute distance), clamps it to 0..n, adds the noise modulo n + 1
with exact integer sampling, and publishes an answer in 0..n. Clamping never moves answers apart, so inputs at distance
<= d differ by a shift in ±{1..d} at most, and the privacy map is the exact audit over those, whatever relation the
mechanism was designed for:

    measure "max_divergence"                  d -> pure ε, rounded up; inf where a zero mass can be reached
    measure "approximate"                     d -> (ε, δ): the given ε with the exact DP δ at it, rounded up
    measure "zero_concentrated_divergence"    d -> ρ = ε²/2 for the pure ε (Bun and Steinke, 2016)
    measure "renyi_divergence"                d -> (α -> D_α), enclosed in ball arithmetic and rounded up, α > 1

User-defined measurements need OpenDP's features "contrib" and "honest-but-curious"; enabling them is the caller's word.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from workbench.errors import InvalidRequest, WorkbenchError
from workbench.exact.numbers import Real, positive, round_up
from workbench.io.extras import need
from workbench.mechanisms.mechanism import Mechanism
from workbench.privacy.audit import Privacy, audit

MEASURES = ("max_divergence", "approximate", "zero_concentrated_divergence", "renyi_divergence")


def measurement(mechanism: Any, measure: str = "max_divergence", *, epsilon: Real | None = None) -> Any:
    """The OpenDP measurement of additive noise on a scalar query.

    mechanism: AdditiveNoise, or a Certificate or Design of it; measure: see the module; epsilon: where the exact δ is
    taken, for "approximate" only.

    Raises InvalidRequest; NotInstalled without the extra, WorkbenchError with OpenDP's features not enabled.
    """
    noise = getattr(mechanism, "mechanism", mechanism)
    inputs = getattr(noise, "column_inputs", None)
    if inputs is None or not inputs.whole or not hasattr(noise, "within"):
        InvalidRequest.must("mechanism", "additive noise on a scalar query", repr(mechanism))
    InvalidRequest.unless_among(MEASURES, "measure", measure)
    if (epsilon is None) == (measure == "approximate"):
        raise InvalidRequest("epsilon must be given with the measure approximate, and only there.")
    at = None if epsilon is None else positive(epsilon, "epsilon", or_zero=True)
    need("opendp", "Exporting")
    import opendp.prelude as dp

    low, high = int(inputs.low), int(inputs.high)
    publish: Callable[[int], int] = getattr(
        noise, "publisher", lambda: lambda x: int(noise.publish(np.array([x]))[0])
    )()

    def release(answer: int) -> int:
        return publish(min(max(int(answer), low), high))

    measures = {
        "max_divergence": dp.max_divergence,
        "approximate": lambda: dp.approximate(dp.max_divergence()),
        "zero_concentrated_divergence": dp.zero_concentrated_divergence,
        "renyi_divergence": dp.renyi_divergence,
    }
    try:
        return dp.m.make_user_measurement(
            dp.atom_domain(T="i32"),
            dp.absolute_distance(T="i32"),
            measures[measure](),
            release,
            _privacy_map(noise, high - low, measure, at),
            TO="i32",
        )
    except dp.OpenDPException as error:
        if "honest-but-curious" in str(error) or "contrib" in str(error):
            raise WorkbenchError(
                'OpenDP wants your word: opendp.prelude.enable_features("contrib", "honest-but-curious").'
            ) from None
        raise


def _privacy_map(noise: Any, span: int, measure: str, epsilon: Fraction | None) -> Callable[[int], Any]:
    @lru_cache(maxsize=256)
    def audited(distance: int) -> Privacy:
        return audit(noise.within(distance), 0 if epsilon is None else epsilon)

    def mapped(d_in: int) -> Any:
        distance = min(int(d_in), span)
        if distance < 0:
            InvalidRequest.must("d_in", "an integer >= 0", d_in)
        pure = audited(distance).pure_epsilon if distance else 0.0
        if measure == "max_divergence":
            return pure
        if measure == "approximate":
            assert epsilon is not None
            return (round_up(epsilon), min(1.0, audited(distance).dp_delta.upper)) if distance else (0.0, 0.0)
        if measure == "zero_concentrated_divergence":
            return math.inf if pure == math.inf else round_up(Fraction(pure) ** 2 / 2)
        return lambda alpha: renyi(noise.within(distance), alpha) if distance else 0.0

    return mapped


def renyi(mechanism: Mechanism, alpha: float) -> float:
    """max over differences of D_α = 1/(α-1) ln Σ P^α Q^(1-α), rounded up; inf where Q misses mass of P.

    alpha: > 1. Raises InvalidRequest.
    """
    worst = audit(mechanism, 0).worst("renyi", 0, alpha=alpha)
    return float(worst.measured.upper(worst.values["alpha"]))
