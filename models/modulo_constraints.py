"""A user's own linear constraints on additive noise: a function of the CVXPY variable of its masses.

Those that are linear equations  table @ f = 0  say so by `equations`, so that no program needs CVXPY to state
them; any other function is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from models.affine_program import AffineProgram
from solvers.arrays import Ints, Positions, Vector
from solvers.canonical import compile, wish
from solvers.program import Program, stating

if TYPE_CHECKING:
    import cvxpy as cp


UserConstraints = Callable[["cp.Variable"], "Sequence[cp.Constraint]"]


class Equations(NamedTuple):
    """Equations of one label, Σ value f(column) = 0 over the entries of every row 0..size-1."""

    label: str
    size: int
    row: Positions
    column: Positions
    value: Vector

    def write(self, p: AffineProgram, f: Positions) -> None:
        """Add them to a program whose masses are the columns f."""
        p.put(p.rows(self.label, self.size, equal=True, wished=True)[self.row], f[self.column], self.value)


@dataclass(frozen=True)
class StatedEquations:
    """Constraints that can say which equations they are. Equal ones are one model, and can be sent to another process.

    mean: orders of the cyclic factors of a group whose noise has mean zero, () for any mean; equal: groups of row-major
    positions with equal masses; more: a user's own, which may be no equations.
    """

    mean: Ints = ()
    equal: tuple[Ints, ...] = ()
    more: UserConstraints | None = None

    def __call__(self, f: cp.Variable) -> Sequence[cp.Constraint]:
        """The constraints in CVXPY."""
        stated = [
            wish(csr_array((value, (row, column)), (size, f.size)) @ f == 0, label)
            for label, size, row, column, value in self.equations()
        ]
        return [*stated, *(self.more(f) if self.more else ())]

    def equations(self) -> list[Equations]:
        """The equations but for the user's own.

        η is read as its representative of least size in every coordinate; the element N/2 of an even factor is its own
        negative and counts as 0.
        """
        equations = []
        if self.mean:
            order, eta = np.asarray(self.mean)[:, None], coordinates(self.mean)
            signed = np.where(2 * eta < order, eta, np.where(2 * eta == order, 0, eta - order)).astype(float)
            row, column = np.nonzero(signed)
            equations.append(Equations("mean zero", len(self.mean), row, column, signed[row, column]))
        for first, *others in self.equal:
            label, row = f"equal masses {'='.join(map(str, (first, *others)))}", np.arange(len(others))
            column = np.concatenate([np.array(others, dtype=int), np.full(row.size, first)])
            signs = np.repeat([1.0, -1.0], row.size)
            equations.append(Equations(label, row.size, np.concatenate([row, row]), column, signs))
        return equations


def equations_of(constraints: UserConstraints | None) -> list[Equations] | None:
    """What constraints amount to where all are known to be equations, else None. No constraints are no equations."""
    if constraints is None:
        return []
    if isinstance(constraints, StatedEquations) and constraints.more is None:
        return constraints.equations()
    return None


@stating
def constraint_program(constraints: UserConstraints, N: int) -> Program:
    """The constraints alone as a program, whose block "f" holds the N masses; other columns are their own."""
    equations = equations_of(constraints)
    if equations is None:
        import cvxpy as cp

        masses = cp.Variable(N, name="f", bounds=[0, 1])
        return compile(cp.Problem(cp.Minimize(cp.sum(masses)), list(constraints(masses))), "extra constraints")
    p = AffineProgram({})
    f = p.columns("f", (N,), 0, 1)
    p.loss(f, 1.0)
    for block in equations:
        block.write(p, f)
    return p.program("extra constraints")


def coordinates(sizes: Sequence[int]) -> Positions:
    """(k, N): the coordinates of every element, row-major."""
    return np.stack([axis.ravel() for axis in np.indices(tuple(sizes))])
