"""State a question about the smallest error rate of noise, and an answer to it with its proof.

Every oracle (a module with a closed form) takes a `Question` and yields objects of `ClosedForm`.
`build_question` makes a question from shifts and budgets. f is the PMF of the noise, and a shift is
a difference of neighbouring answers. The paper is Kadam et al. 2024.

A closed form is an error rate 1 - f(0) with the statement that is proven about it. Its `kind` is

* "optimum": the smallest error rate of any feasible mechanism,
* "upper bound": the error rate of a feasible mechanism that is not proven optimal,
* "lower bound": an error rate below which no feasible mechanism exists.

| paper     | here                                                                   |
|-----------|------------------------------------------------------------------------|
| n + 1     | `prod(sizes)`; a vector query has one size per entry                   |
| μ         | a shift, one int per size                                              |
| 𝓜 and ε   | `budgets`: shift -> ε                                                  |
| δ         | `delta`                                                                |
| PDP, DP   | `requires`: "mass-above-ratio", "hockey-stick"                         |
|           | (`workbench.models.convex.requirements`)                               |
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

# Relative tolerance of `is_close`. Two evaluations of one closed form in double precision differ by
# less.
ROUNDING = 1e-12
_MASS_ROUNDING = 1e-15  # Absolute tolerance of `is_close`, for numbers near 0.


class OutsideDomain(ValueError):
    """The question is outside the domain of a closed form. The message states the limit."""


@dataclass(frozen=True, eq=False)
class ClosedForm:
    """One proven statement about the smallest error rate of a question.

    Attributes:
        name: name of the law or bound.
        value: the error rate 1 - f(0), computed so that a tiny error keeps its relative accuracy.
        pmf: a PMF that attains it, row-major, read-only, shape (prod(sizes),). None for a bound
            that no mechanism is claimed to attain.
        kind: "optimum", "lower bound" or "upper bound".
        proof: one sentence on where the statement is valid and why.
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
    """Check whether two error rates, or two masses f(0), are the same number up to rounding.

    Args:
        left: error rate or mass in [0, 1].
        right: number of the same kind to which it is compared.
    """
    return math.isclose(left, right, rel_tol=ROUNDING, abs_tol=_MASS_ROUNDING)


@dataclass(frozen=True)
class Question:
    """A question: how small can the error rate of additive noise on a group be under DP or PDP?

    The group is Z_{n1} x ... x Z_{nk}. Build the question with `build_question`.

    Attributes:
        sizes: orders n1..nk of the cyclic factors of the group.
        budgets: budget ε of every distinct non-zero shift. A shift has one integer per factor.
        delta: budget δ in [0, 1].
        requires: bound on neighbouring distributions, "hockey-stick" (DP) or "mass-above-ratio"
            (PDP).
    """

    sizes: Ints
    budgets: Mapping[Shift, float]
    delta: float
    requires: RatioBound

    @property
    def shifts(self) -> tuple[Shift, ...]:
        """Return the distinct non-zero shifts."""
        return tuple(self.budgets)

    @property
    def epsilon(self) -> float | None:
        """Return the ε that all shifts share, or None if they differ or there is no shift."""
        distinct = set(self.budgets.values())
        return distinct.pop() if len(distinct) == 1 else None


def negate_shift(sizes: Ints, shift: Shift) -> Shift:
    """Return -μ in the group.

    Args:
        sizes: orders of the cyclic factors of the group.
        shift: the shift μ, one integer per cyclic factor.
    """
    return tuple(-step % size for step, size in zip(shift, sizes, strict=True))


def build_question(
    sizes: Sequence[int],
    shifts: Sequence[Shift],
    is_directed: bool,
    epsilon: float | Mapping[Shift, float],
    delta: float,
    requires: RatioBound,
) -> Question:
    """Build a question with shifts reduced modulo the sizes.

    The zero shift compares a distribution with itself, so it is dropped. If two shifts are equal
    modulo the sizes, the smaller ε is kept, since it implies the other.

    Args:
        sizes: orders >= 1 of the cyclic factors.
        shifts: differences of neighbouring answers, one integer per cyclic factor.
        is_directed: whether neighbours are directed (a shift μ does not imply -μ). Otherwise -μ
            must be listed beside every μ.
        epsilon: ε > 0, or a mapping whose keys are the shifts as listed in `shifts`.
        delta: budget δ in [0, 1].
        requires: bound on neighbouring distributions, "hockey-stick" (DP) or "mass-above-ratio"
            (PDP).

    Raises:
        OutsideDomain: a shift lacks its negative.
    """
    shape = tuple(sizes)
    budgets: dict[Shift, float] = {}
    for shift in shifts:
        budget = epsilon[shift] if isinstance(epsilon, Mapping) else epsilon
        reduced_shift = tuple(step % size for step, size in zip(shift, shape, strict=True))
        if any(reduced_shift):
            budgets[reduced_shift] = min(budget, budgets.get(reduced_shift, math.inf))
    if not is_directed:
        for shift in budgets:
            negative = negate_shift(shape, shift)
            if negative not in budgets:
                raise OutsideDomain(
                    f"shifts must be closed under negation unless directed. Missing {negative}."
                )
    return Question(shape, budgets, delta, requires)
