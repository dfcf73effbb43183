"""What an oracle is asked and what it answers.

A closed form is a number together with what it proves. `kind` speaks of the *error rate* 1 - f(0): "optimum" is the
least error rate of any feasible mechanism, "upper bound" is the error rate of a feasible mechanism that nobody has
proven optimal, "lower bound" is an error rate below which no feasible mechanism can go.

| paper     | here                                                                   |
|-----------|------------------------------------------------------------------------|
| n + 1     | `prod(sizes)`; a vector query has one size per entry                   |
| μ         | a shift, one int per size                                              |
| 𝓜 and ε   | `budgets`: shift -> ε                                                  |
| δ         | `delta`                                                                |
| PDP, DP   | `requires`: "mass-above-ratio", "hockey-stick" (`workbench.models.convex.requirements`) |
| ρ, f      | `ClosedForm.value`, `ClosedForm.pmf` (row-major over sizes)            |
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from workbench.models.convex.requirements import RatioBound
from workbench.solvers.arrays import Ints, Vector

Kind: TypeAlias = Literal["optimum", "lower bound", "upper bound"]
Shift: TypeAlias = Ints

ROUNDING = 1e-12
"""Two double-precision evaluations of the same closed form agree to this relative tolerance."""


class OutsideDomain(ValueError):
    """The question lies outside what this closed form can answer; the message says which value and why."""


@dataclass(frozen=True, eq=False)
class ClosedForm:
    """One proven statement about the least error rate of a question.

    `value` is the error rate 1 - f(0), computed so that a tiny error keeps its relative accuracy. `pmf` attains it
    (row-major, length prod(sizes), read-only), or is None for a bound that no mechanism is claimed to attain.
    `proof` says in one sentence where the statement is valid and why.
    """

    name: str
    value: float
    pmf: Vector | None
    kind: Kind
    proof: str

    def __post_init__(self) -> None:
        if self.pmf is not None:
            self.pmf.setflags(write=False)


def is_close(left: float, right: float) -> bool:
    """Tell whether two error rates, or two masses f(0), are the same number up to rounding."""
    return math.isclose(left, right, rel_tol=ROUNDING, abs_tol=1e-15)


@dataclass(frozen=True)
class Question:
    """Least error rate of additive noise on Z_{n1} x ... x Z_{nk} under a bound on ratios; build it with `ask`."""

    sizes: Ints
    unit_budgets_text: Mapping[Shift, float]
    delta: float
    requires: RatioBound

    @property
    def shifts(self) -> tuple[Shift, ...]:
        """The distinct non-zero shifts."""
        return tuple(self.unit_budgets_text)

    @property
    def epsilon(self) -> float | None:
        """The one ε all shifts share, or None when they differ or there is no shift."""
        distinct = set(self.unit_budgets_text.values())
        return distinct.pop() if len(distinct) == 1 else None


def negate_shift(sizes: Ints, shift: Shift) -> Shift:
    """-μ in the group."""
    return tuple(-step % size for step, size in zip(shift, sizes, strict=True))


def build_question(
    sizes: Sequence[int],
    shifts: Sequence[Shift],
    is_directed: bool,
    epsilon: float | Mapping[Shift, float],
    delta: float,
    requires: RatioBound,
) -> Question:
    """The question of sizes >= 1, shifts reduced modulo the sizes, ε finite and > 0, δ in [0, 1].

    The zero shift compares a distribution with itself and constrains nothing, so it is dropped. Two spellings of one
    shift keep the smaller ε, which implies the other. A relation that is not directed must list -μ beside every μ.
    Raises OutsideDomain.
    """
    shape, budgets = tuple(sizes), dict[Shift, float]()
    for shift in shifts:
        budget = epsilon[shift] if isinstance(epsilon, Mapping) else epsilon
        reduced = tuple(step % size for step, size in zip(shift, shape, strict=True))
        if any(reduced):
            budgets[reduced] = min(budget, budgets.get(reduced, math.inf))
    missing = (
        []
        if is_directed
        else [
            negate_shift(shape, shift)
            for shift in budgets
            if negate_shift(shape, shift) not in budgets
        ]
    )
    if missing:
        raise OutsideDomain(
            f"shifts must be closed under negation unless directed. Missing {missing[0]}."
        )
    return Question(shape, budgets, delta, requires)
