"""The part of CVXPY's language that models are stated in, without CVXPY: what they state is written as a program.

Loading CVXPY takes half a second, longer than many of the solves, and compiling takes longer than writing. A model is
stated once, in a language that it is given: `cvxpy`, or this module, which has the same names for what models need. The
tests compare the programs entry by entry: variables and parameters in the order in which they occur, equations before
inequalities, a largest value by its epigraph.

    affine expression     Σ value · parameter · x[column],  over terms and over the last axis of their arrays
"""

from __future__ import annotations

import builtins
import itertools
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from workbench.solvers.arrays import Ints, Positions, Vector
from workbench.solvers.canonical import compile_program
from workbench.solvers.program import Block, Data, Move, Program


def build_program(
    state_problem: Callable[[Any], Any], name: str, scale: float = 1.0, *, without_cvxpy: bool
) -> Program:
    """What is stated in the language that it is given: this one where it is plain, else the whole of CVXPY's."""
    if without_cvxpy:
        problem: Problem = state_problem(sys.modules[__name__])
        return problem.to_program(name, scale)
    import cvxpy

    return compile_program(state_problem(cvxpy), name, scale=scale)


class Term(NamedTuple):
    """Without a variable a constant, without a parameter a number. column, value, entry: arrays that broadcast to
    (*shape, n), or one number for all."""

    variable: Variable | None
    column: Any
    value: Any
    parameter: Parameter | None
    entry: Any


class Affine:
    """An affine expression."""

    __array_ufunc__ = None  # so that numpy leaves products and comparisons to it
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, shape: Ints, terms: Sequence[Term]) -> None:
        self.shape, self.terms = shape, terms

    @property
    def size(self) -> int:
        """How many entries it has."""
        return math.prod(self.shape)

    def map_arrays(self, shape: Ints, change: Callable[[Any], Any]) -> Affine:
        """With arrays, of its shape and one more axis, changed alike."""

        def whole(part: Any, last: Ints) -> Any:
            return (
                change(np.broadcast_to(part, self.shape + last))
                if isinstance(part, np.ndarray)
                else part
            )

        terms = []
        for variable, column, value, parameter, entry in self.terms:
            last = np.broadcast(column, value, entry).shape[-1:]
            terms.append(
                Term(
                    variable, whole(column, last), whole(value, last), parameter, whole(entry, last)
                )
            )
        return Affine(shape, terms)

    def __getitem__(self, key: Any) -> Affine:
        return self.map_arrays(np.broadcast_to(0, self.shape)[key].shape, lambda part: part[key])

    def __add__(self, other: Any) -> Affine:
        other = _affine(other)
        return Affine(np.broadcast_shapes(self.shape, other.shape), [*self.terms, *other.terms])

    def __sub__(self, other: Any) -> Affine:
        return self + _affine(other) * -1.0

    def __mul__(self, factor: Any) -> Affine:
        if isinstance(factor, float):
            return Affine(
                self.shape,
                [Term(v, at, value * factor, p, entry) for v, at, value, p, entry in self.terms],
            )
        given = _affine(factor)
        if any(term.variable for term in given.terms):
            return given * self
        ((_, _, more, by, where),) = given.terms
        assert by is None or not any(term.parameter for term in self.terms), (
            "a product of parameters is not affine"
        )
        shape = np.broadcast_shapes(self.shape, given.shape)
        terms = [
            Term(v, at, value * more, *((p, entry) if by is None else (by, where)))
            for v, at, value, p, entry in self.terms
        ]
        return Affine(shape, terms)

    def __rmul__(self, table: ArrayLike) -> Affine:
        return self * table

    def __matmul__(self, table: Any) -> Affine:
        return sum(self * table, axis=len(self.shape) - 1)

    def __rmatmul__(self, table: Vector) -> Affine:
        spread = table.reshape(table.shape + (1,) * (len(self.shape) - 1))
        return sum(self * spread, axis=table.ndim - 1)

    def __le__(self, other: Any) -> Row:
        return Row(self - other, equal=False)

    def __ge__(self, other: Any) -> Row:
        return Row(_affine(other) - self, equal=False)

    def __eq__(self, other: object) -> Row:  # type: ignore[override]
        return Row(self - other, equal=True)


class Parameter(Affine):
    """Numbers that are given later."""

    def __init__(self, shape: int | Ints = (), name: str = "", nonneg: bool = False) -> None:
        self.name, shape = name, (shape,) if isinstance(shape, int) else shape
        super().__init__(shape, [Term(None, 0, 1.0, self, _places(shape))])


class Variable(Affine):
    """Columns; largest: the row that makes it the largest value of an expression."""

    epigraph_row: Row | None = None

    def __init__(
        self,
        shape: int | Ints = (),
        name: str = "",
        bounds: Sequence[Any] = (0, 1),
        boolean: bool = False,
    ) -> None:
        self.name, self.bounds, self.boolean = name, bounds, boolean
        shape = (shape,) if isinstance(shape, int) else shape
        super().__init__(shape, [Term(self, _places(shape), 1.0, None, 0)])


@dataclass
class Row:
    """expression <= 0, or = 0. label: of its block; wished: as of `workbench.solvers.program.Block`."""

    expression: Affine
    equal: bool
    label: str | None = None
    is_user_constraint: bool = False

    def transpose(self) -> Row:
        """The same rows, those of a column after each other."""
        turned = self.expression.map_arrays(
            self.expression.shape[::-1], lambda part: np.swapaxes(part, 0, 1)
        )
        return Row(turned, self.equal, self.label)

    def set_label(self, label: str) -> Row:
        """Itself, with a label."""
        self.label = label
        return self


def _places(shape: Ints) -> Any:
    return np.arange(math.prod(shape)).reshape((*shape, 1), order="F")


def _affine(value: Any) -> Affine:
    if isinstance(value, Affine):
        return value
    table = np.asarray(value, dtype=float)
    return Affine(table.shape, [Term(None, 0, table[..., None], None, 0)])


def sum(expression: Affine, axis: int | None = None) -> Affine:
    """Of all entries, or along an axis."""
    if axis is None:
        return expression.map_arrays((), lambda part: part.ravel())
    shape = np.delete(expression.shape, axis).tolist()
    return expression.map_arrays(
        tuple(shape), lambda part: np.moveaxis(part, axis, -2).reshape((*shape, -1))
    )


def multiply(table: Vector, expression: Affine) -> Affine:
    """Entry by entry."""
    return expression * table


def max(expression: Affine) -> Affine:
    """The largest entry of numbers times masses, as a column within what that can be."""
    ends = [part(expression.terms[0].value, 0.0) for part in (np.minimum, np.maximum)]
    largest = Variable(
        name="aux_worst", bounds=[np.cumsum(end, axis=-1)[..., -1].max() for end in ends]
    )
    largest.epigraph_row = (expression <= largest).set_label("aux_losses")
    return largest


def Minimize(expression: Affine) -> Affine:
    """The objective."""
    return expression


class _Section:
    """The numbers of one section of a program's data: sums of values, and of parameters times values, by their place.

    first: where each parameter begins in the stacked vector.
    """

    def __init__(self, first: Mapping[int, int]) -> None:
        self._first, self._parts = first, list[tuple[Any, ...]]()

    def add(self, place: Any, term: Term, sign: float = 1.0) -> None:
        """place: of the shape of the term's arrays, or broadcast to it."""
        at = -1 if term.parameter is None else self._first[id(term.parameter)] + term.entry
        self._parts.append(
            tuple(each.ravel() for each in np.broadcast_arrays(place, sign * term.value, at))
        )

    def moved(self, parameters: int, size: int = 0) -> tuple[Positions, Vector, Move]:
        """Keys of what is kept of so many places, all without a size; what stands there at zero, and what moves."""
        place, value, at = (
            map(np.concatenate, zip(*self._parts, strict=True))
            if self._parts
            else np.zeros((3, 0), int)
        )
        kept = value != 0
        place, value, at = place[kept], value[kept], at[kept]
        key: Any = np.arange(size)
        if not size:
            key, place = np.unique(place, return_inverse=True)
        moving = at >= 0
        base = np.bincount(place, np.where(moving, 0.0, value), key.size).astype(float)
        if not size:  # what cancels is no entry
            stays = (base != 0) | (np.bincount(place, moving, key.size) > 0)
            key, base, place = key[stays], base[stays], (np.cumsum(stays) - 1)[place]
        if (
            not moving.any()
        ):  # a sparse matrix of nothing takes longer to make than the rest of a small program
            return (
                key,
                base,
                Move(np.zeros(0, dtype=np.intp), np.zeros(0), np.zeros((0, parameters))),
            )
        live, which = np.unique(place[moving], return_inverse=True)
        matrix = sp.csr_array((value[moving], (which, at[moving])), shape=(live.size, parameters))
        return key, base, Move(live.astype(np.intp), base[live], matrix)


class Problem:
    """A linear program as it is stated. first: variables whose columns come first."""

    def __init__(
        self, objective: Affine, rows: Sequence[Row], first: Sequence[Variable] = ()
    ) -> None:
        rows = [
            row if row.label else row.set_label(f"constraint[{k}]") for k, row in enumerate(rows)
        ]
        stated, met = [Row(variable, equal=False) for variable in first], set[int]()
        for row in (Row(objective, equal=False), *rows):
            largest = [term.variable.epigraph_row for term in row.expression.terms if term.variable]
            more = [each for each in largest if each and id(each) not in met]
            met.update(map(id, more))
            stated += [row, *more] if row.expression is objective else [*more, row]
        self.objective = objective
        terms = [term for row in stated for term in row.expression.terms]
        self.variables = {
            id(term.variable): term.variable for term in terms if term.variable is not None
        }
        ends = [
            _affine(end).terms for variable in self.variables.values() for end in variable.bounds
        ]
        terms += itertools.chain.from_iterable(ends)
        self.parameters = {
            id(term.parameter): term.parameter for term in terms if term.parameter is not None
        }
        stated = [row for row in stated if row.label]
        self.rows = sorted(stated, key=lambda row: not row.equal)

    def to_program(self, name: str, scale: float = 1.0) -> Program:
        """The program."""
        (parameters, size), (columns, n) = _begins(self.parameters), _begins(self.variables)
        variables, m, at = (
            [*self.variables.values()],
            builtins.sum(row.expression.size for row in self.rows),
            0,
        )
        c, A, right, lower, upper = (_Section(parameters) for _ in range(5))
        for variable in variables:
            place = columns[id(variable)] + variable.terms[0].column
            for section, end in zip((lower, upper), variable.bounds, strict=True):
                for term in _affine(end).terms:
                    section.add(place, term)
        for term in self.objective.terms:
            c.add(columns[id(term.variable)] + term.column, term)
        blocks = []
        for row in self.rows:
            place, count = at + _places(row.expression.shape), row.expression.size
            for term in row.expression.terms:
                if term.variable is None:
                    right.add(place, term, -1.0)
                else:
                    A.add((columns[id(term.variable)] + term.column) * m + place, term)
            blocks.append(Block(str(row.label), at, (count,), row.is_user_constraint))
            at += count
        equal = np.repeat([row.equal for row in self.rows], [block.size for block in blocks])
        key, entries, parts = A.moved(size)
        starts = np.concatenate([[0], np.cumsum(np.bincount(key // (m or 1), minlength=n))]).astype(
            np.int32
        )
        base, moves = dict[str, Any](), {"A": parts}
        for name_of, numbers, count in (
            ("c", c, n),
            ("lower", lower, n),
            ("upper", upper, n),
            ("row_upper", right, m),
        ):
            _, base[name_of], moves[name_of] = numbers.moved(size, count)
        moves["row_lower"] = Move(
            *(part[equal[moves["row_upper"].positions]] for part in moves["row_upper"])
        )
        data = Data(
            offset=0.0,
            A=sp.csc_array((entries, (key % (m or 1)).astype(np.int32), starts), shape=(m, n)),
            row_lower=np.where(equal, base["row_upper"], -np.inf),
            integrality=np.repeat([v.boolean for v in variables], [v.size for v in variables]),
            **base,
        )
        return Program(
            name,
            data,
            1,
            tuple(
                Block(v.name, at, v.shape)
                for at, v in zip(columns.values(), variables, strict=True)
            ),
            tuple(blocks),
            {v.name: v.shape for v in self.parameters.values()},
            scale,
            {section: move for section, move in moves.items() if move.positions.size},
        )


def _begins(blocks: Mapping[int, Affine]) -> tuple[dict[int, int], int]:
    """Where each begins, and where all end."""
    ends = np.cumsum([0, *(block.size for block in blocks.values())]).tolist()
    return dict(zip(blocks, ends, strict=False)), ends[-1]
