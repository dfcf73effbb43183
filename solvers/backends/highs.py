"""Backend "highs": HiGHS through highspy, the default. Models are changed in place, LPs start hot.

This file works around these properties:

* HiGHS calls a program that contains NaN "optimal". The workbench refuses such a program before it
  reaches HiGHS. A point is read only if primal_solution_status says that it is feasible.
* The time limit counts from the creation of the Highs object, not from the run, so it is moved
  before each run. The search for symmetries of a MILP ignores it, and takes 12 s at 39,000 columns.
  It is off for a large MILP with a time limit.
* All HiGHS objects of a process share one thread pool, and run() fails if it needs another number
  of threads than the pool has. The pool is reset when the number changes, so sessions with
  different numbers of threads must not run at the same time in one process.
* highspy's own Ctrl-C support prints, polls at 10 Hz and is shared by all instances. `Interruption`
  replaces it. HiGHS's interrupt callback is started only after Ctrl-C was pressed, because it slows
  the solver.
* The MILP presolve of 1.13 tightens coefficients as if every bound and implied bound of an integer
  column were an integer. It then returns wrong optima with wrong bounds that agree (HiGHS issue
  3274, and others that are open). Presolve is therefore off for MILPs unless
  `Options(presolve=True)` is given. The models here are solved about as fast without it.
* A MILP has no hot start: each solve starts from cleared solver data, so that the answer does not
  depend on earlier solves.
* Each changed coefficient is a separate call of about 1 μs. If many change, the whole LP is passed
  again in one call and gets the last basis. The simplex steps are the same, in at most half the
  time.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from workbench.solvers.contract import Backend
from workbench.solvers.data import Change, Data
from workbench.solvers.errors import SolverError
from workbench.solvers.interruption import Interruption
from workbench.solvers.program import Program
from workbench.solvers.session import (
    DEFAULT_ABSOLUTE_GAP,
    DEFAULT_RELATIVE_GAP,
    Options,
    Raw,
    Session,
)
from workbench.solvers.solution import DualValues, PointStatus, Start, Termination

_FEASIBLE = 2  # HiGHS's kSolutionStatusFeasible.
_VALID_BASIS = 1  # HiGHS's kBasisValidityValid.
# A MILP with more columns and a time limit is solved without the search for symmetries.
_MAX_SYMMETRY_COLUMNS = 10_000
# A call for each changed coefficient is faster than passing the whole LP only up to this number of
# changes, plus one change for every _NONZEROS_PER_CALL non-zeros of the matrix.
_MAX_CALLS = 24
_NONZEROS_PER_CALL = 32


def create_silent_highs() -> Any:
    """Create a highspy.Highs object that prints nothing.

    The constructor of highspy 1.16 enables callbacks, and this prints a banner to stdout unless
    output_flag was set. The flag is therefore set just before.
    """
    import highspy

    class SilentHighs(highspy.Highs):  # type: ignore[misc]
        """A Highs object that prints no banner when callbacks are enabled."""

        def enableCallbacks(self) -> Any:
            """Switch the output off, and then enable callbacks as HiGHS does."""
            self.setOptionValue("output_flag", False)
            return super().enableCallbacks()

    return SilentHighs()


class _HighsSession(Session):
    """A session with one live Highs object, `_h`.

    Attributes:
        pool_threads: number of threads of the process's pool. None until a session sets it.
    """

    pool_threads: ClassVar[int | None] = None

    def __init__(self, owner: Backend, program: Program, options: Options) -> None:
        super().__init__(owner, program, options)
        import highspy

        self._highspy = highspy
        self._is_mip = program.is_mip
        self._settings = {
            "output_flag": False,
            "mip_rel_gap": DEFAULT_RELATIVE_GAP,
            "mip_abs_gap": DEFAULT_ABSOLUTE_GAP,
        }
        if self._is_mip:
            self._settings["presolve"] = "off"  # The module's docstring says why.
            if options.time_limit is not None and program.shape[1] > _MAX_SYMMETRY_COLUMNS:
                self._settings["mip_detect_symmetry"] = False
        self._settings |= owner.translate_options(options)
        self._native_time_limit = options.native.get("time_limit")
        self._limits: dict[str, float] = {}  # The limits of the last run.
        self._h = create_silent_highs()
        for key, value in self._settings.items():
            if self._h.setOptionValue(key, value) != highspy.HighsStatus.kOk:
                raise self.build_option_error(key, value)

    @cached_property
    def _version(self) -> str:
        """Return the version of HiGHS."""
        return str(self._h.version())  # Reading it from the distribution is slower.

    def _build(self, data: Data) -> None:
        """Load the data into the Highs object. Raise SolverError if HiGHS refuses them."""
        self._h.clearModel()
        if not self._pass_model(data):
            raise SolverError(f"highs refused the numbers of {self.program.name}.")

    def _pass_model(self, data: Data) -> bool:
        """Load all numbers in one call, and return whether HiGHS accepted them."""
        status = self._h.passModel(
            data.c.size,
            data.row_lower.size,
            data.A.data.size,
            int(self._highspy.MatrixFormat.kColwise),
            int(self._highspy.ObjSense.kMinimize),
            data.offset,
            data.c,
            data.lower,
            data.upper,
            data.row_lower,
            data.row_upper,
            data.A.indptr.astype(np.int32, copy=False),
            data.A.indices.astype(np.int32, copy=False),
            data.A.data,
            data.integrality.astype(np.int32),
        )
        return bool(status != self._highspy.HighsStatus.kError)

    def _update(self, change: Change, data: Data) -> bool:
        """Change entries of the live model, one call for each kind of entry.

        If many coefficients change, the whole model is passed again. The result is False if that
        fails or there is no basis to restore.
        """
        h = self._h
        if change.coefficients is not None:
            rows, columns, values = change.coefficients
            if rows.size > _MAX_CALLS + data.A.data.size // _NONZEROS_PER_CALL:
                return self._pass_model_with_basis(data)
            for i, j, value in zip(rows.tolist(), columns.tolist(), values.tolist(), strict=True):
                h.changeCoeff(i, j, value)
        if change.cost is not None:
            positions, values = change.cost
            h.changeColsCost(positions.size, positions.astype(np.int32), values)
        if change.offset is not None:
            h.changeObjectiveOffset(change.offset)
        if change.rows is not None:
            positions, low, high = change.rows
            h.changeRowsBounds(positions.size, positions.astype(np.int32), low, high)
        if change.columns is not None:
            positions, low, high = change.columns
            h.changeColsBounds(positions.size, positions.astype(np.int32), low, high)
        return True

    def _pass_model_with_basis(self, data: Data) -> bool:
        """Load the LP with all its new numbers in one call, and restore the basis.

        Return False if there is no basis to restore.
        """
        if self._is_mip or self._read_info("basis_validity") != _VALID_BASIS:
            return False
        basis = self._h.getBasis()
        if not self._pass_model(data):
            return False
        return bool(self._h.setBasis(basis) == self._highspy.HighsStatus.kOk)

    def _run(self, start: Start, basis: Any) -> Raw:
        """Solve the live model and return the result. A MILP always starts cold.

        The model is solved once more if another library has resized the thread pool, or if HiGHS
        calls a point optimal and infeasible.
        """
        h = self._h
        if self._is_mip:
            h.clearSolver()
            start = Start.COLD
        elif start is Start.BASIS and basis is not None:
            status = h.setBasis(basis)
            if status != self._highspy.HighsStatus.kOk:
                raise SolverError(f"highs cannot start {self.program.name} from this basis.")
        time_limit = self._native_time_limit
        if time_limit is None:
            time_limit = self._deadline.solver_time_limit
        end_time = np.inf if time_limit is None else h.getRunTime() + time_limit
        self._set_limit("time_limit", end_time)
        self._set_limit("objective_bound", np.inf if self._cutoff is None else self._cutoff)
        self._resize_pool()
        with Interruption(self._stop) as interruption:
            if h.run() == self._highspy.HighsStatus.kError:
                self._retry()
        is_interrupted = interruption.is_pressed
        has_no_point = self._is_optimal_without_point()
        if is_interrupted:
            h.clearCallbacks()
        elif has_no_point:
            h.clearSolver()  # A cold start usually finds a feasible point.
            h.run()
            start = Start.COLD
            has_no_point = self._is_optimal_without_point()
        raw = self._read(start)
        if has_no_point:
            raw.termination = Termination.NUMERICAL
        raw.is_interrupted = is_interrupted
        return raw

    def _set_limit(self, option: str, limit: float) -> None:
        """Set a limit of the next run, if it is not the limit of the last run."""
        if self._limits.get(option) != limit:
            self._h.setOptionValue(option, limit)
            self._limits[option] = limit

    def _is_optimal_without_point(self) -> bool:
        """Return whether HiGHS calls an LP "optimal" and its point infeasible.

        This can happen after a hot start: HiGHS scales the program, and a point that is feasible in
        its scaling may violate the unscaled rows by more than the tolerance.
        """
        is_optimal = self._h.getModelStatus() == self._highspy.HighsModelStatus.kOptimal
        return bool(
            is_optimal
            and not self._is_mip
            and self._read_info("primal_solution_status") != _FEASIBLE
        )

    def _stop(self) -> None:
        """Ask HiGHS to stop at its next interrupt callback. Another thread calls this."""
        for event in (self._h.cbMipInterrupt, self._h.cbSimplexInterrupt, self._h.cbIpmInterrupt):
            event.subscribe(lambda e: e.interrupt())

    def _resize_pool(self) -> None:
        """Reset the process's thread pool if this session needs another number of threads."""
        threads = self._settings.get("threads") or None
        if threads is not None and threads != _HighsSession.pool_threads:
            self._h.resetGlobalScheduler(True)
            _HighsSession.pool_threads = threads

    def _retry(self) -> None:
        """Run again if HiGHS did not start because another library has resized the pool."""
        if self._h.getModelStatus() == self._highspy.HighsModelStatus.kNotset:
            self._h.resetGlobalScheduler(True)
            self._h.run()

    def _read(self, start: Start) -> Raw:
        """Return the result of the last run, which began at `start`."""
        h = self._h
        info = self._read_info
        status = h.getModelStatus()
        termination = self.owner.read_termination(status.name)
        raw = Raw(termination, h.modelStatusToString(status), start=start)
        simplex_iterations = max(0, info("simplex_iteration_count"))
        raw.iterations = simplex_iterations + max(0, info("ipm_iteration_count"))
        values = h.getSolution()
        if info("primal_solution_status") == _FEASIBLE and termination is not Termination.CUTOFF:
            raw.x = np.array(values.col_value)
            raw.point = PointStatus.FEASIBLE
        if self._is_mip:
            raw.nodes = max(0, info("mip_node_count"))
            raw.record_bound(info("mip_dual_bound"), info("objective_function_value"))
            return raw
        has_duals = info("dual_solution_status") == _FEASIBLE
        if has_duals:
            raw.dual = PointStatus.FEASIBLE
        ray_readers = {
            Termination.INFEASIBLE: h.getDualRay,
            Termination.UNBOUNDED: h.getPrimalRay,
        }
        if termination in ray_readers:
            _, has_ray, ray = ray_readers[termination]()
            raw.ray = np.array(ray) if has_ray else None
        else:
            raw.dual_values = DualValues(
                row_dual=np.array(values.row_dual) if has_duals else None,
                reduced_cost=np.array(values.col_dual) if has_duals else None,
                basis=h.getBasis() if info("basis_validity") == _VALID_BASIS else None,
            )
        return raw

    def _read_info(self, name: str) -> Any:
        """Return one number of HiGHS's info, or 0 if it is not available.

        For a number that is not available HiGHS returns a warning and an arbitrary number. Reading
        the whole record with getInfo takes ten times as long.
        """
        status, value = self._h.getInfoValue(name)
        if status == self._highspy.HighsStatus.kOk:
            return value
        return 0

    def _close(self) -> None:
        """Clear the Highs object."""
        self._h.clear()


class Highs(Backend):
    """HiGHS: LP by simplex or interior point with crossover, MILP by branch and cut."""

    name = "highs"
    session = _HighsSession
