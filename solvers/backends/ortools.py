"""Backend "ortools": GLOP and PDLP for LPs, CP-SAT for integer programs, gSCIP for MILPs.

All of them are used through MathOpt, the common interface of OR-Tools. The model is written into
MathOpt's protocol buffers directly, which takes a third of the time of its Python modelling layer.
GLOP keeps a live solver and starts hot. The others start from a new solver each time. "ortools"
alone means GLOP for a linear program and gSCIP for a mixed-integer one.

This file works around these properties:

* MathOpt answers an option that it does not know with an exception about something else, so
  options are refused by name before. GLOP ignores gaps without a message, so they are refused.
* CP-SAT stops at an absolute gap of 1e-4 unless another one is set, and rounds coefficients to
  integers.
* CP-SAT searches only the box in which every column is at most 1e7 in size. If the bounds of the
  program allow points outside of this box, its proofs are not used.
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

_NANOSECONDS_PER_SECOND = 1e9
_FEASIBLE = 2  # MathOpt's SOLUTION_STATUS_FEASIBLE.
# Feasibility tolerance of GLOP if the continuous columns are not multiplied by `Program.scale` (see
# `Session`). GLOP's default tolerance would then allow larger violations in the model's units.
_FINE_TOLERANCE = 1e-10
_MAX_CP_SAT_SIZE = 1e7  # CP-SAT's mip_max_bound: it searches no column beyond this.
_MIN_LOG_LEVEL = 2  # absl's level "error": messages of lower levels are not printed.


class _MathOptSession(Session):
    """A session of one solver of MathOpt. `_variant` is its name, such as "glop"."""

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

        _silence_warnings()
        self._core = solver
        self._interrupter_class = solve_interrupter.SolveInterrupter
        self._refusal = StatusNotOk
        self._parameters_pb = parameters_pb2
        self._model_pb = model_pb2
        self._update_pb = model_update_pb2
        self._model_parameters_pb = model_parameters_pb2
        self._callbacks = callback_pb2.CallbackRegistrationProto()
        assert owner.variant is not None
        self._variant = owner.variant
        solver_type = "SOLVER_TYPE_" + owner.variant.upper().replace("-", "_")
        self._solver_type = parameters_pb2.SolverTypeProto.Value(solver_type)
        self._parameters = self._translate_options(options)
        self._settings = {
            field.name: str(value).strip() for field, value in self._parameters.ListFields()
        }
        self._is_mip = program.is_mip
        self._solver: Any = None

    def _translate_options(self, options: Options) -> Any:
        """Return a parameter message with the options."""
        parameters = self._parameters_pb.SolveParametersProto()
        if self._variant in ("cp-sat", "gscip"):
            parameters.relative_gap_tolerance = DEFAULT_RELATIVE_GAP
            parameters.absolute_gap_tolerance = DEFAULT_ABSOLUTE_GAP
        if self._variant == "gscip":
            parameters.gscip.bool_params["misc/catchctrlc"] = True
        if options.time_limit is not None:
            parameters.time_limit.FromNanoseconds(int(options.time_limit * _NANOSECONDS_PER_SECOND))
        for key, value in self.owner.translate_options(replace(options, native={})).items():
            _set_parameter(parameters, key, value)
        prefix = self._variant.replace("-", "_")
        for key, value in options.native.items():
            try:
                _set_parameter(parameters, f"{prefix}.{key}", value)
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                raise self.build_option_error(key, value, f": {error}") from None
        return parameters

    def _build(self, data: Data) -> None:
        """Build the MathOpt model of the data and open a native solver for it."""
        model = self._model_pb.ModelProto()
        variables = model.variables
        rows = model.linear_constraints
        variables.ids.extend(range(data.c.size))
        variables.lower_bounds.extend(data.lower.tolist())
        variables.upper_bounds.extend(data.upper.tolist())
        variables.integers.extend(data.integrality.tolist())
        rows.ids.extend(range(data.row_lower.size))
        rows.lower_bounds.extend(data.row_lower.tolist())
        rows.upper_bounds.extend(data.row_upper.tolist())
        model.objective.offset = data.offset
        costs = model.objective.linear_coefficients
        cost_columns = np.flatnonzero(data.c)
        _fill_vector(costs, cost_columns, data.c[cost_columns])
        by_row = data.A.tocsr()
        row_index = np.repeat(np.arange(data.row_lower.size), np.diff(by_row.indptr))
        _fill_matrix(model.linear_constraint_matrix, row_index, by_row.indices, by_row.data)
        self._column_count = data.c.size
        self._row_count = data.row_lower.size
        self._has_costs = bool(data.c.any())
        lower_size = np.abs(data.lower).max(initial=0.0)
        max_size = max(lower_size, np.abs(data.upper).max(initial=0.0))
        # Whether points may lie outside of the box that the solver searches.
        self._exceeds_box = self._variant == "cp-sat" and max_size > _MAX_CP_SAT_SIZE
        initializer = self._parameters_pb.SolverInitializerProto()
        self._solver = self._core.new(self._solver_type, model, initializer)

    def _update(self, change: Change, data: Data) -> bool:
        """Send the changed entries to GLOP. Return False for other solvers, which cannot update."""
        if self._variant != "glop":
            return False  # The session then builds the model again.
        update = self._update_pb.ModelUpdateProto()
        if change.cost is not None:
            _fill_vector(update.objective_updates.linear_coefficients, *change.cost)
        if change.offset is not None:
            update.objective_updates.offset_update = change.offset
        if change.coefficients is not None:
            rows, columns, values = change.coefficients
            order = np.lexsort((columns, rows))
            matrix = update.linear_constraint_matrix_updates
            _fill_matrix(matrix, rows[order], columns[order], values[order])
        for bounds, target in (
            (change.rows, update.linear_constraint_updates),
            (change.columns, update.variable_updates),
        ):
            if bounds is not None:
                positions, low, high = bounds
                _fill_vector(target.lower_bounds, positions, low)
                _fill_vector(target.upper_bounds, positions, high)
        return bool(self._solver.update(update))

    def _run(self, start: Start, basis: Any) -> Raw:
        """Solve the native model, and return the result in the units of the data."""
        hints = self._model_parameters_pb.ModelSolveParametersProto()
        if start is Start.BASIS and basis is not None:
            hints.initial_basis.CopyFrom(basis)
        parameters = self._parameters
        if self._uses_fine_tolerance():
            parameters = type(parameters)()
            parameters.CopyFrom(self._parameters)
            parameters.glop.primal_feasibility_tolerance = _FINE_TOLERANCE
            parameters.glop.dual_feasibility_tolerance = _FINE_TOLERANCE
        time_limit = self._deadline.solver_time_limit
        if time_limit is not None:
            parameters.time_limit.FromNanoseconds(int(time_limit * _NANOSECONDS_PER_SECOND))
        is_interrupted = False
        try:
            if self._variant == "gscip":
                # gSCIP handles Ctrl-C itself; MathOpt's interrupter makes it print to stderr.
                result = self._start_solver(parameters, hints, interrupter=None)
            else:
                interrupter = self._interrupter_class()
                with Interruption(interrupter.interrupt) as interruption:
                    result = self._start_solver(parameters, hints, interrupter.pybind_interrupter)
                is_interrupted = interruption.is_pressed
        except self._refusal as error:
            raw = _classify_refusal(str(error))
        else:
            raw = self._read(result, start)
        raw.is_interrupted = is_interrupted
        return raw

    def _start_solver(self, parameters: Any, hints: Any, interrupter: Any) -> Any:
        """Run the solver and return MathOpt's result message.

        Args:
            parameters: message with the options.
            hints: message with the initial basis, if any.
            interrupter: MathOpt's native interrupter, or None.
        """
        no_messages = None
        no_callback = None
        return self._solver.solve(
            parameters, hints, no_messages, self._callbacks, no_callback, interrupter
        )

    def _uses_fine_tolerance(self) -> bool:
        """Return whether GLOP solves without the program's scale, and the user set no tolerance."""
        has_coarser_units = self._scale < self.program.scale
        has_user_tolerance = self.options.feasibility_tolerance is not None
        return self._variant == "glop" and has_coarser_units and not has_user_tolerance

    def _read(self, result: Any, start: Start) -> Raw:
        """Convert MathOpt's result message of a solve that began at `start`."""
        termination = result.termination
        statistics = result.solve_stats
        reason = self._read_enum_name(termination, "reason")
        limit = self._read_enum_name(termination, "limit")
        texts = (reason.lower(), limit.lower(), termination.detail)
        raw_status = " ".join(text for text in texts if text)
        raw = Raw(self.owner.read_termination(limit or reason), raw_status, start=start)
        raw.iterations = int(
            statistics.simplex_iterations
            + statistics.barrier_iterations
            + statistics.first_order_iterations
        )
        if limit == "UNDETERMINED":  # GLOP and CP-SAT do not report which limit it was.
            has_time_limit = self._deadline.seconds is not None
            raw.termination = Termination.TIME_LIMIT if has_time_limit else Termination.ERROR
            iteration_limit = self.options.iteration_limit
            if iteration_limit is not None and raw.iterations >= iteration_limit:
                raw.termination = Termination.ITERATION_LIMIT
        self._read_solution(raw, result)
        if raw.termination is Termination.INFEASIBLE and result.dual_rays:
            raw.ray = _to_dense(result.dual_rays[0].dual_values, self._row_count)
        elif raw.termination is Termination.UNBOUNDED and result.primal_rays:
            raw.ray = _to_dense(result.primal_rays[0].variable_values, self._column_count)
        return raw

    def _read_solution(self, raw: Raw, result: Any) -> None:
        """Read the point if it is feasible, and the dual values of an LP or else the bound."""
        solution = result.solutions[0] if result.solutions else None
        if solution is not None and solution.HasField("primal_solution"):
            primal = solution.primal_solution
            if primal.feasibility_status == _FEASIBLE:
                raw.x = _to_dense(primal.variable_values, self._column_count)
                raw.point = PointStatus.FEASIBLE
        if self._is_mip or self._variant == "gscip":  # gSCIP returns only a bound for an LP.
            raw.nodes = int(result.solve_stats.node_count) if self._variant == "gscip" else None
            bounds = result.termination.objective_bounds
            raw.record_bound(bounds.dual_bound, bounds.primal_bound)
            self._withdraw_unproven_claim(raw)
        elif solution is not None and solution.HasField("dual_solution"):
            raw.dual_values = self._read_dual_values(solution)
            if raw.dual_values.row_dual is not None:
                raw.dual = PointStatus.FEASIBLE

    def _read_dual_values(self, solution: Any) -> DualValues:
        """Return the basis, and the dual values if MathOpt calls them feasible."""
        basis = solution.basis if solution.HasField("basis") else None
        dual = solution.dual_solution
        if dual.feasibility_status != _FEASIBLE:
            return DualValues(basis=basis)
        return DualValues(
            _to_dense(dual.dual_values, self._row_count),
            _to_dense(dual.reduced_costs, self._column_count),
            basis,
        )

    def _needs_unscaled_solve(self, raw: Raw) -> bool:
        """Return whether GLOP called its answer imprecise. Without the scale it may be precise."""
        is_imprecise = raw.termination is Termination.NUMERICAL and not raw.is_interrupted
        return self._variant == "glop" and is_imprecise and self._scale > 1

    def _withdraw_unproven_claim(self, raw: Raw) -> None:
        """Change the termination to NUMERICAL if CP-SAT proved something only inside its box."""
        is_claim = raw.termination is Termination.INFEASIBLE
        # Without costs every feasible point is optimal, so an OPTIMAL inside the box holds outside
        # too.
        if self._has_costs:
            is_claim = is_claim or raw.termination is Termination.OPTIMAL
        if self._exceeds_box and is_claim:
            raw.termination = Termination.NUMERICAL
            raw.bound = None
            raw.gap = None
            note = "CP-SAT looks no further than 1e7, and the columns' bounds are wider"
            raw.notes = (*raw.notes, note)

    @staticmethod
    def _read_enum_name(message: Any, field: str) -> str:
        """Return the name of an enum value without its prefix; "" for an unspecified limit."""
        number = getattr(message, field)
        enum = message.DESCRIPTOR.fields_by_name[field].enum_type
        name: str = enum.values_by_number[number].name
        name = name.removeprefix("TERMINATION_REASON_").removeprefix("LIMIT_")
        if name == "UNSPECIFIED":
            return ""
        return name

    def _close(self) -> None:
        """Drop the native solver, which releases it."""
        self._solver = None


@functools.cache
def _silence_warnings() -> None:
    """Keep the preprocessors' warnings off stderr, for this process.

    From Python, absl's log level can only be set by initializing its logging, and that aborts the
    process if another library has done so. The level is therefore set through the shared library.
    If that is not found, warnings stay visible.
    """
    symbol = rb"_ZN4absl\d+lts_\d{8}14SetMinLogLevelENS0_18LogSeverityAtLeastE"
    spec = importlib.util.find_spec("ortools")
    if spec is None:
        return
    for root in spec.submodule_search_locations or ():
        for path in pathlib.Path(root).glob(".libs/libabsl_log_globals*"):
            name = re.search(symbol, path.read_bytes())
            if name is not None:
                with contextlib.suppress(OSError, AttributeError):
                    getattr(ctypes.CDLL(str(path)), name.group().decode())(_MIN_LOG_LEVEL)


def _fill_vector(vector: Any, index: Positions, values: Vector) -> None:
    """Append the entries vector[index[k]] = values[k] to a sparse vector message."""
    vector.ids.extend(index.tolist())
    vector.values.extend(values.tolist())


def _fill_matrix(matrix: Any, rows: NDArray[Any], columns: NDArray[Any], values: Vector) -> None:
    """Append the entries matrix[rows[k], columns[k]] = values[k] to a sparse matrix message."""
    matrix.row_ids.extend(rows.tolist())
    matrix.column_ids.extend(columns.tolist())
    matrix.coefficients.extend(values.tolist())


def _to_dense(vector: Any, size: int) -> Vector:
    """Convert a sparse vector message to a dense array (size,)."""
    dense = np.zeros(size)
    dense[np.array(vector.ids, dtype=int)] = vector.values
    return dense


def _classify_refusal(message: str) -> Raw:
    """Return the result for an error that MathOpt raised instead of returning the solver's result.

    MathOpt raises for unbounded programs, because their objective is infinite.
    """
    is_unbounded = "objective" in message and "inf" in message
    termination = Termination.INFEASIBLE_OR_UNBOUNDED if is_unbounded else Termination.ERROR
    return Raw(termination, message)


def _set_parameter(message: Any, key: str, value: Any) -> None:
    """Set one option in a parameter message.

    Args:
        message: the SolveParametersProto.
        key: dotted path of a field, such as "glop.use_dual_simplex", or a parameter of SCIP, such
            as "gscip.limits/nodes".
        value: the new value.
    """
    *path, field = key.split(".")
    for part in path:
        message = getattr(message, part)
    if path == ["gscip"] and "/" in field:
        # MathOpt stores the parameters of SCIP in one map for each type of value.
        field_by_type = {
            bool: "bool_params",
            int: "int_params",
            float: "real_params",
            str: "string_params",
        }
        getattr(message, field_by_type[type(value)])[field] = value
    else:
        setattr(message, field, value)


class OrTools(Backend):
    """OR-Tools. The variant is the solver; without one it is GLOP or gSCIP."""

    name = "ortools"
    session = _MathOptSession

    def _resolve(self, program: Program) -> Backend:
        """Return this backend. If the user named no solver: gSCIP for a MILP, GLOP for an LP."""
        if self.variant is None:
            return OrTools("gscip" if program.is_mip else "glop")
        return self
