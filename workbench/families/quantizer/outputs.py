"""Optimise the outputs of a quantizer, or of MVU, by local searches from several starts.

`search_best_outputs` answers: at which outputs B is the optimum V(B) of a linear program (LP) of
`laws` smallest? The other functions make the outputs from which such searches start, and clean up
the outputs that they find.

Notation. Inputs are in [-1, 1]. m is the number of outputs. MVU is the mechanism of Chaudhuri et
al. 2022. It dithers inputs to n_in points, and its outputs are called its alphabet. The reach of
outputs is the size of the outermost ones. The least reach r is the smallest reach at which a
private unbiased law exists. The excess is r - 1.

Search. V(B) is piecewise smooth and not convex. Every solution of the LP also gives the slope of V.
From each start SciPy's SLSQP descends, and it is restarted where it stops. The best result of all
starts is returned. There are local optima: for m = 4, n_in = 4 and ε = 1.5 a gradient method stops
at 1.802, while the optimum is at most 1.6198. The starts therefore differ in how far and how evenly
the outputs are spread, and some are asymmetric.

Variables. Private laws exist if and only if the outermost outputs are at or beyond the least reach
r = (e^ε + 1)/(e^ε - 1) on both sides (for privacy by |x - x'|: r = 1 + 1/ε). Then the law on the
two outermost outputs, Pr[high] = (x - low)/(high - low), is private. At large ε, r is close to 1,
and the best outermost outputs exceed r by a few times the excess. For metric privacy they are often
at r itself, where the privacy constraints are tight and leave no room for the rounding of a proof.
A descent therefore uses a variable z for an outermost output r + (r - 1) e^z, which is always
beyond r. The inner outputs are variables themselves.

Rounding. At a kink of V the solver returns one of several duals, so a descent is sensitive to
rounding. The result must be the same on every machine. So V is evaluated only on a grid: outputs
are multiples of 2^-29 and z is a multiple of 2^-30. All numbers in V are the same on every machine:
they come from workbench.models.quantizer.program.compute_odds, correctly rounded exponentials and
quadrature nodes, and sums in a fixed order. The steps of SLSQP may still differ in their last
digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from functools import cache, cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from workbench.exact.objects import FloatPair, Progress
from workbench.families.quantizer.laws import LawProblem, ignore_progress
from workbench.models.quantizer.program import smallest_reach
from workbench.solvers.arrays import Pair, Positions, Vector

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult
    from threadpoolctl import ThreadpoolController

# The value of outputs at which no law is private and unbiased.
INFEASIBLE_VALUE = 1e6

# An exponential has this many digits first. With 40 digits it takes ten times as long.
_FAST_DIGITS = 25

# The value of a function, and its slope at the point.
_ValueAndSlope = tuple[float, Vector]


class DescentPoint(NamedTuple):
    """A point z (k,) of a descent and the value of the laws there."""

    value: float
    z: Vector


# Reaches of starts as multiples of the least reach, and powers by which outputs are spaced.
_START_SHAPES = (
    (1.3, 1.0),
    (1.05, 0.7),
    (1.7, 1.3),
    (1.02, 2.0),
    (2.2, 1.0),
    (1.15, 0.3),
    (1.4, 2.5),
)


# For an even number of outputs, the first positive output of a start is this share of the distance
# between two outputs away from 0 (before a power is applied). It was chosen by trial.
_FIRST_EVEN_STEP = 0.6
# The alphabet with equal distances has this multiple of the least reach.
_EQUAL_REACH_FACTOR = 1.001
_EXPONENTIAL_DIGITS = 40  # Decimal digits with which an exponential is computed before rounding.


@dataclass(frozen=True)
class DescentLimits:
    """Limits and tolerances of the descents.

    Attributes:
        output_step: the step of the grid on which outputs lie.
        z_step: the step of the grid on which the variables z lie.
        min_z: the least z; the output is then a millionth of r - 1 beyond the least reach.
        stall_window: a descent ends if this many iterations gain less than `stall_share`.
        stall_share: the smallest gain that counts, as a share of the value. A smaller gain within
            `stall_window` iterations ends a descent. A smaller gain of a whole descent ends its
            restarts.
        short_iterations: iterations of a short descent.
        value_tolerance: the change of the value at which SLSQP ends.
        default_reach_factor: outputs may reach this multiple of the least reach by default.
        room_share: found outputs are moved to at least this share of r - 1 beyond the least reach.
        unused_mass: outputs that no law draws more often than this are left out.
        continued_starts: the number of starts, the best ones, whose descents go on to the end.
    """

    output_step: float = 2.0**-29
    z_step: float = 2.0**-30
    min_z: float = -14.0
    stall_window: int = 4
    stall_share: float = 1e-9
    short_iterations: int = 25
    value_tolerance: float = 1e-12
    default_reach_factor: float = 40
    room_share: float = 4e-6
    unused_mass: float = 1e-10
    continued_starts: int = 2


_LIMITS = DescentLimits()


@dataclass(frozen=True)
class LocalOptimum:
    """The best outputs of a search.

    Attributes:
        outputs: the outputs in increasing order. Shape (m,).
        value: the value of the best laws on them.
        start_values: the value that each start reached.
        bends: inputs at which the slopes of the laws change, in increasing order. They may become
            knots of a program. Empty if they are unknown.
    """

    outputs: Vector
    value: float
    start_values: tuple[float, ...]
    bends: Vector = field(default_factory=lambda: np.zeros(0))


# Starts.


def make_spread_starts(m: int, epsilon: float, count: int) -> list[Vector]:
    """Make symmetric outputs whose reaches are 1.02 to 2.2 times the least, spaced by powers.

    Args:
        m: the number of outputs.
        epsilon: the budget ε > 0.
        count: the number of starts, at most 7.

    Returns:
        The starts, (m,) each.
    """
    least_reach = smallest_reach(epsilon)
    first_step = 1.0 if m % 2 else _FIRST_EVEN_STEP
    steps = np.arange(m // 2) + first_step
    starts = []
    for factor, power in _START_SHAPES[:count]:
        positive_half = least_reach * factor * (steps / steps[-1]) ** power
        starts.append(mirror_outputs(positive_half, m))
    return starts


def mirror_outputs(half: Vector, m: int) -> Vector:
    """Return symmetric outputs (m,), with a 0 in the middle if m is odd.

    Args:
        half: the positive outputs (m // 2,).
        m: the number of outputs.
    """
    return np.concatenate([-half[::-1], np.zeros(m % 2), half])


def make_start_alphabets(
    m: int, epsilon: float, inputs: int, starts: int, reach: float = math.inf
) -> list[Vector]:
    """Make the symmetric alphabets from which a search starts.

    The starts are spread alphabets and one with equal distances. If m >= `inputs` and both are even
    or both are odd, another start consists of the points to which inputs are dithered, with the
    ends moved beyond the least reach.

    Args:
        m: the number of outputs.
        epsilon: the budget ε > 0.
        inputs: the number of points to which inputs are dithered.
        starts: the number of spread alphabets.
        reach: the largest output allowed.

    Returns:
        The alphabets, (m,) each.
    """
    least_reach = smallest_reach(epsilon)
    alphabets = make_spread_starts(m, epsilon, starts)
    alphabets.append(least_reach * np.linspace(-_EQUAL_REACH_FACTOR, _EQUAL_REACH_FACTOR, m))
    if m >= inputs and (m - inputs) % 2 == 0:
        grid = np.linspace(-1.0, 1.0, inputs)
        # An end exceeds the least reach by the excess.
        grid[[0, -1]] = -2 * least_reach + 1, 2 * least_reach - 1
        # If there are more outputs than points, they repeat the ends.
        alphabets.append(np.pad(grid, (m - inputs) // 2, mode="edge"))
    return [np.clip(alphabet, -reach, reach) for alphabet in alphabets]


def draw_asymmetric_outputs(
    rng: np.random.Generator, m: int, reaches: FloatPair, inner_reach: float
) -> Vector:
    """Draw random outputs (m,).

    Args:
        rng: the random generator.
        m: the number of outputs.
        reaches: two reaches. The outermost outputs are drawn between them, mostly near the first.
        inner_reach: the other outputs are uniform in ±inner_reach.
    """
    first_reach, last_reach = reaches
    left_reach, right_reach = first_reach + (last_reach - first_reach) * rng.random(2) ** 3
    inner = np.sort(inner_reach * rng.uniform(-1, 1, m - 2))
    return np.concatenate([[-left_reach], inner, [right_reach]])


# Results.


def merge_close_outputs(outputs: Vector, laws: Vector, min_distance: float = 1e-6) -> Pair:
    """Merge outputs that are close to each other, and leave out outputs that are not drawn.

    Args:
        outputs: the outputs (m,).
        laws: the laws (n, m).
        min_distance: outputs that are at most this far apart are merged into their mean.

    Returns:
        The remaining outputs (k,), and the laws (n, k) with the masses of merged outputs added.
    """
    is_used = laws.max(axis=0) > _LIMITS.unused_mass
    group = np.concatenate([[0], np.cumsum(np.diff(outputs[is_used]) > min_distance)])
    centres = np.bincount(group, weights=outputs[is_used]) / np.bincount(group)
    membership = (group[:, None] == np.arange(centres.size)).astype(float)
    centres = np.where(np.abs(centres) < min_distance, 0.0, centres)
    return centres, laws[:, is_used] @ membership


def widen_outermost_outputs(outputs: Vector, problem: LawProblem, epsilon: float) -> Vector:
    """Move outermost outputs slightly beyond the least reach.

    At the least reach a law is tight at every link, which leaves a proof no room.

    Args:
        outputs: the outputs (m,).
        problem: the program of the laws.
        epsilon: the budget ε > 0.
    """
    excess = problem.compute_reach_excess(epsilon)
    min_reach = 1 + (1 + _LIMITS.room_share) * excess
    wider_outputs = outputs.copy()
    wider_outputs[0] = min(outputs[0], -min_reach)
    wider_outputs[-1] = max(outputs[-1], min_reach)
    return wider_outputs


def orient_outputs(outputs: Vector) -> Vector:
    """Return outputs or their mirror image: the one with the larger sum, up to 1e-6.

    Args:
        outputs: the outputs (m,).
    """
    if round(math.fsum(outputs), 6) < 0:
        return -outputs[::-1]
    return outputs


# Descents.


def _descend(
    compute_value: Callable[[Vector], _ValueAndSlope], z: Vector, bounds: Pair, iterations: int
) -> None:
    """Minimise a function of outputs by SciPy's SLSQP. The function records its best point itself.

    Args:
        compute_value: returns the value and the slopes (k,) at a point (k,).
        z: where the descent starts (k,).
        bounds: the least and the largest z, (k,) each.
        iterations: the largest number of iterations.
    """
    from scipy.optimize import Bounds, minimize  # The import is slow.

    lowest_value = math.inf
    lowest_values: list[float] = []

    def evaluate(point: Vector) -> _ValueAndSlope:
        """Return value and slope at z, and remember the lowest value."""
        nonlocal lowest_value
        value, slope = compute_value(point)
        lowest_value = min(lowest_value, value)
        return value, slope

    def stop(intermediate_result: OptimizeResult) -> None:
        """Raise StopIteration, which ends SciPy's search, if the value has stalled."""
        lowest_values.append(lowest_value)
        if len(lowest_values) > _LIMITS.stall_window:
            earlier_value = lowest_values[-_LIMITS.stall_window - 1]
            if not lowest_value < earlier_value * (1 - _LIMITS.stall_share):
                raise StopIteration

    # The matrices are so small that threads would wait for each other.
    with find_thread_pools().limit(limits=1, user_api="blas"):
        minimize(
            evaluate,
            z,
            jac=True,
            bounds=Bounds(*bounds),
            method="SLSQP",
            callback=stop,
            options={"maxiter": iterations, "ftol": _LIMITS.value_tolerance},
        )


@cache  # Finding the loaded libraries takes as long as ten solves.
def find_thread_pools() -> ThreadpoolController:
    """Return the thread pools of the libraries that are loaded with SciPy."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@dataclass(frozen=True)
class _Coordinates:
    """The variables of a descent.

    An outermost output has z in r + (r - 1) e^z; other outputs are their own variables.

    Attributes:
        m: the number of outputs.
        symmetric: whether z is the positive half (m // 2,) with the outermost output last;
            otherwise z has all outputs (m,) with the outermost ones first and last.
        excess: r - 1.
        limit: the largest output allowed.
    """

    m: int
    symmetric: bool
    excess: float
    limit: float

    @property
    def outermost_indices(self) -> list[int]:
        """Return the indices of the z of outermost outputs."""
        if self.symmetric:
            return [-1]
        return [0, -1]

    @cached_property
    def bounds(self) -> Pair:
        """Return the least and the largest z, (k,) each."""
        max_output = math.floor(self.limit / _LIMITS.output_step) * _LIMITS.output_step
        high = np.full(self.m // 2 if self.symmetric else self.m, max_output)
        low = -high
        low[self.outermost_indices] = _LIMITS.min_z
        max_z = round(self._compute_z(self.limit) / _LIMITS.z_step) * _LIMITS.z_step
        high[self.outermost_indices] = max(_LIMITS.min_z, max_z)
        return low, high

    def _compute_z(self, output: float) -> float:
        """Compute z of an outermost output."""
        excess_ratio = (abs(output) - (1 + self.excess)) / self.excess
        if excess_ratio <= 0:
            return _LIMITS.min_z
        return max(_LIMITS.min_z, math.log(excess_ratio))

    def from_outputs(self, outputs: Vector) -> Vector:
        """Return the z of outputs (m,), moved within the bounds."""
        variables = outputs
        if self.symmetric:
            variables = outputs[self.m - self.m // 2 :]
        z = np.clip(variables, -self.limit, self.limit)
        for k in self.outermost_indices:
            z[k] = self._compute_z(z[k])
        return self.snap(z)

    def snap(self, z: Vector) -> Vector:
        """Round z to the grid, within the bounds."""
        steps = np.full(z.size, _LIMITS.output_step)
        steps[self.outermost_indices] = _LIMITS.z_step
        return np.asarray(np.clip(np.round(z / steps) * steps, *self.bounds))

    def to_outputs(self, z: Vector) -> tuple[Vector, Positions, Vector]:
        """Return the outputs at a snapped z.

        Returns:
            (outputs, order, slopes): the outputs (m,); the positions in z of the increasing
            outputs, or of the increasing positive half (k,); and for each z the derivative of its
            output (k,).
        """
        sizes = np.array(z)
        slopes = np.ones(z.size)
        for k in self.outermost_indices:
            distance = self.excess * _compute_exponential(float(z[k]))
            sizes[k] = min(1 + self.excess + distance, self.limit)
            slopes[k] = 0.0
            if sizes[k] < self.limit:
                slopes[k] = distance
        if self.symmetric:
            slopes = np.where(sizes < 0, -slopes, slopes)
            sizes = np.abs(sizes)
        else:
            sizes[0] = -sizes[0]
            slopes[0] = -slopes[0]
        order = np.argsort(sizes, kind="stable")
        if self.symmetric:
            return mirror_outputs(sizes[order], self.m), order, slopes
        return sizes[order], order, slopes


def _compute_exponential(z: float) -> float:
    """Compute e^z correctly rounded, so that it is the same on every machine."""
    with localcontext(prec=_FAST_DIGITS):
        power = Decimal(z).exp()
        low = float(power.next_minus())
        if low == float(power.next_plus()):
            # e^z lies between these two decimals, so it rounds to the same double.
            return low
    with localcontext(prec=_EXPONENTIAL_DIGITS):
        return float(Decimal(z).exp())


class _OutputDescent:
    """Descend to better outputs by the slopes of an LP.

    Args:
        problem: the program of the laws.
        epsilon: the budget ε > 0.
        coordinates: the variables z of the descent, and how outputs follow from them.
    """

    def __init__(self, problem: LawProblem, epsilon: float, coordinates: _Coordinates) -> None:
        self.problem = problem
        self.epsilon = epsilon
        self.coordinates = coordinates
        # The best point of a descent; None before a law was found. The point at which SLSQP ends
        # may be worse.
        self._best: DescentPoint | None = None

    def run(self, z: Vector, rounds: int, iterations: int) -> DescentPoint:
        """Descend from z, then again from the best point while this lowers the value.

        Args:
            z: where the first descent starts (k,).
            rounds: the largest number of descents.
            iterations: the largest number of iterations of one descent.

        Returns:
            The best point; the start with INFEASIBLE_VALUE if no law was found.
        """
        self._best = None
        value = INFEASIBLE_VALUE
        for _ in range(rounds):
            _descend(self._evaluate, z, self.coordinates.bounds, iterations)
            best: DescentPoint | None = self._best  # `_evaluate` sets it.
            if best is None or not best.value < value * (1 - _LIMITS.stall_share):
                break
            value, z = best
        return self._best or DescentPoint(INFEASIBLE_VALUE, z)

    def _evaluate(self, point: Vector) -> _ValueAndSlope:
        """Return the optimum of the LP at z, and its slope in z."""
        z = self.coordinates.snap(point)
        outputs, order, output_slopes = self.coordinates.to_outputs(z)
        slopes = np.zeros_like(z)
        answer = self.problem.find_optimum(self.epsilon, outputs)
        if answer is None or not answer.slopes.size:
            return INFEASIBLE_VALUE, slopes
        if self._best is None or answer.value < self._best.value:
            self._best = DescentPoint(answer.value, z)
        value_slopes = answer.slopes
        if self.coordinates.symmetric:
            # The mirror image of an output moves in the opposite direction.
            half_count = self.problem.outputs // 2
            value_slopes = (
                value_slopes[outputs.size - half_count :] - value_slopes[:half_count][::-1]
            )
        slopes[order] = value_slopes
        return answer.value, slopes * output_slopes


def search_best_outputs(
    problem: LawProblem,
    epsilon: float,
    starts: Iterable[Vector],
    *,
    symmetric: bool = True,
    limit: float = math.inf,
    rounds: int = 3,
    iterations: int = 60,
    progress: Progress = ignore_progress,
) -> LocalOptimum | None:
    """Search for the best outputs from several starts.

    If there are several starts, each has one short descent, and the best two continue to the end.
    If several reach the same value, to nine digits, the result of the first one is returned.

    Args:
        problem: the program of the laws.
        epsilon: the budget ε > 0.
        starts: the outputs from which the search starts, in increasing order, (m,) each; symmetric
            ones if `symmetric`.
        symmetric: whether outputs stay symmetric.
        limit: the largest output allowed in size. inf: 40 times the least reach.
        rounds: the largest number of descents from one start.
        iterations: the largest number of iterations of one descent.
        progress: is called with the value of every start.

    Returns:
        The best outputs, or None if none are feasible.
    """
    excess = problem.compute_reach_excess(epsilon)
    if math.isinf(limit):
        limit = _LIMITS.default_reach_factor * (1 + excess)
    coordinates = _Coordinates(problem.outputs, symmetric, excess, limit)
    descent = _OutputDescent(problem, epsilon, coordinates)
    points = [coordinates.from_outputs(np.asarray(start, dtype=float)) for start in starts]
    has_several_starts = len(points) > 1
    results = []
    for k, z in enumerate(points):
        if has_several_starts:
            results.append(descent.run(z, 1, _LIMITS.short_iterations))
        else:
            results.append(descent.run(z, rounds, iterations))
        progress(f"start {k + 1}: {results[-1].value:.6f}")
    if has_several_starts:
        best_first = sorted(range(len(results)), key=lambda k: results[k].value)
        for k in best_first[: _LIMITS.continued_starts]:
            results[k] = descent.run(results[k].z, rounds, iterations)
    best = min(
        results,
        key=lambda point: float(f"{point.value:.9g}"),
        default=DescentPoint(INFEASIBLE_VALUE, np.zeros(0)),
    )
    if best.value >= INFEASIBLE_VALUE:
        return None
    start_values = tuple(point.value for point in results)
    outputs, _, _ = coordinates.to_outputs(best.z)
    return LocalOptimum(outputs, best.value, start_values)
