"""OR-Tools through MathOpt's solver core: GLOP and PDLP for LPs, CP-SAT for programs in integers, gSCIP for MILPs.

The model is written into MathOpt's protocol buffers directly, which costs a third of its Python modelling layer. GLOP
keeps a live solver and re-solves hot; the others start from a fresh solver each time.

"ortools" alone means GLOP for a linear program and gSCIP for a mixed-integer one.

Traps handled here: MathOpt answers any option it does not know with an exception about something else, so options are
refused by name before; GLOP ignores gaps silently (refused); CP-SAT stops at an absolute gap of 1e-4 unless told
otherwise, rounds coefficients to integers, and looks no further than 1e7 in any column (what it proves there counts
only when the program's points cannot lie outside).
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.util
import pathlib
import re
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.solvers.arrays import Positions, Vector
from workbench.solvers.contract import Backend
from workbench.solvers.data import Change, Data
from workbench.solvers.program import Program
from workbench.solvers.session import Interruption, Options, Raw, Session
from workbench.solvers.solution import DualValues, PointStatus, Start, Termination

_FEASIBLE = 2  # SOLUTION_STATUS_FEASIBLE
_FINE_TOLERANCE = (
    1e-10  # GLOP's tolerances where a program is solved in coarser units than its own.
)
_CP_SAT_BOUND = 1e7  # SatParameters.mip_max_bound


class _MathOptSession(Session):
    def __init__(self, owner: Backend, program: Program, options: Options) -> None:
        super().__init__(owner, program, options)
        from ortools.math_opt import (
            callback_pb2,
            model_parameters_pb2,
            model_pb2,
            model_update_pb2,
            parameters_pb2,
        )
        from ortools.math_opt.core.python import solver
        from ortools.util.python import solve_interrupter
        from pybind11_abseil.status import StatusNotOk  # type: ignore[import-untyped]

        _hush()
        self._core, self._interrupter, self._refusal = (
            solver,
            solve_interrupter.SolveInterrupter,
            StatusNotOk,
        )
        self._pb, self._model_pb, self._update_pb = parameters_pb2, model_pb2, model_update_pb2
        self._model_parameters, self._callbacks = (
            model_parameters_pb2,
            callback_pb2.CallbackRegistrationProto(),
        )
        assert owner.variant is not None
        self._variant = owner.variant
        self._kind = parameters_pb2.SolverTypeProto.Value(
            "SOLVER_TYPE_" + owner.variant.upper().replace("-", "_")
        )
        self._parameters = self._translate(options)
        self._settings = {
            field.name: str(value).strip() for field, value in self._parameters.ListFields()
        }
        self._mip = program.is_mip
        self._solver: Any = None

    def _translate(self, options: Options) -> Any:
        parameters = self._pb.SolveParametersProto()
        if self._variant in ("cp-sat", "gscip"):
            parameters.relative_gap_tolerance, parameters.absolute_gap_tolerance = 1e-9, 1e-12
        if self._variant == "gscip":
            parameters.gscip.bool_params["misc/catchctrlc"] = True
        if options.time_limit is not None:
            parameters.time_limit.FromNanoseconds(int(options.time_limit * 1e9))
        for key, value in self.owner.translate_options(replace(options, native={})).items():
            _put(parameters, key, value)
        for key, value in options.native.items():
            try:
                _put(parameters, f"{self._variant.replace('-', '_')}.{key}", value)
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                raise self.build_option_error(key, value, f": {error}") from None
        return parameters

    def _build(self, data: Data) -> None:
        model = self._model_pb.ModelProto()
        variables, rows = model.variables, model.linear_constraints
        variables.ids.extend(range(data.c.size))
        variables.lower_bounds.extend(data.lower.tolist())
        variables.upper_bounds.extend(data.upper.tolist())
        variables.integers.extend(data.integrality.tolist())
        rows.ids.extend(range(data.row_lower.size))
        rows.lower_bounds.extend(data.row_lower.tolist())
        rows.upper_bounds.extend(data.row_upper.tolist())
        model.objective.offset = data.offset
        _fill(model.objective.linear_coefficients, np.flatnonzero(data.c), data.c[data.c != 0])
        by_row = data.A.tocsr()
        row = np.repeat(np.arange(data.row_lower.size), np.diff(by_row.indptr))
        _fill_matrix(model.linear_constraint_matrix, row, by_row.indices, by_row.data)
        self._size, self._height = data.c.size, data.row_lower.size
        self._costs = bool(data.c.any())
        widest = max(np.abs(data.lower).max(initial=0.0), np.abs(data.upper).max(initial=0.0))
        self._outside = self._variant == "cp-sat" and widest > _CP_SAT_BOUND
        self._solver = self._core.new(self._kind, model, self._pb.SolverInitializerProto())

    def _update(self, change: Change, data: Data) -> bool:
        if self._variant != "glop":
            return False
        update = self._update_pb.ModelUpdateProto()
        if change.cost is not None:
            _fill(update.objective_updates.linear_coefficients, *change.cost)
        if change.offset is not None:
            update.objective_updates.offset_update = change.offset
        if change.coefficients is not None:
            rows, columns, values = change.coefficients
            order = np.lexsort((columns, rows))
            _fill_matrix(
                update.linear_constraint_matrix_updates, rows[order], columns[order], values[order]
            )
        for moved, target in (
            (change.rows, update.linear_constraint_updates),
            (change.columns, update.variable_updates),
        ):
            if moved is not None:
                _fill(target.lower_bounds, moved[0], moved[1])
                _fill(target.upper_bounds, moved[0], moved[2])
        return bool(self._solver.update(update))

    def _run(self, start: Start, basis: Any) -> Raw:
        hints = self._model_parameters.ModelSolveParametersProto()
        if start is Start.BASIS and basis is not None:
            hints.initial_basis.CopyFrom(basis)
        parameters = self._parameters
        if (
            self._variant == "glop"
            and self._scale < self.program.scale
            and self.options.feasibility_tolerance is None
        ):
            parameters = type(parameters)()
            parameters.CopyFrom(self._parameters)
            parameters.glop.primal_feasibility_tolerance = _FINE_TOLERANCE
            parameters.glop.dual_feasibility_tolerance = _FINE_TOLERANCE
        left = self._deadline.solver_time_limit
        if left is not None:
            parameters.time_limit.FromNanoseconds(int(left * 1e9))
        seen = False
        try:
            if (
                self._variant == "gscip"
            ):  # catches Ctrl-C by itself; MathOpt's interrupter makes it complain on stderr
                result = self._solver.solve(parameters, hints, None, self._callbacks, None, None)
            else:
                interrupter = self._interrupter()
                with Interruption(interrupter.interrupt) as interruption:
                    result = self._solver.solve(
                        parameters,
                        hints,
                        None,
                        self._callbacks,
                        None,
                        interrupter.pybind_interrupter,
                    )
                seen = interruption.is_pressed
        except self._refusal as error:
            raw = _refused(str(error))
        else:
            raw = self._read(result, start)
        raw.is_interrupted = seen
        return raw

    def _read(self, result: Any, start: Start) -> Raw:
        ended, stats = result.termination, result.solve_stats
        reason, limit = self._pb_name(ended, "reason"), self._pb_name(ended, "limit")
        words = " ".join(word for word in (reason.lower(), limit.lower(), ended.detail) if word)
        raw = Raw(self.owner.ended(limit or reason), words, start=start)
        raw.iterations = int(
            stats.simplex_iterations + stats.barrier_iterations + stats.first_order_iterations
        )
        if limit == "UNDETERMINED":  # GLOP and CP-SAT do not say which
            raw.termination = (
                Termination.ERROR if self._deadline.seconds is None else Termination.TIME_LIMIT
            )
            most = self.options.iteration_limit
            if most is not None and raw.iterations >= most:
                raw.termination = Termination.ITERATION_LIMIT
        self._read_solution(raw, result)
        if raw.termination is Termination.INFEASIBLE and result.dual_rays:
            raw.ray = _scatter(result.dual_rays[0].dual_values, self._height)
        elif raw.termination is Termination.UNBOUNDED and result.primal_rays:
            raw.ray = _scatter(result.primal_rays[0].variable_values, self._size)
        return raw

    def _read_solution(self, raw: Raw, result: Any) -> None:
        """The point, and of a linear program the duals, where MathOpt calls them feasible; else the bound."""
        solution = result.solutions[0] if result.solutions else None
        if solution is not None and solution.HasField("primal_solution"):
            primal = solution.primal_solution
            if primal.feasibility_status == _FEASIBLE:
                raw.x, raw.point = (
                    _scatter(primal.variable_values, self._size),
                    PointStatus.FEASIBLE,
                )
        if self._mip or self._variant == "gscip":  # which gives an LP a bound, but no duals
            raw.nodes = int(result.solve_stats.node_count) if self._variant == "gscip" else None
            bounds = result.termination.objective_bounds
            raw.record_bound(bounds.dual_bound, bounds.primal_bound)
            self._doubt(raw)
        elif solution is not None and solution.HasField("dual_solution"):
            dual, rest = (
                solution.dual_solution,
                DualValues(basis=solution.basis if solution.HasField("basis") else None),
            )
            if dual.feasibility_status == _FEASIBLE:
                raw.dual = PointStatus.FEASIBLE
                row_dual, reduced_cost = dual.dual_values, dual.reduced_costs
                rest = DualValues(
                    _scatter(row_dual, self._height), _scatter(reduced_cost, self._size), rest.basis
                )
            raw.dual_values = rest

    def _needs_coarser_units(self, raw: Raw) -> bool:
        """GLOP calls answers of large numbers imprecise that it finds in small ones."""
        imprecise = raw.termination is Termination.NUMERICAL and not raw.is_interrupted
        return self._variant == "glop" and imprecise and self._scale > 1

    def _doubt(self, raw: Raw) -> None:
        """What CP-SAT proves inside its box is not proven for a program whose points may lie outside."""
        claims = (
            (Termination.OPTIMAL, Termination.INFEASIBLE)
            if self._costs
            else (Termination.INFEASIBLE,)
        )
        if self._outside and raw.termination in claims:
            raw.termination, raw.bound, raw.gap = Termination.NUMERICAL, None, None
            raw.notes = (
                *raw.notes,
                "CP-SAT looks no further than 1e7, and the columns' bounds are wider",
            )

    @staticmethod
    def _pb_name(message: Any, field: str) -> str:
        """A proto enum's word without its prefix; "" for an unspecified limit."""
        number = getattr(message, field)
        word = message.DESCRIPTOR.fields_by_name[field].enum_type.values_by_number[number].name
        word = word.removeprefix("TERMINATION_REASON_").removeprefix("LIMIT_")
        return "" if word == "UNSPECIFIED" else word

    def _close(self) -> None:
        self._solver = None


@functools.cache
def _hush() -> None:
    """Keep the preprocessors' warnings off stderr, for this process.

    Python is offered no handle on absl's log level except initialising its logging, and that aborts the process when
    somebody else has done so; so the level is set through the shared library itself. Where it is not found, warnings
    stay visible.
    """
    spec = importlib.util.find_spec("ortools")
    for root in (spec.submodule_search_locations or ()) if spec is not None else ():
        for path in pathlib.Path(root).glob(".libs/libabsl_log_globals*"):
            name = re.search(
                rb"_ZN4absl\d+lts_\d{8}14SetMinLogLevelENS0_18LogSeverityAtLeastE",
                path.read_bytes(),
            )
            with contextlib.suppress(OSError, AttributeError):
                if name is not None:
                    getattr(ctypes.CDLL(str(path)), name.group().decode())(2)  # errors and worse


def _fill(vector: Any, index: Positions, values: Vector) -> None:
    vector.ids.extend(index.tolist())
    vector.values.extend(values.tolist())


def _fill_matrix(matrix: Any, rows: NDArray[Any], columns: NDArray[Any], values: Vector) -> None:
    matrix.row_ids.extend(rows.tolist())
    matrix.column_ids.extend(columns.tolist())
    matrix.coefficients.extend(values.tolist())


def _scatter(vector: Any, size: int) -> Vector:
    """A sparse proto vector as a dense one."""
    dense = np.zeros(size)
    dense[np.array(vector.ids, dtype=int)] = vector.values
    return dense


def _refused(words: str) -> Raw:
    """MathOpt turned the solver's result down. It does so with unbounded programs, whose objective is not a number."""
    unbounded = "objective" in words and "inf" in words
    return Raw(Termination.INFEASIBLE_OR_UNBOUNDED if unbounded else Termination.ERROR, words)


def _put(message: Any, key: str, value: Any) -> None:
    """Set a (dotted) field of a parameter message; of gSCIP's also a SCIP parameter such as "gscip.limits/nodes"."""
    *path, last = key.split(".")
    for part in path:
        message = getattr(message, part)
    if path == ["gscip"] and "/" in last:
        kind = {bool: "bool_params", int: "int_params", float: "real_params", str: "string_params"}[
            type(value)
        ]
        getattr(message, kind)[last] = value
    else:
        setattr(message, last, value)


class OrTools(Backend):
    """OR-Tools: `variant` is the solver inside; without one, GLOP or gSCIP by the kind of program."""

    name = "ortools"
    session = _MathOptSession

    def _resolve(self, program: Program) -> Backend:
        if self.variant is None:
            return OrTools("gscip" if program.is_mip else "glop")
        return self
