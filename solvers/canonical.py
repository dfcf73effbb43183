"""Reading a Program off CVXPY's canonical form: its parameter tensors are the affine map itself.

CVXPY keeps a compiled problem as sparse tensors whose columns are the parameters and a constant; a row of a tensor is
one entry of the cost, of [A b], or of a variable bound. Rows A x + b lie in the zero cone first, then in the
non-negative one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from workbench.solvers.arrays import Flags, Positions
from workbench.solvers.data import Data
from workbench.solvers.errors import BackendUnavailable, InvalidProgram
from workbench.solvers.program import Block, Move, Program, ignore_float_warnings

if TYPE_CHECKING:
    import cvxpy as cp


def label_user_constraint(constraint: Any, label: str) -> Any:
    """A CVXPY constraint with a label, marked as what a user wishes beyond the model."""
    constraint.label, constraint.wished = label, True
    return constraint


@ignore_float_warnings
def compile_program(problem: cp.Problem, name: str = "program", *, scale: float = 1.0) -> Program:
    """Compile a CVXPY problem with linear objective and constraints into a Program.

    Args:
        problem: a DPP problem whose canonical form is a (mixed-integer) linear program.
        name: of the model.
        scale: see `workbench.solvers.program`; a power of two keeps the scaled data exact.

    Raises:
        InvalidProgram: when the problem is not DPP, not linear, or two variables or parameters share a name.
    """
    data, inverse = _canonicalize(problem, name)
    canonical, dims = data["param_prob"], data["dims"]
    own = problem.parameters()
    _require_linear_problem(own, canonical, dims, name)
    size = sum(p.size for p in own)
    n, m = int(canonical.x.size), int(canonical.constr_size)
    equal = np.arange(m) < dims.zero
    sections, (row, column) = _read_sections(canonical, own, equal)
    base = {}
    moves = {}
    for section, matrix in sections.items():
        base[section] = constant = matrix[:, [size]].toarray().ravel()
        linear = sp.csr_array(matrix[:, np.arange(size)])
        linear.eliminate_zeros()
        moving = np.flatnonzero(np.diff(linear.indptr))
        place = np.flatnonzero(equal)[moving] if section == "row_lower" else moving
        if moving.size:
            moves[section] = Move(place, constant[moving], linear[moving])
    base["row_lower"] = np.where(equal, base["row_upper"], -np.inf)

    integrality = np.zeros(n, dtype=bool)
    boolean = np.array(data.get("bool_vars_idx", ()), dtype=int)
    integrality[[*boolean, *data.get("int_vars_idx", ())]] = True
    base["lower"][boolean] = np.maximum(base["lower"][boolean], 0.0)
    base["upper"][boolean] = np.minimum(base["upper"][boolean], 1.0)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(column, minlength=n))]).astype(np.int32)
    A = sp.csc_array((base.pop("A"), row.astype(np.int32), indptr), shape=(m, n))
    offset = float(base.pop("offset")[0])
    template = Data(**base, A=A, offset=offset, integrality=integrality)
    return Program(
        name=name,
        template=template,
        sense=1 if problem.objective.NAME == "minimize" else -1,
        variables=_column_blocks(problem, canonical, name),
        rows=_row_blocks(problem, canonical, inverse),
        parameters={p.name(): tuple(int(k) for k in p.shape) for p in own},
        scale=float(scale),
        moves=moves,
    )


def _canonicalize(problem: cp.Problem, name: str) -> tuple[Any, Any]:
    """CVXPY's data of the problem, and the inverse data. Raises InvalidProgram."""
    import cvxpy as cp

    if not problem.is_dcp(dpp=True):
        raise InvalidProgram(
            f"{name} must be linear by the rules of disciplined parametrised programming (DPP). Got what is not."
        )
    values = {p: p.value for p in problem.parameters()}
    try:
        for p in values:
            p.value = p.project(np.ones(p.shape))
        data, _, inverse = problem.get_problem_data(cp.HIGHS)
    except cp.error.SolverError as error:
        if cp.HIGHS not in cp.installed_solvers():  # whose canonical form is the one that is read
            raise BackendUnavailable(
                "Stating a model needs HiGHS, which is not installed: pip install highspy."
            ) from None
        raise InvalidProgram(
            f"{name} must have a linear objective and linear constraints. {error}"
        ) from None
    finally:
        for p, value in values.items():
            p.value = value
    return data, inverse


def _require_linear_problem(
    own: Sequence[cp.Parameter], canonical: Any, dims: Any, name: str
) -> None:
    """Refuse what is not linear, and parameters that cannot be told apart or are not what they seem."""
    if dims.exp or dims.soc or dims.p3d or dims.psd or dims.pnd or canonical.P is not None:
        raise InvalidProgram(f"{name} must have a linear objective and linear constraints.")
    if len({p.name() for p in own}) != len(own):
        raise InvalidProgram(f"{name} must have distinct parameter names.")
    kept = {p.id: p.shape for p in own}
    lost = sorted(p.name() for p in canonical.parameters if kept.get(p.id) != p.shape)
    if lost:
        raise InvalidProgram(
            f"{name}: parameters {lost} carry attributes (symmetric, diag, PSD, ...) to be left out."
        )


def _read_sections(
    canonical: Any, own: Sequence[cp.Parameter], equal: Flags
) -> tuple[dict[str, sp.csr_array], tuple[Positions, Positions]]:
    """(section -> its entries over (parameters, constant), rows and columns of A's entries).

    equal: (rows,) which rows are equations.
    """
    # Where each canonical parameter's column goes in the stacked vector; the constant is the last column.
    size = sum(p.size for p in own)
    target = np.full(canonical.total_param_size + 1, size)
    at = 0
    for p in own:
        start = canonical.param_id_to_col.get(p.id)
        if start is not None:
            target[start : start + p.size] = at + np.arange(p.size)
        at += p.size
    n, m = int(canonical.x.size), int(canonical.constr_size)

    def affine(tensor: Any, keep: Positions | None = None) -> tuple[Positions, sp.csr_array]:
        """A canonical tensor's rows (the listed ones, else the non-zero ones) over (parameters, constant)."""
        coo = sp.coo_array(tensor)
        coo.sum_duplicates()
        row, column = coo.coords
        real = coo.data != 0
        row, column, number = row[real], target[column[real]], coo.data[real]
        rows = np.unique(row) if keep is None else keep
        return rows, sp.csr_array(
            (number, (np.searchsorted(rows, row), column)), shape=(rows.size, size + 1)
        )

    _, cost = affine(canonical.q, np.arange(n + 1))
    where, coefficient = affine(
        canonical.A
    )  # entry (i, j) of [A b] sits at i + j m; rows are A x + b in the cone
    inside = where < m * n
    right = sp.csr_array(
        sp.csr_array(
            (np.ones((~inside).sum()), (where[~inside] - m * n, np.flatnonzero(~inside))),
            shape=(m, where.size),
        )
        @ coefficient
    )
    column, row = np.divmod(where[inside], m) if m else (where, where)
    sections = {
        "c": cost[np.arange(n)],
        "offset": cost[[n]],
        "A": -coefficient[np.flatnonzero(inside)],
        "row_upper": right,
        "row_lower": right[np.flatnonzero(equal)],
    }
    for side, tensor, fixed, infinite in (
        ("lower", canonical.lb_tensor, canonical.lower_bounds, -np.inf),
        ("upper", canonical.ub_tensor, canonical.upper_bounds, np.inf),
    ):
        if tensor is not None:
            sections[side] = affine(tensor, np.arange(n))[1]
        else:
            ends = np.full(n, infinite) if fixed is None else np.array(fixed, dtype=float)
            sections[side] = sp.csr_array(
                (ends, (np.arange(n), np.full(n, size))), shape=(n, size + 1)
            )
    return sections, (row, column)


def _column_blocks(problem: cp.Problem, canonical: Any, name: str) -> tuple[Block, ...]:
    """Column blocks under the model's own variable names."""
    own = {variable.id: variable for variable in problem.variables()}
    blocks, seen = [], set()
    for variable in canonical.variables:
        label = own[variable.id].name() if variable.id in own else f"aux{variable.id}"
        if label in seen:
            raise InvalidProgram(f"{name} must have distinct variable names. Got {label!r} twice.")
        seen.add(label)
        shape = tuple(int(k) for k in variable.shape)
        blocks.append(Block(label, int(canonical.var_id_to_col[variable.id]), shape))
    kept = {
        variable.id: variable.shape for variable in canonical.variables
    }  # symmetric ones lose their shape
    names = sorted(
        variable.name() for variable in own.values() if kept.get(variable.id) != variable.shape
    )
    if names:
        raise InvalidProgram(
            f"{name}: variables {names} carry attributes that a linear program cannot keep."
        )
    return tuple(sorted(blocks, key=lambda block: block.start))


def _row_blocks(problem: cp.Problem, canonical: Any, inverse: Any) -> tuple[Block, ...]:
    """Row blocks under the constraints' labels, else their position in the problem."""
    names = {}
    for k, constraint in enumerate(problem.constraints):
        label = getattr(constraint, "label", None) or f"constraint[{k}]"
        names[constraint.id] = label, getattr(constraint, "wished", False)
    for step in inverse:
        for old, new in (getattr(step, "cons_id_map", None) or {}).items():
            if old in names and new not in names:
                names[new] = names[old]
    blocks, at = [], 0
    for constraint in canonical.constraints:
        size = int(constraint.size)
        label, wished = names.get(constraint.id, (f"aux{constraint.id}", False))
        blocks.append(Block(label, at, (size,), wished))
        at += size
    return tuple(blocks)
