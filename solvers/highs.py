"""HiGHS through highspy: the default backend. The model is built once and changed in place; LPs re-solve hot.

Traps handled here: NaN is answered "optimal" (refused before dispatch); a time limit must not hide an incumbent; the
point is read only when primal_solution_status says it is feasible; one thread pool per process (threads set first);
a MILP has no hot start (each solve starts from cleared solver data, so that the answer does not depend on history).
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .backend import Backend, Capabilities, Options, Raw, Session
from .errors import UnsupportedOption
from .program import Data, Program
from .solution import PointStatus, Start, Termination

__all__ = ["Highs"]

Vector = NDArray[np.float64]

_NATIVE = {
    "time_limit": "time_limit",
    "gap": "mip_rel_gap",
    "node_limit": "mip_max_nodes",
    "iteration_limit": "simplex_iteration_limit",
    "threads": "threads",
    "seed": "random_seed",
    "feasibility_tolerance": "primal_feasibility_tolerance",
    "integrality_tolerance": "mip_feasibility_tolerance",
}
_ALGORITHM = {"simplex": "simplex", "interior-point": "ipm"}
_FEASIBLE = 2  # HiGHS: kSolutionStatusFeasible


class Highs(Backend):
    """HiGHS: LP by simplex or interior point with crossover, MILP by branch and cut."""

    name = "highs"
    distribution = "highspy"
    module = "highspy"
    supported_options = frozenset({*_NATIVE, "presolve", "algorithm"})

    def capabilities(self) -> Capabilities:
        """LP and MILP, duals, hot start, vertex solutions, Farkas rays."""
        return Capabilities(
            lp=True, milp=True, duals=True, hot_start=True, infeasibility_certificate=True, exact_vertex=True
        )

    def _open(self, program: Program, options: Options) -> Session:
        return _HighsSession(self, program, options)


class _HighsSession(Session):
    def __init__(self, owner: Backend, program: Program, options: Options) -> None:
        super().__init__(owner, program, options)
        import highspy

        self._highspy = highspy
        self._mip = program.is_mip
        self._set: dict[str, Any] = {"output_flag": False, "mip_rel_gap": 1e-9, "mip_abs_gap": 1e-12}
        for option, value in options.given().items():
            if option == "presolve":
                self._set["presolve"] = "on" if value else "off"
            elif option == "algorithm":
                if value not in _ALGORITHM:
                    raise UnsupportedOption(f"algorithm must be one of {sorted(_ALGORITHM)}. Got {value!r}.")
                self._set["solver"] = _ALGORITHM[value]
            else:
                self._set[_NATIVE[option]] = float(value) if option.endswith(("limit", "gap")) else value
        for key in ("mip_max_nodes", "simplex_iteration_limit"):
            if key in self._set:
                self._set[key] = int(self._set[key])
        if "simplex_iteration_limit" in self._set:
            self._set["ipm_iteration_limit"] = self._set["simplex_iteration_limit"]
        self._set.update(options.native)
        # Columns of A's entries, to change a coefficient given its position in the CSC arrays.
        pattern = program.template.A
        self._entry_row = pattern.indices
        self._entry_column = np.repeat(np.arange(pattern.shape[1]), np.diff(pattern.indptr))
        self._h = self._new()
        self._terminations = _terminations(highspy.HighsModelStatus)

    def _new(self) -> Any:
        h = self._highspy.Highs()
        ok = self._highspy.HighsStatus.kOk
        h.setOptionValue("output_flag", False)
        for key, value in self._set.items():
            if h.setOptionValue(key, value) != ok:
                raise UnsupportedOption(f"highs cannot honour the option {key} = {value!r}; leave it out or change it.")
        return h

    def _build(self, data: Data) -> None:
        hs = self._highspy
        lp = hs.HighsLp()
        lp.num_col_, lp.num_row_ = data.c.size, data.row_lower.size
        lp.col_cost_, lp.offset_ = data.c, data.offset
        lp.col_lower_, lp.col_upper_ = data.lower, data.upper
        lp.row_lower_, lp.row_upper_ = data.row_lower, data.row_upper
        lp.a_matrix_.format_ = hs.MatrixFormat.kColwise
        lp.a_matrix_.num_col_, lp.a_matrix_.num_row_ = lp.num_col_, lp.num_row_
        lp.a_matrix_.start_ = data.A.indptr.astype(np.int32)
        lp.a_matrix_.index_ = data.A.indices.astype(np.int32)
        lp.a_matrix_.value_ = data.A.data
        if data.is_mip:
            kinds = (hs.HighsVarType.kContinuous, hs.HighsVarType.kInteger)
            lp.integrality_ = [kinds[int(flag)] for flag in data.integrality]
        self._lower, self._upper = data.lower.copy(), data.upper.copy()
        self._row_lower, self._row_upper = data.row_lower.copy(), data.row_upper.copy()
        self._h.clearModel()
        self._h.passModel(lp)

    def _update(self, section: str, index: NDArray[np.intp], values: Vector, data: Data) -> bool:
        h, which = self._h, index.astype(np.int32)
        if section == "A":
            if index.size > 20_000:
                return False  # one pass is cheaper than as many calls
            for i, j, value in zip(
                self._entry_row[index].tolist(), self._entry_column[index].tolist(), values.tolist(), strict=True
            ):
                h.changeCoeff(i, j, value)
        elif section == "c":
            h.changeColsCost(index.size, which, values)
        elif section == "offset":
            h.changeObjectiveOffset(float(values[0]))
        elif section in ("row_lower", "row_upper"):
            (self._row_lower if section == "row_lower" else self._row_upper)[index] = values
            h.changeRowsBounds(index.size, which, self._row_lower[index], self._row_upper[index])
        else:
            (self._lower if section == "lower" else self._upper)[index] = values
            h.changeColsBounds(index.size, which, self._lower[index], self._upper[index])
        return True

    def _run(self, start: Start, basis: Any) -> Raw:
        h = self._h
        if self._mip or start is Start.COLD:
            h.clearSolver()
            start = Start.COLD
        elif start is Start.BASIS and basis is not None:
            h.setBasis(basis)
        begin = time.perf_counter()
        interrupted = False
        if self._mip:
            # HiGHS holds the interpreter's signals back while it runs; its own interrupt thread lets Ctrl-C through.
            h.HandleKeyboardInterrupt = True
            try:
                h.solve()
            except KeyboardInterrupt:
                interrupted = True
        else:
            h.run()
        raw = self._read(h, time.perf_counter() - begin, start)
        if interrupted:
            raw.termination = Termination.INTERRUPTED
        return raw

    def _read(self, h: Any, seconds: float, start: Start) -> Raw:
        status = h.getModelStatus()
        info = h.getInfo()
        termination = self._terminations.get(status, Termination.ERROR)
        raw = Raw(termination, h.modelStatusToString(status), start=start, solve_seconds=seconds)
        raw.iterations = max(0, info.simplex_iteration_count) + max(0, info.ipm_iteration_count)
        if status == self._highspy.HighsModelStatus.kModelEmpty:
            return self._empty(raw)
        feasible = info.primal_solution_status == _FEASIBLE
        solution = None
        if feasible or (not self._mip and info.dual_solution_status == _FEASIBLE):
            solution = h.getSolution()
        if feasible and solution is not None:
            raw.x, raw.point = np.array(solution.col_value), PointStatus.FEASIBLE
        if self._mip:
            raw.nodes = max(0, int(info.mip_node_count))
            raw.bound = float(info.mip_dual_bound) if termination is not Termination.INFEASIBLE else None
            reached = info.mip_gap <= self._set["mip_rel_gap"] * (1 + 1e-9) or self._proved(raw, info)
            if termination is Termination.OPTIMAL and not reached and info.mip_gap > 1e-9:
                raw.termination = Termination.GAP_LIMIT
        else:
            if solution is not None and info.dual_solution_status == _FEASIBLE:
                raw.row_dual, raw.reduced_cost = np.array(solution.row_dual), np.array(solution.col_dual)
                raw.dual = PointStatus.FEASIBLE
            raw.basis = h.getBasis() if info.basis_validity == 1 else None
            if termination is Termination.INFEASIBLE:
                _, has, ray = h.getDualRay()
                raw.ray = np.array(ray) if has else None
            elif termination is Termination.UNBOUNDED:
                _, has, ray = h.getPrimalRay()
                raw.ray = np.array(ray) if has else None
        return raw

    @staticmethod
    def _proved(raw: Raw, info: Any) -> bool:
        return abs(info.objective_function_value - info.mip_dual_bound) <= 1e-9

    def _empty(self, raw: Raw) -> Raw:
        """A model without rows and columns: feasible when the (absent) rows are, with the empty point."""
        raw.termination = Termination.OPTIMAL
        raw.x, raw.point = np.zeros(0), PointStatus.FEASIBLE
        raw.row_dual, raw.reduced_cost, raw.dual = np.zeros(self._row_lower.size), np.zeros(0), PointStatus.FEASIBLE
        return raw

    def _effective_options(self) -> dict[str, Any]:
        return dict(self._set)

    def close(self) -> None:
        self._h.clear()


def _terminations(status: Any) -> dict[Any, Termination]:
    return {
        status.kOptimal: Termination.OPTIMAL,
        status.kModelEmpty: Termination.OPTIMAL,
        status.kInfeasible: Termination.INFEASIBLE,
        status.kUnbounded: Termination.UNBOUNDED,
        status.kUnboundedOrInfeasible: Termination.INFEASIBLE_OR_UNBOUNDED,
        status.kTimeLimit: Termination.TIME_LIMIT,
        status.kIterationLimit: Termination.ITERATION_LIMIT,
        status.kSolutionLimit: Termination.NODE_LIMIT,
        status.kInterrupt: Termination.INTERRUPTED,
        status.kHighsInterrupt: Termination.INTERRUPTED,
        status.kObjectiveBound: Termination.ERROR,
        status.kObjectiveTarget: Termination.ERROR,
        status.kMemoryLimit: Termination.ERROR,
        status.kUnknown: Termination.NUMERICAL,
        status.kSolveError: Termination.NUMERICAL,
    }
