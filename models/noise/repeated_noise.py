"""Find integer noise with the smallest expected loss if T runs together are (ε, δ)-private.

`optimise_losses` returns such noise, described by its privacy losses. The search is local, so no
lower bound is proven.

Notation. f is the PMF of the noise of one run, c its loss, P and Q the laws of the published number
at two neighbouring answers, E the mean under P, and (z)+ = max(0, z). A privacy loss is ln P/Q of
an outcome. δ_T is the smallest δ at which T runs together are (ε, δ)-private.

Symmetric noise of sensitivity 1 is described by its privacy losses, constant from K on, so that the
tails are geometric:

    l_k = ln f(k)/f(k+1) > 0,  k = 0..K      ln P/Q of the outcome k >= 0 is l_k,
                                             of -k <= -1 it is -l_{k-1}
    minimise  Σ f(k) c(|k|)   subject to   δ_T = E (1 - e^{ε - L_1 - ... - L_T})+  <=  δ,
                                           L_i i.i.d. losses under P

which is not convex in f. δ_T and its gradient come from one pair of fast Fourier transforms. Let A
be the sum of T - 1 privacy losses, y an outcome, and L(y) its privacy loss. Then

    W(x) = T E_A (1 - e^{ε - x - A})+        dδ_T = Σ W(L(y)) df(y) + Σ f(y) W'(L(y)) dL(y)

On the grid of privacy losses each loss is replaced by its two neighbouring grid points, with masses
that have the same sums under P and Q. This splitting can only increase δ_T, so the result is an
upper bound up to rounding. The search starts from losses l_k = scale * (k + a)^p. These contain
geometric (p = 0) and discrete Gaussian (p = 1, a = 1/2) noise. SciPy's SLSQP improves the start in
small trust regions.

For few runs the optimal sums of losses may be kinks of δ_T, which a gradient method does not find.
So there is a second candidate. Its first losses are ε/T, which add up to exactly ε in T runs; then
comes one loss between, then losses of 3ε/T. Only the last losses exceed ε and need δ. The result is
feasible, and no worse than its start.

The numbers are floats: the guarantee of mechanisms built from them is proven elsewhere, in
integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import fft
from scipy.optimize import brentq, minimize

from workbench.solvers.arrays import Pair, Positions, Vector
from workbench.solvers.search import bisect


@dataclass(frozen=True)
class RepeatedNoiseLimits:
    """The tuning numbers of the search for noise of many runs.

    Attributes:
        tail_exponent: sums over a tail omit e^-tail_exponent of its mass.
        grid_points: number of grid points of the privacy losses for the final δ_T.
        search_grid_points: number of grid points during the search.
        loss_margin: margin above ε beyond which sums of privacy losses are too rare to matter.
        max_loss: largest privacy loss that is tried; e^709 is the largest float.
        max_improved_losses: largest number of privacy losses that SLSQP improves, since its time is
            cubic in their number.
        stretch: largest factor by which losses are stretched to be feasible.
        min_trust: smallest trust region; smaller ones gain less than a millionth.
        max_runs_of_steep_end: largest number of runs T for which privacy losses of ε/T before a
            steep end may be optimal.
        unspent_delta: share of δ that the steep end leaves unspent, at a negligible loss.
        first_trust: relative size of the first trust region.
        min_gain: rounds with a smaller relative gain shrink the trust region.
        trust_divisor: a trust region is divided by this when it shrinks.
    """

    tail_exponent: float = 45.0
    grid_points: int = 1 << 17
    search_grid_points: int = 1 << 15
    loss_margin: float = 12.0
    max_loss: float = 500.0
    max_improved_losses: int = 160
    stretch: float = 1.2
    min_trust: float = 0.02
    max_runs_of_steep_end: int = 8
    unspent_delta: float = 2e-3
    first_trust: float = 0.3
    min_gain: float = 1e-5
    trust_divisor: float = 4.0


_LIMITS = RepeatedNoiseLimits()
_MIN_SQUARED_EXPONENT = 100  # Powers from this exponent on are computed by repeated squaring.
_MIN_DELTA = 1e-300  # A δ below this counts as this, so that it has a logarithm.
_BRACKET_GROWTH = 1.3  # The ends of the interval of a factor move by this ratio.
_FACTOR_PRECISION = 1e-10  # A factor is computed up to this relative error.
# The root is lowered by these multiples of its error in turn, until δ_T <= δ holds in floats.
_ROOT_MARGINS = (0, 1, 10, 10**3, 10**6, 10**8)
_SLOPE_STEP = 5e-4  # Half of the relative step of a difference quotient.
_END_PRECISION = 1e-7  # The distance at which the steep end starts is computed up to this error.
# The steep end starts before the distance at which its mass is δ/(10 T), plus this.
_END_MARGIN = 8.0
_MIN_GAUSSIAN_RUNS = 64  # From this many runs on, only nearly Gaussian starts are tried.
_FIRST_START_SIZE = 64  # A start has this many privacy losses at first.
_MIN_START_SIZE = 8  # A start keeps at least this many privacy losses.
_MIN_SCALED_MASS = 1e-12  # Smaller masses count as this in the scale of the variables.
_MAX_SLSQP_ITERATIONS = 80  # SLSQP ends after this many iterations.
_SLSQP_PRECISION = 1e-10  # SLSQP ends if the objective changes by less than this.


def noise_masses(privacy_losses: ArrayLike) -> Pair:
    """Compute the masses of noise and all its privacy losses, until the tail is negligible.

    Args:
        privacy_losses: l_0..l_K > 0, shape (K + 1,). The last one continues in the tail.

    Returns:
        f(k) and l_k for k = 0..M, each of shape (M + 1,).
    """
    first_losses = np.asarray(privacy_losses, dtype=float)
    tail_size = math.ceil(_LIMITS.tail_exponent / first_losses[-1])
    all_losses = np.concatenate([first_losses, np.full(tail_size, first_losses[-1])])
    masses = np.exp(-np.concatenate([[0.0], np.cumsum(all_losses[:-1])]))
    # The masses are in units of f(0). Those of k >= 1 occur on both sides, f(0) only once.
    return masses / (2 * masses.sum() - 1), all_losses


def _mean_and_gradient(weights: Vector, values: Vector, count: int) -> tuple[float, Vector]:
    """Compute Σ w v and its gradient in l_0..l_K, with the values v held fixed.

    The weights are w_0 = f(0), w_k = 2 f(k), which depend on the privacy losses. The gradient has
    the shape (K + 1,) = (count,).
    """
    mean = float(weights @ values)
    # Entry k is the sum over all j >= k. A larger l_k lowers the masses of all j > k.
    tail_sums = np.cumsum((weights * (values - mean))[::-1])[::-1]
    return mean, _add_up_tail(-np.append(tail_sums[1:], 0.0), count)


def _add_up_tail(gradient: Vector, count: int) -> Vector:
    """Add up the derivatives in all privacy losses of the tail, since they are one variable."""
    return np.append(gradient[: count - 1], gradient[count - 1 :].sum())


def expected_loss(privacy_losses: Vector, loss: Callable[[Vector], Vector]) -> tuple[float, Vector]:
    """Compute Σ f(k) c(|k|) and its gradient.

    Args:
        privacy_losses: l_0..l_K > 0, shape (K + 1,).
        loss: function c from an array of distances to their losses.

    Returns:
        The expected loss and its gradient in l_0..l_K, shape (K + 1,).
    """
    masses, _ = noise_masses(privacy_losses)
    weights = np.concatenate([masses[:1], 2 * masses[1:]])
    distances = np.arange(masses.size, dtype=float)
    return _mean_and_gradient(weights, loss(distances), privacy_losses.size)


class ComposedPair(NamedTuple):
    """δ_T of two laws, with the data of its gradient.

    Attributes:
        delta: δ_T.
        cells: grid cell of each privacy loss, modulo the grid, shape (outcomes,).
        shares: share of each mass that goes to the upper end of its cell, shape (outcomes,).
        slopes: derivative of each share in its privacy loss, shape (outcomes,).
        other_runs: Fourier transform (`rfft`) of the law of the sum of T - 1 privacy losses.
    """

    delta: float
    cells: Positions
    shares: Vector
    slopes: Vector
    other_runs: NDArray[np.complex128]


@dataclass(frozen=True)
class ComposedDelta:
    """δ_T as a function of the privacy losses of noise.

    For example, ComposedDelta(2, 1.0, 14.0)(l) is δ_T at ε = 1 of two runs of noise with the
    privacy losses l = (l_0, ..., l_K).

    Attributes:
        runs: number T of runs.
        epsilon: ε of the T runs together.
        reach: sums of privacy losses are resolved within ±reach.
        points: number of grid points.
    """

    runs: int
    epsilon: float
    reach: float
    points: int = _LIMITS.grid_points

    @property
    def step(self) -> float:
        """Return the step of the grid of privacy losses.

        If possible ε/T is a multiple of it, so that T privacy losses of ε/T add up to exactly ε.
        """
        min_step = 2 * self.reach / self.points
        share = self.epsilon / self.runs
        if share < min_step:
            return min_step
        return share / math.floor(share / min_step)

    @cached_property
    def _stick_transform(self) -> NDArray[np.complex128]:
        """Return the conjugate transform of (1 - e^{ε-x})+ on the circle of the grid."""
        index = np.arange(-self.points // 2, self.points // 2)
        exponents = np.minimum(0.0, self.epsilon - index * self.step)
        heights = np.maximum(0.0, -np.expm1(exponents))
        # On the circle the sums 0, 1, ... come first, then the negative ones.
        return np.conj(fft.rfft(np.roll(heights, -self.points // 2)))

    @cached_property
    def _full_stick_transform(self) -> NDArray[np.complex128]:
        """Return the same transform, weighted by how often each frequency counts."""
        # `rfft` leaves out the negative frequencies, which count as much as the positive ones. The
        # first and the last frequency occur once.
        counts = np.full(self._stick_transform.size, 2.0)
        counts[[0, -1]] = 1.0
        product: NDArray[np.complex128] = self._stick_transform * counts
        return product

    def __call__(self, privacy_losses: Vector) -> float:
        """Compute δ_T of the noise with the privacy losses l_0..l_K, shape (K + 1,)."""
        masses, all_losses = noise_masses(privacy_losses)
        return self._compose_noise(masses, all_losses).delta

    def value_and_gradient(self, privacy_losses: Vector) -> tuple[float, Vector]:
        """Compute δ_T and its gradient in l_0..l_K, shape (K + 1,).

        Args:
            privacy_losses: l_0..l_K > 0, shape (K + 1,).
        """
        masses, all_losses = noise_masses(privacy_losses)
        composed_pair = self._compose_noise(masses, all_losses)
        size = all_losses.size
        # The weight of a privacy loss is W in the header of the module, on the grid.
        spectrum = np.conj(self._stick_transform * composed_pair.other_runs)
        w_on_grid = self.runs * fft.irfft(spectrum, self.points)
        low = w_on_grid[composed_pair.cells]
        high = w_on_grid[(composed_pair.cells + 1) % self.points]
        values = (1 - composed_pair.shares) * low + composed_pair.shares * high
        rises = composed_pair.slopes * (high - low)
        weights = np.concatenate([masses[:1], 2 * masses[1:]])
        means = np.concatenate([values[:1], (values[1:size] + values[size:]) / 2])
        _, mass_gradient = _mean_and_gradient(weights, means, privacy_losses.size)
        loss_gradient = masses * rises[:size]
        loss_gradient[:-1] -= masses[1:] * rises[size:]
        return composed_pair.delta, mass_gradient + _add_up_tail(loss_gradient, privacy_losses.size)

    def _compose_noise(self, masses: Vector, all_losses: Vector) -> ComposedPair:
        """Compose the outcomes 0..M and -1..-M of symmetric noise."""
        outcome_losses = np.concatenate([all_losses, -all_losses[:-1]])
        return self.compose_pair(outcome_losses, np.concatenate([masses, masses[1:]]))

    def compose_pair(self, outcome_losses: Vector, mass: Vector) -> ComposedPair:
        """Compute δ_T of any two laws P and Q.

        Args:
            outcome_losses: privacy losses ln P/Q of the outcomes, shape (outcomes,).
            mass: masses of the outcomes under P, shape (outcomes,).
        """
        cell = np.floor(outcome_losses / self.step)
        offset = outcome_losses - cell * self.step
        unit = -math.expm1(-self.step)
        shares = np.clip(-np.expm1(-offset) / unit, 0.0, 1.0)
        slopes = np.exp(-offset) / unit
        cells = cell.astype(np.int64) % self.points
        law = np.bincount(cells, mass * (1 - shares), self.points)
        law = law + np.bincount((cells + 1) % self.points, mass * shares, self.points)
        transform = fft.rfft(law)
        other_runs = _raise_to_power(transform, self.runs - 1)
        products = self._full_stick_transform * other_runs * transform
        delta = float(products.real.sum()) / self.points
        return ComposedPair(delta, cells, shares, slopes, other_runs)


def _raise_to_power(transform: NDArray[np.complex128], exponent: int) -> NDArray[np.complex128]:
    """Return transform**exponent for an exponent >= 1.

    For a large exponent NumPy uses logarithms, which take ten times as long as repeated squaring.
    """
    if exponent < _MIN_SQUARED_EXPONENT:
        power: NDArray[np.complex128] = transform**exponent
        return power
    power = _raise_to_power(transform, exponent // 2)
    power = power * power
    if exponent % 2:
        power = power * transform
    return power


def find_largest_factor(
    composed_delta: Callable[[float], float],
    delta: float,
    start: float = 1.0,
    max_factor: float = math.inf,
) -> float:
    """Find the largest factor with δ_T <= δ.

    Args:
        composed_delta: function from a factor to δ_T, which grows with the factor.
        delta: budget δ in (0, 1).
        start: factor at which the search starts.
        max_factor: the largest factor that is tried.
    """

    @cache  # The search evaluates its ends repeatedly.
    def log_excess(factor: float) -> float:
        """Return ln δ_T - ln δ at a factor, which is at most 0 where the noise is private."""
        return math.log(max(composed_delta(factor), _MIN_DELTA)) - math.log(delta)

    low = high = start
    while log_excess(high) < 0:
        if high == max_factor:
            return high
        low = high
        high = min(max_factor, _BRACKET_GROWTH * high)
    while log_excess(low) > 0:
        high = low
        low = low / _BRACKET_GROWTH
    root = float(brentq(log_excess, low, high, xtol=_FACTOR_PRECISION * high))
    candidates = (root * (1 - k * _FACTOR_PRECISION) for k in _ROOT_MARGINS)
    return next(factor for factor in candidates if log_excess(factor) <= 0)


def log_slope(composed_delta: Callable[[float], float], factor: float = 1.0) -> float:
    """Compute d ln δ_T / d ln factor by a difference quotient.

    Args:
        composed_delta: function from a factor to δ_T.
        factor: the factor at which the slope is taken.
    """
    high = max(composed_delta(factor * (1 + _SLOPE_STEP)), _MIN_DELTA)
    low = max(composed_delta(factor * (1 - _SLOPE_STEP)), _MIN_DELTA)
    return math.log(high / low) / (2 * _SLOPE_STEP)


def _stretch_to_delta(
    composed_delta: ComposedDelta, delta: float, privacy_losses: Vector
) -> Vector:
    """Return the largest multiple of privacy losses with δ_T <= δ: the smallest such noise."""
    # A grid of small reach does not resolve larger sums. If the allowed δ is near 1, nearly every
    # noise has a smaller δ_T.
    if composed_delta.reach < composed_delta.epsilon + _LIMITS.loss_margin:
        max_loss = composed_delta.reach / composed_delta.runs
    else:
        max_loss = _LIMITS.max_loss
    max_factor = max(1.0, max_loss / float(privacy_losses.max()))
    factor = find_largest_factor(
        lambda f: composed_delta(f * privacy_losses), delta, max_factor=max_factor
    )
    return privacy_losses * factor


def optimise_losses(
    runs: int,
    epsilon: float,
    delta: float,
    loss: Callable[[Vector], Vector],
    *,
    max_rounds: int = 10,
    should_stop: Callable[[], bool] = lambda: False,
) -> Vector:
    """Find the privacy losses of the best noise for T = `runs` runs.

    The noise is feasible for `ComposedDelta`. Its expected loss is at most that of the best
    geometric and of the best discrete Gaussian noise. Wide noise, with more than
    `max_improved_losses` privacy losses, is not improved: the best start is returned.

    Args:
        runs: T >= 2.
        epsilon: ε > 0 of the T runs together.
        delta: δ of the T runs together, in (0, 1).
        loss: function c from an array of distances to their losses. It does not fall.
        max_rounds: largest number of rounds, each with one trust region.
        should_stop: called before each round; if it returns True, the best noise so far is
            returned.

    Returns:
        The privacy losses l_0..l_K, shape (K + 1,).
    """

    def mean_loss(privacy_losses: Vector) -> float:
        """Return the expected loss of noise with these privacy losses."""
        value, _ = expected_loss(privacy_losses, loss)
        return value

    max_sum = epsilon + _LIMITS.loss_margin
    search_points = _LIMITS.search_grid_points
    composed_delta = ComposedDelta(runs, epsilon, reach=max_sum, points=search_points)
    starts = (
        _make_start(composed_delta, delta, power, offset) for power, offset in _start_shapes(runs)
    )
    best = min(starts, key=mean_loss)
    best_loss = mean_loss(best)
    trust = _LIMITS.first_trust
    for _ in range(max_rounds if best.size <= _LIMITS.max_improved_losses else 0):
        if should_stop():
            break
        # The finest grid spans the sums that can occur, if they are few.
        reach = min(max_sum, (1 + trust) * _LIMITS.stretch * runs * float(best.max()))
        composed_delta = ComposedDelta(runs, epsilon, reach=reach, points=search_points)
        improved_losses = _improve(composed_delta, delta, loss, privacy_losses=best, trust=trust)
        candidate = _stretch_to_delta(composed_delta, delta, improved_losses)
        candidate_loss = mean_loss(candidate)
        gain = 1 - candidate_loss / best_loss
        if gain > 0:
            best = candidate
            best_loss = candidate_loss
        if gain < _LIMITS.min_gain:
            trust /= _LIMITS.trust_divisor
        if trust < _LIMITS.min_trust:
            break
    reach = min(max_sum, _LIMITS.stretch * runs * float(best.max()))
    best = _stretch_to_delta(ComposedDelta(runs, epsilon, reach), delta, best)
    best_loss = mean_loss(best)
    if runs <= _LIMITS.max_runs_of_steep_end and not should_stop():
        steep_end = _find_steep_end(runs, epsilon, delta * (1 - _LIMITS.unspent_delta))
        if mean_loss(steep_end) < best_loss:
            return steep_end
    return best


def _find_steep_end(runs: int, epsilon: float, delta: float) -> Vector:
    """Return privacy losses of ε/T as far as δ_T requires, then one between, then 3ε/T.

    δ_T <= δ at every later start of the steep end, so bisection finds the first one.
    """
    share = epsilon / runs
    # T losses of 3ε/T add up to 3ε.
    reach = min(epsilon + _LIMITS.loss_margin, 3 * _LIMITS.stretch * epsilon)
    composed_delta = ComposedDelta(runs, epsilon, reach)

    def losses_with_end(end: float) -> Vector:
        """Return privacy losses ε/T up to the distance `end`, then a rise to 3ε/T."""
        distance = np.arange(math.ceil(end) + 2.0) - end
        return np.asarray(share * np.clip(1 + 2 * distance, 1.0, 3.0), dtype=float)

    def is_private(end: float) -> bool:
        """Return whether T runs with the steep end at this distance have δ_T <= δ."""
        return composed_delta(losses_with_end(end)) <= delta

    max_end = math.log(10 * runs / delta) / share + _END_MARGIN
    _, end = bisect(is_private, low=0.0, high=max_end, tolerance=_END_PRECISION)
    return losses_with_end(end)


def _start_shapes(runs: int) -> list[tuple[float, float]]:
    """Return (p, a) of the starts (module header), chosen by trial: near geometric and Gaussian."""
    if runs >= _MIN_GAUSSIAN_RUNS:
        return [(0.8, 0.5), (1.0, 0.5)]
    nearly_geometric = [(0.0, 1.0), (0.01, 3.0), (0.02, 3.0), (0.03, 10.0), (0.1, 1.0), (0.2, 0.5)]
    nearly_gaussian = [(0.4, 0.5), (0.6, 0.5), (0.8, 0.5), (0.9, 0.5), (1.0, 0.5)]
    return nearly_geometric + nearly_gaussian


def _make_start(
    composed_delta: ComposedDelta,
    delta: float,
    power: float,
    offset: float,
) -> Vector:
    """Return feasible privacy losses proportional to (k + a)^p, with p = power and a = offset.

    There are as many as leave less than δ/100 of mass in the tail.
    """
    size = _FIRST_START_SIZE
    while True:
        shape = (np.arange(size) + offset) ** power
        # At a quarter of the losses the loss is ε/T.
        privacy_losses = shape * composed_delta.epsilon / (composed_delta.runs * shape[size // 4])
        privacy_losses = _stretch_to_delta(composed_delta, delta, privacy_losses)
        masses, _ = noise_masses(privacy_losses)
        is_heavy = masses * np.arange(masses.size) > delta / (100 * composed_delta.runs)
        heavy_count = int(is_heavy.sum()) + 2
        if heavy_count <= size:
            first_losses = privacy_losses[: max(heavy_count, _MIN_START_SIZE)]
            if not power:
                return first_losses  # All losses are equal, so this is the same noise.
            return _stretch_to_delta(composed_delta, delta, first_losses)
        size = 2 * size


def _improve(
    composed_delta: ComposedDelta,
    delta: float,
    loss: Callable[[Vector], Vector],
    privacy_losses: Vector,
    trust: float,
) -> Vector:
    """Minimise the logarithm of the expected loss by SLSQP under ln δ_T <= ln δ.

    Each privacy loss stays within a factor 1 ± trust. The variables are the privacy losses, scaled
    by f^(1/4).
    """
    masses, _ = noise_masses(privacy_losses)
    scale = np.maximum(masses[: privacy_losses.size], _MIN_SCALED_MASS) ** -0.25

    def objective(point: Vector) -> tuple[float, Vector]:
        """Return the logarithm of the expected loss at the scaled variables, and its gradient."""
        value, gradient = expected_loss(point * scale, loss)
        return math.log(value), gradient * scale / value

    def slack(point: Vector) -> float:
        """Return ln δ - ln δ_T, which is at least 0 where the noise is private."""
        return math.log(delta) - math.log(max(composed_delta(point * scale), _MIN_DELTA))

    def slack_gradient(point: Vector) -> Vector:
        """Return the gradient of the slack in the scaled variables."""
        value, gradient = composed_delta.value_and_gradient(point * scale)
        return -gradient * scale / max(value, _MIN_DELTA)

    from threadpoolctl import threadpool_limits  # This import is slow.

    start = privacy_losses / scale
    # The matrices are so small that threads would wait for each other.
    with threadpool_limits(1, "blas"):
        optimum = minimize(
            objective,
            start,
            jac=True,
            method="SLSQP",
            constraints=[{"type": "ineq", "fun": slack, "jac": slack_gradient}],
            bounds=[((1 - trust) * x, (1 + trust) * x) for x in start],
            options={"maxiter": _MAX_SLSQP_ITERATIONS, "ftol": _SLSQP_PRECISION},
        )
    return optimum.x * scale
