"""The best additive noise on the reals, bounded from both sides by the integer program on a grid of β = Δ/k.

Upper side, a mechanism: density constant on the cells [(j - ½)β, (j + ½)β) with masses q_j, and an atom a at 0. k
integer shifts prove every real one (`workbench.mechanisms.real_noise`). Mean costs of the cells:

    |x|: |j| β, and β/4 for j = 0          x²: j² β² + β²/12          the atom: 0

Lower side, no noise is better: round any noise stochastically to the two nearest grid points, its mean kept. That
commutes with shifts by grid steps, so the result is private for them (post-processing), and its loss is that of the
piecewise linear interpolation: E|x| itself, and at most E x² + β²/4. So the optimum of the integer program with D = k,
times β (β², less β²/4), is a lower bound.

The grid is refined until the two sides meet, each program starting from the cuts of another grid: two by two at first,
and then all grids in between. How close a side comes hangs on where the jumps r of the best density fall: the lower one
is good where k r is near an integer, the upper one near an integer and a half, where cells end. Adding a k of the first
kind keeps both, so finer grids are sums: multiples of the grid of the best bound, and these beside that of the least
loss, as many as a gap ~ 1/k² needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from models.additive_cuts import by_cuts
from models.additive_lp import Answer, Cut, LineProgram, refined
from models.integer_noise import Budget, ProgramTooLarge, check_size, shared_budget
from models.oracles.line_noise import POWERS, support
from solvers.errors import LicenceExceeded
from solvers.search import Deadline

__all__ = ["RealBracket", "real_bracket"]

_DOUBLED, _FINEST = 32, 192  # steps up to which grids are doubled; at most
_PIECE = 60_000  # excesses of a program in one piece, where it cannot grow row by row
_WHOLE = 15_000  # excesses y, up to which programs that state them are the faster ones; a tenth on fine grids
_FEW = 8  # shifts of a grid that is not fine
_EXCESS = 1e-6  # over δ, relative: what is left is repaired at a loss that is small beside every gap


@dataclass(frozen=True)
class RealBracket:
    """In units of Δ (Δ² for squared costs): a mechanism's program on `steps` cells, and the largest lower bound found.

    lower_steps: the grid of the bound; programs, rounds: the work.
    """

    upper: Answer
    steps: int
    bound: Fraction
    lower_steps: int
    programs: int
    rounds: int

    @property
    def gap(self) -> float:
        """Relative to the upper value."""
        value = self.upper.value
        return (value - float(self.bound)) / value if value else 0.0  # nothing costs less than nothing


def _cells(power: int, k: int, reach: int) -> list[Fraction]:
    """Mean costs of the cells |j| = 0..reach, Δ = 1."""
    beta = Fraction(1, k)
    if power == 1:
        return [beta / 4, *(j * beta for j in range(1, reach + 1))]
    return [beta**2 * (j * j + Fraction(1, 12)) for j in range(reach + 1)]


def _reach(k: int, epsilon: float, delta: float) -> int:
    factor = 3.0 if delta >= 0.25 else 2.0 if epsilon < 0.5 else 1.3 if epsilon < 2 else 1.15
    epsilon = epsilon or 1e-3
    return math.ceil(factor * support(epsilon, delta) * k) + k


def real_bracket(
    budgets: Sequence[Budget],
    loss: str,
    *,
    gap: float = 1e-4,
    steps: int | None = None,
    stop: float | None = None,
    progress: Callable[[str], None] | None = None,
    solver: str = "highs",
) -> RealBracket:
    """The optimum for loss "absolute" or "squared" and Δ = 1, from both sides.

    gap: relative, at which to stop; steps: of the only grid, else grids are refined; stop: time (perf_counter) to end
    after the first grid; solver: others than highs state each grid in one piece, and refine while it is small.
    Raises ProgramTooLarge, SolverError.
    """
    search = _Search(budgets, loss, gap, stop, solver, progress)
    try:
        search.run(steps)
    except LicenceExceeded:
        if search.best is None:
            raise
    return search.result


class _Search:
    """Both sides on many grids, with the best of each."""

    def __init__(
        self,
        budgets: Sequence[Budget],
        loss: str,
        gap: float,
        stop: float | None,
        solver: str,
        progress: Callable[[str], None] | None,
    ) -> None:
        self.budgets, self.power, self.gap, self.solver = budgets, POWERS[loss], gap, solver
        self.progress, self.deadline, self.clock = progress, Deadline.until(stop), Deadline()
        self.epsilon, self.delta = shared_budget(budgets)
        self.best: tuple[Answer, int] | None = None
        self.bound, self.at, self.programs, self.rounds = Fraction(0), 0, 0, 0
        self.cuts: dict[int, list[Cut]] = {}

    @property
    def result(self) -> RealBracket:
        """As it stands."""
        assert self.best is not None
        return RealBracket(*self.best, self.bound, self.at, self.programs, self.rounds)

    @property
    def closed(self) -> bool:
        """Whether the two sides have met, or the time is up."""
        return self.best is not None and (self.deadline.passed or self.result.gap <= self.gap)

    def run(self, steps: int | None) -> None:
        """The grids of the module's docstring."""
        for k in [steps] if steps else self._doubled():
            self._reach(k)
            self._lower(k)
            self._upper(k)
        if steps or self.solver != "highs":
            return
        for k in range(_DOUBLED // 2 + 1, _DOUBLED):
            if self.closed or not self._fits(k):
                return
            self._lower(k)
            self._upper(k)
        assert self.best is not None
        step, low, high = self.at, self.at, self.best[1]
        while not self.closed:
            needed = max(low, high) * (self.result.gap / self.gap) ** 0.5
            more = step * max(1, math.ceil((needed - low) / step))
            while more > step and not self._fits(max(low, high) + more):
                more -= step
            low, high = low + more, high + more
            if not self._fits(max(low, high)):
                return
            self._lower(low)
            self._upper(high)

    def _doubled(self) -> Iterator[int]:
        yield 1
        k = 2
        while k <= _DOUBLED and not self.closed and self._fits(k):
            yield k
            k *= 2

    def _reach(self, k: int) -> int:
        size = _reach(k, self.epsilon, self.delta)
        check_size(k, size + k, self.epsilon, self.delta, len(self.budgets))
        return size

    def _fits(self, k: int) -> bool:
        before = _reach(k // 2, self.epsilon, self.delta)
        if k > _FINEST or (self.solver != "highs" and k // 2 * (2 * before + 1) > _PIECE):
            return False
        try:
            self._reach(k)
        except ProgramTooLarge:
            return False
        return True

    def _started(self, k: int, size: int) -> list[Cut]:
        """The cuts of the nearest grid that is not finer, or of the finest."""
        if not self.cuts:
            return []
        near = max((size for size in self.cuts if size <= k), default=max(self.cuts))
        return refined(self.cuts[near], size, Fraction(k, near))

    def _solved(
        self, k: int, losses: Sequence[Fraction], atom: Fraction | None, precision: float = 1e-9, stall: float = 0.0
    ) -> Answer:
        first, size = self.budgets[0], self._reach(k)
        more = tuple((budget.exp_epsilon, budget.delta) for budget in self.budgets[1:])
        line = LineProgram(k, first.exp_epsilon, first.delta, len(losses) - 1, size, losses, atom=atom, more=more)
        cuts, few = self._started(k, size), line.every_target.size <= (_WHOLE if k <= _FEW else _WHOLE // 10)
        if few or self.solver != "highs":
            answer = line.solve(cuts, precision=precision, deadline=self.deadline, solver=self.solver)
        else:
            answer = by_cuts(line, cuts, precision=precision, stall=stall, deadline=self.deadline)
        self.programs, self.rounds = self.programs + 1, self.rounds + answer.rounds
        return answer

    def _lower(self, k: int) -> None:
        beta = Fraction(1, k)
        losses = [(j * beta) ** self.power for j in range(self._reach(k) + k + 1)]
        answer = self._solved(k, losses, None, stall=self.gap / 40)
        proven = answer.bound if self.power == 1 else answer.bound - beta**2 / 4
        if proven > self.bound:
            self.bound, self.at = proven, k
        self.cuts[k] = [*answer.cuts]

    def _upper(self, k: int) -> None:
        """Unless the lower side has met what is known."""
        if self.best is None or (self.best[0].value - float(self.bound)) > self.gap * self.best[0].value:
            answer = self._solved(k, _cells(self.power, k, self._reach(k)), Fraction(0), _EXCESS)
            if self.best is None or answer.value < self.best[0].value:
                self.best = answer, k
            self.cuts[k] = [*self.cuts.get(k, ()), *answer.cuts]
        if self.progress is not None:
            bracket = self.result
            interval = f"[{float(bracket.bound):.9g}, {bracket.upper.value:.9g}]"
            self.progress(f"grid of {k}: loss in {interval}, {self.clock.elapsed:.1f} s")
