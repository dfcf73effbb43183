"""Programs: the numbers of a model, as functions of its parameters, with named variables and rows.

A model is stated once in CVXPY's language, compiled once, and solved for many parameter values.
CVXPY's canonical data are affine in the parameters of a problem (its DPP rules guarantee it).
`workbench.solvers.canonical.compile_program` stores this affine map for the entries that move,

    entries(p) = base + M p,

so the next solve costs one small product instead of a canonicalization.

Scaling. A solver may get the program in q = scale * x instead of x, for the continuous columns x.
Rows, bounds and objective are then multiplied by `scale`. Integer columns keep their values, and
their coefficients become `scale` times larger. The program is the same, and the solver's absolute
tolerances become `scale` times finer in x. The costs that the solver gets may also be multiplied by
`Program.cost`, so that its tolerances are fine enough for small losses. Solutions are always
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
    """A named range of columns or rows.

    Attributes:
        name: name of the variable, or label of the constraint.
        start: position of the first column or row.
        shape: shape in the model; entries are in Fortran order, as in CVXPY.
        is_user_constraint: whether the rows state a constraint of the user
            (`workbench.solvers.canonical.label_user_constraint`).
    """

    name: str
    start: int
    shape: Ints
    is_user_constraint: bool = False

    @property
    def size(self) -> int:
        """Return the number of columns or rows."""
        return prod(self.shape)

    def read(self, vector: Vector) -> Vector:
        """Return the entries of this block in its model shape.

        Args:
            vector: (columns,) or (rows,) of the whole program.
        """
        return vector[self.start : self.start + self.size].reshape(self.shape, order="F")


class Move(NamedTuple):
    """Entries of one section of `Data` that move with the parameters p: base + matrix @ p.

    Attributes:
        positions: (entries,) positions in the section; for A, in its CSC data array.
        base: (entries,) values at p = 0.
        matrix: (entries, parameters) sparse.
    """

    positions: Positions
    base: Vector
    matrix: Any


# Fields of `Data` whose numbers may move, except the offset.
SECTIONS = ("A", "c", "lower", "upper", "row_lower", "row_upper")


class Symbols(NamedTuple):
    """Numbers of a program, in which equal numbers are stored once.

    For example, the costs (3, 7, 3) can be stored as codes["c"] = [0, 1, 0] and values = [3, 7].

    Attributes:
        row: (non-zeros,) rows of the entries of A.
        column: (non-zeros,) columns of the entries of A.
        codes: section -> position in `values` of each of its entries.
        values: the different numbers. A number is a rational, or None if it is infinite. In
            `Program.symbols` it is a pair that also names parameters.
    """

    row: Positions
    column: Positions
    codes: Mapping[str, Positions]
    values: list[Any]

    def section_values(self, section: str) -> list[Any]:
        """Return the numbers of a section.

        Args:
            section: one of SECTIONS, or "offset".
        """
        return [self.values[code] for code in self.codes[section].tolist()]

    def weighted_sum(self, factors: Any, codes: Positions) -> Any:
        """Return the sum of factors times values, exactly.

        Factors of the same value are added first, because most values occur often.

        Args:
            factors: (n,) integers of any size.
            codes: (n,) positions in `values`, of finite values.
        """
        total = Fraction()
        for code in set(codes.tolist()):
            value = self.values[code]
            if value:
                total += value * sum(factors[codes == code].tolist())
        return total

    @property
    def is_finite(self) -> Flags:
        """Return which values (values,) are finite."""
        return np.array([value is not None for value in self.values], dtype=bool)


@dataclass(frozen=True)
class Program:
    """A compiled program: template data, the affine map of its parameters, and named blocks.

    Attributes:
        name: name of the model, for messages and records.
        template: data at parameter values zero; entries that move have their constant part.
        sense: +1 if the model minimises, -1 if it maximises. The numbers always state the
            minimisation of sense * objective.
        variables: named column blocks. "aux..." are epigraph variables of CVXPY.
        rows: named row blocks: the label of the constraint, or "constraint[k]" for the k-th one.
        parameters: name -> shape, in the order of the stacked parameter vector.
        scale: solvers get scale * x instead of x for continuous columns (module header).
        moves: field of `Data` -> its entries that move.
        cones: (n, size) columns x_0, x_1, ... with x_0 >= |(x_1, ...)| (second-order cones), or
            None.
        cost: factor by which the costs are multiplied for solvers.
        shift: constant that is added to reported objectives and bounds. Solvers do not get it.
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
        """Return (number of rows, number of columns)."""
        return int(self.template.A.shape[0]), int(self.template.A.shape[1])

    @cached_property
    def is_mip(self) -> bool:
        """Return whether any column must be integer."""
        return self.template.is_mip

    @cached_property
    def _stacked_moves(self) -> tuple[Vector, Any]:
        """Return the constant parts and the matrices of all moves, stacked.

        One product with the stacked matrix is faster than one product for each move.
        """
        from scipy.sparse import csr_array, vstack  # This import is slow.

        moves = self.moves.values()
        matrix = vstack([csr_array(move.matrix) for move in moves], format="csr")
        return np.concatenate([move.base for move in moves]), matrix

    @cached_property
    def symbols(self) -> Symbols:
        """Return the numbers as exact functions of the parameters.

        A value of the result is (base, terms). The base is a rational, or None for infinity. The
        terms are pairs (position in the stacked parameters, factor): the number is base + Σ factor
        * parameter.
        """
        code_by_value: dict[tuple[float, Any], int] = {}
        codes = {}
        for section in (*SECTIONS, "offset"):
            codes[section] = np.array(
                [
                    code_by_value.setdefault((base, terms), len(code_by_value))
                    for base, terms in self._list_affine_entries(section)
                ],
                dtype=np.intp,
            )
        values = []
        for base, terms in code_by_value:
            exact_base = Fraction(base) if isfinite(base) else None
            values.append((exact_base, tuple((j, Fraction(factor)) for j, factor in terms)))
        matrix = self.template.A
        return Symbols(
            matrix.indices.astype(np.intp),
            np.repeat(np.arange(matrix.shape[1]), np.diff(matrix.indptr)),
            codes,
            values,
        )

    def _list_affine_entries(self, section: str) -> list[tuple[float, Any]]:
        """Return (base, terms) of every entry of a section, as in `symbols` but in doubles."""
        from scipy.sparse import csr_array  # This import is slow.

        if section == "A":
            numbers = self.template.A.data
        else:
            numbers = np.atleast_1d(getattr(self.template, section))
        entries: list[tuple[float, Any]] = [(base, ()) for base in numbers.tolist()]
        if section in self.moves:
            positions, bases, factors = self.moves[section]
            matrix = csr_array(factors)
            terms = [*zip(matrix.indices.tolist(), matrix.data.tolist(), strict=True)]
            starts = matrix.indptr.tolist()
            for k, position in enumerate(positions.tolist()):
                entries[position] = (float(bases[k]), tuple(terms[starts[k] : starts[k + 1]]))
        return entries

    def block(self, name: str) -> Block:
        """Return the column block of a variable.

        Args:
            name: name of the variable.

        Raises:
            KeyError: the model has no such variable.
        """
        for block in self.variables:
            if block.name == name:
                return block
        raise KeyError(
            f"the program has no variable {name!r}; it has {[b.name for b in self.variables]}"
        )

    def stack_parameters(self, values: Mapping[str, ArrayLike]) -> Vector:
        """Stack parameter values in the program's order.

        Args:
            values: parameter name -> value, for all parameters.

        Raises:
            InvalidProgram: a parameter is missing, unknown, of the wrong shape, or not finite.
        """
        if values.keys() != self.parameters.keys():
            missing = sorted(self.parameters.keys() - values.keys())
            unknown = sorted(values.keys() - self.parameters.keys())
            raise InvalidProgram(
                f"parameters must be {sorted(self.parameters)}. "
                f"Missing {missing}, unknown {unknown}."
            )
        p = np.empty(sum(prod(shape) for shape in self.parameters.values()))
        start = 0
        for name, shape in self.parameters.items():
            value = values[name]
            if shape or not isinstance(value, (float, int)):
                value = np.asarray(value, dtype=float)
                if value.shape != shape:
                    raise InvalidProgram(
                        f"parameter {name} must be of shape {shape}. Got shape {value.shape}."
                    )
                value = value.ravel(order="F")
            end = start + prod(shape)
            p[start:end] = value
            start = end
        if np.count_nonzero(np.isfinite(p)) < p.size:
            raise InvalidProgram("every parameter must be finite. Got nan or inf.")
        return p

    def data(self, values: Mapping[str, ArrayLike] | None = None) -> Data:
        """Return the unscaled numbers at parameter values.

        Sections that no parameter moves are shared with the template, not copied.

        Args:
            values: parameter name -> value. None if the program has no parameters.
        """
        return self.data_at(self.stack_parameters(values or {}))

    def data_at(self, p: Vector) -> Data:
        """Return the unscaled numbers at a stacked parameter vector, as `data` does.

        Args:
            p: (parameters,) as `stack_parameters` returns it.
        """
        if not self.moves:
            return self.template
        moved_fields: dict[str, Any] = {}
        bases, matrix = self._stacked_moves
        all_entries = bases + matrix @ p
        end = 0
        for section, (positions, *_) in self.moves.items():
            start = end
            end += positions.size
            entries = all_entries[start:end]
            if section == "offset":
                moved_fields["offset"] = float(entries[0])
            elif section == "A":
                numbers = self.template.A.data.copy()
                numbers[positions] = entries
                moved_fields["A"] = replace_entries(self.template.A, numbers)
            else:
                numbers = getattr(self.template, section).copy()
                numbers[positions] = entries
                moved_fields[section] = numbers
        return replace(self.template, **moved_fields)

    def __str__(self) -> str:
        row_count, column_count = self.shape
        kind = "LP"
        if self.is_mip:
            kind = f"MILP, {int(self.template.integrality.sum())} integer"
        if self.cones is not None:
            kind += f" with {len(self.cones)} second-order cones"
        return (
            f"{self.name}: {kind}, {column_count} columns, {row_count} rows, "
            f"{self.template.A.nnz} non-zeros"
        )


# CVXPY infers shapes by reducing uninitialised memory, which may overflow and cause a false
# warning. Models are stated and compiled under this context.
ignore_float_warnings = np.errstate(all="ignore")
