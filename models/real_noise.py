"""The best additive noise on the reals, bounded from both sides by the integer program on a grid of β = Δ/k.

Upper side, a mechanism: density constant on the cells [(j - ½)β, (j + ½)β) with masses q_j, and an atom a at 0. k
integer shifts prove every real one (`workbench.mechanisms.real_noise`). Mean costs of the cells:

    |x|: |j| β, and β/4 for j = 0          x²: j² β² + β²/12          the atom: 0

Lower side, no noise is better: round any noise stochastically to the two nearest grid points, its mean kept. That
commutes with shifts by grid steps, so the result is private for them (post-processing), and its cost is that of the
piecewise linear interpolation: E|x| itself, and at most E x² + β²/4. So the optimum of the integer program with D = k,
times β (β², less β²/4), is a lower bound.

The grid is refined, two by two at first, until the two meet, each program starting from the cuts of the coarser one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from models.additive_cuts import WHOLE, Answer, Cut, LineProgram, refined
from models.integer_noise import Budget, check_size, shared_budget
from models.oracles.line_noise import POWERS, support
from solvers.errors import LicenceExceeded

__all__ = ["RealBracket", "real_bracket"]

_FINER = {128: 160, 160: 192}  # where twice as many steps would take too long
_PIECE = 60_000  # excesses of a program in one piece, where it cannot grow row by row
_EXCESS = 1e-6  # over δ, relative: what is left is repaired at a cost that is small beside every gap
_FEW = 8  # shifts, up to which programs in one piece are the faster ones


@dataclass(frozen=True)
class RealBracket:
    """In units of Δ (Δ² for squared costs): a mechanism's program on `steps` cells, and the largest lower bound found.

    lower_steps: the grid of the bound; programs, rounds, seconds: the work.
    """

    upper: Answer
    steps: int
    bound: Fraction
    lower_steps: int
    programs: int
    rounds: int
    seconds: float

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
    budgets: Sequence[Budget], cost: str, *, gap: float = 2e-4, steps: int | None = None, stop: float | None = None,
    solver: str = "highs", progress: Callable[[str], None] | None = None,
) -> RealBracket:  # fmt: skip
    """The optimum for Δ = 1 from both sides.

    gap: relative, where refining stops; steps: the one grid to use instead; stop: time (perf_counter) to stop at, after
    the first grid; solver: others than highs state each grid in one piece, and refine while it is small.
    Raises ProgramTooLarge, SolverError.
    """
    first, many = budgets[0], len(budgets)
    more = tuple((budget.exp_epsilon, budget.delta) for budget in budgets[1:])

    epsilon, delta = shared_budget(budgets)

    def checked_reach(k: int) -> int:
        size = _reach(k, epsilon, delta)
        check_size(k, size + k, epsilon, delta, many)
        return size

    power, begin = POWERS[cost], time.perf_counter()
    result: RealBracket | None = None
    best: tuple[Answer, int] | None = None
    bound, at, programs, rounds = Fraction(0), 0, 0, 0
    cuts: list[Cut] = []
    k, coarser = steps or 1, steps or 1
    while True:
        size = checked_reach(k)
        shared, beta = (k, first.exp_epsilon, first.delta), Fraction(1, k)
        wide = size + k
        whole = WHOLE if k <= _FEW else WHOLE // 10
        costs = [(j * beta) ** power for j in range(wide + 1)]
        try:
            last = LineProgram(*shared, wide, size, costs, more=more).solve(
                refined(cuts, size, Fraction(k, coarser)), stall=gap / 40, stop=stop, whole=whole, solver=solver
            )
        except LicenceExceeded:
            if result is None:
                raise
            return result
        proven = last.bound if power == 1 else last.bound - beta**2 / 4
        if proven > bound:
            bound, at = proven, k
        programs, rounds = programs + 1, rounds + last.rounds
        cuts = [*last.cuts]
        if best is None or (best[0].value - float(bound)) > gap * best[0].value:
            cells = LineProgram(*shared, size, size, _cells(power, k, size), atom=Fraction(0), more=more)
            upper = cells.solve(cuts, precision=_EXCESS, stop=stop, whole=whole, solver=solver)
            programs, rounds = programs + 1, rounds + upper.rounds
            if best is None or upper.value < best[0].value:
                best = upper, k
            cuts += upper.cuts
        seconds = time.perf_counter() - begin
        result = RealBracket(*best, bound, at, programs, rounds, seconds)
        if progress is not None:
            progress(f"grid of {k}: cost in [{float(bound):.9g}, {best[0].value:.9g}], {seconds:.1f} s")
        late = stop is not None and time.perf_counter() > stop
        if steps or late or result.gap <= gap or k == max(_FINER.values()):
            return result
        coarser, k = k, _FINER.get(k, 2 * k)
        size = _reach(k, epsilon, delta)
        if solver != "highs" and k * (2 * size + 1) > _PIECE:
            return result
        try:
            checked_reach(k)
        except ValueError:
            return result
