"""A user's own linear constraints on additive noise: a function of the CVXPY variable of its masses.

Those that are linear equations  table @ f = 0  say so by `equations`, so that no program needs CVXPY to state
them; any other function is compiled.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from models.affine_program import AffineProgram
from solvers.arrays import Positions, Vector
from solvers.canonical import compile
from solvers.program import Program, stating

if TYPE_CHECKING:
    import cvxpy as cp

__all__ = [
    "Equations",
    "StatedEquations",
    "UserConstraints",
    "constraint_program",
    "coordinates",
    "equal_masses",
    "equations_of",
    "zero_mean",
]

UserConstraints = Callable[["cp.Variable"], "Sequence[cp.Constraint]"]


@dataclass(frozen=True)
class Equations:
    """Equations of one label, Σ value f(column) = 0 over the entries of every row 0..count-1."""

    label: str
    count: int
    row: Positions
    column: Positions
    value: Vector

    def write(self, p: AffineProgram, f: Positions) -> None:
        """Add them to a program whose masses are the columns f."""
        p.put(p.rows(self.label, self.count, equal=True)[self.row], f[self.column], self.value)


class StatedEquations(ABC):
    """Constraints that can say which equations they are."""

    @abstractmethod
    def __call__(self, f: cp.Variable) -> Sequence[cp.Constraint]:
        """The constraints in CVXPY."""

    @abstractmethod
    def equations(self) -> list[Equations] | None:
        """The same as equations; None where some are not."""


def equations_of(constraints: UserConstraints | None) -> list[Equations] | None:
    """What constraints amount to where all are known to be equations, else None. No constraints are no equations."""
    if constraints is None:
        return []
    return constraints.equations() if isinstance(constraints, StatedEquations) else None


def constraint_program(constraints: UserConstraints, N: int) -> Program:
    """The constraints alone as a program, whose block "f" holds the N masses; other columns are their own."""
    equations = equations_of(constraints)
    if equations is None:
        return _compiled(constraints, N)
    p = AffineProgram({})
    f = p.columns("f", (N,), 0, 1)
    p.loss(f, 1.0)
    for block in equations:
        block.write(p, f)
    return p.program("extra constraints")


@stating
def _compiled(constraints: UserConstraints, N: int) -> Program:
    import cvxpy as cp

    f = cp.Variable(N, name="f", bounds=[0, 1])
    return compile(cp.Problem(cp.Minimize(cp.sum(f)), list(constraints(f))), "extra constraints")


def coordinates(sizes: Sequence[int]) -> Positions:
    """(k, N): the coordinates of every element, row-major."""
    return np.stack([axis.ravel() for axis in np.indices(tuple(sizes))])


def zero_mean(sizes: Sequence[int]) -> UserConstraints:
    """Constraint "the noise has mean zero", with eta read as its representative of least size in every coordinate.

    (The element N/2 of an even factor is its own negative and counts as 0.)
    """
    return _ZeroMean(tuple(sizes))


def equal_masses(groups: Sequence[Sequence[int]]) -> UserConstraints:
    """Constraint "these noise values have equal masses", for each group of row-major positions."""
    return _EqualMasses(tuple(map(tuple, groups)))


@dataclass(frozen=True)
class _ZeroMean(StatedEquations):
    """Equal ones are one model, and can be sent to another process."""

    sizes: tuple[int, ...]

    def __call__(self, f: cp.Variable) -> Sequence[cp.Constraint]:
        return [(self._signed @ f == 0).set_label("mean zero")]

    def equations(self) -> list[Equations]:
        row, column = np.nonzero(self._signed)
        return [Equations("mean zero", len(self.sizes), row, column, self._signed[row, column])]

    @property
    def _signed(self) -> Vector:
        """(k, N): the coordinates, each as its representative of least size."""
        order = np.asarray(self.sizes)[:, None]
        eta = coordinates(self.sizes)
        return np.where(2 * eta < order, eta, np.where(2 * eta == order, 0, eta - order)).astype(float)


@dataclass(frozen=True)
class _EqualMasses(StatedEquations):
    groups: tuple[tuple[int, ...], ...]

    def __call__(self, f: cp.Variable) -> Sequence[cp.Constraint]:
        return [(f[list(group[1:])] == f[group[0]]).set_label(_label(group)) for group in self.groups]

    def equations(self) -> list[Equations]:
        equations = []
        for first, *others in self.groups:
            row = np.arange(len(others))
            column = np.concatenate([np.array(others, dtype=int), np.full(row.size, first)])
            value = np.concatenate([np.ones(row.size), -np.ones(row.size)])
            equations.append(Equations(_label((first, *others)), row.size, np.concatenate([row, row]), column, value))
        return equations


def _label(group: Sequence[int]) -> str:
    return f"equal masses {'='.join(map(str, group))}"
