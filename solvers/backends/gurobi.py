"""Gurobi through gurobipy's matrix loader. The model is built once and changed in place; LPs re-solve hot.

The licence that comes with gurobipy admits 2000 columns and 2000 rows, and Gurobi refuses larger models only when they
are optimised; here the size is known before anything is built, from an empty probe model, once per process. Points are
read only when SolCount says there is one. Gurobi stops on Ctrl-C by itself (and prints one line that it does).

A row bounded on both sides becomes a x - s = 0 with a slack column s inside the two bounds, which keeps one dual per
row and lets both sides move; such slack columns count towards the licence.
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
from workbench.solvers.session import Options, Raw, Session
from workbench.solvers.solution import DualValues, PointStatus, Start

RESTRICTED = 2000  # columns, and rows, of the licence inside the gurobipy wheel
_BELOW, _ABOVE, _EQUAL, _RANGE = range(
    4
)  # kinds of rows: a x <= high, a x >= low, equal, both sides
_SENSES = np.array(["<", ">", "=", "="])
_SIZE_LIMIT = 10010


@lru_cache(maxsize=1)
def _env(process: int) -> Any:
    """The silent environment of a process: a licence token is taken once. Raises BackendUnavailable without one."""
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
    """Whether the licence is size-limited: an empty model with one column too many tells."""
    import gurobipy

    with gurobipy.loadModel(env=_env(process), numvars=RESTRICTED + 1, numconstrs=0) as probe:
        try:
            probe.optimize()
        except gurobipy.GurobiError as error:
            if error.errno != _SIZE_LIMIT:
                raise BackendUnavailable(f"gurobi has no usable licence: {error}") from None
            return True
    return False


class _GurobiSession(Session):
    def __init__(self, owner: Backend, program: Program, options: Options) -> None:
        super().__init__(owner, program, options)
        import gurobipy

        self._gp = gurobipy
        self._settings = {"MIPGap": 1e-9, "MIPGapAbs": 1e-12} | owner.translate_options(options)
        self._given_limit = self._settings.get("TimeLimit", float("inf"))
        self._m: Any = None
        self._words = {
            getattr(gurobipy.GRB.Status, word): word
            for word in dir(gurobipy.GRB.Status)
            if not word.startswith("_")
        }
        with gurobipy.Model(env=_env(os.getpid())) as trial:
            self._configure(
                trial
            )  # an option that Gurobi does not know is refused now, not at the first solve

    def _configure(self, model: Any) -> None:
        for key, value in self._settings.items():
            try:
                model.setParam(key, value)
            except (self._gp.GurobiError, TypeError) as error:
                raise self.build_option_error(key, value, f": {error}") from None

    def _build(self, data: Data) -> None:
        self._close()
        m, n = data.A.shape
        self._kind = kind = _kinds(data)
        ranged = np.flatnonzero(kind == _RANGE)
        more = ranged.size
        slack = sp.csc_array((np.full(more, -1.0), (ranged, np.arange(more))), shape=(m, more))
        matrix = sp.csc_array(sp.hstack([data.A, slack])) if more else data.A
        self._slack = np.full(m, -1)
        self._slack[ranged] = n + np.arange(more)
        rows: dict[str, Any] = {
            "constr_csc": (matrix.data, matrix.indices, matrix.indptr),
            "sense": "".join(_SENSES[kind].tolist()),
            "rhs": _right(kind, data.row_lower, data.row_upper),
        }
        self._m = self._gp.loadModel(
            env=_env(os.getpid()),
            numvars=n + more,
            numconstrs=m,
            objcon=data.offset,
            obj=np.concatenate([data.c, np.zeros(more)]),
            lb=np.concatenate([data.lower, data.row_lower[ranged]]),
            ub=np.concatenate([data.upper, data.row_upper[ranged]]),
            vtype="".join(np.where(data.integrality, "I", "C").tolist()) + "C" * more,
            **(rows if m else {}),
        )
        self._configure(self._m)
        self._handles, self._constrs = self._m.getVars(), self._m.getConstrs()
        self._own = self._handles[:n]

    def _update(self, change: Change, data: Data) -> bool:
        m, columns = self._m, self._handles
        if change.rows is not None:
            if not np.array_equal(self._kind, _kinds(data)):
                return False
            which, low, high = change.rows
            slack = self._slack[which]
            ranged = slack >= 0
            right = _right(self._kind[which], low, high)
            _set(m, "LB", columns, slack[ranged], low[ranged])
            _set(m, "UB", columns, slack[ranged], high[ranged])
            _set(m, "RHS", self._constrs, which[~ranged], right[~ranged])
        if change.coefficients is not None:
            for i, j, value in zip(*(part.tolist() for part in change.coefficients), strict=True):
                m.chgCoeff(self._constrs[i], columns[j], value)
        if change.cost is not None:
            _set(m, "Obj", columns, *change.cost)
        if change.offset is not None:
            m.setAttr("ObjCon", change.offset)
        if change.columns is not None:
            which, low, high = change.columns
            _set(m, "LB", columns, which, low)
            _set(m, "UB", columns, which, high)
        return True

    def _run(self, start: Start, basis: Any) -> Raw:
        m = self._m
        if self.program.is_mip:
            m.reset()  # the answer of a MILP must not depend on history
            start = Start.COLD
        elif start is Start.BASIS and basis is not None:
            m.setAttr("VBasis", self._handles, basis[0])
            m.setAttr("CBasis", self._constrs, basis[1])
        self._optimize()
        return self._read(start)

    def _optimize(self) -> None:
        left = self._deadline.solver_time_limit
        self._m.Params.TimeLimit = (
            self._given_limit if left is None else min(left, self._given_limit)
        )
        try:
            self._m.optimize()
        except self._gp.GurobiError as error:
            if error.errno == _SIZE_LIMIT:
                raise LicenceExceeded(
                    f"gurobi's licence is too small for {self.program.name}: {error}"
                ) from None
            raise SolverError(f"gurobi failed on {self.program.name}: {error}") from error

    def _read(self, start: Start) -> Raw:
        m = self._m
        status = m.Status
        word = self._words.get(status, str(status))
        raw = Raw(self.owner.ended(word), word, start=start)
        raw.iterations = int(m.IterCount) + int(m.BarIterCount)
        if m.SolCount > 0 and status not in (4, 5):  # an unbounded MILP shows a point at 1e30
            raw.x, raw.point = np.array(m.getAttr("X", self._own)), PointStatus.FEASIBLE
        if self.program.is_mip:
            raw.nodes = int(m.NodeCount)
            raw.record_bound(m.ObjBound, m.ObjVal if raw.x is not None else 0.0)
        elif status in (2, 13):
            raw.dual = PointStatus.FEASIBLE
            raw.dual_values = self._rest()
        elif status in (3, 4, 5):
            raw.ray = self._ray()
        return raw

    def _rest(self) -> DualValues:
        m = self._m
        basis = None if self._settings.get("Crossover") == 0 else (m.VBasis, m.CBasis)
        return DualValues(
            row_dual=np.array(m.Pi), reduced_cost=np.array(m.RC[: len(self._own)]), basis=basis
        )

    def _ray(self) -> Vector | None:
        """The certificate of an infeasible or unbounded LP. Gurobi keeps one only when it was told to beforehand."""
        m = self._m
        if not m.Params.InfUnbdInfo:
            m.setParam("InfUnbdInfo", 1)
            m.reset()
            self._optimize()
            m.setParam("InfUnbdInfo", 0)
        if m.Status == 3:
            return np.array(m.getAttr("FarkasDual", self._constrs))
        return np.array(m.getAttr("UnbdRay", self._own)) if m.Status == 5 else None

    def _close(self) -> None:
        if self._m is not None:
            self._m.dispose()
            self._m = None


def _set(model: Any, attribute: str, handles: list[Any], which: Positions, values: Vector) -> None:
    model.setAttr(attribute, [handles[k] for k in which.tolist()], values.tolist())


def _kinds(data: Data) -> Positions:
    low, high = data.row_lower, data.row_upper
    return np.where(
        low == high,
        _EQUAL,
        np.where(low == -np.inf, _BELOW, np.where(high == np.inf, _ABOVE, _RANGE)),
    )


def _right(kind: Positions, low: Vector, high: Vector) -> Vector:
    """The right-hand sides of rows, by kind; a free row is below infinity."""
    return np.where(kind == _RANGE, 0.0, np.where(kind == _ABOVE, low, np.minimum(high, 1e100)))


class Gurobi(Backend):
    """Gurobi: LP by simplex or barrier with crossover, MILP by branch and cut."""

    name = "gurobi"
    session = _GurobiSession

    def licence(self) -> Licence:
        """Starts an environment and optimises an empty model to see what the licence admits."""
        try:
            restricted = _is_restricted(os.getpid())
        except BackendUnavailable as error:
            return Licence(str(error), usable=False)
        if restricted:
            return Licence("size-limited", max_columns=RESTRICTED, max_rows=RESTRICTED)
        return Licence("full")

    def check_size(self, program: Program) -> None:
        """Refuse programs above the size-limited licence before they are built."""
        rows, columns = program.shape
        columns += int((_kinds(program.template) == _RANGE).sum())
        if max(rows, columns) > RESTRICTED and _is_restricted(os.getpid()):
            raise LicenceExceeded(
                f"gurobi's licence here admits {RESTRICTED} columns and {RESTRICTED} rows; "
                f"{program.name} has {columns} and {rows}."
            )
