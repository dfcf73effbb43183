"""The entries of a program's data as polynomials in x: its floats, or the rationals they stand for, and parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from flint import fmpq, fmpq_poly
from scipy.sparse import csr_array

from .errors import NoRationalSolution
from .program import Program

Entry = tuple[fmpq_poly, fmpq_poly]  # of a program: its constant and its slope in δ


class Sections:
    """The entries of a program's data as polynomials, read by section and position."""

    def __init__(
        self, program: Program, parameters: Sequence[Entry], exact: Mapping[str, Mapping[int, Fraction]]
    ) -> None:
        self.data, self.exact = program.template, exact
        self.moved: dict[str, dict[int, Entry]] = {}
        for section, (place, base, factors) in program.moves.items():
            table, entries = csr_array(factors), self.moved.setdefault(section, {})
            for k, at in enumerate(place.tolist()):
                constant, slope = constant_poly(Fraction(base[k])), fmpq_poly([])
                for m in range(table.indptr[k], table.indptr[k + 1]):
                    factor, (first, second) = constant_poly(Fraction(table.data[m])), parameters[table.indices[m]]
                    constant, slope = constant + factor * first, slope + factor * second
                entries[at] = constant, slope

    def entry(self, section: str, at: int) -> Entry:
        """One entry, finite."""
        if at in self.moved.get(section, {}):
            return self.moved[section][at]
        known = self.exact.get(section, {}).get(at)
        if known is None:
            values = self.data.A.data if section == "A" else np.atleast_1d(getattr(self.data, section))
            known = Fraction(float(values[at]))
        return constant_poly(known), fmpq_poly([])

    def fixed(self, section: str, at: int) -> fmpq_poly:
        """One that δ does not move. Raises NoRationalSolution."""
        constant, slope = self.entry(section, at)
        if slope:
            raise NoRationalSolution("A formula in delta needs a program where delta moves sides of rows only.")
        return constant

    def bound(self, section: str, at: int) -> Fraction | None:
        """A bound of a column, a number; None where there is none. Raises NoRationalSolution."""
        if at not in self.moved.get(section, {}) and not np.isfinite(getattr(self.data, section)[at]):
            return None
        value = self.fixed(section, at)
        if value.degree() > 0:
            raise NoRationalSolution("A formula needs columns whose bounds no parameter moves.")
        return Fraction(int(value[0].p), int(value[0].q))

    def side(self, section: str, at: int) -> Entry | None:
        """A side of a row; None where there is none."""
        free = at not in self.moved.get(section, {}) and not np.isfinite(getattr(self.data, section)[at])
        return None if free else self.entry(section, at)


def constant_poly(value: Fraction | float) -> fmpq_poly:
    """A number as a polynomial."""
    number = Fraction(value)
    return fmpq_poly([fmpq(number.numerator, number.denominator)])
