"""Build a linear program row by row, such that all its entries may change between solves.

    lp = EntrywiseProgram(columns=2)
    lp.add_row([0, 1], [1.0, 1.0], low=1.0, high=1.0)     # x0 + x1 = 1
    lp.add_at_most(([0], [1.0]), ([1], [1.0]), factor=2.0)   # x0 <= 2 x1
    program = lp.to_program("example")

It serves models whose bins (outputs) occur in every coefficient. The pattern of a program says
which entries of its matrix exist. Two programs of the same model with other bins have the same
pattern, so a solver object is updated from one to the next instead of being built again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from workbench.solvers.arrays import Positions, Vector
from workbench.solvers.data import Data, replace_entries
from workbench.solvers.program import Program

# One side of a row: its columns, shape (k,), and their coefficients, shape (k,).
Terms = tuple[Sequence[Any] | NDArray[Any], Sequence[Any] | NDArray[Any]]

_MIN_ENTRY = 1e-9  # Solvers drop smaller entries without notice, so they are set to 0.


class EntrywiseProgram:
    """A program: minimise c x subject to row_lower <= A x <= row_upper and lower <= x <= upper.


    Args:
        columns: number of columns.

    Attributes:
        c: costs, shape (columns,), 0 at first.
        lower: lower bounds, shape (columns,), 0 at first.
        upper: upper bounds, shape (columns,), 1 at first.
    """

    def __init__(self, columns: int) -> None:
        self.c = np.zeros(columns)
        self.lower = np.zeros(columns)
        self.upper = np.ones(columns)
        # The columns and the values of all rows are in these parts, one after the other. A row may
        # have several parts.
        self._columns: list[Positions] = []
        self._values: list[Vector] = []
        self._row_sizes: list[int] = []
        self._sides: list[tuple[float, float]] = []

    def add_row(
        self,
        columns: ArrayLike,
        values: ArrayLike,
        low: float = -np.inf,
        high: float = 0.0,
    ) -> None:
        """Add the row low <= Σ values x[columns] <= high.

        Args:
            columns: columns of the entries, shape (k,). Entries of a repeated column add up.
            values: entries, shape (k,). Entries of 0 stay in the pattern.
            low: lower side; -inf for none.
            high: upper side; inf for none.
        """
        self._columns.append(np.asarray(columns, dtype=np.intp))
        self._values.append(np.asarray(values, dtype=float))
        self._row_sizes.append(self._columns[-1].size)
        self._sides.append((low, high))

    def add_at_most(
        self,
        lesser: Terms,
        greater: Terms,
        factor: float = 1.0,
    ) -> None:
        """Add the row lesser <= factor * greater.

        Args:
            lesser: left side, as its columns and their coefficients.
            greater: right side, as its columns and their coefficients.
            factor: number that multiplies the right side.
        """
        lesser_columns, lesser_values = lesser
        greater_columns, greater_values = greater
        self.add_row(lesser_columns, lesser_values)
        self._columns.append(np.asarray(greater_columns, dtype=np.intp))
        self._values.append(-factor * np.asarray(greater_values, dtype=float))
        self._row_sizes[-1] += self._columns[-1].size

    def add_comparisons(self, rows: Iterable[tuple[Positions, Vector]]) -> EntrywiseProgram:
        """Add rows Σ values x[columns] <= 0 and return this object.

        Args:
            rows: columns and values of each row.
        """
        for columns, values in rows:
            self.add_row(columns, values)
        return self

    def to_program(
        self,
        name: str,
        scale: float = 1.0,
    ) -> Program:
        """Return the program. A session of it can solve other programs of the same pattern.
        Args:
            name: name of the program.
            scale: the program is solved in units of 1/scale (`workbench.solvers.program`).
        """
        sizes = np.array(self._row_sizes)
        all_columns = np.concatenate(self._columns)
        column_count = self.c.size
        pattern, places = _build_pattern(sizes.tobytes(), all_columns.tobytes(), column_count)
        values = np.concatenate(self._values)
        entries = np.asarray(np.bincount(places, values, pattern.nnz), dtype=np.float64)
        entries[np.abs(entries) < _MIN_ENTRY] = 0.0
        low, high = np.array(self._sides).T
        data = Data(
            self.c,
            offset=0.0,
            A=replace_entries(pattern, entries),
            row_lower=low,
            row_upper=high,
            lower=self.lower,
            upper=self.upper,
            integrality=np.zeros(column_count, dtype=bool),
        )
        return Program(name, data, scale=scale)


@lru_cache(maxsize=64)
def _build_pattern(
    sizes: bytes,
    columns: bytes,
    column_count: int,
) -> tuple[sp.csc_array, Positions]:
    """Return the pattern of the entries, and the entry to which every term of the rows adds.

    Row sizes and columns are given as bytes, which can be cached.
    """
    row_sizes = np.frombuffer(sizes, dtype=np.intp)
    row_count = row_sizes.size
    row = np.repeat(np.arange(row_count), row_sizes)
    column = np.frombuffer(columns, dtype=np.intp)
    keys, places = np.unique(column * row_count + row, return_inverse=True)
    coordinates = keys % row_count, keys // row_count
    shape = (row_count, column_count)
    return sp.csc_array((np.ones(keys.size), coordinates), shape=shape), places
