"""The best noise on the integers or the reals, bounded from both sides by the linear program of
`workbench.models.noise.program`.

Integers. The open program is a relaxation for all noise, and its law, without the mass beyond, is about a mechanism:
exactly so once the window holds all of it. Where every δ of the budget is positive the law ends; else it goes on by the
ratio that its mass beyond stands for. The window grows until loss and bound meet.

Reals, a grid of β = Δ/k. Upper side, a mechanism: density constant on the cells [(j - ½)β, (j + ½)β), and an atom at 0
where every δ is positive (else a point mass has no mass to face when it moves). k integer shifts prove every real one
(`workbench.mechanisms.real_noise`). Lower side, no noise is better: round any noise stochastically to the two nearest
grid points, its mean kept. That commutes with shifts by grid steps, so the result is private for them
(post-processing), and its loss is that of the piecewise linear interpolation: E|x| itself, and at most E x² + β²/4. So
the optimum of the integer program with D = k, in units of β (β², less β²/4), is a lower bound.

The grid is refined until the two sides meet, each program starting from the law of another grid: two by two at first,
and then all grids in between. How close a side comes hangs on where the jumps r of the best density fall: the lower one
is good where k r is near an integer, the upper one near an integer and a half, where cells end. Adding a k of the first
kind keeps both, so finer grids are sums: multiples of the grid of the best bound, and these beside that of the least
loss, as many as a gap ~ 1/k² needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
from workbench.models.noise.losses import cell_loss
from workbench.models.noise.program import LineAnswer, LineProgram
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

_LARGEST, _COLUMNS = (
    20_000_000,
    6_000,
)  # bounds times shifts times noise values of a program; noise values a side
_AUDITED = 6_000  # shifts times outcomes of a notion whose audit takes logarithms of each
_WINDOWS, _MET = 12, 3  # of the integers; of one value, after which digits are what is missing
_TAIL = 12.0  # Losses of pure noise after which a first window ends.
_SAMPLED, _LEAST_EPSILON = (
    1000,
    1e-3,
)  # Noise values of a side, and the least ε, of which a unit is estimated.
_BITS = 64  # of a mass
_GRIDS, _FINEST = (1, 2, 4, 8, 16, 32), 192  # cells of a sensitivity, at first; at most
_WIDE = 32  # sensitivity on the integers from which windows begin smaller
_PIECE = 60_000  # excesses of a program in one piece, where it cannot grow row by row
_COARSE = Fraction(1, 4)  # ε of a step of the coarse bound.
_EXCESS = 1e-6  # over δ, relative: what is left is repaired at a loss that is small beside every gap of the reals
_BLOCKS = 1 << 14  # of truncated noise
_SPECK, _MARGIN = (
    1e-9,
    1.1,
)  # relative mass where noise of a grid ends; how much farther that of finer ones may go


@dataclass(frozen=True)
class BracketResult:
    """mechanism: private but for a solver's digits; bound: on every noise; work: in words."""

    mechanism: LineNoise
    bound: Fraction
    solver_details: Record


class NoiseClaimBounds(ClaimedBounds):
    """What a claim means for noise.

    ends: whether every requirement is a hockey stick of δ > 0, so that noise may end; epsilon, delta: of pure or
    truncated geometric noise that is within the budget.
    """

    def __init__(self, claim: Claim) -> None:
        super().__init__(claim, (1,))
        sticks = claim.list_ratio_bounds((1,))
        self.can_end = bool(sticks) and all(stick.delta for stick in sticks)
        if self.can_end:
            self.reference_epsilon, self.reference_delta = _shared(
                [(float(stick.epsilon), float(stick.delta)) for stick in sticks]
            )
        else:
            only = not sticks or len(sticks) > 1
            self.reference_epsilon, self.reference_delta = (
                find_implied_pure_epsilon(claim) if only else float(sticks[0].epsilon),
                0.0,
            )

    def make_private_law(self, reach: int) -> IntegerLaw:
        """Noise well within the budget: pure at half of ε; or cut off where the last `reach` values of one side weigh
        at most δ/2, as what a shift takes beyond the end is all that breaks e^ε, but for rounding."""
        if not self.can_end:
            return build_staircase_law(
                bound_inverse_exponential(Fraction(self.reference_epsilon) / 2), reach, 1
            )
        blocks = 1
        while True:
            weights = np.exp(
                -self.reference_epsilon
                * -(-np.abs(np.arange(-blocks * reach, blocks * reach + 1)) // reach)
            )
            if (
                weights[-reach:].sum() <= self.reference_delta / 2 * weights.sum()
                or blocks > _BLOCKS
            ):
                return IntegerLaw(-blocks * reach, Distribution.from_floats(weights))
            blocks += max(1, blocks // 8)

    def compute_window_size(self, steps: int, is_on_reals: bool) -> int:
        """Where truncated Laplace noise ends and a little more: twice for small ε, three times for large δ; or where
        little is left of pure noise."""
        if not self.can_end:
            return steps * math.ceil(_TAIL / self.reference_epsilon) + 2 * steps
        factor = (
            3.0 if self.reference_delta >= 0.25 else 2.0 if self.reference_epsilon < 0.5 else 1.3
        )
        if factor == 1.3 and (self.reference_epsilon >= 2 if is_on_reals else steps >= _WIDE):
            factor = 1.15
        return (
            math.ceil(
                factor
                * line_noise.truncated_laplace_support(
                    self.reference_epsilon or 1e-3, self.reference_delta
                )
                * steps
            )
            + steps
        )

    def is_solvable_size(self, steps: int, size: int) -> bool:
        """Whether a program, and the audit of what it answers, are of a size that is asked for."""
        compared = steps * (2 * size + 1)
        if self.claim.notion.series_work:
            return compared <= _AUDITED
        return len(self.bounds) * compared <= _LARGEST and size + steps <= _COLUMNS

    def check_size(self, steps: int, is_on_reals: bool = False) -> None:
        """Raise InvalidRequest for a program that is too large, with the sensitivity that would fit."""
        size = self.compute_window_size(steps, is_on_reals)
        if self.is_solvable_size(steps, size):
            return
        fits = next(
            (
                d
                for d in range(steps, 0, -1)
                if self.is_solvable_size(d, self.compute_window_size(d, is_on_reals))
            ),
            0,
        )
        more = f"sensitivity {fits} would fit" if fits else "a larger budget would fit"
        raise InvalidRequest(
            f"sensitivity must leave programs of a size that can be solved and audited. Got {size} noise values a side;"
            f" {more}{'' if is_on_reals else ', or noise on the reals'}."
        )


def _shared(sticks: Sequence[FloatPair]) -> FloatPair:
    """(ε, δ) that truncated Laplace noise within all budgets may have: their own where there is one; else it is pure,
    with half of every δ left, ln((e^ε + δ/2)/(1 - δ/2)), but for the half of the least δ that its end takes."""
    if len(sticks) == 1:
        return sticks[0]
    losses = (
        math.log((math.exp(epsilon) + delta / 2) / (1 - delta / 2)) for epsilon, delta in sticks
    )
    return min(losses), min(delta for _, delta in sticks) / 2


def bracket_optimum(
    request: NoiseRequest,
    claim_bounds: NoiseClaimBounds,
    loss: NoiseLoss,
    deadline: Deadline,
    known_noise: LineNoise | None = None,
) -> BracketResult:
    """The best noise found and a bound on all noise. loss: exact; known: private noise that is perhaps about the best.
    Raises InvalidRequest, SolverError."""
    if isinstance(request.question, IntegerNoise):
        assert known_noise is None or isinstance(known_noise, AdditiveIntegerNoise)
        return _integers(
            LineProgramSolver(request, claim_bounds, deadline), request.question, loss, known_noise
        )
    search = _Reals(request, claim_bounds, deadline)
    if known_noise is not None:
        search.known = float(loss(known_noise) / request.question.sensitivity**search.power)
    try:
        search.run(request.how.steps)
    except LicenceExceeded:
        if search.best is None:
            raise
    return search.result()


def compute_coarse_bound(request: NoiseRequest, deadline: Deadline) -> Fraction:
    """A bound on all noise, for the absolute or squared loss, from a program whose size no budget changes.

    Let m sensitivities be one step. Noise is (m ε, δ (e^(m ε) - 1)/(e^ε - 1))-private between answers a step apart, and
    rounded to the two nearest steps at random, its mean kept, it is integer noise for them, as the module docstring
    says of the reals. The step is such that m ε is about a quarter. Raises SolverError.
    """
    epsilon, power = request.claim.epsilon, line_noise.POWERS[request.loss_name]
    group = max(1, math.floor(_COARSE / epsilon))
    grown = math.expm1(float(group * epsilon)) / math.expm1(float(epsilon)) * (1 + 1e-12)
    delta = request.claim.delta * Fraction(grown)
    if delta >= 1:
        return ZERO
    within = NoiseClaimBounds(Claim(request.claim.notion, group * epsilon, delta))
    size = within.compute_window_size(1, is_on_reals=True)
    if not within.is_solvable_size(1, size):
        return ZERO
    line = LineProgram(1, size, [lambda j: Fraction(abs(j)) ** power], within.bounds)
    answer = LineProgramSolver(request, within, deadline).solve_without_guess(line)
    bound = answer.bound if power == 1 else answer.bound - Fraction(1, 4)
    step: Fraction = (group * Fraction(request.question.sensitivity)) ** power
    return max(ZERO, bound) * step


class LineProgramSolver:
    """The programs of one request; how many there were, and rounds of work."""

    def __init__(
        self, request: NoiseRequest, claim_bounds: NoiseClaimBounds, deadline: Deadline
    ) -> None:
        self.request, self.claim_bounds, self.deadline = request, claim_bounds, deadline
        self.program_count, self.round_count, self.version = 0, 0, ""

    def solve_without_guess(self, line: LineProgram) -> LineAnswer:
        """The answer of a program without a guess."""
        return self._counted(
            line.solve(precision=1e-12, deadline=self.deadline, solver=self.request.how.solver)
        )

    def compute_loss_unit(self, claim_bounds: NoiseClaimBounds, d: int) -> Fraction:
        """The unit of the losses in programs of integer noise, near the mean loss of geometric noise of a budget."""
        far = d * math.ceil(_TAIL / max(claim_bounds.reference_epsilon, _LEAST_EPSILON))
        eta = range(-far, far + 1, max(1, far // _SAMPLED))
        masses = np.exp(-claim_bounds.reference_epsilon * np.abs(eta) / d)
        means = [
            float(np.array([*map(float, map(each.value_at, eta))]) @ masses)
            for each in self.request.line_losses
        ]
        width = max(means) / float(masses.sum()) - float(self.request.scale.floor)
        return Fraction(LossScale(ZERO, width if width > 0 else self.request.scale.width).unit)

    def _counted(self, answer: LineAnswer) -> LineAnswer:
        self.program_count, self.round_count = (
            self.program_count + 1,
            self.round_count + answer.rounds,
        )
        self.version = answer.version or self.version
        return answer

    def solve(
        self, line: LineProgram, initial_law: Vector | None, refinement: float, precision: float
    ) -> LineAnswer:
        """The answer of a program. near: a law on -k..k of a grid that is so many times coarser, None for a guess."""
        if (
            initial_law is None and not self.claim_bounds.can_end
        ):  # a Gaussian of about the concentrated DP of pure noise
            eta = np.arange(-line.last, line.last + 1)
            initial_law = np.exp(
                -((eta * self.claim_bounds.reference_epsilon / (2 * line.sensitivity)) ** 2) / 2
            )
            initial_law /= initial_law.sum()
        start = None if initial_law is None else line.columns_of_law(initial_law, refinement)
        answer = line.solve(
            start,
            find_broken_bounds=self.claim_bounds.add_violated,
            precision=precision if self.claim_bounds.can_end else 1e-9,
            deadline=self.deadline,
            solver=self.request.how.solver,
        )
        return self._counted(answer)

    @property
    def solver_details(self) -> Record:
        """In words."""
        return {
            "solver": self.request.how.solver,
            "version": self.version,
            "rounds": self.round_count,
        }


def _integers(
    programs: LineProgramSolver,
    question: IntegerNoise,
    loss: NoiseLoss,
    known: AdditiveIntegerNoise | None,
) -> BracketResult:
    request, within, d = programs.request, programs.claim_bounds, question.sensitivity
    gap, losses = request.target_gap / 10, [each.value_at for each in request.line_losses]
    unit, proves = programs.compute_loss_unit(within, d), request.scale.proves
    folded = all(each.is_even for each in request.line_losses)
    within.check_size(d)
    size, bound, met = within.compute_window_size(d, is_on_reals=False), ZERO, 0
    size = max(
        size, *(0 if each.power or each.is_rising else each.span for each in request.line_losses)
    )
    best = None if known is None else (loss(known), known)
    near = None
    if (
        known is not None and best is not None
    ):  # a window to where the loss ends may be all that is needed
        least = min(size, d + max(each.span for each in request.line_losses))
        if not programs.deadline.has_passed:
            bound = programs.solve(
                LineProgram(d, least, losses, within.bounds, folded, loss_unit=unit),
                None,
                1.0,
                1e-12,
            ).bound
        if proves(best[0], bound, gap):
            return BracketResult(known, bound, programs.solver_details)
    for _ in range(_WINDOWS):
        try:
            answer = programs.solve(
                LineProgram(d, size, losses, within.bounds, folded, loss_unit=unit),
                near,
                1.0,
                1e-12,
            )
            bound, near, value_below = (
                max(bound, answer.bound),
                answer.masses,
                Fraction(answer.value),
            )
            if best is not None and proves(best[0], bound, gap):
                break
            if within.can_end and answer.mean_tail_mass:  # no dearer there, but no mechanism
                ended = LineProgram(
                    d, size, losses, within.bounds, folded, is_open=False, loss_unit=unit
                )
                answer = programs.solve(ended, near, 1.0, 1e-12)
        except SolverError:
            if best is None or not programs.deadline.has_passed:
                raise
            break
        mechanism = AdditiveIntegerNoise(question, _law(answer, within))
        value = loss(mechanism)
        if best is None or value < best[0]:
            best = value, mechanism
        met += proves(value, value_below, gap) and proves(value_below, bound, 1e-3)
        size = math.ceil(1.4 * size)
        enough = proves(best[0], bound, gap) or met == _MET
        if enough or programs.deadline.has_passed or not within.is_solvable_size(d, size):
            break
    assert best is not None
    return BracketResult(best[1], bound, programs.solver_details)


def _law(answer: LineAnswer, within: NoiseClaimBounds) -> IntegerLaw:
    """The law of an open program, or of one that ends where the budget lets noise end."""
    line, masses = answer.program, answer.masses
    if within.can_end:
        used = np.flatnonzero(masses > 0)
        return IntegerLaw(
            int(used[0]) - line.last, Distribution.from_floats(masses[used[0] : used[-1] + 1])
        )
    d, beyond = line.sensitivity, answer.mean_tail_mass
    end = (masses[:d].sum() + masses[-d:].sum()) / 2
    ratio = min(0.98, max(0.008, beyond / max(end + beyond, 1e-300)))
    weights = [max(1, round(mass * 2.0**_BITS)) for mass in masses.tolist()]
    return IntegerLaw(-line.last, weights, d, Fraction(math.ceil(ratio * 2**20), 2**20))


class _Reals(LineProgramSolver):
    """Both sides on many grids, with the best of each; in units of Δ (Δ² for squared losses)."""

    def __init__(
        self, request: NoiseRequest, claim_bounds: NoiseClaimBounds, deadline: Deadline
    ) -> None:
        super().__init__(request, claim_bounds, deadline)
        self.power, self.target = line_noise.POWERS[request.loss_name], 0.9 * request.target_gap
        self.best: tuple[LineAnswer, int] | None = None
        self.bound, self.at = ZERO, 0
        self.known = math.inf  # the loss of noise known to be private
        self.laws: dict[int, Vector] = {}

    @property
    def gap(self) -> float:
        """Relative to the upper value."""
        assert self.best is not None
        value = min(self.best[0].value, self.known)
        return (
            (value - float(self.bound)) / value if value else 0.0
        )  # nothing costs less than nothing

    @property
    def closed(self) -> bool:
        """Whether the two sides have met, or the time is up."""
        return self.best is not None and (self.deadline.has_passed or self.gap <= self.target)

    def result(self) -> BracketResult:
        """As it stands. Raises InvalidRequest where the answer itself may be published."""
        assert self.best is not None
        answer, steps = self.best
        question, line = self.request.question, answer.program
        assert isinstance(question, RealNoise)
        work = {**self.solver_details, "programs": self.program_count, "bound_steps": self.at}
        if line.is_open:
            mechanism = AdditiveRealNoise(question, steps, _law(answer, self.claim_bounds))
        else:
            masses = answer.masses
            if not masses.any():
                given = f"{max(bound.limit for bound in self.claim_bounds.bounds):.15g}"
                must(
                    "delta",
                    "less for noise on the reals: here the answer itself may be published",
                    given,
                )
            kept = max(abs(k - line.last) for k in np.flatnonzero(masses).tolist())
            cells = [*map(Fraction, masses[line.last - kept : line.last + kept + 1].tolist())]
            mechanism = AdditiveRealNoise.from_masses(
                question, steps, -kept, cells, Fraction(float(answer.x[-1]))
            )
        return BracketResult(mechanism, self.bound * question.sensitivity**self.power, work)

    def run(self, steps: int | None) -> None:
        """The grids of the module's docstring."""
        for k in [steps] if steps else _GRIDS:
            if k > 1 and not steps and (self.closed or not self._fits(k)):
                break
            self.claim_bounds.check_size(k, is_on_reals=True)
            self._both(k, k)
        if steps or self.request.how.solver != "highs":
            return
        for k in range(_GRIDS[-2] + 1, _GRIDS[-1]):
            if self.closed or not self._fits(k):
                return
            self._both(k, k)
        assert self.best is not None
        step, low, high = (
            self.at or self.best[1],
            self.at,
            self.best[1],
        )  # no bound above 0 has no grid
        while not self.closed:
            needed = max(low, high) * (self.gap / self.target) ** 0.5
            more = step * max(1, math.ceil((needed - low) / step))
            while more > step and not self._fits(max(low, high) + more):
                more -= step
            low, high = low + more, high + more
            if not self._fits(max(low, high)):
                return
            self._both(low, high)

    def _fits(self, k: int) -> bool:
        before = self.claim_bounds.compute_window_size(k // 2, is_on_reals=True)
        if k > _FINEST or (
            self.request.how.solver != "highs" and k // 2 * (2 * before + 1) > _PIECE
        ):
            return False
        return self.claim_bounds.is_solvable_size(
            k, self.claim_bounds.compute_window_size(k, is_on_reals=True)
        )

    def _solved(
        self, k: int, loss: Callable[[int], Fraction], upper: bool, precision: float
    ) -> LineAnswer:
        near = max((size for size in self.laws if size <= k), default=max(self.laws, default=0))
        ended = upper and self.claim_bounds.can_end
        atom = ZERO if ended else None
        line = LineProgram(
            k,
            self._reach(k, near),
            [loss],
            self.claim_bounds.bounds,
            is_open=not ended,
            atom_loss=atom,
        )
        answer = self.solve(line, self.laws.get(near), k / max(near, 1), precision)
        self.laws[k] = answer.masses
        return answer

    def _reach(self, k: int, near: int) -> int:
        """Where the noise of a program ends: a little beyond that of a coarser grid, where grids are fine."""
        whole = self.claim_bounds.compute_window_size(k, is_on_reals=True)
        if k <= _GRIDS[-1] or not self.claim_bounds.can_end:
            return whole
        masses = self.laws[near]
        used = int(np.abs(np.flatnonzero(masses > _SPECK * masses.max()) - masses.size // 2).max())
        return max(k, min(whole, math.ceil((_MARGIN * used + 1) * k / near)))

    def _both(self, low: int, high: int) -> None:
        """The lower side on one grid, and the upper one on another, unless it has met what is known."""
        power, beta = self.power, Fraction(1, low)
        answer = self._solved(low, lambda j: (abs(j) * beta) ** power, upper=False, precision=1e-9)
        proven = answer.bound if power == 1 else answer.bound - beta**2 / 4
        if proven > self.bound:
            self.bound, self.at = proven, low
        if self.best is None or self.gap > self.target:
            cells = cell_loss(self.request.loss_name, Fraction(1, high))
            answer = self._solved(high, cells, upper=True, precision=_EXCESS)
            if self.best is None or answer.value < self.best[0].value:
                self.best = answer, high
