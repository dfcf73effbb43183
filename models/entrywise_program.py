"""A linear program written entry by entry, whose entries may all move: for models with bins in every coefficient.

The pattern (which entries exist) is fixed by the first writing; `program` makes every entry of A, every loss and
every variable bound a parameter, so that the live solver object is moved instead of rebuilt.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from solvers.arrays import Positions, Vector
from solvers.program import Block, Data, Move, Program

__all__ = ["EntrywiseProgram"]


class EntrywiseProgram:
    """Rows  row_lower <= A x <= row_upper  over columns x in [lower, upper], minimise c x + offset.

    Entries are added with `row`; writing the same model with other numbers is another of the same pattern.
    """

    def __init__(self, columns: int) -> None:
        self.c = np.zeros(columns)
        self.offset = 0.0
        self.lower = np.zeros(columns)
        self.upper = np.ones(columns)
        self._row: list[int] = []
        self._column: list[int] = []
        self._value: list[float] = []
        self.row_lower: list[float] = []
        self.row_upper: list[float] = []

    def row(self, columns: Sequence[int], values: Sequence[float], low: float, high: float) -> None:
        """One row; a column may be named twice (its entries add up), zero entries are kept as places."""
        at = len(self.row_lower)
        self._row.extend([at] * len(columns))
        self._column.extend(columns)
        self._value.extend(values)
        self.row_lower.append(low)
        self.row_upper.append(high)

    @cached_property
    def _pattern(self) -> tuple[Positions, NDArray[np.int32], NDArray[np.int32]]:
        """(entry -> place, row of each place, starts of columns) of the CSC form."""
        rows = len(self.row_lower)
        keys = np.array(self._column, dtype=np.int64) * rows + np.array(self._row, dtype=np.int64)
        unique, place = np.unique(keys, return_inverse=True)
        counts = np.bincount(unique // rows, minlength=self.c.size)
        return place, (unique % rows).astype(np.int32), np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)

    def entries(self, like: EntrywiseProgram | None = None) -> Vector:
        """The entries of A in CSC order of the pattern (of another program of the same writing)."""
        place, rows, _ = (like or self)._pattern
        values = np.bincount(place, weights=self._value, minlength=rows.size)
        return np.where(np.abs(values) < 1e-9, 0.0, values)  # solvers drop smaller ones, and say nothing

    def data(self) -> Data:
        """The program in numbers."""
        _, rows, starts = self._pattern
        shape = (len(self.row_lower), self.c.size)
        A = sp.csc_array((self.entries(), rows, starts), shape=shape)
        low, high = np.array(self.row_lower), np.array(self.row_upper)
        whole = np.zeros(self.c.size, dtype=bool)
        return Data(self.c, self.offset, A, low, high, self.lower, self.upper, whole)

    def program(self, name: str, variables: Sequence[Block] = (), scale: float = 1.0) -> Program:
        """A Program with parameters "A" (entries), "c", "lower", "upper" (columns)."""
        data = self.data()
        sizes = {"c": data.c.size, "A": data.A.nnz, "lower": data.c.size, "upper": data.c.size}
        total, at, parts = sum(sizes.values()), 0, {}
        for section, count in sizes.items():
            index = np.arange(count)
            eye = sp.csr_array((np.ones(count), (index, at + index)), shape=(count, total))
            parts[section] = Move(index.astype(np.intp), np.zeros(count), eye)
            at += count
        names = {section: (count,) for section, count in sizes.items()}
        return Program(name, data, 1, tuple(variables), (), names, scale, parts)

    def values(self, like: EntrywiseProgram | None = None) -> dict[str, ArrayLike]:
        """The parameter values of `like.program()` (or its own) at its own numbers."""
        return {"c": self.c, "A": self.entries(like), "lower": self.lower, "upper": self.upper}
