"""Constraints of the user's own: a function of the CVXPY variable of a model that returns a list of linear rows."""

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
    "Privacy is certified; the extra constraints hold within the solver's tolerances only."
)


def find_max_violation(program: Program, masses: Sequence[Fraction]) -> Fraction | None:
    """The largest violation of the rows of a program of constraints alone, exact; None where they are not linear in the
    masses alone."""
    return (
        RationalLP.from_data(program.template).max_violation(masses)
        if program.shape[1] == len(masses)
        else None
    )


@dataclass(frozen=True)
class CheckedConstraints:
    """The user's function, whose errors are InvalidRequest and whose rows have labels by which an infeasible request
    names them.

    Two of the same function are equal, so that their models are compiled once. variable: what it is called with.
    """

    rows: Callable[[cp.Variable], Any]
    variable: str

    def __call__(self, x: cp.Variable) -> list[cp.Constraint]:
        """The rows, each with a label. Raises InvalidRequest."""
        import cvxpy as cp

        expected = f"a function of the CVXPY variable {self.variable} that returns a list of its linear constraints"
        try:
            rows = list(self.rows(x))
        except Exception as error:
            must("constraints", expected, f"{type(error).__name__}: {' '.join(str(error).split())}")
        for row in rows:
            if not isinstance(row, cp.Constraint):
                must("constraints", expected, f"a list with {row!r}")
            label_user_constraint(row, row.label or str(row))
        return rows


def check_constraints(given: Any, variable: str) -> CheckedConstraints | None:
    """The constraints as a model takes them, None for none. variable: such as "f". Raises InvalidRequest."""
    if given is None or isinstance(given, CheckedConstraints):
        return given
    if not callable(given):
        must("constraints", f"a function of the CVXPY variable {variable}", repr(given))
    try:
        hash(given)
    except TypeError:
        must("constraints", "hashable, as functions are", repr(given))
    return CheckedConstraints(given, variable)
