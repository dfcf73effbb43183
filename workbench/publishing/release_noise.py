"""Choose certified noise for a statistic, and publish its true value.

    statistic                    noise                                           certificate
    count                        the best noise on the integers                  of the number
    sum, mean with public n      the best noise on the reals                     of the number
    groups of a sum              the same: a person of one row is in one group   of one group
    mean with private n          geometric noise on a pair of sums               of the pair
    groups of such a mean        the same: a person of one row is in one group   of one pair
    histogram                    the best certified candidate                    of all bins

"Best" is the least expected squared or absolute loss among all noise that does not depend on the
data (`workbench.families.noise`, at δ > 0 also `workbench.publishing.two_ends`). At δ > 0 noise on
the reals is within 0.1 % of a proven lower bound, unless the time limit is reached. The description
states the bound.

Interval. A number plus noise lies within w of the true number with probability at least 95 %, from
the exact law of the noise. Both the published number and the interval are then clamped: counts at 0
and at a public n, means to [lo, hi]. This uses public numbers only. The interval of a mean with
private n is for the mean of the values after they are rounded to the grid.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from workbench.errors import InvalidRequest, NotProven, must
from workbench.exact.integer_law import IntegerLaw
from workbench.exact.numbers import ZERO
from workbench.exact.random_source import Source
from workbench.exact.time_limit import OutOfTime
from workbench.families.noise.family import FAMILY
from workbench.families.noise.request import MAX_EPSILON, MIN_EPSILON
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise
from workbench.mechanisms.joint_noise import JointNoise
from workbench.mechanisms.real_noise import AdditiveRealNoise
from workbench.pipeline.option import check_epsilon_range
from workbench.privacy.certificate import Certificate
from workbench.publishing.guarantee import (
    COVERAGE,
    bound_advantage,
    compute_coverage,
    find_noise_width,
    measure_advantage,
)
from workbench.publishing.histogram import find_best_candidate
from workbench.publishing.pair_of_sums import (
    ValueGrid,
    certify_pair,
    compute_mean_error,
    compute_mean_interval,
    compute_published_mean,
)
from workbench.publishing.sensitivity import compute_sensitivity, make_histogram_query
from workbench.publishing.statistic import COUNT, HISTOGRAM, SUM, Answer, Statistic
from workbench.publishing.two_ends import bound_loss_on_reals, find_two_ends_noise
from workbench.questions.joint_query import MAX_SHIFT_VECTORS, REPLACE
from workbench.questions.unbounded_noise import IntegerNoise, RealNoise

Interval = tuple[float, float]
_MAX_AUDITED_WEIGHTS = 200  # The attacker's guess is exact for laws of at most this many weights.
_MAX_EXACT_PERIODS = 1000  # Up to this many periods of the noise, a width is found exactly.
_MAX_DRAWN_PERIODS = 1 << 17  # Wider noise is refused: a draw would take many seconds.
DEFAULT_SECONDS = 10.0  # Default time limit of a search for noise at δ > 0.
_MAX_UNMENTIONED_GAP = 1e-6  # Noise is called best if its bound is this close. It is a share.
_REAL_GAP = "0.001"  # The search for noise on the reals at δ > 0 ends at this relative gap.
_MAX_PAIR_NORM = 2000  # A pair of sums moves by at most this many steps, so its proof stays short.
_MAX_PAIR_STEPS = 1000  # A grid for a mean has at most this many steps.
_STEP_MANTISSAS = (1, 2, 5)  # Steps of a grid are these numbers times powers of 10, if possible.


@dataclass(frozen=True)
class Published:
    """Published numbers, which may be shown to everybody.

    Attributes:
        values: One number, or one for every cell or group.
        intervals: Their 95 % intervals.
        rmse: Root mean squared error of one number. For a mean with private n it is estimated from
            the published pair.
        estimate: For a mean with private n, the estimated n and relative mean behind `rmse`, of the
            group with the largest error. None for other statistics.
    """

    values: list[float]
    intervals: list[Interval]
    rmse: float
    estimate: tuple[int, Fraction] | None = None


class ReleaseNoise(ABC):
    """Certified noise for a statistic.

    Attributes:
        certificate: The certificate.
        text: Description of the noise in a line.
    """

    certificate: Certificate
    text: str

    @property
    @abstractmethod
    def rmse(self) -> float | None:
        """Return the root mean squared error of one number, None if it depends on private n."""

    @property
    @abstractmethod
    def width(self) -> float | None:
        """Return the half width of an interval, None if it depends on private n."""

    @property
    def rounding(self) -> float:
        """Return how far rounding of the values moves a mean at most. It is 0 for other numbers."""
        return 0.0

    @property
    @abstractmethod
    def advantage(self) -> Fraction:
        """Return δ(0) of the whole release, or an upper bound."""

    @abstractmethod
    def publish(self, answer: Answer, source: Source) -> Published:
        """Add noise to the true value of the statistic.

        Args:
            answer: The true value.
            source: The source of randomness.
        """


@dataclass(frozen=True)
class NumberNoise(ReleaseNoise):
    """Noise on single numbers: a count, a sum, a mean with public n, or every bin of a histogram.

    Attributes:
        certificate: The certificate of the release.
        text: Description of the noise in a line.
        low: Published numbers are clamped at this number. None: they are not.
        high: The same at the upper end.
    """

    certificate: Certificate
    text: str
    low: Fraction | None = None
    high: Fraction | None = None

    @property
    def rmse(self) -> float:
        """Return the root mean squared error of one number."""
        mechanism: Any = self.certificate.mechanism
        return math.sqrt(mechanism.loss("squared"))

    @property
    def width(self) -> float:
        """Return the half width of an interval."""
        mechanism: Any = self.certificate.mechanism
        if isinstance(mechanism, AdditiveRealNoise):
            return bound_real_width(mechanism)
        return float(bound_width(mechanism.noise)[0])

    @property
    def advantage(self) -> Fraction:
        """Return δ(0): exactly for a short law of one number, otherwise an upper bound."""
        mechanism: Any = self.certificate.mechanism
        bound = bound_advantage(self.certificate.epsilon, self.certificate.delta or 0)
        if isinstance(mechanism, JointNoise) or len(mechanism.noise.weights) > _MAX_AUDITED_WEIGHTS:
            return bound
        return min(bound, measure_advantage(mechanism))

    def publish(self, answer: Answer, source: Source) -> Published:
        """Add independent noise to every number, and clamp the sums.

        Args:
            answer: The true value.
            source: The source of randomness.
        """
        mechanism: Any = self.certificate.mechanism
        numbers: list[Fraction]
        if isinstance(mechanism, AdditiveRealNoise):
            drawn = [mechanism.draw(value, 1, source)[0] for value in answer.values]
            numbers = [Fraction(float(number)) for number in drawn]
        else:
            noise = mechanism.noise.draw(len(answer.values), source)
            numbers = [
                value + int(eta) for value, eta in zip(answer.values, noise.tolist(), strict=True)
            ]
        width = Fraction(self.width)
        values = [self._clamp(number) for number in numbers]
        intervals = [(self._clamp(n - width), self._clamp(n + width)) for n in numbers]
        return Published(values, intervals, self.rmse)

    def _clamp(self, number: Fraction) -> float:
        """Return a number within the public ends. A whole number is an int."""
        if self.low is not None:
            number = max(number, self.low)
        if self.high is not None:
            number = min(number, self.high)
        is_integer = not isinstance(self.certificate.mechanism, AdditiveRealNoise)
        return int(number) if is_integer else float(number)


@dataclass(frozen=True)
class PairNoise(ReleaseNoise):
    """Geometric noise on the pair of sums of a mean with private n.

    Attributes:
        certificate: The certificate of the pair.
        text: Description of the noise in a line.
        grid: The grid of the values.
        expected_rows: A public guess of n. None: the error is only known after the release.
    """

    certificate: Certificate
    text: str
    grid: ValueGrid
    expected_rows: int | None

    @property
    def _noise(self) -> IntegerLaw:
        """Return the integer noise on each of the two sums, in units of the grid."""
        mechanism: Any = self.certificate.mechanism
        noise: IntegerLaw = mechanism.noise
        return noise

    @property
    def rmse(self) -> float | None:
        """Return the largest error for the expected number of rows, None if it is not given."""
        if self.expected_rows is None:
            return None
        return self._bound_error(self.expected_rows, share=None)

    @property
    def rounding(self) -> float:
        """Return half a step of the grid, to which values are rounded."""
        return float(self.grid.step) / 2

    @property
    def width(self) -> None:
        """Return None: the interval follows from the published pair."""
        return None

    @property
    def advantage(self) -> Fraction:
        """Return an upper bound on δ(0)."""
        return bound_advantage(self.certificate.epsilon)

    def publish(self, answer: Answer, source: Source) -> Published:
        """Publish the pair of every group, and its mean.

        Args:
            answer: The true pairs.
            source: The source of randomness.
        """
        values = []
        intervals = []
        estimates = []
        for pair in answer.pairs:
            first_noise, second_noise = self._noise.draw(2, source).tolist()
            first_sum, second_sum = pair
            first = first_sum + first_noise
            second = second_sum + second_noise
            values.append(float(compute_published_mean(self.grid, first, second)))
            intervals.append(compute_mean_interval(self.grid, self._noise, first, second))
            estimates.append(self._estimate(first, second))
        errors = [self._bound_error(rows, share) for rows, share in estimates]
        worst = errors.index(max(errors))
        return Published(values, intervals, errors[worst], estimates[worst])

    def _bound_error(self, rows: int, share: Fraction | None) -> float:
        """Return the error of a mean, which is never more than hi - lo.

        Args:
            rows: n, the number of rows.
            share: The relative mean in [0, 1]. None: the one with the largest error.
        """
        error = compute_mean_error(self.grid, self._noise, rows, share)
        return min(error, float(self.grid.high - self.grid.low))

    def _estimate(self, first: int, second: int) -> tuple[int, Fraction]:
        """Estimate n and the relative mean from the published pair."""
        total = first + second
        # Without a positive total, the least n and the middle of the range are assumed.
        if total <= 0:
            return 1, Fraction(1, 2)
        rows = max(1, round(Fraction(total, self.grid.span)))
        return rows, min(max(Fraction(first, total), ZERO), Fraction(1))


def choose_noise(
    statistic: Statistic,
    epsilon: Fraction,
    delta: Fraction,
    loss: str = "squared",
    expected_rows: int | None = None,
    time_limit: float | None = None,
) -> ReleaseNoise:
    """Choose certified noise for a statistic.

    Args:
        statistic: The statistic.
        epsilon: ε > 0.
        delta: δ in [0, 1).
        loss: "squared" or "absolute", the loss that noise on one number minimises.
        expected_rows: A public guess of n, for the error of a mean with private n.
        time_limit: Time limit of the search for noise at δ > 0, in seconds. If it is reached, the
            best noise so far is chosen. None: `DEFAULT_SECONDS`.

    Raises:
        InvalidRequest: There is no noise for the statistic or the budget.
    """
    limit = DEFAULT_SECONDS if time_limit is None else time_limit
    if statistic.kind == HISTOGRAM:
        query = make_histogram_query(statistic.person, one_row_per_bin=statistic.one_row_per_bin)
        candidate = find_best_candidate(query, epsilon, delta, seconds=limit)
        _refuse_wide_noise(candidate.mechanism.noise, epsilon)
        text = (
            f"{candidate.name} noise on every bin, the best of the kinds of noise that were tried"
        )
        return NumberNoise(candidate.certificate, text, low=ZERO)
    if statistic.is_pair:
        return _choose_pair_noise(statistic, epsilon, expected_rows)
    question: IntegerNoise | RealNoise
    if statistic.kind == COUNT:
        question = IntegerNoise(int(compute_sensitivity(COUNT, statistic.person)))
    else:
        public_rows = statistic.public_rows if statistic.is_public_mean else None
        question = RealNoise(
            compute_sensitivity(
                statistic.kind, statistic.person, statistic.low, statistic.high, public_rows
            )
        )
    proven = _find_closed_form(question, epsilon, delta, loss)
    if proven is None:
        try:
            proven = _design_noise(question, epsilon, delta, loss, limit)
        except (NotProven, OutOfTime):
            if not delta:
                raise
            proven = _choose_pure_noise(question, epsilon, delta, loss)
    certificate = proven.certificate
    mechanism: Any = certificate.mechanism
    _refuse_wide_noise(mechanism.noise, epsilon)
    text = proven.describe(question, loss)
    low: Fraction | None = None
    high: Fraction | None = None
    if statistic.kind == COUNT:
        low = ZERO
        if statistic.public_rows is not None and statistic.person.neighbours == REPLACE:
            high = Fraction(statistic.public_rows)
    elif statistic.kind != SUM:
        low = statistic.low
        high = statistic.high
    return NumberNoise(certificate, text, low=low, high=high)


@dataclass(frozen=True)
class _ProvenNoise:
    """Certified noise for one number, with a lower bound.

    Attributes:
        certificate: The certificate.
        loss: The expected loss of the noise.
        bound: No noise on the same numbers has a smaller expected loss at this budget.
    """

    certificate: Certificate
    loss: float
    bound: float

    @property
    def gap(self) -> float:
        """Return the share of the loss that lies above the bound."""
        return (self.loss - self.bound) / self.loss if self.loss else 0.0

    def describe(self, question: IntegerNoise | RealNoise, loss: str) -> str:
        """Describe the noise in a line, with the bound if it is not reached.

        Args:
            question: The numbers to which noise is added.
            loss: "squared" or "absolute".
        """
        place = "integers" if isinstance(question, IntegerNoise) else "reals"
        sensitivity = f"sensitivity {float(question.sensitivity):.6g}"
        if self.gap <= _MAX_UNMENTIONED_GAP:
            error = "mean squared error" if loss == "squared" else "mean absolute error"
            return (
                f"optimal noise on the {place}: the smallest {error} among all noise that does not "
                f"depend on the data. One person changes the true number by at most "
                f"{float(question.sensitivity):.6g}."
            )
        if self.bound <= 0:
            return f"noise on the {place}, {sensitivity}, the best found in the time limit"
        bound_text = f"an expected absolute error below {_round_error_down(self.bound)}"
        if loss == "squared":
            rmse_bound = _round_error_down(math.sqrt(self.bound))
            bound_text = f"a root mean squared error below {rmse_bound}"
        return f"noise on the {place}, {sensitivity}; no such noise has {bound_text}"


def _round_error_down(error: float) -> str:
    """Format a lower bound on an error with six significant digits, rounded down."""
    if not error:
        return "0"
    unit = 10.0 ** (math.floor(math.log10(error)) - 5)
    return f"{math.floor(error / unit) * unit:.6g}"


def _find_closed_form(
    question: IntegerNoise | RealNoise, epsilon: Fraction, delta: Fraction, loss: str
) -> _ProvenNoise | None:
    """Find noise at δ > 0 in closed form. None if it is too far from its lower bound, or δ = 0."""
    if not delta or (isinstance(question, IntegerNoise) and question.sensitivity != 1):
        return None
    noise = find_two_ends_noise(epsilon, delta, loss)
    if noise is None:
        return None
    mechanism: Any
    if isinstance(question, IntegerNoise):
        mechanism = AdditiveIntegerNoise(question, noise.law)
        bound = noise.bound
    else:
        # One cell has the width of the sensitivity, so only the least and the largest shift matter.
        mechanism = AdditiveRealNoise(question, steps=1, cells=noise.law)
        bound = bound_loss_on_reals(noise.bound, question.sensitivity, loss)
    certificate = Certificate(mechanism, "dp", epsilon, delta)
    proven = _ProvenNoise(certificate, float(mechanism.loss(loss)), float(bound))
    return proven if proven.gap <= float(_REAL_GAP) else None


def _choose_pure_noise(
    question: IntegerNoise | RealNoise, epsilon: Fraction, delta: Fraction, loss: str
) -> _ProvenNoise:
    """Choose the best noise at δ = 0, with a lower bound for noise at δ > 0."""
    pure = _design_noise(question, epsilon, ZERO, loss, time_limit=None)
    noise = find_two_ends_noise(epsilon, delta, loss)
    bound = ZERO
    if noise is not None:
        # Noise on the integers is noise on the reals, too, so the bound holds for both.
        bound = bound_loss_on_reals(noise.bound, Fraction(question.sensitivity), loss)
    return replace(pure, bound=float(bound))


def _design_noise(
    question: IntegerNoise | RealNoise,
    epsilon: Fraction,
    delta: Fraction,
    loss: str,
    time_limit: float | None,
) -> _ProvenNoise:
    """Design noise by staircases or linear programs. Raises InvalidRequest."""
    options: dict[str, Any] = {"notion": "pure"}
    if delta:
        options = {"notion": "dp", "delta": delta, "time_limit": time_limit}
        if isinstance(question, RealNoise):
            options["gap"] = _REAL_GAP
    request = FAMILY.make_request(question, epsilon=epsilon, loss=loss, **options)
    design = FAMILY.design_request(request)
    if design.certificate is None or design.bound is None:
        raise InvalidRequest("epsilon must be a budget for which noise can be certified.")
    return _ProvenNoise(design.certificate, float(design.objective), float(design.bound))


def choose_grid(statistic: Statistic, epsilon: Fraction) -> ValueGrid:
    """Choose the grid of the values of a mean with private n.

    The finest grid is taken whose step is 1, 2 or 5 times a power of 10, divides hi - lo, and has
    at most 1000 steps. The proof of a longer pair takes long, and so does a draw at a small ε.

    Args:
        statistic: A mean with private n.
        epsilon: ε > 0.
    """
    length = statistic.high - statistic.low
    rows = statistic.person.rows
    moved_rows = rows
    # The bounds on the number of shift vectors of `JointQuery`, solved for the steps.
    listed_steps = (MAX_SHIFT_VECTORS - 2 * rows) // (rows * (rows + 1))
    if statistic.person.neighbours == REPLACE:
        moved_rows = 2 * rows
        listed_steps = (MAX_SHIFT_VECTORS // (2 * rows + 2) - 1) // (2 * rows)
    # Noise for a norm N has about N/ε periods (`_refuse_wide_noise`). N/ε is kept below half of
    # the limit.
    norm = min(_MAX_PAIR_NORM, int(_MAX_DRAWN_PERIODS * epsilon) // 2)
    max_steps = max(1, min(_MAX_PAIR_STEPS, norm // moved_rows, listed_steps))
    exponent = math.floor(math.log10(length / max_steps))
    # The first steps may be too fine or may not divide the length, so four powers of 10 are tried.
    for power in range(exponent, exponent + 4):
        for mantissa in _STEP_MANTISSAS:
            step = mantissa * Fraction(10) ** power
            if step * max_steps >= length and not length % step:
                return ValueGrid(statistic.low, statistic.high, step)
    return ValueGrid(statistic.low, statistic.high, length / max_steps)


def _choose_pair_noise(
    statistic: Statistic, epsilon: Fraction, expected_rows: int | None
) -> PairNoise:
    """Choose the noise of a mean with private n."""
    # Exact probabilities at a huge ε have too many digits.
    check_epsilon_range(epsilon, MIN_EPSILON, MAX_EPSILON)
    grid = choose_grid(statistic, epsilon)
    certificate = certify_pair(grid, statistic.person, epsilon)
    mechanism: Any = certificate.mechanism
    _refuse_wide_noise(mechanism.noise, epsilon)
    text = (
        "geometric noise on the two sums A of (x - low) and B of (high - x). The mean is "
        "low + (high - low) A / (A + B). Values are first rounded to multiples of "
        f"{float(grid.step):g} above low."
    )
    return PairNoise(certificate, text, grid, expected_rows)


def bound_width(noise: IntegerLaw) -> tuple[int, bool]:
    """Bound the least w with P(|η| <= w) >= 95 %.

    Args:
        noise: The law of η.

    Returns:
        The bound, and whether it is the least w. It is at most about two periods larger for very
        wide noise, whose exact probabilities have too many digits.
    """
    last = max(abs(noise.first), abs(noise.last))
    if not noise.ratio:
        return find_noise_width(noise), True
    tail = float(1 - compute_coverage(noise, last))
    periods = 0
    if tail > 1 - COVERAGE:
        # Every period beyond the weights has `ratio` times the mass of the one before.
        periods = math.ceil(math.log(float(1 - COVERAGE) / tail) / math.log(noise.ratio))
    if periods <= _MAX_EXACT_PERIODS:
        return find_noise_width(noise), True
    # One period more covers the rounding of the logarithms.
    return last + noise.period * (periods + 1), False


def bound_real_width(mechanism: AdditiveRealNoise) -> float:
    """Bound the least w with P(|published - true| <= w) >= 95 %, for noise on the reals.

    The cells beyond J have a mass of at most 5 %. The mass is uniform in the cells ±J, of which a
    share may lie outside, too. Rounding to the grid adds at most half a step.

    Args:
        mechanism: The noise.
    """
    law = mechanism.noise
    cell, is_exact = bound_width(law)
    share = Fraction(1)
    if cell and is_exact:
        inner = compute_coverage(law, cell - 1)
        outer = compute_coverage(law, cell)
        share = (COVERAGE - inner) / (outer - inner)
    width = (cell - Fraction(1, 2) + share) * mechanism.width + mechanism.question.grid / 2
    return float(np.nextafter(float(width), math.inf))


def _refuse_wide_noise(noise: IntegerLaw, epsilon: Fraction) -> None:
    """Raise InvalidRequest for noise that takes too long to draw."""
    # The number of periods in a tail is geometric, with this mean. The difference is exact, because
    # a ratio close to 1 would be rounded to 1.
    periods = 1 / float(1 - noise.ratio)
    if periods > _MAX_DRAWN_PERIODS:
        min_epsilon = float(epsilon) * periods / _MAX_DRAWN_PERIODS
        rule = (
            f"at least {min_epsilon:.2g} for this statistic, as its noise is too wide to be drawn"
        )
        must("epsilon", rule, f"{float(epsilon):g}")
