"""The best additive noise on the integers: answers differ by at most D between neighbours, η ~ f, loss c(η).

    min Σ c(η) f(η)   s.t.  Σ f = 1,  y_s(η) >= f(η) - e^ε f(η + s),  y_s >= 0,  Σ_η y_s(η) <= δ,   s = ±1..±D

c(η) >= 0 does not fall as |η| grows. `bracket` states it twice (`models.additive_lp`): a law of finite support, which
is a mechanism, and a relaxation for noise on all integers, a lower bound. Both supports grow until the two meet.

δ = 0 needs no program: for costs that are even the staircase is optimal (Geng and Viswanath 2014), its parameter found
by `models.oracles.line_noise`.

    letter    here              letter    here
    D, ε, δ   sensitivity, epsilon, delta      c(η)   LineLoss.at
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from models.additive_lp import Answer, Cut, LineProgram, moved
from models.oracles.line_noise import POWERS, support
from solvers.search import Deadline

__all__ = ["Bracket", "Budget", "LineLoss", "ProgramTooLarge", "bracket", "reach", "shared_budget"]

LARGEST = 20_000_000  # shifts times noise values
COLUMNS = 6_000
_MET = 3  # supports at which both programs have the same value


class ProgramTooLarge(ValueError):
    """The program would be too large; the message says which size would fit."""


@dataclass(frozen=True)
class LineLoss:
    """c(η) on all integers: |η|^power, or a table for -m..m, whose ends hold beyond it.

    table: values >= 0 for -m..m that do not fall as |η| grows. Raises ValueError.
    """

    name: str
    power: int = 0
    table: tuple[Fraction, ...] = ()

    def __post_init__(self) -> None:
        if self.power:
            return
        m, values = len(self.table) // 2, self.table
        right, left = values[m:], values[m::-1]
        rising = all(a <= b for side in (right, left) for a, b in pairwise(side))
        if len(values) % 2 == 0 or min(values) < 0 or not rising:
            raise ValueError("loss must be >= 0 and not fall as |noise| grows. Got one that does.")

    @classmethod
    def named(cls, name: str) -> LineLoss:
        """ "absolute" or "squared"."""
        return cls(name, POWERS[name])

    @classmethod
    def own(cls, values: Sequence[Fraction]) -> LineLoss:
        """c(|η|) = values[|η|], its last value beyond."""
        return cls("own", 0, (*values[:0:-1], *values))

    @classmethod
    def clamped(
        cls, name: str, answers: int, loss: Callable[[int], Fraction], prior: Sequence[Fraction] | None = None
    ) -> LineLoss:
        """c(η) = Σ_q prior(q) loss(clamp(q + η) - q), q = 0..answers-1; uniform without a prior."""
        n = answers - 1
        weights = [Fraction(1)] * answers if prior is None else [*prior]
        losses = {r: loss(r) for r in range(-n, n + 1)}
        total = sum(weights)
        # Σ over q that are not clamped, by differences; those that are clamped have r = n - q or -q
        table = []
        for eta in range(-n, n + 1):
            expected = sum((p * losses[min(n, max(0, q + eta)) - q] for q, p in enumerate(weights) if p), Fraction(0))
            table.append(expected / total)
        return cls(name, 0, tuple(table))

    @property
    def even(self) -> bool:
        """Whether c(-η) = c(η)."""
        return self.table == self.table[::-1]

    @property
    def span(self) -> int:
        """m of the table."""
        return len(self.table) // 2

    @property
    def beyond(self) -> tuple[Fraction, ...]:
        """Coefficients of 1, |η|, |η|² beyond the table, of an even loss."""
        return (Fraction(0),) * self.power + (Fraction(1),) if self.power else (self.table[-1],)

    def at(self, eta: int) -> Fraction:
        """c(η), exact."""
        if self.power:
            return Fraction(abs(eta) ** self.power)
        return self.table[min(self.span, max(-self.span, eta)) + self.span]

    def columns(self, reach: int) -> list[Fraction]:
        """Of a program: |η| = 0..reach for an even loss, else η = -reach..reach."""
        return [self.at(eta) for eta in range(0 if self.even else -reach, reach + 1)]


@dataclass(frozen=True)
class Budget:
    """One (ε, δ). epsilon: >= 0; exp_epsilon: a rational >= e^ε; delta: > 0."""

    epsilon: float
    exp_epsilon: Fraction
    delta: Fraction


@dataclass(frozen=True)
class Bracket:
    """A mechanism's program and a relaxation of all: the optimum lies between upper.value and lower.bound."""

    upper: Answer
    lower: Answer

    @property
    def gap(self) -> float:
        """Relative to the upper value."""
        value = self.upper.value
        return (value - float(self.lower.bound)) / value if value else 0.0


def reach(sensitivity: int, epsilon: float, delta: float) -> int:
    """Where truncated Laplace noise ends and a little more: twice for small ε, three times for large δ."""
    factor = 3.0 if delta >= 0.25 else 2.0 if epsilon < 0.5 else 1.3
    epsilon = epsilon or 1e-3
    return math.ceil(factor * support(epsilon, delta) * sensitivity) + sensitivity


def shared_budget(budgets: Sequence[Budget]) -> tuple[float, float]:
    """(ε, δ) that truncated Laplace noise within all budgets may have: their own where there is one; else it is pure,
    with half of every δ left, ln((e^ε + δ/2)/(1 - δ/2)), but for the half of the least δ that its end takes."""
    if len(budgets) == 1:
        return budgets[0].epsilon, float(budgets[0].delta)
    halves = [float(budget.delta) / 2 for budget in budgets]
    losses = [
        math.log((math.exp(budget.epsilon) + half) / (1 - half)) for budget, half in zip(budgets, halves, strict=True)
    ]
    return min(losses), min(halves)


def check_size(sensitivity: int, size: int, epsilon: float, delta: float, many: int = 1) -> None:
    """Raise ProgramTooLarge for a program with noise values up to `size`, with the sensitivity that would fit. many:
    budgets."""
    if many * sensitivity * (2 * size + 1) <= LARGEST and size <= COLUMNS:
        return
    fits = next(
        (
            d
            for d in range(sensitivity, 0, -1)
            if many * d * (2 * reach(d, epsilon, delta) + 1) <= LARGEST and reach(d, epsilon, delta) <= COLUMNS
        ),
        0,
    )
    more = f"sensitivity {fits} would fit" if fits else "a larger epsilon or delta would fit"
    raise ProgramTooLarge(
        f"sensitivity must leave at most {COLUMNS} noise values a side and {LARGEST} constraints. Got {size} noise "
        f"values a side; {more}, or noise on the reals."
    )


def bracket(
    sensitivity: int,
    budgets: Sequence[Budget],
    loss: LineLoss,
    *,
    gap: float = 1e-9,
    stop: float | None = None,
    solver: str = "highs",
) -> Bracket:
    """The optimum from both sides. gap: relative, where supports stop growing; stop: time (perf_counter) to stop at.

    They also stop where both programs have had the same value three times: what is left then is the digits of duals,
    which wider supports do not mend. Raises ProgramTooLarge, SolverError.
    """
    deadline = Deadline.until(stop)
    (epsilon, delta), many = shared_budget(budgets), len(budgets)
    size = reach(sensitivity, epsilon, delta)
    check_size(sensitivity, size + sensitivity, epsilon, delta, many)
    known: Bracket | None = None
    cuts: list[Cut] = []
    met = 0
    while True:
        shared = (sensitivity, budgets[0].exp_epsilon, budgets[0].delta)
        more = tuple((budget.exp_epsilon, budget.delta) for budget in budgets[1:])
        upper = LineProgram(*shared, size, size, loss.columns(size), loss.even, more=more)
        answer = upper.solve(cuts, precision=1e-12, deadline=deadline, solver=solver)
        wide = size + sensitivity
        lower = LineProgram(*shared, wide, size, loss.columns(wide), loss.even, more=more)
        below = lower.solve(answer.cuts, precision=1e-12, deadline=deadline, solver=solver)
        if answer.value - below.value <= gap * answer.value:
            met += 1
        if known is not None:  # each bound holds for all noise, whatever the support of its program
            answer = min(answer, known.upper, key=lambda side: side.value)
            below = max(below, known.lower, key=lambda side: side.bound)
        known = Bracket(answer, below)
        size = math.ceil(1.4 * size)
        large = size + sensitivity > COLUMNS or many * sensitivity * (2 * size + 1) > LARGEST
        if known.gap <= gap or deadline.passed or large or met == _MET:
            return known
        cuts = moved(answer.cuts, size)
