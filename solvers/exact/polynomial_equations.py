"""Solution of sparse square equations with polynomial entries, as rational functions.

For example, x z_0 + z_1 = δ and z_1 = 1 have the solution z_0 = (-1 + δ)/x, z_1 = 1. The
coefficients are polynomials in x. The right-hand sides are rational functions of x, affine in δ
(`Affine`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workbench.solvers.errors import NoRationalSolution
from workbench.solvers.exact.polynomials import ONE, ZERO, Affine, Poly


@dataclass
class _Equation:
    """An equation Σ entry_j z_j = constant + δ slope.

    Attributes:
        entries: unknown -> coefficient.
        constant, slope: of the right-hand side.
    """

    entries: dict[int, Poly]
    constant: Poly
    slope: Poly

    def divide_by_content(self) -> _Equation:
        """Divide all polynomials by their greatest common divisor."""
        common = self.constant.gcd(self.slope)
        for entry in self.entries.values():
            if common == ONE:
                break
            common = common.gcd(entry)
        if not common or common == ONE:
            return self
        entries = {j: entry // common for j, entry in self.entries.items()}
        return _Equation(entries, self.constant // common, self.slope // common)


def solve_affine_system(
    equations: Sequence[tuple[Mapping[int, Poly], Affine]],
) -> dict[int, Affine]:
    """Solve sparse square equations Σ entry_j z_j = right by fraction-free elimination.

    The pivot is an entry of a shortest row whose column is shortest (Markowitz). Every row is
    divided by the common factor of its entries.

    Args:
        equations: (unknown -> coefficient, right-hand side) of each equation. There are as many
            unknowns as equations.

    Returns:
        Unknown -> value.

    Raises:
        NoRationalSolution: the equations are singular.
    """
    open_equations: dict[int, _Equation] = {}
    rows_by_unknown: dict[int, set[int]] = {}
    for i, (coefficients, right) in enumerate(equations):
        entries = {j: entry * right.denominator for j, entry in coefficients.items()}
        open_equations[i] = _Equation(entries, right.constant, right.slope)
        for j in coefficients:
            rows_by_unknown.setdefault(j, set()).add(i)
    eliminated: list[tuple[int, _Equation]] = []
    while open_equations:
        # Choose equation i, and in it unknown j.
        i = min(open_equations, key=lambda k: len(open_equations[k].entries))
        pivot_equation = open_equations.pop(i)
        row = pivot_equation.entries
        if not row:
            raise NoRationalSolution("The basis is singular.")
        j = min(row, key=lambda k: (len(rows_by_unknown[k]), row[k].degree()))
        # Eliminate unknown j from all other open equations.
        for k in row:
            rows_by_unknown[k].discard(i)
        for k in rows_by_unknown.pop(j):
            open_equations[k] = _eliminate(
                open_equations[k], pivot_equation, j, i=k, rows_by_unknown=rows_by_unknown
            )
        eliminated.append((j, pivot_equation))
    # The unknowns of an eliminated equation, except its own, were eliminated after it.
    values: dict[int, Affine] = {}
    for j, equation in reversed(eliminated):
        right = Affine.from_ratio(equation.constant, equation.slope, ONE)
        for k, entry in equation.entries.items():
            if k != j:
                right = right - values[k].multiply(entry)
        values[j] = right.multiply(ONE, equation.entries[j])
    return values


def _eliminate(
    equation: _Equation,
    pivot_equation: _Equation,
    j: int,
    i: int,
    rows_by_unknown: dict[int, set[int]],
) -> _Equation:
    """Eliminate unknown j from equation i.

    Args:
        equation: equation i.
        pivot_equation: an equation with a non-zero coefficient of unknown j.
        j: the unknown.
        i: number of the equation.
        rows_by_unknown: unknown -> numbers of the open equations that contain it. It is updated
            for the entries of equation i that appear and vanish.
    """
    pivot = pivot_equation.entries[j]
    entry = equation.entries[j]
    common = pivot.gcd(entry)
    row_factor = pivot // common
    pivot_factor = entry // common
    entries = {k: value * row_factor for k, value in equation.entries.items() if k != j}
    for k, value in pivot_equation.entries.items():
        if k == j:
            continue
        new_entry = entries.get(k, ZERO) - pivot_factor * value
        if new_entry:
            entries[k] = new_entry
            rows_by_unknown[k].add(i)
        elif entries.pop(k, None) is not None:
            rows_by_unknown[k].discard(i)
    return _Equation(
        entries,
        equation.constant * row_factor - pivot_factor * pivot_equation.constant,
        equation.slope * row_factor - pivot_factor * pivot_equation.slope,
    ).divide_by_content()
