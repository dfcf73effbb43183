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

A search is directed by estimates of δ in floating point (`workbench.privacy.joint_estimate`). The
returned law is itself proven, by an exact audit of all shift vectors, or by bounds on δ where the
privacy losses are too many (`workbench.privacy.joint_bound`). Its parameter is the least one up to
the tolerance of the search.

One row in each of K bins is the composition of K runs of one bin at a shift of 1 (2K under
replace). So the design for N runs of a count with sensitivity 1 needs no scaling for one row in
each bin. This design is not optimal among all joint noise, and not proven optimal among independent
noise.

No single law is best for all shift vectors. A staircase that is best for three rows in one bin (a
shift of 3) loses a whole step in each of three bins with one row (three shifts of 1). A Gaussian
that is best for three shifts of 1 is too narrow for a shift of 3. So the best candidate is called
"best certified candidate", and is not claimed to be optimal.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

import numpy as np

from workbench.errors import (
    CorruptFile,
    InvalidRequest,
    NotApplicable,
    NotCertified,
    NotProven,
    must,
)
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
from workbench.exact.time_limit import OutOfTime, check_time_limit, limit_time
from workbench.families.noise.published import compute_gaussian_sigma
from workbench.mechanisms.baselines.count_queries import discrete_gaussian
from workbench.mechanisms.joint_noise import ConvolutionTooLarge, JointNoise
from workbench.privacy.certificate import Certificate, check_certificate_work
from workbench.privacy.claim import Claim
from workbench.privacy.joint_bound import bound_joint_delta
from workbench.privacy.joint_estimate import DeltaEstimator, FloatLaw, list_maximal_vectors
from workbench.publishing.pair_of_sums import fit_geometric_noise
from workbench.questions.joint_query import ROW_PER_BIN, JointQuery, ShiftVector
from workbench.questions.unbounded_noise import IntegerNoise
from workbench.solvers.search import Deadline, bisect_integers

# Names of the kinds of noise.
GEOMETRIC = "geometric"
TRUNCATED_GEOMETRIC = "truncated geometric"
GAUSSIAN = "discrete Gaussian"
SCALED_DESIGN = "design, scaled"

_MAX_EPSILON = 300  # A larger ε of one step of L1 norm is refused. Its noise is 0 in floats.
_MAX_EVALUATIONS = 60  # A search for a parameter ends after this many estimates.
_MIN_STEP_SHARE = 0.02  # A step of a search is at least this share of the interval from its ends.
_PARAMETER_TOLERANCE = 1e-9  # A search ends when the parameter is known to this share.
_DELTA_TOLERANCE = 5e-7  # The proven bound of the worst vector is this close to δ.
_MAX_CALIBRATIONS = 6  # A search is repeated at most this often for a better estimate of δ.
_MAX_CLOSE_VECTORS = 4  # Number of shift vectors that a search compares after its first estimate.
_RATIO_DENOMINATOR = 1 << 24  # Denominator of the ratio of (truncated) geometric noise at δ > 0.
_RATIO_ENLARGEMENTS = (0, 1, 4, 64)  # A ratio that is not private is enlarged by so many units.
_MAX_END_TRIALS = 4  # Number of ends of truncated geometric noise that are tried from the least on.
_GAUSSIAN_EXPONENT = 111  # The discrete Gaussian ends where its masses fall below e^-111 = 2^-160.
_MIN_DESIGN_SECONDS = 5  # A search with less time has no design, which takes about 2 s.
_MAX_VALUES = 4000  # Noise with more values is no candidate.
_POWER_BITS = 80  # Masses of a scaled design are rounded to this many bits.
_SCALED_RATIO_DENOMINATOR = 1 << 40  # Denominator of the ratio of the tails of a scaled design.
_MAX_ENLARGEMENTS = 60  # Steps from the first parameter of a search to one that is private.
_FIRST_FACTOR = 1.02  # The first of these steps. Each further step is twice as long.
_MAX_FACTOR = 4.0  # No step is longer than this.


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
        """Return the mechanism of the certificate: independent noise on every bin."""
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
    """The relation and the budget of a search.

    Attributes:
        query: The relation of the histogram, with all shift vectors.
        epsilon: ε > 0.
        delta: δ in [0, 1).
    """

    query: JointQuery
    epsilon: Fraction
    delta: Fraction

    def certify(self, name: str, symbol: str, value: float, noise: IntegerLaw) -> NoiseCandidate:
        """Certify a candidate. Raises NotCertified, NotProven.

        Args:
            name: Name of the kind of noise.
            symbol: Symbol of its parameter.
            value: Value of its parameter.
            noise: The law of the noise on one bin.
        """
        mechanism = JointNoise(self.query, noise)
        claim = Claim("dp", self.epsilon, self.delta)
        try:
            check_certificate_work(mechanism, claim, objective=None, bias=None)
        except CorruptFile as error:  # No checker would prove the saved certificate.
            raise NotProven(str(error)) from error
        record = {"noise": name, symbol: value}
        certificate = Certificate(mechanism, "dp", self.epsilon, self.delta, record=record)
        return NoiseCandidate(name, symbol, value, certificate)

    def bound_delta(self, noise: IntegerLaw, vectors: Iterable[ShiftVector]) -> float:
        """Return a proven upper bound on δ over some shift vectors, on a grid, rounded up."""
        mechanism = JointNoise(self.query, noise)
        return round_up(bound_joint_delta(mechanism, self.epsilon, self.delta, vectors))


class _Estimates:
    """Estimates of δ of one kind of noise, over the shift vectors that matter.

    All vectors are compared once. Later estimates compare those alone that were close to the worst
    one. This only directs the search, as the returned law is proven for all vectors.

    Args:
        budget: The relation and the budget.
        is_falling: Whether the laws are even and never rise with |η|.
    """

    def __init__(self, budget: _Budget, *, is_falling: bool = True) -> None:
        self._epsilon = float(budget.epsilon)
        self._delta = float(budget.delta)
        self._unit = self._epsilon / budget.query.max_norm
        self._vectors = list(budget.query.shifts)
        if is_falling:
            self._vectors = list_maximal_vectors(budget.query)
        self._has_all_vectors = True

    def estimate_deltas(self, law: FloatLaw, step: float | None = None) -> dict[ShiftVector, float]:
        """Estimate δ of every vector that matters.

        Args:
            law: The law of the noise.
            step: The step of the grid, as `DeltaEstimator` reads it.
        """
        shifts = {part for vector in self._vectors for part in vector}
        estimator = DeltaEstimator(law, shifts, self._delta, step=step, unit=self._unit)
        deltas = {vector: estimator.delta_at(vector, self._epsilon) for vector in self._vectors}
        if self._has_all_vectors:
            ranking = sorted(deltas, key=lambda vector: -deltas[vector])
            self._vectors = ranking[:_MAX_CLOSE_VECTORS]
            self._has_all_vectors = False
        return deltas

    def estimate_delta(self, law: FloatLaw, step: float | None = None) -> float:
        """Estimate the largest δ. Arguments: see `estimate_deltas`."""
        return max(self.estimate_deltas(law, step).values())

    def find_worst_vector(self, law: FloatLaw) -> ShiftVector:
        """Return the vector with the largest estimate."""
        deltas = self.estimate_deltas(law)
        return max(deltas, key=lambda vector: deltas[vector])


def search_noise_candidates(
    query: JointQuery,
    epsilon: Real,
    delta: Real = 0,
    design: IntegerLaw | None = None,
    seconds: float | None = None,
) -> CandidateSearch:
    """Search certified noise for a histogram.

    Args:
        query: The relation of the histogram.
        epsilon: ε > 0.
        delta: δ in [0, 1).
        design: Noise g, such as the design for N runs of a count. Its privacy losses are scaled.
            None: it is no candidate.
        seconds: Time limit of the search in seconds, > 0. None: no limit. If it is reached, the
            candidates found so far are returned, with pure geometric noise if there is no other.

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
    limit = None if seconds is None else float(read_positive(seconds, "seconds"))
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
    deadline = Deadline(limit)
    candidates = []
    refusals = {}
    for name, search in searches.items():
        try:
            with limit_time(deadline.remaining_seconds):
                check_time_limit()
                candidates.append(search(budget))
        except OutOfTime:
            refusals[name] = f"The time limit of {limit:g} s was reached."
        except (NotProven, NotCertified, ConvolutionTooLarge) as error:
            refusals[name] = str(error)
    if GEOMETRIC in refusals:
        candidates.append(pure)
    candidates.sort(key=lambda candidate: candidate.variance)
    return CandidateSearch(candidates, refusals)


def find_best_candidate(
    query: JointQuery,
    epsilon: Real,
    delta: Real = 0,
    design: IntegerLaw | None = None,
    seconds: float | None = None,
) -> NoiseCandidate:
    """Return the certified candidate with the smallest variance. It is not claimed to be optimal.

    Args:
        query: As for `search_noise_candidates`, like the others.
        epsilon: ε > 0.
        delta: δ in [0, 1).
        design: Noise g, or None.
        seconds: Time limit of the search, or None.

    Raises:
        InvalidRequest: As `search_noise_candidates`.
    """
    return search_noise_candidates(query, epsilon, delta, design, seconds).candidates[0]


def search_histogram_noise(
    query: JointQuery, epsilon: Real, delta: Real = 0, seconds: float | None = None
) -> CandidateSearch:
    """Search certified noise for a histogram, with the design for N runs of a count.

    N bins with one row each are N runs of one bin, moved by 1, so the design is a candidate if a
    person has at most one row in each bin. If several rows may lie in one bin, the scaled design
    was never the best candidate, so it is left out.

    Args:
        query: The relation of the histogram.
        epsilon: ε > 0.
        delta: δ in [0, 1).
        seconds: Time limit in seconds, > 0. The design is left out of a search of less than 5 s.
            None: no limit.

    Returns:
        The candidates, smallest variance first, and the reasons of the others.

    Raises:
        InvalidRequest: As `search_noise_candidates`.
    """
    is_run_per_bin = query.release == ROW_PER_BIN or query.rows == 1
    has_time = seconds is None or read_positive(seconds, "seconds") >= _MIN_DESIGN_SECONDS
    refusal = None
    noise = None
    deadline = Deadline(seconds)
    is_searched = query.dimension is None and 0 < read_probability(delta, "delta") < 1
    if is_searched and is_run_per_bin and has_time:
        try:
            noise = _design_runs(query.max_norm, epsilon, delta)
        except (NotApplicable, NotProven, NotCertified, InvalidRequest) as error:
            refusal = str(error)
    elif is_searched and is_run_per_bin:
        refusal = f"The time limit must be at least {_MIN_DESIGN_SECONDS} s for a design."
    search = search_noise_candidates(query, epsilon, delta, noise, deadline.solver_time_limit)
    if refusal is not None:
        search.refusals[SCALED_DESIGN] = refusal
    return search


def find_histogram_noise(
    query: JointQuery, epsilon: Real, delta: Real = 0, seconds: float | None = None
) -> NoiseCandidate:
    """Return the certified candidate with the smallest variance. It is not claimed to be optimal.

    Args:
        query: As for `search_histogram_noise`, like the others.
        epsilon: ε > 0.
        delta: δ in [0, 1).
        seconds: Time limit in seconds, or None.

    Raises:
        InvalidRequest: As `search_noise_candidates`.
    """
    return search_histogram_noise(query, epsilon, delta, seconds).candidates[0]


def _design_runs(runs: int, epsilon: Real, delta: Real) -> IntegerLaw:
    """Design noise of sensitivity 1 and the least variance for a number of runs."""
    # The import is slow, and most searches need no design.
    from workbench.pipeline.api import design

    result = design(IntegerNoise(1), loss="squared", epsilon=epsilon, delta=delta, runs=runs)
    noise: IntegerLaw = result.mechanism.noise
    return noise


# Searches.


def _find_least(
    estimate_delta: Callable[[float], float],
    delta: float,
    private_end: float,
    refused_end: float,
) -> float:
    """Return a private parameter between two ends, close to the border of the private ones.

    ln δ is interpolated in the logarithm of the parameter (Illinois method: if the same end moves
    twice in a row, the value at the other end is halved).

    Args:
        estimate_delta: Maps a parameter > 0 to its δ.
        delta: The requested δ.
        private_end: A parameter whose δ is at most the requested one.
        refused_end: A parameter whose δ exceeds it. It may be smaller or larger.
    """

    def excess(log_parameter: float) -> float:
        """Return ln of δ over the requested one. It is at most 0 for private parameters."""
        estimated_delta = estimate_delta(math.exp(log_parameter))
        return math.log(max(estimated_delta, sys.float_info.min) / delta)

    good = math.log(private_end)
    bad = math.log(refused_end)
    good_excess = excess(good)
    bad_excess = excess(bad)
    last_side = 0  # The end that moved last: 1 for the good end, -1 for the bad one.
    for _ in range(_MAX_EVALUATIONS):
        if abs(good - bad) <= _PARAMETER_TOLERANCE:
            break
        share = bad_excess / (bad_excess - good_excess)
        # The good end should move, too, so the share stays inside the interval.
        share = min(max(share, _MIN_STEP_SHARE), 1 - _MIN_STEP_SHARE)
        middle = bad + share * (good - bad)
        middle_excess = excess(middle)
        if middle_excess <= 0:
            good, good_excess = middle, middle_excess
            if last_side == 1:
                bad_excess *= 0.5
            last_side = 1
        else:
            bad, bad_excess = middle, middle_excess
            if last_side == -1:
                good_excess *= 0.5
            last_side = -1
    return math.exp(good)


def _round_ratio(slope: float) -> int:
    """Return e^-slope in units of 1/_RATIO_DENOMINATOR, rounded up, below 1."""
    return min(math.ceil(math.exp(-slope) * _RATIO_DENOMINATOR), _RATIO_DENOMINATOR - 1)


def _fit_geometric(budget: _Budget) -> NoiseCandidate:
    """Find geometric noise with the least a."""
    pure_slope = float(budget.epsilon) / budget.query.max_norm
    estimates = _Estimates(budget)

    @cache
    def estimate_delta(slope: float) -> float:
        """Estimate δ of geometric noise with a = e^-slope. A larger slope is less noise.

        All privacy losses are multiples of the slope, so a grid of this step is exact.
        """
        law = FloatLaw(first=0, log_weights=np.zeros(1), period=1, log_ratio=-slope)
        return estimates.estimate_delta(law, step=slope)

    delta = float(budget.delta)
    refused_slope = 2 * pure_slope
    while estimate_delta(refused_slope) <= delta:
        refused_slope *= 2
    private_slope = pure_slope * (1 - 1e-6)  # Noise at this slope is private even at δ = 0.
    slope = _find_least(estimate_delta, delta, private_slope, refused_slope)
    numerator = _round_ratio(slope)
    refusal: NotCertified | NotProven | None = None
    for enlargement in _RATIO_ENLARGEMENTS:
        ratio = Fraction(min(numerator + enlargement, _RATIO_DENOMINATOR - 1), _RATIO_DENOMINATOR)
        noise = IntegerLaw(first=0, weights=[1], period=1, ratio=ratio)
        try:
            return budget.certify(GEOMETRIC, "a", float(ratio), noise)
        except (NotCertified, NotProven) as error:
            refusal = error
    assert refusal is not None
    raise refusal


def _fit_truncated_geometric(budget: _Budget) -> NoiseCandidate:
    """Find truncated geometric noise with the least end A, at the ratio of pure noise."""
    pure_slope = float(budget.epsilon) / budget.query.max_norm
    ratio = Fraction(_round_ratio(pure_slope), _RATIO_DENOMINATOR)
    slope = -math.log(ratio)
    estimates = _Estimates(budget)

    def make_noise(end: int) -> IntegerLaw:
        """Return the noise on -end..end."""
        right = [ratio**k for k in range(end + 1)]
        # The slice [:0:-1] reverses the list without its first entry, so that η = 0 occurs once.
        return IntegerLaw(first=-end, weights=Distribution([*right[:0:-1], *right]))

    def is_private(end: int) -> bool:
        """Return whether noise on -end..end is (ε, δ)-private, in floats."""
        law = FloatLaw(-end, -slope * np.abs(np.arange(-end, end + 1.0)))
        return estimates.estimate_delta(law, step=slope) <= float(budget.delta)

    # A shift vector moves at most N values out of the support. Their mass is below e^-5 δ, because
    # the weights have fallen to e^-5 δ where they begin.
    high = math.ceil((-math.log(float(budget.delta)) + 5) / slope) + budget.query.max_norm
    if 2 * high > _MAX_VALUES or not is_private(high):
        raise NotProven("Truncated geometric noise has too many values at this budget.")
    _, least_end = bisect_integers(is_private, 0, high)
    refusal: NotCertified | NotProven | None = None
    for end in range(least_end, least_end + _MAX_END_TRIALS):
        try:
            return budget.certify(TRUNCATED_GEOMETRIC, "A", float(end), make_noise(end))
        except (NotCertified, NotProven) as error:
            refusal = error
    assert refusal is not None
    raise refusal


def _fit_gaussian(budget: _Budget) -> NoiseCandidate:
    """Find the discrete Gaussian with the least σ²."""

    def find_radius(variance: float) -> int:
        """Return about the radius of the law, and refuse too many values."""
        radius = math.ceil(math.sqrt(2 * _GAUSSIAN_EXPONENT * variance))
        if 2 * radius > _MAX_VALUES:
            raise NotProven("The discrete Gaussian has too many values at this budget.")
        return radius

    def make_law(variance: float) -> FloatLaw:
        """Return the weights of discrete Gaussian noise of a variance in floats."""
        values = np.arange(-find_radius(variance), find_radius(variance) + 1.0)
        return FloatLaw(int(values[0]), -(values**2) / (2 * variance))

    def make_noise(variance: float) -> IntegerLaw:
        """Return the discrete Gaussian noise of a variance exactly."""
        radius, law = discrete_gaussian(Fraction(variance))
        return IntegerLaw(first=-radius, weights=law)

    # Continuous Gaussian noise needs the variance of one coordinate times the largest |v|².
    squared_norm = max(sum(part * part for part in vector) for vector in budget.query.shifts)
    start = squared_norm * compute_gaussian_sigma(budget.epsilon, budget.delta) ** 2
    estimates = _Estimates(budget)
    variance = _calibrate(budget, estimates, make_law, make_noise, start)
    return budget.certify(GAUSSIAN, "σ²", variance, make_noise(variance))


def _fit_scaled_design(budget: _Budget, design: IntegerLaw) -> NoiseCandidate:
    """Find the largest c <= 1 at which noise ∝ g^c is private."""
    with suppress(NotProven, NotCertified):
        return budget.certify(SCALED_DESIGN, "c", 1.0, design)

    def make_law(stretch: float) -> FloatLaw:
        """Return the noise of c = 1/stretch in floats."""
        return FloatLaw.from_law(design, 1 / stretch)

    def make_noise(stretch: float) -> IntegerLaw:
        """Return the noise of c = 1/stretch."""
        return _raise_to_power(design, 1 / stretch)

    estimates = _Estimates(budget, is_falling=design.is_even_and_falling)
    stretch = _calibrate(budget, estimates, make_law, make_noise, 1.0)
    return budget.certify(SCALED_DESIGN, "c", 1 / stretch, make_noise(stretch))


def _calibrate(
    budget: _Budget,
    estimates: _Estimates,
    make_law: Callable[[float], FloatLaw],
    make_noise: Callable[[float], IntegerLaw],
    start: float,
) -> float:
    """Return about the least parameter at which the proven bound on the worst vector is at most δ.

    Estimates give the first parameter. The next ones follow from the proven bounds of the last two,
    as ln δ is nearly linear in the logarithm of the parameter.

    Args:
        budget: The relation and the budget.
        estimates: Estimates of δ of this kind of noise.
        make_law: Maps a parameter to its law in floating point. δ falls with the parameter.
        make_noise: Maps a parameter to its exact law.
        start: The parameter that is tried first.

    Raises:
        NotProven: If no parameter was proven to be private.
    """

    @cache
    def estimate_delta(parameter: float) -> float:
        """Estimate δ of the noise with a parameter."""
        return estimates.estimate_delta(make_law(parameter))

    delta = float(budget.delta)
    # The middle of the bounds that are accepted, from (1 - _DELTA_TOLERANCE) δ to δ.
    target = delta * (1 - _DELTA_TOLERANCE / 2)
    parameter = _find_between(estimate_delta, target, start)
    least_private = math.inf
    points: list[tuple[float, float]] = []  # The logarithms of parameters and of their bounds.
    for _ in range(_MAX_CALIBRATIONS):
        worst_vector = estimates.find_worst_vector(make_law(parameter))
        bound = budget.bound_delta(make_noise(parameter), [worst_vector])
        if bound <= delta:
            least_private = min(least_private, parameter)
            if bound >= delta * (1 - _DELTA_TOLERANCE):
                break
        points.append((math.log(parameter), math.log(max(bound, sys.float_info.min))))
        if len(points) == 1:
            # An estimate differs from the bound by a factor that hardly depends on the parameter.
            factor = bound / estimate_delta(parameter)
            parameter = _find_between(estimate_delta, target / factor, parameter)
            continue
        (x, y), (last_x, last_y) = points[-2:]
        # The line through both points only leads to δ if the bound fell as the parameter rose.
        if not (last_y - y) * (last_x - x) < 0:
            break
        parameter = math.exp(last_x + (math.log(target) - last_y) * (last_x - x) / (last_y - y))
    if math.isinf(least_private):
        raise NotProven("No parameter was proven to be private at the budget.")
    return least_private


def _find_between(estimate_delta: Callable[[float], float], delta: float, start: float) -> float:
    """Return about the least private parameter, if δ falls with it.

    Parameters are enlarged or reduced from `start` until one is private and its neighbour is not.

    Args:
        estimate_delta: Maps a parameter > 0 to its δ.
        delta: The requested δ.
        start: The parameter that is tried first.

    Raises:
        NotProven: No parameter was found to be private.
    """
    parameter = start
    factor = _FIRST_FACTOR
    is_start_private = estimate_delta(parameter) <= delta
    for _ in range(_MAX_ENLARGEMENTS):
        next_parameter = parameter * factor
        if is_start_private:
            next_parameter = parameter / factor
        is_private = estimate_delta(next_parameter) <= delta
        if is_private and not is_start_private:
            return _find_least(estimate_delta, delta, next_parameter, parameter)
        if is_start_private and not is_private:
            return _find_least(estimate_delta, delta, parameter, next_parameter)
        parameter = next_parameter
        factor = min(factor**2, _MAX_FACTOR)
    raise NotProven("No parameter was found to be private at the budget.")


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
        # The ratio of tails must be below 1, also where the power is rounded to 1.
        ratio_unit = Fraction(1, _SCALED_RATIO_DENOMINATOR)
        ratio = min(round(power * _SCALED_RATIO_DENOMINATOR) * ratio_unit, ONE - ratio_unit)
    return IntegerLaw(first=noise.first, weights=weights, period=noise.period, ratio=ratio)
