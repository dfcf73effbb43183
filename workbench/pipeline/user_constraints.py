"""Check and read user-defined constraints: a function of the CVXPY variable that returns rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from workbench.errors import must
from workbench.solvers.canonical import label_user_constraint
from workbench.solvers.exact.rational_lp import RationalLP
from workbench.solvers.program import Program

if TYPE_CHECKING:
    import cvxpy as cp

CONSTRAINTS_NOTE = (
    "Privacy is certified. The user-defined constraints hold within the solver's tolerances only."
)


def find_max_violation(program: Program, masses: Sequence[Fraction]) -> Fraction | None:
    """Return how far the masses violate the rows and bounds of a program at most, exactly.

    Args:
        program: The compiled program, with the rows of the user.
        masses: The masses of the mechanism, as the values of the columns.

    Returns:
        The violation. None if the program has columns other than the masses.
    """
    if program.shape[1] != len(masses):
        return None
    return RationalLP.from_data(program.template).max_violation(masses)


@dataclass(frozen=True)
class CheckedConstraints:
    """A user-defined function of constraints, with checks and labels of its rows.

    Errors of the function become InvalidRequest. An infeasible request names rows by their labels.
    Two objects of the same function are equal, so that their models are compiled once.

    Attributes:
        state_rows: The user's function, which returns the rows.
        variable: Name of the variable that it is called with.
    """

    state_rows: Callable[[cp.Variable], Any]
    variable: str

    def __call__(self, x: cp.Variable) -> list[cp.Constraint]:
        """Return the rows, each with a label. Raises InvalidRequest."""
        import cvxpy as cp

        rule = (
            f"a function of the CVXPY variable {self.variable} that returns a list of its linear "
            "constraints"
        )
        try:
            rows = list(self.state_rows(x))
        except Exception as error:
            must("constraints", rule, f"{type(error).__name__}: {' '.join(str(error).split())}")
        for row in rows:
            if not isinstance(row, cp.Constraint):
                must("constraints", rule, f"a list with {row!r}")
            label_user_constraint(row, row.label or str(row))
        return rows


def check_constraints(constraints: Any, variable: str) -> CheckedConstraints | None:
    """Return user-defined constraints for a model, None if there are none.

    Args:
        constraints: A function of the CVXPY variable, or None.
        variable: Name of the variable, such as "f".

    Raises:
        InvalidRequest: The value is no function, or cannot be hashed.
    """
    if constraints is None or isinstance(constraints, CheckedConstraints):
        return constraints
    if not callable(constraints):
        rule = f"a function of the CVXPY variable {variable}"
        must("constraints", rule, repr(constraints))
    try:
        hash(constraints)
    except TypeError:
        must("constraints", "hashable, as functions are", repr(constraints))
    return CheckedConstraints(constraints, variable)
