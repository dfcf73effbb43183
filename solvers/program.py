"""A linear program stated once in CVXPY, compiled once, and moved in place ever after.

CVXPY's canonical data are affine in a problem's parameters (its DPP rules guarantee it).
`workbench.solvers.canonical.compile` keeps that affine map for the entries that move,

    entries(p) = base + M p,

so a re-solve costs one small product instead of a canonicalisation.

Scaling. A program may be solved for q = scale * x in its continuous columns: rows, bounds and objective are multiplied
by `scale` (integer columns keep their values and get `scale` times larger coefficients), which is the same program with
absolute tolerances that are `scale` times finer. Likewise costs, and with them multipliers, may be `cost` times larger,
so that no unit of a loss meets a solver's tolerances, nor an optimum that is small beside it. Solutions are always
reported in the units of the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import isfinite, prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from workbench.solvers.arrays import Flags, Ints, Positions, Vector
from workbench.solvers.data import Data as Data
from workbench.solvers.data import replace_entries
from workbench.solvers.errors import InvalidProgram


@dataclass(frozen=True)
class Block:
    """A named run of columns (or rows): `start`, `size` and the shape it had in the model (Fortran order, as CVXPY);
    wished: whether rows state what a user wishes beyond the model (`wish`)."""

    name: str
    start: int
    shape: Ints
    is_user_constraint: bool = False

    @property
    def size(self) -> int:
        """Number of columns (rows)."""
        return prod(self.shape)

    def read(self, vector: Vector) -> Vector:
        """Cut this block out of a column (row) vector and give it its shape back."""
        return vector[self.start : self.start + self.size].reshape(self.shape, order="F")


class Move(NamedTuple):
    """The entries of one section that move with the parameters p: base + matrix @ p.

    place: (entries,) where they stand; of A, in its CSC data array. base: (entries,) values at zero. matrix: (entries,
    parameters).
    """

    positions: Positions
    base: Vector
    matrix: Any


SECTIONS = (
    "A",
    "c",
    "lower",
    "upper",
    "row_lower",
    "row_upper",
)  # of `Data`, with numbers that may move


class Symbols(NamedTuple):
    """The numbers of a program, each different one once.

    row, column: of the entries of A; codes: section -> which of `values` its entries are; values: None is infinite.
    """

    row: Positions
    column: Positions
    codes: Mapping[str, Positions]
    values: list[Any]

    def section_values(self, section: str) -> list[Any]:
        """The numbers of a section."""
        return [self.values[code] for code in self.codes[section].tolist()]

    def weighted_sum(self, factors: Any, codes: Positions) -> Any:
        """Of products of integers (size,) with values that are there; few values are not 0."""
        different = set(codes.tolist())
        return sum(
            (
                value * sum(factors[codes == k].tolist())
                for k in different
                if (value := self.values[k])
            ),
            Fraction(),
        )

    @property
    def is_finite(self) -> Flags:
        """(values,) which are no None."""
        return np.array([value is not None for value in self.values], dtype=bool)


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
        moves: field of `Data` that is a vector, "offset" (one entry) or "A" -> its entries that move.
        cones: (n, size) columns x_0, x_1, ... with x_0 >= |(x_1, ...)| (second-order cones), if any.
        cost: the program is dispatched with costs so many times larger.
        shift: what every point costs beside; it is added to what is reported, and no solver sees it.
    """

    name: str
    template: Data
    sense: int = 1
    variables: tuple[Block, ...] = ()
    rows: tuple[Block, ...] = ()
    parameters: Mapping[str, Ints] = field(default_factory=dict)
    scale: float = 1.0
    moves: Mapping[str, Move] = field(default_factory=dict, repr=False)
    cones: Positions | None = field(default=None, repr=False)
    cost: float = 1.0
    shift: float = 0.0

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        return int(self.template.A.shape[0]), int(self.template.A.shape[1])

    @cached_property
    def is_mip(self) -> bool:
        """Whether any column must be integer."""
        return self.template.is_mip

    @cached_property
    def symbols(self) -> Symbols:
        """The numbers as rationals: the part that stays (None: infinite), and (parameter, factor) of what is added."""
        from scipy.sparse import csr_array  # slow to import

        which: dict[tuple[float, Any], int] = {}
        codes = {}
        matrix = self.template.A
        for section in (*SECTIONS, "offset"):
            numbers = (
                matrix.data if section == "A" else np.atleast_1d(getattr(self.template, section))
            )
            codes[section] = np.array(
                [which.setdefault((v, ()), len(which)) for v in numbers.tolist()], dtype=np.intp
            )
            if section in self.moves:
                place, base, factors = self.moves[section]
                moved = csr_array(factors)
                terms, ends = (
                    [*zip(moved.indices.tolist(), moved.data.tolist(), strict=True)],
                    moved.indptr.tolist(),
                )
                for at, number, *part in zip(
                    place.tolist(), base.tolist(), ends, ends[1:], strict=False
                ):
                    codes[section][at] = which.setdefault(
                        (number, tuple(terms[slice(*part)])), len(which)
                    )
        values = [
            (
                Fraction(base) if isfinite(base) else None,
                tuple((j, Fraction(factor)) for j, factor in terms),
            )
            for base, terms in which
        ]
        return Symbols(
            matrix.indices.astype(np.intp),
            np.repeat(np.arange(matrix.shape[1]), np.diff(matrix.indptr)),
            codes,
            values,
        )

    def block(self, name: str) -> Block:
        """The column block of a variable. Raises KeyError when the model has none of that name."""
        for block in self.variables:
            if block.name == name:
                return block
        raise KeyError(
            f"the program has no variable {name!r}; it has {[b.name for b in self.variables]}"
        )

    def stack_parameters(self, values: Mapping[str, ArrayLike]) -> Vector:
        """Stack parameter values in the program's order.

        Raises:
            InvalidProgram: when a parameter is missing, unknown, of the wrong shape, or not finite.
        """
        if values.keys() != self.parameters.keys():
            missing = sorted(self.parameters.keys() - values.keys())
            unknown = sorted(values.keys() - self.parameters.keys())
            raise InvalidProgram(
                f"parameters must be {sorted(self.parameters)}. Missing {missing}, unknown {unknown}."
            )
        stacked = np.empty(sum(prod(shape) for shape in self.parameters.values()))
        at = 0
        for name, shape in self.parameters.items():
            value = values[name]
            if shape or not isinstance(value, (float, int)):
                value = np.asarray(value, dtype=float)
                if value.shape != shape:
                    raise InvalidProgram(
                        f"parameter {name} must be of shape {shape}. Got shape {value.shape}."
                    )
                value = value.ravel(order="F")
            end = at + prod(shape)
            stacked[at:end] = value
            at = end
        if np.count_nonzero(np.isfinite(stacked)) < stacked.size:
            raise InvalidProgram("every parameter must be finite. Got nan or inf.")
        return stacked

    def data(self, values: Mapping[str, ArrayLike] | None = None) -> Data:
        """The instance at these parameter values, unscaled. Sections that no parameter moves are shared, not copied."""
        return self.data_at(self.stack_parameters(values or {}))

    def data_at(self, p: Vector) -> Data:
        """As `data`, from the stacked parameter vector."""
        changed: dict[str, Any] = {}
        for section, (place, base, matrix) in self.moves.items():
            entries = base + matrix @ p
            if section == "offset":
                changed["offset"] = float(entries[0])
                continue
            new = (
                self.template.A.data if section == "A" else getattr(self.template, section)
            ).copy()
            new[place] = entries
            changed[section] = replace_entries(self.template.A, new) if section == "A" else new
        return replace(self.template, **changed) if changed else self.template

    def __str__(self) -> str:
        m, n = self.shape
        kind = f"MILP, {int(self.template.integrality.sum())} integer" if self.is_mip else "LP"
        if self.cones is not None:
            kind += f" with {len(self.cones)} second-order cones"
        return f"{self.name}: {kind}, {n} columns, {m} rows, {self.template.A.nnz} non-zeros"


# CVXPY infers shapes by reducing uninitialised memory, which may overflow and warn about nothing; state and compile
# models under this.
ignore_float_warnings = np.errstate(all="ignore")
