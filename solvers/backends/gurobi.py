"""Backend "gurobi": Gurobi through gurobipy. Models are changed in place, and LPs start hot.

This file works around these properties:

* The licence that comes with gurobipy admits 2000 columns and 2000 rows, but Gurobi refuses a
  larger model only when it is optimized. This file finds out the limit before a model is built, by
  optimizing an empty model with 2001 columns once for each process.
* A row of Gurobi has one side. A row low <= a x <= high becomes a x - s = 0 with a slack column
  low <= s <= high. There is then one dual value for each row, and both sides can be changed in
  place. Slack columns count towards the licence.
* Gurobi stops on Ctrl-C by itself, and prints one line about it. `Interruption` is not needed.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from workbench.solvers.arrays import Positions, Vector
from workbench.solvers.contract import Backend, Licence
from workbench.solvers.data import Change, Data
from workbench.solvers.errors import BackendUnavailable, LicenceExceeded, SolverError
from workbench.solvers.program import Program
from workbench.solvers.session import (
    DEFAULT_ABSOLUTE_GAP,
    DEFAULT_RELATIVE_GAP,
    Options,
    Raw,
    Session,
)
from workbench.solvers.solution import DualValues, PointStatus, Start

MAX_RESTRICTED_SIZE = 2000  # Columns, and rows, that the licence in the gurobipy wheel admits.
# Kinds of rows: a x <= high, a x >= low, a x = low, and low <= a x <= high.
_UPPER_ROW = 0
_LOWER_ROW = 1
_EQUAL_ROW = 2
_RANGE_ROW = 3
_SENSES = np.array(["<", ">", "=", "="])  # Gurobi's sense of each kind of row.
_SIZE_LIMIT_ERROR = 10010  # Gurobi's error number for a model above the licence.
_INFINITY = 1e100  # Gurobi treats numbers from 1e20 on as infinite.
# Gurobi's status numbers.
_OPTIMAL = 2
_INFEASIBLE = 3
_INFEASIBLE_OR_UNBOUNDED = 4
_UNBOUNDED_STATUS = 5
_SUBOPTIMAL = 13


@lru_cache(maxsize=1)
def _get_environment(process: int) -> Any:
    """Return the silent environment of a process, which takes a licence token once.

    Args:
        process: id of the process. A child process needs an environment of its own.

    Raises:
        BackendUnavailable: there is no usable licence.
    """
    import gurobipy

    env = gurobipy.Env(empty=True)
    env.setParam("OutputFlag", 0)
    try:
        env.start()
    except gurobipy.GurobiError as error:
        raise BackendUnavailable(f"gurobi has no usable licence: {error}") from None
    return env


@lru_cache(maxsize=1)
def _is_restricted(process: int) -> bool:
    """Return whether the licence refuses an empty model with one column too many.

    Args:
        process: id of the process.
    """
    import gurobipy

    with gurobipy.loadModel(
        env=_get_environment(process), numvars=MAX_RESTRICTED_SIZE + 1, numconstrs=0
    ) as probe:
        try:
            probe.optimize()
        except gurobipy.GurobiError as error:
            if error.errno != _SIZE_LIMIT_ERROR:
                raise BackendUnavailable(f"gurobi has no usable licence: {error}") from None
            return True
    return False


class _GurobiSession(Session):
    """A session with one live Gurobi model. `_all_columns` are its columns and then its slacks."""

    def __init__(self, owner: Backend, program: Program, options: Options) -> None:
        super().__init__(owner, program, options)
        import gurobipy

        self._gp = gurobipy
        default_gaps = {"MIPGap": DEFAULT_RELATIVE_GAP, "MIPGapAbs": DEFAULT_ABSOLUTE_GAP}
        self._settings = default_gaps | owner.translate_options(options)
        self._user_time_limit = self._settings.get("TimeLimit", float("inf"))
        self._model: Any = None
        status_class = gurobipy.GRB.Status
        self._status_names = {
            getattr(status_class, name): name
            for name in dir(status_class)
            if not name.startswith("_")
        }
        # An option that Gurobi does not know is refused now, not at the first solve.
        with gurobipy.Model(env=_get_environment(os.getpid())) as trial:
            self._configure(trial)

    def _configure(self, model: Any) -> None:
        """Set the options in force on a Gurobi model. Raises UnsupportedOption."""
        for key, value in self._settings.items():
            try:
                model.setParam(key, value)
            except (self._gp.GurobiError, TypeError) as error:
                raise self.build_option_error(key, value, f": {error}") from None

    def _build(self, data: Data) -> None:
        """Load the data into a new Gurobi model. A row with two bounds gets a slack column."""
        self._close()
        row_count, column_count = data.A.shape
        self._row_kinds = _classify_rows(data)
        range_rows = np.flatnonzero(self._row_kinds == _RANGE_ROW)
        slack_count = range_rows.size
        matrix = data.A
        if slack_count:
            slack_matrix = sp.csc_array(
                (np.full(slack_count, -1.0), (range_rows, np.arange(slack_count))),
                shape=(row_count, slack_count),
            )
            matrix = sp.csc_array(sp.hstack([data.A, slack_matrix]))
        self._slack_columns = np.full(row_count, -1)
        self._slack_columns[range_rows] = column_count + np.arange(slack_count)
        rows: dict[str, Any] = {
            "constr_csc": (matrix.data, matrix.indices, matrix.indptr),
            "sense": "".join(_SENSES[self._row_kinds].tolist()),
            "rhs": _right_sides(self._row_kinds, data.row_lower, data.row_upper),
        }
        column_types = "".join(np.where(data.integrality, "I", "C").tolist())
        self._model = self._gp.loadModel(
            env=_get_environment(os.getpid()),
            numvars=column_count + slack_count,
            numconstrs=row_count,
            objcon=data.offset,
            obj=np.concatenate([data.c, np.zeros(slack_count)]),
            lb=np.concatenate([data.lower, data.row_lower[range_rows]]),
            ub=np.concatenate([data.upper, data.row_upper[range_rows]]),
            vtype=column_types + "C" * slack_count,
            **(rows if row_count else {}),
        )
        self._configure(self._model)
        self._all_columns = self._model.getVars()
        self._rows = self._model.getConstrs()
        self._columns = self._all_columns[:column_count]

    def _update(self, change: Change, data: Data) -> bool:
        """Change entries of the live model. Return False if a row has another kind than before."""
        model = self._model
        columns = self._all_columns
        if change.rows is not None:
            if not np.array_equal(self._row_kinds, _classify_rows(data)):
                return False
            positions, low, high = change.rows
            slack = self._slack_columns[positions]
            has_slack = slack >= 0
            sides = _right_sides(self._row_kinds[positions], low, high)
            _set_attribute(
                model, "LB", handles=columns, positions=slack[has_slack], values=low[has_slack]
            )
            _set_attribute(
                model, "UB", handles=columns, positions=slack[has_slack], values=high[has_slack]
            )
            _set_attribute(
                model,
                "RHS",
                handles=self._rows,
                positions=positions[~has_slack],
                values=sides[~has_slack],
            )
        if change.coefficients is not None:
            rows, entry_columns, values = change.coefficients
            entries = zip(rows.tolist(), entry_columns.tolist(), values.tolist(), strict=True)
            for i, j, value in entries:
                model.chgCoeff(self._rows[i], columns[j], value)
        if change.cost is not None:
            _set_attribute(model, "Obj", columns, *change.cost)
        if change.offset is not None:
            model.setAttr("ObjCon", change.offset)
        if change.columns is not None:
            positions, low, high = change.columns
            _set_attribute(model, "LB", handles=columns, positions=positions, values=low)
            _set_attribute(model, "UB", handles=columns, positions=positions, values=high)
        return True

    def _run(self, start: Start, basis: Any) -> Raw:
        """Solve the live model from a start, and return the result of the run."""
        if self.program.is_mip:
            self._model.reset()  # The answer of a MILP must not depend on earlier solves.
            start = Start.COLD
        elif start is Start.BASIS and basis is not None:
            column_basis, row_basis = basis
            self._model.setAttr("VBasis", self._all_columns, column_basis)
            self._model.setAttr("CBasis", self._rows, row_basis)
        self._optimize()
        return self._read(start)

    def _optimize(self) -> None:
        """Run Gurobi with the remaining time. Raises LicenceExceeded or SolverError."""
        time_limit = self._user_time_limit
        remaining_time = self._deadline.solver_time_limit
        if remaining_time is not None:
            time_limit = min(remaining_time, time_limit)
        self._model.Params.TimeLimit = time_limit
        try:
            self._model.optimize()
        except self._gp.GurobiError as error:
            if error.errno == _SIZE_LIMIT_ERROR:
                raise LicenceExceeded(
                    f"gurobi's licence is too small for {self.program.name}: {error}"
                ) from None
            raise SolverError(f"gurobi failed on {self.program.name}: {error}") from error

    def _read(self, start: Start) -> Raw:
        """Return the result of the last run, which began at `start`."""
        model = self._model
        status = model.Status
        status_name = self._status_names.get(status, str(status))
        raw = Raw(self.owner.read_termination(status_name), status_name, start=start)
        raw.iterations = int(model.IterCount) + int(model.BarIterCount)
        # An unbounded MILP shows a point at 1e30.
        if model.SolCount > 0 and status not in (_INFEASIBLE_OR_UNBOUNDED, _UNBOUNDED_STATUS):
            raw.x = np.array(model.getAttr("X", self._columns))
            raw.point = PointStatus.FEASIBLE
        if self.program.is_mip:
            raw.nodes = int(model.NodeCount)
            raw.record_bound(model.ObjBound, model.ObjVal if raw.x is not None else 0.0)
        elif status in (_OPTIMAL, _SUBOPTIMAL):
            raw.dual = PointStatus.FEASIBLE
            raw.dual_values = self._read_dual_values()
        elif status in (_INFEASIBLE, _INFEASIBLE_OR_UNBOUNDED, _UNBOUNDED_STATUS):
            raw.ray = self._compute_ray()
        return raw

    def _read_dual_values(self) -> DualValues:
        """Return the dual values. An interior-point solve without crossover has no basis."""
        model = self._model
        has_basis = self._settings.get("Crossover") != 0
        return DualValues(
            row_dual=np.array(model.Pi),
            reduced_cost=np.array(model.RC[: len(self._columns)]),
            basis=(model.VBasis, model.CBasis) if has_basis else None,
        )

    def _compute_ray(self) -> Vector | None:
        """Return the certificate of an infeasible or unbounded LP.

        Gurobi stores one only if InfUnbdInfo was set before, so the LP is solved again if needed.
        """
        model = self._model
        if not model.Params.InfUnbdInfo:
            model.setParam("InfUnbdInfo", 1)
            model.reset()
            self._optimize()
            model.setParam("InfUnbdInfo", 0)
        if model.Status == _INFEASIBLE:
            return np.array(model.getAttr("FarkasDual", self._rows))
        if model.Status == _UNBOUNDED_STATUS:
            return np.array(model.getAttr("UnbdRay", self._columns))
        return None

    def _close(self) -> None:
        """Dispose of the model, if there is one."""
        if self._model is not None:
            self._model.dispose()
            self._model = None


def _set_attribute(
    model: Any, attribute: str, handles: list[Any], positions: Positions, values: Vector
) -> None:
    """Set an attribute of the columns or rows handles[positions[k]] to values[k]."""
    model.setAttr(attribute, [handles[k] for k in positions.tolist()], values.tolist())


def _classify_rows(data: Data) -> Positions:
    """Return the kind of every row (rows,). A row without sides is an upper row."""
    low = data.row_lower
    high = data.row_upper
    conditions = [low == high, low == -np.inf, high == np.inf]
    kinds = [_EQUAL_ROW, _UPPER_ROW, _LOWER_ROW]
    return np.select(conditions, kinds, default=_RANGE_ROW).astype(np.intp)


def _right_sides(kinds: Positions, low: Vector, high: Vector) -> Vector:
    """Return the right-hand sides (rows,). They are 0 for ranges, whose sides bound the slack."""
    one_sided = np.where(kinds == _LOWER_ROW, low, np.minimum(high, _INFINITY))
    return np.where(kinds == _RANGE_ROW, 0.0, one_sided)


class Gurobi(Backend):
    """Gurobi: LP by simplex or barrier with crossover, MILP by branch and cut."""

    name = "gurobi"
    session = _GurobiSession

    def licence(self) -> Licence:
        """Return what the licence admits, by starting an environment with an empty model."""
        try:
            is_restricted = _is_restricted(os.getpid())
        except BackendUnavailable as error:
            return Licence(str(error), usable=False)
        if is_restricted:
            size = MAX_RESTRICTED_SIZE
            return Licence("size-limited", max_columns=size, max_rows=size)
        return Licence("full")

    def check_size(self, program: Program) -> None:
        """Raise LicenceExceeded for a program above the size-limited licence.

        Args:
            program: the `Program` to solve.
        """
        row_count, column_count = program.shape
        column_count += int((_classify_rows(program.template) == _RANGE_ROW).sum())
        is_large = max(row_count, column_count) > MAX_RESTRICTED_SIZE
        if is_large and _is_restricted(os.getpid()):
            raise LicenceExceeded(
                f"gurobi's licence here admits {MAX_RESTRICTED_SIZE} columns and "
                f"{MAX_RESTRICTED_SIZE} rows; {program.name} has {column_count} and {row_count}."
            )
