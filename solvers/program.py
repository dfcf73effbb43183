"""A linear program stated once in CVXPY, compiled once, and moved in place ever after.

CVXPY's canonical data are affine in a problem's parameters (its DPP rules guarantee it). `solvers.canonical.compile`
keeps that affine map for the entries that move,

    entries(p) = base + M p,

so a re-solve costs one small product instead of a canonicalisation.

Scaling. A program may be solved for q = scale * x in its continuous columns: rows, bounds and objective are multiplied
by `scale` (integer columns keep their values and get `scale` times larger coefficients), which is the same program with
absolute tolerances that are `scale` times finer. Solutions are always reported in x.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from .arrays import Positions, Vector
from .cones import Cones
from .data import Data
from .errors import InvalidProgram

__all__ = ["Block", "Data", "Moves", "Program", "stating"]


SECTIONS = ("c", "offset", "A", "row_lower", "row_upper", "lower", "upper")
_DENSE = 1 << 16  # below so many numbers a dense product beats a sparse one


@dataclass(frozen=True)
class Block:
    """A named run of columns (or rows): `start`, `size` and the shape it had in the model (Fortran order, as CVXPY)."""

    name: str
    start: int
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of columns (rows)."""
        return prod(self.shape)

    def read(self, vector: Vector) -> Vector:
        """Cut this block out of a column (row) vector and give it its shape back."""
        return vector[self.start : self.start + self.size].reshape(self.shape, order="F")


class Moves:
    """The entries that move with the parameters, stacked section by section: entries(p) = base + matrix @ p.

    Attributes:
        sections: section -> its run in the stack; sections are the fields of `Data` that are vectors, "offset" (one
            entry) and "A" (positions in the CSC data array).
        index: (entries,) position of each entry in its section.
        base: (entries,) values at zero.
        matrix: (entries, parameters).
    """

    def __init__(self, parts: Mapping[str, tuple[Positions, Vector, scipy.sparse.csr_array]], size: int) -> None:
        self.sections: dict[str, slice] = {}
        at = 0
        for section in SECTIONS:
            if section in parts and parts[section][0].size:
                count = parts[section][0].size
                self.sections[section] = slice(at, at + count)
                at += count
        chosen = [parts[section] for section in self.sections]
        self.index = np.concatenate([part[0] for part in chosen]) if chosen else np.zeros(0, dtype=np.intp)
        self.base = np.concatenate([part[1] for part in chosen]) if chosen else np.zeros(0)
        blocks = [part[2] for part in chosen]
        matrix = scipy.sparse.csr_array(scipy.sparse.vstack(blocks) if blocks else (0, size))
        self.matrix: Any = matrix.toarray() if at * size <= _DENSE else matrix

    def at(self, p: Vector) -> Vector:
        """(entries,) the values of all moving entries."""
        moved: Vector = self.matrix @ p
        moved += self.base
        return moved


_STILL = Moves({}, 0)  # nothing moves


@dataclass(frozen=True)
class Program:
    """A compiled program: the template data, the affine map of its parameters, and the names of its blocks.

    Attributes:
        name: of the model, for messages and records.
        template: the data at parameter values zero (the entries that move hold their constant part).
        sense: +1 when the model minimises, -1 when it maximises (the data always minimise sense * objective).
        variables: named column blocks in the model's own names; "aux..." are CVXPY's epigraph variables.
        rows: named row blocks: the label of the constraint, or "constraint[k]" for the k-th one of the problem.
        parameters: name -> shape, in the order of the stacked parameter vector.
        scale: the program is dispatched in scale * x for its continuous columns.
        moves: the entries that move with the parameters.
        cones: what columns must lie in beside rows and bounds; most programs have none.
    """

    name: str
    template: Data
    sense: int = 1
    variables: tuple[Block, ...] = ()
    rows: tuple[Block, ...] = ()
    parameters: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    scale: float = 1.0
    moves: Moves = field(default=_STILL, repr=False)
    cones: tuple[Cones, ...] = field(default=(), repr=False)

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        return int(self.template.A.shape[0]), int(self.template.A.shape[1])

    @cached_property
    def is_mip(self) -> bool:
        """Whether any column must be integer."""
        return self.template.is_mip

    @cached_property
    def _size(self) -> int:
        return sum(prod(shape) for shape in self.parameters.values())

    @cached_property
    def entry_columns(self) -> Positions:
        """The column of each entry of A, in the order of its CSC data array (its row is `A.indices`)."""
        return np.repeat(np.arange(self.shape[1]), np.diff(self.template.A.indptr))

    def block(self, name: str) -> Block:
        """The column block of a variable. Raises KeyError when the model has none of that name."""
        for block in self.variables:
            if block.name == name:
                return block
        raise KeyError(f"the program has no variable {name!r}; it has {[b.name for b in self.variables]}")

    def vector(self, values: Mapping[str, ArrayLike]) -> Vector:
        """Stack parameter values in the program's order.

        Raises:
            InvalidProgram: when a parameter is missing, unknown, of the wrong shape, or not finite.
        """
        if values.keys() != self.parameters.keys():
            missing = sorted(self.parameters.keys() - values.keys())
            unknown = sorted(values.keys() - self.parameters.keys())
            raise InvalidProgram(f"parameters must be {sorted(self.parameters)}. Missing {missing}, unknown {unknown}.")
        stacked = np.empty(self._size)
        at = 0
        for name, shape in self.parameters.items():
            value = values[name]
            if shape or not isinstance(value, (float, int)):
                value = np.asarray(value, dtype=float)
                if value.shape != shape:
                    raise InvalidProgram(f"parameter {name} must be of shape {shape}. Got shape {value.shape}.")
                value = value.ravel(order="F")
            end = at + prod(shape)
            stacked[at:end] = value
            at = end
        if np.count_nonzero(np.isfinite(stacked)) < stacked.size:
            raise InvalidProgram("every parameter must be finite. Got nan or inf.")
        return stacked

    def data(self, values: Mapping[str, ArrayLike] | None = None) -> Data:
        """The instance at these parameter values, unscaled. Sections that no parameter moves are shared, not copied."""
        return self.at(self.vector(values or {}))

    def at(self, p: Vector) -> Data:
        """As `data`, from the stacked parameter vector."""
        if not self.moves.sections:
            return self.template
        entries = self.moves.at(p)
        changed: dict[str, Any] = {}
        for section, run in self.moves.sections.items():
            if section == "offset":
                changed["offset"] = float(entries[run][0])
                continue
            old = self.template.A.data if section == "A" else getattr(self.template, section)
            new = old.copy()
            new[self.moves.index[run]] = entries[run]
            if section == "A":
                changed["A"] = copy(self.template.A)  # the same pattern; building it again would check it again
                changed["A"].data = new
            else:
                changed[section] = new
        return replace(self.template, **changed)

    def cost(self, p: Vector) -> tuple[Vector, float]:
        """The cost vector c and the offset c0 at the stacked parameter vector, without the rest of the data."""
        c, offset = self.template.c, self.template.offset
        sections = self.moves.sections
        if "c" in sections or "offset" in sections:
            entries = self.moves.at(p)
            if "c" in sections:
                c = c.copy()
                c[self.moves.index[sections["c"]]] = entries[sections["c"]]
            if "offset" in sections:
                offset = float(entries[sections["offset"]][0])
        return c, offset

    def __str__(self) -> str:
        m, n = self.shape
        kind = f"MILP, {int(self.template.integrality.sum())} integer" if self.is_mip else "LP"
        if self.cones:
            kind += "".join(f" with {len(cone.columns)} {cone.kind} cones" for cone in self.cones)
        return f"{self.name}: {kind}, {n} columns, {m} rows, {self.template.A.nnz} non-zeros"


# CVXPY infers shapes by reducing uninitialised memory, which may overflow and warn about nothing; state and compile
# models under this.
stating = np.errstate(all="ignore")
