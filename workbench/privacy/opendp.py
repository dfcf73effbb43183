"""Export mechanisms to OpenDP (extra "opendp") and to dp_accounting (extra "accounting").

Outputs are drawn exactly. The privacy map is the exact audit over all inputs within a
distance (`with_max_distance` of the mechanism), whatever neighbour relation the mechanism was
designed for. An input that the mechanism does not have is moved to the nearest one, which never
increases a distance.

    mechanism                                input              distance
    noise on integers, rows of integers      integer            |x - x'|
        in a row
    noise on vectors                         list of integers   Σ |x_i - x'_i|
    mechanisms on real inputs, real noise    float              |x - x'|; for a quantizer any two
                                                                inputs are neighbours
    other channels, randomized response      one of the inputs  0, 1 if any two inputs are
                                                                neighbours; otherwise steps between
                                                                neighbours

    measure "max_divergence"                  d -> pure ε, rounded up; inf if a zero mass can be
                                              reached
    measure "approximate"                     d -> (ε, δ): the given ε with the exact DP δ at it,
                                              rounded up
    measure "zero_concentrated_divergence"    d -> ρ = ε²/2 for the pure ε (Bun and Steinke, 2016)
    measure "renyi_divergence"                d -> (α -> D_α), enclosed in ball arithmetic and
                                              rounded up, α > 1
    measure "privacy_loss_distribution"       no measurement: the object of dp_accounting with this
                                              name, for the neighbours of the mechanism, with every
                                              rounding to the safe side (`loss_law`)

User-defined measurements need OpenDP's features "contrib" and "honest-but-curious", which the
caller must enable. In the other direction, `Channel.from_privacy_loss` reads the object of
dp_accounting. An OpenDP measurement does not expose a law, but its map is a budget, such as
`wb.design(question, epsilon=theirs.map(1))`.
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
from workbench.privacy.loss_law import PrivacyLossLaw

MEASURES = ("max_divergence", "approximate", "zero_concentrated_divergence", "renyi_divergence")
LOSS_DISTRIBUTION = "privacy_loss_distribution"
# Step of the grid of privacy losses for dp_accounting.
_PRIVACY_LOSS_STEP = Fraction(1, 10_000)
_MAX_CACHED_AUDITS = 256  # Number of distances whose audits a privacy map remembers.


def measurement(
    mechanism: Any, measure: str = "max_divergence", *, epsilon: Real | None = None
) -> Any:
    """Convert a mechanism to an OpenDP measurement, or to an object of dp_accounting.

        >>> import workbench as wb
        >>> noise = wb.AdditiveNoise(wb.ModuloNoise(n=2, max_shift=1), [2, 1, 1])
        >>> losses = wb.measurement(noise, "privacy_loss_distribution")           # doctest: +SKIP
        >>> losses.self_compose(3).get_delta_for_epsilon(1)                       # doctest: +SKIP
        0.1977...

    Args:
        mechanism: A mechanism, or a Certificate or Design of one.
        measure: Privacy measure, as in the module header.
        epsilon: ε at which the exact δ is computed. Only for the measure "approximate".

    Raises:
        InvalidRequest: An argument is wrong.
        NotInstalled: The extra is not installed.
        WorkbenchError: The features of OpenDP are not enabled.
    """
    subject = as_mechanism(mechanism)
    InvalidRequest.check_choice((*MEASURES, LOSS_DISTRIBUTION), "measure", measure)
    if (epsilon is None) == (measure == "approximate"):
        raise InvalidRequest("epsilon must be given with the measure approximate, and only there.")
    if measure == LOSS_DISTRIBUTION:
        return _build_loss_distribution(subject)
    exact_epsilon = None
    if epsilon is not None:
        exact_epsilon = read_positive(epsilon, "epsilon", or_zero=True)
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
            _build_privacy_map(subject, distances.max_distance, measure, exact_epsilon),
            TO=_get_output_type(subject, distances.max_distance),
        )
    except dp.OpenDPException as error:
        if "honest-but-curious" in str(error) or "contrib" in str(error):
            raise WorkbenchError(
                "OpenDP requires two features. Enable them with "
                'opendp.prelude.enable_features("contrib", "honest-but-curious").'
            ) from None
        raise


def _build_loss_distribution(mechanism: Mechanism) -> Any:
    """Build the PrivacyLossDistribution of dp_accounting. Raises InvalidRequest, NotInstalled."""
    if mechanism.is_one_sided:
        must(
            "mechanism",
            "one with neighbours in both orders, because dp_accounting protects both",
            "one side of each pair",
        )
    require_extra("accounting", "Exporting")
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    pair = compute_dominating_pair(mechanism)
    step = float(_PRIVACY_LOSS_STEP)
    law = PrivacyLossLaw.from_laws(pair.p, pair.q, Fraction(step), is_upper=True)
    unit = 1 << law.bits
    masses = {}
    for index, mass in enumerate(law.masses.coeffs(), law.first):
        if mass:
            masses[index] = round_up(Fraction(int(mass), unit))
    infinite_mass = round_up(Fraction(law.infinite, unit))
    return PrivacyLossDistribution.create_from_rounded_probability(masses, infinite_mass, step)


def _build_input_domain(distances: Distances, dp: Any) -> tuple[Any, Any]:
    """Return OpenDP's (domain, metric) of the inputs."""
    if distances.kind == "listed":
        name = f"one of {len(distances.inputs)} inputs"
        domain = dp.user_domain(name, lambda x: x in distances.inputs)
        if distances.max_distance == 1:
            return domain, dp.discrete_distance()
        return domain, dp.user_distance("steps of neighbours")
    if distances.kind == "real":
        return dp.atom_domain(T="f64", nan=False), dp.absolute_distance(T="f64")
    number = dp.atom_domain(T="i32")
    if distances.kind == "vector":
        size = len(distances.coordinate_ranges)
        return dp.vector_domain(number, size=size), dp.l1_distance(T="i32")
    return number, dp.absolute_distance(T="i32")


def _get_output_type(mechanism: Mechanism, max_distance: float) -> str:
    """Return OpenDP's name for the type of the published values."""
    outputs = np.asarray(mechanism.outputs)
    integer_type = "i32"
    if max_distance == math.inf:
        integer_type = "i64"
    name = {"i": integer_type, "f": "f64"}.get(outputs.dtype.kind, "ExtrinsicObject")
    if outputs.ndim == 1:
        return name
    return f"Vec<{name}>"


def _build_privacy_map(
    mechanism: Any, max_distance: float, measure: str, epsilon: Fraction | None
) -> Callable[[Any], Any]:
    """Build the map from a distance of inputs to the privacy loss of a mechanism.

    Distances above `max_distance` count as this. `measure` names the privacy loss. For the measure
    "approximate" the map returns (ε, δ) at the given ε, which is None for other measures.
    """

    @lru_cache(maxsize=_MAX_CACHED_AUDITS)
    def audit_within(distance: Any) -> Privacy:
        """Audit all inputs within a distance."""
        return audit(mechanism.with_max_distance(distance), 0 if epsilon is None else epsilon)

    def map_distance(d_in: Any) -> Any:
        """Return the privacy loss of inputs within a distance."""
        distance = min(d_in, max_distance)
        if distance < 0:
            must("d_in", "a number >= 0", d_in)
        pure_epsilon = 0.0
        if distance:
            pure_epsilon = audit_within(distance).pure_epsilon
        if measure == "max_divergence":
            return pure_epsilon
        if measure == "approximate":
            assert epsilon is not None
            if not distance:
                return 0.0, 0.0
            return round_up(epsilon), min(1.0, audit_within(distance).dp_delta.upper)
        if measure == "zero_concentrated_divergence":
            if pure_epsilon == math.inf:
                return math.inf
            return round_up(Fraction(pure_epsilon) ** 2 / 2)

        def bound_divergence(alpha: float) -> float:
            """Return D_α, rounded up."""
            if not distance:
                return 0.0
            return bound_renyi_divergence(mechanism.with_max_distance(distance), alpha)

        return bound_divergence

    return map_distance


def bound_renyi_divergence(mechanism: Mechanism, alpha: float) -> float:
    """Return the largest Rényi divergence D_α = 1/(α-1) ln Σ P^α Q^(1-α), rounded up.

    The maximum is over neighbours. It is infinity if Q misses mass of P.

    Args:
        mechanism: Mechanism with exact masses and a neighbour relation.
        alpha: Order α > 1.

    Raises:
        InvalidRequest: α is no such number.
    """
    worst = audit(mechanism, 0).worst_result("renyi", 0, alpha=alpha)
    return float(worst.measurement.divergence_upper_bound(worst.budget["alpha"]))
