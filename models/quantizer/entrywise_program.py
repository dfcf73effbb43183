"""A linear program written row by row, whose entries may all move: for models with bins in every coefficient.

Programs of one writing have one pattern (which entries exist), so that a live solver object follows from one to the
next instead of being rebuilt.
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

Terms = tuple[
    Sequence[Any] | NDArray[Any], Sequence[Any] | NDArray[Any]
]  # columns (k,) and their coefficients (k,)


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

    def add_row(
        self, columns: ArrayLike, values: ArrayLike, low: float = -np.inf, high: float = 0.0
    ) -> None:
        """One row; a column may be named twice (its entries add up), zero entries are kept as places."""
        self._columns.append(np.asarray(columns, dtype=np.intp))
        self._values.append(np.asarray(values, dtype=float))
        self._sides.append((low, high))

    def add_at_most(self, small: Terms, large: Terms, factor: float = 1.0) -> None:
        """The row small <= factor large."""
        self.add_row(
            np.concatenate([small[0], large[0]]),
            np.concatenate([small[1], -factor * np.asarray(large[1])]),
        )

    def add_comparisons(self, rows: Iterable[tuple[Positions, Vector]]) -> EntrywiseProgram:
        """Itself, with rows columns * values <= 0, made before."""
        for columns, values in rows:
            self.add_row(columns, values)
        return self

    def to_program(self, name: str, scale: float = 1.0) -> Program:
        """The program in numbers. Another of the same writing has the same pattern: a session follows it."""
        sizes = np.array([columns.size for columns in self._columns])
        pattern, place = _pattern(
            sizes.tobytes(), np.concatenate(self._columns).tobytes(), self.c.size
        )
        entries = np.asarray(
            np.bincount(place, np.concatenate(self._values), pattern.nnz), dtype=np.float64
        )
        entries[np.abs(entries) < 1e-9] = 0.0  # solvers drop smaller ones, and say nothing
        A = replace_entries(pattern, entries)
        low, high = np.array(self._sides).T
        data = Data(
            self.c, 0.0, A, low, high, self.lower, self.upper, np.zeros(self.c.size, dtype=bool)
        )
        return Program(name, data, scale=scale)


@lru_cache(maxsize=64)
def _pattern(sizes: bytes, columns: bytes, width: int) -> tuple[sp.csc_array, Positions]:
    """Where entries are, and which of these every term of the rows adds to."""
    each = np.frombuffer(sizes, dtype=np.intp)
    row, column = np.repeat(np.arange(each.size), each), np.frombuffer(columns, dtype=np.intp)
    key, place = np.unique(column * each.size + row, return_inverse=True)
    at = key % each.size, key // each.size
    return sp.csc_array((np.ones(key.size), at), shape=(each.size, width)), place
