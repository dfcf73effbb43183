"""Every mechanism as an OpenDP measurement (extra "opendp"), and as dp_accounting's privacy loss (extra "accounting").

What is published is drawn exactly. The privacy map is the exact audit over all inputs at most so far apart (`within`
of the mechanism), whatever relation it was designed for. An input outside of those there are is moved to the nearest,
which never moves two apart:

    mechanism                                input              distance
    noise on integers, rows of integers in a row   integer      |x - x'|
    noise on vectors                         list of integers   Σ |x_i - x'_i|
    mechanisms on real inputs, real noise    float              |x - x'|; of a quantizer every two are neighbours
    other channels, randomized response      one of the inputs  0, 1 where every two are neighbours; else steps between
                                                                neighbours

    measure "max_divergence"                  d -> pure ε, rounded up; inf where a zero mass can be reached
    measure "approximate"                     d -> (ε, δ): the given ε with the exact DP δ at it, rounded up
    measure "zero_concentrated_divergence"    d -> ρ = ε²/2 for the pure ε (Bun and Steinke, 2016)
    measure "renyi_divergence"                d -> (α -> D_α), enclosed in ball arithmetic and rounded up, α > 1
    measure "privacy_loss_distribution"       no measurement: dp_accounting's object of that name, for the mechanism's
                                              own neighbours, every rounding to the safe side (`loss_law`)

User-defined measurements need OpenDP's features "contrib" and "honest-but-curious"; enabling them is the caller's word.
The other way: `Channel.from_privacy_loss` reads dp_accounting's object; an OpenDP measurement has no law that could be
read, but its map is a budget, such as `wb.design(question, epsilon=theirs.map(1))`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from workbench.errors import InvalidRequest, WorkbenchError, must
from workbench.exact.numbers import Real, read_positive, round_up
from workbench.exact.random_source import Source
from workbench.io.extras import require_extra
from workbench.mechanisms.mechanism import Distances, Mechanism, as_mechanism
from workbench.privacy.audit import Privacy, audit
from workbench.privacy.dominating_pair import compute_dominating_pair
from workbench.privacy.loss_law import LossLaw

MEASURES = ("max_divergence", "approximate", "zero_concentrated_divergence", "renyi_divergence")
LOSS_DISTRIBUTION = "privacy_loss_distribution"
_INTERVAL = Fraction(1, 10_000)  # of dp_accounting's losses


def measurement(
    mechanism: Any, measure: str = "max_divergence", *, epsilon: Real | None = None
) -> Any:
    """The OpenDP measurement of a mechanism, or the PrivacyLossDistribution of dp_accounting.

        >>> import workbench as wb
        >>> noise = wb.AdditiveNoise(wb.ModuloNoise(n=2, max_shift=1), [2, 1, 1])
        >>> losses = wb.measurement(noise, "privacy_loss_distribution")           # doctest: +SKIP
        >>> losses.self_compose(3).get_delta_for_epsilon(1)                       # doctest: +SKIP
        0.1977...

    mechanism: any, or a Certificate or Design of it; measure: see the module; epsilon: where the exact δ is taken, for
    "approximate" only.

    Raises InvalidRequest; NotInstalled without the extra, WorkbenchError with OpenDP's features not enabled.
    """
    subject = as_mechanism(mechanism)
    InvalidRequest.check_choice((*MEASURES, LOSS_DISTRIBUTION), "measure", measure)
    if (epsilon is None) == (measure == "approximate"):
        raise InvalidRequest("epsilon must be given with the measure approximate, and only there.")
    if measure == LOSS_DISTRIBUTION:
        return _build_loss_distribution(subject)
    at = None if epsilon is None else read_positive(epsilon, "epsilon", or_zero=True)
    distances = Distances.from_mechanism(subject)
    require_extra("opendp", "Exporting")
    import opendp.prelude as dp

    measures = {
        "max_divergence": dp.max_divergence,
        "approximate": lambda: dp.approximate(dp.max_divergence()),
        "zero_concentrated_divergence": dp.zero_concentrated_divergence,
        "renyi_divergence": dp.renyi_divergence,
    }
    try:
        return dp.m.make_user_measurement(
            *_build_input_domain(distances, dp),
            measures[measure](),
            lambda x: subject.draw(distances.nearest_input(x), 1, Source(None)).tolist()[0],
            _build_privacy_map(subject, distances.max_distance, measure, at),
            TO=_get_output_type(subject, distances.max_distance),
        )
    except dp.OpenDPException as error:
        if "honest-but-curious" in str(error) or "contrib" in str(error):
            raise WorkbenchError(
                'OpenDP wants your word: opendp.prelude.enable_features("contrib", "honest-but-curious").'
            ) from None
        raise


def _build_loss_distribution(mechanism: Mechanism) -> Any:
    if mechanism.is_one_sided:
        must(
            "mechanism",
            "one of neighbours in both orders, as such losses are",
            "one side of each pair",
        )
    require_extra("accounting", "Exporting")
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    pair, interval = compute_dominating_pair(mechanism), float(_INTERVAL)
    law = LossLaw.from_laws(pair.p, pair.q, Fraction(interval), is_upper=True)
    unit = 1 << law.bits
    masses = {
        law.first + k: round_up(Fraction(int(m), unit))
        for k, m in enumerate(law.masses.coeffs())
        if m
    }
    infinite = round_up(Fraction(law.infinite, unit))
    return PrivacyLossDistribution.create_from_rounded_probability(masses, infinite, interval)


def _build_input_domain(distances: Distances, dp: Any) -> tuple[Any, Any]:
    """(domain, metric) of the inputs."""
    if distances.kind == "listed":
        domain = dp.user_domain(
            f"one of {len(distances.inputs)} inputs", lambda x: x in distances.inputs
        )
        return domain, dp.discrete_distance() if distances.max_distance == 1 else dp.user_distance(
            "steps of neighbours"
        )
    number = (
        dp.atom_domain(T="f64", nan=False) if distances.kind == "real" else dp.atom_domain(T="i32")
    )
    if distances.kind == "vector":
        return dp.vector_domain(number, size=len(distances.coordinate_ranges)), dp.l1_distance(
            T="i32"
        )
    return number, dp.absolute_distance(T="f64" if distances.kind == "real" else "i32")


def _get_output_type(mechanism: Mechanism, farthest: float) -> str:
    """The type of what is published, as OpenDP calls it."""
    outputs = np.asarray(mechanism.outputs)
    whole = "i64" if farthest == math.inf else "i32"
    name = {"i": whole, "f": "f64"}.get(outputs.dtype.kind, "ExtrinsicObject")
    return name if outputs.ndim == 1 else f"Vec<{name}>"


def _build_privacy_map(
    mechanism: Any, farthest: float, measure: str, epsilon: Fraction | None
) -> Callable[[Any], Any]:
    @lru_cache(maxsize=256)
    def audited(distance: Any) -> Privacy:
        return audit(mechanism.with_max_distance(distance), 0 if epsilon is None else epsilon)

    def mapped(d_in: Any) -> Any:
        distance = min(d_in, farthest)
        if distance < 0:
            must("d_in", "a number >= 0", d_in)
        pure = audited(distance).pure_epsilon if distance else 0.0
        if measure == "max_divergence":
            return pure
        if measure == "approximate":
            assert epsilon is not None
            return (
                (round_up(epsilon), min(1.0, audited(distance).dp_delta.upper))
                if distance
                else (0.0, 0.0)
            )
        if measure == "zero_concentrated_divergence":
            return math.inf if pure == math.inf else round_up(Fraction(pure) ** 2 / 2)
        return lambda alpha: (
            bound_renyi_divergence(mechanism.with_max_distance(distance), alpha)
            if distance
            else 0.0
        )

    return mapped


def bound_renyi_divergence(mechanism: Mechanism, alpha: float) -> float:
    """max over differences of D_α = 1/(α-1) ln Σ P^α Q^(1-α), rounded up; inf where Q misses mass of P.

    alpha: > 1. Raises InvalidRequest.
    """
    worst = audit(mechanism, 0).worst_result("renyi", 0, alpha=alpha)
    return float(worst.measurement.divergence_upper_bound(worst.budget["alpha"]))
