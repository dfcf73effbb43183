"""A user's own linear constraints on additive noise: a function of the CVXPY variable of its masses.

Those of ours are equations, stated without CVXPY where nothing else is; any other function is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.models import statement
from workbench.solvers.arrays import Ints, Positions
from workbench.solvers.canonical import label_user_constraint
from workbench.solvers.program import Program, ignore_float_warnings

if TYPE_CHECKING:
    import cvxpy as cp


UserConstraints = Callable[["cp.Variable"], "Sequence[cp.Constraint]"]


@dataclass(frozen=True)
class NoiseEquations:
    """Constraints that can say which equations they are. Equal ones are one model, and can be sent to another process.

    mean: orders of the cyclic factors of a group whose noise has mean zero, () for any mean; equal: groups of row-major
    positions with equal masses; more: a user's own, which may be no equations.
    """

    mean_zero_sizes: Ints = ()
    equal_mass_groups: tuple[Ints, ...] = ()
    user_constraints: UserConstraints | None = None

    def __call__(self, f: Any) -> Sequence[Any]:
        """The constraints on masses f, in the language that f is stated in.

        η is read as its representative of least size in every coordinate; the element N/2 of an even factor is its own
        negative and counts as 0.
        """
        stated = []
        if self.mean_zero_sizes:
            order, eta = (
                np.asarray(self.mean_zero_sizes)[:, None],
                group_coordinates(self.mean_zero_sizes),
            )
            signed = np.where(
                2 * eta < order, eta, np.where(2 * eta == order, 0, eta - order)
            ).astype(float)
            stated.append(label_user_constraint(signed @ f == 0, "mean zero"))
        for group in self.equal_mass_groups:
            first, *others = group
            stated.append(
                label_user_constraint(
                    f[np.array(others)] == f[first], f"equal masses {'='.join(map(str, group))}"
                )
            )
        return [*stated, *(self.user_constraints(f) if self.user_constraints else ())]


def is_stated_without_cvxpy(constraints: UserConstraints | None) -> bool:
    """Whether constraints are stated in operators alone, in any language."""
    return constraints is None or (
        isinstance(constraints, NoiseEquations) and constraints.user_constraints is None
    )


@ignore_float_warnings
def compile_constraints(constraints: UserConstraints, N: int) -> Program:
    """The constraints alone as a program, whose block "f" holds the N masses; other columns are their own."""

    def stated(cp: Any) -> Any:
        masses = cp.Variable(N, name="f", bounds=[0, 1])
        return cp.Problem(cp.Minimize(cp.sum(masses)), list(constraints(masses)))

    return statement.build_program(
        stated, "extra constraints", without_cvxpy=is_stated_without_cvxpy(constraints)
    )


def build_constraint_rows(
    constraints: UserConstraints, masses: statement.Affine
) -> list[statement.Row]:
    """The constraints on masses (N,) of a program that is stated without CVXPY; further columns are their own."""
    if is_stated_without_cvxpy(constraints):
        return [*constraints(masses)]
    program = compile_constraints(constraints, masses.size)
    data, f = program.template, program.block("f")
    A, own = data.A.toarray(), np.delete(np.arange(data.c.size), f.start + np.arange(f.size))
    more = statement.Variable(
        own.size, f"{program.name} columns", (data.lower[own], data.upper[own])
    )
    sides = A[:, f.start : f.start + f.size] @ masses + A[:, own] @ more - data.row_upper
    equal = data.row_lower == data.row_upper
    return [
        statement.Row(sides[some], same, program.name)
        for some, same in ((equal, True), (~equal, False))
    ]


def group_coordinates(sizes: Sequence[int]) -> Positions:
    """(k, N): the coordinates of every element, row-major."""
    return np.stack([axis.ravel() for axis in np.indices(tuple(sizes))])
