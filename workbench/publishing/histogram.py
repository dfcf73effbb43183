"""Find noise for the bins of a histogram: the best certified one of several candidates.

Every bin gets independent noise of one law f. A release must be (ε, δ)-private for all shift
vectors of a person's rows (`workbench.questions.joint_query`). N is their largest L1 norm.

    candidate             f(η)                                parameter
    geometric             ∝ a^|η|                             the least a
    truncated geometric   ∝ a^|η| for |η| <= A, a = e^(-ε/N)  the least A; δ > 0
    discrete Gaussian     ∝ e^(-η²/2σ²)                       the least σ²; δ > 0
    design, scaled        ∝ g(η)^c                            the largest c <= 1; δ > 0

g is the noise that is designed for N runs of a count at (ε, δ), or any other noise of a caller.
Its privacy losses are multiplied by c until all shift vectors are private.

Every parameter is found by exact audits of all shift vectors, or by proven bounds on δ where the
privacy losses are too many (`workbench.privacy.joint_bound`). The returned law is itself proven.
Its parameter is the least one up to the tolerance of the search.

No single law is best for all shift vectors. A staircase that is best for 3 rows in one bin loses a
whole step for each of 1 + 1 + 1. A Gaussian that is best for 1 + 1 + 1 is too narrow for 3. So the
best candidate is called "best certified candidate", and is not claimed to be optimal.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

from workbench.errors import InvalidRequest, NotCertified, NotProven, must
from workbench.exact.distribution import Distribution
from workbench.exact.integer_law import IntegerLaw
from workbench.exact.numbers import (
    ONE,
    ZERO,
    Real,
    nearest_float,
    read_positive,
    read_probability,
    round_up,
)
from workbench.families.noise.published import compute_gaussian_sigma
from workbench.mechanisms.baselines.count_queries import discrete_gaussian
from workbench.mechanisms.joint_noise import ConvolutionTooLarge, JointNoise
from workbench.privacy.audit import audit
from workbench.privacy.certificate import Certificate
from workbench.privacy.joint_bound import bound_joint_delta
from workbench.publishing.pair_of_sums import fit_geometric_noise
from workbench.questions.joint_query import JointQuery
from workbench.solvers.search import bisect_integers

# Names of the kinds of noise.
GEOMETRIC = "geometric"
TRUNCATED_GEOMETRIC = "truncated geometric"
GAUSSIAN = "discrete Gaussian"
SCALED_DESIGN = "design, scaled"

_MAX_EPSILON = 300  # A larger ε of one step of L1 norm is refused. Its noise is 0 in floats.
_MAX_EVALUATIONS = 40  # A search for a parameter ends after this many proven bounds.
_PARAMETER_TOLERANCE = 1e-5  # A search ends when the parameter is known to this share.
_RATIO_DENOMINATOR = 1 << 24  # Denominator of the ratio of (truncated) geometric noise at δ > 0.
_MAX_VALUES = 4000  # Noise with more values is no candidate.
_POWER_BITS = 80  # Masses of a scaled design are rounded to this many bits.
_MAX_ENLARGEMENTS = 60  # Steps from the first parameter of a search to one that is private.
_FIRST_FACTOR = 1.02  # The first of these steps. Each further step is twice as long.
_MAX_FACTOR = 4.0  # No step is longer than this.
_MAX_EXACT_NORM = 8  # Above this N, a grid is faster than an exact audit, but for geometric noise.


@dataclass(frozen=True)
class NoiseCandidate:
    """Noise of one kind for the bins of a histogram, at its least parameter.

    Attributes:
        name: Name of the kind of noise.
        symbol: Symbol of the parameter.
        value: Value of the parameter.
        certificate: The certificate of the release with this noise.
    """

    name: str
    symbol: str
    value: float
    certificate: Certificate

    @property
    def mechanism(self) -> JointNoise:
        """Return the release."""
        mechanism = self.certificate.mechanism
        assert isinstance(mechanism, JointNoise)
        return mechanism

    @property
    def variance(self) -> Fraction:
        """Return E η² of one bin, exactly."""
        return self.mechanism.loss("squared")


@dataclass(frozen=True)
class CandidateSearch:
    """The candidates for one budget, and why other kinds of noise are missing.

    Attributes:
        candidates: Certified candidates, the smallest variance first. At least one.
        refusals: Reason by name of each kind of noise whose search failed. If geometric noise is
            one, the candidate of this name is proven for δ = 0.
    """

    candidates: list[NoiseCandidate]
    refusals: dict[str, str]


@dataclass(frozen=True)
class _Budget:
    """The relation and the budget of a search."""

    query: JointQuery
    epsilon: Fraction
    delta: Fraction

    def bound_delta(self, noise: IntegerLaw, *, on_grid: bool) -> Fraction:
        """Return δ at ε over all shift vectors: exactly, or a proven upper bound on a grid.

        Raises:
            ConvolutionTooLarge: Geometric noise has too many privacy losses for an exact audit.
            NotProven: The convolutions of other noise need too much work.
        """
        mechanism = JointNoise(self.query, noise)
        # Few losses of geometric noise differ, so the exact audit is faster than a grid.
        is_grid_faster = on_grid or self.query.max_norm > _MAX_EXACT_NORM
        if not mechanism.is_geometric and (is_grid_faster or mechanism.needs_grid):
            try:
                return bound_joint_delta(mechanism, self.epsilon, self.delta)
            except NotProven:
                if mechanism.needs_grid:
                    raise
        return audit(mechanism, self.epsilon).dp_delta.tight_enclosure()[1]

    def certify(self, name: str, symbol: str, value: float, noise: IntegerLaw) -> NoiseCandidate:
        """Certify a candidate. Raises NotCertified, NotProven."""
        mechanism = JointNoise(self.query, noise)
        record = {"noise": name, symbol: value}
        certificate = Certificate(mechanism, "dp", self.epsilon, self.delta, record=record)
        return NoiseCandidate(name, symbol, value, certificate)


def search_noise_candidates(
    query: JointQuery, epsilon: Real, delta: Real = 0, design: IntegerLaw | None = None
) -> CandidateSearch:
    """Search certified noise for a histogram.

    Args:
        query: The relation of the histogram.
        epsilon: ε > 0.
        delta: δ in [0, 1).
        design: Noise g, such as the design for N runs of a count. Its privacy losses are scaled.
            None: it is no candidate.

    Returns:
        The candidates that could be proven, and the reasons of the others. At δ = 0 only geometric
        noise is searched.

    Raises:
        InvalidRequest: If an argument is outside its range, or the query is no histogram.
    """
    exact_epsilon = read_positive(epsilon, "epsilon")
    exact_delta = read_probability(delta, "delta")
    if exact_delta and not 0 < float(exact_delta) < 1:
        rule = "0, or between 0 and 1 as a floating-point number"
        must("delta", rule, f"{nearest_float(exact_delta):g}")
    if exact_epsilon > _MAX_EPSILON * query.max_norm:
        must("epsilon", f"at most {_MAX_EPSILON * query.max_norm} for this relation", epsilon)
    if query.dimension is not None:
        raise InvalidRequest("query must be the relation of a histogram. Got a pair of sums.")
    budget = _Budget(query, exact_epsilon, exact_delta)
    # The claim δ = 0 needs no convolution, so it can always be certified.
    noise = fit_geometric_noise(query, exact_epsilon)
    pure = replace(budget, delta=ZERO).certify(GEOMETRIC, "a", float(noise.ratio), noise)
    if not exact_delta:
        return CandidateSearch([pure], {})
    searches: dict[str, Callable[[_Budget], NoiseCandidate]] = {
        GEOMETRIC: _fit_geometric,
        TRUNCATED_GEOMETRIC: _fit_truncated_geometric,
        GAUSSIAN: _fit_gaussian,
    }
    if design is not None:
        searches[SCALED_DESIGN] = lambda budget: _fit_scaled_design(budget, design)
    candidates = []
    refusals = {}
    for name, search in searches.items():
        try:
            candidates.append(search(budget))
        except (NotProven, NotCertified, ConvolutionTooLarge) as error:
            refusals[name] = str(error)
    if GEOMETRIC in refusals:
        candidates.append(pure)
    candidates.sort(key=lambda candidate: candidate.variance)
    return CandidateSearch(candidates, refusals)


def find_best_candidate(
    query: JointQuery, epsilon: Real, delta: Real = 0, design: IntegerLaw | None = None
) -> NoiseCandidate:
    """Return the certified candidate with the smallest variance. It is not claimed to be optimal.

    Args:
        query: As for `search_noise_candidates`, like the others.
        epsilon: ε > 0.
        delta: δ in [0, 1).
        design: Noise g, or None.

    Raises:
        InvalidRequest: As `search_noise_candidates`.
    """
    return search_noise_candidates(query, epsilon, delta, design).candidates[0]


# Searches.


def _find_least(
    bound_delta: Callable[[float], float], delta: float, private: float, wrong: float
) -> float:
    """Return a parameter between two others that is private, and close to the least such one.

    ln δ is interpolated in the logarithm of the parameter (Illinois method).

    Args:
        bound_delta: Maps a parameter > 0 to its proven bound on δ.
        delta: The requested δ.
        private: A parameter whose bound is at most δ.
        wrong: A parameter whose bound exceeds δ.
    """

    def excess(log_parameter: float) -> float:
        """Return ln of the bound over δ. It is at most 0 if and only if the bound is at most δ."""
        bound = bound_delta(math.exp(log_parameter))
        return math.log(max(bound, sys.float_info.min) / delta)

    good = math.log(private)
    bad = math.log(wrong)
    good_excess = excess(good)
    bad_excess = excess(bad)
    last_side = 0
    for _ in range(_MAX_EVALUATIONS):
        if abs(good - bad) <= _PARAMETER_TOLERANCE:
            break
        share = bad_excess / (bad_excess - good_excess)
        # The good end should move, too, so the share stays inside the interval.
        share = min(max(share, 0.02), 0.98)
        middle = bad + share * (good - bad)
        middle_excess = excess(middle)
        if middle_excess <= 0:
            good, good_excess = middle, middle_excess
            bad_excess *= 0.5 if last_side == 1 else 1
            last_side = 1
        else:
            bad, bad_excess = middle, middle_excess
            good_excess *= 0.5 if last_side == -1 else 1
            last_side = -1
    return math.exp(good)


def _fit_geometric(budget: _Budget) -> NoiseCandidate:
    """Find geometric noise with the least a."""
    pure_slope = float(budget.epsilon) / budget.query.max_norm

    def make_noise(slope: float) -> IntegerLaw:
        """Return the noise of a = e^-slope, rounded up."""
        ratio = Fraction(math.ceil(math.exp(-slope) * _RATIO_DENOMINATOR), _RATIO_DENOMINATOR)
        return IntegerLaw(0, [1], 1, min(ratio, 1 - Fraction(1, _RATIO_DENOMINATOR)))

    @cache
    def bound_delta(slope: float) -> float:
        return round_up(budget.bound_delta(make_noise(slope), on_grid=False))

    delta = float(budget.delta)
    wrong = 2 * pure_slope
    while bound_delta(wrong) <= delta:
        wrong *= 2
    noise = make_noise(_find_least(bound_delta, delta, pure_slope * (1 - 1e-6), wrong))
    return budget.certify(GEOMETRIC, "a", float(noise.ratio), noise)


def _fit_truncated_geometric(budget: _Budget) -> NoiseCandidate:
    """Find truncated geometric noise with the least end A, at the ratio of pure noise."""
    slope = float(budget.epsilon) / budget.query.max_norm
    ratio = Fraction(math.ceil(math.exp(-slope) * _RATIO_DENOMINATOR), _RATIO_DENOMINATOR)

    def make_noise(end: int) -> IntegerLaw:
        """Return the noise on -end..end."""
        right = [ratio**k for k in range(end + 1)]
        return IntegerLaw(-end, Distribution([*right[:0:-1], *right]))

    def is_private(end: int) -> bool:
        return budget.bound_delta(make_noise(end), on_grid=False) <= budget.delta

    # Beyond this end, the mass that any shift vector moves out of the support is below δ.
    high = math.ceil((-math.log(float(budget.delta)) + 5) / slope) + budget.query.max_norm
    if 2 * high > _MAX_VALUES or not is_private(high):
        raise NotProven("Truncated geometric noise has too many values at this budget.")
    _, least_end = bisect_integers(is_private, 0, high)
    return budget.certify(TRUNCATED_GEOMETRIC, "A", float(least_end), make_noise(least_end))


def _fit_gaussian(budget: _Budget) -> NoiseCandidate:
    """Find the discrete Gaussian with the least σ²."""

    def make_noise(variance: float) -> IntegerLaw:
        radius, law = discrete_gaussian(Fraction(variance))
        if 2 * radius > _MAX_VALUES:
            raise NotProven("The discrete Gaussian has too many values at this budget.")
        return IntegerLaw(-radius, law)

    @cache
    def bound_delta(variance: float) -> float:
        return round_up(budget.bound_delta(make_noise(variance), on_grid=True))

    # Continuous Gaussian noise needs the variance of one coordinate times the largest |v|².
    squared_norm = max(sum(part * part for part in vector) for vector in budget.query.shifts)
    start = squared_norm * compute_gaussian_sigma(budget.epsilon, budget.delta) ** 2
    variance = _find_between(bound_delta, float(budget.delta), start)
    return budget.certify(GAUSSIAN, "σ²", variance, make_noise(variance))


def _fit_scaled_design(budget: _Budget, design: IntegerLaw) -> NoiseCandidate:
    """Find the largest c <= 1 at which noise ∝ g^c is private."""
    with suppress(NotProven, NotCertified):
        return budget.certify(SCALED_DESIGN, "c", 1.0, design)

    def make_noise(stretch: float) -> IntegerLaw:
        """Return the noise of c = 1/stretch."""
        return _raise_to_power(design, 1 / stretch)

    @cache
    def bound_delta(stretch: float) -> float:
        return round_up(budget.bound_delta(make_noise(stretch), on_grid=True))

    stretch = _find_between(bound_delta, float(budget.delta), 1.0)
    return budget.certify(SCALED_DESIGN, "c", 1 / stretch, make_noise(stretch))


def _find_between(bound_delta: Callable[[float], float], delta: float, start: float) -> float:
    """Return about the least private parameter, if δ falls with it. `start` is tried first."""
    parameter = start
    factor = _FIRST_FACTOR
    is_start_private = bound_delta(parameter) <= delta
    for _ in range(_MAX_ENLARGEMENTS):
        next_parameter = parameter * factor
        if is_start_private:
            next_parameter = parameter / factor
        is_private = bound_delta(next_parameter) <= delta
        if is_private and not is_start_private:
            return _find_least(bound_delta, delta, next_parameter, parameter)
        if is_start_private and not is_private:
            return _find_least(bound_delta, delta, parameter, next_parameter)
        parameter = next_parameter
        factor = min(factor**2, _MAX_FACTOR)
    raise NotProven("No parameter was proven to be private at the budget.")


def _raise_to_power(noise: IntegerLaw, exponent: float) -> IntegerLaw:
    """Return the law ∝ f(η)^exponent, with rational masses and geometric tails."""
    largest = max(noise.weights)
    unit = 1 << _POWER_BITS
    weights = []
    for weight in noise.weights:
        if weight:
            power = math.exp(exponent * (math.log(weight) - math.log(largest)))
            weights.append(max(1, round(power * unit)))
        else:
            weights.append(0)
    ratio = ZERO
    if noise.ratio:
        power = math.exp(exponent * math.log(noise.ratio))
        ratio = min(Fraction(round(power * 2**40), 2**40), ONE - Fraction(1, 2**40))
    return IntegerLaw(noise.first, weights, noise.period, ratio)


def iter_candidate_rows(candidates: list[NoiseCandidate]) -> Iterator[tuple[str, str, float]]:
    """Yield (name, parameter, root mean squared error of a bin) of every candidate.

    Args:
        candidates: Candidates of one release.
    """
    for candidate in candidates:
        parameter = f"{candidate.symbol} = {candidate.value:.6g}"
        yield candidate.name, parameter, math.sqrt(candidate.variance)
