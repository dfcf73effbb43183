"""What an oracle answers, and the validation every oracle shares.

A closed form is a number together with what it proves. `kind` speaks of the *error rate* 1 - f(0): "optimum" is the
least error rate of any feasible mechanism, "upper bound" is the error rate of a feasible mechanism that nobody has
proven optimal, "lower bound" is an error rate below which no feasible mechanism can go.

| paper | here                                                        |
|-------|-------------------------------------------------------------|
| n + 1 | `prod(sizes)`; a vector query has one size per entry        |
| μ     | a shift, one int per size                                   |
| 𝓜     | `shifts`                                                    |
| ε, δ  | `epsilon`, `delta`                                          |
| ρ, f  | `ClosedForm.value`, `ClosedForm.pmf` (row-major over sizes) |
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from operator import index
from typing import Literal, TypeAlias

import numpy as np

from solvers.arrays import Integers, Vector

Kind: TypeAlias = Literal["optimum", "lower bound", "upper bound"]
Shift: TypeAlias = tuple[int, ...]

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


def close(left: float, right: float) -> bool:
    """Tell whether two error rates, or two masses f(0), are the same number up to rounding."""
    return math.isclose(left, right, rel_tol=ROUNDING, abs_tol=1e-15)


def _number(name: str, value: float, domain: str, least: float, below: float) -> float:
    """A value as a float; it must lie in [least, below)."""
    # the usual type before the abstract one, which is slow to ask
    if not isinstance(value, (float, Real)) or isinstance(value, bool) or not (least <= value < below):
        raise OutsideDomain(f"{name} must be a {domain}. Got {value!r}.")
    return float(value)


def check_epsilon(epsilon: float) -> float:
    """Return epsilon as a float; it must be finite and > 0."""
    return _number("epsilon", epsilon, "finite number > 0", math.ulp(0.0), math.inf)


def check_delta(delta: float) -> float:
    """Return delta as a float; it must lie in [0, 1]."""
    return _number("delta", delta, "number in [0, 1]", 0.0, math.nextafter(1.0, 2.0))


def check_error_rate(error_rate: float) -> float:
    """Return an error budget as a float; it must lie in [0, 1)."""
    return _number("error_rate", error_rate, "number in [0, 1)", 0.0, 1.0)


def check_count(name: str, value: int, least: int, most: int | None = None) -> int:
    """Return a whole number; it must lie between `least` and `most`."""
    wanted = f">= {least}" if most is None else f"between {least} and {most}"
    try:
        number = index(value)
    except TypeError:
        raise OutsideDomain(f"{name} must be a whole number {wanted}. Got {value!r}.") from None
    if number < least or (most is not None and number > most):
        raise OutsideDomain(f"{name} must be a whole number {wanted}. Got {value!r}.")
    return number


def check_sizes(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes of the cyclic factors Z_{n1} x ... x Z_{nk}; each must be a whole number >= 1."""
    if len(sizes) == 0:
        raise OutsideDomain("sizes must name at least one cyclic group. Got ().")
    return tuple(check_count("every size", size, 1) for size in sizes)


def check_shift(sizes: tuple[int, ...], shift: Sequence[int]) -> Shift:
    """Return a shift reduced modulo the sizes; it must have one whole number per size."""
    if not isinstance(shift, (tuple, Sequence)) or len(shift) != len(sizes):
        raise OutsideDomain(f"every shift must be a tuple of {len(sizes)} whole number(s). Got {shift!r}.")
    try:
        return tuple([index(step) % size for step, size in zip(shift, sizes, strict=True)])
    except TypeError:
        raise OutsideDomain(f"every shift must be a tuple of {len(sizes)} whole number(s). Got {shift!r}.") from None


def check_budgets(
    sizes: tuple[int, ...], shifts: Sequence[Sequence[int]], epsilon: float | Mapping[Shift, float]
) -> dict[Shift, float]:
    """Return one ε per distinct non-zero shift, the shifts reduced modulo the sizes.

    The zero shift compares a distribution with itself and constrains nothing, so it is dropped. Two spellings of one
    shift keep the smaller ε, which implies the other.
    """
    budgets: dict[Shift, float] = {}
    for shift in shifts:
        reduced = check_shift(sizes, shift)
        if isinstance(epsilon, (dict, Mapping)):
            if tuple(shift) not in epsilon:
                raise OutsideDomain(f"epsilon must give a number for every shift. Missing {tuple(shift)}.")
            budget = check_epsilon(epsilon[tuple(shift)])
        else:
            budget = check_epsilon(epsilon)
        if any(reduced):
            budgets[reduced] = min(budget, budgets.get(reduced, math.inf))
    return budgets


def geometric_sum(epsilon: float, terms: int | Integers) -> Vector:
    """Sum a + a² + ... + a^terms for a = e^{-ε}, accurate for every ε > 0 (elementwise in `terms`)."""
    exponents = -epsilon * np.asarray(terms, dtype=np.float64)
    total: Vector = np.expm1(exponents) * (math.exp(-epsilon) / math.expm1(-epsilon))
    return total
