"""Compile CVXPY problems to Programs, by reading the matrices into which CVXPY compiles them.

CVXPY compiles a problem to sparse matrices, which it calls tensors. A row of a tensor is one number
of the program: a cost, an entry of [A b], or a bound of a variable. A column is a parameter, and
the last column is a constant. The number is therefore an affine function of the parameters. For
example, the row (0, 2, 5) is the number 2 p_1 + 5.

The constraints are A x + b = 0 in the first rows of [A b], and A x + b >= 0 in the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from workbench.solvers.arrays import Flags, Positions, Vector
from workbench.solvers.data import Data
from workbench.solvers.errors import BackendUnavailable, InvalidProgram
from workbench.solvers.program import Block, Move, Program, ignore_float_warnings

if TYPE_CHECKING:
    import cvxpy as cp


class _Section(NamedTuple):
    """Entries of one section of `Data` over the stacked parameters and the constant.

    Attributes:
        constant: (entries,).
        linear: (entries, parameters).
    """

    constant: Vector
    linear: sp.csr_array


def label_user_constraint(constraint: Any, label: str) -> Any:
    """Label a constraint and mark it as a constraint of the user, not of the model.

    Args:
        constraint: constraint of CVXPY or of `workbench.models.statement`. It is changed in
            place.
        label: name of its block of rows.

    Returns:
        The constraint.
    """
    constraint.label = label
    constraint.is_user_constraint = True
    return constraint


@ignore_float_warnings
def compile_program(problem: cp.Problem, name: str = "program", *, scale: float = 1.0) -> Program:
    """Compile a CVXPY problem with linear objective and constraints to a Program.

    Args:
        problem: a DPP problem whose canonical form is a (mixed-integer) linear program.
        name: name of the model.
        scale: factor by which continuous columns, rows, bounds and objective are multiplied for
            the solver. It is stored in the Program, whose template is not scaled. A power of two
            keeps the scaled data exact.

    Raises:
        InvalidProgram: the problem is not DPP or not linear, or two variables or parameters share a
            name.
        BackendUnavailable: HiGHS is not installed, whose canonical form is read.
    """
    data, inverse_data = _canonicalize(problem, name)
    canonical = data["param_prob"]
    dims = data["dims"]
    parameters = problem.parameters()
    _require_linear_problem(parameters, canonical, dims, name)
    column_count = int(canonical.x.size)
    row_count = int(canonical.constr_size)
    is_equation = np.arange(row_count) < dims.zero
    sections, (entry_rows, entry_columns) = _read_sections(canonical, parameters, is_equation)
    # Section name -> Move of the entries that depend on parameters.
    moves = {}
    for section, (constant, linear) in sections.items():
        moving = np.flatnonzero(np.diff(linear.indptr))
        if moving.size:
            positions = moving
            if section == "row_lower":
                # This section has the equations only: its entry k belongs to the k-th equation.
                positions = np.flatnonzero(is_equation)[moving]
            moves[section] = Move(positions, constant[moving], linear[moving])
    row_upper = sections["row_upper"].constant
    lower = sections["lower"].constant
    upper = sections["upper"].constant
    boolean_columns = np.array(data.get("bool_vars_idx", ()), dtype=int)
    integrality = np.zeros(column_count, dtype=bool)
    integrality[[*boolean_columns, *data.get("int_vars_idx", ())]] = True
    lower[boolean_columns] = np.maximum(lower[boolean_columns], 0.0)
    upper[boolean_columns] = np.minimum(upper[boolean_columns], 1.0)
    entry_counts = np.bincount(entry_columns, minlength=column_count)
    # The rows of the tensor are sorted, so the entries of A are ordered by column, then by row, as
    # the format CSC requires.
    indptr = np.concatenate([[0], np.cumsum(entry_counts)]).astype(np.int32)
    entries = (sections["A"].constant, entry_rows.astype(np.int32), indptr)
    template = Data(
        c=sections["c"].constant,
        offset=float(sections["offset"].constant[0]),
        A=sp.csc_array(entries, shape=(row_count, column_count)),
        row_lower=np.where(is_equation, row_upper, -np.inf),
        row_upper=row_upper,
        lower=lower,
        upper=upper,
        integrality=integrality,
    )
    return Program(
        name=name,
        template=template,
        sense=1 if problem.objective.NAME == "minimize" else -1,
        variables=_column_blocks(problem, canonical, name),
        rows=_row_blocks(problem, canonical, inverse_data),
        parameters={p.name(): tuple(int(k) for k in p.shape) for p in parameters},
        scale=float(scale),
        moves=moves,
    )


def _canonicalize(problem: cp.Problem, name: str) -> tuple[Any, Any]:
    """Return CVXPY's data of the problem, and its inverse data. Raises InvalidProgram."""
    import cvxpy as cp

    if not problem.is_dcp(dpp=True):
        raise InvalidProgram(
            f"{name} must be linear by the rules of disciplined parametrised programming (DPP). "
            "Got a problem that is not."
        )
    saved_values = {p: p.value for p in problem.parameters()}
    try:
        # CVXPY compiles only if every parameter has a value. The result does not depend on it.
        for p in saved_values:
            p.value = p.project(np.ones(p.shape))
        data, _, inverse_data = problem.get_problem_data(cp.HIGHS)
    except cp.error.SolverError as error:
        # CVXPY compiles a problem for a solver only if this solver is installed.
        if cp.HIGHS not in cp.installed_solvers():
            raise BackendUnavailable(
                "Stating a model needs HiGHS, which is not installed: pip install highspy."
            ) from None
        raise InvalidProgram(
            f"{name} must have a linear objective and linear constraints. {error}"
        ) from None
    finally:
        for p, value in saved_values.items():
            p.value = value
    return data, inverse_data


def _require_linear_problem(
    parameters: Sequence[cp.Parameter], canonical: Any, dims: Any, name: str
) -> None:
    """Raise InvalidProgram unless the problem is linear, with distinct and plain parameters.

    Args:
        parameters: parameters of the problem.
        canonical: CVXPY's canonical program.
        dims: CVXPY's numbers of rows of each kind of cone.
        name: name of the program, for errors.
    """
    if dims.exp or dims.soc or dims.p3d or dims.psd or dims.pnd or canonical.P is not None:
        raise InvalidProgram(f"{name} must have a linear objective and linear constraints.")
    if len({p.name() for p in parameters}) != len(parameters):
        raise InvalidProgram(f"{name} must have distinct parameter names.")
    shapes = {p.id: p.shape for p in parameters}
    refused = sorted(p.name() for p in canonical.parameters if shapes.get(p.id) != p.shape)
    if refused:
        raise InvalidProgram(
            f"{name}: parameters {refused} have attributes (symmetric, diag, PSD, ...) "
            "that a linear program cannot represent. Remove them."
        )


def _read_sections(
    canonical: Any, parameters: Sequence[cp.Parameter], is_equation: Flags
) -> tuple[dict[str, _Section], tuple[Positions, Positions]]:
    """Read the sections of `Data` from the canonical tensors.

    Args:
        canonical: CVXPY's canonical form.
        parameters: parameters of the problem, in the order in which they are stacked.
        is_equation: (rows,) which rows are equations.

    Returns:
        (section -> its entries, (rows and columns of the entries of A)). Section "row_lower" has
        the equations only.
    """
    target_column = _map_tensor_columns(canonical, parameters)
    parameter_count = sum(p.size for p in parameters)
    column_count = int(canonical.x.size)
    row_count = int(canonical.constr_size)
    columns = np.arange(column_count)

    # The last row of the tensor of the costs is the offset.
    _, cost = _read_tensor(canonical.q, target_column, np.arange(column_count + 1))

    # Entry (i, j) of [A b] is in row i + j * row_count of the tensor. The constraint A x + b >= 0
    # becomes -A x <= b in the Program.
    tensor_rows, coefficients = _read_tensor(canonical.A, target_column)
    is_in_A = tensor_rows < row_count * column_count
    b_rows = tensor_rows[~is_in_A] - row_count * column_count
    # This matrix puts the entries of b at their rows. The other rows of b are 0.
    b_selection = (np.ones(b_rows.size), (b_rows, np.flatnonzero(~is_in_A)))
    right_sides = sp.csr_array(
        sp.csr_array(b_selection, shape=(row_count, tensor_rows.size)) @ coefficients
    )
    # Without constraints, A has no entries, and divmod by the number of rows is impossible.
    entry_columns = np.empty(0, dtype=int)
    entry_rows = np.empty(0, dtype=int)
    if row_count:
        entry_columns, entry_rows = np.divmod(tensor_rows[is_in_A], row_count)

    matrices = {
        "c": cost[columns],
        "offset": cost[[column_count]],
        "A": -coefficients[np.flatnonzero(is_in_A)],
        "row_upper": right_sides,
        "row_lower": right_sides[np.flatnonzero(is_equation)],
    }
    # Bounds with parameters are in a tensor, and bounds without parameters in an array.
    for section, tensor, bounds, no_bound in (
        ("lower", canonical.lb_tensor, canonical.lower_bounds, -np.inf),
        ("upper", canonical.ub_tensor, canonical.upper_bounds, np.inf),
    ):
        if tensor is not None:
            _, matrices[section] = _read_tensor(tensor, target_column, columns)
        else:
            ends = np.full(column_count, no_bound)
            if bounds is not None:
                ends = np.array(bounds, dtype=float)
            entries = (ends, (columns, np.full(column_count, parameter_count)))
            shape = (column_count, parameter_count + 1)
            matrices[section] = sp.csr_array(entries, shape=shape)

    sections = {}
    for section, matrix in matrices.items():
        linear = sp.csr_array(matrix[:, np.arange(parameter_count)])
        linear.eliminate_zeros()
        sections[section] = _Section(matrix[:, [parameter_count]].toarray().ravel(), linear)
    return sections, (entry_rows, entry_columns)


def _map_tensor_columns(canonical: Any, parameters: Sequence[cp.Parameter]) -> Positions:
    """Return the position in (stacked parameters, constant) of every column of a tensor.

    CVXPY stacks the parameters in another order than `Program`. The constant is last in both.
    """
    parameter_count = sum(p.size for p in parameters)
    target_column = np.full(canonical.total_param_size + 1, parameter_count)
    position = 0
    for p in parameters:
        start = canonical.param_id_to_col.get(p.id)
        if start is not None:
            target_column[start : start + p.size] = position + np.arange(p.size)
        position += p.size
    return target_column


def _read_tensor(
    tensor: Any, target_column: Positions, rows: Positions | None = None
) -> tuple[Positions, sp.csr_array]:
    """Read rows of a tensor as functions of the stacked parameters.

    Args:
        tensor: a sparse tensor of CVXPY, as in the module header.
        target_column: the result of `_map_tensor_columns`.
        rows: positions of the rows. Default: all rows that are not zero.

    Returns:
        The positions of the rows, and these rows over (stacked parameters, constant).
    """
    coo = sp.coo_array(tensor)
    coo.sum_duplicates()
    is_nonzero = coo.data != 0
    row = coo.coords[0][is_nonzero]
    column = target_column[coo.coords[1][is_nonzero]]
    if rows is None:
        rows = np.unique(row)
    entries = (coo.data[is_nonzero], (np.searchsorted(rows, row), column))
    constant_column = int(target_column[-1])
    return rows, sp.csr_array(entries, shape=(rows.size, constant_column + 1))


def _column_blocks(problem: cp.Problem, canonical: Any, name: str) -> tuple[Block, ...]:
    """Return the column blocks under the model's variable names. Raises InvalidProgram."""
    variables = {variable.id: variable for variable in problem.variables()}
    blocks: dict[str, Block] = {}
    for variable in canonical.variables:
        label = f"aux{variable.id}"
        if variable.id in variables:
            label = variables[variable.id].name()
        if label in blocks:
            raise InvalidProgram(f"{name} must have distinct variable names. Got {label!r} twice.")
        shape = tuple(int(k) for k in variable.shape)
        blocks[label] = Block(label, int(canonical.var_id_to_col[variable.id]), shape)
    # Symmetric variables, for example, lose their shape.
    shapes = {variable.id: variable.shape for variable in canonical.variables}
    refused = sorted(v.name() for v in variables.values() if shapes.get(v.id) != v.shape)
    if refused:
        raise InvalidProgram(
            f"{name}: variables {refused} have attributes that a linear program cannot represent. "
            "Remove them."
        )
    return tuple(sorted(blocks.values(), key=lambda block: block.start))


def _row_blocks(problem: cp.Problem, canonical: Any, inverse_data: Any) -> tuple[Block, ...]:
    """Return the row blocks under the labels of constraints, or their position in the problem."""
    # Constraint id -> (label, whether it is a constraint of the user).
    labels = {}
    for k, constraint in enumerate(problem.constraints):
        label = getattr(constraint, "label", None) or f"constraint[{k}]"
        labels[constraint.id] = label, getattr(constraint, "is_user_constraint", False)
    # Each step of CVXPY's compilation may give a constraint a new id.
    for step in inverse_data:
        for old_id, new_id in (getattr(step, "cons_id_map", None) or {}).items():
            if old_id in labels and new_id not in labels:
                labels[new_id] = labels[old_id]
    blocks = []
    start = 0
    for constraint in canonical.constraints:
        size = int(constraint.size)
        default = (f"aux{constraint.id}", False)
        label, is_user_constraint = labels.get(constraint.id, default)
        blocks.append(Block(label, start, (size,), is_user_constraint))
        start += size
    return tuple(blocks)
