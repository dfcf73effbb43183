"""Sparse square equations whose entries are polynomials, solved as rational functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workbench.solvers.errors import NoRationalSolution
from workbench.solvers.exact.polynomials import ONE, ZERO, Affine, Poly


def solve_affine_system(
    equations: Sequence[tuple[Mapping[int, Poly], Affine]],
) -> dict[int, Affine]:
    """The solution of sparse square equations Σ entry_j z_j = right, by fraction-free elimination.

    The pivot is an entry of a shortest row whose column is shortest (Markowitz); every row is divided by what its
    entries have in common. Raises NoRationalSolution when they are singular.
    """
    open_rows = {}
    where: dict[int, set[int]] = {}
    for i, (entries, right) in enumerate(equations):
        open_rows[i] = (
            {j: v * right.denominator for j, v in entries.items()},
            right.constant,
            right.slope,
        )
        for j in entries:
            where.setdefault(j, set()).add(i)
    order = []
    while open_rows:
        i = min(open_rows, key=lambda k: len(open_rows[k][0]))
        row, constant, slope = open_rows.pop(i)
        if not row:
            raise NoRationalSolution("The basis is singular.")
        j = min(row, key=lambda k: (len(where[k]), row[k].degree()))
        for k in row:
            where[k].discard(i)
        pivot = row.pop(j)
        order.append((j, row | {j: pivot}, constant, slope))
        for k in where.pop(j):
            others, first, second = open_rows[k]
            entry = others.pop(j)
            common = pivot.gcd(entry)
            up, down = pivot // common, entry // common
            changed = {c: v * up for c, v in others.items()}
            for c, v in row.items():
                here = changed.get(c, ZERO) - down * v
                if here:
                    changed[c] = here
                    where[c].add(k)
                elif changed.pop(c, None) is not None:
                    where[c].discard(k)
            open_rows[k] = _divide_by_content(
                changed, first * up - down * constant, second * up - down * slope
            )
    values: dict[int, Affine] = {}
    for j, row, constant, slope in reversed(order):
        right = Affine.from_ratio(constant, slope, ONE)
        for k, entry in row.items():
            if k != j:
                right = right - values[k].multiply(entry)
        values[j] = right.multiply(ONE, row[j])
    return values


def _divide_by_content(
    row: dict[int, Poly], constant: Poly, slope: Poly
) -> tuple[dict[int, Poly], Poly, Poly]:
    """A row divided by what its entries have in common."""
    common = constant.gcd(slope)
    for entry in row.values():
        if common == ONE:
            break
        common = common.gcd(entry)
    if not common or common == ONE:
        return row, constant, slope
    return {j: v // common for j, v in row.items()}, constant // common, slope // common
