"""HiGHS through highspy: the default backend. The model is built once and changed in place; LPs re-solve hot.

Traps handled here:

* NaN is answered "optimal" (refused before dispatch); a point is read only when primal_solution_status says feasible.
* The time limit counts from the birth of the Highs object, not of the run: it is moved on before each run. A MILP's
  search for symmetries does not look at it, and takes 12 s at 39,000 columns: not where a large one has a limit.
* One thread pool per process: a second thread count makes run() fail. The pool is reset when the count changes, so
  sessions of different thread counts must not run at the same time in one process.
* highspy's own Ctrl-C support prints, polls at 10 Hz and is shared by all instances; `Interruption` replaces it, and
  starts HiGHS's interrupt callback only when Ctrl-C was pressed, so that it costs nothing before.
* The MILP presolve of 1.13 tightens coefficients as if every bound and implied bound of an integer column were an
  integer, and returns false optima with matching bounds (its issue 3274, open ones besides). It is off for MILPs
  unless `Options(presolve=True)` asks for it; on the models here that costs little.
* A MILP has no hot start: each solve starts from cleared solver data, so that the answer does not depend on history.
* Each changed coefficient is a call of its own, about 1 us. Where many change, the whole LP is passed again in one call
  and given the last basis: the same simplex path, in half the time or less.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from workbench.solvers.contract import Backend
from workbench.solvers.data import Change, Data
from workbench.solvers.errors import SolverError
from workbench.solvers.program import Program
from workbench.solvers.session import Interruption, Options, Raw, Session
from workbench.solvers.solution import DualValues, PointStatus, Start, Termination

_FEASIBLE = 2  # HiGHS: kSolutionStatusFeasible
_SYMMETRIC = 10_000  # columns; the search for symmetries of a larger MILP asks for no time limit, and takes long
_CALLS = 24  # coefficient changes, and one more for every _SHARE non-zeros: above, one pass is cheaper than the calls
_SHARE = 32


def create_silent_highs() -> Any:
    """Create a highspy.Highs object that prints nothing.

    The constructor of highspy 1.16 enables callbacks, and this prints a banner to stdout while
    output_flag has its default. The flag is therefore set just before.
    """
    import highspy

    class SilentHighs(highspy.Highs):  # type: ignore[misc]
        def enableCallbacks(self) -> Any:
            self.setOptionValue("output_flag", False)
            return super().enableCallbacks()

    return SilentHighs()


class _HighsSession(Session):
    pool: ClassVar[int | None] = (
        None  # thread count of the process's pool, as far as this room has set it
    )

    def __init__(self, owner: Backend, program: Program, options: Options) -> None:
        super().__init__(owner, program, options)
        import highspy

        self._highspy = highspy
        self._mip = program.is_mip
        self._settings = {"output_flag": False, "mip_rel_gap": 1e-9, "mip_abs_gap": 1e-12}
        if self._mip:
            self._settings["presolve"] = "off"  # see the module's docstring
            if options.time_limit is not None and program.shape[1] > _SYMMETRIC:
                self._settings["mip_detect_symmetry"] = False
        self._settings |= owner.translate_options(options)
        self._native_limit = options.native.get("time_limit")
        self._h = create_silent_highs()
        for key, value in self._settings.items():
            if self._h.setOptionValue(key, value) != highspy.HighsStatus.kOk:
                raise self.build_option_error(key, value)

    @cached_property
    def _version(self) -> str:
        return str(self._h.version())  # to read it from its distribution takes longer

    def _build(self, data: Data) -> None:
        self._h.clearModel()
        if not self._pass(data):
            raise SolverError(f"highs refused the numbers of {self.program.name}.")

    def _pass(self, data: Data) -> bool:
        """Load all numbers in one call; whether HiGHS took them."""
        done = self._h.passModel(
            *(data.c.size, data.row_lower.size, data.A.data.size),
            *(int(self._highspy.MatrixFormat.kColwise), int(self._highspy.ObjSense.kMinimize)),
            *(data.offset, data.c, data.lower, data.upper, data.row_lower, data.row_upper),
            *(data.A.indptr.astype(np.int32), data.A.indices.astype(np.int32), data.A.data),
            data.integrality.astype(np.int32),
        )
        return bool(done != self._highspy.HighsStatus.kError)

    def _update(self, change: Change, data: Data) -> bool:
        h = self._h
        if change.coefficients is not None:
            rows, columns, values = change.coefficients
            if rows.size > _CALLS + data.A.data.size // _SHARE:
                return self._pass_again(data)
            put = h.changeCoeff
            for i, j, value in zip(rows.tolist(), columns.tolist(), values.tolist(), strict=True):
                put(i, j, value)
        if change.cost is not None:
            which, values = change.cost
            h.changeColsCost(which.size, which.astype(np.int32), values)
        if change.offset is not None:
            h.changeObjectiveOffset(change.offset)
        for moved, change_bounds in (
            (change.rows, h.changeRowsBounds),
            (change.columns, h.changeColsBounds),
        ):
            if moved is not None:
                change_bounds(moved[0].size, moved[0].astype(np.int32), *moved[1:])
        return True

    def _pass_again(self, data: Data) -> bool:
        """Load the LP with all its new numbers in one call, and keep the basis; False when there is none to keep."""
        if self._mip or self._info("basis_validity") != 1:
            return False
        basis = self._h.getBasis()
        return self._pass(data) and bool(self._h.setBasis(basis) == self._highspy.HighsStatus.kOk)

    def _run(self, start: Start, basis: Any) -> Raw:
        h = self._h
        if self._mip:
            h.clearSolver()
            start = Start.COLD
        elif (
            start is Start.BASIS
            and basis is not None
            and h.setBasis(basis) != self._highspy.HighsStatus.kOk
        ):
            raise SolverError(f"highs cannot start {self.program.name} from this basis.")
        limit = (
            self._deadline.solver_time_limit if self._native_limit is None else self._native_limit
        )
        h.setOptionValue("time_limit", np.inf if limit is None else h.getRunTime() + limit)
        h.setOptionValue("objective_bound", np.inf if self._cutoff is None else self._cutoff)
        self._claim_pool()
        with Interruption(self._stop) as interruption:
            if h.run() == self._highspy.HighsStatus.kError:
                self._retry()
        interrupted = interruption.is_pressed
        if interrupted:
            h.clearCallbacks()
        if not interrupted and self._optimal_without_point():
            h.clearSolver()
            h.run()
            start = Start.COLD
        raw = self._read(start)
        if self._optimal_without_point():
            raw.termination = Termination.NUMERICAL
        raw.is_interrupted = interrupted
        return raw

    def _optimal_without_point(self) -> bool:
        """Whether HiGHS calls a linear program optimal at a point that it calls infeasible: after a hot start the
        infeasibilities of the unscaled program may exceed its tolerance."""
        optimal = self._h.getModelStatus() == self._highspy.HighsModelStatus.kOptimal
        return bool(optimal and not self._mip and self._info("primal_solution_status") != _FEASIBLE)

    def _stop(self) -> None:
        """Called by another thread while HiGHS runs: from now on its interrupt callbacks fire, and say stop."""
        for event in (self._h.cbMipInterrupt, self._h.cbSimplexInterrupt, self._h.cbIpmInterrupt):
            event.subscribe(lambda e: e.interrupt())

    def _claim_pool(self) -> None:
        """Have the process's thread pool the size this session asks for."""
        threads = self._settings.get("threads") or None
        if threads is not None and threads != _HighsSession.pool:
            self._h.resetGlobalScheduler(True)
            _HighsSession.pool = threads

    def _retry(self) -> None:
        """Somebody else in this process may have given the pool another size; then nothing was run."""
        if self._h.getModelStatus() == self._highspy.HighsModelStatus.kNotset:
            self._h.resetGlobalScheduler(True)
            self._h.run()

    def _read(self, start: Start) -> Raw:
        h, info = self._h, self._info
        status = h.getModelStatus()
        termination = self.owner.ended(status.name)
        raw = Raw(termination, h.modelStatusToString(status), start=start)
        raw.iterations = max(0, info("simplex_iteration_count")) + max(
            0, info("ipm_iteration_count")
        )
        values = h.getSolution()
        if info("primal_solution_status") == _FEASIBLE and termination is not Termination.CUTOFF:
            raw.x, raw.point = np.array(values.col_value), PointStatus.FEASIBLE
        if self._mip:
            raw.nodes = max(0, info("mip_node_count"))
            raw.record_bound(info("mip_dual_bound"), info("objective_function_value"))
            return raw
        has_duals = info("dual_solution_status") == _FEASIBLE
        if has_duals:
            raw.dual = PointStatus.FEASIBLE
        rays = {Termination.INFEASIBLE: h.getDualRay, Termination.UNBOUNDED: h.getPrimalRay}
        if termination in rays:
            _, has, ray = rays[termination]()
            raw.ray = np.array(ray) if has else None
        else:
            raw.dual_values = DualValues(
                row_dual=np.array(values.row_dual) if has_duals else None,
                reduced_cost=np.array(values.col_dual) if has_duals else None,
                basis=h.getBasis() if info("basis_validity") == 1 else None,
            )
        return raw

    def _info(self, name: str) -> Any:
        """One value of HiGHS's info (the whole record costs ten times as much); 0 where it has none, after a failure,
        when it returns a number that means nothing."""
        status, value = self._h.getInfoValue(name)
        return value if status == self._highspy.HighsStatus.kOk else 0

    def _close(self) -> None:
        self._h.clear()


class Highs(Backend):
    """HiGHS: LP by simplex or interior point with crossover, MILP by branch and cut."""

    name = "highs"
    session = _HighsSession
