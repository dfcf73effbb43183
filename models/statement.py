"""Build a `Program` from a model in a subset of CVXPY's language, without loading CVXPY.

Loading CVXPY takes half a second, longer than many of the solves, and its compilation takes longer
than building the program here. A model is a function of a language: the module `cvxpy`, or this
module, which has the same names for the operations that models need.

    def state_problem(cp):
        x = cp.Variable(3, name="x", bounds=[0, 1])
        epsilon = cp.Parameter(name="epsilon")
        return cp.Problem(cp.Minimize(cp.sum(x)), [x[0] >= epsilon * x[1]])

    program = build_program(state_problem, "example", without_cvxpy=True)

The tests compare the programs of both languages entry by entry. Both order variables and parameters
by their first use, put equations before inequalities, and state a largest value by its epigraph (a
variable that is at least every value).

An affine expression is a list of terms. Each entry of the expression is

    Σ value · parameter[entry] · x[column],  over the terms and over the last axis of their arrays.

For example, with Variable x of length 3, `2.0 * x[1]` has the one term (variable x, column [1],
value 2, no parameter).

Another operation needs a function or a method of `Affine` here, with the name that it has in CVXPY.
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
    state_problem: Callable[[Any], Any],
    name: str,
    scale: float = 1.0,
    *,
    without_cvxpy: bool,
) -> Program:
    """Build the program of a model, with or without CVXPY.

    Args:
        state_problem: function that gets a language (the module `cvxpy` or this module) and returns
            the problem, stated in it.
        name: name of the program.
        scale: the program is solved in units of 1/scale (`workbench.solvers.program`).
        without_cvxpy: whether the model is stated in this module's language, else in CVXPY.
    """
    if without_cvxpy:
        problem: Problem = state_problem(sys.modules[__name__])
        return problem.to_program(name, scale)
    import cvxpy

    return compile_program(state_problem(cvxpy), name, scale=scale)


class Term(NamedTuple):
    """A summand of an affine expression: n products for each of its entries.

    The arrays broadcast to (*shape, n), where `shape` is the shape of the expression. A number
    stands for an array of equal numbers.

    Attributes:
        variable: the variable, or None for a constant.
        column: numbers of the columns of the variable, from 0 in Fortran order.
        value: coefficients of the products.
        parameter: the parameter that multiplies the coefficients, or None.
        entry: numbers of the entries of the parameter, from 0 in Fortran order.
    """

    variable: Variable | None
    column: Any
    value: Any
    parameter: Parameter | None
    entry: Any


class Affine:
    """An affine expression, as in CVXPY.

    Args:
        shape: shape of the expression.
        terms: summands of the expression.
    """

    __array_ufunc__ = None  # NumPy then leaves products and comparisons to this class.
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        shape: Ints,
        terms: Sequence[Term],
    ) -> None:
        self.shape = shape
        self.terms = terms

    @property
    def size(self) -> int:
        """Return the number of entries."""
        return math.prod(self.shape)

    def map_arrays(
        self,
        shape: Ints,
        change: Callable[[Any], Any],
    ) -> Affine:
        """Return the expression with its entries rearranged or summed.

        Args:
            shape: shape of the result.
            change: function that maps an array of shape (*self.shape, n) to one of shape
                (*shape, n'), by the same rule for every array of a term.
        """

        def change_part(part: Any, last_axis: Ints) -> Any:
            """Apply `change` to one array of a term, broadcast to the shape of the expression."""
            if not isinstance(part, np.ndarray):
                return part  # A number stands for all entries, also after the change.
            return change(np.broadcast_to(part, self.shape + last_axis))

        terms = []
        for variable, column, value, parameter, entry in self.terms:
            last_axis = np.broadcast(column, value, entry).shape[-1:]
            new_column = change_part(column, last_axis)
            new_value = change_part(value, last_axis)
            new_entry = change_part(entry, last_axis)
            terms.append(Term(variable, new_column, new_value, parameter, new_entry))
        return Affine(shape, terms)

    def __getitem__(self, key: Any) -> Affine:
        shape = np.broadcast_to(0, self.shape)[key].shape
        return self.map_arrays(shape, change=lambda part: part[key])

    def __add__(self, operand: Any) -> Affine:
        summand = _to_affine(operand)
        shape = np.broadcast_shapes(self.shape, summand.shape)
        return Affine(shape, [*self.terms, *summand.terms])

    def __sub__(self, operand: Any) -> Affine:
        return self + _to_affine(operand) * -1.0

    def __mul__(self, factor: Any) -> Affine:
        if isinstance(factor, float):
            return Affine(
                self.shape, [term._replace(value=term.value * factor) for term in self.terms]
            )
        multiplier = _to_affine(factor)
        if any(term.variable for term in multiplier.terms):
            # The factor that has variables becomes the left one.
            return multiplier * self
        # A factor without variables is one table of numbers or one parameter.
        ((_, _, number, parameter, parameter_entry),) = multiplier.terms
        has_parameter = any(term.parameter for term in self.terms)
        assert parameter is None or not has_parameter, "a product of parameters is not affine"
        shape = np.broadcast_shapes(self.shape, multiplier.shape)
        terms = []
        for term in self.terms:
            product = term._replace(value=term.value * number)
            if parameter is not None:
                product = product._replace(parameter=parameter, entry=parameter_entry)
            terms.append(product)
        return Affine(shape, terms)

    def __rmul__(self, table: ArrayLike) -> Affine:
        return self * table

    def __matmul__(self, table: Any) -> Affine:
        return sum(self * table, axis=len(self.shape) - 1)

    def __rmatmul__(self, table: Vector) -> Affine:
        expanded_table = table.reshape(table.shape + (1,) * (len(self.shape) - 1))
        return sum(self * expanded_table, axis=table.ndim - 1)

    def __le__(self, operand: Any) -> Row:
        return Row(self - operand, equal=False)

    def __ge__(self, operand: Any) -> Row:
        return Row(_to_affine(operand) - self, equal=False)

    def __eq__(self, operand: object) -> Row:  # type: ignore[override]
        return Row(self - operand, equal=True)


class Parameter(Affine):
    """Numbers that are set at each solve, as in CVXPY.

    Args:
        shape: shape, or length of a vector.
        name: name under which its values are set.
        nonneg: accepted as in CVXPY and ignored.
    """

    def __init__(
        self,
        shape: int | Ints = (),
        name: str = "",
        nonneg: bool = False,
    ) -> None:
        self.name = name
        shape = (shape,) if isinstance(shape, int) else shape
        super().__init__(
            shape,
            [Term(variable=None, column=0, value=1.0, parameter=self, entry=_entry_numbers(shape))],
        )


class Variable(Affine):
    """Unknowns of the program, one column for each entry, as in CVXPY.

    Args:
        shape: shape, or length of a vector.
        name: name of the variable.
        bounds: lower and upper bound, each a number, an array or an expression of parameters.
            Default: 0 and 1, unlike CVXPY.
        boolean: whether the columns must be 0 or 1.

    Attributes:
        epigraph_row: row that makes the variable at least the largest value of an expression; None
            for an ordinary variable.
    """

    epigraph_row: Row | None = None

    def __init__(
        self,
        shape: int | Ints = (),
        name: str = "",
        bounds: Sequence[Any] = (0, 1),
        boolean: bool = False,
    ) -> None:
        self.name = name
        self.bounds = bounds
        self.boolean = boolean
        shape = (shape,) if isinstance(shape, int) else shape
        super().__init__(
            shape,
            [Term(variable=self, column=_entry_numbers(shape), value=1.0, parameter=None, entry=0)],
        )


@dataclass
class Row:
    """The rows expression <= 0, or expression = 0.

    Attributes:
        expression: left side of the rows.
        equal: whether the rows are equations.
        label: name of their block in the program. None until it is set.
        is_user_constraint: whether a user defined the rows. Reports of conflicts then name them.
    """

    expression: Affine
    equal: bool
    label: str | None = None
    is_user_constraint: bool = False

    def transpose(self) -> Row:
        """Return the same rows with both axes exchanged."""
        shape = self.expression.shape[::-1]
        expression = self.expression.map_arrays(shape, lambda part: np.swapaxes(part, 0, 1))
        return Row(expression, self.equal, self.label)

    def set_label(self, label: str) -> Row:
        """Set the label and return the rows, as in CVXPY.

        Args:
            label: name of the block.
        """
        self.label = label
        return self


def _entry_numbers(shape: Ints) -> Any:
    """Number the entries in Fortran order, in an array of shape (*shape, 1)."""
    return np.arange(math.prod(shape)).reshape((*shape, 1), order="F")


def _to_affine(value: Any) -> Affine:
    """Return a value as an affine expression."""
    if isinstance(value, Affine):
        return value
    table = np.asarray(value, dtype=float)
    return Affine(
        table.shape,
        [Term(variable=None, column=0, value=table[..., None], parameter=None, entry=0)],
    )


def sum(expression: Affine, axis: int | None = None) -> Affine:
    """Sum all entries, or along an axis, as `cvxpy.sum`.

    Args:
        expression: expression of any shape.
        axis: axis over which the entries are summed, or None for all entries.
    """
    if axis is None:
        return expression.map_arrays((), lambda part: part.ravel())
    shape = np.delete(expression.shape, axis).tolist()

    def move_axis(part: Any) -> Any:
        """Move the summed axis next to the last axis, and join the two."""
        return np.moveaxis(part, axis, -2).reshape((*shape, -1))

    return expression.map_arrays(tuple(shape), move_axis)


def multiply(table: Vector, expression: Affine) -> Affine:
    """Multiply entry by entry, as `cvxpy.multiply`.

    Args:
        table: numbers that broadcast with the expression, any shape.
        expression: expression of any shape.
    """
    return expression * table


def max(expression: Affine) -> Affine:
    """Return a variable that is at least every entry of an expression, as `cvxpy.max`.

    Its bounds contain all values that the largest entry can have.

    Args:
        expression: sums of numbers times masses in [0, 1], an expression with a single term.
    """
    (term,) = expression.terms
    # The last entry of cumsum is the sum from left to right. `np.sum` adds in another order, which
    # may round differently and so change the bounds.
    running_sums = [
        np.cumsum(part, axis=-1)
        for part in (np.minimum(term.value, 0.0), np.maximum(term.value, 0.0))
    ]
    bounds = [part[..., -1].max() for part in running_sums]
    largest_value = Variable(name="aux_worst", bounds=bounds)
    largest_value.epigraph_row = (expression <= largest_value).set_label("aux_losses")
    return largest_value


def Minimize(expression: Affine) -> Affine:
    """Return the expression itself as the objective; it stands for `cvxpy.Minimize`.

    Args:
        expression: scalar expression to minimise.
    """
    return expression


class _Section:
    """The numbers of one section of a program's data, such as its costs or its matrix.

    Each position of the section has a constant plus a sum of parameters times numbers.
    """

    def __init__(self, parameter_starts: Mapping[int, int]) -> None:
        """Start an empty section.

        The argument maps the id of a parameter to its first entry in the stacked vector.
        """
        self._parameter_starts = parameter_starts
        self._parts: list[tuple[Any, ...]] = []

    def add(
        self,
        positions: Any,
        term: Term,
        sign: float = 1.0,
    ) -> None:
        """Add a term at positions that have the shape of its arrays, or broadcast to it."""
        entries: Any = -1  # The entry -1 stands for no parameter.
        if term.parameter is not None:
            entries = self._parameter_starts[id(term.parameter)] + term.entry
        arrays = np.broadcast_arrays(positions, sign * term.value, entries)
        self._parts.append(tuple(array.ravel() for array in arrays))

    def collect(
        self,
        parameter_count: int,
        size: int = 0,
    ) -> tuple[Positions, Vector, Move]:
        """Add up the numbers at each position.

        Args:
            parameter_count: number of entries of all parameters.
            size: number of positions; all of range(size) are returned. 0 for a sparse section, of
                which only the positions with a number are returned.

        Returns:
            The positions; their values at parameters 0; and the move: the positions that depend on
            parameters, with the matrix that maps the parameters to their changes.
        """
        if self._parts:
            position, value, entry = map(np.concatenate, zip(*self._parts, strict=True))
        else:
            position, value, entry = np.zeros((3, 0), int)
        has_value = value != 0
        position = position[has_value]
        value = value[has_value]
        entry = entry[has_value]
        keys: Any = np.arange(size)
        if not size:
            keys, position = np.unique(position, return_inverse=True)
        is_moving = entry >= 0
        constants = np.where(is_moving, 0.0, value)
        base = np.bincount(position, constants, keys.size).astype(float)
        if not size:
            # Values that cancel leave no entry.
            has_move = np.bincount(position, is_moving, keys.size) > 0
            stays = (base != 0) | has_move
            keys = keys[stays]
            base = base[stays]
            # The new number of a position is the number of earlier positions that stay.
            position = (np.cumsum(stays) - 1)[position]
        if not is_moving.any():
            # An empty sparse matrix takes longer to build than the rest of a small program.
            no_positions = np.zeros(0, dtype=np.intp)
            return keys, base, Move(no_positions, np.zeros(0), np.zeros((0, parameter_count)))
        moving, row = np.unique(position[is_moving], return_inverse=True)
        matrix = sp.csr_array(
            (value[is_moving], (row, entry[is_moving])), shape=(moving.size, parameter_count)
        )
        return keys, base, Move(moving.astype(np.intp), base[moving], matrix)


class Problem:
    """A linear program, as `cvxpy.Problem`.

    Args:
        objective: the expression to minimise.
        rows: the rows; rows without a label get one.
        leading_variables: variables whose columns come first, whatever their first use.

    Attributes:
        objective: the expression to minimise.
        variables: all variables by id, in the order of their first use.
        parameters: all parameters by id, in the order of their first use.
        rows: all rows, equations first.
    """

    def __init__(
        self,
        objective: Affine,
        rows: Sequence[Row],
        leading_variables: Sequence[Variable] = (),
    ) -> None:
        self.objective = objective
        objective_row = Row(objective, equal=False)
        used_rows = [Row(variable, equal=False) for variable in leading_variables]
        stated_epigraphs = set[int]()
        for k, row in enumerate(rows):
            if not row.label:
                row.set_label(f"constraint[{k}]")
        for row in [objective_row, *rows]:
            epigraph_rows = []
            for term in row.expression.terms:
                epigraph_row = term.variable.epigraph_row if term.variable else None
                if epigraph_row and id(epigraph_row) not in stated_epigraphs:
                    epigraph_rows.append(epigraph_row)
            stated_epigraphs.update(map(id, epigraph_rows))
            # An epigraph follows the objective and precedes a row that uses it.
            if row is objective_row:
                used_rows += [row, *epigraph_rows]
            else:
                used_rows += [*epigraph_rows, row]
        terms = [term for row in used_rows for term in row.expression.terms]
        self.variables: dict[int, Variable] = {}
        for term in terms:
            if term.variable is not None:
                self.variables[id(term.variable)] = term.variable
        bounds = [variable.bounds for variable in self.variables.values()]
        bound_terms = [_to_affine(end).terms for end in itertools.chain.from_iterable(bounds)]
        terms += itertools.chain.from_iterable(bound_terms)
        self.parameters: dict[int, Parameter] = {}
        for term in terms:
            if term.parameter is not None:
                self.parameters[id(term.parameter)] = term.parameter
        # The rows of the leading variables and of the objective have no label. They only fix the
        # order of the variables and parameters, and are no rows of the program.
        labelled_rows = [row for row in used_rows if row.label]
        self.rows = sorted(labelled_rows, key=lambda row: not row.equal)

    def to_program(
        self,
        name: str,
        scale: float = 1.0,
    ) -> Program:
        """Compile the problem.

        Args:
            name: name of the program.
            scale: the program is solved in units of 1/scale (`workbench.solvers.program`).
        """
        parameter_starts, parameter_count = _block_starts(self.parameters)
        column_starts, n = _block_starts(self.variables)
        variables = [*self.variables.values()]
        m = builtins.sum(row.expression.size for row in self.rows)
        # The sections are the objective, the matrix (with the position column * m + row), the right
        # sides of the rows, and the bounds of the columns.
        costs, entries, right, lower, upper = (_Section(parameter_starts) for _ in range(5))
        for variable in variables:
            columns = column_starts[id(variable)] + variable.terms[0].column
            for section, bound in zip((lower, upper), variable.bounds, strict=True):
                for term in _to_affine(bound).terms:
                    section.add(columns, term)
        for term in self.objective.terms:
            costs.add(column_starts[id(term.variable)] + term.column, term)
        blocks = []
        start = 0
        for row in self.rows:
            row_numbers = start + _entry_numbers(row.expression.shape)
            size = row.expression.size
            for term in row.expression.terms:
                if term.variable is None:
                    right.add(row_numbers, term, -1.0)
                else:
                    columns = column_starts[id(term.variable)] + term.column
                    entries.add(columns * m + row_numbers, term)
            blocks.append(Block(str(row.label), start, (size,), row.is_user_constraint))
            start += size
        block_sizes = [block.size for block in blocks]
        is_equation = np.repeat([row.equal for row in self.rows], block_sizes)
        keys, values, entry_moves = entries.collect(parameter_count)
        # Without rows there are no keys, and `m or 1` avoids a division by 0.
        column_counts = np.bincount(keys // (m or 1), minlength=n)
        starts = np.concatenate([[0], np.cumsum(column_counts)]).astype(np.int32)
        rows = (keys % (m or 1)).astype(np.int32)
        base: dict[str, Any] = {}
        moves = {"A": entry_moves}
        sections = (("c", costs, n), ("lower", lower, n), ("upper", upper, n))
        for section_name, section, size in (*sections, ("row_upper", right, m)):
            _, base[section_name], moves[section_name] = section.collect(parameter_count, size)
        right_moves = moves["row_upper"]
        moves_equation = is_equation[right_moves.positions]
        # Both sides of an equation are equal, so the lower one moves as the upper one does.
        moves["row_lower"] = Move(
            positions=right_moves.positions[moves_equation],
            base=right_moves.base[moves_equation],
            matrix=right_moves.matrix[moves_equation],
        )
        variable_sizes = [variable.size for variable in variables]
        is_boolean = [variable.boolean for variable in variables]
        data = Data(
            offset=0.0,
            A=sp.csc_array((values, rows, starts), shape=(m, n)),
            row_lower=np.where(is_equation, base["row_upper"], -np.inf),
            integrality=np.repeat(is_boolean, variable_sizes),
            **base,
        )
        variable_blocks = []
        for start, variable in zip(column_starts.values(), variables, strict=True):
            variable_blocks.append(Block(variable.name, start, variable.shape))
        return Program(
            name,
            template=data,
            sense=1,
            variables=tuple(variable_blocks),
            rows=tuple(blocks),
            parameters={parameter.name: parameter.shape for parameter in self.parameters.values()},
            scale=scale,
            moves={section: move for section, move in moves.items() if move.positions.size},
        )


def _block_starts(blocks: Mapping[int, Affine]) -> tuple[dict[int, int], int]:
    """Return the first position of every block, and the end of the last."""
    ends = np.cumsum([0, *(block.size for block in blocks.values())]).tolist()
    # The last end is the start of no block, so `zip` leaves it out.
    return dict(zip(blocks, ends, strict=False)), ends[-1]
