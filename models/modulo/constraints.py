"""Read user-defined linear constraints on the masses of additive noise.

Constraints are a function from the CVXPY variable of the masses f(η), η an element of the group, to
a list of rows. For example, `lambda f: [f[0] >= 0.5]` requires a mass of at least 0.5 at η = 0.

The constraints of `NoiseEquations` (mean zero, equal masses) are stated without loading CVXPY,
which takes half a second. Any other function is compiled by CVXPY. A further constraint that needs
no CVXPY is a new field of `NoiseEquations` with its rows in `NoiseEquations.__call__`.
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
    """Mean zero and equal masses as data, and optionally further constraints as a function.

    Objects with equal fields are equal, so a model is compiled only once for them. They can be sent
    to another process.

    Attributes:
        mean_zero_sizes: orders of the cyclic factors if the noise must have mean zero, else ().
        equal_mass_groups: groups of noise values whose masses must be equal, as row-major
            positions.
        user_constraints: a user-defined function of the masses that returns further constraints,
            or None.
    """

    mean_zero_sizes: Ints = ()
    equal_mass_groups: tuple[Ints, ...] = ()
    user_constraints: UserConstraints | None = None

    def __call__(self, f: Any) -> Sequence[Any]:
        """Return the rows of the constraints on masses f, in the language in which f is stated.

        For the mean, each coordinate of η counts as its representative of smallest absolute value.
        The element n/2 of a cyclic factor of even order n is its own negative and counts as 0.
        """
        rows = []
        if self.mean_zero_sizes:
            order = np.asarray(self.mean_zero_sizes)[:, None]
            eta = group_coordinates(self.mean_zero_sizes)
            upper_half = np.where(2 * eta == order, 0, eta - order)
            signed_eta = np.where(2 * eta < order, eta, upper_half).astype(float)
            rows.append(label_user_constraint(signed_eta @ f == 0, "mean zero"))
        for group in self.equal_mass_groups:
            label = f"equal masses {'='.join(map(str, group))}"
            equations = f[np.array(group[1:])] == f[group[0]]
            rows.append(label_user_constraint(equations, label))
        if self.user_constraints is not None:
            rows += self.user_constraints(f)
        return rows


def is_stated_without_cvxpy(constraints: UserConstraints | None) -> bool:
    """Check whether `workbench.models.statement` can state the constraints, without CVXPY.

    Args:
        constraints: a function of the masses, or None.
    """
    if constraints is None:
        return True
    return isinstance(constraints, NoiseEquations) and constraints.user_constraints is None


@ignore_float_warnings
def compile_constraints(constraints: UserConstraints, N: int) -> Program:
    """Compile the constraints to a program that has no other rows.

    Args:
        constraints: function of the masses that returns the constraints.
        N: number of masses, the order of the group.

    Returns:
        The program. Its block "f" has the masses; other columns belong to the constraints.
    """

    def state_problem(cp: Any) -> Any:
        """State the CVXPY problem of the constraints; `cp` is the module cvxpy."""
        # A program needs an objective; this one is not used.
        masses = cp.Variable(N, name="f", bounds=[0, 1])
        return cp.Problem(cp.Minimize(cp.sum(masses)), list(constraints(masses)))

    without_cvxpy = is_stated_without_cvxpy(constraints)
    return statement.build_program(state_problem, "extra constraints", without_cvxpy=without_cvxpy)


def build_constraint_rows(
    constraints: UserConstraints, masses: statement.Affine
) -> list[statement.Row]:
    """Return the constraints as rows of a program that is stated without CVXPY.

    CVXPY may need further columns for a constraint, such as the absolute values of |f - g|. They
    become a variable of their own.

    Args:
        constraints: function of the masses that returns the constraints.
        masses: expression of the masses, shape (N,).
    """
    if is_stated_without_cvxpy(constraints):
        return [*constraints(masses)]
    program = compile_constraints(constraints, masses.size)
    data = program.template
    f = program.block("f")
    A = data.A.toarray()
    extra_columns = np.delete(np.arange(data.c.size), f.start + np.arange(f.size))
    extra_bounds = (data.lower[extra_columns], data.upper[extra_columns])
    extra_name = f"{program.name} columns"
    extra_variable = statement.Variable(extra_columns.size, extra_name, extra_bounds)
    # All rows are equations or have an upper side only.
    mass_part = A[:, f.start : f.start + f.size] @ masses
    excess = mass_part + A[:, extra_columns] @ extra_variable - data.row_upper
    is_equation = data.row_lower == data.row_upper
    return [
        statement.Row(excess[is_equation], equal=True, label=program.name),
        statement.Row(excess[~is_equation], equal=False, label=program.name),
    ]


def group_coordinates(sizes: Sequence[int]) -> Positions:
    """Return the coordinates of every element of the group, shape (k, N).

    Column j has the coordinates of the element at the row-major position j.

    Args:
        sizes: orders of the k cyclic factors.
    """
    return np.stack([axis.ravel() for axis in np.indices(tuple(sizes))])
