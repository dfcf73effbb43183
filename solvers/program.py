"""A linear program stated once in CVXPY, compiled once, and moved in place ever after.

    minimise    c'x + c0
    subject to  row_lower <= A x <= row_upper,   lower <= x <= upper,   x_j integer for j in the integrality mask

CVXPY's canonical data are affine in a problem's parameters (its DPP rules guarantee it), so `compile` evaluates them
at zero and at every unit vector and keeps

    data(p) = data(0) + M p

for the entries that move. A re-solve then costs one small sparse product instead of a canonicalisation.

Scaling. A program may be solved for q = scale * x in its continuous columns: rows, bounds and objective are multiplied
by `scale` (integer columns keep their values and get `scale` times larger coefficients), which is the same program with
absolute tolerances that are `scale` times finer. Solutions are always reported in x.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from .errors import InvalidProgram

if TYPE_CHECKING:
    import cvxpy as cp

__all__ = ["Block", "Data", "Program", "compile"]

Vector = NDArray[np.float64]

LARGEST = 1e15  # solvers treat larger numbers as infinite or refuse them by a status
SMALLEST = 1e-9  # HiGHS silently drops smaller matrix coefficients
SECTIONS = ("c", "offset", "A", "row_lower", "row_upper", "lower", "upper")


@dataclass(frozen=True)
class Block:
    """A named run of columns (or rows): `start`, `size` and the shape it had in the model (Fortran order, as CVXPY)."""

    name: str
    start: int
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of columns (rows)."""
        return int(np.prod(self.shape, dtype=int))

    def read(self, vector: Vector) -> Vector:
        """Cut this block out of a column (row) vector and give it its shape back."""
        return vector[self.start : self.start + self.size].reshape(self.shape, order="F")


@dataclass(frozen=True)
class Data:
    """One instance in numbers. A is CSC of shape (rows, columns); every bound may be infinite."""

    c: Vector
    offset: float
    A: sp.csc_array
    row_lower: Vector
    row_upper: Vector
    lower: Vector
    upper: Vector
    integrality: NDArray[np.bool_]

    @property
    def is_mip(self) -> bool:
        """Whether any column must be integer."""
        return bool(self.integrality.any())

    def check(self) -> None:
        """Refuse numbers that solvers misread instead of refusing them.

        HiGHS answers "optimal" to NaN, drops |a| < 1e-9 and reads |a| >= 1e15 as infinite.

        Raises:
            InvalidProgram: for a NaN anywhere, an infinite or huge cost or coefficient, a coefficient too small to
                survive, crossed bounds, or a finite bound of size 1e15 or more.
        """
        for name, values in (("cost", self.c), ("coefficient", self.A.data), ("offset", np.array([self.offset]))):
            if not np.isfinite(values).all():
                raise InvalidProgram(f"every {name} must be finite. Got {values[~np.isfinite(values)][0]}.")
            if values.size and np.abs(values).max() >= LARGEST:
                raise InvalidProgram(f"every {name} must be below 1e15 in size. Got {np.abs(values).max():g}.")
        size = np.abs(self.A.data)
        tiny = (size > 0) & (size < SMALLEST)
        if tiny.any():
            raise InvalidProgram(
                f"every non-zero coefficient must be at least 1e-9 in size (solvers drop smaller ones). "
                f"Got {size[tiny].min():g}."
            )
        pairs = (("row", self.row_lower, self.row_upper), ("variable", self.lower, self.upper))
        for name, low, high in pairs:
            if np.isnan(low).any() or np.isnan(high).any():
                raise InvalidProgram(f"every {name} bound must be a number. Got nan.")
            if (low > high).any():
                j = int(np.argmax(low > high))
                raise InvalidProgram(f"{name} {j} has crossed bounds: {low[j]:g} > {high[j]:g}.")
            if (low == np.inf).any() or (high == -np.inf).any():
                raise InvalidProgram(f"every lower {name} bound must be below inf, every upper one above -inf.")
            for bound in (low, high):
                finite = bound[np.isfinite(bound)]
                if finite.size and np.abs(finite).max() >= LARGEST:
                    raise InvalidProgram(
                        f"every finite {name} bound must be below 1e15 in size. Got {np.abs(finite).max():g}."
                    )

    def scaled(self, scale: float) -> Data:
        """The same program in q = scale * x for the continuous columns (see the module's docstring)."""
        if scale == 1.0:
            return self
        column = np.where(self.integrality, scale, 1.0)
        A = self.A.copy()
        A.data = A.data * np.repeat(column, np.diff(A.indptr))
        bound = np.where(self.integrality, 1.0, scale)
        return replace(
            self,
            c=self.c * column,
            offset=self.offset * scale,
            A=A,
            row_lower=self.row_lower * scale,
            row_upper=self.row_upper * scale,
            lower=self.lower * bound,
            upper=self.upper * bound,
        )


@dataclass(frozen=True)
class _Moves:
    """The affine map restricted to one section: entries `index` become base + matrix @ p."""

    index: NDArray[np.intp]
    base: Vector
    matrix: sp.csr_array

    def at(self, p: Vector) -> Vector:
        return self.base + self.matrix @ p


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
    """

    name: str
    template: Data
    sense: int
    variables: tuple[Block, ...]
    rows: tuple[Block, ...]
    parameters: Mapping[str, tuple[int, ...]]
    scale: float = 1.0
    moves: Mapping[str, _Moves] = field(default_factory=dict, repr=False)

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        return int(self.template.A.shape[0]), int(self.template.A.shape[1])

    @property
    def is_mip(self) -> bool:
        """Whether any column must be integer."""
        return self.template.is_mip

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
        parts = []
        for name, shape in self.parameters.items():
            value = np.asarray(values[name], dtype=float)
            if value.shape != shape:
                raise InvalidProgram(f"parameter {name} must be of shape {shape}. Got shape {value.shape}.")
            parts.append(value.ravel(order="F"))
        stacked = np.concatenate(parts) if parts else np.zeros(0)
        if not np.isfinite(stacked).all():
            raise InvalidProgram("every parameter must be finite. Got nan or inf.")
        return stacked

    def data(self, values: Mapping[str, ArrayLike] | None = None) -> Data:
        """The instance at these parameter values, unscaled. Sections that no parameter moves are shared, not copied."""
        return self.at(self.vector(values or {}))

    def at(self, p: Vector) -> Data:
        """As `data`, from the stacked parameter vector."""
        if not self.moves:
            return self.template
        changed: dict[str, Any] = {}
        for section, move in self.moves.items():
            if section == "offset":
                changed["offset"] = float(move.at(p)[0])
                continue
            old = self.template.A.data if section == "A" else getattr(self.template, section)
            new = old.copy()
            new[move.index] = move.at(p)
            if section == "A":
                pattern = self.template.A
                changed["A"] = sp.csc_array((new, pattern.indices, pattern.indptr), shape=pattern.shape)
            else:
                changed[section] = new
        return replace(self.template, **changed)

    def __str__(self) -> str:
        m, n = self.shape
        kind = f"MILP, {int(self.template.integrality.sum())} integer" if self.is_mip else "LP"
        return f"{self.name}: {kind}, {n} columns, {m} rows, {self.template.A.nnz} non-zeros"


def compile(problem: cp.Problem, name: str = "program", *, scale: float = 1.0) -> Program:
    """Compile a CVXPY problem with linear objective and constraints into a Program.

    Args:
        problem: a DPP problem whose canonical form is a (mixed-integer) linear program.
        name: of the model.
        scale: see the module's docstring; a power of two keeps the scaled data exact.

    Raises:
        InvalidProgram: when the problem is not DPP, not linear, or two variables or parameters share a name.
    """
    import cvxpy as cp

    if not problem.is_dcp(dpp=True):
        raise InvalidProgram(f"{name} must be a disciplined parametrised problem (DPP). Got one that is not.")
    values = {p: p.value for p in problem.parameters()}
    try:
        for p in values:
            p.value = p.project(np.ones(p.shape))
        data, _, inverse = problem.get_problem_data(cp.HIGHS)
    except cp.error.SolverError as error:
        raise InvalidProgram(f"{name} must have a linear objective and linear constraints. {error}") from None
    finally:
        for p, value in values.items():
            p.value = value
    canonical = data["param_prob"]
    dims = data["dims"]
    if dims.exp or dims.soc or dims.psd or dims.p3d or data.get("P") is not None:
        raise InvalidProgram(f"{name} must have a linear objective and linear constraints.")

    parameters = {p.name(): p for p in canonical.parameters}
    if len(parameters) != len(canonical.parameters):
        raise InvalidProgram(f"{name} must have distinct parameter names.")
    shapes = {key: tuple(int(k) for k in p.shape) for key, p in parameters.items()}

    def evaluate(p: Vector) -> dict[str, Vector]:
        stacked, at = {}, 0
        for parameter in parameters.values():
            stacked[parameter.id] = p[at : at + parameter.size].reshape(parameter.shape, order="F")
            at += parameter.size
        c, offset, A, b = canonical.apply_parameters(id_to_param_value=stacked, keep_zeros=True)
        A = sp.csc_array(A)
        n = c.size
        pattern.setdefault("A", A)
        if A.nnz != pattern["A"].nnz:
            raise InvalidProgram(f"{name}: the sparsity pattern moves with the parameters.")
        b = np.asarray(b, dtype=float)
        low = np.full(n, -np.inf) if canonical.lower_bounds is None else np.asarray(canonical.lower_bounds, float)
        high = np.full(n, np.inf) if canonical.upper_bounds is None else np.asarray(canonical.upper_bounds, float)
        equal = np.arange(b.size) < dims.zero
        return {
            "c": np.asarray(c, dtype=float),
            "offset": np.array([float(offset)]),
            "A": -A.data,  # CVXPY states rows as b - A x in the cone
            "row_lower": np.where(equal, b, -np.inf),
            "row_upper": b,
            "lower": low.copy(),
            "upper": high.copy(),
        }

    pattern: dict[str, sp.csc_array] = {}
    total = sum(p.size for p in parameters.values())
    base = evaluate(np.zeros(total))
    entries: dict[str, tuple[list[NDArray[np.intp]], list[Vector], list[NDArray[np.intp]]]] = {
        section: ([], [], []) for section in SECTIONS
    }
    for k in range(total):
        unit = np.zeros(total)
        unit[k] = 1.0
        at_unit = evaluate(unit)
        for section in SECTIONS:
            with np.errstate(invalid="ignore"):
                difference = at_unit[section] - base[section]
            moved = np.flatnonzero(np.nan_to_num(difference))
            if moved.size:
                rows, numbers, columns = entries[section]
                rows.append(moved)
                numbers.append(difference[moved])
                columns.append(np.full(moved.size, k))
    moves = {}
    for section, (rows, numbers, columns) in entries.items():
        if not rows:
            continue
        at = np.concatenate(rows)
        index, position = np.unique(at, return_inverse=True)
        matrix = sp.csr_array((np.concatenate(numbers), (position, np.concatenate(columns))), shape=(index.size, total))
        moves[section] = _Moves(index, base[section][index], matrix)

    n = base["c"].size
    integrality = np.zeros(n, dtype=bool)
    integrality[list(data["bool_vars_idx"]) + list(data["int_vars_idx"])] = True
    boolean = np.array(data["bool_vars_idx"], dtype=int)
    base["lower"][boolean] = np.maximum(base["lower"][boolean], 0.0)
    base["upper"][boolean] = np.minimum(base["upper"][boolean], 1.0)
    A = sp.csc_array((base["A"], pattern["A"].indices, pattern["A"].indptr), shape=pattern["A"].shape)
    template = Data(
        base["c"], float(base["offset"][0]), A, base["row_lower"], base["row_upper"], base["lower"], base["upper"],
        integrality,
    )  # fmt: skip
    return Program(
        name=name,
        template=template,
        sense=1 if isinstance(problem.objective, cp.Minimize) else -1,
        variables=_columns(problem, canonical, name),
        rows=_rows(problem, canonical, inverse),
        parameters=shapes,
        scale=float(scale),
        moves=moves,
    )


def _columns(problem: cp.Problem, canonical: Any, name: str) -> tuple[Block, ...]:
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
    lost = own.keys() - {variable.id for variable in canonical.variables}
    if lost:
        names = sorted(own[i].name() for i in lost)
        raise InvalidProgram(f"{name}: variables {names} carry attributes that a linear program cannot keep.")
    return tuple(sorted(blocks, key=lambda block: block.start))


def _rows(problem: cp.Problem, canonical: Any, inverse: Any) -> tuple[Block, ...]:
    """Row blocks under the constraints' labels, else their position in the problem."""
    names = {}
    for k, constraint in enumerate(problem.constraints):
        label = getattr(constraint, "label", None)
        names[constraint.id] = label or f"constraint[{k}]"
    for step in inverse:
        for old, new in (getattr(step, "cons_id_map", None) or {}).items():
            if old in names and new not in names:
                names[new] = names[old]
    blocks, at = [], 0
    for constraint in canonical.constraints:
        size = int(constraint.size)
        blocks.append(Block(names.get(constraint.id, f"aux{constraint.id}"), at, (size,)))
        at += size
    return tuple(blocks)
