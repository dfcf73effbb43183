"""Find nearly optimal noise on the integers or the reals, with a proven lower bound on its loss.

`bracket_optimum` answers: which private noise has the smallest expected loss, up to a small gap,
and what lower bound is proven? Both come from linear programs (`workbench.models.noise.program`).

Notation. f is the PMF of noise on the integers, D the sensitivity in integer steps, Δ the
sensitivity on the reals, and x a real noise value. A window is a range |η| <= L of integer noise
values. A cell is an interval of a grid on the reals; k cells have the length Δ.

Integers. The program on a window is a relaxation for all noise, so its optimum is a lower bound.
Its law is private except for the mass beyond the window. If every δ of the budget is positive, the
law ends at the window. Otherwise it continues as a geometric tail with that mass. The window grows
until the loss and the bound agree.

Reals. The line is divided by a grid of step β = Δ/k.

Upper bound. The density is constant on the cells [(j - ½)β, (j + ½)β). If every δ is positive,
there may be an atom (a point mass) at 0 as well; if a δ is 0, no atom is possible. The noise is
private for all real shifts up to Δ if it is private for the shifts by 1, ..., k cells
(`workbench.mechanisms.real_noise`).

Lower bound. Any noise can be rounded at random to the two nearest grid points, such that its mean
stays the same. Rounding commutes with shifts by grid steps, so the rounded noise is private for
these shifts. The loss of a rounded x is on average the linear interpolation of the loss between the
grid points. For |x| this is |x| itself, as 0 is a grid point; for x² it is at most x² + β²/4.
Therefore the optimum of the integer program with D = k (in units of β, or of β² for the squared
loss and then minus β²/4) is a lower bound for all noise on the reals.

The grid is refined until the two bounds agree. Each program starts from the law of another grid.
First k is doubled, then every k between the last two is tried. How close a bound is depends on
where the best density jumps. Let r Δ be the place of a jump. The lower bound is close if k r is
near an integer, and the upper bound if k r is near an integer plus one half, where cells end. If a
k' of the first kind is added to k, then (k + k') r differs from k r by nearly an integer, so both
properties are preserved. Finer grids of the lower bound are therefore multiples of the grid with
the best lower bound. Those of the upper bound are sums of such multiples and the grid with the
least loss. The number of cells that a gap needs is estimated from the rule that the gap falls as
1/k². Under smooth bounds the best density has no jumps, so k is only doubled.

Programs of many shifts under smooth bounds are solved by an interior-point method
(`workbench.models.noise.smooth`), all others by tangents.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from workbench.errors import InvalidRequest, must
from workbench.exact.distribution import Distribution
from workbench.exact.integer_law import IntegerLaw
from workbench.exact.numbers import ZERO
from workbench.exact.objects import FloatPair, Record
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise
from workbench.mechanisms.real_noise import AdditiveRealNoise
from workbench.models.convex.interior import list_smooth_bounds
from workbench.models.noise.losses import cell_loss
from workbench.models.noise.program import LineAnswer, LineProgram
from workbench.models.noise.smooth import solve_smooth_line
from workbench.models.oracles import line_noise
from workbench.pipeline.convex_notion import ClaimedBounds, find_implied_pure_epsilon
from workbench.pipeline.loss_scale import LossScale
from workbench.privacy.claim import Claim
from workbench.privacy.repair import bound_inverse_exponential, build_staircase_law
from workbench.questions.unbounded_noise import IntegerNoise, RealNoise
from workbench.solvers.arrays import Vector
from workbench.solvers.errors import LicenceExceeded, SolverError
from workbench.solvers.search import Deadline

if TYPE_CHECKING:
    from workbench.families.noise.request import NoiseRequest


LineNoise = AdditiveIntegerNoise | AdditiveRealNoise
NoiseLoss = Callable[[LineNoise], Fraction]


@dataclass(frozen=True)
class SearchLimits:
    """Limits and tolerances of the searches for noise.

    Attributes:
        max_comparisons: the largest bounds times shifts times noise values of a program; larger
            programs are refused.
        max_side_values: the largest number of noise values on one side of a program.
        max_series_comparisons: the largest number of shifts times outcomes under notions whose
            audit takes logarithms.
        max_tangent_comparisons: programs under smooth bounds with more shifts times noise values
            are solved by an interior-point method, smaller ones by tangents.
        max_smooth_comparisons: the same limit under smooth bounds, whose programs and audits are
            fast.
        max_windows: the largest number of windows that are tried on the integers.
        max_agreements: the search ends after this many windows whose mechanism has the value of
            the window while the bound is near it. Only the solver's accuracy is then missing.
        mass_bits: bits to which the masses of a law are rounded.
        exact_precision: relative excess over a limit up to which a point counts as feasible.
        smooth_precision: the same under notions that are not hockey sticks of δ > 0, such as zCDP.
        integer_smooth_gap: relative gap at which the interior-point method ends on the integers.
        real_smooth_gap: the same on the reals. The grid leaves a larger gap, and a point that is
            farther within the bounds is audited faster.
        upper_precision: the same as `exact_precision` for mechanisms on the reals; the repair of
            this excess changes the loss by less than every gap on the reals.
        first_grids: numbers of cells in an interval as long as the sensitivity, tried first.
        max_cell_count: the largest such number.
        max_unsplit_excesses: the largest number of shifts times outcomes for solvers that get all
            rows of a program at once (all but HiGHS).
        negligible_share: masses below this share of the largest one do not count for the reach of
            noise.
        reach_margin: noise on a finer grid may reach farther than on the coarser one by this
            factor.
        window_growth: each window on the integers is this many times as long as the one before.
        near_bound_gap: on the integers, the relative gap between the value and the bound of a
            window up to which they count as equal, if more windows do not bring them together.
        min_tail_ratio: the ratio by which a geometric tail falls every D is at least this.
        max_tail_ratio: this ratio is at most this, so that a repair can list the tail.
        tail_ratio_bits: bits to which this ratio is rounded up.
        coarse_step_epsilon: the largest ε of one step of `compute_coarse_bound`.
    """

    max_comparisons: int = 20_000_000
    max_side_values: int = 6_000
    max_series_comparisons: int = 6_000
    max_smooth_comparisons: int = 12_000
    max_tangent_comparisons: int = 300
    max_windows: int = 12
    max_agreements: int = 3
    mass_bits: int = 64
    exact_precision: float = 1e-12
    smooth_precision: float = 1e-9
    integer_smooth_gap: float = 1e-8
    real_smooth_gap: float = 1e-6
    upper_precision: float = 1e-6
    first_grids: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    max_cell_count: int = 192
    max_unsplit_excesses: int = 60_000
    negligible_share: float = 1e-9
    reach_margin: float = 1.1
    window_growth: float = 1.4
    near_bound_gap: float = 1e-3
    min_tail_ratio: float = 0.008
    max_tail_ratio: float = 0.98
    tail_ratio_bits: int = 20
    coarse_step_epsilon: Fraction = Fraction(1, 4)


@dataclass(frozen=True)
class WindowFactors:
    """How many times as long as truncated Laplace noise a first window is.

    The factors were found by trial. The optimal noise ends farther out, relative to truncated
    Laplace noise, if δ is large or ε is small.

    Attributes:
        large_delta: the factor if δ is at least `min_large_delta`.
        small_epsilon: the factor if δ is smaller and ε is below `max_small_epsilon`.
        tight: the factor in the other cases on the reals if ε is at least `min_tight_epsilon`, and
            on the integers if the sensitivity is at least `min_tight_sensitivity`.
        usual: the factor in all remaining cases.
        min_large_delta: the δ from which `large_delta` applies.
        max_small_epsilon: the ε below which `small_epsilon` applies.
        min_tight_epsilon: the ε from which `tight` applies on the reals.
        min_tight_sensitivity: the sensitivity, in steps, from which `tight` applies on the
            integers.
    """

    large_delta: float = 3.0
    small_epsilon: float = 2.0
    usual: float = 1.3
    tight: float = 1.15
    min_large_delta: float = 0.25
    max_small_epsilon: float = 0.5
    min_tight_epsilon: float = 2.0
    min_tight_sensitivity: int = 32


_LIMITS = SearchLimits()
_FACTORS = WindowFactors()
_WINDOW_PRIVACY_LOSS = 12.0  # The first window of pure noise ends at this privacy loss.
_MIN_REFERENCE_EPSILON = 1e-3  # Windows and units are not computed for a smaller ε.
_UNIT_SAMPLE_COUNT = 1000  # The unit of losses is estimated from this many noise values of a side.
# Truncated private noise is not extended beyond this many blocks of D values on a side.
_MAX_TRUNCATION_BLOCKS = 1 << 14
# Searches on the integers end at the target gap divided by this. The rest is left for the repair.
TARGET_GAP_DIVISOR = 10
_REAL_TARGET_SHARE = 0.9  # On the reals they end at this share of the target gap, as above.
_FLOAT_MARGIN = 1e-12  # Quotients of two `expm1` in floats are enlarged by this share.


@dataclass(frozen=True)
class BracketResult:
    """The best noise found and a bound for all noise.

    Attributes:
        mechanism: noise that is private up to the accuracy of the solver.
        bound: a proven lower bound on the expected loss of all noise.
        solver_details: sentences of the report about the solver.
    """

    mechanism: LineNoise
    bound: Fraction
    solver_details: Record


class NoiseClaimBounds(ClaimedBounds):
    """The bounds that a claim implies for noise, and the sizes of programs that they need.

    Args:
        claim: the notion with its budget.

    Attributes:
        can_end: whether every requirement is a hockey stick of δ > 0, so that noise may have a
            finite support.
        reference_epsilon: the ε of pure or truncated geometric noise that satisfies the claim.
        reference_delta: the δ of this noise, 0 if it is pure.
    """

    def __init__(self, claim: Claim) -> None:
        super().__init__(claim, (1,))
        sticks = claim.list_ratio_bounds((1,))
        self.can_end = bool(sticks) and all(stick.delta for stick in sticks)
        self.reference_delta = 0.0
        if self.can_end:
            budgets = [(float(stick.epsilon), float(stick.delta)) for stick in sticks]
            self.reference_epsilon, self.reference_delta = _find_common_budget(budgets)
        elif len(sticks) == 1:
            self.reference_epsilon = float(sticks[0].epsilon)
        else:
            self.reference_epsilon = find_implied_pure_epsilon(claim)

    @property
    def has_smooth_bounds(self) -> bool:
        """Check whether no bound is a hockey stick, as under Rényi DP and zCDP."""
        return list_smooth_bounds(self.bounds, self.levels) is not None

    def make_private_law(self, reach: int) -> IntegerLaw:
        """Make noise that satisfies the claim strictly, for repairs by mixing.

        It is pure noise at half of ε, or truncated noise. The ratio of truncated noise exceeds e^ε
        only where the shifted law has ended: at the last `reach` values of one side. These get a
        mass of at most δ/2.

        Args:
            reach: the largest shift, in cells.
        """
        if not self.can_end:
            epsilon = Fraction(self.reference_epsilon) / 2
            return build_staircase_law(bound_inverse_exponential(epsilon), reach, inner=1)
        blocks = 1
        while True:
            distances = np.abs(np.arange(-blocks * reach, blocks * reach + 1))
            # The weights fall by e^-ε with each block, and ⌈distance/reach⌉ is the block.
            weights = np.exp(-self.reference_epsilon * -(-distances // reach))
            end_weight = weights[-reach:].sum()
            is_private = end_weight <= self.reference_delta / 2 * weights.sum()
            if is_private or blocks > _MAX_TRUNCATION_BLOCKS:
                return IntegerLaw(first=-blocks * reach, weights=Distribution.from_floats(weights))
            blocks += max(1, blocks // 8)

    def make_inner_columns(self, line: LineProgram) -> Vector:
        """Return columns of a program whose law satisfies the claim strictly, shape (columns,).

        Args:
            line: an open program.
        """
        law = self.make_private_law(line.sensitivity)
        total = law.total
        weights = law.weights_between(-line.last, line.last)
        masses = np.array([float(weight / total) for weight in weights])
        columns = line.columns_of_law(masses)
        # Each side has half of the mass beyond the window.
        columns[line.mass_columns : line.weights.size] = max(0.0, 1 - float(masses.sum())) / 2
        if len(line.costs) > 1:
            # The last column is the largest mean loss.
            costs = np.array(line.scaled_costs, dtype=float) * line.weights
            columns[-1] = (costs @ columns[: line.weights.size]).max()
        return columns

    def compute_window_size(self, steps: int, is_on_reals: bool) -> int:
        """Compute the number of noise values on each side of a first program.

        If noise may end, it is the support of truncated Laplace noise times a factor
        (`WindowFactors`). Otherwise it is a number beyond which pure noise has little mass.

        Args:
            steps: the sensitivity, in cells.
            is_on_reals: whether the cells are those of noise on the reals.
        """
        if not self.can_end:
            return steps * math.ceil(_WINDOW_PRIVACY_LOSS / self.reference_epsilon) + 2 * steps
        epsilon = self.reference_epsilon or _MIN_REFERENCE_EPSILON
        support = line_noise.truncated_laplace_support(epsilon, self.reference_delta)
        factor = self._choose_window_factor(steps, is_on_reals)
        return math.ceil(factor * support * steps) + steps

    def _choose_window_factor(self, steps: int, is_on_reals: bool) -> float:
        """Choose how many times as long as truncated Laplace noise a first window is."""
        if self.reference_delta >= _FACTORS.min_large_delta:
            return _FACTORS.large_delta
        if self.reference_epsilon < _FACTORS.max_small_epsilon:
            return _FACTORS.small_epsilon
        if is_on_reals:
            is_tight = self.reference_epsilon >= _FACTORS.min_tight_epsilon
        else:
            is_tight = steps >= _FACTORS.min_tight_sensitivity
        return _FACTORS.tight if is_tight else _FACTORS.usual

    def is_solvable_size(self, steps: int, size: int) -> bool:
        """Check whether a program and the audit of its solution are small enough.

        Args:
            steps: the sensitivity, in cells.
            size: the number of noise values on each side.
        """
        comparisons = steps * (2 * size + 1)
        if self.claim.notion.series_work:
            limit = _LIMITS.max_series_comparisons
            if self.has_smooth_bounds:
                limit = _LIMITS.max_smooth_comparisons
            return comparisons <= limit
        if len(self.bounds) * comparisons > _LIMITS.max_comparisons:
            return False
        return size + steps <= _LIMITS.max_side_values

    def check_size(self, steps: int, is_on_reals: bool = False) -> None:
        """Check that the first program is small enough.

        Args:
            steps: the sensitivity, in cells.
            is_on_reals: whether the cells are those of noise on the reals.

        Raises:
            InvalidRequest: the program is too large; with the sensitivity that would fit.
        """
        size = self.compute_window_size(steps, is_on_reals)
        if self.is_solvable_size(steps, size):
            return
        advice = "Use a larger budget"
        for smaller_steps in range(steps, 0, -1):
            if self.is_solvable_size(
                smaller_steps, self.compute_window_size(smaller_steps, is_on_reals)
            ):
                advice = f"Use a sensitivity of at most {smaller_steps}"
                break
        if not is_on_reals:
            advice += ", or noise on the reals"
        raise InvalidRequest(
            "sensitivity must leave programs that are small enough to be solved and audited. "
            f"Got {size} noise values on each side. {advice}."
        )


def _find_common_budget(budgets: Sequence[FloatPair]) -> FloatPair:
    """Find (ε, δ) such that truncated Laplace noise at it satisfies all budgets.

    For a single budget these are its ε and δ. For several budgets the noise is nearly pure: its ε
    is the smallest ln((e^ε_i + δ_i/2)/(1 - δ_i/2)), the pure ε that is (ε_i, δ_i/2)-private, over
    all budgets i. Half of the smallest δ_i is left for the end of the noise.
    """
    if len(budgets) == 1:
        return budgets[0]
    epsilons = [math.log((math.exp(eps) + delta / 2) / (1 - delta / 2)) for eps, delta in budgets]
    return min(epsilons), min(delta for _, delta in budgets) / 2


def bracket_optimum(
    request: NoiseRequest,
    claim_bounds: NoiseClaimBounds,
    loss: NoiseLoss,
    deadline: Deadline,
    known_noise: LineNoise | None = None,
) -> BracketResult:
    """Find the best noise and a lower bound for all noise by linear programs.

    Args:
        request: the request for noise on the integers or the reals.
        claim_bounds: the bounds that the claim implies.
        loss: computes the exact expected loss of a mechanism.
        deadline: when the search must end.
        known_noise: private noise that may be nearly optimal, or None.

    Returns:
        The best noise found, private up to the accuracy of the solver, and the bound.

    Raises:
        InvalidRequest: the programs are too large.
        SolverError: a solver failed before any noise was found.
    """
    if isinstance(request.question, IntegerNoise):
        assert known_noise is None or isinstance(known_noise, AdditiveIntegerNoise)
        solver = LineProgramSolver(request, claim_bounds, deadline)
        return _bracket_on_integers(solver, request.question, loss, known_noise)
    known_loss = math.inf
    if known_noise is not None:
        unit = request.question.sensitivity ** line_noise.POWERS[request.loss_name]
        known_loss = float(loss(known_noise) / unit)
    search = _RealSearch(request, claim_bounds, deadline, known_loss)
    try:
        search.run(request.how.steps)
    except LicenceExceeded:
        if search.best is None:
            raise
    return search.make_result()


def compute_coarse_bound(request: NoiseRequest, deadline: Deadline) -> Fraction:
    """Compute a lower bound for all noise from a program whose size does not depend on the budget.

    Let one step be m sensitivities. By group privacy, (ε, δ)-private noise is
    (m ε, δ (e^(m ε) - 1)/(e^ε - 1))-private between answers one step apart. Rounded at random to
    the two nearest steps, with its mean preserved, it is integer noise with sensitivity 1, and its
    loss changes as for the reals (see the module). The number m is the largest for which m ε is at
    most `SearchLimits.coarse_step_epsilon`, at least 1.

    Args:
        request: a request with the absolute or the squared loss.
        deadline: when the solver must stop.

    Returns:
        The bound, at least 0.

    Raises:
        SolverError: the solver failed.
    """
    epsilon = request.claim.epsilon
    power = line_noise.POWERS[request.loss_name]
    sensitivities_per_step = max(1, math.floor(_LIMITS.coarse_step_epsilon / epsilon))
    step_epsilon = sensitivities_per_step * epsilon
    growth = math.expm1(float(step_epsilon)) / math.expm1(float(epsilon)) * (1 + _FLOAT_MARGIN)
    step_delta = request.claim.delta * Fraction(growth)
    if step_delta >= 1:
        return ZERO
    claim_bounds = NoiseClaimBounds(Claim(request.claim.notion, step_epsilon, step_delta))
    size = claim_bounds.compute_window_size(1, is_on_reals=True)
    if not claim_bounds.is_solvable_size(1, size):
        return ZERO
    program = LineProgram(
        sensitivity=1,
        reach=size,
        losses=[lambda j: Fraction(abs(j)) ** power],
        bounds=claim_bounds.bounds,
    )
    answer = LineProgramSolver(request, claim_bounds, deadline).solve_without_guess(program)
    bound = answer.bound if power == 1 else answer.bound - Fraction(1, 4)
    step_length = sensitivities_per_step * Fraction(request.question.sensitivity)
    unit: Fraction = step_length**power
    return max(ZERO, bound) * unit


class LineProgramSolver:
    """Solve the linear programs of one request and count them.

    Args:
        request: the request for noise.
        claim_bounds: the bounds that its claim implies.
        deadline: when the last program must have ended.

    Attributes:
        program_count: the number of programs solved.
        round_count: the number of rounds in which tangents were added.
        version: the version of the solver.
    """

    def __init__(
        self, request: NoiseRequest, claim_bounds: NoiseClaimBounds, deadline: Deadline
    ) -> None:
        self.request = request
        self.claim_bounds = claim_bounds
        self.deadline = deadline
        self.program_count = 0
        self.round_count = 0
        self.version = ""

    def solve_without_guess(self, line: LineProgram) -> LineAnswer:
        """Solve a program from scratch.

        Args:
            line: the linear program of the noise.
        """
        solver = self.request.how.solver
        precision = _LIMITS.exact_precision
        return self._count(line.solve(precision=precision, deadline=self.deadline, solver=solver))

    def compute_loss_unit(self, claim_bounds: NoiseClaimBounds, sensitivity: int) -> Fraction:
        """Compute the number by which losses are divided in programs of noise on the integers.

        It is a power of 2^12 (`LossScale.unit`), chosen for the mean loss of geometric noise with
        the reference budget.

        Args:
            claim_bounds: the bounds of a claim, for the reference budget. They are not those of the
                solver if a claim of pure DP stands in for the requested one.
            sensitivity: the sensitivity in integer steps.
        """
        scale = self.request.loss_scale
        epsilon = max(claim_bounds.reference_epsilon, _MIN_REFERENCE_EPSILON)
        reach = sensitivity * math.ceil(_WINDOW_PRIVACY_LOSS / epsilon)
        # η is a noise value, as in the module.
        eta = range(-reach, reach + 1, max(1, reach // _UNIT_SAMPLE_COUNT))
        masses = np.exp(-claim_bounds.reference_epsilon * np.abs(eta) / sensitivity)
        means = []
        for loss in self.request.line_losses:
            losses = np.array([float(loss.value_at(k)) for k in eta])
            means.append(float(losses @ masses))
        width = max(means) / float(masses.sum()) - float(scale.floor)
        if width <= 0:
            # The mean loss is computed in floats and may round to the smallest loss.
            return Fraction(LossScale(ZERO, scale.width).unit)
        return Fraction(LossScale(ZERO, width).unit)

    def _count(self, answer: LineAnswer) -> LineAnswer:
        """Add an answer to the counts and return it."""
        self.program_count += 1
        self.round_count += answer.rounds
        self.version = answer.version or self.version
        return answer

    def solve(
        self, line: LineProgram, initial_masses: Vector | None, refinement: float, precision: float
    ) -> LineAnswer:
        """Solve a program from a law that is close to its solution.

        Args:
            line: the linear program of the noise.
            initial_masses: the masses of a law on -last..last of another grid, shape (2 last + 1,).
                None starts from scratch; from a Gaussian if the noise may not end (`can_end`).
            refinement: number of grid steps of the program in one step of the grid of the law.
            precision: relative excess over a limit up to which a point counts as feasible. It is
                replaced by `SearchLimits.smooth_precision` if the noise may not end.

        Returns:
            The masses, the value and the proven bound of the program.
        """
        if self._has_many_comparisons(line):
            inner_columns = self.claim_bounds.make_inner_columns(line)
            gap = _LIMITS.integer_smooth_gap
            if self.request.is_on_reals:
                gap = _LIMITS.real_smooth_gap
            smooth_answer = solve_smooth_line(
                line, inner_columns, self.claim_bounds.levels, self.deadline, gap
            )
            if smooth_answer is not None:
                return self._count(smooth_answer)
        can_end = self.claim_bounds.can_end
        if initial_masses is None and not can_end:
            initial_masses = self._make_gaussian(line)
        start = None
        if initial_masses is not None:
            start = line.columns_of_law(initial_masses, refinement)
        answer = line.solve(
            start,
            find_broken_bounds=self.claim_bounds.add_violated,
            precision=precision if can_end else _LIMITS.smooth_precision,
            deadline=self.deadline,
            solver=self.request.how.solver,
        )
        return self._count(answer)

    def _has_many_comparisons(self, line: LineProgram) -> bool:
        """Check whether a program has so many comparisons that its tangents take too long."""
        if self.claim_bounds.can_end or self.request.how.solver != "highs":
            return False
        return line.shifts.size * (2 * line.reach + 1) > _LIMITS.max_tangent_comparisons

    def _make_gaussian(self, line: LineProgram) -> Vector:
        """Make a Gaussian about as wide as pure noise, as a start. Shape (2 last + 1,).

        Its standard deviation is 2 D/ε for the ε of the reference noise.
        """
        eta = np.arange(-line.last, line.last + 1)
        epsilon = self.claim_bounds.reference_epsilon
        gaussian = np.exp(-((eta * epsilon / (2 * line.sensitivity)) ** 2) / 2)
        gaussian /= gaussian.sum()
        return gaussian

    @property
    def solver_details(self) -> Record:
        """Return the entries about the solver for the report, none if no solver was called."""
        if not self.version:
            return {}
        return {
            "solver": self.request.how.solver,
            "version": self.version,
            "rounds": self.round_count,
        }


def _bracket_on_integers(
    solver: LineProgramSolver,
    question: IntegerNoise,
    loss: NoiseLoss,
    known_noise: AdditiveIntegerNoise | None,
) -> BracketResult:
    """Find the best noise on the integers and a lower bound for all such noise.

    Args:
        solver: solves the programs of the request.
        question: the noise that is requested.
        loss: computes the exact expected loss of a mechanism.
        known_noise: private noise that may be optimal, or None. It is the result if a small program
            proves it optimal.

    Raises:
        InvalidRequest: the programs are too large.
        SolverError: a solver failed before any noise was found.
    """
    search = _IntegerSearch(solver, question, loss)
    if known_noise is not None:
        search.add_mechanism(known_noise)
        if search.is_closed_by_small_window():
            return BracketResult(known_noise, search.bound, solver.solver_details)
    search.run()
    assert search.best is not None
    return BracketResult(search.best.mechanism, search.bound, solver.solver_details)


@dataclass(frozen=True)
class EvaluatedNoise:
    """Noise on the integers with its exact expected loss."""

    mechanism: AdditiveIntegerNoise
    loss: Fraction


class _IntegerSearch:
    """Search for noise on the integers by programs on growing windows.

    Args:
        solver: solves the programs.
        question: the noise that is requested.
        loss: computes the exact expected loss of a mechanism.

    Attributes:
        best: the noise with the smallest exact loss, None before there is one.
        bound: a lower bound on the loss of all noise.
    """

    def __init__(self, solver: LineProgramSolver, question: IntegerNoise, loss: NoiseLoss) -> None:
        request = solver.request
        self.solver = solver
        self.question = question
        self.compute_loss = loss
        self.sensitivity = question.sensitivity
        self.unit = solver.compute_loss_unit(solver.claim_bounds, self.sensitivity)
        self.best: EvaluatedNoise | None = None
        self.bound = ZERO
        self._gap = request.target_gap / TARGET_GAP_DIVISOR
        self._loss_scale = request.loss_scale
        solver.claim_bounds.check_size(self.sensitivity)

    def add_mechanism(self, mechanism: AdditiveIntegerNoise) -> Fraction:
        """Compare a mechanism with the best one. Returns its exact expected loss."""
        loss = self.compute_loss(mechanism)
        if self.best is None or loss < self.best.loss:
            self.best = EvaluatedNoise(mechanism, loss)
        return loss

    @property
    def is_closed(self) -> bool:
        """Check whether the bound is within a tenth of the target gap of the best loss."""
        if self.best is None:
            return False
        return self._loss_scale.proves(self.best.loss, self.bound, self._gap)

    def is_closed_by_small_window(self) -> bool:
        """Solve a small window, and check whether its bound proves the best noise optimal.

        The window ends where the losses become constant, or earlier.
        """
        span = max(loss.span for loss in self.solver.request.line_losses)
        size = min(self._choose_first_size(), self.sensitivity + span)
        if not self.solver.deadline.has_passed:
            self.bound = self._solve(size, None).bound
        return self.is_closed

    def run(self) -> None:
        """Solve programs on growing windows until loss and bound agree, or a limit is reached.

        Raises SolverError if a solver fails before there is any noise.
        """
        solver = self.solver
        size = self._choose_first_size()
        masses = None
        agreement_count = 0
        for _ in range(_LIMITS.max_windows):
            try:
                answer = self._solve(size, masses)
                self.bound = max(self.bound, answer.bound)
                masses = answer.masses
                window_value = Fraction(answer.value)
                if self.is_closed:
                    break
                if solver.claim_bounds.can_end and answer.mean_tail_mass:
                    # The relaxation counts a smaller loss for mass beyond the window, so its law is
                    # no mechanism. It is solved again without such mass.
                    answer = self._solve(size, masses, is_open=False)
            except SolverError:
                if self.best is None or not solver.deadline.has_passed:
                    raise
                break
            law = _make_law(answer, solver.claim_bounds)
            loss = self.add_mechanism(AdditiveIntegerNoise(self.question, law))
            # If the mechanism has the loss that the relaxation allows, and the proven bound is
            # near it, a longer window cannot help: only the solver's accuracy is missing.
            has_window_value = self._loss_scale.proves(loss, window_value, self._gap)
            is_bound_near = self._loss_scale.proves(
                window_value, self.bound, _LIMITS.near_bound_gap
            )
            if has_window_value and is_bound_near:
                agreement_count += 1
            size = math.ceil(_LIMITS.window_growth * size)
            if self.is_closed or agreement_count == _LIMITS.max_agreements:
                break
            can_continue = solver.claim_bounds.is_solvable_size(self.sensitivity, size)
            if solver.deadline.has_passed or not can_continue:
                break

    def _choose_first_size(self) -> int:
        """Choose the size of the first window: the number of noise values on each side.

        The window includes the values up to which a loss that is not rising is tabulated.
        """
        sizes = [self.solver.claim_bounds.compute_window_size(self.sensitivity, is_on_reals=False)]
        losses = self.solver.request.line_losses
        sizes += [loss.span for loss in losses if not loss.power and not loss.is_rising]
        return max(sizes)

    def _solve(self, size: int, masses: Vector | None, *, is_open: bool = True) -> LineAnswer:
        """Solve the program on a window.

        Args:
            size: the number of noise values on each side.
            masses: the masses of a smaller window from which the solver starts, or None.
            is_open: whether mass beyond the window is allowed (the relaxation).
        """
        line_losses = self.solver.request.line_losses
        program = LineProgram(
            self.sensitivity,
            size,
            losses=[loss.value_at for loss in line_losses],
            bounds=self.solver.claim_bounds.bounds,
            is_folded=all(loss.is_even for loss in line_losses),
            is_open=is_open,
            loss_unit=self.unit,
        )
        return self.solver.solve(program, masses, refinement=1.0, precision=_LIMITS.exact_precision)


def _make_law(answer: LineAnswer, claim_bounds: NoiseClaimBounds) -> IntegerLaw:
    """Make the law of a program's solution: with geometric tails, or without if noise may end.

    A tail continues the last D masses of a side. Its ratio is chosen so that its mass is the mass
    beyond the window: end * (ratio + ratio² + ...) = mass beyond.
    """
    line = answer.program
    masses = answer.masses
    if claim_bounds.can_end:
        positive_positions = np.flatnonzero(masses > 0)
        first = int(positive_positions.min())
        last = int(positive_positions.max())
        law = Distribution.from_floats(masses[first : last + 1])
        # Position `line.last` of the masses is the noise value 0.
        return IntegerLaw(first=first - line.last, weights=law)
    d = line.sensitivity
    mass_beyond = answer.mean_tail_mass
    end = (masses[:d].sum() + masses[-d:].sum()) / 2
    ratio = mass_beyond / max(end + mass_beyond, 1e-300)  # The sum may be 0.
    ratio = min(_LIMITS.max_tail_ratio, max(_LIMITS.min_tail_ratio, ratio))
    ratio_unit = 1 << _LIMITS.tail_ratio_bits
    weights = [max(1, round(mass * 2.0**_LIMITS.mass_bits)) for mass in masses.tolist()]
    return IntegerLaw(
        first=-line.last,
        weights=weights,
        period=d,
        ratio=Fraction(math.ceil(ratio * ratio_unit), ratio_unit),
    )


@dataclass(frozen=True)
class _GridAnswer:
    """The solution of a program of noise on the reals.

    Attributes:
        answer: the solution.
        cell_count: the number of cells in an interval as long as the sensitivity.
    """

    answer: LineAnswer
    cell_count: int


class _RealSearch(LineProgramSolver):
    """Search for noise on the reals on many grids. Losses are in units of Δ (Δ² if squared).

    Args:
        request: the request for noise on the reals.
        claim_bounds: the bounds that its claim implies.
        deadline: when the last program must have ended.
        known_loss: the loss of noise that is known to be private, infinite without one.

    Attributes:
        power: 1 for the absolute loss, 2 for the squared loss.
        best: the solution with the smallest upper bound, None before there is one.
        bound: the largest lower bound.
        bound_cell_count: the number of cells of the grid that proved the bound, 0 before one did.
        masses_by_cell_count: the solution of the last program of every number of cells.
    """

    def __init__(
        self,
        request: NoiseRequest,
        claim_bounds: NoiseClaimBounds,
        deadline: Deadline,
        known_loss: float,
    ) -> None:
        super().__init__(request, claim_bounds, deadline)
        self.known_loss = known_loss
        self.power = line_noise.POWERS[request.loss_name]
        self.target_gap = _REAL_TARGET_SHARE * request.target_gap
        self.best: _GridAnswer | None = None
        self.bound = ZERO
        self.bound_cell_count = 0
        self.masses_by_cell_count: dict[int, Vector] = {}

    @property
    def gap(self) -> float:
        """Return the gap between the smallest loss so far and the lower bound, relative to it."""
        assert self.best is not None
        least_loss = min(self.best.answer.value, self.known_loss)
        if not least_loss:
            return 0.0  # No loss is below 0.
        return (least_loss - float(self.bound)) / least_loss

    @property
    def is_closed(self) -> bool:
        """Check whether the upper and the lower bound agree, or the time is up."""
        return self.best is not None and (self.deadline.has_passed or self.gap <= self.target_gap)

    def make_result(self) -> BracketResult:
        """Make the result of the best grid.

        Raises InvalidRequest if the budget allows the answer itself to be published.
        """
        assert self.best is not None
        answer = self.best.answer
        cell_count = self.best.cell_count
        question = self.request.question
        assert isinstance(question, RealNoise)
        details = {
            **self.solver_details,
            "programs": self.program_count,
            "bound_steps": self.bound_cell_count,
        }
        if answer.program.is_open:
            law = _make_law(answer, self.claim_bounds)
            mechanism = AdditiveRealNoise(question, cell_count, law)
        else:
            mechanism = self._make_ended_noise(question, answer, cell_count)
        return BracketResult(mechanism, self.bound * question.sensitivity**self.power, details)

    def _make_ended_noise(
        self, question: RealNoise, answer: LineAnswer, cell_count: int
    ) -> AdditiveRealNoise:
        """Make noise with a finite support and an atom. Raises InvalidRequest as `make_result`."""
        line = answer.program
        masses = answer.masses
        if not masses.any():
            largest_limit = max(bound.limit for bound in self.claim_bounds.bounds)
            must(
                "delta",
                "less for noise on the reals: here the answer itself may be published",
                f"{largest_limit:.15g}",
            )
        # Position `line.last` of the masses is the cell around 0.
        last = max(abs(k - line.last) for k in np.flatnonzero(masses).tolist())
        used_masses = masses[line.last - last : line.last + last + 1].tolist()
        cells = [*map(Fraction, used_masses)]
        atom = Fraction(float(answer.x[-1]))  # The atom is the last column of the program.
        return AdditiveRealNoise.from_masses(
            question, cell_count, first=-last, weights=cells, atom=atom
        )

    def run(self, cell_count: int | None) -> None:
        """Solve the programs on the grids that the module describes.

        Args:
            cell_count: the number of cells of a sensitivity. None refines the grid.
        """
        if cell_count:
            self.claim_bounds.check_size(cell_count, is_on_reals=True)
            self._solve_both_bounds(cell_count, cell_count)
            return
        for k in _LIMITS.first_grids:
            if k > 1 and (self.is_closed or not self._is_solvable_grid(k)):
                break
            self.claim_bounds.check_size(k, is_on_reals=True)
            self._solve_both_bounds(k, k)
        if self.request.how.solver != "highs":
            return
        if not self.claim_bounds.has_smooth_bounds:
            # First k was doubled. Now every k between the last two is tried.
            for k in range(_LIMITS.first_grids[-2] + 1, _LIMITS.first_grids[-1]):
                if self.is_closed or not self._is_solvable_grid(k):
                    return
                self._solve_both_bounds(k, k)
        self._refine_grids()

    def _refine_grids(self) -> None:
        """Add multiples of the grid of the best lower bound to the grids of both bounds."""
        assert self.best is not None
        lower_cells = self.bound_cell_count
        upper_cells = self.best.cell_count
        # If no grid proved a bound above 0, multiples of the other grid are added.
        step = self.bound_cell_count or self.best.cell_count
        while not self.is_closed:
            # The gap falls as 1/k².
            needed_cells = max(lower_cells, upper_cells) * (self.gap / self.target_gap) ** 0.5
            increase = step * max(1, math.ceil((needed_cells - lower_cells) / step))
            while increase > step and not self._is_solvable_grid(
                max(lower_cells, upper_cells) + increase
            ):
                increase -= step
            lower_cells += increase
            upper_cells += increase
            if not self._is_solvable_grid(max(lower_cells, upper_cells)):
                return
            self._solve_both_bounds(lower_cells, upper_cells)

    def _is_solvable_grid(self, k: int) -> bool:
        """Check whether the programs on a grid of k cells are small enough."""
        if k > _LIMITS.max_cell_count:
            return False
        if self.request.how.solver != "highs":
            # Other solvers get all rows at once. If the last grid was large, this takes too long.
            size = self.claim_bounds.compute_window_size(k // 2, is_on_reals=True)
            if k // 2 * (2 * size + 1) > _LIMITS.max_unsplit_excesses:
                return False
        size = self.claim_bounds.compute_window_size(k, is_on_reals=True)
        return self.claim_bounds.is_solvable_size(k, size)

    def _solve_grid(
        self, k: int, loss: Callable[[int], Fraction], is_upper: bool, precision: float
    ) -> LineAnswer:
        """Solve the program of the upper or the lower bound on a grid of k cells.

        Args:
            k: the number of cells in an interval as long as the sensitivity.
            loss: maps the number of a cell or grid point to its loss.
            is_upper: whether the program is that of the upper bound.
            precision: relative excess over a limit up to which a point counts as feasible.
        """
        start_cell_count = self._choose_start(k)
        has_atom = is_upper and self.claim_bounds.can_end
        line = LineProgram(
            k,
            self._choose_reach(k, start_cell_count),
            losses=[loss],
            bounds=self.claim_bounds.bounds,
            is_open=not has_atom,
            atom_loss=ZERO if has_atom else None,
        )
        initial_masses = None
        refinement = float(k)
        if start_cell_count is not None:
            initial_masses = self.masses_by_cell_count[start_cell_count]
            refinement = k / start_cell_count
        answer = self.solve(line, initial_masses, refinement, precision)
        self.masses_by_cell_count[k] = answer.masses
        return answer

    def _choose_start(self, k: int) -> int | None:
        """Choose the grid from whose solution a program on a grid of k cells starts.

        Returns:
            The number of cells of the finest solved grid that is not finer. If all are finer, that
            of the finest one. None before a grid is solved.
        """
        solved_counts = self.masses_by_cell_count
        not_finer = [count for count in solved_counts if count <= k]
        return max(not_finer or solved_counts, default=None)

    def _choose_reach(self, k: int, start_cell_count: int | None) -> int:
        """Choose the end of the noise in a program: slightly beyond its end on a coarser grid.

        Args:
            k: the number of cells in an interval as long as the sensitivity.
            start_cell_count: the same number for the grid of `_choose_start`.
        """
        window_size = self.claim_bounds.compute_window_size(k, is_on_reals=True)
        is_first_grid = start_cell_count is None or k <= _LIMITS.first_grids[-1]
        if is_first_grid or not self.claim_bounds.can_end:
            return window_size
        assert start_cell_count is not None
        masses = self.masses_by_cell_count[start_cell_count]
        used = np.flatnonzero(masses > _LIMITS.negligible_share * masses.max())
        last = int(np.abs(used - masses.size // 2).max())
        reach = math.ceil((_LIMITS.reach_margin * last + 1) * k / start_cell_count)
        return max(k, min(window_size, reach))

    def _have_same_program(self, lower_cells: int, upper_cells: int) -> bool:
        """Check whether one program gives both bounds, up to a constant of the loss.

        The mean of x² over the cell of j is (jβ)² + β²/12. Without an atom, the losses of both
        programs then differ by a constant.
        """
        is_same_grid = lower_cells == upper_cells
        return self.power == 2 and is_same_grid and not self.claim_bounds.can_end

    def _solve_both_bounds(self, lower_cells: int, upper_cells: int) -> None:
        """Solve the program of the lower bound, then the program of the upper bound.

        The second program is skipped if the gap is already small enough.

        Args:
            lower_cells: the number of cells of a sensitivity for the lower bound.
            upper_cells: the number of cells of a sensitivity for the upper bound.
        """
        beta = Fraction(1, lower_cells)
        answer = self._solve_grid(
            lower_cells,
            loss=lambda j: (abs(j) * beta) ** self.power,
            is_upper=False,
            precision=_LIMITS.smooth_precision,
        )
        proven_bound = answer.bound if self.power == 1 else answer.bound - beta**2 / 4
        if proven_bound > self.bound:
            self.bound = proven_bound
            self.bound_cell_count = lower_cells
        if self.best is None or self.gap > self.target_gap:
            loss_of_cell = cell_loss(self.request.loss_name, Fraction(1, upper_cells))
            if self._have_same_program(lower_cells, upper_cells):
                answer = replace(answer, value=answer.value + float(loss_of_cell(0)))
            else:
                answer = self._solve_grid(
                    upper_cells, loss_of_cell, is_upper=True, precision=_LIMITS.upper_precision
                )
            if self.best is None or answer.value < self.best.answer.value:
                self.best = _GridAnswer(answer, upper_cells)
