"""A linear program written row by row, whose entries may all move: for models with bins in every coefficient.

The pattern (which entries exist) is fixed by the first writing; `program` makes every entry of A, every loss and
every variable bound a parameter, so that the live solver object is moved instead of rebuilt.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from solvers.arrays import Positions, Vector
from solvers.program import Data, Move, Program

__all__ = ["EntrywiseProgram"]

Terms = tuple[Sequence[Any] | NDArray[Any], Sequence[Any] | NDArray[Any]]  # columns (k,) and their coefficients (k,)


class EntrywiseProgram:
    """Rows  row_lower <= A x <= row_upper  over columns x in [lower, upper], minimise c x.

    Rows are added with `row`; writing the same model with other numbers is another of the same pattern.
    """

    def __init__(self, columns: int) -> None:
        self.c = np.zeros(columns)
        self.lower, self.upper = np.zeros(columns), np.ones(columns)
        self._columns: list[Positions] = []
        self._values: list[Vector] = []
        self._sides: list[tuple[float, float]] = []

    def row(self, columns: ArrayLike, values: ArrayLike, low: float = -np.inf, high: float = 0.0) -> None:
        """One row; a column may be named twice (its entries add up), zero entries are kept as places."""
        self._columns.append(np.asarray(columns, dtype=np.intp))
        self._values.append(np.asarray(values, dtype=float))
        self._sides.append((low, high))

    def below(self, small: Terms, large: Terms, factor: float = 1.0) -> None:
        """The row small <= factor large."""
        columns, values = (np.concatenate([small[k], large[k]]) for k in (0, 1))
        values[len(small[1]) :] *= -factor
        self.row(columns, values)

    @cached_property
    def written(self) -> tuple[bytes, bytes]:
        """What programs of one writing share: the columns named in every row, and the sides."""
        sizes = [columns.size for columns in self._columns]
        return np.concatenate([sizes, *self._columns]).tobytes(), np.array(self._sides).tobytes()

    @cached_property
    def _pattern(self) -> tuple[Positions, NDArray[np.int32], NDArray[np.int32]]:
        """(entry -> place, row of each place, starts of columns) of the CSC form."""
        rows = len(self._sides)
        at = np.repeat(np.arange(rows), [columns.size for columns in self._columns])
        unique, place = np.unique(np.concatenate(self._columns) * rows + at, return_inverse=True)
        counts = np.bincount(unique // rows, minlength=self.c.size)
        return place, (unique % rows).astype(np.int32), np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)

    def entries(self, like: EntrywiseProgram | None = None) -> Vector:
        """The entries of A in CSC order of the pattern (of another program of the same writing)."""
        place, rows, _ = (like or self)._pattern
        values = np.bincount(place, weights=np.concatenate(self._values), minlength=rows.size)
        return np.where(np.abs(values) < 1e-9, 0.0, values)  # solvers drop smaller ones, and say nothing

    def program(self, name: str, scale: float = 1.0) -> Program:
        """A Program with parameters "A" (entries), "c", "lower", "upper" (columns)."""
        _, rows, starts = self._pattern
        A = sp.csc_array((self.entries(), rows, starts), shape=(len(self._sides), self.c.size))
        low, high = np.array(self._sides).T
        data = Data(self.c, 0.0, A, low, high, self.lower, self.upper, np.zeros(self.c.size, dtype=bool))
        sizes = {"c": self.c.size, "A": rows.size, "lower": self.c.size, "upper": self.c.size}
        total, at, parts = sum(sizes.values()), 0, {}
        for section, count in sizes.items():
            moving = sp.csr_array(sp.eye_array(count, total, k=at))
            parts[section] = Move(np.arange(count, dtype=np.intp), np.zeros(count), moving)
            at += count
        names = {section: (count,) for section, count in sizes.items()}
        return Program(name, data, 1, (), (), names, scale, parts)

    def values(self, like: EntrywiseProgram | None = None) -> dict[str, ArrayLike]:
        """The parameter values of `like.program()` (or its own) at its own numbers."""
        return {"c": self.c, "A": self.entries(like), "lower": self.lower, "upper": self.upper}
