"""A linear program written block by block, entries affine in named parameters: what CVXPY would compile, directly.

Stating a model in CVXPY and compiling it costs more (loading CVXPY alone takes half a second) than many of the solves.
A model that is solved in cold processes therefore writes the same sparse program itself; its CVXPY statement stays
beside it, and the tests compare the two entry by entry.

    column   x in [lower, upper]                              an entry is   constant + factor * parameter
    row      row_lower <= A x <= row_upper                    entries of one place add up
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from solvers.arrays import Flags, Ints, Positions, Vector
from solvers.errors import InvalidProgram
from solvers.program import Block, Data, Move, Program


@dataclass(frozen=True)
class Part:
    """factor * parameter; parameter: its position in the stacked vector, or one for each entry."""

    parameter: ArrayLike
    factor: ArrayLike = 1.0


@dataclass
class _Section:
    """Terms (place, constant, parameter or -1, factor) of one section; for A the place is (row, column)."""

    terms: list[tuple[NDArray[Any], ...]] = field(default_factory=list)

    def add(self, place: ArrayLike, value: ArrayLike | Part, column: ArrayLike = 0) -> None:
        part = value if isinstance(value, Part) else Part(-1, 0.0)
        constant = 0.0 if isinstance(value, Part) else value
        term = [np.asarray(each) for each in (place, column, constant, part.parameter, part.factor)]
        shape = np.broadcast(*term).shape  # np.broadcast_arrays takes ten times as long
        self.terms.append(
            tuple(np.full(shape, each) if each.ndim == 0 else each + np.zeros(shape, each.dtype) for each in term)
        )

    def stacked(self) -> tuple[NDArray[Any], ...]:
        """The terms, without those that are zero for good."""
        if not self.terms:
            return tuple(np.zeros(0, dtype=kind) for kind in (int, int, float, int, float))
        whole = tuple(np.concatenate([term[k].ravel() for term in self.terms]) for k in range(5))
        kept = (whole[2] != 0) | (whole[3] >= 0)
        return tuple(part[kept] for part in whole)


class AffineProgram:
    """minimise c x  s.t.  rows and bounds, in columns and rows that are added block by block.

    parameters: name -> shape, in the order of the program's stacked vector; `first` is where each begins.
    """

    def __init__(self, parameters: Mapping[str, Ints]) -> None:
        self.parameters = dict(parameters)
        self.first: dict[str, int] = {}
        self._size = 0
        for name, shape in self.parameters.items():
            self.first[name] = self._size
            self._size += prod(shape)
        self._variables: list[Block] = []
        self._rows: list[Block] = []
        self._whole: list[Flags] = []
        self._equal: list[Flags] = []
        self._A, self._c, self._right, self._lower, self._upper = (_Section() for _ in range(5))
        self.loss, self.right = self._c.add, self._right.add  # of columns, and right sides of rows

    def columns(
        self,
        name: str,
        shape: Ints,
        lower: ArrayLike | Part = 0.0,
        upper: ArrayLike | Part = np.inf,
        integer: bool = False,
    ) -> Positions:
        """Add a variable; the positions of its columns (Fortran order). Raises InvalidProgram for a taken name."""
        if any(block.name == name for block in self._variables):
            raise InvalidProgram(f"variables must have distinct names. Got {name!r} twice.")
        start, size = sum(block.size for block in self._variables), prod(shape)
        at = np.arange(start, start + size)
        self._variables.append(Block(name, start, shape))
        self._lower.add(at, lower)
        self._upper.add(at, upper)
        self._whole.append(np.full(size, integer))
        return at

    def rows(self, name: str, count: int, equal: bool | Flags = False, *, wished: bool = False) -> Positions:
        """Add rows A x <= right side (or = right side, which is 0 until it is added to); their positions."""
        start = sum(block.size for block in self._rows)
        self._rows.append(Block(name, start, (count,), wished))
        self._equal.append(np.broadcast_to(equal, count))
        return np.arange(start, start + count)

    def put(self, row: ArrayLike, column: ArrayLike, value: ArrayLike | Part) -> None:
        """Add entries to A."""
        self._A.add(row, value, column)

    def include(self, program: Program, name: str, columns: Positions) -> None:
        """Add another program's rows and columns, the block `name` of which is these columns here."""
        data, shared = program.template, program.block(name)
        own = np.delete(np.arange(data.c.size), np.arange(shared.start, shared.start + shared.size))
        place = np.zeros(data.c.size, dtype=np.intp)
        place[shared.start : shared.start + shared.size] = columns
        place[own] = self.columns(f"{program.name} columns", (own.size,), data.lower[own], data.upper[own])
        equal, entries = data.row_lower == data.row_upper, data.A.tocoo()
        if np.isfinite(data.row_lower[~equal]).any():
            raise InvalidProgram(f"rows of {program.name} must be equations, or bounded from above alone.")
        rows, (row, column) = self.rows(program.name, equal.size, equal=equal), entries.coords
        self.put(rows[row], place[column], entries.data)
        self.right(rows, data.row_upper)

    def program(self, name: str, scale: float = 1.0) -> Program:
        """The program."""
        rows, columns = sum(block.size for block in self._rows), sum(block.size for block in self._variables)
        row, column, constant, parameter, factor = self._A.stacked()
        key, place = np.unique(column.astype(np.int64) * rows + row, return_inverse=True)
        entries, moving = self._vector((place, column, constant, parameter, factor), key.size)
        starts = np.concatenate([[0], np.cumsum(np.bincount(key // max(rows, 1), minlength=columns))]).astype(np.int32)
        A = sp.csc_array((entries, (key % max(rows, 1)).astype(np.int32), starts), shape=(rows, columns))
        c, loss_part = self._vector(self._c.stacked(), columns)
        least, lower_part = self._vector(self._lower.stacked(), columns)
        most, upper_part = self._vector(self._upper.stacked(), columns)
        upper, right_part = self._vector(self._right.stacked(), rows)
        equal = np.concatenate(self._equal)
        fixed = np.flatnonzero(equal[right_part.place])
        parts = {
            "c": loss_part,
            "A": moving,
            "row_upper": right_part,
            "row_lower": Move(right_part.place[fixed], right_part.base[fixed], right_part.matrix[fixed]),
            "lower": lower_part,
            "upper": upper_part,
        }
        template = Data(c, 0.0, A, np.where(equal, upper, -np.inf), upper, least, most, np.concatenate(self._whole))
        moves = {section: part for section, part in parts.items() if part.place.size}
        return Program(name, template, 1, tuple(self._variables), tuple(self._rows), self.parameters, scale, moves)

    def _vector(self, terms: tuple[NDArray[Any], ...], size: int) -> tuple[Vector, Move]:
        """What stands at every place, and what moves."""
        place, _, constant, parameter, factor = terms
        base = np.bincount(place, weights=constant, minlength=size).astype(float)
        moving = parameter >= 0
        if not moving.any():  # a sparse matrix of nothing takes longer to make than the rest of a small program
            return base, Move(np.zeros(0, dtype=np.intp), np.zeros(0), np.zeros((0, self._size)))
        live, which = np.unique(place[moving], return_inverse=True)
        matrix = sp.csr_array((factor[moving], (which, parameter[moving])), shape=(live.size, self._size))
        return base, Move(live.astype(np.intp), base[live], matrix)
